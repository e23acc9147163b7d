/* SPDX-License-Identifier: MIT */
#include "op/int8/int8_prepare.h"

#include <math.h>
#include <stdlib.h>

#include "base/ctx.h"
#include "op/rules.h"
#include "quant/requantize.h"

static size_t columns_of(const qs_conv_i8_weights *w) {
    return (size_t)w->groups * (size_t)w->n;
}

bool qs_i8_any_zero_point(const qs_i8_list *w_zp, uint8_t flip) {
    for (int32_t i = 0; i < (w_zp->data ? w_zp->count : 1); i++)
        if (qs_i8_list_at(w_zp, i) != flip)
            return true;
    return false;
}

/* Whether all weights have the same zero point. */
static bool one_zero_point(const qs_i8_list *w_zp) {
    for (int32_t i = 1; i < (w_zp->data ? w_zp->count : 1); i++)
        if (qs_i8_list_at(w_zp, i) != qs_i8_list_at(w_zp, 0))
            return false;
    return true;
}

QS_COLD void qs_i8_choose(qs_conv_i8_weights *w, const qs_i8_list *w_zp, uint8_t flip, bool one,
                          bool wide) {
    bool any = qs_i8_any_zero_point(w_zp, flip);
    const bool same = any && one && !wide && one_zero_point(w_zp);
    const bool depthwise = w->groups > 1 && w->n == 1 && w->c == 1;
    bool split = any && !wide && (depthwise || !same);
    /* 127 - (-128) is not the sum of two s8 numbers. */
    for (int32_t i = 0; i < (w_zp->data ? w_zp->count : 1) && split; i++)
        split = qs_i8_list_at(w_zp, i) - flip > -128;
    w->zero_points = split           ? QS_ZP_SPLIT
                     : same          ? QS_ZP_SAME
                     : (any || wide) ? QS_ZP_COLUMN
                                     : QS_ZP_NONE;
}

QS_COLD bool qs_i8_alike(const qs_conv_i8_weights *v, const qk_source_i8 *s,
                         const qs_conv_i8_weights *w, const qk_source_i8 *t) {
    return v->t == w->t && v->groups == w->groups && v->n == w->n && v->kh == w->kh &&
           v->kw == w->kw && v->c == w->c && v->stride_h == w->stride_h &&
           v->stride_w == w->stride_w && v->contiguous == w->contiguous &&
           v->strided_out == w->strided_out && v->zero_points == w->zero_points &&
           v->result == w->result && v->bytes == w->bytes && s->w == t->w && s->flip == t->flip &&
           s->sn == t->sn && s->sy == t->sy && s->sx == t->sx && s->sc == t->sc;
}

QS_COLD bool qs_i8_list_same(const qs_i8_list *a, const qs_i8_list *b) {
    return a->count == b->count &&
           (a->data == b->data ||
            (a->data && b->data && memcmp(a->data, b->data, (size_t)a->count) == 0));
}

QS_COLD int64_t qs_i8_sample_rows(const qs_value *y, const qs_conv_i8_weights *w) {
    const int64_t columns = (int64_t)w->n * w->groups;
    const int64_t rest = y->rank < 1 ? 0 : qs_dims_product(y->dims, 1, y->rank);
    const int64_t batch = y->rank < 1 ? 0 : y->dims[0].size;
    const bool counts = rest > 0 && batch > 0 && rest < INT32_MAX && batch < INT32_MAX;
    return rest > 0 && columns > 0 ? (counts ? rest * batch : rest) / columns : 0;
}

/* Takes an aligned piece of `count` 4-byte elements from a block of memory. */
static void *cut(uint8_t **at, size_t count) {
    void *piece = *at;
    *at += qs_align(4 * count, 64);
    return piece;
}

bool qs_i8_weights_bytes(const qs_conv_i8_weights *w, size_t *bytes) {
    size_t columns = columns_of(w);
    if (w->bytes > SIZE_MAX / 4 || columns > SIZE_MAX / 64)
        return false;
    *bytes = qs_align(w->bytes, 64) + 2 * qs_align(4 * columns, 64);
    return true;
}

#define ONES 1024

/* Whether packed columns can be summed by a product with a row of at most ONES ones. */
static bool sums_packed(const qs_conv_i8_weights *w) {
    return !qs_conv_i8_is_depthwise(w) && w->groups == 1 && w->pixels == 1 && w->form.segs == 1 &&
           w->form.k4 <= ONES / 4;
}

static void sum_packed(const qsim_ctx *ctx, const qs_conv_i8_weights *w, const int8_t *b,
                       int32_t *colsum) {
    static const int32_t zeros[64];
    uint8_t ones[ONES + 64];
    qk_gemm_u8s8 g = {.a = ones, .m = 1, .segs = 1, .k4 = w->form.k4, .b = b, .o = {.bias = zeros}};
    memset(ones, 1, sizeof(ones));
    for (int32_t n = 0; n < w->n && !(ctx && qs_stopped(ctx)); n += g.width) {
        g.width = qk_i8_panel(w->t, w->form.n - n);
        g.cols = w->n - n < g.width ? w->n - n : g.width;
        g.out = colsum + n;
        w->t->gemm(&g);
        g.b += 4 * (size_t)g.k4 * (size_t)g.width;
    }
}

void qs_i8_weights_fill(const qs_conv_i8_weights *w, const qk_source_i8 *s, int64_t group_stride,
                        const qs_i8_list *w_zp, const qs_i8_totals *totals, void *memory,
                        qs_i8_weights *out) {
    const int64_t terms = (int64_t)w->kh * w->kw * w->c;
    size_t columns = columns_of(w);
    uint8_t *at = (uint8_t *)memory + qs_align(w->bytes, 64);
    int32_t *colsum = cut(&at, columns), *zero_points = cut(&at, columns);
    qk_source_i8 source = *s;
    for (size_t i = 0;
         i < columns && (w->zero_points == QS_ZP_COLUMN || w->zero_points == QS_ZP_SPLIT); i++)
        zero_points[i] = qs_i8_list_at(w_zp, (int64_t)i) - s->flip;
    source.zp = w->zero_points == QS_ZP_SPLIT ? zero_points : NULL;
    const bool first = totals || sums_packed(w);
    qs_conv_i8_weights_pack(w, &source, group_stride, memory, first ? NULL : colsum);
    if (!totals && first)
        sum_packed(s->ctx, w, memory, colsum);
    for (size_t i = 0; i < columns && totals; i++) {
        const int64_t zp =
            w->zero_points == QS_ZP_SPLIT ? 0 : qs_i8_list_at(w_zp, (int64_t)i) - s->flip;
        colsum[i] = (int32_t)(totals->sum[i] + terms * zp);
    }
    *out = (qs_i8_weights){memory, colsum, w->zero_points == QS_ZP_COLUMN ? zero_points : NULL,
                           w->zero_points == QS_ZP_SAME ? qs_i8_list_at(w_zp, 0) - s->flip : 0};
}

static float multiplier_of(const qs_i8_rules *r, int64_t column) {
    float w = r->w_scales == 1 ? r->w_scale[0] : r->w_scale[column];
    return r->mult ? w : qs_requantize_multiplier(r->x_scale, w, r->y_scale);
}

bool qs_i8_epilogue_bytes(const qs_conv_i8_weights *w, size_t *bytes) {
    size_t columns = columns_of(w), positions = (size_t)w->positions;
    if (columns > SIZE_MAX / 64 || positions > SIZE_MAX / 64)
        return false;
    *bytes = 2 * qs_align(4 * columns, 64) + 2 * qs_align(4 * positions, 64);
    return true;
}

bool qs_i8_columns_bytes(const qs_conv_i8_weights *w, size_t *bytes) {
    size_t columns = columns_of(w), positions = (size_t)w->positions;
    if (columns > SIZE_MAX / 64 || positions > SIZE_MAX / 64)
        return false;
    *bytes = 3 * qs_align(4 * positions, 64) + qs_align(4 * columns, 64);
    return true;
}

void qs_i8_columns_fill(const qs_conv_i8_weights *w, const int32_t *colsum, const float *w_scale,
                        const float *add, void *memory, qs_i8_columns *out) {
    const size_t columns = columns_of(w), positions = (size_t)w->positions;
    uint8_t *at = memory;
    int32_t *sums = cut(&at, positions);
    float *scales = cut(&at, positions), *adds = cut(&at, positions), *zeros = cut(&at, columns);
    for (size_t i = 0; i < columns && !add; i++)
        zeros[i] = -0.0f; /* v + -0.0f is v */
    qs_conv_i8_weights_spread(w, colsum, sums);
    qs_conv_i8_weights_spread(w, w_scale, scales);
    qs_conv_i8_weights_spread(w, add ? add : zeros, adds);
    *out = (qs_i8_columns){sums, scales, adds};
}

/* Computes what depends on the scale and zero point of x. */
static qk_out_i8 floats_of(const qs_conv_i8_weights *w, const qs_i8_rules *r, uint32_t zeros,
                           uint8_t *at) {
    const size_t positions = (size_t)w->positions;
    const int32_t *colsum = r->floats->colsum;
    const float *w_scale = r->floats->w_scale, x_scale = r->x_scale;
    const uint32_t x_zp = (uint32_t)r->x_zp;
    uint32_t *bias = cut(&at, positions);
    float *scale = cut(&at, positions);
    if (r->bias)
        qs_conv_i8_weights_spread(w, r->bias, bias);
    else
        memset(bias, 0, positions * sizeof(*bias));
    for (size_t i = 0; i < positions; i++)
        bias[i] -= x_zp * ((uint32_t)colsum[i] - zeros);
    for (size_t i = 0; i < positions; i++)
        scale[i] = x_scale * w_scale[i];
    return (qk_out_i8){.bias = (const int32_t *)bias,
                       .scale = scale,
                       .add = r->floats->add,
                       .low = r->low,
                       .high = r->high};
}

static bool stopped_at(const qs_i8_rules *r, size_t i) {
    return r->ctx && qs_stopped_at(r->ctx, i);
}

QS_COLD void qs_i8_epilogue_fill(const qs_conv_i8_weights *w, const qs_i8_weights *packed,
                                 const qs_i8_rules *r, void *memory, qs_i8_epilogue *out) {
    size_t columns = columns_of(w), positions = (size_t)w->positions;
    uint8_t *at = memory;
    uint32_t zeros = (uint32_t)(w->kh * w->kw * w->c) * (uint32_t)packed->row_zp;
    if (r->floats) {
        *out = (qs_i8_epilogue){.o = floats_of(w, r, zeros, at)};
        return;
    }
    uint32_t *bias = cut(&at, columns), *bias_at = cut(&at, positions);
    float *mult = cut(&at, columns), *mult_at = cut(&at, positions);
    bool post = packed->w_zp || r->row_zp || r->row_scale || r->wide;
    const double terms = (double)w->kh * (double)w->kw * (double)w->c;
    bool clamp = false; /* with the worst weights, sum times multiplier may leave int32 */
    for (size_t i = 0; i < columns && !stopped_at(r, i); i++) {
        bias[i] = r->bias && !r->wide ? (uint32_t)r->bias[i] : 0;
        if (!post)
            bias[i] -= (uint32_t)r->x_zp * ((uint32_t)packed->colsum[i] - zeros);
        if (!r->int32_out)
            mult[i] = r->row_scale ? (r->w_scales == 1 ? r->w_scale[0] : r->w_scale[i])
                                   : multiplier_of(r, (int64_t)i);
        const double size = 65025.0 * terms + (r->bias ? fabs((double)r->bias[i]) : 0);
        clamp |= !r->int32_out && !(size * fabs((double)mult[i]) < 2147483000.0);
    }
    qs_conv_i8_weights_spread(w, bias, bias_at);
    if (!r->int32_out)
        qs_conv_i8_weights_spread(w, mult, mult_at);
    out->o = (qk_out_i8){.bias = (const int32_t *)bias_at,
                         .mult = r->int32_out ? NULL : mult_at,
                         .zp = r->y_zp,
                         .lo = r->lo,
                         .hi = r->hi,
                         .clamp = clamp,
                         .fits16 = r->fits16};
    out->use_post = post;
    out->post = (qs_conv_i8_post){.colsum = packed->colsum,
                                  .w_zp = packed->w_zp,
                                  .wide_bias = r->wide ? r->bias : NULL,
                                  .row_zp = r->row_zp,
                                  .zp = r->x_zp,
                                  .k = w->kh * w->kw * w->c,
                                  .mult = r->int32_out || r->row_scale ? NULL : mult,
                                  .row_scale = r->int32_out ? NULL : r->row_scale,
                                  .col_scale = mult,
                                  .y_scale = r->y_scale};
}

static bool fits(int64_t least, int64_t greatest) {
    return least >= INT32_MIN && greatest <= INT32_MAX;
}

void qs_i8_sum_up(const qs_conv_i8_weights *w, const qk_source_i8 *s, int64_t group_stride,
                  const qs_i8_list *w_zp, const qs_i8_totals *to) {
    int32_t zp[QK_I8_TOTALS];
    qk_source_i8 source = *s;
    int64_t at = 0;
    for (int32_t g = 0; g < w->groups; g++, source.w += group_stride)
        for (int32_t first = 0, count; first < w->n && !(s->ctx && qs_stopped(s->ctx));
             first += count, at += count) {
            count = w->n - first < QK_I8_TOTALS ? w->n - first : QK_I8_TOTALS;
            for (int32_t i = 0; i < count; i++)
                zp[i] = qs_i8_list_at(w_zp, at + i) - source.flip;
            qk_i8_totals(&source, first, count, zp, to->sum + at, to->above + at);
        }
}

QS_COLD bool qs_i8_prove(const qs_conv_i8_weights *w, const qs_i8_totals *t, qs_i8_rules *r,
                         bool *clamp, int32_t *column, int64_t *bound) {
    *clamp = false;
    r->wide = false;
    r->fits16 = true;
    for (int64_t at = 0; at < (int64_t)w->groups * w->n && !stopped_at(r, (size_t)at); at++) {
        int64_t least, greatest;
        float m = multiplier_of(r, at);
        *column = (int32_t)at;
        *bound = 0;
        if (!isfinite(m))
            return false;
        qk_i8_bounds(t->sum[at], t->above[at], r->x_zp, &least, &greatest);
        *bound = -least > greatest ? least : greatest;
        if (!fits(least, greatest))
            return false;
        least += r->bias ? r->bias[at] : 0;
        greatest += r->bias ? r->bias[at] : 0;
        r->wide |= !fits(least, greatest);
        double most = (double)(-least > greatest ? -least : greatest) * (double)fabsf(m);
        if (most >= 2147483000.0)
            *clamp = true;
        if (most >= QK_I8_FITS16)
            r->fits16 = false;
    }
    return true;
}

/*
 * Finds the sum nearest to 0 whose product with m saturates: it is at most `bound` if `below`,
 * else at least `bound`. False if no such sum is certain.
 */
static bool saturated_sum(float m, float bound, bool below, int64_t *sum) {
    double t = (double)bound / (double)m;
    if (!(m > 0) || !(fabs(t) < 1e9))
        return false;
    *sum = below ? (int64_t)floor(t) - 1 : (int64_t)ceil(t) + 1;
    /* Sums are rounded to float: move this one away from 0 by one part in 2^22. */
    *sum += (below ? -1 : 1) * (llabs(*sum) >> 22);
    return below ? (float)*sum * m <= bound : (float)*sum * m >= bound;
}

/* Reduces one column's bias so that sums fit int32 with the same results; false if it cannot. */
static bool narrow_column(const qs_i8_rules *r, float m, int64_t least, int64_t greatest,
                          int32_t *bias) {
    int64_t edge;
    if (fits(least + *bias, greatest + *bias))
        return true;
    bool below = *bias < 0;
    if (!saturated_sum(m, (float)((below ? r->lo : r->hi) - r->y_zp), below, &edge))
        return false;
    int64_t b = below ? edge - greatest : edge - least;
    if (!fits(b, b) || !fits(least + b, greatest + b) || (below ? b < *bias : b > *bias))
        return false;
    *bias = (int32_t)b;
    return true;
}

QS_COLD bool qs_i8_narrow(const qs_conv_i8_weights *w, const qs_i8_totals *t, const qs_i8_rules *r,
                          int32_t *bias) {
    for (int64_t at = 0; at < (int64_t)w->groups * w->n && !stopped_at(r, (size_t)at); at++) {
        int64_t least, greatest;
        qk_i8_bounds(t->sum[at], t->above[at], r->x_zp, &least, &greatest);
        bias[at] = r->bias[at];
        if (!narrow_column(r, multiplier_of(r, at), least, greatest, &bias[at]))
            return false;
    }
    return true;
}
