"""The command ``lsm``, which ``docs/command.md`` tells of; its libraries come with an extra.

Importing this imports none of them: whoever has only the engine is told what is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

EXTRA = "cli"
_LIBRARIES = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or the process's; its exit status."""
    try:
        from lsm.cli import program
    except KeyboardInterrupt:
        print("lsm: interrupted", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        print(
            f"lsm: the command needs {error.name}, which is not installed: "
            f"pip install 'lsm-filters[{EXTRA}]'",
            file=sys.stderr,
        )
        return 2
    return program.run(arguments)
