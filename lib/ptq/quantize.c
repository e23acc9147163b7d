/* SPDX-License-Identifier: MIT */
/* qsim_quantize and the dry run. */
#include "ptq/quantizer.h"

#include <stdio.h>

#include "pass/pass.h"
#include "op/op.h"

static int check_rules(const qsim_quantize_options *o, qsim_error *error) {
    for (size_t i = 0; i < o->rule_count; i++) {
        const qsim_rule *r = o->rules ? &o->rules[i] : NULL;
        if (!r || !r->pattern || (r->action != QSIM_RULE_FLOAT && r->action != QSIM_RULE_INT8))
            return qs_fail(error, QSIM_E_ARGUMENT, "quantization: rule %zu is not valid", i);
        if (r->struct_size != sizeof(*r) || r->reserved)
            return qs_fail(error, QSIM_E_VERSION, "quantization: rule %zu is of another version",
                           i);
    }
    for (size_t i = 0; o->schemes && i < o->scheme_count; i++)
        if (o->schemes[i] < 0 || o->schemes[i] > QSIM_WEIGHT_TENSOR_ASYMMETRIC)
            return qs_fail(error, QSIM_E_ARGUMENT, "quantization: weight scheme %d is not known",
                           o->schemes[i]);
    for (size_t i = 0; o->percentiles && i < o->percentile_count; i++)
        if (!(o->percentiles[i] > 0 && o->percentiles[i] <= 100))
            return qs_fail(error, QSIM_E_ARGUMENT, "quantization: percentile %g is not in (0, 100]",
                           o->percentiles[i]);
    return QSIM_OK;
}

int qs_quantizer_options(const qsim_quantize_options *options, qsim_quantize_options *own,
                         qsim_error *error) {
    int code = QS_OPTIONS(*own, options, error);
    if (code)
        return code;
    if (own->reserved)
        return qs_fail(error, QSIM_E_VERSION, "quantization: a reserved field is set");
    if (!own->activation_type)
        own->activation_type = QSIM_UINT8;
    if (!own->weight_type)
        own->weight_type = QSIM_INT8;
    if (own->percentile == 0)
        own->percentile = 99.999;
    const int32_t a = own->activation_type, w = own->weight_type;
    if ((a != QSIM_UINT8 && a != QSIM_INT8) || (w != QSIM_UINT8 && w != QSIM_INT8))
        return qs_fail(
            error, QSIM_E_UNSUPPORTED,
            "quantization: activations of %s with weights of %s: both take uint8 or int8",
            qsim_dtype_name(a), qsim_dtype_name(w));
    if (own->mode < QSIM_MODE_STATIC || own->mode > QSIM_MODE_WEIGHTS)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: mode %d is not known", own->mode);
    if (own->per_row && own->mode != QSIM_MODE_DYNAMIC)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: per_row goes with the dynamic mode");
    if (own->format < QSIM_FORMAT_QDQ || own->format > QSIM_FORMAT_QOPERATOR)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: format %d is not known", own->format);
    if (own->weight_scheme < 0 || own->weight_scheme > QSIM_WEIGHT_TENSOR_ASYMMETRIC)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: weight scheme %d is not known",
                       own->weight_scheme);
    if (own->method < QSIM_METHOD_MINMAX || own->method > QSIM_METHOD_ENTROPY)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: method %d is not known", own->method);
    if (!(own->percentile > 0 && own->percentile <= 100))
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: percentile %g is not in (0, 100]",
                       own->percentile);
    return check_rules(own, error);
}

int qs_quantizer_init(qs_quantizer *q, qsim_model *prepared, const qsim_calibration *c,
                      const qsim_quantize_options *options, qsim_error *error) {
    *q = (qs_quantizer){.ctx = prepared->ctx,
                        .model = prepared,
                        .g = prepared->graph,
                        .c = c,
                        .options = *options,
                        .error = error};
    q->node_count = q->g->node_count;
    q->value_count = q->g->value_count;
    if (options->activation_symmetric)
        q->activation_flags = QSIM_RANGE_SYMMETRIC | QSIM_RANGE_NARROW;
    if (options->reduce_range)
        q->weight_flags = QSIM_RANGE_REDUCED;
    q->choices = qs_calloc(q->ctx, q->node_count + 1, sizeof(*q->choices));
    q->activations = qs_calloc(q->ctx, q->value_count + 1, sizeof(*q->activations));
    if (!q->choices || !q->activations || qs_graph_uses(q->g, &q->uses))
        return qs_fail(error, QSIM_E_NOMEM, "quantization: out of memory");
    return qs_select(q);
}

void qs_quantizer_free(qs_quantizer *q) {
    qs_uses_free(q->g, &q->uses);
    qs_free(q->ctx, q->choices);
    qs_free(q->ctx, q->activations);
    qs_free(q->ctx, q->layers);
}

/* ---- what the file says of itself ---- */

/* How ranges were found. */
static void describe_ranges(const qsim_quantize_options *o, char *text, size_t room) {
    static const char *const methods[] = {"minmax", "percentile", "mse", "entropy"};
    long cut = (long)(o->percentile * 1e6 + 0.5); /* printed as integers: no locale shows */
    int n = snprintf(text, room, " ranges=%s", o->percentiles ? "searched" : methods[o->method]);
    if (o->method == QSIM_METHOD_PERCENTILE && !o->percentiles)
        snprintf(text + n, room - (size_t)n, ",%ld.%06ld", cut / 1000000, cut % 1000000);
}

static int describe(qs_quantizer *q) {
    static const char *const schemes[] = {"channel-symmetric", "tensor-symmetric",
                                          "tensor-asymmetric"};
    const qsim_quantize_options *o = &q->options;
    char mode[96], ranges[96] = "", text[320], hash[65];
    int code = QSIM_OK;
    if (o->mode == QSIM_MODE_STATIC) {
        snprintf(mode, sizeof(mode), "format=%s activations=%s%s",
                 o->format == QSIM_FORMAT_QDQ ? "qdq" : "qoperator",
                 qsim_dtype_name(o->activation_type), o->activation_symmetric ? ",symmetric" : "");
        describe_ranges(o, ranges, sizeof(ranges));
    } else {
        snprintf(mode, sizeof(mode), "mode=%s%s",
                 o->mode == QSIM_MODE_DYNAMIC ? "dynamic" : "weights",
                 o->per_row ? ",per-row" : "");
    }
    snprintf(text, sizeof(text), "%s weights=%s,%s%s%s", mode, qsim_dtype_name(o->weight_type),
             o->schemes ? "searched" : schemes[o->weight_scheme], o->reduce_range ? ",reduced" : "",
             ranges);
    if (q->c)
        code = qs_calibration_hash(q->c, hash);
    if (!code)
        code = qs_model_set_property(q->model, "qsim.version", qsim_version_string());
    if (!code)
        code = qs_model_set_property(q->model, "qsim.options", text);
    if (!code && q->c)
        code = qs_model_set_property(q->model, "qsim.calibration", hash);
    q->model->producer_name = "libqsim";
    q->model->producer_version = qsim_version_string();
    return code ? qs_fail(q->error, code, "quantization: out of memory") : QSIM_OK;
}

int qs_ptq_refuse_quantized(const qsim_model *m, int32_t mode, qsim_error *error) {
    for (size_t i = 0; i < m->graph->order_count; i++) {
        const qs_node *n = &m->graph->nodes[m->graph->order[i]];
        uint32_t quantized = QS_INTEGER | QS_QUANTIZES;
        if (mode == QSIM_MODE_WEIGHTS)
            quantized |= QS_DEQUANTIZES;
        if (qs_node_traits(m->graph, n) & quantized)
            return qs_fail(error, QSIM_E_UNSUPPORTED, "%s: is already quantized (node '%s', %s)",
                           m->name, qs_node_label(m->graph, m->graph->order[i]), n->op_type);
    }
    return QSIM_OK;
}

int qs_calibration_check(const qsim_calibration *c, const qsim_model *model, qsim_error *error) {
    char hash[65];
    int code = qsim_model_hash(model, hash);
    if (code)
        return qs_fail(error, code, "%s: hashing failed", model->name);
    if (strcmp(hash, c->model) != 0)
        return qs_fail(error, QSIM_E_MISMATCH, "%s: the calibration belongs to another model",
                       model->name);
    if (c->samples == 0)
        return qs_fail(error, QSIM_E_STATE, "%s: the calibration has seen no data", model->name);
    return QSIM_OK;
}

/* ---- what is written ---- */

/*
 * In QOperator pairs become standard integer operators where there is one; the others stay pairs.
 * Whatever the form, weights that two nodes share are quantized twice, under two names.
 */
static int finish(qs_quantizer *q) {
    qs_pass p = {
        .ctx = q->ctx, .graph = q->g, .model = q->model->name, .error = q->error, .standard = true};
    const qsim_quantize_options *o = &q->options;
    int code = QSIM_OK;
    if (o->mode == QSIM_MODE_STATIC && o->format == QSIM_FORMAT_QOPERATOR)
        code = qs_pass_qdq(&p);
    return code ? code : qs_pass_names(&p);
}

static int rewrite(qs_quantizer *q) {
    if (q->options.mode == QSIM_MODE_DYNAMIC)
        return qs_rewrite_dynamic(q);
    if (q->options.mode == QSIM_MODE_WEIGHTS)
        return qs_rewrite_weights(q);
    int code = qs_activation_choose(q);
    return code ? code : qs_rewrite(q);
}

int qs_quantize_prepared(const qsim_model *prepared, const qsim_calibration *c,
                         const qsim_quantize_options *own, qsim_model **out, qsim_error *error) {
    qsim_model *m;
    qs_quantizer q;
    int code = qs_model_derive(prepared, &m, error);
    if (code)
        return code;
    code = qs_quantizer_init(&q, m, c, own, error);
    if (!code)
        code = rewrite(&q);
    if (!code)
        code = finish(&q);
    if (!code)
        code = describe(&q);
    qs_quantizer_free(&q);
    if (code)
        qsim_model_free(m);
    else
        *out = m;
    return code;
}

/* A model over the prepared graph of `model` that may be changed. */
static int derive_prepared(const qsim_model *model, qsim_model **out, qsim_error *error) {
    qsim_model *prepared = NULL;
    int code = qs_ptq_prepare(model, &prepared, error);
    if (!code)
        code = qs_model_derive(prepared, out, error);
    qsim_model_free(prepared);
    return code;
}

/* ---- public ---- */

int qsim_quantize(const qsim_model *model, const qsim_calibration *c,
                  const qsim_quantize_options *options, qsim_model **out, qsim_error *error) {
    qsim_quantize_options own;
    qsim_model *prepared = NULL;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!model || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: an argument is missing");
    int code = qs_quantizer_options(options, &own, error);
    if (code)
        return code;
    if (own.mode != QSIM_MODE_STATIC)
        c = NULL;
    else if (!c)
        return qs_fail(error, QSIM_E_ARGUMENT, "static quantization needs a calibration");
    code = qs_ptq_refuse_quantized(model, own.mode, error);
    if (!code && c)
        code = qs_calibration_check(c, model, error);
    if (!code)
        code = qs_ptq_prepared(model, c, &prepared, error);
    if (!code)
        code = qs_quantize_prepared(prepared, c, &own, out, error);
    qsim_model_free(prepared);
    return code;
}

int32_t qsim_quantize_layer_count(const qsim_model *model) {
    qsim_model *prepared;
    const int code = model ? qs_ptq_prepare(model, &prepared, NULL) : QSIM_E_ARGUMENT;
    if (code)
        return code;
    const int32_t count = qs_layer_count(prepared);
    qsim_model_free(prepared);
    return count;
}

int32_t qs_layer_count(const qsim_model *prepared) {
    qsim_quantize_options own;
    qsim_model *m;
    qs_quantizer q;
    int code = qs_quantizer_options(NULL, &own, NULL);
    if (!code)
        code = qs_model_derive(prepared, &m, NULL);
    if (code)
        return code;
    code = qs_quantizer_init(&q, m, NULL, &own, NULL);
    int32_t count = (int32_t)q.layer_count;
    qs_quantizer_free(&q);
    qsim_model_free(m);
    return code ? code : count;
}

/* The same text in the model that the caller holds; names of its nodes outlive the dry run. */
static const char *lasting_name(const qsim_model *model, const char *name) {
    for (size_t i = 0; i < model->graph->node_count; i++)
        if (strcmp(model->graph->nodes[i].name, name) == 0)
            return model->graph->nodes[i].name;
    qs_id value = qs_graph_find(model->graph, name);
    return value == QS_NONE ? "" : model->graph->values[value].name;
}

static int fill_info(const qsim_model *model, const qs_quantizer *q, const qs_layer *l,
                     qsim_layer_info *info) {
    const qs_node *n = &q->g->nodes[l->node];
    bool integer = q->choices[l->node].integer;
    size_t weights = l->channels * l->depth;
    size_t bias = qs_node_input(n, 2) != QS_NONE ? l->channels : 0;
    qsim_layer_info own = {.name = lasting_name(model, qs_node_label(q->g, l->node)),
                           .op_type = n->op->name,
                           .scheme = integer ? l->scheme : -1,
                           .float_bytes = (int64_t)(4 * (weights + bias)),
                           .bytes = (int64_t)((integer ? 1 : 4) * weights + 4 * bias)};
    return qs_give(info, &own, sizeof(own));
}

int qsim_quantize_layer(const qsim_model *model, const qsim_quantize_options *options,
                        int32_t index, qsim_layer_info *info) {
    qsim_quantize_options own;
    qsim_model *m;
    qs_quantizer q;
    if (!model || !info || index < 0)
        return QSIM_E_ARGUMENT;
    int code = qs_quantizer_options(options, &own, NULL);
    const qsim_calibration *c = code || own.mode != QSIM_MODE_STATIC ? NULL : own.calibration;
    if (!code)
        code = qs_ptq_refuse_quantized(model, own.mode, NULL);
    if (!code && c)
        code = qs_calibration_check(c, model, NULL);
    if (!code)
        code = derive_prepared(model, &m, NULL);
    if (code)
        return code;
    code = qs_quantizer_init(&q, m, c, &own, NULL);
    if (!code && (size_t)index >= q.layer_count)
        code = QSIM_E_NOT_FOUND;
    if (!code)
        code = fill_info(model, &q, &q.layers[index], info);
    qs_quantizer_free(&q);
    qsim_model_free(m);
    return code;
}
