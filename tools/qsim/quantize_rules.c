/* SPDX-License-Identifier: MIT */
/* --set: rules that name nodes which stay in float all the same. */
#include <string.h>

#include "quantizing.h"

/* The node's name in recipes. */
static const char *label_of(const qsim_node_info *n) {
    return n->name[0] || n->output_count == 0 ? n->name : n->outputs[0];
}

/* Whether the recipe of decisions has a node of this name in integers. */
static bool is_quantized(const quantizing *q, const char *name) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    const int32_t i = qsim_recipe_find(q->decided, QSIM_RECIPE_LAYER, name);
    return i >= 0 && qsim_recipe_get(q->decided, i, &e) == QSIM_OK && e.action != QSIM_RECIPE_FLOAT;
}

/* Counts the nodes whose name, or with `types` whose operator, is `word`, and those in integers. */
static void count(const quantizing *q, const char *word, bool types, int *all, int *quantized) {
    *all = *quantized = 0;
    for (int32_t i = 0; i < qsim_model_node_count(q->model); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(q->model, i, &n) || strcmp(types ? n.op_type : label_of(&n), word) != 0)
            continue;
        ++*all;
        *quantized += is_quantized(q, label_of(&n));
    }
}

void quantize_warn_of_rules(const tool *t, const quantizing *q) {
    const char *rule;
    for (size_t k = 0; (rule = args_repeated(&t->args, "set", k)) != NULL; k++) {
        const char *type = strrchr(rule, '=');
        int all, quantized;
        text word = {0};
        text_add(&word, rule, (size_t)(type - rule));
        const bool pattern = word.data[strcspn(word.data, "*?[\\")] != 0;
        count(q, word.data, false, &all, &quantized);
        if (all == 0)
            count(q, word.data, true, &all, &quantized);
        if (!pattern && all > 0 && quantized == 0 && strcmp(type, "=fp32") != 0)
            tool_warn(t, "--set '%s' has no effect: %s in float", rule,
                      all == 1 ? "the node stays" : "these nodes stay");
        text_free(&word);
    }
}
