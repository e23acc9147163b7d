/* SPDX-License-Identifier: MIT */
/* Writes the calibration file; calibration_parse.c reads it. */
#include "ptq/calibration.h"

#include <stdio.h>

#include "base/ctx.h"
#include "base/file.h"

/* Writes text to a file or a hash. */
typedef struct writer {
    qs_out *file; /* or */
    qs_sha256 *hash;
    const qsim_ctx *ctx; /* of a hash */
    int code;            /* the first failure: nothing is written any more */
    size_t used;
    char buffer[4096];
} writer;

static void flush(writer *s) {
    if (s->file)
        s->code = qs_out_write(s->file, s->buffer, s->used); /* qs_out_commit reports it */
    else
        qs_sha256_add(s->hash, s->buffer, s->used);
    if (s->hash && !s->code)
        s->code = qs_stop_code(s->ctx);
    s->used = 0;
}

static void put(writer *s, const char *text, size_t n) {
    while (n > 0) {
        size_t left = sizeof(s->buffer) - s->used, piece = n < left ? n : left;
        memcpy(s->buffer + s->used, text, piece);
        s->used += piece;
        text += piece;
        n -= piece;
        if (s->used == sizeof(s->buffer))
            flush(s);
    }
}

static void put_text(writer *s, const char *text) {
    put(s, text, strlen(text));
}

static void put_space(writer *s) {
    put(s, " ", 1);
}

static void put_number(writer *s, uint64_t value) {
    char digits[20];
    size_t n = sizeof(digits);
    do
        digits[--n] = (char)('0' + value % 10);
    while (value /= 10);
    put(s, digits + n, sizeof(digits) - n);
}

static void put_signed(writer *s, int64_t value) {
    if (value < 0)
        put_text(s, "-");
    put_number(s, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Writes a float as -0x1.800000p+3: exactly, whatever the locale, with 6 digits after the dot. */
static void put_float(writer *s, float value) {
    static const char hex[] = "0123456789abcdef";
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    int32_t exponent = (int32_t)(bits >> 23 & 0xff) - 127;
    uint32_t fraction = bits & 0x7fffff;
    char text[] = "0x1.000000p", lead = '1';
    if (exponent == -127) {
        lead = '0';
        exponent = fraction ? -126 : 0;
    }
    text[2] = lead;
    for (int32_t i = 0; i < 6; i++)
        text[4 + i] = hex[fraction << 1 >> (20 - 4 * i) & 15];
    if (bits >> 31)
        put_text(s, "-");
    put_text(s, text);
    put_signed(s, exponent);
}

/* Writes a short decimal for people, with a point in every locale. */
static void put_decimal(writer *s, float value) {
    char text[48];
    int n = snprintf(text, sizeof(text), "%.6g", (double)value);
    for (int i = 0; i < n; i++)
        if (!strchr("0123456789+-e", text[i]))
            text[i] = '.';
    put_text(s, text);
}

static void put_name(writer *s, const char *name) {
    static const char hex[] = "0123456789abcdef";
    put_text(s, "\"");
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        if (*p < 0x20 || *p == 0x7f) {
            char escaped[4] = {'\\', 'x', hex[*p >> 4], hex[*p & 15]};
            put(s, escaped, 4);
        } else {
            if (*p == '"' || *p == '\\')
                put_text(s, "\\");
            put(s, (const char *)p, 1);
        }
    }
    put_text(s, "\"");
}

static void put_tensor(writer *s, const qs_seen *t) {
    const qsim_observer *o = t->kept.observer;
    if (o->count == 0)
        return;
    int32_t below = qs_observer_below(o), above = qs_observer_above(o);
    qs_observer_settle(o);
    put_text(s, "tensor ");
    put_name(s, t->name);
    put_space(s);
    put_float(s, o->min);
    put_space(s);
    put_float(s, o->max);
    put_space(s);
    put_signed(s, o->exponent);
    put_space(s);
    put_signed(s, below);
    put_space(s);
    put_signed(s, above);
    for (int32_t i = -below; i < above; i++) {
        put_space(s);
        put_number(s, o->bins ? o->bins[QS_SIDE + i] : o->count);
    }
    put_text(s, " # ");
    put_decimal(s, o->min);
    put_space(s);
    put_decimal(s, o->max);
    put_text(s, "\n");
}

static void put_means(writer *s, const qs_seen *t) {
    const qs_means *m = &t->kept.means;
    char text[QS_EXACT_TEXT];
    if (m->positions == 0)
        return;
    put_text(s, "means ");
    put_name(s, t->name);
    put_space(s);
    put_signed(s, m->axis);
    put_space(s);
    put_number(s, m->positions);
    for (size_t c = 0; c < m->channels; c++) {
        const qs_exact sum = qs_means_sum(m, c);
        qs_exact_write(&sum, text);
        put_space(s);
        put_text(s, text);
    }
    put_text(s, " #");
    for (size_t c = 0; c < m->channels && c < 4; c++) {
        put_space(s);
        put_decimal(s, (float)qs_means_mean(m, c));
    }
    put_text(s, m->channels > 4 ? " ...\n" : "\n");
}

static void put_extremes(writer *s, const qs_seen *t) {
    const qs_means *m = &t->kept.means;
    if (m->positions == 0 || m->bare)
        return;
    put_text(s, "extremes ");
    put_name(s, t->name);
    for (size_t c = 0; c < m->channels; c++) {
        put_space(s);
        put_float(s, m->extreme[c]);
        put_space(s);
        put_float(s, m->extreme[m->channels + c]);
    }
    put_text(s, "\n");
}

static void put_calibration(writer *s, const qsim_calibration *c, const uint8_t *used) {
    put_text(s, "qsim-calibration 1\nmodel ");
    put_text(s, c->model);
    put_text(s, "\nsamples ");
    put_signed(s, c->samples);
    put_text(s, "\n");
    for (size_t i = 0; i < c->count && !s->code; i++)
        if (!used || used[i] & QS_HASH_RANGE)
            put_tensor(s, &c->tensors[i]);
    for (size_t i = 0; i < c->count && !s->code; i++)
        if (!used || used[i] & QS_HASH_MEANS)
            put_means(s, &c->tensors[i]);
    for (size_t i = 0; i < c->count && !s->code; i++)
        if (!used || used[i] & QS_HASH_EXTREMES)
            put_extremes(s, &c->tensors[i]);
    flush(s);
}

int qs_calibration_hash(const qsim_ctx *ctx, const qsim_calibration *c, const uint8_t *used,
                        char hex[65]) {
    qs_sha256 hash;
    writer s = {.hash = &hash, .ctx = ctx};
    qs_sha256_init(&hash);
    put_calibration(&s, c, used);
    qs_sha256_hex(&hash, hex);
    return s.code;
}

int qsim_calibration_save(const qsim_calibration *c, const char *path, int32_t replace,
                          qsim_error *error) {
    qs_out file;
    writer s = {.file = &file};
    qs_error_clear(error);
    if (!c || !path)
        return qs_fail_missing(error, "calibration");
    int code = qs_out_open(c->ctx, path, replace != 0, &file, error);
    if (code)
        return code;
    put_calibration(&s, c, NULL);
    return qs_out_commit(&file, error);
}
