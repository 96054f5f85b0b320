"""What readers read: the state of an open database that lookups and lone commits begin with."""

from lsm.kernels.native.version cimport rank_of, version_of


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
