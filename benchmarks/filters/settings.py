"""How much of the filters is measured: sizes, kinds of keys and policies, from the command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import policies
from benchmarks.filters import keysets
from benchmarks.parts import Size
from filters.errors import FilterError
from policies import FilterPolicy
from policies.errors import did_you_mean

LEAST_KEYS, MOST_KEYS = 1000, 10**8


@attrs.frozen
class Settings:
    """What is measured; ``counts`` are the numbers of keys, by their kind.

    ``absent`` keys are asked of every filter, ``many_absent`` of those with few false positives
    that can be asked by buffer. Each timed loop goes over ``timed_keys`` or fewer. What is written
    in Python is left out above ``slow_keys``.
    """

    seed: int = 1
    counts: Mapping[str, Sequence[int]] = attrs.field(factory=dict, hash=False)
    absent: int = 1_000_000
    many_absent: int = 4_000_000
    timed_keys: int = 100_000
    slow_keys: int = 10_000
    repeats: int = 5
    at_least_seconds: float = 0.002
    memory_from: int = 100_000
    sweep_keys: int = 0
    policies: Sequence[str] = ()
    keys_file: Path | None = None
    keys_digest: str = ""

    @property
    def sets(self) -> list[tuple[str, int]]:
        """Every kind and number of keys."""
        return [(kind, count) for kind, counts in self.counts.items() for count in counts]

    @property
    def sweep_kind(self) -> str:
        """The kind of keys over which sizes and rates are swept."""
        return next(iter(self.counts))


SIZES = {
    Size.QUICK: Settings(
        counts={"random": (10_000, 100_000)},
        absent=100_000,
        many_absent=200_000,
        timed_keys=20_000,
        slow_keys=5_000,
        memory_from=1_000_000,
        sweep_keys=20_000,
        at_least_seconds=0.001,
    ),
    Size.DEFAULT: Settings(
        counts={
            "random": (10_000, 100_000, 1_000_000),
            **dict.fromkeys(("composite", "urls", "integers"), (100000,)),
        },
        sweep_keys=200_000,
    ),
    Size.FULL: Settings(
        counts={
            "random": (10_000, 100_000, 1_000_000, 10_000_000),
            **dict.fromkeys(("composite", "urls", "integers"), (1000000,)),
        },
        timed_keys=200_000,
        slow_keys=100_000,
        sweep_keys=1_000_000,
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this part."""
    parser.add_argument(
        "--keys-file", type=Path, metavar="PATH",
        help="filters: your own keys, one a line; half of them are built of, the others asked for",
    )  # fmt: skip
    parser.add_argument(
        "--keys", action="append", metavar="KIND",
        help=f"filters: only this kind of keys, of {', '.join(keysets.KINDS)}; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--keys-count", action="append", type=int, metavar="N",
        help="filters: so many keys in place of the sizes of the run; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--policy", action="append", metavar="SPEC",
        help='filters: only this policy, such as "cuckoo" or "cuckoo:fpr=0.001"; repeatable',
    )  # fmt: skip


def chosen(size: Size, options: argparse.Namespace) -> Settings:
    """The settings for a size of run and these options; ValueError for a wrong one."""
    settings = attrs.evolve(SIZES[size], seed=options.seed)
    for spec in options.policy or ():
        policy_of(spec)
    settings = attrs.evolve(settings, policies=tuple(dict.fromkeys(options.policy or ())))
    if options.keys_file is not None:
        return _of_file(settings, options)
    kinds = tuple(dict.fromkeys(options.keys or settings.counts))
    for kind in kinds:
        if kind not in keysets.KINDS:
            raise ValueError(
                f"--keys: there is no kind {kind!r}{did_you_mean(kind, keysets.KINDS)}; "
                f"there are {', '.join(keysets.KINDS)}, and --keys-file PATH takes your own"
            )
    counts = tuple(sorted(set(options.keys_count or ())))
    for count in counts:
        if not LEAST_KEYS <= count <= MOST_KEYS:
            raise ValueError(
                f"--keys-count: {count} is out of range: allowed are {LEAST_KEYS} to {MOST_KEYS}"
            )
    return attrs.evolve(settings, counts={kind: counts or settings.counts[kind] for kind in kinds})


def _of_file(settings: Settings, options: argparse.Namespace) -> Settings:
    for given, name in ((options.keys, "--keys"), (options.keys_count, "--keys-count")):
        if given:
            raise ValueError(
                f"{name} does not go with --keys-file, which has all the keys there are: "
                "leave one of them away"
            )
    lines, digest = keysets.lines_of(options.keys_file)
    count = len(lines) // 2
    return attrs.evolve(
        settings,
        counts={keysets.FILE: (count,)},
        sweep_keys=count,
        keys_file=options.keys_file,
        keys_digest=digest,
    )


def policy_of(spec: str) -> FilterPolicy:
    """The policy of ``name`` or ``name:parameter=value,...``; ValueError says what is wrong."""
    name, _, rest = spec.partition(":")
    try:
        return policies.create(name, **_parameters(rest))
    except (FilterError, TypeError, ValueError) as error:
        raise ValueError(f"--policy {spec!r}: {error}") from error


def _parameters(text: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for each in filter(None, text.split(",")):
        name, equals, value = each.partition("=")
        if not equals or not value:
            raise ValueError(
                f"{each!r} is no parameter: write name=value, as in cuckoo:fpr=0.001, and a comma "
                "between two"
            )
        given[name.strip()] = _value(value.strip())
    return given


def _value(text: str) -> Any:
    """A number or a truth value where it looks like one, else the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
