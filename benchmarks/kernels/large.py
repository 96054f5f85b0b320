"""A blocked filter of any size, half full without the keys that would fill it, in any memory."""

from __future__ import annotations

import mmap
import random

from benchmarks.errors import WrongAnswersError
from benchmarks.keys import CHUNK
from filters import blocked, header

HEADER_BYTES = 40
PROBES = 6


def half_full(size: int, seed: int) -> bytes:
    """The bytes of a valid blocked filter with a payload of ``size`` bytes, half of its bits set.

    The bits are random, and repeat after 16 MiB: no cache notices that, and no key.
    """
    rng = random.Random(seed)
    geometry = blocked.Geometry(size // blocked.LINE_BYTES, PROBES)
    piece = rng.randbytes(min(size, CHUNK))
    head = header.Header(
        blocked.FAMILY,
        PROBES,
        geometry.lines,
        round(blocked.count_from_fill(0.5, geometry)),
        seed=rng.getrandbits(64),
        salt=rng.getrandbits(64),
    )
    return header.pack(head, piece * (size // len(piece)))


def on_cache_lines(data: bytes, *, huge: bool) -> memoryview:
    """A read-only copy of a filter's bytes whose payload starts on a cache line.

    It lies in anonymous memory, for which huge pages are asked if told and known here.
    """
    start = -HEADER_BYTES % blocked.LINE_BYTES
    memory = _anonymous(start + len(data))
    if huge and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    memory[start:] = data
    return memoryview(memory).toreadonly()[start:]


def check_share(answers: bytearray) -> float:
    """How many absent keys a half-full filter lets pass, as a share, if it is as it must be.

    That is ``0.5 ** PROBES`` and three percent of it more, since probes of a key may coincide.
    """
    share, expected = sum(answers) / len(answers), 0.5**PROBES
    chance = 4 * (expected / len(answers)) ** 0.5
    if abs(share - expected) > 0.1 * expected + chance:
        raise WrongAnswersError(
            f"a half-full filter lets {share:.3%} of absent keys pass, not {expected:.3%}"
        )
    return share


def _anonymous(size: int) -> mmap.mmap:
    if hasattr(mmap, "MAP_PRIVATE"):
        # Linux gives huge pages to private memory; shared memory is another matter.
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, size)
