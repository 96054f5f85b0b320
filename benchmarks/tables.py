"""The tables of families in documents, from their records: ``python -m benchmarks.tables``.

Each stands between two comments, ``<!-- families: name -->`` and ``<!-- end -->``; all else on the
pages is written by hand. Messages that list all policies are brought up to date where they stand.
What was measured of levels stands behind ``<!-- measured: name -->``, from the published record,
and the table of metrics behind ``<!-- metrics: all -->``, from their catalogue. The programs of the
cookbook stand behind ``<!-- program: name -->``, as their files have them.
"""

from __future__ import annotations

import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import attrs

from benchmarks import choosing, placing
from benchmarks.cookbook import table as cookbook_table
from benchmarks.engine import shown as engine_shown
from benchmarks.engine.targets import MANY
from benchmarks.kernels import shown as kernels_shown
from benchmarks.levels import cold, little_memory, live_table, ranges
from benchmarks.levels import table as levels_table
from benchmarks.record import Record
from benchmarks.rows import Row
from filters import digest_kinds, header, sizing
from filters.families import FAMILIES, every
from filters.family import Family
from lsm.metrics.catalogue import METRICS
from policies.builtin import BUILTIN, NoFilterPolicy
from policies.parameters import parameter_fields

ROOT = Path(__file__).parents[1]
EXAMPLE = "examples/lsm.toml"
RECORD = ROOT / "docs" / "results"
LITTLE_MEMORY, RANGES = RECORD / "little-memory.json", RECORD / "ranges.json"
COLD_OPEN = RECORD / "cold-open.json"
COOKBOOK = RECORD / "cookbook.json"
PROGRAMS = sorted((ROOT / "docs" / "cookbook").glob("*.py"))
WIDTH = 100
SIZES = (0.01, 0.001)  # the rates at which families are compared
ENGINE = RECORD / "engine.json"
KINDS = (
    digest_kinds.XXH3,
    digest_kinds.XXPH3,
    digest_kinds.LEVELDB,
    digest_kinds.ROCKSDB,
    digest_kinds.CASSANDRA,
    digest_kinds.KEY_NUMBERS,
)  # as filters/kernels/native/lsm_probe.h numbers them


def at_a_glance() -> str:
    """Every family with its class, what it takes and passes at its default, and who takes it."""
    lines = [
        f"| {_called(family)} | `{family.class_name}` | {sizing.bits_per_key(family.name):.3g} "
        f"bits/key | {_percent(sizing.fpr(family.name))} | {family.purpose} |"
        for family in every().values()
    ]
    return _table(
        "| policy | class in `filters` | at its default | rate | what it is for |",
        [*lines, f"| `{NoFilterPolicy.name}` | | | | no filter on this level |"],
    )


def compared() -> str:
    """What each takes for two rates, what a lookup reads, and what can be done with it later."""
    bounds = " | ".join(f"{sizing.lower_bound(rate):.2f}" for rate in SIZES)
    return _table(
        "| | bits/key at 1 % | at 0.1 % | memory reads per probe | add later | remove | union |",
        [
            f"| lower bound, any filter | {bounds} | | | | |",
            *map(_compared, sorted(FAMILIES.values(), key=_by_kind_and_size)),
        ],
    )


def sizing_parameters() -> str:
    """What each is sized by, within which limits, and what else shapes it."""
    return _table(
        "| family | sizing parameters (and their ranges) | default | more |",
        map(_sized, every().values()),
    )


def recommended() -> str:
    """What every family takes for one percent of a million keys, in bits and in time."""
    return _table(
        "| family | bits/key | rate | build, ns | ask, ns |",
        choosing.table(),
        "|--------|---------:|-----:|----------:|--------:|",
    )


def policy_parameters() -> str:
    """What a configuration may say of each policy."""
    return _table(
        "| policy | parameter | value | range | default |",
        (line for family in every().values() if family.policy for line in _parameters(family)),
    )


def names_of_sizing_parameters() -> str:
    """All of them, whoever takes them."""
    return _listed(
        f"`{name}`"
        for name in dict.fromkeys(
            name for family in every().values() for name in family.parameters.ranges
        )
    )


def payloads() -> str:
    """What stands in a block behind the name of a policy."""
    policies = sorted(
        (family for family in every().values() if family.policy),
        key=lambda family: (not family.is_salted, family.name),
    )
    return _table(
        "| name | payload |",
        [
            *(f"| `{family.name}` | {_payload(family)} |" for family in policies),
            f'| `{NoFilterPolicy.name}` | not written; any payload means "maybe" to every key |',
            "| another name | the format of whoever owns the prefix |",
        ],
    )


def placed() -> str:
    """What a lookup takes at ten bits a key, by who places them."""
    heads = ["filters", "bits/key", *(f"us, {each:,.0f} us a block" for each in placing.READS_US)]
    return _table(f"| {' | '.join(heads)} |", placing.table(), f"|---|{'---:|' * (len(heads) - 1)}")


def measured(lines: Callable[[Sequence[Row]], Iterator[str]], rows: Sequence[Row]) -> str:
    """What a record says of levels; where it is older than these rows, how to get them."""
    found = "\n".join(lines(rows)).strip()
    if found.count("\n") < 2:
        found = (
            "*The published record is older than these rows: `python -m benchmarks levels --full` "
            "measures them.*"
        )
    return f"\n\n{found}\n\n"


def _published(lines: Callable[[Sequence[Row]], Iterator[str]], record: Path) -> str:
    return measured(lines, _rows("levels", record))


def _as_measured(
    lines: Callable[[Sequence[Row]], Iterator[str]], part: str, record: Path = RECORD
) -> str:
    """What a record says of a part, on lines of its own."""
    return "\n".join(("", "", *lines(_rows(part, record)), "", ""))


@cache
def _rows(part: str, record: Path) -> Sequence[Row]:
    return tuple(Record.read(record).of(part))


def all_metrics() -> str:
    """Every metric, as both exporters call it."""
    return _table(
        "| Prometheus, and OpenTelemetry | kind, unit | labels | what it tells |",
        (
            _row(
                f"`{metric.prometheus_name}`, `{metric.name}`",
                f"{metric.kind}, `{metric.unit}`",
                ", ".join(f"`{label}`" for label in metric.labels),
                metric.help,
            )
            for metric in METRICS
        ),
    )


def program(path: Path) -> str:
    """A program of the cookbook, whole."""
    return f"\n```python\n{path.read_text(encoding='utf-8')}```\n"


def cookbook() -> str:
    """What the programs of the cookbook take, beside the alternatives."""
    return "\n\n" + "\n".join(cookbook_table.documented(Record.read(COOKBOOK))) + "\n\n"


def numbers() -> str:
    """What byte 4 of a filter says."""
    named = {number: name for name, number in header.FAMILY_IDS.items()}
    return ", ".join(f"{number} {named[number].replace('-', ' ')}" for number in sorted(named))


def asked_by(kind: str) -> str:
    """The families that are asked with digests of a kind."""
    return ", ".join(
        f"`{family.name}`" for family in every().values() if _digest_kind(family) == kind
    )


def names() -> list[str]:
    """All policies that are built in, in the order of messages."""
    return sorted(cls.name for cls in BUILTIN)


def names_in_a_comment() -> str:
    """The same as lines of a configuration that say nothing."""
    lines = textwrap.wrap(", ".join(names()), WIDTH - 4, break_on_hyphens=False)
    return "".join(f"#   {line}\n" for line in lines)


@attrs.frozen
class Place:
    """Where something that is derived stands on a page, between what."""

    page: str
    begin: str
    end: str
    text: Callable[[], str]

    def written(self, text: str) -> str:
        """The page with what belongs here; ValueError if there is no such place on it."""
        before, begin, rest = text.partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not (begin and end):
            raise ValueError(f"{self.page}: there is no {self.begin!r} with {self.end!r} behind it")
        return f"{before}{begin}{self.text()}{end}{after}"


def _marked(page: str, name: str, text: Callable[[], str]) -> Place:
    return Place(page, f"<!-- families: {name} -->", "<!-- end -->", text)


def _of_levels(
    page: str, name: str, lines: Callable[[Sequence[Row]], Iterator[str]], record: Path = RECORD
) -> Place:
    return _measured(page, name, partial(_published, lines, record))


def _measured(page: str, name: str, text: Callable[[], str]) -> Place:
    return Place(page, f"<!-- measured: {name} -->", "<!-- end -->", text)


def _program(path: Path) -> Place:
    begin = f"<!-- program: {path.stem} -->"
    return Place("docs/cookbook.md", begin, "<!-- end -->", partial(program, path))


PLACES = (
    _marked("README.md", "at a glance", at_a_glance),
    _marked("docs/families.md", "compared", compared),
    _marked("docs/families.md", "sizing parameters", sizing_parameters),
    _marked("docs/choosing.md", "recommended", recommended),
    _marked("docs/configuration.md", "parameters", policy_parameters),
    _marked("docs/configuration.md", "sizing parameters", names_of_sizing_parameters),
    _marked("docs/block-format.md", "payloads", payloads),
    _marked("docs/family-formats.md", "numbers", numbers),
    _marked("docs/placement.md", "placed", placed),
    Place("docs/metrics.md", "<!-- metrics: all -->", "<!-- end -->", all_metrics),
    _measured(
        "docs/kernels.md", "kernels", partial(_as_measured, kernels_shown.documented, "kernels")
    ),
    _measured(
        "docs/engine-speed.md",
        "engine",
        partial(_as_measured, partial(engine_shown.markdown, keys=MANY), "engine", ENGINE),
    ),
    _measured(
        "docs/engine-speed.md",
        "each peer",
        partial(_as_measured, engine_shown.markdown_beside, "engine", ENGINE),
    ),
    _of_levels("docs/placement.md", "live stores", live_table.documented),
    _of_levels("docs/benchmarks.md", "levels", levels_table.documented),
    _of_levels("docs/benchmarks.md", "levels that grow by ten", levels_table.documented_steep),
    _of_levels("docs/benchmarks.md", "little memory", little_memory.documented, LITTLE_MEMORY),
    _of_levels("docs/benchmarks.md", "ranges", ranges.documented, RANGES),
    _of_levels("docs/benchmarks.md", "cold open", cold.documented, COLD_OPEN),
    *map(_program, PROGRAMS),
    Place("docs/cookbook.md", "<!-- measured: cookbook -->", "<!-- end -->", cookbook),
    *(
        _marked("docs/c-door.md", f"digests of kind {number}", partial(asked_by, kind))
        for number, kind in enumerate(KINDS)
        if kind != digest_kinds.ROCKSDB  # of filters that nobody writes any more
    ),
    Place(
        EXAMPLE,
        "# The policies that are built in:\n",
        '# There may be others, of installed plug-ins, such as "acme.quotient".\n',
        names_in_a_comment,
    ),
)
PAGES = tuple(
    dict.fromkeys((*(place.page for place in PLACES), "docs/configuration.md", "docs/plugins.md"))
)


def written(page: str) -> str:
    """A page as it is to be."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for place in PLACES:
        if place.page == page:
            text = place.written(text)
    return re.sub(r"(?<=^```text\n)[^`]*known are[^`]*(?=^```$)", _message, text, flags=re.M)


def _message(found: re.Match[str]) -> str:
    """A message that lists all policies, wrapped as pages wrap it."""
    told = re.sub(
        r"known are [^:]*:", f"known are {', '.join(names())}:", " ".join(found[0].split())
    )
    return textwrap.fill(told, WIDTH, break_on_hyphens=False, break_long_words=False) + "\n"


def _table(head: str, rows: Iterable[str], rule: str = "") -> str:
    """A table on lines of its own."""
    rule = rule or re.sub(r"[^|]+", lambda cell: "-" * max(3, len(cell[0])), head)
    return "\n".join(("", head, rule, *rows, ""))


def _called(family: Family) -> str:
    return f"`{family.name}`" if family.policy else f"`{family.name}`, no policy"


def _percent(rate: float) -> str:
    return f"{100 * rate:.2g} %"


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _by_kind_and_size(family: Family) -> tuple[bool, bool, float]:
    """Ours for tables first, then other engines', then what only programs have."""
    size: dict[str, Any] = {family.rate_parameter: SIZES[0]}
    bits = sizing.bits_per_key(family.name, **size)
    return not family.in_tables, bool(family.foreign), bits


def _compared(family: Family) -> str:
    cls = family.filter_class("python")
    able = ("yes" if hasattr(cls, what) else "no" for what in ("add", "remove", "union"))
    cells = [_called(family), *(_bits(family, rate) for rate in SIZES), family.reads, *able]
    return f"| {' | '.join(cells)} |"


def _bits(family: Family, asked: float) -> str:
    """The bits for a rate, and what it comes to where that is far lower."""
    size: dict[str, Any] = {family.rate_parameter: asked}
    bits, rate = sizing.bits_per_key(family.name, **size), sizing.fpr(family.name, **size)
    return f"{bits:.2f}" if rate > 0.95 * asked else f"{bits:.2f} ({_percent(rate)})"


def _sized(family: Family) -> str:
    sizes = family.parameters
    whole = _whole(family)
    ranges = ", ".join(
        f"`{name}` ({'whole, ' if name in whole else ''}{_range(family, name)})"
        for name in sizes.ranges
    )
    more = [f"`{name}` {what}" for name, what in family.options.items()]
    if family.takes_probes:
        more.insert(0, f"`num_probes` 1 to {sizes.max_probes}")
    default = f"`{sizes.default.name}={sizes.default.value:g}`"
    return _row(f"`{family.name}`", ranges, default, ", ".join(more))


def _range(family: Family, name: str) -> str:
    """The values that a parameter takes."""
    if name == "num_probes":
        return f"1 to {family.parameters.max_probes}"
    if name in family.only:
        return " or ".join(map(str, family.only[name]))
    return " to ".join(map(_number, family.parameters.ranges[name]))


def _number(value: float) -> str:
    """A number as somebody would write it who has it from its definition."""
    if value >= 0.001 or not value:
        return f"{value:g}"
    power = math.log2(value)
    if power == int(power):
        return f"2^{power:.0f}"
    digits, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"


def _parameters(family: Family) -> Iterable[str]:
    fields = {field.name: field for field in parameter_fields(family.policy_class())}
    default = family.parameters.default
    for name in sorted(fields, key=[*family.parameters.ranges, "num_probes", *fields].index):
        usual = f"{default.value:g}" if name == default.name else ""
        if name == "num_probes":
            usual = family.foreign or "the best for the size"
        if name in family.options:
            values, usual = family.options[name], f"`{str(fields[name].default).lower()}`"
        else:
            values = _range(family, name)
        yield _row(f"`{family.name}`", f"`{name}`", _kind(fields[name]), values, usual)


def _whole(family: Family) -> set[str]:
    """The sizing parameters that are whole numbers of a range."""
    fields = parameter_fields(family.policy_class()) if family.policy else []
    return {field.name for field in fields if _kind(field) == "whole number"} - set(family.only)


def _kind(field: attrs.Attribute[Any]) -> str:
    """What a parameter is to somebody who writes TOML."""
    words = re.findall(r"bool|int|float|str", str(field.type))
    kinds = {"bool": "boolean", "int": "whole number", "str": "string"}
    return kinds.get(words[0], "number")


def _row(*cells: str) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _payload(family: Family) -> str:
    """Whose bytes are stored: another engine's, or those of the family that a filter says."""
    if not family.is_salted:
        return f"{family.foreign} own bytes, [see below](#{family.name})"
    data = family.policy_class()().create_filter([b"a key"])
    stored = next(name for name, number in header.FAMILY_IDS.items() if number == data[4])
    called, number = stored.replace("-", " "), header.FAMILY_IDS[stored]
    article = "an" if called[0] in "aeioux" else "a"
    link = f"family-formats.md#{stored}-family-{number}"
    beside = "" if stored == family.name else ", see below"
    return f"{article} [{called} filter]({link}), family {number}{beside}"


def _digest_kind(family: Family) -> str:
    cls: Any = family.filter_class("python")
    kind: str = cls.digests().kind if family.name in FAMILIES else digest_kinds.KEY_NUMBERS
    return kind


def main(pages: Sequence[str] = PAGES) -> None:
    """Write all pages anew that say anything else."""
    for page in pages:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes that a family advises against
            text = written(page)
        if text != (ROOT / page).read_text(encoding="utf-8"):
            (ROOT / page).write_text(text, encoding="utf-8")
            print(f"wrote {page}")


if __name__ == "__main__":
    main()
