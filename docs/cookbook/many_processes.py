"""Every process adds the keys of its partitions to a copy of one empty filter; then they unite."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from filters import BlockedBloomFilter


def keys_of(part, count):
    """What would be read from a file of its own."""
    return [f"part-{part}-{number}" for number in range(count)]


def filled(empty, part, count):
    empty.update(keys_of(part, count))
    return empty


def united(parts, count):
    empty = BlockedBloomFilter.with_capacity(parts * count, fpr=0.01)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        # Pickled, each copy has the seed, the salt and the size of the first.
        first, *rest = pool.map(filled, [empty] * parts, range(parts), [count] * parts)
    return first.union(*rest)


def main(count=200_000, parts=4):
    found = united(parts, count // parts)

    for part in range(parts):
        assert all(found.might_contain_many(keys_of(part, count // parts)))
    rate = sum(found.might_contain_many(keys_of("none", count))) / count
    assert rate < 0.02
    print(f"{parts} parts in {found.size_in_bytes:,} bytes; {rate:.2%} of absent keys pass")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
