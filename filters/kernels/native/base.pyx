"""The shape all families share, and what the salted ones have in common.

A family brings its bytes, one plain struct that says how they are laid out, and the functions that
ask that struct: those of its door, or of an ``lsm_probing`` where a digest is all they have to know
of a key. Every form of a question is answered here with these.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_WRITABLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_New, PyCapsule_SetContext
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memmove, memset

from filters import files, hashing, header
from filters.answers import answered, checked_out
from filters.columns import one_by_one
from filters.digest_kinds import not_digests
from filters.errors import FilterError
from filters.hashing import key_bytes
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport (
    LSM_DIGEST_NONE, LSM_DIGEST_XXH3_64, MOST_WORDS, lsm_digest, lsm_mix, words_of
)
from filters.kernels.native.keys cimport (
    KeySource, Packed, is_bulk, digest_number, digest_of_key, digest_packed
)
from filters.kernels.native.payload cimport Payload
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.text cimport LSM_TEXT_ROOM, lsm_text_bytes


cdef int maybe(const void *self, const char *key, size_t length) noexcept nogil:
    return 1


cdef int maybe_to_digest(const void *self, uint64_t digest) noexcept nogil:
    return 1


cdef int constant(const void *answer, const char *key, size_t length) noexcept nogil:
    return (<const uint8_t *>answer)[0]


cdef int constant_to_digest(const void *answer, uint64_t digest) noexcept nogil:
    return (<const uint8_t *>answer)[0]


cdef void constant_to_all(
    const void *answer, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    memset(answers, (<const uint8_t *>answer)[0], count)


cdef lsm_probing CONSTANT = lsm_probing(constant, constant_to_digest, constant_to_all, NULL)
cdef uint8_t[2] CONSTANTS = [0, 1]


cdef object ask_buffer(Filter self, object key):
    """The answer for a key that is not bytes, but text, or has a buffer of them."""
    cdef uint8_t room[LSM_TEXT_ROOM]
    cdef const uint8_t *text
    cdef size_t size
    if PyUnicode_CheckExact(key):
        text = lsm_text_bytes(<PyObject *>key, room, &size)
        if text != NULL:
            return True if self.door.probe(
                self.door.self, <const char *>text, size
            ) else False
    return ask(self, key_bytes(key))


def spread(bytearray answers not None, bytes present not None):
    """The answers for keys as those for rows, of which some have none: there it is 0."""
    cdef bytearray rows = bytearray(len(present))
    cdef const char *there = PyBytes_AS_STRING(present)
    cdef const char *each = PyByteArray_AS_STRING(answers)
    cdef char *into = PyByteArray_AS_STRING(rows)
    cdef Py_ssize_t i, used = 0, count = len(answers)
    for i in range(len(present)):
        if there[i] and used < count:
            into[i] = each[used]
            used += 1
    return rows


cdef object unmade(Filter self):
    """The TypeError for an object that no class method has made."""
    return TypeError(
        f"a {type(self).__name__} is made by build(), by with_capacity() where it can grow, or by "
        "from_bytes()"
    )


cdef class Filter:
    """A set of keys that answers "maybe" or "no", never a wrong "no".

    Two filters are equal when their bytes are, and pickle carries those bytes. One writer or many
    readers may use a filter at a time; readers need no lock. Where there is no GIL, writers lock
    each other out, and nothing else.
    """

    def __cinit__(self):
        self.payload = Payload.zeroed(0)
        # Until build() or from_bytes() has made it; and to a digest for ever, if it takes none.
        self.door = lsm_probe_v1(
            sizeof(lsm_probe_v1), LSM_DIGEST_NONE, 0, <void *>self, maybe, maybe_to_digest
        )

    def __init__(self, *args, **kwargs):
        raise unmade(self)

    def might_contain_many(self, keys, out=None, *, nulls="error"):
        """The answers for many keys, in order; into ``out``, one byte each, where it is given.

        ``out="arrow"`` is for a column of answers. With ``nulls="skip"`` a null is answered False,
        and with a null in a column. After an error, some of the answers may stand in ``out``.
        """
        cdef KeySource source
        cdef Py_buffer buffer
        if isinstance(out, str) or nulls != "error":
            return answered(self, keys, out, nulls, spread)
        source = KeySource.of(keys)
        if out is None:
            return self._answers_as_list(source)
        PyObject_GetBuffer(checked_out(out, source.count), &buffer, PyBUF_WRITABLE)
        try:
            self._answer(source, <uint8_t *>buffer.buf)
        finally:
            PyBuffer_Release(&buffer)
        return out

    def __contains__(self, key):
        """What ``might_contain`` answers: False is certain, True means "maybe"."""
        return ask(self, key) is True

    def __bytes__(self):
        """What ``to_bytes()`` gives."""
        return self.to_bytes()

    def save(self, path):
        """Write the filter to a file, which readers see as it was before or as it is then.

        It is on the disk when this returns. On an error the file is as it was.
        """
        files.write(path, self.to_bytes())

    @classmethod
    def load(cls, path, *, mmap=True):
        """The filter in a file: a view of its pages in memory, which processes share.

        ``mmap=False`` is for a file that somebody may cut short or write over while the filter is
        in use, which would end the process: it is read. :meth:`save` does neither.
        """
        return files.opened(path, cls.from_bytes, mapped=mmap)

    def copy(self):
        """This filter itself, as nothing changes it."""
        return self

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __lsm_probe__(self):
        """The C API: a capsule ``lsm.probe.v1`` for compiled code, see ``docs/c-door.md``."""
        capsule = PyCapsule_New(&self.door, "lsm.probe.v1", close_door)
        PyCapsule_SetContext(capsule, <void *>self)
        Py_INCREF(self)
        return capsule

    @property
    def size_in_bytes(self):
        """The length of ``to_bytes()``."""
        return self.payload.size

    @property
    def bits_per_key(self):
        """All stored bits over the number of keys; None where that is 0 or unknown."""
        return self.size_in_bytes * 8 / self.num_keys if self.num_keys else None

    def __eq__(self, other):
        if not hasattr(other, "family") or not hasattr(other, "to_bytes"):
            return NotImplemented
        return bool(self.family == other.family and self.to_bytes() == other.to_bytes())

    def __reduce__(self):
        from filters.kernels import restore

        return restore, (self.family, self.to_bytes())

    def __repr__(self):
        keys = "unknown keys" if self.num_keys is None else f"{self.num_keys} keys"
        rate = "" if not self.bits_per_key else f", {self.bits_per_key:.2f} bits/key"
        return f"<{type(self).__name__}: {keys}, {self.size_in_bytes} bytes{rate}>"

    cdef list _answers_as_list(self, KeySource source):
        cdef bytes answers = PyBytes_FromStringAndSize(NULL, source.count)
        cdef const char *each = PyBytes_AS_STRING(answers)
        cdef list result
        cdef Py_ssize_t i
        self._answer(source, <uint8_t *>each)
        # Only now, when no code but this runs: until it is full, nobody may see the list.
        result = PyList_New(source.count)
        for i in range(source.count):
            answer = True if each[i] else False
            Py_INCREF(answer)
            PyList_SET_ITEM(result, i, answer)
        return result

    cdef int _answer(self, KeySource source, uint8_t *answers) except -1:
        """The answers for all keys, in whatever form they came."""
        return source.ask(self.door.probe, self.door.self, answers)

    cdef int check_missed(self, Py_ssize_t count, Py_ssize_t missed) except -1:
        """Keep a filter that denies keys of its own from being handed out."""
        if missed:
            raise FilterError(
                f"a {self.family} filter of {count} keys denies {missed} of them after its "
                "build, and is not handed out: is the machine's memory sound?"
            )
        return 0


cdef void close_door(object capsule) noexcept:
    Py_DECREF(<object>PyCapsule_GetContext(capsule))


cdef class DigestFilter(Filter):
    """A filter of which a key's digest is all it has to know."""

    def __cinit__(self):
        self.always(True, LSM_DIGEST_XXH3_64, 0)  # until build() or from_bytes() has made it

    def count_missing(self, digests):
        """How many of these keys, given by their digests, the filter denies: 0 for its own."""
        cdef Digests hashes
        if type(digests) is not Digests:
            raise TypeError(not_digests(digests))
        hashes = Digests.begun(
            digests, <lsm_digest>self.door.digest_kind, self.door.digest_seed
        )
        cdef Payload payload = self.pointed_at  # in use without the GIL, whatever others do
        cdef Py_ssize_t missed
        with nogil:
            self.hashes_of(hashes.numbers, hashes.count)
            missed = self.missing(hashes.numbers, hashes.count)
        return missed

    cdef int opened(
        self, const void *filter, const lsm_probing *probing, lsm_digest kind, uint64_t seed
    ) except -1:
        """Probe this struct with these functions from now on, also through the C door."""
        self.probing = probing
        self.door = lsm_probe_v1(
            sizeof(lsm_probe_v1), kind, seed, filter, probing.probe, probing.probe_digest
        )
        self.pointed_at = self.payload
        return 0

    cdef int always(self, bint answer, lsm_digest kind, uint64_t seed) except -1:
        """Answer the same to every key from now on, whatever the bytes are."""
        return self.opened(&CONSTANTS[answer], &CONSTANT, kind, seed)

    cdef void hashes_of(self, uint64_t *digests, Py_ssize_t count) noexcept nogil:
        """Turn digests into hashes, in place; those that are salted have one word each."""
        cdef Py_ssize_t i
        if self.is_salted:
            for i in range(count):
                digests[i] = lsm_mix(digests[i], self.salt)

    cdef Py_ssize_t missing(self, const uint64_t *hashes, Py_ssize_t count) noexcept nogil:
        """How many of these hashes the filter denies."""
        cdef uint8_t answers[GROUP]
        cdef Py_ssize_t done = 0, some, found = 0, i
        cdef Py_ssize_t words = words_of(<lsm_digest>self.door.digest_kind)
        while done < count:
            some = min(GROUP, count - done)
            self.probing.test_many(
                self.door.self, hashes + words * done, <size_t>some,
                <size_t>min(GROUP, count - done - some), answers,
            )
            for i in range(some):
                found += answers[i]
            done += some
        return count - found

    cdef int verify(self, Digests hashes) except -1:
        """Ask the finished filter for each of its keys: whatever went wrong, none may be lost."""
        cdef Py_ssize_t missed
        with nogil:
            missed = self.missing(hashes.numbers, hashes.count)
        return self.check_missed(hashes.count, missed)

    cdef int _answer(self, KeySource source, uint8_t *answers) except -1:
        """The answers for all keys, in whatever form they came."""
        cdef Payload payload = self.pointed_at  # in use without the GIL, whatever others do
        cdef uint64_t hashes[2 * GROUP * MOST_WORDS]
        cdef Py_ssize_t done = 0, waiting = 0, some
        cdef Py_ssize_t words = words_of(<lsm_digest>self.door.digest_kind)
        if source.is_packed:
            with nogil:
                done = self._answer_packed(&source.packed, answers)
            if done < source.count:
                raise source.bad_offsets(done)
            return 0
        while done < source.count:
            some = min(GROUP, source.count - done - waiting)
            if some:
                source.digest(
                    done + waiting, some, <lsm_digest>self.door.digest_kind,
                    self.door.digest_seed, hashes + words * waiting,
                )
            self._answer_group(hashes, waiting, some, answers + done)
            done += waiting
            waiting = some
        return 0

    cdef Py_ssize_t _answer_packed(self, const Packed *keys, uint8_t *answers) noexcept nogil:
        """How many keys came before bad offsets; all of them, if there are none."""
        cdef uint64_t hashes[2 * GROUP * MOST_WORDS]
        cdef Py_ssize_t done = 0, waiting = 0, some, good
        cdef Py_ssize_t words = words_of(<lsm_digest>self.door.digest_kind)
        while done < keys.count:
            some = min(GROUP, keys.count - done - waiting)
            good = digest_packed(
                keys, done + waiting, some, <lsm_digest>self.door.digest_kind,
                self.door.digest_seed, hashes + words * waiting,
            )
            if good < some:
                return done + waiting + good
            self._answer_group(hashes, waiting, some, answers + done)
            done += waiting
            waiting = some
        return keys.count

    cdef void _answer_group(
        self, uint64_t *hashes, Py_ssize_t waiting, Py_ssize_t some, uint8_t *answers
    ) noexcept nogil:
        """Answer the first ``waiting`` hashes, and prefetch for the ``some`` digests behind them.

        These are turned into hashes and moved to the front, for the next call to answer.
        """
        cdef Py_ssize_t words = words_of(<lsm_digest>self.door.digest_kind)
        self.hashes_of(hashes + words * waiting, some)
        self.probing.test_many(
            self.door.self, hashes, <size_t>waiting, <size_t>some, answers
        )
        memmove(hashes, hashes + words * waiting, <size_t>(words * some) * sizeof(uint64_t))


cdef class SeededFilter(DigestFilter):
    """A filter over XXH3-64 digests under a seed.

    ``might_contain_digest`` takes ``filters.digest(key, f.digest_seed)``, so that one lookup over
    many filters of one seed hashes its key once.
    """

    @classmethod
    def digests(cls, *, seed=None):
        """An empty collection of digests for ``build`` and ``count_missing``."""
        return Digests.empty(LSM_DIGEST_XXH3_64, hashing.checked64("seed", seed))

    def might_contain_digest(self, digest):
        """The answer for a key given by its digest under :attr:`digest_seed`."""
        return <bint>self.door.probe_digest(self.door.self, digest_number(digest))

    @property
    def digest_seed(self):
        """The secret seed that digests for this filter are taken under."""
        return self.door.digest_seed

    @property
    def num_keys(self):
        """How many keys are in."""
        return self._num_keys

    cdef int own(self) except -1:
        """Make the payload one for writing: a view of foreign bytes is copied first."""
        raise NotImplementedError

    cdef int add_digests(self, uint64_t *digests, Py_ssize_t count) except -1:
        """Add up to a chunk of keys by their digests, whose place may be used for other numbers."""
        raise NotImplementedError

    @cython.critical_section
    cdef int _add_key(self, object key) except -1:
        cdef uint64_t digest
        digest_of_key(LSM_DIGEST_XXH3_64, self.door.digest_seed, key, &digest)
        self.own()
        return self.add_digests(&digest, 1)

    @cython.critical_section
    cdef int _add_bulk(self, KeySource source) except -1:
        cdef uint64_t digests[CHUNK]
        cdef Py_ssize_t done = 0, some
        self.own()
        while done < source.count:
            some = min(CHUNK, source.count - done)
            try:
                source.digest(done, some, LSM_DIGEST_XXH3_64, self.door.digest_seed, digests)
            finally:  # those before a wrong key are in
                self.add_digests(digests, source.digested)
            done += some
        return 0


cdef int add_all(SeededFilter self, object keys, object nulls) except -1:
    """What ``add_many`` does of every family that keys are added to."""
    if nulls != "error" or not is_bulk(keys):
        keys = one_by_one(keys, nulls)
    if is_bulk(keys):
        return self._add_bulk(KeySource.of(keys))
    for key in keys:
        self._add_key(key)
    return 0


cdef class SaltedFilter(SeededFilter):
    """A filter over XXH3-64 digests under a seed, with a salt of its own folded in.

    ``might_contain_digest`` takes ``filters.digest(key, f.digest_seed)``, so that one lookup over
    many filters of one seed hashes its key once.
    """

    @property
    def size_in_bytes(self):
        """The length of ``to_bytes()``."""
        return header.OVERHEAD + self.payload.size

    cdef uint64_t hash_of(self, object key) except? 0:
        """The salted digest of a key."""
        cdef uint64_t digest
        digest_of_key(LSM_DIGEST_XXH3_64, self.door.digest_seed, key, &digest)
        return lsm_mix(digest, self.salt)

    cdef bytes packed(self, uint64_t parameter, uint64_t size):
        """The complete bytes, with these two fields in the header."""
        head = header.Header(
            self.family, parameter, size, self._num_keys, seed=self.door.digest_seed,
            salt=self.salt,
        )
        return header.pack(head, self.payload)
