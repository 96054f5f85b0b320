"""Programs that use the engine, under a type checker that knows it as it is installed."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

import lsm
import lsm.aio
from tests.effort import by_effort
from tests.lsm.manners import typical_use
from tests.typical import checkers
from tests.typical.members import members

VERSIONS = by_effort(("3.11",), ("3.11", "3.12"), ("3.11", "3.12", "3.13", "3.14"))


def test_typical_use_runs(tmp_path: Path) -> None:
    assert typical_use.use(tmp_path / "db") == 2
    asyncio.run(typical_use.waiting(tmp_path / "db"))


WRONG = """
import lsm
def f(db: lsm.DB) -> None:
    db.get(b"key").decode()
    for key in db.iterator(include_value=False):
        key.encode()
    db["text"] = b""
    lsm.mapping(db.snapshot())[b"key"] = b""
    len(db)
"""


@pytest.mark.no_cover
@pytest.mark.parametrize("version", VERSIONS)
def test_typical_use_has_no_error_and_no_any(tmp_path: Path, version: str) -> None:
    """Every ``assert_type`` in it is an error where anything else, as Any, is found."""
    pytest.importorskip("mypy")
    assert checkers.mypy(*checkers.copied([typical_use], tmp_path), version=version) == ""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    told = checkers.mypy(wrong, version=version)
    assert checkers.mypy_lines(told) == [4, 6, 7, 8], told


PUBLIC = [
    cls
    for module in (lsm, lsm.aio)
    for name in module.__all__
    if inspect.isclass(cls := getattr(module, name)) and not issubclass(cls, Exception)
]
KERNEL_CLASSES = [
    *(cls for public in PUBLIC for cls in public.__mro__ if cls.__module__.startswith("lsm.")),
]


@pytest.mark.parametrize("cls", dict.fromkeys(KERNEL_CLASSES), ids=lambda cls: cls.__qualname__)
def test_every_method_has_a_signature_and_the_public_ones_say_what_they_do(cls: type) -> None:
    for name in members(cls):
        method = getattr(cls, name)
        inspect.signature(method)
        if not name.startswith("_"):
            assert inspect.getdoc(method), f"{cls.__name__}.{name}"


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_every_public_class_has_a_signature_and_says_what_it_is(cls: type) -> None:
    inspect.signature(cls)
    assert inspect.getdoc(cls)
    assert "--" not in str(cls.__doc__), "a signature that nobody has taken out of it"


TWINS = ["Reader", "Keyspace", "Batch", "Walker", "Iterator"]


@pytest.mark.parametrize("name", TWINS)
def test_both_kernels_say_the_same_of_themselves(name: str) -> None:
    if "native" not in lsm.kernels.available():
        pytest.skip("there is one kernel")
    readable, native = (getattr(lsm.kernels.load(kernel), name) for kernel in ("python", "native"))
    assert inspect.getdoc(native).split("\n")[0] == inspect.getdoc(readable).split("\n")[0]
    for method in members(native):
        if method.startswith("_") or not hasattr(readable, method):
            continue
        ours, theirs = (getattr(cls, method) for cls in (readable, native))
        names = [
            [(each.name, each.default) for each in inspect.signature(twin).parameters.values()]
            for twin in (ours, theirs)
        ]
        assert names[0] == names[1], method
        assert inspect.getdoc(ours).split("\n")[0] == inspect.getdoc(theirs).split("\n")[0]
