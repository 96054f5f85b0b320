"""What a filter is sized by: one parameter, checked before it is known how many keys come."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs


@attrs.frozen
class SizingParameter:
    """A sizing parameter that has been checked: its name and its value."""

    name: str
    value: float


@attrs.frozen
class SizingParameters:
    """What one family may be sized by: the range of each parameter, and the default one.

    Those named in ``whole`` take whole numbers only.
    """

    family: str
    ranges: Mapping[str, tuple[float, float]]
    default: SizingParameter
    max_probes: int = 0
    whole: frozenset[str] = frozenset()

    def choose(self, **given: float | None) -> SizingParameter:
        """The single one among ``given`` (None means not asked for), or the default."""
        made = {name: value for name, value in given.items() if value is not None}
        if len(made) > 1:
            raise ValueError(
                f"a {self.family} filter takes one sizing parameter, not {len(made)}: "
                f"choose between {' and '.join(sorted(made))}"
            )
        if not made:
            return self.default
        [(name, value)] = made.items()
        check = checked_int if name in self.whole else checked_number
        low, high = self.ranges[name]
        return SizingParameter(name, check(f"{name} of a {self.family} filter", value, low, high))

    def check_bloom(
        self,
        *,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        num_probes: int | None = None,
    ) -> SizingParameter:
        """The one sizing parameter that these arguments give, or TypeError or ValueError."""
        self.check_probes(num_probes)
        return self.choose(bits_per_key=bits_per_key, fpr=fpr)

    def check_probes(self, num_probes: int | None) -> None:
        """Refuse a ``num_probes`` outside 1 to this family's most."""
        if num_probes is not None:
            checked_int(f"num_probes of a {self.family} filter", num_probes, 1, self.max_probes)


def checked_number(what: str, value: Any, low: float, high: float) -> float:
    """``value`` if it is a number from ``low`` to ``high``, else an error that names the range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{what} is a number, not {type(value).__name__}")
    if math.isnan(value) or not low <= value <= high:
        raise ValueError(f"{what} is out of range: {value!r}, allowed are {low:g} to {high:g}")
    return value


def checked_int(what: str, value: Any, low: float, high: float) -> int:
    """``value`` if it is an int from ``low`` to ``high``, else an error that names the range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} is an int, not {type(value).__name__}")
    if not low <= value <= high:
        raise ValueError(f"{what} is out of range: {value}, allowed are {low} to {high}")
    return value


def smallest(granted: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest size from ``low`` on that is enough, to one part in a million.

    Sizes that grant it are taken to go on granting it. Where not even ``high`` does, the answer is
    ``high + 1``: beyond what is allowed.
    """
    size = low
    while not granted(size):
        if size > high:
            return high + 1
        low, size = size, 2 * size
    while size - low > max(1, size >> 20):
        middle = (low + size) // 2
        low, size = (low, middle) if granted(middle) else (middle, size)
    return size


def checked_capacity(num_keys: int | None) -> int:
    """The number of keys that ``with_capacity`` was given."""
    if num_keys is None:
        raise TypeError("with_capacity takes a number of keys, or like=another filter")
    return checked_int("num_keys", num_keys, 0, 1 << 40)


def check_like(cls: type, like: object, **others: object) -> None:
    """Refuse anything beside ``like=`` in ``with_capacity``, and a filter of another family."""
    given = sorted(name for name, value in others.items() if value is not None)
    if given:
        raise ValueError(
            f"with_capacity(like=...) takes everything from the other filter: leave out "
            f"{', '.join(given)}"
        )
    if not isinstance(like, cls):
        raise TypeError(f"like= takes a {cls.__name__}, not {type(like).__name__}")
