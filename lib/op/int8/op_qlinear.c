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
    qs_loops loops;
    int32_t lo, hi; /* of the output's own type */
    int32_t ta, tb, tc;
    bool mul, tiled;
    int32_t inputs;
} qlinear_params;

typedef struct qlinear_job {
    const qlinear_params *p;
    const uint8_t *a, *b;
    uint8_t *c;
    qk_u8_pair w;
} qlinear_job;

static void qlinear_rows(const void *arg, size_t begin, size_t end) {
    const qlinear_job *j = arg;
    const qs_loops *l = &j->p->loops;
    for (size_t r = begin; r < end; r++) {
        size_t oa, ob;
        qs_loops_offsets(l, r, &oa, &ob);
        j->p->fn(j->a + oa, l->inner_a, j->b + ob, l->inner_b, j->c + r * l->inner, l->inner,
                 &j->w);
    }
}

/*
 * One operand is the same for many short rows, like the factors of squeeze-and-excite: a tile of
 * its copies lets one kernel call process many rows.
 */
#define BLOCK 4096

static bool is_tiled(const qs_loops *l) {
    if (l->rank == 0 || l->inner_a != 1 || l->inner_b != 1 || l->inner > BLOCK / 2 || !l->inner)
        return false;
    const size_t a = l->a[l->rank - 1], b = l->b[l->rank - 1];
    return (a == l->inner && b == 0) || (a == 0 && b == l->inner);
}

static void fill_tile(uint8_t *tile, const uint8_t *row, size_t n, size_t rows) {
    for (size_t i = 0; i < rows; i++)
        memcpy(tile + i * n, row, n);
}

static void qlinear_tiles(const void *arg, size_t begin, size_t end) {
    const qlinear_job *j = arg;
    const qs_loops *l = &j->p->loops;
    const size_t n = l->inner, same = l->dims[l->rank - 1];
    const bool second = l->b[l->rank - 1] == 0;
    const uint8_t *have = NULL;
    uint8_t tile[BLOCK];
    const size_t rows = j->p->period ? j->p->period / n : BLOCK / n < same ? BLOCK / n : same;
    for (size_t r = begin, k; r < end; r += k) {
        size_t oa, ob;
        qs_loops_offsets(l, r, &oa, &ob);
        k = same - r % same < rows || j->p->period ? same - r % same : rows;
        k = end - r < k ? end - r : k;
        const uint8_t *a = j->a + oa, *b = j->b + ob, *row = second ? b : a;
        uint8_t *c = j->c + r * n;
        if (row != have)
            fill_tile(tile, row, n, rows);
        have = row;
        if (j->p->period)
            j->p->scale(second ? a : b, tile, j->p->period, c, k * n, &j->w);
        else
            j->p->fn(second ? a : tile, 1, second ? tile : b, 1, c, k * n, &j->w);
    }
}

static void qlinear_span(const void *arg, size_t begin, size_t end) {
    const qlinear_job *j = arg;
    const qs_loops *l = &j->p->loops;
    j->p->fn(j->a + begin * l->inner_a, l->inner_a, j->b + begin * l->inner_b, l->inner_b,
             j->c + begin, end - begin, &j->w);
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
    if (p->period && p->loops.a[p->loops.rank - 1] == 0)
        swap_operands(&job.w);
    if (p->loops.rows == 1)
        qs_ranges(f->ctx, p->loops.inner, QS_GRAIN, qlinear_span, &job);
    else
        qs_ranges(f->ctx, p->loops.rows, QS_GRAIN / (p->loops.inner + 1) + 1,
                  p->tiled ? qlinear_tiles : qlinear_rows, &job);
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
    qs_loops_make(&p->loops, a, b, c);
    p->tiled = is_tiled(&p->loops);
    p->scale = kernels->scale;
    p->period = mul && p->tiled && p->scale ? find_period(&p->loops) : 0;
    l->step->run = run_qlinear;
    return QSIM_OK;
}

QS_COLD static int lower_qadd(qs_lower *l) {
    return lower_qlinear(l, false);
}
QS_COLD static int lower_qmul(qs_lower *l) {
    return lower_qlinear(l, true);
}

static const qs_attr_rule lo_hi[] = {{"lo", QS_ATTR_INT, 0, 0}, {"hi", QS_ATTR_INT, 0, 0}};

QS_OP(qlinear_add, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearAdd", .until = 1, .min_in = 7,
      .max_in = 8, .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}, {3, 4, 5}}, .y = {0, 6, 7})),
      .kernel = QS_KERNEL_QLINEAR_ADD, .infer = infer_qlinear, .lower = lower_qadd);
QS_OP(qsim_qlinear_add, .domain = QS_DOMAIN_QSIM, .name = "QLinearAdd", .min_in = 7, .max_in = 8,
      QS_ATTRS(lo_hi), .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}, {3, 4, 5}}, .y = {0, 6, 7})),
      .kernel = QS_KERNEL_QLINEAR_ADD, .infer = infer_qlinear, .lower = lower_qadd);
QS_OP(qlinear_mul, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearMul", .until = 1, .min_in = 7,
      .max_in = 8, .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}, {3, 4, 5}}, .y = {0, 6, 7})),
      .kernel = QS_KERNEL_QLINEAR_MUL, .infer = infer_qlinear, .lower = lower_qmul);
QS_OP(qsim_qlinear_mul, .domain = QS_DOMAIN_QSIM, .name = "QLinearMul", .min_in = 7, .max_in = 8,
      QS_ATTRS(lo_hi), .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}, {3, 4, 5}}, .y = {0, 6, 7})),
      .kernel = QS_KERNEL_QLINEAR_MUL, .infer = infer_qlinear, .lower = lower_qmul);
