"""The file system: what both storages promise alike, and what only real files and locks do."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import plyvel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm import locks
from lsm import storage as storage_module
from lsm.errors import IOError, LockedError
from lsm.storage import BUFFER_BYTES, FileSystem, Placed, Storage, WritableFile
from tests.effort import examples
from tests.interpreter import fresh
from tests.lsm.simulated import SimulatedStorage
from tests.stack import with_stack_for

FILES = FileSystem()


@pytest.fixture(params=["files", "simulated"])
def storage(request: pytest.FixtureRequest) -> Storage:
    return FILES if request.param == "files" else SimulatedStorage()


@pytest.fixture
def root(storage: Storage, tmp_path: Path) -> str:
    """An empty directory of this storage."""
    path = str(tmp_path) if storage is FILES else "/db"
    storage.make_directory(path)
    return path


def put(storage: Storage, path: str, data: bytes = b"") -> None:
    file = storage.create(path)
    file.append(data)
    file.close()


@contextlib.contextmanager
def refused(number: int) -> Iterator[Any]:
    """The system refuses what is tried here, with this number."""
    with pytest.raises(IOError) as info:
        yield info
    assert info.value.errno == number
    assert os.strerror(number) in str(info.value)
    assert str(info.value.filename) in str(info.value)
    assert isinstance(info.value.__cause__, OSError)


class TestBothStorages:
    def test_what_was_written_is_read(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/a", b"some bytes")
        assert storage.read(f"{root}/a") == b"some bytes"
        assert storage.size(f"{root}/a") == 10
        mapped = storage.map(f"{root}/a")
        assert (len(mapped.data), mapped.data[5:8], mapped.data[:]) == (10, b"byt", b"some bytes")
        assert type(mapped.data[5:8]) is bytes
        mapped.close()

    def test_an_empty_file_can_be_mapped(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/a")
        mapped = storage.map(f"{root}/a")
        assert (len(mapped.data), mapped.data[:]) == (0, b"")
        mapped.close()
        mapped.close()

    def test_a_mapping_outlives_the_files_name(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/a", b"bytes")
        mapped = storage.map(f"{root}/a")
        storage.remove(f"{root}/a")
        assert mapped.data[:] == b"bytes"
        mapped.close()

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    @pytest.mark.parametrize("small", [False, True])
    def test_any_kind_of_bytes_is_appended(
        self, storage: Storage, root: str, kind: Callable[[bytes], Any], small: bool
    ) -> None:
        file = storage.create(f"{root}/a", small_appends=small)
        for data in (b"one\0", b"", b"two", b"x" * BUFFER_BYTES, b"three"):
            file.append(kind(data))
        assert (file.size, file.path) == (BUFFER_BYTES + 12, f"{root}/a")
        file.close()
        assert storage.read(f"{root}/a") == b"one\0two" + b"x" * BUFFER_BYTES + b"three"

    def test_small_appends_are_seen_at_once_and_others_after_a_sync(
        self, storage: Storage, root: str
    ) -> None:
        log = storage.create(f"{root}/log", small_appends=True)
        table = storage.create(f"{root}/table")
        for file in (log, table):
            file.append(b"bytes")
        assert storage.read(f"{root}/log") == b"bytes"
        assert storage.read(f"{root}/table") == b""
        assert table.size == 5
        table.sync()
        assert storage.read(f"{root}/table") == b"bytes"
        log.close()
        table.close()

    def test_a_buffer_holds_less_than_64_kib(self, storage: Storage, root: str) -> None:
        file = storage.create(f"{root}/a")
        file.append(b"x" * (BUFFER_BYTES - 1))
        assert storage.size(f"{root}/a") == 0
        file.append(b"y")
        assert storage.size(f"{root}/a") == BUFFER_BYTES - 1
        file.append(b"z" * BUFFER_BYTES)
        assert storage.size(f"{root}/a") == file.size == 2 * BUFFER_BYTES
        file.close()
        assert storage.read(f"{root}/a").lstrip(b"x") == b"y" + b"z" * BUFFER_BYTES

    def test_creating_a_file_empties_it(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/a", b"old")
        storage.create(f"{root}/a").close()
        assert storage.read(f"{root}/a") == b""

    @pytest.mark.parametrize("small", [False, True])
    def test_a_truncated_file_goes_on_where_it_was_cut(
        self, storage: Storage, root: str, small: bool
    ) -> None:
        file = storage.create(f"{root}/a", small_appends=small)
        file.append(b"written")
        file.sync()
        file.append(b"buffered")
        file.truncate(10)
        assert file.size == 10
        file.append(b"!")
        file.sync()
        assert storage.read(f"{root}/a") == b"writtenbuf!"
        file.truncate(4)
        file.append(b"ing")
        assert file.size == 7
        file.close()
        assert storage.read(f"{root}/a") == b"writing"

    @pytest.mark.parametrize("length", [-1, 4])
    def test_a_file_is_not_cut_to_what_it_never_had(
        self, storage: Storage, root: str, length: int
    ) -> None:
        file = storage.create(f"{root}/a")
        file.append(b"abc")
        with pytest.raises(ValueError, match=f"a cannot be cut to {length} bytes"):
            file.truncate(length)
        file.close()

    @pytest.mark.parametrize("small", [False, True])
    def test_a_closed_file_takes_nothing(self, storage: Storage, root: str, small: bool) -> None:
        file = storage.create(f"{root}/a", small_appends=small)
        file.append(b"before")
        file.close()
        file.close()
        for use in (lambda: file.append(b"after"), file.sync, lambda: file.truncate(1)):
            with pytest.raises(ValueError, match="closed"):
                use()
        assert storage.read(f"{root}/a") == b"before"

    def test_directories_and_names(self, storage: Storage, root: str) -> None:
        storage.make_directory(f"{root}/lost")
        storage.make_directory(f"{root}/lost")
        put(storage, f"{root}/b")
        put(storage, f"{root}/a")
        put(storage, f"{root}/lost/c")
        assert storage.list(root) == ["a", "b", "lost"]
        assert storage.list(f"{root}/lost/") == ["c"]
        storage.rename(f"{root}/lost/c", f"{root}/c")
        storage.remove(f"{root}/a")
        storage.remove_directory(f"{root}/lost")
        storage.sync_directory(root)
        assert storage.list(root) == ["b", "c"]
        assert storage.exists(root)
        assert storage.exists(f"{root}/b")
        assert not storage.exists(f"{root}/a")
        assert not storage.exists(f"{root}/no/such")
        assert not storage.exists(f"{root}/b/under-a-file")

    def test_a_rename_takes_the_place_of_a_file(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/a", b"new")
        put(storage, f"{root}/b", b"old")
        storage.rename(f"{root}/a", f"{root}/b")
        assert storage.list(root) == ["b"]
        assert storage.read(f"{root}/b") == b"new"

    def test_a_linked_file_has_two_names_that_go_one_by_one(
        self, storage: Storage, root: str
    ) -> None:
        put(storage, f"{root}/a", b"bytes")
        storage.make_directory(f"{root}/d")
        storage.link(f"{root}/a", f"{root}/d/b")
        assert storage.read(f"{root}/d/b") == b"bytes"
        storage.remove(f"{root}/a")
        assert storage.list(root) == ["d"]
        storage.sync_directory(f"{root}/d")
        assert storage.read(f"{root}/d/b") == b"bytes"
        put(storage, f"{root}/a", b"another")
        assert storage.read(f"{root}/d/b") == b"bytes"
        storage.link(f"{root}/d/b", f"{root}/c")
        storage.remove(f"{root}/d/b")
        assert storage.read(f"{root}/c") == b"bytes"

    def test_a_link_takes_nobodys_place(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/a", b"1")
        put(storage, f"{root}/b", b"2")
        storage.make_directory(f"{root}/d")
        for new in ("a", "b", "d"):
            with refused(errno.EEXIST):
                storage.link(f"{root}/a", f"{root}/{new}")
        for old, new in (("none", "c"), ("a", "none/c")):
            with refused(errno.ENOENT):
                storage.link(f"{root}/{old}", f"{root}/{new}")
        assert storage.list(root) == ["a", "b", "d"]
        assert storage.read(f"{root}/b") == b"2"

    def test_a_storage_without_links_says_so(self) -> None:
        with pytest.raises(IOError, match="second name") as info:
            Storage.link(SimulatedStorage(), "/a", "/b")
        assert info.value.errno == errno.ENOTSUP
        assert (info.value.filename, info.value.filename2) == ("/a", "/b")

    def test_a_place_has_one_real_path(self, storage: Storage, root: str) -> None:
        storage.make_directory(f"{root}/d")
        real = storage.real(f"{root}/d")
        assert storage.real(f"{root}/d/../d//") == real
        assert storage.real(f"{real}/none") == f"{real}/none"

    def test_a_file_that_is_not_there(self, storage: Storage, root: str) -> None:
        path = f"{root}/none"
        for use in (storage.read, storage.map, storage.size, storage.remove, storage.list):
            with refused(errno.ENOENT):
                use(path)
        for use in (storage.sync_directory, storage.remove_directory):
            with refused(errno.ENOENT):
                use(path)
        with refused(errno.ENOENT):
            storage.rename(path, f"{root}/other")
        with refused(errno.ENOENT):
            storage.lock(path, shared=True)
        assert storage.list(root) == []

    def test_a_directory_that_is_not_there(self, storage: Storage, root: str) -> None:
        for use in (storage.create, storage.make_directory, storage.lock):
            with refused(errno.ENOENT):
                use(f"{root}/none/a")
        put(storage, f"{root}/a")
        with refused(errno.ENOENT):
            storage.rename(f"{root}/a", f"{root}/none/a")

    def test_files_are_not_directories(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/a")
        for use in (storage.list, storage.remove_directory):
            with refused(errno.ENOTDIR):
                use(f"{root}/a")
        for use in (storage.create, storage.read, storage.size):
            with refused(errno.ENOTDIR):
                use(f"{root}/a/b")
        with refused(errno.EEXIST):
            storage.make_directory(f"{root}/a")
        for use in (storage.create, storage.read, storage.map):
            with refused(errno.EISDIR):
                use(root)
        storage.make_directory(f"{root}/b")
        with refused(errno.EISDIR):
            storage.rename(f"{root}/a", f"{root}/b")
        for _ in range(2):
            with refused(errno.ENOTEMPTY):
                storage.remove_directory(root)
            if storage.exists(f"{root}/a"):
                storage.remove(f"{root}/a")

    def test_replace_puts_the_whole_content_in_place(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/CURRENT", b"old")
        storage.replace(f"{root}/CURRENT", b"new", f"{root}/1.dbtmp")
        assert storage.read(f"{root}/CURRENT") == b"new"
        assert storage.list(root) == ["CURRENT"]

    def test_a_replace_that_fails_leaves_the_old_content(self, storage: Storage, root: str) -> None:
        storage.make_directory(f"{root}/CURRENT")
        with refused(errno.EISDIR):
            storage.replace(f"{root}/CURRENT", b"new", f"{root}/1.dbtmp")
        assert storage.list(root) == ["CURRENT"]

    def test_an_exclusive_lock_keeps_out_everyone_here(self, storage: Storage, root: str) -> None:
        lock = storage.lock(f"{root}/LOCK")
        assert storage.exists(f"{root}/LOCK")
        for shared in (False, True):
            with pytest.raises(
                LockedError, match=r"this process has the database open: close.*LOCK"
            ) as info:
                storage.lock(f"{root}/LOCK", shared=shared)
            assert "read_only" not in str(info.value)
            assert info.value.filename == f"{root}/LOCK"
        lock.release()
        lock.release()
        again = storage.lock(f"{root}/LOCK")
        lock.release()  # which is not the lock that is held now
        with pytest.raises(LockedError):
            storage.lock(f"{root}/LOCK")
        again.release()

    def test_shared_locks_keep_out_exclusive_ones(self, storage: Storage, root: str) -> None:
        put(storage, f"{root}/LOCK")
        first, second = (storage.lock(f"{root}/LOCK", shared=True) for _ in range(2))
        for lock in (first, second):
            with pytest.raises(LockedError, match="this process is reading .* read_only=True"):
                storage.lock(f"{root}/LOCK")
            lock.release()
            lock.release()
        storage.lock(f"{root}/LOCK").release()

    def test_locks_of_different_files_are_independent(self, storage: Storage, root: str) -> None:
        held = [storage.lock(f"{root}/{name}") for name in "abc"]
        for lock in held:
            lock.release()


# One step of the comparison of both storages: what to do, with which of the names, how much.
WRITES = ("append", "append", "append", "create", "sync", "truncate", "close")
OTHERS = ("rename", "remove", "read", "list", "size")
STEP = st.tuples(
    st.sampled_from((*WRITES, *OTHERS)),
    st.sampled_from("abc"),
    st.sampled_from("abc"),
    st.sampled_from((0, 1, 7, 40_000, BUFFER_BYTES)),
)


@attrs.frozen
class Actor:
    """Does the same steps with any storage, with at most one writer for each file."""

    storage: Storage
    root: str
    writers: dict[str, WritableFile] = attrs.Factory(dict)

    def step(self, what: str, name: str, other: str, amount: int) -> Any:
        try:
            return self.do(what, name, other, amount)
        except (OSError, ValueError, KeyError) as error:
            return type(error), getattr(error, "errno", None)

    def do(self, what: str, name: str, other: str, amount: int) -> Any:
        path, writer = f"{self.root}/{name}", self.writers.get(name)
        match what:
            case "create":
                if writer:
                    writer.close()
                is_log = bool(amount % 2) and not self.storage.exists(path)
                self.writers[name] = self.storage.create(path, small_appends=is_log)
            case "append":
                self.writers[name].append(name.encode() * amount)
            case "sync" | "close":
                getattr(self.writers[name], what)()
            case "truncate":
                self.writers[name].truncate(amount)
            case "rename":
                self.storage.rename(path, f"{self.root}/{other}")
                if name != other:
                    self.orphan(other)
                    if writer:
                        self.writers[other] = self.writers.pop(name)
            case "remove":
                self.storage.remove(path)
                self.orphan(name)
            case "list":
                return self.storage.list(self.root)
            case _:
                return getattr(self.storage, what)(path)
        return self.writers[name].size if name in self.writers else None

    def orphan(self, name: str) -> None:
        if name in self.writers:
            self.writers.pop(name).close()

    def close(self) -> dict[str, bytes]:
        for writer in self.writers.values():
            writer.close()
        names = self.storage.list(self.root)
        return {name: self.storage.read(f"{self.root}/{name}") for name in names}


@given(st.lists(STEP, max_size=30))
@examples(100)
def test_the_simulated_storage_does_what_files_do(steps: list[tuple[str, str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        real, simulated = Actor(FILES, directory), Actor(SimulatedStorage(), "/")
        for step in steps:
            assert real.step(*step) == simulated.step(*step), step
        assert real.close() == simulated.close()


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file of this process grows over this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def unwritable() -> Iterator[Path]:
    """A directory with a file "LOCK"; this process may read both and write neither."""
    with tempfile.TemporaryDirectory() as name:
        directory, user = Path(name), os.geteuid()
        (directory / "LOCK").touch()
        (directory / "LOCK").chmod(0o444)
        (directory / "secret").mkdir(mode=0o000)
        directory.chmod(0o555)
        if user == 0:
            os.seteuid(65534)  # root may write everywhere
        try:
            if not os.access(directory, os.R_OK, effective_ids=True):
                pytest.skip("the directory of temporary files is private")
            yield directory
        finally:
            os.seteuid(user)
            directory.chmod(0o755)
            (directory / "secret").chmod(0o755)


class TestErrors:
    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
    @pytest.mark.parametrize("small", [False, True])
    def test_a_full_disk(self, small: bool) -> None:
        file = FILES.create("/dev/full", small_appends=small)
        with refused(errno.ENOSPC) as info:
            file.append(b"x" * BUFFER_BYTES)
        assert str(info.value) == (
            "[Errno 28] cannot write 65536 bytes at byte 0 of the file (it took 0): "
            "No space left on device: '/dev/full'"
        )
        assert file.size == 0
        file.close()

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
    @pytest.mark.parametrize("use", ["flush", "sync", "close"])
    def test_a_full_disk_is_noticed_when_a_buffer_is_written(self, use: str) -> None:
        file = FILES.create("/dev/full")
        file.append(b"bytes")
        with refused(errno.ENOSPC):
            getattr(file, use)()
        with contextlib.suppress(IOError):
            file.close()
        file.close()
        with pytest.raises(ValueError, match="closed"):
            file.append(b"bytes")

    @pytest.mark.parametrize("small", [False, True])
    def test_a_part_of_a_failed_append_may_be_there_and_can_be_cut_off(
        self, tmp_path: Path, small: bool
    ) -> None:
        path = tmp_path / "log"
        file = FILES.create(str(path), small_appends=small)
        file.append(b"whole")
        with files_up_to(1000), refused(errno.EFBIG) as info:
            file.append(b"x" * BUFFER_BYTES)
        assert "cannot write 65536 bytes at byte 5 of the file (it took 995)" in str(info.value)
        assert file.size == 5
        assert path.stat().st_size == 1000
        file.append(b"!")
        assert file.size == 6
        file.truncate(5)
        assert path.read_bytes() == b"whole"
        file.append(b" again")
        file.close()
        assert path.read_bytes() == b"whole again"

    def test_what_a_buffer_could_not_write_is_kept(self, tmp_path: Path) -> None:
        file = FILES.create(str(tmp_path / "table"))
        file.append(bytes(range(200)))
        with files_up_to(50), refused(errno.EFBIG):
            file.sync()
        file.append(b"more")
        file.sync()
        assert (tmp_path / "table").read_bytes() == bytes(range(200)) + b"more"
        file.close()

    def test_a_directory_that_must_not_be_written(self, unwritable: Path) -> None:
        for use in (FILES.create, FILES.make_directory):
            with refused(errno.EACCES) as info:
                use(str(unwritable / "a"))
            assert info.value.filename == str(unwritable / "a")

    def test_what_cannot_be_looked_at_does_not_count_as_absent(self, unwritable: Path) -> None:
        with refused(errno.EACCES):
            FILES.exists(str(unwritable / "secret" / "CURRENT"))

    def test_only_the_last_directory_is_made(self, tmp_path: Path) -> None:
        with refused(errno.ENOENT) as info:
            FILES.make_directory(str(tmp_path / "a" / "b"))
        assert str(info.value) == (
            "[Errno 2] cannot make the directory, the last part of this path: "
            f"No such file or directory: '{tmp_path}/a/b'"
        )

    def test_a_failed_rename_names_both_files(self, tmp_path: Path) -> None:
        with refused(errno.ENOENT) as info:
            FILES.rename(f"{tmp_path}/a", f"{tmp_path}/b")
        assert str(info.value).endswith(f"'{tmp_path}/a' -> '{tmp_path}/b'")
        assert (info.value.filename, info.value.filename2) == (f"{tmp_path}/a", f"{tmp_path}/b")

    def test_what_sync_meets_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(descriptor: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, "fsync", broken)
        monkeypatch.setattr(os, "fdatasync", broken, raising=False)
        file = FILES.create(str(tmp_path / "a"))
        with refused(errno.EIO) as info:
            file.sync()
        assert str(info.value).startswith("[Errno 5] cannot sync the file: ")
        file.close()
        with refused(errno.EIO):
            FILES.sync_directory(str(tmp_path))


class TestFiles:
    def test_sync_reaches_the_file_and_its_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced = []

        def recorded(descriptor: int) -> None:
            status = os.fstat(descriptor)
            synced.append((status.st_ino, status.st_size if status.st_nlink == 1 else None))

        monkeypatch.setattr(os, "fsync", recorded)
        monkeypatch.setattr(os, "fdatasync", recorded, raising=False)
        FILES.replace(f"{tmp_path}/CURRENT", b"12345", f"{tmp_path}/1.dbtmp")
        file, directory = (os.stat(path).st_ino for path in (tmp_path / "CURRENT", tmp_path))
        assert synced == [(file, 5), (directory, None)]

    def test_a_real_path_has_no_symbolic_links(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir()
        (tmp_path / "link").symlink_to("d")
        assert FILES.real(f"{tmp_path}/link/a") == FILES.real(f"{tmp_path}/d") + "/a"

    def test_what_is_done_with_paths_leaves_no_descriptor(self, tmp_path: Path) -> None:
        before = os.listdir("/dev/fd")
        FILES.replace(f"{tmp_path}/CURRENT", b"1", f"{tmp_path}/1.dbtmp")
        FILES.map(f"{tmp_path}/CURRENT").close()
        FILES.read(f"{tmp_path}/CURRENT")
        FILES.lock(f"{tmp_path}/LOCK").release()
        assert os.listdir("/dev/fd") == before

    def test_paths_can_be_relative(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        FILES.replace("CURRENT", b"new", "1.dbtmp")
        assert FILES.list(".") == ["CURRENT"]

    def test_a_mapping_can_be_closed_twice_and_is_not_read_then(self, tmp_path: Path) -> None:
        put(FILES, f"{tmp_path}/a", b"bytes")
        mapped = FILES.map(f"{tmp_path}/a")
        mapped.close()
        mapped.close()
        with pytest.raises(ValueError, match="closed"):
            mapped.data[0:1]

    def test_a_file_that_was_forgotten_is_reported(self, tmp_path: Path) -> None:
        file = FILES.create(f"{tmp_path}/a")
        with pytest.warns(ResourceWarning, match="unclosed file"):
            del file

    def test_ctypes_is_loaded_for_logs_only(self, tmp_path: Path) -> None:
        told = fresh(
            "import sys; from lsm.storage import FileSystem\n"
            "for small in (False, True):\n"
            "    file = FileSystem().create(sys.argv[1], small_appends=small)\n"
            "    print('ctypes' in sys.modules)\n"
            "    file.close()\n",
            f"{tmp_path}/a",
        )
        assert told.stdout.split() == ["False", "True"], told.stderr


class Racer:
    """A thread that counts as soon as it gets the GIL, and never gives it up by itself."""

    def __init__(self) -> None:
        self.count = 0
        self._go = threading.Lock()
        self._go.acquire()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self._go.acquire()
        for _ in range(100_000):
            self.count += 1

    def go(self) -> None:
        self._go.release()

    def join(self) -> None:
        if self._go.locked():
            self._go.release()
        self._thread.join()


@pytest.fixture
def racer() -> Iterator[Racer]:
    """A thread that takes the GIL only from one who gives it up."""
    interval = sys.getswitchinterval()
    racer = Racer()
    sys.setswitchinterval(600)
    yield racer
    sys.setswitchinterval(interval)
    racer.join()


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no GIL to keep"
)
class TestTheGil:
    def test_small_appends_keep_it_and_sync_gives_it_up(self, tmp_path: Path, racer: Racer) -> None:
        file = FILES.create(f"{tmp_path}/log", small_appends=True)
        racer.go()
        for _ in range(1000):
            file.append(b"record")
        assert racer.count == 0
        for _ in range(100_000):
            file.sync()
            if racer.count:
                break
        assert racer.count > 0
        file.close()

    def test_other_appends_give_it_up(self, tmp_path: Path, racer: Racer) -> None:
        file = FILES.create(f"{tmp_path}/table")
        racer.go()
        for _ in range(100_000):
            file.append(b"x" * BUFFER_BYTES)
            file.truncate(0)
            if racer.count:
                break
        assert racer.count > 0
        file.close()


class FakeLibrary:
    """A C library whose pwrite() is interrupted, writes one byte at a time, and breaks at last."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.interrupted = False

        def pwrite(descriptor: int, data: bytes, length: int, offset: int) -> int:
            assert len(data) == length
            self.interrupted = not self.interrupted
            self.calls -= 1
            if self.interrupted or self.calls < 0:
                ctypes.set_errno(errno.EINTR if self.interrupted else errno.EDQUOT)
                return -1
            return os.pwrite(descriptor, data[:1], offset)

        self.pwrite = pwrite  # a function of C also takes argtypes and restype


class TestWritingThroughC:
    @pytest.fixture(autouse=True)
    def library_is_looked_for(self) -> Iterator[None]:
        """Anew for each of these tests, and for whoever comes after them."""
        storage_module._write_keeping_the_gil.cache_clear()
        yield
        storage_module._write_keeping_the_gil.cache_clear()

    def test_short_and_interrupted_writes_go_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        library = FakeLibrary(calls=1000)
        monkeypatch.setattr(ctypes, "PyDLL", lambda *_, **__: library)
        file = FILES.create(f"{tmp_path}/log", small_appends=True)
        for data in (b"one", bytearray(b"two"), memoryview(b"three")):
            file.append(data)
        file.close()
        assert FILES.read(f"{tmp_path}/log") == b"onetwothree"
        assert library.calls < 1000 - len(b"onetwothree")

    def test_placed_bytes_go_to_their_place_and_can_be_written_again(self, tmp_path: Path) -> None:
        file = FILES.create(f"{tmp_path}/log", small_appends=True)
        for placed in (Placed(0, b"first"), Placed(5, b"second"), Placed(0, b"first")):
            file.append(placed)
            assert placed.end <= file.size
        file.append(Placed(11, b"third"))
        file.append(b"fourth")
        assert file.size == 22
        file.close()
        assert FILES.read(f"{tmp_path}/log") == b"firstsecondthirdfourth"

    def test_who_is_short_of_stack_is_told_that(self, tmp_path: Path) -> None:
        file = FILES.create(f"{tmp_path}/log", small_appends=True)
        refused = 0
        for frames in range(40):
            try:
                with_stack_for(frames, functools.partial(file.append, Placed(0, b"bytes")))
            except RecursionError:
                refused += 1
        assert 0 < refused < 40
        file.close()
        assert (tmp_path / "log").read_bytes() == b"bytes"

    def test_an_error_is_the_systems(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ctypes, "PyDLL", lambda *_, **__: FakeLibrary(calls=5))
        file = FILES.create(f"{tmp_path}/log", small_appends=True)
        with refused(errno.EDQUOT) as info:
            file.append(b"three")
        assert "cannot write 5 bytes at byte 0 of the file (it took 2)" in str(info.value)
        file.close()

    @pytest.mark.parametrize("missing", ["ctypes", "the library", "the symbol"])
    def test_without_it_python_writes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError("no such library")

        def no_write(*_: object, **__: object) -> object:
            return object()

        if missing == "ctypes":
            monkeypatch.setitem(sys.modules, "ctypes", None)
        else:
            monkeypatch.setattr(ctypes, "PyDLL", refuse if "library" in missing else no_write)
        file = FILES.create(f"{tmp_path}/log", small_appends=True)
        file.append(memoryview(b"record"))
        assert FILES.read(f"{tmp_path}/log") == b"record"
        file.close()


TRY_LOCK = """
import sys
from lsm.errors import LockedError
from lsm.storage import FileSystem
try:
    FileSystem().lock(sys.argv[1], shared=sys.argv[2] == "shared").release()
    print("free")
except LockedError as error:
    print(error)
"""


def elsewhere(path: Path, kind: str = "exclusive") -> str:
    """What another process is told that wants this lock."""
    told = fresh(TRY_LOCK, str(path), kind)
    assert not told.stderr
    return told.stdout.strip()


@contextlib.contextmanager
def another_process(code: str, *arguments: str) -> Iterator[int]:
    """Another process has run this code and lives on; gives its number."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint('done', flush=True)\ninput()", *arguments],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "done\n"
        yield process.pid
        process.communicate("\n")


class TestLocksAndOtherProcesses:
    def test_a_lock_keeps_them_out_until_it_is_released(self, tmp_path: Path) -> None:
        path = tmp_path / "LOCK"
        lock = FILES.lock(str(path))
        told = elsewhere(path)
        assert "has the database open: close it there:" in told
        assert repr(str(path)) in told
        assert "read_only" not in told
        if sys.platform == "linux":
            assert f"another process ({os.getpid()}) " in told
        assert "has the database open: close it there:" in elsewhere(path, "shared")
        lock.release()
        assert elsewhere(path) == "free"

    def test_readers_keep_out_a_writer_until_the_last_is_gone(self, tmp_path: Path) -> None:
        path = tmp_path / "LOCK"
        path.touch()
        first, second = (FILES.lock(str(path), shared=True) for _ in range(2))
        assert elsewhere(path, "shared") == "free"
        first.release()
        first.release()
        told = elsewhere(path)
        assert "another process" in told
        if sys.platform == "linux":
            assert "is reading the database: close it there, or open it here with" in told
        second.release()
        assert elsewhere(path) == "free"

    def test_a_refused_lock_does_not_end_the_one_that_is_held(self, tmp_path: Path) -> None:
        """As closing a second descriptor of the file would."""
        path, alias = tmp_path / "LOCK", tmp_path / "alias"
        lock = FILES.lock(str(path))
        alias.symlink_to(path)
        for name in (path, alias, path):
            with pytest.raises(LockedError, match="this process"):
                FILES.lock(str(name))
        assert "another process" in elsewhere(path)
        lock.release()

    def test_plyvel_is_kept_out(self, tmp_path: Path) -> None:
        directory = tmp_path / "db"
        plyvel.DB(str(directory), create_if_missing=True).close()
        open_it = "import plyvel, sys; plyvel.DB(sys.argv[1]).close()"
        lock = FILES.lock(str(directory / "LOCK"))
        told = fresh(open_it, str(directory)).stderr
        assert "IOError" in told
        assert "LOCK" in told
        lock.release()
        assert fresh(open_it, str(directory)).returncode == 0

    def test_plyvel_keeps_this_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        directory = str(tmp_path / "db")
        open_it = "import plyvel, sys; db = plyvel.DB(sys.argv[1], create_if_missing=True)"
        with another_process(open_it, directory) as process:
            for shared in (False, True):
                with pytest.raises(LockedError, match="another process") as info:
                    FILES.lock(f"{directory}/LOCK", shared=shared)
                assert info.value.filename == f"{directory}/LOCK"
                assert "has the database open: close it there: " in str(info.value)
                if sys.platform == "linux":
                    assert f"another process ({process}) has" in str(info.value)
            monkeypatch.setattr(sys, "platform", "unknown")
            with pytest.raises(LockedError, match="another process has the database open"):
                FILES.lock(f"{directory}/LOCK")
        FILES.lock(f"{directory}/LOCK").release()

    def test_a_reader_elsewhere_can_be_joined(self, tmp_path: Path) -> None:
        path = tmp_path / "LOCK"
        path.touch()
        lock_it = (
            "import sys; from lsm.storage import FileSystem\n"
            "lock = FileSystem().lock(sys.argv[1], shared=True)"
        )
        with another_process(lock_it, str(path)):
            remedy = "read_only=True" if sys.platform == "linux" else "close it there"
            with pytest.raises(LockedError, match=remedy):
                FILES.lock(str(path))
            FILES.lock(str(path), shared=True).release()

    def test_a_shared_lock_needs_no_right_to_write(self, unwritable: Path) -> None:
        path = str(unwritable / "LOCK")
        FILES.lock(path, shared=True).release()
        with refused(errno.EACCES) as info:
            FILES.lock(path)
        assert not isinstance(info.value, LockedError)

    def test_a_file_that_is_removed_before_it_is_locked_is_made_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, lock_it, opened = tmp_path / "LOCK", locks._set, []

        def late(descriptor: int, shared: bool | None) -> None:
            if shared is not None:
                opened.append(descriptor)
            if len(opened) == 1 and shared is not None:
                path.unlink()
            lock_it(descriptor, shared)

        monkeypatch.setattr(locks, "_set", late)
        lock = FILES.lock(str(path))
        assert len(opened) == 2
        assert "another process" in elsewhere(path)
        lock.release()

    def test_a_system_without_locks_is_not_a_locked_database(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_locks(*_: object) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        before = os.listdir("/dev/fd")
        monkeypatch.setattr(fcntl, "lockf", no_locks)
        monkeypatch.setattr(fcntl, "fcntl", no_locks)
        with refused(errno.ENOLCK) as info:
            FILES.lock(f"{tmp_path}/LOCK")
        assert not isinstance(info.value, LockedError)
        assert os.listdir("/dev/fd") == before


FORK = """
import os, signal, sys, threading
from lsm import locks
from lsm.errors import LockedError
from lsm.storage import FileSystem

signal.alarm(60)  # for waiting that would never end
path, files = sys.argv[1], FileSystem()
lock, handed_over = files.lock(path), files.lock(path + "-2")
before_fork, holding = threading.Event(), threading.Event()
released, release = os.pipe()
kept = []

def hold():
    with locks._MUTEX:
        holding.set()
        before_fork.wait()

def try_it(name):
    try:
        kept.append(files.lock(name))
        print("free", flush=True)
    except LockedError as error:
        text = str(error).replace(f"({os.getppid()})", "(parent)")
        print(text.partition("lock it: ")[2].partition(" has")[0], flush=True)

def in_a_thread(name):
    thread = threading.Thread(target=try_it, args=(name,))
    thread.start()
    thread.join()

def child():
    signal.alarm(20)
    for descriptor in os.listdir("/proc/self/fd"):
        if os.path.exists(link := f"/proc/self/fd/{descriptor}"):
            assert not os.readlink(link).startswith(path), descriptor
    try_it(path)
    lock.release()
    in_a_thread(path)
    os.read(released, 1)
    try_it(path + "-2")
    handed_over.release()  # the parent's, not the one that this process has now
    try_it(path + "-2")

threading.Thread(target=hold).start()
holding.wait()
os.register_at_fork(before=before_fork.set)  # the last one registered comes first
if (pid := os.fork()) == 0:
    child()
    os._exit(0)
handed_over.release()
os.write(release, b"!")
print("child:", os.waitpid(pid, 0)[1], flush=True)
in_a_thread(path)
lock.release()
in_a_thread(path)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="fork; and pids of holders are known")
def test_a_forked_child_has_none_of_its_parents_locks(tmp_path: Path) -> None:
    told = fresh(FORK, str(tmp_path / "LOCK"))
    assert told.stdout.splitlines() == [
        "another process (parent)",
        "another process (parent)",
        "free",
        "this process",
        "child: 0",
        "this process",
        "free",
    ], told
