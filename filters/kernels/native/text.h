/* The UTF-8 of a key that is a str, without a bytes object for it.
 *
 * ASCII is its own UTF-8, and is read where it lies. Other texts are encoded into the caller's room:
 * CPython would keep the UTF-8 it is asked for as long as the str lives, which costs whoever holds
 * many of them as much memory again.
 */
#ifndef LSM_TEXT_H
#define LSM_TEXT_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LSM_TEXT_ROOM 1024

/* Writes a character down, in up to 4 bytes, and returns where it ends; NULL for what is none. */
static inline uint8_t *lsm_put_utf8(uint8_t *at, uint32_t point) {
    if (point < 0x80) {
        *at++ = (uint8_t)point;
        return at;
    }
    if (point < 0x800) {
        *at++ = (uint8_t)(0xC0 | point >> 6);
    } else {
        if (point < 0x10000) {
            if (point >= 0xD800 && point < 0xE000) {
                return NULL;
            }
            *at++ = (uint8_t)(0xE0 | point >> 12);
        } else {
            if (point > 0x10FFFF) {
                return NULL;
            }
            *at++ = (uint8_t)(0xF0 | point >> 18);
            *at++ = (uint8_t)(0x80 | (point >> 12 & 63));
        }
        *at++ = (uint8_t)(0x80 | (point >> 6 & 63));
    }
    *at++ = (uint8_t)(0x80 | (point & 63));
    return at;
}

/* NULL where a text has a lone surrogate, or could take more than the room. */
static const uint8_t *lsm_text_encoded(PyObject *text, uint8_t *room, size_t *size) {
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(text)) {
        return NULL;
    }
#endif
    const int kind = (int)PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    const size_t length = (size_t)PyUnicode_GET_LENGTH(text);
    uint8_t *at = room;
    /* Of characters of 1, 2 and 4 bytes none takes more than 2, 3 and 4. */
    if (length > LSM_TEXT_ROOM / (kind == PyUnicode_1BYTE_KIND   ? 2
                                  : kind == PyUnicode_2BYTE_KIND ? 3
                                                                 : 4)) {
        return NULL;
    }
    for (size_t i = 0; i < length; i++) {
        at = lsm_put_utf8(at, (uint32_t)PyUnicode_READ(kind, data, (Py_ssize_t)i));
        if (at == NULL) {
            return NULL;
        }
    }
    *size = (size_t)(at - room);
    return room;
}

/* Where a str of ASCII has its characters; NULL for any other object. */
static inline const uint8_t *lsm_ascii_bytes(PyObject *key, size_t *size) {
    if (PyUnicode_CheckExact(key) && PyUnicode_IS_COMPACT_ASCII(key)) {
        *size = (size_t)PyUnicode_GET_LENGTH(key);
        return (const uint8_t *)PyUnicode_DATA(key);
    }
    return NULL;
}

/* Where a str has its UTF-8: in itself, or in LSM_TEXT_ROOM bytes of room; NULL: ask Python for it. */
static inline const uint8_t *lsm_text_bytes(PyObject *text, uint8_t *room, size_t *size) {
    const uint8_t *ascii = lsm_ascii_bytes(text, size);
    return ascii != NULL ? ascii : lsm_text_encoded(text, room, size);
}

/* The UTF-8 of texts of so many characters of 4 bytes each, with zeros behind those that are
 * shorter: as many bytes at most as these take. From a text on that has none, ends are -1. */
static void lsm_encode_texts(const uint8_t *characters, size_t count, size_t width, uint8_t *into,
                             int64_t *ends) {
    uint8_t *at = into;
    ends[0] = 0;
    for (size_t i = 0; i < count; i++, characters += 4 * width) {
        size_t length = width;
        uint32_t point = 0;
        for (; length; length--) {
            memcpy(&point, characters + 4 * (length - 1), 4);
            if (point) {
                break;
            }
        }
        for (size_t j = 0; j < length && at != NULL; j++) {
            memcpy(&point, characters + 4 * j, 4);
            at = lsm_put_utf8(at, point);
        }
        ends[i + 1] = at == NULL ? -1 : at - into;
    }
}

#endif
