/* SPDX-License-Identifier: MIT */
#include "op/nn/resize.h"

#include <math.h>

/* Bound of coordinates: greater than any axis, so that they fit an integer. */
#define FAR 4e9f

/* The coordinate in the input that position x of the result has. */
static float input_coordinate(const qs_resize_how *how, const qs_resize_axis *a, float x) {
    const float in = (float)a->in, out = (float)a->out;
    switch (how->coordinates) {
    case QS_HALF_PIXEL: break;
    case QS_HALF_PIXEL_SYMMETRIC: {
        const float adjustment = out / (a->scale * in);
        return in / 2.0f * (1.0f - adjustment) + (x + 0.5f) / a->scale - 0.5f;
    }
    case QS_PYTORCH_HALF_PIXEL:
        if (a->out <= 1)
            return 0.0f;
        break;
    case QS_ALIGN_CORNERS: return a->out <= 1 ? 0.0f : x * (in - 1.0f) / (out - 1.0f);
    case QS_ASYMMETRIC: return x / a->scale;
    case QS_TF_HALF_PIXEL_FOR_NN: return (x + 0.5f) / a->scale;
    case QS_TF_CROP_AND_RESIZE:
        if (a->out <= 1)
            return 0.5f * (a->start + a->end) * (in - 1.0f);
        return a->start * (in - 1.0f) + x * (a->end - a->start) * (in - 1.0f) / (out - 1.0f);
    }
    return (x + 0.5f) / a->scale - 0.5f;
}

static int64_t clamp_index(int64_t i, int64_t size) {
    return i < 0 ? 0 : i < size ? i : size - 1;
}

static int64_t nearest(const qs_resize_how *how, const qs_resize_axis *a, float x) {
    float r = floorf(x);
    switch (how->rounding) {
    case QS_PREFER_FLOOR: r = ceilf(x - 0.5f); break;
    case QS_PREFER_CEIL: r = floorf(x + 0.5f); break;
    case QS_FLOOR: break;
    case QS_CEIL: r = ceilf(x); break;
    case QS_BY_SCALE: r = a->scale < 1.0f ? ceilf(x) : r; break;
    }
    return clamp_index((int64_t)r, a->in);
}

/* Weight of a neighbour at `distance`. */
static float weight_at(const qs_resize_how *how, float distance) {
    const float d = fabsf(distance), a = how->cubic;
    if (how->mode == QS_LINEAR)
        return d < 1.0f ? 1.0f - d : 0.0f;
    if (d <= 1.0f)
        return ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f;
    return d < 2.0f ? ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a : 0.0f;
}

/* Factor of distances in the filter: shrinking with antialias averages more neighbours. */
static float filter_scale(const qs_resize_how *how, const qs_resize_axis *a) {
    return how->antialias && a->scale < 1.0f ? a->scale : 1.0f;
}

static int64_t first_tap(const qs_resize_how *how, const qs_resize_axis *a) {
    const float reach = how->mode == QS_CUBIC ? 2.0f : 1.0f;
    return (int64_t)floorf(-reach / filter_scale(how, a)) + 1;
}

static void filter_taps(const qs_resize_how *how, const qs_resize_axis *a, float x, size_t taps,
                        int64_t *index, float *weight) {
    const float base = floorf(x), factor = filter_scale(how, a);
    const int64_t first = (int64_t)base + first_tap(how, a);
    const bool normalize = how->exclude_outside || factor < 1.0f;
    float sum = 0.0f;
    for (size_t t = 0; t < taps; t++) {
        const int64_t i = first + (int64_t)t;
        const float from_base = (float)(first_tap(how, a) + (int64_t)t);
        index[t] = clamp_index(i, a->in);
        weight[t] = weight_at(how, (from_base - (x - base)) * factor);
        if (how->exclude_outside && index[t] != i)
            weight[t] = 0.0f;
        sum += weight[t];
    }
    for (size_t t = 0; t < taps && normalize && sum != 0.0f; t++)
        weight[t] /= sum;
}

static bool is_identity(const qs_resize_taps *taps, const qs_resize_axis *a) {
    if (a->in != a->out)
        return false;
    for (int64_t i = 0; i < a->out; i++)
        for (size_t t = 0; t < taps->taps; t++) {
            const size_t at = (size_t)i * taps->taps + t;
            const float w = taps->weight ? taps->weight[at] : 1.0f;
            if (taps->index[at] < 0 || (taps->index[at] != i && w != 0.0f) ||
                (taps->index[at] == i && w != 1.0f && w != 0.0f))
                return false;
        }
    return true;
}

QS_COLD int qs_resize_taps_make(qs_arena *arena, const qs_resize_how *how,
                                const qs_resize_axis *axis, qs_resize_taps *out) {
    const bool filter = how->mode != QS_NEAREST;
    size_t entries;
    out->taps = filter ? (size_t)(2 - 2 * first_tap(how, axis)) : 1;
    out->weight = NULL;
    if (!qs_mul((size_t)axis->out, out->taps, &entries))
        return QSIM_E_NOMEM;
    out->index = qs_arena_alloc(arena, entries, sizeof(*out->index));
    if (filter)
        out->weight = qs_arena_alloc(arena, entries, sizeof(*out->weight));
    if (!out->index || (filter && !out->weight))
        return QSIM_E_NOMEM;
    const bool crop = how->coordinates == QS_TF_CROP_AND_RESIZE;
    for (int64_t i = 0; i < axis->out; i++) {
        const size_t at = (size_t)i * out->taps;
        float x = input_coordinate(how, axis, (float)i);
        const bool outside = crop && !(x >= 0.0f && x <= (float)(axis->in - 1));
        x = x < -FAR ? -FAR : x > FAR ? FAR : x;
        if (filter)
            filter_taps(how, axis, x, out->taps, out->index + at, out->weight + at);
        else
            out->index[at] = nearest(how, axis, x);
        if (outside)
            out->index[at] = -1;
    }
    out->identity = is_identity(out, axis);
    return QSIM_OK;
}
