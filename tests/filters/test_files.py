"""Filters in files: written whole or not at all, mapped, and opened by what they say they are."""

from __future__ import annotations

import gc
import os
import pickle
import random
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import filters
import policies
from filters import CorruptFilterError, FilterError, UnsupportedVersionError, header, opening
from filters.families import every
from policies import block
from tests.filters.cases import (
    Case,
    class_of,
    every_case_of_both_kinds,
    every_family_of_both_kinds,
    every_growing_family,
)

KEYS = [b"key%d" % i for i in range(300)]
OTHERS = [b"other%d" % i for i in range(300)]

needs_maps = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")


def maps() -> str:
    return Path("/proc/self/maps").read_text()


# ---- saved and loaded ----


@every_case_of_both_kinds
@pytest.mark.parametrize("mmap", [True, False])
def test_what_is_saved_is_loaded(
    kernel: ModuleType, case: Case, mmap: bool, tmp_path: Path
) -> None:
    built = case.build(kernel, KEYS)
    path = tmp_path / "a filter"
    assert built.save(path) is None
    assert path.read_bytes() == built.to_bytes()
    loaded = case.cls(kernel).load(path, mmap=mmap)
    assert type(loaded) is type(built)
    assert loaded == built
    assert all(loaded.might_contain_many(KEYS))
    assert loaded.might_contain_many(OTHERS) == built.might_contain_many(OTHERS)
    assert [each.name for each in tmp_path.iterdir()] == ["a filter"]


@every_family_of_both_kinds
def test_paths_come_in_every_form(
    kernel: ModuleType, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = case.build(kernel, KEYS)
    forms: list[Any] = ["a", b"b", Path("c"), os.fsencode(tmp_path / "d"), "x" * 255]
    for form in forms:
        built.save(form)
        assert case.cls(kernel).load(form) == built
    for wrong in (3, None, ["a"]):
        with pytest.raises(TypeError):
            built.save(wrong)
        with pytest.raises(TypeError):
            case.cls(kernel).load(wrong)
    assert len(list(tmp_path.iterdir())) == len(forms)


@needs_maps
@every_family_of_both_kinds
def test_a_mapping_lives_as_long_as_its_filter(
    kernel: ModuleType, case: Case, tmp_path: Path
) -> None:
    built, path = case.build(kernel, KEYS), tmp_path / "mapped.filter"
    built.save(path)
    read = case.cls(kernel).load(path, mmap=False)
    assert "mapped.filter" not in maps()
    loaded = case.cls(kernel).load(path)
    path.unlink()
    gc.collect()
    assert "mapped.filter" in maps()
    assert all(loaded.might_contain_many(KEYS))
    assert loaded == read == pickle.loads(pickle.dumps(loaded))
    del loaded
    gc.collect()
    assert "mapped.filter" not in maps()


@every_growing_family
def test_what_is_added_to_a_loaded_filter_is_not_in_its_file(
    kernel: ModuleType, case: Case, tmp_path: Path
) -> None:
    path = tmp_path / "filter"
    case.build(kernel, KEYS).save(path)
    before = path.read_bytes()
    loaded = case.cls(kernel).load(path)
    loaded.clear()
    loaded.add_many(OTHERS[:100])
    assert path.read_bytes() == before
    loaded.save(path)  # over the file that it was a view of
    assert all(case.cls(kernel).load(path).might_contain_many(OTHERS[:100]))


@every_growing_family
def test_a_view_keeps_its_bytes_when_another_filter_is_saved_there(
    kernel: ModuleType, case: Case, tmp_path: Path
) -> None:
    path = tmp_path / "filter"
    case.build(kernel, KEYS).save(path)
    loaded = case.cls(kernel).load(path)
    case.build(kernel, []).save(path)
    assert all(loaded.might_contain_many(KEYS))


@pytest.mark.parametrize("version", ["la", "ma", "na", "oa"])
def test_a_filter_of_cassandras_is_saved_as_its_version_has_it(
    kernel: ModuleType, version: str, tmp_path: Path
) -> None:
    cls = class_of(kernel, "cassandra")
    old = cls.from_bytes(cls.build(KEYS).to_bytes(), sstable_version=version)
    old.save(tmp_path / "Filter.db", sstable_version=version)
    assert (tmp_path / "Filter.db").read_bytes() == old.to_bytes(sstable_version=version)
    for mmap in (True, False):
        loaded = cls.load(tmp_path / "Filter.db", sstable_version=version, mmap=mmap)
        assert loaded == old
        assert loaded.has_old_hash_order == (version == "la")
    with pytest.raises(ValueError, match="zz"):
        cls.load(tmp_path / "Filter.db", sstable_version="zz")


# ---- whole or not at all ----


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("old", [None, b"what was there"])
def test_a_failure_leaves_the_old_file_and_no_other(
    kernel: ModuleType,
    step: str,
    error: BaseException,
    old: bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built, path = kernel.BlockedBloomFilter.build(KEYS), tmp_path / "filter"
    if old is not None:
        path.write_bytes(old)
    monkeypatch.setattr(os, step, failing(error))
    with pytest.raises(type(error)):
        built.save(path)
    monkeypatch.undo()
    assert [each.read_bytes() for each in tmp_path.iterdir()] == ([] if old is None else [old])


def test_bytes_are_on_the_disk_before_their_name_and_the_name_after(
    kernel: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, path = kernel.BlockedBloomFilter.build(KEYS), tmp_path / "filter"
    done: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        state = os.fstat(descriptor)
        done.append(("folder", 0) if stat.S_ISDIR(state.st_mode) else ("file", state.st_size))
        fsync(descriptor)

    def watched_replace(old: str, new: str) -> None:
        assert Path(old).parent == Path(new).parent
        done.append(("name", 0))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    built.save(path)
    assert done == [("file", built.size_in_bytes), ("name", 0), ("folder", 0)]


def test_a_link_goes_on_leading_to_the_file(kernel: ModuleType, tmp_path: Path) -> None:
    built = kernel.BlockedBloomFilter.build(KEYS)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "filter")
    built.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "filter").read_bytes() == built.to_bytes()


def test_others_may_read_what_is_saved(kernel: ModuleType, tmp_path: Path) -> None:
    kernel.BlockedBloomFilter.build(KEYS).save(tmp_path / "filter")
    (tmp_path / "like any").touch()
    modes = {each.stat().st_mode for each in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_folder_that_is_missing_is_named(kernel: ModuleType, tmp_path: Path) -> None:
    built = kernel.BlockedBloomFilter.build(KEYS)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        built.save(tmp_path / "no such folder" / "filter")


# ---- refused ----


@every_family_of_both_kinds
def test_errors_name_the_file(
    kernel: ModuleType, case: Case, tmp_path: Path, rng: random.Random
) -> None:
    cls, path = case.cls(kernel), tmp_path / "some.filter"
    for load in (cls.load, filters.load):
        with pytest.raises(FileNotFoundError, match=r"some\.filter"):
            load(path)
        with pytest.raises(IsADirectoryError):
            load(tmp_path)
    whole = case.build(kernel, KEYS).to_bytes()
    damaged = bytearray(whole)
    damaged[rng.randrange(len(whole))] ^= 1
    wrong = [b"", b"LSFB", whole[:-1], bytes(damaged), rng.randbytes(100)]
    for data in wrong if case.salted else [b"\0" * 5] * (case.family == "cassandra"):
        path.write_bytes(data)
        for mmap in (True, False):
            with pytest.raises(CorruptFilterError, match=r"some\.filter: .+") as error:
                cls.load(path, mmap=mmap)
            assert type(error.value) is CorruptFilterError
            if case.salted:
                with pytest.raises(CorruptFilterError, match=r"some\.filter: .+"):
                    filters.load(path, mmap=mmap)


@every_family_of_both_kinds
def test_an_empty_file_is_what_no_bytes_are(kernel: ModuleType, case: Case, tmp_path: Path) -> None:
    cls, path = case.cls(kernel), tmp_path / "filter"
    path.touch()
    try:
        wanted = cls.from_bytes(b"")
    except FilterError:
        with pytest.raises(CorruptFilterError, match="filter: "):
            cls.load(path)
    else:
        assert cls.load(path) == wanted


# ---- whatever it is ----


def forms(data: bytes, folder: Path) -> list[Any]:
    """The same bytes in every form that filters.load() takes."""
    path = folder / "any.filter"
    path.write_bytes(data)
    return [data, bytearray(data), memoryview(data), path, str(path)]


@every_case_of_both_kinds
def test_any_filter_is_opened_by_what_its_bytes_say(case: Case, tmp_path: Path) -> None:
    built = case.build(filters.kernels.load(filters.KERNEL), KEYS)
    if not case.salted:
        return
    for form in forms(built.to_bytes(), tmp_path):
        for mmap in (True, False):
            opened = filters.load(form, mmap=mmap)
            assert type(opened) is type(built)
            assert opened.family == case.family
            assert opened == built


@every_case_of_both_kinds
def test_any_filter_is_opened_out_of_a_block(case: Case, tmp_path: Path) -> None:
    if not case.record.policy:
        return
    name = case.record.policy_class().name
    policy = policies.create(name)
    created = policy.create_filter(sorted(KEYS))
    data = policies.encode_block(policy, created, num_keys=len(KEYS))
    for form in forms(data, tmp_path):
        opened = filters.load(form)
        assert bytes(opened) == created
        assert all(key in opened for key in KEYS)
        assert opened.family in every()


@every_family_of_both_kinds
def test_a_block_of_no_keys_holds_a_filter_all_the_same(case: Case) -> None:
    if not case.record.policy:
        return
    policy = policies.create(case.record.policy_class().name)
    for data in (policy.create_filter([]), b""):
        assert data is not None
        opened = filters.load(policies.encode_block(policy, data, num_keys=0))
        assert opened.family == policy.open(policy.create_filter(KEYS)).family
        assert not any(key in opened for key in KEYS)


@pytest.mark.parametrize("family", [name for name in every() if not every()[name].is_salted])
def test_bytes_of_other_engines_are_refused_with_the_way_to_open_them(
    family: str, tmp_path: Path
) -> None:
    built = class_of(filters.kernels.load(filters.KERNEL), family).build(KEYS)
    for form in forms(built.to_bytes(), tmp_path):
        with pytest.raises(CorruptFilterError, match=type(built).__name__) as error:
            filters.load(form)
        assert ("any.filter: " in str(error.value)) == isinstance(form, (str, Path))


@every_family_of_both_kinds
def test_what_is_changed_later_is_copied(case: Case) -> None:
    if case.salted:
        built = case.build(filters.kernels.load(filters.KERNEL), KEYS)
        data = bytearray(built.to_bytes())
        opened = filters.load(data)
        data[:] = bytes(len(data))
        assert opened == built


def test_a_family_of_a_later_release_is_told_from_damage() -> None:
    data = bytearray(filters.BlockedBloomFilter.build(KEYS).to_bytes())
    data[4] = 255
    with pytest.raises(CorruptFilterError, match="is damaged"):
        filters.load(data)
    signed = data[:-8] + header.xxh3_64_intdigest(data[:-8]).to_bytes(8, "little")
    with pytest.raises(UnsupportedVersionError, match="family number 255.*upgrade"):
        filters.load(signed)


def test_a_damaged_block_and_an_unknown_policy_name_the_file(tmp_path: Path) -> None:
    policy = policies.create("blocked")
    data = bytearray(policies.encode_block(policy, policy.create_filter(KEYS), num_keys=300))
    path = tmp_path / "some.block"
    path.write_bytes(data[:-1] + b"\0")
    with pytest.raises(policies.CorruptBlockError, match=r"some\.block: .*damaged"):
        filters.load(path)
    at = data.index(b"blocked")
    data[at : at + 7] = b"unknown"
    path.write_bytes(data[:-8] + header.xxh3_64_intdigest(data[:-8]).to_bytes(8, "little"))
    with pytest.raises(policies.UnknownPolicyError, match=r"some\.block: .*'unknown'"):
        filters.load(path)


@pytest.mark.parametrize("wrong", [3, None, ["path"], 2.5])
def test_what_is_neither_bytes_nor_a_path_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="filter bytes come as"):
        filters.load(wrong)


def test_the_table_of_frames_is_that_of_the_floor_above() -> None:
    assert opening.FRAMED_ABOVE == {block.MAGIC: "policies.block:load_filter"}


LOADED = """
import sys
import filters

f = filters.BlockedBloomFilter.build(["key"])
assert "key" in filters.load(f.to_bytes())
print([name for name in sys.modules if name.partition(".")[0] in ("policies", "lsm")])
"""


def test_a_bare_filter_needs_no_policies() -> None:
    fresh = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert fresh.stdout == "[]\n"
