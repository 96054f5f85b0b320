"""What of a class somebody can look up: its methods, as ``help()`` and editors show them."""

from __future__ import annotations

import inspect
from types import ModuleType

_HIDDEN = {"__class__", "__reduce_cython__", "__setstate_cython__", "__setstate__"}


def members(cls: type) -> list[str]:
    """The names of what can be called on an instance, protocols of Python's included."""
    own = [
        name
        for name, value in vars(cls).items()
        if not isinstance(value, type) and (callable(getattr(cls, name)) or name == "__init__")
    ]
    return [name for name in own if name not in _HIDDEN]


def values(cls: type) -> list[str]:
    """The names of its public properties."""
    return [
        name
        for name, value in vars(cls).items()
        if not name.startswith("_")
        and (isinstance(value, property) or inspect.isgetsetdescriptor(value))
    ]


def classes(*modules: ModuleType) -> list[type]:
    """The public classes of modules but for exceptions, and those of ours that they are made of."""
    named = [getattr(module, name) for module in modules for name in module.__all__]
    public = [each for each in named if inspect.isclass(each) and not issubclass(each, Exception)]
    return list(dict.fromkeys(base for each in public for base in each.__mro__ if is_ours(base)))


def is_ours(cls: type) -> bool:
    """Whether a class is one of this project's."""
    return cls.__module__.partition(".")[0] in ("filters", "policies", "lsm")
