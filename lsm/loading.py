"""A load: many sorted entries on their way into the database at once, with nobody else writing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import attrs

from lsm.disk.edit import Edit

if TYPE_CHECKING:
    from lsm.kernels import TableFile


@attrs.define(eq=False, weakref_slot=True)
class Load:
    """What writers wait for until it ``is_over``, and compactions once it ``is_alone``.

    The thread that made it writes the tables, ``busy`` while it does, and hands their edit in to be
    installed with a rank that makes them ``visible``. A thread of the background then installs it,
    to which no interruption comes, and ends it; so the load ``is_done`` or has an ``error``.
    """

    thread: int = attrs.field(factory=threading.get_ident)
    busy: threading.Lock = attrs.field(factory=threading.Lock)
    is_alone: bool = False
    is_over: bool = False
    is_given_up: bool = False
    edit: Edit = attrs.field(factory=Edit)
    files: list[TableFile] = attrs.field(factory=list)
    visible: int = 0
    size: int = 0
    is_taken: bool = False
    is_done: bool = False
    error: BaseException | None = None
