"""The demo shows what it says, and fails where it has to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lsm
import policies
from benchmarks import demo
from lsm import options

USERS = 2000


def test_it_fills_levels_and_finds_everything(
    tmp_path: Path, test_seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--keys", str(USERS), "--seed", str(test_seed), "--directory", str(tmp_path)]
    assert demo.main(arguments) == 0
    captured = capsys.readouterr()
    shown = captured.out
    assert shown.count(f"{USERS:,} lookups of ") == shown.count(", 0 answers wrong") == 2
    levels = {int(level) for level in re.findall(r"^ +(\d)  \S+.*%$", shown, re.MULTILINE)}
    assert len(levels) >= 3
    for part in ("a lookup of an absent key reads 0.", ": not found", ": found", "block cache"):
        assert part in shown
    assert "100% written" in captured.err
    assert "\r" not in captured.err + shown
    assert str(tmp_path / "lsm.toml") in shown
    with lsm.DB(tmp_path / "store") as db:
        assert db.get(demo.user(1)) == demo.value(1, 1)
        assert db.get(demo.user(3)) == demo.value(3, 2)
        assert db.get(demo.user(7)) is None


def test_its_configuration_is_the_example_with_small_levels(tmp_path: Path) -> None:
    path = tmp_path / "lsm.toml"
    path.write_text(demo.configuration(demo.USERS))
    found = options.load(path)
    assert found.filters == policies.load(demo.EXAMPLE, levels=7)
    assert len({policy.name for policy in found.filters}) == 7
    assert (found.write_buffer_size, found.level_size_base) == (128 << 10, 256 << 10)
    assert found.lru_cache_size == options.load(demo.EXAMPLE).lru_cache_size


@pytest.mark.parametrize("loss", [b"wrong", None])
def test_a_lost_or_wrong_value_fails_it(
    loss: bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = demo.expected

    def expected(number: int) -> bytes | None:
        return loss if number == 20 else right(number)

    monkeypatch.setattr(demo, "expected", expected)
    assert demo.run(tmp_path, 1000, 1) == 1
    captured = capsys.readouterr()
    assert "1,000 lookups of users" in captured.out
    assert "1 answers wrong" in captured.out
    assert f"WRONG: {demo.user(20)!r}" in captured.err


def test_a_user_for_an_absent_key_fails_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "absent", demo.user)
    assert demo.run(tmp_path, 1000, 1) == 1


def test_what_is_there_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "store").mkdir()
    with pytest.raises(SystemExit, match="2"):
        demo.main(["--directory", str(tmp_path)])
    assert "is there already" in capsys.readouterr().err
