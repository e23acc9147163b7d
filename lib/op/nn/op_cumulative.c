/* SPDX-License-Identifier: MIT */
/* CumSum and CumProd: running sums and products along one axis, in order. */
#include "op/elementwise/dense.h"
#include "op/move/index.h"

/*
 * Accumulates n rows of `inner` numbers, `step` elements apart, from y's first row on, which
 * exists; exclusive: results lack the row's own number.
 */
typedef void (*cumulate_fn)(const void *x, void *y, size_t n, size_t inner, ptrdiff_t step,
                            bool exclusive);

#define CUMULATE(name, T, op)                                                                      \
    QS_COLD static void name(const void *vx, void *vy, size_t n, size_t inner, ptrdiff_t step,     \
                             bool exclusive) {                                                     \
        const T *x = vx;                                                                           \
        T *y = vy;                                                                                 \
        x += exclusive ? 0 : step;                                                                 \
        for (size_t t = 1; t < n; t++, x += step, y += step)                                       \
            for (size_t i = 0; i < inner; i++)                                                     \
                y[(ptrdiff_t)i + step] = y[i] op x[i];                                             \
    }

/* Unsigned arithmetic serves signed types, too. */
CUMULATE(sum_few, float, +)
CUMULATE(sum_f64, double, +)
CUMULATE(sum_u32, uint32_t, +)
CUMULATE(sum_u64, uint64_t, +)
CUMULATE(prod_f32, float, *)
CUMULATE(prod_f64, double, *)
CUMULATE(prod_u32, uint32_t, *)
CUMULATE(prod_u64, uint64_t, *)

/* In vectors, except for the last elements of a row. */
QS_COLD static void sum_f32(const void *vx, void *vy, size_t n, size_t inner, ptrdiff_t step,
                            bool exclusive) {
    const size_t whole = inner & ~(size_t)15;
    const float *x = vx, *added = x + (exclusive ? 0 : step);
    float *y = vy, *to = y;
    sum_few(x + whole, y + whole, n, inner - whole, step, exclusive);
    for (size_t t = 1; whole && t < n; t++, added += step, to += step)
        qs_dense_plus.f32(to, added, to + step, whole);
}

#define QS_T_CUMULATED                                                                             \
    (QS_T_REAL | QS_T(QSIM_INT32) | QS_T(QSIM_INT64) | QS_T(QSIM_UINT32) | QS_T(QSIM_UINT64))

QS_COLD static int infer_cumulative(qs_infer *x) {
    const qs_value *in = x->in[0];
    int64_t axis = 0;
    bool known = false;
    int32_t at;
    int code = qs_infer_type(x, 0, QS_T_CUMULATED);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_INDEX);
    if (!code)
        code = qs_infer_number(x, 1, &axis, &known);
    if (!code)
        code = qs_infer_least_rank(x, 0, 1);
    if (!code && known && in->rank > 0)
        code = qs_infer_axis(x, axis, in->rank, &at);
    return code ? code : qs_infer_like(x, 0, 0);
}

typedef struct cumulative_params {
    cumulate_fn fn;
    int32_t rank;
    bool wide, exclusive, reverse;
    size_t bytes;
    uint64_t neutral; /* a number of the type, the first result if exclusive */
    int64_t dims[QSIM_MAX_RANK];
} cumulative_params;

typedef struct cumulative_job {
    const qsim_ctx *ctx;
    const cumulative_params *p;
    const char *x;
    char *y;
    size_t count, inner, span; /* span: elements of a row that one task takes */
} cumulative_job;

/* Elements between two checks for a stop. */
#define PIECE ((size_t)1 << 18)

/* Accumulates in pieces; each begins with the last row of the piece before. */
static void cumulate(const cumulative_job *j, size_t at, size_t n, ptrdiff_t step) {
    const cumulative_params *p = j->p;
    const size_t most = PIECE / n + 2;
    const ptrdiff_t row = step * (ptrdiff_t)p->bytes;
    const char *x = j->x + at * p->bytes;
    char *y = j->y + at * p->bytes;
    const ptrdiff_t bytes = (ptrdiff_t)p->bytes;
    if (p->exclusive)
        qs_copy_rows(&p->neutral, 0, y, bytes, p->bytes, n);
    else
        qs_copy_rows(x, bytes, y, bytes, p->bytes, n);
    for (size_t t = 0, rows = 0; t + rows < j->count && !qs_stopped(j->ctx);) {
        t += rows ? rows - 1 : 0;
        rows = j->count - t < most ? j->count - t : most;
        p->fn(x + row * (ptrdiff_t)t, y + row * (ptrdiff_t)t, rows, n, step, p->exclusive);
    }
}

static void cumulate_range(const void *arg, size_t begin, size_t end) {
    const cumulative_job *j = arg;
    const cumulative_params *p = j->p;
    const size_t spans = (j->inner + j->span - 1) / j->span;
    for (size_t r = begin; r < end; r++) {
        const size_t first = r % spans * j->span;
        const size_t n = j->inner - first < j->span ? j->inner - first : j->span;
        size_t at = r / spans * j->count * j->inner + first;
        ptrdiff_t step = (ptrdiff_t)j->inner;
        if (p->reverse) {
            at += (j->count - 1) * j->inner;
            step = -step;
        }
        cumulate(j, at, n, step);
    }
}

static void run_cumulative(const qs_step *s, const qs_frame *f) {
    const cumulative_params *p = s->params;
    const int64_t axis =
        qs_index_wrap(qs_index_at(qs_step_in(s, f, 1), p->wide, 0), (int64_t)p->rank);
    cumulative_job j = {f->ctx, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), 0, 1, 256};
    size_t outer = 1;
    if (axis < 0) {
        qs_step_outside(f, "axis", qs_index_at(qs_step_in(s, f, 1), p->wide, 0), -(int64_t)p->rank,
                        p->rank, -1);
        return;
    }
    for (int32_t i = 0; i < p->rank; i++)
        if (i != axis)
            *(i < axis ? &outer : &j.inner) *= (size_t)p->dims[i];
    j.count = (size_t)p->dims[axis];
    j.span = j.inner < j.span ? j.inner : j.span;
    if (j.count && j.inner)
        qs_ranges(f->ctx, outer * ((j.inner + j.span - 1) / j.span),
                  QS_GRAIN / (j.count * j.span) + 1, cumulate_range, &j);
}

QS_COLD static int lower_cumulative(qs_lower *l) {
    static const cumulate_fn functions[2][QS_TYPES] = {{[QSIM_FLOAT] = sum_f32,
                                                        [QSIM_DOUBLE] = sum_f64,
                                                        [QSIM_INT32] = sum_u32,
                                                        [QSIM_INT64] = sum_u64,
                                                        [QSIM_UINT32] = sum_u32,
                                                        [QSIM_UINT64] = sum_u64},
                                                       {[QSIM_FLOAT] = prod_f32,
                                                        [QSIM_DOUBLE] = prod_f64,
                                                        [QSIM_INT32] = prod_u32,
                                                        [QSIM_INT64] = prod_u64,
                                                        [QSIM_UINT32] = prod_u32,
                                                        [QSIM_UINT64] = prod_u64}};
    const qs_value *x = qs_lower_in(l, 0);
    cumulative_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    const bool product = strcmp(l->node->op_type, "CumProd") == 0;
    p->fn = functions[product][x->dtype];
    if (product) /* else 0 */
        p->neutral = x->dtype == QSIM_FLOAT    ? 0x3f800000
                     : x->dtype == QSIM_DOUBLE ? 0x3ff0000000000000
                                               : 1;
    p->rank = x->rank;
    p->wide = qs_lower_in(l, 1)->dtype == QSIM_INT64;
    p->exclusive = qs_node_int(l->node, "exclusive", 0) != 0;
    p->reverse = qs_node_int(l->node, "reverse", 0) != 0;
    p->bytes = qs_dtype_bytes(x->dtype);
    for (int32_t i = 0; i < x->rank; i++)
        p->dims[i] = x->dims[i].size;
    l->step->run = run_cumulative;
    return QSIM_OK;
}

static const qs_attr_rule cumulative_attrs[] = {{"exclusive", QSIM_ATTR_INT, 11, 0},
                                                {"reverse", QSIM_ATTR_INT, 11, 0}};

QS_OP(cum_prod, .name = "CumProd", .since = 26, .min_in = 2, QS_ATTRS(cumulative_attrs),
      .traits = QS_READS_EXACTLY, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_CUMULATIVE,
      .infer = infer_cumulative, .lower = lower_cumulative);
QS_OP(cum_sum, .name = "CumSum", .since = 11, .min_in = 2, QS_ATTRS(cumulative_attrs),
      .traits = QS_READS_EXACTLY, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_CUMULATIVE,
      .infer = infer_cumulative, .lower = lower_cumulative);
