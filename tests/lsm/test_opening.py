"""What opening writes: nothing where all is as it was left, and else a new manifest and log."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest

import lsm
import policies
from lsm import opening
from lsm.disk import filenames
from lsm.disk.filenames import Kind
from lsm.storage import Lock
from policies import FilterPolicy
from policies.registry import _REGISTRY
from tests.lsm.history import PATH
from tests.lsm.simulated import MUTATIONS, SimulatedStorage


@pytest.fixture
def storage() -> SimulatedStorage:
    """One with a database that has a table and an empty log."""
    storage = SimulatedStorage()
    with lsm.DB(PATH, create_if_missing=True, storage=storage) as db:
        db.put(b"key", b"value")
        db.flush()
    lsm.DB(PATH, storage=storage).close()
    return storage


class Beaten(SimulatedStorage):
    """One in which somebody else comes first, before the lock is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Callable[[], None] | None = None

    def lock(self, path: str, *, shared: bool = False) -> Lock:
        first, self.first = self.first, None
        if first is not None:
            first()
        return super().lock(path, shared=shared)


def in_a_thread(action: Callable[[], None]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def files(storage: SimulatedStorage) -> dict[str, bytes]:
    return {name: storage.read(f"{PATH}/{name}") for name in storage.list(PATH)}


def numbers(storage: SimulatedStorage, kind: Kind) -> list[int]:
    return sorted(filenames.database_files(storage.list(PATH))[kind].values())


def changes(storage: SimulatedStorage, action: Callable[[], object]) -> list[str]:
    """What an action does that changes something."""
    before = len(storage.operations)
    action()
    return [name for name, _ in storage.operations[before:] if name in MUTATIONS]


def test_opening_and_closing_what_is_as_it_was_left_changes_nothing(
    storage: SimulatedStorage,
) -> None:
    before = files(storage)
    for _ in range(3):
        done = changes(storage, lambda: lsm.DB(PATH, storage=storage).close())
        assert done == ["create"]  # of the empty log, which is opened to be written
        assert files(storage) == before


def test_a_new_database_is_as_it_was_left_too() -> None:
    storage = SimulatedStorage()
    lsm.DB(PATH, create_if_missing=True, storage=storage).close()
    before = files(storage)
    lsm.DB(PATH, storage=storage).close()
    assert files(storage) == before


def test_the_first_record_of_a_log_waits_for_its_name_and_no_other_does(
    storage: SimulatedStorage,
) -> None:
    with lsm.DB(PATH, storage=storage) as db:
        assert changes(storage, lambda: db.put(b"a", b"b")) == ["sync_directory", "append"]
        assert changes(storage, lambda: db.put(b"a", b"c")) == ["append"]


def test_an_empty_log_is_written_on(storage: SimulatedStorage) -> None:
    logs = numbers(storage, Kind.LOG)
    with lsm.DB(PATH, storage=storage) as db:
        db.put(b"other", b"value", sync=True)
        assert numbers(storage, Kind.LOG) == logs
    for after in (storage.kill(), storage.crash(), storage.crash(random.Random(1))):
        with lsm.DB(PATH, storage=after) as db:
            assert list(db) == [(b"key", b"value"), (b"other", b"value")]
            assert numbers(after, Kind.LOG) > logs


@pytest.mark.parametrize(
    "left",
    ["000090.log", "000091.ldb", "000092.dbtmp", "MANIFEST-000001", "000001.log"],
)
def test_what_is_obsolete_is_removed_behind_a_new_manifest(
    left: str, storage: SimulatedStorage
) -> None:
    (before,) = numbers(storage, Kind.MANIFEST)
    storage.create(f"{PATH}/{left}").close()
    done = changes(storage, lambda: lsm.DB(PATH, storage=storage).close())
    assert left not in storage.list(PATH)
    (after,) = numbers(storage, Kind.MANIFEST)
    assert after > before
    assert "remove" not in done[: len(done) - done[::-1].index("sync_directory")]


@pytest.mark.parametrize("data", [b"\0", b"\0" * 40000, b"torn"])
def test_a_log_that_has_any_bytes_is_not_written_on(data: bytes, storage: SimulatedStorage) -> None:
    (number,) = numbers(storage, Kind.LOG)
    file = storage.create(f"{PATH}/{filenames.log_name(number)}")
    file.append(data)
    file.close()
    with lsm.DB(PATH, storage=storage) as db:
        assert numbers(storage, Kind.LOG) != [number]
        db.put(b"a", b"b")
    with lsm.DB(PATH, storage=storage) as db:
        assert list(db) == [(b"a", b"b"), (b"key", b"value")]


def test_a_manifest_that_tells_of_much_that_is_gone_is_begun_anew(
    storage: SimulatedStorage,
) -> None:
    with lsm.DB(PATH, storage=storage) as db:
        for number in range(60):
            db.put(b"key", b"%d" % number)
            db.flush()
        db.compact_range()
    (before,) = numbers(storage, Kind.MANIFEST)
    lsm.DB(PATH, storage=storage).close()
    (after,) = numbers(storage, Kind.MANIFEST)
    assert after > before
    lsm.DB(PATH, storage=storage).close()
    assert numbers(storage, Kind.MANIFEST) == [after]


def test_what_others_did_before_the_lock_was_taken_is_found() -> None:
    storage = Beaten()
    lsm.DB(PATH, create_if_missing=True, storage=storage).close()

    def others() -> None:
        with lsm.DB(PATH, storage=storage) as db:
            db.put(b"key", b"value")
            db.flush()
            db.put(b"other", b"value")

    storage.first = partial(in_a_thread, others)
    with lsm.DB(PATH, storage=storage) as db:
        assert list(db) == [(b"key", b"value"), (b"other", b"value")]


def test_kept_options_that_are_written_otherwise_are_written_anew(
    storage: SimulatedStorage,
) -> None:
    path = f"{PATH}/lsm-options.toml"
    kept = storage.read(path)
    for _ in range(2):
        file = storage.create(path)
        file.append(kept.replace(b"block_size = 4096", b'block_size = "4 KiB"'))
        file.close()
        lsm.DB(PATH, storage=storage).close()
        assert storage.read(path) == kept


def test_kept_options_name_a_policy_by_what_its_name_means_now(
    storage: SimulatedStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_REGISTRY, "_registered", {})

    def named(tag: bytes) -> type[FilterPolicy]:
        class Kept(FilterPolicy):
            name = "acme.kept"

            def create_filter(self, keys: Sequence[bytes]) -> bytes:
                return tag

            def key_may_match(self, key: bytes, filter: bytes) -> bool:
                return True

        return policies.register(Kept, replace=True)

    for tag in (b"one", b"two"):
        cls = named(tag)
        if tag == b"one":
            lsm.DB(PATH, storage=storage, filter_policy=cls()).close()
        for _ in range(2):
            options = opening.options_of(storage, PATH, None, {})
            assert {type(policy) for policy in options.filters} == {cls}


def test_a_budget_is_kept_with_the_database(storage: SimulatedStorage) -> None:
    lsm.DB(PATH, storage=storage, filter_budget="8 bits/key", filter_families=["xor"]).close()
    kept = opening.options_of(storage, PATH, None, {}).filters
    assert kept == policies.LevelPolicies.by_budget("8 bits/key", families=["xor"])
    before = files(storage)
    with lsm.DB(PATH, storage=storage) as db:
        assert db.get(b"key") == b"value"
    assert files(storage)["lsm-options.toml"] == before["lsm-options.toml"]
    lsm.DB(PATH, storage=storage, filter_policy=None).close()
    assert opening.options_of(storage, PATH, None, {}).filters.rule is None


def test_repairing_takes_a_budget_and_refuses_what_goes_with_one_alone(
    storage: SimulatedStorage,
) -> None:
    lsm.repair_db(PATH, storage=storage, filter_budget="8 bits/key", filter_heat=False)
    with lsm.DB(PATH, storage=storage) as db:
        assert db.get(b"key") == b"value"
    with pytest.raises(ValueError, match="filter_heat goes with a budget"):
        lsm.repair_db(PATH, storage=storage, filter_heat=False)
