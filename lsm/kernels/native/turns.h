/* Standing aside for a moment, so that a thread that waits for the interpreter's lock gets it.
 *
 * It would get it after the switch interval, 5 ms, and a background thread needs it some times for
 * each table that it writes.
 */
#ifndef LSM_TURNS_H
#define LSM_TURNS_H

#include <stdint.h>
#if !defined(_WIN32)
#include <sched.h>
#include <time.h>
#endif

/* So long a thread goes on: fewer than one lookup in a thousand waits. */
#define LSM_TURN_NANOSECONDS 4000000u
/* What another one takes to wake up. With less it wakes up in vain, and begins to wait anew. */
#define LSM_ASIDE_NANOSECONDS 40000u

/* The moment on a clock that only goes forward; 0 where there is none that is cheap. */
static uint64_t lsm_moment(void) {
#if defined(_WIN32)
    return 0;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* Do nothing for as long as another thread takes to wake up; without the lock. */
static void lsm_stand_aside(void) {
#if !defined(_WIN32)
    const uint64_t until = lsm_moment() + LSM_ASIDE_NANOSECONDS;
    do {
        sched_yield();
    } while (lsm_moment() < until);
#endif
}

#endif
