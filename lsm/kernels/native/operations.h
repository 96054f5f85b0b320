/* Write batches as the records of a log: a header, and operations one behind the other.
 *
 * The layout stands in kernels/python/batch.py. What is read may be anything at all.
 */
#ifndef LSM_OPERATIONS_H
#define LSM_OPERATIONS_H

#include "wide.h"

#define LSM_BATCH_HEADER 12u /* sequence number, count */
#define LSM_COUNT_AT 8u
#define LSM_MOST_VARINT32 5u /* bytes of a varint of 32 bits */

enum lsm_operation_kind { LSM_DELETE = 0, LSM_PUT = 1 };

typedef struct lsm_operation {
    int kind;
    uint32_t key_length, value_length;
    const uint8_t *key, *value; /* a deletion has no value */
} lsm_operation;

/* ---- Writing ---- */

LSM_INLINE uint8_t *lsm_length_write(uint8_t *to, uint32_t length) {
    while (length >= 128) {
        *to++ = (uint8_t)(length | 128);
        length >>= 7;
    }
    *to++ = (uint8_t)length;
    return to;
}

/* How many bytes an operation can take; lengths of 32 bits cannot overflow it. */
LSM_INLINE uint64_t lsm_operation_bound(uint32_t key_length, uint32_t value_length) {
    return 1 + 2 * LSM_MOST_VARINT32 + (uint64_t)key_length + value_length;
}

/* Writes an operation down; the next one goes where this points to. */
LSM_INLINE uint8_t *lsm_operation_write(uint8_t *to, const lsm_operation *operation) {
    *to++ = (uint8_t)operation->kind;
    to = lsm_length_write(to, operation->key_length);
    memcpy(to, operation->key, operation->key_length);
    to += operation->key_length;
    if (operation->kind == LSM_PUT) {
        to = lsm_length_write(to, operation->value_length);
        memcpy(to, operation->value, operation->value_length);
        to += operation->value_length;
    }
    return to;
}

LSM_INLINE void lsm_batch_stamp(uint8_t *record, uint64_t sequence, uint32_t count) {
    lsm_store64(record, sequence);
    for (int at = 0; at < 4; at++) {
        record[LSM_COUNT_AT + at] = (uint8_t)(count >> 8 * at);
    }
}

/* ---- Reading ---- */

/* The length that stands here, and what is behind it; NULL if it is none of 32 bits. */
LSM_INLINE const uint8_t *lsm_length_read(const uint8_t *at, const uint8_t *end,
                                          uint32_t *length) {
    uint64_t value = 0;
    for (uint32_t taken = 0; taken < LSM_MOST_VARINT32 && at < end; taken++) {
        uint8_t byte = *at++;
        value |= (uint64_t)(byte & 127) << 7 * taken;
        if (byte < 128) {
            *length = (uint32_t)value;
            return value > UINT32_MAX ? NULL : at;
        }
    }
    return NULL;
}

/* Bytes behind their length, and what is behind them; NULL if they are not all there. */
LSM_INLINE const uint8_t *lsm_bytes_read(const uint8_t *at, const uint8_t *end,
                                         const uint8_t **bytes, uint32_t *length) {
    at = lsm_length_read(at, end, length);
    if (at == NULL || *length > (size_t)(end - at)) {
        return NULL;
    }
    *bytes = at;
    return at + *length;
}

/* The operation that stands here, and what is behind it; NULL if there is none. */
LSM_INLINE const uint8_t *lsm_operation_read(const uint8_t *at, const uint8_t *end,
                                             lsm_operation *found) {
    if (at == end || *at > LSM_PUT) {
        return NULL;
    }
    found->kind = *at++;
    found->value = NULL;
    found->value_length = 0;
    at = lsm_bytes_read(at, end, &found->key, &found->key_length);
    if (at == NULL || found->kind == LSM_DELETE) {
        return at;
    }
    return lsm_bytes_read(at, end, &found->value, &found->value_length);
}

#endif
