"""What was written to a database that something went wrong with, and what it may hold then."""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations
from pathlib import Path

import attrs

import lsm
import policies
from tests.lsm.refilterable import reconfigure
from tests.lsm.simulated import SimulatedStorage

Operation = tuple[bytes, bytes | None]
Contents = dict[bytes, bytes]

PATH = "/db"
LAST = b"last"
"""The key that every batch sets to its own number."""

KEYS = [b"key %02d" % number for number in range(12)]

TINY = """
[engine]
write_buffer_size = 400
max_file_size = 1024
block_size = 400
level_size_base = 1024
level_size_ratio = 2
level0_compact_files = 2
"""
"""A configuration under which a few dozen batches are flushed and compacted some times."""


class Fate(enum.Enum):
    """What became of a batch."""

    WRITTEN = "its writer was told so"
    IN_DOUBT = "its writer was told of an error, or nothing"
    REFUSED = "nothing was tried"


@attrs.define
class History:
    """Batches in the order in which one thread wrote them; they are numbered from 1 on.

    ``durable`` is the last one that has to survive a loss of power.
    """

    batches: list[Sequence[Operation]] = attrs.field(factory=list)
    fates: list[Fate] = attrs.field(factory=list)
    durable: int = 0

    def write(self, db: lsm.DB, operations: Sequence[Operation], *, sync: bool = False) -> None:
        """Write a batch, and keep in mind what became of it."""
        number = len(self.batches) + 1
        self.batches.append([*operations, (LAST, b"%d" % number)])
        self.fates.append(Fate.IN_DOUBT)
        batch = db.write_batch(sync=sync)
        for key, value in self.batches[-1]:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        try:
            batch.write()
        except lsm.ReadOnlyError:
            self.fates[-1] = Fate.REFUSED
            raise
        self.fates[-1] = Fate.WRITTEN
        if sync:
            self.durable = number

    def flush(self, db: lsm.DB) -> None:
        """Flush, which makes all durable that was written."""
        db.flush()
        self.durable = self.written

    @property
    def written(self) -> int:
        """The last batch that was written."""
        written = [at for at, fate in enumerate(self.fates) if fate is Fate.WRITTEN]
        return written[-1] + 1 if written else 0

    def check(self, found: Contents, least: int) -> int:
        """Find the batch up to which all are there, whole and in order, and nothing else.

        Returns its number, which must not be less than ``least``.
        """
        number = int(found.get(LAST, b"0"))
        assert least <= number <= len(self.batches)
        assert number == 0 or self.fates[number - 1] is not Fate.REFUSED
        assert found in list(self._possible(number)), f"not what {number} batches make"
        return number

    def _possible(self, number: int) -> Iterator[Contents]:
        """What the database may hold when this is the last batch that is in it."""
        fates = self.fates[: max(0, number - 1)]
        doubtful = [at for at, fate in enumerate(fates) if fate is Fate.IN_DOUBT]
        certain = [at for at, fate in enumerate(fates) if fate is Fate.WRITTEN]
        assert len(doubtful) < 8
        sizes = range(len(doubtful) + 1)
        for there in chain.from_iterable(combinations(doubtful, size) for size in sizes):
            contents: Contents = {}
            for at in sorted([*certain, *there]) + [number - 1] * (number > 0):
                apply(contents, self.batches[at])
            yield contents


def apply(contents: Contents, operations: Sequence[Operation]) -> None:
    """Do to a dictionary what a batch does to a database."""
    for key, value in operations:
        if value is None:
            contents.pop(key, None)
        else:
            contents[key] = value


def random_batch(rng: random.Random) -> list[Operation]:
    """Some puts and deletes, of few keys."""
    return [
        (rng.choice(KEYS), rng.randbytes(rng.randrange(60)) if rng.random() < 0.75 else None)
        for _ in range(rng.randrange(1, 5))
    ]


Step = Callable[[lsm.DB, History], None]
Steps = list[Step | None]
"""What is done one after the other; None is to close the database and to open it again."""


def random_steps(rng: random.Random, writes: int) -> Steps:
    """Writes, some of them synced, between flushes, compactions and refilterings."""
    steps: Steps = []
    for number in range(1, writes + 1):
        steps.append(writing(random_batch(rng), sync=rng.random() < 0.3))
        if number == writes // 2:
            steps.append(None)
        if number % 7 == 0:
            steps.append(lambda db, history: history.flush(db))
        if number % 11 == 0:
            steps.append(lambda db, _: db.wait_until_idle())
        if number % 13 == 0:
            steps.append(refilter)
        if number % 14 == 0:
            steps.append(lambda db, _: db.compact_range(force=True))
        if number % 20 == 0:
            steps.append(lambda db, _: db.compact_range())
    return [*steps, None]


def refilter(db: lsm.DB, _: History) -> None:
    """Give all tables filters that they do not have yet."""
    kinds = {each.policy for level in db.filters() for each in level.tables}
    reconfigure(db, policies.create("classic" if kinds == {"blocked"} else "blocked"))
    db.refilter()


def writing(operations: Sequence[Operation], *, sync: bool) -> Step:
    """The step that writes a batch."""
    return lambda db, history: history.write(db, operations, sync=sync)


def configured(scratch: Path, text: str = TINY) -> Path:
    """A file with this configuration."""
    path = scratch / "lsm.toml"
    path.write_text(text)
    return path


def contents(db: lsm.DB) -> Contents:
    """All that is in a database, having seen that every way to read it says so."""
    found = dict(db)
    assert list(db.iterator(reverse=True)) == sorted(found.items(), reverse=True)
    keys = [*KEYS, LAST]
    assert [db.get(key) for key in keys] == [found.get(key) for key in keys]
    return found


def reopened(storage: SimulatedStorage, config: Path | None = None) -> lsm.DB:
    """The database of a storage, made anew if it is not there."""
    return lsm.DB(PATH, create_if_missing=True, storage=storage, config=config)


def check_it_goes_on(storage: SimulatedStorage, config: Path | None, found: Contents) -> None:
    """See that the database can be written, compacted and opened again, and leaves no file over."""
    with reopened(storage, config) as db:
        db.put(b"a later key", b"its value", sync=True)
        db.delete(b"key 00")
        db.compact_range()
    expected = {**found, b"a later key": b"its value"}
    expected.pop(b"key 00", None)
    after = storage.crash()
    with reopened(after, config) as db:
        assert dict(db) == expected
        tables = sum(level.tables for level in db.stats().levels)
    names = after.list(PATH)
    assert sum(name.endswith(".ldb") for name in names) == tables
    assert sum(name.startswith("MANIFEST-") for name in names) == 1
    assert sum(name.endswith(".log") for name in names) == 1
    assert not [name for name in names if name.endswith(".dbtmp")]
