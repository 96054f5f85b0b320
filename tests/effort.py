"""How long tests search: one noun that every loop over moments, sizes, seeds and seconds asks.

``quick`` is what ``make test`` runs, and touches every behaviour once; ``full`` is what ``make
check`` runs, minutes where volume is the point; ``soak`` takes as long as somebody has.
``LSM_EFFORT`` chooses. A test runs at every effort unless it says from which one on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import ModuleType
from typing import TypeVar

import pytest
from hypothesis import settings

from filters import kernels

_T = TypeVar("_T")

EFFORTS = ("quick", "full", "soak")
EFFORT = os.environ.get("LSM_EFFORT") or "quick"
if EFFORT not in EFFORTS:
    raise ValueError(f"LSM_EFFORT is {EFFORT!r}, and can be {', '.join(EFFORTS)}")

CARRIER = kernels.available()[-1]
"""The kernel that volume is proved on: the compiled one, where there is one."""


LEFT_OUT = {
    "quick": f"quick; volume is on the {CARRIER} kernel alone; LSM_EFFORT=full and soak run more",
    "full": "full; LSM_EFFORT=soak runs more",
    "soak": "soak",
}[EFFORT]
"""What the header of a run says of what it leaves out."""


def by_effort(quick: _T, full: _T, soak: _T) -> _T:
    """The one of three that belongs to the effort of this run."""
    return {"quick": quick, "full": full, "soak": soak}[EFFORT]


def examples(count: int) -> settings:
    """Draw so many examples in a full run, a quarter of them in a quick one, 20 times in a soak."""
    return settings(max_examples=by_effort(max(count // 4, 5), count, count * 20))


def spread(values: Sequence[_T], quick: int, full: int | None = None) -> Sequence[_T]:
    """So many of the values, the first, the last and others at equal distances; a soak has all."""
    count = by_effort(quick, full, None)
    if count is None or count >= len(values):
        return values
    last = len(values) - 1
    return [values[round(index * last / (count - 1))] for index in range(count)]


def volume(kernel: ModuleType, quick: int, full: int, soak: int) -> int:
    """How many of whatever is counted: by effort, beyond quick a fifth on the readable kernel."""
    count = by_effort(quick, full, soak)
    return count if kernel.__name__.endswith("native") else max(count // 5, quick)


def effort(least: str) -> pytest.MarkDecorator:
    """For tests, and parameters, that only run at this effort and above: ``@effort("full")``."""
    assert least in EFFORTS, least
    return pytest.mark.effort(least)


once = pytest.mark.once
"""For tests of volume, and of what follows from bytes: a quick run takes the carrier alone.

On the other kernel they follow from equal bytes and answers, which ``test_twins.py`` proves.
"""


def is_left_out(item: pytest.Item) -> bool:
    """Whether a test belongs to a greater effort than that of this run."""
    least = item.get_closest_marker("effort")
    if least is not None and EFFORTS.index(least.args[0]) > EFFORTS.index(EFFORT):
        return True
    if EFFORT != "quick" or item.get_closest_marker("once") is None:
        return False
    name = item.callspec.params.get("kernel", CARRIER) if hasattr(item, "callspec") else CARRIER
    return bool(name != CARRIER)
