"""Lookups: of the same files both kernels tell the same, answers, counts and words.

A database is written once, in levels, with versions and tombstones. Then each kernel opens its
files for reading and is asked the same.
"""

from __future__ import annotations

import random
import struct
import zlib
from types import ModuleType
from typing import Any
from unittest import mock

import attrs
import pytest

import lsm
from lsm import kernels, opening
from lsm.disk.filter_blocks import WindowReader
from lsm.options import LEVELS
from policies import LevelDBPolicy, LevelPolicies
from policies.config import Choice
from tests.effort import by_effort
from tests.lsm import odd_policies
from tests.lsm.configurations import BUILT_IN, ODD, PARTITIONED, TINY
from tests.lsm.odd_policies import SlowStartPolicy
from tests.lsm.simulated import SimulatedStorage

Contents = dict[bytes, bytes]

# What all databases share is the chosen kernel's: only the compiled one's serves both.
pytestmark = pytest.mark.skipif(
    lsm.KERNEL != "native", reason=f"the native kernel is not the chosen one: {lsm.KERNEL_REASON}"
)


@attrs.frozen
class Told:
    """All that a database says when it is asked for keys."""

    values: list[bytes | None]
    before: list[list[bytes | None]]
    stats: Any
    asked: dict[int, tuple[int, int]]
    steps: list[str]


class Written:
    """Files of a database of several levels, and what is in them."""

    def __init__(self, rng: random.Random, levels: LevelPolicies, **options: Any):
        self.storage = SimulatedStorage()
        self.contents: Contents = {}
        self.ranks: list[int] = []
        keys = [b"%03d" % number * rng.randrange(1, 4) for number in range(200)]
        keys += [b"", b"\0", b"\0\0", b"\xff" * 9, b"prefix", b"prefix\0", b"prefix\0\0"]
        for seed in (1, 2):  # so that a database has filters under either
            with (
                mock.patch.object(opening, "seed_of", return_value=seed),
                self.opened(create_if_missing=True, filter_policy=levels, **TINY | options) as db,
            ):
                self._write(db, keys, rng)
        asked = [*keys, *(key + b"x" for key in keys), *(key[:-1] for key in keys)]
        self.keys = [*asked, *rng.sample(asked, 100)]

    def opened(self, **options: Any) -> lsm.DB:
        return lsm.DB("db", storage=self.storage, **options)

    def _write(self, db: lsm.DB, keys: list[bytes], rng: random.Random) -> None:
        """Put and delete, while snapshots keep versions that are superseded."""
        snapshots = []
        for number in range(300):
            key = rng.choice(keys)
            if rng.random() < 0.25:
                db.delete(key)
                self.contents.pop(key, None)
            else:
                value = self.contents[key] = b"%d" % number * rng.randrange(9)
                db.put(key, value)
            if number % 60 == 30:
                snapshots.append(db.snapshot())
                self.ranks.append(db._store.visible)

    def told_by(self, kernel: ModuleType, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Told:
        """What one kernel says, asked for each key, for many, and step by step."""
        monkeypatch.setattr(kernels, "_chosen", kernel)
        with self.opened(read_only=True, **options) as db:
            assert type(db._store.view) is kernel.View
            values = [db.get(key) for key in self.keys]
            assert db.get_many(self.keys) == values == list(map(self.contents.get, self.keys))
            assert db.get_many(iter(self.keys[:50]), b"?") == [
                b"?" if value is None else value for value in values[:50]
            ]
            assert [key in db for key in self.keys] == [value is not None for value in values]
            part = db.prefixed_db(b"0")
            assert part.get_many(self.keys) == [self.contents.get(b"0" + key) for key in self.keys]
            view, tables = db._store.view, db._store.tables
            before = [
                [kernel.find(view, tables, key, key, rank, True) for key in self.keys]
                for rank in self.ranks
            ]
            stats, asked = db.stats(), asked_by_table(db)
            steps = [f"{db.explain(key)}, {db.might_contain(key)}" for key in self.keys[:200]]
            assert (db.stats().filters, asked_by_table(db)) == (stats.filters, asked)
            with db.snapshot() as snapshot:
                assert snapshot.get_many(self.keys) == values
                assert [snapshot.get(key) for key in self.keys] == values
        return Told(values, before, comparable(stats), asked, steps)


def asked_by_table(db: lsm.DB) -> dict[int, tuple[int, int]]:
    """How many lookups each table was asked by, in vain and not."""
    tables = db._store.opened_view().version.tables()
    return {each.number: (each.file.missed, each.file.found) for each in tables}


def comparable(stats: lsm.stats.Stats) -> Any:
    """Of statistics what does not depend on how much memory a kernel takes."""
    caches = ("block_cache", "filter_cache", "table_cache")
    counts = {name: getattr(stats, name) for name in caches}
    return (
        stats.filters,
        {name: (each.items, each.misses, each.hits) for name, each in counts.items()},
        [(level.tables, level.skipped, level.measured_fpr) for level in stats.levels],
    )


def check(written: Written, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Told:
    """Both kernels say the same."""
    python, native = (
        written.told_by(kernels.load(name), monkeypatch, **options) for name in kernels.available()
    )
    assert native == python
    return native


# Not among them is what differs from one opening to the next.
FILTERS: list[tuple[Any, ...]] = [
    each for each in (*BUILT_IN, *ODD, *PARTITIONED) if not isinstance(each[0], SlowStartPolicy)
]


def check_filters(
    levels: LevelPolicies, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    with odd_policies.registered():
        written = Written(rng, levels, compression=rng.choice(("none", "snappy", "zstd")))
        told = check(written, monkeypatch, filter_policy=levels)
    assert sum(counts.counters.blocks_read for counts in told.stats[0]) > 300
    counted = [each.counters for each in told.stats[0]]
    missed, found = (sum(each) for each in zip(*told.asked.values(), strict=True))
    assert missed >= sum(each.skipped + each.false_positives for each in counted)
    assert found >= sum(each.true_positives for each in counted)


@pytest.mark.parametrize(
    "filters", FILTERS, ids=lambda each: "-".join(map(str, (each[0].name, *each[1:])))
)
@pytest.mark.parametrize("turn", range(by_effort(1, 4, 40)))
def test_both_kernels_say_the_same(
    filters: tuple[Any, ...],
    turn: int,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL", "lsm")
    check_filters(LevelPolicies((Choice(*filters),) * LEVELS), rng, monkeypatch)


@pytest.mark.parametrize("turn", range(by_effort(8, 50, 1000)))
def test_both_say_the_same_of_other_filters_on_every_level(
    turn: int,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL", "lsm")
    choices = tuple(Choice(*rng.choice(FILTERS)) for _ in range(LEVELS))
    hits = rng.random() < 0.3
    check_filters(LevelPolicies(choices, optimize_filters_for_hits=hits), rng, monkeypatch)


def forged(contents: bytes, turn: int) -> bytes:
    """LevelDB's filter block with other bits, other numbers of probes, and filters cut short."""
    rng = random.Random(zlib.crc32(contents) + turn)
    forged = bytearray(contents)
    (array_at,) = struct.unpack_from("<I", forged, len(forged) - 5)
    count = (len(forged) - 5 - array_at) // 4
    offsets = list(struct.unpack_from(f"<{count + 1}I", forged, array_at))
    for window in range(count):
        start, end = offsets[window : window + 2]
        kind = rng.randrange(6)
        if kind < 2:
            offsets[window] = end - min(kind, end - start)  # none, or one of a byte
        elif kind < 4 and end > start:
            forged[end - 1] = rng.choice((0, 1, 2, 30, 31, 255))
        elif kind == 4:
            for _ in range(9):
                if end > start + 1:
                    forged[rng.randrange(start, end - 1)] ^= 1 << rng.randrange(8)
    struct.pack_into(f"<{count}I", forged, array_at, *offsets[:-1])
    return bytes(forged)


@pytest.mark.parametrize("turn", range(by_effort(4, 20, 400)))
def test_both_take_forged_windows_for_the_same(
    turn: int, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = LevelPolicies.uniform(LevelDBPolicy(bits_per_key=rng.choice((1, 10))), layout="block")
    written = Written(rng, levels, compression="none", block_size=512)
    begin = WindowReader.__init__
    monkeypatch.setattr(
        WindowReader, "__init__", lambda self, contents: begin(self, forged(contents, turn))
    )
    told = []
    for name in kernels.available():
        monkeypatch.setattr(kernels, "_chosen", kernels.load(name))
        with written.opened(read_only=True, filter_policy=levels) as db:
            answers = [db.get(key) for key in written.keys], db.get_many(written.keys)
            told.append((answers, comparable(db.stats())))
            assert answers[0] == answers[1]
    assert told[0] == told[1]
