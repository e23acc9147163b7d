/* SPDX-License-Identifier: MIT */
/* QLinearConv and ConvInteger. */
#include "op/int8/int8_post_ops.h"
#include "op/int8/int8_op.h"
#include "op/nn/window.h"

static const qs_i8_roles qlinear = QS_I8_QLINEAR, integer = QS_I8_INTEGER;

static int infer(const qs_infer *x, const qs_i8_roles *r) {
    const qs_value *w = qs_infer_in(x, r->w);
    const int code = qs_i8_check(x, r, w->rank > 0 ? w->dims[0].size : -1, false);
    return code ? code : qs_window_convolve(x, r->x, r->w, r->bias, qs_i8_out_type(x, r));
}

static int infer_qlinear(qs_infer *x) {
    return infer(x, &qlinear);
}

static int infer_internal(qs_infer *x) {
    int code = infer_qlinear(x);
    if (!code)
        code = qs_i8_infer_post_ops(x);
    return code ? code : qs_window_into(x, QS_I8_CONV_OVER);
}

static int infer_integer(qs_infer *x) {
    return infer(x, &integer);
}

/*
 * Element `before` from the end of a list attribute; 1 without it. Numbers over the limit are given
 * as the limit and refused later, once the input's rank is known.
 */
static int32_t along(const qs_node *n, const char *name, int32_t before) {
    const qs_attr *list = qs_node_attr(n, name);
    int64_t at = list ? (int64_t)list->count - 1 - before : -1;
    int64_t value = at >= 0 ? list->u.ints[at] : 1;
    return (int32_t)(value < QS_WINDOW_LIMIT ? value : QS_WINDOW_LIMIT);
}

/* Describes OIHW weights; false if a size does not fit int32. */
static bool shape_of(const qs_node *n, const qs_value *w, qs_i8_shape *s) {
    int64_t groups = qs_node_int(n, "group", 1);
    int64_t m = w->dims[0].size, c = w->dims[1].size;
    int64_t kh = w->rank == 4 ? w->dims[2].size : 1, kw = w->dims[w->rank - 1].size;
    int64_t terms;
    if (m > INT32_MAX || !qs_mul64(kh, kw, &terms) || !qs_mul64(terms, c, &terms) ||
        terms > INT32_MAX || groups > INT32_MAX)
        return false;
    memset(s, 0, sizeof(*s));
    s->w = (qs_conv_i8_weights){.groups = (int32_t)groups,
                                .n = (int32_t)(m / groups),
                                .kh = (int32_t)kh,
                                .kw = (int32_t)kw,
                                .c = (int32_t)c,
                                .contiguous = along(n, "dilations", 0) == 1,
                                .strided_out = qs_node_attr(n, "into") != NULL,
                                .stride_h = along(n, "strides", 1),
                                .stride_w = along(n, "strides", 0)};
    s->source = (qk_source_i8){.n = s->w.n,
                               .kh = s->w.kh,
                               .kw = s->w.kw,
                               .c = s->w.c,
                               .sn = terms,
                               .sc = kh * kw,
                               .sy = kw,
                               .sx = 1};
    s->group_stride = terms * s->w.n;
    s->matrices = 1;
    return true;
}

/* Whether any axis is dilated. */
static bool is_dilated(const qs_node *n) {
    const qs_attr *list = qs_node_attr(n, "dilations");
    bool dilated = false;
    for (int32_t i = 0; list && i < list->count; i++)
        dilated |= list->u.ints[i] != 1;
    return dilated;
}

static int pack(qs_pack *p, const qs_i8_roles *r) {
    qs_i8_shape shape;
    if (!qs_pack_const(p, r->w))
        return QSIM_OK;
    if (!shape_of(p->node, &p->graph->values[p->node->inputs[r->w]], &shape))
        return qs_node_fail(p->error, QSIM_E_LIMIT, p->model, p->node, "the weights are too large");
    if (r == &integer && qs_i8_makes_floats(p) && !is_dilated(p->node))
        shape.w.result = QS_RESULT_FLOATS;
    return qs_i8_pack(p, r, &shape);
}

static int pack_qlinear(qs_pack *p) {
    return pack(p, &qlinear);
}

static int pack_integer(qs_pack *p) {
    return pack(p, &integer);
}

/* QS_WINDOW_LIMIT bounds every number, so the casts lose nothing. */
static void geometry(const qs_window *w, qs_conv_i8_geometry *c) {
    c->batch = w->batch.size;
    c->h = (int32_t)w->in[0];
    c->wd = (int32_t)w->in[1];
    c->ho = (int32_t)w->out[0];
    c->wo = (int32_t)w->out[1];
    c->stride_h = (int32_t)w->stride[0];
    c->stride_w = (int32_t)w->stride[1];
    c->dilation_h = (int32_t)w->dilation[0];
    c->dilation_w = (int32_t)w->dilation[1];
    c->pad_top = (int32_t)w->before[0];
    c->pad_left = (int32_t)w->before[1];
}

/* Completes a plan that the caller has zeroed. */
static int lower_roles(qs_lower *l, const qs_i8_roles *r, qs_i8_plan *p) {
    const qs_value *w = qs_lower_in(l, r->w);
    qs_infer x;
    qs_window window;
    qs_lower_infer(l, &x);
    int code = qs_window_infer(&x, r->x, w->dims + 2, &window);
    if (code)
        return code;
    if (!window.channels_last)
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, QS_UNRANKED);
    p->roles = r;
    p->batches = 1;
    if (!shape_of(l->node, w, &p->shape))
        return qs_infer_fail(&x, QSIM_E_LIMIT, "the weights are too large");
    geometry(&window, &p->conv.g);
    return qs_i8_lower(l, p);
}

/* With "into" (op/nn/window.h) the step continues the tensor that a convolution before it wrote. */
static int lower_qlinear(qs_lower *l) {
    const int64_t into = qs_node_int(l->node, "into", 0);
    qs_i8_post_ops *b = qs_lower_params(l, sizeof(*b));
    if (!b)
        return QSIM_E_NOMEM;
    if (into < 0 || into > INT32_MAX)
        return qs_node_fail(l->error, QSIM_E_LIMIT, l->model, l->node, "too many channels");
    if (l->node->input_count > QS_I8_CONV_OVER && qs_lower_in(l, QS_I8_CONV_OVER))
        l->step->reuses = QS_I8_CONV_OVER;
    b->product.conv.g.y_channels = (int32_t)into;
    b->product.conv.g.y_column = into ? (int32_t)qs_node_int(l->node, "column", 0) : 0;
    qs_i8_plan_post_ops(l, b);
    int code = lower_roles(l, &qlinear, &b->product);
    return code ? code : qs_i8_lower_post_ops(l, b);
}

int qs_convinteger_lower(qs_lower *l, const qs_i8_floats *how) {
    qs_i8_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->floats = *how;
    return lower_roles(l, &integer, p);
}

static int lower_integer(qs_lower *l) {
    return qs_convinteger_lower(l, &(qs_i8_floats){0});
}

static const qs_attr_rule conv_attrs[] = {QS_CONV_ATTRS(10)};

static const qs_attr_rule internal_attrs[] = {
    QS_CONV_ATTRS(0),
    {"channels_last", QSIM_ATTR_INT, 0, 0},
    {"lo", QSIM_ATTR_INT, 0, 0},
    {"hi", QSIM_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
    QS_I8_POST_OPS_ATTRS,
};

QS_OP(qlinearconv, .name = "QLinearConv", .since = 10, .min_in = 8, .max_in = 9,
      QS_ATTRS(conv_attrs), .traits = QS_NEEDS_LAST | QS_CONVOLVES | QS_INTEGER,
      .weight_inputs = 1 << 3,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .w = {3, 4, 5}, .y = {0, 6, 7}, .prefix = 7)),
      .macs = QS_MACS_CONV, .kernel = QS_KERNEL_GEMM_INT8, .infer = infer_qlinear);

QS_OP(qsim_qlinearconv, .domain = QS_DOMAIN_QSIM, .name = "QLinearConv", .min_in = 8,
      .max_in = QS_I8_INPUTS, QS_ATTRS(internal_attrs),
      .traits = QS_NEEDS_LAST | QS_CONVOLVES | QS_INTEGER, .weight_inputs = 1 << 3,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .w = {3, 4, 5}, .y = {0, 6, 7}), .pack = pack_qlinear),
      .macs = QS_MACS_CONV, .over = QS_I8_CONV_OVER, .kernel = QS_KERNEL_GEMM_INT8,
      .infer = infer_internal, .lower = lower_qlinear);

QS_OP(convinteger, .name = "ConvInteger", .since = 10, .min_in = 2, .max_in = 4,
      QS_ATTRS(conv_attrs), .traits = QS_NEEDS_LAST | QS_CONVOLVES | QS_INTEGER,
      .weight_inputs = 1 << 1,
      QS_MORE(QS_OPERANDS(.x = {{0, QS_NO_SCALE, 2}}, .w = {1, QS_NO_SCALE, 3})),
      .macs = QS_MACS_CONV, .kernel = QS_KERNEL_GEMM_INT8, .infer = infer_integer);

QS_OP(qsim_convinteger, .domain = QS_DOMAIN_QSIM, .name = "ConvInteger", .min_in = 2, .max_in = 4,
      .attrs = internal_attrs, .attr_count = QS_COUNT(internal_attrs) - 6,
      .traits = QS_NEEDS_LAST | QS_CONVOLVES | QS_INTEGER, .weight_inputs = 1 << 1,
      QS_MORE(QS_OPERANDS(.x = {{0, QS_NO_SCALE, 2}}, .w = {1, QS_NO_SCALE, 3}),
              .pack = pack_integer),
      .macs = QS_MACS_CONV, .kernel = QS_KERNEL_GEMM_INT8, .infer = infer_integer,
      .lower = lower_integer);
