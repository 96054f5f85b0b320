"""Policies that other distributions offer as entry points: found on need, loaded one at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import attrs

from policies.containment import let_pass
from policies.errors import DuplicatePolicyError, PluginError, cause

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "lsm.filter_policies"
SWITCH = "LSM_DISABLE_PLUGINS"


@attrs.frozen
class Plugin:
    """One entry point: which distribution offers which object under which name."""

    name: str
    target: str
    distribution: str
    entry_point: EntryPoint = attrs.field(eq=False, repr=False)

    def __str__(self) -> str:
        return f"{self.distribution} ({self.target})"

    def load(self) -> Any:
        """Import what the entry point names; PluginError for whatever that import raises."""
        try:
            return self.entry_point.load()
        except BaseException as error:
            let_pass(error)
            raise PluginError(
                f"filter policy {self.name!r} of {self} cannot be imported: {cause(error)}: "
                "repair or uninstall that distribution"
            ) from error


def disabled() -> bool:
    """Whether ``LSM_DISABLE_PLUGINS`` says that nothing installed may be loaded."""
    return os.environ.get(SWITCH, "") not in ("", "0")


def scan() -> dict[str, tuple[Plugin, ...]]:
    """Who offers which name, without importing any of it; empty if plug-ins are disabled.

    PluginError where the metadata of what is installed cannot be read.
    """
    if disabled():
        return {}
    from importlib.metadata import entry_points  # costs more than all of this package

    try:
        offered = entry_points(group=GROUP)
    except BaseException as error:
        let_pass(error)
        raise PluginError(
            f"installed filter policies cannot be looked for: {cause(error)}: repair the metadata "
            f"of what is installed, or set {SWITCH}=1 to do without"
        ) from error
    found: dict[str, tuple[Plugin, ...]] = {}
    for entry_point in offered:
        offer = Plugin(
            name=entry_point.name,
            target=entry_point.value,
            distribution=_distribution(entry_point),
            entry_point=entry_point,
        )
        others = found.get(offer.name, ())
        if offer not in others:
            found[offer.name] = (*others, offer)
    return found


def only(offers: tuple[Plugin, ...]) -> Plugin:
    """The one plug-in that offers a name; which of two is meant, no order may decide."""
    if len(offers) > 1:
        raise DuplicatePolicyError(
            f"filter policy {offers[0].name!r} is offered by "
            f"{' and by '.join(sorted(map(str, offers)))}: "
            "uninstall one, or say which by policies.register(cls, replace=True)"
        )
    return offers[0]


def _distribution(entry_point: EntryPoint) -> str:
    """The name and version of the distribution an entry point belongs to."""
    try:
        found = entry_point.dist
        described = f"{found.name} {found.version}" if found and found.name else ""
    except BaseException as error:  # damaged metadata must not hide the other plug-ins
        let_pass(error)
        described = ""
    return described or "a distribution without metadata"
