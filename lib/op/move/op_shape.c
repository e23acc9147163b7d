/* SPDX-License-Identifier: MIT */
/*
 * Operators that only change the shape (Reshape, Flatten, Squeeze, Unsqueeze, Identity) or read it
 * (Shape, Size).
 */
#include "op/rules.h"

static int lower_alias(qs_lower *l) {
    l->alias = true;
    return QSIM_OK;
}

/* ---- Reshape ---- */

typedef struct reshape_spec {
    int32_t count; /* rank of the result, or QS_DYNAMIC */
    int64_t to[QSIM_MAX_RANK];
    bool allow_zero;
} reshape_spec;

static int reshape_read(const qs_infer *x, reshape_spec *s) {
    int code;
    s->allow_zero = x->node->version >= 14 && qs_node_int(x->node, "allowzero", 0) != 0;
    if (x->node->version >= 5) {
        code = qs_infer_ints(x, 1, s->to, QSIM_MAX_RANK, &s->count);
    } else {
        code = qs_infer_attr_ints(x, "shape", s->to, QSIM_MAX_RANK, &s->count);
    }
    if (!code && s->count == QS_ABSENT)
        code = qs_infer_fail(x, QSIM_E_GRAPH, "no shape is given");
    return code;
}

/* Copies the given sizes; *open: the axis with -1. */
static int reshape_given(const qs_infer *x, const reshape_spec *s, qs_dim *dims, int32_t *open,
                         uint32_t *kept) {
    bool zero = false;
    *open = -1;
    *kept = 0;
    for (int32_t i = 0; i < s->count; i++) {
        int64_t d = s->to[i];
        dims[i] = (qs_dim){d, NULL};
        zero = zero || d == 0;
        if (d < -1 || (d == -1 && *open >= 0))
            return qs_infer_fail(x, QSIM_E_VALUE, "size %lld on axis %d of the shape", (long long)d,
                                 (int)i);
        if (d == -1)
            *open = i;
        if (d != 0 || s->allow_zero)
            continue;
        if (x->in[0]->rank < 0) {
            dims[i] = (qs_dim){-1, NULL};
            continue;
        }
        if (i >= x->in[0]->rank)
            return qs_infer_fail(x, QSIM_E_VALUE,
                                 "size 0 on axis %d keeps an axis that rank %d lacks", (int)i,
                                 (int)x->in[0]->rank);
        dims[i] = x->in[0]->dims[i];
        *kept |= 1u << i;
    }
    if (s->allow_zero && zero && *open >= 0)
        return qs_infer_fail(x, QSIM_E_VALUE, "size -1 beside size 0");
    return QSIM_OK;
}

/* Product of the known sizes; number of unknown ones not in `skip`, and the last of them. */
static int reshape_product(const qs_infer *x, const qs_dim *dims, int32_t rank, uint32_t skip,
                           int64_t *product, int32_t *unknown, qs_dim *last) {
    *product = 1;
    *unknown = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i].size < 0) {
            if (!(skip & 1u << i)) {
                ++*unknown;
                *last = dims[i];
            }
        } else if (!qs_mul64(*product, dims[i].size, product)) {
            return qs_infer_fail(x, QSIM_E_SHAPE, "the shape's product is too large");
        }
    }
    return QSIM_OK;
}

/* Infers from a shape that is not constant; its length and some of its sizes may be known. */
static int reshape_dynamic(const qs_infer *x, const reshape_spec *s) {
    qs_dim dims[QSIM_MAX_RANK];
    const int32_t rank = qs_known_sizes(x->graph, x->values, x->node->inputs[1], dims);
    for (int32_t i = 0; i < rank; i++)
        if (dims[i].size < (s->allow_zero ? 0 : 1)) /* 0 keeps an axis */
            dims[i].size = -1;
    return qs_infer_out(x, 0, x->in[0]->dtype, rank, dims);
}

static int infer_reshape(qs_infer *x) {
    reshape_spec s;
    qs_dim dims[QSIM_MAX_RANK], left = {-1, NULL}, none;
    int32_t open = -1, unknown = 0, others = 0;
    uint32_t kept = 0;
    int64_t from = 1, to = 1;
    const qs_value *in = x->in[0];
    int code = qs_infer_type(x, 0, QS_T_ANY);
    if (!code)
        code = reshape_read(x, &s);
    if (code)
        return code;
    if (s.count == QS_DYNAMIC)
        return reshape_dynamic(x, &s);
    code = reshape_given(x, &s, dims, &open, &kept);
    if (code)
        return code;
    if (in->rank < 0)
        return qs_infer_out(x, 0, in->dtype, s.count, dims);
    code = reshape_product(x, in->dims, in->rank, kept, &from, &unknown, &left);
    if (!code && open >= 0)
        dims[open].size = 1; /* no factor of the product */
    if (!code)
        code = reshape_product(x, dims, s.count, kept, &to, &others, &none);
    if (code)
        return code;
    if (open < 0) {
        if (unknown == 0 && from != to)
            return qs_infer_fail(x, QSIM_E_SHAPE, "%lld elements cannot take a shape of %lld",
                                 (long long)from, (long long)to);
        return qs_infer_out(x, 0, in->dtype, s.count, dims);
    }
    if (unknown == 0 && (to == 0 ? true : from % to != 0))
        return qs_infer_fail(x, QSIM_E_SHAPE, "-1 stands for %lld elements over %lld",
                             (long long)from, (long long)to);
    if (unknown == 0)
        dims[open].size = from / to;
    else
        dims[open] = unknown == 1 && from == to ? left : (qs_dim){-1, NULL};
    return qs_infer_out(x, 0, in->dtype, s.count, dims);
}

static int upgrade_reshape(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    if (g->nodes[node].version >= 5 || to < 5)
        return QSIM_OK;
    return qs_upgrade_ints_to_input(g, node, "shape", 1, error);
}

static const qs_attr_rule reshape_attrs[] = {{"shape", QSIM_ATTR_INTS, 1, 4},
                                             {"consumed_inputs", QSIM_ATTR_INTS, 1, 4},
                                             {"allowzero", QSIM_ATTR_INT, 14, 0}};

QS_OP(reshape, .name = "Reshape", .min_in = 1,
      QS_MORE(QS_HISTORY(.later = {{5, 2, 2, 1}}, .upgrade = upgrade_reshape)),
      QS_ATTRS(reshape_attrs),
      .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_RESHAPES | QS_READS_EXACTLY,
      .shape_inputs = 1 << 1, .kind = QS_KIND_MOVEMENT, .infer = infer_reshape,
      .lower = lower_alias);

/* ---- Flatten ---- */

/* Joins axes [from, to); a single unknown size among sizes of 1 keeps its symbol. */
static qs_dim join(const qs_dim *dims, int32_t from, int32_t to) {
    int64_t n = qs_dims_product(dims, from, to);
    qs_dim joined = {n, NULL};
    if (n >= 0)
        return joined;
    int32_t other = 0;
    for (int32_t i = from; i < to; i++) {
        if (dims[i].size == 1)
            continue;
        joined = dims[i];
        other++;
    }
    return other == 1 ? joined : (qs_dim){-1, NULL};
}

static int infer_flatten(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_ANY);
    if (code)
        return code;
    const qs_value *in = x->in[0];
    qs_dim dims[2] = {{-1, NULL}, {-1, NULL}};
    int64_t axis = qs_node_int(x->node, "axis", 1);
    if (in->rank >= 0) {
        if (axis < -(int64_t)in->rank || axis > in->rank)
            return qs_infer_fail(x, QSIM_E_VALUE, "axis %lld is outside rank %d", (long long)axis,
                                 (int)in->rank);
        int32_t at = (int32_t)(axis < 0 ? axis + in->rank : axis);
        dims[0] = join(in->dims, 0, at);
        dims[1] = join(in->dims, at, in->rank);
    }
    return qs_infer_out(x, 0, in->dtype, 2, dims);
}

static const qs_attr_rule axis_attr[] = {{"axis", QSIM_ATTR_INT, 1, 0}};

QS_OP(flatten, .name = "Flatten", .min_in = 1, QS_ATTRS(axis_attr),
      .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_RESHAPES | QS_READS_EXACTLY,
      .kind = QS_KIND_MOVEMENT, .infer = infer_flatten, .lower = lower_alias);

/* ---- Squeeze, Unsqueeze ---- */

static int read_axes(const qs_infer *x, int64_t *axes, int32_t *count) {
    if (x->node->version >= 13)
        return qs_infer_ints(x, 1, axes, QSIM_MAX_RANK, count);
    return qs_infer_attr_ints(x, "axes", axes, QSIM_MAX_RANK, count);
}

static int infer_squeeze(qs_infer *x) {
    int64_t axes[QSIM_MAX_RANK];
    int32_t count, rank = 0;
    uint32_t mask = 0;
    qs_dim dims[QSIM_MAX_RANK];
    const qs_value *in = x->in[0];
    int code = qs_infer_type(x, 0, QS_T_ANY);
    if (!code)
        code = read_axes(x, axes, &count);
    if (code)
        return code;
    if (in->rank < 0 || count == QS_DYNAMIC)
        return qs_infer_unknown(x, in->dtype);
    code = qs_infer_axes(x, axes, count, in->rank, &mask);
    if (code)
        return code;
    for (int32_t i = 0; i < in->rank; i++) {
        int64_t size = in->dims[i].size;
        if (count == QS_ABSENT && size < 0)
            return qs_infer_unknown(x, in->dtype);
        if ((mask & 1u << i) && size >= 0 && size != 1)
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d has size %lld, not 1", (int)i,
                                 (long long)size);
        bool gone = count == QS_ABSENT ? size == 1 : (mask & 1u << i) != 0;
        if (!gone)
            dims[rank++] = in->dims[i];
    }
    return qs_infer_out(x, 0, in->dtype, rank, dims);
}

static int infer_unsqueeze(qs_infer *x) {
    int64_t axes[QSIM_MAX_RANK];
    int32_t count, from = 0;
    uint32_t mask = 0;
    qs_dim dims[QSIM_MAX_RANK];
    const qs_value *in = x->in[0];
    int code = qs_infer_type(x, 0, QS_T_ANY);
    if (!code)
        code = read_axes(x, axes, &count);
    if (code)
        return code;
    if (count == QS_ABSENT)
        return qs_infer_fail(x, QSIM_E_GRAPH, "no axes are given");
    if (in->rank < 0 || count == QS_DYNAMIC)
        return qs_infer_unknown(x, in->dtype);
    int32_t rank = in->rank + count;
    if (rank > QSIM_MAX_RANK)
        return qs_infer_fail(x, QSIM_E_LIMIT, "rank %d; at most %d is possible", (int)rank,
                             QSIM_MAX_RANK);
    code = qs_infer_axes(x, axes, count, rank, &mask);
    if (code)
        return code;
    for (int32_t i = 0; i < rank; i++)
        dims[i] = mask & 1u << i ? (qs_dim){1, NULL} : in->dims[from++];
    return qs_infer_out(x, 0, in->dtype, rank, dims);
}

static int upgrade_axes(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    if (g->nodes[node].version >= 13 || to < 13)
        return QSIM_OK;
    return qs_upgrade_ints_to_input(g, node, "axes", 1, error);
}

static const qs_attr_rule axes_attr[] = {{"axes", QSIM_ATTR_INTS, 1, 12}};

QS_OP(squeeze, .name = "Squeeze", .min_in = 1,
      QS_MORE(QS_HISTORY(.later = {{13, 1, 2, 1}}, .upgrade = upgrade_axes)), QS_ATTRS(axes_attr),
      .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_RESHAPES | QS_READS_EXACTLY,
      .shape_inputs = 1 << 1, .kind = QS_KIND_MOVEMENT, .infer = infer_squeeze,
      .lower = lower_alias);
QS_OP(unsqueeze, .name = "Unsqueeze", .min_in = 1,
      QS_MORE(QS_HISTORY(.later = {{13, 2, 2, 1}}, .upgrade = upgrade_axes)), QS_ATTRS(axes_attr),
      .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_RESHAPES | QS_READS_EXACTLY,
      .shape_inputs = 1 << 1, .kind = QS_KIND_MOVEMENT, .infer = infer_unsqueeze,
      .lower = lower_alias);

/* ---- Identity ---- */

static int infer_identity(qs_infer *x) {
    if (qs_value_is_sequence(x->graph, x->node->inputs[0])) {
        x->out[0].is_sequence = true;
        return qs_sequence_infer(x);
    }
    int code = qs_infer_type(x, 0, QS_T_ANY);
    return code ? code : qs_infer_like(x, 0, 0);
}

QS_OP(identity, .name = "Identity", .min_in = 1, .moments = QS_MOMENTS_SAME,
      .traits = QS_ELEMENTWISE | QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE, .kind = QS_KIND_MOVEMENT,
      .infer = infer_identity, .lower = lower_alias);

/* ---- Shape ---- */

/* Reads the range of axes [start, end). */
static void shape_range(const qs_node *n, int32_t rank, int32_t *start, int32_t *end) {
    int64_t s = qs_node_int(n, "start", 0), e = qs_node_int(n, "end", rank);
    s = s < -rank ? 0 : s < 0 ? s + rank : s > rank ? rank : s;
    e = e < -rank ? 0 : e < 0 ? e + rank : e > rank ? rank : e;
    *start = (int32_t)s;
    *end = (int32_t)(e > s ? e : s);
}

static int infer_shape(qs_infer *x) {
    qs_dim count = {-1, NULL};
    if (x->in[0]->rank >= 0) {
        int32_t start, end;
        shape_range(x->node, x->in[0]->rank, &start, &end);
        count.size = end - start;
    }
    return qs_infer_out(x, 0, QSIM_INT64, 1, &count);
}

typedef struct shape_params {
    int32_t count;
    int64_t sizes[QSIM_MAX_RANK];
} shape_params;

static void run_shape(const qs_step *s, const qs_frame *f) {
    const shape_params *p = s->params;
    memcpy(qs_step_out(s, f, 0), p->sizes, (size_t)p->count * sizeof(p->sizes[0]));
}

static int lower_shape(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    int32_t start, end;
    shape_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    shape_range(l->node, x->rank, &start, &end);
    p->count = end - start;
    for (int32_t i = start; i < end; i++)
        p->sizes[i - start] = x->dims[i].size;
    l->step->run = run_shape;
    return QSIM_OK;
}

static const qs_attr_rule shape_attrs[] = {{"start", QSIM_ATTR_INT, 15, 0},
                                           {"end", QSIM_ATTR_INT, 15, 0}};

QS_OP(shape, .name = "Shape", .min_in = 1, QS_ATTRS(shape_attrs), .traits = QS_READS_SIZES,
      .kernel = QS_KERNEL_SHAPE, .infer = infer_shape, .lower = lower_shape);

/* ---- Size ---- */

static int infer_size(qs_infer *x) {
    return qs_infer_out(x, 0, QSIM_INT64, 0, NULL);
}

static void run_size(const qs_step *s, const qs_frame *f) {
    memcpy(qs_step_out(s, f, 0), s->params, sizeof(int64_t));
}

static int lower_size(qs_lower *l) {
    int64_t *count = qs_lower_params(l, sizeof(*count));
    if (!count)
        return QSIM_E_NOMEM;
    *count = (int64_t)qs_value_elements(qs_lower_in(l, 0));
    l->step->run = run_size;
    return QSIM_OK;
}

QS_OP(size, .name = "Size", .min_in = 1, .traits = QS_READS_SIZES, .kernel = QS_KERNEL_SHAPE,
      .infer = infer_size, .lower = lower_size);
