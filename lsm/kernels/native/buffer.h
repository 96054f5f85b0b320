/* Bytes that grow at their end. */
#ifndef LSM_BUFFER_H
#define LSM_BUFFER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wide.h"

#define LSM_FIRST_BUFFER ((size_t)256)

typedef struct lsm_buffer {
    uint8_t *bytes; /* NULL where there is no room at all */
    size_t size, room;
} lsm_buffer;

LSM_INLINE void lsm_buffer_free(lsm_buffer *self) {
    free(self->bytes);
    memset(self, 0, sizeof *self);
}

/* Room for so many bytes behind those that are there, at least doubled; 0: there is no memory. */
LSM_APART int lsm_buffer_grow(lsm_buffer *self, size_t more) {
    if (more > SIZE_MAX / 2 - self->size) {
        return 0;
    }
    size_t room = self->room ? self->room : LSM_FIRST_BUFFER;
    while (room < self->size + more) {
        room *= 2;
    }
    uint8_t *bytes = (uint8_t *)realloc(self->bytes, room);
    if (bytes == NULL) {
        return 0;
    }
    self->bytes = bytes;
    self->room = room;
    return 1;
}

LSM_INLINE int lsm_buffer_reserve(lsm_buffer *self, size_t more) {
    return more <= self->room - self->size || lsm_buffer_grow(self, more);
}

/* Add bytes; 0: there is no memory for them. */
LSM_INLINE int lsm_buffer_add(lsm_buffer *self, const void *bytes, size_t size) {
    if (!lsm_buffer_reserve(self, size)) {
        return 0;
    }
    if (size) {
        memcpy(self->bytes + self->size, bytes, size);
        self->size += size;
    }
    return 1;
}

/* Put these bytes in the place of those that are there; 0: there is no memory for them. */
LSM_INLINE int lsm_buffer_set(lsm_buffer *self, const void *bytes, size_t size) {
    self->size = 0;
    return lsm_buffer_add(self, bytes, size);
}

/* Write a number as a varint where there is room; where it ends. */
LSM_INLINE uint8_t *lsm_put_varint(uint8_t *to, uint64_t number) {
    for (; number >= 128; number >>= 7) {
        *to++ = (uint8_t)(number | 128);
    }
    *to++ = (uint8_t)number;
    return to;
}

LSM_INLINE uint8_t *lsm_put32(uint8_t *to, uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) {
        *to++ = (uint8_t)(number >> shift);
    }
    return to;
}

#endif
