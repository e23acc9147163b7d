/* SPDX-License-Identifier: MIT */
/*
 * Decides whether biases are corrected at all: the shifts of means by quantized activations and by
 * quantized weights may compensate each other, and correcting one of the two increases the loss
 * then. Corrected biases have to be better by one standard error: where they gain, they gain much.
 */
#include "ptq/search.h"

/* Sets bias-correction off for every layer that has it on. */
static int leave_biases(qs_search *s, const qs_quantizer *q) {
    int code = QSIM_OK;
    for (size_t i = 0; i < q->layer_count && !code; i++) {
        const char *name = qs_node_label(q->g, q->layers[i].node);
        const qsim_recipe_entry *old = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, name);
        qsim_recipe_entry e = {.kind = QSIM_RECIPE_LAYER};
        if (qs_bias_decide(q, q->layers[i].node) != QSIM_BIAS_CORRECTION_ON || !name[0])
            continue;
        qs_recipe_form(&q->layers[i].form, &e);
        if (old)
            e = *old;
        e.bias_correction = QSIM_BIAS_CORRECTION_OFF;
        code = qs_recipe_put(s->recipe, &e, name);
    }
    return code;
}

int qs_search_correction(qs_search *s) {
    static const char what[] = "without bias correction";
    qs_quantizer q;
    int code = qs_search_begin(s, &q);
    if (!code)
        code = qs_search_progress(s, what, 0, 1);
    if (!code)
        code = leave_biases(s, &q);
    qs_search_end(&q);
    s->proof = -1;
    if (!code)
        code = qs_search_try(s, what, NULL);
    return code;
}
