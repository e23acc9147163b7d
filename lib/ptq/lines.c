/* SPDX-License-Identifier: MIT */
#include "ptq/lines.h"

#include <float.h>
#include <math.h>

qs_lines qs_lines_of(const void *data, size_t size, const char *name, qsim_error *error) {
    const char *p = size ? data : "";
    return (qs_lines){.p = p,
                      .end = p + size,
                      .word = p,
                      .name = name ? name : "(memory)",
                      .line = 1,
                      .error = error};
}

int qs_lines_bad(const qs_lines *r, const char *what) {
    return qs_fail(r->error, QSIM_E_FORMAT, "%s: line %zu: %s", r->name, r->line, what);
}

int qs_lines_bad_word(const qs_lines *r, const char *what) {
    const int shown = r->length < 40 ? (int)r->length : 40;
    if (r->length == 0)
        return qs_fail(r->error, QSIM_E_FORMAT, "%s: line %zu: %s, but the line ends", r->name,
                       r->line, what);
    return qs_fail(r->error, QSIM_E_FORMAT, "%s: line %zu: %s, not '%.*s'", r->name, r->line, what,
                   shown, r->word);
}

/* ---- words ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_word(char c) {
    return is_blank(c) || c == '\n' || c == '#';
}

static void skip_blanks(qs_lines *r) {
    while (r->p < r->end && is_blank(*r->p))
        r->p++;
}

bool qs_lines_word(qs_lines *r) {
    skip_blanks(r);
    r->word = r->p;
    while (r->p < r->end && !ends_word(*r->p))
        r->p++;
    r->length = (size_t)(r->p - r->word);
    return r->length > 0;
}

bool qs_lines_is(const qs_lines *r, const char *word) {
    return strlen(word) == r->length && memcmp(r->word, word, r->length) == 0;
}

size_t qs_lines_left(const qs_lines *r) {
    qs_lines ahead = *r;
    size_t count = 0;
    while (qs_lines_word(&ahead))
        count++;
    return count;
}

void qs_lines_next(qs_lines *r) {
    while (r->p < r->end && *r->p != '\n')
        r->p++;
    if (r->p < r->end)
        r->p++;
    r->line++;
}

bool qs_lines_find(qs_lines *r) {
    while (!qs_lines_word(r)) {
        if (r->p == r->end)
            return false;
        qs_lines_next(r);
    }
    return true;
}

int qs_lines_end(qs_lines *r) {
    if (qs_lines_word(r))
        return qs_lines_bad_word(r, "expected the end of the line");
    qs_lines_next(r);
    return QSIM_OK;
}

/* ---- numbers ---- */

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_count(const char *p, const char *end, uint64_t *value) {
    *value = 0;
    for (const char *at = p; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        const uint64_t one = (uint64_t)digit(*at);
        if (*value > (UINT64_MAX - one) / 10)
            return false;
        *value = *value * 10 + one;
    }
    return p < end;
}

bool qs_lines_count(qs_lines *r, uint64_t *value) {
    return qs_lines_word(r) && parse_count(r->word, r->p, value);
}

bool qs_lines_integer(qs_lines *r, int32_t limit, int32_t *value) {
    uint64_t magnitude;
    if (!qs_lines_word(r))
        return false;
    const bool negative = *r->word == '-', sign = negative || *r->word == '+';
    if (!parse_count(r->word + sign, r->p, &magnitude) || magnitude > (uint64_t)limit)
        return false;
    *value = negative ? -(int32_t)magnitude : (int32_t)magnitude;
    return true;
}

/* Parses a number such as 1.8p+2, after 0x: exactly, with up to 13 digits. */
static bool parse_hexadecimal(const char *p, const char *end, double *value) {
    double mantissa = 0;
    int digits = 0, exponent = 0, sign = 1;
    bool point = false;
    for (; p < end && (*p == '.' || digit(*p) >= 0); p++) {
        if (*p == '.' && (point || digits != 1))
            return false;
        if (*p == '.')
            point = true; /* after one digit */
        else if (++digits > 13)
            return false;
        else
            mantissa = mantissa * 16 + digit(*p);
    }
    if (digits == 0 || end - p < 2 || *p++ != 'p')
        return false;
    if (*p == '+' || *p == '-')
        sign = *p++ == '-' ? -1 : 1;
    if (p == end || end - p > 4)
        return false;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        exponent = exponent * 10 + digit(*p);
    }
    *value = ldexp(mantissa, sign * exponent - 4 * (point ? digits - 1 : 0));
    return true;
}

/*
 * Parses a number such as 99.99: with up to 15 digits, so that it is rounded once, by a division.
 */
static bool parse_decimal(const char *p, const char *end, double *value) {
    double whole = 0, scale = 1;
    int digits = 0;
    bool point = false;
    for (; p < end; p++) {
        if (*p == '.' && !point && digits > 0) {
            point = true;
            continue;
        }
        if (*p < '0' || *p > '9' || ++digits > 15)
            return false;
        whole = whole * 10 + digit(*p);
        scale *= point ? 10 : 1;
    }
    *value = whole / scale;
    return digits > 0;
}

/* Parses the last word. */
static bool parse_number(const qs_lines *r, bool decimal, double *value) {
    const char *p = r->word, *end = p + r->length;
    const bool negative = *p == '-';
    p += negative;
    const bool hexadecimal = end - p > 2 && p[0] == '0' && p[1] == 'x';
    if (hexadecimal ? !parse_hexadecimal(p + 2, end, value)
                    : !decimal || !parse_decimal(p, end, value))
        return false;
    *value = negative ? -*value : *value;
    return isfinite(*value);
}

bool qs_lines_number(qs_lines *r, double *value) {
    return qs_lines_word(r) && parse_number(r, true, value);
}

bool qs_lines_float(qs_lines *r, float *value) {
    double exact;
    if (!qs_lines_word(r) || !parse_number(r, false, &exact) || fabs(exact) > (double)FLT_MAX)
        return false;
    *value = (float)exact + 0.0f; /* no -0 */
    return (double)*value == exact;
}

/* ---- names ---- */

/* Reads one byte of a quoted name at *p, which may be escaped; -1: malformed. */
static int unescape(const char **p, const char *close) {
    char c = *(*p)++;
    if (c != '\\')
        return c ? (unsigned char)c : -1;
    c = *(*p)++; /* the name does not end with the backslash */
    if (c == '"' || c == '\\')
        return c;
    if (c != 'x' || close - *p < 2)
        return -1;
    const int high = digit((*p)[0]), low = digit((*p)[1]);
    *p += 2;
    return high < 0 || low < 0 || high + low == 0 ? -1 : high * 16 + low;
}

int qs_lines_name(qs_lines *r, qs_arena *arena, char **name, size_t *length) {
    skip_blanks(r);
    if (r->p == r->end || *r->p != '"')
        return qs_lines_bad(r, "expected a name in quotation marks");
    const char *p = r->p + 1, *close = p;
    while (close < r->end && *close != '"' && *close != '\n')
        close += *close == '\\' && close + 1 < r->end ? 2 : 1;
    if (close >= r->end || *close != '"')
        return qs_lines_bad(r, "the name does not end");
    char *out = qs_arena_string(arena, p, (size_t)(close - p));
    if (!out)
        return QSIM_E_NOMEM;
    for (*name = out; p < close;) {
        const int c = unescape(&p, close);
        if (c < 0)
            return qs_lines_bad(r, "the name is malformed");
        *out++ = (char)c;
    }
    *out = 0;
    r->p = close + 1;
    *length = (size_t)(out - *name);
    if (*length == 0 || (r->p < r->end && !ends_word(*r->p)))
        return qs_lines_bad(r, "the name is malformed");
    return QSIM_OK;
}

int qs_lines_hash(qs_lines *r, char hash[65]) {
    bool good = qs_lines_word(r) && r->length == 64 && !hash[0];
    for (size_t i = 0; good && i < 64; i++)
        good = digit(r->word[i]) >= 0;
    if (!good)
        return qs_lines_bad_word(r, "expected 64 hexadecimal digits, once");
    memcpy(hash, r->word, 64);
    return qs_lines_end(r);
}
