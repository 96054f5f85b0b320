"""What of a stream is new, in a fraction of the memory that a set of all of it takes."""

import sys

from filters import ScalableBloomFilter


def fresh(stream, seen):
    """Each item once. Of new ones, as many as the rate says are taken for old."""
    for item in stream:
        if seen.add(item):
            yield item


def main(count=200_000):
    stream = [f"https://example.org/{number % (count // 2)}" for number in range(count)]
    seen = ScalableBloomFilter.with_capacity(fpr=0.001)  # of how many, nobody has to know

    taken = list(fresh(stream, seen))

    distinct = set(stream)
    assert len(taken) == len(set(taken))  # nothing comes twice
    lost = len(distinct) - len(taken)
    assert lost / len(distinct) < 0.004
    print(f"{len(taken):,} of {len(distinct):,} came through, in {seen.size_in_bytes:,} bytes")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
