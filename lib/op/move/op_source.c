/* SPDX-License-Identifier: MIT */
/* Constant and Dropout. */
#include "op/expand.h"

#include "op/move/source.h"

/* ---- Constant ---- */

typedef struct constant {
    int32_t dtype, rank;
    const int64_t *dims;
    int64_t count; /* elements of a list */
    const void *data;
    size_t bytes;
} constant;

static bool read_constant(const qs_attr *a, constant *c) {
    memset(c, 0, sizeof(*c));
    switch (a->type) {
    case QSIM_ATTR_TENSOR:
        *c = (constant){a->u.tensor->dtype, a->u.tensor->rank, a->u.tensor->dims, 0,
                        a->u.tensor->data,  a->u.tensor->bytes};
        return true;
    case QSIM_ATTR_FLOAT: *c = (constant){QSIM_FLOAT, 0, NULL, 0, &a->u.f, 4}; return true;
    case QSIM_ATTR_INT: *c = (constant){QSIM_INT64, 0, NULL, 0, &a->u.i, 8}; return true;
    case QSIM_ATTR_FLOATS:
        *c = (constant){QSIM_FLOAT, 1, NULL, a->count, a->u.floats, (size_t)a->count * 4};
        return true;
    case QSIM_ATTR_INTS:
        *c = (constant){QSIM_INT64, 1, NULL, a->count, a->u.ints, (size_t)a->count * 8};
        return true;
    default: return false;
    }
}

static int constant_value(const qs_infer *x, constant *c) {
    if (x->node->attr_count != 1)
        return qs_infer_fail(x, QSIM_E_GRAPH, "%d values, expected 1", (int)x->node->attr_count);
    if (!read_constant(&x->node->attrs[0], c))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "attribute '%s' is not supported",
                             x->node->attrs[0].name);
    return QSIM_OK;
}

bool qs_constant_read(const qs_node *n, qs_const *out) {
    constant c;
    if (!qs_node_is_onnx(n, "Constant") || n->attr_count != 1 || !read_constant(&n->attrs[0], &c))
        return false;
    size_t element = qs_dtype_bytes(c.dtype);
    if (!element)
        return false;
    *out = (qs_const){.dtype = c.dtype,
                      .rank = c.rank,
                      .data = c.data,
                      .bytes = c.bytes,
                      .elements = c.bytes / element};
    return true;
}

static int infer_constant(qs_infer *x) {
    constant c;
    qs_dim dims[QSIM_MAX_RANK];
    int code = constant_value(x, &c);
    if (code)
        return code;
    if (c.rank > QSIM_MAX_RANK)
        return qs_infer_fail(x, QSIM_E_LIMIT, "rank %d; at most %d is possible", (int)c.rank,
                             QSIM_MAX_RANK);
    for (int32_t i = 0; i < c.rank; i++)
        dims[i] = (qs_dim){c.dims ? c.dims[i] : c.count, NULL};
    return qs_infer_out(x, 0, c.dtype, c.rank, dims);
}

static void run_constant(const qs_step *s, const qs_frame *f) {
    const constant *c = s->params;
    qs_copy(f->ctx, qs_step_out(s, f, 0), c->data, c->bytes);
}

static int lower_constant(qs_lower *l) {
    constant *c = qs_lower_params(l, sizeof(*c));
    qs_infer x;
    if (!c)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = constant_value(&x, c);
    l->step->run = run_constant;
    return code;
}

static const qs_attr_rule constant_attrs[] = {
    {"value", QSIM_ATTR_TENSOR, 1, 0},         {"sparse_value", QSIM_ATTR_TENSOR, 11, 0},
    {"value_float", QSIM_ATTR_FLOAT, 12, 0},   {"value_floats", QSIM_ATTR_FLOATS, 12, 0},
    {"value_int", QSIM_ATTR_INT, 12, 0},       {"value_ints", QSIM_ATTR_INTS, 12, 0},
    {"value_string", QSIM_ATTR_STRING, 12, 0}, {"value_strings", QSIM_ATTR_STRINGS, 12, 0}};

QS_OP(constant, .name = "Constant", QS_ATTRS(constant_attrs), .traits = QS_PLAIN,
      .kernel = QS_KERNEL_CONSTANT, .infer = infer_constant, .lower = lower_constant);

/* ---- Dropout ---- */

/* Whether elements are dropped, or may be: training_mode and ratio are not known to prevent it. */
static bool drops(const qs_value *ratio, const qs_value *training) {
    float drop = 0.5f;
    if (ratio && ratio->data && ratio->data->dtype == QSIM_FLOAT && ratio->data->elements == 1)
        memcpy(&drop, ratio->data->data, sizeof(drop));
    const qs_const *on = training ? training->data : NULL;
    return training && drop != 0.0f && !(on && on->bytes == 1 && !*(const uint8_t *)on->data);
}

static const qs_value *value_of(const qs_graph *g, const qs_node *n, int32_t index) {
    const qs_id id = qs_node_input(n, index);
    return id == QS_NONE ? NULL : &g->values[id];
}

static uint32_t also_dropout(const qs_graph *g, const qs_node *n) {
    return drops(value_of(g, n, 1), value_of(g, n, 2)) ? QS_RANDOM : 0;
}

static int infer_dropout(qs_infer *x) {
    bool typed_mask = x->node->version < 10 && x->node->output_count > 1;
    int code = qs_infer_type(x, 0, typed_mask ? QS_T_FLOAT : QS_T_BYTES);
    if (!code && x->node->version < 7 && !qs_node_int(x->node, "is_test", 0))
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "is_test is 0: training is not supported");
    if (!code)
        code = qs_infer_like(x, 0, 0);
    if (code)
        return code;
    const qs_value *in = x->in[0];
    return qs_infer_out(x, 1, x->node->version < 10 ? in->dtype : QSIM_BOOL, in->rank, in->dims);
}

typedef struct dropout_params {
    size_t bytes, elements;
    bool float_mask; /* before version 10 the mask has the input's type */
} dropout_params;

static void run_dropout(const qs_step *s, const qs_frame *f) {
    const dropout_params *p = s->params;
    float *mask = qs_step_out(s, f, 1);
    qs_copy(f->ctx, qs_step_out(s, f, 0), qs_step_in(s, f, 0), p->bytes);
    for (size_t at = 0, n; (n = qs_piece(f->ctx, at, p->elements)); at += n) {
        if (!p->float_mask)
            memset((uint8_t *)mask + at, 1, n);
        for (size_t i = 0; p->float_mask && i < n; i++)
            mask[at + i] = 1.0f;
    }
}

static int lower_dropout(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *mask = qs_lower_out(l, 1);
    qs_infer view;
    qs_lower_infer(l, &view);
    if (also_dropout(l->graph, l->node))
        return qs_infer_fail(&view, QSIM_E_UNSUPPORTED,
                             "the type must be in the file for training_mode");
    if (!mask) {
        l->alias = true;
        return QSIM_OK;
    }
    dropout_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->elements = qs_value_elements(x);
    p->bytes = p->elements * qs_dtype_bytes(x->dtype);
    p->float_mask = mask->dtype == QSIM_FLOAT;
    l->step->run = run_dropout;
    return QSIM_OK;
}

/* Element i is kept, and divided by 1 - ratio, if uniform number i is not below the ratio. */
QS_COLD static void expand_dropout(qs_expand *e) {
    qs_node *n = &e->graph->nodes[e->node_id];
    const int32_t dtype = qs_expand_value(e, 0)->dtype;
    const qs_attr *seed = qs_node_attr(n, "seed");
    const float key = seed ? (float)seed->u.i : 0;
    if (!also_dropout(e->graph, n) || dtype == QSIM_UNDEFINED)
        return;
    if (!n->name[0] && e->graph->values[n->outputs[0]].name)
        n->name = e->graph->values[n->outputs[0]].name; /* random numbers depend on it */
    const qs_id x = qs_expand_in(e, 0), ratio = qs_expand_in(e, 1);
    const qs_id none = qs_expand_number(e, dtype, 0), one = qs_expand_number(e, dtype, 1);
    const qs_id given =
        ratio == QS_NONE ? qs_expand_number(e, dtype, 0.5) : qs_expand_cast(e, ratio, dtype);
    const qs_id drop = qs_expand_add(e, "Where", qs_expand_in(e, 2), given, none);
    const qs_id numbers = qs_expand_one(e, "RandomUniformLike", x);
    if (seed)
        qs_expand_float(e, numbers, "seed", key);
    const qs_id scale = qs_expand_two(e, "Div", one, qs_expand_two(e, "Sub", one, drop));
    e->out[1] = qs_expand_two(e, "GreaterOrEqual", numbers, drop);
    e->out[0] = qs_expand_add(e, "Where", e->out[1], qs_expand_two(e, "Mul", x, scale), none);
}

static int upgrade_dropout(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    if (g->nodes[node].version >= 12 || to < 12)
        return QSIM_OK;
    (void)error;
    qs_node_drop_attr(g, node, "ratio");
    qs_node_drop_attr(g, node, "is_test");
    return QSIM_OK;
}

static const qs_attr_rule dropout_attrs[] = {{"ratio", QSIM_ATTR_FLOAT, 1, 11},
                                             {"is_test", QSIM_ATTR_INT, 1, 6},
                                             {"consumed_inputs", QSIM_ATTR_INTS, 1, 5},
                                             {"seed", QSIM_ATTR_INT, 12, 0}};

QS_OP(dropout, .name = "Dropout", .min_in = 1, .max_out = 2,
      QS_MORE(QS_HISTORY(.later = {{12, 1, 3, 2}}, .upgrade = upgrade_dropout),
              .also = also_dropout),
      QS_ATTRS(dropout_attrs), .traits = QS_PLAIN, .moments = QS_MOMENTS_SAME,
      .setting_inputs = 1 << 1 | 1 << 2, .kernel = QS_KERNEL_DROPOUT, .infer = infer_dropout,
      .lower = lower_dropout, .expand = expand_dropout);
