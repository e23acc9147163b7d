/* SPDX-License-Identifier: MIT */
/* Reads the options of the command line and of --config. */
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "quantizing.h"

/* Index of an option's value in its choices; 0 without the option. */
static int32_t choice(const tool *t, const char *name, const char *const *choices) {
    const char *value = args_value(&t->args, name);
    for (int32_t i = 0; value && choices[i]; i++)
        if (strcmp(choices[i], value) == 0)
            return i;
    return 0;
}

/* Reads GLOB=int8|int4|int16|fp32; the glob may contain '='. */
static int read_rule(const tool *t, const char *spec, qsim_rule *rule, char **pattern) {
    const char *equals = strrchr(spec, '=');
    if (!equals || equals == spec)
        return tool_usage(t, "for instance --set 'head*=fp32'",
                          "--set '%s' is not GLOB=int8|int4|int16|fp32", spec);
    *pattern = tool_copy(spec);
    (*pattern)[equals - spec] = 0;
    rule->struct_size = sizeof(*rule);
    rule->pattern = *pattern;
    if (strcmp(equals + 1, "int8") == 0)
        rule->action = QSIM_RULE_INT8;
    else if (strcmp(equals + 1, "int4") == 0)
        rule->action = QSIM_RULE_INT4;
    else if (strcmp(equals + 1, "int16") == 0)
        rule->action = QSIM_RULE_INT16;
    else if (strcmp(equals + 1, "fp32") == 0)
        rule->action = QSIM_RULE_FLOAT;
    else
        return tool_usage(t, NULL, "--set '%s': '%s' is none of int8, int4, int16, fp32", spec,
                          equals + 1);
    return EXIT_OK;
}

static int read_rules(const tool *t, quantizing *q) {
    size_t count = 0;
    while (args_repeated(&t->args, "set", count))
        count++;
    q->rules = tool_alloc(count, sizeof(*q->rules));
    q->patterns = tool_alloc(count + 1, sizeof(*q->patterns));
    for (size_t i = 0; i < count; i++) {
        int code = read_rule(t, args_repeated(&t->args, "set", i), &q->rules[i], &q->patterns[i]);
        if (code)
            return code;
    }
    q->options.rules = count ? q->rules : NULL;
    q->options.rule_count = count;
    return EXIT_OK;
}

/* --method auto, which in other modes is about biases alone. */
static bool chooses(const tool *t, const char *name) {
    const char *method = args_value(&t->args, "method");
    return strcmp(name, "method") == 0 && method && strcmp(method, "auto") == 0;
}

/* Options that need calibrated ranges. */
static const char *const of_static[] = {
    "method",       "percentile", "format", "activations", "symmetric",
    "split-curves", "io",         "search", "refine",      "equalize",
    "smooth",       "fallback",   "seed",   "steps",       "max-drop",
};

bool quantize_is_static(const char *name) {
    for (size_t i = 0; i < sizeof(of_static) / sizeof(*of_static); i++)
        if (strcmp(name, of_static[i]) == 0)
            return true;
    return false;
}

/* Refuses options that need calibrated ranges; false: one was given. */
static bool only_static(const tool *t, const char *mode) {
    const char *weights = args_value(&t->args, "weights");
    const bool narrow = weights && strchr(weights, '4');
    for (size_t i = 0; i < sizeof(of_static) / sizeof(*of_static); i++)
        if (args_has(&t->args, of_static[i]) && !(narrow && strcmp(of_static[i], "format") == 0) &&
            !chooses(t, of_static[i])) {
            (void)tool_usage(t, NULL, "--%s goes with --mode static, not with %s", of_static[i],
                             mode);
            return false;
        }
    return true;
}

static bool read_weights(const tool *t, qsim_quantize_options *o) {
    static const char *const names[] = {"int8", "uint8", "int4", "uint4", "float16", NULL};
    static const int32_t types[] = {QSIM_INT8, QSIM_UINT8, QSIM_INT4, QSIM_UINT4, QSIM_FLOAT16};
    int64_t block = 0;
    o->weight_type = types[choice(t, "weights", names)];
    o->weight_scheme = choice(t, "weight-scheme", weight_schemes);
    o->no_gptq = args_has(&t->args, "no-gptq");
    if (!tool_int(t, "block", 0, 256, 0, &block))
        return false;
    o->weight_block = (int32_t)block;
    const bool wide = o->weight_type != QSIM_INT4 && o->weight_type != QSIM_UINT4;
    const bool named = args_has(&t->args, "set") || args_has(&t->args, "recipe");
    return !block || !wide || named ||
           !tool_usage(t, "for instance --mode weights --weights int4 --block 32",
                       "--block goes with --weights int4 or uint4");
}

int quantize_options(const tool *t, quantizing *q) {
    static const char *const formats[] = {"qdq", "qoperator", NULL};
    static const char *const modes[] = {"static", "dynamic", "weights", NULL};
    static const char *const activations[] = {"uint8", "int8", "uint16", "int16", NULL};
    static const int32_t activation_types[] = {QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16};
    qsim_quantize_options *o = &q->options;
    o->struct_size = sizeof(*o);
    o->mode = choice(t, "mode", modes);
    o->per_row = args_has(&t->args, "per-row");
    if (o->per_row && o->mode != QSIM_MODE_DYNAMIC)
        return tool_usage(t, NULL, "--per-row goes with --mode dynamic");
    if (o->mode != QSIM_MODE_STATIC && !only_static(t, modes[o->mode]))
        return EXIT_USAGE;
    o->method = choice(t, "method", range_methods); /* with "auto" the first: minmax */
    q->chooses = chooses(t, "method");
    if (q->chooses && args_has(&t->args, "search"))
        return tool_usage(t, NULL, "--method auto does not go with --search");
    if (args_has(&t->args, "refine") && args_has(&t->args, "no-bias-correction"))
        return tool_usage(t, NULL, "--refine does not go with --no-bias-correction");
    o->format = choice(t, "format", formats);
    o->activation_type = activation_types[choice(t, "activations", activations)];
    if (!read_weights(t, o))
        return EXIT_USAGE;
    o->activation_symmetric = args_has(&t->args, "symmetric");
    o->split_curves = args_has(&t->args, "split-curves");
    o->no_bias_correction = args_has(&t->args, "no-bias-correction");
    const bool pairs = args_has(&t->args, "reduce-pairs");
    o->reduce_range = pairs ? QSIM_REDUCE_PAIRS : args_has(&t->args, "reduce-range");
    if (pairs && args_has(&t->args, "reduce-range"))
        return tool_usage(t, NULL, "--reduce-pairs does not go with --reduce-range");
    q->judges = o->mode == QSIM_MODE_DYNAMIC && !q->chooses && !o->no_bias_correction &&
                !args_has(&t->args, "recipe");
    if (!tool_number(t, "percentile", 50, 100, 0, &o->percentile))
        return EXIT_USAGE;
    const char *search = args_value(&t->args, "search");
    if (search && strcmp(search, "greedy") != 0 && !args_has(&t->args, "method"))
        o->percentile = 0; /* start of the annealing */
    if (o->percentile > 0 && !args_has(&t->args, "method"))
        o->method = QSIM_METHOD_PERCENTILE;
    if (o->percentile > 0 && o->method != QSIM_METHOD_PERCENTILE)
        return tool_usage(t, NULL, "--percentile goes with --method percentile");
    return read_rules(t, q);
}

void quantize_options_free(quantizing *q) {
    for (size_t i = 0; q->patterns && q->patterns[i]; i++)
        free(q->patterns[i]);
    free(q->patterns);
    free(q->rules);
}

void quantize_close(quantizing *q) {
    dataset_close(q->data);
    qsim_calibration_free(q->calibration);
    qsim_model_free(q->result);
    qsim_model_free(q->folded);
    qsim_model_free(q->model);
    quantize_layers_free(q);
    quantize_attempts_free(q);
    qsim_recipe_free(q->recipe);
    qsim_recipe_free(q->decided);
    quantize_options_free(q);
}

/* The name with this word, or else the one most like it, between its slashes; NULL: none. */
static const char *name_with(const char *word, const char *const *names) {
    size_t count = 0, n = 0;
    const char *found = NULL;
    while (names[count])
        count++;
    char **parts = tool_alloc(count + 1, sizeof(*parts));
    for (size_t i = 0; i < count; i++) {
        const char *at = names[i];
        while (!found && *at) {
            at += strspn(at, "/");
            const size_t size = strcspn(at, "/");
            found = size == strlen(word) && memcmp(at, word, size) == 0 ? names[i] : NULL;
            at += size;
        }
        parts[i] = tool_copy(names[i] + strspn(names[i], "/"));
        parts[i][strcspn(parts[i], "/")] = 0;
    }
    const char *near = found ? NULL : closest(word, (const char *const *)parts);
    for (; !found && near && n < count; n++)
        found = parts[n] == near ? names[n] : NULL;
    for (size_t i = 0; i < count; i++)
        free(parts[i]);
    free(parts);
    return found;
}

int quantize_error(const tool *t, const quantizing *q, qsim_error *e) {
    const char *wanted = NULL;
    for (size_t i = 0; i < q->options.rule_count && e->code == QSIM_E_NOT_FOUND; i++)
        if (strstr(e->message, q->rules[i].pattern))
            wanted = q->rules[i].pattern;
    if (!wanted || e->hint[0])
        return tool_error(t, q->file, e);
    int32_t count = qsim_model_node_count(q->model);
    const char **names = tool_alloc(2 * (size_t)(count > 0 ? count : 0) + 1, sizeof(*names));
    size_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        qsim_node_info node = {.struct_size = sizeof(node)};
        if (qsim_model_node(q->model, i, &node) == QSIM_OK) {
            names[n++] = node.name[0] || !node.output_count ? node.name : node.outputs[0];
            names[n++] = node.op_type;
        }
    }
    char *plain = tool_copy(wanted);
    plain[strcspn(plain, "*?[")] = 0;
    const char *near = plain[0] ? closest(plain, names) : NULL;
    near = near || !plain[0] ? near : name_with(plain, names);
    snprintf(e->hint, sizeof(e->hint),
             "%s%.80s%s--dry-run lists names; operators (Conv) match, too",
             near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
    free(plain);
    free(names);
    return tool_error(t, q->file, e);
}
