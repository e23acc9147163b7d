/* SPDX-License-Identifier: MIT */
/*
 * Products of images with one factor per channel, as in squeeze-and-excite: y = clamp(x * f + c) in
 * one step; c is optional.
 */
#include "op/elementwise/muladd.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/broadcast.h"

#include <math.h>

typedef struct muladd_params {
    qs_broadcast broadcast; /* a: x, b: f */
    int32_t x, f, c;
    float lo, hi;
} muladd_params;

typedef struct muladd_job {
    const muladd_params *p;
    const qk_ew *k;
    const float *c, *y;
} muladd_job;

static void muladd_row(const void *arg, const void *x, const void *f, void *y, size_t n) {
    const muladd_job *j = arg;
    const float *c = j->c ? j->c + ((const float *)y - j->y) : NULL;
    j->k->muladd(x, f, c, j->p->lo, j->p->hi, y, n);
}

static void run_muladd(const qs_step *s, const qs_frame *f) {
    const muladd_params *p = s->params;
    float *y = qs_step_out(s, f, 0);
    const muladd_job job = {p, f->ctx->kernels->ew, p->c ? qs_step_in(s, f, p->c) : NULL, y};
    qs_broadcast_run(&p->broadcast, f->ctx, qs_step_in(s, f, p->x), qs_step_in(s, f, p->f), y,
                     &job);
}

/* Whether each element of x's rows has its own factor, the same for many rows. */
static bool has_factors(const qs_loops *l) {
    const int32_t last = l->rank - 1;
    if (l->rows == 0 || l->inner == 0)
        return true;
    return l->inner_a == 1 && l->inner_b == 1 &&
           (last < 0 || (l->a[last] == l->inner && l->b[last] == 0));
}

QS_COLD int qs_muladd_lower(qs_lower *l, int32_t x, int32_t f, int32_t c, bool *done) {
    const qs_value *y = qs_lower_out(l, 0);
    qs_loops loops;
    qs_loops_make(&loops, qs_lower_in(l, x), qs_lower_in(l, f), y);
    *done = y->dtype == QSIM_FLOAT && has_factors(&loops);
    if (!*done)
        return QSIM_OK;
    muladd_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->broadcast = (qs_broadcast){loops,         muladd_row, sizeof(float), sizeof(float),
                                  sizeof(float), QS_GRAIN,   NULL};
    p->x = x;
    p->f = f;
    p->c = c;
    p->lo = qs_node_float(l->node, "lo", -INFINITY);
    p->hi = qs_node_float(l->node, "hi", INFINITY);
    l->step->run = run_muladd;
    l->step->in_place = 1u << x | (c ? 1u << c : 0);
    return QSIM_OK;
}

/* ---- MulAdd, internal: x, f, c ---- */

QS_COLD static int infer_muladd(qs_infer *x) {
    int32_t rank;
    qs_dim dims[QSIM_MAX_RANK];
    int code = QSIM_OK;
    for (int32_t i = 0; i < 3 && !code; i++)
        code = qs_infer_type(x, i, QS_T_FLOAT);
    if (!code)
        code = qs_infer_broadcast(x, x->in[0], x->in[1], &rank, dims);
    return code ? code : qs_infer_like(x, 0, 2);
}

QS_COLD static int lower_muladd(qs_lower *l) {
    bool done;
    int code = qs_muladd_lower(l, 0, 1, 2, &done);
    if (code || done)
        return code;
    return qs_fail(l->error, QSIM_E_UNSUPPORTED, "%s: factors that are not of channels (node '%s')",
                   l->model, l->node->name);
}

static const qs_attr_rule muladd_attrs[] = {{"lo", QSIM_ATTR_FLOAT, 0, 0},
                                            {"hi", QSIM_ATTR_FLOAT, 0, 0}};

QS_OP(muladd, .domain = QS_DOMAIN_QSIM, .name = "MulAdd", .min_in = 3, QS_ATTRS(muladd_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_MUL_ADD, .infer = infer_muladd,
      .lower = lower_muladd);
