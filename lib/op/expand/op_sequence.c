/* SPDX-License-Identifier: MIT */
/*
 * Sequences of tensors. A sequence exists only while a model is compiled: an operator that reads
 * one is expanded into operators on its tensors. So the operators that make a sequence and its
 * length have to be known from the file. Three kinds of sequences may have any number of tensors of
 * one type and shape: slices of a tensor, which insertions and removals make slices of another one;
 * those that a Loop carries, which pass_loops.c makes slices of a tensor; and those that a subgraph
 * captures, which pass_sequences.c makes inside it.
 */
#include <assert.h>

#include "op/expand/sequence.h"

/* Checks that all tensors have one type. */
static int check_types(const qs_infer *x, const qs_list *l) {
    for (int32_t i = 1; i < l->count; i++) {
        const qs_value *a = qs_list_like(x->graph, &l->at[0]),
                       *b = qs_list_like(x->graph, &l->at[i]);
        if (a->dtype != QSIM_UNDEFINED && b->dtype != QSIM_UNDEFINED && a->dtype != b->dtype)
            return qs_infer_fail(x, QSIM_E_DTYPE, "tensor %d of the sequence is %s, the first %s",
                                 (int)i, qsim_dtype_name(b->dtype), qsim_dtype_name(a->dtype));
    }
    return QSIM_OK;
}

/*
 * Shape rule of nodes that make a sequence, whose value has neither type nor shape. A sequence may
 * not be an output, except of a subgraph, for which the outer node's rule decides.
 */
QS_COLD int qs_sequence_infer(qs_infer *x) {
    qs_list l;
    const int code = qs_list_read(x, x->node->outputs[0], &l);
    const qs_value *y = &x->graph->values[x->node->outputs[0]];
    if (!code && y->is_output && !l.fed)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "output '%s' is a sequence, not a tensor",
                             y->name);
    return code ? code : check_types(x, &l);
}

/* A list of one number. */
static qs_id list_of(qs_expand *e, int64_t v) {
    return qs_expand_list(e, &v, 1);
}

static qs_id number_of(qs_expand *e, int64_t v) {
    return qs_expand_number(e, QSIM_INT64, (double)v);
}

/* A list of the one number that x has. */
static QS_NOINLINE qs_id as_list(qs_expand *e, qs_id x) {
    return qs_expand_reshape(e, x, (const int64_t[]){1}, 1);
}

static QS_NOINLINE qs_id size_of(qs_expand *e, qs_id x, int64_t axis) {
    return qs_expand_two(e, "Gather", qs_expand_one(e, "Shape", x), number_of(e, axis));
}

static QS_NOINLINE qs_id cut(qs_expand *e, qs_id x, qs_id from, qs_id to, int64_t axis) {
    const qs_id in[4] = {x, from, to, list_of(e, axis)};
    return qs_expand_many(e, "Slice", in, 4, 1);
}

/* Returns the value of a tensor in a sequence; a part is cut by a new node. */
static QS_NOINLINE qs_id add_item(qs_expand *e, const qs_item *t) {
    if (!t->split)
        return t->tensor;
    const qs_id part = cut(e, t->tensor, list_of(e, t->begin), list_of(e, t->end), t->axis);
    return t->keeps_axis ? part : qs_expand_two(e, "Squeeze", part, list_of(e, t->axis));
}

/*
 * Lists the tensors of a sequence for `expand`; this cannot fail, since infer has accepted it. A
 * tensor that a Loop appends has no value yet: the node stays until a pass has replaced the Loop's
 * sequence.
 */
static qs_infer expand_view(qs_expand *e, qs_id sequence, qs_list *l) {
    qs_infer x = {.graph = e->graph,
                  .node_id = e->node_id,
                  .values = e->graph->values,
                  .model = e->model,
                  .error = e->error};
    x = qs_list_view(&x, &e->graph->nodes[e->node_id]);
    if (!e->code)
        e->code = qs_list_read(&x, sequence, l);
    return x;
}

static bool is_carried(const qs_list *l) {
    return l->open && l->at[l->count - 1].like;
}

/* Whether the list is the parts of a tensor whose sizes the model computes. */
static bool is_computed(const qs_list *l) {
    return l->open && l->at[0].split && l->at[0].end < 0;
}

static QS_NOINLINE qs_id moved_axis(qs_expand *e, qs_id x, int32_t rank, int64_t from, int64_t to) {
    int64_t perm[QSIM_MAX_RANK];
    int32_t n = 0;
    assert(from >= 0 && from < rank && to >= 0 && to < rank);
    for (int64_t i = 0; i < rank; i++)
        if (i != from)
            perm[n++] = i;
    for (int32_t i = rank - 1; i > to; i--)
        perm[i] = perm[i - 1];
    perm[to] = from;
    return from == to ? x : qs_expand_transpose(e, x, perm, rank);
}

/* Joins the tensors and `rest`, unless that is QS_NONE; with `stacks` along a new axis. */
static qs_id join_list(qs_expand *e, const qs_list *l, qs_id rest, int64_t axis, bool stacks) {
    qs_id in[QS_LIST_MOST + 1];
    int32_t count = 0;
    for (; count < l->count && !e->code; count++) {
        in[count] = add_item(e, &l->at[count]);
        if (stacks)
            in[count] = qs_expand_two(e, "Unsqueeze", in[count], list_of(e, axis));
    }
    if (e->code || count == 0)
        return rest;
    in[count] = rest;
    return qs_expand_concat(e, in, count + (rest != QS_NONE), axis);
}

qs_id qs_expand_sequence(qs_expand *e, qs_id sequence, qs_id rest, bool stacks) {
    qs_list l;
    expand_view(e, sequence, &l);
    return e->code ? rest : join_list(e, &l, rest, 0, stacks);
}

/* ---- SequenceInsert, SequenceErase ---- */

/* `at`, or `other` if `at` is below 0. */
static QS_NOINLINE qs_id negative_as(qs_expand *e, qs_id at, qs_id other) {
    return qs_expand_add(e, "Where", qs_expand_two(e, "Less", at, number_of(e, 0)), other, at);
}

/*
 * A position of a list of n tensors as one from 0 on, or an index that Gather refuses. Removal
 * takes -n ... n - 1, insertion -n ... n.
 */
static qs_id checked_position(qs_expand *e, qs_id at, qs_id n, bool inserts) {
    const qs_id zero = number_of(e, 0), one = number_of(e, 1);
    at = qs_expand_reshape(e, qs_expand_cast(e, at, QSIM_INT64), NULL, 0);
    if (inserts) {
        const qs_id end = qs_expand_two(e, "Add", n, one);
        at = negative_as(e, at, qs_expand_two(e, "Add", at, n));
        at = negative_as(e, at, end);
        n = end;
    }
    return qs_expand_two(e, "Gather", qs_expand_add(e, "Range", zero, n, one), at);
}

/* The size of the axis that is cut. */
static qs_id axis_size(qs_expand *e, const qs_item *t) {
    return size_of(e, t->tensor, t->axis);
}

/* The tensor whose slices are the list after the change. */
static qs_id changed_tensor(qs_expand *e, const qs_item *t, bool inserts) {
    const int64_t axis = t->axis;
    const qs_id start = list_of(e, 0), stop = list_of(e, INT64_MAX);
    const qs_id n = axis_size(e, t);
    qs_id at = qs_expand_in(e, inserts ? 2 : 1), in[3], v = inserts ? qs_expand_in(e, 1) : QS_NONE;
    int32_t count = 0;
    if (inserts && !t->keeps_axis)
        v = qs_expand_two(e, "Unsqueeze", v, list_of(e, axis));
    if (at == QS_NONE && !inserts)
        return cut(e, t->tensor, start, list_of(e, -1), axis);
    if (at != QS_NONE)
        at = as_list(e, checked_position(e, at, n, inserts));
    in[count++] = at == QS_NONE ? t->tensor : cut(e, t->tensor, start, at, axis);
    if (inserts)
        in[count++] = v;
    else
        at = qs_expand_two(e, "Add", at, list_of(e, 1));
    if (at != QS_NONE)
        in[count++] = cut(e, t->tensor, at, stop, axis);
    return qs_expand_concat(e, in, count, axis);
}

/* Gives a tensor the shape of another one, except for the size of an axis, which is unknown. */
static void set_shape(qs_expand *e, qs_id y, qs_id like, int32_t axis) {
    const qs_value v = e->graph->values[like];
    qs_dim dims[QSIM_MAX_RANK];
    if (v.rank < 0)
        return;
    qs_value_dims(&v, dims);
    dims[axis] = (qs_dim){-1, NULL};
    if (qs_value_set_shape(e->graph, y, v.dtype, v.rank, dims))
        qs_expand_no_memory(e);
}

/* A change of the slices of a tensor becomes the slices of a changed tensor; other lists are read
 * with their changes. */
static void expand_change(qs_expand *e) {
    qs_list l;
    const bool inserts = e->node->op == &qs_op_sequence_insert;
    const qs_infer x = expand_view(e, qs_expand_in(e, 0), &l);
    if (e->code || (l.open ? is_carried(&l) || is_computed(&l) : !qs_list_opens(&x, e->node, &l)))
        return;
    const qs_id all = changed_tensor(e, &l.at[0], inserts);
    if (!e->code)
        set_shape(e, all, l.at[0].tensor, l.at[0].axis);
    if (e->code)
        return;
    qs_node *n = &e->graph->nodes[e->node_id];
    n->op_type = "SplitToSequence";
    n->attr_count = 0;
    n->input_count = 1;
    qs_node_set_input(e->graph, e->node_id, 0, all);
    if (qs_node_set_int(e->graph, e->node_id, "axis", l.at[0].axis) ||
        qs_node_set_int(e->graph, e->node_id, "keepdims", l.at[0].keeps_axis)) {
        qs_expand_no_memory(e);
        return;
    }
    e->code = qs_op_resolve(e->graph, e->node_id, e->model, e->error);
    e->changed = true;
}

/* ---- SequenceAt ---- */

/*
 * The position may be any number if all tensors have one shape, which is checked when they are
 * joined.
 */
QS_COLD static int infer_at(qs_infer *x) {
    qs_list l;
    int64_t at;
    qs_const given;
    qs_dim dims[QSIM_MAX_RANK];
    qs_value v;
    bool alike = true;
    int code = qs_list_read(x, x->node->inputs[0], &l);
    const bool fixed = !code && !l.open && qs_infer_const(x, 1, &given);
    if (!code && !fixed)
        code = qs_infer_type(x, 1, QS_T(QSIM_INT32) | QS_T(QSIM_INT64));
    else if (!code)
        code = qs_list_position(x, 1, l.count, (int64_t)l.count - 1, &at);
    if (!code && l.count == 0)
        code = qs_infer_fail(x, QSIM_E_VALUE, "the sequence is empty");
    if (code)
        return code;
    if (fixed)
        v = qs_list_value(x->graph, &l.at[at], dims);
    else if (l.open)
        v = qs_list_value(x->graph, &l.at[l.count - 1], dims);
    else
        qs_list_merge(x->graph, &l, &v, dims, &alike);
    if (!alike)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "position '%s' is not a constant, and the tensors differ in shape",
                             x->in[1]->name);
    return qs_infer_out(x, 0, v.dtype, v.rank, v.dims);
}

/* Element `position` of x along an axis, which is dropped or stays with size 1. */
static qs_id pick(qs_expand *e, qs_id x, int64_t axis, bool keeps_axis) {
    const qs_id at = qs_expand_reshape(e, qs_expand_in(e, 1), (const int64_t[]){1}, keeps_axis);
    const qs_id y = qs_expand_two(e, "Gather", x, at);
    qs_expand_int(e, y, "axis", axis);
    return y;
}

/*
 * The sum of computed sizes, which checked_split compares with the axis. If `split` is a list, this
 * is the sum of magnitudes, so that a negative size is refused. If `split` is the size of each
 * part, it is the axis, or a size below 1 itself, so that this size is refused.
 */
static qs_id sum_parts(qs_expand *e, const qs_item *t, qs_id split, bool listed) {
    if (listed)
        return qs_expand_one(e, "ReduceL1", split);
    const qs_id none = qs_expand_two(e, "Less", split, number_of(e, 1));
    return qs_expand_add(e, "Where", none, split, axis_size(e, t));
}

/* The number of parts whose sizes are computed: `split` is a list of them, or the size of each. */
static qs_id count_parts(qs_expand *e, qs_id sum, qs_id split, bool listed) {
    if (listed)
        return size_of(e, split, 0);
    const qs_id all = qs_expand_two(e, "Add", sum, split);
    return qs_expand_two(e, "Div", qs_expand_two(e, "Sub", all, number_of(e, 1)), split);
}

/* Cuts the tensor by a Split, whose rule refuses sizes that the run finds not to add up. */
static qs_id checked_split(qs_expand *e, const qs_item *t, qs_id *sizes, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        sizes[i] = as_list(e, sizes[i]);
    const qs_id in[2] = {t->tensor, qs_expand_concat(e, sizes, count, 0)};
    const qs_id y = qs_expand_many(e, "Split", in, 2, count);
    qs_expand_int(e, y, "axis", t->axis);
    return y;
}

/* The tensor whose parts have computed sizes; the rules have checked a size that is constant. */
static qs_id computed_whole(qs_expand *e, const qs_item *t) {
    const qs_id split = t->split->inputs[1];
    const qs_value *v = &e->graph->values[split];
    const bool listed = v->rank == 1;
    if (v->data || v->rank < 0)
        return t->tensor;
    qs_id sum = sum_parts(e, t, qs_expand_cast(e, split, QSIM_INT64), listed);
    return checked_split(e, t, &sum, 1);
}

/*
 * Part `at` of a tensor whose parts have computed sizes; with at QS_NONE, the number of parts.
 * Returns QS_NONE if the rank of `split`, a list or one size, is not known yet.
 */
static qs_id computed_part(qs_expand *e, const qs_item *t, qs_id at) {
    const qs_id given = t->split->inputs[1];
    const int32_t rank = e->graph->values[given].rank;
    const bool listed = rank == 1;
    if (rank < 0)
        return QS_NONE;
    const qs_id split = qs_expand_cast(e, given, QSIM_INT64);
    const qs_id sum = sum_parts(e, t, split, listed), n = count_parts(e, sum, split, listed);
    qs_id sizes[3];
    if (at == QS_NONE)
        return n;
    at = checked_position(e, at, n, false);
    if (listed) {
        const qs_id ends = qs_expand_two(e, "CumSum", split, number_of(e, 0));
        sizes[1] = qs_expand_two(e, "Gather", split, at);
        sizes[0] = qs_expand_two(e, "Sub", qs_expand_two(e, "Gather", ends, at), sizes[1]);
    } else {
        sizes[0] = qs_expand_two(e, "Mul", at, split);
    }
    const qs_id rest = qs_expand_two(e, "Sub", sum, sizes[0]);
    if (!listed)
        sizes[1] = qs_expand_two(e, "Min", split, rest);
    sizes[2] = qs_expand_two(e, "Sub", rest, sizes[1]);
    return checked_split(e, t, sizes, 3) + 1;
}

/* Whether the parts of a tensor are all of it. */
static bool whole_axis(const qs_graph *g, const qs_list *l) {
    return g->values[l->at[0].tensor].dims[l->at[0].axis].size == l->count;
}

static void expand_at(qs_expand *e) {
    qs_list l;
    int64_t at;
    qs_const given;
    const qs_infer x = expand_view(e, qs_expand_in(e, 0), &l);
    if (e->code || is_carried(&l))
        return;
    if (!l.open && qs_infer_const(&x, 1, &given)) {
        e->code = qs_list_position(&x, 1, l.count, (int64_t)l.count - 1, &at);
        e->out[0] = e->code ? QS_NONE : add_item(e, &l.at[at]);
    } else if (is_computed(&l)) {
        e->out[0] = computed_part(e, &l.at[0], qs_expand_in(e, 1));
    } else if (l.open || (qs_list_slices(&l) && whole_axis(e->graph, &l))) {
        e->out[0] = pick(e, l.at[0].tensor, l.at[0].axis, l.at[0].keeps_axis);
    } else {
        e->out[0] = pick(e, join_list(e, &l, QS_NONE, 0, true), 0, false);
    }
}

/* ---- SequenceLength ---- */

QS_COLD static int infer_length(qs_infer *x) {
    qs_list l;
    const int code = qs_list_read(x, x->node->inputs[0], &l);
    return code ? code : qs_infer_out(x, 0, QSIM_INT64, 0, NULL);
}

static void expand_length(qs_expand *e) {
    qs_list l;
    expand_view(e, qs_expand_in(e, 0), &l);
    if (e->code || is_carried(&l))
        return;
    if (!l.open) {
        e->out[0] = number_of(e, l.count);
        return;
    }
    e->out[0] = is_computed(&l) ? computed_part(e, &l.at[0], QS_NONE) : axis_size(e, &l.at[0]);
}

/* ---- ConcatFromSequence ---- */

/* Adds the sizes of one tensor to those of the result, in which `axis` counts; `stacks`: in a new
 * axis. */
static int join(const qs_infer *x, const qs_value *v, int32_t axis, bool stacks, int32_t rank,
                qs_dim *dims, bool first) {
    const int64_t size = stacks ? 1 : v->dims[axis].size;
    for (int32_t i = 0; i < rank; i++) {
        const qs_dim *d = stacks && i == axis ? NULL : &v->dims[i - (stacks && i > axis)];
        if (first && d)
            dims[i] = *d;
        else if (i != axis && d && dims[i].size < 0)
            dims[i] = *d;
        else if (i != axis && d && d->size >= 0 && d->size != dims[i].size)
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d has sizes %lld and %lld", (int)i,
                                 (long long)dims[i].size, (long long)d->size);
    }
    if (first)
        dims[axis] = (qs_dim){size, NULL};
    else
        dims[axis].size = size < 0 || dims[axis].size < 0 ? -1 : dims[axis].size + size;
    return QSIM_OK;
}

QS_COLD static int infer_concat(qs_infer *x) {
    qs_list l;
    qs_dim dims[QSIM_MAX_RANK], own[QSIM_MAX_RANK];
    const bool stacks = qs_node_int(x->node, "new_axis", 0) != 0;
    int32_t axis = 0, rank = -1;
    int code = qs_list_read(x, x->node->inputs[0], &l);
    if (!code && !qs_node_attr(x->node, "axis"))
        code = qs_infer_fail(x, QSIM_E_VALUE, "attribute '%s' is missing", "axis");
    if (!code && l.count == 0)
        code = qs_infer_fail(x, QSIM_E_VALUE, "the sequence is empty");
    for (int32_t i = 0; i < l.count && !code; i++) {
        const qs_value v = qs_list_value(x->graph, &l.at[i], own);
        if (v.rank < 0)
            return qs_infer_unknown(x, v.dtype);
        if (i == 0) {
            rank = v.rank + stacks;
            if (rank > QSIM_MAX_RANK)
                return qs_infer_fail(x, QSIM_E_LIMIT, "rank %d", (int)rank);
            code = qs_infer_axis(x, qs_node_int(x->node, "axis", 0), rank, &axis);
        } else if (rank != v.rank + stacks) {
            code = qs_infer_fail(x, QSIM_E_SHAPE, "tensors of ranks %d and %d",
                                 (int)(rank - stacks), (int)v.rank);
        }
        if (!code)
            code = join(x, &v, axis, stacks, rank, dims, i == 0);
    }
    if (l.open && !code)
        dims[axis] = (qs_dim){-1, NULL};
    return code ? code : qs_infer_out(x, 0, qs_list_like(x->graph, &l.at[0])->dtype, rank, dims);
}

/* Joins the slices of a tensor: their axis becomes the new one, or merges with the joined one. */
static void join_slices(qs_expand *e, const qs_item *t, int64_t axis, bool stacks) {
    const int32_t rank = e->graph->values[t->tensor].rank + t->keeps_axis;
    axis += axis < 0 ? rank - !stacks : 0;
    if (t->keeps_axis && !stacks && axis == t->axis) {
        e->out[0] = t->end < 0 ? computed_whole(e, t) : t->tensor;
        return;
    }
    if (t->end < 0 || e->graph->values[t->tensor].rank < 0)
        return; /* it stays until its sizes are known */
    qs_id y = moved_axis(e, t->tensor, rank - t->keeps_axis, t->axis, 0);
    if (t->keeps_axis)
        y = qs_expand_two(e, "Unsqueeze", y, list_of(e, t->axis + 1));
    y = moved_axis(e, y, rank, 0, axis);
    if (stacks) {
        e->out[0] = y;
        return;
    }
    const int64_t cut[4] = {axis, 1, 1, rank - axis - 2};
    const qs_id sizes = qs_expand_split(e, qs_expand_one(e, "Shape", y), 0, cut, 4);
    if (e->code)
        return;
    const qs_id parts[3] = {sizes, qs_expand_two(e, "Mul", sizes + 1, sizes + 2), sizes + 3};
    const qs_id shape = qs_expand_concat(e, parts, 3, 0);
    e->out[0] = qs_expand_two(e, "Reshape", y, shape);
    if (!e->standard)
        qs_expand_int(e, e->out[0], "allowzero", 1);
}

static void expand_concat(qs_expand *e) {
    qs_list l;
    const int64_t axis = qs_node_int(e->node, "axis", 0);
    const bool stacks = qs_node_int(e->node, "new_axis", 0) != 0;
    expand_view(e, qs_expand_in(e, 0), &l);
    if (e->code || is_carried(&l))
        return;
    if (l.open)
        join_slices(e, &l.at[0], axis, stacks);
    else
        e->out[0] = join_list(e, &l, QS_NONE, axis, stacks);
}

/* ---- rows ---- */

static const qs_attr_rule empty_attrs[] = {{"dtype", QSIM_ATTR_INT, 11, 0}};
static const qs_attr_rule split_attrs[] = {{"axis", QSIM_ATTR_INT, 11, 0},
                                           {"keepdims", QSIM_ATTR_INT, 11, 0}};
static const qs_attr_rule concat_attrs[] = {{"axis", QSIM_ATTR_INT, 11, 0},
                                            {"new_axis", QSIM_ATTR_INT, 11, 0}};

QS_OP(sequence_construct, .name = "SequenceConstruct", .since = 11, .min_in = 1, .max_in = -1,
      .traits = QS_MAKES_SEQUENCE, .infer = qs_sequence_infer);
QS_OP(sequence_empty, .name = "SequenceEmpty", .since = 11, QS_ATTRS(empty_attrs),
      .traits = QS_MAKES_SEQUENCE, .infer = qs_sequence_infer);
QS_OP(sequence_insert, .name = "SequenceInsert", .since = 11, .min_in = 2, .max_in = 3,
      .traits = QS_MAKES_SEQUENCE | QS_TAKES_SEQUENCE, .infer = qs_sequence_infer,
      .expand = expand_change);
QS_OP(sequence_erase, .name = "SequenceErase", .since = 11, .min_in = 1, .max_in = 2,
      .traits = QS_MAKES_SEQUENCE | QS_TAKES_SEQUENCE, .infer = qs_sequence_infer,
      .expand = expand_change);
QS_OP(split_to_sequence, .name = "SplitToSequence", .since = 11, .min_in = 1, .max_in = 2,
      QS_ATTRS(split_attrs), .traits = QS_MAKES_SEQUENCE, .infer = qs_sequence_infer);
QS_OP(sequence_at, .name = "SequenceAt", .since = 11, .min_in = 2, .traits = QS_TAKES_SEQUENCE,
      .infer = infer_at, .expand = expand_at);
QS_OP(sequence_length, .name = "SequenceLength", .since = 11, .min_in = 1,
      .traits = QS_TAKES_SEQUENCE, .infer = infer_length, .expand = expand_length);
QS_OP(concat_from_sequence, .name = "ConcatFromSequence", .since = 11, .min_in = 1,
      QS_ATTRS(concat_attrs), .traits = QS_TAKES_SEQUENCE, .infer = infer_concat,
      .expand = expand_concat);
