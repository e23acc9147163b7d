/* SPDX-License-Identifier: MIT */
/*
 * Reads the calibration file, whose contents are not trusted: a tensor's exponent and number of
 * bins have to agree with its range, and every bin takes bytes of the file, so that memory is
 * bounded by the size of the file.
 */
#include "ptq/calibration.h"
#include "ptq/lines.h"

#include <math.h>

#include "kernel/context.h"
#include "base/file.h"
#include "ptq/no_memory.h"

/* ---- tensors ---- */

static int read_bins(qs_lines *r, qsim_observer *o, int32_t below, int32_t above) {
    for (int32_t i = -below; i < above; i++) {
        uint64_t n;
        if (!qs_lines_count(r, &n))
            return qs_lines_bad(r, "a count is missing or malformed");
        if (o->count > UINT64_MAX - n)
            return qs_lines_bad(r, "the counts do not fit 64 bits");
        o->count += n;
        if (o->bins)
            o->bins[QS_SIDE + i] = n;
        if (n == 0 && (i == qs_histogram_index(o->min, o->exponent) ||
                       i == qs_histogram_index(o->max, o->exponent)))
            return qs_lines_bad(r, "min or max lies in an empty bin");
    }
    return qs_lines_word(r) ? qs_lines_bad(r, "there are more counts than bins") : QSIM_OK;
}

/* Reads range and bins of a tensor, after its name. */
static int read_observer(qs_lines *r, qsim_ctx *ctx, qsim_observer *o) {
    int32_t below, above, exponent;
    if (!qs_lines_float(r, &o->min) || !qs_lines_float(r, &o->max))
        return qs_lines_bad(r, "min and max are not hexadecimal floats");
    if (o->min > o->max)
        return qs_lines_bad(r, "min is greater than max");
    if (!qs_lines_integer(r, 1000, &exponent) || !qs_lines_integer(r, QS_SIDE, &below) ||
        !qs_lines_integer(r, QS_SIDE, &above))
        return qs_lines_bad(r, "exponent, below and above are not integers in range");
    o->exponent = exponent;
    o->bits = qs_histogram_exponent(o->min, o->max, 0) - exponent;
    if (exponent == QS_MIN_EXPONENT && o->min == 0 && o->max == 0)
        o->bits = QS_BITS;
    if (o->bits < QS_LEAST_BITS || o->bits > QS_BITS)
        return qs_lines_bad(r, "the exponent does not belong to the range");
    o->count = 1; /* so that qs_observer_below and above use the range */
    if (below != qs_observer_below(o) || above != qs_observer_above(o))
        return qs_lines_bad(r, "the number of bins does not belong to the range");
    o->count = 0;
    /*
     * A count takes two bytes of text at least: more counts than that are refused before
     * allocating.
     */
    if (r->end - r->p < 2 * ((ptrdiff_t)below + above))
        return qs_lines_bad(r, "the line is cut off");
    if (o->min < 0 || o->max > 0) {
        o->bins = qs_calloc(ctx, 2 * QS_SIDE, sizeof(*o->bins));
        if (!o->bins)
            return QSIM_E_NOMEM;
    }
    return read_bins(r, o, below, above);
}

static int read_tensor(qs_lines *r, qsim_calibration *c) {
    char *name = NULL;
    size_t length = 0;
    int code = qs_lines_name(r, &c->arena, &name, &length);
    if (code)
        return code;
    qsim_error *error = r->error, local;
    qs_error_clear(&local);
    code = qs_no_memory_in("calibration", qs_calibration_add(c, name, length, &local), &local);
    if (code)
        return qs_fail(error, code, "%s: line %zu: %s", r->name, r->line, local.message);
    return read_observer(r, c->ctx, c->tensors[c->count - 1].kept.observer);
}

/* ---- means ---- */

/* Reads a name and finds the means of that tensor; NULL: it has no line of its own. */
static int read_named_means(qs_lines *r, qsim_calibration *c, qs_means **m) {
    char *name = NULL;
    size_t length = 0;
    int code = qs_lines_name(r, &c->arena, &name, &length);
    const qs_id at = code ? QS_NONE : qs_names_find(c->names, name);
    *m = at == QS_NONE ? NULL : &c->tensors[at].kept.means;
    return code;
}

static int read_means(qs_lines *r, qsim_calibration *c) {
    int32_t axis;
    uint64_t positions;
    qs_means *m;
    int code = read_named_means(r, c, &m);
    if (code || !m)
        return code;
    if (m->sum)
        return qs_lines_bad(r, "means of the same tensor twice");
    if (!qs_lines_integer(r, QSIM_MAX_RANK - 1, &axis) || axis < 0 ||
        !qs_lines_count(r, &positions) || positions == 0)
        return qs_lines_bad(r, "axis and number of positions are not integers in range");
    const size_t channels = qs_lines_left(r);
    if (channels == 0)
        return qs_lines_bad(r, "sums are missing");
    if (qs_means_reserve(c->ctx, m, channels))
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < channels; i++) {
        if (!qs_lines_word(r) || !qs_exact_read(&m->sum[i], r->word, r->length))
            return qs_lines_bad(r, "a sum is malformed");
    }
    m->axis = axis;
    m->positions = positions;
    m->bare = true;
    return QSIM_OK;
}

/* Reads the least and the greatest value of each channel. */
static int read_extremes(qs_lines *r, qsim_calibration *c) {
    qs_means *m;
    int code = read_named_means(r, c, &m);
    if (code || !m)
        return code;
    if (!m->sum || !m->bare)
        return qs_lines_bad(r, m->sum ? "extremes of the same tensor twice"
                                      : "extremes of a tensor without means before them");
    if (qs_lines_left(r) != 2 * m->channels)
        return qs_lines_bad(r, "extremes are not two for each mean");
    for (size_t i = 0; i < m->channels; i++) {
        float *low = &m->extreme[i], *high = low + m->channels;
        if (!qs_lines_float(r, low) || !qs_lines_float(r, high) || !(*low <= *high))
            return qs_lines_bad(r, "extremes are not the least and the greatest value");
    }
    m->bare = false;
    return QSIM_OK;
}

static int read_line(qs_lines *r, qsim_calibration *c) {
    if (qs_lines_is(r, "tensor"))
        return read_tensor(r, c);
    if (qs_lines_is(r, "extremes"))
        return read_extremes(r, c);
    return qs_lines_is(r, "means")
               ? read_means(r, c)
               : qs_lines_bad_word(r, "expected 'tensor', 'means' or 'extremes'");
}

/* ---- header ---- */

static int read_header(qs_lines *r, qsim_calibration *c) {
    uint64_t version, samples;
    if (!qs_lines_find(r) || !qs_lines_is(r, "qsim-calibration") || !qs_lines_count(r, &version))
        return qs_lines_bad(r, "not a calibration file");
    if (version != 1)
        return qs_fail(r->error, QSIM_E_UNSUPPORTED, "%s: calibration version %llu is not known",
                       r->name, (unsigned long long)version);
    int code = qs_lines_end(r);
    if (code)
        return code;
    if (!qs_lines_find(r) || !qs_lines_is(r, "model"))
        return qs_lines_bad_word(r, "expected 'model'");
    code = qs_lines_hash(r, c->model);
    if (code)
        return code;
    if (!qs_lines_find(r) || !qs_lines_is(r, "samples") || !qs_lines_count(r, &samples) ||
        samples > INT64_MAX)
        return qs_lines_bad_word(r, "expected 'samples' and their number");
    c->samples = (int64_t)samples;
    return qs_lines_end(r);
}

int qsim_calibration_load_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                                 qsim_calibration **out, qsim_error *error) {
    qsim_calibration *c;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if ((size > 0 && !data) || !out)
        return qs_fail_missing(error, "calibration");
    qs_lines r = qs_lines_of(data, size, name, error);
    int code = qs_calibration_new(ctx, &c, error);
    if (code)
        return qs_no_memory_in(r.name, code, error);
    if (name)
        c->label = qs_arena_string(&c->arena, name, strlen(name));
    code = c->label ? read_header(&r, c) : QSIM_E_NOMEM;
    while (!code && qs_lines_find(&r)) {
        code = qs_go_on(c->ctx, r.name, error);
        if (!code)
            code = read_line(&r, c);
        qs_lines_next(&r);
    }
    if (code) {
        qsim_calibration_free(c);
        return qs_no_memory_in(r.name, code, error);
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
        return qs_fail_missing(error, "calibration");
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
