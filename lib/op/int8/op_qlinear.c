/* SPDX-License-Identifier: MIT */
/*
 * QLinearAdd and QLinearMul on 8 bits, with broadcasting. docs/QUANTIZATION.md, section 9:
 *
 *   Add   v = (a_scale / c_scale) (a - a_zp) + (b_scale / c_scale) (b - b_zp)
 *   Mul   v = ((a_scale * b_scale) / c_scale) * ((a - a_zp) (b - b_zp))
 *   c = round_half_even(clamp(v, lo - c_zp, hi - c_zp)) + c_zp
 *
 * all in float. The internal forms have the attributes lo and hi, a fused activation.
 */
#include "op/broadcast.h"
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/u8.h"
#include "kernel/table.h"
#include "op/int8/qvalue.h"

QS_COLD static int infer_qlinear(qs_infer *x) {
    static const int32_t parameters[3][2] = {{1, 2}, {4, 5}, {6, 7}};
    int32_t rank;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_8BIT);
    if (!code)
        code = qs_infer_type(x, 3, QS_T_8BIT);
    for (size_t i = 0; i < 3 && !code; i++)
        code = qs_infer_q8(x, parameters[i][0], parameters[i][1]);
    if (!code)
        code = qs_infer_same_type(x, 0, 2);
    if (!code)
        code = qs_infer_same_type(x, 3, 5);
    if (!code)
        code = qs_infer_broadcast(x, x->in[0], x->in[3], &rank, dims);
    if (code)
        return code;
    const qs_value *zp = qs_infer_in(x, 7);
    return qs_infer_out(x, 0, zp ? zp->dtype : x->in[0]->dtype, rank, dims);
}

typedef struct qlinear_params {
    qk_u8_fn fn;
    qk_scale_fn scale;
    size_t period; /* bytes of the tile that `scale` takes; 0: `fn` is used */
    qs_broadcast broadcast;
    int32_t lo, hi; /* of the output's own type */
    int32_t ta, tb, tc;
    bool mul;
    int32_t inputs;
} qlinear_params;

typedef struct qlinear_job {
    const qlinear_params *p;
    const uint8_t *a, *b;
    uint8_t *c;
    qk_u8_pair w;
} qlinear_job;

static void qlinear_row(const void *arg, const void *a, const void *b, void *c, size_t n) {
    const qlinear_job *j = arg;
    const qs_loops *l = &j->p->broadcast.loops;
    j->p->fn(a, l->inner_a, b, l->inner_b, c, n, &j->w);
}

/* Rows [begin, end); of the operand that is the same for many of them, a tile holds a period. */
static void qlinear_scale(const void *arg, size_t begin, size_t end) {
    const qlinear_job *j = arg;
    const qs_loops *l = &j->p->broadcast.loops;
    const size_t n = l->inner, same = l->dims[l->rank - 1], period = j->p->period;
    const bool second = l->b[l->rank - 1] == 0;
    uint8_t tile[QK_SCALE_MOST];
    for (size_t r = begin, k; r < end; r += k) {
        size_t oa, ob;
        qs_loops_offsets(l, r, &oa, &ob);
        k = end - r < same - r % same ? end - r : same - r % same;
        const uint8_t *a = j->a + oa, *b = j->b + ob;
        qs_copy_rows(second ? b : a, 0, tile, (ptrdiff_t)n, n, period / n);
        j->p->scale(second ? a : b, tile, period, j->c + r * n, k * n, &j->w);
    }
}

static void prepare(const qs_step *s, const qs_frame *f, qk_u8_pair *w) {
    const qlinear_params *p = s->params;
    qs_q8 a = qs_q8_read(s, f, 1, 2, p->inputs, p->ta);
    qs_q8 b = qs_q8_read(s, f, 4, 5, p->inputs, p->tb);
    qs_q8 c = qs_q8_read(s, f, 6, 7, p->inputs, p->tc);
    int32_t up = c.flip ? 128 : 0;
    w->ma = p->mul ? (a.scale * b.scale) / c.scale : a.scale / c.scale;
    w->mb = b.scale / c.scale;
    w->za = a.zero_point;
    w->zb = b.zero_point;
    w->zc = c.zero_point;
    w->lo = (float)(p->lo + up - c.zero_point);
    w->hi = (float)(p->hi + up - c.zero_point);
    w->flip_a = a.flip;
    w->flip_b = b.flip;
    w->flip_c = c.flip;
}

static void swap_operands(qk_u8_pair *w) {
    const qk_u8_pair old = *w;
    w->za = old.zb;
    w->zb = old.za;
    w->flip_a = old.flip_b;
    w->flip_b = old.flip_a;
}

static void run_qlinear(const qs_step *s, const qs_frame *f) {
    const qlinear_params *p = s->params;
    qlinear_job job;
    job.p = p;
    job.a = qs_step_in(s, f, 0);
    job.b = qs_step_in(s, f, 3);
    job.c = qs_step_out(s, f, 0);
    prepare(s, f, &job.w);
    const qs_loops *l = &p->broadcast.loops;
    if (p->period && l->a[l->rank - 1] == 0)
        swap_operands(&job.w);
    if (p->period)
        qs_ranges(f->ctx, l->rows, QS_GRAIN / l->inner + 1, qlinear_scale, &job);
    else
        qs_broadcast_run(&p->broadcast, f->ctx, job.a, job.b, job.c, &job);
}

/* The fewest bytes of whole rows that fill vectors of 64 bytes; 0: too many for a tile. */
static size_t find_period(const qs_loops *l) {
    size_t period = l->inner;
    while (period % 64 && period <= QK_SCALE_MOST)
        period *= 2;
    const bool fits = period <= QK_SCALE_MOST && l->dims[l->rank - 1] / 4 >= period / l->inner;
    return fits ? period : 0;
}

QS_COLD static int lower_qlinear(qs_lower *l, bool mul) {
    const qs_value *a = qs_lower_in(l, 0), *b = qs_lower_in(l, 3), *c = qs_lower_out(l, 0);
    qlinear_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    const qk_u8 *kernels = l->ctx->kernels->u8;
    p->fn = mul ? kernels->mul : kernels->add;
    p->mul = mul;
    p->ta = a->dtype;
    p->tb = b->dtype;
    p->tc = c->dtype;
    p->inputs = l->node->input_count;
    qs_q8_limits(l->node, c->dtype, &p->lo, &p->hi);
    p->broadcast = (qs_broadcast){{0}, qlinear_row, 1, 1, 1, QS_GRAIN, NULL};
    qs_loops_make(&p->broadcast.loops, a, b, c);
    p->scale = kernels->scale;
    if (mul && p->scale && qs_loops_repeat(&p->broadcast.loops, 1, 1))
        p->period = find_period(&p->broadcast.loops);
    l->step->run = run_qlinear;
    return QSIM_OK;
}

QS_COLD static int lower_qadd(qs_lower *l) {
    return lower_qlinear(l, false);
}
QS_COLD static int lower_qmul(qs_lower *l) {
    return lower_qlinear(l, true);
}

static const qs_attr_rule lo_hi[] = {{"lo", QSIM_ATTR_INT, 0, 0}, {"hi", QSIM_ATTR_INT, 0, 0}};

QS_OP(qlinear_add, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearAdd", .until = 1, .min_in = 7,
      .max_in = 8, .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}, {3, 4, 5}}, .y = {0, 6, 7}, .prefix = 7)),
      .kernel = QS_KERNEL_QLINEAR_ADD, .infer = infer_qlinear, .lower = lower_qadd);
QS_OP(qsim_qlinear_add, .domain = QS_DOMAIN_QSIM, .name = "QLinearAdd", .min_in = 7, .max_in = 8,
      QS_ATTRS(lo_hi), .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}, {3, 4, 5}}, .y = {0, 6, 7})),
      .kernel = QS_KERNEL_QLINEAR_ADD, .infer = infer_qlinear, .lower = lower_qadd);
QS_OP(qlinear_mul, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearMul", .until = 1, .min_in = 7,
      .max_in = 8, .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}, {3, 4, 5}}, .y = {0, 6, 7}, .prefix = 7)),
      .kernel = QS_KERNEL_QLINEAR_MUL, .infer = infer_qlinear, .lower = lower_qmul);
QS_OP(qsim_qlinear_mul, .domain = QS_DOMAIN_QSIM, .name = "QLinearMul", .min_in = 7, .max_in = 8,
      QS_ATTRS(lo_hi), .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}, {3, 4, 5}}, .y = {0, 6, 7})),
      .kernel = QS_KERNEL_QLINEAR_MUL, .infer = infer_qlinear, .lower = lower_qmul);
