"""What ``hashing.h`` offers, and which of it a filter hashes its keys with."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "lsm_probe.h" nogil:
    cdef enum lsm_digest:
        LSM_DIGEST_XXH3_64
        LSM_DIGEST_XXPH3_64
        LSM_DIGEST_LEVELDB
        LSM_DIGEST_ROCKSDB
        LSM_DIGEST_CASSANDRA
        LSM_DIGEST_NONE


cdef extern from "hashing.h" nogil:
    const uint32_t LSM_BLOOM_SEED
    uint64_t lsm_xxh3_64(const uint8_t *key, size_t size, uint64_t seed)
    uint64_t lsm_xxph3_64(const uint8_t *key, size_t size)
    uint32_t lsm_leveldb_hash(const uint8_t *key, size_t size, uint32_t seed)
    uint32_t lsm_rocksdb_hash(const uint8_t *key, size_t size, uint32_t seed)
    uint64_t lsm_mix(uint64_t digest, uint64_t salt)
    void lsm_cassandra_hash(const uint8_t *key, size_t size, uint64_t *words)
    uint64_t lsm_mixed64(uint64_t h)
    void lsm_digest_of(
        lsm_digest kind, uint64_t seed, const uint8_t *key, size_t size, uint64_t *digest
    )


cdef enum:
    MOST_WORDS = 2            # that a digest takes


cdef inline Py_ssize_t words_of(lsm_digest kind) noexcept nogil:
    """How many words of 64 bits a digest takes."""
    return 2 if kind == LSM_DIGEST_CASSANDRA else 1
