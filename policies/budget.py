"""What filters may take, and what a block costs, as somebody writes them down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

import attrs

from policies.errors import did_you_mean

_NUMBER = r"(?P<number>[0-9]{1,13}(?:\.[0-9]{1,6})?)"
_WRITTEN = re.compile(_NUMBER + r" ?(?P<unit>[A-Za-z/%]+)")

BITS_PER_KEY, SHARE = "bits/key", "%"
_BYTES: Mapping[str, int] = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NANOSECONDS: Mapping[str, float] = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}

# The most bits per key that any family makes use of, a share above which tables are filters, and
# more memory than a machine has.
_MOST_BITS_PER_KEY, _MOST_PERCENT = 100.0, 100.0
_MOST_GIB = 1024
_MOST: Mapping[str, float] = {BITS_PER_KEY: _MOST_BITS_PER_KEY, SHARE: _MOST_PERCENT} | {
    unit: _MOST_GIB * _BYTES["GiB"] / size for unit, size in _BYTES.items()
}
_MOST_NANOSECONDS = 1e11

# So many digits behind the point are read and written.
_DIGITS = 6


@attrs.frozen
class Budget:
    """What all filters of a database may take: bits for each key, bytes, or a share of the data."""

    number: float
    unit: str

    @classmethod
    def parse(cls, text: object, what: str = "budget") -> Self:
        """The budget that somebody wrote; TypeError or ValueError with what is allowed."""
        number, unit = _parsed(what, text, (BITS_PER_KEY, *_BYTES, SHARE), "10 bits/key")
        if number > _MOST[unit]:
            most = (
                f"{_MOST[unit]:g} {unit}" if unit in (BITS_PER_KEY, SHARE) else f"{_MOST_GIB} GiB"
            )
            raise ValueError(f"{what} is out of range: {text!r}, allowed are 0 to {most}")
        return cls(number, unit)

    def bits(self, num_keys: int, data_bytes: int = 0) -> float:
        """The bits of all filters, where there are so many keys and bytes of data."""
        if self.unit == BITS_PER_KEY:
            return self.number * num_keys
        if self.unit == SHARE:
            return self.number / 100 * data_bytes * 8
        return self.number * _BYTES[self.unit] * 8

    def __str__(self) -> str:
        return f"{_digits(self.number)} {self.unit}"


def nanoseconds(what: str, text: object) -> float:
    """A time that somebody wrote, such as ``"100 us"``."""
    number, unit = _parsed(what, text, tuple(_NANOSECONDS), "100 us")
    found = round(number * _NANOSECONDS[unit], _DIGITS)
    if not 1 <= found <= _MOST_NANOSECONDS:
        raise ValueError(f"{what} is out of range: {text!r}, allowed are 1 ns to 100 s")
    return found


def time_text(ns: float) -> str:
    """What :func:`nanoseconds` reads as so many, in the largest unit that says it exactly."""
    for unit, size in sorted(_NANOSECONDS.items(), key=lambda each: -each[1]):
        number = _digits(ns / size)
        if ns >= size and round(float(number) * size, _DIGITS) == ns:
            return f"{number} {unit}"
    return f"{_digits(ns)} ns"


def _digits(number: float) -> str:
    whole, _, fraction = f"{number:.{_DIGITS}f}".partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _parsed(what: str, text: object, units: tuple[str, ...], example: str) -> tuple[float, str]:
    allowed = ", ".join(units)
    if not isinstance(text, str):
        raise TypeError(f'{what} is text with a unit, like "{example}", not {text!r}')
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'{what} is a number with a unit, like "{example}", not {text!r}')
    unit = match["unit"]
    if unit not in units:
        raise ValueError(
            f"{what} {text!r} has the unit {unit!r}{did_you_mean(unit, units)}: "
            f"allowed are {allowed}"
        )
    return float(match["number"]), unit
