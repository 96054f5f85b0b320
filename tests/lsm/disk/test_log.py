"""Logs: LevelDB reads ours, we read its, and damage never adds or alters a record."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsm.disk.checksum import crc32c, mask
from lsm.disk.fragments import (
    BLOCK_BYTES,
    FIRST,
    FULL,
    HEADER_BYTES,
    LAST,
    MIDDLE,
)
from lsm.disk.log import LogReader, LogWriter, Loss
from lsm.kernels.python.batch import decode_batch, encode_batch
from tests.effort import examples

ROOM = BLOCK_BYTES - HEADER_BYTES

Operations: TypeAlias = list[tuple[bytes, bytes | None]]

# What LevelDB writes for: put a 1; delete a; one batch of put key xxx..., delete zz, put "" "";
# an empty batch.
BATCHES: list[Operations] = [
    [(b"a", b"1")],
    [(b"a", None)],
    [(b"key", b"x" * 200), (b"zz", None), (b"", b"")],
    [],
]
GOLDEN = bytes.fromhex(
    "e99f7819 1100 01 0100000000000000 01000000 01 01 61 01 31"
    "b3191436 0f00 01 0200000000000000 01000000 00 01 61"
    "014ad64a e200 01 0300000000000000 03000000"
    f"01 03 6b6579 c801 {'78' * 200} 00 02 7a7a 01 00 00"
    "3242c56c 0c00 01 0600000000000000 00000000"
)


class MemoryFile:
    """The part of a file that a log writer needs."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.fails = False

    def append(self, data: bytes) -> None:
        if self.fails:
            raise OSError("disk full")
        self.data += data


def log_of(records: list[bytes], offset: int = 0) -> bytes:
    file = MemoryFile()
    writer = LogWriter(file, offset)  # type: ignore[arg-type]
    for record in records:
        writer.add(record)
    assert writer.offset == offset + len(file.data)
    return bytes(file.data)


def fragment(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IHB", mask(crc32c(bytes((kind,)) + payload)), len(payload), kind) + payload


def read(data: bytes, *, until_loss: bool = False) -> tuple[list[bytes], list[Loss], int]:
    reader = LogReader(data, "000007.log")
    records = reader.records_until_loss() if until_loss else reader.records()
    return list(records), reader.losses, reader.valid_end


def is_subsequence(some: list[bytes], of: list[bytes]) -> bool:
    rest = iter(of)
    return all(each in rest for each in some)


def changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


sizes = st.integers(0, 50) | st.sampled_from([ROOM - 20, ROOM - 1, ROOM, ROOM + 1, 3 * BLOCK_BYTES])
record_lists = st.lists(
    st.tuples(sizes, st.binary(min_size=1, max_size=3)).map(
        lambda drawn: (drawn[1] * drawn[0])[: drawn[0]]
    ),
    max_size=8,
)


class TestIntactLogs:
    def test_golden_bytes(self) -> None:
        sequences = [1, 2, 3, 6]
        encoded = [encode_batch(*pair) for pair in zip(sequences, BATCHES, strict=True)]
        assert log_of(encoded) == GOLDEN
        records, losses, valid_end = read(GOLDEN)
        decoded = [decode_batch(record) for record in records]
        assert decoded == list(zip(sequences, BATCHES, strict=True))
        assert (losses, valid_end) == ([], len(GOLDEN))

    @examples(100)
    @given(record_lists)
    @example([b"x" * (ROOM - HEADER_BYTES), b"after an empty first fragment"])
    @example([b"x" * (ROOM - 3), b"after a tail of three zeros"])
    @example([b"", b"", b""])
    @example([])
    def test_what_is_written_is_read_back(self, records: list[bytes]) -> None:
        data = log_of(records)
        assert read(data) == (records, [], len(data))
        assert read(data, until_loss=True) == (records, [], len(data))

    @pytest.mark.parametrize("left", range(HEADER_BYTES + 3))
    def test_every_tail_of_a_block_is_read(self, left: int) -> None:
        records = [b"x" * (ROOM - left), b"next", b"y" * BLOCK_BYTES, b"last"]
        data = log_of(records)
        assert read(data) == (records, [], len(data))

    def test_a_writer_goes_on_where_a_log_ends(self) -> None:
        first, second = [b"a" * 30000, b"b" * 2000], [b"c" * 5000, b"d"]
        begun = log_of(first)
        assert begun + log_of(second, len(begun)) == log_of(first + second)

    def test_a_failed_append_does_not_move_the_writer(self) -> None:
        file = MemoryFile()
        writer = LogWriter(file)  # type: ignore[arg-type]
        writer.add(b"one")
        file.fails = True
        with pytest.raises(OSError, match="disk full"):
            writer.add(b"two")
        assert writer.offset == len(file.data) == HEADER_BYTES + 3

    def test_the_valid_end_follows_the_records_that_are_drawn(self) -> None:
        reader = LogReader(log_of([b"one", b"three"]), "log")
        records = reader.records()
        assert reader.valid_end == 0
        assert (next(records), reader.valid_end) == (b"one", 10)
        assert (next(records), reader.valid_end) == (b"three", 22)

    def test_a_reader_reads_again(self) -> None:
        reader = LogReader(changed(log_of([b"one", b"two", b"six"]), 17, b"O"), "log")
        first = list(reader.records()), reader.losses, reader.valid_end
        assert (list(reader.records()), reader.losses, reader.valid_end) == first
        assert first[0] == [b"one"]
        assert len(first[1]) == 1


class TestTails:
    def test_a_torn_record_at_the_tail_is_the_end(self) -> None:
        records = [b"one", b"two" * 20, b"x" * 40000, b"last"]
        data = log_of(records)
        ends = [len(log_of(records[:count])) for count in range(5)]
        for cut in {
            *range(200),
            *range(BLOCK_BYTES - 9, BLOCK_BYTES + 9),
            *range(39900, len(data)),
        }:
            whole = sum(end <= cut for end in ends) - 1
            for until_loss in (True, False):
                torn = read(data[:cut], until_loss=until_loss)
                assert torn == (records[:whole], [], ends[whole])

    def test_an_empty_file_is_an_empty_log(self) -> None:
        assert read(b"") == ([], [], 0)

    @pytest.mark.parametrize("zeros", [1, 6, 7, 100, BLOCK_BYTES - 10, BLOCK_BYTES, 100_000])
    def test_zeros_at_the_tail_are_the_end(self, zeros: int) -> None:
        data = log_of([b"one"])
        assert read(bytes(zeros)) == ([], [], 0)
        assert read(data + bytes(zeros)) == ([b"one"], [], 10)
        # A header that was torn behind its checksum, at the border of a page.
        assert read(data + b"\1\2\3\4" + bytes(zeros)) == ([b"one"], [], 10)

    def test_zeros_behind_the_beginning_of_a_record_are_the_end(self) -> None:
        data = log_of([b"one", b"x" * 70000])
        for blocks in (1, 2):
            torn = data[: blocks * BLOCK_BYTES] + bytes(BLOCK_BYTES)
            assert read(torn) == ([b"one"], [], 10)

    def test_a_length_that_hides_what_follows_is_no_tear(self) -> None:
        data = log_of([b"one", b"two", b"three", b"four"])
        hidden = changed(data, 10 + 5, b"\x10")
        records, [loss], valid_end = read(hidden)
        assert (records, valid_end) == ([b"one"], 10)
        assert (loss.offset, loss.bytes) == (10, len(data) - 10)
        assert "byte 10: a fragment of type 1 that ends at 4116, behind the file" in loss.reason
        # Of the last record nobody can tell.
        assert read(changed(data, 32 + 5, b"\x10")) == ([b"one", b"two", b"three"], [], 32)
        # An intact fragment follows even where it is the empty one at the very end.
        data = log_of([b"one", b""])
        assert len(read(changed(data, 5, b"\x10"))[1]) == 1


class TestLosses:
    def test_a_bad_checksum_drops_the_rest_of_its_block(self) -> None:
        records = [b"one", b"two", b"x" * (BLOCK_BYTES - 40 - HEADER_BYTES), b"next", b"last"]
        data = log_of(records)
        assert len(log_of(records[:3])) == BLOCK_BYTES - 20
        data = log_of([*records[:3], b"y" * 13, *records[3:]])  # y ends with the block
        for at in (10, 13, 14, 16, 17, 19):
            flipped = changed(data, at, bytes((data[at] ^ 1,)))
            found, losses, valid_end = read(flipped)
            assert found == [b"one", b"next", b"last"]
            assert valid_end == len(data)
            [loss] = losses
            assert (loss.offset, loss.bytes) == (10, BLOCK_BYTES - 10)
            assert loss.reason.startswith("000007.log, byte 10: a fragment that does not match its")

    def test_reading_until_a_loss_counts_the_rest_as_lost(self) -> None:
        data = log_of([b"one", b"two", b"x" * 100_000, b"last"])
        flipped = changed(data, 17, b"T")
        found, losses, valid_end = read(flipped, until_loss=True)
        assert (found, valid_end) == ([b"one"], 10)
        [loss] = losses
        assert (loss.offset, loss.bytes) == (10, len(data) - 10)
        assert loss.reason == read(flipped)[1][0].reason

    def test_damage_in_a_later_fragment_loses_the_record_from_its_beginning(self) -> None:
        data = log_of([b"one", b"x" * 100_000, b"last"])
        at = 2 * BLOCK_BYTES + 500
        found, losses, valid_end = read(changed(data, at, b"X"))
        assert (found, valid_end) == ([b"one", b"last"], len(data))
        first, second = losses
        assert (first.offset, first.bytes) == (10, 3 * BLOCK_BYTES - 10)
        assert first.reason.startswith(f"000007.log, byte {2 * BLOCK_BYTES}: a fragment that does")
        assert second.offset == 3 * BLOCK_BYTES
        assert second.reason.endswith("part of a record without a beginning")

    @pytest.mark.parametrize("kind", [MIDDLE, LAST])
    def test_a_fragment_without_the_beginning_of_its_record(self, kind: int) -> None:
        data = fragment(kind, b"orphan") + fragment(FULL, b"one")
        found, losses, valid_end = read(data)
        assert (found, valid_end) == ([b"one"], len(data))
        reason = "000007.log, byte 0: part of a record without a beginning"
        assert losses == [Loss(0, HEADER_BYTES + 6, reason)]
        assert read(data, until_loss=True) == ([], [Loss(0, len(data), reason)], 0)

    @pytest.mark.parametrize("kind", [FULL, FIRST])
    def test_a_record_without_an_end(self, kind: int) -> None:
        data = fragment(FIRST, b"un") + fragment(MIDDLE, b"finished") + fragment(kind, b"o")
        data += fragment(LAST, b"ne") if kind == FIRST else b""
        found, losses, valid_end = read(data)
        assert (found, valid_end) == ([b"one" if kind == FIRST else b"o"], len(data))
        reason = "000007.log, byte 0: a record without an end"
        assert losses == [Loss(0, 2 * HEADER_BYTES + 10, reason)]

    def test_an_empty_beginning_without_an_end_is_no_loss(self) -> None:
        for kinds in ((FULL,), (FIRST, LAST)):
            data = fragment(FIRST, b"") + b"".join(fragment(kind, b"o") for kind in kinds)
            assert read(data) == ([b"o" * len(kinds)], [], len(data))

    @pytest.mark.parametrize("kind", [0, 5, 255])
    def test_a_fragment_of_an_unknown_type(self, kind: int) -> None:
        data = fragment(FULL, b"one") + fragment(kind, b"?") + fragment(FULL, b"two")
        reason = f"000007.log, byte 10: a fragment of the unknown type {kind}; known are 1 to 4"
        assert read(data) == ([b"one", b"two"], [Loss(10, 8, reason)], len(data))
        assert read(data, until_loss=True) == ([b"one"], [Loss(10, 18, reason)], 10)
        # Within a record it takes the beginning along, and leaves the end alone.
        data = fragment(FIRST, b"o") + fragment(kind, b"?") + fragment(LAST, b"ne")
        found, losses, _ = read(data)
        assert (found, [loss.offset for loss in losses]) == ([], [0, 16])
        # Cut by the end of the file it was no record of ours either.
        [loss] = read(fragment(kind, b"????")[:-1])[1]
        assert f"a fragment of type {kind} that ends at 11, behind the file" in loss.reason

    def test_a_length_beyond_its_block(self) -> None:
        data = log_of([b"one", b"x" * 40000, b"last"])
        for length in (ROOM - 10 + 1, 0xFFFF):
            found, losses, _ = read(changed(data, 14, struct.pack("<H", length)))
            assert found == [b"one", b"last"]
            assert (losses[0].offset, losses[0].bytes) == (10, BLOCK_BYTES - 10)
            assert f"a fragment of {length} bytes, and its block has 32751 left" in losses[0].reason
        # Not even a torn record has one.
        data = changed(log_of([b"one"]), 4, b"\xfa\x7f")
        assert [loss.bytes for loss in read(data)[1]] == [10]

    def test_a_length_beyond_a_last_block_that_is_whole(self) -> None:
        data = log_of([b"x" * 32000, b"y" * (BLOCK_BYTES - 32000 - 2 * HEADER_BYTES)])
        assert len(data) == BLOCK_BYTES
        found, losses, _ = read(changed(data, 32000 + 7 + 5, b"\x10"))
        assert ([len(record) for record in found], len(losses)) == ([32000], 1)

    def test_a_hole_of_zeros_is_a_loss(self) -> None:
        """Where LevelDB goes on silently, and would replay what follows without what is gone."""
        records = [b"x" * ROOM, b"y" * ROOM, b"z"]
        data = log_of(records)
        hole = changed(data, BLOCK_BYTES, bytes(BLOCK_BYTES))
        found, losses, valid_end = read(hole)
        assert (found, valid_end) == ([records[0], b"z"], len(data))
        [loss] = losses
        assert (loss.offset, loss.bytes) == (BLOCK_BYTES, BLOCK_BYTES)
        assert "zeros where a fragment should be, and more data behind them" in loss.reason
        assert read(hole, until_loss=True)[0] == records[:1]

    def test_what_fills_the_tail_of_a_block_is_not_looked_at(self) -> None:
        data = log_of([b"x" * (ROOM - 5), b"next"])
        assert read(changed(data, BLOCK_BYTES - 5, b"#####")) == read(data)


class TestDamage:
    @examples(200)
    @given(record_lists, st.data())
    def test_a_changed_byte_loses_records_and_adds_none(
        self, records: list[bytes], data: st.DataObject
    ) -> None:
        log = log_of(records)
        if not log:
            return
        at = data.draw(st.integers(0, len(log) - 1) | st.integers(0, min(60, len(log) - 1)))
        flipped = changed(log, at, bytes((log[at] ^ data.draw(st.integers(1, 255)),)))
        found, losses, _ = read(flipped)
        assert is_subsequence(found, records)
        prefix, _, valid_end = read(flipped, until_loss=True)
        assert prefix == records[: len(prefix)]
        assert valid_end == len(log_of(prefix))
        # A loss goes unnoticed in one place: the length of the very last fragment.
        if not losses:
            assert len(found) >= len(records) - 1

    @examples(100)
    @given(record_lists, st.data())
    def test_a_log_cut_anywhere_is_a_prefix_without_losses(
        self, records: list[bytes], data: st.DataObject
    ) -> None:
        log = log_of(records)
        cut = data.draw(st.integers(0, len(log)))
        for until_loss in (True, False):
            found, losses, valid_end = read(log[:cut], until_loss=until_loss)
            assert found == records[: len(found)]
            assert losses == []
            assert valid_end == len(log_of(found)) <= cut
            assert len(found) == len(records) or len(log_of(records[: len(found) + 1])) > cut

    @examples(200)
    @given(record_lists, st.integers(0, 100_000), st.integers(0, 100_000))
    def test_a_hole_of_zeros_never_joins_what_surrounds_it(
        self, records: list[bytes], start: int, size: int
    ) -> None:
        log = log_of(records)
        hole = changed(log, start, bytes(size))[: len(log)]
        assert is_subsequence(read(hole)[0], records)
        prefix = read(hole, until_loss=True)[0]
        assert prefix == records[: len(prefix)]

    @examples(300)
    @given(
        st.binary(max_size=60)
        | st.lists(
            st.tuples(st.integers(0, 5), st.binary(max_size=5), st.binary(max_size=3)), max_size=6
        ).map(lambda drawn: b"".join(fragment(kind, data) + more for kind, data, more in drawn)),
        st.integers(0, 20),
    )
    def test_any_bytes_are_read(self, data: bytes, before: int) -> None:
        for log in (data, fragment(FULL, bytes(ROOM - before - HEADER_BYTES)) + data):
            found, losses, valid_end = read(log)
            assert 0 <= valid_end <= len(log)
            at = 0
            for loss in losses:
                assert loss.offset >= at
                assert loss.bytes > 0
                at = loss.offset + loss.bytes
            assert at <= len(log)
            prefix, lost, end = read(log, until_loss=True)
            assert prefix == found[: len(prefix)]
            assert len(lost) == min(1, len(losses))
            assert end <= valid_end
            for loss in lost:
                assert loss.offset == losses[0].offset >= end
                assert loss.offset + loss.bytes == len(log)

    def test_many_changes_at_once(self, rng: random.Random) -> None:
        records = [bytes((number,)) * rng.randrange(9000) for number in range(40)]
        log = log_of(records)
        for _ in range(300):
            damaged = bytearray(log)
            for _ in range(rng.randint(1, 20)):
                damaged[rng.randrange(len(log))] = rng.randrange(256)
            assert is_subsequence(read(bytes(damaged))[0], records)
            prefix = read(bytes(damaged), until_loss=True)[0]
            assert prefix == records[: len(prefix)]

    def test_bytes_that_all_look_like_fragments_take_no_time_to_speak_of(self) -> None:
        """Behind what looks torn there are 32 KiB of headers, each over half of what follows."""
        data = struct.pack("<IHB", 0, ROOM, FULL) + b"\1\x40" * (BLOCK_BYTES // 2 - 4)
        assert read(data) == ([], [], 0)


@pytest.fixture
def plyvel() -> ModuleType:
    found: ModuleType = pytest.importorskip("plyvel")
    return found


def newest_log(directory: Path) -> Path:
    return max(directory.glob("*.log"))


# Crossing blocks in many ways: small batches, values of 100 KiB, and tails of every length.
def some_batches(rng: random.Random) -> Iterator[Operations]:
    yield [(b"small", b"value")]
    yield []
    yield [(b"long" + bytes((number,)), rng.randbytes(100 << 10)) for number in range(5)]
    yield [(b"small", None), (b"", b""), (b"empty", b""), (b"k" * 1000, b"v" * 130)]
    for number in range(200):
        yield [(b"key%03d" % number, rng.randbytes(rng.choice((10, 127, 128, 5000))))]
    yield [(b"key%03d" % number, None) for number in range(0, 200, 3)]


def numbered(batches: list[Operations], sequence: int) -> Iterator[tuple[int, Operations]]:
    for operations in batches:
        yield sequence, operations
        sequence += len(operations)


def write_with(plyvel: ModuleType, path: Path, batches: list[Operations]) -> None:
    with plyvel.DB(str(path), create_if_missing=True, write_buffer_size=1 << 26) as db:
        for operations in batches:
            with db.write_batch() as batch:
                for key, value in operations:
                    if value is None:
                        batch.delete(key)
                    else:
                        batch.put(key, value)


def state_after(batches: list[Operations]) -> dict[bytes, bytes]:
    state: dict[bytes, bytes | None] = {}
    for operations in batches:
        state.update(operations)
    return {key: value for key, value in state.items() if value is not None}


class TestLevelDB:
    def test_its_golden_bytes(self, plyvel: ModuleType, tmp_path: Path) -> None:
        write_with(plyvel, tmp_path, BATCHES)
        assert newest_log(tmp_path).read_bytes() == GOLDEN

    def test_its_log_is_read_and_written_to_the_byte(
        self, plyvel: ModuleType, tmp_path: Path, rng: random.Random
    ) -> None:
        batches = list(some_batches(rng))
        write_with(plyvel, tmp_path, batches)
        theirs = newest_log(tmp_path).read_bytes()
        records, losses, valid_end = read(theirs)
        assert [decode_batch(record) for record in records] == list(numbered(batches, 1))
        assert (losses, valid_end) == ([], len(theirs))
        assert log_of([encode_batch(*pair) for pair in numbered(batches, 1)]) == theirs

    @pytest.mark.parametrize("left", range(HEADER_BYTES + 2))
    def test_it_fills_the_tail_of_a_block_alike(
        self, plyvel: ModuleType, tmp_path: Path, left: int
    ) -> None:
        overhead = len(encode_batch(1, [(b"key", b"")])) + 2  # a length of three bytes, not one
        fill = bytes(ROOM - left - overhead)
        batches: list[Operations] = [[(b"key", fill)], [(b"next", b"value")]]
        write_with(plyvel, tmp_path, batches)
        theirs = newest_log(tmp_path).read_bytes()
        ours = log_of([encode_batch(*pair) for pair in numbered(batches, 1)])
        assert ours == theirs
        assert len(log_of([encode_batch(1, batches[0])])) == BLOCK_BYTES - left

    def test_it_replays_a_log_of_ours(
        self, plyvel: ModuleType, tmp_path: Path, rng: random.Random
    ) -> None:
        write_with(plyvel, tmp_path, [[(b"before", b"1"), (b"other", b"2")]])
        write_with(plyvel, tmp_path, [])  # opened again, its log went into a table
        log = newest_log(tmp_path)
        assert log.read_bytes() == b""
        batches: list[Operations] = [[(b"before", None)], *some_batches(rng)]
        log.write_bytes(log_of([encode_batch(*pair) for pair in numbered(batches, 3)]))
        with plyvel.DB(str(tmp_path), paranoid_checks=True) as db:
            assert dict(db) == {b"other": b"2", **state_after(batches)}

    @pytest.mark.parametrize(
        "damage",
        [
            lambda log, at: log[:at],
            lambda log, at: log[:at] + bytes(100),
            lambda log, at: changed(log, at, bytes((log[at] ^ 1,))),
        ],
        ids=["cut", "cut, then zeros", "a bit"],
    )
    def test_it_reads_what_we_read_of_a_damaged_log(
        self,
        plyvel: ModuleType,
        tmp_path: Path,
        rng: random.Random,
        damage: Callable[[bytes, int], bytes],
    ) -> None:
        batches = list(some_batches(rng))
        write_with(plyvel, tmp_path, batches)
        name = newest_log(tmp_path).name
        original = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        for _ in range(10):
            damaged = damage(original[name], rng.randrange(len(original[name])))
            for path in tmp_path.iterdir():
                path.unlink()
            for each, data in original.items():
                (tmp_path / each).write_bytes(damaged if each == name else data)
            ours = state_after([decode_batch(record)[1] for record in read(damaged)[0]])
            with plyvel.DB(str(tmp_path)) as db:
                assert dict(db) == ours

    def test_its_manifest_is_a_log(self, plyvel: ModuleType, tmp_path: Path) -> None:
        write_with(plyvel, tmp_path, [[(b"a", b"b")]])
        manifest = tmp_path / (tmp_path / "CURRENT").read_text().strip()
        data = manifest.read_bytes()
        records, losses, valid_end = read(data)
        assert b"leveldb.BytewiseComparator" in records[0]
        assert (losses, valid_end) == ([], len(data))
        assert log_of(records) == data


def test_a_reader_tells_where_a_record_begins_and_ends(rng: random.Random) -> None:
    """Whatever its fragments are."""
    lengths = (0, 9, ROOM - 40, 3, 5, 100_000, 1, ROOM - 7, 0, 40_000)
    records = [rng.randbytes(length) for length in lengths]
    offsets = [len(log_of(records[:count])) for count in range(len(records))]
    data = log_of(records)
    reader = LogReader(data, "x")
    ends = [*offsets[1:], len(data)]
    for record, offset, end, found in zip(records, offsets, ends, reader.records(), strict=True):
        assert found == record
        # A block may end in zeros that are too few for a header.
        assert reader.valid_start - offset in range(HEADER_BYTES)
        assert reader.valid_end == end


def test_a_record_that_means_nothing_is_lost_with_all_behind_it(rng: random.Random) -> None:
    first, data = log_of([b"first"]), log_of([b"first", rng.randbytes(50_000), b"last"])
    reader = LogReader(data, "x")
    for _ in zip(range(2), reader.records_until_loss(), strict=False):
        pass
    reader.lose_record("no batch")
    assert reader.losses == [Loss(len(first), len(data) - len(first), "no batch")]


@pytest.mark.parametrize("length", [100, 3000])
def test_zeros_from_within_the_header_of_the_last_fragment_on_are_a_tear(length: int) -> None:
    """A device may make a file longer before it has written what belongs there."""
    whole = log_of([b"first", bytes(range(1, 101)) * (length // 100)])
    start = len(log_of([b"first"]))
    for end in range(start + 7, len(whole)):
        reader = LogReader(whole[: start + 6] + bytes(end - start - 6), "log")
        assert list(reader.records()) == [b"first"]
        assert reader.losses == []
        assert reader.valid_end == start
