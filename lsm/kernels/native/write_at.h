/* Writing to a file at a place, or at its end, where the system has a word for it. */
#ifndef LSM_WRITE_AT_H
#define LSM_WRITE_AT_H

#include <stddef.h>
#include <stdint.h>
#if !defined(_WIN32)
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#endif

/* Hands bytes to the system for this place in a file; how many it has taken, all if it can. */
static size_t lsm_write_at(int descriptor, const uint8_t *bytes, size_t size, uint64_t place) {
    size_t taken = 0;
#if defined(_WIN32)
    (void)descriptor, (void)bytes, (void)size, (void)place;
#else
    while (taken < size) {
        ssize_t done = pwrite(descriptor, bytes + taken, size - taken, (off_t)(place + taken));
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            break;
        }
        taken += (size_t)done;
    }
#endif
    return taken;
}

/* Hands bytes to the system, behind those that it was handed before; how many it has taken. Linux
 * begins to write them to the device, so that a sync later waits for less. */
static size_t lsm_append(int descriptor, const uint8_t *bytes, size_t size, uint64_t place) {
    size_t taken = 0;
#if defined(_WIN32)
    (void)descriptor, (void)bytes, (void)size;
#else
    while (taken < size) {
        ssize_t done = write(descriptor, bytes + taken, size - taken);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            break;
        }
        taken += (size_t)done;
    }
#endif
#if defined(__linux__)
    posix_fadvise(descriptor, (off_t)place, (off_t)taken, POSIX_FADV_DONTNEED);
#else
    (void)place;
#endif
    return taken;
}

#endif
