/* SPDX-License-Identifier: MIT */
/* Concat and Split: copy blocks of bytes along one axis. */
#include "op/rules.h"

/* ---- Concat ---- */

QS_COLD int qs_infer_join(const qs_infer *x, int32_t index, int32_t axis, int32_t rank,
                          qs_dim *dims) {
    const qs_value *v = qs_infer_in(x, index);
    for (int32_t k = 0; k < rank; k++) {
        int64_t size = v->dims[k].size;
        if (k == axis) {
            bool known = dims[k].size >= 0 && size >= 0;
            dims[k].symbol = NULL;
            if (!known)
                dims[k].size = -1;
            else if (!qs_add64(dims[k].size, size, &dims[k].size))
                return qs_infer_fail(x, QSIM_E_LIMIT, "the result is too large");
        } else if (dims[k].size < 0) {
            dims[k] = size >= 0 ? v->dims[k] : dims[k];
        } else if (size >= 0 && size != dims[k].size) {
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d is %lld in input %d, not %lld", (int)k,
                                 (long long)size, (int)index, (long long)dims[k].size);
        }
    }
    return QSIM_OK;
}

QS_COLD static int infer_concat(qs_infer *x) {
    const qs_value *first = x->in[0];
    int32_t rank = first->rank, axis = 0;
    qs_dim dims[QSIM_MAX_RANK];
    int code = QSIM_OK;
    for (int32_t i = 0; i < x->node->input_count && !code; i++) {
        const qs_value *v = qs_infer_in(x, i);
        if (!v)
            return qs_infer_fail(x, QSIM_E_GRAPH, "input %d is left out", (int)i);
        code = qs_infer_type(x, i, QS_T_BYTES);
        if (!code)
            code = qs_infer_same_type(x, 0, i);
        if (!code && rank >= 0)
            code = qs_infer_rank(x, i, rank);
        if (v->rank < 0)
            rank = -1;
    }
    if (!code && x->node->version >= 4 && !qs_node_attr(x->node, "axis"))
        code = qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' is missing", "axis");
    if (code || rank < 0)
        return code ? code : qs_infer_unknown(x, first->dtype);
    code = qs_infer_axis(x, qs_node_int(x->node, "axis", 1), rank, &axis);
    if (code)
        return code;
    qs_value_dims(first, dims);
    for (int32_t i = 1; i < x->node->input_count && !code; i++)
        code = qs_infer_join(x, i, axis, rank, dims);
    return code ? code : qs_infer_out(x, 0, first->dtype, rank, dims);
}

typedef struct block_params {
    int32_t count; /* inputs of Concat, outputs of Split */
    size_t outer;
    size_t total;   /* bytes of one outer index over all parts */
    size_t bytes[]; /* of one outer index in each part */
} block_params;

typedef struct block_job {
    const qs_step *step;
    const qs_frame *frame;
} block_job;

/* Copies outer indices [begin, end) of all parts, as split_range does. */
static void concat_range(const void *arg, size_t begin, size_t end) {
    const block_job *j = arg;
    const block_params *p = j->step->params;
    char *y = qs_step_out(j->step, j->frame, 0);
    for (int32_t i = 0; i < p->count; i++) {
        const char *x = qs_step_in(j->step, j->frame, i);
        const size_t n = p->bytes[i];
        if (n && x != y)
            qs_copy_many_rows(j->frame->ctx, x + begin * n, (ptrdiff_t)n, y + begin * p->total,
                              (ptrdiff_t)p->total, n, end - begin);
        y += n;
    }
}

static void split_range(const void *arg, size_t begin, size_t end) {
    const block_job *j = arg;
    const block_params *p = j->step->params;
    const char *x = qs_step_in(j->step, j->frame, 0);
    for (int32_t i = 0; i < p->count; i++) {
        char *y = qs_step_out(j->step, j->frame, i);
        const size_t n = p->bytes[i];
        if (n && y && x != y)
            qs_copy_many_rows(j->frame->ctx, x + begin * p->total, (ptrdiff_t)p->total,
                              y + begin * n, (ptrdiff_t)n, n, end - begin);
        x += n;
    }
}

static void run_blocks(const qs_step *s, const qs_frame *f, qs_range_fn range) {
    const block_params *p = s->params;
    const block_job job = {s, f};
    qs_ranges(f->ctx, p->outer, 2 * QS_GRAIN / (p->total + 1) + 1, range, &job);
}

static void run_concat(const qs_step *s, const qs_frame *f) {
    run_blocks(s, f, concat_range);
}

static void run_split(const qs_step *s, const qs_frame *f) {
    run_blocks(s, f, split_range);
}

/* Lets the planner place contiguous parts side by side, so that they need no copy. */
QS_COLD static int lie_together(qs_lower *l, const block_params *p, bool inputs) {
    size_t *at = qs_arena_alloc(l->arena, (size_t)p->count, sizeof(*at)), sum = 0;
    if (!at)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    for (int32_t i = 0; i < p->count; i++) {
        at[i] = sum;
        sum += p->bytes[i];
    }
    *(inputs ? &l->step->joins : &l->step->views) = at;
    return QSIM_OK;
}

/* `whole` is the tensor that consists of the parts. */
QS_COLD static int lower_blocks(qs_lower *l, const qs_value *whole, int64_t fallback, bool inputs) {
    int32_t count = inputs ? l->node->input_count : l->node->output_count;
    int64_t axis = qs_node_int(l->node, "axis", fallback);
    axis = axis < 0 ? axis + whole->rank : axis;
    block_params *p = qs_lower_params(l, sizeof(*p) + (size_t)count * sizeof(p->bytes[0]));
    if (!p)
        return QSIM_E_NOMEM;
    size_t inner = qs_dtype_bytes(whole->dtype);
    p->outer = 1;
    for (int32_t i = 0; i < axis; i++)
        p->outer *= (size_t)whole->dims[i].size;
    for (int32_t i = (int32_t)axis + 1; i < whole->rank; i++)
        inner *= (size_t)whole->dims[i].size;
    p->count = count;
    p->total = inner * (size_t)whole->dims[axis].size;
    for (int32_t i = 0; i < count; i++) {
        const qs_value *v = inputs ? qs_lower_in(l, i) : qs_lower_out(l, i);
        p->bytes[i] = v ? inner * (size_t)v->dims[axis].size : 0;
    }
    l->step->run = inputs ? run_concat : run_split;
    return p->outer == 1 ? lie_together(l, p, inputs) : QSIM_OK;
}

QS_COLD static int lower_concat(qs_lower *l) {
    return lower_blocks(l, qs_lower_out(l, 0), 1, true);
}

static const qs_attr_rule concat_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0}};

QS_COLD static int upgrade_concat(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    if (g->nodes[node].version >= 4 || to < 4 || qs_node_attr(&g->nodes[node], "axis"))
        return QSIM_OK;
    int code = qs_node_set_int(g, node, "axis", 1);
    return code ? qs_fail(error, code, "out of memory") : QSIM_OK;
}

QS_OP(concat, .name = "Concat", .min_in = 1, .max_in = -1, QS_ATTRS(concat_attrs),
      .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_ALONG_AXIS | QS_READS_EXACTLY,
      .kind = QS_KIND_ARITHMETIC, .kind_inputs = -1, .kernel = QS_KERNEL_CONCAT,
      .infer = infer_concat, QS_MORE(QS_HISTORY(.upgrade = upgrade_concat)), .lower = lower_concat);

/* ---- Split ---- */

#define MANY_PARTS 256

/* Checks given sizes along the axis: one per output, with the sum `size` if that is known. */
QS_COLD static int split_given(const qs_infer *x, int64_t size, const int64_t *parts,
                               int32_t count) {
    int64_t sum = 0;
    if (count != x->node->output_count)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%d sizes for %d outputs", (int)count,
                             (int)x->node->output_count);
    for (int32_t i = 0; i < count; i++)
        if (parts[i] < 0 || !qs_add64(sum, parts[i], &sum))
            return qs_infer_fail(x, QSIM_E_VALUE, "split size %lld", (long long)parts[i]);
    if (size >= 0 && sum != size)
        return qs_infer_fail(x, QSIM_E_SHAPE, "split sizes sum up to %lld, the axis has %lld",
                             (long long)sum, (long long)size);
    return QSIM_OK;
}

/* Size of part i of equal parts; from version 18 on the last may be smaller. */
QS_COLD static int split_equal(const qs_infer *x, int64_t size, int32_t i, int64_t *part) {
    int32_t n = x->node->output_count;
    *part = -1;
    if (size < 0)
        return QSIM_OK;
    if (x->node->version < 18 && size % n != 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%lld cannot be split into %d equal parts",
                             (long long)size, (int)n);
    int64_t whole = size / n + (size % n != 0), left = size - whole * i;
    *part = left < 0 ? 0 : left < whole ? left : whole;
    return QSIM_OK;
}

QS_COLD static int split_read(const qs_infer *x, int64_t *parts, int32_t *count) {
    int64_t n = qs_node_int(x->node, "num_outputs", x->node->output_count);
    if (n != x->node->output_count)
        return qs_infer_fail(x, QSIM_E_VALUE, "num_outputs is %lld for %d outputs", (long long)n,
                             (int)x->node->output_count);
    if (x->node->input_count > 1)
        return qs_infer_ints(x, 1, parts, MANY_PARTS, count);
    return qs_infer_attr_ints(x, "split", parts, MANY_PARTS, count);
}

QS_COLD static int infer_split(qs_infer *x) {
    const qs_value *in = x->in[0];
    int64_t parts[MANY_PARTS], part = -1;
    int32_t count, axis = 0;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = split_read(x, parts, &count);
    if (!code && in->rank >= 0)
        code = qs_infer_axis(x, qs_node_int(x->node, "axis", 0), in->rank, &axis);
    if (!code && in->rank >= 0 && count >= 0)
        code = split_given(x, in->dims[axis].size, parts, count);
    if (code)
        return code;
    for (int32_t i = 0; i < x->node->output_count; i++) {
        if (in->rank > 0) {
            qs_value_dims(in, dims);
            if (count == QS_ABSENT)
                code = split_equal(x, in->dims[axis].size, i, &part);
            else
                part = count == QS_DYNAMIC ? -1 : parts[i];
            dims[axis] = (qs_dim){part, NULL};
        }
        if (!code)
            code = qs_infer_out(x, i, in->dtype, in->rank, dims);
        if (code)
            return code;
    }
    return QSIM_OK;
}

QS_COLD static int lower_split(qs_lower *l) {
    return lower_blocks(l, qs_lower_in(l, 0), 0, false);
}

QS_COLD static int upgrade_split(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    int32_t version = g->nodes[node].version;
    int code = QSIM_OK;
    if (version < 13 && to >= 13)
        code = qs_upgrade_ints_to_input(g, node, "split", 1, error);
    const qs_node *n = &g->nodes[node];
    if (!code && version < 18 && to >= 18 && n->input_count < 2 &&
        qs_node_set_int(g, node, "num_outputs", n->output_count) != QSIM_OK)
        code = qs_op_no_memory(error);
    return code;
}

static const qs_attr_rule split_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0},
                                           {"split", QSIM_ATTR_INTS, 1, 12},
                                           {"num_outputs", QSIM_ATTR_INT, 18, 0}};

QS_OP(split, .name = "Split", .min_in = 1, .max_in = 2, .max_out = -1,
      QS_MORE(QS_HISTORY(.later = {{2, 1, 1, -1}, {13, 1, 2, -1}}, .upgrade = upgrade_split)),
      QS_ATTRS(split_attrs), .traits = QS_MOVES | QS_ALONG_AXIS | QS_READS_EXACTLY,
      .shape_inputs = 1 << 1, .kind = QS_KIND_MOVEMENT, .kernel = QS_KERNEL_SPLIT,
      .infer = infer_split, .lower = lower_split);
