"""What a bit is worth to a run: of all filters for it, those that no mix of others beats.

For a lookup that comes by, a filter costs the time to ask it and, at its rate, a block that is read
in vain. Over the bits that it takes these costs fall less and less steeply, once what lies above
the lower hull is left out. Along the hull a run buys bits as long as each saves more than its
price: where a family takes any rate, a bit is worth as much as the rate is high, so that the rate
follows the price; between others it jumps.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice, pairwise

import attrs

from policies.cost_models import NO_FILTER, CostModel, Option


class Between(enum.Enum):
    """What there is between two options of a hull."""

    NOTHING = enum.auto()
    EVEN = enum.auto()  # any rate, and bits for it as the logarithm has it
    STRAIGHT = enum.auto()  # any rate, and bits in proportion to it


Pairs = Callable[[Option, Option], Between]

# The rates that are looked at, as how often 1 is halved: down to one in a billion, and closely
# where filters begin. Fingerprints of whole bits take no more than these where they are whole.
_HALVINGS = (0.02, 0.05, 0.1, 0.2, *[step / 2 for step in range(1, 61)])
_RATES = [
    2.0**-halvings if halvings == int(halvings) else float(f"{2.0**-halvings:.4g}")
    for halvings in _HALVINGS
]

# A step is an even slope where the rate in its middle costs what lies in the middle, about; and a
# straight one where it costs its share of it, about.
_EVEN_SHARE = 0.1
_STRAIGHT_SHARE = 0.05
# A rate that is asked for is to be had if it comes so near.
_NEAR = 0.9

# The logarithm of a price that nobody could tell from another.
_CLOSE = 1e-6


@attrs.frozen
class Slope:
    """A step along the hull, from one option to the next that takes more bits.

    Bits are worth ``first`` where it begins and ``last`` where it ends, in nanoseconds of a lookup,
    as logarithms. On an even slope any rate in between is an option, too. So it is on one that is
    straight, where all bits are worth the same: filters there are part one end, part the other.
    """

    upper: Option
    lower: Option
    first: float
    last: float
    is_straight: bool = False

    @property
    def is_even(self) -> bool:
        """Whether what a bit is worth falls along it, and does not jump at its end."""
        return self.first > self.last

    def share_at(self, price: float) -> float:
        """How far down one goes at a price, as a share of its bits."""
        if price <= self.last:
            return 1.0
        if price >= self.first:
            return 0.0
        return (self.first - price) / (self.first - self.last)

    def at(self, share: float) -> Option:
        """The option so far down; of a jump one of its ends."""
        if share <= 0 or (share < 1 and not (self.is_even or self.is_straight)):
            return self.upper
        if share >= 1:
            return self.lower
        upper, lower = self.upper, self.lower
        if self.is_straight:
            fpr = upper.fpr + share * (lower.fpr - upper.fpr)
        else:
            fpr = upper.fpr * (lower.fpr / upper.fpr) ** share
        ((name, _),) = lower.params.items()
        bits = upper.bits_per_key + share * (lower.bits_per_key - upper.bits_per_key)
        return attrs.evolve(lower, params={name: float(f"{fpr:.4g}")}, bits_per_key=bits, fpr=fpr)


class Curve:
    """The hull of some options, from no filter down, where a block takes so long to be read.

    ``between`` says of two options what there is in between. Where the slopes
    are known already, the options are in order.
    """

    __slots__ = ("_between", "_ends", "_least", "_options", "_read_ns", "slopes")

    def __init__(
        self,
        options: Iterable[Option],
        read_ns: float,
        between: Pairs,
        slopes: Sequence[Slope] | None = None,
    ):
        if slopes is None:
            options = sorted(options, key=lambda each: (each.bits_per_key, _cost(each, read_ns)))
            slopes = _slopes(_hull(options, read_ns), read_ns, between)
        self._options = list(options)
        self._least = self._options[0]
        self._read_ns = read_ns
        self._between = between
        self.slopes = slopes
        self._ends = [-each.last for each in self.slopes]

    def bits_at(self, price: float) -> float:
        """The bits per key that are worth their price, a logarithm."""
        slopes, at = self.slopes, bisect_left(self._ends, -price)
        if at == len(slopes):
            return (slopes[-1].lower if slopes else self._least).bits_per_key
        slope = slopes[at]
        bits = slope.upper.bits_per_key
        return bits + slope.share_at(price) * (slope.lower.bits_per_key - bits)

    def line(self, low: float, high: float) -> tuple[float, float] | None:
        """The bits per key at a price of 0 and what they gain with it, on one line between prices.

        None where they follow more than one line from the low price to the high one.
        """
        slopes, at = self.slopes, bisect_left(self._ends, -low)
        if at != bisect_left(self._ends, -high):
            return None
        if at == len(slopes):
            return (slopes[-1].lower if slopes else self._least).bits_per_key, 0.0
        slope = slopes[at]
        bits = slope.upper.bits_per_key
        if low >= slope.first and low > slope.last:
            return bits, 0.0
        if high > slope.first or not slope.is_even:
            return None
        falls = (slope.lower.bits_per_key - bits) / (slope.first - slope.last)
        return bits + falls * slope.first, -falls

    def at(self, price: float) -> Option:
        """The option that is worth its price."""
        slopes, at = self.slopes, bisect_left(self._ends, -price)
        if at == len(slopes):
            return slopes[-1].lower if slopes else self._least
        return slopes[at].at(slopes[at].share_at(price))

    def at_or_along(self, price: float, share: float) -> Option:
        """The same, and this far down where a straight slope is worth the price."""
        jump = self.jump_below(price)
        return self.at(price) if jump is None or not jump.is_straight else jump.at(share)

    def jump_below(self, price: float) -> Slope | None:
        """The jump that is worth just less than this price, if there is one."""
        for slope in islice(self.slopes, bisect_left(self._ends, -price), None):
            if slope.last < price - _CLOSE:
                break
            if not slope.is_even:
                return slope
        return None

    def within(self, bits: float) -> Curve:
        """The curve of the options that take no more bits per key than this."""
        return Curve(
            [each for each in self._options if each.bits_per_key <= bits],
            self._read_ns,
            self._between,
        )

    def from_on(self, bits: float) -> Curve:
        """The curve of those that take no fewer, of which one is taken whatever the price."""
        return Curve(
            [each for each in self._options if each.bits_per_key >= bits],
            self._read_ns,
            self._between,
            # From a corner of the hull on it is that of what lies behind.
            [each for each in self.slopes if each.upper.bits_per_key >= bits]
            if any(each.upper.bits_per_key == bits for each in self.slopes)
            else None,
        )


@lru_cache(maxsize=4096)
def curve_of(models: tuple[CostModel, ...], num_keys: int, read_ns: float) -> Curve:
    """The curve of a run of so many keys, where a block takes so long to be read."""
    menu = _menu_of(models, num_keys)
    return Curve(menu.options, read_ns, menu.between)


@lru_cache(maxsize=256)
def _menu_of(models: tuple[CostModel, ...], num_keys: int) -> Menu:
    return Menu(models, num_keys)


class Menu:
    """What there is to choose from for a run of so many keys, whatever a block costs."""

    __slots__ = ("_by_policy", "_known", "_num_keys", "options")

    def __init__(self, models: Sequence[CostModel], num_keys: int):
        self._by_policy = {model.policy: model for model in models}
        self._num_keys = num_keys
        self._known: dict[tuple[Option, Option], Between] = {}
        self.options = _unbeaten(_options(models, num_keys))

    def between(self, upper: Option, lower: Option) -> Between:
        """What there is between two of them."""
        known = self._known.get((upper, lower))
        if known is None:
            model = self._by_policy.get(lower.policy)
            known = Between.NOTHING
            if model is not None:
                known = _between(model, self._num_keys, upper, lower)
            self._known[upper, lower] = known
        return known


def _options(models: Iterable[CostModel], num_keys: int) -> Iterable[Option]:
    yield NO_FILTER
    for model in models:
        for rate in reversed(_RATES):  # of one filter for several rates the lowest is its own
            option = model.option(num_keys, rate)
            if option is not None:
                yield option


def _unbeaten(options: Iterable[Option]) -> list[Option]:
    """Those that no other beats or equals in bits, rate and time at once, by ascending bits."""
    kept: list[Option] = []
    best: list[Option] = []
    for option in sorted(options, key=lambda each: (each.bits_per_key, each.fpr, each.probe_ns)):
        if not any(_is_as_good(other, option) for other in best):
            kept.append(option)
            best = [option, *(other for other in best if not _is_as_good(option, other))]
    return kept


def _is_as_good(one: Option, other: Option) -> bool:
    return one.fpr <= other.fpr and one.probe_ns <= other.probe_ns


def _slopes(hull: Sequence[Option], read_ns: float, between: Pairs) -> list[Slope]:
    slopes: list[Slope] = []
    for upper, lower in pairwise(hull):
        bits = lower.bits_per_key - upper.bits_per_key
        first = last = math.log((_cost(upper, read_ns) - _cost(lower, read_ns)) / bits)
        kind = between(upper, lower)
        if kind is Between.EVEN:
            # Of a rate that halves with every so many bits.
            falls = math.log(upper.fpr / lower.fpr)
            first = math.log(read_ns * upper.fpr * falls / bits)
            last = math.log(read_ns * lower.fpr * falls / bits)
        if slopes:  # what a bit is worth never rises
            first = min(first, slopes[-1].last)
            last = min(last, first)
        slopes.append(Slope(upper, lower, first, last, kind is Between.STRAIGHT))
    return slopes


def _hull(options: Iterable[Option], read_ns: float) -> list[Option]:
    """Of sorted options those that no mix of others beats, by ascending bits and falling costs."""
    hull: list[Option] = []
    for option in options:
        if hull and _cost(option, read_ns) >= _cost(hull[-1], read_ns):
            continue
        while len(hull) > 1 and not _is_convex(hull[-2], hull[-1], option, read_ns):
            hull.pop()
        hull.append(option)
    return hull


def _is_convex(first: Option, middle: Option, last: Option, read_ns: float) -> bool:
    before = (_cost(first, read_ns) - _cost(middle, read_ns)) * (
        last.bits_per_key - middle.bits_per_key
    )
    after = (_cost(middle, read_ns) - _cost(last, read_ns)) * (
        middle.bits_per_key - first.bits_per_key
    )
    return before > after


def _between(model: CostModel, num_keys: int, upper: Option, lower: Option) -> Between:
    """What the rates between two options of a family cost, if its one parameter is the rate."""
    if upper.policy != lower.policy or len(lower.params) != 1:
        return Between.NOTHING
    asked = math.sqrt(upper.fpr * lower.fpr)
    found = model.option(num_keys, asked)
    if found is None or found.fpr < _NEAR * asked:
        return Between.NOTHING
    if dict(found.params) != dict.fromkeys(lower.params, asked):
        return Between.NOTHING
    bits = lower.bits_per_key - upper.bits_per_key
    share = (upper.fpr - found.fpr) / (upper.fpr - lower.fpr)
    off_straight = abs(found.bits_per_key - upper.bits_per_key - share * bits)
    off_even = abs(found.bits_per_key - upper.bits_per_key - bits / 2)
    if off_straight <= _STRAIGHT_SHARE * bits and off_straight < off_even:
        return Between.STRAIGHT
    return Between.EVEN if off_even <= _EVEN_SHARE * max(bits, 1.0) else Between.NOTHING


def _cost(option: Option, read_ns: float) -> float:
    return option.probe_ns + option.fpr * read_ns
