/* Items that iterators give, in the memory of items that nobody has any more.
 *
 * Who walks along many entries mostly drops each before the next. Bytes and pairs to which there is
 * one reference, that of the list which is filled anew, are then written over, as zip() does with
 * its tuples: nobody can tell them from new ones, and they cost no allocation.
 */
#ifndef LSM_ITEMS_H
#define LSM_ITEMS_H

#include <Python.h>
#include <string.h>

typedef struct lsm_shape {
    int include_key, include_value;
} lsm_shape;

/* Set a slot to new bytes; 0, or -1 with an exception. */
static inline int lsm_set_bytes(PyObject **slot, const void *from, Py_ssize_t length) {
    PyObject *before = *slot;
    if (before != NULL && Py_REFCNT(before) == 1 && PyBytes_CheckExact(before) &&
        PyBytes_GET_SIZE(before) == length && length > 1) {
        memcpy(PyBytes_AS_STRING(before), from, (size_t)length);
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#elif defined(_MSC_VER)
#pragma warning(push)
#pragma warning(disable : 4996)
#endif
        ((PyBytesObject *)before)->ob_shash = -1; /* its hash is not known any more */
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#elif defined(_MSC_VER)
#pragma warning(pop)
#endif
        return 0;
    }
    PyObject *made = PyBytes_FromStringAndSize((const char *)from, length);
    if (made == NULL) {
        return -1;
    }
    *slot = made;
    Py_XDECREF(before);
    return 0;
}

/* Set a slot to a pair of new bytes. */
static inline int lsm_set_pair(PyObject **slot, const void *key, Py_ssize_t key_length,
                               const void *value, Py_ssize_t value_length) {
    PyObject *pair = *slot;
    if (pair == NULL || Py_REFCNT(pair) != 1 || !PyTuple_CheckExact(pair) ||
        PyTuple_GET_SIZE(pair) != 2) {
        pair = PyTuple_New(2);
        if (pair == NULL) {
            return -1;
        }
        /* Bytes only: nothing in it is for the collector, which would find that out. */
        PyObject_GC_UnTrack(pair);
        Py_XDECREF(*slot);
        *slot = pair;
    }
#if PY_VERSION_HEX >= 0x030E0000
    ((PyTupleObject *)pair)->ob_hash = -1; /* tuples know theirs since Python 3.14 */
#endif
    PyObject **fields = ((PyTupleObject *)pair)->ob_item;
    if (lsm_set_bytes(&fields[0], key, key_length) < 0 ||
        lsm_set_bytes(&fields[1], value, value_length) < 0) {
        return -1;
    }
    return 0;
}

static inline int lsm_set_item(PyObject **slot, const lsm_shape *shape, const void *key,
                               Py_ssize_t key_length, const void *value, Py_ssize_t value_length) {
    if (shape->include_key && shape->include_value) {
        return lsm_set_pair(slot, key, key_length, value, value_length);
    }
    if (shape->include_key) {
        return lsm_set_bytes(slot, key, key_length);
    }
    if (shape->include_value) {
        return lsm_set_bytes(slot, value, value_length);
    }
    PyObject *before = *slot;
    Py_INCREF(Py_None);
    *slot = Py_None;
    Py_XDECREF(before);
    return 0;
}

/* Set a list's item of this index, which it has already or gets now. */
static inline int lsm_put_item(PyObject *items, Py_ssize_t index, const lsm_shape *shape,
                               const void *key, Py_ssize_t key_length, const void *value,
                               Py_ssize_t value_length) {
    if (index < PyList_GET_SIZE(items)) {
        PyObject **slot = &((PyListObject *)items)->ob_item[index];
        return lsm_set_item(slot, shape, key, key_length, value, value_length);
    }
    PyObject *item = NULL;
    int failed = lsm_set_item(&item, shape, key, key_length, value, value_length);
    if (!failed) {
        failed = PyList_Append(items, item);
    }
    Py_XDECREF(item);
    return failed;
}

#endif
