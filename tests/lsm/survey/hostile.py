"""Files cut short or with a bit flipped: looking gives an answer, or says file and place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lsm.errors import CorruptionError
from lsm.survey.found import FileFound
from lsm.survey.look import look
from tests.effort import by_effort


def damaged(data: bytes) -> Iterator[bytes]:
    """Every truncation of some bytes, and every flip of a bit; every fifth in a quick run."""
    step = by_effort(5, 1, 1)
    for size in range(0, len(data), step):
        yield data[:size]
    for bit in range(0, 8 * len(data), step):
        changed = bytearray(data)
        changed[bit >> 3] ^= 1 << (bit & 7)
        yield bytes(changed)


def looked_at(path: Path, data: bytes) -> FileFound | None:
    """What is found in a file of these bytes, which stay as they are; None if nothing can be."""
    path.write_bytes(data)
    found, refusal = None, ""
    try:
        found = look(path)
    except CorruptionError as error:
        refusal = str(error)
    assert found is not None or is_placed(refusal, path), refusal
    assert path.read_bytes() == data
    if found is not None:
        assert found.path == str(path)
        assert found.size == len(data)
        for problem in found.problems:
            assert is_placed(problem, path), problem
        for each in found.filters:
            assert not each.problem or is_placed(each.problem, path), each.problem
            assert (each.reader is None) == bool(each.problem)
            if each.reader is not None:
                each.reader.might_contain_many([b"", b"a key"])
    return found


def is_placed(words: str, path: Path) -> bool:
    """Whether an error names the file and a byte of it."""
    return words.startswith(f"{path}: ") and re.search(r"\bbytes? [0-9]+", words) is not None
