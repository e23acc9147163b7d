/* SPDX-License-Identifier: MIT */
/* Max, Min, Sum, Mean of any number of broadcast tensors, from left to right. */
#include "op/elementwise/dense.h"
#include "op/broadcast.h"
#include "op/rules.h"

/* Elements that are computed over all inputs while they are in the cache. */
#define SPAN ((size_t)2048)

QS_COLD static int infer(qs_infer *x, uint32_t types) {
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

QS_COLD static int infer_extreme(qs_infer *x) {
    return infer(x, x->node->version < 12 ? QS_T_REAL : QS_T_ARITH);
}

QS_COLD static int infer_sum(qs_infer *x) {
    return infer(x, QS_T_REAL);
}

typedef struct extreme_params {
    qs_dense dense;
    size_t elements, element;
    int32_t count, dtype;
    bool mean, flat;         /* flat: all loops are one row */
    bool whole;              /* input 0 has the elements of the output, and others follow */
    qs_broadcast *broadcast; /* one per input: the output so far as a, the input as b */
} extreme_params;

typedef struct extreme_job {
    const extreme_params *p;
    const qs_step *s;
    const qs_frame *f;
    int32_t input;
} extreme_job;

/* Combines n elements of the output so far with those of an input. */
static void combine(const void *arg, const void *so_far, const void *x, void *y, size_t n) {
    const extreme_job *j = arg;
    const extreme_params *p = j->p;
    const size_t step = p->broadcast[j->input].loops.inner_b;
    if (j->input > 0)
        qs_dense_run(&p->dense, so_far, 1, x, step, y, n);
    else if (step && !p->whole)
        memcpy(y, x, n * p->element);
    else if (!step)
        qs_copy_rows(x, 0, y, (ptrdiff_t)p->element, p->element, n);
}

/* What the job's input is combined with: a whole input 0 is read where it lies. */
static const char *output_so_far(const extreme_job *j) {
    return j->p->whole && j->input == 1 ? qs_step_in(j->s, j->f, 0) : qs_step_out(j->s, j->f, 0);
}

/* Computes elements [begin, end) of all inputs in spans; each input has all elements or one. */
static void combine_span(const void *arg, size_t begin, size_t end) {
    extreme_job j = *(const extreme_job *)arg;
    const extreme_params *p = j.p;
    const size_t element = p->element;
    char *y = qs_step_out(j.s, j.f, 0);
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < SPAN ? end - at : SPAN;
        for (j.input = 0; j.input < p->count; j.input++) {
            const char *x = qs_step_in(j.s, j.f, j.input);
            combine(&j, output_so_far(&j) + at * element,
                    x + at * p->broadcast[j.input].loops.inner_b * element, y + at * element, n);
        }
    }
}

static void run_extreme(const qs_step *s, const qs_frame *f) {
    const extreme_params *p = s->params;
    char *y = qs_step_out(s, f, 0);
    extreme_job job = {p, s, f, 0};
    if (p->flat)
        qs_ranges(f->ctx, p->elements, QS_GRAIN / 4, combine_span, &job);
    for (; !p->flat && job.input < p->count; job.input++)
        qs_broadcast_run(&p->broadcast[job.input], f->ctx, output_so_far(&job),
                         qs_step_in(s, f, job.input), y, &job);
    if (p->mean && p->dtype == QSIM_FLOAT)
        for (size_t i = 0; i < p->elements; i++)
            ((float *)(void *)y)[i] /= (float)p->count;
    else if (p->mean)
        for (size_t i = 0; i < p->elements; i++)
            ((double *)(void *)y)[i] /= (double)p->count;
}

QS_COLD static int lower(qs_lower *l, const qs_dense_fns *functions, bool mean) {
    const qs_value *y = qs_lower_out(l, 0);
    const size_t element = qs_dtype_bytes(y->dtype);
    extreme_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->count = l->node->input_count;
    p->broadcast = qs_arena_alloc(l->arena, (size_t)p->count, sizeof(*p->broadcast));
    if (!p->broadcast)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    p->flat = true;
    for (int32_t i = 0; i < p->count; i++) {
        qs_broadcast *how = &p->broadcast[i];
        *how = (qs_broadcast){{0}, combine, element, element, element, QS_GRAIN / 4, NULL};
        qs_loops_make(&how->loops, y, qs_lower_in(l, i), y);
        qs_broadcast_spread(how);
        p->flat &= how->loops.rows == 1;
    }
    p->whole =
        p->count > 1 && p->broadcast[0].loops.rows == 1 && p->broadcast[0].loops.inner_b == 1;
    p->dense = qs_dense_of(functions, y->dtype);
    p->dtype = y->dtype;
    p->mean = mean;
    p->element = element;
    p->elements = qs_value_elements(y);
    l->step->run = run_extreme;
    return QSIM_OK;
}

QS_COLD static int lower_max(qs_lower *l) {
    return lower(l, &qs_dense_greatest, false);
}
QS_COLD static int lower_min(qs_lower *l) {
    return lower(l, &qs_dense_least, false);
}
QS_COLD static int lower_sum(qs_lower *l) {
    return lower(l, &qs_dense_plus, false);
}
QS_COLD static int lower_mean(qs_lower *l) {
    return lower(l, &qs_dense_plus, true);
}

static const qs_attr_rule legacy_attrs[] = {{"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};

QS_OP(max, .name = "Max", .min_in = 1, .max_in = -1, QS_ATTRS(legacy_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_EXTREME, .infer = infer_extreme,
      .lower = lower_max);
QS_OP(mean, .name = "Mean", .min_in = 1, .max_in = -1, QS_ATTRS(legacy_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_EXTREME, .infer = infer_sum,
      .lower = lower_mean);
QS_OP(min, .name = "Min", .min_in = 1, .max_in = -1, QS_ATTRS(legacy_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_EXTREME, .infer = infer_extreme,
      .lower = lower_min);
QS_OP(sum, .name = "Sum", .min_in = 1, .max_in = -1, QS_ATTRS(legacy_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_EXTREME, .infer = infer_sum,
      .lower = lower_sum);
