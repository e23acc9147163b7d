/* SPDX-License-Identifier: MIT */
/*
 * Products of images with one factor per channel, as in squeeze-and-excite: y = clamp(x * f + c) in
 * one step; c is optional. Few channels are repeated in a tile, so that one kernel call processes
 * many pixels.
 */
#include "op/elementwise/muladd.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"

#include <math.h>

#define BLOCK 1024

typedef struct muladd_params {
    qs_loops loops; /* a: x, b: f */
    int32_t x, f, c;
    float lo, hi;
} muladd_params;

typedef struct muladd_job {
    const qsim_ctx *ctx;
    const muladd_params *p;
    const qk_ew *k;
    const float *x, *f, *c;
    float *y;
} muladd_job;

static void fill_tile(float *tile, const float *f, size_t n, size_t rows) {
    for (size_t i = 0; i < rows; i++)
        memcpy(tile + i * n, f, n * sizeof(*f));
}

static void muladd_rows(const void *arg, size_t begin, size_t end) {
    const muladd_job *j = arg;
    const qs_loops *l = &j->p->loops;
    const size_t n = l->inner, same = l->rank ? l->dims[l->rank - 1] : 1;
    const size_t fits = n < BLOCK ? BLOCK / n : 1, most = fits < same ? fits : same;
    const float *have = NULL;
    float tile[BLOCK];
    for (size_t r = begin, k; r < end; r += k) {
        size_t ox, of;
        qs_loops_offsets(l, r, &ox, &of);
        const float *f = j->f + of, *c = j->c ? j->c + r * n : NULL;
        k = same - r % same < most ? same - r % same : most;
        k = end - r < k ? end - r : k;
        if (most > 1 && f != have)
            fill_tile(tile, have = f, n, most);
        const float *factors = most > 1 ? tile : f;
        for (size_t at = 0, count; (count = qs_piece(j->ctx, at, k * n)); at += count)
            j->k->muladd(j->x + ox + at, factors + at, c ? c + at : NULL, j->p->lo, j->p->hi,
                         j->y + r * n + at, count);
    }
}

static void muladd_span(const void *arg, size_t begin, size_t end) {
    const muladd_job *j = arg;
    j->k->muladd(j->x + begin, j->f + begin, j->c ? j->c + begin : NULL, j->p->lo, j->p->hi,
                 j->y + begin, end - begin);
}

static void run_muladd(const qs_step *s, const qs_frame *f) {
    const muladd_params *p = s->params;
    const muladd_job job = {.ctx = f->ctx,
                            .p = p,
                            .k = f->ctx->kernels->ew,
                            .x = qs_step_in(s, f, p->x),
                            .f = qs_step_in(s, f, p->f),
                            .c = p->c ? qs_step_in(s, f, p->c) : NULL,
                            .y = qs_step_out(s, f, 0)};
    if (p->loops.rows == 1)
        qs_ranges(f->ctx, p->loops.inner, QS_GRAIN, muladd_span, &job);
    else if (p->loops.inner > 0)
        qs_ranges(f->ctx, p->loops.rows, QS_GRAIN / p->loops.inner + 1, muladd_rows, &job);
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
    p->loops = loops;
    p->x = x;
    p->f = f;
    p->c = c;
    p->lo = qs_node_float(l->node, "lo", -INFINITY);
    p->hi = qs_node_float(l->node, "hi", INFINITY);
    l->step->run = run_muladd;
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

static const qs_attr_rule muladd_attrs[] = {{"lo", QS_ATTR_FLOAT, 0, 0},
                                            {"hi", QS_ATTR_FLOAT, 0, 0}};

QS_OP(muladd, .domain = QS_DOMAIN_QSIM, .name = "MulAdd", .min_in = 3, QS_ATTRS(muladd_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_MUL_ADD, .infer = infer_muladd,
      .lower = lower_muladd);
