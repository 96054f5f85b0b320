/* How a family is asked: the few functions behind every form of a probe.
 *
 * A hash is what the family's positions come from: the salted digest where there is a salt, else
 * the digest itself. "self" is the family's own plain struct.
 */
#ifndef LSM_PROBING_H
#define LSM_PROBING_H

#include "wide.h"

typedef struct lsm_probing {
    int (*probe)(const void *self, const char *key, size_t length);
    int (*probe_digest)(const void *self, uint64_t digest);

    /* Ask for the memory that test_many() or add_many() of the same hashes will touch. */
    void (*prefetch_many)(const void *self, const uint64_t *hashes, size_t count);

    /* answers[i] is 1 for "maybe" and 0 for "no". */
    void (*test_many)(const void *self, const uint64_t *hashes, size_t count, uint8_t *answers);

    /* Add hashes, write down those for which nothing that was zero changed, and tell how many these
     * were; unchanged[] has room for all. NULL where a family is built otherwise. */
    size_t (*add_many)(void *self, const uint64_t *hashes, size_t count, uint64_t *unchanged);
} lsm_probing;

#endif
