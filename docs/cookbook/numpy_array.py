"""Numbers of a NumPy array: built of where they lie, and asked into an array of booleans."""

import sys

import numpy as np

from filters import BinaryFuseFilter


def mask_of(found, numbers):
    mask = np.empty(len(numbers), bool)
    found.might_contain_many(numbers, mask)
    return mask


def main(count=500_000):
    draw = np.random.default_rng(1)
    bought = draw.integers(0, 2**40, count)  # int64, so that a key is eight bytes
    asked = draw.integers(0, 2**40, count)
    asked[::10] = bought[::10]

    found = BinaryFuseFilter.build(bought)  # passes 1 of 256 others
    mask = mask_of(found, asked)

    truth = np.isin(asked, bought)
    assert mask[truth].all()
    passed = mask[~truth].mean()
    assert passed < 0.008
    one = int(bought[0])
    assert found.might_contain(one.to_bytes(8, "little"))  # a single number
    print(f"{mask.sum():,} of {count:,} may have been bought, {truth.sum():,} were")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
