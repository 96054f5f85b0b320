"""A process that tells on a pipe what it does, until it is killed."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

import attrs

PATIENCE = 60.0
ROOT = Path(__file__).parents[2]


@attrs.define
class Killed:
    """What runs, and the lines it has written so far."""

    process: subprocess.Popen[bytes]
    stderr: Path
    lines: list[bytes] = attrs.field(factory=list)
    _unfinished: bytes = b""

    @classmethod
    def begin(cls, module: str, *arguments: str, stderr: Path) -> Killed:
        """Run a module of these tests."""
        with stderr.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=os.environ | {"PYTHONPATH": ":".join(filter(None, [str(ROOT), *sys.path]))},
                stdout=subprocess.PIPE,
                stderr=file,
            )
        return cls(process, stderr)

    def read(self, seconds: float = PATIENCE) -> bool:
        """Wait so long for lines; False if none came."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                return False
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        self.lines += lines
        return bool(data)

    def must_read(self) -> None:
        """Wait for lines; an error if none come."""
        assert self.read(), f"hangs, or ended by itself:\n{self._last_words()}"

    def read_for(self, seconds: float) -> None:
        """Take whatever comes for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def kill(self) -> str:
        """End it, and read what it said, of which this are its complaints.

        An error if it has ended by itself.
        """
        self.process.kill()
        while self.read():
            pass
        status = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert status == -signal.SIGKILL, f"ended by itself:\n{self.stderr.read_text()}"
        return self.stderr.read_text()

    def _last_words(self) -> str:
        """The stacks of its threads, if it still has any."""
        self.process.send_signal(signal.SIGABRT)
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()  # or the test after this one fails, too, as it is collected
        return self.stderr.read_text()
