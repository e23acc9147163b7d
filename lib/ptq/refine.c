/* SPDX-License-Identifier: MIT */
/*
 * Rounding by GPTQ (gptq.h), then sequential bias correction: layer by layer in order of execution
 * the bias is corrected by the difference of the means of the layer's outputs in the float network
 * and in the quantized one, whose earlier layers are corrected (Nagel et al., 2019, section 4.2,
 * with data):
 *
 *     bias[o] += sum over k of W[o, k] E[x[k]] - Q(W)[o, k] E[x'[k]]
 *
 * x is the layer's input in the float network, x' in the quantized one, on the same samples. A
 * correction is kept if it lowers the loss of the whole network.
 */
#include <stdio.h>

#include "exec/exec.h"
#include "ptq/equalize.h"
#include "ptq/gram.h"
#include "ptq/search.h"

/* ---- means of a tensor ---- */

typedef struct sums {
    double *sum; /* of each channel */
    size_t channels, positions;
    int32_t axis;
} sums;

static int add_batch(sums *to, const qsim_tensor *t) {
    const float *x = t->data;
    size_t inner = 1;
    if (t->dtype != QSIM_FLOAT || to->axis >= t->rank || !x ||
        t->dims[to->axis] != (int64_t)to->channels)
        return QSIM_E_SHAPE;
    for (int32_t i = to->axis + 1; i < t->rank; i++)
        inner *= (size_t)t->dims[i];
    const size_t count = t->bytes / sizeof(*x);
    for (size_t i = 0; i < count; i++)
        to->sum[i / inner % to->channels] += (double)x[i];
    to->positions += count / to->channels;
    return QSIM_OK;
}

/* Index of the input of that name, or -1. */
static int32_t input_of(const qsim_session *session, const char *name) {
    for (int32_t i = qsim_session_input_count(session); i-- > 0;)
        if (strcmp(qsim_session_input_name(session, i), name) == 0)
            return i;
    return -1;
}

/* Finds the means of one tensor of a model over all inputs of the search. */
static int find_means(const qs_search *s, const qsim_model *m, const char *tensor, sums *to) {
    const size_t per = s->judge.per_batch;
    const qsim_session_options o = {
        .struct_size = sizeof(o), .outputs = &tensor, .output_count = 1};
    qsim_session *session = NULL;
    qsim_run *run = NULL;
    const qs_id id = qs_graph_find(m->graph, tensor);
    const bool given = id != QS_NONE && m->graph->values[id].is_input;
    int code = qs_session_compile(m, given ? NULL : &o, 0, &session, s->error);
    const int32_t input = code || !given ? -1 : input_of(session, tensor);
    if (!code && !given)
        code = qsim_run_create(session, &run, s->error);
    memset(to->sum, 0, to->channels * sizeof(*to->sum));
    to->positions = 0;
    for (size_t b = 0; b < s->judge.batches && !code; b++) {
        const qsim_tensor *batch = s->options.inputs + b * per;
        qsim_tensor y = {0};
        if (run)
            code = qsim_run_execute(run, batch, per, &y, 1, s->error);
        if (!code && add_batch(to, input >= 0 ? &batch[input] : &y))
            code = qs_fail(s->error, QSIM_E_SHAPE,
                           "%s: tensor '%s' has other channels than weights", m->name, tensor);
    }
    for (size_t c = 0; c < to->channels && to->positions; c++)
        to->sum[c] /= qs_real(to->positions);
    qsim_run_free(run);
    qsim_session_free(session);
    return code;
}

/* ---- one layer ---- */

/*
 * Measures the means of the layer's input in the float network, and their drift in the quantized
 * one.
 */
static int measure(const qs_search *s, const qs_bias_source *from, const qs_means *seen,
                   double *mean, double *drift) {
    char buffer[1024], base[1024];
    qsim_model *m;
    sums b = {.sum = drift, .channels = from->channels, .axis = from->axis};
    snprintf(base, sizeof(base), "%s%s", from->tensor, from->factor ? "_equalized" : "");
    int code = qs_quantize_prepared(s->prepared, s->c, &s->base, &m, s->error);
    if (code)
        return code;
    const char *name = qs_quantized_name(m, base, buffer, sizeof(buffer));
    code = name ? find_means(s, m, name, &b) : QSIM_OK;
    qsim_model_free(m);
    for (size_t c = 0; c < from->channels; c++) {
        const double factor = from->factor ? (double)from->factor[c] : 1;
        mean[c] = qs_means_mean(seen, c) * factor;
        drift[c] = name ? drift[c] : mean[c]; /* the quantized network has no such tensor */
        drift[c] -= mean[c];
    }
    return code;
}

/* The layer's entry by the recipe, else by the options. */
static qsim_recipe_entry entry_of(const qs_search *s, const char *name, const qs_layer *l) {
    const qsim_recipe_entry *old = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, name);
    qsim_recipe_entry e = {.kind = QSIM_RECIPE_LAYER};
    qs_recipe_form(&l->form, &e);
    return old ? *old : e;
}

static int correct(qs_search *s, qs_quantizer *q, qs_layer *l, const qs_bias_source *from,
                   const qs_means *seen) {
    const char *name = qs_node_label(q->g, l->node);
    const qsim_recipe_entry before = entry_of(s, name, l);
    const double best = s->best;
    double *mean = qs_alloc(q->ctx, 2 * from->channels, sizeof(*mean));
    float *shift = qs_alloc(q->ctx, l->channels, sizeof(*shift));
    qsim_recipe_entry e = before;
    int code = mean && shift ? QSIM_OK : QSIM_E_NOMEM;
    if (!code)
        code = measure(s, from, seen, mean, mean + from->channels);
    if (!code)
        code = qs_bias_measured(q, l, mean, mean + from->channels, shift);
    e.bias_correction = QSIM_BIAS_CORRECTION_GIVEN;
    e.shift = shift;
    e.shift_count = (int64_t)l->channels;
    if (!code)
        code = qs_recipe_put(s->recipe, &e, name);
    if (!code)
        code = qs_search_step(s, name, NULL);
    if (code || !(s->best > best)) { /* also after an interruption */
        const int put = qs_recipe_put(s->recipe, &before, name);
        code = code ? code : put;
    }
    qs_free(q->ctx, mean);
    qs_free(q->ctx, shift);
    return code;
}

/* ---- rounding ---- */

/*
 * Rounds the weights of all layers with second moments in the calibration by GPTQ, and keeps that
 * for all of them or for none.
 */
static int round_weights(qs_search *s) {
    qs_quantizer q;
    size_t count = 0;
    int code = qs_search_begin(s, &q);
    for (size_t i = 0; i < q.layer_count && !code; i++) {
        const qs_layer *l = &q.layers[i];
        const char *name = qs_node_label(q.g, l->node);
        qsim_recipe_entry e = entry_of(s, name, l);
        if (!q.choices[l->node].integer || !name[0] || qs_is_narrow(e.dtype) ||
            !qs_gram_find(&q, l))
            continue;
        e.rounding = QSIM_ROUNDING_GPTQ;
        code = qs_recipe_put(s->recipe, &e, name);
        count++;
    }
    qs_search_end(&q);
    if (!code && count > 0)
        code = qs_search_step(s, "weights rounded by GPTQ", NULL);
    return code ? code : qs_search_return(s);
}

/* ---- the method ---- */

/* Calibrates the means of all layers' inputs in the float network, on the inputs of the search. */
static int watch_float(qs_search *s, qsim_calibration **out) {
    const qsim_quantize_options layers = {.struct_size = sizeof(layers), .mode = QSIM_MODE_WEIGHTS};
    const qsim_calibration_options o = {
        .struct_size = sizeof(o), .quantize = &layers, .bins = 1 << QS_LEAST_BITS};
    const size_t per = s->judge.per_batch;
    int code = qsim_calibration_create(s->prepared, &o, out, s->error);
    for (size_t b = 0; b < s->judge.batches && !code; b++) {
        code = qs_search_progress(s, "float model", b, s->judge.batches);
        if (!code)
            code = qsim_calibration_feed(*out, s->options.inputs + b * per, per, s->error);
    }
    return code;
}

static int correct_all(qs_search *s) {
    qs_quantizer q;
    qsim_calibration *seen = NULL;
    int code = qs_search_begin(s, &q);
    q.used = qs_calloc(q.ctx, s->c->count + 1, 1);
    if (!code)
        code = qs_equalize_apply(&q);
    if (!code && !q.used)
        code = QSIM_E_NOMEM;
    if (!code)
        code = qs_activation_choose(&q);
    if (!code)
        code = watch_float(s, &seen);
    for (size_t i = 0; i < q.layer_count && !code && !qs_search_is_over(s); i++) {
        qs_layer *l = &q.layers[i];
        const char *name = qs_node_label(q.g, l->node);
        qs_bias_source from;
        int32_t index;
        if (!q.choices[l->node].integer || !name[0] || !qs_bias_input(&q, l, &from))
            continue;
        const qs_means *means = qs_calibration_means(seen, from.tensor, &index);
        if (!means || means->axis != from.axis || means->channels != from.channels)
            continue;
        code = qs_search_progress(s, name, i, q.layer_count);
        if (!code)
            code = correct(s, &q, l, &from, means);
    }
    qsim_calibration_free(seen);
    qs_search_end(&q);
    return code;
}

int qs_search_refine(qs_search *s) {
    if (s->base.mode != QSIM_MODE_STATIC || s->base.no_bias_correction)
        return qs_fail(s->error, QSIM_E_ARGUMENT,
                       "search: refine needs static quantization with bias correction");
    int code = round_weights(s);
    return code || qs_search_is_over(s) ? code : correct_all(s);
}
