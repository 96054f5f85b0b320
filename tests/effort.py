"""How long the property tests search: some seconds, or with ``make soak`` twenty times as long."""

from __future__ import annotations

import os

from hypothesis import settings

SOAK = bool(os.environ.get("LSM_SOAK"))


def examples(count: int) -> settings:
    """Draw so many examples, or twenty times as many."""
    return settings(max_examples=count * 20 if SOAK else count)
