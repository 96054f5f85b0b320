/* Building a block: entries in order, each without what its key shares with the one before.
 *
 * An entry is varint32 shared, varint32 unshared, varint32 value length, the unshared rest of the
 * internal key, the value. Every so many entries one shares nothing, and its offset goes into the
 * array behind the entries.
 */
#ifndef LSM_BLOCK_BUILDER_H
#define LSM_BLOCK_BUILDER_H

#include "block.h"
#include "buffer.h"

#define LSM_MOST_LENGTHS 15u /* bytes of three lengths */

enum lsm_added { LSM_ADDED = 0, LSM_ADD_NO_MEMORY = -1, LSM_ADD_TOO_LARGE = -2 };

typedef struct lsm_block_builder {
    lsm_buffer entries;
    lsm_buffer restarts; /* offsets, as the block has them */
    lsm_buffer last;     /* the internal key that was added last */
    uint32_t interval, since_restart;
} lsm_block_builder;

LSM_INLINE void lsm_block_builder_free(lsm_block_builder *self) {
    lsm_buffer_free(&self->entries);
    lsm_buffer_free(&self->restarts);
    lsm_buffer_free(&self->last);
}

/* The bytes of the block if it were finished now; the first restart is there from the start. */
LSM_INLINE size_t lsm_block_builder_size(const lsm_block_builder *self) {
    const size_t restarts = self->restarts.size ? self->restarts.size : LSM_RESTART_BYTES;
    return self->entries.size + restarts + LSM_RESTART_BYTES;
}

/* How many bytes an internal key has in common with the one before it. */
LSM_INLINE uint32_t lsm_shared_with_last(const lsm_block_builder *self, const uint8_t *key,
                                         uint32_t length, const uint8_t *version) {
    const uint32_t had = (uint32_t)self->last.size, both = length < had ? length : had;
    uint32_t shared = lsm_alike(self->last.bytes, key, both);
    if (shared == length) {
        const uint8_t *last = self->last.bytes + length;
        for (uint32_t at = 0; at < LSM_VERSION_BYTES && shared < had && last[at] == version[at];
             at++) {
            shared++;
        }
    }
    return shared;
}

/* Begin a new stretch of entries at the end; LSM_ADDED or why not. */
LSM_INLINE int lsm_block_builder_restart(lsm_block_builder *self) {
    uint8_t offset[LSM_RESTART_BYTES];
    if (self->entries.size > UINT32_MAX) {
        return LSM_ADD_TOO_LARGE;
    }
    lsm_put32(offset, (uint32_t)self->entries.size);
    if (!lsm_buffer_add(&self->restarts, offset, LSM_RESTART_BYTES)) {
        return LSM_ADD_NO_MEMORY;
    }
    self->since_restart = 0;
    return LSM_ADDED;
}

/* Add an entry; LSM_ADDED, or why it was not, and then the block is of no use. */
static int lsm_block_builder_add(lsm_block_builder *self, const uint8_t *key, uint32_t key_length,
                                 uint64_t version, const uint8_t *value, uint32_t value_length) {
    uint8_t version_bytes[LSM_VERSION_BYTES];
    uint32_t shared = 0;
    if (key_length > UINT32_MAX - LSM_VERSION_BYTES) {
        return LSM_ADD_TOO_LARGE;
    }
    lsm_store64(version_bytes, version);
    if (self->restarts.size == 0 || self->since_restart >= self->interval) {
        const int refused = lsm_block_builder_restart(self);
        if (refused) {
            return refused;
        }
    } else {
        shared = lsm_shared_with_last(self, key, key_length, version_bytes);
    }
    const size_t whole = (size_t)key_length + LSM_VERSION_BYTES, unshared = whole - shared;
    if (!lsm_buffer_reserve(&self->entries, LSM_MOST_LENGTHS + unshared + value_length)) {
        return LSM_ADD_NO_MEMORY;
    }
    self->last.size = 0;
    if (!lsm_buffer_reserve(&self->last, whole)) {
        return LSM_ADD_NO_MEMORY;
    }
    uint8_t *last = self->last.bytes;
    memcpy(last, key, key_length);
    memcpy(last + key_length, version_bytes, LSM_VERSION_BYTES);
    self->last.size = whole;
    uint8_t *to = self->entries.bytes + self->entries.size;
    if ((shared | unshared | value_length) < 128) {
        to[0] = (uint8_t)shared;
        to[1] = (uint8_t)unshared;
        to[2] = (uint8_t)value_length;
        to += LSM_LEAST_LENGTHS;
    } else {
        to = lsm_put_varint(lsm_put_varint(lsm_put_varint(to, shared), unshared), value_length);
    }
    memcpy(to, last + shared, unshared);
    if (value_length) {
        memcpy(to + unshared, value, value_length);
    }
    self->entries.size = (size_t)(to + unshared + value_length - self->entries.bytes);
    self->since_restart++;
    return LSM_ADDED;
}

/* Close the block, whose bytes are then in `entries` up to lsm_block_builder_start(). */
static int lsm_block_builder_finish(lsm_block_builder *self) {
    uint8_t count[LSM_RESTART_BYTES];
    if (self->restarts.size == 0) {
        const int refused = lsm_block_builder_restart(self);
        if (refused) {
            return refused;
        }
    }
    lsm_put32(count, (uint32_t)(self->restarts.size / LSM_RESTART_BYTES));
    if (!lsm_buffer_reserve(&self->entries, self->restarts.size + LSM_RESTART_BYTES)) {
        return LSM_ADD_NO_MEMORY;
    }
    lsm_buffer_add(&self->entries, self->restarts.bytes, self->restarts.size);
    lsm_buffer_add(&self->entries, count, LSM_RESTART_BYTES);
    return LSM_ADDED;
}

/* Begin the next block. */
LSM_INLINE void lsm_block_builder_start(lsm_block_builder *self) {
    self->entries.size = self->restarts.size = self->last.size = 0;
    self->since_restart = 0;
}

#endif
