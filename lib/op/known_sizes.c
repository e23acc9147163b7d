/* SPDX-License-Identifier: MIT */
/*
 * Lists that a model computes from shapes (Shape, Gather, Slice, Concat ...), of whose elements
 * some are known although others are not: the sizes of all axes but the batch, for example.
 */
#include "op/rules.h"

/* Most nodes that are looked at for one list. */
#define NODES_MOST 64

typedef struct reading {
    const qs_graph *g;
    const qs_value *values;
    int left; /* nodes that may still be looked at */
} reading;

static const qs_dim unknown = {-1, NULL};

/* A constant list of integers, or one integer. Returns their number; -1: it is none. */
static int32_t read_const(const qs_value *v, int64_t out[QSIM_MAX_RANK]) {
    const qs_const *c = v->data;
    if (!c || c->dtype != QSIM_INT64 || c->rank > 1 || c->elements > QSIM_MAX_RANK)
        return -1;
    if (c->elements)
        memcpy(out, c->data, c->elements * sizeof(*out));
    return (int32_t)c->elements;
}

static int32_t read_input(const reading *r, const qs_node *n, int32_t index,
                          int64_t out[QSIM_MAX_RANK]) {
    const qs_id id = qs_node_input(n, index);
    return id == QS_NONE ? -1 : read_const(&r->values[id], out);
}

static int64_t clamped(int64_t at, int32_t count) {
    at += at < 0 ? count : 0;
    return at < 0 ? 0 : at > count ? count : at;
}

/* Keeps the elements from `from` to before `to`, which count from the end if negative. */
static int32_t keep(qs_dim *out, int32_t count, int64_t from, int64_t to) {
    from = clamped(from, count);
    to = clamped(to, count);
    const int32_t kept = to > from ? (int32_t)(to - from) : 0;
    memmove(out, out + from, (size_t)kept * sizeof(*out));
    return kept;
}

static int32_t gather(const reading *r, const qs_node *n, qs_dim *out, int32_t count) {
    int64_t at[QSIM_MAX_RANK];
    qs_dim from[QSIM_MAX_RANK];
    const int32_t taken = read_input(r, n, 1, at);
    memcpy(from, out, (size_t)count * sizeof(*out));
    for (int32_t i = 0; i < taken; i++) {
        at[i] += at[i] < 0 ? count : 0;
        if (at[i] < 0 || at[i] >= count)
            return -1;
        out[i] = from[at[i]];
    }
    return taken;
}

static int32_t slice(const reading *r, const qs_node *n, qs_dim *out, int32_t count) {
    int64_t from[QSIM_MAX_RANK], to[QSIM_MAX_RANK], step[QSIM_MAX_RANK];
    if (n->version < 10 || read_input(r, n, 1, from) != 1 || read_input(r, n, 2, to) != 1 ||
        (qs_node_input(n, 4) != QS_NONE && (read_input(r, n, 4, step) != 1 || step[0] != 1)))
        return -1;
    return keep(out, count, from[0], to[0]);
}

static int32_t read_list(reading *r, qs_id id, qs_dim *out);

static int32_t concat(reading *r, const qs_node *n, qs_dim *out) {
    int32_t count = 0;
    for (int32_t i = 0; i < n->input_count && count >= 0; i++) {
        qs_dim part[QSIM_MAX_RANK];
        const int32_t more = read_list(r, n->inputs[i], part);
        if (more < 0 || more > QSIM_MAX_RANK - count)
            return -1;
        memcpy(out + count, part, (size_t)more * sizeof(*out));
        count += more;
    }
    return count;
}

/* A list whose producer tells nothing of its elements: all are unknown. */
static int32_t unknown_list(const qs_value *v, qs_dim *out) {
    const int64_t count = v->rank == 0 ? 1 : v->rank == 1 ? v->dims[0].size : -1;
    for (int64_t i = 0; i < count && count <= QSIM_MAX_RANK; i++)
        out[i] = unknown;
    return count > QSIM_MAX_RANK ? -1 : (int32_t)count;
}

/* Sizes of graph outputs are not used, since models may state wrong ones. */
static int32_t read_shape(const reading *r, const qs_node *n, qs_dim *out) {
    const qs_value *v = &r->values[n->inputs[0]];
    if (v->rank < 0 || v->is_output)
        return -1;
    qs_value_dims(v, out);
    return keep(out, v->rank, qs_node_int(n, "start", 0), qs_node_int(n, "end", v->rank));
}

static int32_t read_made(reading *r, const qs_node *n, qs_dim *out) {
    if (qs_node_is_onnx(n, "Shape"))
        return read_shape(r, n, out);
    if (qs_node_is_onnx(n, "Concat"))
        return concat(r, n, out);
    const bool same = qs_node_is_onnx(n, "Identity") || qs_node_is_onnx(n, "Squeeze") ||
                      qs_node_is_onnx(n, "Unsqueeze") || qs_node_is_onnx(n, "Cast");
    const bool gathers = qs_node_is_onnx(n, "Gather"), slices = qs_node_is_onnx(n, "Slice");
    const int32_t count = same || gathers || slices ? read_list(r, n->inputs[0], out) : -1;
    return count < 0 ? -1
           : gathers ? gather(r, n, out, count)
           : slices  ? slice(r, n, out, count)
                     : count;
}

static int32_t read_list(reading *r, qs_id id, qs_dim *out) {
    const qs_value *v = id == QS_NONE ? NULL : &r->values[id];
    int64_t list[QSIM_MAX_RANK];
    if (!v || v->rank > 1 || v->dtype != QSIM_INT64 || r->left-- <= 0)
        return -1;
    int32_t count = read_const(v, list);
    for (int32_t i = 0; i < count; i++)
        out[i] = (qs_dim){list[i], NULL};
    if (count < 0 && v->producer != QS_NONE)
        count = read_made(r, &r->g->nodes[v->producer], out);
    return count < 0 ? unknown_list(v, out) : count;
}

int32_t qs_known_sizes(const qs_graph *g, const qs_value *values, qs_id id,
                       qs_dim out[QSIM_MAX_RANK]) {
    reading r = {g, values ? values : g->values, NODES_MOST};
    return read_list(&r, id, out);
}

int qs_known_cut(const qs_infer *x, const int64_t *axes, int32_t count, uint32_t *mask) {
    const qs_value *starts = qs_infer_in(x, 1);
    const bool first = count == QS_ABSENT && starts && starts->rank == 1;
    int64_t all[QSIM_MAX_RANK];
    const int64_t cut = first ? starts->dims[0].size : count;
    *mask = ~UINT32_C(0);
    if (cut < 0 || cut > QSIM_MAX_RANK)
        return QSIM_OK;
    for (int32_t i = 0; i < cut; i++)
        all[i] = first ? i : axes[i];
    return qs_infer_axes(x, all, (int32_t)cut, x->in[0]->rank, mask);
}
