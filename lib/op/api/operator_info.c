/* SPDX-License-Identifier: MIT */
/* qsim_operator: describes rows of the operator table, with the types that shape rules accept. */
#include <assert.h>

#include "base/ctx.h"
#include "op/op.h"

#include <qsim/model.h>

/* Sets attributes that shape rules need before they check types. */
static int set_needed(qs_graph *g, qs_id node, const qs_op *op) {
    static const int64_t two[] = {2, 2};
    int code = QSIM_OK;
    for (int32_t i = 0; i < op->attr_count && !code; i++) {
        const char *name = op->attrs[i].name;
        if (qs_same(name, "kernel_shape"))
            code = qs_node_set_ints(g, node, name, two, 2);
        else if (qs_same(name, "to"))
            code = qs_node_set_int(g, node, name, QSIM_FLOAT);
        else if (qs_same(name, "hidden_size"))
            code = qs_node_set_int(g, node, name, 2);
    }
    return code;
}

/* Index of the first operand. */
static int32_t first_operand(const qs_op *op) {
    const qs_operand *x = &qs_op_operands(op)->x[0];
    return op->traits & (QS_INTEGER | QS_DEQUANTIZES) && x->zero_point ? x->at : 0;
}

/* A graph with one node of a row, whose inputs have unknown types and shapes. */
typedef struct example {
    qs_graph *g;
    qs_id node;
    const qs_op *op;
    bool float_fits;    /* the shape rule does not refuse floats, */
    int32_t float_made; /* and gives the output this type; */
    uint32_t traits;    /* traits of the node with floats */
} example;

#define INPUTS 16

static int example_make(qsim_ctx *ctx, const qs_op *op, example *s) {
    qs_id in[INPUTS] = {0};
    const qs_history *h = qs_op_more_of(op)->history;
    int32_t inputs = op->min_in;
    for (size_t i = 0; h && i < QS_COUNT(h->later); i++)
        if (h->later[i].since && h->later[i].min_in > inputs)
            inputs = h->later[i].min_in;
    assert(inputs <= INPUTS);
    *s = (example){.op = op};
    int code = qs_graph_create(ctx, &s->g);
    if (code)
        return code;
    for (int32_t i = 0; i < inputs; i++)
        if ((in[i] = qs_graph_add_value(s->g, NULL)) < 0)
            return QSIM_E_NOMEM;
    const qs_id y = qs_graph_add_value(s->g, NULL);
    if (y < 0)
        return QSIM_E_NOMEM;
    const char *domain = qs_op_domain(op);
    s->node = qs_graph_add_node(s->g, domain, op->name, "", in, inputs, &y, 1);
    if (s->node < 0)
        return QSIM_E_NOMEM;
    s->g->nodes[s->node].op = op;
    s->g->nodes[s->node].version = op->until    ? op->until
                                   : op->domain ? 1
                                                : (int32_t)qs_op_newest_opset();
    return set_needed(s->g, s->node, op);
}

/* Whether the shape rule accepts a type, for the first operand or, as matrices, for all of them. */
static bool takes(example *s, int32_t dtype) {
    qs_value made[2] = {0};
    qs_dim dims[2][QSIM_MAX_RANK], sizes[2] = {{-1, NULL}, {-1, NULL}};
    const qs_node *n = &s->g->nodes[s->node];
    int code = QSIM_E_DTYPE;
    for (int all = 0; all < 2 && (code == QSIM_E_DTYPE || code == QSIM_E_UNSUPPORTED); all++) {
        for (int32_t i = 0; i < n->input_count; i++) {
            if (i != first_operand(s->op) && !(all && qs_op_is_operand(s->op, i)))
                continue;
            s->g->values[n->inputs[i]].dtype = dtype;
            s->g->values[n->inputs[i]].rank = all ? 2 : -1;
            s->g->values[n->inputs[i]].dims = sizes;
        }
        const int now = qs_op_infer_node(s->g, s->g->values, s->node, made, dims, NULL, NULL);
        code = all && now ? code : now;
    }
    if (dtype == QSIM_FLOAT) {
        s->float_fits = code != QSIM_E_DTYPE;
        s->float_made = made[0].dtype;
        s->traits = qs_node_traits(s->g, n);
    }
    for (int32_t i = 0; i < n->input_count; i++) {
        s->g->values[n->inputs[i]].dtype = QSIM_UNDEFINED;
        s->g->values[n->inputs[i]].rank = -1;
    }
    return code != QSIM_E_DTYPE && code != QSIM_E_UNSUPPORTED;
}

/* The name of operator "QLinear" + this row's name; NULL: there is no such operator. */
static const char *qlinear_form(const qs_op *op) {
    for (size_t i = 0; i < qs_op_count(); i++) {
        const qs_op *row = qs_op_at(i);
        if (strncmp(row->name, "QLinear", 7) == 0 && qs_same(row->name + 7, op->name))
            return row->name;
    }
    return NULL;
}

static const char *form_of(const example *s) {
    const qs_op *op = s->op;
    const char *own = qlinear_form(op);
    if (own)
        return own;
    if (op->traits & QS_INTEGER)
        return "is one";
    if (op->traits & QS_QUANTIZES)
        return "makes integers";
    if (op->traits & QS_DEQUANTIZES)
        return "takes integers";
    if (op->traits & QS_MULTIPLIES)
        return "QLinearMatMul";
    if (op->traits & QS_MOVES)
        return "the same, on bytes";
    if (s->traits & QS_MOVES)
        return "the same, on bytes, if its attributes allow it";
    if (!(op->traits & QS_ELEMENTWISE) || !s->float_fits || s->float_made != QSIM_FLOAT)
        return "";
    return op->min_in > 1 || op->max_in < 0 ? "table, if one operand varies" : "table";
}

/* Least and greatest number of inputs over all versions of a row. */
static void count_inputs(const qs_op *op, qsim_operator_info *info) {
    int32_t low = op->min_in, high = op->max_in ? op->max_in : op->min_in;
    const qs_history *h = qs_op_more_of(op)->history;
    for (size_t i = 0; h && i < QS_COUNT(h->later); i++) {
        const qs_counts *c = &h->later[i];
        if (!c->since)
            continue;
        low = c->min_in < low ? c->min_in : low;
        high = high < 0 || c->max_in < 0 ? -1 : c->max_in > high ? c->max_in : high;
    }
    info->min_inputs = low;
    info->max_inputs = high;
}

static int describe(qsim_ctx *ctx, const qs_op *op, qsim_operator_info *info) {
    example s;
    int code = example_make(ctx, op, &s);
    for (int32_t t = 1; t < 32 && !code; t++)
        if (qsim_dtype_bits(t) > 0 && takes(&s, t) && (op->min_in || op->max_in))
            info->types |= 1u << t;
    qs_graph_free(s.g);
    if (code)
        return QSIM_E_NOMEM;
    info->domain = qs_op_domain(op);
    info->op_type = op->name;
    info->integer_form = form_of(&s);
    info->kernel = qs_op_kernel(op);
    info->since = op->since ? op->since : 1;
    info->until = op->until;
    count_inputs(op, info);
    return QSIM_OK;
}

int qsim_operator(qsim_ctx *ctx, int32_t index, qsim_operator_info *info) {
    qsim_operator_info own = {0};
    qsim_ctx *held;
    if (index < 0 || !info || !info->struct_size)
        return QSIM_E_ARGUMENT;
    if ((size_t)index >= qs_op_count() || qs_op_at((size_t)index)->domain == QS_DOMAIN_QSIM)
        return QSIM_E_NOT_FOUND;
    int code = qs_ctx_hold_bare(ctx, &held, NULL);
    if (code)
        return code;
    code = describe(held, qs_op_at((size_t)index), &own);
    qs_ctx_drop(held);
    return code ? code : qs_give(info, &own, sizeof(own));
}
