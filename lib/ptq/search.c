/* SPDX-License-Identifier: MIT */
#include "ptq/search.h"

#include <math.h>

int qs_search_progress(const qs_search *s, const char *what, size_t done, size_t total) {
    if (s->options.progress && s->options.progress(s->options.progress_user, what, done, total))
        return qs_fail(s->error, QSIM_E_CANCELLED, "%s: search cancelled", s->prepared->name);
    return QSIM_OK;
}

int qs_search_score(qs_search *s, const double *percentiles, double *score) {
    qsim_model *m;
    qsim_quantize_options o = s->base;
    o.schemes = s->schemes;
    o.scheme_count = s->schemes ? s->layer_count : 0;
    if (percentiles) {
        o.percentiles = percentiles;
        o.percentile_count = s->c->count;
    }
    int code = qs_quantize_prepared(s->prepared, s->c, &o, &m, s->error);
    if (code)
        return code;
    if (s->options.score(s->options.score_user, m, score))
        code = qs_fail(s->error, QSIM_E_CANCELLED, "%s: search cancelled", s->prepared->name);
    qsim_model_free(m);
    return code;
}

static int check_options(const qs_search *s, const int32_t *schemes, const double *percentiles) {
    const qsim_search_options *o = &s->options;
    if (o->steps < 0 || o->start_percentile < 0 || o->start_percentile > 100 || o->max_drop < 0)
        return qs_fail(s->error, QSIM_E_ARGUMENT, "search: an option is out of range");
    if (o->steps > 0 && (!o->score || !percentiles))
        return qs_fail(s->error, QSIM_E_ARGUMENT,
                       "search: annealing needs a score function and room for percentiles");
    if (o->greedy && (!schemes || !o->inputs || o->input_count == 0))
        return qs_fail(s->error, QSIM_E_ARGUMENT,
                       "search: choosing weight schemes needs inputs and room for schemes");
    return QSIM_OK;
}

static int run_search(qs_search *s) {
    const int32_t count = qs_layer_count(s->prepared);
    if (count < 0)
        return qs_fail(s->error, count, "%s: cannot be quantized", s->prepared->name);
    s->layer_count = (size_t)count;
    for (size_t i = 0; s->schemes && i < s->layer_count; i++)
        s->schemes[i] = s->base.schemes && i < s->base.scheme_count ? s->base.schemes[i]
                                                                    : s->base.weight_scheme;
    /* Without annealing the percentiles are those of the base; 100 is min/max. */
    for (size_t i = 0; s->percentiles && i < s->c->count; i++)
        s->percentiles[i] = s->base.percentiles && i < s->base.percentile_count
                                ? s->base.percentiles[i]
                            : s->base.method == QSIM_METHOD_PERCENTILE ? s->base.percentile
                                                                       : 100;
    int code = s->options.greedy ? qs_search_greedy(s) : QSIM_OK;
    if (!code && s->options.steps > 0)
        code = qs_search_anneal(s);
    else if (!code && s->options.score)
        code = qs_search_score(s, NULL, &s->best);
    return code;
}

int qsim_search(const qsim_model *model, const qsim_calibration *c,
                const qsim_quantize_options *base, const qsim_search_options *options,
                int32_t *schemes, double *percentiles, double *score, qsim_error *error) {
    qs_search s = {.c = c, .schemes = schemes, .percentiles = percentiles, .error = error};
    qsim_model *prepared = NULL;
    qs_error_clear(error);
    s.best = NAN;
    if (!model || !c)
        return qs_fail(error, QSIM_E_ARGUMENT, "search: an argument is missing");
    int code = QS_OPTIONS(s.options, options, error);
    if (!code)
        code = qs_quantizer_options(base, &s.base, error);
    if (!code)
        code = check_options(&s, schemes, percentiles);
    if (!code)
        code = qs_calibration_check(c, model, error);
    if (!code)
        code = qs_ptq_prepared(model, c, &prepared, error);
    if (code)
        return code;
    s.prepared = prepared;
    s.base.progress = NULL; /* a candidate's own steps would drown those of the search */
    code = run_search(&s);
    qsim_model_free(prepared);
    if (score)
        *score = s.best;
    return code;
}
