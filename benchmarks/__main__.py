"""``python -m benchmarks [COMMAND]``: what a filter costs and saves, on this machine, on your keys.

Without a command everything is measured: filters, kernels, engine, levels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks import compare, measuring, report
from benchmarks.engine import EnginePart
from benchmarks.filters import FiltersPart
from benchmarks.kernels import KernelsPart
from benchmarks.levels import LevelsPart
from benchmarks.parts import Part

ALL = "all"


def parts() -> list[Part]:
    """The parts of the benchmark, in the order in which they run."""
    return [FiltersPart(), KernelsPart(), EnginePart(), LevelsPart()]


def main(given: Sequence[str] | None = None) -> int:
    """Run the command that is named, or everything; the exit status."""
    words = list(sys.argv[1:] if given is None else given)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, ALL)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    measured: dict[str, list[Part]] = {ALL: parts()} | {part.name: [part] for part in parts()}
    parsers = {}
    for name, some in measured.items():
        told = some[0].help if name != ALL else "everything, the same as no command"
        parsers[name] = commands.add_parser(name, help=told, description=told)
        measuring.add_arguments(parsers[name], some)
    for module in (compare, report):
        name = module.__name__.rpartition(".")[2]
        parsers[name] = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(parsers[name])
    options = parser.parse_args(words)
    own = parsers[options.command]
    if options.command in measured:
        return measuring.main(options, own, measured[options.command])
    status: int = {"compare": compare, "report": report}[options.command].main(options, own)
    return status


if __name__ == "__main__":
    sys.exit(main())
