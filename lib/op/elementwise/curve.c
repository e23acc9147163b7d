/* SPDX-License-Identifier: MIT */
#include "op/elementwise/curve.h"

#include "base/ctx.h"
#include "kernel/table.h"

typedef struct curve_params {
    qs_curve curve;
    size_t elements;
} curve_params;

typedef struct curve_job {
    const curve_params *p;
    const qk_ew *ew;
    const float *x;
    float *y;
} curve_job;

QS_COLD qs_curve qs_curve_of(const qs_node *n) {
    const qs_op_curve *c = n->removed || !n->op ? NULL : qs_op_more_of(n->op)->curve;
    if (!c)
        return (qs_curve){0};
    return (qs_curve){
        c->fn,
        {(double)qs_node_float(n, "alpha", c->alpha), (double)qs_node_float(n, "beta", c->beta)}};
}

QS_COLD qs_curve qs_curve_find(const char *name) {
    const qs_op *op = qs_op_find(NULL, name, qs_op_newest_opset(), NULL);
    op = op ? op : qs_op_find("qsim", name, 1, NULL);
    const qs_op_curve *c = op ? qs_op_more_of(op)->curve : NULL;
    return c ? (qs_curve){c->fn, {(double)c->alpha, (double)c->beta}} : (qs_curve){0};
}

static void curve_range(const void *arg, size_t begin, size_t end) {
    const curve_job *job = arg;
    qs_curve_run(&job->p->curve, job->ew, job->x + begin, job->y + begin, end - begin);
}

static void run_curve(const qs_step *s, const qs_frame *f) {
    const curve_params *p = s->params;
    const curve_job job = {p, f->ctx->kernels->ew, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->elements, QS_GRAIN / 8, curve_range, &job);
}

QS_COLD int qs_curve_lower_by(qs_lower *l, qs_curve curve, qs_map_fn others) {
    if (qs_lower_in(l, 0)->dtype != QSIM_FLOAT)
        return qs_lower_map(l, others, curve.param[0], curve.param[1]);
    curve_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    *p = (curve_params){curve, qs_value_elements(qs_lower_in(l, 0))};
    l->step->run = run_curve;
    return QSIM_OK;
}

QS_COLD int qs_curve_lower(qs_lower *l, qs_map_fn others) {
    return qs_curve_lower_by(l, qs_curve_of(l->node), others);
}
