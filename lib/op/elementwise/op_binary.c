/* SPDX-License-Identifier: MIT */
/* Add, Sub, Mul, Div with broadcasting. Integers wrap; an integer divided by zero gives zero. */
#include "op/elementwise/dense.h"
#include "op/elementwise/pairs.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/elementwise/muladd.h"
#include "op/broadcast.h"

#include <math.h>

/* Of floats: y[i] = a[i * sa] op b[i * sb], strides 0 or 1. */
typedef void (*binary_fn)(const float *a, size_t sa, const float *b, size_t sb, float *y, size_t n);

#define FLOATS(name, op)                                                                           \
    static void name(const float *a, size_t sa, const float *b, size_t sb, float *y, size_t n) {   \
        const float first = a[0], second = b[0];                                                   \
        if (sa && sb)                                                                              \
            EACH(a[i] op b[i])                                                                     \
        else if (sa)                                                                               \
            EACH(a[i] op second)                                                                   \
        else                                                                                       \
            EACH(first op b[i * sb])                                                               \
    }
#define EACH(value)                                                                                \
    QS_IVDEP                                                                                       \
    for (size_t i = 0; i < n; i++)                                                                 \
        y[i] = value;

FLOATS(sum, +)
FLOATS(difference, -)
FLOATS(product, *)
FLOATS(quotient, /)

#define DIV_S(U) b == -1 ? (U)0 - (U)a : (U)(b == 0 ? 0 : a / (b == 0 || b == -1 ? 1 : b))
QS_DENSE_RARE(div_f64, double, double, a / b)
QS_DENSE_RARE(div_s32, int32_t, int32_t, DIV_S(uint32_t))
QS_DENSE_RARE(div_s64, int64_t, int64_t, DIV_S(uint64_t))
QS_DENSE_RARE(div_u64, uint64_t, uint64_t, b == 0 ? 0 : a / (b == 0 ? 1 : b))
static const qs_dense_fns divisions = {NULL, div_f64, div_s32, div_s64, div_u64, NULL, false};

typedef struct kind {
    binary_fn floats;
    const qs_dense_fns *others;
} kind;
static const kind add_kind = {sum, &qs_dense_plus}, sub_kind = {difference, &qs_dense_minus},
                  mul_kind = {product, &qs_dense_times}, div_kind = {quotient, &divisions};

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
    binary_fn fn; /* NULL: other */
    qs_dense other;
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
    if (p->fn)
        p->fn(a, l->inner_a, b, l->inner_b, y, n);
    else
        qs_dense_run(&p->other, a, l->inner_a, b, l->inner_b, y, n);
    if (p->clamped)
        p->kernels->bound(y, NULL, p->limit[0], p->limit[1], y, n);
}

static void run_binary(const qs_step *s, const qs_frame *f) {
    const binary_params *p = s->params;
    qs_broadcast_run(&p->broadcast, f->ctx, qs_step_in(s, f, 0), qs_step_in(s, f, 1),
                     qs_step_out(s, f, 0), p);
}

QS_COLD static int lower_binary(qs_lower *l, const kind *how) {
    const qs_value *a = qs_lower_in(l, 0), *b = qs_lower_in(l, 1), *y = qs_lower_out(l, 0);
    qs_value wide;
    qs_dim dims[QSIM_MAX_RANK];
    binary_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->fn = y->dtype == QSIM_FLOAT ? how->floats : NULL;
    p->other = qs_dense_of(how->others, y->dtype);
    p->plain_sum = p->fn == sum;
    p->kernels = l->ctx->kernels->ew;
    p->broadcast.fn = binary_row;
    p->broadcast.size_a = p->broadcast.size_b = p->broadcast.size_y = qs_dtype_bytes(y->dtype);
    p->broadcast.grain = QS_GRAIN;
    p->limit[0] = qs_node_float(l->node, "lo", -INFINITY);
    p->limit[1] = qs_node_float(l->node, "hi", INFINITY);
    p->clamped = qs_node_attr(l->node, "lo") || qs_node_attr(l->node, "hi");
    (void)qs_legacy_operand(l->node, a, b, &wide, dims);
    qs_loops_make(&p->broadcast.loops, a, &wide, y);
    qs_broadcast_spread(&p->broadcast);
    l->step->run = run_binary;
    const size_t all = qs_value_elements(y);
    if (y->dtype == QSIM_FLOAT)
        l->step->in_place =
            (qs_value_elements(a) == all ? 1u : 0) | (qs_value_elements(b) == all ? 2u : 0);
    return QSIM_OK;
}

QS_COLD static int lower_add(qs_lower *l) {
    return lower_binary(l, &add_kind);
}
QS_COLD static int lower_sub(qs_lower *l) {
    return lower_binary(l, &sub_kind);
}
QS_COLD static int lower_mul(qs_lower *l) {
    bool done = qs_node_int(l->node, "broadcast", 0) || qs_node_attr(l->node, "lo");
    int code = QSIM_OK;
    for (int32_t x = 0; x < 2 && !done && !code; x++)
        code = qs_muladd_lower(l, x, 1 - x, 0, &done);
    return code || l->step->run ? code : lower_binary(l, &mul_kind);
}
QS_COLD static int lower_div(qs_lower *l) {
    return lower_binary(l, &div_kind);
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
