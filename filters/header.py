"""The 40 bytes before and the 8 bytes after every payload of our own families.

``docs/family-formats.md`` is the specification. All integers are little-endian::

     0  4  magic "LSFB"              8  u64 number of keys       24  u64 seed
     4  u8 family id                16  u64 size, in the         32  u64 salt
     5  u8 version                          family's own unit    40  payload
     6  u8 flags (bit 0: empty)                                  ..  u64 XXH3-64 of all before
     7  u8 parameter of the family
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import attrs
from xxhash import xxh3_64, xxh3_64_intdigest

from filters.errors import CorruptFilterError, FilterError, UnsupportedVersionError

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAGIC = b"LSFB"
VERSION = 1
EMPTY = 0b1
MAX_KEYS = 1 << 60  # a count beyond is no count, and could not go on growing
FAMILY_IDS: dict[str, int] = {}
"""The numbers of families, as ``filters/families.py`` takes them from their records."""

_FAMILY_AT = len(MAGIC)
_FIXED = struct.Struct("<4s4B4Q")
_CHECKSUM = struct.Struct("<Q")
OVERHEAD = _FIXED.size + _CHECKSUM.size


@attrs.frozen
class Header:
    """What the fixed fields say; ``parameter`` and ``size`` mean what the family says they mean."""

    family: str
    parameter: int
    size: int
    num_keys: int
    seed: int = attrs.field(repr=False)
    salt: int = attrs.field(repr=False)


def claim(number: int, family: str) -> None:
    """Give a family its number; ValueError where another one has it, or no byte can hold it."""
    if not 1 <= number <= 255:
        raise ValueError(f"the number of family {family!r} is {number}, allowed are 1 to 255")
    for name, taken in FAMILY_IDS.items():
        if taken == number:
            raise ValueError(f"the number of family {family!r} is {number}, that of {name!r}")
    FAMILY_IDS[family] = number


class Checked:
    """A filter's bytes that lie under another checksum, which was found right just before.

    ``unpack`` takes that for the filter's own, and checks all else. Who makes one has compared the
    checksum of these very bytes, and hands over a read-only view of them.
    """

    __slots__ = ("view",)

    def __init__(self, view: memoryview):
        self.view = view

    def __buffer__(self, flags: int) -> memoryview:
        return self.view


def pack(header: Header, *payload: Buffer) -> bytes:
    """The complete bytes of a filter: fixed fields, payload in one or more parts, checksum.

    The checksum is that of the bytes that are returned, also where somebody changes the payload
    meanwhile. A count that has come to the most there may be stays there.
    """
    flags = EMPTY if header.num_keys == 0 else 0
    fixed = _FIXED.pack(
        MAGIC,
        FAMILY_IDS[header.family],
        VERSION,
        flags,
        header.parameter,
        min(header.num_keys, MAX_KEYS),
        header.size,
        header.seed,
        header.salt,
    )
    checksum = xxh3_64(fixed)
    for part in payload:
        checksum.update(part)
    packed = b"".join((fixed, *payload, _CHECKSUM.pack(checksum.intdigest())))
    body = memoryview(packed)[: -_CHECKSUM.size]
    now = xxh3_64_intdigest(body)  # hashing again takes a fraction of copying again
    return packed if now == checksum.intdigest() else bytes(body) + _CHECKSUM.pack(now)


def unpack(buffer: Buffer, family: str) -> tuple[Header, memoryview]:
    """The validated header and a view of the payload; CorruptFilterError says what is wrong where.

    Order of trust: length, magic, checksum, version, then what the fields mean. Of ``Checked``
    bytes the checksum is not computed once more.
    """
    is_checked = isinstance(buffer, Checked)
    view = buffer.view if isinstance(buffer, Checked) else immutable_view(buffer)
    _check_frame(view, f"{family} filter", is_checked=is_checked)
    _, family_id, version, flags, parameter, num_keys, size, seed, salt = _FIXED.unpack_from(view)
    if version != VERSION:
        raise UnsupportedVersionError(
            f"{family} filter has format version {version} (byte 5); this release reads {VERSION}: "
            "upgrade lsm-filters"
        )
    if family_id != FAMILY_IDS[family]:
        names = {number: name for name, number in FAMILY_IDS.items()}
        raise CorruptFilterError(
            f"not a {family} filter: byte 4 says {names.get(family_id, f'family {family_id}')}"
        )
    if flags != (EMPTY if num_keys == 0 else 0):
        raise CorruptFilterError(
            f"{family} filter has flags {flags:#04x} (byte 6) with {num_keys} keys: "
            "bit 0 says that the set is empty, the other bits are reserved"
        )
    if num_keys > MAX_KEYS:
        raise CorruptFilterError(
            f"{family} filter claims {num_keys} keys (bytes 8 to 15); allowed are {MAX_KEYS}"
        )
    header = Header(family, parameter, size, num_keys, seed, salt)
    return header, view[_FIXED.size : -_CHECKSUM.size]


def family_of(view: memoryview) -> str:
    """The family that the frame around these bytes names; ``unpack`` then checks all of it."""
    name = _named_family(view)
    if name is None:
        _check_frame(view, "filter", is_checked=False)
        raise UnsupportedVersionError(
            f"filter is of family number {view[_FAMILY_AT]} (byte {_FAMILY_AT}), which this "
            "release does not know: upgrade lsm-filters"
        )
    return name


def stated_num_keys(view: memoryview) -> int | None:
    """How many keys a frame says there are; None for what is no sound filter of our own."""
    name = _named_family(view)
    try:
        return None if name is None else unpack(view, name)[0].num_keys
    except FilterError:
        return None


def _check_frame(view: memoryview, what: str, *, is_checked: bool) -> None:
    if len(view) < OVERHEAD:
        raise CorruptFilterError(
            f"{what} is cut short: {len(view)} bytes, its header alone takes {OVERHEAD}"
        )
    magic = bytes(view[: len(MAGIC)])
    if magic != MAGIC:
        raise CorruptFilterError(f"not a filter: bytes 0 to 3 are {magic!r}, expected {MAGIC!r}")
    (stored,) = _CHECKSUM.unpack_from(view, len(view) - _CHECKSUM.size)
    if not is_checked and xxh3_64_intdigest(view[: -_CHECKSUM.size]) != stored:
        raise CorruptFilterError(
            f"{what} of {len(view)} bytes is damaged: its XXH3-64 checksum does not match"
        )


def _named_family(view: memoryview) -> str | None:
    if len(view) < OVERHEAD or view[: len(MAGIC)] != MAGIC:
        return None
    names = {number: name for name, number in FAMILY_IDS.items()}
    return names.get(view[_FAMILY_AT])


def check_payload(family: str, payload: memoryview, expected: int, bits: int) -> None:
    """Refuse a payload that is not as long as the geometry demands, or has bits behind its last."""
    if len(payload) != expected:
        raise CorruptFilterError(
            f"{family} filter has a payload of {len(payload)} bytes where its geometry "
            f"takes {expected}"
        )
    if bits % 8 and payload[-1] >> bits % 8:
        raise CorruptFilterError(f"{family} filter has bits set behind the last of its {bits}")


def immutable_view(buffer: Buffer) -> memoryview:
    """The buffer's bytes: a view of a read-only buffer, a copy of a writable one.

    A buffer is taken at its word: what lies under a read-only view must not be changed either.
    """
    try:
        view = memoryview(buffer)
    except TypeError:
        raise TypeError(
            f"filter bytes come as bytes, memoryview or mmap, not {type(buffer).__name__}"
        ) from None
    if view.readonly and view.c_contiguous:
        return view.cast("B")
    return memoryview(view.tobytes())
