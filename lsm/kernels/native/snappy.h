/* Snappy in its raw form: the uncompressed length as a varint, then literals and copies.
 *
 * The compressor writes the bytes that Google's library and the Rust crate `snap` wrote first, and
 * most others do: fragments of 64 KiB, each with a table of where four bytes with some hash stood
 * last, which is asked at every byte, and the less often the longer nothing is found. The bytes are
 * held to `snap`'s by the tests, since databases have the same bytes whatever wrote them.
 *
 * The decompressor believes nothing: whatever the bytes are, it reads and writes within bounds.
 */
#ifndef LSM_SNAPPY_H
#define LSM_SNAPPY_H

#include "wide.h"

#define LSM_SNAPPY_TABLE (1u << 14)   /* places that the largest fragments take */
#define LSM_SNAPPY_LEAST_TABLE 256u
#define LSM_SNAPPY_HASH 0x1E35A7BDu   /* what four bytes are multiplied by; its high bits count */
#define LSM_SNAPPY_FRAGMENT 65536u    /* bytes that are compressed on their own */
#define LSM_SNAPPY_MARGIN 15u         /* last bytes, where nothing is looked for */
#define LSM_SNAPPY_PATIENCE 32u       /* misses, after which every second byte is looked at, ... */
#define LSM_SNAPPY_LONGEST_COPY 64u   /* of one element */
#define LSM_SNAPPY_LONGEST_LENGTH 5u  /* bytes of the uncompressed one */

enum lsm_snappy_tag { LSM_LITERAL = 0, LSM_COPY_1 = 1, LSM_COPY_2 = 2, LSM_COPY_4 = 3 };

LSM_INLINE void lsm_copy16(uint8_t *to, const uint8_t *from) {
    uint8_t some[16]; /* one register, whether or not the bytes overlap */
    memcpy(some, from, 16);
    memcpy(to, some, 16);
}

/* ---------------------------------------------------------------------------------- compression */

/* The most bytes that so many can take. */
LSM_INLINE size_t lsm_snappy_bound(size_t size) {
    return 32 + size + size / 6;
}

/* The head of a literal of this length, which is 1 at least. */
LSM_INLINE uint8_t *lsm_snappy_literal(uint8_t *out, uint32_t length) {
    uint32_t less = length - 1;
    if (less < 60) {
        *out++ = (uint8_t)(less << 2 | LSM_LITERAL);
    } else if (less < 256) {
        *out++ = 60 << 2 | LSM_LITERAL;
        *out++ = (uint8_t)less;
    } else {
        *out++ = 61 << 2 | LSM_LITERAL;
        *out++ = (uint8_t)less;
        *out++ = (uint8_t)(less >> 8);
    }
    return out;
}

/* All bytes that are left, as they are; there may be none. */
LSM_INLINE uint8_t *lsm_snappy_rest(uint8_t *out, const uint8_t *data, uint32_t size) {
    if (size > 0) {
        out = lsm_snappy_literal(out, size);
        memcpy(out, data, size);
    }
    return out + size;
}

LSM_INLINE uint8_t *lsm_snappy_copy_2(uint8_t *out, uint32_t offset, uint32_t length) {
    out[0] = (uint8_t)((length - 1) << 2 | LSM_COPY_2);
    out[1] = (uint8_t)offset;
    out[2] = (uint8_t)(offset >> 8);
    return out + 3;
}

/* Copies of so many bytes, 4 at least; one that is split leaves no less than four for the last. */
LSM_INLINE uint8_t *lsm_snappy_copy(uint8_t *out, uint32_t offset, uint32_t length) {
    while (length >= LSM_SNAPPY_LONGEST_COPY + 4) {
        out = lsm_snappy_copy_2(out, offset, LSM_SNAPPY_LONGEST_COPY);
        length -= LSM_SNAPPY_LONGEST_COPY;
    }
    if (length > LSM_SNAPPY_LONGEST_COPY) {
        out = lsm_snappy_copy_2(out, offset, LSM_SNAPPY_LONGEST_COPY - 4);
        length -= LSM_SNAPPY_LONGEST_COPY - 4;
    }
    if (length < 12 && offset < 2048) {
        out[0] = (uint8_t)(offset >> 8 << 5 | (length - 4) << 2 | LSM_COPY_1);
        out[1] = (uint8_t)offset;
        return out + 2;
    }
    return lsm_snappy_copy_2(out, offset, length);
}

/* How many bytes from `at` on are those from an earlier place on. */
LSM_INLINE uint32_t lsm_snappy_alike(const uint8_t *before, const uint8_t *at, const uint8_t *end) {
    const uint8_t *start = at;
    for (; (size_t)(end - at) >= 8; at += 8, before += 8) {
        uint64_t difference = lsm_load64(at) ^ lsm_load64(before);
        if (difference != 0) {
            return (uint32_t)(at - start) + (uint32_t)lsm_trailing_zeros(difference) / 8;
        }
    }
    while (at < end && *at == *before) {
        at++;
        before++;
    }
    return (uint32_t)(at - start);
}

/* Whether these four bytes stood before, and where; they are entered as standing here. */
LSM_INLINE int lsm_snappy_look(const uint8_t *data, uint32_t bytes, uint32_t at, uint16_t *table,
                               int shift, uint32_t *before) {
    uint16_t *place = &table[bytes * LSM_SNAPPY_HASH >> shift];
    *before = *place;
    *place = (uint16_t)at;
    return bytes == lsm_load32(data + *before);
}

/* The next place from `at` on whose four bytes stood before; 0 if there is none before the last. */
LSM_INLINE int lsm_snappy_seek(const uint8_t *data, uint32_t last, uint16_t *table, int shift,
                               uint32_t *at, uint32_t *before) {
    uint32_t here = *at, misses = LSM_SNAPPY_PATIENCE;
    /* While every byte is looked at, four are so in one word. */
    for (; misses < 2 * LSM_SNAPPY_PATIENCE && here + 4 <= last; misses += 4, here += 4) {
        uint64_t word = lsm_load64(data + here);
        for (uint32_t i = 0; i < 4; i++) {
            if (lsm_snappy_look(data, (uint32_t)(word >> 8 * i), here + i, table, shift, before)) {
                *at = here + i;
                return 1;
            }
        }
    }
    for (;;) {
        uint32_t step = misses / LSM_SNAPPY_PATIENCE;
        if (here + step > last) {
            return 0;
        }
        if (lsm_snappy_look(data, lsm_load32(data + here), here, table, shift, before)) {
            *at = here;
            return 1;
        }
        here += step;
        misses += step;
    }
}

/* Whether what follows a copy stood before, too; the bytes before it are entered as well. */
LSM_INLINE int lsm_snappy_again(const uint8_t *data, uint32_t at, uint16_t *table, int shift,
                                uint32_t *before) {
    uint64_t around = lsm_load64(data + at - 1);
    table[(uint32_t)around * LSM_SNAPPY_HASH >> shift] = (uint16_t)(at - 1);
    return lsm_snappy_look(data, (uint32_t)(around >> 8), at, table, shift, before);
}

/* Empty as much of the table as a fragment takes; hashes are shifted to the right by so much. */
LSM_INLINE int lsm_snappy_clear(uint16_t *table, uint32_t size) {
    uint32_t places = LSM_SNAPPY_LEAST_TABLE;
    int shift = 24;
    for (; places < LSM_SNAPPY_TABLE && places < size; places *= 2) {
        shift--;
    }
    memset(table, 0, places * sizeof *table);
    return shift;
}

/* Compress one fragment, behind which `out` has the room that lsm_snappy_bound() gives it. */
static uint8_t *lsm_snappy_fragment(const uint8_t *data, uint32_t size, uint8_t *out,
                                    uint16_t *table) {
    const uint32_t last = size - LSM_SNAPPY_MARGIN;
    const int shift = lsm_snappy_clear(table, size);
    uint32_t emitted = 0, at = 1, before; /* what was emitted ends there */
    while (lsm_snappy_seek(data, last, table, shift, &at, &before)) {
        /* Behind the place before the last, and behind `out`, there are 16 bytes. */
        uint32_t length = at - emitted;
        out = lsm_snappy_literal(out, length);
        for (uint32_t copied = 0; copied < length; copied += 16) {
            lsm_copy16(out + copied, data + emitted + copied);
        }
        out += length;
        do {
            length = 4 + lsm_snappy_alike(data + before + 4, data + at + 4, data + size);
            out = lsm_snappy_copy(out, at - before, length);
            at += length;
        } while (at < last && lsm_snappy_again(data, at, table, shift, &before));
        emitted = at++;
    }
    return lsm_snappy_rest(out, data + emitted, size - emitted);
}

/* The length of what was written to `out`, which has as much room as lsm_snappy_bound() says. The
 * table has LSM_SNAPPY_TABLE places with anything in them. */
static size_t lsm_snappy_compress(const uint8_t *data, size_t size, uint8_t *out, uint16_t *table) {
    uint8_t *at = out;
    size_t length = size;
    for (; length >= 128; length >>= 7) {
        *at++ = (uint8_t)(length | 128);
    }
    *at++ = (uint8_t)length;
    while (size > 0) {
        uint32_t fragment = size < LSM_SNAPPY_FRAGMENT ? (uint32_t)size : LSM_SNAPPY_FRAGMENT;
        if (fragment > LSM_SNAPPY_MARGIN + 1) {
            at = lsm_snappy_fragment(data, fragment, at, table);
        } else {
            at = lsm_snappy_rest(at, data, fragment);
        }
        data += fragment;
        size -= fragment;
    }
    return (size_t)(at - out);
}

/* -------------------------------------------------------------------------------- decompression */

/* How many bytes the data say that they hold, and where their elements begin; 0 if they do not. */
static int lsm_snappy_length(const uint8_t *data, size_t size, uint32_t *length, size_t *at) {
    uint64_t value = 0;
    for (size_t i = 0; i < size && i < LSM_SNAPPY_LONGEST_LENGTH; i++) {
        value |= (uint64_t)(data[i] & 127) << 7 * i;
        if (data[i] < 128) {
            *length = (uint32_t)value;
            *at = i + 1;
            return value <= UINT32_MAX;
        }
    }
    return 0;
}

/* Little-endian bytes, four at most. */
LSM_INLINE uint32_t lsm_snappy_number(const uint8_t *from, uint32_t bytes) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        number |= (uint32_t)from[i] << 8 * i;
    }
    return number;
}

/* Repeat what stands so many bytes before; up to 16 bytes behind the end are written too. What was
 * written just now is not read again, which would wait for it. */
LSM_INLINE void lsm_snappy_repeat(uint8_t *out, const uint8_t *end, uint32_t offset) {
    const uint8_t *from = out - offset;
    if (offset >= 16) {
        for (; out < end; out += 16, from += 16) {
            lsm_copy16(out, from);
        }
    } else if (offset >= 8) {
        uint8_t some[16]; /* of which the first ones are right */
        memcpy(some, from, 16);
        for (; out < end; out += offset) {
            memcpy(out, some, 16);
        }
    } else {
        uint64_t word = lsm_load64(from) & ((1ull << 8 * offset) - 1);
        for (uint32_t width = offset; width < 8; width *= 2) {
            word |= word << 8 * width;
        }
        for (uint32_t whole = 8 / offset * offset; out < end; out += whole) {
            lsm_store64(out, word);
        }
    }
}

/* 1 if these elements, which are what follows the length, hold so many bytes and are right; else 0,
 * with anything in `out`. */
static int lsm_snappy_decompress(const uint8_t *data, size_t size, uint8_t *out, size_t length) {
    const uint8_t *at = data, *end = data + size;
    uint8_t *to = out, *out_end = out + length;
    while (at < end) {
        const uint32_t tag = *at++;
        const size_t left = (size_t)(end - at), room = (size_t)(out_end - to);
        if ((tag & 3) == LSM_LITERAL) {
            uint64_t count = (tag >> 2) + 1;
            if (count <= 16 && left >= 16 && room >= 16) {
                lsm_copy16(to, at);
                to += count;
                at += count;
                continue;
            }
            uint32_t more = count <= 60 ? 0 : (uint32_t)count - 60;
            if (more > left) {
                return 0;
            }
            if (more > 0) {
                count = (uint64_t)lsm_snappy_number(at, more) + 1;
                at += more;
            }
            if (count > left - more || count > room) {
                return 0;
            }
            memcpy(to, at, (size_t)count);
            to += count;
            at += count;
            continue;
        }
        uint32_t count = (tag >> 2) + 1, offset, bytes = 1u << ((tag & 3) - 1);
        if (left < bytes) {
            return 0;
        }
        offset = lsm_snappy_number(at, bytes);
        at += bytes;
        if (bytes == 1) {
            count = (tag >> 2 & 7) + 4;
            offset |= tag >> 5 << 8;
        }
        if (offset == 0 || offset > (size_t)(to - out) || count > room) {
            return 0;
        }
        if (room >= (size_t)count + 16) {
            lsm_snappy_repeat(to, to + count, offset);
        } else {
            for (uint32_t i = 0; i < count; i++) {
                to[i] = to[(ptrdiff_t)i - (ptrdiff_t)offset];
            }
        }
        to += count;
    }
    return to == out_end;
}

#endif
