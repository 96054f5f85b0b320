/* LevelDB's filter block: a filter for the blocks that begin in each window of the file.
 *
 * What an entry of a filter costs is hashed once per lookup, and taken modulo a window's few bits:
 * a window is asked too rarely for anything to be prepared.
 */
#ifndef LSM_WINDOWS_H
#define LSM_WINDOWS_H

#include "wide.h"

#define LSM_WINDOW_OFFSET_BYTES 4u
#define LSM_WINDOW_MOST_PROBES 30u /* more are another encoding, to which every key may be there */

typedef struct lsm_windows {
    const uint8_t *contents;
    uint64_t offsets_at; /* where the offsets of the windows' filters begin, and all filters end */
    uint32_t count;
    uint32_t base_lg; /* of a window's bytes */
} lsm_windows;

/* Whether LevelDB's filter in these bytes, whatever they are, says no. */
LSM_INLINE int lsm_window_denies(const uint8_t *filter, uint64_t size, uint32_t hash) {
    if (size < 2) {
        return 1;
    }
    const uint32_t num_probes = filter[size - 1];
    if (num_probes > LSM_WINDOW_MOST_PROBES) {
        return 0;
    }
    const uint64_t bits = (size - 1) * 8;
    const uint32_t step = hash >> 17 | hash << 15;
    for (uint32_t i = 0; i < num_probes; i++) {
        const uint64_t place = bits > UINT32_MAX ? hash : hash % (uint32_t)bits;
        if (!(filter[place >> 3] >> (place & 7) & 1)) {
            return 1;
        }
        hash += step;
    }
    return 0;
}

/* Whether the window in which a block begins has a filter, and that says no. */
LSM_INLINE int lsm_windows_deny(const lsm_windows *self, uint64_t block_offset, uint32_t hash) {
    const uint64_t window = block_offset >> self->base_lg;
    if (window >= self->count) {
        return 0;
    }
    const uint8_t *offsets = self->contents + self->offsets_at + LSM_WINDOW_OFFSET_BYTES * window;
    const uint64_t start = lsm_load32(offsets), end = lsm_load32(offsets + LSM_WINDOW_OFFSET_BYTES);
    if (start >= end || end > self->offsets_at) {
        return 0; /* no keys were seen here, yet a block is: rather read it */
    }
    return lsm_window_denies(self->contents + start, end - start, hash);
}

#endif
