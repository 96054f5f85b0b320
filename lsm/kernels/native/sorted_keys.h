/* Ascending positions, a key and a version each, to search: a table's index, a level's bounds.
 *
 * Of every key the eight bytes behind those that all have in common stand in an array, as numbers
 * that compare as the bytes do. A search goes through them, and looks at keys only where these
 * eight bytes are equal. Where there are many, the span of numbers is cut into as many buckets of one
 * width: keys that are spread evenly have one or two to look at then.
 */
#ifndef LSM_SORTED_KEYS_H
#define LSM_SORTED_KEYS_H

#include <stdlib.h>

#include "key_words.h"

typedef struct {
    uint32_t count;
    uint32_t common;          /* bytes that all keys begin with */
    uint64_t *words;          /* of each key the bytes behind those, as lsm_word() has them */
    uint64_t *versions;       /* of one key in descending order */
    const uint8_t **keys;
    uint32_t *lengths;
    uint32_t buckets;         /* a power of two; 0 where there are none */
    uint32_t shift;           /* of what a word is above the first one, to its bucket */
    uint32_t *starts;         /* the first word of each bucket, and how many words there are */
} lsm_sorted_keys;

#define LSM_LEAST_IN_BUCKETS 16u
#define LSM_MOST_BUCKETS (1u << 16)

LSM_INLINE void lsm_sorted_keys_free(lsm_sorted_keys *sorted) {
    free(sorted->words);
    memset(sorted, 0, sizeof *sorted);
}

/* Room for so many keys, which the caller fills in; 0, or -1 where there is no memory. */
LSM_INLINE int lsm_sorted_keys_reserve(lsm_sorted_keys *sorted, size_t count) {
    const size_t each = 2 * sizeof(uint64_t) + sizeof(const uint8_t *) + sizeof(uint32_t);
    uint32_t buckets = 0;
    memset(sorted, 0, sizeof *sorted);
    if (count > UINT32_MAX - 1) {
        return -1;
    }
    if (count >= LSM_LEAST_IN_BUCKETS) {
        for (buckets = LSM_LEAST_IN_BUCKETS; buckets < count && buckets < LSM_MOST_BUCKETS;) {
            buckets *= 2;
        }
    }
    sorted->words = malloc(count * each + LSM_WORDS_BEHIND * sizeof(uint64_t) +
                           ((size_t)buckets + 1) * sizeof(uint32_t));
    if (sorted->words == NULL) {
        return -1;
    }
    sorted->versions = sorted->words + count + LSM_WORDS_BEHIND;
    sorted->keys = (const uint8_t **)(sorted->versions + count);
    sorted->lengths = (uint32_t *)(sorted->keys + count);
    sorted->starts = sorted->lengths + count;
    sorted->buckets = buckets;
    sorted->count = (uint32_t)count;
    return 0;
}

/* Where each bucket begins. Words that do not ascend have them begin somewhere among the others. */
LSM_INLINE void lsm_sorted_keys_fill_buckets(lsm_sorted_keys *sorted) {
    const uint64_t *words = sorted->words;
    const uint64_t span = words[sorted->count - 1] - words[0];
    uint32_t bucket = 0;
    sorted->shift = 0;
    while (span >> sorted->shift >= sorted->buckets) {
        sorted->shift++;
    }
    for (uint32_t at = 0; at < sorted->count; at++) {
        const uint64_t of = (words[at] - words[0]) >> sorted->shift;
        while (bucket <= of && bucket < sorted->buckets) {
            sorted->starts[bucket++] = at;
        }
    }
    while (bucket <= sorted->buckets) {
        sorted->starts[bucket++] = sorted->count;
    }
}

/* Once all keys are filled in: what they have in common, and their words.
 *
 * Keys that do not ascend, as a damaged index has them, are no harm but to what is found. */
LSM_INLINE void lsm_sorted_keys_seal(lsm_sorted_keys *sorted) {
    uint32_t common = sorted->count ? sorted->lengths[0] : 0;
    for (uint32_t at = 1; at < sorted->count; at++) {
        uint32_t length = sorted->lengths[at];
        common = lsm_alike(sorted->keys[0], sorted->keys[at], length < common ? length : common);
    }
    sorted->common = common;
    for (uint32_t at = 0; at < sorted->count; at++) {
        sorted->words[at] = lsm_word(sorted->keys[at] + common, sorted->lengths[at] - common);
    }
    for (uint32_t at = 0; at < LSM_WORDS_BEHIND; at++) {
        sorted->words[sorted->count + at] = UINT64_MAX;
    }
    if (sorted->buckets) {
        lsm_sorted_keys_fill_buckets(sorted);
    }
}

/* How many words are below this one: those of the buckets before its own, and some of its own. */
LSM_INLINE uint32_t lsm_sorted_keys_below(const lsm_sorted_keys *sorted, uint64_t word, int simd) {
    if (sorted->buckets == 0) {
        return lsm_words_below(sorted->words, sorted->count, word, simd);
    }
    if (word <= sorted->words[0]) {
        return 0;
    }
    const uint64_t bucket = (word - sorted->words[0]) >> sorted->shift;
    if (bucket >= sorted->buckets) {
        return sorted->count;
    }
    const uint32_t start = sorted->starts[bucket], end = sorted->starts[bucket + 1];
    return start + lsm_words_below(sorted->words + start, end - start, word, simd);
}

LSM_INLINE int lsm_is_before(
    const lsm_sorted_keys *sorted, uint32_t at, const uint8_t *key, uint32_t length,
    uint64_t version
) {
    int order = lsm_compare_keys(sorted->keys[at], sorted->lengths[at], key, length);
    return order < 0 || (order == 0 && sorted->versions[at] > version);
}

/* The number of the first position from (key, version) on; as many as there are, if none is.
 *
 * Under UINT64_MAX that is the first with this key or a later one. */
LSM_INLINE uint32_t lsm_sorted_keys_seek(
    const lsm_sorted_keys *sorted, const uint8_t *key, uint32_t length, uint64_t version, int simd
) {
    uint32_t count = sorted->count, common = sorted->common;
    if (count == 0) {
        return 0;
    }
    if (common && (length < common || !lsm_same(key, sorted->keys[0], common))) {
        return lsm_order(key, sorted->keys[0], length < common ? length : common) > 0 ? count : 0;
    }
    uint64_t word = lsm_word(key + common, length - common);
    const uint64_t *words = sorted->words;
    uint32_t low = lsm_sorted_keys_below(sorted, word, simd);
    /* Keys of the same word, if any, are from here on, and few unless they share a long prefix. */
    uint32_t high = low;
    for (uint32_t step = 1; high < count && words[high] == word; step *= 2) {
        high = count - high > step ? high + step : count;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (words[middle] < word ||
            (words[middle] == word && lsm_is_before(sorted, middle, key, length, version))) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

#endif
