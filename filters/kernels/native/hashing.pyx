"""The hashes of ``filters/hashing.py`` and ``filters/compat_hashing.py``, for Python to call."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.hashing import key_bytes


def digest(key, uint64_t seed):
    """XXH3-64 of the key under a 64-bit seed."""
    cdef bytes data = key_bytes(key)
    return lsm_xxh3_64(
        <const uint8_t *>PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data), seed
    )


def mix(uint64_t digest, uint64_t salt):
    """Fold a filter's salt into a digest."""
    return lsm_mix(digest, salt)


def xxph3_64(bytes data not None):
    """RocksDB's 64-bit hash of a key."""
    return lsm_xxph3_64(<const uint8_t *>PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data))


def leveldb_hash(bytes data not None, uint32_t seed=LSM_BLOOM_SEED):
    """LevelDB's 32-bit hash of a key, under the seed of its Bloom filters."""
    return lsm_leveldb_hash(
        <const uint8_t *>PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data), seed
    )


def rocksdb_hash(bytes data not None, uint32_t seed=LSM_BLOOM_SEED):
    """RocksDB's 32-bit hash, the one of its legacy filters."""
    return lsm_rocksdb_hash(
        <const uint8_t *>PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data), seed
    )


def cassandra_hash(bytes data not None):
    """Cassandra's 128-bit hash of a key: MurmurHash3's ``h1`` above its ``h2``, 64 bits each."""
    cdef uint64_t words[2]
    lsm_cassandra_hash(
        <const uint8_t *>PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data), words
    )
    return (<object>words[0]) << 64 | words[1]
