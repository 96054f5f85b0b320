"""The Grafite range filter, built and probed."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from filters import elias_fano, grafite, hashing, header
from filters.columns import one_by_one
from filters.digest_kinds import not_digests
from filters.hashing import checked64, key_bytes
from filters.kernels.native.base cimport Filter, ask, unmade
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.elias_fano cimport LINE_BYTES, any_between, count_zeros, encode
from filters.kernels.native.key_numbers cimport (
    Bound, KeyNumbers, begins, has_bounds, number_behind
)
from filters.kernels.native.payload cimport Payload
from filters.kernels.native.wide cimport lsm_multiply, lsm_reduce
from filters.sizing_parameters import checked_int


cdef inline uint64_t shift_of(
    const uint64_t *multipliers, uint64_t universe, uint64_t block
) noexcept nogil:
    """A random number below the universe, to which that of any other block says nothing."""
    cdef uint64_t high
    cdef uint64_t product = lsm_multiply(multipliers[1], block, &high)
    cdef uint64_t drawn = multipliers[0] * block + high + multipliers[2]
    drawn += product + multipliers[3] < product  # what is carried
    return lsm_reduce(drawn, universe)


cdef inline uint64_t code_of(
    const uint64_t *multipliers, uint64_t universe, uint64_t number
) noexcept nogil:
    """A number's code."""
    cdef uint64_t block = number // universe
    cdef uint64_t code = shift_of(multipliers, universe, block) + number - block * universe
    return code - universe if code >= universe else code


cdef inline bint has(const Grafite *grafite, uint64_t number) noexcept nogil:
    cdef uint64_t code = code_of(grafite.multipliers, grafite.universe, number)
    return any_between(&grafite.codes, code, code)


cdef inline bint has_within(const Grafite *grafite, uint64_t first, uint64_t last) noexcept nogil:
    """Whether a code is one of numbers that lie in one block."""
    cdef uint64_t low = code_of(grafite.multipliers, grafite.universe, first)
    cdef uint64_t high = code_of(grafite.multipliers, grafite.universe, last)
    if low <= high:
        return any_between(&grafite.codes, low, high)
    return (
        any_between(&grafite.codes, low, grafite.universe - 1)
        or any_between(&grafite.codes, 0, high)
    )


cdef bint has_range(const Grafite *grafite, Bound low, Bound high) noexcept nogil:
    """Whether a key may lie in a range."""
    cdef uint64_t first, last, start
    if not has_bounds(&grafite.numbering, low, high, &first, &last):
        return False
    if last - first >= grafite.universe:
        return not grafite.is_empty
    start = last - last % grafite.universe
    if first >= start:
        return has_within(grafite, first, last)
    return has_within(grafite, first, start - 1) or has_within(grafite, start, last)


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    cdef const Grafite *grafite = <const Grafite *>self
    if not begins(&grafite.numbering, <const uint8_t *>key, length):
        return 0
    return has(grafite, number_behind(&grafite.numbering, <const uint8_t *>key, length))


cdef Bound bound_of(object key):
    """A bound as C has it, valid as long as the key is."""
    if key is None:
        return Bound(NULL, 0)
    return Bound(<const uint8_t *>PyBytes_AS_STRING(key), <size_t>PyBytes_GET_SIZE(key))


cdef class GrafiteFilter(Filter):
    """A static filter of ranges; sized by ``bits_per_key``, or by ``fpr`` and ``range_length``."""

    family = grafite.FAMILY

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @classmethod
    def build(
        cls, keys, *, bits_per_key=None, fpr=None, range_length=1, seed=None, salt=None,
        nulls="error"
    ):
        """A filter of exactly these keys.

        ``fpr`` is the rate of empty ranges of ``range_length`` keys in a row, or of absent keys.
        """
        cdef GrafiteFilter self = cls.__new__(cls)
        cdef KeyNumbers collected
        cdef Digests numbers, codes
        sizing = grafite.check(bits_per_key=bits_per_key, fpr=fpr, range_length=range_length)
        collected = KeyNumbers.of(one_by_one(keys, nulls), seed)
        self._seed, self._salt = collected.digest_seed, checked64("salt", salt)
        numbers = collected.numbers()
        self._num_keys = numbers.sort_distinct()
        universe = grafite.plan(self._num_keys, sizing).universe
        codes = codes_of(numbers, universe, grafite.multipliers(self._seed, self._salt))
        layout = elias_fano.Layout.of(universe, codes.count)
        numbering = collected.numbering()
        self.payload = payload_of(codes, layout, grafite.head_of(numbering, codes.count))
        self.lay_out(layout, numbering)
        self.check_missed(numbers.count, self.missing(numbers))
        return self

    @classmethod
    def from_bytes(cls, buffer):
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        cdef GrafiteFilter self = cls.__new__(cls)
        head, layout, numbering, payload = grafite.decode(buffer)
        self._num_keys, self._seed, self._salt = head.num_keys, head.seed, head.salt
        self.payload = Payload.view(payload)
        self.lay_out(layout, numbering)
        return self

    @classmethod
    def digests(cls, *, seed=None):
        """An empty collection of what ``build`` and ``count_missing`` have to know of keys."""
        return KeyNumbers.empty(hashing.checked64("seed", seed))

    def may_contain_range(self, low, high):
        """False: no key was added that is at least ``low`` and below ``high``; None is no bound."""
        if low is not None and not PyBytes_CheckExact(low):
            low = key_bytes(low)
        if high is not None and not PyBytes_CheckExact(high):
            high = key_bytes(high)
        if self._layout is None:
            return True
        return has_range(&self._grafite, bound_of(low), bound_of(high))

    def count_missing(self, digests):
        """How many of the keys that were collected here the filter denies: 0 for its own."""
        cdef Digests numbers
        cdef Py_ssize_t i
        if type(digests) is not KeyNumbers:
            raise TypeError(not_digests(digests))
        numbers = (<KeyNumbers>digests).numbers()
        numbering = digests.numbering()
        if numbering == self._numbering:
            return self.missing(numbers)
        keys = (numbering.key(numbers.numbers[i]) for i in range(numbers.count))
        return sum([not ask(self, key) for key in keys])

    def to_bytes(self):
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        if self._layout is None:
            raise unmade(self)
        head = header.Header(
            self.family, self._layout.low_bits, self._layout.universe, self._num_keys, self._seed,
            self._salt,
        )
        return header.pack(head, self.payload)

    @property
    def num_keys(self):
        """How many different numbers the keys have."""
        return self._num_keys

    @property
    def num_codes(self):
        """How many different codes these numbers have."""
        return self._layout.count

    @property
    def size_in_bytes(self):
        """The length of ``to_bytes()``."""
        return header.OVERHEAD + self.payload.size

    @property
    def fill(self):
        """The share of all codes that are some key's."""
        return self._layout.count / self._layout.universe

    @property
    def expected_fpr(self):
        """The rate of absent keys."""
        return self.fill

    def expected_range_fpr(self, length):
        """The rate of empty ranges of so many keys in a row; less where keys are near."""
        checked = checked_int("length", length, 1, 1 << 64)
        return grafite.range_fpr(self._layout.count, self._layout.universe, checked)

    cdef int lay_out(self, object layout, object numbering) except -1:
        """Point the struct at the payload's parts, and probe it from now on."""
        cdef const uint8_t *low
        cdef uint64_t ones, lines = -(-layout.high_bytes // LINE_BYTES)
        cdef int index
        low = self.payload.data + <size_t>(grafite.FIXED_BYTES + len(numbering.prefix))
        self._zeros_before = Payload.zeroed(8 * lines)
        self._grafite.numbering.prefix = <const uint8_t *>PyBytes_AS_STRING(numbering.prefix)
        self._grafite.numbering.length = len(numbering.prefix)
        self._grafite.numbering.width = numbering.width
        self._grafite.codes.low = low
        self._grafite.codes.high = low + <size_t>layout.low_bytes
        self._grafite.codes.high_end = self._grafite.codes.high + <size_t>layout.high_bytes
        self._grafite.codes.count = layout.count
        self._grafite.codes.zeros_before = <const uint64_t *>self._zeros_before.data
        self._grafite.codes.lines = lines
        self._grafite.codes.lines_per_bucket = lines / <double>layout.buckets
        self._grafite.codes.low_bits = layout.low_bits
        self._grafite.universe = layout.universe
        self._grafite.is_empty = not layout.count
        for index, number in enumerate(grafite.multipliers(self._seed, self._salt)):
            self._grafite.multipliers[index] = number
        ones = count_zeros(
            self._grafite.codes.high, layout.high_bytes, <uint64_t *>self._zeros_before.data
        )
        layout.check_ones(self.family, ones)
        self._layout, self._numbering = layout, numbering
        self.door.self = &self._grafite
        self.door.probe = probe
        return 0

    cdef Py_ssize_t missing(self, Digests numbers) noexcept nogil:
        """How many of these numbers the filter denies."""
        cdef Py_ssize_t missed = 0, i
        for i in range(numbers.count):
            missed += not has(&self._grafite, numbers.numbers[i])
        return missed


cdef Digests codes_of(Digests numbers, object universe, object drawn):
    """The distinct codes of numbers, in ascending order."""
    cdef Digests codes = numbers.copied()
    cdef uint64_t multipliers[4]
    cdef uint64_t size = universe
    cdef Py_ssize_t i
    for i in range(4):
        multipliers[i] = drawn[i]
    with nogil:
        for i in range(codes.count):
            codes.numbers[i] = code_of(multipliers, size, codes.numbers[i])
    codes.sort_distinct()
    return codes


cdef Payload payload_of(Digests codes, object layout, bytes head):
    """What precedes the codes, and the codes."""
    cdef Payload payload = Payload.zeroed(len(head) + layout.low_bytes + layout.high_bytes)
    cdef uint8_t *low = payload.data + len(head)
    memcpy(payload.data, <const char *>head, <size_t>len(head))
    encode(
        codes.numbers, <uint64_t>codes.count, layout.low_bits, low, low + <size_t>layout.low_bytes
    )
    return payload
