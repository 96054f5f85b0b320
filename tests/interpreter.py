"""A fresh interpreter, for what is decided once in a process."""

from __future__ import annotations

import os
import subprocess
import sys

# What a sanitizer needs wherever an instrumented module is loaded.
_KEPT = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "PYTHONMALLOC")


def fresh(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the code with this environment and no other, finding what is found here."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = ":".join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"PYTHONPATH": path, **kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
