/* SPDX-License-Identifier: MIT */
/*
 * The calibration file: reading it. Nothing in it is taken on trust: a tensor's exponent and number
 * of bins follow from its range, and must agree with it, so that every bin is backed by bytes.
 */
#include "ptq/calibration.h"

#include <math.h>

#include "kernel/context.h"
#include "base/file.h"

typedef struct reader {
    const char *p, *end;
    const char *name; /* of the data, for messages */
    size_t line;
    qsim_error *error;
} reader;

static int bad(const reader *r, const char *what) {
    return qs_fail(r->error, QSIM_E_FORMAT, "%s: line %zu: %s", r->name, r->line, what);
}

static void skip_blanks(reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        r->p++;
}

/* At the end of a line's data: the line end, the end of the file, or a comment. */
static bool at_end(const reader *r) {
    return r->p == r->end || *r->p == '\n' || *r->p == '#' ||
           (*r->p == '\r' && r->p + 1 < r->end && r->p[1] == '\n');
}

static void next_line(reader *r) {
    while (r->p < r->end && *r->p != '\n')
        r->p++;
    if (r->p < r->end)
        r->p++;
    r->line++;
}

static bool take_char(reader *r, char c) {
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static bool take_word(reader *r, const char *word) {
    size_t n = strlen(word);
    skip_blanks(r);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return at_end(r) || *r->p == ' ' || *r->p == '\t';
}

static bool take_number(reader *r, uint64_t *value) {
    skip_blanks(r);
    const char *start = r->p;
    *value = 0;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        uint64_t digit = (uint64_t)(*r->p++ - '0');
        if (*value > (UINT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return r->p > start;
}

/* An integer within +-limit. */
static bool take_signed(reader *r, int32_t limit, int32_t *value) {
    uint64_t magnitude;
    skip_blanks(r);
    bool negative = take_char(r, '-');
    if (!negative)
        (void)take_char(r, '+');
    if (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        return false;
    if (!take_number(r, &magnitude) || magnitude > (uint64_t)limit)
        return false;
    *value = negative ? -(int32_t)magnitude : (int32_t)magnitude;
    return true;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* [-]0xL.HHHHHHp[+-]E with L 0 or 1 and at most 6 digits after the dot; finite and exact. */
static bool take_float(reader *r, float *value) {
    int32_t mantissa, exponent, digits = 0;
    skip_blanks(r);
    bool negative = take_char(r, '-');
    if (!take_char(r, '0') || !take_char(r, 'x') || r->p == r->end || *r->p < '0' || *r->p > '1')
        return false;
    mantissa = *r->p++ - '0';
    if (take_char(r, '.'))
        for (; digits < 6 && r->p < r->end && hex_digit(*r->p) >= 0; digits++)
            mantissa = mantissa * 16 + hex_digit(*r->p++);
    if (!take_char(r, 'p') || r->p == r->end || *r->p == ' ' || !take_signed(r, 999, &exponent))
        return false;
    double exact = ldexp(mantissa, exponent - 4 * digits);
    *value = (float)(negative ? -exact : exact) + 0.0f;
    return isfinite(*value) && fabs((double)*value) == exact;
}

/* Undoes the escapes of a name between r->p and `close`; `out` has room for all of it. */
static bool unescape(reader *r, const char *close, char *out, size_t *length) {
    const char *start = out;
    while (r->p < close) {
        char c = *r->p++;
        if (c == '\\' && *r->p == 'x') {
            int high = close - r->p > 2 ? hex_digit(r->p[1]) : -1;
            int low = high >= 0 ? hex_digit(r->p[2]) : -1;
            if (low < 0 || high * 16 + low == 0)
                return false;
            c = (char)(high * 16 + low);
            r->p += 3;
        } else if (c == '\\' && (*r->p == '"' || *r->p == '\\')) {
            c = *r->p++;
        } else if (c == '\\' || c == 0) {
            return false;
        }
        *out++ = c;
    }
    *length = (size_t)(out - start);
    return *length > 0;
}

/* A quoted name, in the arena. */
static int take_name(reader *r, qs_arena *arena, char **name, size_t *length) {
    skip_blanks(r);
    if (!take_char(r, '"'))
        return bad(r, "the tensor's name is missing");
    const char *close = r->p;
    while (close < r->end && *close != '"' && *close != '\n')
        close += *close == '\\' && close + 1 < r->end ? 2 : 1;
    if (close >= r->end || *close != '"')
        return bad(r, "the tensor's name does not end");
    *name = qs_arena_alloc(arena, (size_t)(close - r->p) + 1, 1);
    if (!*name)
        return qs_fail(r->error, QSIM_E_NOMEM, "%s: out of memory", r->name);
    if (!unescape(r, close, *name, length))
        return bad(r, "the tensor's name is malformed");
    r->p = close + 1;
    return QSIM_OK;
}

/* ---- tensors ---- */

static int take_bins(reader *r, qsim_observer *o, int32_t below, int32_t above) {
    for (int32_t i = -below; i < above; i++) {
        uint64_t n;
        if (!take_number(r, &n))
            return bad(r, "a count is missing or malformed");
        if (o->count > UINT64_MAX - n)
            return bad(r, "the counts do not fit 64 bits");
        o->count += n;
        if (o->bins)
            o->bins[QS_SIDE + i] = n;
        if (n == 0 && (i == qs_histogram_index(o->min, o->exponent) ||
                       i == qs_histogram_index(o->max, o->exponent)))
            return bad(r, "min or max lies in an empty bin");
    }
    skip_blanks(r);
    return at_end(r) ? QSIM_OK : bad(r, "there are more counts than bins");
}

/* Range and bins of one tensor: everything after its name. */
static int take_observer(reader *r, qsim_ctx *ctx, qsim_observer *o) {
    int32_t below, above, exponent;
    if (!take_float(r, &o->min) || !take_float(r, &o->max))
        return bad(r, "min and max are not hexadecimal floats");
    if (o->min > o->max)
        return bad(r, "min is greater than max");
    if (!take_signed(r, 1000, &exponent) || !take_signed(r, QS_SIDE, &below) ||
        !take_signed(r, QS_SIDE, &above))
        return bad(r, "exponent, below and above are not integers in range");
    o->exponent = exponent;
    o->bits = qs_histogram_exponent(o->min, o->max, 0) - exponent;
    if (exponent == QS_MIN_EXPONENT && o->min == 0 && o->max == 0)
        o->bits = QS_BITS;
    if (o->bits < QS_LEAST_BITS || o->bits > QS_BITS)
        return bad(r, "the exponent does not belong to the range");
    o->count = 1; /* lets qs_observer_below and above look at the range */
    if (below != qs_observer_below(o) || above != qs_observer_above(o))
        return bad(r, "the number of bins does not belong to the range");
    o->count = 0;
    /* Two bytes a count: what is not there is not made room for. */
    if (r->end - r->p < 2 * ((ptrdiff_t)below + above))
        return bad(r, "the line is cut off");
    if (o->min < 0 || o->max > 0) {
        o->bins = qs_calloc(ctx, 2 * QS_SIDE, sizeof(*o->bins));
        if (!o->bins)
            return qs_fail(r->error, QSIM_E_NOMEM, "%s: out of memory", r->name);
    }
    return take_bins(r, o, below, above);
}

static int take_tensor(reader *r, qsim_calibration *c) {
    char *name = NULL;
    size_t length = 0;
    int code = take_name(r, &c->arena, &name, &length);
    if (code)
        return code;
    qsim_error *error = r->error, local;
    qs_error_clear(&local);
    code = qs_calibration_add(c, name, length, &local);
    if (code)
        return qs_fail(error, code, "%s: line %zu: %s", r->name, r->line, local.message);
    return take_observer(r, c->ctx, c->tensors[c->count - 1].kept.observer);
}

/* ---- means ---- */

/* A word: what stands between blanks. */
static size_t word_size(const reader *r) {
    const char *p = r->p;
    while (p < r->end && *p != ' ' && *p != '\t' && *p != '\n' && *p != '\r' && *p != '#')
        p++;
    return (size_t)(p - r->p);
}

/* Numbers of words up to the end of the line's data. */
static size_t count_words(const reader *r) {
    reader look = *r;
    size_t count = 0;
    for (skip_blanks(&look); !at_end(&look) && word_size(&look) > 0; skip_blanks(&look)) {
        look.p += word_size(&look);
        count++;
    }
    return count;
}

static int take_means(reader *r, qsim_calibration *c) {
    char *name = NULL;
    size_t length = 0;
    int32_t axis;
    uint64_t positions;
    int code = take_name(r, &c->arena, &name, &length);
    if (code)
        return code;
    qs_id at = qs_names_find(c->names, name);
    if (at == QS_NONE)
        return QSIM_OK; /* the tensor's line is commented out */
    qs_means *m = &c->tensors[at].kept.means;
    if (m->sum)
        return bad(r, "means of the same tensor twice");
    if (!take_signed(r, QSIM_MAX_RANK - 1, &axis) || axis < 0 || !take_number(r, &positions) ||
        positions == 0)
        return bad(r, "axis and number of positions are not integers in range");
    const size_t channels = count_words(r);
    if (channels == 0)
        return bad(r, "sums are missing");
    if (qs_means_reserve(c->ctx, m, channels))
        return qs_fail(r->error, QSIM_E_NOMEM, "%s: out of memory", r->name);
    for (size_t i = 0; i < channels; i++) {
        skip_blanks(r);
        const size_t size = word_size(r);
        if (!qs_exact_read(&m->sum[i], r->p, size))
            return bad(r, "a sum is malformed");
        r->p += size;
    }
    m->axis = axis;
    m->positions = positions;
    return QSIM_OK;
}

static int take_line(reader *r, qsim_calibration *c) {
    if (take_word(r, "tensor"))
        return take_tensor(r, c);
    return take_word(r, "means") ? take_means(r, c) : bad(r, "expected 'tensor' or 'means'");
}

/* ---- header ---- */

static bool find_line(reader *r) {
    for (;;) {
        skip_blanks(r);
        if (r->p == r->end)
            return false;
        if (!at_end(r))
            return true;
        next_line(r);
    }
}

static int take_header(reader *r, qsim_calibration *c) {
    uint64_t version, samples;
    if (!find_line(r) || !take_word(r, "qsim-calibration") || !take_number(r, &version))
        return bad(r, "not a calibration file");
    if (version != 1)
        return qs_fail(r->error, QSIM_E_UNSUPPORTED, "%s: calibration version %llu is not known",
                       r->name, (unsigned long long)version);
    skip_blanks(r);
    if (!at_end(r))
        return bad(r, "unexpected text");
    next_line(r);
    if (!find_line(r) || !take_word(r, "model"))
        return bad(r, "expected 'model'");
    skip_blanks(r);
    for (size_t i = 0; i < 64; i++, r->p++) {
        if (r->p == r->end || hex_digit(*r->p) < 0)
            return bad(r, "the model's hash is not 64 hexadecimal digits");
        c->model[i] = *r->p;
    }
    skip_blanks(r);
    if (!at_end(r))
        return bad(r, "the model's hash is not 64 hexadecimal digits");
    next_line(r);
    if (!find_line(r) || !take_word(r, "samples") || !take_number(r, &samples) ||
        samples > INT64_MAX)
        return bad(r, "expected 'samples' and their number");
    skip_blanks(r);
    if (!at_end(r))
        return bad(r, "unexpected text");
    c->samples = (int64_t)samples;
    next_line(r);
    return QSIM_OK;
}

int qsim_calibration_load_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                                 qsim_calibration **out, qsim_error *error) {
    qsim_calibration *c;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if ((size > 0 && !data) || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "calibration: an argument is missing");
    int code = qs_calibration_new(ctx, &c, error);
    if (code)
        return code;
    reader r = {.p = data, .name = name ? name : "(memory)", .line = 1, .error = error};
    r.end = size ? r.p + size : r.p;
    code = take_header(&r, c);
    while (!code && find_line(&r)) {
        code = take_line(&r, c);
        next_line(&r);
    }
    if (code) {
        qsim_calibration_free(c);
        return code;
    }
    *out = c;
    return QSIM_OK;
}

int qsim_calibration_load(qsim_ctx *ctx, const char *path, qsim_calibration **out,
                          qsim_error *error) {
    qs_map map;
    qsim_ctx *held;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!path || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "calibration: an argument is missing");
    int code = qs_ctx_hold(ctx, &held, error);
    if (code)
        return code;
    code = qs_map_open(held, path, true, &map, error);
    if (!code) {
        code = qsim_calibration_load_memory(held, map.data, map.size, path, out, error);
        qs_map_close(held, &map);
    }
    qs_ctx_drop(held);
    return code;
}
