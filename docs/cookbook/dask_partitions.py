"""Every task adds the keys of a Dask partition to a copy of one empty filter; then they unite."""

import sys

import dask
import dask.dataframe
import pandas as pd

from filters import BlockedBloomFilter


@dask.delayed
def filled(empty, column):
    part = empty.copy()  # threads of one process share what they are given
    part.update(column)
    return part


@dask.delayed
def united(parts):
    first, *rest = parts
    return first.union(*rest)


def filter_of(column, capacity):
    """One filter of all partitions, computed wherever the scheduler computes."""
    empty = BlockedBloomFilter.with_capacity(capacity, fpr=0.01)
    return united([filled(empty, part) for part in column.to_delayed()]).compute()


def main(count=200_000):
    users = pd.DataFrame({"user": [f"user-{number}" for number in range(count)]})
    column = dask.dataframe.from_pandas(users, npartitions=4)["user"]

    found = filter_of(column, capacity=count)

    assert all(found.might_contain_many(users["user"]))
    guests = pd.Series([f"guest-{number}" for number in range(count)])
    rate = sum(found.might_contain_many(guests)) / count
    assert rate < 0.02
    print(f"{column.npartitions} partitions; {rate:.2%} of guests pass")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
