"""Interruptions at every point where Python may deliver one: a Ctrl-C, or somebody else's code.

Between two instructions a thread runs its signal handlers, which may raise or use the very objects
whose method they interrupted. It does so where a function is entered, behind a call, and where a
loop jumps back, and these points are numbered here in the order in which an operation passes them.
A finalizer may run at more of them, behind any instruction that lets go of something: these are
``INSTRUCTIONS``.
"""

from __future__ import annotations

import dis
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FrameType
from typing import Any, Literal

import attrs

import filters
import lsm
import policies
from lsm.storage import FileSystem, WritableFile


class Stepwise(FileSystem):
    """The system's own files, to whose logs nobody writes at once: every commit takes steps."""

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        file = super().create(path, small_appends=small_appends)
        if small_appends:
            file.descriptor = -1  # type: ignore[attr-defined]
        return file


Kind = Literal["signals", "instructions"]
SIGNALS: Kind = "signals"
INSTRUCTIONS: Kind = "instructions"

# Behind these the interpreter looks for signals; each version has some of them. Behind a jump it
# does if the jump is taken, on a condition or always.
_JUMPS = {
    name for name in dis.opmap if "JUMP_BACKWARD" in name and not name.endswith("NO_INTERRUPT")
}
_CHECKED = {"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX"} & set(dis.opmap) | _JUMPS
_TAKEN = {dis.opmap[name] for name in _JUMPS}

# Behind these nothing is let go, so that no finalizer comes: a reference is taken, moved, or asked
# which object it is. An attribute is loaded so from a local variable, which keeps the object.
_QUIET = {"NOP", "PUSH_NULL", "COPY", "SWAP", "IS_OP", "JUMP_FORWARD", "KW_NAMES", "PRECALL"}
_QUIET |= {"LOAD_CONST", "LOAD_DEREF", "LOAD_GLOBAL", "EXTENDED_ARG", "TO_BOOL"}
_QUIET_PREFIXES = ("LOAD_FAST", "POP_JUMP_FORWARD_IF", "POP_JUMP_IF")
_ROOTS = tuple(os.path.dirname(module.__file__) + os.sep for module in (lsm, policies, filters))
_LIBRARIES = tuple(
    os.sep + name
    for name in ("threading.py", "contextlib.py", "weakref.py", "_weakrefset.py", "sortedlist.py")
)


@attrs.define(eq=False)
class Outcome:
    """What became of an interrupted operation.

    ``where`` is the point, None if the operation passed fewer; ``raised`` what it raised, without
    the frames that hold what was in use. Of an exception that is not the one it was interrupted
    with, a note has the traceback.
    """

    where: str | None = None
    result: Any = None
    raised: BaseException | None = None


def points(operation: Callable[[], object], kind: Kind = SIGNALS) -> int:
    """How many points an operation passes when nothing interrupts it."""
    counting = _Points(None, _nothing, kind)
    counting.run(operation)
    return counting.passed


def interrupted_at(
    number: int,
    operation: Callable[[], object],
    raising: Callable[[], BaseException] = KeyboardInterrupt,
    call: Callable[[], object] | None = None,
    kind: Kind = SIGNALS,
) -> Outcome:
    """Run an operation, and raise at the point of this number; or call a function there instead.

    What that function raises is raised there, too. Nothing interrupts the function itself. An error
    that comes before the point is not caught. At a point within a finalizer Python drops what is
    raised, here without a word.
    """
    thrown: list[BaseException] = []

    def interrupt() -> None:
        try:
            if call is None:
                raise raising()
            call()
        except BaseException as error:
            thrown.append(error)
            raise

    def drop(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_value not in thrown:
            hook(unraisable)

    outcome = Outcome()
    at = _Points(number, interrupt, kind)
    hook, sys.unraisablehook = sys.unraisablehook, drop
    try:
        outcome.result = at.run(operation)
    except BaseException as error:
        if at.where is None:
            raise
        if error not in thrown:
            error.add_note(f"interrupted at {at.where}\n{traceback.format_exc()}")
        outcome.raised = _without_frames(error)
    finally:
        sys.unraisablehook = hook
    outcome.where = at.where
    return outcome


def chosen(total: int, most: int | None, rng: random.Random) -> Iterator[int]:
    """The numbers of all points, or of so many of them, in the order of their passing."""
    if most is None or most >= total:
        return iter(range(total))
    return iter(sorted(rng.sample(range(total), most)))


class _Points:
    """Counts the points of one run, and calls a function at one of them."""

    def __init__(self, number: int | None, function: Callable[[], object], kind: Kind):
        self.passed = 0
        self.where: str | None = None
        self._number = number
        self._function = function
        self._kind = kind
        self._behind: dict[int, int] = {}  # by frame: where it is
        self._checked: dict[CodeType, dict[int, int]] = {}

    def run(self, operation: Callable[[], object]) -> object:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return operation()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, _argument: object) -> Any:
        if self.where is not None or not is_ours(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._behind[id(frame)] = frame.f_lasti  # RESUME, of which no event tells
        return self._step

    def _step(self, frame: FrameType, event: str, _argument: object) -> Any:
        if event == "opcode":
            before, now = self._behind.get(id(frame), -1), frame.f_lasti
            self._behind[id(frame)] = now
            if self._is_point(frame.f_code, before, now):
                self._pass(frame)
        elif event in ("return", "exception"):  # no look for signals on these ways
            self._behind.pop(id(frame), None)
        return self._step

    def _is_point(self, code: CodeType, before: int, now: int) -> bool:
        if self._kind == INSTRUCTIONS:
            return before >= 0 and before not in quiet(code)
        if code not in self._checked:
            self._checked[code] = checked(code)
        behind = self._checked[code].get(before)
        # A prefix is one with its instruction, whether one of them is told of or both are.
        if behind is None or before < now <= behind:
            return False
        return now < before or code.co_code[behind] not in _TAKEN

    def _pass(self, frame: FrameType) -> None:
        number, self.passed = self.passed, self.passed + 1
        if number == self._number:
            code = frame.f_code
            self.where = f"{os.path.basename(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
            self._function()


# In Python 3.11 PRECALL does what CALL is there for, if it knows what is called.
_PREFIXES = {dis.opmap[name] for name in {"EXTENDED_ARG", "PRECALL"} & set(dis.opmap)}


def checked(code: CodeType) -> dict[int, int]:
    """The offsets of the instructions behind which signals are looked for.

    Those of their prefixes lead to them, too.
    """
    found: dict[int, int] = {}
    prefixes: list[int] = []
    for instruction in dis.get_instructions(code):
        prefixes.append(instruction.offset)
        if instruction.opcode in _PREFIXES:
            continue
        # Behind a `yield from` or an `await`, RESUME does not look.
        is_quiet = instruction.opname == "RESUME" and (instruction.arg or 0) & 3 > 1
        if instruction.opname in _CHECKED and not is_quiet:
            found.update(dict.fromkeys(prefixes, instruction.offset))
        prefixes = []
    return found


@cache
def quiet(code: CodeType) -> frozenset[int]:
    """The offsets of the instructions behind which no finalizer runs."""
    found: set[int] = set()
    is_local = False
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        is_kept = is_local and name in ("LOAD_ATTR", "LOAD_METHOD")
        if is_kept or name in _QUIET or name.startswith(_QUIET_PREFIXES):
            found.add(instruction.offset)
        is_local = name.startswith("LOAD_FAST")
    return frozenset(found)


def is_ours(path: str) -> bool:
    """Whether a file's functions are interrupted."""
    return path.startswith(_ROOTS) or path.endswith(_LIBRARIES)


def _nothing() -> None:
    pass


def _without_frames(error: BaseException) -> BaseException:
    """The error, and those behind it, without tracebacks."""
    seen: list[BaseException] = []
    behind: list[BaseException | None] = [error]
    while behind:
        each = behind.pop()
        if each is not None and each not in seen:
            seen.append(each.with_traceback(None))
            behind += [each.__cause__, each.__context__]
    return error
