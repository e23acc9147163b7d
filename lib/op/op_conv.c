/* SPDX-License-Identifier: MIT */
/*
 * Conv on floats. Executed channels last: an output pixel is a row of a matrix product whose terms
 * run over (kernel row, kernel column, channel). Padding is made by copying a band of the image
 * with zeros around it, so a padded tap is a product with +0 like any other.
 */
#include <math.h>

#include "kernel/f32.h"
#include "op/rules.h"
#include "op/slices.h"
#include "op/window.h"

/* Floats of a bordered band: small enough to stay in a second-level cache beside the weights. */
#define BAND_FLOATS ((size_t)96 * 1024)
/* Output pixels of a band: what one table of row offsets covers. */
#define BAND_PIXELS ((size_t)1024)

static int infer_conv(qs_infer *x) {
    const qs_value *v = x->in[0], *w = x->in[1], *b = x->in[2];
    for (int32_t i = 0; i < 3; i++) {
        int code = qs_infer_type(x, i, QS_T_FLOAT);
        if (code)
            return code;
    }
    qs_window window;
    int64_t group = qs_node_int(x->node, "group", 1);
    if (v->rank < 0 || w->rank < 0)
        return qs_infer_out(x, 0, QSIM_FLOAT, -1, NULL);
    if (w->rank != v->rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the weights have rank %d, the input has %d",
                             (int)w->rank, (int)v->rank);
    int code = qs_window_infer(x, 0, w->dims + 2, &window);
    if (code)
        return code;
    int64_t c = window.channels.size, cg = w->dims[1].size, m = w->dims[0].size;
    if (group < 1 || (m >= 0 && m % group != 0))
        return qs_infer_fail(x, QSIM_E_VALUE, "group is %lld for %lld output channels",
                             (long long)group, (long long)m);
    if (c >= 0 && cg >= 0 && (c % group != 0 || c / group != cg))
        return qs_infer_fail(
            x, QSIM_E_SHAPE,
            "the input has %lld channels, but the weights take %lld in each of %lld groups",
            (long long)c, (long long)cg, (long long)group);
    if (b && b->rank >= 0 &&
        (b->rank != 1 || (m >= 0 && b->dims[0].size >= 0 && b->dims[0].size != m)))
        return qs_infer_fail(x, QSIM_E_SHAPE, "the bias is no list of %lld numbers", (long long)m);
    qs_dim dims[4];
    int32_t rank = qs_window_dims(&window, w->dims[0], dims);
    return qs_infer_out(x, 0, QSIM_FLOAT, rank, dims);
}

/* ---- packed weights ---- */

typedef struct conv_weights {
    const float *packed, *bias; /* of all groups */
    size_t group_floats;        /* from one group's to the next */
    size_t bias_stride;
} conv_weights;

/* The form of the weights: independent of the image. */
typedef struct conv_form {
    size_t m, mg, cg, kh, kw, groups, taps;
    bool depthwise;
    size_t group_floats, bias_stride, floats; /* floats: weights and bias together */
} conv_form;

static bool conv_form_make(const qk_f32 *k, const qs_value *w, int64_t groups, conv_form *f) {
    f->m = (size_t)w->dims[0].size;
    f->cg = (size_t)w->dims[1].size;
    f->kh = w->rank == 4 ? (size_t)w->dims[2].size : 1;
    f->kw = (size_t)w->dims[w->rank - 1].size;
    f->groups = (size_t)groups;
    f->mg = f->m / f->groups;
    f->taps = f->kh * f->kw;
    f->depthwise = f->cg == 1 && f->mg == 1 && f->groups > 1;
    size_t all;
    if (f->depthwise) {
        f->bias_stride = qs_align(f->m, 16);
        if (!qs_mul(f->taps, f->bias_stride, &all))
            return false;
        f->group_floats = 0;
    } else {
        f->bias_stride = qs_align(f->mg, 64);
        if (!qk_pack_f32_size(k->panel, f->taps * f->cg, f->mg, &f->group_floats))
            return false;
        f->group_floats = qs_align(f->group_floats, 16);
        if (!qs_mul(f->group_floats, f->groups, &all))
            return false;
    }
    size_t bias;
    return qs_mul(f->bias_stride, f->depthwise ? 1 : f->groups, &bias) &&
           qs_add(all, bias, &f->floats);
}

static void pack_bias(const conv_form *f, const float *bias, float *to) {
    const size_t groups = f->depthwise ? 1 : f->groups, n = f->depthwise ? f->m : f->mg;
    for (size_t g = 0; g < groups; g++)
        for (size_t j = 0; j < f->bias_stride; j++)
            to[g * f->bias_stride + j] = bias && j < n ? bias[g * n + j] : -0.0f;
}

/* OIHW weights into `to`, which holds f->floats. */
static conv_weights pack_weights(const qk_f32 *k, const conv_form *f, const float *w,
                                 const float *bias, float *to) {
    const size_t bias_floats = f->bias_stride * (f->depthwise ? 1 : f->groups);
    conv_weights out = {to + bias_floats, to, f->group_floats, f->bias_stride};
    pack_bias(f, bias, to);
    to += bias_floats;
    if (f->depthwise) {
        for (size_t t = 0; t < f->taps; t++)
            for (size_t j = 0; j < f->bias_stride; j++)
                to[t * f->bias_stride + j] = j < f->m ? w[j * f->taps + t] : 0.0f;
        return out;
    }
    const size_t column = f->cg * f->taps;
    for (size_t g = 0; g < f->groups; g++) {
        const qk_pack_source source = {w + g * f->mg * column, f->cg, 1, (ptrdiff_t)f->taps,
                                       (ptrdiff_t)column};
        qk_pack_f32(to + g * f->group_floats, k->panel, f->taps * f->cg, f->mg, &source);
    }
    return out;
}

static int pack_conv(qs_pack *p) {
    const float *w = qs_pack_const(p, 1), *bias = qs_pack_const(p, 2);
    bool has_bias = p->node->input_count > 2 && p->node->inputs[2] != QS_NONE;
    if (!w || (has_bias && !bias))
        return QSIM_OK; /* packed by every run */
    const qk_f32 *k = p->ctx->kernels->f32;
    conv_form f;
    conv_weights *out = qs_arena_alloc(p->arena, 1, sizeof(*out));
    if (!conv_form_make(k, &p->graph->values[p->node->inputs[1]], qs_node_int(p->node, "group", 1),
                        &f) ||
        f.floats > SIZE_MAX / sizeof(float))
        return qs_fail(p->error, QSIM_E_LIMIT, "the packed weights are too large");
    float *to = qs_arena_alloc64(p->arena, f.floats * sizeof(float));
    if (!out || !to)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    *out = pack_weights(k, &f, w, bias, to);
    p->result = out;
    return QSIM_OK;
}

/* ---- the plan ---- */

typedef struct conv_plan {
    const qk_f32 *kernels;
    conv_form form;
    const conv_weights *weights; /* NULL: packed into scratch by every run */
    size_t n, h, w, c, oh, ow;   /* image and output */
    size_t sh, top, left;        /* stride down, padding before */
    bool border, has_bias;
    size_t line;            /* floats from one row of the (bordered) image to the next */
    size_t band, bands;     /* output rows of a band, bands of an image */
    size_t splits, columns; /* a group's columns are cut into blocks of `columns` */
    ptrdiff_t *row, *seg;
    size_t segs, k;
    size_t span;                 /* rows from the first to the last tap of a window */
    size_t slices, slice_floats; /* scratch of a slice */
    float lo, hi;
} conv_plan;

typedef struct conv_job {
    const conv_plan *p;
    const float *x;
    float *y, *scratch;
    conv_weights weights;
} conv_job;

/* Rows [first, first + rows) of the bordered image. */
static void copy_band(const conv_plan *p, const float *image, size_t first, size_t rows,
                      float *to) {
    const size_t row = p->w * p->c, left = p->left * p->c;
    const size_t before = left < p->line ? left : p->line;
    const size_t inside = p->line - before < row ? p->line - before : row;
    for (size_t i = first; i < first + rows; i++, to += p->line) {
        if (i < p->top || i - p->top >= p->h) {
            memset(to, 0, p->line * sizeof(float));
            continue;
        }
        memset(to, 0, before * sizeof(float));
        memcpy(to + before, image + (i - p->top) * row, inside * sizeof(float));
        memset(to + before + inside, 0, (p->line - before - inside) * sizeof(float));
    }
}

static void conv_columns(const conv_job *j, const float *a, size_t rows, float *y, size_t split) {
    const conv_plan *p = j->p;
    const size_t first = split * p->columns, rest = p->form.mg - first;
    qk_gemm_f32 g = {.row = p->row,
                     .seg = p->seg,
                     .rows = rows,
                     .segs = p->segs,
                     .k = p->k,
                     .cols = rest < p->columns ? rest : p->columns,
                     .alpha = 1.0f,
                     .lo = p->lo,
                     .hi = p->hi,
                     .ldc = p->form.m};
    for (size_t i = 0; i < p->form.groups; i++) {
        g.a = a + i * p->form.cg;
        g.b = j->weights.packed + i * j->weights.group_floats + first * p->segs * p->k;
        g.bias = j->weights.bias + i * j->weights.bias_stride + first;
        g.c = y + i * p->form.mg + first;
        p->kernels->gemm(&g);
    }
}

static void conv_depthwise(const conv_job *j, const float *a, size_t rows, float *y) {
    const conv_plan *p = j->p;
    const qk_depthwise_f32 d = {.a = a,
                                .row = p->row,
                                .tap = p->seg,
                                .rows = rows,
                                .taps = p->segs,
                                .channels = p->form.m,
                                .stride = p->form.bias_stride,
                                .w = j->weights.packed,
                                .bias = j->weights.bias,
                                .lo = p->lo,
                                .hi = p->hi,
                                .c = y,
                                .ldc = p->form.m};
    p->kernels->depthwise(&d);
}

/* Items of a slice: (image, band, block of columns). */
static void conv_slice(void *arg, size_t slice) {
    const conv_job *j = arg;
    const conv_plan *p = j->p;
    const size_t items = p->n * p->bands * p->splits;
    const size_t end = qs_slice_begin(items, p->slices, slice + 1);
    float *bordered = j->scratch + slice * p->slice_floats;
    size_t copied = SIZE_MAX; /* the band that `bordered` holds */
    for (size_t i = qs_slice_begin(items, p->slices, slice); i < end; i++) {
        const size_t at = i / p->splits, image = at / p->bands, oy = at % p->bands * p->band;
        const size_t rows = p->oh - oy < p->band ? p->oh - oy : p->band;
        const float *x = j->x + image * p->h * p->w * p->c, *a = bordered;
        if (!p->border)
            a = x + oy * p->sh * p->line;
        else if (copied != at)
            copy_band(p, x, oy * p->sh, (rows - 1) * p->sh + p->span, bordered);
        copied = at;
        float *y = j->y + (image * p->oh + oy) * p->ow * p->form.m;
        if (p->form.depthwise)
            conv_depthwise(j, a, rows * p->ow, y);
        else
            conv_columns(j, a, rows * p->ow, y, i % p->splits);
    }
}

static void run_conv(const qs_step *s, const qs_frame *f) {
    const conv_plan *p = s->params;
    conv_job job = {
        .p = p, .x = qs_step_in(s, f, 0), .y = qs_step_out(s, f, 0), .scratch = f->scratch};
    if (p->weights) {
        job.weights = *p->weights;
    } else {
        const float *bias = p->has_bias ? qs_step_in(s, f, 2) : NULL;
        job.weights = pack_weights(p->kernels, &p->form, qs_step_in(s, f, 1), bias, f->scratch);
        job.scratch += qs_align(p->form.floats, 16);
    }
    qs_parallel(f->ctx, p->slices, conv_slice, &job);
}

/* ---- lowering ---- */

static void conv_geometry(conv_plan *p, const qs_window *w) {
    const conv_form *f = &p->form;
    p->n = (size_t)w->batch.size;
    p->c = (size_t)w->channels.size;
    p->h = (size_t)w->in[0];
    p->w = (size_t)w->in[1];
    p->oh = (size_t)w->out[0];
    p->ow = (size_t)w->out[1];
    p->sh = (size_t)w->stride[0];
    p->top = (size_t)w->before[0];
    p->left = (size_t)w->before[1];
    p->span = (f->kh - 1) * (size_t)w->dilation[0] + 1;
    const size_t across = (f->kw - 1) * (size_t)w->dilation[1] + 1;
    const size_t need_w = p->ow ? (p->ow - 1) * (size_t)w->stride[1] + across : 0;
    const size_t need_h = p->oh ? (p->oh - 1) * p->sh + p->span : 0;
    p->border = p->top || p->left || need_h > p->h || need_w > p->w;
    p->line = (p->border ? need_w : p->w) * p->c;
    const bool pointwise = f->taps == 1 && !p->border && p->sh == 1 && w->stride[1] == 1;
    if (pointwise) { /* all pixels of all images are rows of one product */
        p->h = p->oh = p->n * p->oh * p->ow;
        p->n = p->w = p->ow = 1;
        p->line = p->c;
    }
}

/* How the output is cut into bands, columns and slices. */
static void conv_split(const qsim_ctx *ctx, conv_plan *p, double macs) {
    const size_t most = BAND_FLOATS;
    const size_t floats = p->line * p->sh, per_row = floats != 0 ? floats : 1;
    size_t by_size = most / per_row, by_pixels = BAND_PIXELS / p->ow;
    if (p->border)
        by_size = most / per_row > p->span / p->sh ? most / per_row - p->span / p->sh : 1;
    size_t band = by_size < by_pixels ? by_size : by_pixels;
    band = band < 1 ? 1 : band > p->oh ? p->oh : band;
    const size_t slices = qs_slice_count(ctx, SIZE_MAX, macs);
    p->bands = (p->oh + band - 1) / band;
    if (p->n % slices != 0)
        p->bands = (p->bands + slices - 1) / slices * slices;
    p->band = (p->oh + p->bands - 1) / p->bands;
    p->bands = (p->oh + p->band - 1) / p->band;
    p->splits = 1;
    p->columns = p->form.mg;
    const size_t panel = p->kernels->panel, panels = (p->form.mg + panel - 1) / panel;
    if (p->n * p->bands < slices && !p->form.depthwise && panels > 1) {
        size_t splits = (slices + p->n * p->bands - 1) / (p->n * p->bands);
        splits = splits < panels ? splits : panels;
        p->columns = (panels + splits - 1) / splits * panel;
        p->splits = (p->form.mg + p->columns - 1) / p->columns;
    }
    p->slices = qs_slice_count(ctx, p->n * p->bands * p->splits, macs);
}

/* Where the rows and segments of a band begin. */
static bool conv_offsets(qs_arena *arena, conv_plan *p, const qs_window *w) {
    const conv_form *f = &p->form;
    const bool merged = w->dilation[1] == 1 && f->groups == 1;
    const size_t across = (size_t)w->stride[1] * p->c, down = (size_t)w->dilation[0] * p->line;
    p->segs = merged ? f->kh : f->taps;
    p->k = merged ? f->kw * f->cg : f->cg;
    p->row = qs_arena_alloc(arena, p->band * p->ow, sizeof(*p->row));
    p->seg = qs_arena_alloc(arena, p->segs, sizeof(*p->seg));
    if (!p->row || !p->seg)
        return false;
    for (size_t i = 0; i < p->band * p->ow; i++)
        p->row[i] = (ptrdiff_t)(i / p->ow * p->sh * p->line + i % p->ow * across);
    for (size_t i = 0; i < p->segs; i++)
        p->seg[i] =
            (ptrdiff_t)(merged ? i * down
                               : i / f->kw * down + i % f->kw * (size_t)w->dilation[1] * p->c);
    return true;
}

static int conv_scratch(qs_lower *l, conv_plan *p) {
    size_t floats = 0;
    if (p->border && (!qs_mul((p->band - 1) * p->sh + p->span, p->line, &floats) ||
                      !qs_add(floats, 32, &floats)))
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's padded image is too large");
    p->slice_floats = qs_align(floats, 16);
    size_t all = 0;
    if (!qs_mul(p->slice_floats, p->slices, &all) ||
        (!p->weights && !qs_add(all, qs_align(p->form.floats, 16), &all)) ||
        !qs_mul(all, sizeof(float), &l->step->scratch))
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's scratch memory is too large");
    return QSIM_OK;
}

static void run_nothing(const qs_step *s, const qs_frame *f) {
    (void)s;
    (void)f;
}

static int lower_conv(qs_lower *l) {
    const qs_value *w = qs_lower_in(l, 1);
    qs_infer x;
    qs_window window;
    qs_lower_infer(l, &x);
    int code = qs_window_infer(&x, 0, w->dims + 2, &window);
    if (code)
        return code;
    if (!window.channels_last)
        return qs_infer_fail(&x, QSIM_E_INTERNAL, "convolution is executed channels last only");
    conv_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->kernels = l->ctx->kernels->f32;
    p->weights = l->packed;
    p->has_bias = qs_lower_in(l, 2) != NULL;
    p->lo = qs_node_float(l->node, "lo", -INFINITY);
    p->hi = qs_node_float(l->node, "hi", INFINITY);
    l->step->run = run_nothing;
    l->step->kernel = "conv";
    if (qs_value_elements(qs_lower_out(l, 0)) == 0)
        return QSIM_OK;
    if (!conv_form_make(p->kernels, w, qs_node_int(l->node, "group", 1), &p->form))
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's packed weights are too large");
    const double macs =
        (double)qs_value_elements(qs_lower_out(l, 0)) * (double)(p->form.taps * p->form.cg);
    conv_geometry(p, &window);
    conv_split(l->ctx, p, macs);
    if (!conv_offsets(l->arena, p, &window))
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    l->step->run = run_conv;
    l->step->kernel = p->form.depthwise ? "depthwise" : "conv";
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    return conv_scratch(l, p);
}

static const qs_attr_rule conv_attrs[] = {QS_CONV_ATTRS(1)};

static const qs_attr_rule internal_attrs[] = {
    QS_CONV_ATTRS(0),
    {"channels_last", QS_ATTR_INT, 0, 0},
    {"lo", QS_ATTR_FLOAT, 0, 0},
    {"hi", QS_ATTR_FLOAT, 0, 0},
};

const qs_op qs_op_conv = {.domain = "",
                          .name = "Conv",
                          .since = 1,
                          .until = QS_OPSET_NEWEST,
                          .min_in = 2,
                          .max_in = 3,
                          .min_out = 1,
                          .max_out = 1,
                          .attrs = conv_attrs,
                          .attr_count = QS_COUNT(conv_attrs),
                          .infer = infer_conv};

const qs_op qs_op_qsim_conv = {.domain = "qsim",
                               .name = "Conv",
                               .until = INT16_MAX,
                               .min_in = 2,
                               .max_in = 3,
                               .min_out = 1,
                               .max_out = 1,
                               .attrs = internal_attrs,
                               .attr_count = QS_COUNT(internal_attrs),
                               .infer = infer_conv,
                               .pack = pack_conv,
                               .lower = lower_conv};
