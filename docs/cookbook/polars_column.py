"""A filter among the expressions of a lazy Polars query."""

import sys

import polars as pl

from filters import BlockedBloomFilter


def may_be_in(known, column):
    def answers(series):
        return pl.Series(known.might_contain_many(series, "arrow", nulls="skip"))

    return pl.col(column).map_batches(answers, return_dtype=pl.Boolean, is_elementwise=True)


def main(count=200_000):
    users = pl.DataFrame({"user": [f"user-{number}" for number in range(count)]})
    visits = pl.LazyFrame({"user": [f"user-{number * 7}" for number in range(count)] + [None]})

    known = BlockedBloomFilter.build(users["user"], fpr=0.01)
    kept = visits.filter(may_be_in(known, "user")).collect()

    truth = visits.filter(pl.col("user").is_in(users["user"].implode())).collect()
    assert truth["user"].is_in(kept["user"].implode()).all()
    passed = (len(kept) - len(truth)) / (count - len(truth))
    assert passed < 0.02
    print(f"{len(kept):,} of {count + 1:,} visits may be of users, {len(truth):,} are")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
