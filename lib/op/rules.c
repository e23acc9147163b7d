/* SPDX-License-Identifier: MIT */
#include "op/rules.h"

#include "base/ctx.h"
#include "op/move/source.h"

#include <math.h>

size_t qs_dtype_bytes(int32_t dtype) {
    int32_t bits = qsim_dtype_bits(dtype);
    return bits >= 8 ? (size_t)bits / 8 : 0;
}

const qs_value *qs_infer_in(const qs_infer *x, int32_t index) {
    if (index >= x->node->input_count || x->node->inputs[index] == QS_NONE)
        return NULL;
    if (x->in[0] && index < (int32_t)QS_COUNT(x->in))
        return x->in[index];
    const qs_value *values = x->values ? x->values : x->graph->values;
    return &values[x->node->inputs[index]];
}

void qs_hint_supported(qsim_error *error) {
    qs_hint(error, "qsim info --ops lists what is supported");
}

int qs_weights_too_large(qsim_error *error) {
    return qs_fail(error, QSIM_E_LIMIT, "the packed weights are too large");
}

int qs_scratch_too_large(qsim_error *error) {
    return qs_fail(error, QSIM_E_LIMIT, "the scratch memory is too large");
}

int qs_infer_word(const qs_infer *x, const char *attr, const char *words, int32_t *which) {
    *which = qs_node_word(x->node, attr, words);
    if (*which >= 0)
        return QSIM_OK;
    const qs_attr *a = qs_node_attr(x->node, attr);
    const qs_span word = a->type == QSIM_ATTR_STRING ? a->u.s : (qs_span){0};
    const size_t shown = strlen(words) - 1; /* without the bar before the last, empty word */
    return qs_infer_fail(x, QSIM_E_VALUE, "attribute %s is '%.*s', none of %.*s", attr,
                         word.size < 64 ? (int)word.size : 64, (const char *)word.data,
                         (int)shown + (words[shown] != '|'), words);
}

int qs_infer_type(const qs_infer *x, int32_t index, uint32_t set) {
    const qs_value *v = qs_infer_in(x, index);
    if (!v || v->dtype == QSIM_UNDEFINED)
        return QSIM_OK;
    if ((uint32_t)v->dtype < 32 && (set & QS_T(v->dtype)))
        return QSIM_OK;
    const int code =
        qs_infer_fail(x, QSIM_E_DTYPE, "input %d '%s' has type %s, which is not supported here",
                      (int)index, v->name, qsim_dtype_name(v->dtype));
    qs_hint_supported(x->error);
    return code;
}

/* An input's actual type: shape rules see float16 as float (qs_op_infer_node). */
static int32_t stored_type(const qs_infer *x, int32_t index) {
    const qs_value *values = x->values ? x->values : x->graph->values;
    return values[x->node->inputs[index]].dtype;
}

int qs_infer_same_type(const qs_infer *x, int32_t a, int32_t b) {
    const qs_value *va = qs_infer_in(x, a), *vb = qs_infer_in(x, b);
    if (!va || !vb || va->dtype == QSIM_UNDEFINED || vb->dtype == QSIM_UNDEFINED)
        return QSIM_OK;
    if (va->dtype == vb->dtype && stored_type(x, a) == stored_type(x, b))
        return QSIM_OK;
    return qs_infer_fail(x, QSIM_E_DTYPE, "input %d is %s but input %d is %s", (int)a,
                         qsim_dtype_name(stored_type(x, a)), (int)b,
                         qsim_dtype_name(stored_type(x, b)));
}

int qs_infer_rank(const qs_infer *x, int32_t index, int32_t rank) {
    const qs_value *v = qs_infer_in(x, index);
    if (!v || v->rank < 0 || v->rank == rank)
        return QSIM_OK;
    return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has rank %d, expected %d", (int)index,
                         (int)v->rank, (int)rank);
}

int qs_infer_least_rank(const qs_infer *x, int32_t index, int32_t least) {
    const qs_value *v = qs_infer_in(x, index);
    if (!v || v->rank < 0 || v->rank >= least)
        return QSIM_OK;
    return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has rank %d, expected %d at least", (int)index,
                         (int)v->rank, (int)least);
}

int qs_infer_size(const qs_infer *x, int32_t index, int32_t axis, int64_t size) {
    const qs_value *v = qs_infer_in(x, index);
    const int64_t has = v && axis < v->rank ? v->dims[axis].size : -1;
    if (has < 0 || size < 0 || has == size)
        return QSIM_OK;
    return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d of input %d is %lld, expected %lld", (int)axis,
                         (int)index, (long long)has, (long long)size);
}

int qs_infer_sizes(const qs_infer *x, int32_t index, int32_t rank, const int64_t *sizes) {
    int code = qs_infer_rank(x, index, rank);
    for (int32_t i = 0; i < rank && !code; i++)
        code = qs_infer_size(x, index, i, sizes[i]);
    return code;
}

int qs_infer_list(const qs_infer *x, int32_t index, int64_t count) {
    return qs_infer_sizes(x, index, 1, &count);
}

int qs_infer_count(const qs_infer *x, int32_t index, int64_t count) {
    const qs_value *v = qs_infer_in(x, index);
    const int64_t n = v && v->rank >= 0 ? qs_dims_product(v->dims, 0, v->rank) : -1;
    if (n < 0 || count < 0 || n == count)
        return QSIM_OK;
    return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %lld elements, expected %lld", (int)index,
                         (long long)n, (long long)count);
}

int qs_infer_each(const qs_infer *x, int32_t index, int64_t count) {
    const qs_value *v = index < 0 ? NULL : qs_infer_in(x, index);
    const int64_t n = v && v->rank >= 0 ? qs_dims_product(v->dims, 0, v->rank) : -1;
    if (n < 0 || n == 1 || n == count || (n > 0 && count < 0))
        return QSIM_OK;
    return qs_infer_fail(x, QSIM_E_SHAPE,
                         count == 1 ? "'%s' has %lld elements, expected 1"
                                    : "'%s' has %lld elements, expected 1 or %lld",
                         v->name, (long long)n, (long long)count);
}

int qs_infer_match(const qs_infer *x, int64_t *size, int64_t other, const char *what) {
    if (*size >= 0 && other >= 0 && *size != other)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%s: %lld and %lld", what, (long long)*size,
                             (long long)other);
    *size = *size < 0 ? other : *size;
    return QSIM_OK;
}

int qs_infer_out(const qs_infer *x, int32_t index, int32_t dtype, int32_t rank,
                 const qs_dim *dims) {
    if (index >= x->node->output_count)
        return QSIM_OK;
    if (rank > QSIM_MAX_RANK)
        return qs_infer_fail(x, QSIM_E_LIMIT, "output %d has rank %d; at most %d is possible",
                             (int)index, (int)rank, QSIM_MAX_RANK);
    qs_value *out = &x->out[index];
    for (int32_t i = 0; i < rank; i++)
        x->dims[index][i] = dims[i];
    /* The limit of shapes in files, since an inferred shape may be written to one. */
    if (!qs_shape_fits(dtype == QSIM_UNDEFINED ? QSIM_UINT8 : dtype, rank, dims))
        return qs_infer_fail(x, QSIM_E_LIMIT, "output %d is larger than memory can be", (int)index);
    out->dtype = dtype;
    out->rank = rank;
    out->dims = x->dims[index];
    return QSIM_OK;
}

int qs_infer_unknown(const qs_infer *x, int32_t dtype) {
    return qs_infer_out(x, 0, dtype, -1, NULL);
}

int qs_infer_like(const qs_infer *x, int32_t index, int32_t from) {
    const qs_value *v = qs_infer_in(x, from);
    return qs_infer_out(x, index, v->dtype, v->rank, v->dims);
}

int qs_infer_axis(const qs_infer *x, int64_t axis, int32_t rank, int32_t *out) {
    if (rank == 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a scalar has no axis");
    if (axis < -(int64_t)rank || axis >= rank)
        return qs_infer_fail(x, QSIM_E_VALUE, "axis %lld is outside rank %d", (long long)axis,
                             (int)rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return QSIM_OK;
}

int qs_infer_axes(const qs_infer *x, const int64_t *axes, int32_t count, int32_t rank,
                  uint32_t *mask) {
    *mask = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = 0;
        int code = qs_infer_axis(x, axes[i], rank, &axis);
        if (code)
            return code;
        if (*mask & 1u << axis)
            return qs_infer_fail(x, QSIM_E_VALUE, "axis %lld is given twice", (long long)axes[i]);
        *mask |= 1u << axis;
    }
    return QSIM_OK;
}

/* Broadcasts one axis; false if a and b do not agree. */
static bool broadcast_dim(const qs_dim *a, const qs_dim *b, qs_dim *out) {
    if (a->size == 1) {
        *out = *b;
        return true;
    }
    if (b->size == 1) {
        *out = *a;
        return true;
    }
    if (a->size >= 0 && b->size >= 0) {
        *out = *a;
        return a->size == b->size;
    }
    if (a->size >= 0 || b->size >= 0) { /* the unknown one is 1 or equal */
        *out = a->size >= 0 ? *a : *b;
        return true;
    }
    bool same = a->symbol && b->symbol && strcmp(a->symbol, b->symbol) == 0;
    *out = (qs_dim){-1, same ? a->symbol : NULL};
    return true;
}

int qs_infer_broadcast(const qs_infer *x, const qs_value *a, const qs_value *b, int32_t *rank,
                       qs_dim dims[QSIM_MAX_RANK]) {
    *rank = -1;
    if (a->rank < 0 || b->rank < 0)
        return QSIM_OK;
    static const qs_dim one = {1, NULL};
    int32_t r = a->rank > b->rank ? a->rank : b->rank;
    for (int32_t i = 0; i < r; i++) {
        int32_t ia = i - (r - a->rank), ib = i - (r - b->rank);
        const qs_dim *da = ia >= 0 ? &a->dims[ia] : &one, *db = ib >= 0 ? &b->dims[ib] : &one;
        qs_dim d;
        if (!broadcast_dim(da, db, &d))
            return qs_infer_fail(x, QSIM_E_SHAPE,
                                 "shapes do not broadcast: axis %d is %lld and %lld", (int)i,
                                 (long long)da->size, (long long)db->size);
        dims[i] = d;
    }
    *rank = r;
    return QSIM_OK;
}

int64_t qs_dims_product(const qs_dim *dims, int32_t from, int32_t to) {
    int64_t n = 1;
    for (int32_t i = from; i < to; i++) {
        if (dims[i].size < 0)
            return -1;
        if (!qs_mul64(n, dims[i].size, &n))
            return -1;
    }
    return n;
}

bool qs_is_single(const qs_value *v) {
    const int64_t n = v->rank < 0 ? -1 : qs_dims_product(v->dims, 0, v->rank);
    return n < 0 || n == 1;
}

size_t qs_value_elements(const qs_value *v) {
    size_t n = 1;
    for (int32_t i = 0; i < v->rank; i++)
        n *= (size_t)v->dims[i].size;
    return n;
}

bool qs_infer_const(const qs_infer *x, int32_t index, qs_const *out) {
    const qs_value *v = qs_infer_in(x, index);
    if (!v)
        return false;
    if (v->data)
        *out = *v->data;
    return v->data ||
           (v->producer != QS_NONE && qs_constant_read(&x->graph->nodes[v->producer], out));
}

#define ELEMENT(type)                                                                              \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, (const uint8_t *)c->data + i * sizeof(v), sizeof(v));                           \
        return (double)v;                                                                          \
    }

double qs_const_at(const qs_const *c, size_t i) {
    switch (c->dtype) {
    case QSIM_FLOAT: ELEMENT(float)
    case QSIM_DOUBLE: ELEMENT(double)
    case QSIM_UINT8: ELEMENT(uint8_t)
    case QSIM_INT8: ELEMENT(int8_t)
    case QSIM_INT16: ELEMENT(int16_t)
    case QSIM_UINT16: ELEMENT(uint16_t)
    case QSIM_INT32: ELEMENT(int32_t)
    default: ELEMENT(int64_t)
    }
}

static int check_scale(const qs_infer *x, int32_t index, bool below) {
    qs_const c;
    int code = qs_infer_type(x, index, QS_T_FLOAT);
    if (code || !qs_infer_const(x, index, &c))
        return code;
    if (c.elements == 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "scale '%s' is empty", qs_infer_in(x, index)->name);
    for (size_t i = 0; i < c.elements; i++) {
        float scale;
        memcpy(&scale, (const char *)c.data + i * sizeof(scale), sizeof(scale));
        if (!(scale > 0.0f && scale < INFINITY) && !(below && scale < 0.0f && scale > -INFINITY))
            return qs_infer_fail(
                x, QSIM_E_VALUE, "element %zu of scale '%s' is %g, not finite and %s", i,
                qs_infer_in(x, index)->name, (double)scale, below ? "other than 0" : "> 0");
    }
    return QSIM_OK;
}

int qs_infer_scale(const qs_infer *x, int32_t index) {
    return check_scale(x, index, false);
}

int qs_infer_any_scale(const qs_infer *x, int32_t index) {
    return check_scale(x, index, true);
}

static void copy_ints(const qs_const *c, int64_t *out) {
    for (size_t i = 0; i < c->elements; i++) {
        if (c->dtype == QSIM_INT64) {
            memcpy(&out[i], (const char *)c->data + i * 8, 8);
        } else {
            int32_t t;
            memcpy(&t, (const char *)c->data + i * 4, 4);
            out[i] = t;
        }
    }
}

int qs_infer_ints(const qs_infer *x, int32_t index, int64_t *out, int32_t capacity,
                  int32_t *count) {
    const qs_value *v = qs_infer_in(x, index);
    *count = QS_ABSENT;
    if (!v)
        return QSIM_OK;
    int code = qs_infer_type(x, index, QS_T(QSIM_INT64) | QS_T(QSIM_INT32));
    if (code)
        return code;
    if (v->rank > 1)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has rank %d, expected a list", (int)index,
                             (int)v->rank);
    *count = QS_DYNAMIC;
    qs_const data;
    if (!qs_infer_const(x, index, &data))
        return QSIM_OK;
    if (data.elements > (size_t)capacity)
        return qs_infer_fail(x, QSIM_E_LIMIT, "input %d has %zu elements, at most %d are possible",
                             (int)index, data.elements, (int)capacity);
    copy_ints(&data, out);
    *count = (int32_t)data.elements;
    return QSIM_OK;
}

int qs_infer_attr_ints(const qs_infer *x, const char *name, int64_t *out, int32_t capacity,
                       int32_t *count) {
    const qs_attr *a = qs_node_attr(x->node, name);
    *count = QS_ABSENT;
    if (!a)
        return QSIM_OK;
    if (a->count > capacity)
        return qs_infer_fail(x, QSIM_E_LIMIT,
                             "attribute %s has %d elements, at most %d are possible", name,
                             (int)a->count, (int)capacity);
    for (int32_t i = 0; i < a->count; i++)
        out[i] = a->u.ints[i];
    *count = a->count;
    return QSIM_OK;
}

int64_t qs_node_entry(const qs_node *n, const char *name, int32_t index) {
    const qs_attr *a = qs_node_attr(n, name);
    return a && a->type == QSIM_ATTR_INTS && index < a->count ? a->u.ints[index] : 0;
}

bool qs_node_string_is(const qs_node *n, const char *name, const char *text, bool fallback) {
    const qs_attr *a = qs_node_attr(n, name);
    if (!a)
        return fallback;
    size_t length = strlen(text);
    return a->type == QSIM_ATTR_STRING && a->u.s.size == length &&
           (length == 0 || memcmp(a->u.s.data, text, length) == 0);
}

int32_t qs_node_word(const qs_node *n, const char *attr, const char *words) {
    const qs_attr *a = qs_node_attr(n, attr);
    if (!a)
        return 0;
    for (int32_t i = 0; a->type == QSIM_ATTR_STRING; i++) {
        const size_t length = strcspn(words, "|");
        if (a->u.s.size == length && (length == 0 || memcmp(a->u.s.data, words, length) == 0))
            return i;
        if (!words[length])
            break;
        words += length + 1;
    }
    return -1;
}

int qs_op_no_memory(qsim_error *error) {
    return qs_fail(error, QSIM_E_NOMEM, "out of memory");
}

qs_id qs_upgrade_const(qs_graph *g, const char *base, int32_t dtype, int32_t rank,
                       const int64_t *dims, const void *data) {
    const char *name = qs_graph_fresh_name(g, base);
    return name ? qs_graph_add_const(g, name, dtype, rank, dims, data, true) : QSIM_E_NOMEM;
}

int qs_upgrade_input(qs_graph *g, qs_id node, const char *attr, int32_t index, qs_id input,
                     qsim_error *error) {
    if (input < 0 || qs_node_grow_inputs(g, node, index + 1) != QSIM_OK)
        return qs_op_no_memory(error);
    qs_node_set_input(g, node, index, input);
    qs_node_drop_attr(g, node, attr);
    return QSIM_OK;
}

int qs_upgrade_ints_to_input(qs_graph *g, qs_id node, const char *attr, int32_t index,
                             qsim_error *error) {
    const qs_attr *a = qs_node_attr(&g->nodes[node], attr);
    if (!a)
        return QSIM_OK;
    const int64_t count = a->count;
    const qs_id list =
        qs_upgrade_const(g, g->nodes[node].op_type, QSIM_INT64, 1, &count, a->u.ints);
    return qs_upgrade_input(g, node, attr, index, list, error);
}

qs_id qs_upgrade_add(qs_graph *g, const char *op_type, const char *base, qs_id a, qs_id b) {
    const char *name = qs_graph_fresh_name(g, base);
    qs_id out = name ? qs_graph_add_value(g, name) : QSIM_E_NOMEM;
    qs_id in[2] = {a, b};
    if (out < 0)
        return out;
    qs_id node = qs_graph_add_node(g, "", op_type, name, in, b == QS_NONE ? 1 : 2, &out, 1);
    return node < 0 ? node : out;
}

int qs_upgrade_unsqueeze(qs_graph *g, qs_id node, int32_t to, const int64_t *axes, int64_t count,
                         qsim_error *error) {
    const qs_id list = to < 13 ? QS_NONE : qs_upgrade_const(g, "axes", QSIM_INT64, 1, &count, axes);
    const qs_id out = qs_upgrade_add(g, "Unsqueeze", "unsqueezed", g->nodes[node].inputs[1], list);
    if (out < 0 || (to < 13 && qs_node_set_ints(g, g->values[out].producer, "axes", axes,
                                                (int32_t)count) != QSIM_OK))
        return qs_op_no_memory(error);
    qs_node_set_input(g, node, 1, out);
    return QSIM_OK;
}

uint32_t qs_also_axis(const qs_graph *g, const qs_node *n) {
    (void)g;
    return qs_node_int(n, "opset", n->version) >= 13 ? QS_ALONG_AXIS : 0;
}

/* ---- rows ---- */

void qs_copy_many_rows(const qsim_ctx *ctx, const void *from, ptrdiff_t x_step, void *to,
                       ptrdiff_t y_step, size_t n, size_t rows) {
    const char *x = from;
    char *y = to;
    const size_t most = QS_COPY_PIECE / (n + 1) + 1;
    for (size_t count; rows > 0; rows -= count) {
        count = rows < most ? rows : most;
        if (n > QS_COPY_PIECE)
            qs_copy(ctx, y, x, n);
        else
            qs_copy_rows(x, x_step, y, y_step, n, count);
        if (qs_stopped(ctx))
            return;
        x += x_step * (ptrdiff_t)count;
        y += y_step * (ptrdiff_t)count;
    }
}
