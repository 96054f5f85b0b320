"""The names of the interface: classes, members, arguments and the order of the errors."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.lsm.manners.outcomes import only_plyvel

plyvel = pytest.importorskip("plyvel")

# Of LevelDB's library, which lsm has not inside.
THEIRS_ALONE = {"__leveldb_version__"}

KINDS = {
    "DB": lambda db: db,
    "PrefixedDB": lambda db: db.prefixed_db(b"prefix"),
    "Snapshot": lambda db: db.snapshot(),
    "WriteBatch": lambda db: db.write_batch(),
    "Iterator": lambda db: db.iterator(),
    "RawIterator": lambda db: db.raw_iterator(),
}


@pytest.fixture
def oracle(tmp_path: Any) -> Iterator[Any]:
    with plyvel.DB(str(tmp_path / "oracle"), create_if_missing=True) as db:
        yield db


def test_every_public_name_is_there(api: ModuleType) -> None:
    names = {name for name in vars(plyvel) if not name.startswith("_")} | {"__version__"}
    assert names >= {"DB", "Error", "IOError", "CorruptionError", "IteratorInvalidError"}
    assert names >= {"repair_db", "destroy_db"}
    for name in names - THEIRS_ALONE:
        assert hasattr(api, name), name


def test_the_version_is_text(api: ModuleType) -> None:
    assert re.match(r"\d+\.\d+", api.__version__)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_object_has_its_name(db: Any, kind: str) -> None:
    assert type(KINDS[kind](db)).__name__ == kind


@pytest.mark.parametrize("kind", KINDS)
def test_every_public_member_is_there(db: Any, oracle: Any, kind: str) -> None:
    members = {name for name in dir(KINDS[kind](oracle)) if not name.startswith("_")}
    assert members - {name for name in dir(KINDS[kind](db)) if not name.startswith("_")} == set()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["__enter__", "__exit__", "__iter__", "__next__"])
def test_every_kind_of_object_follows_the_same_protocols(
    db: Any, oracle: Any, kind: str, protocol: str
) -> None:
    assert hasattr(type(KINDS[kind](db)), protocol) == hasattr(type(KINDS[kind](oracle)), protocol)


Argument = tuple[str, bool, Any]


def arguments_of(function: Callable[..., Any]) -> list[Argument]:
    """Name, whether by keyword only, and default of each argument."""
    return [
        (parameter.name, parameter.kind is parameter.KEYWORD_ONLY, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    ]


def hides_some(function: Callable[..., Any]) -> bool:
    """Whether keywords are handed on to another function, which has their names."""
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def check_alike(ours: list[Argument], theirs: list[Argument], hidden: bool = False) -> None:
    """The arguments of both are the same, but that ours may have more by keyword."""
    by_name = {argument[0]: argument for argument in ours}
    assert [argument for argument in ours if not argument[1]] == [
        argument for argument in theirs if not argument[1]
    ]
    for name, by_keyword, default in theirs:
        if hidden and by_keyword and name not in by_name:
            continue
        assert name in by_name
        assert by_name[name][1] == by_keyword, name
        # Where None means something, "not given" needs a word of its own.
        assert by_name[name][2] == default or repr(by_name[name][2]) == "NOT_GIVEN", name
    for name, _, default in ours:
        assert (
            name in {argument[0] for argument in theirs} or default is not inspect.Parameter.empty
        )


METHODS = [
    (kind, name)
    for kind, names in {
        "DB": "get put delete write_batch iterator raw_iterator snapshot prefixed_db get_property "
        "compact_range approximate_size approximate_sizes close",
        "PrefixedDB": "get put delete write_batch iterator snapshot prefixed_db",
        "Snapshot": "get iterator raw_iterator close release",
        "WriteBatch": "put delete clear write append approximate_size",
        "Iterator": "prev seek seek_to_start seek_to_stop close",
        "RawIterator": "valid seek_to_first seek_to_last seek next prev key value item close",
    }.items()
    for name in names.split()
]


def test_the_list_of_methods_is_whole(oracle: Any) -> None:
    for kind, make in KINDS.items():
        made = make(oracle)
        public = [name for name in dir(made) if not name.startswith("_")]
        methods = {name for name in public if callable(getattr(made, name))} - {"db"}
        assert methods == {name for listed, name in METHODS if listed == kind}, kind


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_every_method_takes_the_same_arguments(db: Any, oracle: Any, kind: str, name: str) -> None:
    ours, theirs = getattr(KINDS[kind](db), name), getattr(KINDS[kind](oracle), name)
    check_alike(arguments_of(ours), arguments_of(theirs), hides_some(ours))


@pytest.mark.parametrize("name", ["repair_db", "destroy_db"])
def test_every_function_takes_the_same_arguments(api: ModuleType, name: str) -> None:
    check_alike(arguments_of(getattr(api, name)), arguments_of(getattr(plyvel, name)))


def embedded(text: str) -> list[Argument]:
    """The arguments in a signature that stands in a docstring, types and all."""
    inner = text[text.index("(") + 1 : text.rindex(")")]
    arguments = []
    for argument in inner.replace("u'", "'").split(", "):
        name, _, default = argument.partition("=")
        if name != "*":
            value = ast.literal_eval(default) if default else inspect.Parameter.empty
            # The text shows one more argument by position than the code takes.
            arguments.append((name.split()[-1], bool(default), value))
    return arguments


def test_opening_takes_the_same_arguments(api: ModuleType) -> None:
    theirs = embedded(plyvel.DB.__doc__)
    assert len(theirs) == 14
    ours = theirs if api is plyvel else arguments_of(api.DB)
    check_alike(ours, theirs)


def test_all_errors_are_one_kind(api: ModuleType) -> None:
    assert api.Error.__bases__ == (Exception,)
    for name in ("IOError", "CorruptionError", "IteratorInvalidError"):
        assert issubclass(getattr(api, name), api.Error)
    assert issubclass(api.IOError, builtins.IOError)
    assert not issubclass(api.CorruptionError, builtins.IOError)
    assert not issubclass(api.IteratorInvalidError, builtins.IOError)
    assert not issubclass(api.CorruptionError, api.IOError)
    assert not issubclass(api.IOError, api.CorruptionError)


@pytest.mark.parametrize("name", ["Error", "IOError", "CorruptionError", "IteratorInvalidError"])
def test_an_error_can_be_made_of_a_message(api: ModuleType, name: str) -> None:
    error = getattr(api, name)("what went wrong")
    assert str(error) == "what went wrong"
    assert error.args == ("what went wrong",)


def test_objects_take_no_attributes_of_others(db: Any) -> None:
    for kind, make in KINDS.items():
        with pytest.raises(AttributeError):
            make(db).invented = kind


def test_objects_are_equal_to_themselves_alone(db: Any) -> None:
    assert db == db
    assert db.prefixed_db(b"a") != db.prefixed_db(b"a")
    assert db.snapshot() != db.snapshot()
    assert len({db, db.snapshot(), db.write_batch(), db.iterator(), db.raw_iterator()}) == 5


def test_a_database_is_true_even_when_empty_or_closed(db: Any) -> None:
    assert db
    db.close()
    assert db


def test_a_database_has_no_length(digits: Any) -> None:
    with pytest.raises(TypeError):
        len(digits)


@only_plyvel
def test_a_database_has_no_subscripts(digits: Any) -> None:
    with pytest.raises(TypeError):
        digits[b"1"]
