/* SPDX-License-Identifier: MIT */
/*
 * Shuffle, internal: interleaves the channels (last axis) of two tensors, a0 b0 a1 b1 ..., and may
 * split the result in two, as between ShuffleNet's units. Each operand's bytes may be looked up in
 * a table. Inputs: a, b, table of a, table of b. Attribute first: channels of output 0.
 */
#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/rules.h"

#define TABLE 2 /* input of the first table */

QS_COLD static int infer(qs_infer *x) {
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
    bool two; /* two outputs */
    bool floats;
} shuffle_params;

typedef struct shuffle_job {
    void (*run)(const qk_shuffle *s);
    size_t element; /* bytes */
    qk_shuffle all;
} shuffle_job;

/* ---- execution ---- */

static void shuffle_range(const void *arg, size_t begin, size_t end) {
    const shuffle_job *j = arg;
    const size_t element = j->element;
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

static void run_shuffle(const qs_step *s, const qs_frame *f) {
    const shuffle_params *p = s->params;
    const qk_u8 *k = f->ctx->kernels->u8;
    const shuffle_job job = {.run = p->floats ? k->shuffle32 : k->shuffle,
                             .element = p->floats ? sizeof(float) : 1,
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

QS_COLD static int lower(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    shuffle_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->inputs = l->node->input_count;
    p->two = l->node->output_count == 2;
    p->channels = (size_t)x->dims[x->rank - 1].size;
    p->pixels = (size_t)qs_dims_product(x->dims, 0, x->rank - 1);
    p->first = (size_t)qs_node_int(l->node, "first", 0);
    p->floats = x->dtype == QSIM_FLOAT;
    l->step->run = run_shuffle;
    return QSIM_OK;
}

static const qs_attr_rule attrs[] = {{"first", QSIM_ATTR_INT, 0, 0}};

QS_OP(qsim_shuffle, .domain = QS_DOMAIN_QSIM, .name = "Shuffle", .min_in = 2, .max_in = 4,
      .max_out = 2, QS_ATTRS(attrs), .traits = QS_PLAIN, .kernel = QS_KERNEL_SHUFFLE,
      .infer = infer, .lower = lower);
