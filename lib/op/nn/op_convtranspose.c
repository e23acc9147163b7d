/* SPDX-License-Identifier: MIT */
/*
 * ConvTranspose on floats, executed channels last as convolutions: output positions with the same
 * remainder by the stride use the same taps of the kernel, neighbours among them neighbouring
 * pixels. So a row of the output is, for each remainder, a matrix product that writes every
 * stride-th pixel; its terms run over (kernel row, kernel column, channel). If the kernel is as
 * wide as the stride, all remainders are columns of one product. Few channels of output are made in
 * another way (overlap.h).
 */
#include <assert.h>
#include <math.h>

#include "base/slices.h"
#include "op/nn/float_jobs.h"
#include "op/nn/overlap.h"
#include "op/nn/window.h"

/* ---- attributes and sizes ---- */

QS_COLD static int read_list(const qs_infer *x, const char *name, const qs_transposed *g,
                             int64_t least, int32_t want, int64_t list[6], bool *given) {
    int32_t count;
    int code = qs_infer_attr_ints(x, name, list, 6, &count);
    *given = count != QS_ABSENT;
    if (code || !*given)
        return code;
    if (count != want)
        return qs_infer_fail(x, QSIM_E_SHAPE, "attribute %s has %d elements for %d spatial axes",
                             name, (int)count, (int)g->axes);
    for (int32_t i = 0; i < count; i++)
        if (list[i] < least || list[i] > QS_WINDOW_LIMIT)
            return qs_infer_fail(x, QSIM_E_VALUE, "attribute %s has the element %lld", name,
                                 (long long)list[i]);
    return QSIM_OK;
}

/* Axis i of the node's spatial axes. */
static qs_transposed_axis *axis_of(qs_transposed *g, int32_t i) {
    return &g->a[(i + 5 - g->axes) % 3];
}

QS_COLD static int read_lists(const qs_infer *x, qs_transposed *g, bool *shaped) {
    int64_t kernel[6], strides[6], dilations[6], pads[6], extra[6], shape[6];
    bool has[6] = {false};
    int32_t n = g->axes;
    int code = read_list(x, "kernel_shape", g, 1, n, kernel, &has[0]);
    if (!code)
        code = read_list(x, "strides", g, 1, n, strides, &has[1]);
    if (!code)
        code = read_list(x, "dilations", g, 1, n, dilations, &has[2]);
    if (!code)
        code = read_list(x, "pads", g, 0, 2 * n, pads, &has[3]);
    if (!code)
        code = read_list(x, "output_padding", g, 0, n, extra, &has[4]);
    if (!code)
        code = read_list(x, "output_shape", g, 0, n, shape, &has[5]);
    for (int32_t i = 0; i < n && !code; i++) {
        qs_transposed_axis *a = axis_of(g, i);
        if (has[0] && a->kernel >= 0 && a->kernel != kernel[i])
            return qs_infer_fail(x, QSIM_E_SHAPE, "kernel_shape is %lld but the weights have %lld",
                                 (long long)kernel[i], (long long)a->kernel);
        a->kernel = has[0] ? kernel[i] : a->kernel;
        a->stride = has[1] ? strides[i] : 1;
        a->dilation = has[2] ? dilations[i] : 1;
        a->before = has[3] ? pads[i] : 0;
        a->after = has[3] ? pads[n + i] : 0;
        a->extra = has[4] ? extra[i] : 0;
        a->out = has[5] ? shape[i] : -1;
    }
    *shaped = has[5];
    return code;
}

/* Sets *span: the output size before padding is cut off. */
QS_COLD static int full_size(const qs_infer *x, const qs_transposed_axis *a, int64_t *span) {
    int64_t steps, taps;
    if (a->in > QS_WINDOW_LIMIT || a->kernel > QS_WINDOW_LIMIT || a->kernel == 0 ||
        !qs_mul64(a->in > 0 ? a->in - 1 : 0, a->stride, &steps) ||
        !qs_mul64(a->kernel - 1, a->dilation, &taps))
        return qs_infer_fail(x, QSIM_E_LIMIT, "an axis of %lld under a kernel of %lld",
                             (long long)a->in, (long long)a->kernel);
    *span = steps + taps + 1 + a->extra;
    return QSIM_OK;
}

QS_COLD static int size_axis(const qs_infer *x, qs_transposed_axis *a, bool shaped, bool upper,
                             bool lower) {
    int64_t span = 0;
    if (a->in < 0 || a->kernel < 0)
        return QSIM_OK;
    int code = full_size(x, a, &span);
    if (code)
        return code;
    if (shaped || upper || lower) {
        if (!shaped && !qs_mul64(a->in, a->stride, &a->out))
            return qs_infer_fail(x, QSIM_E_LIMIT, "an axis is too large");
        const int64_t total = span > a->out ? span - a->out : 0;
        a->before = upper ? total / 2 : total - total / 2;
        a->after = total - a->before;
        return QSIM_OK;
    }
    a->out = span - a->before - a->after;
    if (a->in == 0 || a->out < 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the padding leaves %lld of an axis",
                             (long long)a->out);
    return QSIM_OK;
}

/* The caller has checked that the input's and the weights' ranks are known and equal. */
QS_COLD int qs_transposed_read(const qs_infer *x, qs_transposed *g) {
    const qs_value *v = x->in[0], *w = x->in[1];
    bool shaped = false;
    memset(g, 0, sizeof(*g));
    g->axes = v->rank - 2;
    g->group = qs_node_int(x->node, "group", 1);
    g->channels_last = qs_node_int(x->node, "channels_last", 0) != 0;
    for (int32_t i = 0; i < 3; i++)
        g->a[i] = (qs_transposed_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    for (int32_t i = 0; i < g->axes; i++) {
        axis_of(g, i)->in = v->dims[i + (g->channels_last ? 1 : 2)].size;
        axis_of(g, i)->kernel = w->dims[i + 2].size;
    }
    int code = read_lists(x, g, &shaped);
    int32_t pad = QS_PAD_NOTSET;
    if (!code)
        code = qs_infer_word(x, "auto_pad", QS_AUTO_PADS, &pad);
    const bool upper = pad == QS_PAD_UPPER, lower = pad == QS_PAD_LOWER;
    for (int32_t i = 0; i < g->axes && !code; i++) {
        if (pad == QS_PAD_VALID)
            axis_of(g, i)->before = axis_of(g, i)->after = 0;
        code = size_axis(x, axis_of(g, i), shaped, upper, lower);
    }
    const qs_transposed_axis *last = &g->a[1];
    g->merged = g->group == 1 && last->kernel == last->stride && last->dilation == 1 &&
                !last->before && !last->after && !last->extra && !shaped && !upper && !lower;
    return code;
}

QS_COLD static int check_channels(const qs_infer *x, const qs_dim *c) {
    const qs_value *w = x->in[1];
    const int64_t group = qs_node_int(x->node, "group", 1), all = w->dims[0].size;
    int64_t m = w->dims[1].size;
    if (group < 1 || (all >= 0 && all % group != 0) || (m >= 0 && !qs_mul64(m, group, &m)))
        return qs_infer_fail(x, QSIM_E_VALUE, "group is %lld for %lld channels", (long long)group,
                             (long long)all);
    if (c->size >= 0 && all >= 0 && c->size != all)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the input has %lld channels, the weights take %lld",
                             (long long)c->size, (long long)all);
    return qs_infer_list(x, 2, m);
}

QS_COLD int qs_convtranspose_infer(qs_infer *x) {
    const qs_value *v = x->in[0], *w = x->in[1];
    qs_transposed g;
    qs_dim dims[5];
    int code = QSIM_OK;
    for (int32_t i = 0; i < 3 && !code; i++)
        code = qs_infer_type(x, i, i && v->dtype ? QS_T(v->dtype) : QS_T_REAL);
    if (code || v->rank < 0 || w->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    if (v->rank < 3 || v->rank > 5)
        return qs_infer_fail(x, v->rank < 3 ? QSIM_E_SHAPE : QSIM_E_UNSUPPORTED,
                             "input 0 has rank %d; 3 to 5 are supported", (int)v->rank);
    code = qs_infer_rank(x, 1, v->rank);
    if (!code)
        code = qs_transposed_read(x, &g);
    if (code)
        return code;
    const int32_t channel = g.channels_last ? v->rank - 1 : 1, space = g.channels_last ? 1 : 2;
    code = check_channels(x, &v->dims[channel]);
    if (code)
        return code;
    const int64_t m = w->dims[1].size;
    dims[0] = v->dims[0];
    dims[channel] = (qs_dim){m < 0 ? -1 : m * g.group, NULL};
    for (int32_t i = 0; i < g.axes; i++)
        dims[space + i] = (qs_dim){axis_of(&g, i)->out, NULL};
    return qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

QS_COLD static int infer_internal(qs_infer *x) {
    const int code = qs_infer_type(x, 0, QS_T_FLOAT);
    return code ? code : qs_convtranspose_infer(x);
}

/* ---- packed weights ---- */

QS_COLD static int pack_convtranspose(qs_pack *p) {
    const float *w = qs_pack_const(p, 1), *bias = qs_pack_const(p, 2);
    const bool has_bias = qs_node_input(p->node, 2) != QS_NONE;
    const qs_value *wv = &p->graph->values[p->node->inputs[1]];
    const qk_f32 *k = p->ctx->kernels->f32;
    const qs_infer x = {.graph = p->graph,
                        .node = p->node,
                        .node_id = p->node_id,
                        .in = {&p->graph->values[p->node->inputs[0]], wv},
                        .model = p->model,
                        .error = p->error};
    qs_transposed g;
    qs_phases f;
    if (!w || (has_bias && !bias) || x.in[0]->rank != wv->rank)
        return QSIM_OK; /* packed in every run */
    int code = qs_transposed_read(&x, &g);
    if (code || wv->data->elements == 0)
        return code;
    if (qs_overlap_pays(&g, wv))
        return qs_overlap_pack(p, w);
    if (!qs_phases_make(k, &g, wv, &f))
        return qs_weights_too_large(p->error);
    float *to = qs_arena_alloc64(p->arena, f.floats * sizeof(float));
    float *dense = qs_alloc(p->ctx, f.dense + 1, sizeof(float));
    if (to && dense)
        qs_phases_pack(k, &f, w, bias, dense, to);
    else
        code = qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    qs_free(p->ctx, dense);
    p->result = to;
    return code;
}

/* ---- the plan ---- */

/* Output positions first, first + stride, ... of an axis. */
typedef struct series {
    int32_t phase; /* -1: no tap reaches them */
    size_t from;   /* pixel of the padded image for the first one; the next ones follow it */
    size_t count;
} series;

typedef struct product {
    size_t segs, group_floats;
    const ptrdiff_t *seg;
    size_t at; /* offset in the packed weights */
} product;

typedef struct plan {
    const qk_f32 *kernels;
    qs_phases form;
    const float *packed; /* NULL: packed into scratch memory in every run */
    bool has_bias, border;
    bool gaps; /* no tap reaches some columns: rows are filled first */
    size_t n, h, w, c, m, oh, ow;
    size_t stride[2], top, left, rows, line; /* of the padded image; line: floats per row */
    size_t series_count[2];
    series *series[2];
    product *products; /* by phase */
    ptrdiff_t *row;
    size_t slices;
    float lo, hi;
} plan;

typedef struct job {
    const qsim_ctx *ctx; /* tells whether the run was stopped */
    const plan *p;
    const float *x, *weights;
    float *y;
} job;

static void border_image(const plan *p, const float *x, float *to) {
    const size_t row = p->w * p->c, inside = p->line - p->left * p->c;
    const size_t n = row < inside ? row : inside;
    memset(to, 0, p->n * p->rows * p->line * sizeof(float));
    assert(x);
    for (size_t i = 0; i < p->n; i++)
        for (size_t y = 0; y < p->h && p->top + y < p->rows; y++)
            memcpy(to + (i * p->rows + p->top + y) * p->line + p->left * p->c,
                   x + (i * p->h + y) * row, n * sizeof(float));
}

/* make_series of depthwise weights. */
static void make_depthwise(const job *j, const float *x, float *y, size_t py, size_t px,
                           size_t pixels) {
    const plan *p = j->p;
    const qs_phases *f = &p->form;
    const product *d = &p->products[py * f->phases[1] + px];
    const size_t across = qs_phase_taps(f, 1, px), down = qs_phase_taps(f, 0, py);
    const qk_depthwise_f32 row = {.a = x + d->seg[0],
                                  .lines = 1,
                                  .pixels = pixels,
                                  .pixel_step = (ptrdiff_t)p->c,
                                  .down = down,
                                  .across = across,
                                  .tap_down = down > 1 ? d->seg[across] - d->seg[0] : 0,
                                  .tap_across = across > 1 ? d->seg[1] - d->seg[0] : 0,
                                  .channels = f->cols,
                                  .stride = f->stride,
                                  .w_down = across * f->stride,
                                  .w = j->weights + d->at,
                                  .bias = j->weights,
                                  .lo = p->lo,
                                  .hi = p->hi,
                                  .c = y,
                                  .out_pixel = (ptrdiff_t)(p->stride[1] * p->m)};
    qs_depthwise_f32(j->ctx, p->kernels->depthwise, &row);
}

/* Computes the positions of one output row that have the same remainder, or those without a tap. */
static void make_series(const job *j, const float *image, float *y, const series *sy,
                        const series *sx, size_t down) {
    const plan *p = j->p;
    const qs_phases *f = &p->form;
    const bool reached = sy->phase >= 0 && sx->phase >= 0;
    const size_t phase = reached ? (size_t)sy->phase * f->phases[1] + (size_t)sx->phase : 0;
    const product *d = &p->products[phase];
    const float *x = image + (sy->from + down) * p->line + sx->from * p->c;
    if (reached && f->depthwise) {
        make_depthwise(j, x, y, (size_t)sy->phase, (size_t)sx->phase, sx->count);
        return;
    }
    qk_gemm_f32 g = {.row = p->row,
                     .seg = d->seg,
                     .segs = reached ? d->segs : 0,
                     .k = f->cg,
                     .cols = f->cols,
                     .lo = p->lo,
                     .hi = p->hi,
                     .ldc = reached ? p->stride[1] * p->m : p->m};
    for (size_t i = 0; i < f->groups; i++) {
        g.a = x + i * f->cg;
        g.b = j->weights + d->at + i * d->group_floats;
        g.bias = j->weights + i * f->bias_stride;
        g.c = y + i * f->mg;
        for (size_t at = 0; at < sx->count && !qs_stopped(j->ctx); at += g.rows) {
            g.rows = sx->count - at < QS_PIECE ? sx->count - at : QS_PIECE;
            qs_gemm_f32(j->ctx, p->kernels, &g);
            g.a += g.rows * p->c;
            g.c += g.rows * g.ldc;
        }
    }
}

static void convtranspose_slice(void *arg, size_t slice) {
    const job *j = arg;
    const plan *p = j->p;
    const size_t items = p->n * p->oh, end = qs_slice_begin(items, p->slices, slice + 1);
    for (size_t i = qs_slice_begin(items, p->slices, slice); i < end && !qs_stopped(j->ctx); i++) {
        const size_t oy = i % p->oh;
        const series *sy = &p->series[0][oy % p->stride[0]];
        const float *image = j->x + i / p->oh * p->rows * p->line;
        float *y = j->y + i * p->ow * p->m;
        if (sy->phase < 0 || p->gaps)
            make_series(j, image, y, sy, &(series){.phase = -1, .count = p->ow}, 0);
        for (size_t s = 0; s < p->series_count[1] && sy->phase >= 0; s++)
            if (p->series[1][s].phase >= 0)
                make_series(j, image, y + s * p->m, sy, &p->series[1][s], oy / p->stride[0]);
    }
}

static void run_convtranspose(const qs_step *s, const qs_frame *f) {
    const plan *p = s->params;
    float *scratch = f->scratch;
    job j = {.ctx = f->ctx,
             .p = p,
             .x = qs_step_in(s, f, 0),
             .weights = p->packed,
             .y = qs_step_out(s, f, 0)};
    if (p->border) {
        border_image(p, j.x, scratch);
        j.x = scratch;
        scratch += qs_align(p->n * p->rows * p->line + 16, 16);
    }
    if (!p->packed) {
        const float *bias = p->has_bias ? qs_step_in(s, f, 2) : NULL;
        qs_phases_pack(p->kernels, &p->form, qs_step_in(s, f, 1), bias,
                       scratch + qs_align(p->form.floats, 16), scratch);
        j.weights = scratch;
    }
    qs_parallel(f->ctx, p->slices, convtranspose_slice, &j);
}

/* ---- lowering ---- */

/* Pixels of padding before the image that the furthest tap of any phase reads. */
static size_t reach(const qs_phases *f, const qs_transposed_axis *a, int32_t i) {
    return (f->kernel[i] - 1) * (size_t)a->dilation / (size_t)a->stride;
}

/* Makes the series of an axis; *end: end of the pixels that they use, from the image's first. */
QS_COLD static int make_axis(qs_lower *l, plan *p, const qs_transposed_axis *a, int32_t i,
                             size_t border, size_t *end) {
    const size_t out = (size_t)a->out, stride = p->stride[i], before = (size_t)a->before;
    const size_t count = stride < out ? stride : out;
    assert(stride > 0);
    series *s = qs_arena_alloc(l->arena, count, sizeof(*s));
    if (!s)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    p->series[i] = s;
    p->series_count[i] = count;
    *end = 0;
    for (size_t o = 0; o < count; o++) {
        s[o].phase = -1;
        s[o].from = (o + before) / stride + border;
        s[o].count = (out - o + stride - 1) / stride;
        const size_t last = (o + before) / stride + s[o].count;
        *end = last > *end ? last : *end;
    }
    /* The taps of each phase have a remainder of their own by the stride. */
    size_t reached = 0;
    for (size_t phase = 0; phase < p->form.phases[i]; phase++) {
        const size_t o = (phase * (size_t)a->dilation % stride + stride - before % stride) % stride;
        if (o < count) {
            s[o].phase = (int32_t)phase;
            reached++;
        }
    }
    p->gaps = reached < count; /* of the columns, which come last */
    return QSIM_OK;
}

/* Makes the series along the width; if merged, each pixel makes `stride` pixels of its own. */
QS_COLD static int make_columns(qs_lower *l, plan *p, const qs_transposed *g, size_t *end) {
    if (!g->merged)
        return make_axis(l, p, &g->a[1], 1, p->left, end);
    p->m *= (size_t)g->a[1].stride;
    p->ow = p->w;
    p->stride[1] = 1;
    const qs_transposed_axis plain = {
        .in = (int64_t)p->w, .out = (int64_t)p->w, .kernel = 1, .stride = 1, .dilation = 1};
    return make_axis(l, p, &plain, 1, 0, end);
}

QS_COLD static int make_products(qs_lower *l, plan *p, const qs_transposed *g) {
    const qs_phases *f = &p->form;
    const size_t phases = f->phases[0] * f->phases[1];
    size_t at = f->bias_stride * f->groups, k = 0;
    p->products = qs_arena_alloc(l->arena, phases, sizeof(*p->products));
    ptrdiff_t *seg = qs_arena_alloc(l->arena, f->kernel[0] * f->kernel[1], sizeof(*seg));
    p->row = qs_arena_alloc(l->arena, p->ow, sizeof(*p->row));
    if (!p->products || !seg || !p->row)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < p->ow; i++)
        p->row[i] = (ptrdiff_t)(i * p->c);
    for (size_t i = 0; i < phases; i++) {
        const size_t py = i / f->phases[1], px = i % f->phases[1];
        product *d = &p->products[i];
        d->seg = seg + k;
        d->at = at;
        if (!qs_phase_floats(p->kernels, f, py, px, &d->group_floats))
            return qs_weights_too_large(l->error);
        at += d->group_floats * f->groups;
        for (size_t ky = py; ky < f->kernel[0]; ky += f->step[0])
            for (size_t kx = px; kx < f->kernel[1]; kx += f->step[1], d->segs++) {
                const size_t down = ky * (size_t)g->a[0].dilation / (size_t)g->a[0].stride;
                const size_t across =
                    g->merged ? 0 : kx * (size_t)g->a[1].dilation / (size_t)g->a[1].stride;
                seg[k++] = -(ptrdiff_t)(down * p->line + across * p->c);
            }
    }
    return QSIM_OK;
}

QS_COLD static int make_plan(qs_lower *l, plan *p, const qs_transposed *g) {
    size_t down = 0, across = 0, bordered = 0, scratch = 0;
    p->top = reach(&p->form, &g->a[0], 0);
    p->left = g->merged ? 0 : reach(&p->form, &g->a[1], 1);
    int code = make_axis(l, p, &g->a[0], 0, p->top, &down);
    if (!code)
        code = make_columns(l, p, g, &across);
    if (code)
        return code;
    p->border = p->top || p->left || down > p->h || across > p->w;
    p->rows = p->border ? p->top + (down > p->h ? down : p->h) : p->h;
    if (!qs_mul(p->left + (across > p->w ? across : p->w), p->c, &p->line) ||
        !qs_mul(p->rows, p->line, &bordered) || !qs_mul(bordered, p->n, &bordered) ||
        !qs_add(bordered, 32, &bordered))
        return qs_fail(l->error, QSIM_E_LIMIT, "a padded image is too large");
    if (p->border)
        scratch = qs_align(bordered, 16);
    if ((!p->packed && (!qs_add(scratch, qs_align(p->form.floats, 16), &scratch) ||
                        !qs_add(scratch, p->form.dense, &scratch))) ||
        !qs_mul(scratch, sizeof(float), &l->step->scratch))
        return qs_scratch_too_large(l->error);
    return make_products(l, p, g);
}

QS_COLD static int lower_convtranspose(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0), *w = qs_lower_in(l, 1);
    qs_infer x;
    qs_transposed g;
    qs_lower_infer(l, &x);
    int code = qs_transposed_read(&x, &g);
    if (code)
        return code;
    if (!g.channels_last)
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, QS_UNRANKED);
    l->step->run = qs_run_nothing;
    if (qs_value_elements(qs_lower_out(l, 0)) == 0)
        return QSIM_OK;
    if (w->dims[0].size == 0)
        return qs_infer_fail(&x, QSIM_E_SHAPE, "the input has no channels");
    const double pixels = qs_real((uint64_t)(v->dims[0].size * g.a[0].in * g.a[1].in));
    const double macs = pixels * qs_real(qs_value_elements(w));
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    if (qs_overlap_pays(&g, w))
        return qs_overlap_lower(l, &g, macs);
    plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->kernels = l->ctx->kernels->f32;
    p->packed = l->packed;
    p->has_bias = qs_lower_in(l, 2) != NULL;
    p->lo = qs_node_float(l->node, "lo", -INFINITY);
    p->hi = qs_node_float(l->node, "hi", INFINITY);
    p->n = (size_t)v->dims[0].size;
    p->c = (size_t)v->dims[v->rank - 1].size;
    p->h = (size_t)g.a[0].in;
    p->w = (size_t)g.a[1].in;
    p->oh = (size_t)g.a[0].out;
    p->ow = (size_t)g.a[1].out;
    p->m = (size_t)(w->dims[1].size * g.group);
    p->stride[0] = (size_t)g.a[0].stride;
    p->stride[1] = (size_t)g.a[1].stride;
    if (!qs_phases_make(p->kernels, &g, w, &p->form))
        return qs_weights_too_large(l->error);
    p->slices = qs_slice_count(l->ctx, p->n * p->oh,
                               macs / (p->form.depthwise ? QS_DEPTHWISE_F32 : QS_MACS_F32));
    l->step->run = run_convtranspose;
    return make_plan(l, p, &g);
}

/* ---- rows ---- */

#define ATTRS(since)                                                                               \
    {"auto_pad", QSIM_ATTR_STRING, since, 0}, {"dilations", QSIM_ATTR_INTS, since, 0},             \
        {"group", QSIM_ATTR_INT, since, 0}, {"kernel_shape", QSIM_ATTR_INTS, since, 0},            \
        {"output_padding", QSIM_ATTR_INTS, since, 0}, {"output_shape", QSIM_ATTR_INTS, since, 0},  \
        {"pads", QSIM_ATTR_INTS, since, 0}, {                                                      \
        "strides", QSIM_ATTR_INTS, since, 0                                                        \
    }

static const qs_attr_rule convtranspose_attrs[] = {ATTRS(1)};

static const qs_attr_rule internal_attrs[] = {ATTRS(0),
                                              {"channels_last", QSIM_ATTR_INT, 0, 0},
                                              {"lo", QSIM_ATTR_FLOAT, 0, 0},
                                              {"hi", QSIM_ATTR_FLOAT, 0, 0}};

QS_OP(convtranspose, .name = "ConvTranspose", .min_in = 2, .max_in = 3,
      QS_ATTRS(convtranspose_attrs), .traits = QS_NEEDS_LAST | QS_TAKES_BOUNDS, .weight_axis = 1,
      .weight_inputs = 1 << 1, .macs = QS_MACS_CONVTRANSPOSE, .kernel = QS_KERNEL_CONVTRANSPOSE,
      .infer = qs_convtranspose_infer);

QS_OP(qsim_convtranspose, .domain = QS_DOMAIN_QSIM, .name = "ConvTranspose", .min_in = 2,
      .max_in = 3, QS_ATTRS(internal_attrs), .traits = QS_NEEDS_LAST, .weight_inputs = 1 << 1,
      .macs = QS_MACS_CONVTRANSPOSE, .kernel = QS_KERNEL_CONVTRANSPOSE, .infer = infer_internal,
      QS_MORE(.pack = pack_convtranspose), .lower = lower_convtranspose);
