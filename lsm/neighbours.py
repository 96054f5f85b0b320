"""The packages that stand beside this one, and whether what is found by their names is them.

``filters`` and ``policies`` are names that a program may have taken for a module of its own, and so
have distributions that have nothing to do with this one. What then goes wrong is said here, before
anything else is imported, and not by an AttributeError somewhere within.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

# A name that ours has, and nobody else's.
MARKS = {"filters": "KERNEL_REASON", "policies": "LevelPolicies"}


def check() -> None:
    """ImportError unless the packages found beside this one are its own."""
    for name, mark in MARKS.items():
        place = _place_of(name)
        if place is None:
            raise ImportError(
                f"lsm needs its package {name}, which is not installed beside it: install "
                "lsm-filters again, which has filters, policies and lsm",
                name=name,
            )
        if not Path(place).name.startswith("__init__."):
            raise _shadowed(name, place)  # and it is not run: it may import lsm in turn
        try:
            found = import_module(name)
        except Exception as error:
            if Path(place) == _own(name):
                raise
            raise _shadowed(name, place) from error
        if not hasattr(found, mark):
            raise _shadowed(name, place)


def _place_of(name: str) -> str | None:
    """The file that this name is imported from, or was; None if there is none."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__file__", None) or repr(module)
    spec = find_spec(name)
    return None if spec is None else spec.origin or repr(spec)


def _own(name: str) -> Path:
    """Where ours is, or ought to be."""
    return Path(__file__).parents[1] / name / "__init__.py"


def _shadowed(name: str, place: str) -> ImportError:
    """The error of something else in the place of a package, and what to do about it."""
    own = _own(name)
    if own.exists() and own != Path(place):
        said, advice = "comes before it on sys.path", f"rename {place}, or start Python elsewhere"
    else:
        said = "has taken its place"
        others = ", ".join(_owners(name)) or "another distribution"
        advice = (
            f"it is of {others}: uninstall that, install lsm-filters again, and keep the two in "
            "environments of their own"
        )
    return ImportError(
        f"lsm needs its own package {name}, and something else of that name {said}: {place}. What "
        f"to do: {advice}",
        name=name,
        path=place,
    )


def _owners(name: str) -> list[str]:
    """The other distributions that say they have brought this name."""
    from importlib.metadata import packages_distributions

    return sorted(set(packages_distributions().get(name, ())) - {"lsm-filters"})


check()
