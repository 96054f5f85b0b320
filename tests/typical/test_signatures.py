"""What ``help()`` and ``inspect.signature()`` have to say of ``filters`` and ``policies``."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import filters
import policies
from filters import kernels
from tests.typical.members import classes, members, values

KERNELS = [kernels.load(name) for name in kernels.available()]
CLASSES = classes(*KERNELS, filters, policies)
FILTERS = [getattr(kernel, name) for kernel in KERNELS for name in kernel.__all__]
of_class = pytest.mark.parametrize(
    "cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__qualname__}"
)


@of_class
def test_every_method_has_a_signature_and_the_public_ones_say_what_they_do(cls: type) -> None:
    for name in members(cls):
        inspect.signature(getattr(cls, name))
        if not name.startswith("_"):
            assert inspect.getdoc(getattr(cls, name)), name
    for name in values(cls):
        assert inspect.getdoc(getattr(cls, name)), name


@of_class
def test_every_class_says_what_it_is_and_how_it_is_made(cls: type) -> None:
    """A filter's class is not called: what is raised then names the methods that make one."""
    assert inspect.getdoc(cls)
    assert "--" not in str(cls.__doc__), "a signature that nobody has taken out of it"
    try:
        inspect.signature(cls)
    except ValueError:
        with pytest.raises(TypeError, match=r"build\(\)|\.digests\(\)|\.key_numbers\(\)|made by"):
            cls()


@pytest.mark.parametrize("module", [filters, policies], ids=lambda module: module.__name__)
def test_every_public_function_has_both(module: ModuleType) -> None:
    found = [getattr(module, name) for name in module.__all__]
    functions = [each for each in found if callable(each) and not inspect.isclass(each)]
    assert functions
    for each in functions:
        inspect.signature(each)
        assert inspect.getdoc(each), each


@pytest.mark.parametrize("name", KERNELS[0].__all__)
def test_both_kernels_take_the_same_arguments(name: str) -> None:
    """Of public methods, by their names and defaults."""
    readable, native = getattr(KERNELS[0], name), getattr(KERNELS[-1], name)
    for method in (each for each in dir(native) if not each.startswith("_")):
        twins = [getattr(cls, method) for cls in (readable, native)]
        if callable(twins[0]):
            names = [
                [(each.name, each.default) for each in inspect.signature(twin).parameters.values()]
                for twin in twins
            ]
            assert names[0] == names[1], method
