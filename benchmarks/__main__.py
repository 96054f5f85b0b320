"""``python -m benchmarks COMMAND``: measurements that can be repeated, and recorded as JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from benchmarks import engine, kernels

COMMANDS: dict[str, ModuleType] = {"kernels": kernels, "engine": engine}


def main(given: Sequence[str] | None = None) -> int:
    """Run the command that is named; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parsers = {}
    for name, module in COMMANDS.items():
        parsers[name] = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(parsers[name])
    arguments = parser.parse_args(given)
    status: int = COMMANDS[arguments.command].main(arguments, parsers[arguments.command])
    return status


if __name__ == "__main__":
    sys.exit(main())
