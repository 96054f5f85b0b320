"""The adapters of other libraries' filters: right answers, kept in a file, and opened again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.subjects import Subject, check_forms, check_keys

COUNT, ABSENT_KEYS = 2000, 10_000
MAKERS: dict[str, Callable[[], Subject]] = {
    **peers.BY_NAME,
    "pyfusefilter of 16 bits": lambda: peers.pyfusefilter(16),
    "abloom of 0.1": lambda: peers.abloom(0.1),
    "rbloom of 0.1": lambda: peers.rbloom(0.1),
    "fastbloom_rs of 0.1": lambda: peers.fastbloom(0.1),
    "pybloomfilter of 0.1": lambda: peers.pybloomfilter(0.1),
    "pyprobables of 0.1": lambda: peers.pyprobables(0.1),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_peer_is_what_its_name_says_also_out_of_a_file(
    name: str, rng: random.Random, tmp_path: Path
) -> None:
    try:
        subject = MAKERS[name]()
    except UnavailableError as error:
        pytest.skip(str(error))
    keys = [rng.randbytes(16) for _ in range(COUNT)]
    absent = [rng.randbytes(16) for _ in range(ABSENT_KEYS)]
    built = subject.build(keys)
    path = tmp_path / "filter"
    subject.storage.save(built, path)
    opened = subject.storage.load(path)
    expected = subject.expected_fpr(opened)
    assert expected is not None
    for each in (built, opened):
        check_keys(subject, each, keys)
        passed = check_forms(subject, each, absent)
        assert passed < 1.5 * expected * ABSENT_KEYS + 20
        assert passed > 0.5 * expected * ABSENT_KEYS - 20
    bits = subject.storage.size(built, path) * 8 / COUNT
    # A page at most in a mapped file, and no filter is smaller than the bound.
    assert 4 < bits < 25 + 8 * 4096 / COUNT


@pytest.mark.parametrize("name", peers.BY_NAME)
def test_a_peer_that_is_missing_says_what_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(module: str) -> None:
        raise ImportError(f"no {module}")

    monkeypatch.setattr(peers, "import_module", missing)
    with pytest.raises(UnavailableError, match=r"is not installed: pip install \S+ \(no"):
        peers.BY_NAME[name]()


def test_a_fuse_filter_that_cannot_be_built_is_no_filter() -> None:
    try:
        subject = peers.pyfusefilter()
    except UnavailableError as error:
        pytest.skip(str(error))

    class Low:
        """The library, when it has no memory."""

        def __init__(self, low: object):
            self.low = low

        def __getattr__(self, name: str) -> object:
            return (lambda *given: False) if "allocate" in name else getattr(self.low, name)

    low = pytest.importorskip("pyfusefilter._xorfilter")
    fake = type("Fake", (), {"lib": Low(low.lib), "ffi": low.ffi})
    with pytest.raises(WrongAnswersError, match="no memory"):
        peers.LowFuse.build(fake, [b"a"])  # type: ignore[arg-type]
    assert subject.build([b"a"]).might_contain(b"a")
