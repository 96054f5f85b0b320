"""Interpreters that end, or are signalled, or run short of stack, in the middle of everything.

Each runs in a process of its own, with a limit after which it hangs: it says then where it stands.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lsm
from tests.effort import by_effort
from tests.lsm.patience import patient

PATIENCE = 90

BEGIN = f"""
import faulthandler, gc, os, random, signal, sys, threading
import lsm

faulthandler.dump_traceback_later({PATIENCE}, exit=True)
path, rng, count = sys.argv[1], random.Random(int(sys.argv[2])), int(sys.argv[3])
TINY = dict(
    write_buffer_size=2000, max_file_size=1024, level_size_base=2048, level_size_ratio=2,
    level0_compact_files=2,
)

def opened(**options):
    return lsm.DB(path, create_if_missing=True, **(TINY | options))

def tell(number):
    os.write(1, b"%d\\n" % number)
"""

END = """
db.flush()
assert db.stats().background_error is None
found = dict(db)
db.close()
with lsm.DB(path, paranoid_checks=True) as db:
    assert dict(db) == found
    assert db.stats().log_losses == ()
print("whole", len(found))
"""


def begun(code: str, path: Path, seed: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN + code, str(path), str(seed), str(count)],
        env=os.environ | {"PYTHONPATH": ":".join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """A process's status, and what it has said and complained of."""
    try:
        said, complaints = process.communicate(timeout=2 * PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        said, complaints = process.communicate()
        pytest.fail(f"does not end:\n{complaints}")
    return process.returncode, said, complaints


def said_by(code: str, path: Path, seed: int, count: int = 0) -> str:
    """What a program says that ends by itself, and well."""
    status, said, complaints = ended(begun(code, path, seed, count))
    if (status, complaints) != (0, ""):
        pytest.fail(f"ended with {status}, and said {said}:\n{complaints}")
    return said


def check_acknowledged(path: Path, said: str) -> None:
    """See that all are there of which a program has told, and that LevelDB can read them."""
    told = [int(line) for line in said.splitlines()]
    with lsm.DB(path, paranoid_checks=True) as db:
        found = dict(db)
        assert db.stats().log_losses == ()
    assert {b"%06d" % number for number in told} <= set(found)
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(path), paranoid_checks=True) as db:
        assert dict(db) == found


# -- Ends ----------------------------------------------------------------------------------

DAEMONS = """
db = opened()

def write():
    number = 0
    while True:
        db.put(b"%06d" % number, b"x" * 30)
        tell(number)
        number += 1

def overwrite():
    while True:
        db.put(b"overwritten", bytes(100))

def read():
    while True:
        list(db.iterator())

def look_back():
    while True:
        db.snapshot().get(b"000001")
        db.stats()

def compact():
    while True:
        db.compact_range()

def until_it_is_closed(work):
    try:
        work()
    except RuntimeError as error:
        if "closed" not in str(error):
            raise

for work in [write, *rng.sample([overwrite, read, look_back, compact], 2)]:
    threading.Thread(target=until_it_is_closed, args=(work,), daemon=True).start()
while db.get(b"%06d" % count) is None:
    pass
"""

ENDS = {
    "exit": ("sys.exit(3)", 3, ""),
    "interrupt": ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt"),
    "error": ("raise ValueError('at the end')", 1, "ValueError: at the end"),
    "end": ("", 0, ""),
    "cycle": ("gc.disable(); cycle = [db]; cycle.append(cycle); del cycle", 0, ""),
    "frozen": ("gc.freeze(); kept = [db, db.iterator(), db.snapshot()]", 0, ""),
}


@pytest.mark.parametrize("number", range(by_effort(1, 2, 1000)))
@pytest.mark.parametrize("end", ENDS)
def test_an_interpreter_ends_while_daemon_threads_are_at_work(
    end: str, number: int, tmp_path: Path, rng: random.Random
) -> None:
    """Soon, without a word of its own, and with all that was acknowledged."""
    code, expected, last_word = ENDS[end]
    path, count = tmp_path / "db", rng.randrange(200)
    process = begun(DAEMONS + code, path, rng.getrandbits(32), count)
    status, said, complaints = ended(process)
    assert status == expected, complaints
    assert complaints.splitlines()[-1:] == [last_word] * bool(last_word), complaints
    assert complaints.count("Traceback") == bool(last_word), complaints
    check_acknowledged(path, said)


RELEASED = (
    """
gc.disable()
for way in range(4):
    db = opened()
    db.put(b"%d" % way, b"1")
    iterator, snapshot = db.iterator(), db.snapshot()
    next(iterator)
    if way == 0:
        del db, iterator, snapshot
    elif way == 1:
        db = iterator = None
        del snapshot
    elif way == 2:
        def use(db):
            raise KeyError
        try:
            use(db)
        except KeyError:
            pass
        del db, iterator, snapshot
    else:
        cycle = [db, iterator, snapshot]
        cycle.append(cycle)
        del db, iterator, snapshot, cycle
        gc.collect()
    lsm.DB(path).close()
db = opened()
"""
    + END
)


def test_a_database_that_was_never_closed_is_released_with_the_last_who_has_it(
    tmp_path: Path, test_seed: int
) -> None:
    assert said_by(RELEASED, tmp_path / "db", test_seed) == "whole 4\n"


# -- Signals -------------------------------------------------------------------------------

CTRL_C = (
    """
# Who is started in the background of a shell is not interrupted, and neither are its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
db, sure = opened(write_buffer_size=rng.choice((500, 1 << 20))), []
begin, pause = threading.Semaphore(0), threading.Event()

def press():
    while True:
        begin.acquire()
        pause.wait(rng.random() * 0.004)
        os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press, daemon=True).start()
number = 0
for turn in range(count):
    try:
        begin.release()
        while True:
            number += 1
            key = b"%06d" % number
            match rng.randrange(8):
                case 0:
                    db.put(key, b"v", sync=True)
                case 1:
                    with db.write_batch() as batch:
                        batch.put(key, b"v")
                case 2:
                    next(db.iterator(start=b"%06d" % rng.randrange(number + 1)), None)
                    continue
                case _:
                    db.put(key, b"v")
            sure.append(key)
    except KeyboardInterrupt:
        pass
    number += 1
    db.put(b"after %d" % turn, b"v")
    sure.append(b"after %d" % turn)
assert all(db.get(key) == b"v" for key in sure)
assert set(sure) <= set(db.iterator(include_value=False))
assert len(list(db)) <= len(sure) + count
"""
    + END
)


@pytest.mark.parametrize("number", range(by_effort(1, 3, 200)))
def test_interruptions_from_the_keyboard_cost_no_later_write(
    number: int, tmp_path: Path, test_seed: int
) -> None:
    said = said_by(CTRL_C, tmp_path / "db", test_seed, by_effort(40, 80, 2000))
    assert said.startswith("whole ")


CLOSED_BY_A_HANDLER = """
db = opened()

def close(number, frame):
    db.close()
    assert db.closed
    db.close()
    LEAVE

signal.signal(signal.SIGTERM, close)
number = 0
try:
    while True:
        db.put(b"%06d" % number, b"x" * 30, sync=number % 50 == 0)
        tell(number)
        number += 1
except RuntimeError as error:
    assert "closed" in str(error).lower(), error
    sys.exit(7)
"""

LEAVES = {"exit": "sys.exit(7)", "at once": "os._exit(7)", "return": "return"}


@pytest.mark.parametrize("number", range(by_effort(1, 2, 1000)))
@pytest.mark.parametrize("leave", LEAVES)
def test_a_handler_closes_in_the_middle_of_a_put(
    leave: str, number: int, tmp_path: Path, rng: random.Random
) -> None:
    """And leaves the program, or returns; then the put, or the next one, is refused."""
    code = CLOSED_BY_A_HANDLER.replace("LEAVE", LEAVES[leave])
    process = begun(code, tmp_path / "db", rng.getrandbits(32), 0)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(rng.randrange(1, 300))]
    process.terminate()
    status, said, complaints = ended(process)
    assert (status, complaints) == (7, "")
    check_acknowledged(tmp_path / "db", "".join(lines) + said)


READ_BY_A_HANDLER = (
    """
db = opened(lru_cache_size=2000, max_open_files=3)
for number in range(500):
    db.put(b"%05d" % number, b"x")
handled = 0

def look(number, frame):
    global handled
    handled += 1
    key = b"%05d" % rng.randrange(500)
    assert db.get(key) in (b"x", b"y")
    assert next(db.iterator(start=key))[0] == key
    assert next(db.iterator(reverse=True))[0] == b"00499"
    with db.snapshot() as snapshot:
        assert len(list(snapshot.iterator(start=b"001", stop=b"002"))) == 100
    db.stats()
    signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.004 * rng.random())

signal.signal(signal.SIGALRM, look)
signal.setitimer(signal.ITIMER_REAL, 0.005)
number = 0
while handled < count:
    number += 1
    db.put(b"%05d" % (number % 500), b"y")
    assert len(list(db.iterator(start=b"002", stop=b"003"))) == 100
    if number % 100 == 0:
        db.flush()
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    + END
)


def test_a_handler_reads_in_the_middle_of_everything(tmp_path: Path, test_seed: int) -> None:
    said = said_by(READ_BY_A_HANDLER, tmp_path / "db", test_seed, by_effort(60, 100, 4000))
    assert said == "whole 500\n"


# -- Finalizers ----------------------------------------------------------------------------

FINALIZERS = (
    """
db = opened(write_buffer_size=rng.choice((2000, 1 << 20)))
ended = 0

class Session:
    '''Ends whenever the collector comes by: in a cycle, with a key of its own.'''

    def __init__(self, number):
        self.key = b"session %d" % number
        self.me = self
        db.put(self.key, b"open")

    def __del__(self):
        global ended
        ended += 1
        assert db.get(self.key) == b"open"
        db.delete(self.key)
        db.put(b"last", self.key)

gc.set_threshold(rng.choice((5, 20, 100)))
for number in range(count):
    session = Session(number)
    del session
    db.put(b"%04d" % (number % 50), b"x" * 10)
    if number % 50 == 0:
        list(db)
while ended < count:  # in vain while another thread is at it
    gc.collect()
assert len(dict(db)) == 51, sorted(dict(db))
"""
    + END
)


@pytest.mark.parametrize("number", range(by_effort(1, 3, 200)))
def test_finalizers_write_in_the_middle_of_writes(
    number: int, tmp_path: Path, test_seed: int
) -> None:
    said = said_by(FINALIZERS, tmp_path / "db", test_seed, by_effort(1000, 2000, 10_000))
    assert said == "whole 51\n"


@patient
def test_a_finalizer_in_a_thread_that_has_just_begun_waits_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has started it waits until it is known, and starts no other meanwhile."""
    usual, came = threading.Event.set, []

    def set_within(event: threading.Event) -> None:
        thread = sys._getframe(1).f_locals.get("self")
        if isinstance(thread, threading.Thread) and thread.name == "lsm-flush" and not came:
            came.append(thread)
            for number in range(3):
                db.put(b"within %d" % number, b"1")
        usual(event)

    monkeypatch.setattr(threading.Event, "set", set_within)
    with lsm.DB(tmp_path / "db", create_if_missing=True, write_buffer_size=1) as db:
        for number in range(5):
            db.put(b"%d" % number, b"1")
        db.wait_until_idle()
        assert len(list(db)) == 8
    assert came


# -- Near the end of the stack -------------------------------------------------------------

DEEP = """
for sync in (False, True):
    for options in ({}, {"write_buffer_size": 1 << 20}):
        db, sure, refused = opened(**options), {}, 0
        for number in range(200):
            db.put(b"before %03d" % number, b"v")
            sure[b"before %03d" % number] = b"v"
        next(db.iterator())
        for number in range(200, 300):  # not in order yet
            db.put(b"before %03d" % number, b"v")
            sure[b"before %03d" % number] = b"v"

        def walk(depth):
            global refused
            try:
                walk(depth + 1)
            except RecursionError:
                pass
            key = b"%05d" % depth
            try:
                found = next(db.iterator(start=b"before 1"), None)
                assert found == (b"before 100", b"v")
                assert db.get(b"before 250") == b"v"
                db.put(key, b"%d" % sync, sync=sync)
                sure[key] = b"%d" % sync
            except RecursionError:
                refused += 1

        walk(0)
        assert refused > 5 or not sync  # which takes steps of Python
        assert len(sure) > 900
        db.put(b"goes on", b"1")
        sure[b"goes on"] = b"1"
        found = dict(db)
        assert {key: found.get(key) for key in sure} == sure
        assert len(found) <= len(sure) + refused
        assert db.stats().background_error is None
        db.close()
        with lsm.DB(path) as db:
            assert dict(db) == found
        lsm.destroy_db(path)
print("done")
"""


def test_reads_and_writes_at_every_depth_of_the_stack(tmp_path: Path, test_seed: int) -> None:
    assert said_by(DEEP, tmp_path / "db", test_seed) == "done\n"
