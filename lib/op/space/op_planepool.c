/* SPDX-License-Identifier: MIT */
/*
 * Pools executed on images [N, C, space...] with one to three spatial axes: LpPool, GlobalLpPool,
 * GlobalMaxPool, and the internal MaxPool and AveragePool over three axes. Each result is computed
 * separately: sums in double, in the order of the taps; the maximum of a whole plane of floats
 * by a kernel.
 */
#include <math.h>

#include "base/ctx.h"
#include "kernel/elementary.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/window.h"

#define AXES QS_WINDOW_AXES

typedef enum plane_kind { PLANE_MAX, PLANE_AVERAGE, PLANE_LP } plane_kind;

typedef struct plane_params {
    plane_kind kind;
    int32_t dtype;
    bool count_pads, column_major, has_indices, whole; /* whole: the maximum of a plane of floats */
    double power;
    size_t planes, area, results; /* area, results: elements per plane */
    /* From the first axis to the last; missing axes have size 1. */
    int64_t in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES];
    int64_t before[AXES], after[AXES];
} plane_params;

typedef struct plane_job {
    const qsim_ctx *ctx;
    const plane_params *p;
    const void *x;
    void *y;
    int64_t *indices;
} plane_job;

/* ---- rules ---- */

QS_COLD static int infer_windows(qs_infer *x, uint32_t types) {
    const qs_value *v = x->in[0];
    qs_window w;
    qs_dim dims[QS_WINDOW_AXES + 2];
    int code = qs_infer_type(x, 0, types);
    if (!code && v->rank < 0)
        code = qs_infer_out(x, 1, QSIM_INT64, -1, NULL);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    code = qs_window_infer(x, 0, NULL, &w);
    if (code)
        return code;
    const int32_t rank = qs_window_dims(&w, w.channels, dims);
    code = qs_infer_out(x, 1, QSIM_INT64, rank, dims);
    return code ? code : qs_infer_out(x, 0, v->dtype, rank, dims);
}

QS_COLD static int infer_plane(qs_infer *x) {
    return infer_windows(x, QS_T_REAL | QS_T_8BIT);
}

/* Reads the exponent, a float in version 1, an integer since. */
QS_COLD static int read_power(const qs_infer *x, double *power) {
    const qs_attr *a = qs_node_attr(x->node, "p");
    *power = !a ? 2.0 : a->type == QSIM_ATTR_FLOAT ? (double)a->u.f : (double)a->u.i;
    return *power > 0 && isfinite(*power)
               ? QSIM_OK
               : qs_infer_fail(x, QSIM_E_VALUE, "attribute p is %g", *power);
}

QS_COLD static int infer_lppool(qs_infer *x) {
    double power;
    const int code = read_power(x, &power);
    return code ? code : infer_windows(x, QS_T_REAL);
}

QS_COLD static int infer_global(qs_infer *x) {
    const qs_value *v = x->in[0];
    qs_dim dims[QSIM_MAX_RANK];
    double power;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = read_power(x, &power);
    if (!code)
        code = qs_infer_least_rank(x, 0, 3);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = i < 2 ? v->dims[i] : (qs_dim){1, NULL};
    return qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

/* ---- steps ---- */

QS_COLD static double number_at(const plane_params *p, const void *x, size_t i) {
    switch (p->dtype) {
    case QSIM_FLOAT: return (double)((const float *)x)[i];
    case QSIM_DOUBLE: return ((const double *)x)[i];
    case QSIM_INT8: return ((const int8_t *)x)[i];
    default: return ((const uint8_t *)x)[i];
    }
}

QS_COLD static void put_number(const plane_params *p, void *y, size_t i, double v) {
    switch (p->dtype) {
    case QSIM_FLOAT: ((float *)y)[i] = (float)v; break;
    case QSIM_DOUBLE: ((double *)y)[i] = v; break;
    case QSIM_INT8: ((int8_t *)y)[i] = (int8_t)v; break;
    default: ((uint8_t *)y)[i] = (uint8_t)v; break;
    }
}

/* State of a window: sum or maximum, and the number of its elements so far. */
typedef struct window_state {
    double value;
    size_t count, at; /* at: index of the greatest */
} window_state;

QS_COLD static void gather(const plane_params *p, window_state *g, double v, size_t at) {
    if (p->kind == PLANE_AVERAGE) {
        g->value += v;
    } else if (p->kind == PLANE_LP) {
        const double a = v < 0 ? -v : v;
        g->value += p->power == 1 ? a : p->power == 2 ? a * a : qk_pow64(a, p->power);
    } else {
        g->at = g->count == 0 || v > g->value ? at : g->at;
        g->value = v > g->value ? v : g->value;
    }
    g->count++;
}

/* Number of taps of a window for a mean that includes padding. */
QS_COLD static int64_t padded_taps(const plane_params *p, const int64_t first[AXES]) {
    int64_t all = 1;
    for (int i = 0; i < AXES; i++) {
        const int64_t extent = p->in[i] + p->after[i] - first[i];
        const int64_t count = extent > 0 ? (extent - 1) / p->dilation[i] + 1 : 0;
        all *= count < p->kernel[i] ? count : p->kernel[i];
    }
    return all;
}

/* Reduces the window that begins at `first`; its taps may all be outside. */
QS_COLD static window_state reduce_window(const qsim_ctx *ctx, const plane_params *p, const void *x,
                                          size_t from, const int64_t first[AXES]) {
    const double least = p->dtype == QSIM_INT8 ? -128 : p->dtype == QSIM_UINT8 ? 0 : -INFINITY;
    window_state g = {p->kind == PLANE_MAX ? least : 0, 0, 0};
    size_t seen = 0;
    for (int64_t a = 0; a < p->kernel[0]; a++) {
        const int64_t d = first[0] + a * p->dilation[0];
        if (qs_stopped_at(ctx, seen++))
            return g;
        for (int64_t b = 0; d >= 0 && d < p->in[0] && b < p->kernel[1]; b++) {
            if (qs_stopped_at(ctx, seen++))
                return g;
            const int64_t h = first[1] + b * p->dilation[1];
            for (int64_t c = 0; h >= 0 && h < p->in[1] && c < p->kernel[2]; c++) {
                const int64_t w = first[2] + c * p->dilation[2];
                const size_t at = (size_t)((d * p->in[1] + h) * p->in[2] + w);
                if (qs_stopped_at(ctx, seen++))
                    return g;
                if (w >= 0 && w < p->in[2])
                    gather(p, &g, number_at(p, x, from + at), at);
            }
        }
    }
    return g;
}

QS_COLD static double finish(const plane_params *p, const window_state *g,
                             const int64_t first[AXES]) {
    if (p->kind == PLANE_MAX)
        return g->value;
    if (p->kind == PLANE_AVERAGE) {
        const int64_t count = p->count_pads ? padded_taps(p, first) : (int64_t)g->count;
        return count ? g->value / (double)count : 0;
    }
    return p->power == 1   ? g->value
           : p->power == 2 ? sqrt(g->value)
                           : qk_pow64(g->value, 1 / p->power);
}

/* An index into the whole input; the first axis is the fastest if column_major. */
QS_COLD static int64_t index_of(const plane_params *p, size_t plane, size_t at) {
    const int64_t i = (int64_t)at, w = i % p->in[2], h = i / p->in[2] % p->in[1],
                  d = i / p->in[2] / p->in[1];
    return (int64_t)(plane * p->area) + (p->column_major ? (w * p->in[1] + h) * p->in[0] + d : i);
}

QS_COLD static void plane_range(const void *arg, size_t begin, size_t end) {
    const plane_job *j = arg;
    const plane_params *p = j->p;
    for (size_t i = begin; i < end; i++) {
        const size_t plane = i / p->results;
        int64_t first[AXES], rest = (int64_t)(i % p->results);
        for (int k = AXES; k-- > 0; rest /= p->out[k])
            first[k] = rest % p->out[k] * p->stride[k] - p->before[k];
        const window_state g = reduce_window(j->ctx, p, j->x, plane * p->area, first);
        put_number(p, j->y, i, finish(p, &g, first));
        if (j->indices)
            j->indices[i] = index_of(p, plane, g.at);
    }
}

/* GlobalMaxPool of floats: the kernel's maximum, which is at least 0, or else each number's. */
QS_COLD static void whole_range(const void *arg, size_t begin, size_t end) {
    const plane_job *j = arg;
    const size_t area = j->p->area;
    for (size_t i = begin; i < end; i++) {
        const float *x = (const float *)j->x + i * area;
        float most = 0, low, high;
        for (size_t at = 0, count; (count = qs_piece(j->ctx, at, area)); at += count) {
            j->ctx->kernels->ew->range(x + at, count, &low, &high);
            most = high > most ? high : most;
        }
        if (most > 0)
            ((float *)j->y)[i] = most;
        else
            plane_range(j, i, i + 1);
    }
}

QS_COLD static void run_plane(const qs_step *s, const qs_frame *f) {
    const plane_params *p = s->params;
    const plane_job j = {f->ctx, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0),
                         p->has_indices ? qs_step_out(s, f, 1) : NULL};
    const double taps = (double)p->kernel[0] * (double)p->kernel[1] * (double)p->kernel[2];
    qs_ranges(f->ctx, p->planes * p->results, 1 + qs_whole(QS_GRAIN / (4 * taps + 1)),
              p->whole ? whole_range : plane_range, &j);
}

QS_COLD static plane_params *start(qs_lower *l, plane_kind kind) {
    const qs_value *v = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    plane_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return NULL;
    p->kind = kind;
    p->dtype = v->dtype;
    p->planes = (size_t)qs_dims_product(v->dims, 0, 2);
    p->area = (size_t)qs_dims_product(v->dims, 2, v->rank);
    p->results = (size_t)qs_dims_product(y->dims, 2, y->rank);
    l->step->run = run_plane;
    return p;
}

QS_COLD static int lower_windows(qs_lower *l, plane_kind kind) {
    plane_params *p = start(l, kind);
    qs_infer x;
    qs_window w;
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = qs_window_infer(&x, 0, NULL, &w);
    if (!code && kind == PLANE_LP)
        code = read_power(&x, &p->power);
    for (int k = 0; k < AXES && !code; k++) {
        const int slot = (k + 2) % AXES; /* the windows' slots begin with the second axis */
        p->in[k] = w.in[slot];
        p->out[k] = w.out[slot];
        p->kernel[k] = w.kernel[slot];
        p->stride[k] = w.stride[slot];
        p->dilation[k] = w.dilation[slot];
        p->before[k] = w.before[slot];
        p->after[k] = w.after[slot];
    }
    p->count_pads = qs_node_int(l->node, "count_include_pad", 0) != 0;
    p->column_major = qs_node_int(l->node, "storage_order", 0) != 0;
    p->has_indices = l->node->output_count > 1 && qs_lower_out(l, 1);
    return code;
}

/* The whole image is one window. */
QS_COLD static int lower_global(qs_lower *l, plane_kind kind) {
    plane_params *p = start(l, kind);
    qs_infer x;
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    for (int k = 0; k < AXES; k++)
        p->in[k] = p->out[k] = p->kernel[k] = p->stride[k] = p->dilation[k] = 1;
    p->in[AXES - 1] = p->kernel[AXES - 1] = (int64_t)p->area;
    p->whole = kind == PLANE_MAX && p->dtype == QSIM_FLOAT;
    return read_power(&x, &p->power);
}

QS_COLD static int lower_lppool(qs_lower *l) {
    return lower_windows(l, PLANE_LP);
}
QS_COLD static int lower_max(qs_lower *l) {
    return lower_windows(l, PLANE_MAX);
}
QS_COLD static int lower_average(qs_lower *l) {
    return lower_windows(l, PLANE_AVERAGE);
}
QS_COLD static int lower_global_max(qs_lower *l) {
    return lower_global(l, PLANE_MAX);
}
QS_COLD static int lower_global_lp(qs_lower *l) {
    return lower_global(l, PLANE_LP);
}

/* ---- rows ---- */

/* From version 2 on p is an integer. */
QS_COLD static int upgrade_power(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    const qs_attr *a = qs_node_attr(&g->nodes[node], "p");
    if (to < 2 || !a || a->type != QSIM_ATTR_FLOAT)
        return QSIM_OK;
    const double power = (double)a->u.f;
    if (!(power >= 1 && power <= INT32_MAX) || (double)(int64_t)power != power)
        return qs_fail(error, QSIM_E_UNSUPPORTED, "%s: p is %g, newer versions take integers only",
                       g->nodes[node].op_type, power);
    return qs_node_set_int(g, node, "p", (int64_t)power) ? qs_op_no_memory(error) : QSIM_OK;
}

static const qs_attr_rule lppool_attrs[] = {
    QS_WINDOW_ATTRS(1),
    {"p", QSIM_ATTR_FLOAT, 1, 1},
    {"p", QSIM_ATTR_INT, 2, 0},
    {"ceil_mode", QSIM_ATTR_INT, 18, 0},
    {"dilations", QSIM_ATTR_INTS, 18, 0},
};
static const qs_attr_rule global_lp_attrs[] = {{"p", QSIM_ATTR_FLOAT, 1, 1},
                                               {"p", QSIM_ATTR_INT, 2, 0}};
static const qs_attr_rule plane_attrs[] = {
    QS_WINDOW_ATTRS(0),
    {"ceil_mode", QSIM_ATTR_INT, 0, 0},
    {"dilations", QSIM_ATTR_INTS, 0, 0},
    {"storage_order", QSIM_ATTR_INT, 0, 0},
    {"count_include_pad", QSIM_ATTR_INT, 0, 0},
};

QS_OP(lppool, .name = "LpPool", .min_in = 1, QS_ATTRS(lppool_attrs), .traits = QS_PLAIN,
      .kernel = QS_KERNEL_PLANE_POOL, .infer = infer_lppool,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_power)), .lower = lower_lppool);
QS_OP(globallppool, .name = "GlobalLpPool", .min_in = 1, QS_ATTRS(global_lp_attrs),
      .traits = QS_PLAIN, .kernel = QS_KERNEL_PLANE_POOL, .infer = infer_global,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_power)), .lower = lower_global_lp);
QS_OP(globalmaxpool, .name = "GlobalMaxPool", .min_in = 1, .traits = QS_PLAIN,
      .kernel = QS_KERNEL_PLANE_POOL, .infer = infer_global, .lower = lower_global_max);
QS_OP(qsim_planemaxpool, .domain = QS_DOMAIN_QSIM, .name = "PlaneMaxPool", .min_in = 1,
      .max_out = 2, QS_ATTRS(plane_attrs), .traits = QS_PLAIN, .kernel = QS_KERNEL_PLANE_POOL,
      .infer = infer_plane, .lower = lower_max);
QS_OP(qsim_planeaveragepool, .domain = QS_DOMAIN_QSIM, .name = "PlaneAveragePool", .min_in = 1,
      QS_ATTRS(plane_attrs), .traits = QS_PLAIN, .kernel = QS_KERNEL_PLANE_POOL,
      .infer = infer_plane, .lower = lower_average);
