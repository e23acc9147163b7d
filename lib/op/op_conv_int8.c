/* SPDX-License-Identifier: MIT */
/* QLinearConv and ConvInteger. */
#include "op/int8_op.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/qvalue.h"
#include "op/window.h"

static const qs_i8_roles qlinear = QS_I8_QLINEAR, integer = QS_I8_INTEGER;

static int check_groups(const qs_infer *x, const qs_window *window, const qs_value *w) {
    int64_t group = qs_node_int(x->node, "group", 1);
    int64_t c = window->channels.size, cg = w->dims[1].size, m = w->dims[0].size;
    if (group < 1 || (m >= 0 && m % group != 0))
        return qs_infer_fail(x, QSIM_E_VALUE, "group is %lld for %lld output channels",
                             (long long)group, (long long)m);
    if (c >= 0 && cg >= 0 && (c % group != 0 || c / group != cg))
        return qs_infer_fail(
            x, QSIM_E_SHAPE,
            "the input has %lld channels, but the weights take %lld in each of %lld groups",
            (long long)c, (long long)cg, (long long)group);
    return QSIM_OK;
}

static int check_bias(const qs_infer *x, const qs_i8_roles *r, int64_t m) {
    const qs_value *b = r->bias < 0 ? NULL : qs_infer_in(x, r->bias);
    if (b && b->rank >= 0 &&
        (b->rank != 1 || (m >= 0 && b->dims[0].size >= 0 && b->dims[0].size != m)))
        return qs_infer_fail(x, QSIM_E_SHAPE, "the bias is no list of %lld numbers", (long long)m);
    return QSIM_OK;
}

static int infer(const qs_infer *x, const qs_i8_roles *r) {
    const qs_value *v = qs_infer_in(x, r->x), *w = qs_infer_in(x, r->w);
    int64_t m = w->rank > 0 ? w->dims[0].size : -1;
    qs_window window;
    int code = qs_i8_check(x, r, m, false);
    if (code)
        return code;
    if (v->rank < 0 || w->rank < 0)
        return qs_infer_out(x, 0, qs_i8_out_type(x, r), -1, NULL);
    if (w->rank != v->rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the weights have rank %d, the input has %d",
                             (int)w->rank, (int)v->rank);
    code = qs_window_infer(x, r->x, w->dims + 2, &window);
    if (!code)
        code = check_groups(x, &window, w);
    if (!code)
        code = check_bias(x, r, m);
    if (code)
        return code;
    qs_dim dims[4];
    int32_t rank = qs_window_dims(&window, w->dims[0], dims);
    return qs_infer_out(x, 0, qs_i8_out_type(x, r), rank, dims);
}

static int infer_qlinear(qs_infer *x) {
    return infer(x, &qlinear);
}

static int infer_internal(qs_infer *x) {
    int code = infer_qlinear(x);
    return code ? code : qs_window_into(x, QS_I8_CONV_OVER);
}

static int infer_integer(qs_infer *x) {
    return infer(x, &integer);
}

/* The last number of a list attribute but `before`, 1 without it. */
static int32_t along(const qs_node *n, const char *name, int32_t before) {
    const qs_attr *list = qs_node_attr(n, name);
    int64_t at = list ? (int64_t)list->count - 1 - before : -1;
    int64_t value = at >= 0 ? list->u.ints[at] : 1;
    return value < INT32_MAX ? (int32_t)value : INT32_MAX;
}

/* OIHW weights; false where a size does not fit int32. */
static bool shape_of(const qs_node *n, const qs_value *w, qs_i8_shape *s) {
    int64_t groups = qs_node_int(n, "group", 1);
    int64_t m = w->dims[0].size, c = w->dims[1].size;
    int64_t kh = w->rank == 4 ? w->dims[2].size : 1, kw = w->dims[w->rank - 1].size;
    int64_t terms;
    if (m > INT32_MAX || !qs_mul64(kh, kw, &terms) || !qs_mul64(terms, c, &terms) ||
        terms > INT32_MAX || groups > INT32_MAX)
        return false;
    memset(s, 0, sizeof(*s));
    s->w = (qk_weights_i8){.groups = (int32_t)groups,
                           .n = (int32_t)(m / groups),
                           .kh = (int32_t)kh,
                           .kw = (int32_t)kw,
                           .c = (int32_t)c,
                           .contiguous = along(n, "dilations", 0) == 1,
                           .apart = qs_node_int(n, "into", 0) != 0,
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

static int pack(qs_pack *p, const qs_i8_roles *r) {
    qs_i8_shape shape;
    if (!qs_pack_const(p, r->w))
        return QSIM_OK;
    if (!shape_of(p->node, &p->graph->values[p->node->inputs[r->w]], &shape))
        return qs_fail(p->error, QSIM_E_LIMIT, "%s: the weights are too large (node '%s', %s)",
                       p->model, p->node->name, p->node->op_type);
    return qs_i8_pack(p, r, &shape);
}

static int pack_qlinear(qs_pack *p) {
    return pack(p, &qlinear);
}

static int pack_integer(qs_pack *p) {
    return pack(p, &integer);
}

static int geometry(qs_infer *x, const qs_window *w, qk_conv_i8 *c) {
    for (int32_t i = 0; i < 2; i++)
        if (w->in[i] > INT32_MAX || w->out[i] > INT32_MAX || w->stride[i] > INT32_MAX ||
            w->dilation[i] > INT32_MAX || w->before[i] > INT32_MAX)
            return qs_infer_fail(x, QSIM_E_LIMIT, "a convolution is too large");
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
    return QSIM_OK;
}

/* Into a plan zeroed by the caller. */
static int lower_into(qs_lower *l, const qs_i8_roles *r, qs_i8_plan *p) {
    const qs_value *w = qs_lower_in(l, r->w);
    qs_infer x;
    qs_window window;
    qs_lower_infer(l, &x);
    int code = qs_window_infer(&x, r->x, w->dims + 2, &window);
    if (code)
        return code;
    if (!window.channels_last)
        return qs_infer_fail(&x, QSIM_E_INTERNAL, "convolution is executed channels last only");
    p->roles = r;
    p->batches = 1;
    if (!shape_of(l->node, w, &p->shape))
        return qs_infer_fail(&x, QSIM_E_LIMIT, "the weights are too large");
    code = geometry(&x, &window, &p->conv);
    return code ? code : qs_i8_lower(l, p);
}

/* With "into" (op/window.h) over what the convolution before it left, if there was one. */
static int lower_qlinear(qs_lower *l) {
    const int64_t into = qs_node_int(l->node, "into", 0);
    qs_i8_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    if (into < 0 || into > INT32_MAX)
        return qs_fail(l->error, QSIM_E_LIMIT, "%s: too many channels (node '%s', %s)", l->model,
                       l->node->name, l->node->op_type);
    if (l->node->input_count > QS_I8_CONV_OVER && qs_lower_in(l, QS_I8_CONV_OVER))
        l->step->over = QS_I8_CONV_OVER;
    p->conv.y_channels = (int32_t)into;
    p->conv.y_column = into ? (int32_t)qs_node_int(l->node, "column", 0) : 0;
    return lower_into(l, &qlinear, p);
}

static int lower_integer(qs_lower *l) {
    qs_i8_plan *p = qs_lower_params(l, sizeof(*p));
    return p ? lower_into(l, &integer, p) : QSIM_E_NOMEM;
}

/* ---- QLinearConvAdd: QLinearConv, then other, other_scale, other_zp, sum_scale, sum_zp ---- */

/*
 * The internal form of QLinearAdd behind QLinearConv, the same bits: each block of the
 * convolution's results is added to while it is in the cache. Weights and parameters are constant.
 */
typedef struct residual_plan {
    qs_i8_plan conv; /* first: qs_i8_lower takes it for the step's parameters */
    qk_u8_fn add;
    int32_t lo, hi;
} residual_plan;

typedef struct residual {
    qk_u8_fn add;
    const uint8_t *other;
    uint8_t *y;
    qk_u8_pair w;
} residual;

static void add_block(const void *arg, const uint8_t *block, size_t n, size_t rows, ptrdiff_t at,
                      ptrdiff_t stride) {
    const residual *r = arg;
    if (stride == (ptrdiff_t)n) {
        n *= rows;
        rows = 1;
    }
    for (size_t i = 0; i < rows; i++, at += stride)
        r->add(block + i * n, 1, r->other + at, 1, r->y + at, n, &r->w);
}

static void run_residual(const qs_step *s, const qs_frame *f) {
    const residual_plan *p = s->params;
    const qs_q8 a = qs_q8_read(s, f, 6, 7, 14, QSIM_UINT8);
    const qs_q8 b = qs_q8_read(s, f, 10, 11, 14, QSIM_UINT8);
    const qs_q8 c = qs_q8_read(s, f, 12, 13, 14, QSIM_UINT8);
    qk_conv_i8 conv = p->conv.conv;
    residual r = {.add = p->add, .other = qs_step_in(s, f, 9), .y = qs_step_out(s, f, 0)};
    r.w = (qk_u8_pair){.ma = a.scale / c.scale,
                       .mb = b.scale / c.scale,
                       .za = a.zero_point,
                       .zb = b.zero_point,
                       .zc = c.zero_point,
                       .lo = (float)(p->lo - c.zero_point),
                       .hi = (float)(p->hi - c.zero_point)};
    conv.after_arg = &r;
    qk_conv_i8_run(f->ctx, &conv, qs_step_in(s, f, 0), r.y, f->scratch);
}

static int infer_residual(qs_infer *x) {
    int code = infer_qlinear(x);
    const qs_value *other = x->in[9];
    if (!code && (x->node->input_count != 14 || !other || !x->in[10] || !x->in[12] ||
                  other->dtype != QSIM_UINT8 || other->rank != x->out[0].rank))
        code = qs_infer_fail(x, QSIM_E_INTERNAL, "the sum has another shape");
    for (int32_t i = 0; !code && i < other->rank; i++)
        if (other->dims[i].size >= 0 && x->out[0].dims[i].size >= 0 &&
            other->dims[i].size != x->out[0].dims[i].size)
            code = qs_infer_fail(x, QSIM_E_INTERNAL, "the sum has another shape");
    return code;
}

static int lower_residual(qs_lower *l) {
    residual_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->add = l->ctx->kernels->u8->add;
    p->lo = (int32_t)qs_node_int(l->node, "sum_lo", 0);
    p->hi = (int32_t)qs_node_int(l->node, "sum_hi", 255);
    p->conv.conv.after = add_block;
    int code = lower_into(l, &qlinear, &p->conv);
    if (code || qs_value_elements(qs_lower_out(l, 0)) == 0)
        return code;
    if (!p->conv.prepared || p->conv.conv.w.depthwise)
        return qs_fail(l->error, QSIM_E_INTERNAL, "%s: a sum behind a convolution without weights",
                       l->model);
    l->step->run = run_residual;
    l->step->kernel = "gemm int8 add";
    return QSIM_OK;
}

static const qs_attr_rule conv_attrs[] = {QS_CONV_ATTRS(10)};

static const qs_attr_rule internal_attrs[] = {
    QS_CONV_ATTRS(0),
    {"channels_last", QS_ATTR_INT, 0, 0},
    {"lo", QS_ATTR_INT, 0, 0},
    {"hi", QS_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
};

const qs_op qs_op_qlinearconv = {.domain = "",
                                 .name = "QLinearConv",
                                 .since = 10,
                                 .until = QS_OPSET_NEWEST,
                                 .min_in = 8,
                                 .max_in = 9,
                                 .min_out = 1,
                                 .max_out = 1,
                                 .attrs = conv_attrs,
                                 .attr_count = QS_COUNT(conv_attrs),
                                 .infer = infer_qlinear};

const qs_op qs_op_qsim_qlinearconv = {.domain = "qsim",
                                      .name = "QLinearConv",
                                      .until = INT16_MAX,
                                      .min_in = 8,
                                      .max_in = QS_I8_CONV_OVER + 1,
                                      .min_out = 1,
                                      .max_out = 1,
                                      .attrs = internal_attrs,
                                      .attr_count = QS_COUNT(internal_attrs),
                                      .infer = infer_internal,
                                      .pack = pack_qlinear,
                                      .lower = lower_qlinear};

static const qs_attr_rule residual_attrs[] = {
    QS_CONV_ATTRS(0),          {"channels_last", QS_ATTR_INT, 0, 0}, {"lo", QS_ATTR_INT, 0, 0},
    {"hi", QS_ATTR_INT, 0, 0}, {"sum_lo", QS_ATTR_INT, 0, 0},        {"sum_hi", QS_ATTR_INT, 0, 0},
};

const qs_op qs_op_qsim_qlinearconv_add = {.domain = "qsim",
                                          .name = "QLinearConvAdd",
                                          .until = INT16_MAX,
                                          .min_in = 8,
                                          .max_in = 14,
                                          .min_out = 1,
                                          .max_out = 1,
                                          .attrs = residual_attrs,
                                          .attr_count = QS_COUNT(residual_attrs),
                                          .infer = infer_residual,
                                          .pack = pack_qlinear,
                                          .lower = lower_residual};

const qs_op qs_op_convinteger = {.domain = "",
                                 .name = "ConvInteger",
                                 .since = 10,
                                 .until = QS_OPSET_NEWEST,
                                 .min_in = 2,
                                 .max_in = 4,
                                 .min_out = 1,
                                 .max_out = 1,
                                 .attrs = conv_attrs,
                                 .attr_count = QS_COUNT(conv_attrs),
                                 .infer = infer_integer};

const qs_op qs_op_qsim_convinteger = {.domain = "qsim",
                                      .name = "ConvInteger",
                                      .until = INT16_MAX,
                                      .min_in = 2,
                                      .max_in = 4,
                                      .min_out = 1,
                                      .max_out = 1,
                                      .attrs = internal_attrs,
                                      .attr_count = QS_COUNT(internal_attrs) - 4,
                                      .infer = infer_integer,
                                      .pack = pack_integer,
                                      .lower = lower_integer};
