"""A file that is surveyed is only read, and never beyond its end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import lsm
from lsm.errors import CorruptionError
from lsm.survey.source import Source


def test_it_reads_what_is_there_and_names_what_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    with Source(path) as source:
        assert source.path == str(path)
        assert (source.size, source.read(3, 2, "pair")) == (100, b"\3\4")
        assert source.read(100, 0, "nothing") == b""
        assert source.end(2) == b"\x62\x63"
        assert len(source.end(1000)) == 100
        for offset, size in ((99, 2), (101, 0), (1 << 64, 1), (5, 1 << 70), (-1, 1), (3, -1)):
            with pytest.raises(CorruptionError, match=f"^{path}: at byte {offset}: the pair "):
                source.read(offset, size, "pair")


def test_what_was_read_of_a_large_file_does_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not os.path.exists("/proc/self/smaps"):
        pytest.skip("nothing tells what of a mapping is in memory here")
    monkeypatch.setattr("lsm.survey.source._MOST_RESIDENT", 1 << 20)
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 16) * 128)
    with Source(path) as source:
        parts = [source.read(at, 1 << 16, "part") for at in range(0, 1 << 23, 1 << 16)]
        assert set(parts) == {parts[0]}
        assert 0 < _resident(path) < 3 << 20


def _resident(path: Path) -> int:
    """The bytes of a mapped file that this process has in memory."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        if line.endswith(str(path)):
            return next(int(each.split()[1]) << 10 for each in lines if each.startswith("Rss:"))
    raise AssertionError(f"{path} is not mapped")


def test_empty_files_and_those_that_may_only_be_read_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    path.chmod(0o400)
    before = os.stat(path)
    with Source(path) as source:
        assert (source.size, source.end(8)) == (0, b"")
        with pytest.raises(CorruptionError, match="the byte would take 1 bytes from there"):
            source.read(0, 1, "byte")
    after = os.stat(path)
    assert (after.st_mtime_ns, after.st_size, after.st_mode) == (
        before.st_mtime_ns,
        before.st_size,
        before.st_mode,
    )
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_read_at_all_is_an_error_of_ours(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(lsm.IOError, match=str(path)):
            Source(path)
