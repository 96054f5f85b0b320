"""``python -m benchmarks.filters.peak``: one build, alone, and the most memory it took."""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from contextlib import suppress
from pathlib import Path

from benchmarks.errors import UnavailableError
from benchmarks.filters.contenders import measured, unadvised
from benchmarks.filters.keysets import Wanted
from benchmarks.filters.settings import Settings

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

# What sets VmHWM back to what is resident now; proc(5).
RESET_PEAK = "5"

# A small build before brings everything that is loaded when it is first used.
FIRST = 1000


def main(given: str) -> int:
    """Print the bytes that building takes above what was there; what to build comes as JSON."""
    plain, name, kind, count = json.loads(given)
    path = plain["keys_file"]
    settings = Settings(**{**plain, "keys_file": Path(path) if path else None})
    [contender] = [each for each in measured(settings) if each.name == name]
    subject = contender.make()
    keys = Wanted(kind, count, settings.seed, settings.keys_file).keys()
    with unadvised():
        subject.build(keys[:FIRST])
        before = _settled()
        built = subject.build(keys)
    print(max(0, _status("VmHWM") - before))
    del built
    return 0


def _settled() -> int:
    """What is resident when nothing is left over, from where the peak counts now."""
    gc.collect()
    # Without it, as in other C libraries, what was freed may be used again, and counts for less.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        RESET.write_text(RESET_PEAK)
    except OSError as error:
        raise UnavailableError(f"this system does not tell a process's peak ({error})") from error
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    raise UnavailableError(f"this system does not tell {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
