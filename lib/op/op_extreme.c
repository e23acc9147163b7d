/* SPDX-License-Identifier: MIT */
/* Max, Min, Sum, Mean of any number of broadcast tensors, from left to right. */
#include "op/rules.h"

/* y[i] = y[i] op b[i * sb] */
typedef void (*extreme_fn)(void *y, const void *b, size_t sb, size_t n);

#define FOLD(RARE, name, T, expression)                                                            \
    RARE static void name(void *vy, const void *vb, size_t sb, size_t n) {                         \
        T *py = vy;                                                                                \
        const T *pb = vb;                                                                          \
        QS_EACH_ALONE                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            const T a = py[i], b = pb[i * sb];                                                     \
            py[i] = (expression);                                                                  \
        }                                                                                          \
    }

/* A NaN on either side stays. */
#define EXTREMES(RARE, suffix, T)                                                                  \
    FOLD(RARE, max_##suffix, T, a != a || a > b ? a : b)                                           \
    FOLD(RARE, min_##suffix, T, a != a || a < b ? a : b)
#define ROWS(name)                                                                                 \
    {                                                                                              \
        [QSIM_FLOAT] = name##_f32, [QSIM_DOUBLE] = name##_f64, [QSIM_INT8] = name##_s8,            \
        [QSIM_INT16] = name##_s16, [QSIM_INT32] = name##_s32, [QSIM_INT64] = name##_s64,           \
        [QSIM_UINT8] = name##_u8, [QSIM_UINT16] = name##_u16, [QSIM_UINT32] = name##_u32,          \
        [QSIM_UINT64] = name##_u64                                                                 \
    }

EXTREMES(, f32, float)
EXTREMES(QS_RARE, f64, double)
EXTREMES(QS_RARE, s8, int8_t)
EXTREMES(QS_RARE, s16, int16_t)
EXTREMES(QS_RARE, s32, int32_t)
EXTREMES(QS_RARE, s64, int64_t)
EXTREMES(QS_RARE, u8, uint8_t)
EXTREMES(QS_RARE, u16, uint16_t)
EXTREMES(QS_RARE, u32, uint32_t)
EXTREMES(QS_RARE, u64, uint64_t)
FOLD(, sum_f32, float, a + b)
FOLD(QS_RARE, sum_f64, double, a + b)

static const extreme_fn max_fns[16] = ROWS(max), min_fns[16] = ROWS(min),
                        sum_fns[16] = {[QSIM_FLOAT] = sum_f32, [QSIM_DOUBLE] = sum_f64};

QS_RARE static int infer(qs_infer *x, uint32_t types) {
    qs_dim dims[2][QSIM_MAX_RANK];
    const qs_value *first = qs_infer_in(x, 0);
    qs_value all = *first;
    int code = qs_infer_type(x, 0, types);
    for (int32_t i = 1; i < x->node->input_count && !code; i++) {
        const qs_value *v = qs_infer_in(x, i);
        if (!v)
            return qs_infer_fail(x, QSIM_E_GRAPH, "input %d is left out", (int)i);
        code = qs_infer_same_type(x, 0, i);
        const qs_value so_far = all;
        if (!code)
            code = qs_infer_broadcast(x, &so_far, v, &all.rank, dims[i % 2]);
        all.dims = dims[i % 2];
    }
    return code ? code : qs_infer_out(x, 0, first->dtype, all.rank, all.dims);
}

QS_RARE static int infer_extreme(qs_infer *x) {
    return infer(x, x->node->version < 12 ? QS_T_REAL : QS_T_ARITH);
}

QS_RARE static int infer_sum(qs_infer *x) {
    return infer(x, QS_T_REAL);
}

typedef struct extreme_params {
    extreme_fn fn;
    size_t elements, element;
    int32_t count, dtype;
    bool mean;
    qs_loops *loops; /* of each input against the output */
} extreme_params;

static void spread(const qs_loops *l, size_t element, const char *b, char *y, extreme_fn fn) {
    for (size_t r = 0; r < l->rows; r++) {
        size_t oa, ob;
        qs_loops_offsets(l, r, &oa, &ob);
        char *row = y + r * l->inner * element;
        const char *from = b + ob * element;
        if (fn)
            fn(row, from, l->inner_b, l->inner);
        else
            for (size_t i = 0; i < l->inner; i++)
                memcpy(row + i * element, from + i * l->inner_b * element, element);
    }
}

static void run_extreme(const qs_step *s, const qs_frame *f) {
    const extreme_params *p = s->params;
    char *y = qs_step_out(s, f, 0);
    for (int32_t i = 0; i < p->count; i++)
        spread(&p->loops[i], p->element, qs_step_in(s, f, i), y, i ? p->fn : NULL);
    if (p->mean && p->dtype == QSIM_FLOAT)
        for (size_t i = 0; i < p->elements; i++)
            ((float *)(void *)y)[i] /= (float)p->count;
    else if (p->mean)
        for (size_t i = 0; i < p->elements; i++)
            ((double *)(void *)y)[i] /= (double)p->count;
}

QS_RARE static int lower(qs_lower *l, const extreme_fn *functions, bool mean) {
    const qs_value *y = qs_lower_out(l, 0);
    extreme_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->count = l->node->input_count;
    p->loops = qs_arena_alloc(l->arena, (size_t)p->count, sizeof(*p->loops));
    if (!p->loops)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    for (int32_t i = 0; i < p->count; i++)
        qs_loops_make(&p->loops[i], y, qs_lower_in(l, i), y);
    p->fn = functions[y->dtype];
    p->dtype = y->dtype;
    p->mean = mean;
    p->element = qs_dtype_bytes(y->dtype);
    p->elements = qs_value_elements(y);
    l->step->run = run_extreme;
    l->step->kernel = "extreme";
    return QSIM_OK;
}

QS_RARE static int lower_max(qs_lower *l) {
    return lower(l, max_fns, false);
}
QS_RARE static int lower_min(qs_lower *l) {
    return lower(l, min_fns, false);
}
QS_RARE static int lower_sum(qs_lower *l) {
    return lower(l, sum_fns, false);
}
QS_RARE static int lower_mean(qs_lower *l) {
    return lower(l, sum_fns, true);
}

static const qs_attr_rule legacy_attrs[] = {{"consumed_inputs", QS_ATTR_INTS, 1, 5}};

#define EXTREME_OP(id, text, kind)                                                                 \
    const qs_op qs_op_##id = {.domain = "",                                                        \
                              .name = text,                                                        \
                              .since = 1,                                                          \
                              .until = QS_OPSET_NEWEST,                                            \
                              .min_in = 1,                                                         \
                              .max_in = -1,                                                        \
                              .min_out = 1,                                                        \
                              .max_out = 1,                                                        \
                              .attrs = legacy_attrs,                                               \
                              .attr_count = QS_COUNT(legacy_attrs),                                \
                              .infer = infer_##kind,                                               \
                              .lower = lower_##id};

EXTREME_OP(max, "Max", extreme)
EXTREME_OP(mean, "Mean", sum)
EXTREME_OP(min, "Min", extreme)
EXTREME_OP(sum, "Sum", sum)
