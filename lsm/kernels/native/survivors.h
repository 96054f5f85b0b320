/* What survives a compaction: sorted runs made one, without what nobody can see any more.
 *
 * A run is a memtable's nodes, or tables one after the other, whose blocks are read straight from
 * their file, an entry at a time. All of a block is checked before its first entry is believed: its
 * place, its checksum, its lengths and its restarts, and with every entry that keys ascend. What is
 * not as it should be, and what C cannot decompress, is left to the caller, who has the words for it.
 *
 * Each function that stops can be called again, once the caller has supplied what was wanting.
 */
#ifndef LSM_SURVIVORS_H
#define LSM_SURVIVORS_H

#include "memtable.h"
#include "table_body.h"

#define LSM_KEY_SLACK 8u            /* bytes of keys are copied eight at a time */
#define LSM_READ_AHEAD 512u         /* bytes of a file that are fetched before they are asked for */
#define LSM_NODES_AHEAD 8u          /* so many nodes before their turn their memory is fetched, */
#define LSM_NODE_LINES 3u           /* which is so many lines where keys and values are usual */
#define LSM_MOST_HIDDEN (1u << 16)  /* entries that are left out in a row before the caller is asked */

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

/* ---- One run ---- */

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

/* Whether one's entry comes before the other's. Only values tell apart what is there twice. */
LSM_INLINE int lsm_source_precedes(const lsm_source *one, const lsm_source *other) {
    if (one->word != other->word) {
        return one->word < other->word;
    }
    int order = lsm_compare_keys(one->key, one->key_length, other->key, other->key_length);
    if (order) {
        return order < 0;
    }
    if (one->version != other->version) {
        return one->version > other->version;
    }
    order = lsm_compare_bytes(one->value, one->value_length, other->value, other->value_length);
    return order ? order < 0 : one->rank < other->rank;
}

/* ---- Where keys lie ---- */

/* The tables of a level, in order; the place of a key is behind those of all before it. */
typedef struct lsm_ranges {
    const uint8_t **lows, **highs;
    uint32_t *low_lengths, *high_lengths;
    size_t count, place;
} lsm_ranges;

/* Room for so many tables; 0: there is no memory. */
static int lsm_ranges_reserve(lsm_ranges *self, size_t count) {
    const size_t each = 2 * (sizeof(const uint8_t *) + sizeof(uint32_t));
    if (count > SIZE_MAX / each - 1) {
        return 0;
    }
    self->lows = (const uint8_t **)calloc(count + 1, each);
    if (self->lows == NULL) {
        return 0;
    }
    self->highs = self->lows + count;
    self->low_lengths = (uint32_t *)(self->highs + count);
    self->high_lengths = self->low_lengths + count;
    self->count = count;
    return 1;
}

LSM_INLINE void lsm_ranges_free(lsm_ranges *self) {
    free((void *)self->lows);
    self->lows = NULL;
}

/* Whether some range has a key that is not before the one asked for last. */
LSM_INLINE int lsm_ranges_have(lsm_ranges *self, const uint8_t *key, uint32_t length) {
    while (self->place < self->count &&
           lsm_compare_keys(self->highs[self->place], self->high_lengths[self->place], key,
                            length) < 0) {
        self->place++;
    }
    return self->place < self->count &&
           lsm_compare_keys(self->lows[self->place], self->low_lengths[self->place], key,
                            length) <= 0;
}

/* ---- All of them ---- */

typedef struct lsm_survivors {
    lsm_source **order; /* those that stand at an entry, by it */
    uint32_t open;
    lsm_source *moving; /* the one that goes on to its next entry, and has no place in the order */

    int has_horizon;
    uint64_t horizon;   /* all snapshots see this version of a key or a newer one */
    lsm_buffer last;    /* the key that was looked at last */
    uint64_t last_word;
    int has_last, is_superseded;
    int is_here;        /* the first of the order survives, and is to be written */
    int is_new;         /* it is the first version of its key */

    int knows_deeper;
    lsm_ranges *deeper;
    size_t deeper_count;

    uint64_t max_file_size;
    lsm_ranges grandparents; /* their highest keys */
    uint64_t *grandparent_sizes;
    uint64_t overlap, overlap_limit;
} lsm_survivors;

static void lsm_survivors_free(lsm_survivors *self) {
    for (size_t level = 0; level < self->deeper_count; level++) {
        lsm_ranges_free(&self->deeper[level]);
    }
    free(self->deeper);
    lsm_ranges_free(&self->grandparents);
    free(self->grandparent_sizes);
    free(self->order);
    lsm_buffer_free(&self->last);
}

/* Put a source that stands at an entry in its place among the others. */
LSM_INLINE void lsm_survivors_place(lsm_survivors *self, lsm_source *moved) {
    lsm_source **const order = self->order;
    uint32_t place = 0;
    for (; place < self->open && lsm_source_precedes(order[place], moved); place++) {
    }
    for (uint32_t at = self->open++; at > place; at--) {
        order[at] = order[at - 1];
    }
    order[place] = moved;
}

/* The first source, which is the moving one and stands at its next entry, goes where it belongs. */
LSM_INLINE void lsm_survivors_settle(lsm_survivors *self) {
    lsm_source **const order = self->order, *moved = order[0];
    uint32_t place = 0;
    for (; place + 1 < self->open && lsm_source_precedes(order[place + 1], moved); place++) {
        order[place] = order[place + 1];
    }
    order[place] = moved;
}

/* Have the moving source, the first, stand at its next entry. */
LSM_INLINE int lsm_survivors_move(lsm_survivors *self) {
    const int step = lsm_source_next(self->moving);
    if (step == LSM_STEP_HERE) {
        lsm_survivors_settle(self);
        self->moving = NULL;
    }
    return step;
}

/* The first source is at its end. */
static void lsm_survivors_drop(lsm_survivors *self) {
    self->open--;
    for (uint32_t at = 0; at < self->open; at++) {
        self->order[at] = self->order[at + 1];
    }
    self->moving = NULL;
}

/* Whether an entry's key is the one that was looked at last; then it is. */
LSM_INLINE int lsm_survivors_same_key(lsm_survivors *self, const lsm_source *source, int *same) {
    *same = self->has_last && self->last_word == source->word &&
            self->last.size == source->key_length &&
            lsm_compare_keys(self->last.bytes, (uint32_t)self->last.size, source->key,
                             source->key_length) == 0;
    if (*same) {
        return 1;
    }
    self->has_last = 1;
    self->last_word = source->word;
    return lsm_buffer_set(&self->last, source->key, source->key_length);
}

LSM_INLINE int lsm_survivors_may_be_deeper(lsm_survivors *self, const lsm_source *source) {
    if (!self->knows_deeper) {
        return 1;
    }
    int may_be = 0;
    for (size_t level = 0; level < self->deeper_count; level++) {
        may_be |= lsm_ranges_have(&self->deeper[level], source->key, source->key_length);
    }
    return may_be;
}

/* Whether the first entry is one that a snapshot, taken or to come, may see; 0 or 1, -1: no memory. */
LSM_INLINE int lsm_survivors_keep(lsm_survivors *self, const lsm_source *source) {
    int same;
    if (!lsm_survivors_same_key(self, source, &same)) {
        return -1;
    }
    self->is_new = !same;
    if (!same) {
        self->is_superseded = 0;
    } else if (self->is_superseded) {
        return 0;
    }
    if (self->has_horizon && source->version <= self->horizon) {
        self->is_superseded = 1;
        if (!(source->version & 1) && !lsm_survivors_may_be_deeper(self, source)) {
            return 0; /* a tombstone with nothing left to hide */
        }
    }
    return 1;
}

/* Go on to the next entry that survives, unless the first one does. */
static int lsm_survivors_find(lsm_survivors *self) {
    for (uint32_t hidden = 0; !self->is_here; hidden++) {
        if (self->moving != NULL) {
            const int step = lsm_survivors_move(self);
            if (step == LSM_STEP_END) {
                lsm_survivors_drop(self);
            } else if (step != LSM_STEP_HERE) {
                return step;
            }
        }
        if (self->open == 0) {
            return LSM_STEP_END;
        }
        if (hidden == LSM_MOST_HIDDEN) {
            return LSM_STEP_PAUSE;
        }
        const int kept = lsm_survivors_keep(self, self->order[0]);
        if (kept < 0) {
            return LSM_STEP_REFUSED;
        }
        self->is_here = kept;
        self->moving = kept ? NULL : self->order[0];
    }
    return LSM_STEP_HERE;
}

/* Whether the entry that is to be written begins another table. */
LSM_INLINE int lsm_survivors_cut(lsm_survivors *self, const lsm_table_body *body) {
    const lsm_source *source = self->order[0];
    lsm_ranges *const passed = &self->grandparents;
    if (!self->is_new) {
        return 0;
    }
    while (passed->place < passed->count &&
           lsm_compare_keys(passed->highs[passed->place], passed->high_lengths[passed->place],
                            source->key, source->key_length) < 0) {
        const uint64_t size = body->entries ? self->grandparent_sizes[passed->place] : 0;
        self->overlap = size < UINT64_MAX - self->overlap ? self->overlap + size : UINT64_MAX;
        passed->place++;
    }
    if (body->entries && (lsm_table_body_size(body) >= self->max_file_size ||
                          self->overlap > self->overlap_limit)) {
        self->overlap = 0;
        return 1;
    }
    return 0;
}

/* Write what survives into a body, until so many bytes of it are finished. */
static int lsm_survivors_write(lsm_survivors *self, lsm_table_body *body, uint64_t until,
                               int *refused) {
    while (body->offset < until) {
        const int step = lsm_survivors_find(self);
        if (step != LSM_STEP_HERE) {
            return step;
        }
        if (lsm_survivors_cut(self, body)) {
            return LSM_STEP_CUT;
        }
        lsm_source *source = self->order[0];
        *refused = lsm_body_add(body, source->key, source->key_length, source->version,
                                source->value, source->value_length);
        self->is_here = 0;
        self->moving = source;
        if (*refused) {
            return *refused == LSM_BODY_COMPRESS ? LSM_STEP_COMPRESS : LSM_STEP_REFUSED;
        }
    }
    return LSM_STEP_MOST;
}

#endif
