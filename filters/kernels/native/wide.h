/* What C has no portable word for: 128-bit products, little-endian loads, prefetch, counting bits.
 *
 * Plain C99 and no Python. Every name begins with lsm_, since these headers meet others in the
 * files that Cython generates.
 */
#ifndef LSM_WIDE_H
#define LSM_WIDE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#include <stdlib.h>
#define LSM_INLINE static __forceinline
#define LSM_APART static __declspec(noinline)
#define LSM_BIG_ENDIAN 0
#else
#define LSM_INLINE static inline __attribute__((always_inline, unused))
#define LSM_APART static __attribute__((noinline, unused)) /* what is rare, out of the way */
#define LSM_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#endif

/* The low half of a * b; *high is the other one. */
LSM_INLINE uint64_t lsm_multiply(uint64_t a, uint64_t b, uint64_t *high) {
#if defined(__SIZEOF_INT128__)
    __uint128_t product = (__uint128_t)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
#elif defined(_MSC_VER) && defined(_M_X64)
    return _umul128(a, b, high);
#elif defined(_MSC_VER) && defined(_M_ARM64)
    *high = __umulh(a, b);
    return a * b;
#else
    uint64_t low = (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
    uint64_t middle = (a >> 32) * (b & 0xFFFFFFFFu) + (low >> 32);
    uint64_t other = (a & 0xFFFFFFFFu) * (b >> 32) + (middle & 0xFFFFFFFFu);
    *high = (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
    return a * b;
#endif
}

/* Both halves of a * b, xored. */
LSM_INLINE uint64_t lsm_fold(uint64_t a, uint64_t b) {
    uint64_t high, low = lsm_multiply(a, b, &high);
    return low ^ high;
}

/* Where in 0 .. size - 1 a hash of 64 bits falls: the high half of hash * size. */
LSM_INLINE uint64_t lsm_reduce(uint64_t hash, uint64_t size) {
    uint64_t high;
    lsm_multiply(hash, size, &high);
    return high;
}

/* The same bytes from the last to the first. */
LSM_INLINE uint64_t lsm_swap64(uint64_t x) {
#if defined(_MSC_VER) && !defined(__clang__)
    return _byteswap_uint64(x);
#else
    return __builtin_bswap64(x);
#endif
}

LSM_INLINE uint64_t lsm_load64(const uint8_t *from) {
    uint64_t word;
    memcpy(&word, from, 8);
    return LSM_BIG_ENDIAN ? lsm_swap64(word) : word;
}

LSM_INLINE uint32_t lsm_load32(const uint8_t *from) {
    uint32_t word;
    memcpy(&word, from, 4);
    return LSM_BIG_ENDIAN ? (uint32_t)(lsm_swap64(word) >> 32) : word;
}

LSM_INLINE uint16_t lsm_load16(const uint8_t *from) {
    return (uint16_t)(from[0] | from[1] << 8);
}

LSM_INLINE void lsm_store64(uint8_t *to, uint64_t word) {
    if (LSM_BIG_ENDIAN) {
        word = lsm_swap64(word);
    }
    memcpy(to, &word, 8);
}

LSM_INLINE uint32_t lsm_rotate_left32(uint32_t x, int by) {
    return x << by | x >> (32 - by);
}

LSM_INLINE uint64_t lsm_rotate_left64(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

/* Prefetch a cache line that will be read soon; any address is allowed. */
LSM_INLINE void lsm_prefetch(const void *address) {
#if defined(_MSC_VER) && !defined(__clang__)
#if defined(_M_X64)
    _mm_prefetch((const char *)address, _MM_HINT_T0);
#else
    (void)address;
#endif
#else
    __builtin_prefetch(address, 0, 3);
#endif
}

LSM_INLINE int lsm_popcount(uint64_t x) {
#if defined(_MSC_VER) && !defined(__clang__)
    x = x - (x >> 1 & 0x5555555555555555ull);
    x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
    return (int)(((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Full) * 0x0101010101010101ull >> 56);
#else
    return __builtin_popcountll(x);
#endif
}

/* 1 where an odd number of bits is set; without a popcount instruction far cheaper than counting. */
LSM_INLINE int lsm_parity(uint64_t x) {
#if defined(_MSC_VER) && !defined(__clang__)
    x ^= x >> 32;
    x ^= x >> 16;
    x ^= x >> 8;
    x ^= x >> 4;
    return 0x6996 >> (x & 15) & 1;
#else
    return __builtin_parityll(x);
#endif
}

/* How many zeros there are below the lowest bit that is set; there is one. */
LSM_INLINE int lsm_trailing_zeros(uint64_t x) {
#if defined(_MSC_VER) && !defined(__clang__)
    unsigned long index;
    _BitScanForward64(&index, x);
    return (int)index;
#else
    return __builtin_ctzll(x);
#endif
}

#endif
