/* SPDX-License-Identifier: MIT */
/* Recipes in quantization: carries out their entries, and writes the decisions to them. */
#include "ptq/gram.h"
#include "ptq/recipe.h"

static const qsim_recipe_entry *layer_entry(const qs_quantizer *q, qs_id node) {
    return qs_recipe_find(q->options.recipe, QSIM_RECIPE_LAYER, qs_node_label(q->g, node));
}

static const qsim_recipe_entry *tensor_entry(const qs_quantizer *q, qs_id value) {
    return qs_recipe_find(q->options.recipe, QSIM_RECIPE_TENSOR, q->g->values[value].name);
}

/* ---- checks ---- */

/* Whether a size of blocks is one of MatMulNBits for which ONNX Runtime sums in integers. */
static bool is_block(int64_t block) {
    return block >= 16 && block <= 256 && (block & (block - 1)) == 0;
}

/* The setting of 4-bit weights that this version cannot carry out, or NULL. */
static const char *unsupported_narrow(const qsim_recipe_entry *e, int32_t mode) {
    if (e->granularity == QSIM_GRANULARITY_TENSOR)
        return "int4 tensor";
    if (e->flags)
        return e->flags & QSIM_RECIPE_REDUCED ? "int4 reduced" : "int4 paired";
    if (e->granularity == QSIM_GRANULARITY_BLOCK && mode == QSIM_MODE_STATIC)
        return "block";
    return e->granularity == QSIM_GRANULARITY_BLOCK && !is_block(e->block) ? "this size of blocks"
                                                                           : NULL;
}

/* The setting of an entry that this version cannot carry out, or NULL. */
static const char *unsupported(const qsim_recipe_entry *e, int32_t mode) {
    const bool layer = e->kind == QSIM_RECIPE_LAYER;
    if (e->action != QSIM_RECIPE_QUANTIZE || e->kind == QSIM_RECIPE_EQUALIZE)
        return NULL;
    if (layer && qs_is_narrow(e->dtype))
        return unsupported_narrow(e, mode);
    if (layer && e->flags & QSIM_RECIPE_PAIRED && (e->dtype != QSIM_INT8 || !e->symmetric))
        return "paired";
    if (layer && e->dtype == QSIM_FLOAT16 && mode == QSIM_MODE_WEIGHTS)
        return NULL;
    if (layer && e->dtype != QSIM_UINT8 && e->dtype != QSIM_INT8)
        return qsim_dtype_name(e->dtype);
    if (layer && e->granularity == QSIM_GRANULARITY_BLOCK)
        return "block";
    if (layer && e->rounding != QSIM_ROUNDING_NEAREST && mode != QSIM_MODE_STATIC)
        return qs_word_text(qs_recipe_roundings, e->rounding);
    return NULL;
}

int qs_narrow_options(const qsim_quantize_options *o, qsim_error *error) {
    const bool narrow = qs_is_narrow(o->weight_type);
    const bool per_tensor = o->weight_scheme == QSIM_WEIGHT_TENSOR_SYMMETRIC ||
                            o->weight_scheme == QSIM_WEIGHT_TENSOR_ASYMMETRIC;
    if (o->weight_block && !is_block(o->weight_block))
        return qs_fail(error, QSIM_E_ARGUMENT,
                       "quantization: blocks of %d weights: 16, 32, 64, 128 or 256 are wanted",
                       o->weight_block);
    if (o->weight_block && !qs_narrow_wanted(o))
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "quantization: blocks of weights go with weights of int4 or uint4");
    if (o->weight_block && o->mode == QSIM_MODE_STATIC)
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "quantization: blocks of weights go with the modes dynamic and weights: "
                       "static sums in integers have one scale for a channel");
    if (narrow && per_tensor)
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "quantization: weights of %s have a scale for each channel or block",
                       qsim_dtype_name(o->weight_type));
    return QSIM_OK;
}

/* All activations of 8 bits have one type: that of the recipe, if it names one. */
static int check_type(qs_quantizer *q, const qsim_recipe_entry *e, const char **first,
                      int32_t *type) {
    if (e->kind != QSIM_RECIPE_TENSOR || e->action != QSIM_RECIPE_QUANTIZE || qs_is_wide(e->dtype))
        return QSIM_OK;
    if (*first && e->dtype != *type)
        return qs_fail(q->error, QSIM_E_UNSUPPORTED,
                       "%s: the recipe has tensor '%s' in %s and '%s' in %s; one type is supported",
                       q->model->name, *first, qsim_dtype_name(*type), e->name,
                       qsim_dtype_name(e->dtype));
    *first = e->name;
    *type = e->dtype;
    if (!qs_is_wide(q->options.activation_type))
        q->options.activation_type = e->dtype;
    return QSIM_OK;
}

/* The entries that name something. */
typedef struct known {
    const qsim_recipe *r;
    bool *entry;
} known;

static void know(const known *k, int32_t kind, const char *name) {
    const qsim_recipe_entry *e = qs_recipe_find(k->r, kind, name);
    if (e)
        k->entry[e - k->r->entries] = true;
}

static int know_graph(void *user, qs_graph *g) {
    for (size_t i = 0; i < g->order_count; i++)
        know(user, QSIM_RECIPE_LAYER, qs_node_label(g, g->order[i]));
    for (size_t v = 0; v < g->value_count; v++)
        know(user, QSIM_RECIPE_TENSOR, g->values[v].name);
    return QSIM_OK;
}

int qs_recipe_check_names(const qs_quantizer *q) {
    const qsim_recipe *r = q->options.recipe;
    if (!r)
        return QSIM_OK;
    known k = {r, qs_calloc(q->ctx, r->count + 1, sizeof(*k.entry))};
    int code = QSIM_OK;
    if (!k.entry)
        return QSIM_E_NOMEM;
    (void)qs_graphs_visit(q->model->graph, know_graph, &k);
    for (size_t i = 0; i < r->count && !code; i++)
        if (!k.entry[i] && r->entries[i].kind != QSIM_RECIPE_EQUALIZE) /* equalize.c looks for it */
            code = qs_fail(q->error, QSIM_E_NOT_FOUND, "%s: the recipe's %s '%s' does not exist",
                           q->model->name,
                           r->entries[i].kind == QSIM_RECIPE_LAYER ? "layer" : "tensor",
                           r->entries[i].name);
    qs_free(q->ctx, k.entry);
    return code;
}

int qs_recipe_begin(qs_quantizer *q) {
    const qsim_recipe *r = q->options.recipe;
    const char *first = NULL;
    int32_t type = 0;
    int code = QSIM_OK;
    for (size_t i = 0; r && i < r->count && !code; i++) {
        const qsim_recipe_entry *e = &r->entries[i];
        const char *what = unsupported(e, q->options.mode);
        if (what)
            code = qs_fail(q->error, QSIM_E_UNSUPPORTED, "%s: the recipe's %s '%s': '%s' is not %s",
                           q->model->name, e->kind == QSIM_RECIPE_LAYER ? "layer" : "tensor",
                           e->name, what, "supported");
        else
            code = check_type(q, e, &first, &type);
    }
    return code;
}

int qs_recipe_check(const qsim_recipe *r, const qsim_model *model, qsim_error *error) {
    char hash[65];
    if (!r || !r->model[0])
        return QSIM_OK;
    int code = qsim_model_hash(model, hash);
    if (code)
        return qs_fail(error, code, "%s: out of memory for its hash", model->name);
    if (strcmp(hash, r->model) != 0)
        return qs_fail(error, QSIM_E_MISMATCH, "%s: the recipe belongs to another model",
                       model->name);
    return QSIM_OK;
}

/* ---- reading ---- */

void qs_recipe_force(qs_quantizer *q) {
    for (size_t k = 0; q->options.recipe && k < q->g->order_count; k++) {
        const qs_id node = q->g->order[k];
        const qsim_recipe_entry *e = layer_entry(q, node);
        if (e && e->action == QSIM_RECIPE_FLOAT)
            q->choices[node].forced = QSIM_RULE_FLOAT;
        else if (e && e->action == QSIM_RECIPE_INTEGER)
            q->choices[node].forced = QSIM_RULE_INT8;
    }
}

/* Whether a node becomes a ConvInteger, which ONNX Runtime runs with one zero point of weights. */
static bool takes_one_zero_point(const qs_quantizer *q, qs_id node) {
    return q->options.mode == QSIM_MODE_DYNAMIC && q->choices[node].layer >= 0 &&
           (qs_node_traits(q->g, &q->g->nodes[node]) & QS_CONVOLVES);
}

/* The form of weights that have not 4 bits by the options. */
static qs_weight_form wide_form(const qs_quantizer *q, qs_id node) {
    const qsim_quantize_options *o = &q->options;
    if (o->weight_type == QSIM_FLOAT16 && !q->choices[node].bits)
        return (qs_weight_form){.dtype = QSIM_FLOAT16};
    const bool plain = o->weight_type != QSIM_UINT8 && o->weight_type != QSIM_UINT4;
    const bool zeros = o->weight_scheme == QSIM_WEIGHT_CHANNEL_ASYMMETRIC;
    return (qs_weight_form){.dtype = plain ? QSIM_INT8 : QSIM_UINT8,
                            .scheme = zeros && takes_one_zero_point(q, node)
                                          ? QSIM_WEIGHT_CHANNEL_SYMMETRIC
                                          : o->weight_scheme,
                            .reduce = o->reduce_range};
}

/* The form of 4-bit weights by the options. */
static qs_weight_form narrow_form(const qs_quantizer *q, const qs_layer *l) {
    const qsim_quantize_options *o = &q->options;
    const bool plain = o->weight_type != QSIM_UINT8 && o->weight_type != QSIM_UINT4;
    const bool zeros = o->weight_scheme == QSIM_WEIGHT_CHANNEL_ASYMMETRIC;
    return (qs_weight_form){.dtype = plain ? QSIM_INT4 : QSIM_UINT4,
                            .scheme = zeros ? QSIM_WEIGHT_CHANNEL_ASYMMETRIC
                                            : QSIM_WEIGHT_CHANNEL_SYMMETRIC,
                            .block = qs_narrow_block(q, l, o->weight_block),
                            .rounding = o->no_gptq ? QSIM_ROUNDING_NEAREST : QSIM_ROUNDING_GPTQ};
}

/* The form of weights by an entry. */
static qs_weight_form entry_form(const qsim_recipe_entry *e) {
    const bool tensor = e->granularity == QSIM_GRANULARITY_TENSOR;
    return (qs_weight_form){.dtype = e->dtype,
                            .scheme = tensor         ? (e->symmetric ? QSIM_WEIGHT_TENSOR_SYMMETRIC
                                                                     : QSIM_WEIGHT_TENSOR_ASYMMETRIC)
                                      : e->symmetric ? QSIM_WEIGHT_CHANNEL_SYMMETRIC
                                                     : QSIM_WEIGHT_CHANNEL_ASYMMETRIC,
                            .reduce = e->flags & QSIM_RECIPE_REDUCED  ? QSIM_REDUCE_RANGE
                                      : e->flags & QSIM_RECIPE_PAIRED ? QSIM_REDUCE_PAIRS
                                                                      : QSIM_REDUCE_NONE,
                            .block = (int32_t)e->block,
                            .rounding = e->rounding};
}

qs_weight_form qs_recipe_weights(const qs_quantizer *q, qs_id node) {
    const qsim_recipe_entry *e = layer_entry(q, node);
    const qs_choice *c = &q->choices[node];
    if (e && e->action == QSIM_RECIPE_QUANTIZE)
        return entry_form(e);
    if (c->layer < 0)
        return wide_form(q, node);
    const qs_layer *l = &q->layers[c->layer];
    const bool narrow =
        c->bits ? c->bits == 4 : qs_is_narrow(q->options.weight_type) && qs_narrow_suits(q, l);
    return narrow && qs_narrow_fits(q, l) ? narrow_form(q, l) : wide_form(q, node);
}

/* Refuses an entry whose layer cannot have such weights. */
static int refuse(const qs_quantizer *q, qs_id node, int code, const char *what) {
    return qs_fail(q->error, code, "%s: the recipe's layer '%s' (%s): %s", q->model->name,
                   qs_node_label(q->g, node), q->g->nodes[node].op_type, what);
}

/* Whether an entry asks for 8-bit weights with a zero point for each channel. */
static bool has_zero_points(const qsim_recipe_entry *e) {
    return e && e->action == QSIM_RECIPE_QUANTIZE && e->granularity == QSIM_GRANULARITY_CHANNEL &&
           !e->symmetric && !qs_is_narrow(e->dtype);
}

int qs_recipe_check_weights(const qs_quantizer *q) {
    for (size_t k = 0; q->options.recipe && k < q->g->order_count; k++) {
        const qs_id node = q->g->order[k];
        const qsim_recipe_entry *e = layer_entry(q, node);
        const bool narrow = e && qs_is_narrow(e->dtype);
        const bool by_gptq = e && e->rounding == QSIM_ROUNDING_GPTQ;
        if (has_zero_points(e) && takes_one_zero_point(q, node))
            return refuse(q, node, QSIM_E_UNSUPPORTED,
                          "'channel asymmetric' is not supported for ConvInteger");
        if (!narrow && !by_gptq)
            continue;
        const qs_layer *l = q->choices[node].layer < 0 ? NULL : &q->layers[q->choices[node].layer];
        if (narrow && (!l || !qs_narrow_fits(q, l)))
            return refuse(q, node, QSIM_E_UNSUPPORTED, "4 bits are not supported in this mode");
        if (narrow && e->block && !qs_narrow_block(q, l, (int32_t)e->block))
            return refuse(q, node, QSIM_E_UNSUPPORTED,
                          "blocks of windows of several taps are not supported");
        if (by_gptq && (!l || !qs_gram_find(q, l))) {
            refuse(q, node, QSIM_E_ARGUMENT, "'rounding gptq' needs the data again");
            qs_hint(q->error, "calibrate on it, or write 'rounding nearest' into the recipe");
            return QSIM_E_ARGUMENT;
        }
    }
    return QSIM_OK;
}

bool qs_recipe_scales(const qs_quantizer *q, qs_id value) {
    const qsim_recipe_entry *e = tensor_entry(q, value);
    return e && e->action == QSIM_RECIPE_QUANTIZE;
}

bool qs_recipe_has_range(const qs_quantizer *q, qs_id value) {
    const qsim_recipe_entry *e = tensor_entry(q, value);
    if (q->g->values[value].data || (e && e->flags & QSIM_RECIPE_RANGE))
        return true;
    if (e && e->action == QSIM_RECIPE_FLOAT)
        return false;
    return !q->c || qs_calibration_find(q->c, q->g->values[value].name, NULL);
}

int32_t qs_recipe_type(const qs_quantizer *q, qs_id value) {
    const qsim_recipe_entry *e = tensor_entry(q, value);
    return e && e->action == QSIM_RECIPE_QUANTIZE ? e->dtype : q->options.activation_type;
}

void qs_recipe_range(const qs_quantizer *q, qs_id value, qs_range *range) {
    const qsim_recipe_entry *e = tensor_entry(q, value);
    *range = (qs_range){.flags = q->activation_flags,
                        .given = QSIM_RECIPE_METHOD,
                        .method = q->options.method,
                        .percentile = q->options.percentile};
    if (!e)
        return;
    range->flags = e->symmetric ? QSIM_RANGE_SYMMETRIC | QSIM_RANGE_NARROW : 0;
    if (!e->flags)
        return;
    range->given = e->flags;
    range->method = e->method;
    range->percentile = e->percentile;
    range->low = e->low;
    range->high = e->high;
}

/* ---- writing ---- */

bool qs_recipe_quantized(const qs_quantizer *q, qs_id node) {
    const qs_choice *c = &q->choices[node];
    if (qs_stored_weights(q, node))
        return c->forced != QSIM_RULE_FLOAT;
    return q->options.mode != QSIM_MODE_WEIGHTS && c->layer >= 0 && c->integer;
}

void qs_recipe_form(const qs_weight_form *form, qsim_recipe_entry *e) {
    const bool tensor = form->scheme == QSIM_WEIGHT_TENSOR_SYMMETRIC ||
                        form->scheme == QSIM_WEIGHT_TENSOR_ASYMMETRIC;
    e->dtype = form->dtype;
    e->granularity = tensor        ? QSIM_GRANULARITY_TENSOR
                     : form->block ? QSIM_GRANULARITY_BLOCK
                                   : QSIM_GRANULARITY_CHANNEL;
    e->block = form->block;
    e->symmetric = form->scheme == QSIM_WEIGHT_TENSOR_SYMMETRIC ||
                   form->scheme == QSIM_WEIGHT_CHANNEL_SYMMETRIC;
    e->flags = form->reduce == QSIM_REDUCE_RANGE   ? QSIM_RECIPE_REDUCED
               : form->reduce == QSIM_REDUCE_PAIRS ? QSIM_RECIPE_PAIRED
                                                   : 0;
    e->rounding = form->rounding;
}

static int put_layer(const qs_quantizer *q, qs_id node, qsim_recipe *to) {
    const qs_choice *c = &q->choices[node];
    const char *name = qs_node_label(q->g, node);
    qsim_recipe_entry e = {.kind = QSIM_RECIPE_LAYER};
    if (qs_recipe_quantized(q, node)) {
        const qs_weight_form form = qs_recipe_weights(q, node);
        qs_recipe_form(&form, &e);
        if (form.dtype != QSIM_FLOAT16) /* whose biases stay as they are */
            e.bias_correction = qs_bias_decide(q, node);
        if (e.rounding == QSIM_ROUNDING_GPTQ && !qs_gram_find(q, &q->layers[c->layer]))
            e.rounding = QSIM_ROUNDING_NEAREST;
        if (e.bias_correction == QSIM_BIAS_CORRECTION_GIVEN) {
            e.shift = layer_entry(q, node)->shift;
            e.shift_count = layer_entry(q, node)->shift_count;
        }
    } else if (c->layer >= 0 || c->forced == QSIM_RULE_FLOAT) {
        e.action = QSIM_RECIPE_FLOAT;
    } else if (c->forced == QSIM_RULE_INT8 && c->integer) {
        e.action = QSIM_RECIPE_INTEGER;
    } else {
        return QSIM_OK;
    }
    return name[0] ? qs_recipe_put(to, &e, name) : QSIM_OK;
}

static int put_tensor(const qs_quantizer *q, qs_id value, qsim_recipe *to) {
    const qs_activation *a = &q->activations[value];
    const char *name = q->g->values[value].name;
    qsim_recipe_entry e = {.kind = QSIM_RECIPE_TENSOR};
    if (!qs_is_activation(q->g, value))
        return QSIM_OK;
    if (a->quantized && a->root == value) {
        const bool percentile =
            a->range.given & QSIM_RECIPE_METHOD && a->range.method == QSIM_METHOD_PERCENTILE;
        e.dtype = a->dtype;
        e.symmetric = (a->range.flags & QSIM_RANGE_SYMMETRIC) != 0;
        e.flags = a->range.given | QSIM_RECIPE_RANGE;
        e.method = a->range.method;
        e.percentile = percentile ? a->range.percentile : 0;
        e.low = a->range.low;
        e.high = a->range.high;
    } else if (!a->quantized && !qs_recipe_has_range(q, value)) {
        e.action = QSIM_RECIPE_FLOAT;
    } else {
        return QSIM_OK;
    }
    return qs_recipe_put(to, &e, name);
}

int qs_recipe_decide(const qs_quantizer *q, qsim_recipe *to) {
    const qsim_recipe *r = q->options.recipe;
    int code = QSIM_OK;
    for (size_t i = 0; r && i < r->count && !code; i++)
        if (r->entries[i].kind == QSIM_RECIPE_EQUALIZE)
            code = qs_recipe_put(to, &r->entries[i], r->entries[i].name);
    for (size_t k = 0; k < q->g->order_count && !code; k++)
        code = put_layer(q, q->g->order[k], to);
    const bool tensors = q->options.mode == QSIM_MODE_STATIC;
    for (size_t v = 0; tensors && v < q->value_count && !code; v++)
        code = put_tensor(q, (qs_id)v, to);
    return code;
}
