/* SPDX-License-Identifier: MIT */
/*
 * QuantizeLinear, DequantizeLinear: per tensor, axis or block. With floats of 4 and 8 bits in place
 * of integers they are expanded into other operators.
 */
#include "op/expand.h"

#include "base/ctx.h"
#include "kernel/u8.h"
#include "kernel/table.h"
#include "quant/affine.h"

#define QS_T_16BIT (QS_T(QSIM_UINT16) | QS_T(QSIM_INT16))
#define QS_T_4BIT  (QS_T(QSIM_UINT4) | QS_T(QSIM_INT4))
#define QS_T_2BIT  (QS_T(QSIM_UINT2) | QS_T(QSIM_INT2))

static bool is_quantize(const qs_node *n) {
    return n->op_type[0] == 'Q';
}

/* Quantized types that the node's version allows. */
static uint32_t known_types(const qs_node *n) {
    bool contributed = n->domain[0] != '\0';
    uint32_t set = QS_T_8BIT;
    if (!is_quantize(n))
        set |= QS_T(QSIM_INT32);
    if (contributed || n->version >= 21)
        set |= QS_T_16BIT | QS_T_4BIT;
    if (!contributed && n->version >= 19)
        set |= QS_T_FLOAT8;
    if (!contributed && n->version >= 23)
        set |= QS_T(QSIM_FLOAT4E2M1);
    if (!contributed && n->version >= 25)
        set |= QS_T_2BIT;
    return set;
}

static bool is_minifloat(int32_t dtype) {
    return (QS_T_FLOAT8 | QS_T(QSIM_FLOAT4E2M1)) & QS_T(dtype);
}

/* ---- granularity ---- */

/* Granularity of the scale, for qs_qlayout_make. */
typedef struct granularity {
    int32_t axis;
    int64_t block;
    bool per_tensor;
} granularity;

static bool is_scalar(const qs_value *v) {
    return v->rank == 0 || (v->rank == 1 && v->dims[0].size == 1);
}

static bool fits(int64_t a, int64_t b) {
    return a < 0 || b < 0 || a == b;
}

QS_COLD static int check_block_scale(const qs_infer *x, const qs_value *in, const qs_value *scale,
                                     granularity *s) {
    for (int32_t i = 0; i < in->rank; i++) {
        int64_t size = in->dims[i].size;
        if (i == s->axis && size > 0)
            size = (size - 1) / s->block + 1;
        if (!fits(size, scale->dims[i].size))
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d of the scale is %lld, expected %lld",
                                 (int)i, (long long)scale->dims[i].size, (long long)size);
    }
    return QSIM_OK;
}

/* The ranks of x and the scale are known. */
QS_COLD static int read_granularity(const qs_infer *x, granularity *s) {
    const qs_value *in = x->in[0], *scale = x->in[1];
    int64_t axis = qs_node_int(x->node, "axis", 1);
    *s = (granularity){0, qs_node_int(x->node, "block_size", 0), false};
    if (s->block < 0)
        return qs_infer_fail(x, QSIM_E_VALUE, "block_size %lld", (long long)s->block);
    if (is_scalar(scale) && (s->block == 0 || scale->rank != in->rank)) {
        s->per_tensor = true;
        s->block = 0;
        /* the axis has no effect here, but has to be valid */
        return axis == 1 || in->rank == 0 ? QSIM_OK : qs_infer_axis(x, axis, in->rank, &s->axis);
    }
    int code = qs_infer_axis(x, axis, in->rank, &s->axis);
    if (code)
        return code;
    if (scale->rank == in->rank && s->block > 0)
        return check_block_scale(x, in, scale, s);
    if (scale->rank != 1 || s->block > 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a scale of rank %d for an input of rank %d%s",
                             (int)scale->rank, (int)in->rank,
                             s->block ? " in blocks" : " without block_size");
    if (!fits(scale->dims[0].size, in->dims[s->axis].size))
        return qs_infer_fail(x, QSIM_E_SHAPE, "%lld scales for axis %d of size %lld",
                             (long long)scale->dims[0].size, (int)s->axis,
                             (long long)in->dims[s->axis].size);
    return QSIM_OK;
}

/* ---- rules ---- */

QS_COLD static int check_zero_point(const qs_infer *x) {
    const qs_value *scale = x->in[1], *zp = qs_infer_in(x, 2);
    if (!zp)
        return QSIM_OK;
    int code = qs_infer_type(x, 2, known_types(x->node));
    if (code)
        return code;
    bool same = scale->rank == zp->rank || scale->rank < 0 || zp->rank < 0;
    for (int32_t i = 0; same && i < scale->rank && zp->rank == scale->rank; i++)
        same = fits(scale->dims[i].size, zp->dims[i].size);
    bool scalars = scale->rank >= 0 && zp->rank >= 0 && is_scalar(scale) && is_scalar(zp);
    if (!same && !scalars)
        return qs_infer_fail(x, QSIM_E_SHAPE, "scale and zero point have different shapes");
    qs_const c;
    if (zp->dtype != QSIM_INT32)
        return QSIM_OK;
    for (size_t i = 0; qs_infer_const(x, 2, &c) && i < c.bytes; i++)
        if (((const uint8_t *)c.data)[i])
            return qs_infer_fail(x, QSIM_E_VALUE, "an int32 zero point that is not 0");
    return QSIM_OK;
}

QS_COLD static int quantized_type(const qs_infer *x, int32_t *dtype) {
    const qs_value *zp = qs_infer_in(x, 2);
    int64_t asked = qs_node_int(x->node, "output_dtype", 0);
    *dtype = zp ? zp->dtype : asked ? (int32_t)asked : QSIM_UINT8;
    if (zp && asked && zp->dtype != asked)
        return qs_infer_fail(x, QSIM_E_DTYPE, "output_dtype %lld but a zero point of type %s",
                             (long long)asked, qsim_dtype_name(zp->dtype));
    if (asked < 0 || asked >= 32 || !(known_types(x->node) & QS_T(*dtype)))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "quantizing to type %lld is not supported",
                             (long long)*dtype);
    return QSIM_OK;
}

QS_COLD static int check_common(const qs_infer *x, uint32_t types) {
    int code = qs_infer_type(x, 0, types);
    const bool power = x->in[1]->dtype == QSIM_FLOAT8E8M0 && x->node->version >= 24;
    /*
     * Scales of weights in 4 bits or blocks may be negative: block quantizers map the largest
     * magnitude to the lowest code.
     */
    const bool few = x->in[0]->dtype && qsim_dtype_bits(x->in[0]->dtype) <= 4;
    if (!code && !power)
        code = few || qs_node_int(x->node, "block_size", 0) > 0 ? qs_infer_any_scale(x, 1)
                                                                : qs_infer_scale(x, 1);
    if (!code)
        code = check_zero_point(x);
    if (code || x->in[0]->rank < 0 || x->in[1]->rank < 0)
        return code;
    if (x->node->domain[0] == '\0' && x->node->version < 13 && !is_scalar(x->in[1]) &&
        x->in[1]->rank != 1)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the scale is not a scalar");
    granularity s;
    return read_granularity(x, &s);
}

/* Checks that the ranks and sizes that the expansion needs are known. */
QS_COLD static int check_minifloat(const qs_infer *x, int32_t dtype) {
    const qs_value *in = x->in[0];
    granularity s;
    if (!is_minifloat(dtype))
        return QSIM_OK;
    if (in->rank < 0 || x->in[1]->rank < 0)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "the ranks of x and the scale must be in the "
                             "file for %s",
                             qsim_dtype_name(dtype));
    const int code = read_granularity(x, &s);
    const int64_t size = s.block > 0 ? in->dims[s.axis].size : 0;
    if (!code && (size < 0 || size > INT32_MAX))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "the size of axis %d must be in the file for "
                             "blocks of %s",
                             (int)s.axis, qsim_dtype_name(dtype));
    return code;
}

QS_COLD static int infer_quantize(qs_infer *x) {
    int32_t dtype = QSIM_UINT8;
    int64_t precision = qs_node_int(x->node, "precision", 0);
    int code = check_common(x, QS_T_FLOAT);
    if (!code && precision != 0 && precision != QSIM_FLOAT)
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "precision %lld", (long long)precision);
    if (!code)
        code = quantized_type(x, &dtype);
    if (!code)
        code = check_minifloat(x, dtype);
    return code ? code : qs_infer_out(x, 0, dtype, x->in[0]->rank, x->in[0]->dims);
}

QS_COLD static int infer_dequantize(qs_infer *x) {
    int64_t asked = qs_node_int(x->node, "output_dtype", 0);
    int code = check_common(x, known_types(x->node));
    if (!code)
        code = qs_infer_same_type(x, 0, 2);
    if (!code && asked != 0 && asked != QSIM_FLOAT)
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "dequantizing to type %lld", (long long)asked);
    if (!code)
        code = check_minifloat(x, x->in[0]->dtype);
    return code ? code : qs_infer_out(x, 0, QSIM_FLOAT, x->in[0]->rank, x->in[0]->dims);
}

/* ---- expansion into other operators ---- */

/* Scale or zero point as floats that broadcast over x. */
static qs_id broadcast(qs_expand *e, int32_t index, const granularity *s) {
    const int32_t rank = qs_expand_value(e, 0)->rank;
    int64_t shape[QSIM_MAX_RANK];
    const qs_id y = qs_expand_cast(e, qs_expand_in(e, index), QSIM_FLOAT);
    if (s->block > 0) {
        const int64_t size = qs_expand_value(e, 0)->dims[s->axis].size;
        int64_t *at = qs_arena_alloc(&e->graph->arena, (size_t)size + 1, sizeof(*at));
        for (int64_t i = 0; i < size && at; i++)
            at[i] = i / s->block;
        const qs_id blocks = at ? qs_expand_list(e, at, (int32_t)size) : qs_expand_no_memory(e);
        const qs_id all = qs_expand_two(e, "Gather", y, blocks);
        qs_expand_int(e, all, "axis", s->axis);
        return all;
    }
    for (int32_t i = 0; i < rank; i++)
        shape[i] = i == s->axis && !s->per_tensor ? -1 : 1;
    return qs_expand_reshape(e, y, shape, s->per_tensor ? 0 : rank);
}

/* Whether a zero point changes nothing. */
static bool is_zero(const qs_expand *e, int32_t index) {
    const qs_value *v = qs_expand_value(e, index);
    for (size_t i = 0; v && (!v->data || i < v->data->bytes); i++)
        if (!v->data || ((const uint8_t *)v->data->data)[i])
            return false;
    return true;
}

static void expand_quantize(qs_expand *e) {
    const bool quantize = is_quantize(e->node);
    const int32_t dtype =
        quantize ? e->graph->values[e->node->outputs[0]].dtype : qs_expand_value(e, 0)->dtype;
    qs_infer x = {.graph = e->graph,
                  .node_id = e->node_id,
                  .node = e->node,
                  .model = e->model,
                  .error = e->error};
    granularity s;
    x.in[0] = qs_expand_value(e, 0);
    x.in[1] = qs_expand_value(e, 1);
    if (!is_minifloat(dtype)) {
        if (x.in[1]->dtype == QSIM_FLOAT8E8M0)
            e->out[0] = qs_expand_as(e, 1, QSIM_FLOAT);
        return;
    }
    const int64_t saturate = qs_node_int(e->node, "saturate", 1);
    e->code = read_granularity(&x, &s);
    const bool zero = is_zero(e, 2);
    const qs_id scale = e->code ? QS_NONE : broadcast(e, 1, &s);
    const qs_id zp = e->code || zero ? QS_NONE : broadcast(e, 2, &s);
    qs_id y = qs_expand_in(e, 0);
    if (quantize) {
        y = qs_expand_two(e, "Div", y, scale);
        y = qs_expand_cast(e, zero ? y : qs_expand_two(e, "Add", y, zp), dtype);
        qs_expand_int(e, y, "saturate", saturate);
    } else {
        y = qs_expand_cast(e, y, QSIM_FLOAT);
        y = qs_expand_two(e, "Mul", zero ? y : qs_expand_two(e, "Sub", y, zp), scale);
    }
    e->out[0] = y;
}

/* ---- parameters ---- */

/* Constant scales and zero points, converted once. */
typedef struct packed_params {
    const float *scale;
    const int32_t *zero_point;
} packed_params;

/* Converts n zero points of any type to int32. */
static void widen(const qsim_ctx *ctx, const void *data, size_t n, int32_t dtype, int32_t *wide) {
    float *f = (float *)(void *)wide;
    if (dtype == QSIM_INT32) {
        memset(wide, 0, n * sizeof(*wide));
        return;
    }
    (void)qsim_values_dequantize(data, n, 1.0f, 0, dtype, f);
    for (size_t i = 0; i < n && !qs_stopped_at(ctx, i); i++) {
        float v;
        memcpy(&v, &f[i], sizeof(v));
        wide[i] = (int32_t)v;
    }
}

QS_COLD static int pack_params(qs_pack *p) {
    const float *scale = qs_pack_const(p, 1);
    const void *zp = qs_pack_const(p, 2);
    bool has_zp = qs_node_input(p->node, 2) != QS_NONE;
    if (!scale || (has_zp && !zp))
        return QSIM_OK;
    const qs_const *c = p->graph->values[p->node->inputs[1]].data;
    packed_params *packed = qs_arena_alloc(p->arena, 1, sizeof(*packed));
    int32_t *wide = qs_arena_alloc(p->arena, c->elements, sizeof(*wide));
    if (!packed || !wide)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    packed->scale = scale;
    packed->zero_point = wide;
    if (zp)
        widen(p->ctx, zp, c->elements, p->graph->values[p->node->inputs[2]].data->dtype, wide);
    p->result = packed;
    return QSIM_OK;
}

typedef struct quantize_params {
    const packed_params *packed; /* NULL: read during execution */
    qs_qlayout layout;
    qsim_qparams q;
    int32_t zp_dtype;      /* QSIM_UNDEFINED: no zero point */
    bool quantize, simple; /* simple: one scale, 8 bits */
    size_t elements;
} quantize_params;

typedef struct quantize_job {
    const quantize_params *p;
    const qk_u8 *k;
    const void *x;
    void *y;
    float scale;
    int32_t zp;
} quantize_job;

/* s8 bytes are processed as u8: flipped, with a zero point that is 128 greater. */
static void quantize_range(const void *arg, size_t begin, size_t end) {
    const quantize_job *j = arg;
    const uint8_t flip = j->p->q.dtype == QSIM_UINT8 ? 0 : 0x80;
    if (j->p->quantize)
        j->k->quantize((const float *)j->x + begin, end - begin, j->scale, j->zp + flip, flip,
                       (uint8_t *)j->y + begin);
    else
        j->k->dequantize((const uint8_t *)j->x + begin, end - begin, j->scale, j->zp + flip, flip,
                         (float *)j->y + begin);
}

/* Checks that int32 zero points, which have no effect, are 0. */
QS_COLD static bool are_zero(const qs_frame *f, const int32_t *zp, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (zp[i]) {
            qs_step_outside(f, "zero point", zp[i], 0, 1, -1);
            return false;
        }
    return true;
}

static void run_quantize(const qs_step *s, const qs_frame *f) {
    const quantize_params *p = s->params;
    qsim_qparams q = p->q;
    int32_t *wide = f->scratch;
    if (p->packed) {
        q.scale = p->packed->scale;
        q.zero_point = p->packed->zero_point;
    } else {
        q.scale = qs_step_in(s, f, 1);
        q.zero_point = wide;
        memset(wide, 0, q.count * sizeof(*wide));
        if (p->zp_dtype == QSIM_INT32 && !are_zero(f, qs_step_in(s, f, 2), q.count))
            return;
        if (p->zp_dtype != QSIM_UNDEFINED)
            widen(f->ctx, qs_step_in(s, f, 2), q.count, p->zp_dtype, wide);
    }
    quantize_job job = {.p = p,
                        .k = f->ctx->kernels->u8,
                        .x = qs_step_in(s, f, 0),
                        .y = qs_step_out(s, f, 0),
                        .scale = q.scale[0],
                        .zp = q.zero_point[0]};
    if (p->simple)
        qs_ranges(f->ctx, p->elements, QS_GRAIN, quantize_range, &job);
    else if (p->quantize)
        qs_quantize(f->ctx, job.x, &p->layout, &q, job.y);
    else
        qs_dequantize(f->ctx, job.x, &p->layout, &q, job.y);
}

QS_COLD static int lower_quantize(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *scale = qs_lower_in(l, 1), *zp = qs_lower_in(l, 2);
    granularity s;
    qs_infer rules;
    int64_t dims[QSIM_MAX_RANK];
    qs_lower_infer(l, &rules);
    int code = read_granularity(&rules, &s);
    if (code)
        return code;
    quantize_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    for (int32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i].size;
    p->packed = l->packed;
    p->quantize = is_quantize(l->node);
    p->elements = qs_value_elements(x);
    p->zp_dtype = zp ? zp->dtype : QSIM_UNDEFINED;
    p->q = (qsim_qparams){.dtype = p->quantize ? qs_lower_out(l, 0)->dtype : x->dtype,
                          .axis = s.axis,
                          .block = s.block,
                          .count = qs_value_elements(scale)};
    code = qs_qlayout_make(x->rank, dims, &p->q, &p->layout, l->error);
    p->simple = s.per_tensor && (p->q.dtype == QSIM_UINT8 || p->q.dtype == QSIM_INT8);
    l->step->scratch = p->packed ? 0 : p->q.count * sizeof(int32_t);
    l->step->run = run_quantize;
    return code;
}

static const qs_attr_rule standard_attrs[] = {{"axis", QSIM_ATTR_INT, 13, 0},
                                              {"saturate", QSIM_ATTR_INT, 19, 0},
                                              {"block_size", QSIM_ATTR_INT, 21, 0},
                                              {"output_dtype", QSIM_ATTR_INT, 21, 0},
                                              {"precision", QSIM_ATTR_INT, 23, 0}};
static const qs_attr_rule back_attrs[] = {{"axis", QSIM_ATTR_INT, 13, 0},
                                          {"block_size", QSIM_ATTR_INT, 21, 0},
                                          {"output_dtype", QSIM_ATTR_INT, 23, 0}};
static const qs_attr_rule ms_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0},
                                        {"saturate", QSIM_ATTR_INT, 1, 0},
                                        {"block_size", QSIM_ATTR_INT, 1, 0}};

/* One scale makes the node element-wise, a vector of scales depends on one axis, blocks on more. */
static uint32_t scale_axis(const qs_graph *g, const qs_node *n) {
    const qs_value *scale = &g->values[n->inputs[1]];
    if (scale->rank < 0 || qs_node_int(n, "block_size", 0))
        return 0;
    if (qs_dims_product(scale->dims, 0, scale->rank) == 1)
        return QS_ELEMENTWISE;
    return scale->rank == 1 ? QS_ALONG_AXIS : 0;
}

QS_OP(quantize, .name = "QuantizeLinear", .since = 10, .min_in = 2, .max_in = 3,
      QS_ATTRS(standard_attrs), .traits = QS_QUANTIZES | QS_READS_EXACTLY,
      QS_MORE(.also = scale_axis, QS_OPERANDS(.y = {0, 1, 2}), .pack = pack_params), .axis = 1,
      .integers_as = QSIM_FLOAT, .integers_of = QSIM_INT32, .kernel = QS_KERNEL_QUANTIZE,
      .infer = infer_quantize, .lower = lower_quantize, .expand = expand_quantize);
QS_OP(dequantize, .name = "DequantizeLinear", .since = 10, .min_in = 2, .max_in = 3,
      QS_ATTRS(back_attrs), .traits = QS_DEQUANTIZES | QS_READS_EXACTLY,
      QS_MORE(.also = scale_axis, QS_OPERANDS(.x = {{0, 1, 2}}), .pack = pack_params), .axis = 1,
      .kernel = QS_KERNEL_DEQUANTIZE, .infer = infer_dequantize, .lower = lower_quantize,
      .expand = expand_quantize);
QS_OP(ms_quantize, .domain = QS_DOMAIN_MICROSOFT, .name = "QuantizeLinear", .until = 1, .min_in = 2,
      .max_in = 3, QS_ATTRS(ms_attrs), .traits = QS_QUANTIZES | QS_READS_EXACTLY,
      QS_MORE(.also = scale_axis, QS_OPERANDS(.y = {0, 1, 2}), .pack = pack_params), .axis = 1,
      .kernel = QS_KERNEL_QUANTIZE, .infer = infer_quantize, .lower = lower_quantize,
      .expand = qs_expand_contributed);
QS_OP(ms_dequantize, .domain = QS_DOMAIN_MICROSOFT, .name = "DequantizeLinear", .until = 1,
      .min_in = 2, .max_in = 3, QS_ATTRS(ms_attrs), .traits = QS_DEQUANTIZES | QS_READS_EXACTLY,
      QS_MORE(.also = scale_axis, QS_OPERANDS(.x = {{0, 1, 2}}), .pack = pack_params), .axis = 1,
      .kernel = QS_KERNEL_DEQUANTIZE, .infer = infer_dequantize, .lower = lower_quantize,
      .expand = qs_expand_contributed);
