/* SPDX-License-Identifier: MIT */
/* Matches names against patterns with *, ? and sets. */
#include "ptq/quantizer.h"

/* Matches one set "[...]" at *p against c and moves *p past it; a set without end is a bracket.
 */
static bool match_set(const char **p, char c) {
    const char *s = *p + 1;
    bool negated = *s == '!' || *s == '^', found = false;
    if (negated)
        s++;
    for (bool first = true; *s && (first || *s != ']'); first = false) {
        char low = *s++, high = low;
        if (*s == '-' && s[1] && s[1] != ']') {
            high = s[1];
            s += 2;
        }
        found |= (unsigned char)low <= (unsigned char)c && (unsigned char)c <= (unsigned char)high;
    }
    if (*s != ']') {
        (*p)++;
        return c == '[';
    }
    *p = s + 1;
    return found != negated;
}

/* Matches one pattern element other than '*' against c and moves *p past it. */
static bool match_one(const char **p, char c) {
    if (**p == '[')
        return match_set(p, c);
    if (**p == '?') {
        (*p)++;
        return true;
    }
    if (**p == '\\' && (*p)[1])
        (*p)++;
    return *(*p)++ == c;
}

/* Backtracks to the last star only, so that matching takes at most pattern * text steps. */
bool qs_glob(const char *pattern, const char *text) {
    const char *p = pattern, *t = text, *star = NULL, *from = NULL;
    while (*t) {
        if (*p == '*') {
            star = ++p;
            from = t;
            continue;
        }
        if (*p && match_one(&p, *t)) {
            t++;
            continue;
        }
        if (!star)
            return false;
        p = star;
        t = ++from;
    }
    while (*p == '*')
        p++;
    return *p == 0;
}
