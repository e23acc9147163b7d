/* SPDX-License-Identifier: MIT */
#include "op/nn/resize.h"

#include <math.h>

/* Bound of coordinates: greater than any axis, so that they fit an integer. */
#define FAR 4e9

/*
 * Rounds the result of an operation in double to float, unless pixels are doubles. On floats that
 * has the bits of the operation in float; so each operation below is in a call of its own.
 */
QS_NOINLINE static double r(const qs_resize_how *how, double v) {
    return how->fine ? v : (double)(float)v;
}

/* (x + 0.5) / scale - shift */
static double half_pixel(const qs_resize_how *how, double x, double scale, double shift) {
    return r(how, r(how, r(how, x + 0.5) / scale) - shift);
}

/* The coordinate in the input that position x of the result has. */
static double input_coordinate(const qs_resize_how *how, const qs_resize_axis *a, double x) {
    const double in = r(how, (double)a->in), out = r(how, (double)a->out), scale = a->scale;
    const double start = a->start, end = a->end, last = r(how, in - 1.0);
    switch (how->coordinates) {
    case QS_HALF_PIXEL: break;
    case QS_HALF_PIXEL_SYMMETRIC: {
        const double adjustment = r(how, out / r(how, scale * in));
        const double offset = r(how, in / 2.0 * r(how, 1.0 - adjustment));
        return r(how, r(how, offset + half_pixel(how, x, scale, 0.0)) - 0.5);
    }
    case QS_PYTORCH_HALF_PIXEL:
        if (a->out <= 1)
            return 0.0;
        break;
    case QS_ALIGN_CORNERS: return a->out <= 1 ? 0.0 : r(how, r(how, x * last) / r(how, out - 1.0));
    case QS_ASYMMETRIC: return r(how, x / scale);
    case QS_TF_HALF_PIXEL_FOR_NN: return half_pixel(how, x, scale, 0.0);
    case QS_TF_CROP_AND_RESIZE:
        if (a->out <= 1)
            return r(how, r(how, 0.5 * r(how, start + end)) * last);
        x = r(how, r(how, r(how, x * r(how, end - start)) * last) / r(how, out - 1.0));
        return r(how, r(how, start * last) + x);
    }
    return half_pixel(how, x, scale, 0.5);
}

static int64_t clamp_index(int64_t i, int64_t size) {
    return i < 0 ? 0 : i < size ? i : size - 1;
}

static int64_t nearest(const qs_resize_how *how, const qs_resize_axis *a, double x) {
    double v = floor(x);
    switch (how->rounding) {
    case QS_PREFER_FLOOR: v = ceil(r(how, x - 0.5)); break;
    case QS_PREFER_CEIL: v = floor(r(how, x + 0.5)); break;
    case QS_FLOOR: break;
    case QS_CEIL: v = ceil(x); break;
    case QS_BY_SCALE: v = a->scale < 1.0f ? ceil(x) : v; break;
    }
    return clamp_index((int64_t)v, a->in);
}

/* Weight of a neighbour at `distance`. */
static double weight_at(const qs_resize_how *how, double distance) {
    const double d = fabs(distance), a = how->cubic;
    double v;
    if (how->mode == QS_LINEAR)
        return d < 1.0 ? r(how, 1.0 - d) : 0.0;
    if (d <= 1.0) { /* ((a + 2) d - (a + 3)) d d + 1 */
        v = r(how, r(how, r(how, a + 2.0) * d) - r(how, a + 3.0));
        return r(how, r(how, r(how, v * d) * d) + 1.0);
    }
    if (d >= 2.0)
        return 0.0;
    v = r(how, r(how, a * d) - r(how, 5.0 * a)); /* ((a d - 5 a) d + 8 a) d - 4 a */
    v = r(how, r(how, v * d) + r(how, 8.0 * a));
    return r(how, r(how, v * d) - r(how, 4.0 * a));
}

/* Factor of distances in the filter: shrinking with antialias averages more neighbours. */
static double filter_scale(const qs_resize_how *how, const qs_resize_axis *a) {
    return how->antialias && a->scale < 1.0f ? (double)a->scale : 1.0;
}

static int64_t first_tap(const qs_resize_how *how, const qs_resize_axis *a) {
    const double reach = how->mode == QS_CUBIC ? 2.0 : 1.0;
    return (int64_t)floor(r(how, -reach / filter_scale(how, a))) + 1;
}

static double weight_of(const qs_resize_taps *taps, size_t at) {
    return taps->fine ? taps->fine[at] : taps->weight ? (double)taps->weight[at] : 1.0;
}

static void set_weight(const qs_resize_taps *taps, size_t at, double v) {
    if (taps->fine)
        taps->fine[at] = v;
    else
        taps->weight[at] = (float)v;
}

/* Sets the taps of one position, which are listed from `at` on. */
static void filter_taps(const qs_resize_how *how, const qs_resize_axis *a, double x,
                        const qs_resize_taps *out, size_t at) {
    const double base = floor(x), factor = filter_scale(how, a);
    const int64_t before = first_tap(how, a);
    const bool normalize = how->exclude_outside || factor < 1.0;
    double sum = 0.0;
    for (size_t t = 0; t < out->taps; t++) {
        const int64_t from_base = before + (int64_t)t, i = (int64_t)base + from_base;
        double w = r(how, r(how, (double)from_base - r(how, x - base)) * factor);
        out->index[at + t] = clamp_index(i, a->in);
        w = how->exclude_outside && out->index[at + t] != i ? 0.0 : weight_at(how, w);
        set_weight(out, at + t, w);
        sum = r(how, sum + w);
    }
    for (size_t t = 0; t < out->taps && normalize && sum != 0.0; t++)
        set_weight(out, at + t, weight_of(out, at + t) / sum);
}

static bool is_identity(const qs_resize_taps *taps, const qs_resize_axis *a) {
    if (a->in != a->out)
        return false;
    for (int64_t i = 0; i < a->out; i++)
        for (size_t t = 0; t < taps->taps; t++) {
            const size_t at = (size_t)i * taps->taps + t;
            const double w = weight_of(taps, at);
            if (taps->index[at] < 0 || (taps->index[at] != i && w != 0.0) ||
                (taps->index[at] == i && w != 1.0 && w != 0.0))
                return false;
        }
    return true;
}

QS_COLD int qs_resize_taps_make(qs_arena *arena, const qs_resize_how *how,
                                const qs_resize_axis *axis, qs_resize_taps *out) {
    const bool filter = how->mode != QS_NEAREST, crop = how->coordinates == QS_TF_CROP_AND_RESIZE;
    size_t entries;
    *out = (qs_resize_taps){.taps = filter ? (size_t)(2 - 2 * first_tap(how, axis)) : 1};
    if (!qs_mul((size_t)axis->out, out->taps, &entries))
        return QSIM_E_NOMEM;
    out->index = qs_arena_alloc(arena, entries, sizeof(*out->index));
    if (filter && how->fine)
        out->fine = qs_arena_alloc(arena, entries, sizeof(*out->fine));
    else if (filter)
        out->weight = qs_arena_alloc(arena, entries, sizeof(*out->weight));
    if (!out->index || (filter && !out->fine && !out->weight))
        return QSIM_E_NOMEM;
    for (int64_t i = 0; i < axis->out; i++) {
        const size_t at = (size_t)i * out->taps;
        double x = input_coordinate(how, axis, r(how, (double)i));
        const bool outside = crop && !(x >= 0.0 && x <= r(how, (double)(axis->in - 1)));
        x = x < -FAR ? -FAR : x > FAR ? FAR : x;
        if (filter)
            filter_taps(how, axis, x, out, at);
        else
            out->index[at] = nearest(how, axis, x);
        if (outside)
            out->index[at] = -1;
    }
    out->identity = is_identity(out, axis);
    return QSIM_OK;
}
