"""The simulated file system: what it keeps of a crash, and that it fails as it is told."""

from __future__ import annotations

import errno
import random
import threading
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.errors import IOError, LockedError
from lsm.storage import BUFFER_BYTES, WritableFile
from tests.effort import examples
from tests.lsm.simulated import MUTATIONS, PowerLost, SimulatedStorage

NAMES = "abc"


def contents(storage: SimulatedStorage, directory: str = "/db") -> dict[str, bytes]:
    return {name: storage.read(f"{directory}/{name}") for name in storage.list(directory)}


def made(**files: bytes) -> SimulatedStorage:
    """A storage with these files in its directory /db, all of them durable."""
    storage = SimulatedStorage()
    storage.make_directory("/db")
    for name, data in files.items():
        put(storage, name, data)
    storage.sync_directory("/db")
    return storage


def put(storage: SimulatedStorage, name: str, data: bytes, *, sync: bool = True) -> WritableFile:
    """A new log with this content; whether its name survives is another question."""
    file = storage.create(f"/db/{name}", small_appends=True)
    file.append(data)
    if sync:
        file.sync()
    return file


def crashes(storage: SimulatedStorage, **how: Any) -> list[dict[str, bytes]]:
    """What many losses of power leave, each time something else."""
    return [contents(storage.crash(random.Random(seed), **how)) for seed in range(300)]


class TestCrash:
    def test_synced_bytes_survive_and_others_do_not(self) -> None:
        storage = made(a=b"")
        file = put(storage, "a", b"synced")
        file.append(b", not synced")
        assert storage.read("/db/a") == b"synced, not synced"
        assert contents(storage.crash()) == {"a": b"synced"}

    def test_a_file_in_a_directory_that_was_not_synced_is_lost(self) -> None:
        storage = made()
        put(storage, "a", b"synced")
        assert contents(storage.crash()) == {}
        storage.sync_directory("/db")
        assert contents(storage.crash()) == {"a": b"synced"}

    def test_the_name_of_a_file_survives_without_its_bytes(self) -> None:
        storage = made()
        put(storage, "a", b"not synced", sync=False)
        storage.sync_directory("/db")
        assert contents(storage.crash()) == {"a": b""}

    def test_what_is_renamed_and_removed_comes_back(self) -> None:
        storage = made(a=b"1", b=b"2", c=b"3")
        storage.rename("/db/a", "/db/b")
        storage.remove("/db/c")
        assert contents(storage) == {"b": b"1"}
        assert contents(storage.crash()) == {"a": b"1", "b": b"2", "c": b"3"}
        storage.sync_directory("/db")
        assert contents(storage.crash()) == {"b": b"1"}

    def test_an_emptied_or_truncated_file_comes_back_whole(self) -> None:
        storage = made(a=b"old")
        file = storage.create("/db/a", small_appends=True)
        file.append(b"new")
        file.truncate(1)
        assert contents(storage) == {"a": b"n"}
        assert contents(storage.crash()) == {"a": b"old"}
        file.sync()
        assert contents(storage.crash()) == {"a": b"n"}

    def test_any_part_of_an_unsynced_tail_may_survive(self) -> None:
        storage = made(a=b"")
        put(storage, "a", b"ab").append(b"cdef")
        left = {names["a"] for names in crashes(storage)}
        assert left == {b"ab", b"abc", b"abcd", b"abcde", b"abcdef"}

    @pytest.mark.parametrize("tails", ["zero", "garbage"])
    def test_the_end_of_an_unsynced_tail_may_be_wrong(self, tails: str) -> None:
        storage = made(a=b"")
        put(storage, "a", b"ab").append(b"cdef")
        left = {names["a"] for names in crashes(storage, tails=tails)}
        assert all(data.startswith(b"ab") and len(data) <= 6 for data in left)
        assert {b"ab", b"abcdef"} <= left
        if tails == "zero":
            assert left == {
                b"abcdef"[:right] + bytes(zeros)
                for right in range(2, 7)
                for zeros in range(7 - right)
            }
        else:
            assert len(left) > 30

    def test_a_truncated_file_may_come_back_or_not(self) -> None:
        storage = made(a=b"old.")
        file = storage.create("/db/a", small_appends=True)
        file.append(b"new")
        left = {names["a"] for names in crashes(storage)}
        assert left == {b"old.", b"", b"n", b"ne", b"new"}

    def test_any_unsynced_change_of_a_directory_may_survive(self) -> None:
        storage = made(old=b"1")
        put(storage, "new", b"2")
        storage.rename("/db/new", "/db/CURRENT")
        storage.remove("/db/old")
        left = {",".join(names) for names in crashes(storage)}
        both = ("CURRENT", "CURRENT,old", "new", "new,old", "old", "")
        assert left == set(both)

    def test_a_rename_happens_wholly_or_not_at_all(self) -> None:
        storage = made(a=b"new", b=b"old")
        storage.rename("/db/a", "/db/b")
        left = crashes(storage)
        assert all(each in ({"a": b"new", "b": b"old"}, {"b": b"new"}) for each in left)
        assert {len(each) for each in left} == {1, 2}

    def test_a_rename_into_another_directory_needs_both_synced(self) -> None:
        storage = made(a=b"bytes")
        storage.make_directory("/db/lost")
        storage.rename("/db/a", "/db/lost/a")
        storage.sync_directory("/db")
        assert storage.crash().list("/db/lost") == []
        storage.sync_directory("/db/lost")
        assert storage.crash().read("/db/lost/a") == b"bytes"

    def test_a_file_that_is_left_with_two_names_is_one_file(self) -> None:
        storage = made(a=b"")
        storage.make_directory("/db/lost")
        put(storage, "a", b"not synced", sync=False)
        storage.rename("/db/a", "/db/lost/a")
        both = 0
        for seed in range(100):
            after = storage.crash(random.Random(seed))
            if after.exists("/db/a") and after.exists("/db/lost/a"):
                both += 1
                assert after.read("/db/a") == after.read("/db/lost/a")
        assert both > 10

    def test_a_link_survives_once_its_directory_was_synced(self) -> None:
        storage = made(a=b"synced")
        storage.make_directory("/copy")
        storage.link("/db/a", "/copy/b")
        storage.remove("/db/a")
        storage.sync_directory("/db")
        left = [contents(storage.crash(random.Random(seed)), "/copy") for seed in range(50)]
        assert {} in left
        assert {"b": b"synced"} in left
        storage.sync_directory("/copy")
        assert contents(storage.crash(), "/copy") == {"b": b"synced"}

    def test_nothing_synced_is_ever_lost(self) -> None:
        storage = made(a=b"1", b=b"2")
        assert crashes(storage, tails="garbage") == [{"a": b"1", "b": b"2"}] * 300

    def test_the_storages_before_and_after_are_independent(self) -> None:
        storage = made(a=b"1")
        log = put(storage, "a", b"12")
        after = storage.crash()
        log.append(b"3")
        log.sync()
        put(after, "b", b"4")
        assert contents(storage) == {"a": b"123"}
        assert contents(after) == {"a": b"12", "b": b"4"}
        assert contents(after.crash()) == {"a": b"12"}


class TestKill:
    def test_all_that_was_handed_to_the_system_is_there(self) -> None:
        storage = made(a=b"")
        log = put(storage, "log", b"not synced", sync=False)
        assert contents(storage.kill()) == {"a": b"", "log": b"not synced"}
        log.close()
        assert contents(storage.kill().crash()) == {"a": b""}

    def test_a_table_loses_what_was_in_its_buffer(self) -> None:
        storage = made()
        table = storage.create("/db/table")
        table.append(b"x" * BUFFER_BYTES)
        table.append(b"y")
        assert contents(storage.kill()) == {"table": b"x" * BUFFER_BYTES}
        table.close()
        assert contents(storage.kill()) == {"table": b"x" * BUFFER_BYTES + b"y"}

    def test_it_goes_on_independently(self) -> None:
        storage = made(a=b"1")
        log = put(storage, "a", b"2", sync=False)
        after = storage.kill()
        log.append(b"3")
        assert contents(after) == {"a": b"2"}
        assert contents(after.crash()) == {"a": b"1"}

    def test_locks_and_faults_are_gone(self) -> None:
        storage = made()
        lock = storage.lock("/db/LOCK")
        storage.fail(lambda *_: True)
        storage.stop_after(0)
        for after in (storage.kill(), storage.crash()):
            after.lock("/db/LOCK")
            lock.release()
            with pytest.raises(LockedError):
                after.lock("/db/LOCK")
            assert not after.stopped


class TestFaults:
    def test_what_fails_is_chosen_by_operation_path_and_index(self) -> None:
        storage = made(a=b"1")
        seen = []

        def when(operation: str, path: str, index: int) -> bool:
            seen.append((operation, path, index))
            return operation == "read"

        storage.fail(when, errno.EACCES)
        start = len(storage.operations)
        with pytest.raises(IOError) as info:
            storage.read("/db/a")
        assert str(info.value) == "[Errno 13] cannot read: Permission denied: '/db/a'"
        assert (info.value.errno, info.value.filename) == (errno.EACCES, "/db/a")
        assert storage.exists("/db/a")
        assert seen == [("read", "/db/a", start), ("exists", "/db/a", start + 1)]
        assert storage.operations[start:] == [each[:2] for each in seen]

    def test_every_operation_can_fail_and_then_does_nothing(self) -> None:
        storage = made(a=b"1", LOCK=b"")
        file = put(storage, "b", b"2")
        file.append(b"3")
        storage.make_directory("/empty")
        before, start = contents(storage), len(storage.operations)
        storage.fail(lambda *_: True)
        attempts = {
            "append": lambda: file.append(b"4"),
            "create": lambda: storage.create("/db/a"),
            "exists": lambda: storage.exists("/db/a"),
            "link": lambda: storage.link("/db/a", "/db/c"),
            "list": lambda: storage.list("/db"),
            "lock": lambda: storage.lock("/db/LOCK"),
            "make_directory": lambda: storage.make_directory("/db/new"),
            "map": lambda: storage.map("/db/a"),
            "read": lambda: storage.read("/db/a"),
            "remove": lambda: storage.remove("/db/a"),
            "remove_directory": lambda: storage.remove_directory("/empty"),
            "rename": lambda: storage.rename("/db/b", "/db/a"),
            "size": lambda: storage.size("/db/a"),
            "sync": lambda: file.sync(),
            "sync_directory": lambda: storage.sync_directory("/db"),
            "truncate": lambda: file.truncate(0),
            "close": lambda: file.close(),
        }
        for operation, attempt in attempts.items():
            with pytest.raises(IOError, match=r"Errno 5\] cannot " + operation.replace("_", " ")):
                attempt()
        assert [operation for operation, _ in storage.operations[start:]] == list(attempts)
        assert set(attempts) >= MUTATIONS
        storage.mend()
        assert contents(storage) == before
        assert storage.list("/") == ["db", "empty"]
        assert contents(storage.crash()) == {"a": b"1", "LOCK": b""}
        storage.lock("/db/LOCK")
        file.close()  # which it was, though that failed

    def test_a_failing_append_may_leave_a_part(self) -> None:
        storage = made()
        file = put(storage, "a", b"whole")
        storage.fail(lambda operation, *_: operation == "append", errno.ENOSPC, partial=True)
        with pytest.raises(IOError, match="No space left"):
            file.append(b"1234")
        assert contents(storage) == {"a": b"whole12"}
        assert file.size == 5
        file.truncate(5)
        storage.mend()
        file.append(b"!")
        assert contents(storage) == {"a": b"whole!"}

    def test_a_failing_append_to_a_table_leaves_what_was_before_it(self) -> None:
        storage = made()
        table = storage.create("/db/a")
        table.append(b"whole")
        storage.fail(lambda operation, *_: operation == "append", partial=True)
        with pytest.raises(IOError):
            table.append(b"1234")
        assert contents(storage) == {"a": b"whole12"}
        table.truncate(5)
        table.close()
        assert contents(storage) == {"a": b"whole"}

    def test_what_a_failed_sync_forgot_no_later_sync_makes_durable(self) -> None:
        storage = made(a=b"")
        file = put(storage, "a", b"one,")
        file.append(b"two,")
        self.fail_to_sync(storage, file)
        assert storage.read("/db/a") == b"one,two,"
        file.sync()
        assert contents(storage.crash()) == {"a": b"one,"}
        file.append(b"three")
        file.sync()
        assert contents(storage.crash()) == {"a": b"one,\0\0\0\0three"}
        assert storage.read("/db/a") == b"one,two,three"

    def test_two_failed_syncs_forget_all_that_they_should_have_written(self) -> None:
        storage = made(a=b"")
        file = put(storage, "a", b"1")
        for data in (b"2", b"3", b""):
            file.append(data)
            self.fail_to_sync(storage, file)
        file.sync()
        assert contents(storage.crash()) == {"a": b"1"}
        file.append(b"4")
        assert {each["a"] for each in crashes(storage)} == {b"1", b"1\0", b"1\0\0", b"1\0\0" + b"4"}

    def test_what_was_forgotten_and_cut_off_can_be_written_again(self) -> None:
        storage = made(a=b"")
        file = put(storage, "a", b"one,")
        file.append(b"two,")
        self.fail_to_sync(storage, file)
        file.truncate(4)
        file.append(b"2")
        file.sync()
        assert contents(storage.crash()) == {"a": b"one,2"}

    def test_what_follows_a_cut_is_forgotten_as_well(self) -> None:
        storage = made(a=b"")
        file = put(storage, "a", b"one,two")
        file.truncate(4)
        file.append(b"2")
        self.fail_to_sync(storage, file)
        file.sync()
        assert contents(storage.crash()) == {"a": b"one,"}

    def test_a_failed_sync_of_a_table_has_written_its_buffer(self) -> None:
        storage = made(a=b"")
        table = storage.create("/db/a")
        table.append(b"bytes")
        self.fail_to_sync(storage, table)
        assert storage.read("/db/a") == b"bytes"
        table.sync()
        assert contents(storage.crash()) == {"a": b""}

    def fail_to_sync(self, storage: SimulatedStorage, file: WritableFile) -> None:
        storage.fail(lambda operation, *_: operation == "sync")
        with pytest.raises(IOError):
            file.sync()
        storage.mend()


class TestLosingPower:
    def test_after_so_many_changes_everything_fails(self) -> None:
        storage = made(a=b"1")
        file = put(storage, "a", b"")
        storage.stop_after(2)
        file.append(b"2")
        assert storage.read("/db/a") == b"2"
        file.sync()
        assert storage.exists("/db/a")
        assert not storage.stopped
        tried = list(storage.operations)
        with pytest.raises(PowerLost, match="cannot append: the power is lost"):
            file.append(b"3")
        assert storage.stopped
        for use in (storage.read, storage.exists, storage.size, storage.remove, storage.lock):
            with pytest.raises(PowerLost) as info:
                use("/db/a")
            assert info.value.filename == "/db/a"
        with pytest.raises(PowerLost):
            file.close()
        assert storage.operations == tried
        assert contents(storage.crash()) == {"a": b"2"}

    def test_a_replaced_file_is_wholly_old_or_wholly_new_wherever_it_was_cut(self) -> None:
        outcomes = set()
        for cut in range(9):
            for seed in (None, *range(20)):
                storage = made(CURRENT=b"old")
                storage.stop_after(cut)
                try:
                    storage.replace("/db/CURRENT", b"new", "/db/1.dbtmp")
                    finished = True
                except PowerLost:
                    finished = False
                after = storage.crash(random.Random(seed) if seed is not None else None)
                outcomes.add((cut, finished, after.read("/db/CURRENT")))
                assert finished == (cut >= 5)
        assert {data for cut, _, data in outcomes if cut < 4} == {b"old"}
        assert {data for cut, _, data in outcomes if cut == 4} == {b"old", b"new"}
        assert {data for cut, _, data in outcomes if cut > 4} == {b"new"}

    def test_a_replace_that_fails_removes_its_temporary_file(self) -> None:
        for number in range(5):
            storage = made(CURRENT=b"old")
            start = len(storage.operations)
            storage.fail(lambda _, __, index, failing=start + number: index == failing)
            with pytest.raises(IOError, match="Input/output error"):
                storage.replace("/db/CURRENT", b"new", "/db/1.dbtmp")
            assert contents(storage) == {"CURRENT": b"old"}, storage.operations[start:]


class TestCounting:
    def test_operations_are_listed_in_order(self) -> None:
        storage = SimulatedStorage()
        storage.make_directory("db")
        storage.replace("db/CURRENT", b"1", "db/1.dbtmp")
        storage.map("db/CURRENT").close()
        storage.list("db")
        assert storage.operations == [
            ("make_directory", "db"),
            ("create", "db/1.dbtmp"),
            ("append", "db/1.dbtmp"),
            ("sync", "db/1.dbtmp"),
            ("close", "db/1.dbtmp"),
            ("rename", "db/CURRENT"),
            ("sync_directory", "db"),
            ("map", "db/CURRENT"),
            ("list", "db"),
        ]
        assert [storage.count(name) for name in ("append", "map", "read")] == [1, 1, 0]
        assert storage.mutations == 6

    def test_threads_do_not_disturb_each_other(self) -> None:
        storage = made(**dict.fromkeys(NAMES, b""))

        def write(name: str) -> None:
            log = storage.create(f"/db/{name}", small_appends=True)
            for _ in range(300):
                log.append(name.encode())
                log.sync()

        start = len(storage.operations)
        threads = [threading.Thread(target=write, args=(name,)) for name in NAMES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert contents(storage.crash()) == {name: name.encode() * 300 for name in NAMES}
        assert len(storage.operations) - start == 3 * 601


@attrs.define(eq=False)
class Told:
    """A file of the model: what was appended, and what that was at the last sync."""

    now: bytes = b""
    synced: bytes = b""
    cut: bool = False  # since the last sync


class Model:
    """What the steps below should lead to, told without any mechanism: copies of the past."""

    def __init__(self) -> None:
        self.now: dict[str, Told] = {}
        self.synced: dict[str, Told] = {}
        self.seen: set[tuple[str, Told]] = set()  # the names that files had since then
        self.touched: set[str] = set()  # the names that were given or taken since then


STEP = st.tuples(
    st.sampled_from(("append", "append", "sync", "sync", "names", "create", "cut", "move", "gone")),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.integers(0, 20),
)


def run(steps: list[tuple[str, str, str, int]]) -> tuple[SimulatedStorage, Model]:
    """Do these steps, those that are possible, with a storage and with the model."""
    storage, model = made(), Model()
    writers: dict[str, WritableFile] = {}
    byte = 0
    for what, name, other, amount in steps:
        if what == "names":
            storage.sync_directory("/db")
            model.synced, model.seen, model.touched = dict(model.now), set(), set()
        elif what == "create":
            writers[name] = storage.create(f"/db/{name}", small_appends=True)
            if name not in model.now:
                model.now[name] = Told()
                model.touched.add(name)
            model.now[name].now, model.now[name].cut = b"", True
        elif name not in writers:
            continue
        elif what == "append":
            data = bytes((byte := byte + 1, *range(amount)))
            writers[name].append(data)
            model.now[name].now += data
        elif what == "sync":
            writers[name].sync()
            model.now[name].synced, model.now[name].cut = model.now[name].now, False
        elif what == "cut":
            length = min(amount, writers[name].size)
            writers[name].truncate(length)
            model.now[name].now, model.now[name].cut = model.now[name].now[:length], True
        elif what == "move":
            storage.rename(f"/db/{name}", f"/db/{other}")
            writers[other], model.now[other] = writers.pop(name), model.now.pop(name)
            model.touched |= {name, other}
        elif what == "gone":
            storage.remove(f"/db/{name}")
            del writers[name], model.now[name]
            model.touched.add(name)
        model.seen |= set(model.now.items())
    return storage, model


@given(st.lists(STEP, max_size=40))
@examples(300)
def test_a_crash_leaves_each_files_last_synced_content_under_its_last_synced_name(
    steps: list[tuple[str, str, str, int]],
) -> None:
    storage, model = run(steps)
    assert contents(storage) == {name: file.now for name, file in model.now.items()}
    expected = {name: file.synced for name, file in model.synced.items()}
    assert contents(storage.crash()) == expected
    assert contents(storage.crash().crash()) == expected
    assert contents(storage.kill()) == contents(storage)
    assert contents(storage.kill().crash()) == expected


@given(st.lists(STEP, max_size=40), st.randoms(use_true_random=False))
@examples(300)
def test_what_survives_a_crash_by_luck_lies_between_synced_and_appended(
    steps: list[tuple[str, str, str, int]], luck: random.Random
) -> None:
    storage, model = run(steps)
    after = contents(storage.crash(luck))
    for name, data in after.items():
        candidates = {file for seen, file in model.seen if seen == name}
        candidates |= {model.synced[name]} if name in model.synced else set()
        assert any(possible(data, file) for file in candidates), name
    assert after.keys() - model.touched == model.synced.keys() - model.touched


def possible(data: bytes, file: Told) -> bool:
    """Whether a crash may leave this of a file."""
    if data == file.synced:
        return True
    at_least = b"" if file.cut else file.synced
    return data.startswith(at_least) and file.now.startswith(data)
