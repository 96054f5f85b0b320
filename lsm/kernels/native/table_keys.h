/* The user keys of a table, read block by block for whoever makes a filter of them.
 *
 * They lie one behind the other, as those of a body that is written. What is collected is bounded,
 * also where a block stands for more keys than fit: it is left in the middle then, and gone on with.
 */
#ifndef LSM_TABLE_KEYS_H
#define LSM_TABLE_KEYS_H

#include "source.h"

typedef struct lsm_table_keys {
    int has_keys;        /* whether they are wanted; the table is checked in any case */
    lsm_buffer keys;     /* collected and not taken yet */
    lsm_buffer key_ends; /* 0, and where each of them ends, as uint64_t */
    lsm_buffer blocks;   /* lsm_finished_block of each block that has ended */
    uint64_t count, read_bytes, key_bytes; /* entries that wait to be taken; their blocks, their keys */
    uint32_t ended;      /* how many blocks have */
    uint64_t entries, all_key_bytes; /* those that were taken */
    lsm_buffer smallest; /* the first internal key */
} lsm_table_keys;

LSM_INLINE void lsm_table_keys_free(lsm_table_keys *self) {
    lsm_buffer_free(&self->keys);
    lsm_buffer_free(&self->key_ends);
    lsm_buffer_free(&self->blocks);
    lsm_buffer_free(&self->smallest);
}

/* Collect the key of the entry that the source stands at; 0: there is no memory. */
LSM_INLINE int lsm_table_keys_add(lsm_table_keys *self, const lsm_source *source) {
    const uint32_t length = source->key_length;
    self->count++;
    self->key_bytes += length;
    if (self->smallest.size == 0 &&
        !lsm_buffer_set(&self->smallest, source->internal.bytes, source->internal.size)) {
        return 0;
    }
    if (!self->has_keys) {
        return 1;
    }
    if (!lsm_buffer_reserve(&self->keys, (size_t)length + LSM_KEY_SLACK) ||
        !lsm_buffer_reserve(&self->key_ends, 2 * sizeof(uint64_t))) {
        return 0;
    }
    uint8_t *to = self->keys.bytes + self->keys.size;
    for (uint32_t at = 0; at < length; at += LSM_WORD_BYTES) {
        lsm_store64(to + at, lsm_load64(source->key + at));
    }
    self->keys.size += length;
    const uint64_t ends[2] = {0, self->keys.size};
    const size_t first = self->key_ends.size ? sizeof(uint64_t) : 0;
    return lsm_buffer_add(&self->key_ends, (const uint8_t *)ends + first, sizeof ends - first);
}

/* Note where the block ends that the source has read to its end; 0: there is no memory. */
static int lsm_table_keys_end_block(lsm_table_keys *self, const lsm_source *source) {
    const uint64_t size = source->sizes[self->ended] + LSM_TRAILER_BYTES;
    const lsm_finished_block noted = {self->count, source->offsets[self->ended] + size};
    self->read_bytes += size;
    self->ended++;
    return lsm_buffer_add(&self->blocks, &noted, sizeof noted);
}

/* Collect keys until about so many bytes of blocks, or of keys, are read: LSM_STEP_MOST, or
 * LSM_STEP_END behind the last one. */
static int lsm_table_keys_collect(lsm_table_keys *self, lsm_source *source, uint64_t most) {
    for (;;) {
        int step = LSM_STEP_HERE;
        if (source->at < source->loaded.end) {
            if (self->key_bytes >= most && self->count) {
                return LSM_STEP_MOST;
            }
            step = lsm_source_up(source);
            if (step == LSM_STEP_HERE && !lsm_table_keys_add(self, source)) {
                return LSM_STEP_REFUSED;
            }
        } else if (self->ended < source->block) {
            if (!lsm_table_keys_end_block(self, source)) {
                return LSM_STEP_REFUSED;
            }
        } else if (self->read_bytes >= most && self->count) {
            return LSM_STEP_MOST;
        } else if (source->block == source->block_count) {
            return LSM_STEP_END;
        } else {
            step = lsm_source_next_block(source);
        }
        if (step != LSM_STEP_HERE) {
            return step;
        }
    }
}

#endif
