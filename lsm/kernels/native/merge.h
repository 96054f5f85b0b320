/* Merging streams: each is a sorted run that stands at one of its entries, and one of them is next.
 *
 * A stream goes through the nodes of a memtable's run, or through a block, decoding each key from
 * the one before it. Streams stand in the order of their entries, so that after a step the first
 * one is moved to its new place: in a tree of levels that is mostly where it was.
 *
 * Runs whose keys do not ascend, as damaged blocks have them, give some order; each entry comes
 * once, and nothing is read that is not there.
 */
#ifndef LSM_MERGE_H
#define LSM_MERGE_H

#include "block.h"
#include "memtable.h"

/* Most keys have room in the stream itself. Bytes are copied eight at a time, up to seven more. */
#define LSM_FEW_BYTES 48u
#define LSM_SLACK 8u
#define LSM_AHEAD 1024u /* bytes of entries that are fetched before a walk comes to them */

typedef struct lsm_stream {
    uint64_t word; /* the first bytes of the key, as lsm_word() has them */
    uint64_t version;
    const uint8_t *key;
    const uint8_t *value;
    uint32_t key_length, value_length;
    uint32_t rank; /* of two equal entries that of the lower rank comes first */

    lsm_node *const *nodes; /* of a memtable's run; NULL if this is no such */
    size_t place, count;

    const lsm_block *block;
    uint32_t index; /* of the entry, on the way down */
    uint32_t next;  /* where the entry behind it begins, on the way up */
    uint8_t *buffer;
    size_t room;
    uint8_t few[LSM_FEW_BYTES];

    void *held_table, *held_block; /* what keeps the block there, and who is to let it go */
    int64_t sought;                /* the number of the block that it begins in */
    uint32_t number;               /* of the block in its table */
    uint32_t table, first_table, end_table;
} lsm_stream;

/* What a key is compared with again and again. */
typedef struct lsm_known_key {
    uint64_t word;
    const uint8_t *bytes;
    uint32_t length;
} lsm_known_key;

enum lsm_step { LSM_NO_MEMORY = -1, LSM_AT_END = 0, LSM_HERE = 1 };

LSM_INLINE void lsm_known_key_set(lsm_known_key *self, const uint8_t *bytes, uint32_t length) {
    self->bytes = bytes;
    self->length = length;
    self->word = lsm_word(bytes, length);
}

/* Below, above or equal to zero, as the stream's key is of another one. */
LSM_INLINE int lsm_stream_compare(const lsm_stream *self, const lsm_known_key *key) {
    if (self->word != key->word) {
        return self->word < key->word ? -1 : 1;
    }
    return lsm_compare_keys(self->key, self->key_length, key->bytes, key->length);
}

LSM_INLINE int lsm_stream_is_at(const lsm_stream *self, const lsm_known_key *key) {
    return self->word == key->word && self->key_length == key->length &&
           (key->length <= LSM_WORD_BYTES ||
            lsm_order(self->key + LSM_WORD_BYTES, key->bytes + LSM_WORD_BYTES,
                      key->length - LSM_WORD_BYTES) == 0);
}

/* Copy bytes, and up to seven behind them. */
LSM_INLINE void lsm_copy_words(uint8_t *to, const uint8_t *from, size_t length) {
    for (size_t at = 0; at < length; at += LSM_WORD_BYTES) {
        lsm_store64(to + at, lsm_load64(from + at));
    }
}

/* ---- One stream ---- */

static void lsm_stream_init(lsm_stream *self, uint32_t rank) {
    memset(self, 0, offsetof(lsm_stream, few));
    self->held_table = self->held_block = NULL;
    self->sought = 0;
    self->number = self->table = self->first_table = self->end_table = 0;
    self->rank = rank;
    self->buffer = self->few;
    self->room = LSM_FEW_BYTES;
}

LSM_INLINE void lsm_stream_free(lsm_stream *self) {
    if (self->buffer != self->few) {
        free(self->buffer);
    }
}

/* Room for a key of so many bytes in place of one of which some are kept; 0: no memory. */
LSM_APART int lsm_stream_grow(lsm_stream *self, uint64_t size, size_t kept) {
    if (size > SIZE_MAX / 4) {
        return 0;
    }
    uint8_t *buffer = (uint8_t *)malloc(2 * (size_t)size);
    if (buffer == NULL) {
        return 0;
    }
    memcpy(buffer, self->buffer, kept);
    lsm_stream_free(self);
    self->buffer = buffer;
    self->room = 2 * (size_t)size;
    return 1;
}

LSM_INLINE int lsm_stream_stand_on_node(lsm_stream *self) {
    const lsm_node *node = self->nodes[self->place];
    self->key = lsm_node_key(node);
    self->key_length = node->key_length;
    self->word = lsm_word(self->key, self->key_length);
    self->version = node->version;
    self->value = lsm_node_value(node);
    self->value_length = node->value_length;
    return LSM_HERE;
}

/* Stand at the block's entry of this index, wherever the stream stood before. */
static int lsm_stream_stand(lsm_stream *self, uint32_t index) {
    const lsm_block *block = self->block;
    const lsm_lengths lengths = lsm_block_lengths(block, index);
    const uint32_t length = lsm_user_length(&lengths);
    const uint64_t size = (uint64_t)length + LSM_VERSION_BYTES + LSM_SLACK;
    if (size > self->room && !lsm_stream_grow(self, size, 0)) {
        return LSM_NO_MEMORY;
    }
    lsm_block_key(block, index, self->buffer);
    self->version = lsm_version_of(block, index, &lengths);
    lsm_store64(self->buffer + length, self->version); /* which the next key may share */
    self->key = self->buffer;
    self->key_length = length;
    self->word = lsm_word(self->buffer, length);
    self->value = lengths.key + lengths.unshared;
    self->value_length = lengths.value_length;
    self->index = index;
    self->next = (uint32_t)(self->value - block->data) + lengths.value_length;
    return LSM_HERE;
}

/* One entry on, within the run or the block. */
LSM_INLINE int lsm_stream_up(lsm_stream *self) {
    const lsm_block *block = self->block;
    if (self->nodes != NULL) {
        return ++self->place < self->count ? lsm_stream_stand_on_node(self) : LSM_AT_END;
    }
    if (self->next >= block->end) {
        return LSM_AT_END;
    }
    const lsm_lengths lengths = lsm_lengths_at(block, self->next);
    const uint64_t size = (uint64_t)lengths.shared + lengths.unshared + LSM_SLACK;
    if (size > self->room && !lsm_stream_grow(self, size, lengths.shared)) {
        return LSM_NO_MEMORY;
    }
    lsm_copy_words(self->buffer + lengths.shared, lengths.key, lengths.unshared);
    self->key = self->buffer;
    self->key_length = lsm_user_length(&lengths);
    self->word = lsm_word(self->buffer, self->key_length);
    self->version = lsm_load64(self->buffer + self->key_length);
    self->value = lengths.key + lengths.unshared;
    self->value_length = lengths.value_length;
    self->next = (uint32_t)(self->value - block->data) + lengths.value_length;
    return LSM_HERE;
}

/* One entry back in a block. What all its keys begin with is in the buffer, and behind that mostly
 * the entry's word and its own bytes are all of its key. */
LSM_INLINE int lsm_stream_back(lsm_stream *self, uint32_t index) {
    const lsm_block *block = self->block;
    const lsm_lengths lengths = lsm_block_lengths(block, index);
    const uint64_t size = (uint64_t)lengths.shared + lengths.unshared + LSM_SLACK;
    if (lengths.shared > block->common + LSM_WORD_BYTES || size > self->room) {
        return lsm_stream_stand(self, index);
    }
    lsm_store64(self->buffer + block->common, lsm_swap64(block->words[index]));
    lsm_copy_words(self->buffer + lengths.shared, lengths.key, lengths.unshared);
    self->key_length = lsm_user_length(&lengths);
    self->word = lsm_word(self->buffer, self->key_length);
    self->version = lsm_version_of(block, index, &lengths);
    self->value = lengths.key + lengths.unshared;
    self->value_length = lengths.value_length;
    self->index = index;
    return LSM_HERE;
}

/* One entry back, within the run or the block. */
LSM_INLINE int lsm_stream_down(lsm_stream *self) {
    if (self->nodes != NULL) {
        return self->place-- > 0 ? lsm_stream_stand_on_node(self) : LSM_AT_END;
    }
    return self->index > 0 ? lsm_stream_back(self, self->index - 1) : LSM_AT_END;
}

/* Have the entries from one on come, or on the way down those before it, as many as people look at
 * first. */
LSM_INLINE void lsm_stream_prefetch_from(const lsm_block *block, uint32_t index, int is_down) {
    const uint32_t offset = lsm_block_offset(block, index);
    const uint32_t from = !is_down ? offset : offset < LSM_AHEAD ? 0 : offset - LSM_AHEAD;
    for (uint32_t at = from; at < block->end && at < from + LSM_AHEAD; at += LSM_LINE_BYTES) {
        lsm_prefetch(block->data + at);
    }
}

/* Have the memory come that a search in a block goes through. */
LSM_INLINE void lsm_stream_prefetch(const lsm_block *block) {
    lsm_block_prefetch(block);
    lsm_prefetch(block->data);
}

/* The same of a walk that comes to its first entries, or on the way down to its last ones. */
LSM_INLINE void lsm_stream_prefetch_entries(const lsm_block *block, int is_down) {
    const uint32_t most = 4 * LSM_LINE_BYTES, size = block->end < most ? block->end : most;
    const uint8_t *entries = is_down ? block->data + (block->end - size) : block->data;
    for (uint32_t at = 0; at < size; at += LSM_LINE_BYTES) {
        lsm_prefetch(entries + at);
    }
    if (is_down) {
        for (size_t at = 0; at < block->looked_up && at < most; at += LSM_LINE_BYTES) {
            lsm_prefetch((const uint8_t *)block->words + (block->looked_up - 1 - at));
        }
    }
}

/* ---- All of them ---- */

LSM_INLINE int lsm_stream_precedes(const lsm_stream *one, const lsm_stream *other) {
    if (one->word != other->word) {
        return one->word < other->word;
    }
    const int order = lsm_compare_keys(one->key, one->key_length, other->key, other->key_length);
    if (order) {
        return order < 0;
    }
    return one->version != other->version ? one->version > other->version
                                          : one->rank < other->rank;
}

/* Move the first stream behind all that are before it now; on the way down the last are first. */
LSM_INLINE void lsm_merge_settle(lsm_stream **order, uint32_t count, int is_down) {
    lsm_stream *moved = order[0];
    uint32_t place = 0;
    for (; place + 1 < count; place++) {
        lsm_stream *other = order[place + 1];
        if (is_down ? !lsm_stream_precedes(moved, other) : !lsm_stream_precedes(other, moved)) {
            break;
        }
        order[place] = other;
    }
    order[place] = moved;
}

/* The same of all streams, of which there may be none. */
static void lsm_merge_sort(lsm_stream **order, uint32_t count, int is_down) {
    for (uint32_t start = count; start-- > 0;) {
        lsm_merge_settle(order + start, count - start, is_down);
    }
}

/* Drop the first stream. */
LSM_INLINE void lsm_merge_drop(lsm_stream **order, uint32_t count) {
    for (uint32_t place = 1; place < count; place++) {
        order[place - 1] = order[place];
    }
}

#endif
