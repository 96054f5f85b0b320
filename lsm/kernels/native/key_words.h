/* Keys as numbers: eight of their bytes, so that one comparison does for most of a search. */
#ifndef LSM_KEY_WORDS_H
#define LSM_KEY_WORDS_H

#include "wide.h"

#define LSM_WORD_BYTES 8u

LSM_INLINE uint64_t lsm_load64_big(const uint8_t *from) {
    return lsm_swap64(lsm_load64(from));
}

/* The first eight bytes as a number, zero-padded where there are less. */
LSM_INLINE uint64_t lsm_word(const uint8_t *from, size_t length) {
    if (length >= LSM_WORD_BYTES) {
        return lsm_load64_big(from);
    }
    if (length >= 4) {
        uint64_t high = lsm_swap64(lsm_load32(from));
        return high | lsm_swap64(lsm_load32(from + length - 4)) >> 32 << (64 - 8 * length);
    }
    if (length == 0) {
        return 0;
    }
    return (uint64_t)from[0] << 56 | (uint64_t)from[length / 2] << (56 - 8 * (length / 2)) |
           (uint64_t)from[length - 1] << (64 - 8 * length);
}

/* A mask of a word's first bytes. */
LSM_INLINE uint64_t lsm_first_bytes(uint32_t count) {
    return count >= LSM_WORD_BYTES ? ~0ull : ~(~0ull >> 8 * count);
}

/* Below, above or equal to zero, as memcmp() has it, without a call. */
LSM_INLINE int lsm_order(const uint8_t *one, const uint8_t *other, size_t length) {
    for (;;) {
        uint64_t a = lsm_word(one, length), b = lsm_word(other, length);
        if (a != b) {
            return a < b ? -1 : 1;
        }
        if (length <= LSM_WORD_BYTES) {
            return 0;
        }
        one += LSM_WORD_BYTES;
        other += LSM_WORD_BYTES;
        length -= LSM_WORD_BYTES;
    }
}

/* How many bytes are the same from the first on. */
LSM_INLINE uint32_t lsm_alike(const uint8_t *one, const uint8_t *other, uint32_t length) {
    uint32_t at = 0;
    for (; length - at >= LSM_WORD_BYTES; at += LSM_WORD_BYTES) {
        uint64_t difference = lsm_load64(one + at) ^ lsm_load64(other + at);
        if (difference) {
            return at + (uint32_t)lsm_trailing_zeros(difference) / 8;
        }
    }
    while (at < length && one[at] == other[at]) {
        at++;
    }
    return at;
}

/* As memcmp() of two keys, the shorter one first where the other begins with it. */
LSM_INLINE int lsm_compare_keys(const uint8_t *one, uint32_t one_length, const uint8_t *other,
                                uint32_t other_length) {
    int order = lsm_order(one, other, one_length < other_length ? one_length : other_length);
    return order ? order : (one_length > other_length) - (one_length < other_length);
}

#endif
