"""Where filter memory saves most: a rate for every run, under a sum of bits.

An absent key is looked for in every run whose range has it: a level, or one table of level 0. A
filter of rate p lets p of these lookups through, each of which reads a block in vain, and takes
some alpha * log2(1/p) bits for each of its n keys. So a bit for each key of a small run costs
little and saves as much as one for each key of a large one. What n keys pay for a halving is the
same everywhere when p is proportional to n / w, where w is the share of the lookups that come by
(Dayan, Athanassoulis and Idreos, "Monkey", 2017). One number, the price of a bit, fixes all rates;
what would come to a rate of 1 gets no filter.

Asking a filter takes time as well, in which families differ. So what is minimised is time: of all
lookups together, for asking filters and for reading blocks in vain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import attrs

from filters.sizing_parameters import checked_int, checked_number
from policies.advised import Advice, AdvisedRun
from policies.budget import SHARE, Budget, nanoseconds
from policies.cost_models import NO_FILTER, CostModel, Option, models_of, usual_models
from policies.curve import Between, Curve, Slope, curve_of

FLASH_NS = 100_000.0
"""What reading a block takes where nothing else is said: flash."""

# Runs share a curve whose sizes, and what blocks cost, are in one of so many classes to an octave.
_SIZE_CLASSES, _READ_CLASSES = 2, 8

# Who is never asked in vain has no choice.
_NOTHING = Curve([NO_FILTER], FLASH_NS, lambda upper, lower: Between.NOTHING)

# So many looks at what a price comes to; the last ones move no bit.
_LOOKS = 64
# Prices, which are logarithms, that nobody could tell from another.
_NARROW = 1e-8
# What may be left of a budget.
_UNSPENT_SHARE = 0.001
# So many jumps that do not fit are tried both ways, and fewer among many runs: there one of them
# is a small share of the budget.
_BRANCHES, _BRANCHES_OF_MANY = 6, 1
_MANY_RUNS = 32
# Runs that would pay the same to a 64th are treated alike.
_WEIGHTS = 64


@attrs.frozen
class Run:
    """A sorted run: so many keys, asked by a share of all lookups, ``missed`` by those in vain.

    The two differ by the lookups that find their key there, which a filter cannot help.
    """

    keys: int
    asked: float = 1.0
    missed: float = attrs.field(default=attrs.Factory(lambda self: self.asked, takes_self=True))


Asking = Sequence[tuple[Run, Curve, float]]
"""Runs, what each can choose from, and what the price of a bit is multiplied by for it."""

# A curve by its id, and a weight: runs that would pay the same for the same.
_Place = tuple[int, float]


@attrs.frozen
class Placement:
    """What every run gets, in their order, and what a lookup costs with it.

    ``bits`` are those of all filters as stored, ``reads`` the blocks that a lookup reads in vain,
    ``time_ns`` what it takes to ask the filters and to read these blocks.
    """

    options: tuple[Option, ...]
    bits: float
    reads: float
    time_ns: float


class Law:
    """A budget that is solved: what a bit is worth, and so which filter any run should have.

    ``price`` is the logarithm of what a bit has to save, in nanoseconds of a lookup, to be worth
    its place; ``options`` is what the runs got that it was solved for, in their order.
    """

    __slots__ = (
        *("_curves", "_given", "_models", "_read_ns", "_runs", "_share", "_worth"),
        *("options", "price"),
    )

    def __init__(
        self, runs: Sequence[Run], budget: float, models: Iterable[CostModel], read_ns: float
    ):
        self._runs, self._models, self._read_ns = tuple(runs), tuple(models), read_ns
        self._curves: dict[tuple[int, int], Curve] = {}
        self._worth: dict[_Place, Option] = {}
        self._given: dict[_Place, list[tuple[float, Option]]] | None = None
        asking = [(run, self._curve(run), _weight(run)) for run in runs]
        branches = _BRANCHES if len(asking) <= _MANY_RUNS else _BRANCHES_OF_MANY
        solved = _solved(asking, budget, read_ns, branches)
        solved = solved or _Solved([NO_FILTER] * len(runs), math.inf)
        self.options, self.price, self._share = tuple(solved.options), solved.price, solved.share

    def option(self, run: Run, draw: float = 0.5) -> Option:
        """The filter that a run of any size should have, whether or not it was solved for.

        Where runs like this one got different filters, because the budget ends in between, a
        ``draw`` from 0 to 1 decides, so that many runs keep the shares.
        """
        if self._given is None:
            self._given = self._counted()
        curve, weight = self._curve(run), _weight(run)
        place = id(curve), weight
        for share, option in self._given.get(place, ()):
            if draw < share:
                return option
        if place not in self._worth:
            self._worth[place] = curve.at_or_along(self.price + weight, self._share)
        return self._worth[place]

    def _counted(self) -> dict[_Place, list[tuple[float, Option]]]:
        """What runs got, and up to which share of the keys of runs that would pay the same."""
        keys: dict[_Place, dict[Option, int]] = {}
        for run, option in zip(self._runs, self.options, strict=True):
            counts = keys.setdefault((id(self._curve(run)), _weight(run)), {})
            counts[option] = counts.get(option, 0) + run.keys
        given = {}
        for place, counts in keys.items():
            total, largest = max(1, sum(counts.values())), sorted(counts, key=_bits, reverse=True)
            shares = accumulate(counts[option] / total for option in largest[:-1])
            given[place] = list(zip([*shares, math.inf], largest, strict=True))
        return given

    def _curve(self, run: Run) -> Curve:
        if not run.keys or not run.missed or not run.asked:
            return _NOTHING
        # In nanoseconds of a lookup that comes by.
        effective = self._read_ns * run.missed / run.asked
        keys = round(_SIZE_CLASSES * math.log2(run.keys))
        read = round(_READ_CLASSES * math.log2(effective))
        if (keys, read) not in self._curves:
            count = max(1, round(2.0 ** (keys / _SIZE_CLASSES)))
            self._curves[keys, read] = curve_of(self._models, count, 2.0 ** (read / _READ_CLASSES))
        return self._curves[keys, read]


def law(
    runs: Sequence[Run],
    budget: float,
    *,
    models: Iterable[CostModel] | None = None,
    read_ns: float = FLASH_NS,
) -> Law:
    """What a bit is worth where these runs have a budget of so many for their filters.

    Solving it takes milliseconds for a thousand runs; to ask it for another run takes microseconds.
    """
    return Law(runs, budget, usual_models() if models is None else models, read_ns)


def place(
    runs: Sequence[Run],
    budget: float,
    *,
    models: Iterable[CostModel] | None = None,
    read_ns: float = FLASH_NS,
) -> Placement:
    """The filters of these runs that take no more than a budget of bits, and the least time.

    ``read_ns`` is what reading a block takes, ``models`` which filters there are to choose from:
    all of our own that suit tables, unless it is said.
    """
    options = law(runs, budget, models=models, read_ns=read_ns).options
    each = list(zip(runs, options, strict=True))
    reads = math.fsum([run.missed * option.fpr for run, option in each])
    bits = math.fsum([run.keys * option.bits_per_key for run, option in each])
    return Placement(options, bits, reads, _time(runs, options, read_ns))


def advise(
    levels: Mapping[int, int | Sequence[int]],
    *,
    budget: str = "10 bits/key",
    read_cost: str = "100 us",
    absent_share: float = 1.0,
    families: Iterable[str] | None = None,
    data_bytes: int = 0,
) -> Advice:
    """Which filters levels with so many keys should carry, within a budget.

    Of level 0, where every table is a run, the counts are those of its tables. ``absent_share`` is
    the share of lookups for keys that are not there; the others are for all keys alike.
    ``data_bytes`` is what a budget in percent is a share of. ``families`` are all of ours that suit
    tables, unless they are named.
    """
    allowed, read_ns = Budget.parse(budget), nanoseconds("read_cost", read_cost)
    absent = checked_number("absent_share", absent_share, 0, 1)
    models = None if families is None else models_of(families)
    counts = [
        (level, checked_int(f"a number of keys of level {level}", count, 0, 1 << 48))
        for level, keys in sorted(levels.items())
        for count in ([keys] if isinstance(keys, int) else keys)
    ]
    if allowed.unit == SHARE and not data_bytes:
        raise ValueError(
            f"budget {budget!r} is a share of the data, and nobody said how large they are: pass "
            "data_bytes=, or a budget in bits/key or MiB"
        )
    bits = allowed.bits(sum(count for _, count in counts), data_bytes)
    runs = asked_runs([count for _, count in counts], absent)
    placed = place(runs, bits, models=models, read_ns=read_ns)
    told = [
        AdvisedRun(level, run.keys, option, run.missed * option.fpr)
        for (level, _), run, option in zip(counts, runs, placed.options, strict=True)
    ]
    fewest = floor([run.keys for run in runs], placed.bits)
    return Advice(told, bits, placed.bits, placed.reads, fewest, placed.time_ns)


def asked_runs(counts: Sequence[int], absent_share: float = 1.0) -> list[Run]:
    """Runs with so many keys, the newest first, and who asks them.

    An absent key is asked for in all of them, a present one in those down to the one that has it,
    which all keys are asked for alike.
    """
    total, above, runs = max(1, sum(counts)), 0, []
    for count in counts:
        missed = absent_share + (1 - absent_share) * (total - above - count) / total
        asked = missed + (1 - absent_share) * count / total
        runs.append(Run(count, asked, missed))
        above += count
    return runs


def floor(counts: Iterable[int], bits: float) -> float:
    """The fewest reads in vain that so many bits allow runs of these counts, whatever the filters.

    For runs that are asked by every lookup, and a rate of 1 / 2^b for b bits per key.
    """
    runs = sorted(count for count in counts if count)
    for first in range(len(runs)):
        few, total = runs[len(runs) - first :], sum(runs[: len(runs) - first])
        taking = runs[: len(runs) - first]
        entropy = -math.fsum(n / total * math.log(n / total) for n in taking)
        reads = math.exp(entropy - math.log(2) * bits / total)
        if all(reads * n / total <= 1 for n in taking):
            return reads + len(few)
    return float(len(runs))


def _bits(option: Option) -> float:
    return option.bits_per_key


def _weight(run: Run) -> float:
    """What the price of a bit is multiplied by for a run, as a logarithm: n / w."""
    if not run.keys or not run.asked:
        return 0.0
    return round(_WEIGHTS * math.log(run.keys / run.asked)) / _WEIGHTS


@attrs.frozen
class _Solved:
    """What every run gets at the one price, and how far down those on straight slopes are there."""

    options: list[Option]
    price: float
    share: float = 0.0


def _solved(asking: Asking, budget: float, read_ns: float, branches: int) -> _Solved | None:
    """What every run gets at the one price; None where the least that they take is too much.

    Where straight slopes are at that price, all runs there go as far down as the budget has it.
    Where the curve of a run jumps at that price, the jump may be too large for what is left. As
    many runs as can take it. One that cannot has its choice of what is smaller, or takes it while
    the others make do with less: up to so many ``branches`` both are tried.
    """
    price = _price(asking, budget)
    worth: dict[_Place, Option] = {}
    options = []
    for _, curve, weight in asking:
        place = id(curve), weight
        if place not in worth:
            worth[place] = curve.at(price + weight)
        options.append(worth[place])
    each = zip(asking, options, strict=True)
    taken = [run.keys * option.bits_per_key for (run, _, _), option in each]
    left = budget - math.fsum(taken)
    if left < -_UNSPENT_SHARE * budget:
        return None
    if left <= _UNSPENT_SHARE * budget:
        return _Solved(options, price)
    along = _along(asking, options, price, left)
    if along is not None:
        return along
    fitting, stuck = _fitted(asking, price, left)
    if fitting:
        return _solved(fitting, budget, read_ns, branches)
    if not stuck:
        return _Solved(options, price)
    smaller = _with(asking, stuck if not branches else stuck[:1], smaller=True)
    tried = [_solved(smaller, budget, read_ns, max(0, branches - 1))]
    if branches:
        larger = _with(asking, stuck[:1], smaller=False)
        tried.append(_solved(larger, budget, read_ns, branches - 1))
    found = [each for each in tried if each is not None]
    runs = [run for run, _, _ in asking]
    return min(found, key=lambda each: _time(runs, each.options, read_ns), default=None)


def _along(asking: Asking, options: Sequence[Option], price: float, left: float) -> _Solved | None:
    """What is left, spent along the straight slopes at a price; None where they take less."""
    straight: dict[_Place, Slope | None] = {}
    needed = 0.0
    for run, curve, weight in asking:
        place = id(curve), weight
        if place not in straight:
            jump = curve.jump_below(price + weight)
            straight[place] = jump if jump is not None and jump.is_straight else None
        slope = straight[place]
        if slope is not None:
            needed += run.keys * (slope.lower.bits_per_key - slope.upper.bits_per_key)
    if needed < left:
        return None
    share = left / needed
    along = {place: slope.at(share) for place, slope in straight.items() if slope is not None}
    found = [
        along.get((id(curve), weight), option)
        for (_, curve, weight), option in zip(asking, options, strict=True)
    ]
    return _Solved(found, price, share)


def _fitted(asking: Asking, price: float, left: float) -> tuple[Asking, list[tuple[int, float]]]:
    """The same with those behind a jump at this price for which enough bits are left.

    Nothing where there are none; and which runs are stuck above jumps to so many bits.
    """
    fitting, stuck = list(asking), []
    jumps: dict[_Place, Slope | None] = {}
    changed: dict[int, Curve] = {}
    for index, (run, curve, weight) in enumerate(asking):
        place = id(curve), weight
        if place not in jumps:
            jumps[place] = curve.jump_below(price + weight)
        jump = jumps[place]
        if jump is None:
            continue
        needed = run.keys * (jump.lower.bits_per_key - jump.upper.bits_per_key)
        if needed > left:
            stuck.append((index, jump.lower.bits_per_key))
            continue
        left -= needed
        if id(curve) not in changed:
            changed[id(curve)] = curve.from_on(jump.lower.bits_per_key)
        fitting[index] = run, changed[id(curve)], weight
    return (fitting if changed else ()), stuck


def _with(asking: Asking, stuck: Iterable[tuple[int, float]], *, smaller: bool) -> Asking:
    """The same with these runs below a jump to so many bits, or behind it."""
    changed = list(asking)
    curves: dict[int, Curve] = {}
    for place, bits in stuck:
        run, curve, weight = changed[place]
        if id(curve) not in curves:
            below = curve.within(math.nextafter(bits, 0))
            curves[id(curve)] = below if smaller else curve.from_on(bits)
        changed[place] = run, curves[id(curve)], weight
    return changed


def _time(runs: Sequence[Run], options: Sequence[Option], read_ns: float) -> float:
    """What a lookup takes to ask the filters, and for the blocks that it reads in vain."""
    each = zip(runs, options, strict=True)
    return math.fsum(
        run.asked * option.probe_ns + run.missed * option.fpr * read_ns for run, option in each
    )


def _price(asking: Asking, budget: float) -> float:
    """The logarithm of the lowest price at which all bits that are worth it fit the budget."""
    wanted: dict[_Place, int] = {}
    curves: dict[int, Curve] = {}
    for run, curve, weight in asking:
        if run.keys:
            curves[id(curve)] = curve
            place = id(curve), weight
            wanted[place] = wanted.get(place, 0) + run.keys
    groups = [(curves[each], weight, keys) for (each, weight), keys in wanted.items()]
    prices = [
        price - weight
        for curve, weight, _ in groups
        if curve.slopes
        for price in (curve.slopes[0].first, curve.slopes[-1].last)
    ]
    if not prices:
        return 0.0
    low, high = min(prices) - 1, max(prices) + 1
    total = _Total(groups)
    if (most := total.at(low)) <= budget:
        return low
    if (least := total.at(high)) >= budget:
        return high
    for look in range(_LOOKS):
        # Bits fall about evenly with the logarithm of the price, but where many jump at once.
        share = 0.5 if look % 2 else (most - budget) / (most - least)
        middle = low + (high - low) * min(max(share, 0.001), 0.999)
        found = total.at(middle)
        if found > budget:
            low, most = middle, found
        else:
            high, least = middle, found
            if budget - least <= _UNSPENT_SHARE / 10 * budget:
                break
        if high - low <= _NARROW:
            break
        total.narrow(low, high)
    return high


class _Total:
    """The bits that groups of runs take at a price, for prices in a range that narrows."""

    __slots__ = ("_bent", "_bits", "_gain")

    def __init__(self, groups: Sequence[tuple[Curve, float, int]]):
        self._bent = groups
        self._bits = self._gain = 0.0

    def at(self, price: float) -> float:
        bent = [keys * curve.bits_at(price + weight) for curve, weight, keys in self._bent]
        return self._bits + self._gain * price + sum(bent)

    def narrow(self, low: float, high: float) -> None:
        """Add up those that follow one line between these prices."""
        bent = []
        for group in self._bent:
            curve, weight, keys = group
            line = curve.line(low + weight, high + weight)
            if line is None:
                bent.append(group)
            else:
                bits, gain = line
                self._bits += keys * (bits + gain * weight)
                self._gain += keys * gain
        self._bent = bent
