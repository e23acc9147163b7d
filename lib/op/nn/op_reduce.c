/* SPDX-License-Identifier: MIT */
/* ReduceMean, ReduceSum, ReduceMax, ReduceMin over any set of axes. */
#include "op/rules.h"

#include "op/nn/reduce.h"

#include <math.h>

static float fold(float lanes[16]) {
    for (size_t half = 8; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

float qs_tree_sum(const float *x, size_t n, size_t step) {
    float lanes[16] = {0};
    size_t i = 0;
    if (step == 1)
        for (; i + 16 <= n; i += 16)
            for (size_t k = 0; k < 16; k++)
                lanes[k] += x[i + k];
    for (; i < n; i++)
        lanes[i % 16] += x[i * step];
    return fold(lanes);
}

typedef enum reduce_kind { REDUCE_MEAN, REDUCE_SUM, REDUCE_MAX, REDUCE_MIN } reduce_kind;

#define SUM_AXES   13 /* first versions whose axes are an input */
#define OTHER_AXES 18

static int32_t axes_input_since(const qs_node *n) {
    return strcmp(n->op_type, "ReduceSum") == 0 ? SUM_AXES : OTHER_AXES;
}

/* Bit mask of the reduced axes; *known false where they are not constant. */
QS_COLD static int reduce_axes(const qs_infer *x, uint32_t *mask, bool *known) {
    int64_t axes[QSIM_MAX_RANK];
    int32_t count, rank = x->in[0]->rank;
    bool input = x->node->version >= axes_input_since(x->node);
    int code = input ? qs_infer_ints(x, 1, axes, QSIM_MAX_RANK, &count)
                     : qs_infer_attr_ints(x, "axes", axes, QSIM_MAX_RANK, &count);
    *known = count != QS_DYNAMIC;
    *mask = 0;
    if (code || !*known || rank < 0)
        return code;
    if (count > 0)
        return qs_infer_axes(x, axes, count, rank, mask);
    if (!qs_node_int(x->node, "noop_with_empty_axes", 0))
        *mask = (1u << rank) - 1;
    return QSIM_OK;
}

QS_COLD static int infer_reduce(qs_infer *x) {
    const qs_value *in = x->in[0];
    uint32_t mask;
    bool known, keep = qs_node_int(x->node, "keepdims", 1) != 0;
    qs_dim dims[QSIM_MAX_RANK];
    int32_t rank = 0;
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (!code)
        code = reduce_axes(x, &mask, &known);
    if (code)
        return code;
    if (in->rank < 0 || (!known && !keep))
        return qs_infer_out(x, 0, in->dtype, -1, NULL);
    for (int32_t i = 0; i < in->rank; i++) {
        if (!known)
            dims[rank++] = (qs_dim){-1, NULL};
        else if (!(mask & 1u << i))
            dims[rank++] = in->dims[i];
        else if (keep)
            dims[rank++] = (qs_dim){1, NULL};
    }
    return qs_infer_out(x, 0, in->dtype, rank, dims);
}

/* Two odometers: over the kept axes (one turn an output) and over the reduced ones. */
typedef struct reduce_params {
    reduce_kind kind;
    size_t outputs, count;
    int32_t kept, reduced;
    size_t kept_dims[QSIM_MAX_RANK], kept_strides[QSIM_MAX_RANK];
    size_t dims[QSIM_MAX_RANK], strides[QSIM_MAX_RANK]; /* merged */
} reduce_params;

typedef struct reduce_job {
    const reduce_params *p;
    const float *x;
    float *y;
} reduce_job;

static size_t offset(size_t i, int32_t n, const size_t *dims, const size_t *strides) {
    size_t at = 0;
    for (int32_t k = n - 1; k >= 0; k--) {
        at += i % dims[k] * strides[k];
        i /= dims[k];
    }
    return at;
}

static float reduce_sum(const reduce_params *p, const float *x) {
    float lanes[16] = {0};
    if (p->reduced <= 1)
        return qs_tree_sum(x, p->count, p->reduced ? p->strides[0] : 1);
    size_t inner = p->dims[p->reduced - 1], step = p->strides[p->reduced - 1], lane = 0;
    for (size_t o = 0; o < p->count / inner; o++) {
        const float *row = x + offset(o, p->reduced - 1, p->dims, p->strides);
        for (size_t i = 0; i < inner; i++, lane++)
            lanes[lane % 16] += row[i * step];
    }
    return fold(lanes);
}

/* Sums of COLUMNS outputs side by side, whose terms lie `step` apart: each as qs_tree_sum's. */
#define COLUMNS ((size_t)16)

static void sum_columns(const float *x, size_t n, size_t step, float *y) {
    float lanes[16][COLUMNS] = {{0}};
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < COLUMNS; c++)
            lanes[i % 16][c] += x[i * step + c];
    for (size_t half = 8; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            for (size_t c = 0; c < COLUMNS; c++)
                lanes[i][c] += lanes[i + half][c];
    memcpy(y, lanes[0], COLUMNS * sizeof(*y));
}

/* Whether outputs [o, o + COLUMNS) lie below `end` and side by side in the input. */
static bool are_columns(const reduce_params *p, size_t o, size_t end) {
    if (p->kind > REDUCE_SUM || p->reduced != 1 || p->kept == 0 ||
        p->kept_strides[p->kept - 1] != 1 || end - o < COLUMNS)
        return false;
    const size_t inner = p->kept_dims[p->kept - 1];
    return inner - o % inner >= COLUMNS;
}

static float reduce_extreme(const reduce_params *p, const float *x) {
    bool max = p->kind == REDUCE_MAX;
    float best = max ? -INFINITY : INFINITY;
    for (size_t i = 0; i < p->count; i++) {
        float v = x[offset(i, p->reduced, p->dims, p->strides)];
        if (v != v)
            return v;
        best = (max ? v > best : v < best) ? v : best;
    }
    return best;
}

static void reduce_range(const void *arg, size_t begin, size_t end) {
    const reduce_job *job = arg;
    const reduce_params *p = job->p;
    for (size_t o = begin; o < end; o++) {
        const float *x = job->x + offset(o, p->kept, p->kept_dims, p->kept_strides);
        if (are_columns(p, o, end)) {
            sum_columns(x, p->count, p->strides[0], job->y + o);
            for (size_t c = 0; c < COLUMNS && p->kind == REDUCE_MEAN; c++)
                job->y[o + c] /= (float)p->count;
            o += COLUMNS - 1;
        } else if (p->kind == REDUCE_SUM)
            job->y[o] = reduce_sum(p, x);
        else if (p->kind == REDUCE_MEAN)
            job->y[o] = reduce_sum(p, x) / (float)p->count;
        else
            job->y[o] = reduce_extreme(p, x);
    }
}

static void run_reduce(const qs_step *s, const qs_frame *f) {
    const reduce_params *p = s->params;
    reduce_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->outputs, QS_GRAIN / (p->count + 1) + 1, reduce_range, &job);
}

static void push_axis(int32_t *n, size_t *dims, size_t *strides, size_t d, size_t stride) {
    if (d == 1)
        return;
    if (*n > 0 && strides[*n - 1] == stride * d) {
        dims[*n - 1] *= d;
        strides[*n - 1] = stride;
        return;
    }
    dims[*n] = d;
    strides[(*n)++] = stride;
}

QS_COLD static int lower_reduce(qs_lower *l, reduce_kind kind) {
    const qs_value *x = qs_lower_in(l, 0);
    uint32_t mask;
    bool known;
    qs_infer rules;
    qs_lower_infer(l, &rules);
    int code = reduce_axes(&rules, &mask, &known);
    if (!code && !known)
        code = qs_infer_fail(&rules, QSIM_E_UNSUPPORTED, "the axes are not constant");
    if (code)
        return code;
    reduce_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    size_t own[QSIM_MAX_RANK], step = 1;
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= (size_t)x->dims[i].size;
    }
    p->kind = kind;
    p->outputs = 1;
    p->count = 1;
    for (int32_t i = 0; i < x->rank; i++) {
        size_t d = (size_t)x->dims[i].size;
        if (mask & 1u << i) {
            push_axis(&p->reduced, p->dims, p->strides, d, own[i]);
            p->count *= d;
        } else {
            push_axis(&p->kept, p->kept_dims, p->kept_strides, d, own[i]);
            p->outputs *= d;
        }
    }
    if (p->count == 0) { /* nothing to walk: the neutral element */
        p->reduced = 0;
    }
    l->step->run = run_reduce;
    l->step->kernel = "reduce";
    return QSIM_OK;
}

QS_COLD static int lower_mean(qs_lower *l) {
    return lower_reduce(l, REDUCE_MEAN);
}
QS_COLD static int lower_sum(qs_lower *l) {
    return lower_reduce(l, REDUCE_SUM);
}
QS_COLD static int lower_max(qs_lower *l) {
    return lower_reduce(l, REDUCE_MAX);
}
QS_COLD static int lower_min(qs_lower *l) {
    return lower_reduce(l, REDUCE_MIN);
}

QS_COLD static int upgrade_reduce(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    int32_t since = axes_input_since(&g->nodes[node]);
    if (g->nodes[node].version >= since || to < since)
        return QSIM_OK;
    return qs_upgrade_ints_to_input(g, node, "axes", 1, error);
}

static const qs_attr_rule reduce_attrs[] = {{"axes", QS_ATTR_INTS, 1, 17},
                                            {"keepdims", QS_ATTR_INT, 1, 0},
                                            {"noop_with_empty_axes", QS_ATTR_INT, 18, 0}};
static const qs_attr_rule sum_attrs[] = {{"axes", QS_ATTR_INTS, 1, 12},
                                         {"keepdims", QS_ATTR_INT, 1, 0},
                                         {"noop_with_empty_axes", QS_ATTR_INT, 13, 0}};

QS_OP(reduce_max, .name = "ReduceMax", .min_in = 1, .later = {{OTHER_AXES, 1, 2, 1}},
      QS_ATTRS(reduce_attrs), .traits = QS_REDUCES, .shape_inputs = 1 << 1, .infer = infer_reduce,
      .upgrade = upgrade_reduce, .lower = lower_max);
QS_OP(reduce_mean, .name = "ReduceMean", .min_in = 1, .later = {{OTHER_AXES, 1, 2, 1}},
      QS_ATTRS(reduce_attrs), .traits = QS_REDUCES, .shape_inputs = 1 << 1, .infer = infer_reduce,
      .upgrade = upgrade_reduce, .lower = lower_mean);
QS_OP(reduce_min, .name = "ReduceMin", .min_in = 1, .later = {{OTHER_AXES, 1, 2, 1}},
      QS_ATTRS(reduce_attrs), .traits = QS_REDUCES, .shape_inputs = 1 << 1, .infer = infer_reduce,
      .upgrade = upgrade_reduce, .lower = lower_min);
QS_OP(reduce_sum, .name = "ReduceSum", .min_in = 1, .later = {{SUM_AXES, 1, 2, 1}},
      QS_ATTRS(sum_attrs), .traits = QS_REDUCES, .shape_inputs = 1 << 1, .infer = infer_reduce,
      .upgrade = upgrade_reduce, .lower = lower_sum);
