/* Memtables: nodes in an arena, the versions of a key found by its hash, sorted runs of nodes.
 *
 * A node is a version of a key. It is made in the arena and never moves. Once it is linked, its key
 * leads to it, and it is among the nodes that were added and have no place in the order yet. Runs
 * are sorted arrays of nodes; once made they do not change, so that who reads one may keep it.
 *
 * Whatever allocates can fail, and then leaves all as it was. Linking does not allocate: room for
 * nodes is promised when they are made. Nothing here calls Python; the caller holds the GIL, unless
 * he sorts a run that nobody else has.
 */
#ifndef LSM_MEMTABLE_H
#define LSM_MEMTABLE_H

#include "allocation.h"
#include "operations.h"
#include "hashing.h"

/* ---- Nodes ---- */

/* A version of a key, in front of the bytes of the key and those of the value. */
typedef struct lsm_node {
    struct lsm_node *older; /* the key's version before this one; NULL if there is none */
    struct lsm_node *jump;  /* one further back, so that a search takes logarithmic time */
    uint64_t version;       /* sequence << 8 | kind */
    uint32_t key_length;
    uint32_t value_length;
    uint32_t hash;
    uint32_t depth; /* how many older versions there are, modulo 2^32 */
} lsm_node;

LSM_INLINE const uint8_t *lsm_node_key(const lsm_node *node) {
    return (const uint8_t *)(node + 1);
}

LSM_INLINE const uint8_t *lsm_node_value(const lsm_node *node) {
    return lsm_node_key(node) + node->key_length;
}

/* The bytes that a node takes; lengths of 32 bits cannot overflow it. */
LSM_INLINE uint64_t lsm_node_size(uint32_t key_length, uint32_t value_length) {
    return (sizeof(lsm_node) + (uint64_t)key_length + value_length + 7) & ~(uint64_t)7;
}

/* The node behind another one that was made in the same breath. */
LSM_INLINE lsm_node *lsm_node_behind(lsm_node *node) {
    return (lsm_node *)((uint8_t *)node + lsm_node_size(node->key_length, node->value_length));
}

LSM_INLINE int lsm_compare_bytes(const uint8_t *one, size_t one_length, const uint8_t *other,
                                 size_t other_length) {
    size_t shared = one_length < other_length ? one_length : other_length;
    int order = shared ? memcmp(one, other, shared) : 0;
    return order ? order : (one_length > other_length) - (one_length < other_length);
}

/* Below 0: the node comes before the place of (key, version), keys ascending, versions descending. */
LSM_INLINE int lsm_node_compare(const lsm_node *node, const uint8_t *key, size_t length,
                                uint64_t version) {
    int order = lsm_compare_bytes(lsm_node_key(node), node->key_length, key, length);
    return order ? order : (node->version < version) - (node->version > version);
}

/* 1: the node comes before another. Values only tell apart what a forged log has twice. */
LSM_APART int lsm_node_precedes(const lsm_node *node, const lsm_node *other) {
    int order = lsm_node_compare(node, lsm_node_key(other), other->key_length, other->version);
    if (order == 0) {
        order = lsm_compare_bytes(lsm_node_value(node), node->value_length, lsm_node_value(other),
                                  other->value_length);
    }
    return order < 0;
}

/* ---- The arena ---- */

#define LSM_FIRST_CHUNK ((size_t)1 << 14)
#define LSM_LAST_CHUNK ((size_t)1 << 20)

typedef struct lsm_chunk {
    struct lsm_chunk *below;
    size_t size; /* of the bytes behind this header */
    size_t used;
} lsm_chunk;

/* Chunks that bytes are taken from, those of the top one first; each twice as large as the last. */
typedef struct lsm_arena {
    lsm_chunk *top;
    size_t next_size;
    size_t memory; /* of all chunks */
} lsm_arena;

LSM_INLINE uint8_t *lsm_chunk_bytes(lsm_chunk *chunk) {
    return (uint8_t *)(chunk + 1);
}

/* A new chunk; one that is asked for a large part of its bytes is for these alone. */
LSM_APART uint8_t *lsm_arena_take_new(lsm_arena *self, size_t size) {
    size_t shared = self->next_size ? self->next_size : LSM_FIRST_CHUNK;
    int is_alone = size > shared / 4;
    size_t whole = is_alone ? size : shared;
    if (whole > SIZE_MAX - sizeof(lsm_chunk)) {
        return NULL;
    }
    lsm_chunk *chunk = (lsm_chunk *)malloc(sizeof(lsm_chunk) + whole);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->size = whole;
    chunk->used = size;
    self->memory += sizeof(lsm_chunk) + whole;
    if (is_alone && self->top != NULL) {
        chunk->below = self->top->below; /* the top one has room that others can use */
        self->top->below = chunk;
        return lsm_chunk_bytes(chunk);
    }
    chunk->below = self->top;
    self->top = chunk;
    if (!is_alone) {
        self->next_size = shared < LSM_LAST_CHUNK ? 2 * shared : shared;
    }
    return lsm_chunk_bytes(chunk);
}

/* So many bytes, a multiple of 8, in one piece; NULL where there are none. */
LSM_INLINE uint8_t *lsm_arena_take(lsm_arena *self, size_t size) {
    lsm_chunk *top = self->top;
    if (top == NULL || size > top->size - top->used) {
        return lsm_arena_take_new(self, size);
    }
    uint8_t *bytes = lsm_chunk_bytes(top) + top->used;
    top->used += size;
    return bytes;
}

/* Gives bytes back that were taken in one piece. Unless they are their chunk's last, they are lost
 * to the arena until its end. */
static void lsm_arena_give_back(lsm_arena *self, const uint8_t *bytes, size_t size) {
    for (lsm_chunk **at = &self->top; *at != NULL; at = &(*at)->below) {
        lsm_chunk *chunk = *at;
        if (lsm_chunk_bytes(chunk) + chunk->used != bytes + size || chunk->used < size) {
            continue;
        }
        chunk->used -= size;
        if (chunk->used == 0) {
            *at = chunk->below;
            if (2 * chunk->size == self->next_size) {
                self->next_size = chunk->size;
            }
            self->memory -= sizeof(lsm_chunk) + chunk->size;
            free(chunk);
        }
        return;
    }
}

/* The bytes that were taken: memory that nobody has written to costs nothing yet. */
LSM_INLINE size_t lsm_arena_used(const lsm_arena *self) {
    return self->top == NULL ? 0 : self->memory - (self->top->size - self->top->used);
}

static void lsm_arena_free(lsm_arena *self) {
    for (lsm_chunk *chunk = self->top; chunk != NULL;) {
        lsm_chunk *below = chunk->below;
        free(chunk);
        chunk = below;
    }
    memset(self, 0, sizeof(*self));
}

/* ---- Sorted runs ---- */

typedef struct lsm_run {
    lsm_node **nodes;
    size_t count;
} lsm_run;

/* How many nodes come before the place of (key, version); with `through`, those at it too. */
LSM_INLINE size_t lsm_run_count(const lsm_run *self, const uint8_t *key, uint32_t length,
                                uint64_t version, int through) {
    size_t first = 0, count = self->count;
    while (count > 0) {
        size_t half = count / 2;
        if (lsm_node_compare(self->nodes[first + half], key, length, version) < through) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

/* The index of the first node from (key, version) on; the count if there is none. */
static inline size_t lsm_run_seek(const lsm_run *self, const uint8_t *key, uint32_t length,
                                  uint64_t version) {
    return lsm_run_count(self, key, length, version, 0);
}

/* The index of the first node behind (key, version). */
static inline size_t lsm_run_seek_behind(const lsm_run *self, const uint8_t *key, uint32_t length,
                                         uint64_t version) {
    return lsm_run_count(self, key, length, version, 1);
}

/* ---- Sorting ---- */

/* A node with eight bytes of its key as a number that orders as they do. */
typedef struct lsm_sortable {
    uint64_t prefix;
    lsm_node *node;
} lsm_sortable;

/* How many bytes all keys begin with in common. */
static size_t lsm_shared_prefix(const lsm_sortable *items, size_t count) {
    const uint8_t *first = lsm_node_key(items[0].node);
    size_t shared = items[0].node->key_length;
    for (size_t i = 1; i < count && shared > 0; i++) {
        const uint8_t *key = lsm_node_key(items[i].node);
        if (items[i].node->key_length >= shared && memcmp(key, first, shared) == 0) {
            continue;
        }
        size_t most = shared, length = items[i].node->key_length;
        most = length < most ? length : most;
        for (shared = 0; shared < most && key[shared] == first[shared]; shared++) {
        }
    }
    return shared;
}

/* The bytes of a key behind the first ones, as a number of which the first byte is the highest. */
LSM_INLINE uint64_t lsm_prefix_of(const lsm_node *node, size_t skipped) {
    const uint8_t *key = lsm_node_key(node);
    size_t left = node->key_length - skipped;
    if (left == 0) {
        return 0;
    }
    return lsm_swap64(lsm_load_upto8(key + skipped, left < 8 ? left : 8));
}

LSM_INLINE int lsm_sortable_precedes(const lsm_sortable *one, const lsm_sortable *other) {
    return one->prefix < other->prefix ||
           (one->prefix == other->prefix && lsm_node_precedes(one->node, other->node));
}

/* Merge two sorted arrays that lie one behind the other. */
static void lsm_merge(lsm_sortable *target, const lsm_sortable *items, size_t middle,
                      size_t count) {
    const lsm_sortable *left = items, *right = items + middle;
    const lsm_sortable *left_end = right, *right_end = items + count;
    if (middle == 0 || middle == count || !lsm_sortable_precedes(right, right - 1)) {
        memcpy(target, items, count * sizeof(*items));
        return;
    }
    while (left < left_end && right < right_end) {
        size_t is_right = (size_t)lsm_sortable_precedes(right, left);
        *target++ = *(is_right ? right : left);
        right += is_right;
        left += 1 - is_right;
    }
    memcpy(target, left, (size_t)(left_end - left) * sizeof(*items));
    target += left_end - left;
    memcpy(target, right, (size_t)(right_end - right) * sizeof(*items));
}

/* So many neighbours are put in order by insertion before they are merged. */
#define LSM_FEW 8

static void lsm_insert(lsm_sortable *items, size_t count) {
    for (size_t i = 1; i < count; i++) {
        lsm_sortable item = items[i];
        size_t place = i;
        for (; place > 0 && lsm_sortable_precedes(&item, &items[place - 1]); place--) {
            items[place] = items[place - 1];
        }
        items[place] = item;
    }
}

/* Sort; the scratch is as long. Keys are often written in order, which costs one look at each. */
static void lsm_sort(lsm_sortable *items, lsm_sortable *scratch, size_t count) {
    lsm_sortable *from = items, *to = scratch;
    size_t sorted = 1;
    while (sorted < count && !lsm_sortable_precedes(&items[sorted], &items[sorted - 1])) {
        sorted++;
    }
    if (sorted >= count) {
        return;
    }
    for (size_t start = 0; start < count; start += LSM_FEW) {
        lsm_insert(items + start, count - start < LSM_FEW ? count - start : LSM_FEW);
    }
    for (size_t width = LSM_FEW; width < count; width *= 2) {
        for (size_t start = 0; start < count;) {
            size_t left = count - start;
            size_t both = left < 2 * width ? left : 2 * width;
            lsm_merge(to + start, from + start, both < width ? both : width, both);
            start += both;
        }
        lsm_sortable *merged = to;
        to = from;
        from = merged;
    }
    if (from != items) {
        memcpy(items, from, count * sizeof(*items));
    }
}

/* Sort nodes that nobody else has in hand; 0: there is no memory for it. */
static int lsm_run_sort(lsm_run *self) {
    if (self->count > SIZE_MAX / sizeof(lsm_sortable) / 2) {
        return 0;
    }
    lsm_sortable *items = (lsm_sortable *)malloc(2 * self->count * sizeof(*items) + 1);
    if (items == NULL) {
        return 0;
    }
    for (size_t i = 0; i < self->count; i++) {
        items[i].node = self->nodes[i];
    }
    const size_t skipped = self->count ? lsm_shared_prefix(items, self->count) : 0;
    for (size_t i = 0; i < self->count; i++) {
        items[i].prefix = lsm_prefix_of(items[i].node, skipped);
    }
    lsm_sort(items, items + self->count, self->count);
    for (size_t i = 0; i < self->count; i++) {
        self->nodes[i] = items[i].node;
    }
    free(items);
    return 1;
}

/* ---- The memtable ---- */

/* A key, as its newest version. */
typedef struct lsm_slot {
    lsm_node *newest; /* NULL: the slot is free */
    uint32_t hash;
    uint32_t key_length;
} lsm_slot;

typedef struct lsm_memtable {
    lsm_arena *arena;
    uint64_t seed;
    lsm_slot *slots; /* a power of two, or NULL; at most three quarters are taken */
    size_t slot_count;
    size_t keys;
    lsm_node **added; /* what no run has yet */
    size_t added_count;
    size_t added_room;
    size_t promised;   /* nodes that are made and not linked */
    size_t count;      /* of the nodes that are linked */
    lsm_node *last;    /* the one that was linked last */
    int is_disordered; /* some key's versions did not come in ascending order */
} lsm_memtable;

typedef struct lsm_found {
    uint64_t version;
    const uint8_t *value;
    uint32_t value_length;
} lsm_found;

#define LSM_FIRST_SLOTS ((size_t)16)
#define LSM_FIRST_ADDED ((size_t)16)

static void lsm_memtable_free(lsm_memtable *self) {
    lsm_release((uint8_t *)self->slots);
    free(self->added);
    memset(self, 0, sizeof(*self));
}

LSM_INLINE uint32_t lsm_memtable_hash(const lsm_memtable *self, const uint8_t *key, size_t length) {
    return (uint32_t)lsm_xxh3_64(key, length, self->seed);
}

LSM_INLINE int lsm_same_bytes(const uint8_t *one, const uint8_t *other, size_t length) {
    if (length >= 8 && length <= 16) {
        return ((lsm_load64(one) ^ lsm_load64(other)) |
                (lsm_load64(one + length - 8) ^ lsm_load64(other + length - 8))) == 0;
    }
    return memcmp(one, other, length) == 0;
}

/* The slot that a key has, or the free one that it would get. There are slots. */
LSM_INLINE lsm_slot *lsm_memtable_slot(const lsm_memtable *self, const uint8_t *key,
                                       uint32_t length, uint32_t hash) {
    size_t mask = self->slot_count - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        lsm_slot *slot = &self->slots[at];
        if (slot->newest == NULL ||
            (slot->hash == hash && slot->key_length == length &&
             lsm_same_bytes(lsm_node_key(slot->newest), key, length))) {
            return slot;
        }
    }
}

/* The first of a key's versions, however they came, from a version on; all are looked at. */
LSM_APART const lsm_node *lsm_version_of_all(const lsm_node *node, uint64_t version) {
    const lsm_node *found = NULL;
    for (; node != NULL; node = node->older) {
        if (node->version <= version && (found == NULL || lsm_node_precedes(node, found))) {
            found = node;
        }
    }
    return found;
}

/* The newest of a key's versions that is not above the given one. */
LSM_INLINE const lsm_node *lsm_version_from(const lsm_node *node, uint64_t version) {
    while (node != NULL && node->version > version) {
        const lsm_node *jump = node->jump;
        node = jump != NULL && jump->version > version ? jump : node->older;
    }
    return node;
}

/* The newest version of a key up to the given one: 1 found, 0 there is none. */
static inline int lsm_memtable_find(const lsm_memtable *self, const uint8_t *key, uint32_t length,
                                    uint64_t version, lsm_found *found) {
    if (self->keys == 0) {
        return 0;
    }
    const lsm_node *node =
        lsm_memtable_slot(self, key, length, lsm_memtable_hash(self, key, length))->newest;
    node = self->is_disordered ? lsm_version_of_all(node, version)
                               : lsm_version_from(node, version);
    if (node == NULL) {
        return 0;
    }
    found->version = node->version;
    found->value = lsm_node_value(node);
    found->value_length = node->value_length;
    return 1;
}

/* 1: there are slots for so many keys; 0: there is no memory for them. */
static int lsm_memtable_grow_slots(lsm_memtable *self, size_t keys) {
    size_t count = self->slot_count ? self->slot_count : LSM_FIRST_SLOTS;
    while (count - count / 4 < keys) {
        if (count > SIZE_MAX / 2 / sizeof(lsm_slot)) {
            return 0;
        }
        count *= 2;
    }
    if (count == self->slot_count) {
        return 1;
    }
    lsm_slot *slots = (lsm_slot *)lsm_allocate(count * sizeof(lsm_slot));
    if (slots == NULL) {
        return 0;
    }
    for (size_t i = 0; i < self->slot_count; i++) {
        if (self->slots[i].newest != NULL) {
            size_t at = self->slots[i].hash & (count - 1);
            while (slots[at].newest != NULL) {
                at = (at + 1) & (count - 1);
            }
            slots[at] = self->slots[i];
        }
    }
    lsm_release((uint8_t *)self->slots);
    self->slots = slots;
    self->slot_count = count;
    return 1;
}

/* 1: there is room for so many nodes that no run has; 0: there is no memory for it. */
static int lsm_memtable_grow_added(lsm_memtable *self, size_t count) {
    size_t room = self->added_room ? self->added_room : LSM_FIRST_ADDED;
    while (room < count) {
        if (room > SIZE_MAX / 2 / sizeof(lsm_node *)) {
            return 0;
        }
        room *= 2;
    }
    if (room == self->added_room) {
        return 1;
    }
    lsm_node **added = (lsm_node **)realloc(self->added, room * sizeof(lsm_node *));
    if (added == NULL) {
        return 0;
    }
    self->added = added;
    self->added_room = room;
    return 1;
}

/* Promises so many nodes that linking them will find room; 0: there is no memory for it. */
static int lsm_memtable_promise(lsm_memtable *self, size_t count) {
    size_t most = SIZE_MAX - self->promised - self->count;
    if (count > most || !lsm_memtable_grow_slots(self, self->keys + self->promised + count) ||
        !lsm_memtable_grow_added(self, self->added_count + self->promised + count)) {
        return 0;
    }
    self->promised += count;
    return 1;
}

/* Puts a version of a key before the one that was its newest. */
LSM_INLINE void lsm_node_put_before(lsm_node *node, lsm_node *newest) {
    node->older = newest;
    node->jump = newest;
    node->depth = newest == NULL ? 0 : newest->depth + 1;
    /* Myers' skew binary numbers: two jumps of one length are followed by one over both. */
    if (newest != NULL && newest->jump != NULL && newest->jump->jump != NULL) {
        lsm_node *jump = newest->jump;
        if (newest->depth - jump->depth == jump->depth - jump->jump->depth) {
            node->jump = jump->jump;
        }
    }
}

/* Adds so many nodes that were made in the same breath, and that room was promised to. */
static void lsm_memtable_link(lsm_memtable *self, lsm_node *first, size_t count) {
    lsm_node *node = first;
    for (size_t i = 0; i < count; i++) {
        lsm_slot *slot =
            lsm_memtable_slot(self, lsm_node_key(node), node->key_length, node->hash);
        if (slot->newest == NULL) {
            self->keys++;
            slot->hash = node->hash;
            slot->key_length = node->key_length;
        } else if (node->version <= slot->newest->version) {
            self->is_disordered = 1;
        }
        lsm_node_put_before(node, slot->newest);
        slot->newest = node;
        self->added[self->added_count++] = node;
        self->last = node;
        node = lsm_node_behind(node);
    }
    self->count += count;
    self->promised -= count;
}

/* Writes a node down; the one behind it goes where this points to. What linking will look at is
 * fetched meanwhile. */
LSM_INLINE uint8_t *lsm_memtable_write(const lsm_memtable *self, uint8_t *place,
                                       const uint8_t *key, uint32_t key_length,
                                       const uint8_t *value, uint32_t value_length,
                                       uint64_t version) {
    lsm_node *node = (lsm_node *)place;
    node->older = node->jump = NULL;
    node->version = version;
    node->key_length = key_length;
    node->value_length = value_length;
    node->hash = lsm_memtable_hash(self, key, key_length);
    node->depth = 0;
    lsm_prefetch(&self->slots[node->hash & (self->slot_count - 1)]);
    memcpy(place + sizeof(lsm_node), key, key_length);
    if (value_length) {
        memcpy(place + sizeof(lsm_node) + key_length, value, value_length);
    }
    return place + lsm_node_size(key_length, value_length);
}

/* What the operations of a batch come to. */
typedef struct lsm_measure {
    size_t count;
    size_t size;    /* of their nodes */
    size_t payload; /* of their keys and values */
} lsm_measure;

/* Measures the operations up to the end; 0 if that is no batch of so many. */
static int lsm_batch_measure(const uint8_t *at, const uint8_t *end, uint32_t count,
                             lsm_measure *found) {
    lsm_operation operation;
    memset(found, 0, sizeof(*found));
    for (; found->count < count; found->count++) {
        at = lsm_operation_read(at, end, &operation);
        if (at == NULL) {
            return 0;
        }
        /* Each takes a byte of the batch for some tens here, so that nothing overflows. */
        found->size += (size_t)lsm_node_size(operation.key_length, operation.value_length);
        found->payload += (size_t)operation.key_length + operation.value_length;
    }
    return at == end;
}

/* Makes the nodes of operations that were measured, from a sequence number on, and promises them
 * room; the first one, and the last. NULL: there is no memory for them. */
static lsm_node *lsm_memtable_prepare(lsm_memtable *self, const uint8_t *at, const uint8_t *end,
                                      uint64_t sequence, const lsm_measure *measured,
                                      lsm_node **last) {
    if (!lsm_memtable_promise(self, measured->count)) {
        return NULL;
    }
    uint8_t *place = lsm_arena_take(self->arena, measured->size);
    if (place == NULL) {
        self->promised -= measured->count;
        return NULL;
    }
    lsm_node *first = (lsm_node *)place;
    lsm_operation each = {0, 0, 0, NULL, NULL};
    for (size_t i = 0; i < measured->count; i++) {
        at = lsm_operation_read(at, end, &each);
        *last = (lsm_node *)place;
        place = lsm_memtable_write(self, place, each.key, each.key_length, each.value,
                                   each.value_length, (sequence + i) << 8 | (uint64_t)each.kind);
    }
    return first;
}

/* Takes back nodes that were prepared, and will not be linked. */
static void lsm_memtable_withdraw(lsm_memtable *self, lsm_arena *arena, const lsm_node *first,
                                  size_t count, size_t size) {
    self->promised -= count;
    lsm_arena_give_back(arena, (const uint8_t *)first, size);
}

/* The bytes that are held for nodes, for finding them, and for their order. */
static size_t lsm_memtable_memory(const lsm_memtable *self) {
    return lsm_arena_used(self->arena) + self->slot_count * sizeof(lsm_slot) +
           self->added_room * sizeof(lsm_node *);
}

/* Copies the nodes that no run has yet. */
static void lsm_memtable_copy_added(const lsm_memtable *self, lsm_node **nodes) {
    for (size_t i = 0; i < self->added_count; i++) {
        nodes[i] = self->added[i];
    }
}

/* What was added is in a run that was made elsewhere. */
static void lsm_memtable_forget_added(lsm_memtable *self) {
    self->added_count = 0;
    if (self->promised == 0) {
        free(self->added);
        self->added = NULL;
        self->added_room = 0;
    }
}

/* How much memory a memtable may take for each byte of its capacity, and how much when the arrays
 * that are soon full have doubled their room. Under LevelDB's count one of usual entries takes 1.4
 * times its capacity. */
#define LSM_MEMORY_SHARE 1.45
#define LSM_DOUBLED_SHARE 1.5

/* The bytes that are added soon: a sixteenth of its room is left to an array. */
LSM_INLINE size_t lsm_memtable_growth(const lsm_memtable *self) {
    const size_t slots = self->slot_count, room = self->added_room;
    size_t growth = 0;
    if (self->keys > slots - slots / 4 - slots / 16) {
        growth += slots * sizeof(lsm_slot);
    }
    if (self->added_count > room - room / 16) {
        growth += room * sizeof(lsm_node *);
    }
    return growth;
}

/* Whether it takes as much memory as its capacity allows. */
LSM_INLINE int lsm_memtable_is_full(const lsm_memtable *self, size_t capacity) {
    const size_t memory = lsm_memtable_memory(self);
    return (double)memory > LSM_MEMORY_SHARE * (double)capacity ||
           (double)(memory + lsm_memtable_growth(self)) > LSM_DOUBLED_SHARE * (double)capacity;
}

/* Makes one run of what was added and of runs that were there, the largest first: `total` nodes.
 * What was added is in order then. 0: there is no memory for it, and all is as it was. */
static int lsm_memtable_order(lsm_memtable *self, const lsm_run *const *runs, size_t run_count,
                              size_t total, lsm_run *ordered) {
    if (total > SIZE_MAX / sizeof(lsm_sortable) / 2) {
        return 0;
    }
    lsm_node **nodes = (lsm_node **)malloc(total * sizeof(*nodes));
    lsm_sortable *items = (lsm_sortable *)malloc(2 * total * sizeof(*items));
    if (nodes == NULL || items == NULL) {
        free(nodes);
        free(items);
        return 0;
    }
    lsm_sortable *scratch = items + total;
    size_t at = 0;
    for (size_t i = 0; i < run_count; i++) {
        for (size_t j = 0; j < runs[i]->count; j++) {
            items[at++].node = runs[i]->nodes[j];
        }
    }
    for (size_t i = 0; i < self->added_count; i++) {
        items[at++].node = self->added[i];
    }
    size_t skipped = lsm_shared_prefix(items, total);
    for (size_t i = 0; i < total; i++) {
        items[i].prefix = lsm_prefix_of(items[i].node, skipped);
    }
    size_t start = total - self->added_count;
    lsm_sort(items + start, scratch, self->added_count);
    for (size_t i = run_count; i-- > 0;) {
        size_t count = runs[i]->count;
        start -= count;
        lsm_merge(scratch, items + start, count, total - start);
        memcpy(items + start, scratch, (total - start) * sizeof(*items));
    }
    for (size_t i = 0; i < total; i++) {
        nodes[i] = items[i].node;
    }
    free(items);
    ordered->nodes = nodes;
    ordered->count = total;
    lsm_memtable_forget_added(self);
    return 1;
}

#endif
