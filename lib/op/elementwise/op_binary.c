/* SPDX-License-Identifier: MIT */
/* Add, Sub, Mul, Div with broadcasting. Integers wrap; an integer divided by zero gives zero. */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/elementwise/muladd.h"

#include <math.h>

/* y[i] = a[i * sa] op b[i * sb], strides 0 or 1, clamped to [limit[0], limit[1]] (f32 only). */
typedef void (*binary_fn)(const void *a, size_t sa, const void *b, size_t sb, void *y, size_t n,
                          const float *limit);

#define ADD(T, U, a, b)   (T)((U)(a) + (U)(b))
#define SUB(T, U, a, b)   (T)((U)(a) - (U)(b))
#define MUL(T, U, a, b)   (T)((U)(a) * (U)(b))
#define DIV_U(T, U, a, b) (T)((b) == 0 ? 0 : (a) / ((b) == 0 ? 1 : (b)))
#define DIV_S(T, U, a, b)                                                                          \
    (T)((b) == -1 ? (T)((U)0 - (U)(a)) : (T)((b) == 0 ? 0 : (a) / ((b) == 0 ? 1 : (b))))
#define DIV_F(T, U, a, b) ((a) / (b))

#define LOOPS(T, U, OP)                                                                            \
    if (sa && sb) {                                                                                \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = OP(T, U, a[i], b[i]);                                                           \
    } else if (sa) {                                                                               \
        const T c = b[0];                                                                          \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = OP(T, U, a[i], c);                                                              \
    } else {                                                                                       \
        const T c = a[0];                                                                          \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = OP(T, U, c, b[i * sb]);                                                         \
    }

#define BINARY(RARE, name, suffix, T, U, OP)                                                       \
    RARE static void name##_##suffix(const void *va, size_t sa, const void *vb, size_t sb,         \
                                     void *vy, size_t n, const float *limit) {                     \
        const T *a = va, *b = vb;                                                                  \
        T *y = vy;                                                                                 \
        (void)limit;                                                                               \
        LOOPS(T, U, OP)                                                                            \
    }

#define SIGNED(name, OP)                                                                           \
    BINARY(QS_COLD, name, s8, int8_t, uint32_t, OP)                                                \
    BINARY(QS_COLD, name, s16, int16_t, uint32_t, OP)                                              \
    BINARY(QS_COLD, name, s32, int32_t, uint32_t, OP)                                              \
    BINARY(QS_COLD, name, s64, int64_t, uint64_t, OP)
#define UNSIGNED(name, OP)                                                                         \
    BINARY(QS_COLD, name, u8, uint8_t, uint32_t, OP)                                               \
    BINARY(QS_COLD, name, u16, uint16_t, uint32_t, OP)                                             \
    BINARY(QS_COLD, name, u32, uint32_t, uint32_t, OP)                                             \
    BINARY(QS_COLD, name, u64, uint64_t, uint64_t, OP)
#define FLOATS(name, OP)                                                                           \
    BINARY(, name, f32, float, float, OP)                                                          \
    BINARY(QS_COLD, name, f64, double, double, OP)

/* But for a quotient the bits are the same, signed or not. */
FLOATS(add, ADD)
UNSIGNED(add, ADD)
FLOATS(sub, SUB)
UNSIGNED(sub, SUB)
FLOATS(mul, MUL)
UNSIGNED(mul, MUL)
FLOATS(div, DIV_F)
SIGNED(div, DIV_S)
UNSIGNED(div, DIV_U)

#define FUNCTIONS(name, s)                                                                         \
    {                                                                                              \
        [QSIM_FLOAT] = name##_f32, [QSIM_DOUBLE] = name##_f64, [QSIM_INT8] = name##_##s##8,        \
        [QSIM_INT16] = name##_##s##16, [QSIM_INT32] = name##_##s##32,                              \
        [QSIM_INT64] = name##_##s##64, [QSIM_UINT8] = name##_u8, [QSIM_UINT16] = name##_u16,       \
        [QSIM_UINT32] = name##_u32, [QSIM_UINT64] = name##_u64,                                    \
    }

static const binary_fn functions[4][QS_TYPES] = {FUNCTIONS(add, u), FUNCTIONS(sub, u),
                                                 FUNCTIONS(mul, u), FUNCTIONS(div, s)};

/*
 * Before version 7: with `broadcast`, b lies over axes [axis, axis + its rank) of a, the last ones
 * by default. `wide` becomes b with as many axes of size 1 after it as that takes.
 */
static bool legacy_operand(const qs_node *n, const qs_value *a, const qs_value *b, qs_value *wide,
                           qs_dim dims[QSIM_MAX_RANK]) {
    *wide = *b;
    if (!qs_node_int(n, "broadcast", 0) || a->rank < 0 || b->rank < 0)
        return true;
    int64_t axis = qs_node_int(n, "axis", (int64_t)a->rank - b->rank);
    axis = axis < 0 ? axis + a->rank : axis;
    if (axis < 0 || axis > a->rank - b->rank)
        return false;
    wide->rank = a->rank - (int32_t)axis;
    wide->dims = dims;
    for (int32_t i = 0; i < wide->rank; i++)
        dims[i] = i < b->rank ? b->dims[i] : (qs_dim){1, NULL};
    return true;
}

QS_COLD static int infer_binary(qs_infer *x) {
    qs_value wide;
    qs_dim wide_dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_ARITH);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_ARITH);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    if (code)
        return code;
    int32_t rank;
    qs_dim dims[QSIM_MAX_RANK];
    if (!legacy_operand(x->node, x->in[0], x->in[1], &wide, wide_dims))
        return qs_infer_fail(x, QSIM_E_SHAPE, "rank %d does not lie within rank %d at this axis",
                             (int)x->in[1]->rank, (int)x->in[0]->rank);
    code = qs_infer_broadcast(x, x->in[0], &wide, &rank, dims);
    if (code)
        return code;
    int32_t dtype = x->in[0]->dtype ? x->in[0]->dtype : x->in[1]->dtype;
    return qs_infer_out(x, 0, dtype, rank, dims);
}

typedef struct binary_params {
    binary_fn fn;
    qs_loops loops;
    size_t element;
    float limit[2];
    bool clamped, plain_sum; /* plain_sum: of floats */
    const qk_ew *kernels;
} binary_params;

typedef struct binary_job {
    const binary_params *p;
    const char *a, *b;
    char *y;
} binary_job;

/* n elements of a row, and the clamp after them. */
static void binary_run(const binary_job *job, const void *a, const void *b, void *y, size_t n) {
    const binary_params *p = job->p;
    if (p->plain_sum && p->loops.inner_a && p->loops.inner_b) {
        p->kernels->bound(a, b, p->limit[0], p->limit[1], y, n);
        return;
    }
    p->fn(a, p->loops.inner_a, b, p->loops.inner_b, y, n, p->limit);
    if (p->clamped)
        p->kernels->bound(y, NULL, p->limit[0], p->limit[1], y, n);
}

/* Rows [begin, end) of the outer loops. */
static void binary_rows(const void *arg, size_t begin, size_t end) {
    const binary_job *job = arg;
    const binary_params *p = job->p;
    const qs_loops *l = &p->loops;
    for (size_t r = begin; r < end; r++) {
        size_t oa, ob;
        qs_loops_offsets(l, r, &oa, &ob);
        char *y = job->y + r * l->inner * p->element;
        binary_run(job, job->a + oa * p->element, job->b + ob * p->element, y, l->inner);
    }
}

/* Elements [begin, end) of the only row. */
static void binary_span(const void *arg, size_t begin, size_t end) {
    const binary_job *job = arg;
    const binary_params *p = job->p;
    size_t e = p->element;
    char *y = job->y + begin * e;
    binary_run(job, job->a + begin * p->loops.inner_a * e, job->b + begin * p->loops.inner_b * e, y,
               end - begin);
}

static void run_binary(const qs_step *s, const qs_frame *f) {
    const binary_params *p = s->params;
    binary_job job = {p, qs_step_in(s, f, 0), qs_step_in(s, f, 1), qs_step_out(s, f, 0)};
    if (p->loops.rows == 1)
        qs_ranges(f->ctx, p->loops.inner, QS_GRAIN, binary_span, &job);
    else
        qs_ranges(f->ctx, p->loops.rows, QS_GRAIN / (p->loops.inner + 1) + 1, binary_rows, &job);
}

QS_COLD static int lower_binary(qs_lower *l, int32_t which) {
    const qs_value *a = qs_lower_in(l, 0), *b = qs_lower_in(l, 1), *y = qs_lower_out(l, 0);
    qs_value wide;
    qs_dim dims[QSIM_MAX_RANK];
    binary_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->fn = functions[which][y->dtype];
    p->plain_sum = p->fn == add_f32;
    p->kernels = l->ctx->kernels->ew;
    p->element = qs_dtype_bytes(y->dtype);
    p->limit[0] = qs_node_float(l->node, "lo", -INFINITY);
    p->limit[1] = qs_node_float(l->node, "hi", INFINITY);
    p->clamped = qs_node_attr(l->node, "lo") || qs_node_attr(l->node, "hi");
    (void)legacy_operand(l->node, a, b, &wide, dims);
    qs_loops_make(&p->loops, a, &wide, y);
    l->step->run = run_binary;
    l->step->kernel = "binary";
    return QSIM_OK;
}

QS_COLD static int lower_add(qs_lower *l) {
    return lower_binary(l, 0);
}
QS_COLD static int lower_sub(qs_lower *l) {
    return lower_binary(l, 1);
}
QS_COLD static int lower_mul(qs_lower *l) {
    bool done = qs_node_int(l->node, "broadcast", 0) || qs_node_attr(l->node, "lo");
    int code = QSIM_OK;
    for (int32_t x = 0; x < 2 && !done && !code; x++)
        code = qs_muladd_lower(l, x, 1 - x, 0, &done);
    return code || l->step->run ? code : lower_binary(l, 2);
}
QS_COLD static int lower_div(qs_lower *l) {
    return lower_binary(l, 3);
}

/* To version 7: the axes of size 1 after b become an Unsqueeze. */
QS_COLD static int upgrade_binary(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    qs_node *n = &g->nodes[node];
    qs_value wide;
    qs_dim dims[QSIM_MAX_RANK];
    int64_t axes[QSIM_MAX_RANK], count;
    if (n->version >= 7 || to < 7)
        return QSIM_OK;
    const qs_value *b = &g->values[n->inputs[1]];
    int32_t rank = b->rank;
    bool fits = legacy_operand(n, &g->values[n->inputs[0]], b, &wide, dims);
    if (!fits || (qs_node_attr(n, "axis") && rank < 0))
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "the axis of a broadcast of unknown rank cannot be upgraded (node '%s', %s)",
                       n->name, n->op_type);
    qs_node_drop_attr(g, node, "broadcast");
    qs_node_drop_attr(g, node, "axis");
    if (wide.rank == rank)
        return QSIM_OK;
    count = wide.rank - rank;
    for (int64_t i = 0; i < count; i++)
        axes[i] = rank + i;
    const char *name = to < 13 ? NULL : qs_graph_fresh_name(g, "axes");
    qs_id list = name ? qs_graph_add_const(g, name, QSIM_INT64, 1, &count, axes, true) : QS_NONE;
    qs_id out = qs_upgrade_add(g, "Unsqueeze", "unsqueezed", g->nodes[node].inputs[1], list);
    if (out < 0 || (to < 13 && qs_node_set_ints(g, g->values[out].producer, "axes", axes,
                                                (int32_t)count) != QSIM_OK))
        return qs_fail(error, QSIM_E_NOMEM, "out of memory");
    qs_node_set_input(g, node, 1, out);
    return QSIM_OK;
}

static const qs_attr_rule legacy_attrs[] = {{"axis", QS_ATTR_INT, 1, 6},
                                            {"broadcast", QS_ATTR_INT, 1, 6},
                                            {"consumed_inputs", QS_ATTR_INTS, 1, 5}};

/* Fused clamp of the internal forms. */
static const qs_attr_rule clamp_attrs[] = {{"lo", QS_ATTR_FLOAT, 0, 0},
                                           {"hi", QS_ATTR_FLOAT, 0, 0},
                                           {"axis", QS_ATTR_INT, 0, 0},
                                           {"broadcast", QS_ATTR_INT, 0, 0}};

QS_OP(add, .name = "Add", .min_in = 2, QS_ATTRS(legacy_attrs),
      .traits = QS_ELEMENTWISE | QS_TAKES_BOUNDS, .kind = QS_KIND_ARITHMETIC, .kind_inputs = 2,
      .infer = infer_binary, .upgrade = upgrade_binary, .lower = lower_add);
QS_OP(sub, .name = "Sub", .min_in = 2, QS_ATTRS(legacy_attrs), .traits = QS_ELEMENTWISE,
      .infer = infer_binary, .upgrade = upgrade_binary, .lower = lower_sub);
QS_OP(mul, .name = "Mul", .min_in = 2, QS_ATTRS(legacy_attrs), .traits = QS_ELEMENTWISE,
      .kind = QS_KIND_ARITHMETIC, .kind_inputs = 2, .infer = infer_binary,
      .upgrade = upgrade_binary, .lower = lower_mul);
QS_OP(div, .name = "Div", .min_in = 2, QS_ATTRS(legacy_attrs), .traits = QS_ELEMENTWISE,
      .kind = QS_KIND_ARITHMETIC, .infer = infer_binary, .upgrade = upgrade_binary,
      .lower = lower_div);
QS_OP(qsim_add, .domain = "qsim", .name = "Add", .min_in = 2, QS_ATTRS(clamp_attrs),
      .traits = QS_ELEMENTWISE, .infer = infer_binary, .lower = lower_add);
QS_OP(qsim_sub, .domain = "qsim", .name = "Sub", .min_in = 2, QS_ATTRS(clamp_attrs),
      .traits = QS_ELEMENTWISE, .infer = infer_binary, .lower = lower_sub);
QS_OP(qsim_mul, .domain = "qsim", .name = "Mul", .min_in = 2, QS_ATTRS(clamp_attrs),
      .traits = QS_ELEMENTWISE, .infer = infer_binary, .lower = lower_mul);
QS_OP(qsim_div, .domain = "qsim", .name = "Div", .min_in = 2, QS_ATTRS(clamp_attrs),
      .traits = QS_ELEMENTWISE, .infer = infer_binary, .lower = lower_div);
