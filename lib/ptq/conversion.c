/* SPDX-License-Identifier: MIT */
/*
 * Quantized models in another form. Every operator on quantized integers becomes the float operator
 * that its row names, between DequantizeLinear of its operands and QuantizeLinear of its result;
 * operators that move integers move floats, in the same way. conversion_floats.c goes on from
 * there.
 */
#include "ptq/conversion.h"

#include "base/ctx.h"
#include "op/rules.h"
#include "ptq/quantizer.h"

#define OPSET 13 /* the first with scales per channel */

/*
 * Conversions are tried one after the other until one succeeds. All but the first replace operators
 * of com.microsoft by those of ONNX, whose opsets have more and more: LayerNormalization, blocks,
 * Attention, 2 bits.
 */
static const int8_t opsets[] = {OPSET, OPSET, 17, 21, 23, 25, QS_OPSET_NEWEST};
#define TIMES_FORMATS 4 /* in what qs_pass_derive hands on: the number of a try, and a format */

/* Scale and zero point of a quantized tensor; scale QS_NONE: not known. */
typedef struct scaled_by {
    qs_id scale, zero_point;
} scaled_by;

/* What is known of a value of the model. */
typedef struct known {
    scaled_by by;   /* of integers: as the node that makes them states it */
    qs_id floats;   /* the result of the DequantizeLinear that was added last; or none */
    scaled_by read; /* by which that node reads them */
    int32_t axis;
} known;

typedef struct convert {
    qs_pass *p;
    qs_graph *g;
    qs_quantizer q; /* what write.c takes */
    known *known;
    bool contributed; /* a node is of com.microsoft */
    bool stays;       /* operators of ONNX stay as they are */
    bool floats;      /* no pairs are to be left */
} convert;

int qs_convert_refuse(const qs_pass *p, qs_id node, const char *why) {
    return qs_node_fail(p->error, QSIM_E_UNSUPPORTED, p->model, &p->graph->nodes[node],
                        "cannot be converted: %s", why);
}

bool qs_convert_same(const qs_graph *g, qs_id a, qs_id b) {
    const qs_const *x = a < 0 ? NULL : g->values[a].data, *y = b < 0 ? NULL : g->values[b].data;
    return a == b || (x && y && x->dtype == y->dtype && x->bytes == y->bytes &&
                      memcmp(x->data, y->data, x->bytes) == 0);
}

static bool is_same(const qs_graph *g, const scaled_by *a, const scaled_by *b) {
    return qs_convert_same(g, a->scale, b->scale) &&
           qs_convert_same(g, a->zero_point, b->zero_point);
}

const char *qs_convert_cut(qs_graph *g, const char *name, const char *ending) {
    const size_t size = strlen(name), end = strlen(ending);
    return size > end && strcmp(name + size - end, ending) == 0
               ? qs_arena_string(&g->arena, name, size - end)
               : name;
}

/* ---- QuantizeLinear and DequantizeLinear ---- */

/*
 * Adds a node between integers `v` and floats, which are returned. They have the name of `v`, with
 * `ending` in place of "_quantized".
 */
static qs_id add_node(convert *c, const char *op_type, qs_id v, const scaled_by *by,
                      const char *ending) {
    const char *base = qs_convert_cut(c->g, c->g->values[v].name, "_quantized");
    qs_id zero = by->zero_point, node;
    if (!base)
        return QSIM_E_NOMEM;
    const qs_id y = qs_write_value(&c->q, base, ending, QSIM_FLOAT, v);
    if (op_type[0] == 'D') {
        node = qs_write_node(&c->q, op_type, base, v, by->scale, zero, y);
    } else {
        if (zero == QS_NONE) /* without one, integers would be uint8 */
            zero = qs_pass_const(c->p, c->g->values[v].dtype, 0, NULL, &(int64_t){0});
        node = qs_write_node(&c->q, op_type, base, y, by->scale, zero, v);
    }
    const int code = node < 0 ? node : qs_pass_resolve(c->p, node);
    return code ? code : y;
}

/* The floats of integers `v`, made once for all that read them by the same scale. */
static qs_id dequantize(convert *c, qs_id v, const scaled_by *by, int32_t axis) {
    known *k = &c->known[v];
    if (k->floats != QS_NONE && k->axis == axis && is_same(c->g, &k->read, by))
        return k->floats;
    k->floats = add_node(c, "DequantizeLinear", v, by, "_DequantizeLinear_Output");
    k->read = *by;
    k->axis = axis;
    const qs_value *s = &c->g->values[by->scale];
    if (k->floats >= 0 && s->rank > 0 && s->dims[0].size != 1 &&
        qs_node_set_int(c->g, (qs_id)c->g->node_count - 1, "axis", axis))
        return QSIM_E_NOMEM;
    return k->floats;
}

/* Makes `v` the integers of new floats, which are returned. */
static qs_id quantize(convert *c, qs_id v, const scaled_by *by) {
    const char *name = c->g->values[v].name;
    c->known[v].by = *by;
    return add_node(c, "QuantizeLinear", v, by,
                    strstr(name, "_quantized") ? "" : "_QuantizeLinear_Input");
}

/* ---- operators on quantized integers ---- */

/* The quantized operand that input `i` is; NULL: it is none. */
static const qs_operand *operand(const qs_operands *o, int32_t i) {
    if (o->w.zero_point && i == o->w.at)
        return &o->w;
    if (o->x[1].zero_point && i == o->x[1].at)
        return &o->x[1];
    return i == o->x[0].at || o->step ? &o->x[0] : NULL;
}

/* The floats of an int32 bias, whose scale is x_scale * w_scale. */
static qs_id dequantize_bias(convert *c, qs_id id, qs_id b, qs_id x, qs_id weights) {
    const qs_const *w = c->g->values[weights].data;
    double unit;
    if (!c->g->values[b].data || !qs_const_scalar(c->g, x, &unit) || !w)
        return qs_convert_refuse(c->p, id, "its bias or a scale is not a constant");
    float *s = qs_arena_alloc(&c->g->arena, w->elements + 1, sizeof(*s));
    for (size_t i = 0; s && i < w->elements; i++)
        s[i] =
            (float)unit * qs_node_float(&c->g->nodes[id], "alpha", 1.0f) * (float)qs_const_at(w, i);
    const qs_id scale = s ? qs_write_constant(&c->q, c->g->values[b].name, "_scale", QSIM_FLOAT,
                                              w->rank, w->dims, s)
                          : -1;
    return scale < 0 ? QSIM_E_NOMEM
                     : dequantize(c, b, &(scaled_by){scale, QS_NONE}, c->g->values[b].rank - 1);
}

/* Makes `y` the output of a node, whose old one another node makes already. */
static void move_output(convert *c, qs_id id, int32_t index, qs_id y) {
    qs_node *n = &c->g->nodes[id];
    n->outputs[index] = y;
    n->changed = true;
    c->g->values[y].producer = id;
}

/* The node becomes the operator on floats, with a QuantizeLinear of its result. */
static int convert_node(convert *c, qs_id id) {
    qs_graph *g = c->g;
    const qs_node n = g->nodes[id]; /* but its inputs are replaced */
    const qs_operands *o = qs_op_operands(n.op);
    const qs_op *to =
        o->prefix ? qs_op_find("", n.op->name + o->prefix, qs_graph_import(g, ""), NULL) : NULL;
    const scaled_by result = {qs_node_input(&n, o->y.scale), qs_node_input(&n, o->y.zero_point)};
    qs_id y = n.outputs[0], x = QS_NONE, w = QS_NONE;
    int32_t count = 0;
    if (!to)
        return c->stays ? QSIM_OK : qs_convert_refuse(c->p, id, "it has no form on floats here");
    if (qs_node_int(&n, "channels_last", 0))
        return qs_convert_refuse(c->p, id, "channels_last is 1");
    const int64_t axis = qs_node_int(&n, "axis", 1); /* of QLinearSoftmax */
    if (qs_node_int(&n, "opset", OPSET) < OPSET && axis != -1 &&
        axis != g->values[n.inputs[0]].rank - 1)
        return qs_convert_refuse(c->p, id, "before opset 13 its axis has to be the last");
    g->nodes[id].op = to;
    for (int32_t i = 0; i < n.input_count; i++) {
        qs_id v = n.inputs[i];
        const qs_operand *k = operand(o, i);
        const bool weights = k == &o->w;
        if (v == QS_NONE || !qs_op_is_operand(n.op, i))
            continue;
        const int32_t rank = g->values[v].rank;
        if (k) {
            const scaled_by by = {qs_node_input(&n, k->scale + i - k->at),
                                  qs_node_input(&n, k->zero_point + i - k->at)};
            if (by.scale == QS_NONE)
                return qs_convert_refuse(c->p, id, "a scale is left out");
            *(weights ? &w : &x) = by.scale;
            v = dequantize(c, v, &by, weights ? qs_op_weight_axis(&g->nodes[id], rank) : rank - 2);
        } else if (g->values[v].dtype == QSIM_INT32) {
            v = dequantize_bias(c, id, v, x, w);
        }
        if (v < 0)
            return v;
        n.inputs[count++] = v;
    }
    if (o->y.zero_point && result.scale != QS_NONE) {
        y = quantize(c, y, &result);
        if (y < 0)
            return y;
        move_output(c, id, 0, y);
    }
    qs_node *made = &g->nodes[id];
    made->input_count = count;
    made->changed = true;
    made->domain = "";
    made->op_type = to->name;
    made->version = (int32_t)qs_graph_import(g, "");
    qs_node_drop_attr(g, id, "channels_last");
    qs_node_drop_attr(g, id, "opset");
    return qs_pass_resolve(c->p, id);
}

/* ---- operators that move integers ---- */

/*
 * A node that moves integers, all of one scale or constants, moves floats. Without a value Pad
 * fills with the integer 0, which stands for another float.
 */
static int move_floats(convert *c, qs_id id) {
    qs_graph *g = c->g;
    const qs_node *n = &g->nodes[id];
    const qs_id x = qs_node_input(n, 0);
    if (x == QS_NONE || !(qs_node_traits(g, n) & QS_MOVES) || c->known[x].by.scale == QS_NONE ||
        g->values[c->known[x].by.scale].rank > 0 ||
        (qs_node_is_onnx(n, "Pad") && qs_node_input(n, 2) == QS_NONE &&
         qs_node_string_is(n, "mode", "constant", true)))
        return QSIM_OK;
    const scaled_by by = c->known[x].by;
    const int32_t dtype = g->values[x].dtype, inputs = n->input_count, outputs = n->output_count;
    qs_id *const in = n->inputs;
    for (int32_t i = 1; i < inputs; i++)
        if (in[i] != QS_NONE && g->values[in[i]].dtype == dtype && !g->values[in[i]].data &&
            !is_same(g, &c->known[in[i]].by, &by))
            return QSIM_OK;
    for (int32_t i = 0; i < inputs; i++) {
        if (in[i] == QS_NONE || g->values[in[i]].dtype != dtype)
            continue;
        in[i] = dequantize(c, in[i], &by, 0);
        if (in[i] < 0)
            return in[i];
    }
    for (int32_t i = 0; i < outputs; i++) {
        const qs_id v = g->nodes[id].outputs[i];
        if (v == QS_NONE || g->values[v].dtype != dtype)
            continue;
        const qs_id y = quantize(c, v, &by);
        if (y < 0)
            return y;
        move_output(c, id, i, y);
    }
    return QSIM_OK;
}

/* ---- the graph ---- */

/* Whether a node is on quantized integers: by its row, or as MatMulNBits of com.microsoft is. */
static bool is_quantized(const qs_graph *g, const qs_node *n) {
    if (n->op && qs_op_more_of(n->op)->operands)
        return true;
    for (int32_t i = 0; i < n->input_count && qs_same(n->domain, "com.microsoft"); i++) {
        const int32_t dtype = n->inputs[i] == QS_NONE ? QSIM_BOOL : g->values[n->inputs[i]].dtype;
        if (dtype != QSIM_BOOL && qsim_dtype_bits(dtype) <= 8)
            return true;
    }
    return false;
}

static int visit(convert *c, qs_id id) {
    const qs_node *n = &c->g->nodes[id];
    const uint32_t traits = qs_node_traits(c->g, n);
    int code = qs_go_on(c->p->ctx, c->p->model, c->p->error);
    if (code)
        return code;
    if (traits & QS_QUANTIZES && n->outputs[0] != QS_NONE && n->output_count == 1)
        c->known[n->outputs[0]].by = (scaled_by){n->inputs[1], qs_node_input(n, 2)};
    else if (!(traits & QS_DEQUANTIZES) && !(c->stays && qs_node_in_onnx(n)))
        code = is_quantized(c->g, n) ? convert_node(c, id) : move_floats(c, id);
    c->contributed |= qs_same(c->g->nodes[id].domain, "com.microsoft");
    return code;
}

/* Refuses quantized operators in graphs inside of nodes, which stay as they are. */
static int check_inside(void *user, qs_graph *g) {
    const convert *c = user;
    qs_pass own = *c->p;
    own.graph = g;
    for (size_t k = 0; k < g->order_count && g != c->g; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        const bool pair = qs_node_traits(g, n) & (QS_QUANTIZES | QS_DEQUANTIZES);
        if (pair ? c->floats : is_quantized(g, n))
            return qs_convert_refuse(&own, g->order[k], "it is inside of another node");
    }
    return QSIM_OK;
}

static int to_pairs(convert *c) {
    const size_t count = c->g->order_count, values = c->g->value_count;
    int code = c->stays ? QSIM_OK : qs_graphs_visit(c->g, check_inside, c);
    c->known = qs_arena_alloc(&c->g->arena, values + 1, sizeof(*c->known));
    if (!c->known)
        return QSIM_E_NOMEM;
    memset(c->known, QS_NONE, values * sizeof(*c->known));
    for (size_t k = 0; k < count && !code; k++)
        code = visit(c, c->g->order[k]);
    return code ? code : qs_pass_finish(c->p);
}

/* Drops the import of com.microsoft if no node needs it, since some readers refuse it. */
static void drop_import(qs_graph *g) {
    size_t kept = 0;
    for (size_t i = 0; i < g->import_count; i++)
        if (!qs_same(g->imports[i].domain, "com.microsoft"))
            g->imports[kept++] = g->imports[i];
    g->import_count = kept;
}

/* Refuses a node that is left of com.microsoft, or that ONNX does not have so in this version. */
static int check_onnx(void *user, qs_graph *g) {
    convert *c = user;
    qs_pass own = *c->p;
    own.graph = g;
    int code = QSIM_OK;
    for (size_t k = 0; k < g->order_count && !code; k++) {
        code = qs_go_on(own.ctx, own.model, own.error);
        if (!code && !qs_node_in_onnx(&g->nodes[g->order[k]]))
            code = qs_convert_refuse(&own, g->order[k], "no operators of ONNX replace it");
        if (!code) /* its attributes, which expansion sets after it has added a node */
            code = qs_op_resolve(g, g->order[k], own.model, own.error);
    }
    return code;
}

/* Expands operators of the main graph, or of one inside of a node, whose new values get names. */
static int expand(void *user, qs_graph *g) {
    const qs_pass *p = user;
    qs_pass own = *p;
    own.graph = g;
    const int code = qs_pass_expand(&own);
    return code || g == p->graph ? code : qs_pass_names(&own);
}

/* Operators of com.microsoft become others, those on integers pairs; the rest stays. */
static int to_onnx(convert *c) {
    c->stays = true;
    int code = to_pairs(c);
    if (!code)
        code = qs_graphs_visit(c->g, check_onnx, c);
    return code ? code : qs_pass_identities(c->p);
}

static int convert_graph(qs_pass *p, int32_t how) {
    qs_graph *g = p->graph;
    const int32_t format = how % TIMES_FORMATS, try = how / TIMES_FORMATS;
    convert c = {.p = p,
                 .g = g,
                 .q = {.ctx = p->ctx, .g = g, .error = p->error},
                 .floats = format == QSIM_FORMAT_FLOAT};
    int code = QSIM_OK;
    if (format == QSIM_FORMAT_QOPERATOR)
        return qs_fail(p->error, QSIM_E_UNSUPPORTED, "%s: QOPERATOR is no form to convert to",
                       p->model);
    if (qs_graph_import(g, "") < opsets[try])
        code = qs_op_upgrade_graph(g, opsets[try], p->model, p->error);
    if (!code)
        code = qs_pass_constants(p);
    if (!code)
        code = qs_pass_finish(p);
    p->standard = p->only_onnx = try > 0;
    if (!code && try > 0)
        code = qs_graphs_visit(g, expand, p);
    if (!code && try > 0 && format != QSIM_FORMAT_ONNX)
        code = qs_pass_fold(p, 0); /* what expansion makes of constants */
    if (!code && format != QSIM_FORMAT_ONNX)
        code = qs_convert_dynamic(p);
    if (!code)
        code = format == QSIM_FORMAT_ONNX ? to_onnx(&c) : to_pairs(&c);
    if (!code && format == QSIM_FORMAT_FLOAT)
        code = qs_convert_floats(p);
    if (!code && try > 0 && format == QSIM_FORMAT_FLOAT)
        code = qs_pass_fold(p, 0);
    if (!code && !c.contributed)
        drop_import(g);
    return code ? code : qs_pass_names(p);
}

int qsim_model_convert_to(const qsim_model *model, int32_t format, qsim_model **out,
                          qsim_error *error) {
    const bool valid = model && format >= QSIM_FORMAT_QDQ && format <= QSIM_FORMAT_ONNX;
    const bool contributed = valid && qs_graph_import(model->graph, "com.microsoft") > 0;
    size_t i = valid && format == QSIM_FORMAT_ONNX; /* this one always replaces operators */
    int code;
    do {
        code = qs_pass_derive(valid ? model : NULL, "conversion", convert_graph,
                              format + (int32_t)i * TIMES_FORMATS, out, error);
        do
            i++;
        while (valid && i > 1 && i < QS_COUNT(opsets) &&
               opsets[i] <= qs_graph_import(model->graph, ""));
    } while (contributed && i < QS_COUNT(opsets) && code != QSIM_OK && code != QSIM_E_NOMEM &&
             code != QSIM_E_CANCELLED && code != QSIM_E_LIMIT);
    return code;
}
