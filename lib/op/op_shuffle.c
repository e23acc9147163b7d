/* SPDX-License-Identifier: MIT */
/*
 * Shuffle, internal: the channels of two tensors, which are the last axis of both, alternate, a0 b0
 * a1 b1 ..., and may be split in two: what ShuffleNet has between its units. Bytes may be looked up
 * in a table for each operand: a, b, table of a, table of b. Attribute first: channels of output 0.
 */
#include "base/ctx.h"
#include "kernel/fours.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/rules.h"

#define TABLE 2 /* input of the first table */

QS_RARE static int infer(qs_infer *x) {
    const qs_value *a = qs_infer_in(x, 0), *b = qs_infer_in(x, 1);
    const int64_t first = qs_node_int(x->node, "first", 0);
    const int32_t last = a->rank - 1;
    const bool bytes = a->dtype == QSIM_UINT8;
    bool fits = last >= 0 && b->rank == a->rank && b->dtype == a->dtype &&
                (bytes || a->dtype == QSIM_FLOAT);
    const int64_t c = fits ? a->dims[last].size : 0, all = 2 * c;
    fits = fits && c > 0 && c <= QK_SHUFFLE_MOST && b->dims[last].size == c && first > 0 &&
           (x->node->output_count == 1 ? first == all : first < all);
    for (int32_t i = TABLE; i < x->node->input_count; i++) {
        const qs_value *t = qs_infer_in(x, i);
        fits = fits &&
               (!t || (bytes && t->dtype == QSIM_UINT8 && t->rank == 1 && t->dims[0].size == 256));
    }
    if (!fits)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "operands that cannot be shuffled");
    qs_dim dims[QSIM_MAX_RANK];
    memcpy(dims, a->dims, ((size_t)last + 1) * sizeof(*dims));
    int code = QSIM_OK;
    for (int32_t i = 0; i < x->node->output_count && !code; i++) {
        dims[last] = (qs_dim){i ? all - first : first, NULL};
        code = qs_infer_out(x, i, a->dtype, last + 1, dims);
    }
    return code;
}

typedef struct shuffle_params {
    size_t pixels, channels, first;
    int32_t inputs;
    bool two; /* outputs */
} shuffle_params;

typedef struct shuffle_job {
    void (*run)(const qk_shuffle *s);
    qk_shuffle all;
} shuffle_job;

/* ---- floats ---- */

/* y = a0 b0 a1 b1 ... for n of each; the last four overlap those before. */
static void weave_floats(const float *a, const float *b, float *y, size_t n) {
    size_t i = 0;
#ifdef QK_SHUFFLES
    for (; n >= 4 && i < n; i += 4) {
        qk_four x[2], z[2];
        i = i < n - 4 ? i : n - 4;
        memcpy(&x[0], a + i, 16);
        memcpy(&x[1], b + i, 16);
        z[0] = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
        z[1] = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
        memcpy(y + 2 * i, z, 32);
    }
#endif
    for (; i < n; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
}

static void shuffle_floats(const qk_shuffle *s) {
    const size_t n = s->n, half = s->first / 2, odd = s->first % 2;
    const float *a = (const void *)s->a, *b = (const void *)s->b;
    float *y0 = (void *)s->y0, *y1 = (void *)s->y1;
    for (size_t r = 0; r < s->rows; r++, a += n, b += n, y0 += s->first, y1 += 2 * n - s->first) {
        weave_floats(a, b, y0, half);
        if (odd) {
            y0[2 * half] = a[half];
            y1[0] = b[half];
        }
        if (half < n)
            weave_floats(a + half + odd, b + half + odd, y1 + odd, n - half - odd);
    }
}

/* ---- execution ---- */

static void shuffle_range(const void *arg, size_t begin, size_t end) {
    const shuffle_job *j = arg;
    const size_t element = j->run == shuffle_floats ? sizeof(float) : 1;
    qk_shuffle s = j->all;
    s.a += begin * s.n * element;
    s.b += begin * s.n * element;
    s.y0 += begin * s.first * element;
    s.y1 += begin * (2 * s.n - s.first) * element;
    s.rows = end - begin;
    j->run(&s);
}

static const void *table_of(const qs_step *s, const qs_frame *f, int32_t index) {
    const shuffle_params *p = s->params;
    return index < p->inputs ? qs_step_in(s, f, index) : NULL;
}

static void run_shuffle(const qs_step *s, const qs_frame *f, void (*run)(const qk_shuffle *s)) {
    const shuffle_params *p = s->params;
    const shuffle_job job = {.run = run,
                             .all = {.a = qs_step_in(s, f, 0),
                                     .b = qs_step_in(s, f, 1),
                                     .table_a = table_of(s, f, TABLE),
                                     .table_b = table_of(s, f, TABLE + 1),
                                     .y0 = qs_step_out(s, f, 0),
                                     .y1 = qs_step_out(s, f, p->two),
                                     .n = p->channels,
                                     .first = p->first}};
    qs_ranges(f->ctx, p->pixels, QS_GRAIN / p->channels + 1, shuffle_range, &job);
}

static void run_bytes(const qs_step *s, const qs_frame *f) {
    run_shuffle(s, f, f->ctx->kernels->u8->shuffle);
}

static void run_floats(const qs_step *s, const qs_frame *f) {
    run_shuffle(s, f, shuffle_floats);
}

QS_RARE static int lower(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    shuffle_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->inputs = l->node->input_count;
    p->two = l->node->output_count == 2;
    p->channels = (size_t)x->dims[x->rank - 1].size;
    p->pixels = (size_t)qs_dims_product(x->dims, 0, x->rank - 1);
    p->first = (size_t)qs_node_int(l->node, "first", 0);
    l->step->run = x->dtype == QSIM_UINT8 ? run_bytes : run_floats;
    l->step->kernel = "shuffle";
    return QSIM_OK;
}

static const qs_attr_rule attrs[] = {{"first", QS_ATTR_INT, 0, 0}};

const qs_op qs_op_qsim_shuffle = {.domain = "qsim",
                                  .name = "Shuffle",
                                  .until = INT16_MAX,
                                  .min_in = 2,
                                  .max_in = 4,
                                  .min_out = 1,
                                  .max_out = 2,
                                  .attrs = attrs,
                                  .attr_count = QS_COUNT(attrs),
                                  .infer = infer,
                                  .lower = lower};
