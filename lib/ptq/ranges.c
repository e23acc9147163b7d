/* SPDX-License-Identifier: MIT */
/* Chooses one method for the ranges of all activations; lists the tensors that have a range. */
#include <math.h>
#include <stdio.h>

#include "ptq/search.h"

int qs_search_tensors(qs_search *s, int32_t *tensors, size_t *count) {
    qs_quantizer q;
    *count = 0;
    int code = qs_search_begin(s, &q);
    if (!code)
        code = qs_activation_choose(&q);
    for (size_t i = 0; i < q.value_count && !code; i++)
        if (q.activations[i].quantized && q.activations[i].root == (qs_id)i &&
            qs_calibration_find(s->c, q.g->values[i].name, &tensors[*count]))
            ++*count;
    qs_search_end(&q);
    return code;
}

qsim_recipe_entry qs_search_method_entry(const qs_search *s, int32_t method, double percentile) {
    const bool cuts = method == QSIM_METHOD_PERCENTILE;
    return (qsim_recipe_entry){.kind = QSIM_RECIPE_TENSOR,
                               .dtype = s->base.activation_type,
                               .symmetric = s->base.activation_symmetric != 0,
                               .flags = QSIM_RECIPE_METHOD,
                               .method = method,
                               .percentile = cuts ? percentile : 0};
}

void qs_search_name_cut(const char *name, double percentile, char text[QS_CHANGE]) {
    if (isnan(percentile)) {
        snprintf(text, QS_CHANGE, "%.100s: range as at first", name);
        return;
    }
    const long cut = (long)(percentile * 1e6 + 0.5); /* printed as integers: no locale shows */
    int n = snprintf(text, QS_CHANGE, "%.100s: percentile %ld.%06ld", name, cut / 1000000,
                     cut % 1000000);
    while (text[n - 1] == '0' && text[n - 2] != '.')
        text[--n] = 0;
}

int qs_search_set_range(qs_search *s, int32_t tensor, const qsim_recipe_entry *entry) {
    const char *name = s->c->tensors[tensor].name;
    const qsim_recipe_entry *old = qs_recipe_find(s->recipe, QSIM_RECIPE_TENSOR, name);
    qsim_recipe_entry e = *entry;
    if (old && old->action == QSIM_RECIPE_QUANTIZE)
        e.dtype = old->dtype;
    return qs_recipe_put(s->recipe, &e, name);
}

int qs_search_ranges(qs_search *s) {
    static const struct {
        const char *what;
        int32_t method;
        double percentile;
    } candidates[] = {
        {"ranges by minmax", QSIM_METHOD_MINMAX, 0},
        {"ranges by mse", QSIM_METHOD_MSE, 0},
        {"ranges by percentile 99.99", QSIM_METHOD_PERCENTILE, 99.99},
    };
    int32_t *tensors = qs_alloc(s->prepared->ctx, s->c->count + 1, sizeof(*tensors));
    size_t count;
    int code = tensors ? qs_search_tensors(s, tensors, &count) : QSIM_E_NOMEM;
    for (size_t i = 0; i < QS_COUNT(candidates) && !code && !qs_search_is_over(s); i++) {
        if (candidates[i].method == s->base.method && candidates[i].method == QSIM_METHOD_MINMAX)
            continue; /* the search began with that */
        code = qs_search_progress(s, candidates[i].what, i, QS_COUNT(candidates));
        const qsim_recipe_entry e =
            qs_search_method_entry(s, candidates[i].method, candidates[i].percentile);
        for (size_t k = 0; k < count && !code; k++)
            code = qs_search_set_range(s, tensors[k], &e);
        if (!code)
            code = qs_search_try(s, candidates[i].what, NULL);
    }
    qs_free(s->prepared->ctx, tensors);
    return code;
}
