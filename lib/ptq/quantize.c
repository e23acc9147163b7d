/* SPDX-License-Identifier: MIT */
/* qsim_quantize and qsim_quantize_layers, its dry run. */
#include "base/ctx.h"
#include "ptq/no_memory.h"
#include "ptq/quantizer.h"

#include <stdio.h>

#include "pass/pass.h"
#include "op/op.h"
#include "ptq/equalize.h"
#include "ptq/recipe.h"

/* Fills in and checks what holds for all graphs of the model, before any of them is rewritten. */
static int set_up(qs_quantizer *q, qsim_model *prepared, const qsim_calibration *c,
                  const qsim_quantize_options *options, qsim_error *error) {
    *q = (qs_quantizer){.ctx = prepared->ctx,
                        .model = prepared,
                        .g = prepared->graph,
                        .c = c,
                        .options = *options,
                        .error = error};
    if (options->activation_symmetric)
        q->activation_flags = QSIM_RANGE_SYMMETRIC | QSIM_RANGE_NARROW;
    const int code = qs_recipe_check_names(q);
    return code ? code : qs_rules_check(q);
}

/* Arrays, choices and layers of one graph. */
static int begin(qs_quantizer *q, qs_graph *g) {
    q->g = g;
    q->node_count = q->g->node_count;
    q->value_count = q->g->value_count;
    q->choices = qs_calloc(q->ctx, q->node_count + 1, sizeof(*q->choices));
    q->activations = qs_calloc(q->ctx, q->value_count + 1, sizeof(*q->activations));
    if (!q->choices || !q->activations || qs_graph_uses(q->g, &q->uses))
        return QSIM_E_NOMEM;
    int code = qs_recipe_begin(q);
    if (!code)
        code = qs_equalize_find(q);
    if (!code)
        code = qs_go_on(q->ctx, q->model->name, q->error);
    return code ? code : qs_select(q);
}

int qs_quantizer_init(qs_quantizer *q, qsim_model *prepared, qs_graph *g, const qsim_calibration *c,
                      const qsim_quantize_options *options, qsim_error *error) {
    const int code = set_up(q, prepared, c, options, error);
    return code ? code : begin(q, g);
}

void qs_quantizer_free(qs_quantizer *q) {
    qs_uses_free(q->g, &q->uses);
    qs_free(q->ctx, q->used);
    qs_free(q->ctx, q->choices);
    qs_free(q->ctx, q->scaled);
    qs_free(q->ctx, q->activations);
    qs_free(q->ctx, q->layers);
    qs_free(q->ctx, q->decided);
    qs_moments_free(&q->moments);
}

/* ---- all graphs of a model ---- */

typedef struct walk {
    const qs_quantizer *all; /* settings */
    int (*work)(qs_quantizer *q, void *user);
    void *user;
} walk;

static int walk_graph(const walk *w, qs_graph *g);

/* Quantizes inside of a node first, while captured values have the names that were calibrated. */
static int walk_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub) {
    const walk *w = user;
    bool broken;
    int code = qs_ptq_infer_inside(sub->graph, w->all->model->name, &broken);
    if (code || broken)
        return code;
    code = walk_graph(w, sub->graph);
    if (!code)
        code = qs_subgraph_release(n, sub);
    for (size_t i = 0; i < sub->graph->import_count && !code; i++) {
        const qs_import *m = &sub->graph->imports[i];
        code =
            qs_graph_import(g, m->domain) ? QSIM_OK : qs_graph_set_import(g, m->domain, m->version);
    }
    return code;
}

/* Calls `work` with a quantizer for the graph and each one inside of it. */
static int walk_graph(const walk *w, qs_graph *g) {
    int code = qs_subgraphs_visit(g, walk_inside, (void *)(uintptr_t)w);
    if (code)
        return code;
    qs_quantizer q = *w->all;
    code = begin(&q, g);
    if (!code)
        code = w->work(&q, w->user);
    q.used = NULL; /* all graphs share it */
    qs_quantizer_free(&q);
    return code;
}

/* ---- metadata ---- */

/* Text for the metadata, of limited size. */
typedef struct note {
    char text[320];
    size_t size;
} note;

static void add(note *n, const char *text) {
    const size_t length = strlen(text), left = sizeof(n->text) - 1 - n->size;
    const size_t part = length < left ? length : left;
    memcpy(n->text + n->size, text, part);
    n->size += part;
    n->text[n->size] = 0;
}

static bool same_method(const qs_range *a, const qs_range *b) {
    return a->given == b->given && a->method == b->method &&
           (a->method != QSIM_METHOD_PERCENTILE || a->percentile == b->percentile);
}

/* The settings that all activations have in common. */
typedef struct common {
    const qs_range *first; /* NULL: there is none */
    int32_t dtype;         /* 0: there is none */
    bool types, symmetry, method;
} common;

static common compare_ranges(const qs_quantizer *q) {
    common c = {0};
    for (size_t i = 0; i < q->value_count; i++) {
        const qs_activation *a = &q->activations[i];
        if (!a->quantized || a->root != (qs_id)i || q->g->values[i].data)
            continue;
        c.types |= c.dtype && c.dtype != a->dtype;
        c.dtype = a->dtype;
        c.symmetry |= c.first && c.first->flags != a->range.flags;
        c.method |= c.first && !same_method(c.first, &a->range);
        c.first = c.first ? c.first : &a->range;
    }
    return c;
}

static void describe_activations(const qs_quantizer *q, note *n) {
    const common c = compare_ranges(q);
    add(n, " activations=");
    add(n, c.types ? "mixed" : qsim_dtype_name(c.dtype ? c.dtype : q->options.activation_type));
    const bool symmetric = (c.first ? c.first->flags : q->activation_flags) != 0;
    add(n, c.symmetry ? ",mixed" : symmetric ? ",symmetric" : "");
}

/* Describes how ranges were found. */
static void describe_ranges(const qs_quantizer *q, note *n) {
    const common c = compare_ranges(q);
    const bool known = !c.method && (!c.first || c.first->given & QSIM_RECIPE_METHOD);
    const int32_t method = c.first ? c.first->method : q->options.method;
    add(n, " ranges=");
    add(n, known ? qs_word_text(qs_recipe_methods, method) : c.method ? "mixed" : "given");
    if (!known || method != QSIM_METHOD_PERCENTILE)
        return;
    char text[48]; /* printed as integers: no locale shows */
    const long cut = (long)((c.first ? c.first->percentile : q->options.percentile) * 1e6 + 0.5);
    snprintf(text, sizeof(text), ",%ld.%06ld", cut / 1000000, cut % 1000000);
    add(n, text);
}

static void describe_weights(const qs_quantizer *q, note *n) {
    static const char *const schemes[] = {",channel-symmetric", ",tensor-symmetric",
                                          ",tensor-asymmetric", ",channel-asymmetric"};
    static const char *const reductions[] = {"", ",reduced", ",paired"};
    _Static_assert(QSIM_WEIGHT_CHANNEL_ASYMMETRIC + 1 == QS_COUNT(schemes), "a text for each");
    _Static_assert(QSIM_REDUCE_PAIRS + 1 == QS_COUNT(reductions), "a text for each");
    qs_weight_form form = {.dtype = q->options.weight_type,
                           .scheme = q->options.weight_scheme,
                           .reduce = q->options.reduce_range};
    bool any = false, mixed = false;
    for (size_t i = 0; i < q->node_count; i++) {
        if (!q->decided[i])
            continue;
        const qs_weight_form own = qs_recipe_weights(q, (qs_id)i);
        mixed |= any && memcmp(&own, &form, sizeof(form)) != 0;
        form = own;
        any = true;
    }
    add(n, mixed ? "mixed" : qsim_dtype_name(form.dtype));
    add(n, mixed || form.dtype == QSIM_FLOAT16 ? "" : schemes[form.scheme]);
    add(n, mixed ? "" : reductions[form.reduce]);
}

/* Hashes the statistics of the calibration that were used. */
static int hash_used(qs_quantizer *q, char hex[65]) {
    int32_t index;
    for (size_t i = 0; q->c && i < q->value_count; i++)
        if (q->activations[i].quantized && qs_calibration_find(q->c, q->g->values[i].name, &index))
            q->used[index] |=
                q->scaled && q->scaled[i].factor ? QS_HASH_RANGE | QS_HASH_EXTREMES : QS_HASH_RANGE;
    const int code = qs_calibration_hash(q->ctx, q->means, q->used, hex);
    return qs_stop_fail(q->ctx, code, q->model->name, q->error);
}

static int describe(qs_quantizer *q) {
    const qsim_quantize_options *o = &q->options;
    note n = {.size = 0};
    char hash[65] = "", corrected[48];
    int code = QSIM_OK;
    if (o->mode == QSIM_MODE_STATIC) {
        add(&n, o->format == QSIM_FORMAT_QDQ ? "format=qdq" : "format=qoperator");
        describe_activations(q, &n);
    } else {
        add(&n, o->mode == QSIM_MODE_DYNAMIC ? "mode=dynamic" : "mode=weights");
        add(&n, o->per_row ? ",per-row" : "");
    }
    add(&n, " weights=");
    describe_weights(q, &n);
    if (o->mode == QSIM_MODE_STATIC)
        describe_ranges(q, &n);
    snprintf(corrected, sizeof(corrected), " bias-corrected=%zu", q->corrected);
    if (q->corrected)
        add(&n, corrected);
    if (q->c || (q->means && q->corrected))
        code = hash_used(q, hash);
    else if (o->mode == QSIM_MODE_STATIC && o->recipe)
        memcpy(hash, o->recipe->calibration, sizeof(hash));
    if (code)
        return code;
    code = qs_model_set_property(q->model, "qsim.version", qsim_version_string());
    if (!code)
        code = qs_model_set_property(q->model, "qsim.options", n.text);
    if (!code && hash[0])
        code = qs_model_set_property(q->model, "qsim.calibration", hash);
    q->model->producer_name = "libqsim";
    q->model->producer_version = qsim_version_string();
    return code ? QSIM_E_NOMEM : QSIM_OK;
}

/* Whether a node of the graph has float weights, which can still be stored in 8 bits. */
static int has_float_weights(void *user, qs_graph *g) {
    (void)user;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        for (int32_t k = 0; n->op && k < n->input_count; k++) {
            const qs_const *c = qs_node_const(g, n, k);
            if (c && qs_op_in(n->op->weight_inputs, k) && c->dtype == QSIM_FLOAT && c->rank > 1)
                return true;
        }
    }
    return false;
}

typedef struct refusal {
    const char *model;
    uint32_t traits; /* of nodes that are quantized */
    qsim_error *error;
} refusal;

static int refuse_graph(void *user, qs_graph *g) {
    const refusal *r = user;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        if (!(qs_node_traits(g, n) & r->traits))
            continue;
        qs_fail(r->error, QSIM_E_UNSUPPORTED, "%s: is already quantized (node '%s', %s)", r->model,
                qs_node_label(g, g->order[i]), n->op_type);
        qs_hint(r->error, "quantize the float model; qsim info shows what this one is");
        return QSIM_E_UNSUPPORTED;
    }
    return QSIM_OK;
}

int qs_ptq_refuse_quantized(const qsim_model *m, int32_t mode, qsim_error *error) {
    refusal r = {m->name, QS_INTEGER | QS_QUANTIZES, error};
    if (mode == QSIM_MODE_WEIGHTS && !qs_graphs_visit(m->graph, has_float_weights, NULL))
        r.traits |= QS_DEQUANTIZES;
    return qs_graphs_visit(m->graph, refuse_graph, &r);
}

int qs_calibration_check(const qsim_calibration *c, const qsim_model *model, qsim_error *error) {
    char hash[65];
    const bool own = c->prepared && c->prepared->base == model;
    int code = own ? QSIM_OK : qsim_model_hash(model, hash);
    if (code)
        return qs_fail(error, code, "%s: out of memory for its hash", model->name);
    if (!own && strcmp(hash, c->model) != 0)
        return qs_fail(error, QSIM_E_MISMATCH, "%s: %s belongs to another model", model->name,
                       c->label);
    if (c->samples == 0)
        return qs_fail(error, QSIM_E_STATE, "%s: %s has seen no data", model->name, c->label);
    return QSIM_OK;
}

/* ---- writing ---- */

/*
 * In QOperator format QDQ pairs become standard integer operators where ONNX has one; other pairs
 * stay. Weights that two nodes share stay one constant if both quantize them equally.
 */
static int finish(qs_quantizer *q) {
    const qsim_quantize_options *o = &q->options;
    qs_pass p = {.ctx = q->ctx,
                 .graph = q->g,
                 .model = q->model->name,
                 .error = q->error,
                 .standard = true,
                 .literal = o->mode != QSIM_MODE_STATIC || o->format != QSIM_FORMAT_QOPERATOR};
    return qs_pipeline_run(&p, QS_FOR_QUANTIZED, QSIM_LEVEL_ALL);
}

/* Stores the decisions in `to` (unless NULL) before the graph is rewritten. */
static int note_decisions(qs_quantizer *q, qsim_recipe *to) {
    q->decided = qs_calloc(q->ctx, q->node_count + 1, sizeof(*q->decided));
    if (!q->decided)
        return QSIM_E_NOMEM;
    for (size_t k = 0; k < q->g->order_count; k++)
        q->decided[q->g->order[k]] = qs_recipe_quantized(q, q->g->order[k]);
    if (to && q->c) {
        int code = hash_used(q, to->calibration);
        if (code)
            return code;
    } else if (to && q->options.recipe) {
        memcpy(to->calibration, q->options.recipe->calibration, sizeof(to->calibration));
    }
    return to ? qs_recipe_decide(q, to) : QSIM_OK;
}

static int rewrite(qs_quantizer *q, qsim_recipe *decided) {
    const int32_t mode = q->options.mode;
    int code = qs_bias_check(q);
    if (!code)
        code = qs_recipe_check_weights(q);
    if (!code && mode == QSIM_MODE_STATIC)
        code = qs_activation_choose(q);
    if (!code)
        code = note_decisions(q, decided);
    if (code)
        return code;
    if (mode != QSIM_MODE_WEIGHTS)
        code = mode == QSIM_MODE_DYNAMIC ? qs_rewrite_dynamic(q) : qs_rewrite(q);
    return code ? code : qs_rewrite_weights(q);
}

#define NARROW_OPSET 21 /* DequantizeLinear of 4 and of 16 bits */

/*
 * Upgrades the model for 4 or 16 bits; dynamic models have 4 bits in MatMulNBits only, which needs
 * no upgrade.
 */
static int upgrade(qsim_model *m, const qsim_quantize_options *own, qsim_error *error) {
    const bool wanted = qs_narrow_wanted(own) || qs_wide_wanted(own);
    if (own->mode == QSIM_MODE_DYNAMIC || !wanted || qs_graph_import(m->graph, "") >= NARROW_OPSET)
        return QSIM_OK;
    int code = qs_op_upgrade_graph(m->graph, NARROW_OPSET, m->name, error);
    return code ? code : qs_op_infer_graph(m->graph, m->name, error);
}

typedef struct job {
    qsim_recipe *decided; /* NULL: not asked for */
    size_t corrected;     /* layers of graphs so far */
} job;

static int quantize_graph(qs_quantizer *q, void *user) {
    job *j = user;
    q->corrected = j->corrected;
    int code = qs_equalize_apply(q);
    if (!code)
        code = rewrite(q, j->decided);
    if (!code)
        code = finish(q);
    j->corrected = q->corrected;
    if (!code && q->g == q->model->graph)
        code = describe(q);
    return code ? code : qs_equalize_rename(q);
}

int qs_quantize_prepared(const qsim_model *prepared, const qsim_calibration *c,
                         const qsim_quantize_options *own, qsim_model **out, qsim_error *error) {
    job j = {0};
    qsim_model *m;
    qs_quantizer all;
    const walk w = {&all, quantize_graph, &j};
    int code = qs_model_derive(prepared, &m, error);
    if (code)
        return code;
    code = set_up(&all, m, own->mode == QSIM_MODE_STATIC ? c : NULL, own, error);
    all.means = c;
    all.used = c ? qs_calloc(all.ctx, c->count + 1, 1) : NULL;
    if (!code)
        code = c && !all.used ? QSIM_E_NOMEM : upgrade(m, own, error);
    if (!code && own->decided)
        code = qsim_recipe_create(prepared->ctx, &j.decided, error);
    if (!code)
        code = walk_graph(&w, m->graph);
    if (!code && j.decided)
        code = qsim_recipe_merge(own->decided, j.decided, error);
    qsim_recipe_free(j.decided);
    qs_free(all.ctx, all.used);
    if (code)
        qsim_model_free(m);
    else
        *out = m;
    return code;
}

/* Makes a model with a copy of the prepared graph of `model`, which can be changed. */
static int derive_prepared(const qsim_model *model, const qsim_calibration *c, qsim_model **out,
                           qsim_error *error) {
    qsim_model *prepared = NULL;
    int code = qs_ptq_prepared(model, c, &prepared, error);
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
    char hash[65];
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!model || !out)
        return qs_fail_missing(error, "quantization");
    int code = qs_quantizer_options(options, &own, error);
    if (code)
        return code;
    if (own.mode == QSIM_MODE_STATIC && !c && !own.recipe) {
        qs_fail(error, QSIM_E_ARGUMENT,
                "static quantization needs a calibration, or a recipe with ranges");
        qs_hint(error, "modes dynamic and weights need no data");
        return QSIM_E_ARGUMENT;
    }
    code = qs_ptq_refuse_quantized(model, own.mode, error);
    if (!code)
        code = qs_recipe_check(own.recipe, model, error);
    if (!code && c)
        code = qs_calibration_check(c, model, error);
    if (!code)
        code = qs_ptq_prepared(model, c, &prepared, error);
    if (!code && own.decided && qsim_model_hash(model, hash))
        code = QSIM_E_NOMEM;
    if (!code)
        code = qs_quantize_prepared(prepared, c, &own, out, error);
    if (!code && own.decided)
        memcpy(own.decided->model, hash, sizeof(hash));
    qsim_model_free(prepared);
    return qs_leave(model->ctx, qs_no_memory_in("quantization", code, error), error);
}

/* Bytes of a layer's weights and scales in the file. */
static size_t written(const qs_layer *l) {
    const size_t weights = l->channels * l->depth;
    const size_t block = l->form.block ? (size_t)l->form.block : l->depth;
    return qs_is_narrow(l->form.dtype)
               ? weights / 2 + 4 * l->channels * ((l->depth + block - 1) / block)
               : weights * (l->form.dtype == QSIM_FLOAT16 ? 2 : 1);
}

static qsim_layer_info info_of(const qs_quantizer *q, const qs_layer *l) {
    const qs_node *n = &q->g->nodes[l->node];
    const bool integer = q->choices[l->node].integer, half = l->form.dtype == QSIM_FLOAT16;
    const size_t weights = l->channels * l->depth;
    const size_t bias = qs_node_input(n, 2) != QS_NONE ? l->channels : 0;
    return (qsim_layer_info){.struct_size = sizeof(qsim_layer_info),
                             .name = qs_node_label(q->g, l->node),
                             .op_type = n->op->name,
                             .scheme = integer && !half ? l->form.scheme : -1,
                             .dtype = integer ? l->form.dtype : QSIM_FLOAT,
                             .float_bytes = (int64_t)(4 * (weights + bias)),
                             .bytes = (int64_t)((integer ? written(l) : 4 * weights) + 4 * bias)};
}

/* Layer information of a node whose weights are stored in fewer bits and computed in floats. */
static qsim_layer_info stored_info(const qs_quantizer *q, qs_id node) {
    const qs_node *n = &q->g->nodes[node];
    const bool integer = q->choices[node].forced != QSIM_RULE_FLOAT;
    const qs_weight_form form = qs_recipe_weights(q, node);
    const int64_t weights = (int64_t)qs_stored_weights(q, node);
    const bool half = integer && form.dtype == QSIM_FLOAT16;
    return (qsim_layer_info){.struct_size = sizeof(qsim_layer_info),
                             .name = qs_node_label(q->g, node),
                             .op_type = n->op->name,
                             .scheme = integer && !half ? form.scheme : -1,
                             .dtype = integer ? form.dtype : QSIM_FLOAT,
                             .float_bytes = 4 * weights,
                             .bytes = (half      ? 2
                                       : integer ? 1
                                                 : 4) *
                                      weights};
}

typedef struct listing {
    qsim_layer_fn layer; /* NULL: layers are only counted */
    void *user;
    int32_t count;
} listing;

/* Lists every node with weights that are quantized. */
static int list_layers(qs_quantizer *q, void *user) {
    listing *l = user;
    int code = QSIM_OK;
    for (size_t k = 0; k < q->g->order_count && !code; k++) {
        const qs_id node = q->g->order[k];
        const int32_t own = q->choices[node].layer;
        if (own < 0 && !qs_stored_weights(q, node))
            continue;
        const qsim_layer_info info = own >= 0 ? info_of(q, &q->layers[own]) : stored_info(q, node);
        l->count++;
        code =
            qs_go_on_unless(q->ctx, l->layer && l->layer(l->user, &info), q->model->name, q->error);
    }
    return code;
}

int32_t qsim_quantize_layers(const qsim_model *model, const qsim_calibration *c,
                             const qsim_quantize_options *options, qsim_layer_fn layer, void *user,
                             qsim_error *error) {
    qsim_quantize_options own;
    qsim_model *m;
    qs_quantizer all;
    listing l = {layer, user, 0};
    const walk w = {&all, list_layers, &l};
    qs_error_clear(error);
    if (!model)
        return qs_fail_missing(error, "quantization");
    int code = qs_quantizer_options(options, &own, error);
    if (!code)
        code = qs_ptq_refuse_quantized(model, own.mode, error);
    if (!code)
        code = qs_recipe_check(own.recipe, model, error);
    if (!code && c)
        code = qs_calibration_check(c, model, error);
    if (!code)
        code = derive_prepared(model, c, &m, error);
    if (code)
        return qs_no_memory_in("quantization", code, error);
    code = set_up(&all, m, own.mode == QSIM_MODE_STATIC ? c : NULL, &own, error);
    if (!code)
        code = walk_graph(&w, m->graph);
    qsim_model_free(m);
    return code ? qs_no_memory_in("quantization", code, error) : l.count;
}
