/* SPDX-License-Identifier: MIT */
/* Constant, and Dropout for inference. */
#include "op/rules.h"

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
    case QS_ATTR_TENSOR:
        *c = (constant){a->u.tensor->dtype, a->u.tensor->rank, a->u.tensor->dims, 0,
                        a->u.tensor->data,  a->u.tensor->bytes};
        return true;
    case QS_ATTR_FLOAT: *c = (constant){QSIM_FLOAT, 0, NULL, 0, &a->u.f, 4}; return true;
    case QS_ATTR_INT: *c = (constant){QSIM_INT64, 0, NULL, 0, &a->u.i, 8}; return true;
    case QS_ATTR_FLOATS:
        *c = (constant){QSIM_FLOAT, 1, NULL, a->count, a->u.floats, (size_t)a->count * 4};
        return true;
    case QS_ATTR_INTS:
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
    if (!qs_node_is(n, "", "Constant") || n->attr_count != 1 || !read_constant(&n->attrs[0], &c))
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
    {"value", QS_ATTR_TENSOR, 1, 0},          {"value_float", QS_ATTR_FLOAT, 12, 0},
    {"value_floats", QS_ATTR_FLOATS, 12, 0},  {"value_int", QS_ATTR_INT, 12, 0},
    {"value_ints", QS_ATTR_INTS, 12, 0},      {"value_string", QS_ATTR_STRING, 12, 0},
    {"value_strings", QS_ATTR_STRINGS, 12, 0}};

QS_OP(constant, .name = "Constant", QS_ATTRS(constant_attrs), .traits = QS_PLAIN,
      .kernel = QS_KERNEL_CONSTANT, .infer = infer_constant, .lower = lower_constant);

/* ---- Dropout ---- */

/* Accepts training only if the ratio is 0: nothing is dropped then. */
static int dropout_inference(const qs_infer *x) {
    const qs_value *training = qs_infer_in(x, 2), *ratio = qs_infer_in(x, 1);
    float drop = 0.5f;
    uint8_t on = 0;
    if (ratio && ratio->data && ratio->data->dtype == QSIM_FLOAT && ratio->data->elements == 1)
        memcpy(&drop, ratio->data->data, sizeof(drop));
    if (x->node->version < 7)
        on = qs_node_int(x->node, "is_test", 0) == 0;
    else if (training && training->data && training->data->bytes == 1)
        memcpy(&on, training->data->data, 1);
    else if (training)
        on = 1;
    return on && drop != 0.0f
               ? qs_infer_fail(x, QSIM_E_UNSUPPORTED, "training mode is not supported")
               : QSIM_OK;
}

static int infer_dropout(qs_infer *x) {
    bool typed_mask = x->node->version < 10 && x->node->output_count > 1;
    int code = qs_infer_type(x, 0, typed_mask ? QS_T_FLOAT : QS_T_BYTES);
    if (!code)
        code = dropout_inference(x);
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

static int upgrade_dropout(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    if (g->nodes[node].version >= 12 || to < 12)
        return QSIM_OK;
    (void)error;
    qs_node_drop_attr(g, node, "ratio");
    qs_node_drop_attr(g, node, "is_test");
    return QSIM_OK;
}

static const qs_attr_rule dropout_attrs[] = {{"ratio", QS_ATTR_FLOAT, 1, 11},
                                             {"is_test", QS_ATTR_INT, 1, 6},
                                             {"consumed_inputs", QS_ATTR_INTS, 1, 5},
                                             {"seed", QS_ATTR_INT, 12, 0}};

QS_OP(dropout, .name = "Dropout", .min_in = 1, .max_out = 2,
      QS_HISTORY(.later = {{12, 1, 3, 2}}, .upgrade = upgrade_dropout), QS_ATTRS(dropout_attrs),
      .traits = QS_PLAIN, .moments = QS_MOMENTS_SAME, .setting_inputs = 1 << 1 | 1 << 2,
      .kernel = QS_KERNEL_DROPOUT, .infer = infer_dropout, .lower = lower_dropout);
