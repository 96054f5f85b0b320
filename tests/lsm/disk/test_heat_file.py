"""The file of the tables' heat: what is written is read, and nothing else is believed."""

from __future__ import annotations

import itertools
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk.checksum import crc32c, mask
from lsm.disk.coding import varint
from lsm.disk.filenames import LAST_NUMBER
from lsm.disk.heat_file import MOST_ASKED, MOST_BYTES, decode, encode
from lsm.errors import CorruptionError

SOME = {3: (0, 0), 4: (1, 0), 300: (70_000, 5), 1 << 40: (MOST_ASKED, 200)}
COUNTS = st.integers(0, MOST_ASKED)


def sealed(*fields: int, magic: bytes = b"lsm-heat", behind: bytes = b"") -> bytes:
    """A file that says what a test wants, under the right checksum."""
    data = magic + b"".join(map(varint, fields)) + behind
    return data + pack("<I", mask(crc32c(data)))


@given(st.dictionaries(st.integers(1, LAST_NUMBER), st.tuples(COUNTS, COUNTS)))
def test_what_is_written_is_read(asked: dict[int, tuple[int, int]]) -> None:
    assert decode(encode(asked)) == asked


def test_the_bytes_are_as_documented() -> None:
    assert encode({7: (300, 0), 5: (1, 9)}) == sealed(1, 2, 5, 1, 9, 2, 300, 0)
    assert encode({1: (0, MOST_ASKED + 1)}) == encode({1: (0, MOST_ASKED)})


def test_no_byte_can_change_be_missing_or_follow() -> None:
    data = encode(SOME)
    for at, bit in itertools.product(range(len(data)), range(8)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << bit
        with pytest.raises(CorruptionError):
            decode(bytes(damaged))
    for length in range(len(data)):
        with pytest.raises(CorruptionError):
            decode(data[:length])
    with pytest.raises(CorruptionError):
        decode(data + b"\0")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (sealed(1, 0, magic=b"lsm-cold"), "does not begin with b'lsm-heat'"),
        (sealed(2, 0), "of form 2, and this release reads form 1"),
        (sealed(1, 2, 5, 1, 1, 2, 2), "no room for 2 tables in 5 bytes"),
        (sealed(1, (1 << 32) - 1, 5, 1, 1), "no room for 4294967295 tables in 3 bytes"),
        (sealed(1, 1 << 32, 5, 1, 1), "number of tables .* is 4294967296, allowed are 0 to"),
        (sealed(1, 1, 0, 1, 1), "table 0 follows table 0: numbers ascend"),
        (sealed(1, 2, 5, 1, 1, 0, 1, 1), "table 5 follows table 5: numbers ascend"),
        (sealed(1, 1, LAST_NUMBER + 1, 1, 1), f"numbers ascend to {LAST_NUMBER}"),
        (sealed(1, 1, 5, MOST_ASKED + 1, 1), "table 5 would have .* lookups, allowed are"),
        (sealed(1, 1, 5, 1, MOST_ASKED + 1), "table 5 would have .* lookups, allowed are"),
        (sealed(1, 1, 5, 1, 1, 7), "1 bytes follow its last field"),
        (sealed(1, 1, 5, behind=b"\xff" * 10), "missed .* a varint of more than 10 bytes"),
        (bytes(MOST_BYTES + 1), f"{MOST_BYTES + 1} bytes are more than the {MOST_BYTES} allowed"),
        (b"", "magic"),
    ],
)
def test_what_no_writer_writes_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(CorruptionError, match=message):
        decode(data)
