"""What all commands share: mistakes on one line, exit statuses, and what needs no extra."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lsm
from lsm.cli import keys
from lsm.store import Store
from tests.lsm.cli.conftest import Run, snapshot

ROOT = Path(__file__).parents[3]


def python(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, *map(str, words)], capture_output=True, text=True, cwd=ROOT, **options
    )


def test_mistakes_are_told_on_one_line(run: Run, tmp_path: Path, store: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    for path in (tmp_path / "none", tmp_path / "file", ""):
        refused = run("get", path, "key", status=2)
        assert refused.stdout == ""
        assert refused.stderr.startswith("lsm: ")
        assert refused.stderr.count("\n") == 1
    assert run("get", tmp_path / "none", "key", status=2).stderr == (
        f"lsm: {tmp_path}/none: does not exist\n"
    )
    assert "No such command 'gett'" in run("gett", status=2).stderr


def test_a_foreign_directory_is_refused_and_not_touched(run: Run, tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("MANIFEST-000001\n")
    (tmp_path / "OPTIONS-000007").write_text("[Version]\n")
    before = snapshot(tmp_path)
    for words in (("get", tmp_path, "a"), ("put", tmp_path, "a", "b", "--create")):
        refused = run(*words, status=2)
        assert "this directory is RocksDB's" in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert snapshot(tmp_path) == before


def test_a_traceback_is_there_for_who_asks(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = run("--traceback", "get", tmp_path / "none", "key", status=2)
    assert "Traceback" in asked.stderr
    assert asked.stderr.splitlines()[-1].startswith("lsm: ")
    monkeypatch.setenv("LSM_DEBUG", "1")
    assert "Traceback" in run("get", tmp_path / "none", "key", status=2).stderr
    monkeypatch.setenv("LSM_DEBUG", "0")
    assert "Traceback" not in run("get", tmp_path / "none", "key", status=2).stderr


def test_what_nobody_expects_has_its_traceback(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise AssertionError("a bug")

    monkeypatch.setattr(keys, "show", fail)
    told = run("get", store, "user:1", status=2)
    assert "Traceback" in told.stderr
    assert told.stderr.splitlines()[-1] == "lsm: AssertionError: a bug"


def test_an_interruption_ends_with_one_line(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(keys, "show", interrupt)
    assert run("get", store, "user:1", status=130).stderr == "lsm: interrupted\n"


def test_a_command_has_closed_its_database_when_it_ends(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for any caller, and not as for an operation within another one of the engine."""
    closed_elsewhere = []
    close_elsewhere = Store._close_in_another_thread

    def watched(self: Store) -> None:
        caller = sys._getframe(1).f_code.co_name  # finalizers of others may do so
        closed_elsewhere.append(caller == "close")
        close_elsewhere(self)

    monkeypatch.setattr(Store, "_close_in_another_thread", watched)
    run("put", store, "key", "value")
    run("get", store, "key")
    assert not any(closed_elsewhere)


def test_the_engine_logs_to_stderr_on_a_line(run: Run, store: Path) -> None:
    [log] = store.glob("*.log")
    data = bytearray(log.read_bytes())
    data[12] ^= 1
    log.write_bytes(data)
    told = run("count", store)
    assert told.stderr.startswith("lsm: replay left ")
    assert told.stderr.count("\n") == 1


def test_the_command_runs_as_a_module(store: Path) -> None:
    finished = python("-m", "lsm", "get", store, "user:2", encoding="utf-8")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "Zoë\n", "")
    assert python("-m", "lsm", "get", store, "nobody").returncode == 1
    assert python("-m", "lsm", "--version").stdout == f"lsm, version {lsm.__version__}\n"


def test_a_closed_pipe_ends_it_quietly(tmp_path: Path) -> None:
    path = tmp_path / "many"
    with lsm.DB(path, create_if_missing=True) as db:
        for number in range(20_000):
            db.put(b"%08d" % number, b"value")
    process = subprocess.Popen(
        [sys.executable, "-m", "lsm", "scan", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"00000000\tvalue\n"
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_pipe_that_was_closed_before_is_as_quiet(store: Path) -> None:
    """What is printed is still in a buffer when nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    finished = subprocess.run(
        [sys.executable, "-m", "lsm", "get", str(store), "user:1"],
        stdout=writer, stderr=subprocess.PIPE, cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )  # fmt: skip
    os.close(writer)
    assert (finished.returncode, finished.stderr) == (141, b"")


@pytest.mark.parametrize("library", ["click", "rich"])
def test_without_the_extra_one_line_names_it(library: str) -> None:
    code = "import sys; sys.modules[{!r}] = None; from lsm.cli import main; sys.exit(main(['get']))"
    finished = python("-c", code.format(library))
    assert finished.returncode == 2
    assert finished.stderr == (
        f"lsm: the command needs {library}, which is not installed: "
        "pip install 'lsm-filters[cli]'\n"
    )


def test_importing_the_engine_loads_nothing_of_the_command() -> None:
    code = "import sys, lsm; print({'click', 'rich', 'lsm.cli'} & sys.modules.keys())"
    assert python("-c", code).stdout == "set()\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    env = {**os.environ, "_LSM_COMPLETE": f"{shell}_source"}
    finished = python("-m", "lsm", env=env)
    assert finished.returncode == 0
    assert "_lsm_completion" in finished.stdout


def test_what_is_installed_has_the_command_and_all_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"lsm": "lsm.cli:main"}
    needed = project["project"]["optional-dependencies"]["cli"]
    assert {each.partition(">")[0] for each in needed} == {"click", "rich"}
    packages = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for floor in ("filters", "policies", "lsm")
        for path in (ROOT / floor).rglob("__init__.py")
    }
    assert set(project["tool"]["setuptools"]["packages"]) == packages


# Whoever runs the tests in the background, as by nohup, has children ignore the signal.
INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lsm.cli import main
sys.exit(main())
"""


def test_ctrl_c_ends_a_process_with_one_line(tmp_path: Path) -> None:
    """Which is in the middle of writing to a pipe that is full."""
    path = tmp_path / "many"
    with lsm.DB(path, create_if_missing=True) as db:
        for number in range(20_000):
            db.put(b"%08d" % number, b"value")
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "scan", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"00000000\tvalue\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors == b"lsm: interrupted\n"
