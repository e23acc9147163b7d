/* SPDX-License-Identifier: MIT */
/*
 * 8-bit operators of one operand as tables of 256 bytes: QTable, QLinearSigmoid, QLinearLeakyRelu;
 * QLinearConcat with a table for each input.
 */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/elementary.h"
#include "kernel/u8.h"
#include "kernel/table.h"
#include "op/int8/qvalue.h"
#include "op/nn/reduce.h"
#include "quant/requantize.h"

/* ---- operands ---- */

QS_COLD int qs_infer_q8(const qs_infer *x, int32_t scale, int32_t zero_point) {
    int code = qs_infer_scale(x, scale);
    if (!code)
        code = qs_infer_type(x, zero_point, QS_T_8BIT);
    code = code ? code : qs_infer_each(x, scale, 1);
    return code ? code : qs_infer_each(x, zero_point, 1);
}

static qs_q8 make_q8(const void *scale, const void *zero_point, int32_t dtype) {
    qs_q8 q = {1.0f, 0, 0};
    uint8_t byte = 0;
    memcpy(&q.scale, scale, sizeof(q.scale));
    if (zero_point)
        memcpy(&byte, zero_point, 1);
    q.flip = dtype == QSIM_INT8 ? 0x80 : 0;
    q.zero_point = byte ^ q.flip;
    return q;
}

qs_q8 qs_q8_read(const qs_step *s, const qs_frame *f, int32_t scale, int32_t zero_point,
                 int32_t inputs, int32_t dtype) {
    const void *zp = zero_point < inputs ? qs_step_in(s, f, zero_point) : NULL;
    return make_q8(qs_step_in(s, f, scale), zp, dtype);
}

/* Reads scale and zero point from constants while packing; false if one is not constant. */
QS_COLD static bool pack_q8(qs_pack *p, int32_t scale, int32_t zero_point, int32_t dtype,
                            qs_q8 *out) {
    const void *s = qs_pack_const(p, scale), *zp = qs_pack_const(p, zero_point);
    bool given = zero_point < p->node->input_count && p->node->inputs[zero_point] != QS_NONE;
    if (!s || (given && !zp))
        return false;
    *out = make_q8(s, zp, dtype);
    return true;
}

void qs_q8_limits(const qs_node *n, int32_t dtype, int32_t *lo, int32_t *hi) {
    int64_t low = dtype == QSIM_INT8 ? -128 : 0, high = low + 255;
    int64_t a = qs_node_int(n, "lo", low), b = qs_node_int(n, "hi", high);
    *lo = (int32_t)(a < low ? low : a > high ? high : a);
    *hi = (int32_t)(b < low ? low : b > high ? high : b);
}

uint8_t qs_q8_byte(qs_q8 q, float value) {
    float lo = (float)-q.zero_point, hi = (float)(255 - q.zero_point);
    float v = qs_minf(qs_maxf(value / q.scale, lo), hi);
    return (uint8_t)((qs_round_even(v) + q.zero_point) ^ q.flip);
}

qs_q8 qs_q8_dynamic(float low, float high) {
    const float range = (high - low) / 255.0f, scale = range == 0.0f ? 1.0f : range;
    const float zero = qs_minf(qs_maxf(0.0f - low / scale, 0.0f), 255.0f);
    return (qs_q8){.scale = scale, .zero_point = qs_round_even(zero)};
}

/* ---- tables ---- */

typedef float (*table_fn)(float x, float alpha);

static float sigmoid(float x, float alpha) {
    (void)alpha;
    return qk_sigmoid(x);
}

static float leaky(float x, float alpha) {
    return x < 0.0f ? x * alpha : x;
}

static float same(float x, float alpha) {
    (void)alpha;
    return x;
}

static void make_table(qs_q8 from, qs_q8 to, table_fn fn, float alpha, uint8_t *table) {
    for (int32_t i = 0; i < 256; i++)
        table[i] = qs_q8_byte(to, fn(qs_q8_value(from, (uint8_t)i), alpha));
}

typedef struct table_params {
    const uint8_t *table; /* NULL: made during execution */
    table_fn fn;
    float alpha;
    int32_t inputs, from, to; /* from, to: types */
    size_t elements;
} table_params;

typedef struct table_job {
    const qk_u8 *k;
    const uint8_t *table, *x;
    uint8_t *y;
} table_job;

static void table_range(const void *arg, size_t begin, size_t end) {
    const table_job *j = arg;
    j->k->table(j->table, j->x + begin, 0, j->y + begin, 0, end - begin, 1);
}

static void run_table(const qs_step *s, const qs_frame *f) {
    const table_params *p = s->params;
    table_job job = {f->ctx->kernels->u8, p->table, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    if (!job.table && p->fn) {
        make_table(qs_q8_read(s, f, 1, 2, p->inputs, p->from),
                   qs_q8_read(s, f, 3, 4, p->inputs, p->to), p->fn, p->alpha, f->scratch);
        job.table = f->scratch;
    } else if (!job.table) {
        job.table = qs_step_in(s, f, 1);
    }
    qs_ranges(f->ctx, p->elements, QS_GRAIN, table_range, &job);
}

QS_COLD static int lower_table_of(qs_lower *l, table_fn fn, float alpha) {
    const qs_value *x = qs_lower_in(l, 0);
    table_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->table = l->packed;
    p->fn = fn;
    p->alpha = alpha;
    p->inputs = l->node->input_count;
    p->from = x->dtype;
    p->to = qs_lower_out(l, 0)->dtype;
    p->elements = qs_value_elements(x);
    l->step->run = run_table;
    l->step->scratch = fn && !p->table ? 256 : 0;
    return QSIM_OK;
}

/* ---- QTable: x, 256 bytes ---- */

QS_COLD static int infer_qtable(qs_infer *x) {
    const qs_value *table = x->in[1];
    int code = qs_infer_type(x, 0, QS_T_8BIT);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_8BIT);
    if (!code && (table->rank != 1 || table->dims[0].size != 256))
        code = qs_infer_fail(x, QSIM_E_SHAPE, "the table does not have 256 elements");
    return code ? code : qs_infer_out(x, 0, table->dtype, x->in[0]->rank, x->in[0]->dims);
}

QS_COLD static int lower_qtable(qs_lower *l) {
    return lower_table_of(l, NULL, 0);
}

QS_OP(qsim_table, .domain = QS_DOMAIN_QSIM, .name = "QTable", .min_in = 2, .traits = QS_ELEMENTWISE,
      .setting_inputs = 1 << 1, .kernel = QS_KERNEL_TABLE, .infer = infer_qtable,
      .lower = lower_qtable);

/* ---- QLinearSigmoid, QLinearLeakyRelu: x, x_scale, x_zp, y_scale, y_zp ---- */

QS_COLD int qs_infer_qunary(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_8BIT);
    if (!code)
        code = qs_infer_q8(x, 1, 2);
    if (!code)
        code = qs_infer_q8(x, 3, 4);
    if (!code)
        code = qs_infer_same_type(x, 0, 2);
    const qs_value *zp = qs_infer_in(x, 4);
    return code ? code
                : qs_infer_out(x, 0, zp ? zp->dtype : x->in[0]->dtype, x->in[0]->rank,
                               x->in[0]->dims);
}

QS_COLD static int pack_unary(qs_pack *p, table_fn fn, float alpha) {
    qs_q8 from, to;
    const qs_node *n = p->node;
    if (!pack_q8(p, 1, 2, p->graph->values[n->inputs[0]].dtype, &from) ||
        !pack_q8(p, 3, 4, p->graph->values[n->outputs[0]].dtype, &to))
        return QSIM_OK;
    uint8_t *table = qs_arena_alloc64(p->arena, 256);
    if (!table)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    make_table(from, to, fn, alpha, table);
    p->result = table;
    return QSIM_OK;
}

QS_COLD static int pack_sigmoid(qs_pack *p) {
    return pack_unary(p, sigmoid, 0);
}
QS_COLD static int pack_leaky(qs_pack *p) {
    return pack_unary(p, leaky, qs_node_float(p->node, "alpha", 0.01f));
}
QS_COLD static int lower_qsigmoid(qs_lower *l) {
    return lower_table_of(l, sigmoid, 0);
}
QS_COLD static int lower_qleaky(qs_lower *l) {
    return lower_table_of(l, leaky, qs_node_float(l->node, "alpha", 0.01f));
}

static const qs_attr_rule alpha_attr[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0}};

QS_OP(qlinear_sigmoid, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearSigmoid", .until = 1,
      .min_in = 4, .max_in = 5, .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4}, .prefix = 7), .pack = pack_sigmoid),
      .kernel = QS_KERNEL_TABLE, .infer = qs_infer_qunary, .lower = lower_qsigmoid);

QS_OP(qlinear_leakyrelu, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearLeakyRelu", .until = 1,
      .min_in = 4, .max_in = 5, QS_ATTRS(alpha_attr), .traits = QS_ELEMENTWISE | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4}, .prefix = 7), .pack = pack_leaky),
      .kernel = QS_KERNEL_TABLE, .infer = qs_infer_qunary, .lower = lower_qleaky);

/* ---- QLinearConcat: y_scale, y_zp, (x, x_scale, x_zp)… ---- */

QS_COLD static int concat_inputs(const qs_infer *x, int32_t *rank) {
    int32_t count = x->node->input_count;
    *rank = -2;
    if (count % 3 != 2)
        return qs_infer_fail(x, QSIM_E_GRAPH, "%d inputs, expected 2 and then threes", (int)count);
    for (int32_t i = 2; i < count; i += 3) {
        const qs_value *v = qs_infer_in(x, i);
        if (!v || !qs_infer_in(x, i + 1))
            return qs_infer_fail(x, QSIM_E_GRAPH, "input %d or its scale is left out", (int)i);
        int code = qs_infer_type(x, i, QS_T_8BIT);
        if (!code)
            code = qs_infer_q8(x, i + 1, i + 2);
        if (!code)
            code = qs_infer_same_type(x, i, i + 2);
        if (!code && *rank >= 0)
            code = qs_infer_rank(x, i, *rank);
        if (code)
            return code;
        *rank = v->rank < 0 || *rank == -1 ? -1 : v->rank;
    }
    return QSIM_OK;
}

QS_COLD static int infer_qconcat(qs_infer *x) {
    int32_t rank, axis = 0;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_q8(x, 0, 1);
    if (!code)
        code = concat_inputs(x, &rank);
    if (!code && !qs_node_attr(x->node, "axis"))
        code = qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' is missing", "axis");
    if (code || rank < 0)
        return code ? code : qs_infer_unknown(x, x->in[1]->dtype);
    code = qs_infer_axis(x, qs_node_int(x->node, "axis", 0), rank, &axis);
    if (code)
        return code;
    qs_value_dims(x->in[2], dims);
    for (int32_t i = 5; i < x->node->input_count && !code; i += 3)
        code = qs_infer_join(x, i, axis, rank, dims);
    return code ? code : qs_infer_out(x, 0, x->in[1]->dtype, rank, dims);
}

typedef struct concat_part {
    size_t bytes; /* of one outer index */
    int32_t dtype;
} concat_part;

typedef struct qconcat_params {
    const uint8_t *tables; /* NULL: made during execution */
    size_t outer, total;
    int32_t count, inputs, to;
    concat_part parts[];
} qconcat_params;

typedef struct qconcat_job {
    const qconcat_params *p;
    const qs_step *step;
    const qs_frame *frame;
    const uint8_t *tables;
} qconcat_job;

/* Copies outer indices [begin, end) of all inputs. */
static void qconcat_range(const void *arg, size_t begin, size_t end) {
    const qconcat_job *j = arg;
    const qconcat_params *p = j->p;
    uint8_t *y = (uint8_t *)qs_step_out(j->step, j->frame, 0) + begin * p->total;
    for (int32_t i = 0; i < p->count; i++) {
        const size_t n = p->parts[i].bytes;
        const uint8_t *x = (const uint8_t *)qs_step_in(j->step, j->frame, 2 + 3 * i) + begin * n;
        j->frame->ctx->kernels->u8->table(j->tables + 256 * (size_t)i, x, n, y, p->total, n,
                                          end - begin);
        y += n;
    }
}

static void run_qconcat(const qs_step *s, const qs_frame *f) {
    const qconcat_params *p = s->params;
    uint8_t *made = f->scratch;
    for (int32_t i = 0; i < p->count && !p->tables; i++)
        make_table(qs_q8_read(s, f, 3 + 3 * i, 4 + 3 * i, p->inputs, p->parts[i].dtype),
                   qs_q8_read(s, f, 0, 1, p->inputs, p->to), same, 0, made + 256 * (size_t)i);
    const qconcat_job job = {p, s, f, p->tables ? p->tables : made};
    qs_ranges(f->ctx, p->outer, QS_GRAIN / (p->total + 1) + 1, qconcat_range, &job);
}

QS_COLD static int pack_qconcat(qs_pack *p) {
    const qs_node *n = p->node;
    size_t count = (size_t)n->input_count / 3;
    qs_q8 from, to;
    if (!pack_q8(p, 0, 1, p->graph->values[n->outputs[0]].dtype, &to))
        return QSIM_OK;
    uint8_t *tables = qs_arena_alloc64(p->arena, count * 256);
    if (!tables)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        int32_t at = 2 + 3 * (int32_t)i;
        if (!pack_q8(p, at + 1, at + 2, p->graph->values[n->inputs[at]].dtype, &from))
            return QSIM_OK;
        make_table(from, to, same, 0, tables + i * 256);
    }
    p->result = tables;
    return QSIM_OK;
}

QS_COLD static int lower_qconcat(qs_lower *l) {
    const qs_value *y = qs_lower_out(l, 0);
    int32_t count = l->node->input_count / 3;
    int64_t axis = qs_node_int(l->node, "axis", 0);
    axis = axis < 0 ? axis + y->rank : axis;
    qconcat_params *p = qs_lower_params(l, sizeof(*p) + (size_t)count * sizeof(p->parts[0]));
    if (!p)
        return QSIM_E_NOMEM;
    size_t inner = (size_t)qs_dims_product(y->dims, (int32_t)axis + 1, y->rank);
    p->tables = l->packed;
    p->count = count;
    p->inputs = l->node->input_count;
    p->to = y->dtype;
    p->outer = (size_t)qs_dims_product(y->dims, 0, (int32_t)axis);
    p->total = inner * (size_t)y->dims[axis].size;
    for (int32_t i = 0; i < count; i++) {
        const qs_value *x = qs_lower_in(l, 2 + 3 * i);
        p->parts[i] = (concat_part){inner * (size_t)x->dims[axis].size, x->dtype};
    }
    l->step->run = run_qconcat;
    l->step->scratch = p->tables ? 0 : 256 * (size_t)count;
    return QSIM_OK;
}

static const qs_attr_rule axis_attr[] = {{"axis", QSIM_ATTR_INT, 0, 0}};

QS_OP(qlinear_concat, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearConcat", .until = 1,
      .min_in = 5, .max_in = -1, QS_ATTRS(axis_attr), .traits = QS_ALONG_AXIS | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{2, 3, 4}}, .y = {0, 0, 1}, .step = 3, .prefix = 7),
              .pack = pack_qconcat),
      .kernel = QS_KERNEL_QLINEAR_CONCAT, .infer = infer_qconcat, .lower = lower_qconcat);
QS_OP(qsim_qlinear_concat, .domain = QS_DOMAIN_QSIM, .name = "QLinearConcat", .min_in = 5,
      .max_in = -1, QS_ATTRS(axis_attr), .traits = QS_ALONG_AXIS | QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{2, 3, 4}}, .y = {0, 0, 1}, .step = 3), .pack = pack_qconcat),
      .kernel = QS_KERNEL_QLINEAR_CONCAT, .infer = infer_qconcat, .lower = lower_qconcat);
