/* SPDX-License-Identifier: MIT */
/* Where: selects x or y by a condition, all broadcast. */
#include "op/rules.h"

typedef struct where_params {
    int32_t rank;
    size_t element, rows, inner;
    size_t dims[QSIM_MAX_RANK];       /* all axes but the last */
    size_t strides[3][QSIM_MAX_RANK]; /* of condition, x, y in elements; the last is 0 or 1 */
} where_params;

typedef struct where_job {
    const qsim_ctx *ctx;
    const where_params *p;
    const uint8_t *condition;
    const char *x, *y;
    char *z;
} where_job;

static void strides_of(const qs_value *v, const qs_value *out, size_t *strides) {
    size_t step = 1;
    for (int32_t i = out->rank - 1; i >= 0; i--) {
        int32_t k = i - (out->rank - v->rank);
        size_t d = k >= 0 ? (size_t)v->dims[k].size : 1;
        strides[i] = d == 1 ? 0 : step;
        step *= d;
    }
}

/*
 * An operand that no element is taken from may be NULL, to which C allows no offset to be added:
 * offsets are added to integers.
 */
#define CHOOSE(T)                                                                                  \
    {                                                                                              \
        const T *px = (const void *)((uintptr_t)job->x + x * sizeof(T));                           \
        const T *py = (const void *)((uintptr_t)job->y + y * sizeof(T));                           \
        T *pz = (void *)z;                                                                         \
        for (size_t i = 0; i < n; i++)                                                             \
            pz[i] = c[i * sc] ? px[i * sx] : py[i * sy];                                           \
        break;                                                                                     \
    }

/* Writes elements [k, k + n) of a row; at: the element of each operand where the row begins. */
static void choose_row(const where_job *job, const size_t at[3], size_t k, size_t n, char *z) {
    const where_params *p = job->p;
    const int32_t last = p->rank - 1;
    const size_t sc = p->strides[0][last], sx = p->strides[1][last], sy = p->strides[2][last];
    const size_t x = at[1] + k * sx, y = at[2] + k * sy;
    const uint8_t *c = job->condition + at[0] + k * sc;
    switch (p->element) {
    case 1: CHOOSE(uint8_t)
    case 2: CHOOSE(uint16_t)
    case 4: CHOOSE(uint32_t)
    default: CHOOSE(uint64_t)
    }
}

static void where_rows(const void *arg, size_t begin, size_t end) {
    const where_job *job = arg;
    const where_params *p = job->p;
    int32_t last = p->rank - 1;
    for (size_t r = begin; r < end; r++) {
        size_t at[3] = {0}, rest = r;
        for (int32_t i = last - 1; i >= 0; i--) {
            size_t k = rest % p->dims[i];
            rest /= p->dims[i];
            for (int32_t s = 0; s < 3; s++)
                at[s] += k * p->strides[s][i];
        }
        for (size_t k = 0, n; (n = qs_piece(job->ctx, k, p->inner)); k += n)
            choose_row(job, at, k, n, job->z + (r * p->inner + k) * p->element);
    }
}

static void run_where(const qs_step *s, const qs_frame *f) {
    const where_params *p = s->params;
    where_job job = {f->ctx,
                     p,
                     qs_step_in(s, f, 0),
                     qs_step_in(s, f, 1),
                     qs_step_in(s, f, 2),
                     qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->rows, QS_GRAIN / 4 / (p->inner + 1) + 1, where_rows, &job);
}

QS_COLD static int lower_where(qs_lower *l) {
    const qs_value *out = qs_lower_out(l, 0);
    where_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->rank = out->rank ? out->rank : 1;
    p->element = qs_dtype_bytes(out->dtype);
    p->rows = 1;
    for (int32_t i = 0; i + 1 < out->rank; i++) {
        p->dims[i] = (size_t)out->dims[i].size;
        p->rows *= p->dims[i];
    }
    p->inner = out->rank ? (size_t)out->dims[out->rank - 1].size : 1;
    for (int32_t i = 0; i < 3; i++)
        strides_of(qs_lower_in(l, i), out, p->strides[i]);
    l->step->run = run_where;
    return QSIM_OK;
}

QS_COLD static int infer_where(qs_infer *x) {
    int32_t rank = -1;
    qs_dim dims[QSIM_MAX_RANK], all[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T(QSIM_BOOL));
    if (!code)
        code = qs_infer_type(x, 1, QS_T_BYTES);
    if (!code)
        code = qs_infer_same_type(x, 1, 2);
    if (!code)
        code = qs_infer_broadcast(x, x->in[1], x->in[2], &rank, dims);
    qs_value both = {.rank = rank, .dims = dims};
    if (!code)
        code = qs_infer_broadcast(x, x->in[0], &both, &rank, all);
    int32_t dtype = x->in[1]->dtype ? x->in[1]->dtype : x->in[2]->dtype;
    return code ? code : qs_infer_out(x, 0, dtype, rank, all);
}

QS_OP(where, .name = "Where", .since = 9, .min_in = 3, .traits = QS_ELEMENTWISE | QS_CHOOSES,
      .kernel = QS_KERNEL_WHERE, .infer = infer_where, .lower = lower_where);
