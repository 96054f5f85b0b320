/* What the machine itself takes for one random cache line: no filter can answer for less.
 *
 * Plain C99 and POSIX; floor.py compiles it on use and calls it through ctypes.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES 64
#define HUGE_PAGE ((size_t)1 << 21)

/* Memory that starts on a huge page, as a filter's own does, with or without huge pages asked for;
 * every page is written once. NULL where there is none. */
uint8_t *floor_allocate(size_t size, int huge) {
    void *memory = NULL;
    size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (posix_memalign(&memory, HUGE_PAGE, whole)) {
        return NULL;
    }
#if defined(MADV_HUGEPAGE) && defined(MADV_NOHUGEPAGE)
    madvise(memory, whole, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#else
    (void)huge;
#endif
    memset(memory, 1, whole);
    return (uint8_t *)memory;
}

void floor_release(uint8_t *memory) {
    free(memory);
}

/* Two multiplications: as random as addresses need to be, and cheaper than any hash of a key. */
static inline uint64_t line_of(uint64_t number, uint64_t lines) {
    uint64_t mixed = number * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u;
    return (mixed >> 32) * lines >> 32;
}

/* Loads eight bytes of each of `count` random lines, each asked for `distance` turns before. */
uint64_t floor_touch(const uint8_t *memory, uint64_t lines, uint64_t count, uint64_t distance,
                     uint64_t first) {
    uint64_t sum = 0;
    for (uint64_t i = first; i < first + count; i++) {
        uint64_t word;
        __builtin_prefetch(memory + LINE_BYTES * line_of(i + distance, lines));
        memcpy(&word, memory + LINE_BYTES * line_of(i, lines), sizeof word);
        sum += word;
    }
    return sum;
}
