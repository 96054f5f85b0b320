"""Every operation, interrupted at every point: done or not done, and everything goes on.

What comes at the point is an exception, as a Ctrl-C raises it or a lack of memory, or another
operation of the same database, as a signal handler or a finalizer may want it.
"""

from __future__ import annotations

import gc
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
import policies
from tests.effort import by_effort, effort
from tests.lsm.interrupting import (
    INSTRUCTIONS,
    SIGNALS,
    Kind,
    Stepwise,
    chosen,
    interrupted_at,
    points,
)
from tests.lsm.patience import SECONDS, within
from tests.lsm.refilterable import reconfigure

# A file whose opening is interrupted before anybody has it is closed by Python, with a warning.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def collected_here() -> Iterator[None]:
    yield
    gc.collect()


Contents = dict[bytes, bytes]

TINY: dict[str, Any] = {
    "write_buffer_size": 3000,
    "max_file_size": 1024,
    "block_size": 256,
    "level0_compact_files": 2,
    "level_size_base": 4096,
    "level_size_ratio": 2,
}


@attrs.define(eq=False)
class Subject:
    """A database and what is in it for sure; ``doubtful`` is what may be there as a whole."""

    path: Path
    db: lsm.DB
    sure: Contents
    doubtful: list[tuple[bytes, bytes | None]] = attrs.field(factory=list)

    @classmethod
    def made(cls, path: Path, count: int = 60) -> Subject:
        db = lsm.DB(path, create_if_missing=True, storage=Stepwise(), **TINY)
        subject = cls(path, db, {})
        for number in range(count):
            subject.put(b"%03d" % (number * 37 % 50), b"value %d" % number)
        return subject

    def put(self, key: bytes, value: bytes) -> None:
        self.db.put(key, value)
        self.sure[key] = value

    def write(self, *pairs: tuple[bytes, bytes | None], **options: Any) -> None:
        """Write as one what may then be there or not."""
        self.doubtful = list(pairs)
        batch = self.db.write_batch(**options)
        for key, value in pairs:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.write()

    def allowed(self) -> list[Contents]:
        """What may be found."""
        changed = dict(self.sure)
        for key, value in self.doubtful:
            changed.pop(key, None)
            if value is not None:
                changed[key] = value
        return [self.sure, changed]

    def check(self, db: Any) -> None:
        """See that every way of reading finds the same, and that it is allowed."""
        keys = {*self.sure, *(key for key, _ in self.doubtful), b"absent"}
        ways = [
            dict(db),
            dict(db.iterator(reverse=True)),
            {key: value for key in keys if (value := db.get(key)) is not None},
        ]
        assert ways[0] == ways[1] == ways[2]
        assert ways[0] in self.allowed()


def nothing(_subject: Subject) -> None:
    pass


def half_sorted(subject: Subject) -> None:
    """Have some entries of the memtable in order, and others not yet."""
    next(subject.db.iterator(), None)
    for number in range(20):
        subject.put(b"q%02d" % number, b"later %d" % number)


def flushed(subject: Subject) -> None:
    subject.db.flush()


def compacted(subject: Subject) -> None:
    subject.db.compact_range()


def drifted(subject: Subject) -> None:
    """Have several tables, and other filters asked for than they have."""
    subject.db.flush()
    subject.db.wait_until_idle()
    reconfigure(subject.db, policies.create("classic"))


def full(subject: Subject) -> None:
    """Leave no room in the memtable."""
    subject.db.flush()
    subject.put(b"full", bytes(4000))


def collected(subject: Subject) -> None:
    """Collect operations in a block whose end writes them."""
    pairs = [(b"new %d" % number, b"1") for number in range(5)]
    subject.doubtful = list(pairs)
    with subject.db.write_batch() as batch:
        for key, value in pairs:
            batch.put(key, value)


def load(subject: Subject) -> None:
    """Load some pairs, in several tables."""
    pairs = [(b"001", b"loaded"), *((b"n%02d" % number, bytes(300)) for number in range(9))]
    subject.doubtful = list(pairs)
    lsm.bulk.load(subject.db, iter(pairs), progress=str)


def walk(subject: Subject) -> None:
    iterator = subject.db.iterator()
    iterator.seek(b"020")
    for step in (next, next, lambda each: each.prev(), lambda each: each.prev(), next):
        step(iterator)


def walk_raw(subject: Subject) -> None:
    with subject.db.raw_iterator() as raw:
        raw.seek_to_first()
        for _ in range(10):
            raw.next()
        raw.seek(b"030")
        raw.prev()


def look_back(subject: Subject) -> None:
    with subject.db.snapshot() as snapshot:
        subject.db.put(b"001", subject.sure[b"001"])
        snapshot.get(b"001")
        list(snapshot)


def look_around(subject: Subject) -> None:
    db = subject.db
    str(db.stats()), db.filters(), db.explain(b"001"), db.might_contain(b"x")
    db.approximate_size(b"0", b"9"), db.get_property(b"leveldb.sstables")
    assert b"003" in db.prefixed_db(b"").snapshot()


Do = Callable[[Subject], object]
OPERATIONS: dict[str, tuple[Do, Do]] = {
    "put": (lambda it: it.write((b"new", b"1")), nothing),
    "put synced": (lambda it: it.write((b"new", b"1"), sync=True), nothing),
    "put of much": (lambda it: it.write((b"new", bytes(5000))), nothing),
    "put behind a full memtable": (lambda it: it.write((b"new", b"1"), sync=True), full),
    "put over a block of the log": (lambda it: it.write((b"new", bytes(70_000))), nothing),
    "delete": (lambda it: it.write((b"001", None)), nothing),
    "batch": (lambda it: it.write((b"new", b"1"), (b"001", None), (b"002", b"")), nothing),
    "block of a batch": (collected, nothing),
    "get": (lambda it: it.db.get(b"030"), nothing),
    "get from a table": (lambda it: it.db.get(b"030"), flushed),
    "get_many": (lambda it: it.db.get_many([b"001", b"030", b"x"]), compacted),
    "iterate": (lambda it: list(it.db), half_sorted),
    "iterate over tables": (lambda it: list(it.db), compacted),
    "iterate backwards": (lambda it: list(it.db.iterator(reverse=True)), half_sorted),
    "walk": (walk, half_sorted),
    "walk raw": (walk_raw, flushed),
    "snapshot": (look_back, half_sorted),
    "look around": (look_around, flushed),
    "flush": (lambda it: it.db.flush(), half_sorted),
    "compact_range": (lambda it: it.db.compact_range(), half_sorted),
    "compact_range by force": (lambda it: it.db.compact_range(force=True), compacted),
    "refilter": (lambda it: it.db.refilter(), drifted),
    "resume": (lambda it: it.db.resume(), half_sorted),
    "wait_until_idle": (lambda it: it.db.wait_until_idle(), nothing),
    "bulk load": (load, half_sorted),
    "close": (lambda it: it.db.close(), half_sorted),
}


def check_it_goes_on(subject: Subject) -> None:
    """See that the database can be read, written, closed and opened again."""
    db = subject.db
    if not db.closed:
        subject.put(b"later", b"1")
        subject.check(db)
        db.flush()
        subject.check(db)
        assert db.stats().background_error is None
    db.close()
    with lsm.DB(subject.path) as again:
        subject.check(again)
        assert again.stats().log_losses == ()
    lsm.destroy_db(subject.path)


def all_points(name: str, path: Path, kind: Kind = SIGNALS) -> int:
    operation, before = OPERATIONS[name]
    subject = Subject.made(path)
    before(subject)
    passed = points(lambda: operation(subject), kind)
    subject.db.close()
    lsm.destroy_db(path)
    return passed


def too_deep() -> BaseException:
    return RecursionError("maximum recursion depth exceeded")


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, too_deep])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_exception_at_any_point_leaves_an_operation_done_or_not_done(
    name: str, error: Callable[[], BaseException], tmp_path: Path, rng: random.Random
) -> None:
    operation, before = OPERATIONS[name]
    some = by_effort(2, 10, None)
    for number in chosen(all_points(name, tmp_path / "db"), some, rng):
        path = tmp_path / f"at {number}"

        def interrupted(number: int = number, path: Path = path) -> None:
            subject = Subject.made(path)
            before(subject)
            outcome = interrupted_at(number, lambda: operation(subject), raising=error)
            print(number, outcome.where)  # shown if what follows fails
            if outcome.raised is not None:
                assert isinstance(outcome.raised, type(error())), outcome.raised
            check_it_goes_on(subject)

        within(SECONDS, interrupted)


def write_within(subject: Subject) -> None:
    for number in range(3):
        subject.put(b"within %d" % number, b"1")
    with subject.db.write_batch(sync=True) as batch:
        batch.put(b"within 0", b"2")
    subject.sure[b"within 0"] = b"2"


def read_within(subject: Subject) -> None:
    assert subject.db.get(b"003") == subject.sure[b"003"]
    assert dict(subject.db.iterator(start=b"003", stop=b"004")) == {b"003": subject.sure[b"003"]}
    assert next(subject.db.iterator(reverse=True, stop=b"004"))[0] == b"003"
    assert subject.db.snapshot().get(b"003") == subject.sure[b"003"]


def wait_within(subject: Subject) -> None:
    """What waits for the background is refused rather than waiting for itself."""
    db = subject.db
    for call in (db.flush, db.compact_range, db.refilter, db.wait_until_idle):
        with pytest.raises(lsm.Error, match="in the middle of another operation"):
            call()


WITHIN: dict[str, Do] = {
    "writing": write_within,
    "reading": read_within,
    "waiting": wait_within,
    "looking around": look_around,
}


@pytest.mark.parametrize("kind", [SIGNALS, pytest.param(INSTRUCTIONS, marks=effort("full"))])
@pytest.mark.parametrize("inner", WITHIN)
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "close"])
def test_an_operation_within_another_is_done_and_so_is_the_other(
    name: str, inner: str, kind: Kind, tmp_path: Path, rng: random.Random
) -> None:
    if name == "bulk load" and inner == "writing":
        pytest.skip("writers wait for a load; test_bulk.py has those that cannot")
    operation, before = OPERATIONS[name]
    for number in chosen(all_points(name, tmp_path / "db", kind), by_effort(1, 3, None), rng):
        path = tmp_path / f"at {number}"

        def interrupted(number: int = number, path: Path = path) -> None:
            subject = Subject.made(path)
            before(subject)
            outcome = interrupted_at(
                number,
                lambda: operation(subject),
                call=lambda: WITHIN[inner](subject),
                kind=kind,
            )
            print(number, outcome.where)
            assert outcome.raised is None, outcome.raised
            if outcome.where is not None:
                subject.sure, subject.doubtful = subject.allowed()[1], []
            check_it_goes_on(subject)

        within(SECONDS, interrupted)


@pytest.mark.parametrize("kind", [SIGNALS, INSTRUCTIONS])
def test_a_write_within_a_write_loses_neither_wherever_it_comes(kind: Kind, tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True, storage=Stepwise()) as db:
        written = {}
        for number in itertools.count():
            outer, inner = b"outer %d" % number, b"inner %d" % number
            outcome = interrupted_at(
                number,
                lambda key=outer: db.put(key, b"1"),  # type: ignore[misc]
                call=lambda key=inner: db.put(key, b"1"),  # type: ignore[misc]
                kind=kind,
            )
            assert outcome.raised is None, outcome.where
            written[outer] = b"1"
            if outcome.where is None:
                break
            written[inner] = b"1"
            assert dict(db) == written if number % 100 == 0 else db.get(outer) == db.get(inner)
        assert number > 50
        assert dict(db) == written
    with lsm.DB(tmp_path / "db") as db:
        assert dict(db) == written


@pytest.mark.skipif(lsm.KERNEL == "python", reason="it takes steps")
def test_nothing_comes_into_a_lone_commit(tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"before", b"")  # which gets the log ready
        batch = db.write_batch()
        for write in (
            lambda: db.put(b"a", b"1"),
            lambda: db.delete(b"b"),
            lambda: batch.put(b"", b""),
        ):
            assert points(write) == points(lambda: None)


@pytest.mark.parametrize("name", OPERATIONS)
def test_closing_within_an_operation_hangs_nothing_and_loses_nothing(
    name: str, tmp_path: Path, rng: random.Random
) -> None:
    operation, before = OPERATIONS[name]
    for number in chosen(all_points(name, tmp_path / "db"), by_effort(1, 5, None), rng):
        path = tmp_path / f"at {number}"

        def interrupted(number: int = number, path: Path = path) -> None:
            subject = Subject.made(path)
            before(subject)
            outcome = interrupted_at(number, lambda: operation(subject), call=subject.db.close)
            print(number, outcome.where)
            if outcome.raised is not None:
                assert isinstance(outcome.raised, RuntimeError), outcome.raised
                assert "closed" in str(outcome.raised).lower()
            assert outcome.where is None or subject.db.closed
            check_it_goes_on(subject)

        within(SECONDS, interrupted)


@pytest.mark.parametrize("kind", [SIGNALS, INSTRUCTIONS])
def test_a_write_within_a_load_is_done_or_refused_wherever_it_comes(
    kind: Kind, tmp_path: Path, rng: random.Random
) -> None:
    """It cannot wait for the load, and without waiting it is in nobody's way before and after."""
    refused = 0
    total = all_points("bulk load", tmp_path / "db", kind)
    for number in chosen(total, by_effort(5, 60, None), rng):
        path = tmp_path / f"at {number}"

        def interrupted(number: int = number, path: Path = path) -> int:
            subject, told = Subject.made(path), []

            def write() -> None:
                try:
                    subject.put(b"within", b"1")
                except lsm.Error as error:
                    told.append(str(error))

            outcome = interrupted_at(number, lambda: load(subject), call=write, kind=kind)
            print(number, outcome.where)
            assert outcome.raised is None, outcome.raised
            assert all("a bulk load keeps writers out" in each for each in told)
            subject.sure, subject.doubtful = subject.allowed()[1], []
            check_it_goes_on(subject)
            return len(told)

        refused += within(SECONDS, interrupted)
    assert refused
