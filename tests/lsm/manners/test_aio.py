"""Databases in an event loop, which goes on whatever they wait for; and what cancelling leaves."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

import lsm
import lsm.aio
from lsm.aio import iteration
from tests.lsm.manners.held import HeldFileSystem

_T = TypeVar("_T")

ENTRIES = [(b"%05d" % number, b"value %d" % number) for number in range(3000)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "db")


@pytest.fixture
def filled(path: str) -> str:
    """Where a database with some tables is, which nobody has open."""
    with lsm.DB(path, create_if_missing=True) as db:
        with db.write_batch() as batch:
            for key, value in ENTRIES:
                batch.put(key, value)
        db.compact_range()
    return path


@pytest.fixture
def storage() -> Iterator[HeldFileSystem]:
    storage = HeldFileSystem()
    yield storage
    storage.let_go()


def run(main: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    return asyncio.run(main())


async def breathe() -> None:
    """Let all that can go on in the loop do so."""
    for _ in range(50):
        await asyncio.sleep(0)


async def cancelled(task: asyncio.Task[Any]) -> bool:
    """Whether a task ends by being cancelled."""
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


def start(call: Awaitable[_T]) -> asyncio.Task[_T]:
    async def awaiting() -> _T:
        return await call

    return asyncio.get_running_loop().create_task(awaiting())


def test_what_is_written_is_read(path: str) -> None:
    async def main() -> None:
        async with lsm.aio.open(path, create_if_missing=True) as db:
            await db.put(b"a", b"1")
            await db.put(b"b", b"2", sync=True)
            assert await db.get(b"a") == b"1"
            assert await db.get(b"absent") is None
            assert await db.get(b"absent", b"default") == b"default"
            assert await db.get_many([b"a", b"c", b"b"]) == [b"1", None, b"2"]
            assert await db.contains(b"a")
            with db.snapshot() as snapshot:
                await db.delete(b"a")
                assert await snapshot.get(b"a") == b"1"
                assert [key async for key, _ in snapshot] == [b"a", b"b"]
            assert not await db.contains(b"a")
            async with db.write_batch() as batch:
                batch.put(b"c", b"3")
                batch.delete(b"b")
                assert await db.get(b"b") == b"2"
            part = db.prefixed_db(b"p:")
            await part.put(b"key", b"value")
            assert await part.get(b"key") == b"value"
            assert part.prefix == b"p:"
            assert [each async for each in db] == [(b"c", b"3"), (b"p:key", b"value")]
            assert [each async for each in part] == [(b"key", b"value")]
            await db.flush()
            await db.compact_range()
            await db.wait_until_idle()
            assert (await db.stats()).flushes >= 1
            assert db.name == path
        assert db.closed
        with lsm.DB(path) as again:
            assert dict(again) == {b"c": b"3", b"p:key": b"value"}

    run(main)


@pytest.mark.parametrize("reverse", [False, True])
def test_iterating_gives_what_the_database_gives(filled: str, reverse: bool) -> None:
    async def main() -> None:
        async with lsm.aio.open(filled) as db:
            options: list[dict[str, Any]] = [
                {},
                {"prefix": b"001"},
                {"start": b"00100", "stop": b"02900", "include_stop": True},
                {"include_key": False},
                {"include_value": False},
                {"include_value": False, "include_key": False},
            ]
            for each in options:
                expected = list(db.inner.iterator(reverse=reverse, **each))
                assert [item async for item in db.iterator(reverse=reverse, **each)] == expected

    run(main)


def test_a_lookup_of_cold_data_keeps_nobody_waiting(filled: str, storage: HeldFileSystem) -> None:
    async def main() -> None:
        async with lsm.aio.open(filled, storage=storage) as db:
            is_held = storage.hold("map", ".ldb")
            lookup = start(db.get(b"00001"))
            await is_held.wait()
            await breathe()
            await db.put(b"new", b"1")  # who writes waits for other threads
            assert await db.get(b"new") == b"1"  # and there are more that read
            assert not lookup.done()
            storage.let_go()
            assert await lookup == b"value 1"

    run(main)


def test_a_write_that_waits_keeps_no_lookup_waiting(path: str, storage: HeldFileSystem) -> None:
    async def main() -> None:
        async with lsm.aio.open(path, threads=1, create_if_missing=True, storage=storage) as db:
            await db.put(b"a", b"1")
            is_held = storage.hold("sync", ".log")
            writes = [start(db.put(b"%d" % number, b"", sync=True)) for number in range(3)]
            await is_held.wait()
            assert await db.get(b"a") == b"1"
            storage.let_go()
            await asyncio.gather(*writes)
            assert await db.get_many([b"0", b"1", b"2"]) == [b""] * 3

    run(main)


def test_a_cancelled_lookup_returns_at_once(filled: str, storage: HeldFileSystem) -> None:
    async def main() -> None:
        async with lsm.aio.open(filled, storage=storage) as db:
            is_held = storage.hold("map", ".ldb")
            lookup = start(db.get(b"00001"))
            await is_held.wait()
            lookup.cancel()
            assert await cancelled(lookup)
            storage.let_go()
            assert await db.get(b"00001") == b"value 1"

    run(main)


def test_a_cancelled_write_is_written_before_anybody_goes_on(
    path: str, storage: HeldFileSystem
) -> None:
    async def main() -> None:
        async with lsm.aio.open(path, create_if_missing=True, storage=storage) as db:
            is_held = storage.hold("sync", ".log")
            write = start(db.put(b"key", b"value", sync=True))
            await is_held.wait()
            write.cancel()
            await breathe()
            assert not write.done()
            write.cancel()  # however often
            await breathe()
            assert not write.done()
            storage.let_go()
            assert await cancelled(write)
            assert await db.get(b"key") == b"value"

    run(main)


def test_a_cancelled_write_that_had_not_begun_never_begins(
    path: str, storage: HeldFileSystem
) -> None:
    async def main() -> None:
        async with lsm.aio.open(path, threads=1, create_if_missing=True, storage=storage) as db:
            is_held = storage.hold("sync", ".log")
            first = start(db.put(b"first", b"", sync=True))
            await is_held.wait()
            second = start(db.put(b"second", b""))
            await breathe()
            second.cancel()
            assert await cancelled(second)
            storage.let_go()
            await first
            await db.put(b"third", b"")
            assert [key async for key, _ in db] == [b"first", b"third"]

    run(main)


def test_a_batch_is_written_whole_or_not_at_all(path: str, storage: HeldFileSystem) -> None:
    async def main() -> None:
        async with lsm.aio.open(path, create_if_missing=True, storage=storage) as db:

            async def collect(waits: asyncio.Event) -> None:
                async with db.write_batch() as batch:
                    batch.put(b"a", b"1")
                    await waits.wait()
                    batch.put(b"b", b"2")

            collecting = start(collect(asyncio.Event()))
            await breathe()
            collecting.cancel()
            assert await cancelled(collecting)
            assert [each async for each in db] == []

            async def fail(transaction: bool) -> None:
                async with db.write_batch(transaction=transaction) as batch:
                    batch.put(b"c", b"3")
                    raise ZeroDivisionError

            for transaction, expected in ((True, []), (False, [b"c"])):
                with pytest.raises(ZeroDivisionError):
                    await fail(transaction)
                assert [key async for key, _ in db] == expected

            async def write() -> None:
                async with db.write_batch(sync=True) as batch:
                    batch.put(b"d", b"4")
                    batch.delete(b"c")

            is_held = storage.hold("sync", ".log")
            writing = start(write())
            await is_held.wait()
            writing.cancel()
            await breathe()
            assert not writing.done()
            storage.let_go()
            assert await cancelled(writing)
            assert [key async for key, _ in db] == [b"d"]

    run(main)


def test_an_iterator_reads_no_further_than_it_is_asked(filled: str) -> None:
    async def main() -> None:
        async with lsm.aio.open(filled) as db:
            entries = db.iterator()
            await db.put(b"00000a", b"before the first step")
            assert await anext(entries) == ENTRIES[0]
            await db.put(b"00000b", b"after it")
            await breathe()
            assert len(entries._ready) == iteration._FIRST_ENTRIES - 1
            assert await anext(entries) == (b"00000a", b"before the first step")
            assert [each async for each in entries] == ENTRIES[1:]
            with pytest.raises(StopAsyncIteration):
                await anext(entries)

    run(main)


def test_chunks_are_of_fewer_entries_where_these_are_large(path: str) -> None:
    async def main() -> None:
        async with lsm.aio.open(path, create_if_missing=True) as db:
            for number in range(100):
                await db.put(b"%03d" % number, bytes(100_000))
            entries = db.iterator()
            ready = [len(entries._ready) async for _ in entries]
            assert len(ready) == 100
            assert max(ready[iteration._FIRST_ENTRIES :]) < 3
            assert len([key async for key in db.iterator(include_value=False)]) == 100

    run(main)


def test_a_cancelled_step_loses_no_entry(filled: str, storage: HeldFileSystem) -> None:
    async def main() -> None:
        async with lsm.aio.open(filled, storage=storage) as db:
            is_held = storage.hold("map", ".ldb")
            entries = db.iterator()
            step = start(anext(entries))
            await is_held.wait()
            step.cancel()
            assert await cancelled(step)
            others = [start(anext(entries)) for _ in range(3)]  # who wait for the same chunk
            await breathe()
            others[1].cancel()
            storage.let_go()
            assert await cancelled(others[1])
            found = {await others[0], await others[2]}
            assert found | {each async for each in entries} == set(ENTRIES)

    run(main)


def test_an_iterator_that_was_closed_says_so(filled: str) -> None:
    async def main() -> None:
        async with lsm.aio.open(filled) as db:
            async with db.iterator() as entries:
                assert await anext(entries) == ENTRIES[0]
            with pytest.raises(RuntimeError, match="closed"):
                await anext(entries)
            await db.iterator().aclose()
            entries = db.iterator()
            assert await anext(entries) == ENTRIES[0]
        assert await anext(entries) == ENTRIES[1]  # what it has is there
        entries._ready.clear()
        with pytest.raises(RuntimeError, match="closed"):
            await anext(entries)

    run(main)


def test_wrong_arguments_are_those_of_the_database(filled: str) -> None:
    async def main() -> None:
        async with lsm.aio.open(filled) as db:
            with pytest.raises(TypeError, match="key is bytes"):
                await db.get("text")  # type: ignore[call-overload]
            with pytest.raises(TypeError, match="value is bytes"):
                await db.put(b"key", None)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="prefix"):
                await anext(db.iterator(prefix=b"", start=b""))
            with pytest.raises(TypeError, match=r"await db\.contains"):
                b"key" in db  # noqa: B015 - it raises
        for threads in (0, 1000, "4"):
            with pytest.raises((TypeError, ValueError), match="threads"):
                lsm.aio.open(filled, threads=threads)  # type: ignore[arg-type]

    run(main)


def test_closing_waits_in_a_thread_for_what_is_under_way(
    filled: str, storage: HeldFileSystem
) -> None:
    async def main() -> None:
        db = await lsm.aio.open(filled, storage=storage)
        is_held = storage.hold("map", ".ldb")
        lookups = [start(db.get(b"%05d" % number)) for number in range(8)]
        await is_held.wait()
        closing = start(db.close())
        await breathe()
        assert not closing.done()
        closing.cancel()
        await breathe()
        assert not closing.done()
        storage.let_go()
        assert await cancelled(closing)
        assert db.closed
        await db.close()  # which it is
        for found in await asyncio.gather(*lookups, return_exceptions=True):
            assert isinstance(found, bytes | RuntimeError), found
        lanes = ("aio-lsm-reading", "aio-lsm-writing", "aio-lsm-upkeep")
        assert not [each for each in threading.enumerate() if each.name.startswith(lanes)]
        for use in (db.get(b"1"), db.put(b"1", b""), db.flush(), anext(db.iterator())):
            with pytest.raises(RuntimeError, match="closed"):
                await use

    run(main)


def test_an_opening_that_is_cancelled_leaves_it_closed(
    filled: str, storage: HeldFileSystem
) -> None:
    async def main() -> None:
        is_held = storage.hold("create", ".log")
        with lsm.DB(filled) as db:
            db.put(b"replayed", b"1")  # so that opening writes
        opening = start(lsm.aio.open(filled, storage=storage))
        await is_held.wait()
        opening.cancel()
        await breathe()
        assert not opening.done()
        storage.let_go()
        assert await cancelled(opening)
        async with lsm.aio.open(filled) as again:
            assert await again.get(b"replayed") == b"1"

    run(main)


def test_an_opening_that_fails_says_why(path: str) -> None:
    async def main() -> None:
        with pytest.raises(lsm.NotADatabaseError, match="create_if_missing"):
            await lsm.aio.open(path)
        with pytest.raises(lsm.NotADatabaseError, match="create_if_missing"):
            async with lsm.aio.open(path):
                raise AssertionError

    run(main)


def test_a_cancelled_compaction_ends_early_and_leaves_a_whole_database(
    filled: str, storage: HeldFileSystem
) -> None:
    async def main() -> None:
        async with lsm.aio.open(filled, storage=storage) as db:
            is_held = storage.hold("create", ".ldb")
            threads = set()

            def tell(step: Any) -> None:
                assert step.read_bytes <= step.total_bytes
                threads.add(threading.current_thread())

            compacting = start(db.compact_range(force=True, progress=tell))
            await is_held.wait()
            compacting.cancel()
            await breathe()
            assert not compacting.done()
            storage.let_go()
            assert await cancelled(compacting)
            assert [each async for each in db] == ENTRIES
            await db.compact_range(force=True, progress=tell)
            await breathe()
            assert threads == {threading.main_thread()}
            assert [each async for each in db] == ENTRIES

    run(main)


def test_many_tasks_read_and_write_at_once(path: str, rng: random.Random) -> None:
    async def main() -> None:
        async with lsm.aio.open(path, threads=3, create_if_missing=True) as db:
            model: dict[bytes, bytes] = {}

            async def work(worker: int) -> None:
                for number in range(30):
                    key = b"%d %d" % (worker, rng.randrange(10))
                    if rng.random() < 0.3:
                        await db.delete(key)
                        model.pop(key, None)
                    else:
                        model[key] = b"%d" % number
                        await db.put(key, model[key])
                    assert await db.get(key) == model.get(key)

            await asyncio.gather(*(work(worker) for worker in range(20)))
            assert [each async for each in db] == sorted(model.items())
            named = [each.name for each in threading.enumerate() if "aio-lsm" in each.name]
            assert len(named) <= 3 + 3 + 1

    run(main)


def test_importing_the_engine_imports_no_event_loop() -> None:
    import subprocess
    import sys

    found = subprocess.run(
        [sys.executable, "-c", "import sys, lsm; print('asyncio' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert found.stdout.split() == ["False"]
