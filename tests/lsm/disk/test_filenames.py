"""File names: LevelDB's own, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk import filenames
from lsm.disk.filenames import Kind, parse
from tests.effort import examples

NAMERS = {
    filenames.log_name: Kind.LOG,
    filenames.table_name: Kind.TABLE,
    filenames.old_table_name: Kind.TABLE,
    filenames.manifest_name: Kind.MANIFEST,
    filenames.temporary_name: Kind.TEMPORARY,
}


@examples(200)
@given(st.sampled_from(list(NAMERS)), st.integers(0, 2**63 - 1))
def test_a_name_is_read_back(namer: object, number: int) -> None:
    assert callable(namer)
    assert parse(namer(number)) == (NAMERS[namer], number)


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        ("CURRENT", Kind.CURRENT, 0),
        ("LOCK", Kind.LOCK, 0),
        ("LOG", Kind.INFO_LOG, 0),
        ("LOG.old", Kind.INFO_LOG, 0),
        ("000007.log", Kind.LOG, 7),
        ("0.log", Kind.LOG, 0),
        ("00000000000000000000000000000012.ldb", Kind.TABLE, 12),
        ("1000000.ldb", Kind.TABLE, 1000000),
        ("000005.sst", Kind.TABLE, 5),
        ("MANIFEST-000002", Kind.MANIFEST, 2),
        ("MANIFEST-7", Kind.MANIFEST, 7),
        ("000009.dbtmp", Kind.TEMPORARY, 9),
        ("9223372036854775807.log", Kind.LOG, 2**63 - 1),
    ],
)
def test_names_of_database_files(name: str, kind: Kind, number: int) -> None:
    assert parse(name) == (kind, number)


def test_the_names_as_they_are_written() -> None:
    assert [namer(42) for namer in NAMERS] == [
        "000042.log",
        "000042.ldb",
        "000042.sst",
        "MANIFEST-000042",
        "000042.dbtmp",
    ]
    assert filenames.table_name(12345678) == "12345678.ldb"
    assert (filenames.CURRENT, filenames.LOCK) == ("CURRENT", "LOCK")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "lsm-options.toml",
        "lsm-heat",
        "foo",
        "foo-dx-100.log",
        ".log",
        "log",
        "100",
        "100.",
        "100.lop",
        "100.log.old",
        "100.LDB",
        "manifest-3",
        "MANIFEST",
        "MANIFEST-",
        "MANIFEST-3x",
        "MANIFEST--3",
        "XMANIFEST-3",
        "CURRENT.dbtmp",
        "current",
        "LOCKED",
        "LOG.old2",
        "-1.log",
        "+1.log",
        " 1.log",
        "1.log\n",
        "MANIFEST-1\n",
        "CURRENT\n",
        "1_0.log",
        "0x1.log",
        "1logs",
        "٣.log",
        "³.log",
        "18446744073709551616.log",
        "MANIFEST-18446744073709551616",
        "99999999999999999999.ldb",
        "1" * 21 + ".log",
        "1" * 9999 + ".log",
    ],
)
def test_what_is_no_file_of_a_database(name: str) -> None:
    assert parse(name) is None


@examples(300)
@given(st.text() | st.text("0123456789.-MANIFESTlogdbsmp\n", max_size=30))
def test_any_name_gets_an_answer(name: str) -> None:
    answer = parse(name)
    assert answer is None or 0 <= answer[1] < 2**63


def test_leveldb_names_its_files_so(tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(tmp_path), create_if_missing=True) as db:
        db.put(b"a", b"b")
        db.compact_range()
    plyvel.DB(str(tmp_path)).close()
    found = {}
    for path in tmp_path.iterdir():
        parsed = parse(path.name)
        assert parsed is not None, path.name
        found[path.name] = parsed
    assert {kind for kind, _ in found.values()} == set(Kind) - {Kind.TEMPORARY}
    for name, (kind, number) in found.items():
        if kind in (Kind.LOG, Kind.TABLE, Kind.MANIFEST):
            assert name in {namer(number) for namer in NAMERS}
    assert {name for name, (kind, _) in found.items() if kind is Kind.INFO_LOG} == {
        "LOG",
        "LOG.old",
    }
