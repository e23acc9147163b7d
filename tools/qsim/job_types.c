/* SPDX-License-Identifier: MIT */
/* Operator types of a quantization pass as rules for their nodes. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

static bool is_listed(const config *types, const char *op_type) {
    for (size_t i = 0; i < types->count; i++)
        if (strcmp(types->items[i].string, op_type) == 0)
            return true;
    return false;
}

/* Patterns of nodes, and the type that all of them get. */
typedef struct rule_list {
    char **patterns;
    size_t count, capacity;
    const char *type;
} rule_list;

static void add_pattern(rule_list *l, const qsim_node_info *n) {
    text pattern = {0};
    /* A node without a name goes by its output's. */
    for (const char *s = *n->name ? n->name : n->outputs[0]; *s; s++)
        text_printf(&pattern, "%s%c", strchr("*?[\\", *s) ? "\\" : "", *s);
    if (l->count == l->capacity) {
        l->capacity = 2 * l->capacity + 16;
        l->patterns = tool_grow(l->patterns, l->capacity, sizeof(*l->patterns));
    }
    l->patterns[l->count++] = pattern.data ? pattern.data : tool_copy("");
}

/* Whether all patterns from `first` to before `end` name nodes once BatchNormalization is folded.
 */
static bool are_nodes(const qsim_model *m, const rule_list *l, size_t first, size_t end) {
    qsim_rule *rules = tool_alloc(end - first, sizeof(*rules));
    for (size_t i = first; i < end; i++)
        rules[i - first] = (qsim_rule){
            .struct_size = sizeof(*rules), .pattern = l->patterns[i], .action = QSIM_RULE_INT8};
    const qsim_quantize_options o = {
        .struct_size = sizeof(o), .rules = rules, .rule_count = end - first};
    const bool all = qsim_quantize_layers(m, NULL, &o, NULL, NULL, NULL) > 0;
    free(rules);
    return all;
}

/*
 * Gives the rules from `first` to before `end` but those that name no node. Most name one: asking
 * for all, then for halves, takes few preparations of the model.
 */
static int give_rules(const tool *t, const qsim_model *m, const rule_list *l, size_t first,
                      size_t end, tool *own) {
    int code = EXIT_OK;
    if (first == end)
        return EXIT_OK;
    if (are_nodes(m, l, first, end)) {
        for (size_t i = first; i < end && code == EXIT_OK; i++) {
            text rule = {0};
            text_printf(&rule, "%s=%s", l->patterns[i], l->type);
            code = job_give_option(t, own, "set", rule.data);
            text_free(&rule);
        }
        return code;
    }
    const size_t middle = first + (end - first) / 2;
    if (middle == first)
        return EXIT_OK;
    code = give_rules(t, m, l, first, middle, own);
    return code == EXIT_OK ? give_rules(t, m, l, middle, end, own) : code;
}

int job_give_types(const tool *t, const job_pass *p, const qsim_model *m, tool *own) {
    rule_list l = {.type = p->bits == 4 ? "int4" : "int8"};
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) == QSIM_OK &&
            (p->op_types ? is_listed(p->op_types, n.op_type) : strcmp(n.op_type, "MatMul") == 0))
            add_pattern(&l, &n);
    }
    const int code = give_rules(t, m, &l, 0, l.count, own);
    for (size_t i = 0; i < l.count; i++)
        free(l.patterns[i]);
    free(l.patterns);
    return code == EXIT_OK ? job_give_option(t, own, "set", "*=fp32") : code;
}
