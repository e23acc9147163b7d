/* SPDX-License-Identifier: MIT */
/*
 * Products of states by recurrent weights of 8 bits, as DynamicQuantizeLSTM has them: in each step
 * a sample's state is rounded to 8 bits, with a scale of its own, so that results do not depend on
 * the other samples.
 */
#include <math.h>

#include "op/int8/qvalue.h"
#include "op/nn/recurrent.h"

#include "kernel/u8.h"

/* Lists by position after the weights of a direction; COLUMNS: scratch memory of packing. */
enum { SUMS, ZERO_POINTS, SCALES, COLUMNS, LISTS };

QS_COLD bool qs_states8_make(const qsim_ctx *ctx, const qs_recurrent *r, qs_states8 *f) {
    const qk_i8 *t = ctx->kernels->i8;
    size_t lists, floats;
    f->t = t->tiles ? t->below : t;
    f->ew = ctx->kernels->ew;
    f->u8 = ctx->kernels->u8;
    f->k = (int32_t)r->hidden;
    f->n = r->gates * f->k;
    const qk_source_i8 s = {.n = f->n, .kh = 1, .kw = 1, .c = f->k, .sn = 1, .sc = f->n};
    if (!qk_i8_form(f->t, &s, true, false, &f->form))
        return false;
    lists = (size_t)f->form.positions;
    floats = qs_align(f->form.bytes, 64) / 4 + LISTS * lists;
    f->floats = qs_align(floats, 16);
    f->scratch = 2 * lists + qs_align(4 * (size_t)f->form.k4 + 64, 64) / 4;
    return true;
}

static int32_t *list_of(const qs_states8 *f, const float *packed, int32_t list) {
    const size_t at = qs_align(f->form.bytes, 64) / 4 + (size_t)list * (size_t)f->form.positions;
    return (int32_t *)(void *)(packed + at);
}

QS_COLD void qs_states8_pack(const qs_states8 *f, const qs_recurrent *r, const qs_weights8 *w,
                             int32_t d, float *to) {
    const uint8_t flip = r->is_unsigned ? 128 : 0;
    const int32_t n = f->n;
    const size_t first = (size_t)d * (size_t)n;
    const qk_source_i8 s = {.w = w->w + first * (size_t)f->k,
                            .flip = flip,
                            .n = n,
                            .kh = 1,
                            .kw = 1,
                            .c = f->k,
                            .sn = 1,
                            .sc = n};
    int32_t *columns = list_of(f, to, COLUMNS);
    float *scales = (float *)(void *)columns;
    qk_i8_pack(f->t, &s, true, false, (int8_t *)to, columns);
    qk_i8_spread(f->t, n, n, n, columns, list_of(f, to, SUMS));
    for (int32_t i = 0; i < n; i++)
        columns[i] = w->zp ? (int8_t)(w->zp[r->zero_points ? first + (size_t)i : (size_t)d] ^ flip)
                           : (int8_t)flip;
    qk_i8_spread(f->t, n, n, n, columns, list_of(f, to, ZERO_POINTS));
    for (int32_t i = 0; i < n; i++)
        scales[i] = w->scale[r->scales ? first + (size_t)i : (size_t)d];
    qk_i8_spread(f->t, n, n, n, columns, list_of(f, to, SCALES));
}

void qs_states8_multiply(const qsim_ctx *ctx, const qs_states8 *f, const float *packed,
                         const float *h, const float *none, float *scratch, float *out) {
    const qk_i8 *t = f->t;
    const int32_t n = f->n;
    int32_t *init = (int32_t *)(void *)scratch, sum;
    float *scale = scratch + f->form.positions, low, high;
    uint8_t *bytes = (uint8_t *)(scale + f->form.positions);
    f->ew->range(h, (size_t)f->k, &low, &high);
    const qs_q8 q = qs_q8_dynamic(low, high);
    f->u8->quantize(h, (size_t)f->k, q.scale, q.zero_point, 0, bytes);
    qk_gemm_u8s8 g = {.a = bytes,
                      .m = 1,
                      .segs = 1,
                      .k4 = f->form.k4,
                      .b = (const int8_t *)packed,
                      .out_stride = 4 * (ptrdiff_t)n,
                      .o = {.low = -INFINITY, .high = INFINITY}};
    t->row_sums(&g, f->k, 1, &sum);
    const qs_columns8 columns = {list_of(f, packed, SUMS), list_of(f, packed, ZERO_POINTS),
                                 (const float *)(void *)list_of(f, packed, SCALES)};
    qs_states8_columns(&columns, (size_t)f->form.positions, q, sum - f->k * q.zero_point, scratch);
    for (int32_t first = 0; first < n && !qs_stopped(ctx);) {
        const int32_t panels = qk_i8_panels(t, 1, n - first), one = qk_i8_panel(t, n - first);
        const int32_t width = panels ? panels * one : one;
        g.width = one;
        g.cols = width < n - first ? width : n - first;
        g.out = out + first;
        g.o.bias = init + first;
        g.o.scale = scale + first;
        g.o.add = none;
        if (panels)
            t->panels(&g, panels);
        else
            t->gemm(&g);
        g.b += 4 * (size_t)g.k4 * (size_t)width;
        first += width;
    }
}
