/* SPDX-License-Identifier: MIT */
/* Clip: bounds are attributes up to version 10, inputs from 11. */
#include "op/elementwise/dense.h"
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "tensor/minifloat.h"

#include <float.h>
#include <math.h>

/* Of doubles: min(max(x, lo), hi) in this order, so hi wins if lo > hi. NaN in x stays NaN. */
QS_COLD static void clip_doubles(const double *x, double *y, size_t n, double lo, double hi) {
    for (size_t i = 0; i < n; i++) {
        const double v = x[i] < lo ? lo : x[i];
        y[i] = v > hi ? hi : v;
    }
}

typedef union clip_bound {
    float f;
    double d;
    int64_t i; /* little-endian: narrower types read its low bytes */
    uint64_t u;
    uint8_t bytes[8];
} clip_bound;

typedef struct clip_bounds {
    clip_bound lo, hi;
} clip_bounds;

static const clip_bounds defaults[QS_TYPES] = {
    [QSIM_FLOAT] = {{.f = -INFINITY}, {.f = INFINITY}},
    [QSIM_DOUBLE] = {{.d = -INFINITY}, {.d = INFINITY}},
    [QSIM_INT8] = {{.bytes = {0x80}}, {.bytes = {0x7f}}},
    [QSIM_INT16] = {{.bytes = {0, 0x80}}, {.bytes = {0xff, 0x7f}}},
    [QSIM_INT32] = {{.bytes = {0, 0, 0, 0x80}}, {.bytes = {0xff, 0xff, 0xff, 0x7f}}},
    [QSIM_INT64] = {{.i = INT64_MIN}, {.i = INT64_MAX}},
    [QSIM_UINT8] = {{.u = 0}, {.u = UINT64_MAX}},
    [QSIM_UINT16] = {{.u = 0}, {.u = UINT64_MAX}},
    [QSIM_UINT32] = {{.u = 0}, {.u = UINT64_MAX}},
    [QSIM_UINT64] = {{.u = 0}, {.u = UINT64_MAX}},
};

QS_COLD static int infer_clip(qs_infer *x) {
    uint32_t set = x->node->version < 12 ? QS_T_REAL : QS_T_ARITH;
    int code = qs_infer_type(x, 0, set);
    for (int32_t i = 1; i < 3 && !code; i++) {
        const qs_value *v = qs_infer_in(x, i);
        if (!v)
            continue;
        code = qs_infer_same_type(x, 0, i);
        if (!code && !qs_is_single(v))
            code = qs_infer_fail(x, QSIM_E_SHAPE, "bound '%s' is not a single value", v->name);
    }
    return code ? code : qs_infer_like(x, 0, 0);
}

typedef struct clip_params {
    const qk_ew *kernels;
    int32_t dtype;
    qs_dense greatest, least; /* of integers */
    clip_bounds bounds;
    size_t elements, element;
} clip_params;

typedef struct clip_job {
    const clip_params *p;
    const char *x;
    char *y;
    const void *lo, *hi;
} clip_job;

static void clip_range(const void *arg, size_t begin, size_t end) {
    const clip_job *job = arg;
    size_t at = begin * job->p->element;
    const void *x = job->x + at;
    void *y = job->y + at;
    const clip_params *p = job->p;
    const size_t n = end - begin;
    if (p->dtype == QSIM_FLOAT) {
        p->kernels->bound(x, NULL, *(const float *)job->lo, *(const float *)job->hi, y, n);
    } else if (p->dtype == QSIM_DOUBLE) {
        clip_doubles(x, y, n, *(const double *)job->lo, *(const double *)job->hi);
    } else {
        qs_dense_run(&p->greatest, x, 1, job->lo, 0, y, n);
        qs_dense_run(&p->least, y, 1, job->hi, 0, y, n);
    }
}

static const void *bound(const qs_step *s, const qs_frame *f, int32_t index, const void *fallback) {
    const void *given = index > 0 ? qs_step_in(s, f, index) : NULL;
    return given ? given : fallback;
}

static void run_clip(const qs_step *s, const qs_frame *f) {
    const clip_params *p = s->params;
    clip_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), &p->bounds.lo, &p->bounds.hi};
    qs_ranges(f->ctx, p->elements, QS_GRAIN, clip_range, &job);
}

/* The same with one or two bounds that are inputs. */
static void run_clip_min(const qs_step *s, const qs_frame *f) {
    const clip_params *p = s->params;
    clip_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), bound(s, f, 1, &p->bounds.lo),
                    &p->bounds.hi};
    qs_ranges(f->ctx, p->elements, QS_GRAIN, clip_range, &job);
}

static void run_clip_both(const qs_step *s, const qs_frame *f) {
    const clip_params *p = s->params;
    clip_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), bound(s, f, 1, &p->bounds.lo),
                    bound(s, f, 2, &p->bounds.hi)};
    qs_ranges(f->ctx, p->elements, QS_GRAIN, clip_range, &job);
}

QS_COLD static int lower_clip(qs_lower *l) {
    static const qs_step_fn runs[] = {run_clip, run_clip, run_clip_min, run_clip_both};
    const qs_value *x = qs_lower_in(l, 0);
    clip_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->kernels = l->ctx->kernels->ew;
    p->dtype = x->dtype;
    p->bounds = defaults[x->dtype];
    p->greatest = qs_dense_of(&qs_dense_greatest, x->dtype);
    p->least = qs_dense_of(&qs_dense_least, x->dtype);
    p->elements = qs_value_elements(x);
    p->element = qs_dtype_bytes(x->dtype);
    if (l->node->version < 11) {
        float lo = qs_node_float(l->node, "min", -INFINITY);
        float hi = qs_node_float(l->node, "max", INFINITY);
        if (x->dtype == QSIM_FLOAT) {
            p->bounds.lo.f = lo;
            p->bounds.hi.f = hi;
        } else {
            p->bounds.lo.d = (double)lo;
            p->bounds.hi.d = (double)hi;
        }
    }
    l->step->run = runs[l->node->input_count];
    return QSIM_OK;
}

QS_COLD static int attr_to_input(qs_graph *g, qs_id node, const char *attr, int32_t index,
                                 int32_t dtype, qsim_error *error) {
    if (!qs_node_attr(&g->nodes[node], attr))
        return QSIM_OK;
    float f = qs_node_float(&g->nodes[node], attr, 0);
    double d = (double)f;
    const uint16_t half =
        qs_is_half(dtype) ? (uint16_t)qs_minifloat_bits(qs_minifloat_of(dtype), d, false) : 0;
    const void *data = dtype == QSIM_DOUBLE ? (const void *)&d
                       : qs_is_half(dtype)  ? (const void *)&half
                                            : (const void *)&f;
    return qs_upgrade_input(g, node, attr, index, qs_upgrade_const(g, attr, dtype, 0, NULL, data),
                            error);
}

QS_COLD static int upgrade_clip(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    if (g->nodes[node].version >= 11 || to < 11)
        return QSIM_OK;
    int32_t dtype = g->values[g->nodes[node].inputs[0]].dtype;
    dtype = dtype == QSIM_DOUBLE || qs_is_half(dtype) ? dtype : QSIM_FLOAT;
    int code = attr_to_input(g, node, "min", 1, dtype, error);
    return code ? code : attr_to_input(g, node, "max", 2, dtype, error);
}

static const qs_attr_rule clip_attrs[] = {{"min", QSIM_ATTR_FLOAT, 1, 10},
                                          {"max", QSIM_ATTR_FLOAT, 1, 10},
                                          {"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};

QS_OP(clip, .name = "Clip", .min_in = 1,
      QS_MORE(QS_HISTORY(.later = {{11, 1, 3, 1}}, .upgrade = upgrade_clip)), QS_ATTRS(clip_attrs),
      .traits = QS_ELEMENTWISE, .setting_inputs = 1 << 1 | 1 << 2, .kind = QS_KIND_POOL,
      .kernel = QS_KERNEL_CLIP, .infer = infer_clip, .lower = lower_clip);
