/* A SuRF filter asked for keys and for ranges, and one that is built: what surf.py does.
 *
 * Plain C99 and no Python. A walk takes no more steps than what is asked for has bytes, and there is
 * no recursion.
 */
#ifndef LSM_SURF_H
#define LSM_SURF_H

#include "hashing.h"
#include "louds.h"

typedef struct lsm_key {
    const uint8_t *data;
    size_t size;
} lsm_key;

typedef struct lsm_surf {
    lsm_louds trie;
    const uint8_t *suffixes;
    uint64_t num_keys;
    uint64_t seed;
    uint64_t salt;
    uint32_t hash_bits;
    uint32_t real_bits;
} lsm_surf;

/* ---- suffixes ---- */

/* The first bits of a key behind so many bytes, and zeros behind its end. */
LSM_INLINE uint64_t lsm_surf_real_bits(const lsm_surf *filter, lsm_key key, size_t depth) {
    uint64_t following = 0;
    for (size_t at = depth; at < depth + 4; at++) {
        following = following << 8 | (at < key.size ? key.data[at] : 0u);
    }
    return following >> (32 - filter->real_bits);
}

/* What is kept of a key that ends in an edge, or would, if it were in. */
LSM_INLINE uint64_t lsm_surf_suffix_of(const lsm_surf *filter, lsm_key key, size_t depth) {
    uint64_t suffix = lsm_surf_real_bits(filter, key, depth) << filter->hash_bits;
    if (filter->hash_bits) {
        uint64_t mixed = lsm_mix(lsm_xxh3_64(key.data, key.size, filter->seed), filter->salt);
        suffix |= mixed >> (64 - filter->hash_bits);
    }
    return suffix;
}

/* What is kept of the key that ends in an edge. */
LSM_INLINE uint64_t lsm_surf_suffix(const lsm_surf *filter, uint64_t edge) {
    uint64_t bits = filter->hash_bits + filter->real_bits;
    if (bits == 0) {
        return 0;
    }
    uint64_t at = lsm_louds_leaf(&filter->trie, edge) * bits;
    return lsm_load64(filter->suffixes + at / 8) >> at % 8 & (((uint64_t)1 << bits) - 1);
}

/* Whether the key that ends in an edge may be this bound or more; it begins as that does. */
LSM_INLINE int lsm_surf_may_be_from(
    const lsm_surf *filter, uint64_t edge, size_t depth, lsm_key first
) {
    uint64_t real = lsm_surf_suffix(filter, edge) >> filter->hash_bits;
    return real >= lsm_surf_real_bits(filter, first, depth);
}

/* Whether the key that ends in an edge may be below this bound; it begins as that does. */
LSM_INLINE int lsm_surf_may_be_below(
    const lsm_surf *filter, uint64_t edge, size_t depth, lsm_key behind
) {
    uint64_t real = lsm_surf_suffix(filter, edge) >> filter->hash_bits;
    return depth < behind.size && real <= lsm_surf_real_bits(filter, behind, depth);
}

/* ---- keys ---- */

LSM_APART int lsm_surf_has(const lsm_surf *filter, lsm_key key) {
    const lsm_louds *trie = &filter->trie;
    uint64_t node = 0, edge, stop;
    if (filter->num_keys == 0) {
        return 0;
    }
    for (size_t depth = 0; depth < key.size; depth++) {
        edge = lsm_louds_edges(trie, node, &stop);
        edge = lsm_louds_at_least(trie, key.data[depth], edge, stop);
        if (edge == stop || trie->labels[edge] != key.data[depth]) {
            return 0;
        }
        if (!lsm_louds_leads_on(trie, edge)) {
            return lsm_surf_suffix(filter, edge) == lsm_surf_suffix_of(filter, key, depth + 1);
        }
        node = lsm_louds_child(trie, edge);
    }
    return lsm_bit(trie->ends, node);
}

/* ---- ranges ---- */

/* Whether a key from `first` on may be below a node that stands for its beginning. */
LSM_APART int lsm_surf_goes_on(const lsm_surf *filter, uint64_t node, size_t depth, lsm_key first) {
    const lsm_louds *trie = &filter->trie;
    uint64_t lowest, stop;
    for (; depth < first.size; depth++) {
        lowest = lsm_louds_edges(trie, node, &stop);
        lowest = lsm_louds_at_least(trie, first.data[depth], lowest, stop);
        if (lowest == stop) {
            return 0;
        }
        if (lowest + 1 < stop || trie->labels[lowest] > first.data[depth]) {
            return 1;
        }
        if (!lsm_louds_leads_on(trie, lowest)) {
            return lsm_surf_may_be_from(filter, lowest, depth + 1, first);
        }
        node = lsm_louds_child(trie, lowest);
    }
    return 1;
}

/* Whether a key below `behind` may be in a node that stands for its beginning. */
LSM_APART int lsm_surf_begins_below(
    const lsm_surf *filter, uint64_t node, size_t depth, lsm_key behind
) {
    const lsm_louds *trie = &filter->trie;
    uint64_t start, stop;
    for (; depth < behind.size; depth++) {
        start = lsm_louds_edges(trie, node, &stop);
        if (lsm_bit(trie->ends, node)
            || (start < stop && trie->labels[start] < behind.data[depth])) {
            return 1;
        }
        if (start == stop || trie->labels[start] > behind.data[depth]) {
            return 0;
        }
        if (!lsm_louds_leads_on(trie, start)) {
            return lsm_surf_may_be_below(filter, start, depth + 1, behind);
        }
        node = lsm_louds_child(trie, start);
    }
    return 0;
}

/* Whether a key may be in the range, of a node at which its bounds part; `lowest` is the first of
 * its edges that is not below the low one. */
LSM_INLINE int lsm_surf_between(
    const lsm_surf *filter, uint64_t lowest, uint64_t stop, size_t depth, lsm_key first,
    lsm_key behind
) {
    const lsm_louds *trie = &filter->trie;
    uint8_t low = first.data[depth], high = behind.data[depth];
    if (lowest < stop && trie->labels[lowest] == low) {
        if (lsm_louds_leads_on(trie, lowest)
                ? lsm_surf_goes_on(filter, lsm_louds_child(trie, lowest), depth + 1, first)
                : lsm_surf_may_be_from(filter, lowest, depth + 1, first)) {
            return 1;
        }
        lowest++;
    }
    if (lowest == stop || trie->labels[lowest] > high) {
        return 0;
    }
    if (trie->labels[lowest] < high) {
        return 1;
    }
    if (!lsm_louds_leads_on(trie, lowest)) {
        return lsm_surf_may_be_below(filter, lowest, depth + 1, behind);
    }
    return lsm_surf_begins_below(filter, lsm_louds_child(trie, lowest), depth + 1, behind);
}

LSM_INLINE int lsm_surf_precedes(lsm_key one, lsm_key two) {
    size_t both = one.size < two.size ? one.size : two.size;
    int order = both ? memcmp(one.data, two.data, both) : 0;
    return order < 0 || (order == 0 && one.size < two.size);
}

/* Whether a key may be in a range; without a bound behind it where that is NULL. */
LSM_APART int lsm_surf_has_between(const lsm_surf *filter, lsm_key first, const lsm_key *bound) {
    const lsm_louds *trie = &filter->trie;
    uint64_t node = 0, lowest, stop;
    size_t depth = 0;
    if (filter->num_keys == 0 || (bound != NULL && !lsm_surf_precedes(first, *bound))) {
        return 0;
    }
    if (bound == NULL) {
        return lsm_surf_goes_on(filter, 0, 0, first);
    }
    for (; depth < first.size; depth++) {
        lowest = lsm_louds_edges(trie, node, &stop);
        lowest = lsm_louds_at_least(trie, first.data[depth], lowest, stop);
        if (first.data[depth] != bound->data[depth]) {
            return lsm_surf_between(filter, lowest, stop, depth, first, *bound);
        }
        if (lowest == stop || trie->labels[lowest] != first.data[depth]) {
            return 0;
        }
        if (!lsm_louds_leads_on(trie, lowest)) {
            return lsm_surf_may_be_below(filter, lowest, depth + 1, *bound)
                && lsm_surf_may_be_from(filter, lowest, depth + 1, first);
        }
        node = lsm_louds_child(trie, lowest);
    }
    return lsm_surf_begins_below(filter, node, depth, *bound);
}

/* ---- building ---- */

/* What of a level has been counted, and then where its next edge, leaf and node come. */
typedef struct lsm_surf_level {
    uint64_t edges;
    uint64_t leaves;
    uint64_t nodes; /* on this level; while it is filled, the number of the newest */
} lsm_surf_level;

/* How many bytes both begin with. */
LSM_INLINE size_t lsm_surf_shared(lsm_key one, lsm_key two) {
    size_t both = one.size < two.size ? one.size : two.size, at = 0;
    for (; at + 8 <= both; at += 8) {
        uint64_t differing = lsm_load64(one.data + at) ^ lsm_load64(two.data + at);
        if (differing) {
            return at + (size_t)lsm_trailing_zeros(differing) / 8;
        }
    }
    while (at < both && one.data[at] == two.data[at]) {
        at++;
    }
    return at;
}

/* How deep a key goes: what it shares with the one before it or behind it, whichever is more. */
LSM_INLINE size_t lsm_surf_depth(const size_t *shared, size_t index) {
    return shared[index] > shared[index + 1] ? shared[index] : shared[index + 1];
}

/* Fills shared[0 .. count], what keys share with those before them; the most there is. */
LSM_APART size_t lsm_surf_compare(const lsm_key *keys, size_t count, size_t *shared) {
    size_t most = 0;
    shared[0] = shared[count] = 0;
    for (size_t index = 1; index < count; index++) {
        shared[index] = lsm_surf_shared(keys[index - 1], keys[index]);
        most = shared[index] > most ? shared[index] : most;
    }
    return most;
}

/* Counts the levels' edges, leaves and nodes; levels are zero, one more than the most shared, and
 * one more for nodes. How many edges there are in all. */
LSM_APART uint64_t lsm_surf_count(
    const lsm_key *keys, size_t count, const size_t *shared, lsm_surf_level *levels
) {
    uint64_t edges = 0;
    levels[0].nodes = count > 0;
    for (size_t index = 0; index < count; index++) {
        size_t last = lsm_surf_depth(shared, index);
        for (size_t depth = shared[index]; depth <= last && depth < keys[index].size; depth++) {
            levels[depth].edges++;
            levels[depth].leaves += depth == last;
            levels[depth + 1].nodes += depth < last;
            edges++;
        }
    }
    return edges;
}

LSM_INLINE void lsm_surf_set(uint8_t *row, uint64_t index) {
    row[index >> 3] = (uint8_t)(row[index >> 3] | 1u << (index & 7));
}

/* Writes all edges where lsm_surf_count() found room for them; the rows are zero, and behind the
 * suffixes eight bytes can be written. */
LSM_APART void lsm_surf_fill(
    const lsm_surf *filter, const lsm_key *keys, size_t count, const size_t *shared,
    lsm_surf_level *levels, size_t depths
) {
    uint8_t *has_child = (uint8_t *)filter->trie.has_child, *firsts = (uint8_t *)filter->trie.firsts;
    uint8_t *ends = (uint8_t *)filter->trie.ends, *labels = (uint8_t *)filter->trie.labels;
    uint8_t *suffixes = (uint8_t *)filter->suffixes;
    uint64_t bits = filter->hash_bits + filter->real_bits;
    lsm_surf_level next = {0, 0, 0}, counted;
    for (size_t depth = 0; depth < depths; depth++) {
        counted = levels[depth];
        levels[depth] = next;
        next.edges += counted.edges;
        next.leaves += counted.leaves;
        next.nodes += counted.nodes;
    }
    if (count > 0 && keys[0].size == 0) {
        lsm_surf_set(ends, 0);
    }
    for (size_t index = 0; index < count; index++) {
        lsm_key key = keys[index];
        size_t last = lsm_surf_depth(shared, index), depth = shared[index];
        /* The key before ends where this one goes on, or has an edge in that node already. */
        int is_first = index == 0 || keys[index - 1].size == depth;
        for (; depth <= last && depth < key.size; depth++, is_first = 1) {
            uint64_t edge = levels[depth].edges++;
            labels[edge] = key.data[depth];
            if (is_first) {
                lsm_surf_set(firsts, edge);
            }
            if (depth < last) {
                uint64_t node = levels[depth + 1].nodes++;
                lsm_surf_set(has_child, edge);
                if (depth + 1 == key.size) {
                    lsm_surf_set(ends, node);
                }
            } else if (bits) {
                uint64_t at = levels[depth].leaves++ * bits;
                uint64_t suffix = lsm_surf_suffix_of(filter, key, depth + 1);
                lsm_store64(suffixes + at / 8, lsm_load64(suffixes + at / 8) | suffix << at % 8);
            }
        }
    }
}

#endif
