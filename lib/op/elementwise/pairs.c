/* SPDX-License-Identifier: MIT */
#include "op/elementwise/pairs.h"

typedef struct pair_params {
    qs_pair_fn fn;
    qs_loops loops;
    size_t a, b, y; /* bytes of an element */
} pair_params;

typedef struct pair_job {
    const pair_params *p;
    const char *a, *b;
    char *y;
} pair_job;

int qs_infer_pair_of(qs_infer *x, int32_t dtype, const qs_value *b) {
    int32_t rank;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_broadcast(x, x->in[0], b, &rank, dims);
    return code ? code : qs_infer_out(x, 0, dtype, rank, dims);
}

int qs_infer_pair(qs_infer *x, int32_t dtype) {
    return qs_infer_pair_of(x, dtype, x->in[1]);
}

static void pair_rows(const void *arg, size_t begin, size_t end) {
    const pair_job *job = arg;
    const pair_params *p = job->p;
    const qs_loops *l = &p->loops;
    for (size_t r = begin; r < end; r++) {
        size_t oa, ob;
        qs_loops_offsets(l, r, &oa, &ob);
        p->fn(job->a + oa * p->a, l->inner_a, job->b + ob * p->b, l->inner_b,
              job->y + r * l->inner * p->y, l->inner);
    }
}

static void run_pair(const qs_step *s, const qs_frame *f) {
    const pair_params *p = s->params;
    pair_job job = {p, qs_step_in(s, f, 0), qs_step_in(s, f, 1), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->loops.rows, QS_GRAIN / 8 / (p->loops.inner + 1) + 1, pair_rows, &job);
}

int qs_lower_pair(qs_lower *l, qs_pair_fn fn, const char *kernel) {
    return qs_lower_pair_of(l, fn, kernel, qs_lower_in(l, 1));
}

int qs_lower_pair_of(qs_lower *l, qs_pair_fn fn, const char *kernel, const qs_value *b) {
    const qs_value *a = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    pair_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->fn = fn;
    p->a = qs_dtype_bytes(a->dtype);
    p->b = qs_dtype_bytes(b->dtype);
    p->y = qs_dtype_bytes(y->dtype);
    qs_loops_make(&p->loops, a, b, y);
    l->step->run = run_pair;
    l->step->kernel = kernel;
    return QSIM_OK;
}
