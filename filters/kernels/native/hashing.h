/* The hashes of filters/hashing.py and filters/compat_hashing.py, number for number.
 *
 * There are two editions of XXH3 here. The final one (xxHash 0.8.0 and later), seeded, is the
 * digest that the families of our own start from; the preview (xxHash 0.7.2), unseeded, is the
 * hash of RocksDB. Above 16 bytes they share all but details, below it little more than the
 * secret. Constants are named as in the specification, doc/xxhash_spec.md of xxHash. Cassandra's
 * MurmurHash3 is the one hash of 128 bits.
 *
 * What hashes short keys is inlined into its callers, what hashes long ones is kept apart: long is
 * above 128 bytes, and above 16 for the preview.
 */
#ifndef LSM_HASHING_H
#define LSM_HASHING_H

#include "lsm_probe.h"
#include "wide.h"

/* Keys up to this long are hashed with little more than a multiplication. */
#define LSM_SHORT_KEY 16

/* The seed under which LevelDB and RocksDB hash keys for their Bloom filters. */
#define LSM_BLOOM_SEED 0xBC9F1D34u

/* 2^64 divided by the golden ratio, rounded to odd: the multiplier of Fibonacci hashing. */
#define LSM_GOLDEN64 0x9E3779B97F4A7C15u

/* Fold a filter's salt into a digest. */
LSM_INLINE uint64_t lsm_mix(uint64_t digest, uint64_t salt) {
    return lsm_fold(digest ^ salt, LSM_GOLDEN64);
}

/* ---- The 32-bit hash of LevelDB and RocksDB ---- */

#define LSM_HASH32_MULTIPLIER 0xC6A4A793u

/* The last one to three bytes are added as unsigned numbers where sign is 0, and as signed ones
 * where it is 0x80: (byte ^ 0x80) - 0x80 takes 256 from the bytes above 127. */
LSM_INLINE uint32_t lsm_hash32(const uint8_t *key, size_t size, uint32_t seed, uint32_t sign) {
    uint32_t h = seed ^ (uint32_t)size * LSM_HASH32_MULTIPLIER;
    size_t at = 0;
    for (; size - at >= 4; at += 4) {
        h = (h + lsm_load32(key + at)) * LSM_HASH32_MULTIPLIER;
        h ^= h >> 16;
    }
    if (at < size) {
        for (int shift = 0; at < size; at++, shift += 8) {
            h += ((key[at] ^ sign) - sign) << shift;
        }
        h *= LSM_HASH32_MULTIPLIER;
        h ^= h >> 24;
    }
    return h;
}

LSM_INLINE uint32_t lsm_leveldb_hash(const uint8_t *key, size_t size, uint32_t seed) {
    return lsm_hash32(key, size, seed, 0);
}

LSM_INLINE uint32_t lsm_rocksdb_hash(const uint8_t *key, size_t size, uint32_t seed) {
    return lsm_hash32(key, size, seed, 0x80);
}

/* ---- What both editions of XXH3 are made of ---- */

#define LSM_PRIME32_1 0x9E3779B1u
#define LSM_PRIME32_2 0x85EBCA77u
#define LSM_PRIME32_3 0xC2B2AE3Du
#define LSM_PRIME64_1 0x9E3779B185EBCA87u
#define LSM_PRIME64_2 0xC2B2AE3D27D4EB4Fu
#define LSM_PRIME64_3 0x165667B19E3779F9u
#define LSM_PRIME64_4 0x85EBCA77C2B2AE63u
#define LSM_PRIME64_5 0x27D4EB2F165667C5u
#define LSM_PRIME_MX1 0x165667919E3779F9u
#define LSM_PRIME_MX2 0x9FB21C651E98DF25u

#define LSM_FINAL 0
#define LSM_PREVIEW 1

#define LSM_SECRET_SIZE 192
#define LSM_LANES 8
#define LSM_STRIPE 64
#define LSM_STRIPES_PER_BLOCK 16

/* The default secret of XXH3. */
static const uint8_t lsm_xx_secret[LSM_SECRET_SIZE] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

LSM_INLINE uint64_t lsm_xx_avalanche(uint64_t h, int preview) {
    h = (h ^ h >> 37) * (preview ? LSM_PRIME64_3 : LSM_PRIME_MX1);
    return h ^ h >> 32;
}

LSM_INLINE uint64_t lsm_xx_mix16(const uint8_t *chunk, const uint8_t *secret, uint64_t seed) {
    return lsm_fold(lsm_load64(chunk) ^ (lsm_load64(secret) + seed),
                    lsm_load64(chunk + 8) ^ (lsm_load64(secret + 8) - seed));
}

/* 17 to 128 bytes: chunks pair up from both ends towards the middle, where they may overlap. */
LSM_INLINE uint64_t lsm_xx_upto128(const uint8_t *key, size_t size, uint64_t seed, int preview) {
    uint64_t total = size * LSM_PRIME64_1;
    total += lsm_xx_mix16(key, lsm_xx_secret, seed);
    total += lsm_xx_mix16(key + size - 16, lsm_xx_secret + 16, seed);
    if (size > 32) {
        total += lsm_xx_mix16(key + 16, lsm_xx_secret + 32, seed);
        total += lsm_xx_mix16(key + size - 32, lsm_xx_secret + 48, seed);
        if (size > 64) {
            total += lsm_xx_mix16(key + 32, lsm_xx_secret + 64, seed);
            total += lsm_xx_mix16(key + size - 48, lsm_xx_secret + 80, seed);
            if (size > 96) {
                total += lsm_xx_mix16(key + 48, lsm_xx_secret + 96, seed);
                total += lsm_xx_mix16(key + size - 64, lsm_xx_secret + 112, seed);
            }
        }
    }
    return lsm_xx_avalanche(total, preview);
}

/* 129 to 240 bytes: from the ninth chunk on the secret is read three bytes off. */
LSM_INLINE uint64_t lsm_xx_upto240(const uint8_t *key, size_t size, uint64_t seed, int preview) {
    uint64_t total = size * LSM_PRIME64_1;
    for (size_t at = 0; at < 128; at += 16) {
        total += lsm_xx_mix16(key + at, lsm_xx_secret + at, seed);
    }
    total = lsm_xx_avalanche(total, preview);
    for (size_t at = 128; at + 16 <= size; at += 16) {
        total += lsm_xx_mix16(key + at, lsm_xx_secret + (at - 128 + 3), seed);
    }
    total += lsm_xx_mix16(key + size - 16, lsm_xx_secret + 119, seed);
    return lsm_xx_avalanche(total, preview);
}

/* The final edition adds a word of the key to its neighbour's lane, the preview to its own. */
LSM_INLINE void lsm_xx_accumulate(uint64_t *lanes, const uint8_t *stripe, const uint8_t *secret,
                                  int preview) {
    for (int lane = 0; lane < LSM_LANES; lane++) {
        uint64_t masked = lsm_load64(stripe + 8 * lane) ^ lsm_load64(secret + 8 * lane);
        lanes[lane] += lsm_load64(stripe + 8 * (preview ? lane : lane ^ 1));
        lanes[lane] += (masked & 0xFFFFFFFFu) * (masked >> 32);
    }
}

LSM_INLINE void lsm_xx_scramble(uint64_t *lanes, const uint8_t *secret) {
    for (int lane = 0; lane < LSM_LANES; lane++) {
        lanes[lane] ^= lanes[lane] >> 47 ^ lsm_load64(secret + 8 * lane);
        lanes[lane] *= LSM_PRIME32_1;
    }
}

LSM_INLINE uint64_t lsm_xx_merge(const uint64_t *lanes, const uint8_t *secret) {
    uint64_t total = 0;
    for (int lane = 0; lane < LSM_LANES; lane += 2) {
        total += lsm_fold(lanes[lane] ^ lsm_load64(secret + 8 * lane),
                          lanes[lane + 1] ^ lsm_load64(secret + 8 * lane + 8));
    }
    return total;
}

/* Above 240 bytes: the final edition always ends with a stripe that overlaps the one before it or
 * touches it, the preview only where something is left. */
LSM_INLINE uint64_t lsm_xx_long(const uint8_t *key, size_t size, const uint8_t *secret,
                                int preview) {
    uint64_t lanes[LSM_LANES] = {LSM_PRIME32_3, LSM_PRIME64_1, LSM_PRIME64_2, LSM_PRIME64_3,
                                 LSM_PRIME64_4, LSM_PRIME32_2, LSM_PRIME64_5, LSM_PRIME32_1};
    size_t stripes = (preview ? size : size - 1) / LSM_STRIPE;
    for (size_t stripe = 0; stripe < stripes; stripe++) {
        size_t turn = stripe % LSM_STRIPES_PER_BLOCK;
        lsm_xx_accumulate(lanes, key + LSM_STRIPE * stripe, secret + 8 * turn, preview);
        if (turn == LSM_STRIPES_PER_BLOCK - 1) {
            lsm_xx_scramble(lanes, secret + 128);
        }
    }
    if (LSM_STRIPE * stripes < size) {
        lsm_xx_accumulate(lanes, key + size - LSM_STRIPE, secret + 121, preview);
    }
    return lsm_xx_avalanche(size * LSM_PRIME64_1 + lsm_xx_merge(lanes, secret + 11), preview);
}

/* ---- The final edition ---- */

LSM_INLINE uint64_t lsm_xx_xor_of_secrets(int first, int second) {
    return lsm_load64(lsm_xx_secret + first) ^ lsm_load64(lsm_xx_secret + second);
}

/* The avalanche of XXH64, which the shortest keys still have. */
LSM_INLINE uint64_t lsm_xxh64_avalanche(uint64_t h) {
    h = (h ^ h >> 33) * LSM_PRIME64_2;
    h = (h ^ h >> 29) * LSM_PRIME64_3;
    return h ^ h >> 32;
}

LSM_INLINE uint64_t lsm_xxh3_upto3(const uint8_t *key, size_t size, uint64_t seed) {
    uint32_t word, flip;
    if (size == 0) {
        return lsm_xxh64_avalanche(seed ^ lsm_xx_xor_of_secrets(56, 64));
    }
    word = (uint32_t)key[0] << 16 | (uint32_t)key[size >> 1] << 24 | key[size - 1] |
           (uint32_t)size << 8;
    flip = lsm_load32(lsm_xx_secret) ^ lsm_load32(lsm_xx_secret + 4);
    return lsm_xxh64_avalanche(word ^ (flip + seed));
}

LSM_INLINE uint64_t lsm_xxh3_4to8(const uint8_t *key, size_t size, uint64_t seed) {
    uint64_t h = (uint64_t)lsm_load32(key) << 32 | lsm_load32(key + size - 4);
    /* The low half of the seed, its bytes reversed, goes into the high half. */
    seed ^= lsm_swap64((uint32_t)seed);
    h ^= lsm_xx_xor_of_secrets(8, 16) - seed;
    h = (h ^ (h << 49 | h >> 15) ^ (h << 24 | h >> 40)) * LSM_PRIME_MX2;
    h = (h ^ ((h >> 35) + size)) * LSM_PRIME_MX2;
    return h ^ h >> 28;
}

LSM_INLINE uint64_t lsm_xxh3_9to16(const uint8_t *key, size_t size, uint64_t seed) {
    uint64_t low = lsm_load64(key) ^ (lsm_xx_xor_of_secrets(24, 32) + seed);
    uint64_t high = lsm_load64(key + size - 8) ^ (lsm_xx_xor_of_secrets(40, 48) - seed);
    return lsm_xx_avalanche(size + lsm_swap64(low) + high + lsm_fold(low, high), LSM_FINAL);
}

LSM_APART uint64_t lsm_xxh3_long(const uint8_t *key, size_t size, uint64_t seed) {
    uint8_t secret[LSM_SECRET_SIZE];
    for (int at = 0; at < LSM_SECRET_SIZE; at += 16) {
        lsm_store64(secret + at, lsm_load64(lsm_xx_secret + at) + seed);
        lsm_store64(secret + at + 8, lsm_load64(lsm_xx_secret + at + 8) - seed);
    }
    return lsm_xx_long(key, size, secret, LSM_FINAL);
}

LSM_APART uint64_t lsm_xxh3_above128(const uint8_t *key, size_t size, uint64_t seed) {
    if (size <= 240) {
        return lsm_xx_upto240(key, size, seed, LSM_FINAL);
    }
    return lsm_xxh3_long(key, size, seed);
}

/* XXH3-64 of a key under a seed. */
LSM_INLINE uint64_t lsm_xxh3_64(const uint8_t *key, size_t size, uint64_t seed) {
    if (size > LSM_SHORT_KEY) {
        return size <= 128 ? lsm_xx_upto128(key, size, seed, LSM_FINAL)
                           : lsm_xxh3_above128(key, size, seed);
    }
    if (size > 8) {
        return lsm_xxh3_9to16(key, size, seed);
    }
    return size > 3 ? lsm_xxh3_4to8(key, size, seed) : lsm_xxh3_upto3(key, size, seed);
}

/* ---- The preview ---- */

LSM_INLINE uint64_t lsm_xxph3_upto3(const uint8_t *key, size_t size) {
    uint32_t word;
    if (size == 0) {
        return lsm_fold(lsm_load64(lsm_xx_secret), LSM_PRIME64_2);
    }
    word = key[0] | (uint32_t)key[size >> 1] << 8 | (uint32_t)key[size - 1] << 16 |
           (uint32_t)size << 24;
    return lsm_xx_avalanche((word ^ lsm_load32(lsm_xx_secret)) * LSM_PRIME64_1, LSM_PREVIEW);
}

LSM_INLINE uint64_t lsm_xxph3_4to8(const uint8_t *key, size_t size) {
    uint64_t h = lsm_load32(key) | (uint64_t)lsm_load32(key + size - 4) << 32;
    h ^= lsm_load64(lsm_xx_secret);
    h = (h ^ h >> 51) * LSM_PRIME32_1 + size;
    return lsm_xx_avalanche((h ^ h >> 47) * LSM_PRIME64_2, LSM_PREVIEW);
}

LSM_INLINE uint64_t lsm_xxph3_9to16(const uint8_t *key, size_t size) {
    uint64_t low = lsm_load64(key) ^ lsm_load64(lsm_xx_secret);
    uint64_t high = lsm_load64(key + size - 8) ^ lsm_load64(lsm_xx_secret + 8);
    return lsm_xx_avalanche(size + low + high + lsm_fold(low, high), LSM_PREVIEW);
}

LSM_APART uint64_t lsm_xxph3_long(const uint8_t *key, size_t size) {
    return lsm_xx_long(key, size, lsm_xx_secret, LSM_PREVIEW);
}

LSM_APART uint64_t lsm_xxph3_above16(const uint8_t *key, size_t size) {
    if (size <= 128) {
        return lsm_xx_upto128(key, size, 0, LSM_PREVIEW);
    }
    if (size <= 240) {
        return lsm_xx_upto240(key, size, 0, LSM_PREVIEW);
    }
    return lsm_xxph3_long(key, size);
}

/* RocksDB's 64-bit hash of a key. */
LSM_INLINE uint64_t lsm_xxph3_64(const uint8_t *key, size_t size) {
    if (size > LSM_SHORT_KEY) {
        return lsm_xxph3_above16(key, size);
    }
    if (size > 8) {
        return lsm_xxph3_9to16(key, size);
    }
    return size > 3 ? lsm_xxph3_4to8(key, size) : lsm_xxph3_upto3(key, size);
}

/* ---- Cassandra's MurmurHash3 ---- */

#define LSM_MURMUR_1 0x87C37B91114253D5u
#define LSM_MURMUR_2 0x4CF5AD432745937Fu

LSM_INLINE uint64_t lsm_murmur_scramble1(uint64_t k) {
    return lsm_rotate_left64(k * LSM_MURMUR_1, 31) * LSM_MURMUR_2;
}

LSM_INLINE uint64_t lsm_murmur_scramble2(uint64_t k) {
    return lsm_rotate_left64(k * LSM_MURMUR_2, 33) * LSM_MURMUR_1;
}

LSM_INLINE uint64_t lsm_mixed64(uint64_t h) {
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCDu;
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53u;
    return h ^ h >> 33;
}

/* One to eight bytes as one number. */
LSM_INLINE uint64_t lsm_load_upto8(const uint8_t *from, size_t size) {
    if (size == 8) {
        return lsm_load64(from);
    }
    if (size > 3) {
        return lsm_load32(from) |
               (uint64_t)lsm_load32(from + size - 4) >> (64 - 8 * size) << 32;
    }
    return from[0] | (uint64_t)from[size >> 1] << 8 * (size >> 1) |
           (uint64_t)from[size - 1] << 8 * (size - 1);
}

/* One to eight bytes as Java shifts and xors them: one above 127 turns over every bit above its own.
 * A bit is turned over where an odd number of such bytes lie below it. */
LSM_INLINE uint64_t lsm_load_signed(const uint8_t *from, size_t size) {
    uint64_t word = lsm_load_upto8(from, size);
    uint64_t below = ((word >> 7 & 0x0101010101010101u) * 0x0101010101010101u) << 8;
    return word ^ (below & 0x0101010101010101u) * 0xFF;
}

/* Cassandra's 128-bit hash of a key: MurmurHash3's h1 and h2, the last bytes taken as signed. */
LSM_APART void lsm_cassandra_hash(const uint8_t *key, size_t size, uint64_t *words) {
    uint64_t h1 = 0, h2 = 0;
    size_t at = 0, rest;
    for (; size - at >= 16; at += 16) {
        h1 ^= lsm_murmur_scramble1(lsm_load64(key + at));
        h1 = (lsm_rotate_left64(h1, 27) + h2) * 5 + 0x52DCE729u;
        h2 ^= lsm_murmur_scramble2(lsm_load64(key + at + 8));
        h2 = (lsm_rotate_left64(h2, 31) + h1) * 5 + 0x38495AB5u;
    }
    rest = size - at;
    if (rest > 8) {
        h2 ^= lsm_murmur_scramble2(lsm_load_signed(key + at + 8, rest - 8));
        rest = 8;
    }
    if (rest) {
        h1 ^= lsm_murmur_scramble1(lsm_load_signed(key + at, rest));
    }
    h1 ^= size;
    h2 ^= size;
    h1 += h2;
    h2 += h1;
    h1 = lsm_mixed64(h1);
    h2 = lsm_mixed64(h2);
    words[0] = h1 + h2;
    words[1] = h2 + words[0];
}

/* ---- Which of them a filter hashes its keys with ---- */

/* The digest of a key that takes one word; only XXH3-64 has a seed. */
LSM_INLINE uint64_t lsm_digest64(enum lsm_digest kind, uint64_t seed, const uint8_t *key,
                                 size_t size) {
    if (kind == LSM_DIGEST_XXH3_64) {
        return lsm_xxh3_64(key, size, seed);
    }
    if (kind == LSM_DIGEST_XXPH3_64) {
        return lsm_xxph3_64(key, size);
    }
    if (kind == LSM_DIGEST_LEVELDB) {
        return lsm_leveldb_hash(key, size, LSM_BLOOM_SEED);
    }
    return lsm_rocksdb_hash(key, size, LSM_BLOOM_SEED);
}

/* Writes down the digest of a key, one word or two. */
LSM_INLINE void lsm_digest_of(enum lsm_digest kind, uint64_t seed, const uint8_t *key, size_t size,
                              uint64_t *digest) {
    if (kind == LSM_DIGEST_CASSANDRA) {
        lsm_cassandra_hash(key, size, digest);
    } else {
        *digest = lsm_digest64(kind, seed, key, size);
    }
}

#endif
