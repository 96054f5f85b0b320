"""How filters lie in a table: one for all of it, one for each window, or one for each partition."""

from __future__ import annotations

from filters.sizing_parameters import checked_int

DEFAULT_LAYOUT = "table"
PARTITIONED = "partitioned"
LAYOUTS = (DEFAULT_LAYOUT, "block", PARTITIONED)
LAYOUT_KEYS = ("layout", "partition_blocks")
"""The keys of a configuration that say it."""

DEFAULT_PARTITION_BLOCKS = 128
MOST_PARTITION_BLOCKS = 1 << 20


def usual_partition_blocks(layout: str) -> int | None:
    """How many data blocks a partition has where nobody says it; None where there are none."""
    return DEFAULT_PARTITION_BLOCKS if layout == PARTITIONED else None


def check_partition_blocks(layout: str, partition_blocks: int | None) -> None:
    """Refuse a number of data blocks that no partition has, and any where there are none."""
    if layout == PARTITIONED:
        checked_int("partition_blocks", partition_blocks, 1, MOST_PARTITION_BLOCKS)
    elif partition_blocks is not None:
        raise ValueError(
            f"partition_blocks goes with layout {PARTITIONED!r}, and the layout is {layout!r}: "
            "leave out one, or change the other"
        )
