"""Forks in the middle of everything: the child is refused and harms nothing, the parent goes on."""

from __future__ import annotations

import functools
import gc
import os
import random
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
from tests.effort import by_effort
from tests.interpreter import fresh
from tests.lsm.configurations import TINY
from tests.lsm.crew import Crew, until
from tests.lsm.forking import Child, check_in_child
from tests.lsm.interrupting import (
    INSTRUCTIONS,
    SIGNALS,
    Kind,
    Outcome,
    chosen,
    interrupted_at,
    points,
)
from tests.lsm.patience import patient

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # From Python 3.12 on, every fork beside other threads.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
    # A file whose opening is interrupted before anybody has it is closed by Python.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]

Contents = dict[bytes, bytes]

BOTH: list[Kind] = [SIGNALS, INSTRUCTIONS]
KINDS = by_effort(BOTH[:1], BOTH, BOTH)


@attrs.define(eq=False)
class Parent:
    """A database with somebody at work in it, and all that can be had of one."""

    path: Path
    db: lsm.DB
    contents: Contents
    iterator: Any
    raw: Any
    snapshot: Any
    batch: Any

    @classmethod
    def made(cls, path: Path, count: int = 80) -> Parent:
        db = lsm.DB(path, create_if_missing=True, lru_cache_size=2000, **TINY)
        contents = {b"%03d" % number: b"value %d" % number for number in range(count)}
        for key, value in contents.items():
            db.put(key, value)
        iterator, raw = db.iterator(), db.raw_iterator()
        next(iterator)
        raw.seek_to_first()
        batch = db.write_batch()
        batch.put(b"in a batch", b"1")
        return cls(path, db, contents, iterator, raw, db.snapshot(), batch)

    def calls(self) -> dict[str, Callable[[], object]]:
        """What a child may try; each is refused."""
        db, part = self.db, self.db.prefixed_db(b"0")
        return {
            "get": lambda: db.get(b"001"),
            "get_many": lambda: db.get_many([b"001"]),
            "put": lambda: db.put(b"x", b""),
            "put synced": lambda: db.put(b"x", bytes(5000), sync=True),
            "delete": lambda: db.delete(b"001"),
            "batch": self.batch.write,
            "new batch": db.write_batch,
            "iterate": lambda: list(db),
            "go on": lambda: next(self.iterator),
            "go back": lambda: self.iterator.prev(),
            "seek": lambda: self.iterator.seek(b"0"),
            "raw": self.raw.next,
            "snapshot": db.snapshot,
            "look back": lambda: self.snapshot.get(b"001"),
            "walk back": lambda: list(self.snapshot),
            "part": lambda: part.get(b"01"),
            "put in a part": lambda: part.put(b"01", b""),
            "flush": db.flush,
            "compact": db.compact_range,
            "resume": db.resume,
            "wait": db.wait_until_idle,
            "stats": db.stats,
            "explain": lambda: db.explain(b"001"),
            "filters": db.filters,
        }

    def check_refused(self) -> None:
        """See that each call is refused, in a child."""
        for name, call in self.calls().items():
            with pytest.raises(RuntimeError, match="fork|closed"):
                print(name, call())

    def check_kept_out(self) -> None:
        """See that the parent's lock keeps a child out."""
        path = str(self.path)
        calls: list[Callable[[], object]] = [
            lambda: lsm.DB(path),
            lambda: lsm.DB(path, read_only=True),
            lambda: lsm.destroy_db(path),
            lambda: lsm.repair_db(path),
        ]
        for call in calls:
            with pytest.raises(lsm.LockedError):
                call()

    def leave(self) -> None:
        """Let go of everything, as a child's end does."""
        for each in (self.iterator, self.raw, self.snapshot, self.db):
            each.close()
        gc.collect()


def be_a_child(parent: Parent) -> None:
    """All that a child may do: be refused, have a database of its own, and leave."""
    parent.check_refused()
    parent.check_kept_out()
    have_a_database(Path(f"{parent.path} of {os.getpid()}"))
    parent.leave()


def have_a_database(path: Path) -> None:
    """Create, use and destroy a database."""
    with lsm.DB(path, create_if_missing=True, **TINY) as db:
        for number in range(40):
            db.put(b"%d" % number, bytes(50))
        db.flush()
        db.compact_range()
        assert len(list(db)) == len(list(db.snapshot())) == 40
    with lsm.DB(path) as db:
        assert len(list(db)) == 40
    lsm.destroy_db(path)


def check_parent(parent: Parent) -> None:
    """See that the parent goes on, and that nothing is lost, as LevelDB sees it, too."""
    db = parent.db
    if not db.closed:
        db.put(b"later", b"1")
        parent.contents[b"later"] = b"1"
        db.flush()
        db.compact_range()
        assert db.stats().background_error is None
        assert dict(db) == parent.contents
        parent.leave()
    with lsm.DB(parent.path, paranoid_checks=True) as db:
        assert dict(db) == parent.contents
        assert db.stats().log_losses == ()


# -- Beside threads ------------------------------------------------------------------------


@attrs.define(eq=False)
class Traffic:
    """Threads that are busy with a parent's database until it is enough."""

    parent: Parent
    crew: Crew
    enough: threading.Event = attrs.field(factory=threading.Event)
    steps: int = 0

    def goes_on(self) -> bool:
        return not self.enough.is_set() and not self.crew.failed.is_set()

    def write(self, name: int) -> None:
        """Write keys of one's own; each that is acknowledged is in the parent's contents."""
        rng = random.Random(name)
        while self.goes_on():
            key, value = b"%03d of %d" % (rng.randrange(200), name), rng.randbytes(30)
            self.parent.db.put(key, value, sync=rng.random() < 0.02)
            self.parent.contents[key] = value
            self.steps += 1

    def read(self, name: int) -> None:
        db, rng = self.parent.db, random.Random(name)
        while self.goes_on():
            key = b"%03d" % rng.randrange(80)
            assert db.get(key) == b"value %d" % int(key)
            assert next(db.iterator(start=key, stop=key + b"\0")) == (key, db.get(key))
            with db.snapshot() as snapshot:
                assert snapshot.get(key) == db.get(key)

    def look_after(self, name: int) -> None:
        db, rng = self.parent.db, random.Random(name)
        while self.goes_on():
            rng.choice((db.flush, db.compact_range, db.stats, db.wait_until_idle))()

    def _is_behind(self, step: int) -> bool:
        return self.steps > step or not self.goes_on()

    def fork(self, _name: int) -> None:
        """Fork again and again, between what the others do."""
        for _ in range(by_effort(2, 4, 80)):
            if not self.goes_on():
                return
            until(functools.partial(self._is_behind, self.steps + 3))
            check_in_child(functools.partial(be_a_child, self.parent))


@pytest.mark.parametrize("number", range(by_effort(1, 1, 50)))
@pytest.mark.parametrize("forking", [1, 3])
@patient
def test_a_child_that_is_forked_beside_busy_threads_is_refused_and_hangs_nowhere(
    forking: int, number: int, tmp_path: Path
) -> None:
    """Who forks is a thread of its own, or three at once."""
    print(number)
    parent = Parent.made(tmp_path / "db")
    crew = Crew(patience=100)
    traffic = Traffic(parent, crew)
    with crew:
        for name, work in enumerate(
            (traffic.write, traffic.write, traffic.read, traffic.look_after)
        ):
            crew.start(work, name, name=f"{work.__name__} {name}")
        forks = [crew.start(traffic.fork, name, name=f"fork {name}") for name in range(forking)]
        until(lambda: not any(each.is_alive() for each in forks))
        traffic.enough.set()
    check_parent(parent)


# -- In the middle of an operation ---------------------------------------------------------


def walk(parent: Parent) -> object:
    iterator = parent.db.iterator(start=b"010")
    return [next(iterator), next(iterator), iterator.prev(), *iterator]


def full(parent: Parent) -> None:
    """Leave no room in the memtable."""
    parent.db.wait_until_idle()
    parent.db.put(b"full", bytes(4000))
    parent.contents[b"full"] = bytes(4000)


def nothing(_parent: Parent) -> None:
    pass


def put(parent: Parent, size: int = 1, *, sync: bool = False) -> None:
    parent.db.put(b"new", bytes(size), sync=sync)


Do = Callable[[Parent], object]
OPERATIONS: dict[str, tuple[Do, Do]] = {
    "put": (put, nothing),
    "put synced": (functools.partial(put, sync=True), nothing),
    "put behind a full memtable": (put, full),
    "get": (lambda it: it.db.get(b"030"), nothing),
    "iterate": (walk, nothing),
    "snapshot": (lambda it: it.db.snapshot().get(b"030"), nothing),
    "flush": (lambda it: it.db.flush(), full),
    "compact": (lambda it: it.db.compact_range(), nothing),
    "wait": (lambda it: it.db.wait_until_idle(), full),
    "close": (lambda it: it.db.close(), full),
}


def all_points(name: str, path: Path, kind: Kind = SIGNALS) -> int:
    operation, before = OPERATIONS[name]
    parent = Parent.made(path)
    before(parent)
    passed = points(lambda: operation(parent), kind)
    parent.leave()
    lsm.destroy_db(path)
    return passed


def files_of(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.iterdir()}


def without_new_logs(files: dict[str, bytes], before: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out empty logs that were not there: a child may come to open one that has gone."""
    return {
        name: data
        for name, data in files.items()
        if name in before or data or not name.endswith(".log")
    }


@pytest.mark.parametrize("sample", range(by_effort(1, 1, 20)))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
@patient
def test_a_fork_within_an_operation_disturbs_it_nowhere(
    name: str, kind: Kind, sample: int, tmp_path: Path, rng: random.Random
) -> None:
    """As a signal handler forks: there the child ends, and the operation goes on."""
    operation, before = OPERATIONS[name]

    def be_a_child_within(parent: Parent) -> None:
        parent.check_refused()
        if name != "close":
            parent.check_kept_out()
        # In the middle of an operation not everything is allowed; in a thread of its own it is.
        with Crew() as crew:
            crew.start(have_a_database, Path(f"{parent.path} of {os.getpid()}"))
        parent.leave()

    for number in chosen(all_points(name, tmp_path / "db", kind), by_effort(1, 2, 50), rng):
        parent = Parent.made(tmp_path / f"at {number}")
        before(parent)
        outcome = interrupted_at(
            number,
            lambda it=parent: operation(it),
            call=lambda it=parent: check_in_child(functools.partial(be_a_child_within, it)),
            kind=kind,
        )
        print(sample, number, outcome.where)
        assert outcome.raised is None, outcome.raised
        if "put" in name:
            parent.contents[b"new"] = b"\0"
        check_parent(parent)


@pytest.mark.parametrize("sample", range(by_effort(1, 1, 20)))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
@patient
def test_a_child_that_goes_on_with_an_operation_is_refused_and_touches_nothing(
    name: str, kind: Kind, sample: int, tmp_path: Path, rng: random.Random
) -> None:
    """As a signal handler forks, and returns in both: only the parent's operation is done.

    The child goes on when the parent has done it, and more: whatever it changes, it takes from the
    parent.
    """
    operation, before = OPERATIONS[name]
    for number in chosen(all_points(name, tmp_path / "db", kind), by_effort(1, 2, 100), rng):
        parent = Parent.made(tmp_path / f"at {number}")
        before(parent)
        twins = Twins()
        outcome = interrupted_at(
            number, lambda it=parent: operation(it), call=twins.part, kind=kind
        )
        if twins.child is not None and twins.child.is_this:
            twins.child.end(functools.partial(check_twin, parent, outcome))
        print(sample, number, outcome.where)
        assert outcome.raised is None, outcome.raised
        if "put" in name:
            parent.contents[b"new"] = b"\0"
        do_more(parent, flushed=rng.random() < 0.5)
        files = files_of(parent.path)
        twins.let_child_go_on()
        assert without_new_logs(files_of(parent.path), files) == files
        check_parent(parent)


class Twins:
    """A parent and a child that both go on with the operation in which they parted."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self._gate = os.pipe()

    def part(self) -> None:
        """Fork, and hold the child."""
        self.child = Child.fork()
        if self.child.is_this:
            os.close(self._gate[1])
            os.read(self._gate[0], 1)

    def let_child_go_on(self) -> None:
        """Return when the child has ended, and fail unless all was well."""
        for end in self._gate:
            os.close(end)
        if self.child is not None:
            self.child.check()


def check_twin(parent: Parent, outcome: Outcome) -> None:
    """See that a child was refused, unless nothing was left to be done."""
    if outcome.raised is not None:
        assert isinstance(outcome.raised, RuntimeError), outcome.raised
        assert re.search("fork|closed", str(outcome.raised)), outcome.raised
    parent.check_refused()
    with Crew() as crew:
        crew.start(have_a_database, Path(f"{parent.path} of {os.getpid()}"))
    parent.leave()


def do_more(parent: Parent, *, flushed: bool) -> None:
    """Write what a child that goes on knows nothing of, and be idle."""
    if parent.db.closed:
        return
    for number in range(5):
        parent.db.put(b"more %d" % number, b"1")
        parent.contents[b"more %d" % number] = b"1"
    if flushed:
        parent.db.flush()
    parent.db.wait_until_idle()


# -- The ends of children ------------------------------------------------------------------

ENDS = """
import gc, os, sys, threading
import lsm

path, count = sys.argv[1], int(sys.argv[2])
db = lsm.DB(path, create_if_missing=True, write_buffer_size=2000, max_file_size=1024)
enough, written = threading.Event(), []

def write():
    number = 0
    while not enough.is_set():
        db.put(b"%06d" % number, b"x" * 30)
        written.append(number)
        number += 1

def read():
    while not enough.is_set():
        list(db.iterator(stop=b"000100"))
        db.snapshot().get(b"000000")

threads = [threading.Thread(target=each) for each in (write, read)]
for thread in threads:
    thread.start()
for number in range(count):
    while len(written) < 20 * number:
        pass
    child = os.fork()
    if child == 0:
        iterator = None
        match number % 4:
            case 0:
                sys.exit(7)
            case 1:
                del db
                gc.collect()
                sys.exit(7)
            case 2:
                gc.disable()
                cycle = [db]
                cycle.append(cycle)
                sys.exit(7)
            case 3:
                db.close()
                raise SystemExit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7, status
enough.set()
for thread in threads:
    thread.join()
assert len(list(db)) == len(written)
db.compact_range()
db.close()
with lsm.DB(path) as db:
    assert len(list(db)) == len(written)
print("whole")
"""


def test_the_end_of_a_childs_interpreter_harms_nothing(tmp_path: Path) -> None:
    """It collects the parent's database, or leaves it to the end."""
    ran = fresh(ENDS, str(tmp_path / "db"), str(by_effort(8, 20, 2000)))
    assert (ran.stdout, ran.stderr, ran.returncode) == ("whole\n", "", 0)
