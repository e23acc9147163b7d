/* SPDX-License-Identifier: MIT */
/* Finds the word that was probably meant. */
#include "common/args.h"

#include <string.h>

/* Levenshtein's distance, up to 31 letters. */
static size_t distance(const char *a, const char *b) {
    size_t row[32], n = strlen(b);
    if (n > 31 || strlen(a) > 31)
        return 99;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (diagonal + 1 < best)
                best = diagonal + 1;
            if (row[j] + 1 < best)
                best = row[j] + 1;
            row[j + 1] = best;
        }
    }
    return row[n];
}

/* Is one a prefix of the other, like "quant" of "quantize", or "eval" of "evaluate"? */
static bool begins(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b), shorter = n < m ? n : m;
    return shorter >= 3 && strncmp(a, b, shorter) == 0;
}

const char *closest(const char *word, const char *const *names) {
    const char *best = NULL;
    /* Two wrong letters, or two that changed places; more in long words. */
    const size_t length = strlen(word), most = length < 3 ? 1 : length < 8 ? 2 : length / 4 + 1;
    size_t least = most + 1;
    for (size_t i = 0; names[i]; i++) {
        size_t d = distance(word, names[i]);
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    /* A prefix is nearer than a word with two wrong letters. */
    for (size_t i = 0; names[i] && (!best || least > 1); i++)
        if (begins(word, names[i]))
            return names[i];
    return best;
}
