/* SPDX-License-Identifier: MIT */
/* Names and texts of error codes; one-line messages whatever bytes go into them. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    int code;
    const char *name, *text;
} codes[] = {{QSIM_OK, "QSIM_OK", "no error"},
#define ROW(name, number, text) {number, "QSIM_E_" #name, text},
             QSIM_ERROR_LIST(ROW)
#undef ROW
};

const char *qsim_error_name(int code) {
    for (size_t i = 0; i < QS_COUNT(codes); i++)
        if (codes[i].code == code)
            return codes[i].name;
    return "QSIM_E_?";
}

const char *qsim_error_text(int code) {
    for (size_t i = 0; i < QS_COUNT(codes); i++)
        if (codes[i].code == code)
            return codes[i].text;
    return "unknown error";
}

void qs_error_clear(qsim_error *error) {
    if (error) {
        error->code = QSIM_OK;
        error->flags = 0;
        error->message[0] = 0;
        error->hint[0] = 0;
    }
}

/* Length of the well-formed UTF-8 sequence at s (RFC 3629), 0 if it is none or a control byte. */
static size_t utf8_length(const unsigned char *s, size_t left) {
    static const unsigned char lead[] = {0xc2, 0xe0, 0xf0, 0xf5};
    if (s[0] >= 0x20 && s[0] < 0x7f)
        return 1;
    size_t n = s[0] < lead[0]   ? 0
               : s[0] < lead[1] ? 2
               : s[0] < lead[2] ? 3
               : s[0] < lead[3] ? 4
                                : 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, above U+10FFFF; U+0080 to U+009F are control characters. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ||
        (s[0] == 0xc2 && s[1] < 0xa0))
        return 0;
    return n;
}

/* Copies text to out, escaping what is not printable UTF-8, never splitting a character. */
static void escape(const char *text, char *out, size_t capacity) {
    const unsigned char *s = (const unsigned char *)text;
    size_t left = strlen(text), used = 0;
    while (left > 0) {
        size_t n = utf8_length(s, left), take = n ? n : 1;
        if (used + (n ? n : 4) >= capacity)
            break;
        if (n)
            memcpy(out + used, s, n);
        else
            snprintf(out + used, 5, "\\x%02x", s[0]);
        used += n ? n : 4;
        s += take;
        left -= take;
    }
    out[used] = 0;
}

/* Formats into `out`; in a text that is too long "..." replaces the middle. */
QS_PRINTF(3, 0)
static void format_text(char *out, size_t capacity, const char *format, va_list args) {
    char raw[2048], whole[4096] = "";
    vsnprintf(raw, sizeof(raw), format, args);
    escape(raw, whole, sizeof(whole));
    size_t n = strlen(whole);
    if (n < capacity) {
        memcpy(out, whole, n + 1);
        return;
    }
    size_t head = (capacity - 4) / 2, tail = capacity - 4 - head;
    const char *end = whole + n - tail;
    while (head > 0 && ((unsigned char)whole[head] & 0xc0) == 0x80)
        head--;
    while (((unsigned char)*end & 0xc0) == 0x80)
        end++;
    memcpy(out, whole, head);
    memcpy(out + head, "...", 3);
    memcpy(out + head + 3, end, strlen(end) + 1);
}

int qs_fail(qsim_error *error, int code, const char *format, ...) {
    if (error && error->code == QSIM_OK) {
        va_list args;
        va_start(args, format);
        error->code = code;
        format_text(error->message, sizeof(error->message), format, args);
        va_end(args);
    }
    return code;
}

int qs_fail_missing(qsim_error *error, const char *what) {
    return qs_fail(error, QSIM_E_ARGUMENT, "%s: an argument is missing", what);
}

void qs_hint(qsim_error *error, const char *format, ...) {
    va_list args;
    if (!error || error->hint[0])
        return;
    va_start(args, format);
    format_text(error->hint, sizeof(error->hint), format, args);
    va_end(args);
}
