"""Version edits: the bytes LevelDB writes, and nothing else is believed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk import edit as edit_module
from lsm.disk.edit import Edit, NewFile
from lsm.disk.keys import PUT, pack, rank_of, unpack
from lsm.disk.log import LogReader
from lsm.errors import CorruptionError
from lsm.options import LEVELS
from tests.effort import examples

NUMBERS = st.integers(0, (1 << 64) - 1)
LEVEL_NUMBERS = st.integers(0, LEVELS - 1)
INTERNAL = st.builds(lambda key, end: key + end, st.binary(), st.binary(min_size=8, max_size=8))
OPTIONAL = st.one_of(st.none(), NUMBERS)
EDITS = st.builds(
    Edit,
    comparator=st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=40)),
    log_number=OPTIONAL,
    previous_log_number=OPTIONAL,
    next_file_number=OPTIONAL,
    last_sequence=OPTIONAL,
    compact_pointers=st.lists(st.tuples(LEVEL_NUMBERS, INTERNAL), max_size=4),
    deleted=st.lists(st.tuples(LEVEL_NUMBERS, NUMBERS), max_size=4),
    added=st.lists(
        st.builds(NewFile, LEVEL_NUMBERS, NUMBERS, NUMBERS, INTERNAL, INTERNAL), max_size=4
    ),
)


@examples(200)
@given(EDITS)
def test_an_edit_survives_its_record(edit: Edit) -> None:
    assert Edit.decode(edit.encode(), LEVELS) == edit


@examples(100)
@given(EDITS, st.data())
def test_a_record_that_is_cut_is_refused_or_a_shorter_edit(edit: Edit, data: st.DataObject) -> None:
    record = edit.encode()
    part = record[: data.draw(st.integers(0, len(record)))]
    try:
        shorter = Edit.decode(part, LEVELS)
    except CorruptionError:
        return
    assert shorter.encode() == part


@examples(300)
@given(st.binary(max_size=60))
def test_any_bytes_are_an_edit_or_refused(record: bytes) -> None:
    try:
        edit = Edit.decode(record, LEVELS)
    except CorruptionError:
        return
    assert Edit.decode(edit.encode(), LEVELS) == edit


@examples(300)
@given(st.lists(EDITS, min_size=1, max_size=3), st.data())
def test_usual_tables_are_read_as_all_others_are(edits: list[Edit], data: st.DataObject) -> None:
    record = bytearray().join(edit.encode() for edit in edits)
    for _ in range(data.draw(st.integers(0, 3)) if record else 0):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    with pytest.MonkeyPatch.context() as patch:
        found = outcome(bytes(record))
        patch.setattr(edit_module, "_add_usual_tables", lambda record, at, *_: at)
        assert outcome(bytes(record)) == found


def outcome(record: bytes) -> Edit | str:
    """The edit in a record, or the words in which it is refused."""
    try:
        return Edit.decode(record, LEVELS)
    except CorruptionError as error:
        return str(error)


def test_the_bytes_are_leveldbs() -> None:
    key = pack(b"k", rank_of(5, PUT))
    edit = Edit(
        comparator="c",
        log_number=300,
        previous_log_number=0,
        next_file_number=2,
        last_sequence=1,
        compact_pointers=[(1, key)],
        deleted=[(0, 7)],
        added=[NewFile(2, 8, 129, key, key)],
    )
    internal = b"\x09k\x01\x05" + bytes(6)
    assert edit.encode() == (
        b"\x01\x01c"
        b"\x02\xac\x02\x09\x00\x03\x02\x04\x01"
        b"\x05\x01" + internal + b"\x06\x00\x07"
        b"\x07\x02\x08\x81\x01" + internal + internal
    )


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (b"\x08\x00", "unknown tag 8"),
        (b"\x0a", "unknown tag 10"),
        (b"\x00", "unknown tag 0"),
        (b"\x06\x07\x01", "level 7: there are 7"),
        (b"\x05\xff\xff\xff\xff\x0f\x00", "level 4294967295"),
        (b"\x05\x01\x07" + bytes(7), "compaction pointer has 7 bytes, 8 is the least"),
        (b"\x07\x01\x01\x01\x07" + bytes(7), "smallest key has 7 bytes"),
        (b"\x02", "log number"),
        (b"\x01\x05abc", "comparator's name"),
        (b"\x03" + b"\xff" * 9 + b"\x02", "next file number"),
    ],
)
def test_what_cannot_be_is_named(record: bytes, said: str) -> None:
    with pytest.raises(CorruptionError, match=said):
        Edit.decode(record, LEVELS)


def test_leveldbs_manifest_is_decoded(tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    path = tmp_path / "db"
    for turn in range(3):
        with plyvel.DB(str(path), create_if_missing=True, write_buffer_size=1 << 16) as db:
            for number in range(3000):
                db.put(b"%05d" % (number * 7 % 2000), b"%d" % turn * 40)
            db.compact_range(start=b"", stop=b"\xff")
            sstables = db.get_property(b"leveldb.sstables").decode()
    name = (path / "CURRENT").read_text().strip()
    reader = LogReader((path / name).read_bytes(), name)
    edits = [Edit.decode(record, LEVELS) for record in reader.records()]
    assert not reader.losses
    assert edits[0].comparator == "leveldb.BytewiseComparator"
    live: dict[int, NewFile] = {}
    for edit in edits:
        for _, number in edit.deleted:
            live.pop(number, None)
        live |= {new.number: new for new in edit.added}
    assert live
    for new in live.values():
        low, high = unpack(new.smallest)[0].decode(), unpack(new.largest)[0].decode()
        assert f" {new.number}:{new.size}['{low}' @ " in sstables
        assert low <= high
    assert sum(line.startswith(" ") for line in sstables.splitlines()) == len(live)
    assert [edit.encode() for edit in edits] == list(reader.records())
