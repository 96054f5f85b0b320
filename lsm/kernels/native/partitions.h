/* The partitions of a table's filter: their last keys, and how those in memory are asked.
 *
 * A partition that is not in memory, or whose filter is not asked with a digest, has no function.
 */
#ifndef LSM_PARTITIONS_H
#define LSM_PARTITIONS_H

#include "sorted_keys.h"

typedef struct lsm_partition {
    int (*probe_digest)(const void *filter, uint64_t digest);
    const void *filter;
    uint64_t digest_seed;
    uint32_t digest_kind;
    int used; /* since somebody has looked */
} lsm_partition;

typedef struct lsm_partitions {
    lsm_sorted_keys lasts; /* user keys, under the version behind all others */
    lsm_partition *slots;
    int used; /* any of them, since somebody has looked */
} lsm_partitions;

/* The number of the partition that may have a key; as many as there are behind all of them. */
LSM_INLINE uint32_t lsm_partitions_find(
    const lsm_partitions *self, const uint8_t *key, uint32_t length, int simd
) {
    return lsm_sorted_keys_seek(&self->lasts, key, length, UINT64_MAX, simd);
}

/* The partition that may have a key, if it can be asked at once; else NULL. */
LSM_INLINE lsm_partition *lsm_partitions_seek(
    const lsm_partitions *self, const uint8_t *key, uint32_t length, int simd
) {
    const uint32_t number = lsm_partitions_find(self, key, length, simd);
    if (number == self->lasts.count || self->slots[number].probe_digest == NULL) {
        return NULL;
    }
    return &self->slots[number];
}

#endif
