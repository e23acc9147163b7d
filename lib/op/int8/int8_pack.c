/* SPDX-License-Identifier: MIT */
/* Checks and packing of operators on quantized integers: what sessions do once. */
#include "op/int8/int8_op.h"

#include <math.h>

/* ---- rules ---- */

/* Checks that constant scales are positive finite numbers. */
static int check_scale(const qs_infer *x, int32_t index) {
    const qs_value *v = index < 0 ? NULL : qs_infer_in(x, index);
    if (!v || !v->data)
        return QSIM_OK;
    for (size_t i = 0; i < v->data->elements; i++) {
        float s;
        memcpy(&s, (const uint8_t *)v->data->data + 4 * i, 4);
        if (!isfinite(s) || s <= 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "scale '%s' is %g; it has to be positive",
                                 v->name, (double)s);
    }
    return QSIM_OK;
}

static int check_types(const qs_infer *x, const qs_i8_roles *r) {
    const struct {
        int32_t index;
        uint32_t set;
    } types[] = {
        {r->x, QS_T_8BIT},        {r->w, QS_T_8BIT},        {r->x_zp, QS_T_8BIT},
        {r->w_zp, QS_T_8BIT},     {r->y_zp, QS_T_8BIT},     {r->x_scale, QS_T_FLOAT},
        {r->w_scale, QS_T_FLOAT}, {r->y_scale, QS_T_FLOAT}, {r->bias, QS_T(QSIM_INT32)},
    };
    int code = QSIM_OK;
    for (size_t i = 0; i < QS_COUNT(types) && !code; i++)
        if (types[i].index >= 0)
            code = qs_infer_type(x, types[i].index, types[i].set);
    if (!code && qs_infer_in(x, r->x_zp))
        code = qs_infer_same_type(x, r->x, r->x_zp);
    if (!code && qs_infer_in(x, r->w_zp))
        code = qs_infer_same_type(x, r->w, r->w_zp);
    return code;
}

int qs_i8_check(const qs_infer *x, const qs_i8_roles *r, int64_t columns, bool rows) {
    const struct {
        int32_t index;
        int64_t count;
    } lists[] = {
        {r->x_scale, rows ? -1 : 1}, {r->x_zp, rows ? -1 : 1}, {r->w_scale, columns},
        {r->w_zp, columns},          {r->y_scale, 1},          {r->y_zp, 1},
    };
    int code = check_types(x, r);
    for (size_t i = 0; i < QS_COUNT(lists) && !code; i++)
        code = qs_infer_each(x, lists[i].index, lists[i].count);
    if (!code)
        code = check_scale(x, r->x_scale);
    if (!code)
        code = check_scale(x, r->w_scale);
    if (!code)
        code = check_scale(x, r->y_scale);
    return code;
}

int32_t qs_i8_out_type(const qs_infer *x, const qs_i8_roles *r) {
    if (r->y_zp < 0)
        return QSIM_INT32;
    const qs_value *v = qs_infer_in(x, r->y_zp);
    return v ? v->dtype : QSIM_UINT8;
}

/* ---- packing ---- */

int32_t qs_i8_length(const qs_value *list) {
    return list ? (int32_t)qs_value_elements(list) : 0;
}

static const qs_value *pack_value(const qs_pack *p, int32_t index) {
    if (index < 0 || index >= p->node->input_count || p->node->inputs[index] == QS_NONE)
        return NULL;
    return &p->graph->values[p->node->inputs[index]];
}

int32_t qs_i8_bound(const qs_node *n, const char *name, int32_t fallback) {
    int64_t v = qs_node_int(n, name, fallback);
    return v < 0 ? 0 : v > 255 ? 255 : (int32_t)v;
}

/* Reads the parameters; false if one is not constant, or has too many elements. */
static bool constant_rules(qs_pack *p, const qs_i8_roles *r, qs_i8_rules *rules) {
    const int32_t indices[] = {r->x_scale, r->x_zp, r->w_scale, r->y_scale, r->y_zp, r->bias};
    const void *data[QS_COUNT(indices)] = {NULL};
    for (size_t i = 0; i < QS_COUNT(indices); i++) {
        const qs_value *v = pack_value(p, indices[i]);
        const bool list = indices[i] == r->w_scale || indices[i] == r->bias;
        data[i] = v ? qs_pack_const(p, indices[i]) : NULL;
        if (v && (!data[i] || (!list && qs_i8_length(v) != 1)))
            return false;
    }
    *rules = (qs_i8_rules){.ctx = p->ctx,
                           .int32_out = r->y_scale < 0,
                           .x_scale = data[0] ? *(const float *)data[0] : 1.0f,
                           .x_zp = data[1] ? *(const uint8_t *)data[1] : 0,
                           .w_scale = data[2],
                           .w_scales = qs_i8_length(pack_value(p, r->w_scale)),
                           .y_scale = data[3] ? *(const float *)data[3] : 1.0f,
                           .y_zp = data[4] ? *(const uint8_t *)data[4] : 0,
                           .bias = data[5],
                           .lo = qs_i8_bound(p->node, "lo", 0),
                           .hi = qs_i8_bound(p->node, "hi", 255)};
    return true;
}

static int pack_fail(qs_pack *p, int code, const char *what) {
    return qs_node_fail(p->error, code, p->model, p->node, "%s", what);
}

static int prove_fail(qs_pack *p, int32_t column, int64_t bound) {
    if (bound == 0)
        return qs_node_fail(p->error, QSIM_E_VALUE, p->model, p->node,
                            "the multiplier of output channel %d is not finite", (int)column);
    return qs_node_fail(p->error, QSIM_E_UNSUPPORTED, p->model, p->node,
                        "sums of output channel %d may reach %lld and leave int32", (int)column,
                        (long long)bound);
}

/* Constant weights that are packed. */
typedef struct packing {
    qs_pack *p;
    const qs_i8_roles *r;
    const qs_i8_shape *shape;
    qk_source_i8 source;
    qs_i8_list w_zp;
    qs_i8_totals totals; /* with memory for the totals of every column */
    qs_i8_rules rules;
    int32_t column; /* a column whose sums may be too large, and their bound */
    int64_t bound;
    bool known, clamp; /* rules are known before a run; sums may exceed int32 */
} packing;

/* Replaces biases that make sums leave int32 by smaller ones with the same results. */
static int reduce_biases(packing *k) {
    size_t columns = (size_t)k->shape->w.n * (size_t)k->shape->w.groups;
    int32_t *bias = qs_arena_alloc(k->p->arena, columns, sizeof(*bias));
    if (!bias)
        return qs_fail(k->p->error, QSIM_E_NOMEM, "out of memory");
    if (!qs_i8_narrow(&k->shape->w, &k->totals, &k->rules, bias))
        return QSIM_OK;
    k->rules.bias = bias;
    (void)qs_i8_prove(&k->shape->w, &k->totals, &k->rules, &k->clamp, &k->column, &k->bound);
    return QSIM_OK;
}

/* Reads the parameters and proves that sums fit int32. */
static int prove_rules(packing *k) {
    const qs_i8_shape *shape = k->shape;
    k->known = constant_rules(k->p, k->r, &k->rules) &&
               (!pack_value(k->p, k->r->w_scale) || k->rules.w_scales == 1 ||
                k->rules.w_scales == shape->w.n * shape->w.groups);
    k->rules.wide = pack_value(k->p, k->r->bias) != NULL;
    if (!k->known || k->rules.int32_out)
        return QSIM_OK;
    qs_i8_sum_up(&shape->w, &k->source, shape->group_stride, &k->w_zp, &k->totals);
    if (qs_go_on(k->p->ctx, k->p->model, k->p->error))
        return qs_stop_code(k->p->ctx);
    if (!qs_i8_prove(&shape->w, &k->totals, &k->rules, &k->clamp, &k->column, &k->bound))
        return prove_fail(k->p, k->column, k->bound);
    return k->rules.wide ? reduce_biases(k) : QSIM_OK;
}

#define WAYS 8 /* packings of one constant that are compared: only hostile models have more */

/* Takes the packed weights of an earlier node with the same weights, even with other scales. */
static bool packed_before(const qs_pack *p, qs_id weights, qs_i8_packed *out) {
    const qs_i8_packed *first = p->kept ? p->kept[weights] : NULL, *other = first;
    for (int i = 0; other && i < WAYS; i++, other = other->before)
        if (qs_i8_alike(&other->layout, &other->source, &out->layout, &out->source) &&
            other->group_stride == out->group_stride && qs_i8_list_same(&other->w_zp, &out->w_zp)) {
            out->weights = other->weights;
            return true;
        }
    out->before = first;
    if (p->kept)
        p->kept[weights] = out;
    return false;
}

static int pack_into(const packing *k, qs_i8_packed *out) {
    qs_pack *p = k->p;
    size_t bytes;
    if (!qs_conv_i8_weights_layout(p->ctx->kernels->i8, &out->layout) ||
        !qs_i8_weights_bytes(&out->layout, &bytes))
        return pack_fail(p, QSIM_E_LIMIT, "the weights are too large");
    out->source = k->source;
    out->w_zp = k->w_zp;
    out->group_stride = k->shape->group_stride;
    if (packed_before(p, p->node->inputs[k->r->w], out))
        return QSIM_OK;
    uint8_t *memory = qs_arena_raw64(p->arena, bytes);
    if (!memory)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    /* Packing writes every byte of a product's panels. */
    size_t whole = qs_conv_i8_is_depthwise(&out->layout) ? 0 : out->layout.bytes;
    memset(memory + whole, 0, bytes - whole);
    qs_i8_weights_fill(&out->layout, &k->source, out->group_stride, &k->w_zp,
                       k->known && !k->rules.int32_out ? &k->totals : NULL, memory, &out->weights);
    return QSIM_OK;
}

static int pack_epilogue(const packing *k, qs_i8_packed *out) {
    qs_pack *p = k->p;
    size_t bytes;
    if (!qs_i8_epilogue_bytes(&out->layout, &bytes))
        return pack_fail(p, QSIM_E_LIMIT, "too many output channels");
    void *memory = qs_arena_alloc64(p->arena, bytes);
    if (!memory)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    qs_i8_epilogue_fill(&out->layout, &out->weights, &k->rules, memory, &out->epilogue);
    out->epilogue.o.clamp = k->clamp;
    out->complete = true;
    return QSIM_OK;
}

/* Whether an input is left out, or is one number, constant or not. */
static bool is_single(const qs_pack *p, int32_t index) {
    const qs_value *v = pack_value(p, index);
    return !v || (v->rank >= 0 && qs_dims_product(v->dims, 0, v->rank) == 1);
}

static int pack_proven(packing *k) {
    qs_pack *p = k->p;
    int code = prove_rules(k);
    if (code)
        return code;
    qs_i8_packed *out = qs_arena_alloc(p->arena, 1, sizeof(*out));
    if (!out)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    out->layout = k->shape->w;
    out->wide = k->rules.wide;
    out->layout.rows = qs_i8_sample_rows(&p->graph->values[p->node->outputs[0]], &out->layout);
    const bool one = k->known || (is_single(p, k->r->x_scale) && is_single(p, k->r->x_zp));
    qs_i8_choose(&out->layout, &k->w_zp, k->source.flip, one, k->rules.wide);
    if (k->known && !k->rules.int32_out && !k->clamp && out->layout.zero_points != QS_ZP_COLUMN)
        out->layout.result = QS_RESULT_BYTES;
    code = pack_into(k, out);
    if (!code && k->known)
        code = pack_epilogue(k, out);
    p->result = code ? p->result : out;
    return code;
}

int qs_i8_pack(qs_pack *p, const qs_i8_roles *r, const qs_i8_shape *shape) {
    const qs_value *w = pack_value(p, r->w), *zp = pack_value(p, r->w_zp);
    packing k = {.p = p, .r = r, .shape = shape, .source = shape->source};
    k.w_zp = (qs_i8_list){qs_pack_const(p, r->w_zp), qs_i8_length(zp), w->dtype == QSIM_INT8};
    k.source.w = qs_pack_const(p, r->w);
    k.source.ctx = p->ctx;
    k.source.flip = w->dtype == QSIM_UINT8 ? 0x80 : 0;
    if (!k.source.w || (zp && !k.w_zp.data) || shape->matrices != 1 ||
        (k.w_zp.count > 1 && k.w_zp.count != shape->w.n * shape->w.groups))
        return QSIM_OK; /* weights are packed in every run */
    const size_t columns = (size_t)shape->w.n * (size_t)shape->w.groups;
    int64_t *sums = qs_alloc(p->ctx, columns, 2 * sizeof(*sums));
    if (!sums)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    k.totals = (qs_i8_totals){sums, sums + columns};
    const int code = pack_proven(&k);
    qs_free(p->ctx, sums);
    return code;
}

bool qs_i8_makes_floats(const qs_pack *p) {
    const qs_value *w_zp = pack_value(p, 3);
    const qs_value *scale = pack_value(p, QS_I8_W_SCALE), *add = pack_value(p, QS_I8_ADD);
    return is_single(p, QS_I8_X_SCALE) && is_single(p, 2) && scale && scale->data &&
           (!add || add->data || add->dtype == QSIM_INT32) && (!w_zp || w_zp->data) &&
           !qs_node_int(p->node, "rows", 0);
}

int qs_i8_pack_floats(qs_pack *p) {
    const qs_i8_packed *packed = p->result;
    size_t bytes;
    if (!packed || !qs_i8_makes_floats(p) || packed->layout.zero_points == QS_ZP_COLUMN)
        return QSIM_OK;
    const qs_value *add = pack_value(p, QS_I8_ADD);
    const bool floats = add && add->dtype == QSIM_FLOAT;
    const float *scales = qs_pack_const(p, QS_I8_W_SCALE),
                *adds = floats ? qs_pack_const(p, QS_I8_ADD) : NULL;
    if (!qs_i8_columns_bytes(&packed->layout, &bytes))
        return pack_fail(p, QSIM_E_LIMIT, "too many output channels");
    void *memory = qs_arena_alloc64(p->arena, bytes);
    qs_i8_packed *copy = qs_arena_alloc(p->arena, 1, sizeof(*copy));
    qs_i8_columns *columns = qs_arena_alloc(p->arena, 1, sizeof(*columns));
    if (!scales || (floats && !adds) || !memory || !copy || !columns)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    qs_i8_columns_fill(&packed->layout, packed->weights.colsum, scales, adds, memory, columns);
    *copy = *packed;
    copy->columns = columns;
    p->result = copy;
    return QSIM_OK;
}
