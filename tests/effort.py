"""How long tests search: one noun that every loop over moments, sizes, seeds and seconds asks.

``quick`` is what ``make test`` runs and touches every behaviour once; ``full`` takes minutes where
volume is the point; ``soak`` takes as long as somebody has. ``LSM_EFFORT`` chooses.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import settings

_T = TypeVar("_T")

EFFORTS = ("quick", "full", "soak")
EFFORT = os.environ.get("LSM_EFFORT") or "quick"
if EFFORT not in EFFORTS:
    raise ValueError(f"LSM_EFFORT is {EFFORT!r}, and can be {', '.join(EFFORTS)}")
SOAK = EFFORT == "soak"


def by_effort(quick: _T, full: _T, soak: _T) -> _T:
    """The one of three that belongs to the effort of this run."""
    return {"quick": quick, "full": full, "soak": soak}[EFFORT]


def examples(count: int) -> settings:
    """Draw so many examples, or twenty times as many in a soak."""
    return settings(max_examples=count * by_effort(1, 1, 20))
