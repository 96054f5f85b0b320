/* Filters whose probes of a key all fall into one line of 512 bits: blocked, and RocksDB's.
 *
 * A probe number of 32 bits is multiplied by the golden ratio again and again; the top nine bits of
 * each product say which bit of the line to look at. The i-th product is the number times the i-th
 * power, so vector units compute all of them at once.
 */
#ifndef LSM_LINE_H
#define LSM_LINE_H

#include "hashing.h"
#include "allocation.h"
#include "probing.h"
#include "simd.h"

typedef struct lsm_lines {
    uint8_t *lines;
    uint64_t count;
    uint64_t seed;
    uint64_t salt;
    uint32_t num_probes; /* 1 to 32 */
} lsm_lines;

/* A key's line, and the number its probes start from. */
typedef struct lsm_spot {
    uint8_t *line;
    uint32_t probe;
} lsm_spot;

LSM_INLINE lsm_spot lsm_blocked_spot(const lsm_lines *self, uint64_t mixed) {
    lsm_spot spot = {self->lines + lsm_reduce(mixed, self->count) * LSM_LINE_BYTES,
                     (uint32_t)mixed};
    return spot;
}

LSM_INLINE lsm_spot lsm_fast_local_spot(const lsm_lines *self, uint64_t hash) {
    lsm_spot spot = {self->lines + ((hash & 0xFFFFFFFFu) * self->count >> 32) * LSM_LINE_BYTES,
                     (uint32_t)(hash >> 32)};
    return spot;
}

LSM_INLINE uint64_t lsm_blocked_hash(const lsm_lines *self, const char *key, size_t length) {
    return lsm_mix(lsm_xxh3_64((const uint8_t *)key, length, self->seed), self->salt);
}

LSM_INLINE uint64_t lsm_blocked_hash_of(const lsm_lines *self, uint64_t digest) {
    return lsm_mix(digest, self->salt);
}

LSM_INLINE uint64_t lsm_fast_local_hash(const lsm_lines *self, const char *key, size_t length) {
    (void)self;
    return lsm_xxph3_64((const uint8_t *)key, length);
}

LSM_INLINE uint64_t lsm_fast_local_hash_of(const lsm_lines *self, uint64_t digest) {
    (void)self;
    return digest;
}

/* A line of a view may straddle two cache lines. */
LSM_INLINE void lsm_prefetch_line(const uint8_t *line) {
    lsm_prefetch(line);
    if ((uintptr_t)line % LSM_LINE_BYTES) {
        lsm_prefetch(line + LSM_LINE_BYTES - 1);
    }
}

/* 2^32 divided by the golden ratio, rounded to odd. */
#define LSM_PROBE_MULTIPLIER 0x9E3779B9u

LSM_INLINE int lsm_line_has_portable(const uint8_t *line, uint32_t probe, uint32_t num_probes) {
    unsigned missing = 0;
    for (uint32_t i = 0; i < num_probes; i++) {
        uint32_t bit = probe >> 23;
        missing |= ~(unsigned)line[bit >> 3] >> (bit & 7);
        probe *= LSM_PROBE_MULTIPLIER;
    }
    return !(missing & 1);
}

/* Sets the bits; 1 if one of them was not set before. */
LSM_INLINE int lsm_line_add_portable(uint8_t *line, uint32_t probe, uint32_t num_probes) {
    unsigned missing = 0;
    for (uint32_t i = 0; i < num_probes; i++) {
        uint32_t bit = probe >> 23;
        unsigned old = line[bit >> 3];
        missing |= ~old >> (bit & 7);
        line[bit >> 3] = (uint8_t)(old | 1u << (bit & 7));
        probe *= LSM_PROBE_MULTIPLIER;
    }
    return (int)(missing & 1);
}

#if LSM_X86
/* The powers of LSM_PROBE_MULTIPLIER, modulo 2^32. */
static const uint32_t lsm_probe_powers[32] = {
    0x00000001u, 0x9E3779B9u, 0xE35E67B1u, 0x734297E9u,
    0x35FBE861u, 0xDEB7C719u, 0x0448B211u, 0x3459B749u,
    0xAB25F4C1u, 0x52941879u, 0x9C95E071u, 0xF5AB9AA9u,
    0x2D6BA521u, 0x8BEDEDD9u, 0x9BFB72D1u, 0x3AE1C209u,
    0x7FCA7981u, 0xC576C739u, 0xD23EE931u, 0x0335AD69u,
    0xC04FF1E1u, 0x98702499u, 0x7535C391u, 0x9F70DCC9u,
    0x0E198E41u, 0xF2AB85F9u, 0xE6C581F1u, 0xC7ECD029u,
    0x6F54CEA1u, 0x4C8A6B59u, 0xBAE3A451u, 0xF2930789u
};

LSM_TARGET_AVX2 LSM_INLINE int lsm_line_has_avx2(const uint8_t *line, uint32_t probe,
                                                 uint32_t num_probes) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i low = _mm256_loadu_si256((const __m256i *)line);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(line + 32));
    for (uint32_t first = 0; first < num_probes; first += 8) {
        __m256i powers = _mm256_loadu_si256((const __m256i *)(lsm_probe_powers + first));
        __m256i products = _mm256_mullo_epi32(_mm256_set1_epi32((int)probe), powers);
        /* The top bit says which half of the line, the next three which of its eight words. */
        __m256i index = _mm256_srli_epi32(products, 28);
        __m256i words = _mm256_castps_si256(_mm256_blendv_ps(
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, index)),
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, index)),
            _mm256_castsi256_ps(products)));
        __m256i places = _mm256_srli_epi32(_mm256_slli_epi32(products, 4), 27);
        __m256i bits = _mm256_sllv_epi32(_mm256_set1_epi32(1), places);
        __m256i left = _mm256_set1_epi32((int)(num_probes - first));
        bits = _mm256_and_si256(bits, _mm256_cmpgt_epi32(left, lanes));
        if (!_mm256_testc_si256(words, bits)) {
            return 0;
        }
    }
    return 1;
}

/* Every word shifts a one by how far the bit lies behind the word's first; where that is not within
 * the word, the count is 32 or more (or negative, and so huge), and the shift leaves nothing. */
LSM_TARGET_AVX2 LSM_INLINE int lsm_line_add_avx2(uint8_t *line, uint32_t probe,
                                                 uint32_t num_probes) {
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i low_starts = _mm256_setr_epi32(0, 32, 64, 96, 128, 160, 192, 224);
    const __m256i high_starts = _mm256_add_epi32(low_starts, _mm256_set1_epi32(256));
    __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
    for (uint32_t i = 0; i < num_probes; i++) {
        __m256i bit = _mm256_set1_epi32((int)(probe >> 23));
        low = _mm256_or_si256(low, _mm256_sllv_epi32(one, _mm256_sub_epi32(bit, low_starts)));
        high = _mm256_or_si256(high, _mm256_sllv_epi32(one, _mm256_sub_epi32(bit, high_starts)));
        probe *= LSM_PROBE_MULTIPLIER;
    }
    __m256i old_low = _mm256_loadu_si256((const __m256i *)line);
    __m256i old_high = _mm256_loadu_si256((const __m256i *)(line + 32));
    _mm256_storeu_si256((__m256i *)line, _mm256_or_si256(old_low, low));
    _mm256_storeu_si256((__m256i *)(line + 32), _mm256_or_si256(old_high, high));
    return !(_mm256_testc_si256(old_low, low) & _mm256_testc_si256(old_high, high));
}

LSM_TARGET_AVX512 LSM_INLINE int lsm_line_add_avx512(uint8_t *line, uint32_t probe,
                                                     uint32_t num_probes) {
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i starts = _mm512_setr_epi32(0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352,
                                             384, 416, 448, 480);
    __m512i bits = _mm512_setzero_si512();
    for (uint32_t i = 0; i < num_probes; i++) {
        __m512i bit = _mm512_set1_epi32((int)(probe >> 23));
        bits = _mm512_or_si512(bits, _mm512_sllv_epi32(one, _mm512_sub_epi32(bit, starts)));
        probe *= LSM_PROBE_MULTIPLIER;
    }
    __m512i old = _mm512_loadu_si512((const void *)line);
    _mm512_storeu_si512((void *)line, _mm512_or_si512(old, bits));
    __m512i new_bits = _mm512_andnot_si512(old, bits);
    return _mm512_test_epi32_mask(new_bits, new_bits) != 0;
}

/* Eight probes in registers of 256 bits: whatever the size, most filters ask for no more. */
LSM_TARGET_AVX512 LSM_INLINE int lsm_eight_avx512(const uint8_t *line, uint32_t probe,
                                                  uint32_t num_probes) {
    __m256i products = _mm256_mullo_epi32(_mm256_set1_epi32((int)probe),
                                          _mm256_loadu_si256((const __m256i *)lsm_probe_powers));
    __m256i words = _mm256_permutex2var_epi32(_mm256_loadu_si256((const __m256i *)line),
                                              _mm256_srli_epi32(products, 28),
                                              _mm256_loadu_si256((const __m256i *)(line + 32)));
    __m256i bits = _mm256_rolv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(products, 23));
    return _mm256_mask_testn_epi32_mask((__mmask8)((1u << num_probes) - 1), words, bits) == 0;
}

LSM_TARGET_AVX512 LSM_INLINE int lsm_sixteen_avx512(__m512i line, uint32_t probe,
                                                    const uint32_t *powers, uint32_t num_probes) {
    __m512i products = _mm512_mullo_epi32(_mm512_set1_epi32((int)probe),
                                          _mm512_loadu_si512((const void *)powers));
    __m512i words = _mm512_permutexvar_epi32(_mm512_srli_epi32(products, 28), line);
    __m512i bits = _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32(products, 23));
    __mmask16 asked = (__mmask16)((1ull << num_probes) - 1);
    return _mm512_mask_testn_epi32_mask(asked, words, bits) == 0;
}

LSM_TARGET_AVX512 LSM_INLINE int lsm_line_has_avx512(const uint8_t *line, uint32_t probe,
                                                     uint32_t num_probes) {
    if (num_probes <= 8) {
        return lsm_eight_avx512(line, probe, num_probes);
    }
    __m512i words = _mm512_loadu_si512((const void *)line);
    return lsm_sixteen_avx512(words, probe, lsm_probe_powers, num_probes) &&
           (num_probes <= 16 ||
            lsm_sixteen_avx512(words, probe, lsm_probe_powers + 16, num_probes - 16));
}
#endif

/* One family in one instruction set: the functions of an lsm_probing. Keys that are hashed without
 * a call are looked up in a function that makes none. */
#define LSM_LINE_PROBES(family, simd, target)                                                     \
    target LSM_APART int lsm_##family##_probe_long_##simd(const void *filter, const char *key,    \
                                                          size_t length) {                        \
        const lsm_lines *self = (const lsm_lines *)filter;                                        \
        lsm_spot spot = lsm_##family##_spot(self, lsm_##family##_hash(self, key, length));        \
        return lsm_line_has_##simd(spot.line, spot.probe, self->num_probes);                      \
    }                                                                                             \
    target static int lsm_##family##_probe_##simd(const void *filter, const char *key,            \
                                                  size_t length) {                                \
        const lsm_lines *self = (const lsm_lines *)filter;                                        \
        if (length > LSM_SHORT_KEY) {                                                             \
            return lsm_##family##_probe_long_##simd(filter, key, length);                         \
        }                                                                                         \
        lsm_spot spot = lsm_##family##_spot(self, lsm_##family##_hash(self, key, length));        \
        return lsm_line_has_##simd(spot.line, spot.probe, self->num_probes);                      \
    }                                                                                             \
    target static int lsm_##family##_probe_digest_##simd(const void *filter, uint64_t digest) {   \
        const lsm_lines *self = (const lsm_lines *)filter;                                        \
        lsm_spot spot = lsm_##family##_spot(self, lsm_##family##_hash_of(self, digest));          \
        return lsm_line_has_##simd(spot.line, spot.probe, self->num_probes);                      \
    }                                                                                             \
    target static void lsm_##family##_test_many_##simd(const void *filter, const uint64_t *hashes, \
                                                       size_t count, size_t ahead,                \
                                                       uint8_t *answers) {                        \
        const lsm_lines self = *(const lsm_lines *)filter;                                        \
        for (size_t i = 0; i < count; i++) {                                                      \
            if (i < ahead) {                                                                      \
                lsm_prefetch_line(lsm_##family##_spot(&self, hashes[count + i]).line);            \
            }                                                                                     \
            lsm_spot spot = lsm_##family##_spot(&self, hashes[i]);                                \
            answers[i] = (uint8_t)lsm_line_has_##simd(spot.line, spot.probe, self.num_probes);    \
        }                                                                                         \
        for (size_t i = count; i < ahead; i++) {                                                  \
            lsm_prefetch_line(lsm_##family##_spot(&self, hashes[count + i]).line);                \
        }                                                                                         \
    }                                                                                             \
    target static size_t lsm_##family##_add_many_##simd(void *filter, const uint64_t *hashes,     \
                                                        size_t count, size_t ahead,               \
                                                        uint64_t *unchanged) {                    \
        const lsm_lines self = *(const lsm_lines *)filter;                                        \
        size_t found = 0;                                                                         \
        for (size_t i = 0; i < count; i++) {                                                      \
            if (i < ahead) {                                                                      \
                lsm_prefetch(lsm_##family##_spot(&self, hashes[count + i]).line);                 \
            }                                                                                     \
            lsm_spot spot = lsm_##family##_spot(&self, hashes[i]);                                \
            unchanged[found] = hashes[i];                                                         \
            found += !lsm_line_add_##simd(spot.line, spot.probe, self.num_probes);                \
        }                                                                                         \
        for (size_t i = count; i < ahead; i++) {                                                  \
            lsm_prefetch(lsm_##family##_spot(&self, hashes[count + i]).line);                     \
        }                                                                                         \
        return found;                                                                             \
    }

#define LSM_LINE_ROW(family, simd)                                                                \
    {                                                                                             \
        lsm_##family##_probe_##simd, lsm_##family##_probe_digest_##simd,                          \
            lsm_##family##_test_many_##simd, lsm_##family##_add_many_##simd                       \
    }

#if LSM_X86
#define LSM_LINE_FAMILY(family)                                                                   \
    LSM_LINE_PROBES(family, portable, )                                                           \
    LSM_LINE_PROBES(family, avx2, LSM_TARGET_AVX2)                                                \
    LSM_LINE_PROBES(family, avx512, LSM_TARGET_AVX512)                                            \
    static const lsm_probing lsm_##family##_probing[] = {                                         \
        LSM_LINE_ROW(family, portable), LSM_LINE_ROW(family, avx2), LSM_LINE_ROW(family, avx512)};
#else
#define LSM_LINE_FAMILY(family)                                                                   \
    LSM_LINE_PROBES(family, portable, )                                                           \
    static const lsm_probing lsm_##family##_probing[] = {LSM_LINE_ROW(family, portable)};
#endif

LSM_LINE_FAMILY(blocked)
LSM_LINE_FAMILY(fast_local)

#endif
