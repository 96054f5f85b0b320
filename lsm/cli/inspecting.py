"""The command inspect: the filters in files of any store, what they do, what damage would do."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import attrs
import click

from lsm.cli import found_text, keys, options, output, records
from lsm.cli.found_text import Alike
from lsm.cli.mistakes import FOUND_NOTHING, Failure
from lsm.cli.progress import Meter
from lsm.errors import CorruptionError
from lsm.salvage import reason_of
from lsm.survey import damage as damages
from lsm.survey import measure as measures
from lsm.survey.damage import Damage
from lsm.survey.found import FileFound, FilterFound
from lsm.survey.look import files_of, look
from lsm.survey.measure import Measured

_PLACES_SHOWN = 4


@attrs.frozen(kw_only=True)
class Asked:
    """What is to be found out of each filter, beside what it says of itself."""

    absent: int | None
    """How many absent keys it is asked for; None where it is not measured."""
    damage: bool
    seed: int
    watch: Callable[[int], None]


@attrs.frozen
class Hiding:
    """The bits of filters that hide a key when they flip, without a map of them."""

    bits: int
    count: int
    is_exact: bool
    is_guarded: bool
    why: str
    places: tuple[tuple[int, int], ...]
    map: str = ""
    """In base64, for JSON alone: a bit for each of the filter's, from the lowest of each byte."""

    @classmethod
    def of(cls, found: Damage, with_map: bool) -> Hiding:
        """What is kept of one filter's."""
        return cls(
            found.bits,
            found.count,
            found.is_exact,
            found.is_guarded,
            found.why,
            tuple(islice(found.places(), _PLACES_SHOWN)),
            base64.b64encode(found.hiding).decode("ascii") if with_map else "",
        )


@attrs.frozen
class Looked:
    """One filter, and what was found out of it; what went wrong with that is its ``problem``."""

    filter: FilterFound
    measured: Measured | None = None
    hiding: Hiding | None = None
    problem: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with it."""
        denied = self.measured is not None and self.measured.denied
        is_wrong = self.filter.guard.checked == "wrong"
        return not (denied or is_wrong or self.problem or self.filter.problem)


@click.command(short_help="Show the filters in files of any store.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path())
@click.option("--measure", is_flag=True, help="Ask filters for all keys of their tables, and for "
              "absent keys of the same shape.")  # fmt: skip
@click.option("--damage", is_flag=True, help="Find the bits that would hide a key if they flipped.")
@click.option("--absent", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True,
              help="How many absent keys to ask for.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Draw them by this number.")
@click.option("--cassandra-version", metavar="VERSION", help="They are Filter.db of this version, "
              "such as nb, whatever their names.")  # fmt: skip
@click.option("--details", is_flag=True, help="Show all of each of several files.")
@options.as_json
@click.pass_context
def inspect(
    ctx: click.Context,
    paths: tuple[str, ...],
    measure: bool,
    damage: bool,
    absent: int,
    seed: int,
    cassandra_version: str | None,
    details: bool,
    as_json: bool,
) -> None:
    """Show the filters in files of any store, or in all files of directories.

    These are tables of LevelDB, RocksDB, Pebble and our own, Cassandra's Filter.db, Parquet files,
    and blocks of filters of ours. Nothing is written, locked or created. The exit status is 1 if
    something is wrong with one: a checksum, a denied key, what cannot be read.
    """
    files = [file for path in paths for file in files_of(path)]
    if not files:
        raise Failure(f"{paths[0]}: there is no file in it that may have filters")
    with Meter("asking", None, "keys") as meter:
        asked = Asked(
            absent=absent if measure else None, damage=damage, seed=seed, watch=_counter(meter)
        )
        shown: _Document | _Details | _Lines
        if as_json:
            shown = _Document()
        else:
            is_directory = len(paths) == 1 and os.path.isdir(paths[0])
            lines = _Lines(asked, paths[0] if is_directory else "")
            shown = _Details() if details or len(files) == 1 else lines
        status = 0
        for file in files:
            found, looked = _inspected(file, cassandra_version, asked, with_map=as_json)
            shown.add(found, looked)
            if found.problems or not all(each.is_sound for each in looked):
                status = FOUND_NOTHING
    shown.finish()
    ctx.exit(status)


def _counter(meter: Meter) -> Callable[[int], None]:
    counted = 0

    def watch(count: int) -> None:
        nonlocal counted
        counted += count
        meter.reach(counted)

    return watch


def _inspected(
    path: str, version: str | None, asked: Asked, with_map: bool
) -> tuple[FileFound, list[Looked]]:
    """A file, and its filters one after the other, none of which is kept in memory."""
    try:
        found = look(path, cassandra_version=version)
        looked = [_looked(each, asked, with_map) for each in found.filters]
    except CorruptionError as error:
        problem = (reason_of(error),)
        size = os.path.getsize(path)
        return FileFound(path=path, size=size, store="unknown", kind="file", problems=problem), []
    return found, looked


def _looked(filter: FilterFound, asked: Asked, with_map: bool) -> Looked:
    kept = found_text.bare(filter)
    if filter.reader is None or not (asked.absent or asked.damage):
        return Looked(kept)
    measured, hiding = None, None
    try:
        if asked.absent is not None:
            measured = measures.measure(filter, asked.absent, asked.seed, watch=asked.watch)
        if asked.damage:
            hiding = Hiding.of(damages.damage(filter, watch=asked.watch), with_map)
    except (CorruptionError, ValueError) as error:
        said = reason_of(error) if isinstance(error, CorruptionError) else str(error)
        return Looked(kept, measured, hiding, said)
    return Looked(kept, measured, hiding)


# -- As text ---------------------------------------------------------------------------------------


class _Details:
    """Shows all that there is of each file."""

    def add(self, found: FileFound, looked: Sequence[Looked]) -> None:
        """Show a file."""
        found_text.show_file(found)
        for group, some in _groups(looked):
            found_text.show_filters(group, _found_out(some))
            for problem in dict.fromkeys(each.problem for each in some if each.problem):
                output.problem(f"    {problem}")
        if not looked and not found.problems:
            output.line("  no filters")

    def finish(self) -> None:
        """There is nothing left to show."""


class _Lines:
    """Shows a line for each kind of filter in each file."""

    def __init__(self, asked: Asked, directory: str):
        self._directory = directory
        self._rows: list[tuple[object, ...]] = []
        self._problems: list[str] = []
        self._headings = [*found_text.HEADINGS]
        if asked.absent is not None:
            self._headings += ["denied", "measured"]
        if asked.damage:
            self._headings += ["hiding bits"]
        self._asked = asked

    def add(self, found: FileFound, looked: Sequence[Looked]) -> None:
        """Take in the lines of a file."""
        groups = _groups(looked)
        rows = found_text.rows_of(found, [group for group, _ in groups], self._directory)
        for row, some in zip(rows, [some for _, some in groups] or [[]], strict=True):
            self._rows.append((*row, *self._more(some)))
        self._problems += found.problems
        for each in looked:
            for what in filter(None, (each.filter.problem, each.problem)):
                self._problems.append(f"{found.path}: {each.filter.where}: {what}")

    def _more(self, looked: Sequence[Looked]) -> Iterator[str]:
        measured, hiding = _measured(looked), _hiding(looked)
        if self._asked.absent is not None:
            has_keys = measured is not None and measured.keys is not None
            yield f"{measured.denied:,}" if measured is not None and has_keys else "-"
            yield output.rate(None if measured is None else measured.rate)
        if self._asked.damage:
            yield "-" if hiding is None else f"{hiding.count:,}"

    def finish(self) -> None:
        """Show them."""
        output.table(self._headings, self._rows, left=found_text.LEFT)
        for problem in dict.fromkeys(self._problems):
            output.problem(problem)


def _groups(looked: Sequence[Looked]) -> list[tuple[Alike, list[Looked]]]:
    """Filters that are alike, with what was found out of them."""
    by_filter = {id(each.filter): each for each in looked}
    groups = found_text.alike([each.filter for each in looked])
    return [(group, [by_filter[id(each)] for each in group.filters]) for group in groups]


def _measured(looked: Sequence[Looked]) -> Measured | None:
    """What was measured of several filters, as of one."""
    all_measured = [each.measured for each in looked if each.measured is not None]
    return measures.together(all_measured) if all_measured else None


def _hiding(looked: Sequence[Looked]) -> Hiding | None:
    """The bits of several filters, as of one."""
    found = [each.hiding for each in looked if each.hiding is not None]
    if not found:
        return None
    places = tuple(place for each in found for place in each.places)
    return attrs.evolve(
        found[0],
        bits=sum(each.bits for each in found),
        count=sum(each.count for each in found),
        is_exact=all(each.is_exact for each in found),
        places=places[:_PLACES_SHOWN],
    )


def _found_out(looked: Sequence[Looked]) -> Iterator[tuple[str, object]]:
    """What was found out, as facts."""
    measured, hiding = _measured(looked), _hiding(looked)
    if measured is not None:
        yield "denied keys", _denied(measured)
        if measured.rate is not None:
            low, high = measured.interval
            yield "measured rate", f"{output.rate(measured.rate)}, {measured.verdict}"
            yield (
                "",
                f"{output.rate(low)} to {output.rate(high)} of {measured.absent:,} absent keys",
            )
            yield "absent keys", measured.shape
    if hiding is not None:
        share = hiding.count / max(1, hiding.bits)
        could = "would" if hiding.is_exact else "might"
        yield "hiding bits", f"{hiding.count:,} of {hiding.bits:,} ({share:.1%}) {could} hide a key"
        if hiding.places:
            shown = ", ".join(f"byte {byte} bit {bit}" for byte, bit in hiding.places)
            yield "", f"the first: {shown}"
        noticed = "is noticed by the checksum" if hiding.is_guarded else "is noticed by nobody"
        yield "", f"a flip {noticed}"
        yield "", hiding.why


def _denied(measured: Measured) -> str:
    if measured.keys is None:
        return "its keys are not at hand"
    if not measured.denied:
        return f"none of {measured.keys:,}"
    first = ", ".join(keys.show(key, "text") for key in measured.denied_keys[:_PLACES_SHOWN])
    return f"{measured.denied:,} of {measured.keys:,}: {first}"


# -- As JSON ---------------------------------------------------------------------------------------


class _Document:
    """Collects what JSON has of all files."""

    def __init__(self) -> None:
        self._files: list[dict[str, Any]] = []

    def add(self, found: FileFound, looked: Sequence[Looked]) -> None:
        """Take in a file."""
        self._files.append(found_text.file_as_json(found, [_as_json(each) for each in looked]))

    def finish(self) -> None:
        """Print the document."""
        output.document(self._files)


def _as_json(looked: Looked) -> dict[str, Any]:
    told = found_text.filter_as_json(looked.filter)
    measured, hiding = looked.measured, looked.hiding
    if looked.problem:
        told["problem"] = looked.problem
    if measured is not None:
        told["measured"] = attrs.asdict(measured) | {
            "denied_keys": [records.word(key, "text") for key in measured.denied_keys],
            "rate": measured.rate,
            "interval": list(measured.interval),
            "verdict": measured.verdict,
        }
    if hiding is not None:
        told["damage"] = attrs.asdict(
            hiding, filter=lambda field, _: field.name not in ("places", "is_exact", "is_guarded")
        ) | {"is_exact": hiding.is_exact, "is_guarded": hiding.is_guarded}
    return told


COMMANDS = (inspect,)
