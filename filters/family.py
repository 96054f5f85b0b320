"""What there is to say of a family, in one record: whatever lists families reads it there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from filters.costs import COSTS, Cost
from filters.header import OVERHEAD
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from filters.kernels.python.base import Filter

RATE_RISES = "past that its rate rises"
NO_SECRET = "its hash knows no secret, so that prepared keys can flood it"


def _of_page(name: str) -> Any:
    """The default of a field: what the family's page defines under this name."""
    return attrs.Factory(lambda family: getattr(sys.modules[family.page], name), takes_self=True)


@attrs.frozen(kw_only=True, eq=False)
class Family:
    """One family: its names, its classes, how it is sized, what it is for, where its bytes stand.

    The record stands at the end of the family's page, and takes from there what is not said. What
    can be derived from it is derived: registries, exports, sizing, recommendations, tables in
    documents, parameters of tests, subjects of benchmarks.
    """

    page: str
    """The module that it stands in."""
    name: str = attrs.field(default=_of_page("FAMILY"))
    class_name: str
    module: str = attrs.field()
    """Where a kernel has the class, with ``{kernel}`` for the kernel's name."""
    number: int | None = None
    """In byte 4 of the frame around its payload; None for bytes of another engine's form."""
    policy: str = ""
    """``module:class`` of its policy; empty for a structure that only programs use."""
    layouts: frozenset[str] = frozenset({"table"})
    """How its filters can lie in a table: one for all of it, or also one for each window."""
    table_key: str = ""
    """Under which a table names its bytes as they are; empty: they stand in a block of ours."""

    parameters: SizingParameters = attrs.field(default=_of_page("SIZING_PARAMETERS"))
    options: Mapping[str, str] = attrs.field(factory=dict)
    """What else ``build`` takes to shape a filter, and which values, for documents."""
    check: Callable[..., Any] = attrs.field(default=_of_page("check"))
    """The sizing that keyword arguments ask for."""
    plan: Callable[..., Any] = attrs.field(default=_of_page("plan"))
    """The geometry for a number of keys, a sizing and, where it takes it, a number of probes."""
    payload_bytes: Callable[[Any], int] = attrs.field(default=_of_page("payload_bytes"))
    """The bytes of a geometry."""
    predicted_fpr: Callable[[float, Any], float] = attrs.field(default=_of_page("predicted_fpr"))
    """The rate of a geometry once so many keys are in."""
    estimate_num_keys: Callable[[Any], float] = lambda built: float(built.num_keys)
    """How many keys a filter holds, as its fill suggests; as it says where it keeps count."""
    overhead: int = OVERHEAD
    """The bytes that are stored beside the payload."""
    only: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    """The sizing parameters that take a few values of their range, and these values."""
    samples: bool = False
    """Whether every filter measures its rate on itself, since its fill does not tell it."""
    examples: tuple[Mapping[str, Any], ...]
    """Parameters that show its range; tests and benchmarks take them beside the default."""

    purpose: str
    """Who should take it."""
    strength: str
    """What is to be said for it, or against it, beside figures."""
    reads: str
    """How many places in memory a lookup reads."""
    foreign: str = ""
    """Whose files it is for."""
    in_tables: bool = True
    """Whether it can be the best choice where a table's keys are known and never change."""
    answers_ranges: bool = False
    """It keeps the order of keys, so that it answers for ranges; it is never asked with digests."""
    removes: bool = False
    grows: str = ""
    """What becomes of it past the number of keys it was made for; empty: it takes no more."""
    outgrows: bool = False
    """Its rate holds however many keys come."""
    cost: Cost | None = attrs.field(
        default=attrs.Factory(lambda family: COSTS.get(family.name), takes_self=True)
    )
    """As measured; None until somebody has."""

    @module.default
    def _module_of_its_name(self) -> str:
        return "filters.kernels.{kernel}." + self.name.replace("-", "_")

    @property
    def is_salted(self) -> bool:
        """Whether it hashes under a secret seed and a salt, as all families of our own do."""
        return self.number is not None

    @property
    def takes_probes(self) -> bool:
        """Whether the number of probes can be chosen."""
        return self.parameters.max_probes > 0

    @property
    def can_be_over_filled(self) -> bool:
        """Whether it goes on past the number of keys it was made for, at a higher rate."""
        return bool(self.grows) and not self.outgrows

    @property
    def rate_parameter(self) -> str:
        """What the sizing parameter is called that asks for a rate."""
        return next(name for name in self.parameters.ranges if name in ("fpr", "fp_chance"))

    def sized(self, num_keys: int, num_probes: int | None = None, **size: float) -> Any:
        """The geometry for so many keys under a sizing parameter, or under the default."""
        probes = {} if num_probes is None else {"num_probes": num_probes}
        sizing: SizingParameter = self.check(**size, **probes)
        return self.plan(num_keys, sizing, *probes.values())

    def filter_class(self, kernel: str) -> type[Filter]:
        """The class of this kernel."""
        module = import_module(self.module.format(kernel=kernel))
        found: type[Filter] = getattr(module, self.class_name)
        return found

    def policy_class(self) -> type[Any]:
        """The class of its policy."""
        module, _, name = self.policy.partition(":")
        found: type[Any] = getattr(import_module(module), name)
        return found
