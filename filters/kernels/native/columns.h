/* What a key asks of a ribbon filter's columns: in each, the slots it names xor to a bit it expects.
 *
 * The slots lie in two neighbouring blocks, which have a word for each column; masks name them. Most
 * of the work is to find out whether many words have an odd number of bits set, which vector units do
 * for four or eight columns at once.
 */
#ifndef LSM_COLUMNS_H
#define LSM_COLUMNS_H

#include "simd.h"
#include "wide.h"

typedef struct lsm_slots {
    const uint8_t *here; /* the words of the first block */
    const uint8_t *behind;
    uint64_t low; /* the slots in the first block */
    uint64_t high;
} lsm_slots;

/* 1 where all columns, of which there are 1 to 32, agree with the bits expected. */
typedef int (*lsm_agreeing)(const lsm_slots *slots, uint32_t columns, uint32_t expected);

LSM_INLINE uint32_t lsm_column(const lsm_slots *slots, uint32_t column) {
    return (uint32_t)lsm_parity((lsm_load64(slots->here + 8 * column) & slots->low) ^
                                (lsm_load64(slots->behind + 8 * column) & slots->high));
}

/* Four columns at once: an absent key gets farther once in sixteen, which is predicted. */
static inline int lsm_agree_portable(const lsm_slots *slots, uint32_t columns, uint32_t expected) {
    uint32_t column = 0, wrong = 0;
    for (; column + 4 <= columns; column += 4) {
        wrong = lsm_column(slots, column) | lsm_column(slots, column + 1) << 1 |
                lsm_column(slots, column + 2) << 2 | lsm_column(slots, column + 3) << 3;
        if ((wrong ^ expected >> column) & 15) {
            return 0;
        }
    }
    for (wrong = 0; column < columns; column++) {
        wrong |= lsm_column(slots, column) ^ (expected >> column & 1);
    }
    return wrong == 0;
}

#if LSM_X86
/* Bit n is 1 where n, of four bits, has an odd number of them set. */
#define LSM_ODD_NIBBLES 0x6996

LSM_TARGET_AVX2 static inline int lsm_agree_avx2(const lsm_slots *slots, uint32_t columns,
                                                 uint32_t expected) {
    const __m256i lanes = _mm256_setr_epi64x(0, 1, 2, 3);
    const __m256i low = _mm256_set1_epi64x((long long)slots->low);
    const __m256i high = _mm256_set1_epi64x((long long)slots->high);
    for (uint32_t first = 0; first < columns; first += 4) {
        __m256i there = _mm256_cmpgt_epi64(_mm256_set1_epi64x(columns - first), lanes);
        const long long *here = (const long long *)(slots->here + 8 * first);
        const long long *behind = (const long long *)(slots->behind + 8 * first);
        __m256i word = _mm256_xor_si256(
            _mm256_and_si256(_mm256_maskload_epi64(here, there), low),
            _mm256_and_si256(_mm256_maskload_epi64(behind, there), high));
        word = _mm256_xor_si256(word, _mm256_srli_epi64(word, 32));
        word = _mm256_xor_si256(word, _mm256_srli_epi64(word, 16));
        word = _mm256_xor_si256(word, _mm256_srli_epi64(word, 8));
        word = _mm256_xor_si256(word, _mm256_srli_epi64(word, 4));
        word = _mm256_and_si256(word, _mm256_set1_epi64x(15));
        word = _mm256_srlv_epi64(_mm256_set1_epi64x(LSM_ODD_NIBBLES), word);
        uint32_t found = (uint32_t)_mm256_movemask_pd(
            _mm256_castsi256_pd(_mm256_slli_epi64(word, 63)));
        uint32_t asked = (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(there));
        if ((found ^ expected >> first) & asked) {
            return 0;
        }
    }
    return 1;
}

LSM_TARGET_AVX512 static inline int lsm_agree_avx512(const lsm_slots *slots, uint32_t columns,
                                                     uint32_t expected) {
    const __m512i low = _mm512_set1_epi64((long long)slots->low);
    const __m512i high = _mm512_set1_epi64((long long)slots->high);
    for (uint32_t first = 0; first < columns; first += 8) {
        uint32_t left = columns - first;
        __mmask8 there = (__mmask8)(left < 8 ? (1u << left) - 1 : 0xFF);
        __m512i word = _mm512_xor_si512(
            _mm512_and_si512(_mm512_maskz_loadu_epi64(there, slots->here + 8 * first), low),
            _mm512_and_si512(_mm512_maskz_loadu_epi64(there, slots->behind + 8 * first), high));
        word = _mm512_xor_si512(word, _mm512_srli_epi64(word, 32));
        word = _mm512_xor_si512(word, _mm512_srli_epi64(word, 16));
        word = _mm512_xor_si512(word, _mm512_srli_epi64(word, 8));
        word = _mm512_xor_si512(word, _mm512_srli_epi64(word, 4));
        word = _mm512_and_si512(word, _mm512_set1_epi64(15));
        word = _mm512_srlv_epi64(_mm512_set1_epi64(LSM_ODD_NIBBLES), word);
        uint32_t found = _mm512_test_epi64_mask(word, _mm512_set1_epi64(1));
        if ((found ^ expected >> first) & there) {
            return 0;
        }
    }
    return 1;
}

/* By enum lsm_simd. */
static const lsm_agreeing lsm_agree[] = {lsm_agree_portable, lsm_agree_avx2, lsm_agree_avx512};
#else
static const lsm_agreeing lsm_agree[] = {lsm_agree_portable};
#endif

#endif
