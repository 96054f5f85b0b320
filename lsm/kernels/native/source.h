/* One run of entries, an entry at a time: a memtable's nodes, or tables one after the other, whose
 * blocks are read straight from their file.
 *
 * All of a block is checked before its first entry is believed: its place, its checksum, its lengths
 * and its restarts, and with every entry that keys ascend. What is not as it should be, and what C
 * cannot decompress, is left to the caller, who has the words for it.
 *
 * Each function that stops can be called again, once the caller has supplied what was wanting.
 */
#ifndef LSM_SOURCE_H
#define LSM_SOURCE_H

#include "memtable.h"
#include "table_body.h"

#define LSM_KEY_SLACK 8u            /* bytes of keys are copied eight at a time */
#define LSM_READ_AHEAD 512u         /* bytes of a file that are fetched before they are asked for */
#define LSM_NODES_AHEAD 8u          /* so many nodes before their turn their memory is fetched, */
#define LSM_NODE_LINES 3u           /* which is so many lines where keys and values are usual */

enum lsm_step_of_runs {
    LSM_STEP_HERE = 10, /* at an entry */
    LSM_STEP_END,       /* there are no more */
    LSM_STEP_CUT,       /* the next entry begins another table */
    LSM_STEP_MOST,      /* as much is finished as was asked for */
    LSM_STEP_PAUSE,     /* nothing is wanting, but much was done */
    LSM_STEP_TABLE,     /* the first run's next table is wanting, if it has one */
    LSM_STEP_BLOCK,     /* the first run's block is to be read by the caller, or refused */
    LSM_STEP_ORDER,     /* the first run does not ascend */
    LSM_STEP_COMPRESS,  /* the body's block is to be compressed by the caller */
    LSM_STEP_REFUSED    /* by the body: no memory, or too large */
};

typedef struct lsm_source {
    /* The entry that it stands at. */
    uint64_t word; /* the first bytes of its key, as lsm_word() has them */
    uint64_t version;
    const uint8_t *key, *value;
    uint32_t key_length, value_length;
    uint32_t rank; /* of two equal entries that of the lower rank comes first */
    int has_stood; /* at some entry, which the next one must not come before */

    lsm_node *const *nodes; /* of a memtable; NULL where there are tables */
    size_t node, node_count;

    const uint8_t *file; /* of the open table; NULL if it cannot be read from here */
    size_t file_size;
    const uint64_t *offsets, *sizes; /* of its blocks */
    uint32_t block, block_count;     /* the block that comes next */
    lsm_block loaded;                /* the one it stands in; only its bytes and where they end */
    uint32_t at;                     /* where the next entry begins */
    lsm_buffer opened;               /* what is decompressed */
    lsm_buffer internal;             /* the key of the entry, and its version */
} lsm_source;

LSM_INLINE void lsm_source_free(lsm_source *self) {
    lsm_buffer_free(&self->opened);
    lsm_buffer_free(&self->internal);
}

/* Whether a block's entries and restarts are as they should be; if so it is the one to read. */
static int lsm_source_load(lsm_source *self, const uint8_t *data, size_t size) {
    lsm_survey survey = {0, 0};
    uint32_t malformed;
    lsm_block block;
    memset(&block, 0, sizeof block);
    block.data = data;
    if (lsm_check_restarts(&block, size) || lsm_check_entries(&block, &survey, &malformed)) {
        return 0;
    }
    self->loaded = block;
    self->at = 0;
    self->block++;
    return 1;
}

/* Decompress a block; 0: it is damaged, or holds more than it may. */
static int lsm_source_open_snappy(lsm_source *self, const uint8_t *data, size_t size) {
    uint32_t length;
    size_t at;
    if (!lsm_snappy_length(data, size, &length, &at) ||
        length > (uint64_t)size * LSM_SNAPPY_GROWTH) {
        return 0;
    }
    self->opened.size = 0;
    if (!lsm_buffer_reserve(&self->opened, length) ||
        !lsm_snappy_decompress(data + at, size - at, self->opened.bytes, length)) {
        return 0;
    }
    self->opened.size = length;
    return 1;
}

/* Begin the next block; LSM_STEP_BLOCK where the caller has to look at it. */
static int lsm_source_next_block(lsm_source *self) {
    const uint64_t offset = self->offsets[self->block], size = self->sizes[self->block];
    if (self->file == NULL || offset > self->file_size || size > self->file_size - offset ||
        self->file_size - offset - size < LSM_TRAILER_BYTES) {
        return LSM_STEP_BLOCK;
    }
    const uint8_t *data = self->file + offset;
    const uint32_t checksum = lsm_crc32c_mask(lsm_crc32c(0, data, (size_t)size + 1));
    if (checksum != lsm_load32(data + size + 1)) {
        return LSM_STEP_BLOCK;
    }
    if (data[size] == LSM_SNAPPY) {
        if (!lsm_source_open_snappy(self, data, (size_t)size)) {
            return LSM_STEP_BLOCK;
        }
        data = self->opened.bytes;
        return lsm_source_load(self, data, self->opened.size) ? LSM_STEP_HERE : LSM_STEP_BLOCK;
    }
    if (data[size] != LSM_RAW) {
        return LSM_STEP_BLOCK;
    }
    return lsm_source_load(self, data, (size_t)size) ? LSM_STEP_HERE : LSM_STEP_BLOCK;
}

/* Below, equal to or above zero, as the entry that begins so is to the one it stands at: by keys
 * ascending, by versions descending. */
LSM_INLINE int lsm_source_order(const lsm_source *self, const lsm_lengths *next) {
    const uint8_t *had = self->internal.bytes;
    const uint32_t length = lsm_user_length(next), had_length = self->key_length;
    int order = 0;
    if (next->shared <= length && next->shared <= had_length) {
        order = lsm_compare_keys(next->key, length - next->shared, had + next->shared,
                                 had_length - next->shared);
    } else { /* all bytes of the shorter one are shared */
        order = (length > had_length) - (length < had_length);
    }
    if (order) {
        return order;
    }
    uint8_t bytes[LSM_VERSION_BYTES];
    const uint32_t kept = next->shared > length ? next->shared - length : 0;
    memcpy(bytes, had + had_length, kept);
    memcpy(bytes + kept, next->key + (next->unshared - (LSM_VERSION_BYTES - kept)),
           LSM_VERSION_BYTES - kept);
    const uint64_t version = lsm_load64(bytes);
    return (version < self->version) - (version > self->version);
}

/* Stand at the next entry of the block, of which there is one. */
LSM_INLINE int lsm_source_up(lsm_source *self) {
    const lsm_lengths next = lsm_lengths_at(&self->loaded, self->at);
    const size_t whole = (size_t)next.shared + next.unshared;
    if (self->has_stood && lsm_source_order(self, &next) < 0) {
        return LSM_STEP_ORDER;
    }
    self->internal.size = next.shared;
    if (!lsm_buffer_reserve(&self->internal, next.unshared + LSM_KEY_SLACK)) {
        return LSM_STEP_REFUSED;
    }
    uint8_t *key = self->internal.bytes;
    for (uint32_t at = 0; at < next.unshared; at += LSM_WORD_BYTES) {
        lsm_store64(key + next.shared + at, lsm_load64(next.key + at));
    }
    self->internal.size = whole;
    self->key = key;
    self->key_length = lsm_user_length(&next);
    self->word = lsm_word(key, self->key_length);
    self->version = lsm_load64(key + self->key_length);
    self->value = next.key + next.unshared;
    self->value_length = next.value_length;
    self->at = (uint32_t)(self->value - self->loaded.data) + next.value_length;
    self->has_stood = 1;
    lsm_prefetch(self->value + self->value_length + LSM_READ_AHEAD);
    return LSM_STEP_HERE;
}

LSM_INLINE int lsm_source_up_node(lsm_source *self) {
    if (self->node == self->node_count) {
        return LSM_STEP_END;
    }
    const lsm_node *node = self->nodes[self->node++];
    if (self->node + LSM_NODES_AHEAD < self->node_count) {
        const uint8_t *ahead = (const uint8_t *)self->nodes[self->node + LSM_NODES_AHEAD];
        for (uint32_t at = 0; at < LSM_NODE_LINES * LSM_LINE_BYTES; at += LSM_LINE_BYTES) {
            lsm_prefetch(ahead + at);
        }
    }
    self->key = lsm_node_key(node);
    self->key_length = node->key_length;
    self->word = lsm_word(self->key, self->key_length);
    self->version = node->version;
    self->value = lsm_node_value(node);
    self->value_length = node->value_length;
    return LSM_STEP_HERE;
}

/* Stand at the next entry. LSM_STEP_TABLE: there is none in this table. */
static int lsm_source_next(lsm_source *self) {
    if (self->nodes != NULL) {
        return lsm_source_up_node(self);
    }
    while (self->at >= self->loaded.end) {
        if (self->block >= self->block_count) {
            return LSM_STEP_TABLE;
        }
        const int step = lsm_source_next_block(self);
        if (step != LSM_STEP_HERE) {
            return step;
        }
    }
    return lsm_source_up(self);
}

#endif
