/* A block of a table: checked once, and then searched without decoding.
 *
 * What all its user keys begin with stands once, and of each the next eight bytes stand as a number
 * in an array. A search counts the numbers below the sought key's, and looks at an entry itself
 * only where they are equal. Keys are never in memory as a whole: a block of S bytes can stand for
 * S * S / 20 bytes of them.
 *
 * Reading eight bytes at any place up to `end` stays within the block: the array of restarts that
 * follows, and its length, take as many.
 */
#ifndef LSM_BLOCK_H
#define LSM_BLOCK_H

#include "allocation.h"
#include "key_words.h"
#include "simd.h"

#define LSM_VERSION_BYTES 8u
#define LSM_RESTART_BYTES 4u
#define LSM_LEAST_LENGTHS 3u                                     /* bytes of three lengths */
#define LSM_LEAST_ENTRY (LSM_LEAST_LENGTHS + LSM_VERSION_BYTES)  /* of an entry at a restart */
#define LSM_PREFETCHED 512u    /* bytes of words that are fetched ahead: those of a usual block */

enum lsm_block_refusal {
    LSM_BLOCK_TOO_LARGE = 1, /* for offsets of 32 bits */
    LSM_BLOCK_NO_ROOM,       /* for its restarts */
    LSM_BLOCK_OUTSIDE,       /* restarts */
    LSM_BLOCK_MALFORMED,     /* an entry */
    LSM_BLOCK_NO_MEMORY
};

typedef struct lsm_block {
    const uint8_t *data;  /* the block as it is in the file, decompressed: a copy */
    uint32_t size, end;   /* all bytes; where the entries end */
    uint32_t restarts;    /* how many there are */
    uint32_t count;       /* entries */
    uint32_t common;      /* bytes that all user keys of the block begin with */
    const uint8_t *first; /* the first key, which has them */
    uint64_t head;        /* the first eight of them, as a number, zero-padded */
    uint64_t *words;      /* per entry the 8 bytes of its user key behind the common ones,
                           * big-endian, zero-padded */
    uint64_t *versions;   /* per entry; NULL where each stands whole in its entry */
    uint16_t *offsets16;  /* per entry where it begins; NULL if the block has 65536 bytes or more */
    uint32_t *offsets32;  /* the same of such a block */
    size_t held;          /* bytes of all this, which is one piece of memory */
    size_t looked_up;     /* of these the bytes before the data */
} lsm_block;

typedef struct lsm_entry {
    uint64_t version;
    const uint8_t *value;
    uint32_t value_length;
    uint32_t key_length; /* of the user key */
} lsm_entry;

/* What an entry begins with; behind it stand the unshared bytes of its internal key, and its value. */
typedef struct lsm_lengths {
    uint32_t shared, unshared, value_length;
    const uint8_t *key;
} lsm_lengths;

/* ------------------------------------------------------------------------------- one entry */

/* The number that ends before `end`, and where it does; NULL if there is none. At most 35 bits. */
LSM_INLINE const uint8_t *lsm_varint(const uint8_t *at, const uint8_t *end, uint64_t *number) {
    *number = 0;
    for (int shift = 0; shift <= 28 && at < end; shift += 7) {
        uint8_t byte = *at++;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return at;
        }
    }
    return NULL;
}

/* Whether an entry fits the bytes up to `end`, and a key of so many bytes before it. */
LSM_INLINE int lsm_check_lengths(const uint8_t *at, const uint8_t *end, uint32_t before,
                                 lsm_lengths *found) {
    uint64_t shared, unshared, value_length;
    if ((size_t)(end - at) >= LSM_LEAST_LENGTHS && (at[0] | at[1] | at[2]) < 128) {
        shared = at[0];
        unshared = at[1];
        value_length = at[2];
        at += LSM_LEAST_LENGTHS;
    } else if ((at = lsm_varint(at, end, &shared)) == NULL ||
               (at = lsm_varint(at, end, &unshared)) == NULL ||
               (at = lsm_varint(at, end, &value_length)) == NULL) {
        return 0;
    }
    if (shared > before || shared + unshared < LSM_VERSION_BYTES ||
        unshared + value_length > (uint64_t)(end - at)) {
        return 0;
    }
    found->shared = (uint32_t)shared;
    found->unshared = (uint32_t)unshared;
    found->value_length = (uint32_t)value_length;
    found->key = at;
    return 1;
}

LSM_INLINE uint32_t lsm_block_offset(const lsm_block *self, uint32_t index) {
    return self->offsets16 != NULL ? self->offsets16[index] : self->offsets32[index];
}

/* What the entry at an offset begins with, after it was checked. */
LSM_INLINE lsm_lengths lsm_lengths_at(const lsm_block *self, uint32_t offset) {
    const uint8_t *at = self->data + offset, *end = self->data + self->end;
    lsm_lengths found = {at[0], at[1], at[2], at + LSM_LEAST_LENGTHS};
    if ((at[0] | at[1] | at[2]) >= 128) {
        uint64_t shared = 0, unshared = 0, value_length = 0;
        at = lsm_varint(at, end, &shared);
        at = lsm_varint(at, end, &unshared);
        found.key = lsm_varint(at, end, &value_length);
        found.shared = (uint32_t)shared;
        found.unshared = (uint32_t)unshared;
        found.value_length = (uint32_t)value_length;
    }
    return found;
}

LSM_INLINE lsm_lengths lsm_block_lengths(const lsm_block *self, uint32_t index) {
    return lsm_lengths_at(self, lsm_block_offset(self, index));
}

/* How many bytes the user key has. */
LSM_INLINE uint32_t lsm_user_length(const lsm_lengths *lengths) {
    return lengths->shared + lengths->unshared - LSM_VERSION_BYTES;
}

LSM_INLINE uint64_t lsm_version_of(const lsm_block *self, uint32_t index,
                                   const lsm_lengths *lengths) {
    return self->versions != NULL
               ? self->versions[index]
               : lsm_load64(lengths->key + lengths->unshared - LSM_VERSION_BYTES);
}

/* ------------------------------------------------------------------------------------ loading */

/* What the checks find out for the arrays. */
typedef struct lsm_survey {
    uint32_t longest; /* internal key */
    int splits;       /* whether some entry shares bytes of its version */
} lsm_survey;

LSM_INLINE uint32_t lsm_restart(const lsm_block *self, uint32_t number) {
    return number < self->restarts
               ? lsm_load32(self->data + self->end + (size_t)LSM_RESTART_BYTES * number)
               : UINT32_MAX;
}

/* Whether there is room for the restarts, and all lie within the entries. */
static int lsm_check_restarts(lsm_block *self, size_t size) {
    if (size >= LSM_RESTART_BYTES) {
        self->restarts = lsm_load32(self->data + size - LSM_RESTART_BYTES);
    }
    uint64_t taken = LSM_RESTART_BYTES * ((uint64_t)self->restarts + 1);
    if (self->restarts == 0 || taken > size ||
        self->restarts > (size - taken) / LSM_LEAST_ENTRY + 2) {
        return LSM_BLOCK_NO_ROOM;
    }
    if (size > UINT32_MAX) {
        return LSM_BLOCK_TOO_LARGE;
    }
    self->size = (uint32_t)size;
    self->end = (uint32_t)(size - taken);
    uint32_t highest = lsm_restart(self, 0) ? UINT32_MAX : 0;
    for (uint32_t i = 1; i < self->restarts; i++) {
        uint32_t restart = lsm_restart(self, i);
        highest = restart > highest ? restart : highest;
    }
    return highest > self->end ? LSM_BLOCK_OUTSIDE : 0;
}

/* Whether the entries follow one another to the end, and each restart is one that shares nothing;
 * counts them, and finds what their user keys have in common, whatever order they are in. */
static int lsm_check_entries(lsm_block *self, lsm_survey *survey, uint32_t *malformed) {
    const uint8_t *const data = self->data, *const end = data + self->end, *at = data;
    uint32_t number = 0, restart = 0, before = 0, common = UINT32_MAX, longest = 0, count = 0;
    int splits = 0;
    while (at < end) {
        const uint32_t start = (uint32_t)(at - data);
        lsm_lengths lengths;
        *malformed = start;
        if (!lsm_check_lengths(at, end, before, &lengths)) {
            return LSM_BLOCK_MALFORMED;
        }
        if (start >= restart) {
            if (lengths.shared || start > restart) {
                return LSM_BLOCK_MALFORMED;
            }
            restart = lsm_restart(self, ++number);
        }
        if (count++ == 0) {
            self->first = lengths.key;
        }
        const uint32_t user_length = lsm_user_length(&lengths);
        common = user_length < common ? user_length : common;
        if (lengths.shared < common) {
            common = lengths.shared + lsm_alike(lengths.key, self->first + lengths.shared,
                                                common - lengths.shared);
        }
        splits |= lengths.unshared < LSM_VERSION_BYTES;
        before = lengths.shared + lengths.unshared;
        longest = before > longest ? before : longest;
        at = lengths.key + lengths.unshared + lengths.value_length;
    }
    if (count && number < self->restarts) {
        *malformed = restart;
        return LSM_BLOCK_MALFORMED;
    }
    self->count = count;
    self->common = count ? common : 0;
    self->head = lsm_word(self->first, self->common);
    survey->longest = longest;
    survey->splits = splits;
    return 0;
}

/* Room for the arrays, and a copy of the data behind them; 0 if there is none. */
static int lsm_block_reserve(lsm_block *self, int splits) {
    const uint64_t words = (uint64_t)self->count + LSM_WORDS_BEHIND;
    const uint64_t versions = splits ? self->count : 0;
    const int is_small = self->size <= UINT16_MAX;
    uint64_t held = 8 * (words + versions) + (is_small ? 2ull : 4ull) * self->count;
    const uint64_t looked_up = held;
    held += self->size;
    held = (held + LSM_LINE_BYTES - 1) / LSM_LINE_BYTES * LSM_LINE_BYTES; /* as it is reserved */
    if (held > SIZE_MAX / 2) {
        return 0;
    }
    uint8_t *memory = lsm_reserve((size_t)held);
    if (memory == NULL) {
        return 0;
    }
    self->held = (size_t)held;
    self->looked_up = (size_t)looked_up;
    self->words = (uint64_t *)memory;
    self->versions = splits ? self->words + words : NULL;
    uint8_t *offsets = memory + 8 * (words + versions);
    self->offsets16 = is_small ? (uint16_t *)offsets : NULL;
    self->offsets32 = is_small ? NULL : (uint32_t *)offsets;
    memcpy(memory + looked_up, self->data, self->size);
    self->first = memory + looked_up + (self->count ? self->first - self->data : 0);
    self->data = memory + looked_up;
    return 1;
}

/* Where entries begin, and their words. */
static void lsm_block_fill(lsm_block *self) {
    const uint32_t common = self->common;
    uint32_t offset = 0;
    uint64_t word = 0; /* of the internal key, which has eight bytes more than are common */
    for (uint32_t i = 0; i < self->count; i++) {
        const lsm_lengths lengths = lsm_lengths_at(self, offset);
        if (self->offsets16 != NULL) {
            self->offsets16[i] = (uint16_t)offset;
        } else {
            self->offsets32[i] = offset;
        }
        if (lengths.shared <= common) {
            word = lsm_load64_big(lengths.key + (common - lengths.shared));
        } else if (lengths.shared - common < LSM_WORD_BYTES) {
            const uint32_t kept = lengths.shared - common;
            word = (word & lsm_first_bytes(kept)) | lsm_load64_big(lengths.key) >> 8 * kept;
        }
        self->words[i] = word & lsm_first_bytes(lsm_user_length(&lengths) - common);
        offset = (uint32_t)(lengths.key - self->data) + lengths.unshared + lengths.value_length;
    }
    for (uint32_t i = 0; i < LSM_WORDS_BEHIND; i++) {
        self->words[self->count + i] = UINT64_MAX;
    }
}

/* All versions, where some share bytes with those before; 0 if there is no memory. */
LSM_APART int lsm_block_fill_versions(lsm_block *self, uint32_t longest) {
    uint8_t *key = (uint8_t *)malloc(longest);
    if (key == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < self->count; i++) {
        const lsm_lengths lengths = lsm_block_lengths(self, i);
        memcpy(key + lengths.shared, lengths.key, lengths.unshared);
        self->versions[i] = lsm_load64(key + lsm_user_length(&lengths));
    }
    free(key);
    return 1;
}

LSM_INLINE void lsm_block_free(lsm_block *self) {
    if (self->words != NULL) {
        lsm_release((uint8_t *)self->words);
        self->words = NULL;
    }
}

/* Check a block and prepare it for searches; `data` is copied. A refusal, or 0; then
 * lsm_block_free() is due. Where an entry is malformed, it begins at *at. */
static int lsm_block_load(lsm_block *self, const uint8_t *data, size_t size, uint32_t *at) {
    lsm_survey survey = {0, 0};
    memset(self, 0, sizeof *self);
    self->data = data;
    int refusal = lsm_check_restarts(self, size);
    if (refusal == 0) {
        refusal = lsm_check_entries(self, &survey, at);
    }
    if (refusal) {
        return refusal;
    }
    if (!lsm_block_reserve(self, survey.splits)) {
        return LSM_BLOCK_NO_MEMORY;
    }
    lsm_block_fill(self);
    if (survey.splits && !lsm_block_fill_versions(self, survey.longest)) {
        lsm_block_free(self);
        return LSM_BLOCK_NO_MEMORY;
    }
    return 0;
}

/* The bytes it holds. */
LSM_INLINE size_t lsm_block_bytes(const lsm_block *self) {
    return self->held;
}

/* ------------------------------------------------------------------------------------ reading */

/* An entry without its key. */
LSM_INLINE void lsm_block_entry(const lsm_block *self, uint32_t index, lsm_entry *entry) {
    const lsm_lengths lengths = lsm_block_lengths(self, index);
    entry->version = lsm_version_of(self, index, &lengths);
    entry->value = lengths.key + lengths.unshared;
    entry->value_length = lengths.value_length;
    entry->key_length = lsm_user_length(&lengths);
}

/* Write an entry's user key, of which there are key_length bytes. */
static void lsm_block_key(const lsm_block *self, uint32_t index, uint8_t *out) {
    const uint32_t common = self->common, head = common + LSM_WORD_BYTES;
    lsm_lengths lengths = lsm_block_lengths(self, index);
    uint32_t missing = lsm_user_length(&lengths); /* all bytes behind these are written */
    const uint32_t in_word = missing < head ? missing - common : LSM_WORD_BYTES;
    uint8_t word[LSM_WORD_BYTES];
    lsm_store64(word, lsm_swap64(self->words[index]));
    memcpy(out, self->first, common);
    memcpy(out + common, word, in_word);
    while (missing > head) {
        if (lengths.shared < missing) {
            memcpy(out + lengths.shared, lengths.key, missing - lengths.shared);
            missing = lengths.shared;
        }
        if (missing > head) {
            lengths = lsm_block_lengths(self, --index);
        }
    }
}

/* Fetch what a search begins with: the words, and where entries begin. */
LSM_INLINE void lsm_block_prefetch(const lsm_block *self) {
    for (size_t at = 0; at < self->looked_up && at < LSM_PREFETCHED; at += LSM_LINE_BYTES) {
        lsm_prefetch((const uint8_t *)self->words + at);
    }
}

/* Fetch the struct itself, which may lie on two lines. */
LSM_INLINE void lsm_block_prefetch_struct(const lsm_block *self) {
    lsm_prefetch(self);
    lsm_prefetch((const uint8_t *)(self + 1) - 1);
}

/* Fetch an entry, and what a value of usual size takes behind it. */
LSM_INLINE void lsm_block_prefetch_entry(const lsm_block *self, uint32_t index) {
    const uint8_t *entry = self->data + lsm_block_offset(self, index);
    lsm_prefetch(entry);
    lsm_prefetch(entry + LSM_LINE_BYTES);
    lsm_prefetch(entry + 2 * LSM_LINE_BYTES);
}

/* ---------------------------------------------------------------------------------- searching */

/* The order of an entry's user key and of another key that begins with the same common bytes and
 * has the same word. */
LSM_INLINE int lsm_block_order(const lsm_block *self, uint32_t index, lsm_lengths lengths,
                               const uint8_t *key, uint32_t length) {
    const uint32_t head = self->common + LSM_WORD_BYTES, user_length = lsm_user_length(&lengths);
    uint32_t missing = user_length < length ? user_length : length; /* those behind are compared */
    int order = user_length < length ? -1 : user_length > length;
    while (missing > head) {
        const uint32_t from = lengths.shared > head ? lengths.shared : head;
        if (from < missing) {
            const int differs = lsm_order(lengths.key + (from - lengths.shared), key + from,
                                          missing - from);
            order = differs ? differs : order;
            missing = from;
        }
        if (missing > head) {
            lengths = lsm_block_lengths(self, --index);
        }
    }
    return order;
}

/* Whether an entry comes before (key, version), which has the same word. */
LSM_INLINE int lsm_block_precedes(const lsm_block *self, uint32_t index, const uint8_t *key,
                                  uint32_t length, uint64_t version, int *same) {
    const lsm_lengths lengths = lsm_block_lengths(self, index);
    const int order = lsm_block_order(self, index, lengths, key, length);
    *same = order == 0;
    return order < 0 || (order == 0 && lsm_version_of(self, index, &lengths) > version);
}

/* Of the entries from `low` on that have the word of the sought one, the first that does not come
 * before it, or the one behind them all. */
LSM_APART uint32_t lsm_block_among(const lsm_block *self, uint32_t low, const uint8_t *key,
                                   uint32_t length, uint64_t version, uint64_t word, int simd,
                                   int *same) {
    uint32_t end = word == UINT64_MAX ? self->count : lsm_words_below(self->words, self->count, word + 1, simd);
    uint32_t high = end;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (lsm_block_precedes(self, middle, key, length, version, same)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *same = 0;
    if (low < end && self->words[low] == word) {
        lsm_block_precedes(self, low, key, length, version, same);
    }
    return low;
}

/* About where that is, from the words alone: `count`, or the index of an entry to fetch. */
LSM_INLINE uint32_t lsm_block_guess(const lsm_block *self, const uint8_t *key, uint32_t length,
                                    int simd) {
    const uint32_t common = self->common;
    if (length < common) {
        return 0;
    }
    return lsm_words_below(self->words, self->count, lsm_word(key + common, length - common), simd);
}

/* The index of the first entry from (key, version) on, or `count`; *same: its user key is this one.
 * `simd` is one of enum lsm_simd. Where keys do not ascend it is some index. */
static uint32_t lsm_block_seek(const lsm_block *self, const uint8_t *key, uint32_t length,
                               uint64_t version, int simd, int *same) {
    const uint32_t common = self->common, both = length < common ? length : common;
    *same = 0;
    if (common) {
        const uint64_t head = lsm_word(key, both);
        if (common > LSM_WORD_BYTES || length < common || head != self->head) {
            const int order = lsm_order(key, self->first, both);
            if (order || length < common) {
                return order > 0 ? self->count : 0;
            }
        }
    }
    const uint64_t word = lsm_word(key + common, length - common);
    const uint32_t index = lsm_words_below(self->words, self->count, word, simd);
    if (index == self->count || self->words[index] != word) {
        return index;
    }
    lsm_block_prefetch_entry(self, index);
    if (!lsm_block_precedes(self, index, key, length, version, same)) {
        return index;
    }
    *same = 0;
    if (self->words[index + 1] != word || index + 1 == self->count) {
        return index + 1;
    }
    return lsm_block_among(self, index + 1, key, length, version, word, simd, same);
}

#endif
