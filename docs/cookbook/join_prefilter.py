"""Rows that cannot have a partner are dropped while a table is read, before it is joined."""

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from filters import BlockedBloomFilter


def prefiltered(path, key, partners):
    """The rows of a file that may have partners, and few others."""
    known = BlockedBloomFilter.build(partners[key], fpr=0.01)
    file = pq.ParquetFile(path)
    parts = []
    for batch in file.iter_batches():
        answers = pa.array(known.might_contain_many(batch[key], "arrow"))
        parts.append(batch.filter(answers))
    return pa.Table.from_batches(parts, file.schema_arrow)


def main(count=200_000):
    orders = pa.table({"order": range(count), "text": [f"order {n}" for n in range(count)]})
    late = pa.table({"order": range(0, count, 50), "days": [9] * len(range(0, count, 50))})
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "orders.parquet")
        pq.write_table(orders, path)
        few = prefiltered(path, "order", late)

    joined = few.join(late, "order", join_type="inner")
    assert joined.sort_by("order") == orders.join(late, "order", join_type="inner").sort_by("order")
    passed = (len(few) - len(late)) / (count - len(late))
    assert passed < 0.02
    print(f"{len(few):,} of {count:,} rows were joined, {len(joined):,} have partners")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
