"""Forked children: what each does, in good time, and what it has to complain of."""

from __future__ import annotations

import faulthandler
import os
import signal
import traceback
from collections.abc import Callable
from typing import NoReturn

import attrs
import pytest

PATIENCE = 60
"""Seconds after which a child hangs: far more than anything takes on the slowest machine."""

_ENDED = b"the child has ended\n"


@attrs.frozen
class Child:
    """A forked process, as its parent has it and as it has itself; ``pipe`` is what it says."""

    number: int
    pipe: int

    @classmethod
    def fork(cls) -> Child:
        """Fork; whoever gets this in the child has to end it."""
        reading, writing = os.pipe()
        number = os.fork()
        if number:
            os.close(writing)
            return cls(number, reading)
        signal.alarm(2 * PATIENCE)  # even if Python itself does not go on
        faulthandler.dump_traceback_later(PATIENCE, exit=True, file=writing)
        return cls(number, writing)

    @property
    def is_this(self) -> bool:
        """Whether this process is the child."""
        return not self.number

    def end(self, check: Callable[[], object]) -> NoReturn:
        """In the child: see to this, and end, since the tests go on in the parent alone."""
        try:
            check()
            os.write(self.pipe, _ENDED)
        except BaseException:
            os.write(self.pipe, traceback.format_exc().encode())
        finally:
            os._exit(0)

    def check(self) -> None:
        """In the parent: wait for the end, and fail unless all was well."""
        with open(self.pipe, "rb") as file:
            said = file.read()
        _, status = os.waitpid(self.number, 0)
        if (said, status) != (_ENDED, 0):
            pytest.fail(f"in a forked child, whose status is {status}:\n{said.decode()}")


def check_in_child(check: Callable[[], object]) -> None:
    """Fork, and fail with what the child raises in this, or with its stacks if it hangs."""
    child = Child.fork()
    if child.is_this:
        child.end(check)
    child.check()
