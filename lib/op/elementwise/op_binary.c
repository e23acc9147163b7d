/* SPDX-License-Identifier: MIT */
/* Add, Sub, Mul, Div with broadcasting. Integers wrap; an integer divided by zero gives zero. */
#include "op/elementwise/pairs.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/elementwise/muladd.h"
#include "op/broadcast.h"

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

/* For rare types: one loop for all strides. */
#define LOOP(T, U, OP)                                                                             \
    for (size_t i = 0; i < n; i++)                                                                 \
        y[i] = OP(T, U, a[i * sa], b[i * sb]);

#define BINARY(RARE, name, suffix, T, U, OP, LOOPS)                                                \
    RARE static void name##_##suffix(const void *va, size_t sa, const void *vb, size_t sb,         \
                                     void *vy, size_t n, const float *limit) {                     \
        const T *a = va, *b = vb;                                                                  \
        T *y = vy;                                                                                 \
        (void)limit;                                                                               \
        LOOPS(T, U, OP)                                                                            \
    }

#define SIGNED(name, OP)                                                                           \
    BINARY(QS_COLD, name, s8, int8_t, uint32_t, OP, LOOP)                                          \
    BINARY(QS_COLD, name, s16, int16_t, uint32_t, OP, LOOP)                                        \
    BINARY(QS_COLD, name, s32, int32_t, uint32_t, OP, LOOP)                                        \
    BINARY(QS_COLD, name, s64, int64_t, uint64_t, OP, LOOP)
#define UNSIGNED(name, OP)                                                                         \
    BINARY(QS_COLD, name, u8, uint8_t, uint32_t, OP, LOOP)                                         \
    BINARY(QS_COLD, name, u16, uint16_t, uint32_t, OP, LOOP)                                       \
    BINARY(QS_COLD, name, u32, uint32_t, uint32_t, OP, LOOP)                                       \
    BINARY(QS_COLD, name, u64, uint64_t, uint64_t, OP, LOOP)
#define FLOATS(name, OP)                                                                           \
    BINARY(, name, f32, float, float, OP, LOOPS)                                                   \
    BINARY(QS_COLD, name, f64, double, double, OP, LOOP)

/* Except for quotients, unsigned functions give the bits of signed ones. */
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

QS_COLD static int infer_binary(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_ARITH);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_ARITH);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    if (code)
        return code;
    return qs_infer_pair(x, x->in[0]->dtype ? x->in[0]->dtype : x->in[1]->dtype);
}

typedef struct binary_params {
    binary_fn fn;
    qs_broadcast broadcast;
    float limit[2];
    bool clamped, plain_sum; /* plain_sum: of floats */
    const qk_ew *kernels;
} binary_params;

/* Computes n elements and clamps them. */
static void binary_row(const void *arg, const void *a, const void *b, void *y, size_t n) {
    const binary_params *p = arg;
    const qs_loops *l = &p->broadcast.loops;
    if (p->plain_sum && l->inner_a && l->inner_b) {
        p->kernels->bound(a, b, p->limit[0], p->limit[1], y, n);
        return;
    }
    p->fn(a, l->inner_a, b, l->inner_b, y, n, p->limit);
    if (p->clamped)
        p->kernels->bound(y, NULL, p->limit[0], p->limit[1], y, n);
}

static void run_binary(const qs_step *s, const qs_frame *f) {
    const binary_params *p = s->params;
    qs_broadcast_run(&p->broadcast, f->ctx, qs_step_in(s, f, 0), qs_step_in(s, f, 1),
                     qs_step_out(s, f, 0), p);
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
    p->broadcast.fn = binary_row;
    p->broadcast.size_a = p->broadcast.size_b = p->broadcast.size_y = qs_dtype_bytes(y->dtype);
    p->broadcast.grain = QS_GRAIN;
    p->limit[0] = qs_node_float(l->node, "lo", -INFINITY);
    p->limit[1] = qs_node_float(l->node, "hi", INFINITY);
    p->clamped = qs_node_attr(l->node, "lo") || qs_node_attr(l->node, "hi");
    (void)qs_legacy_operand(l->node, a, b, &wide, dims);
    qs_loops_make(&p->broadcast.loops, a, &wide, y);
    l->step->run = run_binary;
    const size_t all = qs_value_elements(y);
    if (y->dtype == QSIM_FLOAT)
        l->step->in_place =
            (qs_value_elements(a) == all ? 1u : 0) | (qs_value_elements(b) == all ? 2u : 0);
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

/* Fused clamp of the internal forms. */
static const qs_attr_rule clamp_attrs[] = {{"lo", QSIM_ATTR_FLOAT, 0, 0},
                                           {"hi", QSIM_ATTR_FLOAT, 0, 0},
                                           {"axis", QSIM_ATTR_INT, 0, 0},
                                           {"broadcast", QSIM_ATTR_INT, 0, 0}};

QS_OP(add, .name = "Add", .min_in = 2, QS_ATTRS(qs_legacy_attrs),
      .traits = QS_ELEMENTWISE | QS_TAKES_BOUNDS | QS_ADDS, .kind = QS_KIND_ARITHMETIC,
      .kind_inputs = 2, .kernel = QS_KERNEL_BINARY, .infer = infer_binary, .more = &qs_legacy_more,
      .lower = lower_add);
QS_OP(sub, .name = "Sub", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_BINARY, .infer = infer_binary, .more = &qs_legacy_more,
      .lower = lower_sub);
QS_OP(mul, .name = "Mul", .min_in = 2, QS_ATTRS(qs_legacy_attrs),
      .traits = QS_ELEMENTWISE | QS_SCALES, .kind = QS_KIND_ARITHMETIC, .kind_inputs = 2,
      .kernel = QS_KERNEL_BINARY, .infer = infer_binary, .more = &qs_legacy_more,
      .lower = lower_mul);
QS_OP(div, .name = "Div", .min_in = 2, QS_ATTRS(qs_legacy_attrs),
      .traits = QS_ELEMENTWISE | QS_DIVIDES, .kind = QS_KIND_ARITHMETIC, .kernel = QS_KERNEL_BINARY,
      .infer = infer_binary, .more = &qs_legacy_more, .lower = lower_div);
QS_OP(qsim_add, .domain = QS_DOMAIN_QSIM, .name = "Add", .min_in = 2, QS_ATTRS(clamp_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_BINARY, .infer = infer_binary,
      .lower = lower_add);
QS_OP(qsim_sub, .domain = QS_DOMAIN_QSIM, .name = "Sub", .min_in = 2, QS_ATTRS(clamp_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_BINARY, .infer = infer_binary,
      .lower = lower_sub);
QS_OP(qsim_mul, .domain = QS_DOMAIN_QSIM, .name = "Mul", .min_in = 2, QS_ATTRS(clamp_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_BINARY, .infer = infer_binary,
      .lower = lower_mul);
QS_OP(qsim_div, .domain = QS_DOMAIN_QSIM, .name = "Div", .min_in = 2, QS_ATTRS(clamp_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_BINARY, .infer = infer_binary,
      .lower = lower_div);
