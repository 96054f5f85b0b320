"""What ``hashing.h`` offers, and which of it a filter hashes its keys with."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "hashing.h" nogil:
    const uint32_t LSM_BLOOM_SEED
    uint64_t lsm_xxh3_64(const uint8_t *key, size_t size, uint64_t seed)
    uint64_t lsm_xxph3_64(const uint8_t *key, size_t size)
    uint32_t lsm_leveldb_hash(const uint8_t *key, size_t size, uint32_t seed)
    uint32_t lsm_rocksdb_hash(const uint8_t *key, size_t size, uint32_t seed)
    uint64_t lsm_mix(uint64_t digest, uint64_t salt)


cdef extern from "lsm_probe.h" nogil:
    cdef enum lsm_digest:
        LSM_DIGEST_XXH3_64
        LSM_DIGEST_XXPH3_64
        LSM_DIGEST_LEVELDB
        LSM_DIGEST_ROCKSDB


cdef inline uint64_t digest_of(
    lsm_digest kind, uint64_t seed, const uint8_t *key, size_t size
) noexcept nogil:
    """The digest of a key; only XXH3-64 has a seed."""
    if kind == LSM_DIGEST_XXH3_64:
        return lsm_xxh3_64(key, size, seed)
    if kind == LSM_DIGEST_XXPH3_64:
        return lsm_xxph3_64(key, size)
    if kind == LSM_DIGEST_LEVELDB:
        return lsm_leveldb_hash(key, size, LSM_BLOOM_SEED)
    return lsm_rocksdb_hash(key, size, LSM_BLOOM_SEED)
