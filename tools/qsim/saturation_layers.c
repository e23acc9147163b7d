/* SPDX-License-Identifier: MIT */
/*
 * Finds the layers that ONNX Runtime computes with vpmaddubsw: Conv, MatMul and Gemm between
 * DequantizeLinear and, for Conv, QuantizeLinear, and MatMulInteger; not depthwise convolutions,
 * ConvInteger and weights in uint8, which have kernels of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "saturation.h"

typedef struct finder {
    const qsim_model *model;
    const name_index *makers;
    const tensor_names *tensors;
    name_index readers;
} finder;

static bool is(const qsim_node_info *n, const char *op_type) {
    return !n->domain[0] && strcmp(n->op_type, op_type) == 0;
}

static const char *input(const qsim_node_info *n, int32_t i) {
    return i < n->input_count ? n->inputs[i] : "";
}

/* The constant of this name; NULL: there is none. */
static const qsim_value_info *constant(const finder *f, const char *name) {
    const qsim_value_info *v = name[0] ? tensor_named(f->tensors, name) : NULL;
    return v && v->data ? v : NULL;
}

static bool get_node(const finder *f, int32_t index, qsim_node_info *n) {
    n->struct_size = sizeof(*n);
    return index >= 0 && qsim_model_node(f->model, index, n) == QSIM_OK;
}

/* The DequantizeLinear that makes a tensor; for rows of a matrix it may have had another shape. */
static bool dequantized(const finder *f, const char *name, bool any_shape, qsim_node_info *n) {
    static const char *const shapes[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
    while (get_node(f, name_index_find(f->makers, name), n)) {
        bool shaped = false;
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            shaped |= is(n, shapes[i]);
        if (!shaped || !any_shape)
            return is(n, "DequantizeLinear");
        name = n->inputs[0];
    }
    return false;
}

/* The codes to which a result is rounded at once, or after a Relu or Clip; NULL: it is not. */
static const char *rounded(const finder *f, const char *name) {
    qsim_node_info n;
    for (int i = 0; i < 3; i++) {
        if (!get_node(f, name_index_find(&f->readers, name), &n))
            return NULL;
        if (is(&n, "QuantizeLinear"))
            return n.outputs[0];
        if (!is(&n, "Relu") && !is(&n, "Clip"))
            return NULL;
        name = n.outputs[0];
    }
    return NULL;
}

/*
 * Does ONNX Runtime turn int8 codes into uint8? It does where no more than one node reads what they
 * stand for. Else they stay int8, whose sums are exact, and layers that have both run in float.
 */
static bool turns_unsigned(const finder *f, const char *codes) {
    qsim_node_info n;
    return codes && name_index_count(&f->readers, codes) == 1 &&
           get_node(f, name_index_find(&f->readers, codes), &n) && is(&n, "DequantizeLinear") &&
           name_index_count(&f->readers, n.outputs[0]) <= 1;
}

/* ---- attributes ---- */

static qsim_attr_info attribute(const finder *f, int32_t node, const char *name) {
    qsim_attr_info a = {.struct_size = sizeof(a)};
    for (int32_t i = 0; qsim_model_attr(f->model, node, i, &a) == QSIM_OK; i++)
        if (strcmp(a.name, name) == 0)
            return a;
    return (qsim_attr_info){.name = NULL};
}

static int64_t int_attribute(const finder *f, int32_t node, const char *name, int64_t fallback) {
    const qsim_attr_info a = attribute(f, node, name);
    return a.ints && a.count > 0 ? a.ints[0] : fallback;
}

static void list_attribute(const finder *f, int32_t node, const char *name, int64_t fallback,
                           int32_t count, int64_t *out) {
    const qsim_attr_info a = attribute(f, node, name);
    for (int32_t i = 0; i < count; i++)
        out[i] = a.ints && i < a.count ? a.ints[i] : fallback;
}

static void read_padding(const finder *f, int32_t node, saturation_layer *l) {
    const qsim_attr_info automatic = attribute(f, node, "auto_pad");
    const qsim_bytes how = automatic.strings ? automatic.strings[0] : (qsim_bytes){"", 0};
    const bool same = how.size > 4 && memcmp(how.data, "SAME", 4) == 0;
    l->same_lower = how.size == 10 && memcmp(how.data, "SAME_LOWER", 10) == 0;
    list_attribute(f, node, "pads", 0, l->axes, l->pad);
    for (int32_t i = 0; i < l->axes && same; i++)
        l->pad[i] = -1;
}

/* ---- layers ---- */

/* Sizes of a convolution from its weights. */
static bool read_conv(const finder *f, int32_t node, const qsim_value_info *w,
                      saturation_layer *l) {
    l->axes = w->rank - 2;
    if (l->axes < 1 || l->axes > SATURATION_AXES)
        return false;
    l->columns = w->dims[0];
    l->channels = w->dims[1];
    l->groups = int_attribute(f, node, "group", 1);
    l->taps = 1;
    for (int32_t i = 0; i < l->axes; i++)
        l->taps *= l->kernel[i] = w->dims[2 + i];
    list_attribute(f, node, "strides", 1, l->axes, l->stride);
    list_attribute(f, node, "dilations", 1, l->axes, l->dilation);
    read_padding(f, node, l);
    return l->groups > 0 && l->columns > 0 && l->channels > 0 && l->taps > 0;
}

static bool read_product(const finder *f, int32_t node, const qsim_value_info *w,
                         saturation_layer *l) {
    const bool gemm = is(&l->node, "Gemm");
    const qsim_attr_info alpha = attribute(f, node, "alpha");
    if (w->rank != 2 || (alpha.floats && alpha.floats[0] != 1) ||
        (gemm && int_attribute(f, node, "transA", 0)))
        return false;
    l->by_row = !gemm || !int_attribute(f, node, "transB", 0);
    l->channels = w->dims[!l->by_row];
    l->columns = w->dims[l->by_row];
    l->groups = l->taps = 1;
    return l->columns > 0 && l->channels > 0;
}

/* Codes, scales and weights of a layer between DequantizeLinear. False: it has none. */
static bool read_dequantized(const finder *f, saturation_layer *l, const qsim_value_info **w) {
    qsim_node_info x, weights;
    if (!dequantized(f, input(&l->node, 0), !is(&l->node, "Conv"), &x) ||
        !dequantized(f, input(&l->node, 1), false, &weights))
        return false;
    const qsim_value_info *scale = constant(f, input(&x, 1)), *zero = constant(f, input(&x, 2)),
                          *scales = constant(f, input(&weights, 1)),
                          *codes = tensor_named(f->tensors, input(&x, 0));
    *w = constant(f, input(&weights, 0));
    if (!*w || !codes || !scale || scale->bytes != sizeof(l->scale) || !scales ||
        scale->dtype != QSIM_FLOAT || scales->dtype != QSIM_FLOAT || (zero && zero->bytes != 1) ||
        (codes->dtype != QSIM_UINT8 && codes->dtype != QSIM_INT8))
        return false;
    l->codes = codes->name;
    l->is_signed = codes->dtype == QSIM_INT8;
    memcpy(&l->scale, scale->data, sizeof(l->scale));
    if (zero)
        memcpy(&l->zero, zero->data, 1);
    l->zero ^= l->is_signed ? 0x80 : 0;
    l->scales = scales->data;
    l->scale_count = scales->bytes / sizeof(float);
    return true;
}

/* A MatMulInteger whose codes are uint8: others are exact. */
static bool read_integer(const finder *f, saturation_layer *l, const qsim_value_info **w) {
    const qsim_value_info *codes = tensor_named(f->tensors, input(&l->node, 0));
    *w = constant(f, input(&l->node, 1));
    if (!*w || !codes || codes->dtype != QSIM_UINT8)
        return false;
    l->codes = codes->name;
    l->scale = 1;
    return true;
}

/* Is this a product of two activations? Both are uint8 in ONNX Runtime. */
static bool is_of_activations(const finder *f, const qsim_node_info *n) {
    qsim_node_info b;
    return dequantized(f, input(n, 1), true, &b) && !constant(f, input(&b, 0));
}

static bool has_float_bias(const finder *f, const qsim_node_info *n) {
    qsim_node_info bias;
    return input(n, 2)[0] && (is(n, "Conv") || is(n, "Gemm")) &&
           !dequantized(f, input(n, 2), false, &bias);
}

enum { SATURATES, EXACT, UNKNOWN, NO_LAYER };

/* What other runtimes do with a node; a layer that saturates is described in `l`. */
static int classify(const finder *f, int32_t node, saturation_layer *l) {
    const qsim_value_info *w = NULL;
    const bool conv = is(&l->node, "Conv"), integer = is(&l->node, "MatMulInteger");
    if (is(&l->node, "ConvInteger"))
        return EXACT;
    if (!conv && !integer && !is(&l->node, "MatMul") && !is(&l->node, "Gemm"))
        return l->node.integer && l->node.macs > 0 ? UNKNOWN : NO_LAYER;
    const char *result = rounded(f, l->node.outputs[0]);
    if ((conv && !result) || has_float_bias(f, &l->node))
        return NO_LAYER; /* in float */
    if (!(integer ? read_integer(f, l, &w) : read_dequantized(f, l, &w)))
        return !l->node.integer ? NO_LAYER : is_of_activations(f, &l->node) ? EXACT : UNKNOWN;
    if (w->dtype == QSIM_UINT8 ||
        (l->is_signed && !(turns_unsigned(f, l->codes) && (!result || turns_unsigned(f, result)))))
        return EXACT;
    if (w->dtype != QSIM_INT8 || !(conv ? read_conv(f, node, w, l) : read_product(f, node, w, l)))
        return UNKNOWN;
    if (l->scales && l->scale_count != 1 && l->scale_count != (size_t)l->columns)
        return UNKNOWN;
    l->weights = w->data;
    return conv && l->channels == 1 && l->columns == l->groups ? EXACT : SATURATES;
}

void saturation_find(saturation *s) {
    name_index_makers(s->model, &s->makers);
    s->in_part = tool_alloc((size_t)qsim_model_node_count(s->model), sizeof(*s->in_part));
    tensor_names_read(s->model, &s->tensors);
    finder f = {.model = s->model, .makers = &s->makers, .tensors = &s->tensors};
    name_index_readers(s->model, &f.readers);
    const int32_t nodes = qsim_model_node_count(s->model);
    for (int32_t i = 0; i < nodes; i++) {
        saturation_layer l = {.codes = NULL};
        const int kind = get_node(&f, i, &l.node) ? classify(&f, i, &l) : NO_LAYER;
        if (kind == SATURATES) {
            name_index_add(&s->results, l.node.outputs[0], (int32_t)s->count);
            s->layers = tool_grow(s->layers, s->count + 1, sizeof(*s->layers));
            s->layers[s->count++] = l;
        }
        s->exact += kind == EXACT;
        s->is_signed |= l.is_signed;
        if (kind == UNKNOWN)
            text_printf(&s->unknown, "%s%s (%s)", s->unknown.size ? ", " : "",
                        l.node.name[0] ? l.node.name : l.node.outputs[0], l.node.op_type);
    }
    name_index_sort(&s->results);
    name_index_free(&f.readers);
}

void saturation_close(saturation *s) {
    for (size_t i = 0; i < s->count; i++)
        free(s->layers[i].pairs);
    free(s->layers);
    tensor_names_free(&s->tensors);
    name_index_free(&s->makers);
    name_index_free(&s->results);
    text_free(&s->unknown);
    tensor_pairs_free(&s->outputs);
    free(s->in_part);
    free(s->has_classes);
    qsim_model_free(s->model);
}
