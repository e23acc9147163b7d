/* SPDX-License-Identifier: MIT */
/* The parameters of a quantization pass as options of qsim quantize. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define ANY          "*"
#define ASYMMETRIC   "weight-asymmetric" /* joined with weight-scheme */
#define METHODS      "MinMax=minmax|Entropy=entropy|Percentile=percentile|MSE=mse"

/* Olive's parameters and qsim's options: values as "OLIVE=QSIM|…"; ANY: the same value; an empty
 * QSIM: no option. */
static const struct {
    const char *key, *option, *values;
} parameters[] = {
    {"quant_mode", "mode", "static=static|dynamic=dynamic"},
    {"weight_type", "weights",
     "QInt8=int8|int8=int8|QUInt8=uint8|uint8=uint8|QInt4=int4|int4=int4|QUInt4=uint4|uint4=uint4"},
    {"activation_type", "activations",
     "QInt8=int8|int8=int8|QUInt8=uint8|uint8=uint8|QUInt16=uint16|QInt16=int16"},
    {"quant_format", "format", "QDQ=qdq|QOperator=qoperator"},
    {"calibrate_method", "method", METHODS},
    {"calibration_method", "method", METHODS},
    {"percentile", "percentile", ANY},
    {"CalibPercentile", "percentile", ANY},
    {"per_channel", "weight-scheme", "true=channel|false=tensor"},
    {"reduce_range", "reduce-range", "true=!|false="},
    {"reduce_pairs", "reduce-pairs", "true=!|false="},
    {"ActivationSymmetric", "symmetric", "true=!|false="},
    {"activation_symmetric", "symmetric", "true=!|false="},
    {"WeightSymmetric", ASYMMETRIC, "true=|false=!"},
    {"weight_symmetric", ASYMMETRIC, "true=|false=!"},
    {"bias_correction", "no-bias-correction", "true=|false=!"},
    {"gptq", "no-gptq", "true=|false=!"},
};

/* Parameters without effect here, and why. */
static const struct {
    const char *key, *because;
} unused[] = {
    {"quant_preprocess", "qsim always prepares the model"},
    {"use_external_data_format", "qsim writes one file with all constants, up to 2 GB"},
    {"save_as_external_data", "qsim writes one file with all constants, up to 2 GB"},
    {"all_tensors_to_one_file", "qsim writes one file with all constants, up to 2 GB"},
    {"external_data_name", "qsim writes one file with all constants, up to 2 GB"},
    {"size_threshold", "qsim writes one file with all constants, up to 2 GB"},
    {"convert_attribute", "qsim writes one file with all constants, up to 2 GB"},
    {"MatMulConstBOnly", "products of two activations stay float in this mode"},
    {"EnableSubgraph", "subgraphs stay float"},
    {"ForceQuantizeNoInputCheck", "movement shares the scale of what it moves"},
    {"AddQDQPairToWeight", "weights are stored as integers"},
    {"DedicatedQDQPair", "pairs are shared"},
    {"QuantizeBias", "biases are int32"},
    {"append_first_op_types_to_quantize_list", "op_types_to_quantize says it all"},
    {"prepare_qnn_config", "it is for other devices"},
    {"qnn_extra_options", "it is for other devices"},
};

typedef struct pass_reader {
    job_reader *r;
    job_pass *pass;
} pass_reader;

/* Adds qsim's value for a name in "OLIVE=QSIM|…"; `all`: every 8-bit value. False: unknown name. */
static bool map_name(job_choice *c, const char *pairs, const char *name, bool all) {
    bool found = false;
    for (const char *p = pairs; p; p = strchr(p, '|')) {
        p += *p == '|';
        size_t left = strcspn(p, "="), right = strcspn(p + left + 1, "|");
        const char *end = p + left + 1 + right;
        const bool other = right > 2 && (end[-1] == '4' || memcmp(end - 2, "16", 2) == 0);
        if (all ? other : strlen(name) != left || memcmp(p, name, left) != 0)
            continue;
        char ours[32];
        snprintf(ours, sizeof(ours), "%.*s", (int)right, p + left + 1);
        job_choice_add(c, !*ours ? NULL : *ours == '!' ? "" : ours);
        found = true;
    }
    return found;
}

/* Lists Olive's names: "QInt8, int8, QUInt8". */
static void list_names(const char *pairs, text *out) {
    const char *p = pairs;
    do {
        text_puts(out, out->size ? ", " : "");
        text_add(out, p, strcspn(p, "="));
        p += strcspn(p, "|");
    } while (*p++);
}

static bool read_value(pass_reader *p, job_choice *c, const char *pairs, const config *v) {
    char name[64];
    text names = {0};
    if (strcmp(pairs, ANY) == 0) {
        if (v->kind != CONFIG_INT && v->kind != CONFIG_REAL)
            return job_wrong(p->r, v, "%s, not a number", config_kind_name(v));
        if (!(v->number > 0 && v->number <= 100))
            return job_wrong(p->r, v, "not a percentile from 0 to 100");
        snprintf(name, sizeof(name), "%.17g", v->number);
        job_choice_add(c, name);
        return true;
    }
    if (v->kind == CONFIG_BOOL)
        snprintf(name, sizeof(name), "%s", v->truth ? "true" : "false");
    else if (v->kind == CONFIG_STRING)
        snprintf(name, sizeof(name), "%s", v->string);
    else
        name[0] = 0;
    list_names(pairs, &names);
    bool all = v->kind == CONFIG_STRING && strcmp(name, "SEARCHABLE_VALUES") == 0;
    bool good = true;
    if (all && !p->r->job->search)
        good = job_wrong(p->r, v, "searchable values need a search_strategy");
    else if (v->kind != CONFIG_STRING && v->kind != CONFIG_BOOL)
        good = job_wrong(p->r, v, "%s, not one of %s", config_kind_name(v), names.data);
    else if (!map_name(c, pairs, name, all))
        good = job_unsupported(p->r, v, "'%.60s' is not supported, because there is %s only", name,
                               names.data);
    text_free(&names);
    return good;
}

static bool is_default(const config *v) {
    return v->kind == CONFIG_NULL ||
           (v->kind == CONFIG_STRING &&
            (strcmp(v->string, "DEFAULT") == 0 || strcmp(v->string, "DEFAULT_VALUE") == 0));
}

static bool read_parameter(pass_reader *p, size_t k, const config *v) {
    job_choice *c;
    if (is_default(v))
        return true;
    c = job_choice_of(p->pass, parameters[k].option);
    if (v->kind != CONFIG_ARRAY)
        return read_value(p, c, parameters[k].values, v);
    if (!p->r->job->search)
        return job_wrong(p->r, v, "several values need a search_strategy");
    if (v->count == 0)
        return job_wrong(p->r, v, "no values");
    for (size_t i = 0; i < v->count; i++)
        if (!read_value(p, c, parameters[k].values, &v->items[i]))
            return false;
    return true;
}

static bool read_key(pass_reader *p, const config *v);

static bool read_keys(pass_reader *p, const config *c) {
    if (c->kind != CONFIG_OBJECT)
        return job_wrong(p->r, c, "%s, not an object", config_kind_name(c));
    for (size_t i = 0; i < c->count; i++)
        if (!read_key(p, &c->items[i]))
            return false;
    return true;
}

/* Does the pass's verb have the option of a parameter? */
static bool is_option_of(const job_pass *p, size_t parameter) {
    const char *name = parameters[parameter].option;
    return args_option(job_verb(p), strcmp(name, ASYMMETRIC) == 0 ? "weight-scheme" : name);
}

static bool unknown_key(pass_reader *p, const config *v) {
    const char *names[128];
    size_t n = job_option_names(p->pass, names, 48);
    for (size_t i = 0; i < COUNT(parameters); i++)
        if (is_option_of(p->pass, i))
            names[n++] = parameters[i].key;
    for (size_t i = 0; i < COUNT(unused); i++)
        names[n++] = unused[i].key;
    names[n++] = "nodes_to_exclude";
    names[n++] = "nodes_to_quantize";
    names[n++] = "op_types_to_quantize";
    names[n++] = "extra_options";
    names[n++] = "data_config";
    names[n] = NULL;
    const char *near = closest(v->key, names);
    return near ? job_wrong(p->r, v, "unknown key; did you mean %s?", near)
                : job_wrong(p->r, v, "unknown key");
}

static bool is_of_pass(const char *key) {
    static const char *const keys[] = {"type",        "config",      "disable_search",
                                       "host",        "evaluator",   "clean_run_cache",
                                       "output_name", "data_config", "data_dir",
                                       "batch_size",  NULL};
    size_t i = 0;
    while (keys[i] && strcmp(keys[i], key) != 0)
        i++;
    return keys[i] != NULL;
}

static bool read_key(pass_reader *p, const config *v) {
    static const char *const python[] = {"user_script", "script_dir", "dataloader_func",
                                         "dataloader_func_kwargs", NULL};
    for (size_t i = 0; i < COUNT(parameters); i++)
        if (strcmp(parameters[i].key, v->key) == 0 && is_option_of(p->pass, i))
            return read_parameter(p, i, v);
    for (size_t i = 0; i < COUNT(unused); i++)
        if (strcmp(unused[i].key, v->key) == 0) {
            job_note(p->r, v, unused[i].because);
            return true;
        }
    for (size_t i = 0; python[i]; i++)
        if (strcmp(python[i], v->key) == 0 && v->kind != CONFIG_NULL)
            return job_unsupported(p->r, v,
                                   "not supported, because qsim runs no Python: store the arrays "
                                   "(.npy, .npz) and name them in data_dir");
    if (is_default(v) || is_of_pass(v->key))
        return true;
    if (strcmp(v->key, "nodes_to_exclude") == 0)
        return true; /* added after all others */
    if (strcmp(v->key, "nodes_to_quantize") == 0)
        return v->kind != CONFIG_ARRAY || v->count == 0 || job_rules(p->r, p->pass, v, "int8");
    if (strcmp(v->key, "op_types_to_quantize") == 0 && p->pass->action == ACTION_QUANTIZE) {
        p->pass->op_types = v;
        return job_is_array(p->r, v, CONFIG_STRING);
    }
    if (strcmp(v->key, "extra_options") == 0)
        return read_keys(p, v);
    const option *o = job_option(p->pass, v->key);
    return o ? job_read_option(p->r, p->pass, o, v) : unknown_key(p, v);
}

/* The option that a key stands for; NULL: none. */
static const char *option_of(const job_pass *pass, const char *key) {
    for (size_t i = 0; i < COUNT(parameters); i++)
        if (strcmp(parameters[i].key, key) == 0)
            return parameters[i].option;
    const option *o = job_option(pass, key);
    return o ? o->name : NULL;
}

static const char *only_value(job_pass *pass, const char *name) {
    const job_choice *c = job_choice_of(pass, name);
    return c->count == 1 ? c->values[0] : NULL;
}

/* Notes what the only mode of the pass does not use. */
static void note_unused(job_reader *r, const config *c, job_pass *pass, const char *mode) {
    const char *method = only_value(pass, "method"), *weights = only_value(pass, "weights");
    for (size_t i = 0; c && c->kind == CONFIG_OBJECT && i < c->count; i++) {
        const char *name = option_of(pass, c->items[i].key);
        if (name && !is_default(&c->items[i]) && !job_applies(mode, method, weights, name))
            job_note(r, &c->items[i],
                     strcmp(name, "per-row") == 0  ? "the mode is not dynamic"
                     : strcmp(mode, "static") == 0 ? "the method is not percentile"
                                                   : "the mode is not static");
    }
}

/* One value of each option, unless there is a search. */
static bool check_choices(job_reader *r, const config *c, const job_pass *pass) {
    for (size_t i = 0; i < pass->choice_count; i++)
        if (pass->choices[i].count > 1 && !r->job->search)
            return job_wrong(r, c, "several values for --%s need a search_strategy",
                             pass->choices[i].option);
    return true;
}

bool job_read_parameters(job_reader *r, const config *c, const char *mode, job_pass *pass) {
    pass_reader p = {.r = r, .pass = pass};
    const config *inner = config_get(c, "config"), *nodes = job_key(c, "nodes_to_quantize");
    if (mode)
        (void)job_choice_of(pass, "mode"); /* so that it comes first in commands */
    if (nodes && nodes->kind == CONFIG_ARRAY && nodes->count > 0)
        job_choice_add(job_choice_of(pass, "set"),
                       "*=fp32"); /* all nodes stay float but those of later rules */
    if (!read_keys(&p, c) || (inner && inner->kind != CONFIG_NULL && !read_keys(&p, inner)) ||
        !job_exclude(r, c, pass))
        return false;
    job_choices_join(pass);
    if (!mode)
        return check_choices(r, c, pass);
    job_choice *own = job_choice_of(pass, "mode");
    if (own->count == 0)
        job_choice_add(own, mode);
    const char *only = only_value(pass, "mode");
    if (only) {
        note_unused(r, c, pass, only);
        note_unused(r, inner, pass, only);
    }
    return check_choices(r, c, pass);
}
