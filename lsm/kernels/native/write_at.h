/* Writing to a place in a file, where the system has a word for it. */
#ifndef LSM_WRITE_AT_H
#define LSM_WRITE_AT_H

#include <stddef.h>
#include <stdint.h>
#if !defined(_WIN32)
#include <errno.h>
#include <unistd.h>
#endif

/* 1: all bytes were handed to the system; 0: it did not take them all. Doing it again changes
 * nothing of what it took. */
static int lsm_write_at(int descriptor, const uint8_t *bytes, size_t size, uint64_t place) {
#if defined(_WIN32)
    (void)descriptor, (void)bytes, (void)size, (void)place;
    return 0;
#else
    while (size > 0) {
        ssize_t done = pwrite(descriptor, bytes, size, (off_t)place);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return 0;
        }
        bytes += done;
        place += (uint64_t)done;
        size -= (size_t)done;
    }
    return 1;
#endif
}

#endif
