/* SPDX-License-Identifier: MIT */
/*
 * Weight schemes, layer by layer in order of execution: each gets the scheme with which the
 * network, quantized with the schemes chosen so far, comes closest to the float network at that
 * layer's output, in squared error over all batches.
 */
#include <math.h>

#include "ptq/search.h"

#define SCHEMES 3

/* A layer whose scheme is chosen. */
typedef struct subject {
    const char *name, *tensor; /* its label, and what it makes */
    qs_weight_form form;       /* before */
} subject;

/* A session that gives out one tensor, with a run. */
typedef struct probe {
    qsim_session *session;
    qsim_run *run;
} probe;

static void probe_free(probe *p) {
    qsim_run_free(p->run);
    qsim_session_free(p->session);
    *p = (probe){0};
}

static int probe_make(const qsim_model *m, const char *tensor, probe *p, qsim_error *error) {
    qsim_session_options o = {.struct_size = sizeof(o), .outputs = &tensor, .output_count = 1};
    int code = qsim_session_create(m, &o, &p->session, error);
    if (!code)
        code = qsim_run_create(p->session, &p->run, error);
    if (!code && qsim_session_input_count(p->session) != 1)
        code = qs_fail(error, QSIM_E_UNSUPPORTED,
                       "%s: the search takes models with one input, this has %d", m->name,
                       (int)qsim_session_input_count(p->session));
    return code;
}

/* What a layer's float output is called where it has been through 8 bits. */
static const char *quantized_name(const qsim_model *m, const char *tensor, char *room,
                                  size_t size) {
    static const char suffix[] = "_DequantizeLinear_Output";
    size_t n = strlen(tensor);
    if (n + sizeof(suffix) > size)
        return tensor;
    memcpy(room, tensor, n);
    memcpy(room + n, suffix, sizeof(suffix));
    return qs_graph_find(m->graph, room) == QS_NONE ? tensor : room;
}

/* Sets a layer's scheme in the recipe. */
static int set_scheme(qs_search *s, const char *layer, int32_t dtype, int32_t scheme) {
    const bool channel = scheme == QSIM_WEIGHT_CHANNEL_SYMMETRIC;
    const qsim_recipe_entry *old = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, layer);
    const qsim_recipe_entry e = {.kind = QSIM_RECIPE_LAYER,
                                 .dtype = dtype,
                                 .symmetric = scheme != QSIM_WEIGHT_TENSOR_ASYMMETRIC,
                                 .flags = s->base.reduce_range ? QSIM_RECIPE_REDUCED : 0,
                                 .bias_correction = old ? old->bias_correction : 0,
                                 .granularity =
                                     channel ? QSIM_GRANULARITY_CHANNEL : QSIM_GRANULARITY_TENSOR};
    return qs_recipe_put(s->recipe, &e, layer, s->error);
}

/* The network with scheme `scheme` for the layer, seen at `tensor`. */
static int candidate(qs_search *s, const subject *l, int32_t scheme, probe *p) {
    char room[1024];
    qsim_model *m;
    const char *tensor = l->tensor;
    int code = set_scheme(s, l->name, l->form.dtype, scheme);
    if (!code)
        code = qs_quantize_prepared(s->prepared, s->c, &s->base, &m, s->error);
    if (code)
        return code;
    code = probe_make(m, quantized_name(m, tensor, room, sizeof(room)), p, s->error);
    qsim_model_free(m);
    return code;
}

static double squared_distance(const qsim_tensor *a, const qsim_tensor *b) {
    const float *x = a->data, *y = b->data;
    double sum = 0;
    for (size_t i = 0; i < a->bytes / sizeof(float); i++) {
        double d = (double)x[i] - (double)y[i];
        sum += d * d;
    }
    return sum;
}

static int measure(qs_search *s, const probe *reference, const probe *p, double *errors) {
    for (size_t b = 0; b < s->options.input_count; b++) {
        const qsim_tensor *x = &s->options.inputs[b];
        qsim_tensor right = {0};
        int code = qsim_run_execute(reference->run, x, 1, &right, 1, s->error);
        for (int32_t k = 0; k < SCHEMES && !code; k++) {
            qsim_tensor y = {0};
            code = qsim_run_execute(p[k].run, x, 1, &y, 1, s->error);
            if (!code && (y.bytes != right.bytes || y.dtype != QSIM_FLOAT))
                code =
                    qs_fail(s->error, QSIM_E_INTERNAL, "search: a layer's outputs differ in shape");
            if (!code)
                errors[k] += squared_distance(&right, &y);
        }
        if (code)
            return code;
    }
    return QSIM_OK;
}

static int choose_scheme(qs_search *s, const subject *l) {
    int32_t best = l->form.scheme;
    probe reference = {0}, p[SCHEMES] = {{0}};
    double errors[SCHEMES] = {0};
    int code = probe_make(s->prepared, l->tensor, &reference, s->error);
    for (int32_t k = 0; k < SCHEMES && !code; k++)
        code = candidate(s, l, k, &p[k]);
    if (!code)
        code = measure(s, &reference, p, errors);
    for (int32_t k = best = code ? best : 0; k < SCHEMES && !code; k++)
        if (errors[k] < errors[best])
            best = k;
    /* Where it was interrupted, what was there before. */
    int set = set_scheme(s, l->name, l->form.dtype, best);
    code = code ? code : set;
    for (int32_t k = 0; k < SCHEMES; k++)
        probe_free(&p[k]);
    probe_free(&reference);
    return code;
}

int qs_search_greedy(qs_search *s) {
    qs_quantizer q;
    qsim_model *m;
    int code = qs_model_derive(s->prepared, &m, s->error);
    if (code)
        return code;
    code = qs_quantizer_init(&q, m, s->c, &s->base, s->error);
    for (size_t i = 0; i < q.layer_count && !code; i++) {
        qs_id node = q.layers[i].node;
        if (!q.choices[node].integer)
            continue;
        code = qs_search_progress(s, qs_node_label(q.g, node), i, q.layer_count);
        if (!code)
            code =
                choose_scheme(s, &(subject){.name = qs_node_label(q.g, node),
                                            .tensor = q.g->values[qs_choice_output(&q, node)].name,
                                            .form = q.layers[i].form});
    }
    qs_quantizer_free(&q);
    qsim_model_free(m);
    return code;
}
