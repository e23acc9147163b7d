/* SPDX-License-Identifier: MIT */
/*
 * MaxPool, AveragePool, GlobalAveragePool and the integer averages QLinearAveragePool and
 * QLinearGlobalAveragePool. Executed channels last (pool_rows.c). MaxPool's Indices have the shape
 * [N, C, spatial...] and count in it in either layout.
 *
 * Internal forms (pool.h): with "into" the results are channels of a larger tensor; with a table,
 * bytes are looked up in it.
 */
#include <math.h>

#include "base/slices.h"
#include "base/waves.h"
#include "kernel/pool_window.h"
#include "kernel/u8.h"
#include "op/expand.h"
#include "op/nn/pool.h"
#include "op/nn/window.h"

/* ---- rules ---- */

/* Doubles are allowed in ONNX's nodes alone, which pass_depth.c replaces by others. */
static uint32_t real_types(const qs_infer *x) {
    return x->node->domain[0] ? QS_T_FLOAT : QS_T_REAL;
}

/* With "into", changes output 0, which is inferred already, to the larger tensor. */
QS_COLD static int infer_into(const qs_infer *x, int32_t over) {
    const qs_value *table = x->node->input_count > over + 1 ? x->in[over + 1] : NULL;
    if (table && (x->out[0].dtype != QSIM_UINT8 || table->dtype != QSIM_UINT8 || table->rank != 1 ||
                  table->dims[0].size != 256))
        return qs_infer_fail(x, QSIM_E_INTERNAL, "the table does not fit");
    return qs_window_into(x, over);
}

QS_COLD static int infer_maxpool(qs_infer *x) {
    int code = qs_infer_type(x, 0, real_types(x) | QS_T_8BIT);
    if (code)
        return code;
    const qs_value *v = x->in[0];
    const bool indices = x->node->output_count > 1 && x->node->outputs[1] != QS_NONE;
    if (indices && x->node->version < 8 && !x->node->domain[0])
        return qs_infer_fail(x, QSIM_E_GRAPH, "2 outputs before opset 8");
    if (v->rank < 0) {
        code = qs_infer_out(x, 1, QSIM_INT64, -1, NULL);
        return code ? code : qs_infer_unknown(x, v->dtype);
    }
    qs_window w;
    qs_dim dims[QS_WINDOW_AXES + 2];
    code = qs_window_infer(x, 0, NULL, &w);
    if (code)
        return code;
    int32_t rank = qs_window_dims(&w, w.channels, dims);
    code = qs_infer_out(x, 0, v->dtype, rank, dims);
    code = code ? code : infer_into(x, QS_POOL_OVER);
    w.channels_last = false;
    qs_window_dims(&w, w.channels, dims);
    return code ? code : qs_infer_out(x, 1, QSIM_INT64, rank, dims);
}

QS_COLD static int infer_average(qs_infer *x) {
    const qs_value *v = x->in[0];
    if (v->rank < 0)
        return qs_infer_unknown(x, v->dtype);
    qs_window w;
    qs_dim dims[QS_WINDOW_AXES + 2];
    int code = qs_window_infer(x, 0, NULL, &w);
    if (code)
        return code;
    int32_t rank = qs_window_dims(&w, w.channels, dims);
    return qs_infer_out(x, 0, v->dtype, rank, dims);
}

QS_COLD static int infer_average_float(qs_infer *x) {
    int code = qs_infer_type(x, 0, real_types(x));
    code = code ? code : infer_average(x);
    return code ? code : infer_into(x, QS_POOL_OVER);
}

QS_COLD static int infer_global(qs_infer *x) {
    const qs_value *v = x->in[0];
    const int code = qs_infer_least_rank(x, 0, 3);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    qs_dim dims[QSIM_MAX_RANK];
    const int32_t channels = qs_node_int(x->node, "channels_last", 0) ? v->rank - 1 : 1;
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = i == 0 || i == channels ? v->dims[i] : (qs_dim){1, NULL};
    return qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

QS_COLD static int infer_global_float(qs_infer *x) {
    int code = qs_infer_type(x, 0, real_types(x));
    code = code ? code : infer_global(x);
    return code ? code : infer_into(x, QS_POOL_OVER);
}

/* Checks the inputs: x, its scale and zero point, those of y. Zero points are optional. */
QS_COLD static int check_quantized(const qs_infer *x) {
    if (!x->in[3])
        return qs_infer_fail(x, QSIM_E_GRAPH, "input 3, the output's scale, is left out");
    for (int32_t i = 0; i < 5; i++) {
        const qs_value *v = x->in[i];
        const bool scale = i == 1 || i == 3;
        int code = scale ? qs_infer_scale(x, i) : qs_infer_type(x, i, QS_T_8BIT);
        if (!code && (i == 2 || i == 4))
            code = qs_infer_same_type(x, 0, i);
        if (code)
            return code;
        if (i == 0 || !v)
            continue;
        if (v->rank > 1 || (v->rank == 1 && v->dims[0].size >= 0 && v->dims[0].size != 1))
            return qs_infer_fail(x, QSIM_E_SHAPE, "input %d is not a single number", (int)i);
    }
    return QSIM_OK;
}

QS_COLD static int infer_average_quantized(qs_infer *x) {
    int code = check_quantized(x);
    if (!code && x->in[0]->rank > 4)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "input 0 has rank %d; 3 and 4 are supported",
                             (int)x->in[0]->rank);
    code = code ? code : infer_average(x);
    return code ? code : infer_into(x, QS_QPOOL_OVER);
}

QS_COLD static int infer_global_quantized(qs_infer *x) {
    int code = check_quantized(x);
    code = code ? code : infer_global(x);
    return code ? code : infer_into(x, QS_QPOOL_OVER);
}

/* ---- lowering ---- */

#define THIN 64 /* bytes of the longest vectors */
/* Bytes of a band: maxima along rows that are kept for the maxima down the columns. */
#define BAND_BYTES ((size_t)32 * 1024)

static void set_window(qs_pool_plan *p, const qs_window *w) {
    p->n = (size_t)w->batch.size;
    p->c = (size_t)w->channels.size;
    p->h = (size_t)w->in[0];
    p->w = (size_t)w->in[1];
    p->oh = (size_t)w->out[0];
    p->ow = (size_t)w->out[1];
    p->kh = (size_t)w->kernel[0];
    p->sh = (size_t)w->stride[0];
    p->dh = (size_t)w->dilation[0];
    p->top = (size_t)w->before[0];
    p->bottom = (size_t)w->after[0];
    p->row.kw = (size_t)w->kernel[1];
    p->row.sw = (size_t)w->stride[1];
    p->row.dw = (size_t)w->dilation[1];
    p->row.left = (ptrdiff_t)w->before[1];
    p->row.right = (ptrdiff_t)w->after[1];
}

/* The whole image is one window. */
static void set_global(qs_pool_plan *p, const qs_value *v) {
    p->n = (size_t)v->dims[0].size;
    p->c = (size_t)v->dims[v->rank - 1].size;
    p->w = (size_t)v->dims[v->rank - 2].size;
    p->h = (size_t)qs_dims_product(v->dims, 1, v->rank - 2);
    p->oh = p->ow = p->sh = p->dh = 1;
    p->kh = p->h;
    p->row.kw = p->w;
    p->row.sw = p->row.dw = 1;
}

/* Sets the distances at which output and input may overlap in memory. */
QS_COLD static void pool_distances(const qs_pool_plan *p, qs_step *step) {
    const size_t items = p->n * p->oh;
    qs_reach r = {.h = p->h,
                  .oh = p->oh,
                  .step = p->sh,
                  .top = p->top,
                  .taps = (p->kh - 1) * p->dh + 1,
                  .row = p->w * p->c * p->element,
                  .out = p->ow * p->c * p->element};
    for (size_t i = 0; i < items; i += p->wave) {
        const size_t last = (items - i < p->wave ? items : i + p->wave) - 1;
        qs_reach_wave(&r, i / p->oh, i % p->oh, last / p->oh, last % p->oh + 1);
    }
    step->min_lead = r.min_lead;
    step->min_lag = r.min_lag;
}

/*
 * Sets the output's pixels and the place of the results in them; `over`: the input that the results
 * may go into. Vectors of several pixels need contiguous results.
 */
static void set_output(qs_lower *l, qs_pool_plan *p, int32_t over) {
    const int64_t into = qs_node_int(l->node, "into", 0);
    p->y_step = into ? (size_t)into : p->c;
    p->column = into ? (size_t)qs_node_int(l->node, "column", 0) : 0;
    if (l->node->input_count > over && qs_lower_in(l, over))
        l->step->reuses = over;
    if (l->node->input_count > over + 1 && qs_lower_in(l, over + 1))
        p->table = over + 1;
    const bool thin = p->row.sw == 1 && p->c * p->element < THIN;
    const bool staged = p->table || (p->y_step != p->c && thin);
    p->row.y_step = staged ? p->c : p->y_step;
    p->row.out_line = (ptrdiff_t)(p->ow * p->row.y_step);
    p->line = staged ? (p->ow * p->c * p->element + 127) / 64 * 64 : 0;
}

static int lower_pool(qs_lower *l, bool global, int32_t over, qs_pool_plan **out) {
    const qs_value *v = qs_lower_in(l, 0);
    qs_infer x;
    qs_lower_infer(l, &x);
    if (!qs_node_int(l->node, "channels_last", 0))
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, QS_UNRANKED);
    if (v->dtype == QSIM_INT8)
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, "pools are executed on uint8, not int8");
    qs_pool_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    *out = p;
    l->step->run = qs_run_nothing;
    if (global) {
        set_global(p, v);
    } else {
        qs_window w;
        int code = qs_window_infer(&x, 0, NULL, &w);
        if (code)
            return code;
        set_window(p, &w);
    }
    p->element = qs_dtype_bytes(v->dtype);
    p->row.width = p->w;
    p->row.ow = p->ow;
    p->row.channels = p->c;
    p->row.row_step = (ptrdiff_t)(p->dh * p->w * p->c);
    p->row.lines = 1;
    p->row.line_step = (ptrdiff_t)(p->sh * p->w * p->c);
    qk_pool_set_inside(&p->row);
    set_output(l, p, over);
    const size_t outputs = p->n * p->oh * p->ow * p->c;
    if (outputs == 0)
        return QSIM_OK;
    const double taps = qs_real(outputs) * qs_real(p->kh) * qs_real(p->row.kw);
    const double ns = taps * qs_real(p->element) / QS_POOLED;
    p->slices = qs_slice_count(l->ctx, p->n * p->oh, ns);
    p->wave = qs_wave(p->n * p->oh, p->slices, ns);
    l->step->scratch = p->slices * p->line;
    if (p->y_step == p->c && !p->line)
        pool_distances(p, l->step);
    l->step->run = qs_run_pool;
    return QSIM_OK;
}

/*
 * Computes the same maxima in fewer steps: along rows, then down columns. If +0 and -0 are the
 * greatest, the first tap's zero is the result. Bands overlap by a window, so a band has at least
 * two windows' height.
 */
QS_COLD static void separate(qs_lower *l, qs_pool_plan *p) {
    const size_t kw = p->row.kw, span = (p->kh - 1) * p->dh + 1;
    const size_t along = (p->sh < span ? p->sh : span) * kw; /* taps per output */
    if (p->kh * kw <= 2 * (along + p->kh) || p->ow > p->w)
        return;
    const size_t line = p->ow * p->c * p->element;
    size_t rows = BAND_BYTES / line < 2 * span ? 2 * span : BAND_BYTES / line;
    rows = rows < p->h ? rows : p->h > span ? p->h : span;
    p->band = (rows - span) / p->sh + 1;
    p->band = p->band < p->oh ? p->band : p->oh;
    if (rows >= p->h)
        p->band = p->oh;
    p->along = p->row;
    p->along.kh = 1;
    p->along.line_step = (ptrdiff_t)(p->w * p->c);
    p->along.out_line = (ptrdiff_t)(p->ow * p->c);
    p->along.y_step = p->c;
    /* The band is read as one row whose windows have taps p->dh lines apart. */
    p->row.dw = p->dh * p->ow;
    p->row.width = p->h * p->ow;
    p->row.sw = 1;
    p->row.line_step = (ptrdiff_t)(p->sh * p->ow * p->c);
    p->row.left = 0;
    p->row.inside = 0;
    p->row.inside_end = p->ow;
    p->band_bytes = qs_align((rows < p->h ? rows : p->h) * line + QS_OVER_READ, 64);
    const double taps = qs_real(p->n * p->oh * line) * qs_real(along + p->kh);
    p->slices = qs_slice_count(l->ctx, p->n * p->oh, taps / QS_POOLED);
    p->wave = p->slices * p->band;
    l->step->scratch = p->slices * (p->line + p->band_bytes);
    if (l->step->min_lead)
        pool_distances(p, l->step);
}

QS_COLD static int lower_maxpool(qs_lower *l) {
    qs_pool_plan *p = NULL;
    int code = lower_pool(l, false, QS_POOL_OVER, &p);
    if (code)
        return code;
    const qk_f32 *k = l->ctx->kernels->f32;
    p->kernel = p->element == 1 ? k->max_u8 : k->max_f32;
    p->column_major = qs_node_int(l->node, "storage_order", 0) != 0;
    if (l->step->run != qs_run_pool)
        return QSIM_OK;
    const size_t span = (p->kh - 1) * p->dh + 1;
    if (!p->line && p->h >= span) { /* rows in scratch memory are looked up or copied one by one */
        p->whole = (p->top + p->sh - 1) / p->sh;
        p->whole_end = (p->h + p->top - span) / p->sh + 1;
    }
    if (!qs_lower_out(l, 1)) {
        separate(l, p);
        return QSIM_OK;
    }
    l->step->run = qs_run_pool_indices;
    l->step->min_lead = l->step->min_lag = 0; /* it reads the input again */
    return QSIM_OK;
}

/*
 * Windows of few channels that are no neighbours would be computed one by one: computes all windows
 * of a row, in vectors, and copies those that are wanted.
 */
#define FEW_BYTES  ((size_t)32)
#define MOST_PICK  ((size_t)4)
#define SHORT_TAPS qs_real(1 << 19) /* of a row, which is not divided then */

QS_COLD static void pick_columns(qs_lower *l, qs_pool_plan *p) {
    const size_t pixel = p->c * p->element, all = (p->ow - 1) * p->row.sw + 1;
    if (p->row.sw == 1 || p->row.sw > MOST_PICK || pixel > FEW_BYTES || p->line ||
        qs_real(all) * qs_real(p->c) * qs_real(p->kh + 1) * qs_real(p->row.kw + 1) > SHORT_TAPS)
        return;
    p->pick = p->row.sw;
    p->row.sw = 1;
    p->row.ow = all;
    p->row.y_step = p->c;
    p->row.out_line = (ptrdiff_t)(all * p->c);
    p->line = (all * pixel + 127) / 64 * 64;
    l->step->scratch = p->slices * p->line;
    qk_pool_set_inside(&p->row);
}

QS_COLD static int lower_average_float(qs_lower *l, bool global) {
    qs_pool_plan *p = NULL;
    int code = lower_pool(l, global, QS_POOL_OVER, &p);
    if (code)
        return code;
    if (l->step->run == qs_run_pool && qs_pool_is_long(p))
        return qs_lower_long_average(l, p);
    p->kernel = l->ctx->kernels->f32->average_f32;
    p->row.count_pads = qs_node_int(l->node, "count_include_pad", 0) != 0;
    if (l->step->run == qs_run_pool)
        pick_columns(l, p);
    return QSIM_OK;
}

QS_COLD static int lower_average_quantized(qs_lower *l, bool global) {
    qs_pool_plan *p = NULL;
    int code = lower_pool(l, global, QS_QPOOL_OVER, &p);
    if (code)
        return code;
    size_t taps;
    if (!qs_mul(p->kh, p->row.kw, &taps) || taps > INT32_MAX / 255)
        return qs_fail(l->error, QSIM_E_LIMIT, "an average over more than %d numbers",
                       INT32_MAX / 255);
    p->kernel = l->ctx->kernels->f32->average_u8;
    p->row.count_pads = qs_node_int(l->node, "count_include_pad", 0) != 0;
    p->row.lo = (int32_t)qs_node_int(l->node, "lo", 0);
    p->row.hi = (int32_t)qs_node_int(l->node, "hi", 255);
    p->has_y_zero = qs_lower_in(l, 4) != NULL;
    p->quantized = true;
    return QSIM_OK;
}

QS_COLD static int lower_averagepool(qs_lower *l) {
    return lower_average_float(l, false);
}
QS_COLD static int lower_global(qs_lower *l) {
    return lower_average_float(l, true);
}
QS_COLD static int lower_qaveragepool(qs_lower *l) {
    return lower_average_quantized(l, false);
}
QS_COLD static int lower_qglobal(qs_lower *l) {
    return lower_average_quantized(l, true);
}

/* ---- expansion into other operators ---- */

/* Expands a global average of doubles into the mean over all spatial axes. */
static void expand_global(qs_expand *e) {
    const qs_value *v = qs_expand_value(e, 0);
    int64_t axes[QSIM_MAX_RANK];
    for (int32_t i = 2; i < v->rank; i++)
        axes[i - 2] = i;
    if (v->dtype == QSIM_DOUBLE && v->rank > 2)
        e->out[0] = qs_expand_mean(e, qs_expand_in(e, 0), axes, v->rank - 2, true);
}

/* ---- rows ---- */

static const qs_attr_rule maxpool_attrs[] = {
    QS_WINDOW_ATTRS(1),
    {"storage_order", QSIM_ATTR_INT, 8, 0},
    {"ceil_mode", QSIM_ATTR_INT, 10, 0},
    {"dilations", QSIM_ATTR_INTS, 10, 0},
};
static const qs_attr_rule average_attrs[] = {
    QS_WINDOW_ATTRS(1),
    {"count_include_pad", QSIM_ATTR_INT, 7, 0},
    {"ceil_mode", QSIM_ATTR_INT, 10, 0},
    {"dilations", QSIM_ATTR_INTS, 19, 0},
};
static const qs_attr_rule internal_attrs[] = {
    QS_WINDOW_ATTRS(0),
    {"channels_last", QSIM_ATTR_INT, 0, 0},
    {"ceil_mode", QSIM_ATTR_INT, 0, 0},
    {"dilations", QSIM_ATTR_INTS, 0, 0},
    {"storage_order", QSIM_ATTR_INT, 0, 0},
    {"count_include_pad", QSIM_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
};
static const qs_attr_rule last_attrs[] = {
    {"channels_last", QSIM_ATTR_INT, 0, 0},
    {"lo", QSIM_ATTR_INT, 0, 0}, /* internal from here on */
    {"hi", QSIM_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
};
static const qs_attr_rule qaverage_attrs[] = {
    QS_WINDOW_ATTRS(0),
    {"channels_last", QSIM_ATTR_INT, 0, 0},
    {"ceil_mode", QSIM_ATTR_INT, 0, 0},
    {"count_include_pad", QSIM_ATTR_INT, 0, 0},
    {"dilations", QSIM_ATTR_INTS, 0, 0}, /* internal from here on */
    {"lo", QSIM_ATTR_INT, 0, 0},
    {"hi", QSIM_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
};
#define QAVERAGE_PUBLIC 7

/* Without the output of indices, MaxPool only moves elements. */
static uint32_t maxpool_moves(const qs_graph *g, const qs_node *n) {
    (void)g;
    return n->output_count == 1 ? QS_MOVES : 0;
}

QS_OP(maxpool_1, .name = "MaxPool", .until = 7, .min_in = 1, QS_ATTRS(maxpool_attrs),
      .traits = QS_NEEDS_LAST, QS_MORE(.also = maxpool_moves), .kind = QS_KIND_MOVEMENT,
      .kernel = QS_KERNEL_POOL, .infer = infer_maxpool);
QS_OP(maxpool, .name = "MaxPool", .since = 8, .min_in = 1, .max_out = 2, QS_ATTRS(maxpool_attrs),
      .traits = QS_NEEDS_LAST, QS_MORE(.also = maxpool_moves), .kind = QS_KIND_MOVEMENT,
      .kernel = QS_KERNEL_POOL, .infer = infer_maxpool);
QS_OP(qsim_maxpool, .domain = QS_DOMAIN_QSIM, .name = "MaxPool", .min_in = 1, .max_in = 3,
      .max_out = 2, QS_ATTRS(internal_attrs), .traits = QS_NEEDS_LAST,
      QS_MORE(.also = maxpool_moves), .over = QS_POOL_OVER, .kernel = QS_KERNEL_POOL,
      .infer = infer_maxpool, .lower = lower_maxpool);
QS_OP(averagepool, .name = "AveragePool", .min_in = 1, QS_ATTRS(average_attrs),
      .traits = QS_NEEDS_LAST, .moments = QS_MOMENTS_MEAN, .kind = QS_KIND_POOL,
      .kernel = QS_KERNEL_POOL, .infer = infer_average_float);
QS_OP(qsim_averagepool, .domain = QS_DOMAIN_QSIM, .name = "AveragePool", .min_in = 1, .max_in = 3,
      QS_ATTRS(internal_attrs), .traits = QS_NEEDS_LAST, .over = QS_POOL_OVER,
      .kernel = QS_KERNEL_POOL, .infer = infer_average_float, .lower = lower_averagepool);
QS_OP(globalaveragepool, .name = "GlobalAveragePool", .min_in = 1, .traits = QS_NEEDS_LAST,
      .moments = QS_MOMENTS_MEAN, .kind = QS_KIND_POOL, .kernel = QS_KERNEL_POOL,
      .infer = infer_global_float, .expand = expand_global);
QS_OP(qsim_globalaveragepool, .domain = QS_DOMAIN_QSIM, .name = "GlobalAveragePool", .min_in = 1,
      .max_in = 3, QS_ATTRS(last_attrs), .traits = QS_NEEDS_LAST, .over = QS_POOL_OVER,
      .kernel = QS_KERNEL_POOL, .infer = infer_global_float, .lower = lower_global);
QS_OP(ms_qlinearaveragepool, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearAveragePool",
      .until = 1, .min_in = 2, .max_in = 5, .attrs = qaverage_attrs, .attr_count = QAVERAGE_PUBLIC,
      .traits = QS_NEEDS_LAST | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4}, .prefix = 7)), .kernel = QS_KERNEL_POOL,
      .infer = infer_average_quantized, .lower = lower_qaveragepool);
QS_OP(qsim_qlinearaveragepool, .domain = QS_DOMAIN_QSIM, .name = "QLinearAveragePool", .min_in = 2,
      .max_in = 7, QS_ATTRS(qaverage_attrs), .traits = QS_NEEDS_LAST | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4})), .over = QS_QPOOL_OVER,
      .kernel = QS_KERNEL_POOL, .infer = infer_average_quantized, .lower = lower_qaveragepool);
QS_OP(ms_qlinearglobalaveragepool, .domain = QS_DOMAIN_MICROSOFT,
      .name = "QLinearGlobalAveragePool", .until = 1, .min_in = 2, .max_in = 5, .attrs = last_attrs,
      .attr_count = 1, .traits = QS_NEEDS_LAST | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4}, .prefix = 7)), .kernel = QS_KERNEL_POOL,
      .infer = infer_global_quantized, .lower = lower_qglobal);
QS_OP(qsim_qlinearglobalaveragepool, .domain = QS_DOMAIN_QSIM, .name = "QLinearGlobalAveragePool",
      .min_in = 2, .max_in = 7, QS_ATTRS(last_attrs), .traits = QS_NEEDS_LAST | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4})), .over = QS_QPOOL_OVER,
      .kernel = QS_KERNEL_POOL, .infer = infer_global_quantized, .lower = lower_qglobal);
