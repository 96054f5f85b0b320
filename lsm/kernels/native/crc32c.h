/* CRC-32C, with the processor's own instruction where it has one.
 *
 * The value of some bytes goes on where that of the bytes before ended; that of no bytes is 0.
 * Which way is taken is asked at every call, of what the compiler's run time found out when the
 * program was loaded: nothing has to be initialised here, and nothing can be so twice.
 */
#ifndef LSM_CRC32C_H
#define LSM_CRC32C_H

#include "simd.h"
#include "wide.h"

#define LSM_CRC_MASK_DELTA 0xA282EAD8u /* LevelDB's constant */

/* ------------------------------------------------------------------------------- by tables */

/* What a byte with further zero bytes behind it adds is the xor of what its bits add. */
#define LSM_CRC_AT(i, a, b, c, d, e, f, g, h)                                                      \
    (((i) & 1 ? a : 0) ^ ((i) & 2 ? b : 0) ^ ((i) & 4 ? c : 0) ^ ((i) & 8 ? d : 0) ^               \
     ((i) & 16 ? e : 0) ^ ((i) & 32 ? f : 0) ^ ((i) & 64 ? g : 0) ^ ((i) & 128 ? h : 0))
#define LSM_CRC_4(i, a, b, c, d, e, f, g, h)                                                       \
    LSM_CRC_AT((i), a, b, c, d, e, f, g, h),                                                       \
        LSM_CRC_AT((i) + 1, a, b, c, d, e, f, g, h),                                               \
        LSM_CRC_AT((i) + 2, a, b, c, d, e, f, g, h),                                               \
        LSM_CRC_AT((i) + 3, a, b, c, d, e, f, g, h)
#define LSM_CRC_16(i, a, b, c, d, e, f, g, h)                                                      \
    LSM_CRC_4((i), a, b, c, d, e, f, g, h),                                                        \
        LSM_CRC_4((i) + 4, a, b, c, d, e, f, g, h),                                                \
        LSM_CRC_4((i) + 8, a, b, c, d, e, f, g, h),                                                \
        LSM_CRC_4((i) + 12, a, b, c, d, e, f, g, h)
#define LSM_CRC_64(i, a, b, c, d, e, f, g, h)                                                      \
    LSM_CRC_16((i), a, b, c, d, e, f, g, h),                                                       \
        LSM_CRC_16((i) + 16, a, b, c, d, e, f, g, h),                                              \
        LSM_CRC_16((i) + 32, a, b, c, d, e, f, g, h),                                              \
        LSM_CRC_16((i) + 48, a, b, c, d, e, f, g, h)
#define LSM_CRC_256(a, b, c, d, e, f, g, h)                                                        \
    LSM_CRC_64(0, a, b, c, d, e, f, g, h),                                                         \
        LSM_CRC_64(64, a, b, c, d, e, f, g, h),                                                    \
        LSM_CRC_64(128, a, b, c, d, e, f, g, h),                                                   \
        LSM_CRC_64(192, a, b, c, d, e, f, g, h)

/* Of a byte with 0 to 7 zero bytes behind it. */
static const uint32_t lsm_crc_tables[8][256] = {
    {LSM_CRC_256(0xF26B8303u, 0xE13B70F7u, 0xC79A971Fu, 0x8AD958CFu, 0x105EC76Fu, 0x20BD8EDEu,
                 0x417B1DBCu, 0x82F63B78u)},
    {LSM_CRC_256(0x13A29877u, 0x274530EEu, 0x4E8A61DCu, 0x9D14C3B8u, 0x3FC5F181u, 0x7F8BE302u,
                 0xFF17C604u, 0xFBC3FAF9u)},
    {LSM_CRC_256(0xA541927Eu, 0x4F6F520Du, 0x9EDEA41Au, 0x38513EC5u, 0x70A27D8Au, 0xE144FB14u,
                 0xC76580D9u, 0x8B277743u)},
    {LSM_CRC_256(0xDD45AAB8u, 0xBF672381u, 0x7B2231F3u, 0xF64463E6u, 0xE964B13Du, 0xD725148Bu,
                 0xABA65FE7u, 0x52A0C93Fu)},
    {LSM_CRC_256(0x38116FACu, 0x7022DF58u, 0xE045BEB0u, 0xC5670B91u, 0x8F2261D3u, 0x1BA8B557u,
                 0x37516AAEu, 0x6EA2D55Cu)},
    {LSM_CRC_256(0xEF306B19u, 0xDB8CA0C3u, 0xB2F53777u, 0x6006181Fu, 0xC00C303Eu, 0x85F4168Du,
                 0x0E045BEBu, 0x1C08B7D6u)},
    {LSM_CRC_256(0x68032CC8u, 0xD0065990u, 0xA5E0C5D1u, 0x4E2DFD53u, 0x9C5BFAA6u, 0x3D5B83BDu,
                 0x7AB7077Au, 0xF56E0EF4u)},
    {LSM_CRC_256(0x493C7D27u, 0x9278FA4Eu, 0x211D826Du, 0x423B04DAu, 0x847609B4u, 0x0D006599u,
                 0x1A00CB32u, 0x34019664u)},
};

static uint32_t lsm_crc32c_portable(uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word = lsm_load64(data) ^ crc;
        crc = 0;
        for (int byte = 0; byte < 8; byte++) {
            crc ^= lsm_crc_tables[7 - byte][word >> 8 * byte & 255];
        }
    }
    while (size-- > 0) {
        crc = crc >> 8 ^ lsm_crc_tables[0][(crc ^ *data++) & 255];
    }
    return ~crc;
}

/* -------------------------------------------------------------------------- by instructions */

#if LSM_X86 && (defined(__GNUC__) || defined(__clang__))

/* A result comes three cycles after it is asked for, and another one can be asked for meanwhile. So
 * three stretches of the same length are taken at once. That of an earlier one counts as if zeros
 * stood behind it: it is multiplied by x^(8 * zeros - 33), in a product without carries, which the
 * instruction then takes modulo the polynomial, times x^32, and the product has one bit less. */
typedef struct lsm_crc_stretch {
    size_t length;
    uint32_t shift, shift_twice;
} lsm_crc_stretch;

/* The first one takes a block of 4 KiB at once, the second half of one that was compressed. */
static const lsm_crc_stretch lsm_crc_stretches[] = {
    {1344, 0xC9C8B782u, 0x889774E1u},
    {336, 0xA60CE07Bu, 0xCEC3662Eu},
    {64, 0x9E4ADDF8u, 0x0D3B6092u},
};

__attribute__((target("sse4.2,pclmul"))) static uint32_t
lsm_crc32c_instructions(uint32_t crc, const uint8_t *data, size_t size) {
    uint64_t first = ~crc;
    for (int which = 0; which < 3; which++) {
        const lsm_crc_stretch *stretch = &lsm_crc_stretches[which];
        const size_t length = stretch->length;
        for (; size >= 3 * length; size -= 3 * length, data += 3 * length) {
            uint64_t second = 0, third = 0;
            for (size_t at = 0; at < length; at += 8) {
                first = _mm_crc32_u64(first, lsm_load64(data + at));
                second = _mm_crc32_u64(second, lsm_load64(data + length + at));
                third = _mm_crc32_u64(third, lsm_load64(data + 2 * length + at));
            }
            __m128i one = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)first),
                                               _mm_cvtsi64_si128(stretch->shift_twice), 0);
            __m128i two = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)second),
                                               _mm_cvtsi64_si128(stretch->shift), 0);
            uint64_t product = (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(one, two));
            first = _mm_crc32_u64(0, product) ^ third;
        }
    }
    for (; size >= 8; size -= 8, data += 8) {
        first = _mm_crc32_u64(first, lsm_load64(data));
    }
    while (size-- > 0) {
        first = _mm_crc32_u8((uint32_t)first, *data++);
    }
    return ~(uint32_t)first;
}

LSM_INLINE int lsm_crc_has_instructions(void) {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
/* Every processor that the compiler was told to write for has them. */
#include <arm_acle.h>

static uint32_t lsm_crc32c_instructions(uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        crc = __crc32cd(crc, lsm_load64(data));
    }
    while (size-- > 0) {
        crc = __crc32cb(crc, *data++);
    }
    return ~crc;
}

LSM_INLINE int lsm_crc_has_instructions(void) {
    return 1;
}

#elif defined(__aarch64__) && defined(__linux__) && defined(__GNUC__)
#include <sys/auxv.h>

/* As the assembler writes them, for compilers that were told of no such instructions. */
static uint32_t lsm_crc32c_instructions(uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word = lsm_load64(data);
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    }
    while (size-- > 0) {
        uint32_t byte = *data++;
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
    }
    return ~crc;
}

LSM_INLINE int lsm_crc_has_instructions(void) {
    return (getauxval(16) & 1ul << 7) != 0; /* AT_HWCAP, HWCAP_CRC32 */
}

#else

static uint32_t lsm_crc32c_instructions(uint32_t crc, const uint8_t *data, size_t size) {
    return lsm_crc32c_portable(crc, data, size);
}

LSM_INLINE int lsm_crc_has_instructions(void) {
    return 0;
}
#endif

/* ------------------------------------------------------------------------------ what is asked */

/* The checksum of these bytes behind others, which have the value given. */
LSM_INLINE uint32_t lsm_crc32c(uint32_t crc, const uint8_t *data, size_t size) {
    return lsm_crc_has_instructions() ? lsm_crc32c_instructions(crc, data, size)
                                      : lsm_crc32c_portable(crc, data, size);
}

/* The form that is stored: rotated right by 15 bits, and a constant added. */
LSM_INLINE uint32_t lsm_crc32c_mask(uint32_t crc) {
    return lsm_rotate_left32(crc, 17) + LSM_CRC_MASK_DELTA;
}

#endif
