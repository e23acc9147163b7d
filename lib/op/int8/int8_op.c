/* SPDX-License-Identifier: MIT */
#include "op/int8/int8_op.h"

#include "base/slices.h"

#include <math.h>

/* ---- rules ---- */

/* Checks that constant scales are positive finite numbers. */
QS_COLD static int check_scale(const qs_infer *x, int32_t index) {
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

QS_COLD static int check_types(const qs_infer *x, const qs_i8_roles *r) {
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

QS_COLD int qs_i8_check(const qs_infer *x, const qs_i8_roles *r, int64_t columns, bool rows) {
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

QS_COLD int32_t qs_i8_out_type(const qs_infer *x, const qs_i8_roles *r) {
    if (r->y_zp < 0)
        return QSIM_INT32;
    const qs_value *v = qs_infer_in(x, r->y_zp);
    return v ? v->dtype : QSIM_UINT8;
}

/* ---- packing ---- */

typedef struct qs_i8_packed {
    qs_conv_i8_weights layout;
    qs_i8_weights weights;
    qs_i8_epilogue epilogue;
    bool complete, wide;    /* the epilogue is packed, too; see qs_i8_rules */
    qs_i8_columns *columns; /* for float results, or NULL */
    /* Source of the packed weights, and weights packed earlier from the same constant. */
    qk_source_i8 source;
    qs_i8_list w_zp;
    int64_t group_stride;
    const struct qs_i8_packed *before;
} qs_i8_packed;

static int32_t elements_of(const qs_value *v) {
    return v ? (int32_t)qs_value_elements(v) : 0;
}

static const qs_value *pack_value(const qs_pack *p, int32_t index) {
    if (index < 0 || index >= p->node->input_count || p->node->inputs[index] == QS_NONE)
        return NULL;
    return &p->graph->values[p->node->inputs[index]];
}

static int32_t limit_of(const qs_node *n, const char *name, int32_t fallback) {
    int64_t v = qs_node_int(n, name, fallback);
    return v < 0 ? 0 : v > 255 ? 255 : (int32_t)v;
}

/* Reads the parameters; false if one is not constant, or has too many elements. */
QS_COLD static bool constant_rules(qs_pack *p, const qs_i8_roles *r, qs_i8_rules *rules) {
    const int32_t indices[] = {r->x_scale, r->x_zp, r->w_scale, r->y_scale, r->y_zp, r->bias};
    const void *data[QS_COUNT(indices)] = {NULL};
    for (size_t i = 0; i < QS_COUNT(indices); i++) {
        const qs_value *v = pack_value(p, indices[i]);
        const bool list = indices[i] == r->w_scale || indices[i] == r->bias;
        data[i] = v ? qs_pack_const(p, indices[i]) : NULL;
        if (v && (!data[i] || (!list && elements_of(v) != 1)))
            return false;
    }
    *rules = (qs_i8_rules){.ctx = p->ctx,
                           .int32_out = r->y_scale < 0,
                           .x_scale = data[0] ? *(const float *)data[0] : 1.0f,
                           .x_zp = data[1] ? *(const uint8_t *)data[1] : 0,
                           .w_scale = data[2],
                           .w_scales = elements_of(pack_value(p, r->w_scale)),
                           .y_scale = data[3] ? *(const float *)data[3] : 1.0f,
                           .y_zp = data[4] ? *(const uint8_t *)data[4] : 0,
                           .bias = data[5],
                           .lo = limit_of(p->node, "lo", 0),
                           .hi = limit_of(p->node, "hi", 255)};
    return true;
}

QS_COLD static int pack_fail(qs_pack *p, int code, const char *what) {
    return qs_node_fail(p->error, code, p->model, p->node, "%s", what);
}

QS_COLD static int prove_fail(qs_pack *p, int32_t column, int64_t bound) {
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
QS_COLD static int reduce_biases(packing *k) {
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
QS_COLD static int prove_rules(packing *k) {
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
QS_COLD static bool packed_before(const qs_pack *p, qs_id weights, qs_i8_packed *out) {
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

QS_COLD static int pack_into(const packing *k, qs_i8_packed *out) {
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

QS_COLD static int pack_epilogue(const packing *k, qs_i8_packed *out) {
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

QS_COLD static int pack_proven(packing *k) {
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

QS_COLD int qs_i8_pack(qs_pack *p, const qs_i8_roles *r, const qs_i8_shape *shape) {
    const qs_value *w = pack_value(p, r->w), *zp = pack_value(p, r->w_zp);
    packing k = {.p = p, .r = r, .shape = shape, .source = shape->source};
    k.w_zp = (qs_i8_list){qs_pack_const(p, r->w_zp), elements_of(zp), w->dtype == QSIM_INT8};
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

QS_COLD bool qs_i8_makes_floats(const qs_pack *p) {
    const qs_value *w_zp = pack_value(p, 3);
    const qs_value *scale = pack_value(p, QS_I8_W_SCALE), *add = pack_value(p, QS_I8_ADD);
    return is_single(p, QS_I8_X_SCALE) && is_single(p, 2) && scale && scale->data &&
           (!add || add->data || add->dtype == QSIM_INT32) && (!w_zp || w_zp->data) &&
           !qs_node_int(p->node, "rows", 0);
}

QS_COLD int qs_i8_pack_floats(qs_pack *p) {
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

/* ---- execution ---- */

typedef struct run {
    const qs_i8_plan *p;
    const qs_step *s;
    const qs_frame *f;
    const uint8_t *x;
    uint8_t *y, *scratch;
    const void *after_arg;
} run;

static const void *role_in(const run *k, int32_t index) {
    return index < 0 || index >= k->p->input_count ? NULL : qs_step_in(k->s, k->f, index);
}

/* The part of a list that belongs to matrix `from`, or the list that all matrices share. */
static const void *part(const void *list, int64_t count, int64_t each, int64_t from, size_t size) {
    if (!list || count <= each)
        return list;
    return (const uint8_t *)list + (size_t)(from * each) * size;
}

static void read_floats(const run *k, qs_i8_rules *r) {
    r->floats = k->p->packed->columns;
    r->x_scale = *(const float *)role_in(k, QS_I8_X_SCALE);
    r->low = k->p->floats.low;
    r->high = k->p->floats.high;
}

static void read_rules(const run *k, int64_t batch, uint8_t *memory, qs_i8_rules *r) {
    const qs_i8_plan *p = k->p;
    const qs_i8_roles *at = p->roles;
    int64_t m = p->conv.g.ho, n = p->shape.w.n;
    int64_t xb = p->x_matrix ? p->x_matrix[batch] : 0, wb = p->w_matrix ? p->w_matrix[batch] : 0;
    const uint8_t *x_zp = part(role_in(k, at->x_zp), p->x_zps, m, xb, 1);
    const float *x_scale = part(role_in(k, at->x_scale), p->x_scales, m, xb, 4);
    const float *y_scale = role_in(k, at->y_scale);
    const uint8_t *y_zp = role_in(k, at->y_zp);
    *r = (qs_i8_rules){.ctx = k->f->ctx,
                       .int32_out = p->int32_out,
                       .x_scale = x_scale ? x_scale[0] : 1.0f,
                       .y_scale = y_scale ? y_scale[0] : 1.0f,
                       .w_scale = part(role_in(k, at->w_scale), p->w_scales, n, wb, 4),
                       .w_scales = p->w_scales,
                       .bias = role_in(k, p->floats.integers ? QS_I8_ADD : at->bias),
                       .x_zp = x_zp ? x_zp[0] : 0,
                       .y_zp = y_zp ? y_zp[0] : 0,
                       .lo = p->lo,
                       .hi = p->hi,
                       .wide = p->wide};
    if (p->floats.direct)
        read_floats(k, r);
    if (!p->rows)
        return;
    int32_t *row_zp = (int32_t *)(void *)memory;
    float *row_scale = (float *)(void *)(memory + p->row_bytes / 2);
    for (int64_t i = 0; i < m; i++) {
        row_zp[i] = x_zp ? x_zp[p->x_zps == 1 ? 0 : i] : 0;
        row_scale[i] = x_scale ? x_scale[p->x_scales == 1 ? 0 : i] : 1.0f;
    }
    r->row_zp = row_zp;
    r->row_scale = p->int32_out ? NULL : row_scale;
}

static void run_batch(const run *k, int64_t batch, uint8_t *memory) {
    const qs_i8_plan *p = k->p;
    qs_conv_i8 conv = p->conv;
    qs_i8_weights weights;
    qs_i8_rules rules;
    qs_i8_epilogue e;
    int64_t xb = p->x_matrix ? p->x_matrix[batch] : 0, wb = p->w_matrix ? p->w_matrix[batch] : 0;
    if (p->packed) {
        weights = p->packed->weights;
    } else {
        qk_source_i8 source = p->shape.source;
        int64_t columns = (int64_t)p->shape.w.n * p->shape.w.groups;
        int64_t matrix = columns * source.c * source.kh * source.kw;
        qs_i8_list zp = {part(role_in(k, p->roles->w_zp), p->w_zps, columns, wb, 1), p->w_zps,
                         p->w_signed};
        source.w = (const int8_t *)role_in(k, p->roles->w) + wb * matrix;
        source.flip = p->w_signed ? 0 : 0x80;
        source.ctx = k->f->ctx;
        qs_i8_weights_fill(&conv.w, &source, p->shape.group_stride, &zp, NULL, memory, &weights);
        memory += p->weights_bytes;
    }
    read_rules(k, batch, memory, &rules);
    memory += p->row_bytes;
    qs_i8_epilogue_fill(&conv.w, &weights, &rules, memory, &e);
    memory += p->epilogue_bytes;
    conv.b = weights.b;
    conv.w_zp = weights.row_zp;
    conv.o = e.o;
    conv.x_zp = (uint8_t)rules.x_zp;
    conv.post = e.use_post ? &e.post : NULL;
    conv.after_arg = k->after_arg;
    qs_conv_i8_run(k->f->ctx, &conv, k->x + xb * p->x_bytes,
                   k->y + batch * p->y_elements * (p->int32_out ? 4 : 1), memory, false);
}

static void run_task(void *arg, size_t task) {
    const run *k = arg;
    const qs_i8_plan *p = k->p;
    int64_t end = p->batches * ((int64_t)task + 1) / p->tasks;
    for (int64_t i = p->batches * (int64_t)task / p->tasks; i < end; i++)
        run_batch(k, i, k->scratch + task * p->task_bytes);
}

static void run_prepared(const qs_step *s, const qs_frame *f) {
    const qs_i8_plan *p = s->params;
    qs_conv_i8_run(f->ctx, &p->conv, qs_step_in(s, f, p->roles->x), qs_step_out(s, f, 0),
                   f->scratch, s->overlaps);
}

static void prepare_and_run(const qs_step *s, const qs_frame *f, const void *after_arg) {
    const qs_i8_plan *p = s->params;
    run k = {p, s, f, qs_step_in(s, f, p->roles->x), qs_step_out(s, f, 0), f->scratch, after_arg};
    if (p->tasks == 1)
        run_task(&k, 0);
    else
        qs_parallel(f->ctx, (size_t)p->tasks, run_task, &k);
}

static void run_preparing(const qs_step *s, const qs_frame *f) {
    prepare_and_run(s, f, NULL);
}

void qs_i8_run(const qs_step *s, const qs_frame *f, const void *after_arg) {
    if (s->run == run_preparing)
        prepare_and_run(s, f, after_arg);
    else
        s->run(s, f);
}

/* ---- lowering ---- */

static const qs_value *role_value(const qs_lower *l, int32_t index) {
    return index < 0 ? NULL : qs_lower_in(l, index);
}

/* Sets the lengths of lists, and the layout of weights that are packed in every run. */
QS_COLD static int make_layout(qs_lower *l, qs_infer *x, qs_i8_plan *p) {
    const qs_i8_roles *r = p->roles;
    const qs_value *w = role_value(l, r->w), *zp = role_value(l, r->w_zp);
    p->x_zps = elements_of(role_value(l, r->x_zp));
    p->x_scales = elements_of(role_value(l, r->x_scale));
    p->w_zps = elements_of(zp);
    p->w_scales = elements_of(role_value(l, r->w_scale));
    p->w_signed = w->dtype == QSIM_INT8;
    p->rows = p->x_zps > 1 || p->x_scales > 1;
    p->conv.w = p->packed ? p->packed->layout : p->shape.w;
    p->wide = p->packed ? p->packed->wide : role_value(l, r->bias) != NULL;
    if (p->packed)
        return QSIM_OK;
    qs_i8_list list = {zp && zp->data ? zp->data->data : NULL, p->w_zps, p->w_signed};
    const bool open = p->wide || (zp && !zp->data), each = open || p->w_zps > 1 || p->rows;
    const bool any = open || qs_i8_any_zero_point(&list, p->w_signed ? 0 : 0x80);
    p->conv.w.zero_points = !any ? QS_ZP_NONE : each ? QS_ZP_COLUMN : QS_ZP_SAME;
    if (!qs_conv_i8_weights_layout(l->ctx->kernels->i8, &p->conv.w) ||
        !qs_i8_weights_bytes(&p->conv.w, &p->weights_bytes))
        return qs_infer_fail(x, QSIM_E_LIMIT, "the weights are too large");
    return QSIM_OK;
}

/* Bounds sums of unknown weights: |x - zp| <= 255, |w| <= 128 (255 with a zero point). */
QS_COLD static int check_worst(qs_infer *x, const qs_i8_plan *p) {
    int64_t k = (int64_t)p->conv.w.kh * p->conv.w.kw * p->conv.w.c;
    if (!p->int32_out && k > INT32_MAX / 255 / (p->conv.w.zero_points == QS_ZP_NONE ? 128 : 255))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "a sum of %lld products may leave int32: not all inputs are constant",
                             (long long)k);
    return QSIM_OK;
}

QS_COLD static int make_scratch(qs_infer *x, qs_i8_plan *p, size_t *scratch) {
    size_t rows = 0, all = p->conv_bytes;
    if (!qs_i8_epilogue_bytes(&p->conv.w, &p->epilogue_bytes) ||
        (p->rows && !qs_mul((size_t)p->conv.g.ho, 8, &rows)) || rows > SIZE_MAX / 4)
        return qs_infer_fail(x, QSIM_E_LIMIT, "an integer product is too large");
    p->row_bytes = p->rows ? 2 * qs_align(rows / 2, 64) : 0;
    if (!qs_add(all, p->weights_bytes, &all) || !qs_add(all, p->epilogue_bytes, &all) ||
        !qs_add(all, p->row_bytes, &all) || all > SIZE_MAX / 2 ||
        !qs_mul(qs_align(all, 64), (size_t)p->tasks, scratch))
        return qs_infer_fail(x, QSIM_E_LIMIT, "an integer product is too large");
    p->task_bytes = qs_align(all, 64);
    return QSIM_OK;
}

QS_COLD static int lower_check(qs_lower *l, qs_infer *x, const qs_i8_plan *p) {
    const qs_value *y = qs_lower_out(l, 0);
    if (role_value(l, p->roles->x)->dtype != QSIM_UINT8)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "executed on unsigned activations only");
    bool sums = p->roles->y_scale < 0 && y->dtype == QSIM_FLOAT; /* which op_scaled_int8.c scales */
    if (y->dtype != QSIM_UINT8 && y->dtype != QSIM_INT32 && !sums)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "executed with unsigned results only");
    return QSIM_OK;
}

/* Chooses floats or sums as results of ConvInteger and MatMulInteger. */
QS_COLD static void choose_floats(qs_i8_plan *p) {
    qs_i8_floats *how = &p->floats;
    how->direct = p->packed && p->packed->columns && p->batches == 1 && !p->rows;
    if (!how->direct)
        return;
    p->conv.after = how->after;
    p->conv.after_in_place = how->after != NULL;
    p->conv.g.y_channels = how->into;
    p->conv.g.y_column = how->column;
}

QS_COLD int qs_i8_lower(qs_lower *l, qs_i8_plan *p) {
    qs_infer x;
    qs_lower_infer(l, &x);
    int code = lower_check(l, &x, p);
    if (code)
        return code;
    l->step->run = qs_run_nothing;
    if (qs_value_elements(qs_lower_out(l, 0)) == 0)
        return QSIM_OK;
    p->packed = l->packed;
    p->input_count = l->node->input_count;
    p->int32_out = p->roles->y_scale < 0;
    p->lo = limit_of(l->node, "lo", 0);
    p->hi = limit_of(l->node, "hi", 255);
    code = make_layout(l, &x, p);
    if (code)
        return code;
    choose_floats(p);
    const bool alone = p->batches == 1 && !p->floats.direct && !p->floats.integers;
    const bool prepared = p->prepared = alone && p->packed && p->packed->complete;
    if (!prepared && (code = check_worst(&x, p)))
        return code;
    const double ns = qs_conv_i8_ns(&p->conv);
    const size_t slices = qs_slice_count(l->ctx, SIZE_MAX, ns);
    p->tasks = (int32_t)qs_slice_count(l->ctx, (size_t)p->batches, (double)p->batches * ns);
    p->post = prepared ? p->packed->epilogue.post : (qs_conv_i8_post){0};
    bool post =
        prepared ? p->packed->epilogue.use_post : p->conv.w.zero_points == QS_ZP_COLUMN || p->rows;
    p->conv.post = post ? &p->post : NULL;
    int32_t *offset = qs_arena_alloc(l->arena, qs_conv_i8_offsets(&p->conv.w), sizeof(*offset));
    if (!offset)
        return qs_infer_fail(&x, QSIM_E_NOMEM, "out of memory");
    if (!qs_conv_i8_make_plan(&p->conv, p->tasks > 1 ? 1 : (int32_t)slices, offset, &p->conv_bytes))
        return qs_infer_fail(&x, QSIM_E_LIMIT, "an integer product is too large");
    l->step->macs = qs_conv_i8_macs(&p->conv) * p->batches;
    if (qs_conv_i8_is_depthwise(&p->conv.w))
        l->step->kernel = "depthwise int8";
    l->step->tiles = qs_conv_i8_by_tiles(&p->conv);
    l->step->scratch = p->conv_bytes;
    l->step->run = run_prepared;
    if (prepared) {
        p->conv.b = p->packed->weights.b;
        p->conv.o = p->packed->epilogue.o;
        p->conv.w_zp = p->packed->weights.row_zp;
        p->conv.x_zp = (uint8_t)p->post.zp;
        if (p->roles->x == 0 && !p->int32_out && p->conv.p.column_tasks == 1) {
            l->step->min_lead = p->conv.p.min_lead;
            l->step->min_lag = p->conv.p.min_lag;
        }
        return QSIM_OK;
    }
    l->step->run = run_preparing;
    return make_scratch(&x, p, &l->step->scratch);
}
