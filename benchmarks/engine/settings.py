"""How much is measured."""

from __future__ import annotations

import attrs


@attrs.frozen
class Settings:
    """The defaults are what the targets are stated for."""

    keys: int = 1_000_000
    repeats: int = 5
    seed: int = 1
    batch: int = 1000
    probes: int = 200_000
    ranges: int = 20_000
    replays: int = 2
    puts: int = 20_000
    sync_puts: int = 100


FULL = Settings()
QUICK = Settings(
    keys=20_000,
    repeats=1,
    probes=5_000,
    ranges=500,
    replays=1,
    puts=2_000,
    sync_puts=10,
)
