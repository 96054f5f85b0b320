"""Rows of a pandas frame whose key may be among those of another one."""

import sys

import numpy as np
import pandas as pd

from filters import BlockedBloomFilter


def rows_that_may_match(visits, known):
    answers = known.might_contain_many(visits["user"], "arrow", nulls="skip")
    return visits[np.asarray(answers)]  # nulls are no matches


def main(count=200_000):
    users = pd.DataFrame({"user": [f"user-{number}" for number in range(count)]})
    visits = pd.DataFrame({"user": [f"user-{number * 7}" for number in range(count)] + [None]})

    known = BlockedBloomFilter.build(users["user"], fpr=0.01)
    kept = rows_that_may_match(visits, known)

    truth = visits[visits["user"].isin(users["user"])]
    assert truth.index.isin(kept.index).all()
    passed = (len(kept) - len(truth)) / (len(visits) - len(truth))
    assert passed < 0.02
    print(f"{len(kept):,} of {len(visits):,} visits may be of users, {len(truth):,} are")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
