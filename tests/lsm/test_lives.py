"""Lives of databases whose options change with every opening, under many threads.

Batches of several writers are there as a whole or not at all, whoever reads them in whatever way;
in the end LevelDB is the witness.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
import policies
from lsm.options import LEVELS
from policies import LevelPolicies
from policies.config import Choice
from tests.effort import by_effort
from tests.lsm.configurations import ENGINE, Configuration
from tests.lsm.crew import Crew, done
from tests.lsm.ledger import Ledger
from tests.lsm.load import Load, compact, read, walk, write
from tests.lsm.patience import patient

plyvel = pytest.importorskip("plyvel")

LIVES = 3

# Where keys of a writer begin; none begins another.
NAMES = (b"", b"a", b"\0", b"\xff\xff", b"a\0\xff", b"k" * 300, b"/")

SMALL: dict[str, tuple[Any, ...]] = {
    "write_buffer_size": (512, 2048, 16_384),
    "max_file_size": (1024, 2048, 8192),
    "block_restart_interval": (1, 2, 16, 65_535),
    "level_size_base": (1024, 4096),
    "level_size_ratio": (2, 3),
    "compression": ("none", "snappy"),  # as LevelDB reads
    "level0_compact_files": (1, 2, 4),
}


def random_filters(rng: random.Random) -> LevelPolicies:
    """Any family at each level, in either layout."""
    families = [policies.create(rng.choice(policies.available())) for _ in range(LEVELS)]
    layouts = [
        "block" if each.name == "leveldb" and rng.random() < 0.5 else "table" for each in families
    ]
    return LevelPolicies(
        tuple(map(Choice, families, layouts)), optimize_filters_for_hits=rng.random() < 0.3
    )


def random_options(rng: random.Random) -> Configuration:
    """Options under which much is going on, of writers that have to wait as well."""
    engine = {name: rng.choice(values) for name, values in (ENGINE | SMALL).items()}
    engine["level0_slow_files"] = engine["level0_compact_files"] + rng.choice((0, 1, 4))
    engine["level0_stop_files"] = engine["level0_slow_files"] + rng.choice((0, 1, 2))
    return Configuration.of(random_filters(rng), **engine)


@pytest.fixture
def restless(rng: random.Random) -> Iterator[None]:
    """Threads take turns seldom, often, or all the time."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(rng.choice((1e-6, 1e-5, 5e-3)))
    yield
    sys.setswitchinterval(usual)


@attrs.define(eq=False)
class Work:
    """How many batches the writers of one life have yet to write."""

    crew: Crew
    left: int = by_effort(60, 100, 1500)

    def goes_on(self) -> bool:
        """Whether there is something left; everybody else goes on as long as the writers do."""
        return self.left > 0 and not self.crew.failed.is_set()

    def write(self, load: Load, ledger: Ledger) -> None:
        """Write, and give up a batch now and then."""

        def goes_on() -> bool:
            self.left -= 1
            if rng.random() < 0.1:
                give_up(load.db, ledger)
            return self.goes_on()

        rng = random.Random(f"{load.seed} {threading.current_thread().name} gives up")
        write(attrs.evolve(load, goes_on=goes_on), ledger)


def give_up(db: lsm.DB, ledger: Ledger) -> None:
    """Leave a transaction by an exception: nothing of it is ever seen."""

    def leave() -> None:
        with db.write_batch(transaction=True) as batch:
            for key in ledger.keys:
                batch.put(key, b"given up")
            raise KeyError

    with pytest.raises(KeyError):
        leave()


def live(db: lsm.DB, ledgers: list[Ledger], rng: random.Random) -> None:
    """Have everybody at it until the writers have done what is to be done."""
    crew = Crew()
    work = Work(crew)
    load = Load(db, ledgers, str(rng.random()), work.goes_on)
    with crew:
        for number, ledger in enumerate(ledgers):
            crew.start(work.write, load, ledger, name=f"writer {number}")
        for function, most in ((read, 3), (walk, 2), (compact, 2)):
            for number in range(rng.randrange(function is not compact, most + 1)):
                crew.start(function, load, name=f"{function.__name__} {number}")
    assert done(list, db) == load.contents()
    assert db.stats().background_error is None


def contents(ledgers: list[Ledger]) -> list[tuple[bytes, bytes]]:
    """What is there, in order, after all that was written."""
    return sorted(entry for ledger in ledgers for entry in ledger.state(ledger.done).items())


def by_leveldb(path: Path, rng: random.Random) -> list[tuple[bytes, bytes]]:
    """What LevelDB finds, which may rearrange it all."""
    with plyvel.DB(str(path), paranoid_checks=True) as db:
        found = list(db.iterator(verify_checksums=True))
        assert [db.get(key) for key, _ in found] == [value for _, value in found]
        if rng.random() < 0.3:
            db.compact_range()
        return found


@pytest.mark.parametrize("number", range(by_effort(1, 4, 2000)))
@pytest.mark.usefixtures("restless")
@patient
def test_every_reader_sees_whole_batches_in_every_life(
    number: int, tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "db"
    names = rng.sample(NAMES, rng.choice((1, 2, 4)))
    ledgers = [Ledger(name) for name in names]
    for _ in range(LIVES):
        configuration = random_options(rng)
        print(number, names, configuration)  # shown if what follows fails
        with configuration.open(path, tmp_path, create_if_missing=True) as db:
            assert done(list, db) == contents(ledgers)
            live(db, ledgers, rng)
            if rng.random() < 0.3:
                done(db.wait_until_idle)
        if rng.random() < 0.5:
            assert by_leveldb(path, rng) == contents(ledgers)
    assert by_leveldb(path, rng) == contents(ledgers)
    with lsm.DB(path, paranoid_checks=True) as db:
        assert list(db) == contents(ledgers)
        assert list(db.iterator(reverse=True)) == contents(ledgers)[::-1]
