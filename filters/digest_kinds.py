"""What a digest can be: the number of a key that is computed once and asked for often."""

from __future__ import annotations

XXH3 = "xxh3-64"  # under a secret seed: the families of our own
XXPH3 = "xxph3-64"  # RocksDB's 64-bit hash
LEVELDB = "leveldb-32"
ROCKSDB = "rocksdb-32"  # RocksDB's 32-bit hash, which its legacy filters are asked with
KEY_NUMBERS = "key-numbers"  # no digests: what range filters keep of keys, in their order
CASSANDRA = "cassandra-128"  # h1 << 64 | h2 of Cassandra's MurmurHash3

UNCOPIED = "digests are neither copied nor pickled, with the secret seed they hold: collect others"


def check_digests(kind: str, seed: int, wanted: str, wanted_seed: int | None) -> None:
    """Refuse digests that a filter could not be asked with."""
    if kind != wanted:
        raise ValueError(f"these are {kind} digests, and this family takes {wanted}")
    if wanted_seed is not None and seed != wanted_seed:
        raise ValueError(
            "these digests were taken under another seed: collect them with digests(seed=...)"
        )


def words_of(kind: str) -> int:
    """How many words of 64 bits a digest takes."""
    return 2 if kind == CASSANDRA else 1


def check_width(kind: str, digest: int) -> None:
    """Refuse a number that no key has for its digest."""
    bits = 32 if kind in (LEVELDB, ROCKSDB) else 64 * words_of(kind)
    if not 0 <= digest < 1 << bits:
        raise OverflowError(f"a {kind} digest lies between 0 and 2**{bits} - 1")


def not_digests(given: object) -> str:
    """What count_missing says to keys, or to digests of another kernel."""
    return (
        f"count_missing takes digests, as this class's digests() collects them, not "
        f"{type(given).__name__}"
    )
