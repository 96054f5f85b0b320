"""The pace of writers: no faster than the background, no slower, and never against a wall.

A writer and a drain are simulated: their clock is a number.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import attrs
import pytest

from lsm.pace import LONGEST_SECONDS, PIECE_SECONDS, Backlog, Pace, Relief, Speed
from lsm.work import Drain

SLOW, STOP, COMPACT = 8, 12, 4


def backlog(filled: float = 0.5, flushing: int = 0, level0: int = 0) -> Backlog:
    return Backlog(filled, flushing, level0, SLOW, STOP)


# -- Rates ---------------------------------------------------------------------------------


def test_where_nothing_is_behind_nobody_waits(rng: random.Random) -> None:
    for _ in range(300):
        level0, filled = rng.randrange(SLOW), rng.random()
        slow = Relief(rng.random() * 100, rng.random() * 100)
        assert backlog(filled, 0, level0).rate(slow, slow) == math.inf
        assert backlog(filled / 5, 1, level0 - 1).rate(slow, slow) == math.inf
        assert Pace().charge(rng.random(), rng.random(), math.inf) == 0


def test_the_more_is_behind_the_slower(rng: random.Random) -> None:
    for _ in range(2000):
        filled, flushing, level0 = rng.random(), rng.randrange(2), rng.randrange(STOP + 1)
        flush, compaction = (Relief(rng.random() * 5, rng.random() * 5) for _ in "ab")
        rate = backlog(filled, flushing, level0).rate(flush, compaction)
        more = rng.random() * (1 - filled)
        assert backlog(filled + more, flushing, level0).rate(flush, compaction) <= rate
        assert backlog(filled, 1, level0).rate(flush, compaction) <= rate
        assert backlog(filled, flushing, level0 + 1).rate(flush, compaction) <= rate
        longer = Relief(flush.expected + 1, flush.elapsed)
        assert backlog(filled, flushing, level0).rate(longer, compaction) <= rate
        longer = Relief(compaction.expected + 1, compaction.elapsed)
        assert backlog(filled, flushing, level0).rate(flush, longer) <= rate


def test_nobody_need_ask_before_there_is_a_pace(rng: random.Random) -> None:
    slow = Relief(1.0)
    for _ in range(500):
        behind = backlog(rng.random(), rng.randrange(2), rng.randrange(SLOW - 1))
        if behind.rate(slow, slow) == math.inf:
            end = behind.filled + behind.allowed(math.inf)
            until = backlog(max(behind.filled, end - 0.0101), behind.flushing, behind.level0)
            assert until.rate(slow, slow) == math.inf
            beyond = backlog(end + 0.02, behind.flushing, behind.level0)
            assert end >= 1 or beyond.rate(slow, slow) < math.inf
    assert backlog(0.5).allowed(3.0) == pytest.approx(3.0 * PIECE_SECONDS)
    assert backlog(0.5, 1).allowed(math.inf) > 0, "nobody knows how long a flush takes"


def test_there_is_time_for_as_much_as_there_is_room() -> None:
    # Half of level 0's four tables, and half a memtable, in five seconds.
    rate = backlog(0.5, 0, 10).rate(Relief(0), Relief(6, 1))
    assert rate == pytest.approx(2.5 / 5)
    # Where level 0 is full, there is the memtable.
    assert backlog(0.5, 0, STOP).rate(Relief(0), Relief(5)) == pytest.approx(0.5 / 5)
    assert backlog(0.5, 0, STOP + 9).rate(Relief(0), Relief(5)) == pytest.approx(0.5 / 5)
    # Nobody knows how long it takes: go on.
    assert backlog(0.5, 1, 0).rate(Relief(0), Relief(0)) == math.inf


def test_what_takes_longer_than_expected_goes_on_for_a_while() -> None:
    assert Relief(4, 1).seconds_left == 3
    assert Relief(4, 4).seconds_left == 1
    assert Relief(4, 40).seconds_left == 10
    assert Relief(0, 40).seconds_left == 10


def test_speed_follows_what_was_measured_last() -> None:
    speed = Speed()
    assert speed.expected(100) == 0
    speed.measure(10, 2)
    assert speed.expected(100) == pytest.approx(20)
    for _ in range(20):
        speed.measure(10, 4)
    assert speed.expected(100) == pytest.approx(40, rel=1e-3)


def test_a_job_is_measured_when_it_has_ended_well() -> None:
    drain = Drain()
    assert drain.relief(0.0) == Relief(0.0)
    drain.begin(10.0, 2)
    assert drain.relief(13.0) == Relief(0.0, 3.0)
    drain.end(14.0, 2)
    drain.begin(20.0, 4)
    assert drain.relief(21.0).expected == pytest.approx(8.0)
    drain.end(1000.0, None)
    assert drain.relief(1001.0).elapsed == 0
    drain.begin(2000.0, 4)
    assert drain.relief(2000.0).expected == pytest.approx(8.0)


# -- Delays --------------------------------------------------------------------------------


def test_what_is_owed_is_paid_in_pieces(rng: random.Random) -> None:
    pace, now, paid, rate = Pace(), 0.0, 0.0, 3.0
    pace.charge(now, 0.0, rate)
    for _ in range(10_000):
        grown = rng.random() / 1000
        delay = pace.charge(now, grown, rate)
        assert delay == 0 or PIECE_SECONDS <= delay <= LONGEST_SECONDS
        now, paid = now + delay, paid + grown
    assert now == pytest.approx(paid / rate, abs=PIECE_SECONDS)


def test_nobody_waits_for_what_somebody_else_has_waited_for() -> None:
    pace = Pace()
    pace.charge(0.0, 0.0, 1.0)
    assert pace.charge(0.0, 0.03, 1.0) == pytest.approx(0.03)
    assert pace.charge(0.01, 0.0, 1.0) == pytest.approx(0.02)
    assert pace.charge(0.03, 0.0, 1.0) == 0
    assert pace.charge(5.0, 0.01, 1.0) == pytest.approx(0.01)  # time that passed is no credit


def test_a_large_write_is_paid_for_by_the_next_ones_too() -> None:
    pace, now, delays = Pace(), 0.0, []
    assert pace.charge(now, 0.2, 1.0) == 0, "written before there was a pace"
    pace.charge(now, 0.2, 1.0)
    for _ in range(10):
        delays.append(pace.charge(now, 0.0, 1.0))
        now += delays[-1]
    assert delays[:6] == pytest.approx([LONGEST_SECONDS] * 6)
    assert sum(delays) == pytest.approx(0.2)
    pace.charge(now, 9.0, 1.0)
    assert pace.charge(now, 0.0, math.inf) == 0
    assert pace.charge(now, 0.0, 1.0) == 0, "owed from before there was room again"


def test_no_room_at_all_is_a_delay_and_no_error() -> None:
    pace = Pace()
    pace.charge(0.0, 0.0, 0.0)
    assert pace.charge(0.0, 0.1, 0.0) == LONGEST_SECONDS


# -- A writer and its drain ----------------------------------------------------------------


@attrs.frozen
class Machine:
    """Seconds that things take: filling and flushing a write buffer, compacting level 0.

    What a compaction takes for each table comes on top of ``compaction``; all of that is off by up
    to the share ``noise``.
    """

    fill: float = 0.03
    flush: float = 0.08
    compaction: float = 0.2
    table: float = 0.05
    noise: float = 0.0


class Life:
    """A writer that writes as fast as it may, and what it waited for."""

    def __init__(self, machine: Machine, batch: float, rng: random.Random):
        self.machine = machine
        self.batch = batch
        self.rng = rng
        self.now = self.filled = 0.0
        self.level0 = 0
        self.flushed_at: float | None = None
        self.compacted_at: float | None = None
        self.compacting = 0
        self.flushing, self.relieving = Drain(), Drain()
        self.pace = Pace()
        self.seen, self.unhindered = backlog(0.0), 0.0
        self.delays: list[float] = []
        self.stops: list[float] = []

    def write(self, buffers: float, paced: bool = True) -> float:
        """Write so many buffers in batches; how many in a second that was."""
        begun = self.now
        for _ in range(round(buffers / self.batch)):
            self.stop_if_full()
            if paced and self.filled >= self.unhindered:
                self.slow_down()
            self.run_until(self.now + self.machine.fill * self.batch)
            self.filled += self.batch
        return buffers / (self.now - begun)

    def stop_if_full(self) -> None:
        if self.filled < 1:
            return
        begun = self.now
        while self.flushed_at is not None or self.level0 >= STOP:
            self.run_until(min(at for at in (self.flushed_at, self.compacted_at) if at is not None))
        if self.now > begun:
            self.stops.append(self.now - begun)
        self.filled = self.unhindered = 0.0
        self.flushing.begin(self.now, 1)
        self.flushed_at = self.now + self.machine.flush * self.error()

    def slow_down(self) -> None:
        behind = backlog(self.filled, int(self.flushed_at is not None), self.level0)
        rate = behind.rate(self.flushing.relief(self.now), self.relieving.relief(self.now))
        delay = self.pace.charge(self.now, behind.grown_since(self.seen), rate)
        self.seen, self.unhindered = behind, self.filled + behind.allowed(rate)
        if delay:
            self.delays.append(delay)
            self.run_until(self.now + delay)

    def run_until(self, moment: float) -> None:
        """Have done by the background what is done by then."""
        while True:
            ends = [at for at in (self.flushed_at, self.compacted_at) if at is not None]
            if not ends or min(ends) > moment:
                self.now = moment
                return
            self.now = min(ends)
            self.unhindered = 0.0  # what is new is looked at
            if self.flushed_at == self.now:
                self.flushed_at = None
                self.flushing.end(self.now, 1)
                self.level0 += 1
            if self.compacted_at == self.now:
                self.compacted_at = None
                self.relieving.end(self.now, self.work(self.compacting))
                self.level0 -= self.compacting
            if self.compacted_at is None and self.level0 >= COMPACT:
                self.compacting = self.level0
                self.relieving.begin(self.now, self.work(self.compacting))
                self.compacted_at = self.now + self.work(self.compacting) * self.error()

    def work(self, tables: int) -> float:
        return self.machine.compaction + self.machine.table * tables

    def error(self) -> float:
        return 1 + self.machine.noise * self.rng.uniform(-1, 1)


MACHINES = {
    "the flush is slowest": Machine(table=0.01),
    "compactions are slowest": Machine(compaction=1.0),
    "compactions are far slower": Machine(compaction=2.0, table=0.15, flush=0.2),
    "the writer is slowest": Machine(fill=0.3, table=0.01, compaction=0.1),
    "nobody knows exactly": Machine(compaction=1.0, noise=0.2),
}
BATCHES = (0.03, 0.001)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_writer_settles_at_what_the_background_can_take(
    machine: str, batch: float, test_seed: int
) -> None:
    paced, unpaced = (Life(MACHINES[machine], batch, random.Random(test_seed)) for _ in "ab")
    # What was measured lately is known after the first few.
    for life in (paced, unpaced):
        life.write(60, life is paced)
        life.delays.clear()
        life.stops.clear()
    throughput, possible = paced.write(300), unpaced.write(300, paced=False)
    assert throughput > 0.9 * possible
    assert max(paced.delays, default=0) <= LONGEST_SECONDS
    if machine == "the writer is slowest":
        assert sum(paced.delays) + sum(paced.stops) < 0.01 * 300 / throughput
        return
    assert sum(unpaced.stops) > 0.2 * 300 / possible, "there is a wall, of which this is to keep"
    assert sum(paced.stops) < 0.02 * 300 / throughput
    assert max(paced.stops, default=0) < 0.4 * max(unpaced.stops)


def test_a_slower_drain_is_followed(test_seed: int) -> None:
    life = Life(Machine(), 0.003, random.Random(test_seed))
    fast = life.write(60)
    life.machine = Machine(flush=0.8)
    life.write(60)
    slow = life.write(60)
    assert fast > 10
    assert slow == pytest.approx(1 / 0.8, rel=0.1)
    life.machine = Machine()
    life.write(60)
    assert life.write(60) == pytest.approx(fast, rel=0.1)


def test_a_burst_that_fits_is_not_slowed() -> None:
    life = Life(Machine(), 0.01, random.Random(1))
    life.write(20)
    life.run_until(life.now + 60)
    life.filled, before = 0.0, len(life.delays)
    life.write(1.2)
    assert len(life.delays) == before


def test_the_page_says_how_long_a_write_waits_at_most() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "engine.md").read_text().split())
    assert f"at most {LONGEST_SECONDS * 1000:g} milliseconds" in page
