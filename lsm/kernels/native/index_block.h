/* A table's index as it is usually written: each key whole, behind it where its block is.
 *
 * What is not so, be it damaged or another engine's, is left to Python, which has the words for it.
 */
#ifndef LSM_INDEX_BLOCK_H
#define LSM_INDEX_BLOCK_H

#include "block.h"

#define LSM_LONGEST_VARINT64 10

typedef struct lsm_index_entry {
    const uint8_t *key; /* the user's */
    uint32_t key_length;
    uint64_t version;
    uint64_t offset, size; /* of the block */
} lsm_index_entry;

/* The number that ends before `end`, and where it does; NULL if there is none of 64 bits. */
LSM_INLINE const uint8_t *lsm_varint64(const uint8_t *at, const uint8_t *end, uint64_t *number) {
    *number = 0;
    for (int place = 0; place < LSM_LONGEST_VARINT64 && at < end; place++) {
        const uint64_t byte = *at++;
        if (place == LSM_LONGEST_VARINT64 - 1 && byte > 1) {
            return NULL;
        }
        *number |= (byte & 127) << 7 * place;
        if (byte < 128) {
            return at;
        }
    }
    return NULL;
}

/* Where the entries of an index block end; NULL if it has no room for its restarts. */
LSM_INLINE const uint8_t *lsm_index_end(const uint8_t *data, size_t size) {
    if (size < LSM_RESTART_BYTES) {
        return NULL;
    }
    const uint32_t restarts = lsm_load32(data + size - LSM_RESTART_BYTES);
    const uint64_t taken = LSM_RESTART_BYTES * ((uint64_t)restarts + 1);
    return restarts == 0 || taken > size ? NULL : data + (size - (size_t)taken);
}

/* The entry at a place before the end, and where the next one is; NULL if it is an unusual one. */
LSM_INLINE const uint8_t *lsm_index_next(const uint8_t *at, const uint8_t *end,
                                         lsm_index_entry *entry) {
    lsm_lengths lengths;
    if (!lsm_check_lengths(at, end, 0, &lengths)) {
        return NULL;
    }
    entry->key = lengths.key;
    entry->key_length = lengths.unshared - LSM_VERSION_BYTES;
    entry->version = lsm_load64(lengths.key + entry->key_length);
    const uint8_t *value = lengths.key + lengths.unshared, *next = value + lengths.value_length;
    value = lsm_varint64(value, next, &entry->offset);
    if (value == NULL || lsm_varint64(value, next, &entry->size) == NULL) {
        return NULL;
    }
    return next;
}

/* How many entries there are, with how many bytes of keys; 0: they are left to Python. */
static int lsm_index_survey(const uint8_t *data, size_t size, size_t *count, size_t *key_bytes) {
    const uint8_t *end = lsm_index_end(data, size), *at = data;
    lsm_index_entry entry;
    *count = *key_bytes = 0;
    if (end == NULL) {
        return 0;
    }
    while (at < end) {
        at = lsm_index_next(at, end, &entry);
        if (at == NULL) {
            return 0;
        }
        *key_bytes += entry.key_length;
        ++*count;
    }
    return 1;
}

#endif
