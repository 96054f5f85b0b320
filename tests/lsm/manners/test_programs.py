"""Programs of steps on iterators: each step of each implementation gives what it is to give.

Every program runs on a plyvel database and on one of the implementation under test, which have
come to the same entries by different histories, and on the cursors of cursors.py.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.lsm.manners.cursors import Between, Entry, Ordered, Plyvels, Range, Raw, Walk
from tests.lsm.manners.outcomes import compact, is_quirky, outcome

plyvel = pytest.importorskip("plyvel")


def falling(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


def caseless(a: bytes, b: bytes) -> int:
    a, b = a.lower(), b.lower()
    return (a > b) - (a < b)


# What makes a key order itself as the comparator does.
Order = Callable[[bytes], Any]
ORDERS: dict[str, tuple[dict[str, Any], Order]] = {
    "plain": ({}, lambda key: key),
    "falling": (
        {"comparator": falling, "comparator_name": b"falling"},
        lambda key: (*(255 - byte for byte in key), 256),
    ),
    "caseless": ({"comparator": caseless, "comparator_name": b"caseless"}, bytes.lower),
}

KEYS = st.sampled_from(
    [b"", b"a", b"A", b"aa", b"ab", b"b", b"B", b"ba", b"c", b"\xff", b"\xff\xff"]
)
HISTORIES = st.lists(
    st.tuples(st.just("put"), KEYS)
    | st.tuples(st.just("put"), KEYS)
    | st.tuples(st.just("delete"), KEYS)
    | st.tuples(st.sampled_from(["flush", "compact", "reopen"]), st.none()),
    max_size=20,
)


def steps(*moves: str) -> st.SearchStrategy[list[tuple[str, bytes | None]]]:
    """Programs of these moves, seeks and, now and then, of what is to leave no trace."""
    return st.lists(
        st.tuples(st.sampled_from(["next", "prev"]), st.none())
        | st.tuples(st.sampled_from(["next", "prev", *moves]), st.none())
        | st.tuples(st.just("seek"), KEYS)
        | st.tuples(st.sampled_from(["put", "delete"]), KEYS)
        | st.tuples(st.sampled_from(["flush", "close"]), st.none()),
        max_size=25,
    )


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "start": KEYS,
        "stop": KEYS,
        "include_start": st.booleans(),
        "include_stop": st.booleans(),
        "reverse": st.booleans(),
        "include_key": st.booleans(),
        "include_value": st.booleans(),
        "verify_checksums": st.booleans(),
        "fill_cache": st.booleans(),
    },
) | st.fixed_dictionaries({"prefix": KEYS}, optional={"reverse": st.booleans()})
VIEWS = st.sampled_from(["database", "snapshot", "prefixed database", "prefixed snapshot"])


@attrs.define
class Pair:
    """A database of each implementation, and the entries that both have."""

    oracle: Any
    tested: Any
    order: Order
    flush: Callable[[Any], None]
    entries: dict[Any, Entry] = attrs.field(factory=dict)

    def put(self, key: bytes, value: bytes) -> None:
        """Put an entry into both."""
        self.oracle.put(key, value)
        self.tested.put(key, value)
        self.entries[self.order(key)] = (key, value)

    def delete(self, key: bytes) -> None:
        """Delete a key from both."""
        self.oracle.delete(key)
        self.tested.delete(key)
        self.entries.pop(self.order(key), None)

    def ordered(self) -> list[Ordered]:
        """The entries in order, behind their keys in the form that orders itself."""
        return sorted(self.entries.items(), key=lambda item: item[0])

    def others(self, program: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """Do those steps of a program that are the databases', and yield the others."""
        for number, (step, key) in enumerate(program):
            if step == "put":
                self.put(key, b"value %d" % number)
            elif step == "delete":
                self.delete(key)
            elif step == "flush":
                self.flush(self.tested)
            else:
                yield step, key


def flush(db: Any) -> None:
    """Move what is in memory to a table."""
    db.compact_range()


@contextlib.contextmanager
def pair_of(api: ModuleType, order: str, history: list[Any]) -> Iterator[Pair]:
    """Both databases after a history, of which plyvel's is spared all but the writes."""
    options, ordered_by = ORDERS[order]
    options = {"create_if_missing": True, **options}
    ends = (b"\xff" * 9, b"") if order == "falling" else (b"", b"\xff" * 9)
    whole = functools.partial(compact, start=ends[0], stop=ends[1])
    # Where a comparator is called, plyvel must not be closed while it compacts in the background:
    # it then holds the GIL and waits for a thread that waits for the GIL.
    careful = api is plyvel and order != "plain"
    with tempfile.TemporaryDirectory() as at:
        oracle, tested = plyvel.DB(f"{at}/oracle", **options), api.DB(f"{at}/tested", **options)
        pair = Pair(oracle, tested, ordered_by, whole if careful else flush)
        try:
            for step, _ in pair.others(history):
                if step == "reopen":
                    pair.tested.close()
                    pair.tested = api.DB(f"{at}/tested", **options)
                if step == "compact" or careful:
                    whole(pair.tested)
            yield pair
        finally:
            pair.oracle.close()
            pair.tested.close()


def viewed(db: Any, view: str, prefix: bytes) -> Any:
    """What of a database an iterator is to be made of."""
    part = db.prefixed_db(prefix) if "prefixed" in view else db
    return part.snapshot() if "snapshot" in view else part


def incremented(prefix: bytes) -> bytes | None:
    """The first key behind all that begin so; None if there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


def range_of(options: dict[str, Any], outer: bytes | None, order: Order) -> Range:
    """The range that an iterator's options mean in a database, or under a prefix in one."""
    start, stop = options.get("start"), options.get("stop")
    include_first = options.get("include_start", True)
    include_last = options.get("include_stop", False)
    if "prefix" in options or outer is not None:
        inner = (outer or b"") + options.get("prefix", b"")
        include_first = include_first or start is None
        include_last = include_last and stop is not None
        first = inner if start is None else inner + start
        last = incremented(inner) if stop is None else inner + stop
    else:
        first, last = start, stop
    return Range(
        None if first is None else order(first),
        None if last is None else order(last),
        include_first,
        include_last,
    )


def ask(api: ModuleType, iterator: Any, step: str, key: bytes | None) -> tuple[str, Any]:
    """What a step of a real iterator comes to."""
    # Only raw iterators have a method of that name.
    name = "__next__" if step == "next" and hasattr(iterator, "__next__") else step
    return outcome(
        api, functools.partial(getattr(iterator, name), *(() if key is None else (key,)))
    )


DONE = ("returned", None)
CLOSED = ("raised", "RuntimeError")
# Of plyvel's, where a step led out of a prefixed database to a key shorter than the prefix.
BEYOND_REPAIR = ("raised", "SystemError")


@attrs.define
class Expected:
    """A cursor behind the options of an iterator, which says what each step is to come to."""

    cursor: Walk
    options: dict[str, Any]
    outer: bytes
    order: Order
    closed: bool = False

    def ask(self, step: str, key: bytes | None) -> tuple[str, Any]:
        """What a step is to come to, in the words of ``outcome``."""
        if step == "close":
            self.closed = True
        elif self.closed:
            return CLOSED
        elif step == "seek":
            self.cursor.seek(self.order(self.outer + (key or b"")))
        elif step not in ("next", "prev"):
            getattr(self.cursor, step)()
        else:
            entry = getattr(self.cursor, step)()
            return ("raised", "StopIteration") if entry is None else self.shown(*entry)
        return DONE

    def shown(self, key: bytes, value: bytes) -> tuple[str, Any]:
        """What of an entry is asked for."""
        match self.options.get("include_key", True), self.options.get("include_value", True):
            case False, wanted:
                return "returned", value if wanted else None
            case True, _ if len(key) < len(self.outer):
                return BEYOND_REPAIR
            case _, False:
                return "returned", key[len(self.outer) :]
        return "returned", (key[len(self.outer) :], value)


@examples(120)
@given(
    order=st.sampled_from(["plain", "plain", "falling", "caseless"]),
    history=HISTORIES,
    view=VIEWS,
    prefix=KEYS,
    options=OPTIONS,
    program=steps("seek_to_start", "seek_to_stop"),
)
def test_every_step_of_every_iterator_gives_what_it_should(
    api: ModuleType,
    order: str,
    history: list[Any],
    view: str,
    prefix: bytes,
    options: dict[str, Any],
    program: list[Any],
) -> None:
    with pair_of(api, order, history) as pair:
        outer = prefix if "prefixed" in view else None
        within = range_of(options, outer, pair.order)
        quirky, straight = (
            Expected(
                kind(pair.ordered(), within, options.get("reverse", False)),
                options,
                outer or b"",
                pair.order,
            )
            for kind in (Plyvels, Between)
        )
        theirs = viewed(pair.oracle, view, prefix).iterator(**options)
        ours = viewed(pair.tested, view, prefix).iterator(**options)
        for step, key in pair.others(program):
            known, guessed = quirky.ask(step, key), straight.ask(step, key)
            assert ask(plyvel, theirs, step, key) == known
            if guessed == BEYOND_REPAIR:
                break  # in an order where the keys with a prefix are no range
            assert ask(api, ours, step, key) == (known if is_quirky(api) else guessed)
            if known == BEYOND_REPAIR:
                break


@examples(60)
@given(
    order=st.sampled_from(["plain", "plain", "falling", "caseless"]),
    history=HISTORIES,
    view=st.sampled_from(["database", "snapshot", "prefixed snapshot"]),
    program=steps("seek_to_first", "seek_to_last"),
)
def test_every_step_of_every_raw_iterator_gives_what_it_should(
    api: ModuleType, order: str, history: list[Any], view: str, program: list[Any]
) -> None:
    with pair_of(api, order, history) as pair:
        raw, closed = Raw(pair.ordered()), False
        theirs = viewed(pair.oracle, view, b"a").raw_iterator()
        ours = viewed(pair.tested, view, b"a").raw_iterator()
        for step, key in pair.others(program):
            closed = closed or step == "close"
            for name in (step, "valid", "key", "value", "item"):
                target = key if name == step else None
                if name == "close":
                    known = DONE
                elif closed:
                    known = CLOSED
                else:
                    ordered = () if target is None else (pair.order(target),)
                    known = outcome(plyvel, functools.partial(getattr(raw, name), *ordered))
                assert ask(plyvel, theirs, name, target) == known
                assert ask(api, ours, name, target) == known
