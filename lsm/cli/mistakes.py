"""What goes wrong: one line that says it, and an exit status; a traceback for who asks for one."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import IO, Any

import click

from filters.errors import FilterError
from lsm.errors import Error

FOUND_NOTHING = 1
FAILED = 2
INTERRUPTED = 130
PIPE_CLOSED = 141

DEBUG = "LSM_DEBUG"
# What programs are told to call, in the words of who has the command.
_MEANT = {
    " (create_if_missing is false, or the directory above it is missing, which is not created)": "",
    " (create_if_missing is false)": "",
    ", create_if_missing does not": "",
    "lsm.repair_db()": "lsm repair",
}
_EXPECTED = (Error, FilterError, OSError, ValueError)


class Failure(click.ClickException):
    """Something that the user is told of in one line; the command ends."""

    exit_code = FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line, behind what was printed before."""
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        click.echo(f"lsm: {self.format_message()}", err=True)


def wants_traceback(asked: bool) -> bool:
    """Whether errors are to be shown with where they come from."""
    return asked or os.environ.get(DEBUG, "") not in ("", "0")


@contextlib.contextmanager
def told(shows_traceback: bool) -> Iterator[None]:
    """Have whatever is raised within end the process with one line, and the status that fits.

    What nobody expects is shown with its traceback in any case.
    """
    try:
        with _on_one_line():
            yield
            sys.stdout.flush()
    except BrokenPipeError:
        _leave_pipe()
        sys.exit(PIPE_CLOSED)
    except (KeyboardInterrupt, click.Abort):
        if shows_traceback:
            traceback.print_exc()
        click.echo("lsm: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except (click.ClickException, click.exceptions.Exit):
        raise
    except _EXPECTED as error:
        if shows_traceback:
            traceback.print_exc()
        raise Failure(_words_of(error)) from error
    except Exception as error:
        traceback.print_exc()
        raise Failure(f"{type(error).__name__}: {error}") from error


def _words_of(error: Exception) -> str:
    """What an error says, on one line."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror is not None and error.filename is not None:
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
        if error.filename2 is not None:
            text += f" ({os.fsdecode(error.filename2)})"
    for said, meant in _MEANT.items():
        text = text.replace(said, meant)
    return text or type(error).__name__


def _leave_pipe() -> None:
    """Have nobody write to the pipe again whose reader has gone, the interpreter's end included."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _on_one_line() -> Iterator[None]:
    """Show warnings, and what the engine logs, as lines like those of errors."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        click.echo(f"lsm: {message}", err=True)

    handler = _Lines()
    log = logging.getLogger("lsm")
    propagates = log.propagate
    with warnings.catch_warnings():
        warnings.showwarning = show
        log.addHandler(handler)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.propagate = propagates


class _Lines(logging.Handler):
    """Shows what is logged on stderr, warnings and above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the line."""
        click.echo(f"lsm: {record.getMessage()}", err=True)
