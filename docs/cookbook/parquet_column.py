"""A filter of one column of a Parquet file, which is never in memory as a whole."""

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from filters import BlockedBloomFilter


def filter_of(path, column):
    file = pq.ParquetFile(path)
    found = BlockedBloomFilter.with_capacity(file.metadata.num_rows, fpr=0.01)
    for batch in file.iter_batches(columns=[column]):
        found.add_many(batch[column], nulls="skip")
    return found


def main(count=200_000):
    users = [f"user-{number}" for number in range(count)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "users.parquet")
        pq.write_table(pa.table({"user": users, "age": [42] * count}), path)
        found = filter_of(path, "user")

    assert all(found.might_contain_many(users))
    guests = pa.array([f"guest-{number}" for number in range(count)])
    rate = sum(found.might_contain_many(guests)) / count
    assert rate < 0.02
    print(f"{count:,} users in {found.size_in_bytes:,} bytes; {rate:.2%} of guests pass")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
