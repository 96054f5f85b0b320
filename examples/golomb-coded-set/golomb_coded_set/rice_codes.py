"""Golomb-Rice codes: ``number >> p`` in ones, a zero, and the ``p`` low bits of the number.

Bits fill bytes from the highest on, and the last byte is filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from filters import CorruptFilterError

# So many codes are written, and so many bytes read, at a time: as text of zeros and ones, which
# CPython searches and turns into numbers quickly, and which takes a byte for each bit.
_CODES, _WINDOW = 4096, 256


def write(numbers: Iterable[int], p: int) -> bytes:
    """The codes of the numbers, in order."""
    written, codes = bytearray(), [""]
    mask = (1 << p) - 1
    for number in numbers:
        codes.append(f"{'1' * (number >> p)}0{number & mask:0{p}b}")
        if len(codes) > _CODES:
            codes = [_flush("".join(codes), written)]
    rest = "".join(codes)
    _flush(rest + "0" * (-len(rest) % 8), written)
    return bytes(written)


def _flush(bits: str, written: bytearray) -> str:
    """Write what fills bytes; the rest."""
    size = len(bits) // 8
    if size:
        written += int(bits[: 8 * size], 2).to_bytes(size, "big")
    return bits[8 * size :]


def read(data: memoryview, at: int, count: int, p: int) -> Iterator[tuple[int, int]]:
    """The ``count`` numbers from a bit on, each with the bit behind its code."""
    bits, here, width = "", 0, _WINDOW // 2
    for number in range(count):
        while (zero := bits.find("0", here)) < 0 or zero + 1 + p > len(bits):
            if at + len(bits) >= 8 * len(data):
                raise CorruptFilterError(
                    f"a Golomb-coded set of {len(data)} bytes is cut short: code {number + 1} of "
                    f"{count} has no end"
                )
            # A code longer than the window is looked for in twice as much.
            width = _WINDOW if here else 2 * width
            at, here = at + here, 0
            bits = _bits(data, at, width)
        end = zero + 1 + p
        yield (zero - here) << p | int(bits[zero + 1 : end], 2), at + end
        here = end


def _bits(data: memoryview, at: int, width: int) -> str:
    """What is at a bit and in some bytes behind it."""
    part = data[at // 8 : at // 8 + width]
    return f"{int.from_bytes(part, 'big'):0{8 * len(part)}b}"[at % 8 :] if len(part) else ""


def check_end(data: memoryview, at: int) -> None:
    """Refuse whatever follows the last code but the zeros that fill its byte."""
    if 8 * len(data) - at > 7 or "1" in _bits(data, at, 1):
        raise CorruptFilterError(
            f"a Golomb-coded set of {len(data)} bytes ends at bit {at}, and more follows"
        )
