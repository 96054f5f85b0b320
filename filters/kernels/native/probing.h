/* How a family is asked: the few functions behind every form of a probe.
 *
 * A hash is what the family's positions come from: the salted digest where there is a salt, else
 * the digest itself, and takes as many words. "self" is the family's own plain struct.
 */
#ifndef LSM_PROBING_H
#define LSM_PROBING_H

#include "wide.h"

typedef struct lsm_probing {
    int (*probe)(const void *self, const char *key, size_t length);
    int (*probe_digest)(const void *self, uint64_t digest);

    /* answers[i] is 1 for "maybe" and 0 for "no", for the first `count` hashes. What the `ahead`
     * hashes behind these will read is prefetched: they are the next group. */
    void (*test_many)(const void *self, const uint64_t *hashes, size_t count, size_t ahead,
                      uint8_t *answers);

    /* Adds the first `count` hashes, writes those that found no zero to unchanged[], which has room
     * for all, and tells how many these were. Prefetches as test_many() does.
     * NULL where a family is built otherwise. */
    size_t (*add_many)(void *self, const uint64_t *hashes, size_t count, size_t ahead,
                       uint64_t *unchanged);
} lsm_probing;

#endif
