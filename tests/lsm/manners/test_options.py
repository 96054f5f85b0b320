"""The options a database is opened with, none of which changes what it answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.lsm.manners.outcomes import only_plyvel

Open = Callable[..., Any]

ACCEPTED: list[dict[str, Any]] = [
    {option: value}
    for option, values in {
        "create_if_missing": [True],
        "error_if_exists": [True, False, None],
        "paranoid_checks": [True, False, None],
        "write_buffer_size": [64 << 10, 16 << 20, None],
        "max_open_files": [10, 500, None],
        "lru_cache_size": [0, 1 << 10, 64 << 20, None],
        "block_size": [256, 64 << 10, None],
        "block_restart_interval": [1, 2, 128, None],
        "max_file_size": [16 << 10, 8 << 20, None],
        "compression": [None, "snappy", b"snappy"],
        "bloom_filter_bits": [0, 1, 10, 20],
        "comparator": [None],
        "comparator_name": [None],
    }.items()
    for value in values
]
ACCEPTED.append(
    {
        "paranoid_checks": True,
        "write_buffer_size": 64 << 10,
        "max_open_files": 20,
        "lru_cache_size": 1 << 20,
        "block_size": 512,
        "block_restart_interval": 4,
        "max_file_size": 32 << 10,
        "compression": None,
        "bloom_filter_bits": 10,
    }
)


@pytest.mark.parametrize("options", ACCEPTED, ids=str)
def test_no_option_changes_an_answer(
    open_db: Open, rng: random.Random, options: dict[str, Any]
) -> None:
    db = open_db(**{"write_buffer_size": 32 << 10, **options})
    model: dict[bytes, bytes] = {}
    for _ in range(600):
        key = b"key %d" % rng.randrange(300)
        if rng.random() < 0.2:
            model.pop(key, None)
            db.delete(key)
        else:
            model[key] = rng.randbytes(20) * rng.randrange(10)
            db.put(key, model[key])
    db.compact_range(stop=b"key 2")
    assert list(db) == sorted(model.items())
    assert list(db.iterator(reverse=True)) == sorted(model.items(), reverse=True)
    for number in range(310):
        key = b"key %d" % number
        assert db.get(key) == model.get(key)


def test_options_may_change_from_one_opening_to_the_next(api: ModuleType, path: str) -> None:
    settings: list[dict[str, Any]] = [
        {"compression": None, "block_size": 256},
        {"bloom_filter_bits": 10, "write_buffer_size": 64 << 10},
        {"bloom_filter_bits": 0, "block_restart_interval": 1},
        {"compression": "snappy", "bloom_filter_bits": 5, "max_file_size": 64 << 10},
        {"lru_cache_size": 0, "paranoid_checks": True},
        {},
    ]
    model: dict[bytes, bytes] = {}
    for generation, options in enumerate(settings):
        with api.DB(path, create_if_missing=True, **options) as db:
            assert list(db) == sorted(model.items())
            for number in range(100 + generation):
                model[b"key %d" % number] = b"value %d" % generation * 10
                db.put(b"key %d" % number, model[b"key %d" % number])
            db.compact_range(start=b"key %d" % generation)
            assert db.get(b"key 99") == b"value %d" % generation * 10
            assert db.get(b"key 999") is None
    assert len(model) == 105


@pytest.mark.parametrize("option", ["create_if_missing", "error_if_exists"])
@pytest.mark.parametrize("value", [0, 1, "yes", "", b"yes", [], 1.0])
def test_a_flag_is_no_mere_truth(api: ModuleType, path: str, option: str, value: Any) -> None:
    with pytest.raises(TypeError):
        api.DB(path, **{"create_if_missing": True, option: value})


def test_a_flag_that_is_none_is_off(api: ModuleType, path: str) -> None:
    with pytest.raises(api.Error):
        api.DB(path, create_if_missing=None)


NUMBERS = [
    "write_buffer_size",
    "max_open_files",
    "lru_cache_size",
    "block_size",
    "block_restart_interval",
    "max_file_size",
    "bloom_filter_bits",
]


@pytest.mark.parametrize("option", NUMBERS)
@pytest.mark.parametrize("value", ["many", b"1", [], {}])
def test_a_number_is_a_number(api: ModuleType, path: str, option: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        api.DB(path, create_if_missing=True, **{option: value})


@pytest.mark.parametrize("option", NUMBERS)
def test_a_number_beyond_all_machines_is_refused(api: ModuleType, path: str, option: str) -> None:
    with pytest.raises((OverflowError, ValueError)):
        api.DB(path, create_if_missing=True, **{option: 2**70})


@pytest.mark.parametrize(
    "option", ["write_buffer_size", "lru_cache_size", "block_size", "max_file_size"]
)
def test_a_size_is_not_negative(api: ModuleType, path: str, option: str) -> None:
    with pytest.raises((OverflowError, ValueError)):
        api.DB(path, create_if_missing=True, **{option: -1})


@pytest.mark.parametrize("name", ["", "garbage", "zlib", "Snappy", "SNAPPY ", b"garbage", b"\xff"])
def test_a_compression_nobody_knows_is_refused(api: ModuleType, path: str, name: Any) -> None:
    with pytest.raises(ValueError, match="compression|codec"):
        api.DB(path, create_if_missing=True, compression=name)


@pytest.mark.parametrize("value", [1, 0, True, False, ["snappy"], 1.5])
def test_a_compression_is_a_name(api: ModuleType, path: str, value: Any) -> None:
    with pytest.raises(TypeError, match="compression"):
        api.DB(path, create_if_missing=True, compression=value)


@only_plyvel
@pytest.mark.parametrize(
    "options",
    [
        {"write_buffer_size": 0},
        {"write_buffer_size": 1.5},
        {"max_open_files": -5},
        {"block_size": 0},
        {"max_file_size": 0},
        {"bloom_filter_bits": -3},
        {"paranoid_checks": "yes"},
    ],
    ids=str,
)
def test_the_oracle_takes_numbers_that_mean_nothing(open_db: Open, options: dict[str, Any]) -> None:
    open_db(**options).put(b"key", b"value")


@only_plyvel
@pytest.mark.parametrize("name", ["zstd", "none"])
def test_the_oracle_knows_one_compression(api: ModuleType, path: str, name: str) -> None:
    with pytest.raises(ValueError, match="snappy"):
        api.DB(path, create_if_missing=True, compression=name)
