/* SPDX-License-Identifier: MIT */
/*
 * Chooses weight schemes layer by layer in order of execution: the scheme with which the network,
 * with the schemes chosen so far, has the best score.
 */
#include <stdio.h>

#include "ptq/search.h"

/* A layer whose scheme is chosen. */
typedef struct layer_choice {
    const char *name;
    qs_weight_form form; /* before the search */
} layer_choice;

/* Sets a layer's scheme in the recipe. */
static int set_scheme(qs_search *s, const layer_choice *l, int32_t scheme) {
    const qsim_recipe_entry *old = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, l->name);
    const qs_weight_form form = {
        .dtype = l->form.dtype, .scheme = scheme, .reduce = l->form.reduce};
    qsim_recipe_entry e = {.kind = QSIM_RECIPE_LAYER,
                           .bias_correction = old ? old->bias_correction : 0,
                           .shift = old ? old->shift : NULL,
                           .shift_count = old ? old->shift_count : 0};
    qs_recipe_form(&form, &e);
    return qs_recipe_put(s->recipe, &e, l->name);
}

/* ConvInteger has one zero point; pairs of weights have none. */
static bool is_candidate(const qs_search *s, const layer_choice *l, int32_t scheme) {
    const qs_weight_form form = {.scheme = scheme};
    if (l->form.reduce == QSIM_REDUCE_PAIRS)
        return qs_is_symmetric(&form);
    return scheme != QSIM_WEIGHT_CHANNEL_ASYMMETRIC || s->base.mode == QSIM_MODE_STATIC;
}

static int choose_scheme(qs_search *s, const layer_choice *l) {
    static const char *const schemes[] = {"per channel, symmetric", "per tensor, symmetric",
                                          "per tensor, asymmetric", "per channel, asymmetric"};
    int32_t best = l->form.scheme;
    int code = QSIM_OK;
    for (int32_t k = 0; k <= QSIM_WEIGHT_CHANNEL_ASYMMETRIC && !code; k++) {
        char change[QS_CHANGE];
        const double before = s->best;
        if (k == l->form.scheme || !is_candidate(s, l, k))
            continue;
        snprintf(change, sizeof(change), "%.100s: %s", l->name, schemes[k]);
        code = set_scheme(s, l, k);
        if (!code)
            code = qs_search_step(s, change, NULL);
        best = !code && s->best > before ? k : best;
    }
    /* The best entry so far, also after an interruption. */
    int set = set_scheme(s, l, best);
    return code ? code : set;
}

int qs_search_greedy(qs_search *s) {
    qs_quantizer q;
    int code = qs_search_begin(s, &q);
    for (size_t i = 0; i < q.layer_count && !code && !qs_search_is_over(s); i++) {
        qs_id node = q.layers[i].node;
        if (!q.choices[node].integer || qs_is_narrow(q.layers[i].form.dtype))
            continue; /* 4 bits have a scale for each channel */
        code = qs_search_progress(s, qs_node_label(q.g, node), i, q.layer_count);
        if (!code)
            code = choose_scheme(s, &(layer_choice){qs_node_label(q.g, node), q.layers[i].form});
    }
    qs_search_end(&q);
    return code;
}
