/* SPDX-License-Identifier: MIT */
/*
 * Dynamic quantization: weights in 8 bits now, activations while the model runs, in ONNX operators
 * that ONNX Runtime's CPU provider has for these types:
 *
 *     q, s, zp = DynamicQuantizeLinear(x)
 *     y = Mul(Cast(MatMulInteger | ConvInteger(q, w, zp, w_zp)), Mul(s, w_scale)) [Add bias]
 *
 * Products share the quantization of an input. With per_row each row of a product (each image of a
 * convolution) has a scale of its own around zero point 128, computed by ReduceMax, Max and Div,
 * and
 *
 *     y = Mul(Mul(Cast(...), w_scale), s) [Add bias]
 *
 * because ONNX Runtime fuses the form above into one operator that drops the bias if s is a list.
 */
#include "op/op.h"
#include "ptq/quantizer.h"

typedef struct quantized_input {
    qs_id x, scale, zero_point; /* x QS_NONE: not made yet */
} quantized_input;

typedef struct dynamic {
    qs_quantizer *q;
    qs_graph *g;
    quantized_input *inputs; /* by value id; per row: twice, for matrices and convolutions */
    bool failed;             /* out of memory: checked once a layer */
} dynamic;

/* ---- nodes ---- */

/* Adds a node with one output, named after it: output_OP. */
static qs_id add(dynamic *d, const char *op, const qs_id *in, int32_t count, qs_id y) {
    for (int32_t i = 0; i < count; i++)
        d->failed |= in[i] < 0;
    d->failed |= y < 0;
    if (d->failed)
        return QS_NONE;
    const char *base = d->g->values[y].name;
    size_t n = strlen(base), m = strlen(op);
    char *name = qs_arena_alloc(&d->g->arena, n + m + 2, 1);
    qs_id node = QS_NONE;
    if (name) {
        memcpy(name, base, n);
        name[n] = '_';
        memcpy(name + n + 1, op, m);
        node = qs_graph_add_node(d->g, "", op, name, in, count, &y, 1);
    }
    d->failed |= node < 0;
    return node;
}

/* Adds a node whose output is a new value with the shape of `like` and its name and a suffix. */
static qs_id add_step(dynamic *d, qs_id like, const char *suffix, const char *op, qs_id a, qs_id b,
                      int32_t dtype) {
    const qs_id in[2] = {a, b};
    qs_id y = qs_write_value(d->q, d->g->values[like].name, suffix, dtype, like);
    (void)add(d, op, in, b == QS_NONE ? 1 : 2, y);
    return y;
}

static qs_id add_number(dynamic *d, const char *base, const char *suffix, float v) {
    return qs_write_constant(d->q, base, suffix, QSIM_FLOAT, 0, NULL, &v);
}

static void set_int(dynamic *d, qs_id y, const char *name, int64_t v) {
    if (!d->failed)
        d->failed |= qs_node_set_int(d->g, d->g->values[y].producer, name, v) != QSIM_OK;
}

/* ---- activations ---- */

static quantized_input by_tensor(dynamic *d, qs_id x) {
    const char *base = d->g->values[x].name;
    qs_id out[3] = {qs_write_value(d->q, base, "_quantized", QSIM_UINT8, x),
                    qs_write_value(d->q, base, "_scale", QSIM_FLOAT, x),
                    qs_write_value(d->q, base, "_zero_point", QSIM_UINT8, x)};
    const char *name = qs_write_name(d->q, base, "_QuantizeLinear");
    d->failed |= out[0] < 0 || out[1] < 0 || out[2] < 0 || !name;
    if (!d->failed) {
        d->g->values[out[1]].rank = d->g->values[out[2]].rank = 0;
        d->failed |= qs_graph_add_node(d->g, "", "DynamicQuantizeLinear", name, &x, 1, out, 3) < 0;
    }
    return (quantized_input){out[0], out[1], out[2]};
}

/*
 * Adds a ReduceMax of x's magnitudes over `count` axes from `first` on; since version 18 the axes
 * are an input.
 */
static qs_id reduce(dynamic *d, qs_id x, qs_id magnitudes, int32_t first, int64_t count) {
    const char *base = d->g->values[x].name;
    int64_t axes[QSIM_MAX_RANK];
    for (int64_t i = 0; i < count; i++)
        axes[i] = first + i;
    if (qs_graph_import(d->g, "") >= 18)
        return add_step(d, x, "_magnitude", "ReduceMax", magnitudes,
                        qs_write_constant(d->q, base, "_row_axes", QSIM_INT64, 1, &count, axes),
                        QSIM_FLOAT);
    qs_id y = add_step(d, x, "_magnitude", "ReduceMax", magnitudes, QS_NONE, QSIM_FLOAT);
    if (!d->failed)
        d->failed |= qs_node_set_ints(d->g, d->g->values[y].producer, "axes", axes,
                                      (int32_t)count) != QSIM_OK;
    return y;
}

/* Quantizes every row of `count` axes from `first` on: s = max(|x|) / 127, q = round(x / s) + 128.
 */
static quantized_input by_row(dynamic *d, qs_id x, int32_t first, int32_t count) {
    const char *base = d->g->values[x].name;
    const uint8_t middle = 128;
    qs_id a = add_step(d, x, "_abs", "Abs", x, QS_NONE, QSIM_FLOAT);
    qs_id m = d->failed ? QS_NONE : reduce(d, x, a, first, count);
    qs_id t = add_step(d, x, "_top", "Max", m, add_number(d, base, "_least", 1e-30f), QSIM_FLOAT);
    qs_id s = add_step(d, x, "_scale", "Div", t, add_number(d, base, "_steps", 127), QSIM_FLOAT);
    qs_id v = add_step(d, x, "_in_steps", "Div", x, s, QSIM_FLOAT);
    qs_id r = add_step(d, x, "_rounded", "Round", v, QS_NONE, QSIM_FLOAT);
    qs_id c = add_step(d, x, "_raised", "Add", r, add_number(d, base, "_middle", 128), QSIM_FLOAT);
    qs_id y = add_step(d, x, "_quantized", "Cast", c, QS_NONE, QSIM_UINT8);
    set_int(d, y, "to", QSIM_UINT8);
    qs_id z = qs_write_constant(d->q, base, "_zero_point", QSIM_UINT8, 0, NULL, &middle);
    d->failed |= z < 0;
    return (quantized_input){y, s, z};
}

/* `rank`: of weights. An image has it, too; the last axis of rows is -1 if their rank is unknown.
 */
static const quantized_input *quantize_input(dynamic *d, qs_id x, bool conv, int32_t rank) {
    const bool rows = d->q->options.per_row != 0;
    const int32_t last = d->g->values[x].rank < 0 ? -1 : d->g->values[x].rank - 1;
    quantized_input *in = &d->inputs[rows && conv ? d->q->value_count + (size_t)x : (size_t)x];
    if (in->x == QS_NONE)
        *in = !rows ? by_tensor(d, x) : conv ? by_row(d, x, 1, rank - 1) : by_row(d, x, last, 1);
    return in;
}

/* ---- weights ---- */

typedef struct weights {
    qs_id w, scale, zero_point;
} weights;

static uint8_t *transposed(dynamic *d, const uint8_t *from, const qs_const *c) {
    uint8_t *to = qs_arena_alloc(&d->g->arena, c->elements + 1, 1);
    for (int64_t r = 0; to && r < c->dims[0]; r++)
        for (int64_t k = 0; k < c->dims[1]; k++)
            to[k * c->dims[0] + r] = from[r * c->dims[1] + k];
    return to;
}

/*
 * Makes weights. Those of convolutions are u8, since older versions of ONNX Runtime have no
 * ConvInteger of s8, and it takes no list of zero points; symmetric ones are s8 plus 128.
 */
static int make_weights(dynamic *d, const qs_layer *l, bool conv, weights *out) {
    qs_quantizer *q = d->q;
    qs_id v = d->g->nodes[l->node].inputs[1];
    const char *base = d->g->values[v].name;
    const qs_const *c = d->g->values[v].data;
    bool shift = conv && qs_is_symmetric(&l->form);
    int32_t dtype = shift ? QSIM_INT8 : conv ? QSIM_UINT8 : l->form.dtype;
    qs_codes codes;
    qs_weight_form form = l->form;
    form.dtype = dtype;
    int code = qs_initializer_quantize(q, v, l->axis, form, conv ? NULL : l, &codes);
    if (code)
        return code;
    float *moved = NULL;
    code = qs_bias_find(q, l, &codes, dtype, &moved);
    if (!code && moved)
        code = qs_bias_add(q, l, moved);
    if (code)
        return code;
    uint8_t *data = codes.data;
    int32_t *zp = codes.zero_point;
    int64_t dims[QSIM_MAX_RANK], ones[QSIM_MAX_RANK];
    for (size_t i = 0; shift && i < c->elements; i++)
        data[i] ^= 0x80;
    if (shift) {
        dtype = QSIM_UINT8;
        zp[0] += 128;
    }
    bool swap = !conv && l->axis == 0;
    if (swap && !(data = transposed(d, data, c)))
        return QSIM_E_NOMEM;
    for (int32_t i = 0; i < c->rank; i++) {
        dims[i] = c->dims[swap ? c->rank - 1 - i : i];
        ones[i] = i == 1 ? (int64_t)l->channels : 1;
    }
    const int64_t channels = (int64_t)l->channels;
    int32_t rank = codes.count == 1 ? 0 : conv ? c->rank : 1;
    out->w = qs_write_constant(q, base, "_quantized", dtype, c->rank, dims, data);
    out->scale = qs_write_constant(q, base, "_scale", QSIM_FLOAT, rank, conv ? ones : &channels,
                                   codes.scale);
    const bool list = codes.count > 1 && !qs_is_symmetric(&l->form);
    out->zero_point = qs_write_zero_points(q, base, "_zero_point", dtype, zp, list, &channels);
    d->failed |= out->w < 0 || out->scale < 0 || out->zero_point < 0;
    return QSIM_OK;
}

/* The bias; that of a convolution in a shape that broadcasts to its output. */
static qs_id make_bias(dynamic *d, qs_id bias, bool conv, int32_t rank) {
    int64_t dims[QSIM_MAX_RANK];
    const qs_const *c = d->g->values[bias].data;
    if (!conv)
        return bias;
    for (int32_t i = 0; i < rank; i++)
        dims[i] = i == 1 ? (int64_t)c->elements : 1;
    return qs_write_constant(d->q, d->g->values[bias].name, "_reshaped", QSIM_FLOAT, rank, dims,
                             c->data);
}

/* ---- layers ---- */

static void scale_sums(dynamic *d, const char *base, qs_id sums, qs_id x_scale, qs_id w_scale,
                       qs_id y) {
    bool rows = d->q->options.per_row != 0;
    const qs_id first[2] = {rows ? sums : x_scale, w_scale};
    qs_id v = qs_write_value(d->q, base, rows ? "_by_weight" : "_scales", QSIM_FLOAT,
                             rows && y >= 0 ? y : w_scale);
    const qs_id second[2] = {rows ? v : sums, rows ? x_scale : v};
    (void)add(d, "Mul", first, 2, v);
    (void)add(d, "Mul", second, 2, y);
}

/* Weights in 4 bits: activations are rounded by blocks inside the operator. */
static int rewrite_narrow(dynamic *d, const qs_layer *l) {
    qs_codes codes;
    float *shift = NULL;
    int code = qs_narrow_make(d->q, l, &codes);
    if (!code)
        code = qs_bias_find(d->q, l, &codes, l->form.dtype, &shift);
    if (!code && shift)
        code = qs_bias_add(d->q, l, shift);
    return code ? code : qs_write_nbits(d->q, l, &codes, 4);
}

static int rewrite_layer(dynamic *d, const qs_layer *l) {
    qs_graph *g = d->g;
    bool conv = strcmp(g->nodes[l->node].op_type, "Conv") == 0;
    if (qs_is_narrow(l->form.dtype))
        return rewrite_narrow(d, l);
    weights w = {QS_NONE, QS_NONE, QS_NONE};
    int code = make_weights(d, l, conv, &w);
    if (code)
        return code;
    const qs_node old = g->nodes[l->node]; /* with its bias corrected */
    qs_id y = old.outputs[0], bias = qs_node_input(&old, 2);
    int32_t rank = g->values[old.inputs[1]].data->rank;
    const char *base = qs_node_label(g, l->node), *name = g->values[y].name;
    const quantized_input x = *quantize_input(d, old.inputs[0], conv, rank);
    const qs_id in[4] = {x.x, w.w, x.zero_point, w.zero_point};
    qs_id sums = qs_write_value(d->q, name, "_sums", QSIM_INT32, y);
    qs_graph_remove_node(g, l->node);
    qs_id node = add(d, conv ? "ConvInteger" : "MatMulInteger", in, 4, sums);
    if (conv && !d->failed) {
        g->nodes[node].attr_count = old.attr_count;
        g->nodes[node].attrs =
            qs_arena_copy(&g->arena, old.attrs, (size_t)old.attr_count * sizeof(*old.attrs));
        d->failed |= !g->nodes[node].attrs;
    }
    qs_id real = qs_write_value(d->q, base, "_cast", QSIM_FLOAT, y);
    (void)add(d, "Cast", &sums, 1, real);
    set_int(d, real, "to", QSIM_FLOAT);
    qs_id last = bias == QS_NONE ? y : qs_write_value(d->q, name, "_scaled", QSIM_FLOAT, y);
    scale_sums(d, base, real, x.scale, w.scale, last);
    if (bias != QS_NONE) {
        const qs_id sum[2] = {last, make_bias(d, bias, conv, rank)};
        (void)add(d, "Add", sum, 2, y);
    }
    return d->failed ? QSIM_E_NOMEM : QSIM_OK;
}

int qs_rewrite_dynamic(qs_quantizer *q) {
    dynamic d = {.q = q, .g = q->g};
    int code = QSIM_OK;
    d.inputs = qs_alloc(q->ctx, 2 * q->value_count + 1, sizeof(*d.inputs));
    if (!d.inputs)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < 2 * q->value_count; i++)
        d.inputs[i].x = QS_NONE;
    for (size_t i = 0; i < q->layer_count && !code; i++) {
        const qs_layer *l = &q->layers[i];
        if (!q->choices[l->node].integer)
            continue;
        code = qs_write_progress(q, l->node, i, q->layer_count);
        if (!code)
            code = rewrite_layer(&d, l);
    }
    qs_free(q->ctx, d.inputs);
    return code ? code : qs_write_finish(q);
}
