"""A database as a mapping: what codecs make of keys and values, and what a dictionary would do."""

from __future__ import annotations

import collections
import json
import pickle
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
from lsm import mappings
from tests.effort import examples

ROOT = Path(__file__).parents[3]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[lsm.DB]:
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        yield db


class Number:
    """Numbers in the order of their eight bytes."""

    def encode(self, value: int) -> bytes:
        return value.to_bytes(8, "big")

    def decode(self, data: bytes) -> int:
        if len(data) != 8:
            raise ValueError(f"a number has 8 bytes, not {len(data)}")
        return int.from_bytes(data, "big")


def test_a_database_is_a_mutable_mapping_and_a_snapshot_a_mapping(db: lsm.DB) -> None:
    assert isinstance(lsm.mapping(db), MutableMapping)
    assert isinstance(lsm.mapping(db.prefixed_db(b"p")), MutableMapping)
    snapshot = lsm.mapping(db.snapshot())
    assert isinstance(snapshot, Mapping)
    assert not isinstance(snapshot, MutableMapping)
    assert not hasattr(snapshot, "__setitem__")
    for other in (None, {}, db.iterator(), lsm.mapping(db), "path"):
        with pytest.raises(TypeError, match="db is"):
            lsm.mapping(other)  # type: ignore[call-overload]


def test_raw_is_bytes(db: lsm.DB) -> None:
    raw = lsm.mapping(db)
    raw[b"a"] = bytearray(b"1")  # type: ignore[assignment]
    assert raw[b"a"] == db[b"a"] == b"1"
    for key in ("a", 1, None):
        with pytest.raises(TypeError, match=f"'raw'.*key {key!r}"):
            raw[key]  # type: ignore[index]
        with pytest.raises(TypeError, match=f"'raw'.*key {key!r}"):
            key in raw  # noqa: B015 - it raises


def test_text_is_utf8_in_the_order_of_code_points(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")
    texts = ["", "z", "é", "\uffff", "\U0001f600", "a\0b"]
    words.update({text: text[::-1] for text in texts})
    assert list(words) == sorted(texts)
    assert words["\U0001f600"] == "\U0001f600"
    assert db["é".encode()] == "é".encode()
    with pytest.raises(lsm.CodecError, match=r"key '\\ud800'"):
        words["\ud800"]
    with pytest.raises(lsm.CodecError, match=r"value of the key 'a'.*surrogates"):
        words["a"] = "\ud800"
    with pytest.raises(TypeError, match="value of the key 'a'.*str, not int"):
        words["a"] = 1  # type: ignore[assignment]
    assert "a" not in words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner),
    max_leaves=8,
)  # fmt: skip


@examples(60)
@given(value=JSON)
def test_json_comes_back(value: Any) -> None:
    with tempfile.TemporaryDirectory() as at, lsm.DB(at, create_if_missing=True) as db:
        found = lsm.mapping(db, codec="json")
        found["key"] = value
        assert found["key"] == value
        assert json.loads(db[b"key"]) == value


def test_json_is_canonical(db: lsm.DB) -> None:
    found = lsm.mapping(db, codec="json")
    found["a"] = {"b": [1, 2.5, None, True], "a": "é"}
    assert db[b"a"] == '{"a":"é","b":[1,2.5,null,true]}'.encode()
    for wrong in (float("nan"), float("inf"), {1, 2}, b"bytes", object()):
        with pytest.raises((TypeError, lsm.CodecError), match="'json'.*value of the key 'a'"):
            found["a"] = wrong
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(lsm.CodecError, match="value of the key 'a'.*[Cc]ircular"):
        found["a"] = cycle
    assert found["a"]["a"] == "é"


def test_what_cannot_be_decoded_names_its_key(db: lsm.DB) -> None:
    db[b"a"], db[b"\xff"] = b"{", b"1"
    found = lsm.mapping(db, codec="json")
    with pytest.raises(lsm.CodecError, match="'json'.*value of the key 'a' cannot be decoded"):
        found["a"]
    with pytest.raises(lsm.CodecError, match=r"key of the bytes b'\\xff' cannot be decoded"):
        list(found.keys())
    assert issubclass(lsm.CodecError, lsm.Error)
    assert issubclass(lsm.CodecError, ValueError)


def test_a_pair_of_codecs_is_for_keys_and_for_values(db: lsm.DB) -> None:
    squares = lsm.mapping(db, codec=(Number(), Number()))
    squares.update((number, number * number) for number in (300, 2, 70_000))
    assert list(squares.items()) == [(2, 4), (300, 90_000), (70_000, 4_900_000_000)]
    with pytest.raises(lsm.CodecError, match="Number and Number.*value of the key 7"):
        squares[7] = -1
    with pytest.raises(lsm.CodecError, match="key 'seven'.*to_bytes"):
        squares["seven"]  # type: ignore[index]
    db[b"short"] = b""
    with pytest.raises(lsm.CodecError, match="a number has 8 bytes, not 5"):
        list(squares)


class Wrong(Number):
    """A codec that makes no bytes."""

    def encode(self, value: int) -> Any:
        return value


def test_what_is_no_codec_is_refused(db: lsm.DB) -> None:
    with pytest.raises(ValueError, match="no codec 'pickle': choose 'raw', 'str', 'json'"):
        lsm.mapping(db, codec="pickle")  # type: ignore[call-overload]
    for codec in (None, pickle, (Number(),), (Number(), pickle), [Number(), Number()], 1):
        with pytest.raises(TypeError, match="codec is a name.*or a pair"):
            lsm.mapping(db, codec=codec)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="encode\\(\\) returns bytes, not int"):
        lsm.mapping(db, codec=(Wrong(), Number()))[1]


def test_messagepack_says_what_it_lacks(db: lsm.DB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(ImportError, match=r"needs msgpack.*pip install 'lsm-filters\[msgpack\]'"):
        lsm.mapping(db, codec="msgpack")


def test_messagepack_packs_values(db: lsm.DB, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a package of that shape, since the real one need not be installed."""
    fake = types.ModuleType("msgpack")
    fake.packb = lambda value, *, use_bin_type: b"\x00" + repr(value).encode()  # type: ignore[attr-defined]
    fake.unpackb = (  # type: ignore[attr-defined]
        lambda data, *, raw, strict_map_key: json.loads(data[1:])
    )
    monkeypatch.setitem(sys.modules, "msgpack", fake)
    packed = lsm.mapping(db, codec="msgpack")
    packed["a"] = [1, 2]
    assert packed["a"] == [1, 2]
    assert db[b"a"] == b"\0[1, 2]"


def test_real_messagepack_keeps_bytes_and_text_apart(db: lsm.DB) -> None:
    pytest.importorskip("msgpack")
    packed = lsm.mapping(db, codec="msgpack")
    packed["a"] = {"text": "é", "bytes": b"\xff", 1: [None, 2.5]}
    assert packed["a"] == {"text": "é", "bytes": b"\xff", 1: [None, 2.5]}


LOADED = """
import sys, tempfile, lsm
with tempfile.TemporaryDirectory() as at, lsm.DB(at, create_if_missing=True) as db:
    for codec in ("raw", "str", "json"):
        lsm.mapping(db, codec=codec)
print("pickle" in sys.modules)
"""


def test_no_codec_runs_what_it_finds(db: lsm.DB) -> None:
    db[b"a"] = pickle.dumps(collections.OrderedDict(a=1))
    with pytest.raises(lsm.CodecError):
        lsm.mapping(db, codec="json")["a"]
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert loaded.stdout.split() == ["False"]


def test_iterating_is_in_order_both_ways_and_lazy(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")
    words.update(b="2", c="3", a="1")
    assert list(words) == list(words.keys()) == ["a", "b", "c"]
    assert list(words.values()) == ["1", "2", "3"]
    assert list(words.items()) == [("a", "1"), ("b", "2"), ("c", "3")]
    assert list(reversed(words)) == list(reversed(words.keys())) == ["c", "b", "a"]
    assert list(reversed(words.values())) == ["3", "2", "1"]
    assert list(reversed(words.items())) == [("c", "3"), ("b", "2"), ("a", "1")]
    db[b"d"] = b"\xff"  # which no value of text has
    pairs = iter(words.items())
    assert [next(pairs) for _ in range(3)] == [("a", "1"), ("b", "2"), ("c", "3")]
    with pytest.raises(lsm.CodecError, match="key 'd'"):
        next(pairs)


def test_views_see_what_is_there_when_they_are_asked(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")
    names, values, pairs = words.keys(), words.values(), words.items()
    words["a"] = "1"
    assert (len(names), len(values), len(pairs)) == (1, 1, 1)
    assert "a" in names
    assert "1" in values
    assert ("a", "1") in pairs
    assert ("a", "2") not in pairs
    assert ("b", "1") not in pairs
    assert "2" not in values
    assert names & {"a", "b"} == {"a"}


def test_items_read_pairs_and_look_nothing_up(db: lsm.DB, monkeypatch: pytest.MonkeyPatch) -> None:
    words = lsm.mapping(db, codec="str")
    words.update((f"{number:03}", "v") for number in range(100))
    monkeypatch.setattr(mappings.ReadOnlyMapping, "__getitem__", None)
    assert len(list(words.items())) == len(list(words.values())) == 100


def test_a_mapping_counts_and_knows_whether_it_is_empty(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")
    assert len(words) == 0
    assert not words
    words["a"] = "1"
    assert len(words) == 1
    assert words
    del words["a"]
    assert not words


def test_what_is_absent_is_a_key_error_here(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")
    for use in (words.__getitem__, words.__delitem__, words.pop):
        with pytest.raises(KeyError) as caught:
            use("absent")
        assert caught.value.args == ("absent",)
    with pytest.raises(KeyError, match="empty"):
        words.popitem()
    assert words.pop("absent", "default") == "default"
    assert words.get("absent") is None
    assert words.setdefault("a", "1") == words.setdefault("a", "2") == "1"
    assert words.pop("a") == "1"
    assert list(words) == []


def test_popitem_takes_the_first(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")
    words.update(b="2", a="1")
    assert words.popitem() == ("a", "1")
    assert list(words) == ["b"]


def test_equality_is_that_of_mappings(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")
    words.update(a="1", b="2")
    assert words == {"b": "2", "a": "1"}
    assert words != {"a": "1"}
    assert words == lsm.mapping(db.snapshot(), codec="str")
    with pytest.raises(TypeError):
        hash(words)


class Keyed:
    """What ``dict.update()`` takes without being a mapping."""

    def keys(self) -> list[str]:
        return ["k"]

    def __getitem__(self, key: str) -> str:
        return key * 2


def test_update_takes_what_a_dictionary_takes(db: lsm.DB) -> None:
    words, model = lsm.mapping(db, codec="str"), dict[str, str]()
    sources: list[Any] = [{"a": "1"}, [("b", "2"), ("b", "3")], iter([["c", "4"]]), (), Keyed()]
    for source in sources[:2] + sources[3:]:
        words.update(source)
        model.update(source)
    words.update(sources[2], d="5")
    model |= {"c": "4", "d": "5"}
    words.update(words)
    assert dict(words.items()) == model


def test_update_writes_some_at_a_time(db: lsm.DB, monkeypatch: pytest.MonkeyPatch) -> None:
    words = lsm.mapping(db, codec="str")
    monkeypatch.setattr(mappings, "_BATCH_OPERATIONS", 10)

    def pairs() -> Iterator[tuple[str, Any]]:
        for number in range(25):
            yield f"{number:02}", "v"
        yield "25", None

    with pytest.raises(TypeError, match="key '25'"):
        words.update(pairs())
    assert list(words) == [f"{number:02}" for number in range(20)]
    monkeypatch.setattr(mappings, "_BATCH_BYTES", 1)
    with pytest.raises(TypeError, match="key '25'"):
        words.update(pairs())
    assert len(words) == 25


def test_what_update_is_given_may_use_the_database(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")

    def pairs() -> Iterator[tuple[str, str]]:
        for number in range(3):
            db.flush()  # which nobody may call in the middle of an operation of the engine
            yield str(number), str(len(words))

    words.update(pairs())
    assert list(words) == ["0", "1", "2"]


def test_clear_deletes_what_is_there(db: lsm.DB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mappings, "_BATCH_OPERATIONS", 7)
    db[b"outside"] = b"stays"
    part = lsm.mapping(db.prefixed_db(b"p:"), codec="str")
    part.update((f"{number:02}", "v") for number in range(30))
    part.clear()
    assert list(part) == []
    part.clear()
    assert list(db) == [(b"outside", b"stays")]


def test_a_mapping_shows_its_codec_and_its_database(db: lsm.DB) -> None:
    assert "DatabaseMapping by 'json' of <lsm.DB" in repr(lsm.mapping(db, codec="json"))
    with pytest.raises(TypeError, match="neither pickled nor copied"):
        pickle.dumps(lsm.mapping(db))


def test_a_closed_database_says_so(db: lsm.DB) -> None:
    words = lsm.mapping(db, codec="str")
    db.close()
    for use in (lambda: words["a"], lambda: len(words), lambda: list(words.items()), words.clear):
        with pytest.raises(RuntimeError, match="closed"):
            use()


TEXT = st.text("abé", max_size=2)
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "del", "pop", "default", "popitem", "clear"]), TEXT, TEXT)
    | st.tuples(st.just("update"), st.dictionaries(TEXT, TEXT, max_size=4), st.none()),
    max_size=25,
)


@examples(60)
@given(steps=STEPS)
def test_a_mapping_is_a_sorted_dictionary(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as at, lsm.DB(at, create_if_missing=True) as db:
        words, model = lsm.mapping(db.prefixed_db(b"\xff"), codec="str"), dict[str, str]()
        for step, key, value in steps:
            if step == "set":
                words[key] = model[key] = value
            elif step == "del":
                if key in model:
                    del words[key], model[key]
                else:
                    with pytest.raises(KeyError):
                        del words[key]
            elif step == "pop":
                assert words.pop(key, None) == model.pop(key, None)
            elif step == "default":
                assert words.setdefault(key, value) == model.setdefault(key, value)
            elif step == "popitem":
                if model:
                    first = min(model)
                    assert words.popitem() == (first, model.pop(first))
            elif step == "clear":
                words.clear()
                model.clear()
            else:
                words.update(key)
                model.update(key)
            assert words == model
        assert list(words.items()) == sorted(model.items())
        assert len(words) == len(model)
