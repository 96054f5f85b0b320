"""Whatever bytes are ours, opened by what they say they are."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from filters import families, files, header, kernels
from filters.errors import CorruptFilterError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.kernels.python.base import Filter

FRAMED_ABOVE = {b"LSMF": "policies.block:load_filter"}
"""What the floors above put around filters, by its magic, and what opens it there.

Imported when such bytes come, and by name alone: nothing down here knows what is in them.
"""


def load(source: Buffer | str | os.PathLike[str], *, mmap: bool = True) -> Filter:
    """The filter in these bytes or in this file: a filter of our own, or a block around any.

    Its ``family`` tells what it is. A file is mapped, as each class's ``load`` does it. A block is
    opened by the policy that it names; where that is a plug-in's, this is the plug-in's reader.
    CorruptFilterError for what is neither, and for bytes of LevelDB, RocksDB and Cassandra, which
    do not say what they are: their classes open them.
    """
    if isinstance(source, (str, os.PathLike)):
        return files.opened(source, _opened, mapped=mmap)
    return _opened(source)


def _opened(buffer: Any) -> Filter:
    view = header.immutable_view(buffer)
    magic = bytes(view[: len(header.MAGIC)])
    if magic == header.MAGIC:
        return kernels.filter_class(header.family_of(view)).from_bytes(view)
    if magic in FRAMED_ABOVE:
        module, _, name = FRAMED_ABOVE[magic].partition(":")
        opened: Filter = getattr(import_module(module), name)(view)
        return opened
    raise CorruptFilterError(_not_ours(view, magic))


def _not_ours(view: memoryview, magic: bytes) -> str:
    known = " or ".join(each.decode() for each in (header.MAGIC, *FRAMED_ABOVE))
    foreign = [each for each in families.every().values() if not each.is_salted]
    classes = ", ".join(each.class_name for each in foreign)
    begins = f"begin with {magic!r}" if magic else "are none"
    return (
        f"not a filter that says what it is: these {len(view)} bytes {begins}, ours with {known}. "
        f"Bytes of other engines do not: open them with from_bytes() or load() of their class, one "
        f"of {classes}"
    )
