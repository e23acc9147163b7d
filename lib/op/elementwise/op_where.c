/* SPDX-License-Identifier: MIT */
/* Where: selects x or y by a condition, all broadcast. */
#include <assert.h>

#include "op/broadcast.h"
#include "op/rules.h"

typedef struct where_params {
    int32_t rank; /* of the merged axes */
    size_t element, elements, inner;
    size_t dims[QSIM_MAX_RANK];
    size_t strides[3][QSIM_MAX_RANK], step[3]; /* of condition, x, y in elements; step: 0 or 1 */
} where_params;

typedef struct where_job {
    const where_params *p;
    const char *condition, *x, *y;
    char *z;
} where_job;

#define BLOCK ((size_t)128)

/* Reads both operands, so that there is no branch. */
#define CHOOSE(T)                                                                                  \
    {                                                                                              \
        const T *px = (const void *)x, *py = (const void *)y;                                      \
        T *pz = (void *)z;                                                                         \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            const T a = px[i], b = py[i];                                                          \
            pz[i] = c[i] ? a : b;                                                                  \
        }                                                                                          \
        break;                                                                                     \
    }

static void choose(size_t element, const char *c, const char *x, const char *y, char *z, size_t n) {
    switch (element) {
    case 1: CHOOSE(uint8_t)
    case 2: CHOOSE(uint16_t)
    case 4: CHOOSE(uint32_t)
    default: CHOOSE(uint64_t)
    }
}

/* A block of copies of the number at `of`, if there is one for a whole row. */
typedef struct repeated {
    const char *of;
    uint64_t copies[BLOCK];
} repeated;

static const char *repeat(const where_params *p, const char *x, size_t step, repeated *r) {
    if (step)
        return x;
    assert(x);
    if (r->of != x)
        qs_copy_rows(x, 0, r->copies, (ptrdiff_t)p->element, p->element,
                     p->inner < BLOCK ? p->inner : BLOCK);
    r->of = x;
    return (const void *)r->copies;
}

/* Writes n elements of a row; at: the first of each operand. One that is not chosen may be NULL. */
static void choose_row(const where_job *job, const size_t at[3], repeated r[2], char *z, size_t n) {
    const size_t e = job->p->element, *step = job->p->step;
    const char *c = job->condition + at[0], *x = job->x, *y = job->y;
    if (step[0] == 0) {
        x = *c ? x + at[1] * e : y + at[2] * e;
        qs_copy_rows(x, (ptrdiff_t)(step[*c ? 1 : 2] * e), z, (ptrdiff_t)e, e, n);
        return;
    }
    x = repeat(job->p, x + at[1] * e, step[1], r);
    y = repeat(job->p, y + at[2] * e, step[2], r + 1);
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < BLOCK ? n - i : BLOCK;
        choose(e, c + i, x + i * step[1] * e, y + i * step[2] * e, z + i * e, m);
    }
}

/* Computes elements [begin, end), row by row. */
static void where_range(const void *arg, size_t begin, size_t end) {
    const where_job *job = arg;
    const where_params *p = job->p;
    repeated r[2];
    r[0].of = r[1].of = NULL;
    for (size_t i = begin, n; i < end; i += n) {
        size_t at[3] = {0}, rest = i;
        for (int32_t k = p->rank; k-- > 0; rest /= p->dims[k])
            for (size_t s = 0; s < 3; s++)
                at[s] += rest % p->dims[k] * p->strides[s][k];
        n = p->inner - i % p->inner;
        n = n < end - i ? n : end - i;
        choose_row(job, at, r, job->z + i * p->element, n);
    }
}

static void run_where(const qs_step *s, const qs_frame *f) {
    const where_params *p = s->params;
    const where_job job = {p, qs_step_in(s, f, 0), qs_step_in(s, f, 1), qs_step_in(s, f, 2),
                           qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->elements, QS_GRAIN / 4, where_range, &job);
}

/* Adds axis i of the output, which has d elements, or joins it to the axis before. */
QS_COLD static void add_axis(where_params *p, size_t d, size_t strides[3][QSIM_MAX_RANK],
                             int32_t i) {
    const int32_t last = p->rank - 1;
    bool joins = last >= 0;
    for (size_t s = 0; s < 3; s++)
        joins = joins && p->strides[s][last] == strides[s][i] * d;
    const int32_t at = joins ? last : p->rank++;
    p->dims[at] = joins ? p->dims[at] * d : d;
    p->inner = p->dims[at];
    for (size_t s = 0; s < 3; s++)
        p->step[s] = p->strides[s][at] = strides[s][i];
}

QS_COLD static int lower_where(qs_lower *l) {
    const qs_value *out = qs_lower_out(l, 0);
    size_t strides[3][QSIM_MAX_RANK];
    where_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    for (int32_t s = 0; s < 3; s++)
        qs_broadcast_strides(qs_lower_in(l, s), out->rank, strides[s]);
    p->inner = 1;
    for (int32_t i = 0; i < out->rank; i++)
        if (out->dims[i].size != 1)
            add_axis(p, (size_t)out->dims[i].size, strides, i);
    p->element = qs_dtype_bytes(out->dtype);
    p->elements = qs_value_elements(out);
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
