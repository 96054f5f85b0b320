"""Which class stands behind a policy's name: built in, registered by the program, or installed."""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from policies import plugins
from policies.builtin import BUILTIN
from policies.containment import let_pass
from policies.contract import NAME, FilterPolicy
from policies.errors import (
    DuplicatePolicyError,
    PluginError,
    UnknownPolicyError,
    cause,
    did_you_mean,
    words,
)
from policies.parameters import RESERVED, check_parameters, parameter_names

PolicyClass = TypeVar("PolicyClass", bound=type[FilterPolicy])
Scan = Callable[[], Mapping[str, tuple[plugins.Plugin, ...]]]


class Registry:
    """Names and the policy classes behind them.

    Built in comes before registered comes before installed, and a built-in name is never anything
    else. Installed plug-ins are looked for once, on the first name that is none of the others, and
    imported one at a time when their name is used. All methods may be called from any thread.
    """

    def __init__(self, builtin: Iterable[type[FilterPolicy]], scan: Scan = plugins.scan):
        self._builtin = {cls.name: cls for cls in builtin}
        self._registered: dict[str, type[FilterPolicy]] = {}
        self._loaded: dict[str, type[FilterPolicy]] = {}
        self._scan = scan
        self._offers: Mapping[str, tuple[plugins.Plugin, ...]] | None = None
        self._lock = threading.Lock()

    def lookup(self, name: str) -> type[FilterPolicy]:
        """The class of this name.

        UnknownPolicyError says what is known, DuplicatePolicyError who else offers the name,
        PluginError why an installed one cannot be used.
        """
        if not isinstance(name, str):
            raise TypeError(f"a policy's name is a str, not {type(name).__name__}")
        for classes in (self._builtin, self._registered, self._loaded):
            if name in classes:
                return classes[name]
        return self._load(name)

    def create(self, name: str, /, **params: Any) -> FilterPolicy:
        """The policy of this name with these parameters; TypeError or ValueError for bad ones."""
        cls = self.lookup(name)
        check_parameters(name, cls, params)
        return cls(**params)

    def register(self, cls: PolicyClass, *, replace: bool = False) -> PolicyClass:
        """Make a class known by its ``name``; for programs that cannot have entry points.

        Returns the class, so that it serves as a decorator. ``replace=True`` is for a name that
        another class has already, or that two distributions offer.
        """
        check_class(cls)
        check_offered_name(cls.name, self._builtin)
        with self._lock:
            known = self._registered.get(cls.name) or self._loaded.get(cls.name) or cls
            if known is not cls and not replace:
                raise DuplicatePolicyError(
                    f"filter policy {cls.name!r} is {_path(known)} already, not {_path(cls)}: "
                    "choose another name, or pass replace=True"
                )
            self._registered[cls.name] = cls
        return cls

    def available(self) -> tuple[str, ...]:
        """Every name that can be asked for, sorted; imports no plug-in."""
        offered = (name for name in self._installed() if _is_third_party(name))
        return tuple(sorted({*self._builtin, *self._registered, *offered}))

    def refresh(self) -> None:
        """Look for installed plug-ins anew at the next need; what was registered stays.

        For programs that install while they run, and for tests.
        """
        importlib.invalidate_caches()
        with self._lock:
            self._loaded.clear()
            self._offers = None

    def _installed(self) -> Mapping[str, tuple[plugins.Plugin, ...]]:
        with self._lock:
            if self._offers is None:
                self._offers = self._scan()
            return self._offers

    def _load(self, name: str) -> type[FilterPolicy]:
        offers = self._installed().get(name)
        if offers is None:
            raise self._unknown(name)
        plugin = plugins.only(offers)
        try:
            check_offered_name(name, self._builtin)
            # Outside the lock: the import may call register(), or wait for a thread that does.
            cls = check_class(plugin.load())
            if cls.name != name:
                raise ValueError(f"{_path(cls)} calls itself {cls.name!r}")
        except PluginError:
            raise
        except BaseException as error:
            let_pass(error)
            expected = isinstance(error, (TypeError, ValueError)) and words(error)
            said = expected or cause(error)
            raise PluginError(f"filter policy {name!r} of {plugin} is refused: {said}") from error
        with self._lock:
            return self._loaded.setdefault(name, cls)

    def _unknown(self, name: str) -> UnknownPolicyError:
        known = self.available()
        if plugins.disabled():
            advice = f"installed ones are not looked for, because {plugins.SWITCH} is set"
        else:
            advice = (
                f"install the distribution that offers it in the entry-point group "
                f"{plugins.GROUP!r}, or call policies.register(cls)"
            )
        return UnknownPolicyError(
            f"unknown filter policy {name!r}{did_you_mean(name, known)}; "
            f"known are {', '.join(known)}: {advice}"
        )


def check_class(cls: Any) -> type[FilterPolicy]:
    """The class itself, or TypeError or ValueError that says why it is no usable policy."""
    if not isinstance(cls, type):
        raise TypeError(f"a filter policy is a class, not a {type(cls).__name__}")
    if not issubclass(cls, FilterPolicy):
        raise TypeError(f"{_path(cls)} is not a subclass of policies.FilterPolicy")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise TypeError(f"{_path(cls)} is abstract: it lacks {missing}")
    if not isinstance(getattr(cls, "name", None), str):
        raise TypeError(f'{_path(cls)} has no name: write name: ClassVar[str] = "..." in its body')
    if not NAME.fullmatch(cls.name):
        raise ValueError(
            f"{_path(cls)} has the name {cls.name!r}, allowed are 1 to 64 of a-z, 0-9, '.', '_' "
            "and '-', the first a letter or digit"
        )
    if "table" not in cls.layouts or not cls.layouts <= {"table", "block"}:
        raise ValueError(
            f"{_path(cls)} has the layouts {sorted(cls.layouts)}: allowed are table, or table and "
            "block"
        )
    if reserved := RESERVED.intersection(parameter_names(cls) or ()):
        raise ValueError(
            f"{_path(cls)} has a parameter {min(reserved)!r}, a name with another meaning: "
            "rename it (a seed is declared with eq=False, and is then no parameter)"
        )
    return cls


def check_offered_name(name: str, builtin: Iterable[str]) -> None:
    """ValueError unless a third party may use this name."""
    if name in builtin:
        raise ValueError(f"the name {name!r} is built in: choose another, such as 'acme.{name}'")
    if not _is_third_party(name):
        raise ValueError(
            f"the name {name!r} is reserved: policies from outside this package carry a prefix "
            f"and a dot, such as 'acme.{name}', and are made of a-z, 0-9, '.', '_' and '-'"
        )


def _is_third_party(name: str) -> bool:
    return "." in name and NAME.fullmatch(name) is not None


def _path(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


_REGISTRY = Registry(BUILTIN)

lookup = _REGISTRY.lookup
create = _REGISTRY.create
register = _REGISTRY.register
available = _REGISTRY.available
refresh = _REGISTRY.refresh
