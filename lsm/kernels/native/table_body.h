/* The body of a table that is being written: its data blocks, and what leads to them.
 *
 * Entries come in order. A block that is full is closed: compressed, given its trailer, and noted for
 * the index, whose entry is written when the next key is known. Finished blocks are written to a file
 * of the system's, if there is one, or wait to be taken; and with them their user keys, one behind
 * the other, for whoever makes a filter of them.
 *
 * Compressions that are not C's are the caller's: he is given the block, and stores what he makes
 * of it.
 */
#ifndef LSM_TABLE_BODY_H
#define LSM_TABLE_BODY_H

#include "block_builder.h"
#include "crc32c.h"
#include "snappy.h"
#include "write_at.h"

#define LSM_TRAILER_BYTES 5u
#define LSM_MOST_HANDLE 20u      /* bytes of offset and size */
#define LSM_COMPRESSED_LIMIT ((size_t)1 << 30) /* as compression.py has it */
#define LSM_SNAPPY_GROWTH 22u
#define LSM_DRAINED_BYTES ((size_t)1 << 18) /* so many are written at once */
#define LSM_KEYS_TO_FILE 16u     /* bytes of keys that may go with one of the file */
#define LSM_SEEK_VERSION (~(uint64_t)0 << 8 | 1) /* before all others that files have */

enum lsm_compression { LSM_RAW = 0, LSM_SNAPPY = 1 };

/* LSM_ADDED and its refusals, and: the block is closed, and somebody else is to compress it. */
enum { LSM_BODY_COMPRESS = 1 };

/* A block that is finished: how many keys there are up to its end, and where the next one begins. */
typedef struct lsm_finished_block {
    uint64_t keys, offset;
} lsm_finished_block;

typedef struct lsm_table_body {
    lsm_block_builder block;
    lsm_buffer finished; /* blocks with their trailers, those that are drained apart */
    int descriptor;      /* of the file that they are drained into; negative: none */
    uint64_t drained;    /* bytes of them */
    lsm_buffer blocks;   /* lsm_finished_block of each of them */
    lsm_buffer keys;     /* theirs, and behind them those of the open block */
    lsm_buffer key_ends; /* 0, and where each of them ends, as uint64_t */
    size_t closed_keys;  /* how many of them belong to finished blocks */
    lsm_buffer index;    /* entries of the index block */
    lsm_buffer index_restarts;
    lsm_buffer smallest, largest; /* internal keys: the first, and the last of a finished block */
    lsm_buffer separator;
    uint64_t unindexed_offset, unindexed_size; /* of the last finished block */
    int is_unindexed;
    uint64_t offset, key_bytes, entries;
    size_t block_size;
    int compression, has_keys;
    uint16_t *table; /* for the compressor */
} lsm_table_body;

LSM_INLINE void lsm_table_body_free(lsm_table_body *self) {
    lsm_block_builder_free(&self->block);
    lsm_buffer_free(&self->finished);
    lsm_buffer_free(&self->blocks);
    lsm_buffer_free(&self->keys);
    lsm_buffer_free(&self->key_ends);
    lsm_buffer_free(&self->index);
    lsm_buffer_free(&self->index_restarts);
    lsm_buffer_free(&self->smallest);
    lsm_buffer_free(&self->largest);
    lsm_buffer_free(&self->separator);
    free(self->table);
    self->table = NULL;
}

/* The bytes of all finished blocks, or more where the keys take far more memory than they. */
LSM_INLINE uint64_t lsm_table_body_size(const lsm_table_body *self) {
    const uint64_t by_keys = self->key_bytes / LSM_KEYS_TO_FILE;
    return self->offset > by_keys ? self->offset : by_keys;
}

/* ---- The index ---- */

/* The internal key of some bytes in `separator`, at the place that a search begins at. */
LSM_INLINE int lsm_body_shorter(lsm_table_body *self, const uint8_t *key, uint32_t length) {
    uint8_t version[LSM_VERSION_BYTES];
    lsm_store64(version, LSM_SEEK_VERSION);
    if (!lsm_buffer_set(&self->separator, key, length) ||
        !lsm_buffer_add(&self->separator, version, LSM_VERSION_BYTES)) {
        return LSM_ADD_NO_MEMORY;
    }
    self->separator.bytes[length - 1]++;
    return LSM_ADDED;
}

/* A short internal key from the largest one on, and before another user key, in `separator`. */
static int lsm_body_separate(lsm_table_body *self, const uint8_t *next, uint32_t next_length) {
    const uint8_t *last = self->largest.bytes;
    const uint32_t length = (uint32_t)self->largest.size - LSM_VERSION_BYTES;
    const uint32_t both = length < next_length ? length : next_length;
    const uint32_t shared = lsm_alike(last, next, both);
    if (shared + 1 < length && shared < both && last[shared] + 1 < next[shared]) {
        return lsm_body_shorter(self, last, shared + 1);
    }
    return lsm_buffer_set(&self->separator, last, self->largest.size) ? LSM_ADDED
                                                                      : LSM_ADD_NO_MEMORY;
}

/* A short internal key from the largest one on. */
static int lsm_body_succeed(lsm_table_body *self) {
    const uint8_t *last = self->largest.bytes;
    const uint32_t length = (uint32_t)self->largest.size - LSM_VERSION_BYTES;
    uint32_t at = 0;
    while (at < length && last[at] == 0xFF) {
        at++;
    }
    if (at + 1 < length) {
        return lsm_body_shorter(self, last, at + 1);
    }
    return lsm_buffer_set(&self->separator, last, self->largest.size) ? LSM_ADDED
                                                                      : LSM_ADD_NO_MEMORY;
}

/* Enter the last finished block under `separator`. */
static int lsm_body_enter(lsm_table_body *self) {
    uint8_t offset[LSM_RESTART_BYTES], handle[LSM_MOST_HANDLE], lengths[LSM_MOST_LENGTHS];
    if (self->index.size > UINT32_MAX) {
        return LSM_ADD_TOO_LARGE;
    }
    lsm_put32(offset, (uint32_t)self->index.size);
    const uint8_t *end = lsm_put_varint(lsm_put_varint(handle, self->unindexed_offset),
                                        self->unindexed_size);
    const size_t handle_size = (size_t)(end - handle);
    uint8_t *to = lengths;
    *to++ = 0;
    to = lsm_put_varint(lsm_put_varint(to, self->separator.size), handle_size);
    if (!lsm_buffer_add(&self->index_restarts, offset, LSM_RESTART_BYTES) ||
        !lsm_buffer_add(&self->index, lengths, (size_t)(to - lengths)) ||
        !lsm_buffer_add(&self->index, self->separator.bytes, self->separator.size) ||
        !lsm_buffer_add(&self->index, handle, handle_size)) {
        return LSM_ADD_NO_MEMORY;
    }
    self->is_unindexed = 0;
    return LSM_ADDED;
}

/* Complete the index block, once the last data block is finished. */
static int lsm_table_body_index(lsm_table_body *self) {
    uint8_t number[LSM_RESTART_BYTES];
    if (self->is_unindexed) {
        int refused = lsm_body_succeed(self);
        refused = refused ? refused : lsm_body_enter(self);
        if (refused) {
            return refused;
        }
    }
    if (self->index_restarts.size == 0) {
        lsm_put32(number, 0);
        if (!lsm_buffer_add(&self->index_restarts, number, LSM_RESTART_BYTES)) {
            return LSM_ADD_NO_MEMORY;
        }
    }
    lsm_put32(number, (uint32_t)(self->index_restarts.size / LSM_RESTART_BYTES));
    return lsm_buffer_add(&self->index, self->index_restarts.bytes, self->index_restarts.size) &&
                   lsm_buffer_add(&self->index, number, LSM_RESTART_BYTES)
               ? LSM_ADDED
               : LSM_ADD_NO_MEMORY;
}

/* ---- Blocks ---- */

/* How many keys there are, those of the open block included. */
LSM_INLINE size_t lsm_body_keys(const lsm_table_body *self) {
    return self->key_ends.size ? self->key_ends.size / sizeof(uint64_t) - 1 : 0;
}

/* Write finished blocks to the file. What it does not take waits to be taken, by a caller who then
 * learns why it did not. */
static void lsm_body_drain(lsm_table_body *self) {
    const size_t size = self->finished.size;
    const size_t taken =
        lsm_append(self->descriptor, self->finished.bytes, size, self->drained);
    self->drained += taken;
    self->finished.size -= taken;
    if (taken < size) {
        self->descriptor = -1;
        memmove(self->finished.bytes, self->finished.bytes + taken, self->finished.size);
    }
}

/* Give the bytes behind `finished`, of which there are so many, their trailer: they are a block. */
static int lsm_body_seal(lsm_table_body *self, size_t size, int compression) {
    lsm_finished_block noted;
    if (!lsm_buffer_set(&self->largest, self->block.last.bytes, self->block.last.size)) {
        return LSM_ADD_NO_MEMORY;
    }
    uint8_t *to = self->finished.bytes + self->finished.size;
    to[size] = (uint8_t)compression;
    lsm_put32(to + size + 1, lsm_crc32c_mask(lsm_crc32c(0, to, size + 1)));
    self->finished.size += size + LSM_TRAILER_BYTES;
    self->unindexed_offset = self->offset;
    self->unindexed_size = size;
    self->is_unindexed = 1;
    self->offset += size + LSM_TRAILER_BYTES;
    self->closed_keys = lsm_body_keys(self);
    noted.keys = self->closed_keys;
    noted.offset = self->offset;
    if (!lsm_buffer_add(&self->blocks, &noted, sizeof noted)) {
        return LSM_ADD_NO_MEMORY;
    }
    lsm_block_builder_start(&self->block);
    if (self->descriptor >= 0 && self->finished.size >= LSM_DRAINED_BYTES) {
        lsm_body_drain(self);
    }
    return LSM_ADDED;
}

/* Store the closed block as these bytes. */
static int lsm_body_store(lsm_table_body *self, const uint8_t *bytes, size_t size,
                          int compression) {
    if (!lsm_buffer_reserve(&self->finished, size + LSM_TRAILER_BYTES)) {
        return LSM_ADD_NO_MEMORY;
    }
    memcpy(self->finished.bytes + self->finished.size, bytes, size);
    return lsm_body_seal(self, size, compression);
}

/* Store the closed block compressed, if that makes it less by an eighth, and none that is refused
 * when it is read. */
static int lsm_body_compress(lsm_table_body *self) {
    const uint8_t *block = self->block.entries.bytes;
    const size_t size = self->block.entries.size;
    const size_t bound = lsm_snappy_bound(size) + LSM_TRAILER_BYTES;
    if (self->table == NULL) {
        self->table = (uint16_t *)malloc(LSM_SNAPPY_TABLE * sizeof *self->table);
    }
    if (self->table == NULL || !lsm_buffer_reserve(&self->finished, bound)) {
        return LSM_ADD_NO_MEMORY;
    }
    uint8_t *to = self->finished.bytes + self->finished.size;
    const size_t compressed = lsm_snappy_compress(block, size, to, self->table);
    if (compressed < size - size / 8 && size <= compressed * LSM_SNAPPY_GROWTH) {
        return lsm_body_seal(self, compressed, LSM_SNAPPY);
    }
    return lsm_body_store(self, block, size, LSM_RAW);
}

/* Whether no caller is asked to compress blocks. */
LSM_INLINE int lsm_body_compresses(const lsm_table_body *self) {
    return self->compression == LSM_RAW || self->compression == LSM_SNAPPY;
}

/* Close the open block, which has entries; LSM_BODY_COMPRESS: it is to be stored by the caller. */
static int lsm_body_close(lsm_table_body *self) {
    const int refused = lsm_block_builder_finish(&self->block);
    if (refused) {
        return refused;
    }
    const size_t size = self->block.entries.size;
    if (self->compression == LSM_RAW || size > LSM_COMPRESSED_LIMIT) {
        return lsm_body_store(self, self->block.entries.bytes, size, LSM_RAW);
    }
    return self->compression == LSM_SNAPPY ? lsm_body_compress(self) : LSM_BODY_COMPRESS;
}

LSM_INLINE int lsm_body_is_open(const lsm_table_body *self) {
    return self->block.entries.size != 0;
}

/* ---- Entries ---- */

/* What is due before the first entry of a block. */
static int lsm_body_begin_block(lsm_table_body *self, const uint8_t *key, uint32_t length,
                                uint64_t version) {
    if (self->is_unindexed) {
        int refused = lsm_body_separate(self, key, length);
        return refused ? refused : lsm_body_enter(self);
    }
    if (self->smallest.size == 0) {
        uint8_t bytes[LSM_VERSION_BYTES];
        lsm_store64(bytes, version);
        if (!lsm_buffer_add(&self->smallest, key, length) ||
            !lsm_buffer_add(&self->smallest, bytes, LSM_VERSION_BYTES)) {
            return LSM_ADD_NO_MEMORY;
        }
    }
    return LSM_ADDED;
}

LSM_INLINE int lsm_body_note_key(lsm_table_body *self, const uint8_t *key, uint32_t length) {
    const uint64_t start = 0, end = self->keys.size + length;
    if (self->key_ends.size == 0 && !lsm_buffer_add(&self->key_ends, &start, sizeof start)) {
        return 0;
    }
    return lsm_buffer_add(&self->keys, key, length) &&
           lsm_buffer_add(&self->key_ends, &end, sizeof end);
}

/* Add the next entry, and close its block if that is full. After a refusal nothing is of use. */
static int lsm_body_add(lsm_table_body *self, const uint8_t *key, uint32_t key_length,
                        uint64_t version, const uint8_t *value, uint32_t value_length) {
    int refused = LSM_ADDED;
    if (!lsm_body_is_open(self)) {
        refused = lsm_body_begin_block(self, key, key_length, version);
    }
    if (!refused) {
        refused = lsm_block_builder_add(&self->block, key, key_length, version, value,
                                        value_length);
    }
    if (refused) {
        return refused;
    }
    if (self->has_keys && !lsm_body_note_key(self, key, key_length)) {
        return LSM_ADD_NO_MEMORY;
    }
    self->key_bytes += key_length;
    self->entries++;
    return lsm_block_builder_size(&self->block) >= self->block_size ? lsm_body_close(self)
                                                                    : LSM_ADDED;
}

/* ---- Taking ---- */

/* Hand out the keys of finished blocks, and where they end; those of the open block stay. `keys`
 * and `key_ends` are the caller's to free. 0: there is no memory, and all is as it was. */
static int lsm_body_take_keys(lsm_table_body *self, lsm_buffer *keys, lsm_buffer *key_ends) {
    lsm_buffer rest = {NULL, 0, 0}, rest_ends = {NULL, 0, 0};
    const uint64_t *ends = (const uint64_t *)self->key_ends.bytes;
    const size_t count = lsm_body_keys(self), closed = self->closed_keys;
    const size_t taken = closed ? (size_t)ends[closed] : 0;
    if (!lsm_buffer_reserve(&rest_ends, (count - closed + 1) * sizeof *ends) ||
        (count > closed && !lsm_buffer_add(&rest, self->keys.bytes + taken,
                                           self->keys.size - taken))) {
        lsm_buffer_free(&rest_ends);
        return 0;
    }
    for (size_t at = closed; at < count + 1 && count > closed; at++) {
        const uint64_t end = ends[at] - taken;
        lsm_buffer_add(&rest_ends, &end, sizeof end);
    }
    *keys = self->keys;
    *key_ends = self->key_ends;
    keys->size = taken;
    key_ends->size = closed ? (closed + 1) * sizeof *ends : 0;
    self->keys = rest;
    self->key_ends = rest_ends;
    self->closed_keys = 0;
    return 1;
}

#endif
