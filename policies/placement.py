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

import attrs

from filters.sizing_parameters import checked_int, checked_number
from policies.advised import Advice, AdvisedRun
from policies.budget import SHARE, Budget, nanoseconds
from policies.cost_models import NO_FILTER, CostModel, Option, models_of, usual_models
from policies.curve import Between, Curve, curve_of

FLASH_NS = 100_000.0
"""What reading a block takes where nothing else is said: flash."""

# Runs share a curve whose sizes, and what blocks cost, are in one of so many classes to an octave.
_SIZE_CLASSES, _READ_CLASSES = 2, 8

# Who is never asked in vain has no choice.
_NOTHING = Curve([NO_FILTER], FLASH_NS, lambda upper, lower: Between.NOTHING)

# So many looks at what a price comes to; the last ones move no bit.
_LOOKS = 64
# What may be left of a budget.
_UNSPENT_SHARE = 0.001
# So many jumps that do not fit are tried both ways.
_BRANCHES = 6
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


Asking = Sequence[tuple[Run, Curve]]
"""Runs, and what each can choose from."""


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
    chosen = usual_models() if models is None else tuple(models)
    curves = {run: _curve(chosen, run, read_ns) for run in dict.fromkeys(runs)}
    asking = [(run, curves[run]) for run in runs]
    options = _options(asking, budget, read_ns, _BRANCHES) or [NO_FILTER] * len(runs)
    each = list(zip(runs, options, strict=True))
    reads = math.fsum(run.missed * option.fpr for run, option in each)
    bits = math.fsum(run.keys * option.bits_per_key for run, option in each)
    return Placement(tuple(options), bits, reads, _time(runs, options, read_ns))


class Law:
    """The price of a bit that a budget comes to, and what it gives any run.

    ``price`` is a logarithm, of nanoseconds of a lookup. At that very price some runs may take more
    or less: what is left of the budget pays for more for a ``share`` of them.
    """

    __slots__ = ("_models", "_read_ns", "_upto", "price", "share")

    def __init__(
        self, models: tuple[CostModel, ...], read_ns: float, price: float, upto: float, share: float
    ):
        self._models = models
        self._read_ns = read_ns
        self._upto = upto
        self.price = price
        self.share = share

    def spread(self) -> Spread:
        """What tells who gets more, of runs that come one after the other."""
        return Spread(self)

    def ends(self, run: Run) -> tuple[Option, Option]:
        """What a run gets, in two forms where some get less and some more; else twice the same."""
        curve, weight = _curve(self._models, run, self._read_ns), _weight(run)
        jump = curve.jump_below(self.price + weight, self._upto + weight)
        if jump is not None and not jump.is_straight:
            return jump.upper, jump.lower
        found = curve.at(self.price + weight) if jump is None else jump.at(self.share)
        return found, found


class Spread:
    """Spreads what is left of a budget over runs that may get less or more, each when it comes."""

    __slots__ = ("_law", "_spare")

    def __init__(self, law: Law):
        self._law = law
        self._spare = 0.0

    def option(self, run: Run) -> Option:
        """What the next run gets: more as soon as those before it have left enough for that."""
        less, more = self._law.ends(run)
        if less is more:
            return less
        extra = run.keys * (more.bits_per_key - less.bits_per_key)
        self._spare += self._law.share * extra
        if self._spare < extra:
            return less
        self._spare -= extra
        return more


def law(
    runs: Sequence[Run],
    budget: float,
    *,
    models: Iterable[CostModel] | None = None,
    read_ns: float = FLASH_NS,
) -> Law:
    """The law for many runs within a budget of bits; ``place`` is for few, of which each counts."""
    chosen = usual_models() if models is None else tuple(models)
    curves = {run: _curve(chosen, run, read_ns) for run in dict.fromkeys(runs)}
    found = _price([(run, curves[run]) for run in runs], budget)
    spread = found.most - found.least
    share = (budget - found.least) / spread if spread > 0 else 0.0
    return Law(chosen, read_ns, found.price, found.below, min(max(share, 0.0), 1.0))


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


def _curve(models: tuple[CostModel, ...], run: Run, read_ns: float) -> Curve:
    if not run.keys or not run.missed or not run.asked:
        return _NOTHING
    # In nanoseconds of a lookup that comes by.
    effective = read_ns * run.missed / run.asked
    keys = 2.0 ** (round(_SIZE_CLASSES * math.log2(run.keys)) / _SIZE_CLASSES)
    read = 2.0 ** (round(_READ_CLASSES * math.log2(effective)) / _READ_CLASSES)
    return curve_of(models, max(1, round(keys)), read)


def _weight(run: Run) -> float:
    """What the price of a bit is multiplied by for a run, as a logarithm: n / w."""
    if not run.keys or not run.asked:
        return 0.0
    return round(_WEIGHTS * math.log(run.keys / run.asked)) / _WEIGHTS


def _options(asking: Asking, budget: float, read_ns: float, branches: int) -> list[Option] | None:
    """What every run gets at the one price; None where the least that they take is too much.

    Where the curve of a run jumps at that price, the jump may be too large for what is left. As
    many runs as can take it. One that cannot has its choice of what is smaller, or takes it while
    the others make do with less: up to so many ``branches`` both are tried.
    """
    price = _price(asking, budget).price
    worth: dict[tuple[int, float], Option] = {}
    options = []
    for run, curve in asking:
        place = id(curve), _weight(run)
        if place not in worth:
            worth[place] = curve.at(price + place[1])
        options.append(worth[place])
    each = zip(asking, options, strict=True)
    left = budget - math.fsum(run.keys * option.bits_per_key for (run, _), option in each)
    if left < -_UNSPENT_SHARE * budget:
        return None
    if left <= _UNSPENT_SHARE * budget:
        return options
    fitting, stuck = list(asking), []
    changed: dict[int, Curve] = {}
    for index, (run, curve) in enumerate(asking):
        jump = curve.jump_below(price + _weight(run))
        if jump is None:
            continue
        needed = run.keys * (jump.lower.bits_per_key - jump.upper.bits_per_key)
        if needed > left and jump.is_straight and not changed:
            options[index] = jump.at(left / needed)
            return options
        if needed > left:
            stuck.append((index, jump.lower.bits_per_key))
            continue
        left -= needed
        if id(curve) not in changed:
            changed[id(curve)] = curve.from_on(jump.lower.bits_per_key)
        fitting[index] = run, changed[id(curve)]
    if changed:
        return _options(fitting, budget, read_ns, branches)
    if not stuck:
        return options
    smaller = _with(asking, stuck if not branches else stuck[:1], smaller=True)
    tried = [_options(smaller, budget, read_ns, max(0, branches - 1))]
    if branches:
        larger = _with(asking, stuck[:1], smaller=False)
        tried.append(_options(larger, budget, read_ns, branches - 1))
    found = [each for each in tried if each is not None]
    runs = [run for run, _ in asking]
    return min(found, key=lambda each: _time(runs, each, read_ns), default=None)


def _with(asking: Asking, stuck: Iterable[tuple[int, float]], *, smaller: bool) -> Asking:
    """The same with these runs below a jump to so many bits, or behind it."""
    changed = list(asking)
    curves: dict[int, Curve] = {}
    for place, bits in stuck:
        run, curve = changed[place]
        if id(curve) not in curves:
            below = curve.within(math.nextafter(bits, 0))
            curves[id(curve)] = below if smaller else curve.from_on(bits)
        changed[place] = run, curves[id(curve)]
    return changed


def _time(runs: Sequence[Run], options: Sequence[Option], read_ns: float) -> float:
    """What a lookup takes to ask the filters, and for the blocks that it reads in vain."""
    each = zip(runs, options, strict=True)
    return math.fsum(
        run.asked * option.probe_ns + run.missed * option.fpr * read_ns for run, option in each
    )


@attrs.frozen
class _Price:
    """The lowest price at which all bits that are worth it fit a budget, which come to ``least``.

    At the price ``below`` it, hardly less, they come to ``most``, which do not fit.
    """

    price: float
    below: float
    least: float
    most: float


def _price(asking: Asking, budget: float) -> _Price:
    """The price of a bit for these runs."""
    wanted: dict[tuple[int, float], list[float]] = {}
    curves: dict[int, Curve] = {}
    for run, curve in asking:
        if run.keys:
            curves[id(curve)] = curve
            wanted.setdefault((id(curve), _weight(run)), []).append(run.keys)
    groups = [(curves[each], weight, sum(keys)) for (each, weight), keys in wanted.items()]

    def bits(price: float) -> float:
        return math.fsum([keys * curve.bits_at(price + weight) for curve, weight, keys in groups])

    prices = [
        price - weight
        for curve, weight, _ in groups
        if curve.slopes
        for price in (curve.slopes[0].first, curve.slopes[-1].last)
    ]
    if not prices:
        return _Price(0.0, 0.0, 0.0, 0.0)
    low, high = min(prices) - 1, max(prices) + 1
    if (most := bits(low)) <= budget:
        return _Price(low, low, most, most)
    if (least := bits(high)) >= budget:
        return _Price(high, high, least, least)
    for look in range(_LOOKS):
        # Bits fall about evenly with the logarithm of the price, but where many jump at once.
        share = 0.5 if look % 2 else (most - budget) / (most - least)
        middle = low + (high - low) * min(max(share, 0.001), 0.999)
        found = bits(middle)
        if found > budget:
            low, most = middle, found
        else:
            high, least = middle, found
            if budget - least <= _UNSPENT_SHARE / 10 * budget:
                return _Price(high, high, least, least)
    return _Price(high, low, least, most)
