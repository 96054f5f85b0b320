"""Plug-ins that lie, panic or say nonsense: they may cost a read, and never an answer."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import lsm
import policies
from filters import kernels
from lsm import loaded_filter
from lsm.disk import filter_blocks
from lsm.options import LEVELS
from policies import BuildContext, FilterPolicy, LevelPolicies, claims
from tests.lsm import odd_policies
from tests.lsm.odd_policies import ANSWERS, RAISED, RATES, FalsyPolicy, OddRatePolicy, RaisingPolicy
from tests.stack import with_stack_for

KEYS = [b"key%03d" % number for number in range(0, 120, 2)]
ABSENT = [b"key%03d" % number for number in range(1, 119, 2)]
INTERRUPTIONS = ("exit", "interrupt", "generator exit")
PASSING = ("no memory", "no stack")
LASTING = sorted(set(RAISED) - set(INTERRUPTIONS) - set(PASSING))


@pytest.fixture(autouse=True)
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Odd policies can be asked for by their names, and are complained of in each test anew."""
    monkeypatch.setattr(claims, "_told", set())
    with odd_policies.registered():
        yield


def opened(path: Path, policy: FilterPolicy, **options: Any) -> lsm.DB:
    return lsm.DB(path, create_if_missing=True, filter_policy=policy, block_size=256, **options)


def write(db: lsm.DB, value: bytes) -> None:
    """Put all keys, and flush."""
    with db.write_batch() as batch:
        for key in KEYS:
            batch.put(key, value)
    db.flush()


def check(db: lsm.DB, value: bytes) -> None:
    """Every way of reading finds each key, and nothing else; looking into the database works."""
    assert [db.get(key) for key in KEYS] == [value] * len(KEYS)
    assert [db.get(key) for key in ABSENT] == [None] * len(ABSENT)
    assert db.get_many(KEYS + ABSENT) == [value] * len(KEYS) + [None] * len(ABSENT)
    assert list(db) == [(key, value) for key in KEYS]
    assert all(db.explain(key).found for key in KEYS)
    assert not any(db.explain(key).found for key in ABSENT)
    assert all(map(db.might_contain, KEYS))
    check_inspection(db)


def check_inspection(db: lsm.DB) -> None:
    assert db.stats().background_error is None
    assert str(db.stats())
    assert db.stats().as_dict()
    assert len(db.filters()) == LEVELS
    for name in ("stats", "sstables", "approximate-memory-usage"):
        assert db.get_property(f"leveldb.{name}".encode()) is not None


def live(path: Path, policy: FilterPolicy, **options: Any) -> None:
    """A database's life: flushes, reads, a compaction, and the same opened again."""
    with opened(path, policy, **options) as db:
        write(db, b"old" * 20)
        check(db, b"old" * 20)
        write(db, b"new" * 20)
        check(db, b"new" * 20)
        db.compact_range()
        check(db, b"new" * 20)
        db.put(KEYS[0], b"new" * 20)
    with opened(path, policy, **options) as db:
        check(db, b"new" * 20)
        db.compact_range()
        check(db, b"new" * 20)


def states(db: lsm.DB) -> list[str]:
    return [table.state for level in db.filters() for table in level.tables]


def failed_lookups(db: lsm.DB) -> int:
    return sum(each.counters.failed for each in db.stats().filters)


# -- What it answers -----------------------------------------------------------------------


@pytest.mark.parametrize("what", ANSWERS)
@pytest.mark.parametrize("at_once", [False, True])
def test_what_is_false_and_not_false_hides_no_key(
    what: str, at_once: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live(tmp_path / "db", FalsyPolicy(what, at_once))
    refused = f"answered a key with {type(ANSWERS[what]).__name__}, not with True or False"
    assert (refused in caplog.text) == at_once


def test_a_filter_of_another_version_of_the_plug_in_is_asked_as_carefully(tmp_path: Path) -> None:
    """It was verified by the old one, and nobody knows its keys any more."""
    path = tmp_path / "db"
    with opened(path, odd_policies.SetPolicy()) as db:
        write(db, b"v")
        assert states(db) == ["built"]

    class Newer(odd_policies.SetPolicy):
        def open(self, filter: bytes) -> Any:
            return odd_policies.FalsyReader(None)

    policies.register(Newer, replace=True)
    with opened(path, Newer()) as db:
        assert states(db) == ["built"]
        check(db, b"v")


class ForgetsItsWidthPolicy(FilterPolicy):
    """Reads by a parameter that is not in the bytes, so that another instance hides keys."""

    name: ClassVar[str] = "test.forgets-its-width"

    def __init__(self, width: int = 8):
        self.width = width

    def params(self) -> dict[str, Any]:
        return {"width": self.width}

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"|".join(key[: self.width] for key in keys)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return key[: self.width] in filter.split(b"|")


def test_a_filter_is_verified_by_the_instance_that_lookups_ask(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policies.register(ForgetsItsWidthPolicy)
    try:
        live(tmp_path / "db", ForgetsItsWidthPolicy(width=5))
    finally:
        odd_policies.unregister(ForgetsItsWidthPolicy)
    assert "misses 60 of its 60 keys" in caplog.text


# -- In windows ----------------------------------------------------------------------------


class OwnWindowsPolicy(odd_policies.SetPolicy):
    """Says it has windows, and puts bytes there that LevelDB does not read."""

    name: ClassVar[str] = "test.own-windows"
    layouts: ClassVar[frozenset[str]] = frozenset({"table", "block"})

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return super().create_filter(keys) + b"\x06"  # which to LevelDB is a number of probes

    def open(self, filter: bytes) -> Any:
        return super().open(filter[:-1])


class LevelDBsWindowsPolicy(policies.LevelDBPolicy):
    """LevelDB's filters under another name."""

    name: ClassVar[str] = "test.leveldbs-windows"


@pytest.mark.parametrize(
    ("cls", "state"), [(OwnWindowsPolicy, "failed"), (LevelDBsWindowsPolicy, "built")]
)
def test_windows_are_verified_by_who_reads_them(
    cls: type[FilterPolicy], state: str, tmp_path: Path
) -> None:
    policies.register(cls)
    try:
        with opened(tmp_path / "db", cls(), filter_layout="block") as db:
            write(db, b"value" * 20)
            assert states(db) == [state]
            assert db.get(ABSENT[0]) is None
        live(tmp_path / "lives", cls(), filter_layout="block")
    finally:
        odd_policies.unregister(cls)


@pytest.mark.parametrize("answer", [None, 0, []])
def test_a_windows_reader_hides_no_key_either(
    answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "db", policies.LevelDBPolicy(), filter_layout="block") as db:
        write(db, b"value" * 20)

        class Odd(policies.LevelDBPolicy):
            def open(self, filter: Any) -> Any:
                return odd_policies.FalsyReader(answer)

        monkeypatch.setattr(filter_blocks, "WINDOWS_POLICY", Odd())
        check(db, b"value" * 20)


def test_windows_of_more_bytes_than_an_offset_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_blocks, "_MOST_WINDOW_BYTES", 100)
    writer = filter_blocks.WindowFilters(policies.LevelDBPolicy(), BuildContext())
    for block in range(3):
        keys = [b"%d %d" % (block, each) for each in range(50)]
        writer.add_blocks(keys, [(len(keys), 2048 * (block + 1))])
    written = writer.finish()
    assert (written.state, written.parts) == ("failed", ())
    assert "more than 100 bytes" in written.reason


# -- What it raises ------------------------------------------------------------------------


@pytest.mark.parametrize("what", RAISED)
@pytest.mark.parametrize(
    "where", ["new_builder", "add", "finish", "verifying open", "verifying probe"]
)
def test_nothing_that_is_raised_while_building_stops_the_engine(
    where: str, what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An interruption neither: in the thread that flushes and compacts nobody is interrupted."""
    with opened(tmp_path / "db", RaisingPolicy(where, what)) as db:
        for _ in range(2):
            write(db, b"v")
            check(db, b"v")
        db.compact_range()
        check(db, b"v")
        assert states(db) == ["failed"]
    assert f"{RAISED[what].__name__}: out of order" in caplog.text


@pytest.mark.parametrize("what", LASTING)
@pytest.mark.parametrize("where", ["open", "probe", "expected_fpr"])
def test_nothing_that_is_raised_while_reading_reaches_the_reader(
    where: str, what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live(tmp_path / "db", RaisingPolicy(where, what))
    assert f"{RAISED[what].__name__}: out of order" in caplog.text


READS: dict[str, Callable[[lsm.DB], object]] = {
    "get": lambda db: db.get(ABSENT[0]),
    "get_many": lambda db: db.get_many(ABSENT),
    "explain": lambda db: db.explain(ABSENT[0]),
    "might_contain": lambda db: db.might_contain(ABSENT[0]),
}


@pytest.mark.parametrize("what", INTERRUPTIONS)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("where", ["open", "probe"])
def test_who_reads_can_be_interrupted(where: str, read: str, what: str, tmp_path: Path) -> None:
    with opened(tmp_path / "db", RaisingPolicy(where, what)) as db:
        write(db, b"v")
        for _ in range(2):
            with pytest.raises(RAISED[what]):
                READS[read](db)
        assert list(db) == [(key, b"v") for key in KEYS]
        write(db, b"new")


@pytest.mark.parametrize("what", INTERRUPTIONS)
@pytest.mark.parametrize("look", ["stats", "filters"])
def test_who_looks_into_the_database_can_be_interrupted(
    look: str, what: str, tmp_path: Path
) -> None:
    with opened(tmp_path / "db", RaisingPolicy("expected_fpr", what)) as db:
        write(db, b"v")
        with pytest.raises(RAISED[what]):
            getattr(db, look)()
        assert db.get(KEYS[0]) == b"v"


# -- What passes ---------------------------------------------------------------------------


@pytest.mark.parametrize("what", PASSING)
def test_a_probe_that_fails_for_the_moment_costs_this_read_alone(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "db", odd_policies.SetPolicy()) as db:
        write(db, b"v")
        assert db.get(ABSENT[0]) is None

        def exhausted(_self: object, _key: bytes) -> bool:
            raise RAISED[what]

        with monkeypatch.context() as patch:
            patch.setattr(odd_policies.SetReader, "might_contain", exhausted)
            check(db, b"v")
        assert failed_lookups(db) > 0
        assert states(db) == ["built"]
        before = failed_lookups(db)
        check(db, b"v")
        assert failed_lookups(db) == before


class DeepReader(odd_policies.SetReader):
    """Takes some stack for an answer."""

    def might_contain(self, key: bytes, depth: int = 40) -> bool:
        return self.might_contain(key, depth - 1) if depth else super().might_contain(key)


class DeepPolicy(odd_policies.SetPolicy):
    name: ClassVar[str] = "test.deep"

    def open(self, filter: bytes) -> Any:
        return DeepReader(filter)


@pytest.mark.parametrize("cold", [False, True], ids=["probing", "loading"])
def test_a_caller_who_is_short_of_stack_disables_no_filter(
    cold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever runs out where: a lookup answers rightly or not at all, and the filter stays."""
    monkeypatch.setattr(loaded_filter, "PATIENCE", 1)
    policies.register(DeepPolicy)
    try:
        with opened(tmp_path / "db", DeepPolicy()) as db:
            write(db, b"v")
            db.get(ABSENT[0])
            (placed,) = (each for level in db.filters() for each in level.tables)
            answered = 0
            for frames in range(1, 120):
                if cold:
                    for table in db._store.view.version.tables():  # type: ignore[union-attr]
                        table.file.opened.filter = None
                try:
                    assert with_stack_for(frames, lambda: db.get(KEYS[7])) == b"v"
                    answered += 1
                except RecursionError:
                    assert not answered, "once there is stack for the rest, it is enough"
            assert placed.state == "built"
            for key in KEYS:  # the first may find a filter that could not be loaded
                assert db.get(key) == b"v"
            assert states(db) == ["built"]
            assert failed_lookups(db) > 0
            before = db.stats().filters[0].counters.skipped
            assert db.get_many(ABSENT) == [None] * len(ABSENT)
            assert db.stats().filters[0].counters.skipped == before + len(ABSENT)
    finally:
        odd_policies.unregister(DeepPolicy)


@pytest.mark.parametrize("what", PASSING)
def test_a_filter_that_cannot_be_loaded_for_the_moment_is_loaded_later(
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(loaded_filter, "PATIENCE", 10)
    path, loads = tmp_path / "db", 0
    with opened(path, odd_policies.SetPolicy()) as db:
        write(db, b"v")

    def exhausted(_self: object, _filter: bytes) -> Any:
        nonlocal loads
        loads += 1
        raise RAISED[what]

    with opened(path, odd_policies.SetPolicy()) as db:
        with monkeypatch.context() as patch:
            patch.setattr(odd_policies.SetPolicy, "open", exhausted)
            for key in KEYS[:20]:
                assert db.get(key) == b"v"
            assert states(db) == ["failed"]
            assert loads == 3
            assert len(caplog.records) == 3
        for key in KEYS[:10]:
            assert db.get(key) == b"v"
        assert db.get(ABSENT[0]) is None
        assert states(db) == ["built"]


# -- What it says of itself ----------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_a_rate_that_is_none_is_shown_as_unknown(
    rate: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path / "db", OddRatePolicy(rate)) as db:
        write(db, b"v")
        write(db, b"v")
        for _ in range(3):
            check(db, b"v")
            assert {t.expected_fpr for level in db.filters() for t in level.tables} == {None}
            assert {level.expected_fpr for level in db.stats().levels} == {None}
    assert len([each for each in caplog.records if "expected_fpr" in each.getMessage()]) == 1


class MoodyPolicy(odd_policies.SetPolicy):
    """Says what it is called and asked for as long as it likes to."""

    name: ClassVar[str] = "test.moody"
    mood: ClassVar[BaseException | None] = None

    def params(self) -> Any:
        if self.mood is not None:
            raise self.mood
        return {}


@pytest.fixture
def moody() -> Iterator[type[MoodyPolicy]]:
    policies.register(MoodyPolicy)
    yield MoodyPolicy
    MoodyPolicy.mood = None
    odd_policies.unregister(MoodyPolicy)


@pytest.mark.parametrize("what", LASTING)
def test_parameters_that_are_not_told_are_shown_as_unknown(
    what: str, moody: type[MoodyPolicy], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path / "db", moody()) as db:
        write(db, b"v")
        assert {(level.configured, str(level.params)) for level in db.filters()} == {
            ("test.moody", "{}")
        }
        moody.mood = RAISED[what]("not today")
        for _ in range(2):
            check(db, b"v")
            assert {(level.configured, level.params) for level in db.filters()} == {(None, None)}
            assert not any(level.drifted for level in db.filters())
        warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
        assert len(warnings) == 1
        assert "not today" in warnings[0].getMessage()
        moody.mood = None


@pytest.mark.parametrize("what", RAISED)
@pytest.mark.parametrize("moment", range(3))
def test_a_table_is_labelled_with_what_was_told_once(
    moment: int, what: str, moody: type[MoodyPolicy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or has no filter: at whichever time of asking the parameters are refused."""
    if what in INTERRUPTIONS:
        monkeypatch.setattr("policies.verified.is_attended", lambda: False)
    asked = 0

    def params(_self: object) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        if asked == moment:
            raise RAISED[what]("not now")
        return {}

    monkeypatch.setattr(moody, "params", params)
    plan = filter_blocks.FilterPlan(
        level=1,
        policy=moody(),
        layout="table",
        reason="flush",
        none_below=lambda _first, _last: True,
    )
    writer = plan.writer()
    writer.add_blocks(KEYS, [(len(KEYS), 4096)])
    written = writer.finish()
    assert asked == 1
    if moment == 1:
        assert (written.state, written.parts, written.identity) == ("failed", (), None)
        assert "not now" in written.reason
    else:
        assert written.identity is not None
        assert written.identity.name == "test.moody"
        assert policies.describe_block(b"".join(written.parts)).policy == "test.moody"


@pytest.mark.parametrize("what", RAISED)
@pytest.mark.parametrize("moment", range(5))
def test_a_flush_goes_on_at_whichever_time_of_asking_parameters_are_refused(
    moment: int,
    what: str,
    moody: type[MoodyPolicy],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened(tmp_path / "db", moody()) as db:
        asked = 0

        def params(_self: object) -> dict[str, Any]:
            nonlocal asked
            asked += 1
            if asked == moment:
                raise RAISED[what]("not now")
            return {}

        with monkeypatch.context() as patch:
            patch.setattr(moody, "params", params)
            write(db, b"v")
        check(db, b"v")
        write(db, b"new")
        db.compact_range()
        check(db, b"new")


@pytest.mark.parametrize("what", LASTING)
def test_opening_a_database_names_the_plug_in_that_fails(
    what: str, moody: type[MoodyPolicy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = moody()
    moody.mood = RAISED[what]("not today")
    with pytest.raises(policies.PluginError, match="MoodyPolicy .*not today"):
        opened(tmp_path / "db", policy)
    moody.mood = None

    def refuse(_self: object, _seed: int) -> Any:
        raise RAISED[what]("no seed")

    monkeypatch.setattr(moody, "with_seed", refuse)
    with pytest.raises(policies.PluginError, match=r"MoodyPolicy raised in with_seed\(\).*no seed"):
        opened(tmp_path / "db", policy)


# -- Its C door ----------------------------------------------------------------------------


class DoorReader(odd_policies.SetReader):
    """Answers well in Python, and through the door as another filter."""

    def __init__(self, filter: bytes, offer: Callable[[], Any]):
        super().__init__(filter)
        self._offer = offer

    def __lsm_probe__(self) -> Any:
        return self._offer()


def doors() -> dict[str, tuple[Callable[[Sequence[bytes]], Any], str]]:
    """What a door may lead to, and what is said of it."""
    native = kernels.load("native")
    return {
        "its keys": (lambda keys: native.BlockedBloomFilter.build(keys).__lsm_probe__(), ""),
        "LevelDB's digests": (
            lambda keys: native.LevelDBBloomFilter.build(keys).__lsm_probe__(),
            "",
        ),
        "other keys": (
            lambda keys: native.BlockedBloomFilter.build([b"other"]).__lsm_probe__(),
            r"misses \d+ of its 60 keys when asked by probe\(\) of its capsule",
        ),
        "no capsule": (lambda keys: 17, "raised while its filter was verified"),
        "a capsule of another name": (
            lambda keys: sys.modules["datetime"].datetime_CAPI,
            "raised while its filter was verified.*incorrect name",
        ),
    }


@pytest.mark.skipif("native" not in kernels.available(), reason="capsules are the native kernel's")
@pytest.mark.parametrize(
    "door",
    ["its keys", "LevelDB's digests", "other keys", "no capsule", "a capsule of another name"],
)
def test_a_capsule_is_verified_as_it_will_be_asked(
    door: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offer, complaint = doors()[door]

    class DoorPolicy(odd_policies.SetPolicy):
        name: ClassVar[str] = "test.door"

        def open(self, filter: bytes) -> Any:
            return DoorReader(filter, lambda: offer(KEYS))

    policies.register(DoorPolicy)
    try:
        with opened(tmp_path / "db", DoorPolicy()) as db:
            write(db, b"v")
            check(db, b"v")
            assert states(db) == ["failed" if complaint else "built"]
    finally:
        odd_policies.unregister(DoorPolicy)
    assert re.search(complaint, caplog.text)


def test_levels_with_different_plug_ins_go_wrong_independently(tmp_path: Path) -> None:
    chosen: list[FilterPolicy] = [
        RaisingPolicy("finish", "panic"),
        RaisingPolicy("probe", "cancelled"),
        FalsyPolicy("None"),
        OddRatePolicy("nan"),
        RaisingPolicy("open", "panic"),
        odd_policies.SetPolicy(),
        RaisingPolicy("add", "exit"),
    ]
    levels = LevelPolicies(tuple(policies.config.Choice(each) for each in chosen))
    live(tmp_path / "db", levels)  # type: ignore[arg-type]
