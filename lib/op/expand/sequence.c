/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "op/expand/sequence.h"

#define LAST INT64_MAX /* a position that is left out */

/* The node that makes a sequence, which may have other names (Identity): *value becomes the first.
 */
static const qs_node *maker(const qs_graph *g, qs_id *value) {
    qs_id id = QS_NONE;
    while (*value != QS_NONE && (id = g->values[*value].producer) != QS_NONE &&
           g->nodes[id].op == &qs_op_identity)
        *value = g->nodes[id].inputs[0];
    return id == QS_NONE ? NULL : &g->nodes[id];
}

qs_infer qs_list_view(const qs_infer *x, const qs_node *n) {
    qs_infer v = *x;
    v.node = n;
    for (int32_t i = 0; i < n->input_count && i < (int32_t)QS_COUNT(v.in); i++)
        v.in[i] = n->inputs[i] == QS_NONE ? NULL : &x->graph->values[n->inputs[i]];
    return v;
}

static int too_long(const qs_infer *x) {
    return qs_infer_fail(x, QSIM_E_LIMIT, "a sequence of more than %d tensors or insertions",
                         QS_LIST_MOST);
}

int qs_list_position(const qs_infer *x, int32_t index, int64_t length, int64_t bound, int64_t *at) {
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
 * *count is QS_DYNAMIC if their number is not known: sizes[0] is then 1 if all have size 1, else
 * -1. ONNX's text ignores keepdims where split is given, but PyTorch writes unbind as split = 1
 * without the axis, and ONNX Runtime takes it so.
 */
static int read_sizes(const qs_infer *x, int64_t dim, int64_t *sizes, int32_t *count, bool *keeps) {
    const qs_value *split = qs_infer_in(x, 1);
    int code = qs_infer_ints(x, 1, sizes, QS_LIST_MOST, count);
    if (code)
        return code;
    if (*count >= 0 && split->rank)
        return QSIM_OK;
    const int64_t size = *count == QS_ABSENT ? 1 : *count == QS_DYNAMIC ? -1 : sizes[0];
    if (*count != QS_DYNAMIC && size < 1)
        return qs_infer_fail(x, QSIM_E_VALUE, "split is %lld", (long long)size);
    *keeps = size != 1 || qs_node_int(x->node, "keepdims", 1) != 0;
    *count = QS_DYNAMIC;
    sizes[0] = size == 1 ? 1 : -1;
    if (size < 1 || dim < 0 || (size == 1 && dim > QS_LIST_MOST))
        return QSIM_OK;
    if ((dim - 1) / size >= QS_LIST_MOST)
        return too_long(x);
    *count = (int32_t)(dim / size + (dim % size != 0));
    for (int32_t i = 0; i < *count; i++)
        sizes[i] = i < *count - 1 || dim % size == 0 ? size : dim % size;
    return QSIM_OK;
}

static int read_split(const qs_infer *x, qs_list *l) {
    const qs_value *v = x->in[0];
    int64_t sizes[QS_LIST_MOST], dim, begin = 0;
    int32_t axis;
    bool keeps = true;
    assert(v); /* required */
    const int64_t given = qs_node_int(x->node, "axis", 0);
    if (v->rank < 0 && given < 0)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "input ranks must be in the file");
    int code = qs_infer_axis(x, given, v->rank < 0 ? QSIM_MAX_RANK : v->rank, &axis);
    if (code)
        return code;
    dim = v->rank < 0 ? -1 : v->dims[axis].size;
    code = read_sizes(x, dim, sizes, &l->count, &keeps);
    const qs_item first = {x->node->inputs[0], x->node, 0, sizes[0], axis, keeps, NULL};
    l->at[0] = first; /* if there are any */
    if (!code && l->count == QS_DYNAMIC) {
        l->open = true;
        l->count = 1;
        return QSIM_OK;
    }
    for (int32_t i = 0; i < l->count && !code; i++) {
        if (sizes[i] < 0 || (dim >= 0 && sizes[i] > dim - begin))
            return qs_infer_fail(x, QSIM_E_SHAPE, "part %d of %lld does not fit axis %d", (int)i,
                                 (long long)sizes[i], (int)axis);
        l->at[i] = first;
        l->at[i].begin = begin;
        l->at[i].end = begin += sizes[i];
    }
    if (!code && dim >= 0 && begin != dim)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "the parts have %lld of %lld", (long long)begin,
                             (long long)dim);
    return code;
}

/* ---- the tensors of a sequence ---- */

static int read_construct(const qs_infer *x, qs_list *l) {
    if (x->node->input_count > QS_LIST_MOST)
        return too_long(x);
    for (; l->count < x->node->input_count; l->count++)
        l->at[l->count] = (qs_item){.tensor = x->node->inputs[l->count]};
    return QSIM_OK;
}

static int insert(const qs_infer *x, qs_list *l) {
    int64_t at;
    if (l->count == QS_LIST_MOST)
        return too_long(x);
    const int code = qs_list_position(x, 2, l->count, l->count, &at);
    if (code)
        return code;
    memmove(&l->at[at + 1], &l->at[at], (size_t)(l->count - at) * sizeof(qs_item));
    l->at[at] = (qs_item){.tensor = x->node->inputs[1]};
    l->count++;
    return QSIM_OK;
}

static int erase(const qs_infer *x, qs_list *l) {
    int64_t at;
    const int code = qs_list_position(x, 1, l->count, (int64_t)l->count - 1, &at);
    if (code)
        return code;
    l->count--;
    memmove(&l->at[at], &l->at[at + 1], (size_t)(l->count - at) * sizeof(qs_item));
    return QSIM_OK;
}

static bool changes(const qs_node *n) {
    return n->op == &qs_op_sequence_insert || n->op == &qs_op_sequence_erase;
}

/* What is known of an open list after insertions: its tensors have all one value's type and shape.
 */
static void change_open(const qs_infer *x, qs_list *l, const qs_node *const *changed,
                        int32_t count) {
    bool alike;
    const qs_value *before = l->at[0].like;
    if (before && before->rank < 0 && !before->dtype)
        l->count = 0; /* nothing is known of it yet, or it is empty */
    for (int32_t i = 0; i < count; i++)
        if (changed[i]->op == &qs_op_sequence_insert)
            l->at[l->count++] = (qs_item){.tensor = changed[i]->inputs[1]};
    qs_list_merge(x->graph, l, &l->made, l->dims, &alike);
    l->at[0] = (qs_item){.tensor = QS_NONE, .like = &l->made};
    l->count = 1;
}

/* Lists the tensors of a sequence that node n makes; n NULL: that the subgraph is fed. */
static int read_first(const qs_infer *x, const qs_node *n, qs_id sequence, qs_list *l) {
    const qs_value *given = &x->graph->values[sequence];
    const qs_infer first = n ? qs_list_view(x, n) : *x;
    *l = (qs_list){.fed = !n && given->is_sequence && given->is_input};
    if (n && n->op == &qs_op_split_to_sequence)
        return read_split(&first, l);
    if (n && n->op == &qs_op_sequence_construct)
        return read_construct(&first, l);
    if (!l->fed && !(n && n->op == &qs_op_loop))
        return QSIM_OK; /* empty */
    l->at[l->count++] = (qs_item){.tensor = sequence, .like = given};
    l->open = true;
    return QSIM_OK;
}

bool qs_list_slices(const qs_list *l) {
    const qs_item *t = l->at;
    bool slices = t->split != NULL;
    for (int32_t i = 0; i < l->count && slices; i++)
        slices = t[i].split == t->split && t[i].begin == i && t[i].end == i + 1;
    return slices;
}

bool qs_list_opens(const qs_infer *x, const qs_node *change, const qs_list *l) {
    const qs_infer at = qs_list_view(x, change);
    const int32_t index = change->op == &qs_op_sequence_insert ? 2 : 1;
    qs_const c;
    return qs_list_slices(l) && qs_infer_in(&at, index) && !qs_infer_const(&at, index, &c);
}

int qs_list_read(const qs_infer *x, qs_id sequence, qs_list *l) {
    const qs_node *changed[QS_LIST_MOST], *n = maker(x->graph, &sequence);
    int32_t count = 0;
    for (; n && changes(n); n = maker(x->graph, &sequence)) {
        if (count == QS_LIST_MOST)
            return too_long(x);
        changed[count++] = n;
        sequence = n->inputs[0];
    }
    int code = read_first(x, n, sequence, l);
    if (!code && !l->open && count && qs_list_opens(x, changed[count - 1], l)) {
        l->open = true;
        l->count = 1;
    }
    if (!code && l->open && count)
        change_open(x, l, changed, count);
    while (count > 0 && !code && !l->open) {
        const qs_infer at = qs_list_view(x, changed[--count]);
        code = at.node->op == &qs_op_sequence_insert ? insert(&at, l) : erase(&at, l);
    }
    return code;
}

const qs_value *qs_list_like(const qs_graph *g, const qs_item *t) {
    return t->like ? t->like : &g->values[t->tensor];
}

qs_value qs_list_value(const qs_graph *g, const qs_item *t, qs_dim *dims) {
    qs_value v = *qs_list_like(g, t);
    if (!t->split || v.rank < 0)
        return v;
    qs_value_dims(&v, dims);
    dims[t->axis] = (qs_dim){t->end - t->begin, NULL};
    if (!t->keeps_axis) {
        v.rank--;
        memmove(&dims[t->axis], &dims[t->axis + 1], (size_t)(v.rank - t->axis) * sizeof(*dims));
    }
    v.dims = dims;
    return v;
}

void qs_list_merge(const qs_graph *g, const qs_list *l, qs_value *like, qs_dim *dims, bool *alike) {
    qs_dim own[QSIM_MAX_RANK];
    *like = (qs_value){.rank = -1, .dims = dims};
    *alike = true;
    for (int32_t i = 0; i < l->count; i++) {
        const qs_value v = qs_list_value(g, &l->at[i], own);
        const bool ranked = v.rank >= 0 && (i == 0 || like->rank >= 0);
        if (v.dtype)
            like->dtype = v.dtype;
        *alike = *alike && (!ranked || i == 0 || v.rank == like->rank);
        if (i == 0)
            qs_value_dims(&v, dims);
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
    qs_list l;
    bool alike;
    const int code = qs_list_read(x, sequence, &l);
    if (!code)
        qs_list_merge(x->graph, &l, like, dims, &alike);
    return code;
}

QS_NOINLINE int32_t qs_sequence_count(const qs_infer *x, qs_id sequence) {
    qs_infer silent = *x;
    qs_list l;
    silent.error = NULL;
    return qs_list_read(&silent, sequence, &l) || l.open ? -1 : l.count;
}
