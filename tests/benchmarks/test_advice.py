"""Advice follows the numbers, names its rows, and is silent where nothing was measured."""

from __future__ import annotations

import attrs
import pytest

from benchmarks.advice import advice, configuration, engine, fastest, saving, smallest
from benchmarks.record import Record
from benchmarks.rows import FAILED, Row
from tests.benchmarks.example_record import example_record


def filters(
    subject: str, *, n: int = 1000, kind: str = "random", rate: float, bits: float, ns: float = 0
) -> list[Row]:
    at = {"keys": kind, "n": n}
    row = Row(part="filters", group="Rates and sizes", name="", subject=subject, at=at)
    found = [
        attrs.evolve(row, name="false-positive rate", value=rate),
        attrs.evolve(row, name="bits per key", value=bits),
    ]
    if ns:
        found.append(attrs.evolve(row, group="Speed", name="one key, miss, in order", value=ns))
    return found


def levels(subject: str, *, bits: float, blocks: float, flash: float) -> list[Row]:
    row = Row(part="levels", group="Filter memory", name="", subject=subject, at={"level": "all"})
    time = {"storage": "flash, 100 us a block"}
    return [
        attrs.evolve(row, name="bytes", value=bits * 100),
        attrs.evolve(row, name="bits per key", value=bits),
        attrs.evolve(row, group="Blocks read per lookup", name="absent key", value=blocks),
        attrs.evolve(row, group="Time per lookup", name="absent key", value=flash, at=time),
    ]


def record(*rows: list[Row]) -> Record:
    return Record({}, [row for some in rows for row in some], {})


ROWS = (
    filters("blocked bits_per_key=10", rate=0.0097, bits=10.1, ns=15),
    filters("classic bits_per_key=10", rate=0.0082, bits=9.9, ns=25),
    filters("leveldb bits_per_key=10", rate=0.014, bits=9.0, ns=5),
    filters("cuckoo fingerprint_bits=12", rate=0.0009, bits=12.6, ns=20),
    filters("abloom fpr=0.01", rate=0.01, bits=10.2, ns=18),
    filters("rbloom fpr=0.01", rate=0.01, bits=9.6, ns=80),
    filters("set", rate=0.0, bits=700, ns=1),
    filters("no filter", rate=1.0, bits=0, ns=1),
)


def test_the_fastest_of_about_one_percent_and_the_best_of_the_others() -> None:
    found = fastest(record(*ROWS))
    assert found is not None
    assert found.answer == (
        "blocked bits_per_key=10: 15 ns for an absent key among 1,000, 0.97 % of them let through. "
        "The fastest of other libraries is abloom fpr=0.01 with 18 ns."
    )
    assert len(found.rows) == 3
    quicker = filters("abloom fpr=0.01", rate=0.01, bits=10.2, ns=2)
    found = fastest(record(*ROWS[:4], quicker))
    assert found is not None
    assert found.answer.startswith("abloom fpr=0.01: 2 ns")
    assert "The fastest of the policies here is blocked bits_per_key=10 with 15 ns" in found.answer


def test_the_largest_number_of_keys_up_to_a_million_counts_for_speed() -> None:
    more = filters("rbloom fpr=0.01", n=5000, rate=0.01, bits=9.6, ns=90)
    most = filters("rbloom fpr=0.01", n=10**7, rate=0.01, bits=9.6, ns=9)
    found = fastest(record(*ROWS, more, most))
    assert found is not None
    assert found.answer.startswith("rbloom fpr=0.01: 90 ns for an absent key among 5,000")
    found = fastest(record(most))
    assert found is not None
    assert "9 ns for an absent key among 10,000,000" in found.answer


def test_the_smallest_for_a_rate_from_the_nearest_number_of_keys() -> None:
    found = smallest(record(*ROWS))
    assert found is not None
    assert found.question == "What is smallest, of 1,000 keys or so?"
    assert found.answer == (
        "For 1 % or less rbloom fpr=0.01, 9.6 bits a key at 1 %; "
        "for 0.1 % or less cuckoo fingerprint_bits=12, 12.6 bits a key at 0.09 %."
    )
    fuse = "binary-fuse fingerprint_bits=8"
    far = filters(fuse, n=9000, rate=0.0039, bits=9.0)
    near = filters(fuse, n=1100, rate=0.0039, bits=9.4)
    found = smallest(record(*ROWS, far, near))
    assert found is not None
    assert f"{fuse}, 9.4 bits a key" in found.answer


def test_who_failed_is_not_advised() -> None:
    rows = [attrs.evolve(row, verdict=FAILED) for row in ROWS[0]]
    found = fastest(record(rows, *ROWS[1:]))
    assert found is not None
    assert "blocked" not in found.answer


def test_the_users_own_keys_are_answered_for() -> None:
    found = fastest(
        record(filters("blocked bits_per_key=10", kind="file", rate=0.01, bits=10, ns=9))
    )
    assert found is not None
    assert found.answer.startswith("blocked bits_per_key=10: 9 ns")


LEVELS = (
    levels("none", bits=0, blocks=5, flash=500),
    levels("hits-only", bits=2.5, blocks=1.0, flash=103),
    levels("blocked 10", bits=10.1, blocks=0.04, flash=6),
    levels("mixed", bits=9.8, blocks=0.012, flash=2),
    levels("cuckoo 12", bits=12.7, blocks=0.01, flash=2.5),
)


def test_a_configuration_for_every_budget_once() -> None:
    found = configuration(record(*LEVELS))
    assert found is not None
    assert found.answer == (
        "With 5 bits a key hits-only (2.5 bits) reads 1 blocks; with 10 bits a key mixed (9.8 "
        "bits) reads 0.012 blocks; with 16 bits a key cuckoo 12 (12.7 bits) reads 0.01 blocks."
    )


def test_what_filters_save() -> None:
    found = saving(record(*LEVELS))
    assert found is not None
    assert found.answer == (
        "On flash, an absent key costs 500 us without filters and 2 us with mixed."
    )


def test_engines_are_told_in_order() -> None:
    row = Row(
        part="engine",
        group="Looking up, compacted",
        name="get of an absent key",
        subject="",
        at={"n": 10},
        unit="ns",
    )
    times = {"plyvel": 650, "lmdb": 300, "lsm, blocked": 700}
    found = engine(
        record([attrs.evolve(row, subject=name, value=value) for name, value in times.items()])
    )
    assert found is not None
    assert found.answer == "lmdb 300 ns, plyvel 650 ns, lsm, blocked 700 ns."


def test_without_rows_there_is_no_advice() -> None:
    assert not list(advice(record()))
    assert configuration(record(*LEVELS[:1])) is None


@pytest.mark.parametrize("seed", range(3))
def test_every_row_that_is_named_is_there(seed: int) -> None:
    made = example_record(seed)
    ids = {row.id for row in made.rows}
    found = list(advice(made))
    assert len(found) == 5
    for each in found:
        assert each.rows
        assert set(each.rows) <= ids
