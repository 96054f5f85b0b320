"""How much of the levels is measured, and of which configurations."""

from __future__ import annotations

import argparse

import attrs

import policies
from benchmarks.parts import Size
from filters.errors import FilterError
from lsm.options import LEVELS as MOST_LEVELS

LEVELS = 5
GROWTH = 4


@attrs.frozen
class Shape:
    """So many levels from 1 on, each with ``growth`` times as many keys as the one above."""

    levels: int
    growth: int


USUAL = Shape(LEVELS, GROWTH)
# With growth by ten a fifth level on top would have a handful of keys in a quick run.
STEEP = Shape(4, 10)
SHAPES = (USUAL, STEEP)

ENOUGH_LOOKUPS = 1_000_000
"""From so many lookups on, rates are counted well enough to be held to a bound."""

FEWEST_KEYS, MOST_KEYS = 10_000, 10_000_000


@attrs.frozen(kw_only=True)
class Settings:
    """``keys`` on all levels together; ``absent`` and ``present`` are how many keys are looked up.

    ``timed`` is how many of each are looked up in a repeat. Live stores are loaded with
    ``live_keys``, and ``live_absent`` keys are looked up in them. A table of ``little_keys`` is
    asked ``little_lookups`` times with little memory, and stores of ``range_keys`` for ``ranges``
    in which there is nothing. ``files`` are the user's own configurations. Where ``few`` is set, of
    the others only those that differ most take part.
    """

    keys: int = 300_000
    absent: int = 200_000
    present: int = 50_000
    timed: int = 10_000
    live_keys: int = 1_000_000
    live_absent: int = 200_000
    little_keys: int = 500_000
    little_lookups: int = 50_000
    range_keys: int = 200_000
    ranges: int = 5_000
    repeats: int = 5
    few: bool = False
    files: tuple[str, ...] = ()
    seed: int = 1


OF_SIZE = {
    Size.QUICK: Settings(
        keys=30_000,
        absent=50_000,
        present=20_000,
        timed=2_000,
        live_keys=30_000,
        live_absent=10_000,
        little_keys=20_000,
        little_lookups=2_000,
        range_keys=10_000,
        ranges=500,
        few=True,
    ),
    Size.DEFAULT: Settings(),
    Size.FULL: Settings(
        keys=2_000_000,
        absent=4_000_000,
        present=100_000,
        live_keys=5_000_000,
        live_absent=4_000_000,
        little_keys=2_200_000,
        little_lookups=1_000_000,
        range_keys=1_000_000,
        ranges=20_000,
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the part."""
    parser.add_argument(
        "--configuration", metavar="FILE.toml", action="append", default=[],
        help="measure this configuration's filters, too; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--levels-keys", metavar="N", type=int,
        help=f"how many keys the levels hold together ({OF_SIZE[Size.DEFAULT].keys})",
    )  # fmt: skip


def settings_of(size: Size, options: argparse.Namespace) -> Settings:
    """The settings that the options lead to; ValueError says which option is wrong."""
    settings = attrs.evolve(OF_SIZE[size], seed=options.seed)
    keys = options.levels_keys
    if keys is not None:
        if not FEWEST_KEYS <= keys <= MOST_KEYS:
            raise ValueError(
                f"--levels-keys is {keys}: {LEVELS} levels are filled with {FEWEST_KEYS} to "
                f"{MOST_KEYS} keys"
            )
        settings = attrs.evolve(settings, keys=keys)
    files = tuple(options.configuration)
    for at, file in enumerate(files):
        check_file(file)
        if file in files[:at]:
            raise ValueError(f"--configuration: {file} is given twice; once is enough")
    return attrs.evolve(settings, files=files)


def check_file(file: str) -> None:
    """ValueError unless the file is a configuration."""
    try:
        policies.load(file, levels=MOST_LEVELS)
    except OSError as error:
        raise ValueError(
            f"--configuration: {file} cannot be read ({error.strerror}); name a file such as "
            "examples/lsm.toml"
        ) from error
    except FilterError as error:
        raise ValueError(f"--configuration: {error}") from error
