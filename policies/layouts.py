"""How filters lie in a table: one for all of it, one for each window, or one for each partition."""

from __future__ import annotations

DEFAULT_LAYOUT = "table"
PARTITIONED = "partitioned"
LAYOUTS = (DEFAULT_LAYOUT, "block", PARTITIONED)
LAYOUT_KEYS = ("layout", "partition_blocks")
"""The keys of a configuration that say it."""

DEFAULT_PARTITION_BLOCKS = 128
MOST_PARTITION_BLOCKS = 1 << 20
