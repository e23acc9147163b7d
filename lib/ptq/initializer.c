/* SPDX-License-Identifier: MIT */
/* Quantizes a float constant to 8 bits by itself, without regard to accumulators and biases. */
#include "ptq/weight_pairs.h"
#include "ptq/quantizer.h"

typedef struct channels {
    size_t channels, inner; /* element i belongs to channel i / inner % channels */
} channels;

static channels channels_of(const qs_const *c, int32_t axis) {
    channels w = {1, 1};
    if (axis < 0)
        return w;
    w.channels = (size_t)c->dims[axis];
    for (int32_t i = axis + 1; i < c->rank; i++)
        w.inner *= (size_t)c->dims[i];
    return w;
}

int qs_weight_params(const qs_weight_form *f, float low, float high, float *scale,
                     int32_t *zero_point) {
    /* Unsigned codes have no narrow range: they are signed ones moved up. */
    const bool moved = f->dtype == QSIM_UINT8 && f->scheme == QSIM_WEIGHT_CHANNEL_ASYMMETRIC &&
                       f->reduce != QSIM_REDUCE_RANGE;
    int code = qsim_qparams_choose(low, high, moved ? QSIM_INT8 : f->dtype, qs_weight_range(f),
                                   scale, zero_point);
    *zero_point += moved ? 128 : 0;
    return code;
}

static int choose(qs_quantizer *q, const float *x, size_t elements, const channels *w,
                  const qs_weight_form *form, const qs_layer *layer, qs_codes *out) {
    float *low = qs_arena_alloc(&q->g->arena, 2 * out->count, sizeof(*low));
    if (!low)
        return QSIM_E_NOMEM;
    float *high = low + out->count;
    memset(low, 0, 2 * out->count * sizeof(*low));
    for (size_t i = 0; i < elements; i++) {
        size_t c = i / w->inner % w->channels;
        low[c] = x[i] < low[c] ? x[i] : low[c];
        high[c] = x[i] > high[c] ? x[i] : high[c];
    }
    for (size_t c = 0; layer && form->reduce == QSIM_REDUCE_PAIRS && c < layer->channels; c++)
        qs_pairs_widen(q, layer, x, c, &low[c % out->count], &high[c % out->count]);
    int code = QSIM_OK;
    for (size_t c = 0; c < out->count && !code; c++)
        code = qs_weight_params(form, low[c], high[c], &out->scale[c], &out->zero_point[c]);
    return code;
}

int qs_initializer_quantize(qs_quantizer *q, qs_id value, int32_t axis, qs_weight_form form,
                            const qs_layer *layer, qs_codes *out) {
    const qs_const *c = q->g->values[value].data;
    const float *x = qs_graph_aligned(q->g, value);
    qs_arena *a = &q->g->arena;
    qs_qlayout layout;
    if (!qs_has_channels(&form))
        axis = -1;
    channels w = channels_of(c, axis);
    *out = (qs_codes){.count = w.channels};
    out->scale = qs_arena_alloc(a, w.channels, sizeof(*out->scale));
    out->zero_point = qs_arena_alloc(a, w.channels, sizeof(*out->zero_point));
    out->data = qs_arena_alloc(a, c->elements + 1, 1);
    if (!x || !out->scale || !out->zero_point || !out->data)
        return QSIM_E_NOMEM;
    if (!qs_all_finite(x, c->elements))
        return qs_fail(q->error, QSIM_E_VALUE, "%s: the weights '%s' hold a NaN or an infinity",
                       q->model->name, q->g->values[value].name);
    int code = choose(q, x, c->elements, &w, &form, layer, out);
    if (code)
        return code == QSIM_E_NOMEM
                   ? code
                   : qs_fail(q->error, code, "%s: the weights '%s' have no usable range",
                             q->model->name, q->g->values[value].name);
    qsim_qparams p = {.dtype = form.dtype,
                      .axis = axis < 0 ? 0 : axis,
                      .count = out->count,
                      .scale = out->scale,
                      .zero_point = out->zero_point};
    code = qs_qlayout_make(c->rank, c->dims, &p, &layout, q->error);
    if (!code)
        qs_quantize(NULL, x, &layout, &p, out->data);
    return code;
}
