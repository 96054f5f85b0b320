/* Keys as numbers: eight of their bytes, so that one comparison does for most of a search. */
#ifndef LSM_KEY_WORDS_H
#define LSM_KEY_WORDS_H

#include "simd.h"
#include "wide.h"

#define LSM_WORD_BYTES 8u
#define LSM_WORDS_AT_ONCE 64u /* so many are compared without a branch, a bit for each */
#define LSM_WORDS_BEHIND 8u   /* words that no key has, so that vectors need not end with the rest */
#define LSM_FEW_WORDS 4u      /* so many are compared in place; no more than stand behind */

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

/* Whether these bytes are the same, as most often they are. */
LSM_INLINE int lsm_same(const uint8_t *one, const uint8_t *other, uint32_t length) {
    if (length >= LSM_WORD_BYTES) {
        const uint32_t last = length - LSM_WORD_BYTES;
        for (uint32_t at = 0; at < last; at += LSM_WORD_BYTES) {
            if (lsm_load64(one + at) != lsm_load64(other + at)) {
                return 0;
            }
        }
        return lsm_load64(one + last) == lsm_load64(other + last);
    }
    return lsm_word(one, length) == lsm_word(other, length);
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

/* How many of up to LSM_WORDS_AT_ONCE ascending words, and of LSM_WORDS_BEHIND - 1 behind them, are
 * below this one. */
#if LSM_X86
LSM_TARGET_AVX2 static uint32_t lsm_below_avx2(const uint64_t *words, uint32_t count,
                                               uint64_t word) {
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN); /* there are only signed comparisons */
    const __m256i sought = _mm256_xor_si256(_mm256_set1_epi64x((long long)word), sign);
    uint64_t below = 0;
    for (uint32_t i = 0; i < count; i += 4) {
        __m256i some = _mm256_loadu_si256((const __m256i *)(words + i));
        __m256i less = _mm256_cmpgt_epi64(sought, _mm256_xor_si256(some, sign));
        below |= (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(less)) << i;
    }
    return (uint32_t)lsm_popcount(below);
}

LSM_TARGET_AVX512 static uint32_t lsm_below_avx512(const uint64_t *words, uint32_t count,
                                                   uint64_t word) {
    const __m512i sought = _mm512_set1_epi64((long long)word);
    uint64_t below = 0;
    for (uint32_t i = 0; i < count; i += 8) {
        __m512i some = _mm512_loadu_si512((const void *)(words + i));
        below |= (uint64_t)_mm512_cmplt_epu64_mask(some, sought) << i;
    }
    return (uint32_t)lsm_popcount(below);
}
#endif

/* How many of these ascending words are below this one. Behind the last of them stand
 * LSM_WORDS_BEHIND that are above all others. `simd` is one of enum lsm_simd. */
LSM_INLINE uint32_t lsm_words_below(const uint64_t *words, uint32_t count, uint64_t word,
                                    int simd) {
    const uint32_t at_once = simd == LSM_PORTABLE ? 1 : LSM_WORDS_AT_ONCE;
    uint32_t base = 0, left = count;
    if (count <= LSM_FEW_WORDS) { /* as a tree's upper levels have tables: no call is worth it */
        return (uint32_t)(words[0] < word) + (words[1] < word) + (words[2] < word) +
               (words[3] < word);
    }
    while (left > at_once) {
        const uint32_t half = left / 2;
        base += (0u - (uint32_t)(words[base + half - 1] < word)) & half;
        left -= half;
    }
#if LSM_X86
    if (simd == LSM_AVX512) {
        return base + lsm_below_avx512(words + base, left, word);
    }
    if (simd == LSM_AVX2) {
        return base + lsm_below_avx2(words + base, left, word);
    }
#endif
    return base + (words[base] < word); /* behind the last one stands a word that is not */
}

#endif
