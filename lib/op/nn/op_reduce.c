/* SPDX-License-Identifier: MIT */
/* The Reduce operators (ReduceMean, ReduceSum, ReduceMax and others) over any set of axes. */
#include "op/nn/reduce_axes.h"

/* Kinds by name, and the first versions with 8-bit and with bool types. */
static const struct reduction {
    const char *name;
    qs_reduce_kind kind;
    int16_t bytes_since, bool_since; /* 0: never */
} reductions[] = {
    {"ReduceMean", QS_REDUCE_MEAN, 0, 0},
    {"ReduceSum", QS_REDUCE_SUM, 0, 0},
    {"ReduceL1", QS_REDUCE_L1, 0, 0},
    {"ReduceSumSquare", QS_REDUCE_SUM_SQUARE, 0, 0},
    {"ReduceL2", QS_REDUCE_L2, 0, 0},
    {"ReduceLogSum", QS_REDUCE_LOG_SUM, 0, 0},
    {"ReduceLogSumExp", QS_REDUCE_LOG_SUM_EXP, 0, 0},
    {"ReduceProd", QS_REDUCE_PROD, 0, 0},
    {"ReduceMax", QS_REDUCE_MAX, 12, 20},
    {"ReduceMin", QS_REDUCE_MIN, 12, 20},
};

static const struct reduction *reduction_of(const qs_node *n) {
    const struct reduction *r = reductions;
    while (strcmp(r->name, n->op_type) != 0)
        r++;
    return r;
}

#define QS_T_REDUCED                                                                               \
    (QS_T_REAL | QS_T(QSIM_INT32) | QS_T(QSIM_INT64) | QS_T(QSIM_UINT32) | QS_T(QSIM_UINT64))

static uint32_t reduced_types(const qs_node *n) {
    const struct reduction *r = reduction_of(n);
    uint32_t types = QS_T_REDUCED;
    types |= r->bytes_since && n->version >= r->bytes_since ? QS_T_8BIT : 0;
    return types | (r->bool_since && n->version >= r->bool_since ? QS_T(QSIM_BOOL) : 0);
}

#define SUM_AXES   13 /* first version whose axes are an input: of ReduceSum, of the others */
#define OTHER_AXES 18

static int32_t axes_input_since(const qs_node *n) {
    return strcmp(n->op_type, "ReduceSum") == 0 ? SUM_AXES : OTHER_AXES;
}

/* Reads the bit mask of the reduced axes; *known: whether they are constant. */
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
    int code = qs_infer_type(x, 0, reduced_types(x->node));
    if (!code)
        code = reduce_axes(x, &mask, &known);
    if (code)
        return code;
    if (in->rank < 0 || (!known && !keep))
        return qs_infer_unknown(x, in->dtype);
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

typedef struct reduce_job {
    const qs_reduce *p;
    const qsim_ctx *ctx;
    const char *x;
    char *y;
    size_t inner, groups; /* outputs side by side; groups of them */
} reduce_job;

/* Whether neighbouring outputs have their elements side by side in the input, or run by run. */
static bool together(const qs_reduce *p) {
    const size_t step = qs_reduce_is_run(p) ? p->count : 1;
    return p->kept > 0 && p->kept_strides[p->kept - 1] == step;
}

/* Outputs that are computed at once: their elements lie in the same lines of the cache. */
#define GROUP ((size_t)256)

static void reduce_groups(const void *arg, size_t begin, size_t end) {
    const reduce_job *job = arg;
    const qs_reduce *p = job->p;
    for (size_t g = begin; g < end; g++) {
        const size_t at = g % job->groups * GROUP, left = job->inner - at;
        size_t o = g / job->groups * job->inner + at;
        for (size_t n = left < GROUP ? left : GROUP, done; n > 0; n -= done, o += done) {
            const char *x =
                job->x + qs_reduce_offset(o, p->kept, p->kept_dims, p->kept_strides) * p->bytes;
            done = p->fn(p, job->ctx, x, job->y + o * p->bytes, n);
        }
    }
}

void qs_reduce_run(const qs_reduce *p, const qsim_ctx *ctx, const void *x, void *y) {
    const size_t inner = together(p) ? p->kept_dims[p->kept - 1] : 1;
    const reduce_job job = {p, ctx, x, y, inner, (inner + GROUP - 1) / GROUP};
    const size_t each = p->kind == QS_REDUCE_LOG_SUM_EXP ? 8 * p->count : p->count;
    const size_t grain = QS_GRAIN / (each + 1) / (inner < GROUP ? inner + !inner : GROUP) + 1;
    if (p->outputs > 0)
        qs_ranges(ctx, p->outputs / inner * job.groups, grain, reduce_groups, &job);
}

static void run_reduce(const qs_step *s, const qs_frame *f) {
    qs_reduce_run(s->params, f->ctx, qs_step_in(s, f, 0), qs_step_out(s, f, 0));
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

QS_COLD static int lower_reduce(qs_lower *l) {
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
    qs_reduce *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    size_t own[QSIM_MAX_RANK], step = 1;
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= (size_t)x->dims[i].size;
    }
    p->kind = reduction_of(l->node)->kind;
    p->dtype = x->dtype;
    p->bytes = qs_dtype_bytes(x->dtype);
    p->fn = x->dtype == QSIM_FLOAT    ? qs_reduce_f32
            : x->dtype == QSIM_DOUBLE ? qs_reduce_f64
                                      : qs_reduce_int;
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
    if (p->count == 0) /* no elements: the result is the neutral element */
        p->reduced = 0;
    const int32_t last = p->reduced - 1;
    p->rows = last < 0
                  ? (qs_reduce_rows){p->count, p->count, 1} /* 1 or 0 */
                  : (qs_reduce_rows){p->count / p->dims[last], p->dims[last], p->strides[last]};
    l->step->run = run_reduce;
    return QSIM_OK;
}

QS_COLD static int upgrade_reduce(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    int32_t since = axes_input_since(&g->nodes[node]);
    if (g->nodes[node].version >= since || to < since)
        return QSIM_OK;
    return qs_upgrade_ints_to_input(g, node, "axes", 1, error);
}

static const qs_attr_rule reduce_attrs[] = {{"axes", QSIM_ATTR_INTS, 1, 17},
                                            {"keepdims", QSIM_ATTR_INT, 1, 0},
                                            {"noop_with_empty_axes", QSIM_ATTR_INT, 18, 0}};
static const qs_attr_rule sum_attrs[] = {{"axes", QSIM_ATTR_INTS, 1, 12},
                                         {"keepdims", QSIM_ATTR_INT, 1, 0},
                                         {"noop_with_empty_axes", QSIM_ATTR_INT, 13, 0}};

static const qs_op_more reduce_more = {
    QS_HISTORY(.later = {{OTHER_AXES, 1, 2, 1}}, .upgrade = upgrade_reduce)};

/* Fields shared by all rows but ReduceSum's. */
#define REDUCTION                                                                                  \
    .min_in = 1, .more = &reduce_more, QS_ATTRS(reduce_attrs),                                     \
    .traits = QS_REDUCES | QS_READS_EXACTLY, .shape_inputs = 1 << 1, .kernel = QS_KERNEL_REDUCE,   \
    .infer = infer_reduce, .lower = lower_reduce

QS_OP(reduce_l1, .name = "ReduceL1", REDUCTION);
QS_OP(reduce_l2, .name = "ReduceL2", REDUCTION);
QS_OP(reduce_log_sum, .name = "ReduceLogSum", REDUCTION);
QS_OP(reduce_log_sum_exp, .name = "ReduceLogSumExp", REDUCTION);
QS_OP(reduce_max, .name = "ReduceMax", REDUCTION);
QS_OP(reduce_mean, .name = "ReduceMean", .kind = QS_KIND_POOL, REDUCTION);
QS_OP(reduce_min, .name = "ReduceMin", REDUCTION);
QS_OP(reduce_prod, .name = "ReduceProd", REDUCTION);
QS_OP(reduce_sum_square, .name = "ReduceSumSquare", REDUCTION);
QS_OP(reduce_sum, .name = "ReduceSum", .min_in = 1,
      QS_MORE(QS_HISTORY(.later = {{SUM_AXES, 1, 2, 1}}, .upgrade = upgrade_reduce)),
      QS_ATTRS(sum_attrs), .traits = QS_REDUCES | QS_READS_EXACTLY, .shape_inputs = 1 << 1,
      .kernel = QS_KERNEL_REDUCE, .infer = infer_reduce, .lower = lower_reduce);
