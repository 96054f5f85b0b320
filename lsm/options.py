"""What a database is opened with: the engine's numbers, and which filter each level uses.

::

    [engine]                          # lsm.toml; every field of Options but filters is a key here
    write_buffer_size = "8 MiB"
    compression = "zstd"

A file is read as strictly as its ``[filters]``: what is wrong in it is a PolicyConfigError that
names file, table and key. What a caller passes is a TypeError or ValueError in the same words.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import attrs

from filters.errors import FilterError
from filters.leveldb import MAX_BITS_PER_KEY
from filters.sizing_parameters import checked_int
from policies import registry
from policies.builtin import LevelDBPolicy, NoFilterPolicy
from policies.config import levels_of
from policies.contract import FilterPolicy
from policies.errors import PolicyConfigError, did_you_mean
from policies.layouts import DEFAULT_LAYOUT, LAYOUT_KEYS, PARTITIONED
from policies.levels import LevelPolicies
from policies.parameters import BUDGET_KEYS, PREFIX_KEYS
from policies.prefixes import Prefixes
from policies.rule import BudgetRule
from policies.sections import Section, parsed, read

LEVELS = 7
COMPRESSIONS = ("snappy", "zstd", "none")
LOADING = ("lazy", "open")
"""When filters come into memory: with the first lookup that asks them, or before opening ends."""
SHARED = "shared"
NO_LEVELS = "none"

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
_UNITS = {"GiB": GIB, "MiB": MIB, "KiB": KIB}
_SIZE = re.compile(r"(?P<count>0|[1-9][0-9]{0,12}) ?(?P<unit>[KMG]iB)")

# Far above anything sensible, and so that every number is written in few digits.
_MOST_LEVEL0_FILES = 1_000_000

_KEPT_HEAD = "# Kept by the engine: the options this database was last opened with.\n"
_KEPT_ADVICE = "config= takes the place of this whole file, filter_policy= that of its [filters]"


class NotGiven(enum.Enum):
    """The type of ``NOT_GIVEN``, for keywords whose None means something."""

    NOT_GIVEN = enum.auto()

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


@attrs.frozen
class Count:
    """A validator: an int from ``low`` to ``high``."""

    low: int
    high: int

    def __call__(self, _options: object, field: attrs.Attribute[Any], value: Any) -> None:
        """TypeError or ValueError unless it is one."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong_kind(field.name, value)
        if not self.low <= value <= self.high:
            raise out_of_range(field.name, self.text(value), self.range)

    def wrong_kind(self, name: str, value: object) -> Exception:
        """The error for what is no int."""
        kind = type(value).__name__
        return TypeError(f"{name} is an int, not {kind}; allowed are {self.range}")

    @property
    def range(self) -> str:
        """Both ends, as messages and the documentation have them."""
        return f"{self.text(self.low)} to {self.text(self.high)}"

    @staticmethod
    def text(number: int) -> str:
        """The number, unless it is absurd: Python refuses to write those of very many digits."""
        bits = number.bit_length()
        return str(number) if bits <= 64 else f"a number of {bits} bits"


@attrs.frozen
class Size(Count):
    """A validator: a number of bytes from ``low`` to ``high``."""

    def wrong_kind(self, name: str, value: object) -> Exception:
        """The error for what is neither an int nor a text that means one."""
        shown = f"{value!r:.40}" if isinstance(value, str) else type(value).__name__
        return (ValueError if isinstance(value, str) else TypeError)(
            f'{name} is a whole number of bytes, or text such as "64 MiB" with one of KiB, MiB '
            f"and GiB, not {shown}; allowed are {self.range}"
        )

    @staticmethod
    def text(number: int) -> str:
        """The number in the largest unit that leaves no fraction."""
        for unit, size in _UNITS.items():
            if number and number % size == 0:
                return f"{Count.text(number // size)} {unit}"
        return f"{Count.text(number)} {'byte' if number == 1 else 'bytes'}"


@attrs.frozen
class SizeOrShared(Size):
    """A validator: a number of bytes from ``low`` to ``high``, or that another one is shared."""

    def __call__(self, options: object, field: attrs.Attribute[Any], value: Any) -> None:
        """TypeError or ValueError unless it is one."""
        if value != SHARED:
            super().__call__(options, field, value)

    @property
    def range(self) -> str:
        """Both ends, and the word."""
        return f'{self.text(self.low)} to {self.text(self.high)}, or "{SHARED}"'


def size_in_bytes(value: int | str) -> Any:
    """The bytes that a text such as ``"64 MiB"`` means; anything else is for Size to judge."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return int(match["count"]) * _UNITS[match["unit"]] if match else value


def out_of_range(name: str, value: str, allowed: str) -> ValueError:
    """The error for a number out of its range."""
    return ValueError(f"{name} is out of range: {value}, allowed are {allowed}")


def _compression(name: str | None) -> str:
    return "none" if name is None else name


def _check_compression(_options: object, _field: object, name: Any) -> None:
    known = ", ".join(COMPRESSIONS)
    if not isinstance(name, str):
        raise TypeError(f"compression is a name, not {type(name).__name__}; allowed are {known}")
    if name not in COMPRESSIONS:
        nearest = did_you_mean(name, COMPRESSIONS)
        raise ValueError(f"compression is {name!r}{nearest}; allowed are {known}")


def _check_flag(_options: object, field: attrs.Attribute[Any], value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{field.name} is a bool, not {type(value).__name__}: write true or false")


def _check_loading(_options: object, _field: object, name: Any) -> None:
    known = ", ".join(LOADING)
    if not isinstance(name, str):
        raise TypeError(f"load_filters is a name, not {type(name).__name__}; allowed are {known}")
    if name not in LOADING:
        raise ValueError(
            f"load_filters is {name!r}{did_you_mean(name, LOADING)}; allowed are {known}"
        )


def _check_levels(_options: object, field: attrs.Attribute[Any], spec: Any) -> None:
    if not isinstance(spec, str):
        raise TypeError(
            f'{field.name} names levels, like "0-1", or is "{NO_LEVELS}", not {spec!r:.40}'
        )
    if spec == NO_LEVELS:
        return
    try:
        levels_of(spec, LEVELS)
    except ValueError as error:
        raise ValueError(f'{field.name}: {error}; "{NO_LEVELS}" is for no level') from None


def _check_filters(_options: object, _field: object, filters: Any) -> None:
    if not isinstance(filters, LevelPolicies):
        raise TypeError(f"filters is a LevelPolicies, not {type(filters).__name__}")
    if len(filters) != LEVELS:
        raise ValueError(
            f"filters is for {len(filters)} levels, and a database has {LEVELS}: "
            f"make it with levels={LEVELS}"
        )
    for cls in dict.fromkeys(_classes_of(filters)):
        _check_leads_back(cls)


def _classes_of(filters: LevelPolicies) -> Iterator[type[FilterPolicy]]:
    """The classes of all policies whose filters tables may get."""
    yield from map(type, filters)
    if filters.rule is not None:
        yield from filters.rule.classes()


def check_can_be_opened_again(policy: FilterPolicy) -> None:
    """ValueError unless the policy's name leads back to its class: tables keep only the name."""
    _check_leads_back(type(policy))


def _check_leads_back(of: type[FilterPolicy]) -> None:
    cls = registry.check_class(of)
    known, reason = None, None
    try:
        known = registry.lookup(cls.name)
    except FilterError as error:
        reason = error
    if known is not cls:
        raise ValueError(
            f"filters of {cls.__module__}.{cls.__qualname__} could not be opened again, since the "
            f"name {cls.name!r} does not lead to it: call policies.register({cls.__qualname__}) "
            "before, or choose another name if this one is taken"
        ) from reason


def _default_filters() -> LevelPolicies:
    """What an empty ``[filters]`` gives."""
    return LevelPolicies.from_config({}, LEVELS)


@attrs.frozen(kw_only=True)
class Options:
    """All that a database is opened with; docs/configuration.md says what each field does.

    Sizes are in bytes and may be given as text such as ``"64 MiB"``; None for ``compression`` is
    ``"none"``. The three thresholds of level 0 do not fall: compact, slow, stop.
    """

    write_buffer_size: int = attrs.field(
        default=4 * MIB, converter=size_in_bytes, validator=Size(1, GIB)
    )
    max_file_size: int = attrs.field(
        default=2 * MIB, converter=size_in_bytes, validator=Size(KIB, GIB)
    )
    block_size: int = attrs.field(
        default=4 * KIB, converter=size_in_bytes, validator=Size(64, 4 * MIB)
    )
    block_restart_interval: int = attrs.field(default=16, validator=Count(1, 65535))
    compression: str = attrs.field(
        default="snappy", converter=_compression, validator=_check_compression
    )
    lru_cache_size: int = attrs.field(
        default=8 * MIB, converter=size_in_bytes, validator=Size(0, TIB)
    )
    # The indexes of max_open_files tables of max_file_size: they take a tenth of what a table does.
    table_cache_size: int = attrs.field(
        default=256 * MIB, converter=size_in_bytes, validator=Size(0, TIB)
    )
    filter_cache_size: Any = attrs.field(
        default=64 * MIB, converter=size_in_bytes, validator=SizeOrShared(0, TIB)
    )
    pin_filters: str = attrs.field(default=NO_LEVELS, validator=_check_levels)
    load_filters: str = attrs.field(default=LOADING[0], validator=_check_loading)
    warm_filters: bool = attrs.field(default=False, validator=_check_flag)
    max_open_files: int = attrs.field(default=1000, validator=Count(1, 1_000_000))
    paranoid_checks: bool = attrs.field(default=False, validator=_check_flag)
    level_size_base: int = attrs.field(
        default=10 * MIB, converter=size_in_bytes, validator=Size(KIB, TIB)
    )
    level_size_ratio: int = attrs.field(default=10, validator=Count(2, 100))
    level0_compact_files: int = attrs.field(default=4, validator=Count(1, 1000))
    level0_slow_files: int = attrs.field(default=8, validator=Count(1, _MOST_LEVEL0_FILES))
    level0_stop_files: int = attrs.field(default=12, validator=Count(1, _MOST_LEVEL0_FILES))
    max_background_jobs: int = attrs.field(default=0, validator=Count(0, 64))
    refilter_bytes_per_second: int = attrs.field(
        default=0, converter=size_in_bytes, validator=Size(0, TIB)
    )
    filters_compare_bytes: bool = attrs.field(default=False, validator=_check_flag)
    filters: LevelPolicies = attrs.field(factory=_default_filters, validator=_check_filters)

    def __attrs_post_init__(self) -> None:
        """Refuse thresholds of level 0 that are out of order."""
        steps = ("level0_compact_files", "level0_slow_files", "level0_stop_files")
        for lower, upper in pairwise(steps):
            low, value = getattr(self, lower), getattr(self, upper)
            if value < low:
                allowed = f"{low} ({lower}) to {_MOST_LEVEL0_FILES}"
                raise out_of_range(upper, str(value), allowed)

    def limit(self, level: int) -> int:
        """The bytes that a level from 1 on may hold before it is compacted."""
        checked_int("level", level, 1, LEVELS - 1)
        return self.level_size_base * int(self.level_size_ratio ** (level - 1))

    def pinned_levels(self) -> range:
        """The levels whose filters stay in memory."""
        return range(0) if self.pin_filters == NO_LEVELS else levels_of(self.pin_filters, LEVELS)

    def to_toml(self) -> str:
        """The options as a configuration that :func:`load` reads back as equal ones."""
        engine = Section("", "engine", {key: getattr(self, key) for key in KEYS})
        return f"{_KEPT_HEAD}\n{engine.to_toml()}\n{self.filters.to_toml()}"


KEYS = tuple(field.name for field in attrs.fields(Options) if field.name != "filters")
"""The keys of ``[engine]``: every field but ``filters``."""


def load(path: str | os.PathLike[str]) -> Options:
    """The options in a TOML file; PolicyConfigError says what is wrong where in it."""
    return from_document(read(path), os.fspath(path))


def from_document(
    document: Mapping[str, Any], source: str, filters: LevelPolicies | None = None
) -> Options:
    """The options of a whole configuration document; PolicyConfigError names ``source``.

    ``filters`` stands in for the document's ``[filters]``, which is then not looked into.
    """
    asked = document if filters is None else {**document, "filters": {}}
    selected = LevelPolicies.from_config(asked, LEVELS, source)
    section = Section.top(document, "engine", source)
    section.check_keys(KEYS, "here")
    try:
        options = Options(**section.entries, filters=selected)
    except (TypeError, ValueError) as error:
        raise section.error(str(error)) from error
    # Outside of that: what is wrong with a caller's filters stands in no file.
    return options if filters is None else attrs.evolve(options, filters=filters)


def from_kept(data: bytes, source: str, filters: LevelPolicies | None = None) -> Options:
    """The options in the file that the engine keeps; an error also says what overrides them.

    ``filters`` stands in for its ``[filters]``, whatever these say: the policy they name may have
    been uninstalled since.
    """
    known = _KNOWN.get(data)
    if known is not None and filters is not None:
        return attrs.evolve(known, filters=filters)
    if known is not None and _are_still_found(known.filters):
        return known
    try:
        options = from_document(parsed(data, source), source, filters)
    except PolicyConfigError as error:
        raise PolicyConfigError(f"{error}; {_KEPT_ADVICE}") from error
    if options.to_toml().encode() == data:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[data] = options
    return options


def is_text_of(data: bytes, options: Options) -> bool:
    """Whether this is what :meth:`Options.to_toml` writes for these options."""
    return _KNOWN.get(data) is options or options.to_toml().encode() == data


# Parsing TOML takes longer than recovering a database with an empty log, and a program opens many
# that keep the same options. Each text is the one that its options are written with.
_KNOWN: dict[bytes, Options] = {}
_MOST_KNOWN = 16


def _are_still_found(filters: LevelPolicies) -> bool:
    """Whether the names of these policies still lead to their classes."""
    try:
        return all(registry.lookup(cls.name) is cls for cls in set(_classes_of(filters)))
    except FilterError:
        return False


_BUDGET_KEYWORDS = tuple(f"filter_{key}" for key in BUDGET_KEYS)
_PREFIX_KEYWORDS = ("filter_prefix", "filter_prefix_until", "filter_whole_keys")
_PLACE_KEYWORDS = ("filter_layout", "filter_partition_blocks", *_PREFIX_KEYWORDS)
_POLICY_KEYWORDS = ("filter_policy", *_PLACE_KEYWORDS, "bloom_filter_bits")
_FILTER_KEYWORDS = (*_POLICY_KEYWORDS, *_BUDGET_KEYWORDS)
_KEYWORDS = (*KEYS, *_FILTER_KEYWORDS)
_NONE_IS_A_CHOICE = ("compression", "filter_policy")


def effective(
    *,
    kept: Callable[[LevelPolicies | None], Options | None],
    config: str | os.PathLike[str] | None,
    given: Mapping[str, Any],
) -> Options:
    """The options to open a database with: keywords win over a file, a file over what was kept.

    A ``config`` stands alone: what it does not say is at its default. Without one, ``kept`` is
    called with the filters that keywords select, or None, and answers None where nothing is kept.
    In ``given`` NOT_GIVEN says nothing, and neither does None, except for ``compression`` and
    ``filter_policy``, where it selects none.
    """
    for name in given:
        if name not in _KEYWORDS:
            known = ", ".join(sorted(_KEYWORDS))
            nearest = did_you_mean(name, _KEYWORDS)
            raise TypeError(f"unknown option {name!r}{nearest}; allowed are {known}")
    given_values = {name: value for name, value in given.items() if _is_given(name, value)}
    asked = {name: given_values.pop(name) for name in _FILTER_KEYWORDS if name in given_values}
    filters = _budget_of_keywords(asked)
    if filters is None:
        filters = _filters_of_keywords(
            asked.get("filter_policy", NOT_GIVEN),
            asked.get("filter_layout"),
            asked.get("bloom_filter_bits", 0),
            asked.get("filter_partition_blocks"),
            _prefixes_of_keywords(asked),
        )
    if filters is not None:
        given_values["filters"] = filters
    base = load(config) if config is not None else kept(filters)
    if base is None:
        return Options(**given_values)
    return attrs.evolve(base, **given_values) if given_values else base


def _is_given(name: str, value: object) -> bool:
    """Whether a keyword was given, in plyvel's way: None is as good as nothing, mostly."""
    return value is not NOT_GIVEN and (value is not None or name in _NONE_IS_A_CHOICE)


def _budget_of_keywords(asked: Mapping[str, Any]) -> LevelPolicies | None:
    """The filters that ``filter_budget`` and what goes with it select; None where it is not given.

    TypeError or ValueError for what goes with it and stands alone, and for what does not.
    """
    keys = (*BUDGET_KEYS, *LAYOUT_KEYS)
    entries = {key: asked[f"filter_{key}"] for key in keys if f"filter_{key}" in asked}
    if "budget" not in entries:
        for key in (key for key in entries if key in BUDGET_KEYS):
            raise ValueError(
                f'filter_{key} goes with a budget: give filter_budget="10 bits/key", say, and all '
                "that is not at its default, or write it into the configuration"
            )
        return None
    for name in ("filter_policy", "bloom_filter_bits", *_PREFIX_KEYWORDS):
        if name in asked and (name != "bloom_filter_bits" or asked[name]):
            raise ValueError(
                f"filter_budget places the filters of all levels: leave out {name}, or the budget"
            )
    return LevelPolicies.of_rule(BudgetRule.of(entries, "filter_"), LEVELS)


def _prefixes_of_keywords(asked: Mapping[str, Any]) -> Prefixes | None:
    """The prefixes that keywords select, in the words of keywords where they select none."""
    given = {
        key: asked.get(keyword) for key, keyword in zip(PREFIX_KEYS, _PREFIX_KEYWORDS, strict=True)
    }
    try:
        return Prefixes.of_entries(given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"filter_{error}") from None


def _filters_of_keywords(
    policy: Any,
    layout: str | None,
    bits: int,
    partition_blocks: int | None,
    prefixes: Prefixes | None,
) -> LevelPolicies | None:
    """The filters of every level that keywords select; None where they select nothing."""
    if partition_blocks is not None and layout != PARTITIONED:
        raise ValueError(
            f"filter_partition_blocks is {partition_blocks!r}, and goes with filter_layout="
            f'"{PARTITIONED}": give both, or write them into the configuration'
        )
    if checked_int("bloom_filter_bits", bits, 0, MAX_BITS_PER_KEY):
        if policy is not NOT_GIVEN or layout is not None or prefixes is not None:
            raise ValueError(
                "bloom_filter_bits selects LevelDB's own filters in LevelDB's own layout: leave "
                "out filter_policy, filter_layout and prefixes, or bloom_filter_bits"
            )
        return LevelPolicies.uniform(LevelDBPolicy(bits_per_key=bits), LEVELS, "block")
    if layout is not None and not isinstance(policy, FilterPolicy):
        raise ValueError(
            f"filter_layout is {layout!r}, and goes with a filter_policy that is one policy for "
            "all levels: give both, or write the layout into the configuration"
        )
    if prefixes is not None and not isinstance(policy, FilterPolicy):
        raise ValueError(
            "filter_prefix and filter_prefix_until go with a filter_policy that is one policy for "
            "all levels: give both, or write the prefix into the configuration"
        )
    if policy is NOT_GIVEN or isinstance(policy, LevelPolicies):
        return None if policy is NOT_GIVEN else policy
    if policy is None:
        return LevelPolicies.uniform(NoFilterPolicy(), LEVELS)
    if not isinstance(policy, FilterPolicy):
        raise TypeError(
            "filter_policy is what policies.create(name) or policies.load(path) makes, or None "
            f"for no filters, not {policy!r}"
        )
    chosen = DEFAULT_LAYOUT if layout is None else layout
    return LevelPolicies.uniform(policy, LEVELS, chosen, partition_blocks, prefixes)
