"""Prefixed databases: the part of a database whose keys begin alike, without that beginning."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.lsm.manners.outcomes import keys

Open = Callable[..., Any]


# The keys of one database below each prefix.
PREFIXES = {
    b"p": [b"", b"1", b"2", b"\xff", b"\xff\xff"],
    b"p\xff": [b"", b"\xff"],
    b"o": [b"\xff"],
    b"\xff": [b"", b"1", b"\xff", b"\xff1"],
    b"\xff\xff": [b"", b"1"],
    b"\xfe": [b"\xff"],
    b"p1": [b""],
    b"r": [],
    b"\xff\xff\xff": [],
    b"": [
        *[b"", b"a", b"o\xff", b"p", b"p1", b"p2", b"p\xff", b"p\xff\xff", b"q"],
        *[b"\xfe\xff", b"\xff", b"\xff1", b"\xff\xff", b"\xff\xff1"],
    ],
}


@pytest.fixture
def whole(db: Any) -> Any:
    """A database with keys before, in and behind the parts that the tests look at."""
    for key in PREFIXES[b""]:
        db.put(key, b"value of " + key)
    return db


def test_it_knows_its_database_and_its_prefix(db: Any) -> None:
    prefixed = db.prefixed_db(b"p-")
    assert prefixed.db is db
    assert prefixed.prefix == b"p-"
    assert db.prefixed_db(prefix=b"q-").prefix == b"q-"
    for name in ("db", "prefix"):
        with pytest.raises(AttributeError):
            setattr(prefixed, name, None)


def test_it_shows_its_prefix(db: Any) -> None:
    assert repr(b"p\xff") in repr(db.prefixed_db(b"p\xff"))
    assert "PrefixedDB" in repr(db.prefixed_db(b""))


def test_it_gets_puts_and_deletes_under_its_prefix(whole: Any) -> None:
    prefixed = whole.prefixed_db(b"p")
    assert prefixed.get(b"1") == b"value of p1"
    assert prefixed.get(b"") == b"value of p"
    assert prefixed.get(b"p1") is None
    assert prefixed.get(b"3", b"default") == b"default"
    assert prefixed.get(b"3", default=b"default") == b"default"
    assert prefixed.get(b"1", verify_checksums=True, fill_cache=False) == b"value of p1"
    assert prefixed.put(b"3", b"three", sync=True) is None
    assert whole.get(b"p3") == b"three"
    assert prefixed.delete(b"3", sync=True) is None
    assert prefixed.delete(b"a") is None
    assert whole.get(b"p3") is None
    assert whole.get(b"a") == b"value of a"


def test_it_sees_what_the_database_writes(whole: Any) -> None:
    prefixed = whole.prefixed_db(b"p")
    whole.put(b"p1", b"new")
    whole.delete(b"p2")
    assert prefixed.get(b"1") == b"new"
    assert prefixed.get(b"2") is None


@pytest.mark.parametrize("prefix", PREFIXES, ids=repr)
def test_iterating_cuts_the_prefix_off(whole: Any, prefix: bytes) -> None:
    prefixed = whole.prefixed_db(prefix)
    expected = [(key, b"value of " + prefix + key) for key in PREFIXES[prefix]]
    assert list(prefixed) == list(prefixed.iterator()) == expected
    assert list(prefixed.snapshot()) == expected
    assert list(prefixed.iterator(include_value=False)) == [key for key, _ in expected]
    assert list(prefixed.iterator(include_key=False)) == [value for _, value in expected]
    if expected != [(b"", b"value of " + prefix)]:  # test_quirks.py has that one
        assert list(prefixed.iterator(reverse=True)) == expected[::-1]


@pytest.mark.parametrize("prefix", PREFIXES, ids=repr)
@pytest.mark.parametrize("begin", [b"", b"1", b"\xff", b"2"], ids=repr)
def test_its_iterators_have_their_own_bounds(whole: Any, prefix: bytes, begin: bytes) -> None:
    prefixed = whole.prefixed_db(prefix)
    inside = PREFIXES[prefix]
    assert keys(prefixed.iterator(prefix=begin)) == [k for k in inside if k.startswith(begin)]
    assert keys(prefixed.iterator(start=begin)) == [k for k in inside if k >= begin]
    assert keys(prefixed.iterator(stop=begin)) == [k for k in inside if k < begin]
    assert keys(prefixed.iterator(start=begin, include_start=False)) == [
        key for key in inside if key > begin
    ]
    assert keys(prefixed.iterator(stop=begin, include_stop=True)) == [
        key for key in inside if key <= begin
    ]


@pytest.mark.parametrize("reverse", [False, True])
def test_its_own_borders_are_always_its_own(whole: Any, reverse: bool) -> None:
    prefixed = whole.prefixed_db(b"p")
    expected = PREFIXES[b"p"][:: -1 if reverse else 1]
    for flags in ({"include_start": False}, {"include_stop": True}):
        assert keys(prefixed.iterator(reverse=reverse, **flags)) == expected


@pytest.mark.parametrize("bound", ["start", "stop"])
def test_a_prefix_goes_with_no_bounds_here_either(whole: Any, bound: str) -> None:
    with pytest.raises(TypeError, match="prefix"):
        whole.prefixed_db(b"p").iterator(prefix=b"", **{bound: b""})


def test_its_iterators_seek_within_it(whole: Any) -> None:
    iterator = whole.prefixed_db(b"p").iterator(include_value=False)
    iterator.seek(b"2")
    assert next(iterator) == b"2"
    iterator.seek(b"15")
    assert next(iterator) == b"2"
    iterator.seek(b"15")
    assert iterator.prev() == b"1"
    iterator.seek(b"\xff\xff\xff")
    assert next(iterator, None) is None
    assert iterator.prev() == b"\xff\xff"
    iterator.seek_to_start()
    assert next(iterator) == b""
    iterator.seek_to_stop()
    assert iterator.prev() == b"\xff\xff"


def test_nesting_adds_prefixes(whole: Any) -> None:
    inner = whole.prefixed_db(b"p").prefixed_db(b"\xff")
    assert inner.prefix == b"p\xff"
    assert inner.db is whole
    assert keys(inner) == PREFIXES[b"p\xff"]
    inner.put(b"key", b"value")
    assert whole.get(b"p\xffkey") == b"value"
    assert whole.prefixed_db(b"p").get(b"\xffkey") == b"value"
    assert keys(inner.prefixed_db(b"").prefixed_db(b"k")) == [b"ey"]
    with inner.write_batch() as batch:
        batch.delete(b"key")
    assert whole.get(b"p\xffkey") is None


def test_prefixes_apart_do_not_meet(db: Any) -> None:
    parts = {prefix: db.prefixed_db(prefix) for prefix in (b"a-", b"b-", b"b--", b"\xff\xff")}
    for prefix, part in parts.items():
        part.put(b"key", b"of " + prefix)
    assert parts[b"a-"].get(b"key") == b"of a-"
    assert keys(parts[b"b-"]) == [b"-key", b"key"]
    assert keys(parts[b"\xff\xff"]) == [b"key"]
    parts[b"b-"].delete(b"key")
    assert parts[b"b--"].get(b"key") == b"of b--"


def test_a_copy_is_another_view_of_the_same(whole: Any) -> None:
    prefixed = whole.prefixed_db(b"p")
    twin = copy.copy(prefixed)
    assert twin.db is whole
    assert twin.prefix == b"p"
    assert list(twin) == list(prefixed)


def test_it_goes_on_while_its_database_is_open(api: ModuleType, path: str) -> None:
    prefixed = api.DB(path, create_if_missing=True).prefixed_db(b"p")
    prefixed.put(b"key", b"value")
    assert list(prefixed) == [(b"key", b"value")]
    prefixed.db.close()
    with pytest.raises(RuntimeError, match="(?i)closed"):
        prefixed.get(b"key")
    assert prefixed.prefix == b"p"


PARTS = st.binary(max_size=2) | st.sampled_from([b"\xff", b"\xff\xff", b"\xfe\xff", b"p", b"p\xff"])


@examples(50)
@given(
    entries=st.dictionaries(PARTS.flatmap(lambda p: PARTS.map(lambda k: p + k)), PARTS),
    prefixes=st.lists(PARTS, max_size=2),
    inner=st.none() | PARTS,
)
def test_iterating_gives_what_begins_with_the_prefix(
    api: ModuleType,
    entries: dict[bytes, bytes],
    prefixes: list[bytes],
    inner: bytes | None,
) -> None:
    with tempfile.TemporaryDirectory() as at, api.DB(at, create_if_missing=True) as db:
        for key, value in entries.items():
            db.put(key, value)
        view = db
        for prefix in prefixes:
            view = view.prefixed_db(prefix)
        outer = b"".join(prefixes)
        expected = sorted(
            (key[len(outer) :], value)
            for key, value in entries.items()
            if key.startswith(outer + (inner or b""))
        )
        assert list(view.iterator(prefix=inner)) == expected
        assert list(view.snapshot().iterator(prefix=inner)) == expected
        for key, value in expected:
            assert view.get(key) == value
