/* SPDX-License-Identifier: MIT */
/*
 * Reads text files of lines and words: calibrations and recipes. Blanks separate words, # begins a
 * comment, names are in quotation marks. The data is not trusted.
 */
#ifndef QS_LINES_H
#define QS_LINES_H

#include "base/base.h"

typedef struct qs_lines {
    const char *p, *end;
    const char *word; /* the one that was read last, not ended by a NUL */
    size_t length;
    const char *name; /* of the data, for messages */
    size_t line;      /* counted from 1 */
    qsim_error *error;
} qs_lines;

qs_lines qs_lines_of(const void *data, size_t size, const char *name, qsim_error *error);

/*
 * QSIM_E_FORMAT, which names the line: with the text `what`, or that `what` was expected in place
 * of the last word.
 */
int qs_lines_bad(const qs_lines *r, const char *what);
int qs_lines_bad_word(const qs_lines *r, const char *what);

/* Reads the next word of the line; false: the line has ended. */
bool qs_lines_word(qs_lines *r);
/* Whether the last word is `word`. */
bool qs_lines_is(const qs_lines *r, const char *word);
/* Number of words that are left in the line. */
size_t qs_lines_left(const qs_lines *r);
/* Skips the rest of the line. */
void qs_lines_next(qs_lines *r);
/* Reads the first word of the next line that has words; false: the data has ended. */
bool qs_lines_find(qs_lines *r);
/* Goes to the next line; an error if words are left in this one. */
int qs_lines_end(qs_lines *r);

/* The next word as a number: 18446744073709551615 at most; within +-limit; 99.99 or 0x1.8p+2, as
 * exact as a double is. false: it is none. */
bool qs_lines_count(qs_lines *r, uint64_t *value);
bool qs_lines_integer(qs_lines *r, int32_t limit, int32_t *value);
bool qs_lines_number(qs_lines *r, double *value);
/* Reads a hexadecimal number that is exactly a float. */
bool qs_lines_float(qs_lines *r, float *value);

/* Reads a name in quotation marks to the arena; it is not empty and has no NUL. */
int qs_lines_name(qs_lines *r, qs_arena *arena, char **name, size_t *length);
/* Reads 64 hexadecimal digits and the end of the line; an error if `hash` is set already. */
int qs_lines_hash(qs_lines *r, char hash[65]);

#endif
