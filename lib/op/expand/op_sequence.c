/* SPDX-License-Identifier: MIT */
/*
 * Sequences of tensors. A sequence exists only while a model is compiled: an operator that reads
 * one is expanded into operators on its tensors. So the operators that make a sequence and its
 * length have to be known from the file, but for sequences that end with any number of tensors
 * alike: the slices of a tensor, what a Loop appends to, which pass_loops.c makes slices of a
 * tensor, and those that a subgraph captures, which pass_sequences.c makes inside it.
 */
#include "op/expand.h"

/* Most tensors in a sequence, and most insertions and removals that make one: each reader walks
 * over all of them. */
#define MOST 512

#define LAST INT64_MAX /* a position that is left out */

/* A tensor in a sequence: a value, or a part of the value that SplitToSequence cuts. */
typedef struct item {
    qs_id tensor;
    const qs_node *split; /* NULL: the value as a whole */
    int64_t begin, end;   /* part of the axis */
    int32_t axis;
    bool keeps_axis;
    const qs_value *like; /* a value of its type and shape, which it has not yet; else NULL */
} item;

typedef struct list {
    int32_t count;
    bool open; /* the last one stands for any number of tensors of its shape, sizes unknown */
    item at[MOST + 1]; /* one more for what a Loop appends */
} list;

static const qs_node *maker(const qs_graph *g, qs_id value) {
    const qs_id id = value == QS_NONE ? QS_NONE : g->values[value].producer;
    return id == QS_NONE ? NULL : &g->nodes[id];
}

/* The rules' view of a node of the graph, for messages of x. */
static qs_infer view(const qs_infer *x, const qs_node *n) {
    qs_infer v = *x;
    v.node = n;
    for (int32_t i = 0; i < n->input_count && i < (int32_t)QS_COUNT(v.in); i++)
        v.in[i] = n->inputs[i] == QS_NONE ? NULL : &x->graph->values[n->inputs[i]];
    return v;
}

static int too_long(const qs_infer *x) {
    return qs_infer_fail(x, QSIM_E_LIMIT, "a sequence of more than %d tensors or insertions", MOST);
}

/* Reads input `index`, a position from 0 to bound; negative ones count from `length`. */
static int read_position(const qs_infer *x, int32_t index, int64_t length, int64_t bound,
                         int64_t *at) {
    int32_t count;
    int code = qs_infer_ints(x, index, at, 1, &count);
    if (code)
        return code;
    if (count == QS_DYNAMIC)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "position '%s' is not a constant",
                             qs_infer_in(x, index)->name);
    if (count == QS_ABSENT)
        *at = LAST;
    else if (count != 1)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the position has no element");
    const int64_t given = *at;
    *at = given == LAST ? bound : given < 0 ? given + length : given;
    if (*at < 0 || *at > bound)
        return qs_infer_fail(x, QSIM_E_VALUE, "position %lld is outside of a sequence of %lld",
                             (long long)given, (long long)length);
    return QSIM_OK;
}

/* ---- SplitToSequence ---- */

/*
 * Reads the size of each part: a list, parts of one size of which the last may be smaller, or 1.
 * *count is QS_DYNAMIC for any number of parts of size 1.
 */
static int read_sizes(const qs_infer *x, int64_t dim, int64_t *sizes, int32_t *count, bool *keeps) {
    int code = qs_infer_ints(x, 1, sizes, MOST, count);
    if (code)
        return code;
    if (*count == QS_DYNAMIC)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "split is not a constant");
    *keeps = *count != QS_ABSENT || qs_node_int(x->node, "keepdims", 1) != 0;
    if (*count >= 0 && x->in[1]->rank == 1)
        return QSIM_OK;
    const int64_t size = *count == QS_ABSENT ? 1 : sizes[0];
    if (size < 1)
        return qs_infer_fail(x, QSIM_E_VALUE, "split is %lld", (long long)size);
    *count = QS_DYNAMIC;
    if (size == 1 && (dim < 0 || dim > MOST))
        return QSIM_OK;
    if (dim < 0)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "the size of the axis that is split must be in the file");
    if ((dim - 1) / size >= MOST)
        return too_long(x);
    *count = (int32_t)(dim / size + (dim % size != 0));
    for (int32_t i = 0; i < *count; i++)
        sizes[i] = i < *count - 1 || dim % size == 0 ? size : dim % size;
    return QSIM_OK;
}

static int read_split(const qs_infer *x, list *l) {
    const qs_value *v = x->in[0];
    int64_t sizes[MOST], dim, begin = 0;
    int32_t axis;
    bool keeps = true;
    if (v->rank < 0)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "the rank of its input must be in the file");
    int code = qs_infer_axis(x, qs_node_int(x->node, "axis", 0), v->rank, &axis);
    if (code)
        return code;
    dim = v->dims[axis].size;
    code = read_sizes(x, dim, sizes, &l->count, &keeps);
    if (!code && l->count == QS_DYNAMIC) {
        l->open = true;
        l->at[l->count = 0] = (item){x->node->inputs[0], x->node, 0, 1, axis, keeps, NULL};
        l->count++;
        return QSIM_OK;
    }
    for (int32_t i = 0; i < l->count && !code; i++) {
        if (sizes[i] < 0 || (dim >= 0 && sizes[i] > dim - begin))
            return qs_infer_fail(x, QSIM_E_SHAPE, "part %d of %lld does not fit axis %d", (int)i,
                                 (long long)sizes[i], (int)axis);
        l->at[i] = (item){x->node->inputs[0], x->node, begin, begin + sizes[i], axis, keeps, NULL};
        begin += sizes[i];
    }
    if (!code && dim >= 0 && begin != dim)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "the parts have %lld of %lld", (long long)begin,
                             (long long)dim);
    return code;
}

/* ---- the tensors of a sequence ---- */

extern const qs_op qs_op_sequence_construct, qs_op_sequence_insert, qs_op_sequence_erase,
    qs_op_split_to_sequence, qs_op_loop;

static int read_construct(const qs_infer *x, list *l) {
    if (x->node->input_count > MOST)
        return too_long(x);
    for (; l->count < x->node->input_count; l->count++)
        l->at[l->count] = (item){.tensor = x->node->inputs[l->count]};
    return QSIM_OK;
}

static int insert(const qs_infer *x, list *l) {
    int64_t at;
    if (l->count == MOST)
        return too_long(x);
    const int code = read_position(x, 2, l->count, l->count, &at);
    if (code)
        return code;
    memmove(&l->at[at + 1], &l->at[at], (size_t)(l->count - at) * sizeof(item));
    l->at[at] = (item){.tensor = x->node->inputs[1]};
    l->count++;
    return QSIM_OK;
}

static int erase(const qs_infer *x, list *l) {
    int64_t at;
    const int code = read_position(x, 1, l->count, (int64_t)l->count - 1, &at);
    if (code)
        return code;
    l->count--;
    memmove(&l->at[at], &l->at[at + 1], (size_t)(l->count - at) * sizeof(item));
    return QSIM_OK;
}

static bool changes(const qs_node *n) {
    return n->op == &qs_op_sequence_insert || n->op == &qs_op_sequence_erase;
}

/* The tensors of a Loop's state *sequence, which becomes the one before the Loop. */
static void read_carried(const qs_node *loop, qs_id *sequence, item *t) {
    const qs_graph *body = qs_node_subgraph(loop, "body")->graph;
    int32_t state = 0;
    while (loop->outputs[state] != *sequence)
        state++;
    *t = (item){.tensor = *sequence, .like = &body->values[qs_loop_appended(loop, state)]};
    *sequence = loop->inputs[state + 2];
}

/* Lists the tensors of a sequence. */
static int read_list(const qs_infer *x, qs_id sequence, list *l) {
    const qs_node *changed[MOST], *n = maker(x->graph, sequence);
    item carried = {.tensor = QS_NONE};
    int32_t count = 0;
    int code = QSIM_OK;
    l->count = 0;
    l->open = false;
    if (n && n->op == &qs_op_loop) {
        read_carried(n, &sequence, &carried);
        n = maker(x->graph, sequence);
    }
    for (; n && changes(n); n = maker(x->graph, sequence)) {
        if (count == MOST)
            return too_long(x);
        changed[count++] = n;
        sequence = n->inputs[0];
    }
    qs_infer first = n ? view(x, n) : *x;
    if (n && n->op == &qs_op_split_to_sequence)
        code = read_split(&first, l);
    else if (n && n->op == &qs_op_sequence_construct)
        code = read_construct(&first, l);
    const qs_value *given = &x->graph->values[sequence];
    if (!code && !n && given->is_sequence && given->is_input && !count && !carried.like) {
        l->at[l->count++] = (item){.tensor = sequence, .like = given};
        l->open = true;
    } else if (!code && (given->is_sequence || (l->open && (count || carried.like))))
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "the length of sequence '%s' is not known here",
                             x->graph->values[sequence].name);
    while (count > 0 && !code) {
        const qs_infer at = view(x, changed[--count]);
        code = at.node->op == &qs_op_sequence_insert ? insert(&at, l) : erase(&at, l);
    }
    if (!code && carried.like) {
        l->at[l->count++] = carried;
        l->open = true;
    }
    return code;
}

static const qs_value *tensor_of(const qs_graph *g, const item *t) {
    return t->like ? t->like : &g->values[t->tensor];
}

/* Type and shape of a tensor in a sequence. */
static qs_value value_of(const qs_graph *g, const item *t, qs_dim *dims) {
    qs_value v = *tensor_of(g, t);
    if (!t->split)
        return v;
    memcpy(dims, v.dims, (size_t)v.rank * sizeof(*dims));
    dims[t->axis] = (qs_dim){t->end - t->begin, NULL};
    if (!t->keeps_axis) {
        v.rank--;
        memmove(&dims[t->axis], &dims[t->axis + 1], (size_t)(v.rank - t->axis) * sizeof(*dims));
    }
    v.dims = dims;
    return v;
}

/* What all tensors of a list have in common; *alike: their sizes may be the same. */
static void merge(const qs_graph *g, const list *l, qs_value *like, qs_dim *dims, bool *alike) {
    qs_dim own[QSIM_MAX_RANK];
    *like = (qs_value){.rank = -1, .dims = dims};
    *alike = true;
    for (int32_t i = 0; i < l->count; i++) {
        const qs_value v = value_of(g, &l->at[i], own);
        const bool ranked = v.rank >= 0 && (i == 0 || like->rank >= 0);
        if (v.dtype)
            like->dtype = v.dtype;
        *alike = *alike && (!ranked || i == 0 || v.rank == like->rank);
        if (i == 0 && ranked)
            memcpy(dims, v.dims, (size_t)v.rank * sizeof(*dims));
        like->rank = ranked && *alike ? v.rank : -1;
        for (int32_t k = 0; k < like->rank; k++) {
            const int64_t a = dims[k].size, b = v.dims[k].size;
            *alike = *alike && (a == b || a < 0 || b < 0);
            if (a != b || dims[k].symbol != v.dims[k].symbol)
                dims[k] = (qs_dim){a == b ? a : -1, NULL};
        }
    }
}

QS_NOINLINE int qs_sequence_tensors(const qs_infer *x, qs_id sequence, qs_value *like,
                                    qs_dim dims[QSIM_MAX_RANK]) {
    list l;
    bool alike;
    const int code = read_list(x, sequence, &l);
    if (!code)
        merge(x->graph, &l, like, dims, &alike);
    return code;
}

/* Checks that all tensors have one type. */
static int check_types(const qs_infer *x, const list *l) {
    for (int32_t i = 1; i < l->count; i++) {
        const qs_value *a = tensor_of(x->graph, &l->at[0]), *b = tensor_of(x->graph, &l->at[i]);
        if (a->dtype != QSIM_UNDEFINED && b->dtype != QSIM_UNDEFINED && a->dtype != b->dtype)
            return qs_infer_fail(x, QSIM_E_DTYPE, "tensor %d of the sequence is %s, the first %s",
                                 (int)i, qsim_dtype_name(b->dtype), qsim_dtype_name(a->dtype));
    }
    return QSIM_OK;
}

/* Shape rule of nodes that make a sequence, whose value has neither type nor shape. */
QS_COLD static int infer_sequence(qs_infer *x) {
    list l;
    const qs_id from = qs_node_input(x->node, 0);
    if (x->node->op == &qs_op_sequence_insert && x->graph->values[from].is_sequence &&
        x->graph->values[from].producer == QS_NONE && !qs_infer_in(x, 2))
        return QSIM_OK; /* in a Loop's body, whose rule checks where it goes */
    const int code = read_list(x, x->node->outputs[0], &l);
    const qs_value *y = &x->graph->values[x->node->outputs[0]];
    if (!code && y->is_output)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "output '%s' is a sequence, not a tensor",
                             y->name);
    return code ? code : check_types(x, &l);
}

/* Returns the value of a tensor in a sequence; a part is cut by a new node. */
static qs_id add_item(qs_expand *e, const item *t) {
    if (!t->split)
        return t->tensor;
    const int64_t axis = t->axis;
    const qs_id in[4] = {t->tensor, qs_expand_list(e, &t->begin, 1), qs_expand_list(e, &t->end, 1),
                         qs_expand_list(e, &axis, 1)};
    const qs_id part = qs_expand_many(e, "Slice", in, 4, 1);
    return t->keeps_axis ? part : qs_expand_add(e, "Squeeze", part, in[3], QS_NONE);
}

/*
 * Lists the tensors of a sequence for `expand`; this cannot fail, since infer has accepted it. What
 * a Loop appends has no value here: a pass replaces it, and the node stays until then.
 */
static qs_infer expand_view(qs_expand *e, qs_id sequence, list *l) {
    qs_infer x = {.graph = e->graph,
                  .node_id = e->node_id,
                  .values = e->graph->values,
                  .model = e->model,
                  .error = e->error};
    x = view(&x, &e->graph->nodes[e->node_id]);
    e->code = read_list(&x, sequence, l);
    return x;
}

static bool is_carried(const list *l) {
    return l->open && l->at[l->count - 1].like;
}

static qs_id moved_axis(qs_expand *e, qs_id x, int32_t rank, int64_t from, int64_t to) {
    int64_t perm[QSIM_MAX_RANK];
    int32_t n = 0;
    for (int64_t i = 0; i < rank; i++)
        if (i != from)
            perm[n++] = i;
    memmove(&perm[to + 1], &perm[to], (size_t)(rank - 1 - to) * sizeof(*perm));
    perm[to] = from;
    return from == to ? x : qs_expand_transpose(e, x, perm, rank);
}

/* Joins the tensors and `rest`, unless that is QS_NONE; with `stacks` along a new axis. */
static qs_id join_list(qs_expand *e, const list *l, qs_id rest, bool stacks) {
    qs_id in[MOST + 1];
    const int64_t zero = 0;
    int32_t count = 0;
    for (; count < l->count && !e->code; count++) {
        in[count] = add_item(e, &l->at[count]);
        if (stacks)
            in[count] =
                qs_expand_add(e, "Unsqueeze", in[count], qs_expand_list(e, &zero, 1), QS_NONE);
    }
    if (e->code || count == 0)
        return rest;
    in[count] = rest;
    const qs_id y = qs_expand_many(e, "Concat", in, count + (rest != QS_NONE), 1);
    qs_expand_int(e, y, "axis", 0);
    return y;
}

qs_id qs_expand_sequence(qs_expand *e, qs_id sequence, qs_id rest, bool stacks) {
    list l;
    expand_view(e, sequence, &l);
    return e->code ? rest : join_list(e, &l, rest, stacks);
}

/* ---- SequenceAt ---- */

/*
 * The position may be any number if all tensors have one shape, which is checked when they are
 * joined.
 */
QS_COLD static int infer_at(qs_infer *x) {
    list l;
    int64_t at;
    qs_const given;
    qs_dim dims[QSIM_MAX_RANK];
    qs_value v;
    bool alike = true;
    int code = read_list(x, x->node->inputs[0], &l);
    const bool fixed = !code && !l.open && qs_infer_const(x, 1, &given);
    if (!code && !fixed)
        code = qs_infer_type(x, 1, QS_T(QSIM_INT32) | QS_T(QSIM_INT64));
    else if (!code)
        code = read_position(x, 1, l.count, (int64_t)l.count - 1, &at);
    if (!code && l.count == 0)
        code = qs_infer_fail(x, QSIM_E_VALUE, "the sequence is empty");
    if (code)
        return code;
    if (fixed)
        v = value_of(x->graph, &l.at[at], dims);
    else if (l.open)
        v = value_of(x->graph, &l.at[l.count - 1], dims);
    else
        merge(x->graph, &l, &v, dims, &alike);
    if (!alike)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "position '%s' is not a constant, and the tensors differ in shape",
                             x->in[1]->name);
    return qs_infer_out(x, 0, v.dtype, v.rank, v.dims);
}

/* Element `position` of x along an axis, which goes or stays with size 1. */
static qs_id pick(qs_expand *e, qs_id x, int64_t axis, bool keeps_axis) {
    const qs_id at = qs_expand_reshape(e, qs_expand_in(e, 1), (const int64_t[]){1}, 1);
    const qs_id y = qs_expand_add(e, "Gather", x, at, QS_NONE);
    qs_expand_int(e, y, "axis", axis);
    return keeps_axis ? y : qs_expand_add(e, "Squeeze", y, qs_expand_list(e, &axis, 1), QS_NONE);
}

/* Whether the tensors are all parts of size 1 of one tensor, in order. */
static bool are_slices(const qs_graph *g, const list *l) {
    const item *t = l->at;
    bool same = l->count > 0 && t->split && g->values[t->tensor].dims[t->axis].size == l->count;
    for (int32_t i = 0; i < l->count && same; i++)
        same = t[i].split == t->split && t[i].begin == i && t[i].end == i + 1;
    return same;
}

static void expand_at(qs_expand *e) {
    list l;
    int64_t at;
    qs_const given;
    const qs_infer x = expand_view(e, qs_expand_in(e, 0), &l);
    if (e->code || is_carried(&l))
        return;
    if (!l.open && qs_infer_const(&x, 1, &given)) {
        e->code = read_position(&x, 1, l.count, (int64_t)l.count - 1, &at);
        e->out[0] = e->code ? QS_NONE : add_item(e, &l.at[at]);
    } else if (l.open || are_slices(e->graph, &l)) {
        e->out[0] = pick(e, l.at[0].tensor, l.at[0].axis, l.at[0].keeps_axis);
    } else {
        e->out[0] = pick(e, join_list(e, &l, QS_NONE, true), 0, false);
    }
}

/* ---- SequenceLength ---- */

QS_COLD static int infer_length(qs_infer *x) {
    list l;
    const int code = read_list(x, x->node->inputs[0], &l);
    return code ? code : qs_infer_out(x, 0, QSIM_INT64, 0, NULL);
}

static void expand_length(qs_expand *e) {
    list l;
    expand_view(e, qs_expand_in(e, 0), &l);
    if (e->code || is_carried(&l))
        return;
    if (!l.open) {
        e->out[0] = qs_expand_number(e, QSIM_INT64, l.count);
        return;
    }
    const qs_id sizes = qs_expand_add(e, "Shape", l.at[0].tensor, QS_NONE, QS_NONE);
    const qs_id at = qs_expand_number(e, QSIM_INT64, l.at[0].axis);
    e->out[0] = qs_expand_add(e, "Gather", sizes, at, QS_NONE);
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
    list l;
    qs_dim dims[QSIM_MAX_RANK], own[QSIM_MAX_RANK];
    const bool stacks = qs_node_int(x->node, "new_axis", 0) != 0;
    int32_t axis = 0, rank = -1;
    int code = read_list(x, x->node->inputs[0], &l);
    if (!code && !qs_node_attr(x->node, "axis"))
        code = qs_infer_fail(x, QSIM_E_VALUE, "attribute axis is missing");
    if (!code && l.count == 0)
        code = qs_infer_fail(x, QSIM_E_VALUE, "the sequence is empty");
    for (int32_t i = 0; i < l.count && !code; i++) {
        const qs_value v = value_of(x->graph, &l.at[i], own);
        if (v.rank < 0)
            return qs_infer_out(x, 0, v.dtype, -1, NULL);
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
    return code ? code : qs_infer_out(x, 0, tensor_of(x->graph, &l.at[0])->dtype, rank, dims);
}

/* Joins the slices of a tensor: their axis becomes the new one, or merges with the joined one. */
static void join_slices(qs_expand *e, const item *t, int64_t axis, bool stacks) {
    const int32_t rank = e->graph->values[t->tensor].rank + t->keeps_axis;
    const int64_t slot = (int64_t)t->axis + 1;
    axis += axis < 0 ? rank - !stacks : 0;
    if (t->keeps_axis && !stacks && axis == t->axis) {
        e->out[0] = t->tensor;
        return;
    }
    qs_id y = moved_axis(e, t->tensor, rank - t->keeps_axis, t->axis, 0);
    if (t->keeps_axis)
        y = qs_expand_add(e, "Unsqueeze", y, qs_expand_list(e, &slot, 1), QS_NONE);
    y = moved_axis(e, y, rank, 0, axis);
    if (stacks) {
        e->out[0] = y;
        return;
    }
    const int64_t cut[4] = {axis, 1, 1, rank - axis - 2};
    const qs_id sizes =
        qs_expand_split(e, qs_expand_add(e, "Shape", y, QS_NONE, QS_NONE), 0, cut, 4);
    if (e->code)
        return;
    const qs_id parts[3] = {sizes, qs_expand_add(e, "Mul", sizes + 1, sizes + 2, QS_NONE),
                            sizes + 3};
    const qs_id shape = qs_expand_many(e, "Concat", parts, 3, 1);
    qs_expand_int(e, shape, "axis", 0);
    e->out[0] = qs_expand_add(e, "Reshape", y, shape, QS_NONE);
    if (!e->standard)
        qs_expand_int(e, e->out[0], "allowzero", 1);
}

static void expand_concat(qs_expand *e) {
    list l;
    qs_id in[MOST];
    const int64_t axis = qs_node_int(e->node, "axis", 0);
    const bool stacks = qs_node_int(e->node, "new_axis", 0) != 0;
    expand_view(e, qs_expand_in(e, 0), &l);
    if (e->code || is_carried(&l))
        return;
    if (l.open) {
        join_slices(e, &l.at[0], axis, stacks);
        return;
    }
    for (int32_t i = 0; i < l.count && !e->code; i++) {
        in[i] = add_item(e, &l.at[i]);
        if (stacks)
            in[i] = qs_expand_add(e, "Unsqueeze", in[i], qs_expand_list(e, &axis, 1), QS_NONE);
    }
    if (e->code)
        return;
    e->out[0] = qs_expand_many(e, "Concat", in, l.count, 1);
    qs_expand_int(e, e->out[0], "axis", axis);
}

/* ---- rows ---- */

static const qs_attr_rule empty_attrs[] = {{"dtype", QS_ATTR_INT, 11, 0}};
static const qs_attr_rule split_attrs[] = {{"axis", QS_ATTR_INT, 11, 0},
                                           {"keepdims", QS_ATTR_INT, 11, 0}};
static const qs_attr_rule concat_attrs[] = {{"axis", QS_ATTR_INT, 11, 0},
                                            {"new_axis", QS_ATTR_INT, 11, 0}};

QS_OP(sequence_construct, .name = "SequenceConstruct", .since = 11, .min_in = 1, .max_in = -1,
      .traits = QS_MAKES_SEQUENCE, .infer = infer_sequence);
QS_OP(sequence_empty, .name = "SequenceEmpty", .since = 11, QS_ATTRS(empty_attrs),
      .traits = QS_MAKES_SEQUENCE, .infer = infer_sequence);
QS_OP(sequence_insert, .name = "SequenceInsert", .since = 11, .min_in = 2, .max_in = 3,
      .traits = QS_MAKES_SEQUENCE | QS_TAKES_SEQUENCE, .infer = infer_sequence);
QS_OP(sequence_erase, .name = "SequenceErase", .since = 11, .min_in = 1, .max_in = 2,
      .traits = QS_MAKES_SEQUENCE | QS_TAKES_SEQUENCE, .infer = infer_sequence);
QS_OP(split_to_sequence, .name = "SplitToSequence", .since = 11, .min_in = 1, .max_in = 2,
      QS_ATTRS(split_attrs), .traits = QS_MAKES_SEQUENCE, .infer = infer_sequence);
QS_OP(sequence_at, .name = "SequenceAt", .since = 11, .min_in = 2, .traits = QS_TAKES_SEQUENCE,
      .infer = infer_at, .expand = expand_at);
QS_OP(sequence_length, .name = "SequenceLength", .since = 11, .min_in = 1,
      .traits = QS_TAKES_SEQUENCE, .infer = infer_length, .expand = expand_length);
QS_OP(concat_from_sequence, .name = "ConcatFromSequence", .since = 11, .min_in = 1,
      QS_ATTRS(concat_attrs), .traits = QS_TAKES_SEQUENCE, .infer = infer_concat,
      .expand = expand_concat);
