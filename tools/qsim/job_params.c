/* SPDX-License-Identifier: MIT */
/* The parameters of a quantization pass as options of qsim quantize. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define ANY          "*"

/* Olive's parameters and qsim's options: values as "OLIVE=QSIM|…"; ANY: the same value; an empty
 * QSIM: no option. */
static const struct {
    const char *key, *option, *values;
} parameters[] = {
    {"quant_mode", "mode", "static=static|dynamic=dynamic"},
    {"weight_type", "weights", "QInt8=int8|int8=int8|QUInt8=uint8|uint8=uint8"},
    {"activation_type", "activations",
     "QInt8=int8|int8=int8|QUInt8=uint8|uint8=uint8|QUInt16=uint16|QInt16=int16"},
    {"quant_format", "format", "QDQ=qdq|QOperator=qoperator"},
    {"calibrate_method", "method", "MinMax=minmax|Entropy=entropy|Percentile=percentile|MSE=mse"},
    {"calibration_method", "method", "MinMax=minmax|Entropy=entropy|Percentile=percentile|MSE=mse"},
    {"percentile", "percentile", ANY},
    {"CalibPercentile", "percentile", ANY},
    {"per_channel", "weight-scheme", "true=channel|false=tensor"},
    {"reduce_range", "reduce-range", "true=!|false="},
    {"ActivationSymmetric", "symmetric", "true=!|false="},
    {"activation_symmetric", "symmetric", "true=!|false="},
    {"WeightSymmetric", "weight-asymmetric", "true=|false=!"},
    {"weight_symmetric", "weight-asymmetric", "true=|false=!"},
    {"per_row", "per-row", "true=!|false="},
    {"bias_correction", "no-bias-correction", "true=|false=!"},
    {"equalize", "equalize", "true=!|false="},
    {"smooth", "smooth", "true=!|false="},
    {"refine", "refine", "true=!|false="},
    {"search", "search", "greedy=greedy|anneal=anneal|both=both"},
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
        const bool wide = right > 2 && memcmp(p + left + right - 1, "16", 2) == 0;
        if (all ? wide : strlen(name) != left || memcmp(p, name, left) != 0)
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
    for (const char *p = pairs; p; p = strchr(p, '|')) {
        p += *p == '|';
        text_printf(out, "%s%.*s", out->size ? ", " : "", (int)strcspn(p, "="), p);
    }
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

static bool unknown_key(pass_reader *p, const config *v) {
    const char *names[64];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(parameters); i++)
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
        if (strcmp(parameters[i].key, v->key) == 0)
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
    if (strcmp(v->key, "op_types_to_quantize") == 0) {
        p->pass->op_types = v;
        return job_is_array(p->r, v, CONFIG_STRING);
    }
    if (strcmp(v->key, "extra_options") == 0)
        return read_keys(p, v);
    return unknown_key(p, v);
}

/* Notes the parameters of calibrated ranges, which other modes do not use. */
static void note_static(job_reader *r, const config *c) {
    static const char *const names[] = {"method", "percentile", "format", "activations",
                                        "symmetric"};
    for (size_t i = 0; i < COUNT(parameters); i++)
        for (size_t k = 0; k < COUNT(names); k++) {
            const config *v = job_key(c, parameters[i].key);
            if (v && strcmp(parameters[i].option, names[k]) == 0)
                job_note(r, v, "the mode is not static");
        }
}

bool job_read_parameters(job_reader *r, const config *c, const char *mode, job_pass *pass) {
    pass_reader p = {.r = r, .pass = pass};
    const config *inner = config_get(c, "config"), *nodes = job_key(c, "nodes_to_quantize");
    (void)job_choice_of(pass, "mode"); /* so that it comes first in commands */
    if (nodes && nodes->kind == CONFIG_ARRAY && nodes->count > 0)
        job_choice_add(job_choice_of(pass, "set"),
                       "*=fp32"); /* all nodes stay float but those of later rules */
    if (!read_keys(&p, c) || (inner && inner->kind != CONFIG_NULL && !read_keys(&p, inner)) ||
        !job_exclude(r, c, pass))
        return false;
    job_choices_join(pass);
    job_choice *own = job_choice_of(pass, "mode");
    if (own->count == 0)
        job_choice_add(own, mode);
    if (own->count == 1 && strcmp(own->values[0], "static") != 0)
        note_static(r, c);
    return true;
}
