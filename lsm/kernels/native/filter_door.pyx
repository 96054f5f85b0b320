"""A loaded filter as a lookup asks it: through its C door, or in Python.

All filters of a database hash keys under one seed, so that a lookup takes one digest and asks the
filters of all levels with it.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid

from filters.kernels.native.prefixes cimport rule_of
from filters.kernels.native.hashing cimport (
    LSM_DIGEST_CASSANDRA, LSM_DIGEST_XXH3_64, lsm_digest, lsm_digest_of, lsm_xxh3_64
)

from lsm.disk.filter_blocks import WindowReader
from policies.prefixes import PrefixReader


cdef const char *CAPSULE = "lsm.probe.v1"


cdef class FilterDoor(CacheItem):
    """The base of a loaded filter: its ``reader``, ``windows`` or ``partitions`` have the say."""

    def __cinit__(self):
        self.mark = &self._own_mark

    @property
    def used(self):
        """Whether it was used since somebody has looked."""
        return self.mark[0]

    @used.setter
    def used(self, bint used):
        self.mark[0] = used

    cdef void mark_at(self, bint *place) noexcept:
        """Keep the mark in a place that lookups come by anyway, or here where there is none."""
        cdef bint used = self.mark[0]
        self.mark = &self._own_mark if place == NULL else place
        self.mark[0] = used

    cdef int decide(self) except -1:
        """Find out how the filter is asked; of another's filter the door is checked."""
        cdef const lsm_probe_v1 *probe
        reader, by_prefix = self.reader, None
        if type(reader) is PrefixReader:
            reader, by_prefix = reader.reader, reader.prefixes
        if self.partitions is not None:
            self.manner = IN_PYTHON
            if type(self.partitions) is Partitions:
                self.parts = self.partitions
                self.mark_at(&self.parts.c.used)
                self.manner = BY_PARTITION
        elif self.windows is not None:
            self.manner = BY_WINDOW if take_windows(self, self.windows) else IN_PYTHON
        elif reader is None:
            self.is_none = self.state == "none" and not self.patience
            self.manner = SILENT
        else:
            # Of its class: what stands in for a filter has not got its door.
            offer = getattr(type(reader), "__lsm_probe__", None)
            capsule = None if offer is None else offer(reader)
            self.manner = IN_PYTHON
            if PyCapsule_IsValid(capsule, CAPSULE):
                probe = <const lsm_probe_v1 *>PyCapsule_GetPointer(capsule, CAPSULE)
                if (
                    probe.struct_size >= sizeof(lsm_probe_v1)
                    and probe.probe != NULL
                    and probe.probe_digest != NULL
                ):
                    self._kept = capsule
                    self.probe = probe
                    self.manner = BY_DIGEST if probe.digest_kind < LSM_DIGEST_CASSANDRA else BY_KEY
                    if by_prefix is not None:
                        until = by_prefix.until or b""
                        self.rule = rule_of(by_prefix.length or 0, until)
                        self._kept = capsule, until
                        self.manner = BY_PREFIX
        return 0


cdef bint take_windows(FilterDoor self, windows) except -1:
    """Point to LevelDB's filters; False where they are not in bytes of their own."""
    cdef bytes contents
    if type(windows) is not WindowReader or type(windows.contents) is not bytes:
        return False
    contents = windows.contents
    self.windows_c.contents = <const uint8_t *>PyBytes_AS_STRING(contents)
    self.windows_c.offsets_at = windows.offsets_at
    self.windows_c.count = len(windows)
    self.windows_c.base_lg = windows.base_lg
    if (
        self.windows_c.base_lg > 32
        or self.windows_c.offsets_at + 4 * (<uint64_t>self.windows_c.count + 1) > len(contents)
    ):
        return False
    self._kept = contents
    return True


cdef void take_digest(lsm_question *question, uint32_t kind, uint64_t seed) noexcept:
    """Hash the key as a filter wants it."""
    question.kind = kind
    question.seed = seed
    question.has_digest = True
    if kind == LSM_DIGEST_XXH3_64:
        question.digest = lsm_xxh3_64(question.key, question.length, seed)
    else:
        lsm_digest_of(
            <lsm_digest>kind, seed, question.key, question.length, &question.digest
        )
