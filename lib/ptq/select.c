/* SPDX-License-Identifier: MIT */
/* Decides which nodes run in integers. */
#include "pass/pass.h"
#include "op/rules.h"
#include "ptq/quantizer.h"
#include "ptq/recipe.h"

bool qs_is_activation(const qs_graph *g, qs_id value) {
    return value != QS_NONE && !g->values[value].data && g->values[value].dtype == QSIM_FLOAT &&
           g->values[value].name[0];
}

const char *qs_node_label(const qs_graph *g, qs_id node) {
    const qs_node *n = &g->nodes[node];
    if (n->name && n->name[0])
        return n->name;
    return n->output_count > 0 && n->outputs[0] != QS_NONE ? g->values[n->outputs[0]].name : "";
}

int32_t qs_operand_count(const qs_graph *g, const qs_node *n) {
    if (n->op->kind == QS_KIND_WEIGHTS)
        return g->values[n->inputs[1]].data ? 1 : 2;
    return n->op->kind_inputs < 0 ? n->input_count : n->op->kind_inputs ? n->op->kind_inputs : 1;
}

qs_id qs_choice_output(const qs_quantizer *q, qs_id node) {
    while (q->choices[node].absorbs != QS_NONE)
        node = q->choices[node].absorbs;
    return q->g->nodes[node].outputs[0];
}

static const qs_const *float_constant(const qs_graph *g, qs_id value) {
    const qs_const *c = value == QS_NONE ? NULL : g->values[value].data;
    return c && c->dtype == QSIM_FLOAT ? c : NULL;
}

/* Whether a bias is left out, or a constant with one value for each channel. */
static bool bias_fits(const qs_graph *g, qs_id bias, int64_t channels) {
    if (bias == QS_NONE)
        return true;
    const qs_const *c = float_constant(g, bias);
    return c && c->rank >= 1 && c->rank <= 2 && c->dims[c->rank - 1] == channels &&
           c->elements == (size_t)channels;
}

/* ---- layers with weights ---- */

/* Describes the weights of a layer; false if its form has no integer kernel. */
static bool describe_layer(const qs_graph *g, const qs_node *n, qs_layer *l) {
    const qs_const *w =
        n->op->kind == QS_KIND_WEIGHTS ? float_constant(g, qs_node_input(n, 1)) : NULL;
    if (!w || !qs_is_activation(g, qs_node_input(n, 0)) || w->elements == 0)
        return false;
    const bool plain = qs_node_float(n, "alpha", 1) == 1.0f && qs_node_int(n, "transA", 0) == 0 &&
                       (qs_node_input(n, 2) == QS_NONE || qs_node_float(n, "beta", 1) == 1.0f);
    const bool fits = n->op->traits & QS_CONVOLVES ? w->rank >= 3 : w->rank == 2;
    l->axis = plain && fits ? qs_op_weight_axis(n, w->rank) : -1;
    if (l->axis < 0 || !bias_fits(g, qs_node_input(n, 2), w->dims[l->axis]))
        return false;
    l->channels = (size_t)w->dims[l->axis];
    l->depth = w->elements / l->channels;
    l->stride = l->axis == 0 ? l->depth : 1;
    l->step = l->axis == 0 ? 1 : l->channels;
    l->is_matrix =
        w->elements == (size_t)w->dims[0] * (size_t)w->dims[1] && qs_node_int(n, "group", 1) == 1;
    return true;
}

static int add_layer(qs_quantizer *q, qs_id node, qs_layer *l) {
    if (!qs_grow(q->ctx, (void **)&q->layers, &q->layer_capacity, q->layer_count,
                 sizeof(*q->layers)))
        return QSIM_E_NOMEM;
    l->node = node;
    q->choices[node].layer = (int32_t)q->layer_count;
    q->layers[q->layer_count++] = *l;
    return QSIM_OK;
}

/* ---- kinds ---- */

/* Whether all inputs that are not operands, such as bounds, are constants or left out. */
static bool settings_known(const qs_graph *g, const qs_node *n) {
    for (int32_t i = 0; i < n->input_count; i++)
        if (qs_op_in(n->op->setting_inputs, i) && n->inputs[i] != QS_NONE &&
            !float_constant(g, n->inputs[i]))
            return false;
    return true;
}

/* Whether the node is a Relu, or a Clip with constant bounds. */
static bool is_relu(const qs_graph *g, const qs_node *n) {
    return n->op->kind == QS_KIND_POOL && (n->op->traits & QS_ELEMENTWISE) && settings_known(g, n);
}

/*
 * Whether the first `count` inputs are activations; for element-wise operators some may be
 * constants.
 */
static bool operands_fit(const qs_graph *g, const qs_node *n, int32_t count) {
    int32_t moving = 0;
    for (int32_t i = 0; i < count; i++) {
        const bool activation = qs_is_activation(g, qs_node_input(n, i));
        const qs_const *c = float_constant(g, qs_node_input(n, i));
        moving += activation;
        if (!activation && !((n->op->traits & QS_ELEMENTWISE) && c && c->elements > 0))
            return false;
    }
    return moving > 0;
}

/* Whether each operand after the first `count` has one element, as in x / c. */
static bool others_are_numbers(const qs_graph *g, const qs_node *n, int32_t count) {
    for (int32_t i = count; i < n->input_count; i++) {
        const qs_const *c = float_constant(g, n->inputs[i]);
        if (!c || c->elements != 1)
            return false;
    }
    return true;
}

/*
 * Whether a fill value is in range: it has its input's scale, in which only zero is exact; other
 * constants may be far outside of it.
 */
static bool fills_in_range(const qs_graph *g, const qs_node *n) {
    if (!n->op->setting_inputs || !qs_node_string_is(n, "mode", "constant", true))
        return true;
    for (int32_t i = 0; i < n->input_count; i++) {
        const bool fills = qs_op_in(n->op->setting_inputs, i) && n->inputs[i] != QS_NONE;
        const qs_const *c = fills ? float_constant(g, n->inputs[i]) : NULL;
        if (fills && (!c || c->elements != 1 || qs_const_at(c, 0) != 0))
            return false;
    }
    return true;
}

/* Whether the node is x / c or x * c, where c has one element. */
static bool is_scaling(const qs_graph *g, const qs_node *n, qs_id x) {
    if (!(n->op->traits & (QS_SCALES | QS_DIVIDES)))
        return false;
    const qs_const *c = float_constant(g, qs_node_input(n, n->inputs[0] == x));
    return c && c->elements == 1 && (n->inputs[0] == x || (n->op->traits & QS_SCALES));
}

/* Whether every output is an activation; not so for a MaxPool with indices. */
static bool all_outputs(const qs_graph *g, const qs_node *n) {
    for (int32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i] == QS_NONE || !qs_is_activation(g, n->outputs[i]))
            return false;
    return true;
}

/* The row's kind, if the node's operands and settings allow that quantization. */
static qs_kind kind_of(const qs_graph *g, const qs_node *n) {
    const int32_t count = qs_operand_count(g, n);
    bool fits = n->op->kind != QS_KIND_FLOAT && n->op->kind != QS_KIND_WEIGHTS &&
                n->output_count > 0 && qs_is_activation(g, n->outputs[0]) &&
                operands_fit(g, n, count);
    bool keep;
    if (fits && n->op->kind == QS_KIND_ARITHMETIC)
        fits = others_are_numbers(g, n, count);
    if (fits && n->op->kind == QS_KIND_POOL)
        fits = n->op->traits & QS_REDUCES ? qs_is_global_mean(g, n, &keep) : settings_known(g, n);
    if (fits && n->op->kind == QS_KIND_MOVEMENT)
        fits = fills_in_range(g, n) && all_outputs(g, n);
    return fits ? n->op->kind : QS_KIND_FLOAT;
}

/* ---- rules ---- */

/*
 * Applies a rule to the nodes whose name or, with `types`, whose operator matches; false: there is
 * none.
 */
static bool apply_rule(qs_quantizer *q, const qsim_rule *rule, size_t number, bool types) {
    bool matched = false;
    for (size_t k = 0; k < q->g->order_count; k++) {
        qs_id id = q->g->order[k];
        const char *word = types ? q->g->nodes[id].op_type : qs_node_label(q->g, id);
        if (qs_glob(rule->pattern, word)) {
            const bool narrow = rule->action == QSIM_RULE_INT4;
            const bool wide = rule->action == QSIM_RULE_INT16;
            q->choices[id].forced = narrow || wide ? QSIM_RULE_INT8 : rule->action;
            q->choices[id].wide = wide;
            q->choices[id].bits = narrow ? 4 : 8;
            q->choices[id].rule = number;
            matched = true;
        }
    }
    return matched;
}

static int apply_rules(qs_quantizer *q) {
    int code = QSIM_OK;
    for (size_t r = 0; r < q->options.rule_count && !code; r++) {
        qsim_rule rule;
        code = qs_rule_get(&q->options, r, &rule, q->error);
        if (!code && !apply_rule(q, &rule, r + 1, false))
            (void)apply_rule(q, &rule, r + 1, true);
    }
    return code;
}

/* Whether a pattern names a node of the graph, or its operator. */
static int finds(void *pattern, qs_graph *g) {
    bool found = false;
    for (size_t k = 0; k < g->order_count && !found; k++)
        found = qs_glob(pattern, qs_node_label(g, g->order[k])) ||
                qs_glob(pattern, g->nodes[g->order[k]].op_type);
    return found;
}

int qs_rules_check(const qs_quantizer *q) {
    for (size_t r = 0; r < q->options.rule_count; r++) {
        qsim_rule rule;
        int code = qs_rule_get(&q->options, r, &rule, q->error);
        if (code)
            return code;
        if (!qs_graphs_visit(q->model->graph, finds, (void *)(uintptr_t)rule.pattern))
            return qs_fail(q->error, QSIM_E_NOT_FOUND, "%s: no node's name matches the rule '%s'",
                           q->model->name, rule.pattern);
    }
    return QSIM_OK;
}

/* ---- kinds of nodes ---- */

static size_t readers(const qs_quantizer *q, qs_id value) {
    return (size_t)(q->uses.start[value + 1] - q->uses.start[value]);
}

/* The only reader of a value that is no output; or QS_NONE. */
static qs_id only_reader(const qs_quantizer *q, qs_id value) {
    const bool one = !q->g->values[value].is_output && readers(q, value) == 1;
    return one ? q->uses.nodes[q->uses.start[value]] : QS_NONE;
}

/* Whether the node is a MatMul: a product whose row has no bias. */
static bool is_plain_product(const qs_node *n) {
    return n->op->kind == QS_KIND_WEIGHTS && !qs_op_takes_bias(n->op);
}

/*
 * Whether a node is one of the two products of attention: scores before a Softmax, or the product
 * of its result with values. Only scaling may be between scores and Softmax: the sum with a mask of
 * large numbers, for instance, would need more than 8 bits.
 */
static bool is_attention(const qs_quantizer *q, qs_id node) {
    const qs_graph *g = q->g;
    const qs_node *n = &g->nodes[node];
    if (!is_plain_product(n) || !operands_fit(g, n, 2) || n->inputs[0] == n->inputs[1])
        return false;
    const qs_id from = g->values[n->inputs[0]].producer;
    if (from != QS_NONE && (g->nodes[from].op->traits & QS_SOFTMAX))
        return true;
    for (int depth = 0; depth < 3; depth++) {
        const qs_id y = g->nodes[node].outputs[0];
        node = only_reader(q, y);
        if (node == QS_NONE || !is_scaling(g, &g->nodes[node], y))
            break;
    }
    return node != QS_NONE && (g->nodes[node].op->traits & QS_SOFTMAX);
}

/*
 * Whether the node adds a vector, the bias, to a MatMul: both are one operator then, rounded once.
 */
static bool is_bias_of(const qs_quantizer *q, const qs_node *matmul, const qs_node *add) {
    const bool pairs = q->options.mode == QSIM_MODE_STATIC && q->options.format == QSIM_FORMAT_QDQ;
    if (!pairs || !is_plain_product(matmul) || !(add->op->traits & QS_ADDS))
        return false;
    const qs_const *w = float_constant(q->g, qs_node_input(matmul, 1));
    const qs_const *b =
        float_constant(q->g, qs_node_input(add, add->inputs[0] == matmul->outputs[0]));
    return w && b && b->rank == 1 && w->rank == 2 && b->elements == (size_t)w->dims[1];
}

/* Whether the node is x + c, for instance, which may be part of a curve. */
static bool is_shift(const qs_graph *g, const qs_node *n) {
    const qs_const *a = float_constant(g, n->inputs[0]), *b = float_constant(g, n->inputs[1]);
    return (a && a->elements == 1) || (b && b->elements == 1);
}

/*
 * Makes a node absorb the Relu or Clip after it, or a MatMul its bias, if that is the only reader.
 */
static void absorb(qs_quantizer *q, qs_id node) {
    const qs_node *n = &q->g->nodes[node];
    qs_choice *c = &q->choices[node];
    bool takes = c->kind == QS_KIND_WEIGHTS ||
                 ((n->op->traits & QS_ELEMENTWISE) && qs_operand_count(q->g, n) == 2 &&
                  !(qs_has_curves(q) && is_shift(q->g, n)));
    qs_id y = n->outputs[0], next = takes ? only_reader(q, y) : QS_NONE;
    if (next == QS_NONE)
        return;
    qs_choice *after = &q->choices[next];
    /*
     * If a later rule makes the layer int8 it applies to its activation, too; else the value
     * between them would be quantized over its whole range.
     */
    const bool along = c->forced == QSIM_RULE_INT8 && c->rule > after->rule;
    if (after->forced == QSIM_RULE_FLOAT && !along)
        return;
    const qs_node *m = &q->g->nodes[next];
    const bool relu = is_relu(q->g, m) && m->inputs[0] == y && after->kind == QS_KIND_POOL;
    if (relu || (c->kind == QS_KIND_WEIGHTS && is_bias_of(q, n, m))) {
        c->absorbs = next;
        after->is_absorbed = true;
    }
}

/*
 * A tensor of the node that would be quantized but has no range, or is kept in float; or QS_NONE.
 */
static qs_id without_range(const qs_quantizer *q, qs_id node) {
    const qs_node *n = &q->g->nodes[node];
    const qs_choice *c = &q->choices[node];
    for (int32_t i = 0; i < n->input_count; i++)
        if (qs_reads_codes(q, node, i) && !qs_recipe_has_range(q, n->inputs[i]))
            return n->inputs[i];
    if (!qs_recipe_has_range(q, qs_choice_output(q, node)))
        return qs_choice_output(q, node);
    for (int32_t i = 1; c->kind == QS_KIND_MOVEMENT && i < n->output_count; i++)
        if (!qs_recipe_has_range(q, n->outputs[i]))
            return n->outputs[i];
    return QS_NONE;
}

static bool ranges_known(const qs_quantizer *q, qs_id node) {
    return without_range(q, node) == QS_NONE;
}

/* Fails if a rule or the recipe puts the node into integers and the calibration lacks one of its
 * tensors; the node would otherwise stay float without notice. */
static int check_wanted(const qs_quantizer *q, qs_id node) {
    const qsim_recipe_entry *e =
        qs_recipe_find(q->options.recipe, QSIM_RECIPE_LAYER, qs_node_label(q->g, node));
    const bool wanted = q->choices[node].forced == QSIM_RULE_INT8 ||
                        (e && e->action == QSIM_RECIPE_QUANTIZE && !q->choices[node].forced);
    const qs_id value = wanted && q->c ? without_range(q, node) : QS_NONE;
    if (value == QS_NONE)
        return QSIM_OK;
    const char *name = q->g->values[value].name;
    const qsim_recipe_entry *t = qs_recipe_find(q->options.recipe, QSIM_RECIPE_TENSOR, name);
    if (t && t->action == QSIM_RECIPE_FLOAT)
        return QSIM_OK;
    qs_fail(q->error, QSIM_E_NOT_FOUND,
            "%s: the layer '%s' is to be in integers, but its tensor '%s' was not calibrated",
            q->model->name, qs_node_label(q->g, node), name);
    qs_hint(q->error,
            "calibrate with the same rules and recipe, on samples of each branch of an If");
    return QSIM_E_NOT_FOUND;
}

static int classify(qs_quantizer *q) {
    for (size_t i = 0; i < q->node_count; i++)
        q->choices[i] = (qs_choice){.layer = -1, .absorbs = QS_NONE, .curve = QS_NONE};
    for (size_t k = 0; k < q->g->order_count; k++) {
        qs_id node = q->g->order[k];
        const qs_node *n = &q->g->nodes[node];
        qs_layer l = {0};
        if (!describe_layer(q->g, n, &l)) {
            q->choices[node].kind = is_attention(q, node) ? QS_KIND_ARITHMETIC : kind_of(q->g, n);
            continue;
        }
        q->choices[node].kind = QS_KIND_WEIGHTS;
        int code = add_layer(q, node, &l);
        if (code)
            return code;
    }
    int code = qs_masks_keep_float(q);
    if (!code && q->options.mode != QSIM_MODE_WEIGHTS)
        code = qs_logarithms_keep_float(q);
    if (code)
        return code;
    qs_recipe_force(q);
    code = apply_rules(q);
    for (size_t i = 0; i < q->layer_count; i++)
        q->layers[i].form = qs_recipe_weights(q, q->layers[i].node);
    for (size_t k = 0; k < q->g->order_count && !code; k++)
        absorb(q, q->g->order[k]);
    return code ? code : qs_curves_find(q);
}

/* ---- decisions ---- */

/* Whether a node in integers makes an activation that the node reads. */
static bool reads_integers(const qs_quantizer *q, qs_id node) {
    const qs_node *n = &q->g->nodes[node];
    for (int32_t i = 0; i < n->input_count; i++) {
        qs_id from = n->inputs[i] == QS_NONE ? QS_NONE : q->g->values[n->inputs[i]].producer;
        if (from != QS_NONE && qs_is_activation(q->g, n->inputs[i]) && q->choices[from].integer)
            return true;
    }
    return false;
}

/* Finds, for every node, whether a layer with weights in integers comes after it. */
static void find_tail(const qs_quantizer *q, bool *leads_on) {
    for (size_t k = q->g->order_count; k-- > 0;) {
        qs_id node = q->g->order[k];
        const qs_node *n = &q->g->nodes[node];
        for (int32_t i = 0; i < n->output_count; i++)
            for (qs_id u = n->outputs[i] == QS_NONE ? 0 : q->uses.start[n->outputs[i]];
                 n->outputs[i] != QS_NONE && u < q->uses.start[n->outputs[i] + 1]; u++) {
                qs_id next = q->uses.nodes[u];
                leads_on[node] |= leads_on[next] || (q->choices[next].kind == QS_KIND_WEIGHTS &&
                                                     q->choices[next].integer);
            }
    }
}

/*
 * Whether only a sum in float, or the like, reads the node's result, such as the squares of a
 * variance or of an energy: 8 bits would lose the small ones, and save nothing.
 */
static bool is_for_float_sum(const qs_quantizer *q, qs_id node) {
    const qs_id reader = only_reader(q, qs_choice_output(q, node));
    return reader != QS_NONE && q->choices[reader].kind == QS_KIND_FLOAT &&
           (q->g->nodes[reader].op->traits & QS_REDUCES);
}

static void decide(qs_quantizer *q, qs_id node, bool leads_on) {
    qs_choice *c = &q->choices[node];
    if (c->kind == QS_KIND_FLOAT || c->kind == QS_KIND_WEIGHTS || c->is_absorbed ||
        c->forced == QSIM_RULE_FLOAT || !ranges_known(q, node))
        return;
    bool wanted = c->forced == QSIM_RULE_INT8 || reads_integers(q, node);
    /* Heads: comparing and decoding scores needs more than 8 bits. */
    if (c->kind == QS_KIND_ARITHMETIC && c->forced != QSIM_RULE_INT8 &&
        (!leads_on || is_for_float_sum(q, node)))
        wanted = false;
    c->integer = wanted;
}

/*
 * Marks the activation or bias that a node in integers absorbs; releases that of others. All nodes
 * of a curve are what its first one is.
 */
static void set_absorbed(qs_quantizer *q, qs_id node, bool leads_on) {
    qs_id relu = q->choices[node].absorbs;
    if (relu == QS_NONE)
        return;
    if (q->choices[node].curve != QS_NONE) {
        q->choices[relu].integer = q->choices[node].integer;
        return;
    }
    if (q->choices[node].integer) {
        q->choices[relu].integer = true;
        return;
    }
    q->choices[relu].is_absorbed = false;
    q->choices[node].absorbs = QS_NONE;
    decide(q, relu, leads_on);
}

/*
 * Puts operators that move elements before nodes in integers into integers, so that they move
 * bytes.
 */
static void mark_movement(qs_quantizer *q) {
    for (size_t k = q->g->order_count; k-- > 0;) {
        qs_id node = q->g->order[k];
        const qs_node *n = &q->g->nodes[node];
        qs_choice *c = &q->choices[node];
        bool all = n->output_count == 1 && !q->g->values[n->outputs[0]].is_output &&
                   readers(q, n->outputs[0]) > 0;
        if (c->kind != QS_KIND_MOVEMENT || c->integer || c->forced == QSIM_RULE_FLOAT || !all ||
            !ranges_known(q, node))
            continue;
        for (qs_id u = q->uses.start[n->outputs[0]]; u < q->uses.start[n->outputs[0] + 1]; u++)
            all &= q->choices[q->uses.nodes[u]].integer;
        c->integer = all;
    }
}

/* Whether sums of products up to 255 * 128 fit int32: in dynamic mode ranges are not known. */
static bool sums_fit(const qs_quantizer *q, const qs_layer *l) {
    return q->options.mode != QSIM_MODE_DYNAMIC || l->depth <= INT32_MAX / (255 * 128);
}

int qs_select(qs_quantizer *q) {
    int code = classify(q);
    if (code)
        return code;
    bool *leads_on = qs_calloc(q->ctx, q->node_count ? q->node_count : 1, sizeof(*leads_on));
    if (!leads_on)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < q->layer_count && !code; i++) {
        qs_id node = q->layers[i].node;
        code = check_wanted(q, node);
        q->choices[node].integer = q->choices[node].forced != QSIM_RULE_FLOAT &&
                                   ranges_known(q, node) && sums_fit(q, &q->layers[i]);
    }
    find_tail(q, leads_on);
    for (size_t k = 0; k < q->g->order_count && !code; k++) {
        code = qs_go_on_at(q->ctx, k, q->model->name, q->error);
        decide(q, q->g->order[k], leads_on[q->g->order[k]]);
        set_absorbed(q, q->g->order[k], leads_on[q->g->order[k]]);
    }
    mark_movement(q);
    qs_free(q->ctx, leads_on);
    return code;
}
