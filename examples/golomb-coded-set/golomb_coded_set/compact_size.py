"""CompactSize, Bitcoin's way to write a count in one, three or five bytes."""

from __future__ import annotations

from filters import CorruptFilterError

_WIDTHS = {0xFD: 2, 0xFE: 4}


def write(number: int) -> bytes:
    """The shortest form of a number below 2**32."""
    if number < 0xFD:
        return bytes((number,))
    for mark, width in _WIDTHS.items():
        if number < 1 << 8 * width:
            return bytes((mark,)) + number.to_bytes(width, "little")
    raise ValueError(f"a set has at most 2**32 - 1 keys, not {number}")


def read(data: memoryview) -> tuple[int, int]:
    """The number that bytes begin with, and how many they take; only its shortest form is one."""
    if not data:
        raise CorruptFilterError(
            "a Golomb-coded set begins with its number of keys: it has no byte"
        )
    mark = data[0]
    if mark < 0xFD:
        return mark, 1
    if mark not in _WIDTHS:
        raise CorruptFilterError("a Golomb-coded set claims 2**32 keys or more, and none has them")
    end = 1 + _WIDTHS[mark]
    number = int.from_bytes(data[1:end], "little")
    if len(data) < end or write(number) != data[:end].tobytes():
        raise CorruptFilterError(
            f"a Golomb-coded set's number of keys is cut short, or not in its shortest form: "
            f"{data[:end].tobytes().hex()}"
        )
    return number, end
