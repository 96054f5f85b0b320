"""What readers read: the state of an open database that lookups and lone commits begin with."""

from lsm.kernels.native.version cimport rank_of, version_of


cdef extern from "turns.h" nogil:
    enum:
        LSM_TURN_NANOSECONDS

    uint64_t lsm_moment()
    void lsm_stand_aside()


cdef class Readable:
    """A view, the rank of the newest versions that readers see, and the tables' cache.

    The view is None when the database is closed. ``closed_by`` is why nobody is to begin anything,
    and ``walkers`` are those to be closed then.

    ``pending`` is the commit that is under way, if there is one. A commit may be made at once if
    there is none and writing ``is_unhindered``: nothing has failed, and nobody is to wait before
    the memtable has its ``unhindered_size``. ``user_bytes`` and ``log_bytes`` count what was
    written.
    """

    @property
    def visible(self):
        """The rank of the newest versions that readers see."""
        return rank_of(self.version)

    @visible.setter
    def visible(self, rank):
        cdef uint64_t version
        if not version_of(rank, &version):
            raise ValueError(f"{rank} is not the rank of any version")
        self.version = version

    def begin_work(self):
        """Have those who read and write let a background thread have its turn from time to time."""
        self.working += 1

    def end_work(self):
        """Count a background thread that has ended what it did."""
        self.working -= 1

    cdef int take_turns(self) except -1:
        cdef uint64_t now = lsm_moment()
        if now - self.turn < LSM_TURN_NANOSECONDS:
            return 0
        with nogil:
            lsm_stand_aside()
        self.turn = lsm_moment()
        return 0
