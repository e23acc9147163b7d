/* SPDX-License-Identifier: MIT */
/* Numbers of the command line: the whole text has to be one, within bounds. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"

bool parse_int(const char *s, int64_t low, int64_t high, int64_t *out) {
    char *end;
    errno = 0;
    if (!(*s == '-' || (*s >= '0' && *s <= '9')))
        return false;
    long long n = strtoll(s, &end, 10);
    if (*end || end == s || errno || n < low || n > high)
        return false;
    *out = n;
    return true;
}

bool parse_uint64(const char *s, uint64_t *out) {
    char *end;
    errno = 0;
    if (*s < '0' || *s > '9')
        return false;
    unsigned long long n = strtoull(s, &end, 10);
    if (*end || errno)
        return false;
    *out = n;
    return true;
}

bool parse_number(const char *s, double *out) {
    char *end;
    if (!strchr("-+.0123456789", *s) || !*s)
        return false;
    double n = strtod(s, &end);
    if (*end || end == s || !isfinite(n))
        return false;
    *out = n;
    return true;
}
