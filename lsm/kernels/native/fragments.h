/* How a log lays out its records: whole, or cut at the ends of blocks; see disk/fragments.py. */
#ifndef LSM_FRAGMENTS_H
#define LSM_FRAGMENTS_H

#include "crc32c.h"
#include "wide.h"

#define LSM_LOG_BLOCK 32768u
#define LSM_FRAGMENT_HEADER 7u

enum lsm_fragment { LSM_WHOLE = 1, LSM_FIRST, LSM_MIDDLE, LSM_LAST };

/* How many bytes a record of so many can take in a log. */
LSM_INLINE size_t lsm_framed_bound(size_t size) {
    return size + (size / (LSM_LOG_BLOCK - LSM_FRAGMENT_HEADER) + 3) * LSM_FRAGMENT_HEADER;
}

LSM_INLINE uint8_t *lsm_fragment_write(uint8_t *to, int kind, const uint8_t *payload,
                                       size_t length) {
    uint8_t type = (uint8_t)kind;
    uint32_t checksum = lsm_crc32c_mask(lsm_crc32c(lsm_crc32c(0, &type, 1), payload, length));
    for (int at = 0; at < 4; at++) {
        to[at] = (uint8_t)(checksum >> 8 * at);
    }
    to[4] = (uint8_t)length;
    to[5] = (uint8_t)(length >> 8);
    to[6] = type;
    memcpy(to + LSM_FRAGMENT_HEADER, payload, length);
    return to + LSM_FRAGMENT_HEADER + length;
}

/* Writes what to append for a record to a log of so many bytes; how many these are. */
static size_t lsm_frame(uint8_t *out, const uint8_t *record, size_t size, uint64_t log_size) {
    uint8_t *to = out;
    size_t left = LSM_LOG_BLOCK - (size_t)(log_size % LSM_LOG_BLOCK);
    int begins = 1;
    for (;;) {
        if (left < LSM_FRAGMENT_HEADER) {
            memset(to, 0, left);
            to += left;
            left = LSM_LOG_BLOCK;
        }
        size_t room = left - LSM_FRAGMENT_HEADER;
        int ends = size <= room;
        size_t length = ends ? size : room;
        int kind = begins ? (ends ? LSM_WHOLE : LSM_FIRST) : (ends ? LSM_LAST : LSM_MIDDLE);
        to = lsm_fragment_write(to, kind, record, length);
        if (ends) {
            return (size_t)(to - out);
        }
        record += length;
        size -= length;
        left = LSM_LOG_BLOCK;
        begins = 0;
    }
}

#endif
