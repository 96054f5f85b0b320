"""Tables that a repair cannot read, or not all of: they stay, whoever does what afterwards."""

from __future__ import annotations

import contextlib
import errno
import os
import random
from itertools import count
from pathlib import Path

import plyvel
import pytest

import lsm
from lsm.errors import CorruptionError
from lsm.repair import LOST, UNREADABLE, repair
from tests.effort import by_effort
from tests.lsm.independent_table import parse
from tests.lsm.simulated import PowerLost, SimulatedStorage, Tails, fails_at

Model = dict[bytes, bytes]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


def filled(path: Path | str, rng: random.Random, storage: SimulatedStorage | None = None) -> Model:
    """A database of three tables, one of them with many blocks, and of a log."""
    model: Model = {}
    with lsm.DB(path, create_if_missing=True, block_size=256, storage=storage) as db:
        for part in range(3):
            for number in range(60):
                key = b"%d%03d" % (part, number)
                model[key] = rng.randbytes(40)
                db.put(key, model[key])
            db.flush()
        model[b"last"] = b"one"
        db.put(b"last", b"one", sync=True)
    return model


def spoilt(data: bytes) -> tuple[bytes, set[bytes]]:
    """A table whose third block is damaged, and the keys that are in there."""
    block = parse(data).blocks[2]
    bad = bytearray(data)
    bad[block.offset + 1] ^= 0xFF
    return bytes(bad), {key[:-8] for key, _ in block.pairs}


def spoil_first(path: Path) -> tuple[Path, bytes, set[bytes]]:
    """Damage the first table; what it then is and the keys that cannot be read."""
    table = min(path.glob("*.ldb"))
    bad, keys = spoilt(table.read_bytes())
    table.write_bytes(bad)
    return table, bad, keys


def without(model: Model, keys: set[bytes]) -> Model:
    return {key: value for key, value in model.items() if key not in keys}


def test_it_stays_through_openings_compactions_and_repairs(path: Path, rng: random.Random) -> None:
    model = filled(path, rng)
    table, bad, keys = spoil_first(path)
    kept = Path(f"{table}{UNREADABLE}")
    first = repair(path)
    assert (first.unreadable, first.tables_rewritten) == ((str(kept),), 1)
    assert table.name not in first.set_aside
    for _ in range(2):
        with lsm.DB(path) as db:
            assert dict(db) == without(model, keys)
            db.compact_range()
        with plyvel.DB(str(path)) as theirs:
            assert dict(theirs) == without(model, keys)
            theirs.compact_range()
        plyvel.repair_db(str(path))
        again = repair(path)
        assert (again.unreadable, again.losses) == ((str(kept),), ())
        assert kept.read_bytes() == bad
    lsm.destroy_db(path)
    assert kept.read_bytes() == bad


def test_its_number_is_not_given_to_another(path: Path) -> None:
    path.mkdir()
    (path / f"000900.ldb{UNREADABLE}").write_bytes(b"garbage")
    repair(path)
    with lsm.DB(path) as db:
        for number in range(3):
            db.put(b"%d" % number, b"value")
            db.flush()
    numbers = [int(file.stem) for file in path.glob("*.ldb")]
    assert min(numbers) > 900


def test_under_its_old_name_it_is_read_again(rng: random.Random) -> None:
    """Once the device can read it, or somebody has mended it."""
    storage = SimulatedStorage()
    model = filled("db", rng, storage)
    table = min(name for name in storage.list("db") if name.endswith(".ldb"))
    storage.fail(lambda what, at, _: what in ("read", "map") and at == f"db/{table}", errno.EIO)
    report = repair("db", storage=storage)
    assert report.unreadable == (f"db/{table}{UNREADABLE}",)
    assert table in report.losses[0]
    storage.mend()
    with lsm.DB("db", storage=storage) as db:
        assert dict(db) == {key: model[key] for key in model if not key.startswith(b"0")}
        model[b"0000"] = b"newer"
        db.put(b"0000", b"newer")
    storage.rename(f"db/{table}{UNREADABLE}", f"db/{table}")
    again = repair("db", storage=storage)
    assert (again.unreadable, again.losses) == ((), ())
    with lsm.DB("db", storage=storage) as db:
        assert dict(db) == model


@pytest.mark.parametrize("number", [errno.EIO, errno.EBADMSG, errno.EUCLEAN])
def test_what_a_device_says_of_damage_is_no_reason_to_stop(rng: random.Random, number: int) -> None:
    storage = SimulatedStorage()
    filled("db", rng, storage)
    table = min(name for name in storage.list("db") if name.endswith(".ldb"))
    storage.fail(lambda what, at, _: what in ("read", "map") and at == f"db/{table}", number)
    assert repair("db", storage=storage).tables_lost == 1


def everything(storage: SimulatedStorage) -> set[bytes]:
    """The contents of all files, wherever they are."""
    there = [path for path in ("db", f"db/{LOST}") if storage.exists(path)]
    return {
        storage.read(f"{path}/{name}")
        for path in there
        for name in storage.list(path)
        if name != LOST
    }


def damaged(rng: random.Random) -> tuple[SimulatedStorage, Model, bytes]:
    """A database with a table that cannot be read whole, all of it durable."""
    storage = SimulatedStorage()
    model = filled("db", rng, storage)
    table = min(name for name in storage.list("db") if name.endswith(".ldb"))
    bad, keys = spoilt(storage.read(f"db/{table}"))
    file = storage.create(f"db/{table}")
    file.append(bad)
    file.sync()
    file.close()
    storage.sync_directory("db")
    return storage, without(model, keys), bad


@pytest.mark.parametrize("open_between", [False, True])
def test_no_loss_of_power_and_no_opening_after_it_loses_the_table(
    rng: random.Random, open_between: bool
) -> None:
    original, model, bad = damaged(rng)
    tails: list[Tails] = ["clean", "zero", "garbage"]
    for step in count(0, by_effort(2, 1, 1)):
        storage = original.kill()
        storage.stop_after(step)
        with contextlib.suppress(PowerLost):
            repair("db", storage=storage)
        for after in (storage.kill(), storage.crash(), storage.crash(rng, tails=rng.choice(tails))):
            if open_between:
                with (
                    contextlib.suppress(CorruptionError),
                    lsm.DB("db", storage=after, paranoid_checks=True) as db,
                ):
                    db.put(b"last", b"one")
                assert bad in everything(after), step
            again = repair("db", storage=after)
            assert not [loss for loss in again.losses if "missing" in loss]
            assert bad in everything(after), step
            with lsm.DB("db", storage=after) as db:
                assert dict(db) == model, step
                db.compact_range()
            assert bad in everything(after), step
        if not storage.stopped:
            break
    assert step > 20


def test_a_refusal_anywhere_gives_it_its_name_back(rng: random.Random) -> None:
    original, model, bad = damaged(rng)
    for step in count(0, by_effort(2, 1, 1)):
        storage = original.kill()
        before = set(storage.list("db"))
        failed = fails_at(storage, len(storage.operations) + step, errno.ENOSPC)
        with contextlib.suppress(lsm.IOError):
            repair("db", storage=storage)
        storage.mend()
        if storage.read("db/CURRENT") == original.read("db/CURRENT"):
            assert before <= set(storage.list("db")), (step, failed)
        assert bad in everything(storage)
        repair("db", storage=storage)
        with lsm.DB("db", storage=storage) as db:
            assert dict(db) == model
        if not failed:
            break
    assert step > 50


def test_tables_that_were_read_whole_are_set_aside_as_ever(path: Path, rng: random.Random) -> None:
    model = filled(path, rng)
    table = min(path.glob("*.ldb"))
    table.write_bytes(table.read_bytes()[:-1])  # no footer, and every block
    report = repair(path)
    assert (report.unreadable, report.losses) == ((), ())
    assert table.name in report.set_aside
    assert table.name in os.listdir(path / LOST)
    with lsm.DB(path) as db:
        assert dict(db) == model
