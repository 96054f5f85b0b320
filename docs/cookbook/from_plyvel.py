"""A program for plyvel runs with lsm instead, on the same files."""

import sys
import tempfile

import lsm

try:
    import plyvel
except ImportError:
    plyvel = None


def work(library, path, count):
    """Nothing in here knows which library it is given."""
    with library.DB(path, create_if_missing=True, bloom_filter_bits=10) as db:
        with db.write_batch(transaction=True) as batch:
            for number in range(count):
                batch.put(b"user:%08d" % number, b"name-%d" % number)
        db.delete(b"user:00000007")
        before = db.snapshot()
        db.put(b"user:00000001", b"Ada")
        users = db.prefixed_db(b"user:")
        return (
            users.get(b"00000001"),
            before.get(b"user:00000001"),
            list(users.iterator(start=b"00000005", stop=b"00000010", include_value=False)),
            list(db.iterator(prefix=b"user:0000001", reverse=True))[:3],
        )


def entries(library, path):
    with library.DB(path) as db:
        return list(db)


def main(count=20_000):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        found = work(lsm, one, count)
        with lsm.DB(one) as db:
            assert db[b"user:00000001"] == b"Ada"  # a KeyError where there is none
            assert b"user:00000001" in db
            assert b"user:00000007" not in db
        if plyvel is not None:
            assert work(plyvel, other, count) == found
            assert entries(plyvel, one) == entries(lsm, one) == entries(lsm, other)
        print(f"{count:,} entries; plyvel {'says the same' if plyvel else 'is not installed'}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
