/* SPDX-License-Identifier: MIT */
/* ConstantOfShape and Range: tensors filled with one number or a sequence. */
#include "op/rules.h"

/* ---- ConstantOfShape ---- */

static int fill_value(const qs_infer *x, int32_t *dtype, uint64_t *bits) {
    const qs_attr *a = qs_node_attr(x->node, "value");
    *dtype = QSIM_FLOAT;
    *bits = 0;
    if (!a)
        return QSIM_OK;
    const int32_t width = qsim_dtype_bits(a->u.tensor->dtype);
    if (!width || width > 64)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "a value of type %s",
                             qsim_dtype_name(a->u.tensor->dtype));
    if (a->u.tensor->elements != 1)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the value has %zu elements, expected 1",
                             a->u.tensor->elements);
    *dtype = a->u.tensor->dtype;
    memcpy(bits, a->u.tensor->data, (size_t)(width + 7) / 8);
    *bits &= width < 8 ? (1u << width) - 1 : UINT64_MAX;
    for (int32_t w = width; w < 8; w *= 2)
        *bits |= *bits << w;
    return QSIM_OK;
}

static int infer_constant_of_shape(qs_infer *x) {
    int64_t shape[QSIM_MAX_RANK];
    qs_dim dims[QSIM_MAX_RANK];
    int32_t count, dtype;
    uint64_t bits;
    int code = fill_value(x, &dtype, &bits);
    if (!code)
        code = qs_infer_ints(x, 0, shape, QSIM_MAX_RANK, &count);
    if (code)
        return code;
    const bool computed = count == QS_DYNAMIC;
    if (computed) /* but its length may be known, and so the rank */
        count = qs_known_sizes(x->graph, x->values, x->node->inputs[0], dims);
    for (int32_t i = 0; i < count; i++) {
        if (!computed && shape[i] < 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "axis %d of the shape is %lld", (int)i,
                                 (long long)shape[i]);
        if (!computed)
            dims[i] = (qs_dim){shape[i], NULL};
        else if (dims[i].size < 0)
            dims[i].size = -1;
    }
    return qs_infer_out(x, 0, dtype, count, dims);
}

typedef struct fill_params {
    size_t elements, element; /* bytes count as elements of smaller types */
    uint8_t unused;           /* bits of the last byte that hold no element */
    uint64_t bits;
} fill_params;

static void run_fill(const qs_step *s, const qs_frame *f) {
    const fill_params *p = s->params;
    char *y = qs_step_out(s, f, 0);
    const size_t piece = (size_t)1 << 20; /* between two checks for a stop */
    for (size_t from = 0; from < p->elements && !qs_stopped(f->ctx); from += piece)
        for (size_t i = from; i < p->elements && i < from + piece; i++)
            memcpy(y + i * p->element, &p->bits, p->element);
    if (p->unused)
        y[p->elements - 1] = (char)((uint8_t)y[p->elements - 1] & 0xff >> p->unused);
}

static int lower_constant_of_shape(qs_lower *l) {
    qs_infer x;
    int32_t dtype;
    fill_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = fill_value(&x, &dtype, &p->bits);
    const size_t width = (size_t)qsim_dtype_bits(dtype), n = qs_value_elements(qs_lower_out(l, 0));
    p->element = width < 8 ? 1 : width / 8;
    p->elements = width < 8 ? (n * width + 7) / 8 : n;
    p->unused = width < 8 ? (uint8_t)(p->elements * 8 - n * width) : 0;
    l->step->run = run_fill;
    return code;
}

static const qs_attr_rule fill_attrs[] = {{"value", QSIM_ATTR_TENSOR, 9, 0}};

QS_OP(constant_of_shape, .name = "ConstantOfShape", .since = 9, .min_in = 1, QS_ATTRS(fill_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 0, .kernel = QS_KERNEL_FILL,
      .infer = infer_constant_of_shape, .lower = lower_constant_of_shape);

/* ---- Range ---- */

#define QS_T_RANGE (QS_T_REAL | QS_T(QSIM_INT16) | QS_T(QSIM_INT32) | QS_T(QSIM_INT64))

/* max(0, ceil((limit - start) / delta)) */
static int range_count(const qs_infer *x, double start, double limit, double delta, int64_t *n) {
    double steps = (limit - start) / delta;
    if (delta == 0 || steps != steps)
        return qs_infer_fail(x, QSIM_E_VALUE, "a range from %g to %g by %g", start, limit, delta);
    if (steps > 1e15)
        return qs_infer_fail(x, QSIM_E_LIMIT, "a range of %g numbers", steps);
    int64_t whole = steps <= 0 ? 0 : (int64_t)steps;
    *n = steps > (double)whole ? whole + 1 : whole;
    return QSIM_OK;
}

static int infer_range(qs_infer *x) {
    qs_const c[3];
    bool known = true;
    int code = qs_infer_type(x, 0, QS_T_RANGE);
    for (int32_t i = 1; i < 3 && !code; i++)
        code = qs_infer_same_type(x, 0, i);
    for (int32_t i = 0; i < 3 && !code; i++) {
        const qs_value *v = qs_infer_in(x, i);
        const int64_t n = v->rank > 0 ? qs_dims_product(v->dims, 0, v->rank) : 1;
        if (n >= 0 && n != 1)
            code = qs_infer_fail(x, QSIM_E_SHAPE, "input %d is not a scalar", (int)i);
        known = known && qs_infer_const(x, i, &c[i]) && c[i].elements == 1;
    }
    qs_dim size = {-1, NULL};
    if (!code && known)
        code = range_count(x, qs_const_at(&c[0], 0), qs_const_at(&c[1], 0), qs_const_at(&c[2], 0),
                           &size.size);
    return code ? code : qs_infer_out(x, 0, x->in[0]->dtype, 1, &size);
}

typedef struct range_params {
    int32_t dtype;
    size_t elements;
} range_params;

#define RANGE(T, U)                                                                                \
    {                                                                                              \
        const T start = *(const T *)from, delta = *(const T *)step;                                \
        for (size_t i = 0; i < p->elements; i++)                                                   \
            ((T *)y)[i] = (T)((U)start + (U)i * (U)delta);                                         \
        break;                                                                                     \
    }

static void run_range(const qs_step *s, const qs_frame *f) {
    const range_params *p = s->params;
    const void *from = qs_step_in(s, f, 0), *step = qs_step_in(s, f, 2);
    void *y = qs_step_out(s, f, 0);
    switch (p->dtype) {
    case QSIM_FLOAT: RANGE(float, float)
    case QSIM_DOUBLE: RANGE(double, double)
    case QSIM_INT16: RANGE(int16_t, uint32_t)
    case QSIM_INT32: RANGE(int32_t, uint32_t)
    default: RANGE(int64_t, uint64_t)
    }
}

static int lower_range(qs_lower *l) {
    range_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->dtype = qs_lower_in(l, 0)->dtype;
    p->elements = qs_value_elements(qs_lower_out(l, 0));
    l->step->run = run_range;
    return QSIM_OK;
}

/* stash_type needs no code: half precision is always computed in float. */
static const qs_attr_rule range_attrs[] = {{"stash_type", QSIM_ATTR_INT, 27, 0}};

QS_OP(range, .name = "Range", .since = 11, .min_in = 3, QS_ATTRS(range_attrs), .traits = QS_PLAIN,
      .shape_inputs = 1 << 0 | 1 << 1 | 1 << 2, .kernel = QS_KERNEL_RANGE, .infer = infer_range,
      .lower = lower_range);
