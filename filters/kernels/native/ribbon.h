/* Ribbon: rows of 128 slots, the equation of a key, how it is asked, how the last step solves.
 *
 * A segment is one column of a block: 16 bytes, of which a row takes some from where it starts and
 * the rest from the same column of the next block. All columns are looked at before one is judged:
 * a branch after each would be mispredicted for half of the absent keys.
 */
#ifndef LSM_RIBBON_H
#define LSM_RIBBON_H

#include "hashing.h"
#include "probing.h"
#include "simd.h"

#define LSM_BLOCK_SLOTS 128
#define LSM_SEGMENT_BYTES 16
#define LSM_MAX_COLUMNS 32

/* The constants of filters/ribbon.py. */
#define LSM_START_MULTIPLIER 0x6193D459236A3A0Dull
#define LSM_ROW_MULTIPLIER 0xC28F82822B650BEDull
#define LSM_ROW_DIFFERENCE 0xC367844A6E52731Dull

/* 128 neighbouring slots, the first one in the lowest bit. */
typedef struct lsm_row {
    uint64_t low;
    uint64_t high;
} lsm_row;

/* Everything a row says: where it starts, and in the low bits what it comes to in each column. */
typedef struct lsm_equation {
    uint64_t start;
    lsm_row row;
    uint32_t result;
} lsm_equation;

typedef struct lsm_ribbon {
    const uint8_t *segments;
    uint64_t starts;
    uint32_t mask;    /* of the seed */
    uint32_t columns; /* up to LSM_MAX_COLUMNS; the first blocks have one fewer */
    uint32_t narrow_blocks;
} lsm_ribbon;

/* A hash under a seed: its order is that of the starts. */
LSM_INLINE uint64_t lsm_start_number(uint64_t hash, uint32_t mask) {
    return (hash ^ mask) * LSM_START_MULTIPLIER;
}

LSM_INLINE lsm_equation lsm_equation_of(uint64_t number, uint64_t starts) {
    uint64_t spread = number * LSM_ROW_MULTIPLIER;
    lsm_equation equation = {lsm_reduce(number, starts),
                             {(spread ^ LSM_ROW_DIFFERENCE) | 1, spread},
                             (uint32_t)lsm_swap64(spread)};
    return equation;
}

/* Where a row's slots lie: in this block from the offset on, and in the next one before it. */
typedef struct lsm_place {
    const uint8_t *here;
    const uint8_t *there; /* a block that exists, even if the row does not reach into the next */
    uint32_t columns;
    lsm_row in_here;
    lsm_row in_there;
} lsm_place;

/* A row's slots within the 256 of two blocks. Where a row starts is as good as random: no branch on
 * it is ever predicted. */
LSM_INLINE void lsm_split(lsm_row row, unsigned offset, lsm_place *place) {
#if defined(__SIZEOF_INT128__)
    __uint128_t slots = (__uint128_t)row.high << 64 | row.low;
    __uint128_t here = slots << offset, there = slots >> 1 >> (127 - offset);
    place->in_here = (lsm_row){(uint64_t)here, (uint64_t)(here >> 64)};
    place->in_there = (lsm_row){(uint64_t)there, (uint64_t)(there >> 64)};
#else
    unsigned by = offset & 63, rest = 63 - by;
    uint64_t low = row.low << by;
    uint64_t middle = row.high << by | row.low >> 1 >> rest;
    uint64_t high = row.high >> 1 >> rest;
    place->in_here.low = offset < 64 ? low : 0;
    place->in_here.high = offset < 64 ? middle : low;
    place->in_there.low = offset < 64 ? high : middle;
    place->in_there.high = offset < 64 ? 0 : high;
#endif
}

LSM_INLINE const uint8_t *lsm_block_of(const lsm_ribbon *self, uint64_t block) {
    uint64_t narrow = block < self->narrow_blocks ? block : self->narrow_blocks;
    return self->segments + (block * self->columns - narrow) * LSM_SEGMENT_BYTES;
}

LSM_INLINE lsm_place lsm_place_of(const lsm_ribbon *self, const lsm_equation *equation) {
    lsm_place place;
    uint64_t block = equation->start / LSM_BLOCK_SLOTS;
    unsigned offset = (unsigned)(equation->start % LSM_BLOCK_SLOTS);
    place.columns = self->columns - (block < self->narrow_blocks);
    place.here = lsm_block_of(self, block);
    place.there = place.here + (offset ? place.columns * LSM_SEGMENT_BYTES : 0);
    lsm_split(equation->row, offset, &place);
    return place;
}

LSM_INLINE void lsm_ribbon_prefetch(const lsm_ribbon *self, uint64_t hash) {
    uint64_t start = lsm_reduce(lsm_start_number(hash, self->mask), self->starts);
    const uint8_t *here = lsm_block_of(self, start / LSM_BLOCK_SLOTS);
    uint32_t bytes = 2 * self->columns * LSM_SEGMENT_BYTES;
    for (uint32_t at = 0; at < bytes; at += 64) {
        lsm_prefetch(here + at);
    }
    lsm_prefetch(here + bytes - 1);
}

/* Whether some column does not come to the equation's result. */
LSM_INLINE int lsm_differs_portable(const lsm_place *place, uint32_t result) {
    uint32_t differing = 0;
    for (uint32_t column = 0; column < place->columns; column++) {
        const uint8_t *here = place->here + column * LSM_SEGMENT_BYTES;
        const uint8_t *there = place->there + column * LSM_SEGMENT_BYTES;
        uint64_t met = (lsm_load64(here) & place->in_here.low) ^
                       (lsm_load64(here + 8) & place->in_here.high) ^
                       (lsm_load64(there) & place->in_there.low) ^
                       (lsm_load64(there + 8) & place->in_there.high);
        differing |= (uint32_t)lsm_parity(met) ^ (result >> column & 1);
    }
    return (int)differing;
}

#if LSM_X86
/* What four columns from this one on come to, each folded into a word: in the order 0, 2, 1, 3. */
LSM_TARGET_AVX2 LSM_INLINE __m256i lsm_four_columns(const lsm_place *place, uint32_t column,
                                                    __m256i in_here, __m256i in_there) {
    const __m256i *here = (const __m256i *)(place->here + column * LSM_SEGMENT_BYTES);
    const __m256i *there = (const __m256i *)(place->there + column * LSM_SEGMENT_BYTES);
    __m256i two = _mm256_xor_si256(_mm256_and_si256(_mm256_loadu_si256(here), in_here),
                                   _mm256_and_si256(_mm256_loadu_si256(there), in_there));
    __m256i more = _mm256_xor_si256(_mm256_and_si256(_mm256_loadu_si256(here + 1), in_here),
                                    _mm256_and_si256(_mm256_loadu_si256(there + 1), in_there));
    return _mm256_xor_si256(_mm256_unpacklo_epi64(two, more), _mm256_unpackhi_epi64(two, more));
}

/* Whether eight columns, four from each of two on, come to something else than the result. */
LSM_TARGET_AVX2 LSM_INLINE int lsm_eight_differ(const lsm_place *place, uint32_t result,
                                                uint32_t one, uint32_t other, __m256i in_here,
                                                __m256i in_there) {
    const __m256i ones_at = _mm256_setr_epi32(31, 29, 0, 0, 30, 28, 0, 0);
    const __m256i others_at = _mm256_setr_epi32(0, 0, 31, 29, 0, 0, 30, 28);
    __m256 ones = _mm256_castsi256_ps(lsm_four_columns(place, one, in_here, in_there));
    __m256 others = _mm256_castsi256_ps(lsm_four_columns(place, other, in_here, in_there));
    __m256i met = _mm256_castps_si256(_mm256_xor_ps(_mm256_shuffle_ps(ones, others, 0x88),
                                                    _mm256_shuffle_ps(ones, others, 0xDD)));
    __m256i wanted = _mm256_blend_epi32(
        _mm256_sllv_epi32(_mm256_set1_epi32((int)(result >> one)), ones_at),
        _mm256_sllv_epi32(_mm256_set1_epi32((int)(result >> other)), others_at), 0xCC);
    /* The parity of a word of 32 bits ends up in its highest one. */
    met = _mm256_xor_si256(met, _mm256_slli_epi32(met, 16));
    met = _mm256_xor_si256(met, _mm256_slli_epi32(met, 8));
    met = _mm256_xor_si256(met, _mm256_slli_epi32(met, 4));
    met = _mm256_xor_si256(met, _mm256_slli_epi32(met, 2));
    met = _mm256_xor_si256(met, _mm256_slli_epi32(met, 1));
    return _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_xor_si256(met, wanted)));
}

/* Eight columns at a time: the last ones may have been looked at before, and be four only, twice.
 * Fewer than four are not worth it. */
LSM_TARGET_AVX2 LSM_INLINE int lsm_differs_avx2(const lsm_place *place, uint32_t result) {
    uint32_t columns = place->columns, first = 0;
    int differing = 0;
    if (columns < 4) {
        return lsm_differs_portable(place, result);
    }
    const __m256i in_here = _mm256_broadcastsi128_si256(
        _mm_set_epi64x((long long)place->in_here.high, (long long)place->in_here.low));
    const __m256i in_there = _mm256_broadcastsi128_si256(
        _mm_set_epi64x((long long)place->in_there.high, (long long)place->in_there.low));
    for (; first + 8 < columns; first += 8) {
        differing |= lsm_eight_differ(place, result, first, first + 4, in_here, in_there);
    }
    first = columns < 8 ? 0 : columns - 8;
    return differing | lsm_eight_differ(place, result, first, columns - 4, in_here, in_there);
}
#endif

/* A probe, many probes and a block's solution, in a version for each instruction set; who has AVX2
 * also has an instruction that counts bits. */
#define LSM_RIBBON_FUNCTIONS(simd, target)                                                        \
    target LSM_INLINE int lsm_ribbon_has_##simd(const lsm_ribbon *self, uint64_t hash) {          \
        lsm_equation equation =                                                                   \
            lsm_equation_of(lsm_start_number(hash, self->mask), self->starts);                    \
        lsm_place place = lsm_place_of(self, &equation);                                          \
        return !lsm_differs_##simd(&place, equation.result);                                      \
    }                                                                                             \
    target static int lsm_ribbon_probe_##simd(const void *filter, const char *key,                \
                                              size_t length) {                                    \
        uint64_t hash = lsm_xxph3_64((const uint8_t *)key, length);                               \
        return lsm_ribbon_has_##simd((const lsm_ribbon *)filter, hash);                           \
    }                                                                                             \
    target static int lsm_ribbon_probe_digest_##simd(const void *filter, uint64_t digest) {       \
        return lsm_ribbon_has_##simd((const lsm_ribbon *)filter, digest);                         \
    }                                                                                             \
    target static void lsm_ribbon_test_many_##simd(const void *filter, const uint64_t *hashes,    \
                                                   size_t count, size_t ahead,                    \
                                                   uint8_t *answers) {                            \
        const lsm_ribbon self = *(const lsm_ribbon *)filter;                                      \
        for (size_t i = 0; i < count || i < ahead; i++) {                                         \
            if (i < ahead) {                                                                      \
                lsm_ribbon_prefetch(&self, hashes[count + i]);                                    \
            }                                                                                     \
            if (i < count) {                                                                      \
                answers[i] = (uint8_t)lsm_ribbon_has_##simd(&self, hashes[i]);                    \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    /* One block of rows solved, from its last slot to its first: windows[] are the 128 slots of   \
     * each column from the slot behind on, and from the block's first slot on when done. */       \
    target static void lsm_substitute_##simd(const lsm_row *rows, const uint32_t *results,        \
                                             uint32_t columns, lsm_row *windows) {                \
        for (int slot = LSM_BLOCK_SLOTS - 1; slot >= 0; slot--) {                                 \
            lsm_row row = rows[slot];                                                             \
            uint32_t result = results[slot];                                                      \
            for (uint32_t column = 0; column < columns; column++) {                               \
                uint64_t low = windows[column].low << 1;                                          \
                uint64_t high = windows[column].high << 1 | windows[column].low >> 63;            \
                uint64_t met = (low & row.low) ^ (high & row.high);                               \
                windows[column].low = low | (((uint32_t)lsm_parity(met) ^ result >> column) & 1); \
                windows[column].high = high;                                                      \
            }                                                                                     \
        }                                                                                         \
    }

#define LSM_RIBBON_ROW(simd)                                                                      \
    {                                                                                             \
        lsm_ribbon_probe_##simd, lsm_ribbon_probe_digest_##simd, lsm_ribbon_test_many_##simd,     \
            NULL                                                                                  \
    }

typedef void (*lsm_substitution)(const lsm_row *, const uint32_t *, uint32_t, lsm_row *);

LSM_RIBBON_FUNCTIONS(portable, )
#if LSM_X86
LSM_RIBBON_FUNCTIONS(avx2, LSM_TARGET_AVX2)
static const lsm_probing lsm_ribbon_probing[] = {LSM_RIBBON_ROW(portable), LSM_RIBBON_ROW(avx2),
                                                 LSM_RIBBON_ROW(avx2)};
static const lsm_substitution lsm_substitute[] = {lsm_substitute_portable, lsm_substitute_avx2,
                                                  lsm_substitute_avx2};
#else
static const lsm_probing lsm_ribbon_probing[] = {LSM_RIBBON_ROW(portable)};
static const lsm_substitution lsm_substitute[] = {lsm_substitute_portable};
#endif

#endif
