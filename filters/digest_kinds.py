"""What a digest can be: the number of a key that is computed once and asked for often."""

from __future__ import annotations

XXH3 = "xxh3-64"  # under a secret seed: the families of our own
XXPH3 = "xxph3-64"  # RocksDB's 64-bit hash
LEVELDB = "leveldb-32"
ROCKSDB = "rocksdb-32"  # RocksDB's 32-bit hash, which its legacy filters are asked with


def check_digests(kind: str, seed: int, wanted: str, wanted_seed: int | None) -> None:
    """Refuse digests that a filter could not be asked with."""
    if kind != wanted:
        raise ValueError(f"these are {kind} digests, and this family takes {wanted}")
    if wanted_seed is not None and seed != wanted_seed:
        raise ValueError(
            "these digests were taken under another seed: collect them with digests(seed=...)"
        )
