/* A trie as rows of bits and labels, edge by edge in level order: what louds.py does.
 *
 * Plain C99 and no Python. The rows are those of a payload; behind the last of their words at least
 * eight bytes can be read. lsm_louds_measure() checks all of it, and only then the rest may be asked.
 */
#ifndef LSM_LOUDS_H
#define LSM_LOUDS_H

#include "wide.h"

#define LSM_LOUDS_BLOCK 512 /* edges */
#define LSM_LOUDS_WORDS (LSM_LOUDS_BLOCK / 64)

/* How many edges before a block lead to nodes, and how many are their node's first. */
typedef struct lsm_louds_rank {
    uint32_t children;
    uint32_t firsts;
} lsm_louds_rank;

typedef struct lsm_louds {
    const uint8_t *has_child;
    const uint8_t *firsts;
    const uint8_t *ends;
    const uint8_t *labels;
    uint64_t nodes;
    uint64_t edges;
    lsm_louds_rank *ranks;  /* of each block, and one behind the last */
    uint32_t *samples;      /* the block in which every 512th node has its first edge */
} lsm_louds;

/* In the order of NO_FIRST and what follows in filters/surf.py. */
enum lsm_louds_fault {
    LSM_LOUDS_SOUND,
    LSM_LOUDS_NO_FIRST,
    LSM_LOUDS_EARLY,
    LSM_LOUDS_DISORDER,
    LSM_LOUDS_FEW_NODES,
    LSM_LOUDS_ORPHANS
};

LSM_INLINE int lsm_bit(const uint8_t *row, uint64_t index) {
    return row[index >> 3] >> (index & 7) & 1;
}

LSM_INLINE uint64_t lsm_louds_blocks(uint64_t edges) {
    return edges / LSM_LOUDS_BLOCK + 1;
}

LSM_INLINE uint64_t lsm_louds_samples(uint64_t nodes) {
    return nodes / LSM_LOUDS_BLOCK + 1;
}

/* Checks every edge and fills ranks and samples, which have room for lsm_louds_blocks() and
 * lsm_louds_samples(). What is wrong, and where; no edge is counted that would not fit. */
LSM_APART enum lsm_louds_fault lsm_louds_measure(lsm_louds *trie, uint64_t *place) {
    uint64_t children = 0, nodes = 0;
    for (uint64_t edge = 0; edge < trie->edges; edge++) {
        if (edge % LSM_LOUDS_BLOCK == 0) {
            trie->ranks[edge / LSM_LOUDS_BLOCK].children = (uint32_t)children;
            trie->ranks[edge / LSM_LOUDS_BLOCK].firsts = (uint32_t)nodes;
        }
        if (lsm_bit(trie->firsts, edge)) {
            if (nodes > children) {
                *place = nodes;
                return LSM_LOUDS_EARLY;
            }
            if (nodes % LSM_LOUDS_BLOCK == 0 && nodes < trie->nodes) {
                trie->samples[nodes / LSM_LOUDS_BLOCK] = (uint32_t)(edge / LSM_LOUDS_BLOCK);
            }
            nodes++;
        } else if (edge == 0) {
            *place = edge;
            return LSM_LOUDS_NO_FIRST;
        } else if (trie->labels[edge] <= trie->labels[edge - 1]) {
            *place = edge;
            return LSM_LOUDS_DISORDER;
        }
        children += (uint64_t)lsm_bit(trie->has_child, edge);
    }
    if (trie->edges % LSM_LOUDS_BLOCK == 0) {
        trie->ranks[trie->edges / LSM_LOUDS_BLOCK].children = (uint32_t)children;
        trie->ranks[trie->edges / LSM_LOUDS_BLOCK].firsts = (uint32_t)nodes;
    }
    if (trie->edges == 0) {
        nodes = trie->nodes;
    }
    if (nodes != trie->nodes) {
        *place = nodes;
        return LSM_LOUDS_FEW_NODES;
    }
    if (children != (trie->nodes ? trie->nodes - 1 : 0)) {
        *place = children;
        return LSM_LOUDS_ORPHANS;
    }
    return LSM_LOUDS_SOUND;
}

/* In how many nodes keys end. */
LSM_APART uint64_t lsm_louds_ends(const lsm_louds *trie) {
    uint64_t count = 0;
    for (uint64_t word = 0; word < (trie->nodes + 63) / 64; word++) {
        count += (uint64_t)lsm_popcount(lsm_load64(trie->ends + 8 * word));
    }
    return count;
}

/* How many edges before this one lead to nodes. */
LSM_INLINE uint64_t lsm_louds_children(const lsm_louds *trie, uint64_t edge) {
    uint64_t count = trie->ranks[edge / LSM_LOUDS_BLOCK].children;
    uint64_t word = edge / LSM_LOUDS_BLOCK * LSM_LOUDS_WORDS;
    for (; word < edge / 64; word++) {
        count += (uint64_t)lsm_popcount(lsm_load64(trie->has_child + 8 * word));
    }
    if (edge % 64) {
        uint64_t bits = lsm_load64(trie->has_child + 8 * word);
        count += (uint64_t)lsm_popcount(bits & (((uint64_t)1 << edge % 64) - 1));
    }
    return count;
}

/* Where the bit stands that has so many set bits of the word below it; there is one. */
LSM_INLINE uint64_t lsm_louds_select_in(uint64_t word, uint64_t below) {
    uint64_t at = 0;
    for (int half = 32; half >= 8; half /= 2) {
        uint64_t count = (uint64_t)lsm_popcount(word >> at & (((uint64_t)1 << half) - 1));
        if (below >= count) {
            below -= count;
            at += (uint64_t)half;
        }
    }
    word >>= at;
    while (below--) {
        word &= word - 1;
    }
    return at + (uint64_t)lsm_trailing_zeros(word);
}

/* The first edge of a node, and the one behind its last. */
LSM_INLINE uint64_t lsm_louds_edges(const lsm_louds *trie, uint64_t node, uint64_t *stop) {
    if (trie->edges == 0) {
        *stop = 0;
        return 0;
    }
    uint64_t sample = node / LSM_LOUDS_BLOCK;
    uint64_t low = trie->samples[sample], high = trie->edges / LSM_LOUDS_BLOCK;
    if (sample + 1 < (trie->nodes + LSM_LOUDS_BLOCK - 1) / LSM_LOUDS_BLOCK) {
        high = trie->samples[sample + 1];
    }
    while (low < high) { /* the last block with no more first edges before it than the node's */
        uint64_t middle = (low + high + 1) / 2;
        if (trie->ranks[middle].firsts <= node) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    uint64_t below = node - trie->ranks[low].firsts;
    uint64_t word = low * LSM_LOUDS_WORDS, words = (trie->edges + 63) / 64;
    uint64_t bits = lsm_load64(trie->firsts + 8 * word);
    while (below >= (uint64_t)lsm_popcount(bits)) {
        below -= (uint64_t)lsm_popcount(bits);
        bits = lsm_load64(trie->firsts + 8 * ++word);
    }
    uint64_t place = lsm_louds_select_in(bits, below);
    uint64_t start = 64 * word + place;
    bits = place == 63 ? 0 : bits >> (place + 1) << (place + 1);
    while (bits == 0 && ++word < words) {
        bits = lsm_load64(trie->firsts + 8 * word);
    }
    *stop = bits ? 64 * word + (uint64_t)lsm_trailing_zeros(bits) : trie->edges;
    return start;
}

/* The first of these edges, which are one node's, whose label is this byte or more. */
LSM_INLINE uint64_t lsm_louds_at_least(
    const lsm_louds *trie, uint8_t byte, uint64_t start, uint64_t stop
) {
    while (start < stop) {
        uint64_t middle = (start + stop) / 2;
        if (trie->labels[middle] < byte) {
            start = middle + 1;
        } else {
            stop = middle;
        }
    }
    return start;
}

LSM_INLINE int lsm_louds_leads_on(const lsm_louds *trie, uint64_t edge) {
    return lsm_bit(trie->has_child, edge);
}

/* The node that an edge leads to, if it leads to one. */
LSM_INLINE uint64_t lsm_louds_child(const lsm_louds *trie, uint64_t edge) {
    return 1 + lsm_louds_children(trie, edge);
}

/* How many edges before this one have a key that ends in them. */
LSM_INLINE uint64_t lsm_louds_leaf(const lsm_louds *trie, uint64_t edge) {
    return edge - lsm_louds_children(trie, edge);
}

#endif
