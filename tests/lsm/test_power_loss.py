"""A loss of power, or a kill, at every point of a run: what was promised to survive is there."""

from __future__ import annotations

import contextlib
import copy
import random
import re
import threading
from pathlib import Path

import attrs
import pytest

import lsm
from tests.effort import by_effort
from tests.lsm.history import (
    LAST,
    PATH,
    Contents,
    History,
    Steps,
    check_it_goes_on,
    contents,
    random_batch,
    random_steps,
    reopened,
)
from tests.lsm.patience import patient
from tests.lsm.simulated import MUTATIONS, SimulatedStorage, Tails

pytestmark = pytest.mark.usefixtures("kept_heat")

WRITES = 40
TAILS: tuple[Tails, ...] = ("clean", "zero", "garbage")


def run(storage: SimulatedStorage, config: Path, steps: Steps, history: History) -> None:
    """Do the steps until the power is lost."""
    with contextlib.suppress(lsm.Error), contextlib.ExitStack() as stack:
        db = stack.enter_context(reopened(storage, config))
        for step in steps:
            if step is None:
                db.close()
                db = stack.enter_context(reopened(storage, config))
            else:
                step(db, history)


@attrs.frozen
class Moment:
    """What was before an operation that changes something, and what is left of it then."""

    history: History
    lost: list[SimulatedStorage]
    killed: SimulatedStorage
    tails: Tails


def moments(config: Path, rng: random.Random) -> list[Moment]:
    """Every moment of a run in which power can be lost: before each operation, and at the end."""
    history, storage = History(), SimulatedStorage()
    moments: list[Moment] = []

    def note(operation: str, _path: str, index: int) -> bool:
        if operation in MUTATIONS:
            # Which of two names survives is a matter of luck.
            tries = 12 if is_behind_a_rename(storage) else 1
            seeds = [random.Random(rng.random()) for _ in range(tries)]
            tails = TAILS[index % 3]
            lost = [storage.crash(), *(storage.crash(seed, tails=tails) for seed in seeds)]
            moments.append(Moment(copy.deepcopy(history), lost, storage.kill(), tails))
        return False

    storage.fail(note)
    run(storage, config, random_steps(rng, WRITES), history)
    note("sync", PATH, 0)
    assert history.written == WRITES
    assert len(moments) > 250
    return moments


def is_behind_a_rename(storage: SimulatedStorage) -> bool:
    return "rename" in [operation for operation, _ in storage.operations[-2:]]


def found(storage: SimulatedStorage, config: Path | None = None) -> Contents:
    """All that is found when the database is opened."""
    with reopened(storage, config) as db:
        return contents(db)


def mend_manifest(storage: SimulatedStorage, config: Path) -> None:
    """Repair a database whose manifest ends in what was never written: that is taken for damage."""
    try:
        reopened(storage.kill(), config).close()
    except lsm.CorruptionError as error:
        if not re.search("MANIFEST.*repair_db", str(error)):
            raise
        lsm.repair_db(PATH, config=config, storage=storage)


@patient
def test_a_loss_of_power_at_any_point_leaves_a_prefix_with_all_that_was_synced(
    config: Path, rng: random.Random
) -> None:
    for index, moment in enumerate(moments(config, rng)[:: by_effort(5, 1, 1)]):
        for after in moment.lost:
            if moment.tails != "clean":
                mend_manifest(after, config)
            survivors = found(after, config)
            moment.history.check(survivors, moment.history.durable)
            if index % by_effort(11, 11, 1) == 0:
                check_it_goes_on(after, config, survivors)


@patient
def test_a_kill_at_any_point_loses_nothing_that_was_written(
    config: Path, rng: random.Random
) -> None:
    every = by_effort(7, 2, 1)
    for index, moment in enumerate(moments(config, rng)[rng.randrange(every) :: every]):
        survivors = found(moment.killed, config)
        moment.history.check(survivors, moment.history.written)
        if index % by_effort(11, 11, 1) == 0:
            check_it_goes_on(moment.killed, config, survivors)


@patient
def test_after_a_kill_a_synced_write_makes_all_durable_that_was_before_it(
    config: Path, rng: random.Random
) -> None:
    """Also where opening found nothing to write: what it has read was maybe not durable yet."""
    every = by_effort(5, 2, 1)
    for moment in moments(config, rng)[rng.randrange(every) :: every]:
        storage = moment.killed
        with reopened(storage, config) as db:
            db.put(LAST, b"synced", sync=True)
            expected = contents(db)
            if rng.random() < 0.5:
                db.flush()
            for generator in (None, rng):
                assert found(storage.crash(generator), config) == expected


@patient
def test_a_loss_of_power_while_the_database_recovers_from_one_takes_nothing_more(
    config: Path, rng: random.Random
) -> None:
    before, history = SimulatedStorage(), History()
    with reopened(before) as db:
        for _ in range(25):
            history.write(db, random_batch(rng), sync=True)
        history.write(db, random_batch(rng))
    for mutations in range(0, 1000, by_effort(5, 1, 1)):
        # With a smaller buffer than before, so that recovery writes many tables.
        storage = before.crash()
        storage.stop_after(mutations)
        with contextlib.suppress(lsm.Error):
            reopened(storage, config).close()
        for generator in (None, random.Random(rng.random())):
            survivors = found(storage.crash(generator), config)
            assert history.check(survivors, history.durable) == 25
        if not storage.stopped:
            break
    assert mutations > 50


@patient
def test_a_run_that_the_power_cuts_ends_with_errors_and_never_hangs(
    config: Path, rng: random.Random
) -> None:
    steps = random_steps(rng, WRITES)
    for mutations in range(0, 500, by_effort(97, 41, 1)):
        storage, history = SimulatedStorage(), History()
        storage.stop_after(mutations)
        run(storage, config, steps, history)
        history.check(found(storage.crash(), config), history.durable)
        history.check(found(storage.kill(), config), history.written)


@patient
def test_what_many_threads_have_synced_survives_a_loss_of_power(
    config: Path, rng: random.Random
) -> None:
    for _ in range(by_effort(3, 12, 100)):
        storage = SimulatedStorage()
        db = reopened(storage, config)
        storage.stop_after(rng.randrange(300))
        threads = [Numbers(db, b"%d" % number) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with contextlib.suppress(lsm.Error):
            db.close()
        for after, synced in ((storage.crash(), True), (storage.kill(), False)):
            survivors = found(after, config)
            for thread in threads:
                thread.check(survivors, synced=synced)


class Numbers(threading.Thread):
    """Writes batches of two keys that have the same number, until the power is lost."""

    def __init__(self, db: lsm.DB, name: bytes):
        super().__init__(daemon=True)
        self.keys = (name + b" first", name + b" second")
        self.db = db
        self.tried = self.written = self.synced = 0

    def run(self) -> None:
        with contextlib.suppress(lsm.Error):
            while True:
                self.tried += 1
                sync = self.tried % 3 == 0
                with self.db.write_batch(sync=sync) as batch:
                    for key in self.keys:
                        batch.put(key, b"%d" % self.tried)
                self.written = self.tried
                if sync:
                    self.synced = self.tried

    def check(self, found: Contents, *, synced: bool) -> None:
        first, second = (int(found.get(key, b"0")) for key in self.keys)
        assert first == second
        assert (self.synced if synced else self.written) <= first <= self.tried


@patient
def test_nothing_behind_a_hole_in_the_log_is_taken(rng: random.Random) -> None:
    """As a loss of power leaves it where blocks get to the device in another order."""
    storage, history = SimulatedStorage(), History()
    with reopened(storage) as db:
        (log,) = [name for name in storage.list(PATH) if name.endswith(".log")]
        ends = []
        for _ in range(30):
            history.write(db, random_batch(rng))
            ends.append(storage.size(f"{PATH}/{log}"))
        whole = storage.read(f"{PATH}/{log}")
        before = storage.kill()
    for _ in range(by_effort(20, 60, 300)):
        first = rng.randrange(len(whole))
        after = rng.randrange(first, min(len(whole), first + 200)) + 1
        hole = rng.choice((bytes, rng.randbytes))(after - first)
        storage = before.kill()
        file = storage.create(f"{PATH}/{log}", small_appends=True)
        file.append(whole[:first] + hole + whole[after:])
        survivors = found(storage)
        intact = sum(end <= first for end in ends)
        assert history.check(survivors, intact) <= intact or hole == whole[first:after]
