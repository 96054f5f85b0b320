/* lsm.probe.v1: how compiled code asks a filter without going through Python.
 *
 * A native filter's __lsm_probe__() is a PyCapsule named LSM_PROBE_CAPSULE that points to an
 * lsm_probe_v1. The capsule keeps the filter alive; the struct, and what it points to, are valid as
 * long as either. Neither function needs the GIL, allocates, or fails. A filter may be asked from
 * many threads at a time as long as nobody adds to it or removes from it.
 *
 * docs/c-door.md explains this with a program.
 */
#ifndef LSM_PROBE_H
#define LSM_PROBE_H

#include <stddef.h>
#include <stdint.h>

#define LSM_PROBE_CAPSULE "lsm.probe.v1"

/* What a digest is. For anything but LSM_DIGEST_XXH3_64, digest_seed is 0 and means nothing.
 * A later release may add kinds; a program that does not know one asks probe(). */
enum lsm_digest {
    LSM_DIGEST_XXH3_64 = 0,   /* XXH3-64 of the key under digest_seed */
    LSM_DIGEST_XXPH3_64 = 1,  /* RocksDB's 64-bit hash */
    LSM_DIGEST_LEVELDB = 2,   /* LevelDB's 32-bit hash under its Bloom seed, zero-extended */
    LSM_DIGEST_ROCKSDB = 3,   /* RocksDB's 32-bit hash under the same seed, zero-extended */
    LSM_DIGEST_CASSANDRA = 4, /* Cassandra's 128-bit hash, too wide for probe_digest() */
    LSM_DIGEST_NONE = 5       /* no digest: only the key tells where it lies among others */
};

typedef struct lsm_probe_v1 {
    uint32_t struct_size; /* sizeof(lsm_probe_v1) of the filter's side; later fields come behind */
    uint32_t digest_kind; /* an enum lsm_digest */
    uint64_t digest_seed;
    const void *self; /* the first argument of both functions */

    /* 0: the key was never added. 1: it may have been. */
    int (*probe)(const void *self, const char *key, size_t length);

    /* The same for a key of which the caller has the digest already. Where digests have 128 bits,
     * or there are none, it is always 1: ask probe(). */
    int (*probe_digest)(const void *self, uint64_t digest);
} lsm_probe_v1;

#endif
