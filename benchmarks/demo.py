"""The first half of ``make demo``: a database with another filter on every level.

The levels are those of ``examples/lsm.toml``, made small, so that the keys fill many of them. Users
are loaded in random order, some are written again and some deleted; then all of them are looked up,
and as many that never existed, and what each filter saved is shown. A value that is lost or wrong
makes the exit status 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import lsm
from benchmarks.progress import Progress
from filters.families import every
from lsm.filter_summary import FilterSummary
from lsm.options import KIB
from lsm.stats import Counters
from policies.sections import toml_value

EXAMPLE = Path(__file__).parents[1] / "examples" / "lsm.toml"
CONFIG_NAME, STORE_NAME = "lsm.toml", "store"
BATCH = 100
LOOKUPS = 1000

# What fits 200,000 users; other numbers of them are given levels in proportion.
USERS, UNIT = 200_000, 128 * KIB

HEADINGS = (
    "level",
    "filters",
    "tables",
    "bits/key",
    "asked",
    "blocks saved",
    "false pos.",
    "measured",
    "expected",
)
MOVED = " *"
POLICY_WIDTH = max(map(len, every())) + len(MOVED)
ROW = f"{{:>5}}  {{:<{POLICY_WIDTH}}} {{:>6}} {{:>9}} {{:>10}} {{:>13}} {{:>11}} {{:>9}} {{:>9}}"


def user(number: int) -> bytes:
    """A user's key; users have even numbers, so that absent keys lie between them."""
    return b"user:%08d" % (2 * number)


def absent(number: int) -> bytes:
    """The key of somebody who was never there."""
    return b"user:%08d" % (2 * number + 1)


def value(number: int, edition: int) -> bytes:
    """A user's value, in the edition of the first or of the second time it is written."""
    noise = blake2b(b"%d" % number, digest_size=32).hexdigest().encode()
    return b"edition %d of user %d: %s" % (edition, number, noise)


def changed(number: int) -> bool:
    """Whether a user is written again: one in ten."""
    return number % 10 == 3


def deleted(number: int) -> bool:
    """Whether a user is deleted in the end: one in twenty."""
    return number % 20 == 7


def expected(number: int) -> bytes | None:
    """What a lookup must find."""
    return None if deleted(number) else value(number, 2 if changed(number) else 1)


def configuration(users: int) -> str:
    """The example's filters, and levels that so many users fill."""
    text = EXAMPLE.read_text()
    filters, _, _ = text.partition("\n[engine]")
    unit = max(KIB, UNIT * users // USERS)
    engine = tomllib.loads(text)["engine"] | {
        "write_buffer_size": unit,
        "max_file_size": unit,
        "level_size_base": 2 * unit,
        "level_size_ratio": 2,
    }
    lines = (
        f"{key} = {toml_value(value) if isinstance(value, str) else value}\n"
        for key, value in engine.items()
    )
    return f"{filters}\n[engine] # levels so small that few keys fill many\n{''.join(lines)}"


def load(db: lsm.DB, users: int, rng: random.Random) -> float:
    """Write all users in random order, then what is changed and deleted; the seconds it took."""
    first = [(number, 1) for number in range(users)]
    again = [(number, 2) for number in range(users) if changed(number) or deleted(number)]
    rng.shuffle(first)
    rng.shuffle(again)
    writes = first + again
    with Progress("written", len(writes)) as progress:
        for at in range(0, len(writes), BATCH):
            some = writes[at : at + BATCH]
            with db.write_batch() as batch:
                for number, edition in some:
                    if edition == 2 and deleted(number):
                        batch.delete(user(number))
                    else:
                        batch.put(user(number), value(number, edition))
            progress.advance(len(some))
    return progress.seconds


def look_up(db: lsm.DB, label: str, wanted: Sequence[tuple[bytes, bytes | None]]) -> list[bytes]:
    """Look keys up; those that gave something else than they should."""
    wrong: list[bytes] = []
    with Progress(label, len(wanted)) as progress:
        for at in range(0, len(wanted), LOOKUPS):
            some = wanted[at : at + LOOKUPS]
            found = db.get_many([key for key, _ in some])
            wrong += [key for (key, right), got in zip(some, found, strict=True) if got != right]
            progress.advance(len(some))
    print(f"{len(wanted):,} {label} in {progress.seconds:.1f} s, {len(wrong)} answers wrong")
    return wrong


def table(db: lsm.DB) -> Iterator[str]:
    """A line for each level and each policy that its tables carry."""
    counted = {(each.level, each.policy): each.counters for each in db.stats().filters}
    yield ROW.format(*HEADINGS)
    moved = 0
    for level in db.filters():
        carried: dict[str, list[FilterSummary]] = defaultdict(list)
        for each in level.tables:
            carried[each.policy].append(each)
        for policy, tables in sorted(carried.items(), key=lambda item: item[0] != level.configured):
            mark = "" if policy == level.configured else MOVED
            moved += len(tables) if mark else 0
            counters = counted.get((level.level, policy), Counters())
            yield row(level.level, policy + mark, tables, counters)
        if not level.tables:
            yield f"{level.level:>5}  {level.configured:<12} {0:>6}"
    if moved:
        yield f"* {moved} tables moved down as they were: their filters are those of a level above"


def row(level: int, policy: str, tables: Sequence[FilterSummary], counters: Counters) -> str:
    """One line of the table."""
    keys = sum(each.num_keys or 0 for each in tables)
    bits = 8 * sum(each.bytes for each in tables)
    rates = [each.expected_fpr for each in tables if each.expected_fpr is not None]
    measured = counters.measured_fpr
    return ROW.format(
        level,
        policy,
        len(tables),
        f"{bits / keys:.2f}" if keys else "-",
        f"{counters.skipped + counters.blocks_read:,}",
        f"{counters.skipped:,}",
        f"{counters.false_positives:,}",
        "-" if measured is None else f"{measured:.3%}",
        f"{sum(rates) / len(rates):.3%}" if rates else "-",
    )


def reads(db: lsm.DB) -> tuple[int, int]:
    """How many blocks lookups have gone on to until now, and how many filters have saved."""
    counters = [each.counters for each in db.stats().filters]
    return sum(each.blocks_read for each in counters), sum(each.skipped for each in counters)


def told(what: str, lookups: int, before: tuple[int, int], after: tuple[int, int]) -> str:
    """What a number of lookups cost, with filters and without."""
    read, saved = (after[at] - before[at] for at in (0, 1))
    return (
        f"a lookup of {what} reads {read / lookups:.3f} blocks; "
        f"without filters it would be {(read + saved) / lookups:.3f}"
    )


def show(db: lsm.DB, users: int, rng: random.Random) -> list[bytes]:
    """Look everything up, and print what the filters did; the keys with wrong answers."""
    numbers = list(range(users))
    rng.shuffle(numbers)
    start = reads(db)
    wrong = look_up(db, "lookups of users", [(user(each), expected(each)) for each in numbers])
    between = reads(db)
    wrong += look_up(db, "lookups of absent keys", [(absent(each), None) for each in numbers])
    end = reads(db)
    print("", *table(db), "", sep="\n")
    print(told("a user", users, start, between))
    print(told("an absent key", users, between, end))
    known = next(each for each in numbers if not deleted(each))
    print("", db.explain(absent(numbers[0])), db.explain(user(known)), "", sep="\n")
    print(db.stats())
    return wrong


def run(directory: Path, users: int, seed: int) -> int:
    """Fill a directory and show what is in it; the exit status."""
    rng = random.Random(seed)
    config = directory / CONFIG_NAME
    config.write_text(configuration(users))
    print(f"{config}: the filters of {EXAMPLE.relative_to(EXAMPLE.parents[1])}, and small levels")
    with lsm.DB(
        directory / STORE_NAME, create_if_missing=True, error_if_exists=True, config=config
    ) as db:
        print(f"{users:,} users, written in {load(db, users, rng):.1f} s", end="", flush=True)
        start = time.perf_counter()
        db.wait_until_idle()
        print(f"; {time.perf_counter() - start:.1f} s later no compaction is due")
        wrong = show(db, users, rng)
    for key in wrong[:10]:
        print(f"WRONG: {key!r} is lost or has another value than it should", file=sys.stderr)
    return int(bool(wrong))


def main(given: Sequence[str] | None = None) -> int:
    """Run in a directory that is kept, or in a temporary one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=__doc__)
    parser.add_argument("--keys", type=int, default=USERS, help=f"how many users ({USERS})")
    parser.add_argument("--seed", type=int, default=1, help="of the order they come in (1)")
    parser.add_argument("--directory", type=Path, help="keep the database here; made if missing")
    arguments = parser.parse_args(given)
    if not 1000 <= arguments.keys <= 10_000_000:
        parser.error("--keys must lie between 1000 and 10000000")
    if arguments.directory is None:
        with tempfile.TemporaryDirectory(prefix="lsm-demo-") as directory:
            return run(Path(directory), arguments.keys, arguments.seed)
    if (arguments.directory / STORE_NAME).exists():
        parser.error(f"--directory: {arguments.directory / STORE_NAME} is there already")
    arguments.directory.mkdir(parents=True, exist_ok=True)
    return run(arguments.directory, arguments.keys, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
