"""A filter in a file: saved as a whole or not at all, and asked where it lies."""

import sys
import tempfile
from pathlib import Path

import filters
from filters import BlockedBloomFilter


def main(count=200_000):
    users = [f"user-{number}" for number in range(count)]
    guests = [f"guest-{number}" for number in range(count)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "users.filter")
        BlockedBloomFilter.build(users, fpr=0.01).save(path)

        # Processes that map the same file have its pages in memory once.
        found = BlockedBloomFilter.load(path, mmap=True)
        assert all(found.might_contain_many(users))
        rate = sum(found.might_contain_many(guests)) / count
        assert rate < 0.02

        whatever = filters.load(path, mmap=True)  # the bytes say which family
        assert whatever == found
        print(f"{type(whatever).__name__}: {rate:.2%} of guests pass")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
