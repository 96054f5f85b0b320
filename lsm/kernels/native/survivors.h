/* What survives a compaction: sorted runs made one, without what nobody can see any more.
 *
 * Each function that stops can be called again, once the caller has supplied what was wanting.
 */
#ifndef LSM_SURVIVORS_H
#define LSM_SURVIVORS_H

#include "source.h"

#define LSM_MOST_HIDDEN (1u << 16)  /* entries that are left out in a row before the caller is asked */

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
