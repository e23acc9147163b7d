/* SPDX-License-Identifier: MIT */
/* Types of passes, and flows of passes. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/*
 * Types of passes. `mode`: the mode of a quantization, or the block of a 4-bit one; `because`: why
 * the pass has no effect here.
 */
static const struct {
    const char *type;
    int action;
    const char *mode, *because;
} types[] = {
    {"OnnxDynamicQuantization", ACTION_QUANTIZE, "dynamic", NULL},
    {"OnnxStaticQuantization", ACTION_QUANTIZE, "static", NULL},
    {"OnnxQuantization", ACTION_QUANTIZE, "static", NULL},
    {"OnnxWeightQuantization", ACTION_QUANTIZE, "weights", NULL},
    {"OnnxMatMul4Quantizer", ACTION_QUANTIZE, "32", NULL},
    {"OnnxBlockWiseRtnQuantization", ACTION_QUANTIZE, "128", NULL},
    {"QsimQuantize", ACTION_QUANTIZE, "static", NULL},
    {"QsimAuto", ACTION_QUANTIZE, "auto", NULL},
    {"QsimSensitivity", ACTION_SENSITIVITY, NULL, NULL},
    {"OrtPerfTuning", ACTION_TUNE, NULL, NULL},
    {"OrtSessionParamsTuning", ACTION_TUNE, NULL, NULL},
    {"OnnxConversion", ACTION_NOTHING, NULL, "the model is ONNX already"},
    {"OnnxModelOptimizer", ACTION_NOTHING, NULL, "qsim does this whenever it loads a model"},
    {"OnnxPeepholeOptimizer", ACTION_NOTHING, NULL, "qsim does this whenever it loads a model"},
    {"OnnxOpVersionConversion", ACTION_NOTHING, NULL,
     "qsim raises the opset where quantization needs it"},
    {"OrtTransformersOptimization", ACTION_NOTHING, NULL,
     "qsim fuses what it runs when it loads the model, and writes standard operators only"},
};

/* Types that are known but not supported. */
static const struct {
    const char *type, *because;
} refused[] = {
    {"ModelBuilder", "it makes language models from PyTorch; qsim starts from an ONNX file"},
    {"OnnxFloatToFloat16", "CPUs gain nothing from it; OnnxDynamicQuantization makes it smaller"},
    {"OrtMixedPrecision", "CPUs gain nothing from float16"},
    {"OnnxHqqQuantization", "OnnxMatMul4Quantizer does the same, by another rounding"},
    {"OnnxBnb4Quantization", "OnnxMatMul4Quantizer does the same, in integers of 4 bits"},
    {"IncDynamicQuantization", "OnnxDynamicQuantization does the same"},
    {"IncStaticQuantization", "OnnxStaticQuantization does the same"},
    {"IncQuantization", "OnnxQuantization does the same"},
    {"QuantizationAwareTraining", "qsim does not train"},
};

/* ---- tuning ---- */

static bool read_tuning(job_reader *r, const config *c, job_pass *pass) {
    static const char *const keys[] = {"type",
                                       "disable_search",
                                       "host",
                                       "evaluator",
                                       "data_config",
                                       "data_dir",
                                       "batch_size",
                                       "device",
                                       "cpu_cores",
                                       "io_bind",
                                       "enable_cuda_graph",
                                       "enable_profiling",
                                       "providers_list",
                                       "provider_options_list",
                                       "execution_provider",
                                       "execution_mode_list",
                                       "opt_level_list",
                                       "trt_fp16_enable",
                                       "intra_thread_num_list",
                                       "inter_thread_num_list",
                                       "extra_session_config",
                                       "disable_force_evaluate_baseline",
                                       NULL};
    if (!job_part(r, c, keys))
        return false;
    pass->threads = job_key(c, "intra_thread_num_list");
    pass->levels = job_key(c, "opt_level_list");
    const config *lists[] = {pass->threads, pass->levels};
    for (size_t i = 0; i < 2; i++) {
        if (lists[i] && !job_is_array(r, lists[i], CONFIG_INT))
            return false;
        for (size_t k = 0; lists[i] && k < lists[i]->count; k++)
            if (lists[i]->items[k].whole < 0 || lists[i]->items[k].whole > 1024)
                return job_wrong(r, &lists[i]->items[k], "not a number of %s",
                                 i ? "a level" : "threads");
    }
    const config *providers = job_key(c, "providers_list");
    for (size_t i = 0; providers && providers->kind == CONFIG_ARRAY && i < providers->count; i++)
        if (providers->items[i].kind == CONFIG_STRING &&
            strncmp(providers->items[i].string, "CPU", 3) != 0)
            return job_unsupported(r, &providers->items[i],
                                   "'%.60s' is not supported, because qsim runs on CPUs",
                                   providers->items[i].string);
    return true;
}

/* ---- passes and flows ---- */

static bool find_type(job_reader *r, const config *c, job_pass *p, const char **mode) {
    const char *names[COUNT(types) + 1];
    for (size_t i = 0; i < COUNT(types); i++) {
        names[i] = types[i].type;
        if (strcmp(types[i].type, p->type) != 0)
            continue;
        p->action = types[i].action;
        p->because = types[i].because;
        *mode = types[i].mode;
        return true;
    }
    names[COUNT(types)] = NULL;
    for (size_t i = 0; i < COUNT(refused); i++)
        if (strcmp(refused[i].type, p->type) == 0)
            return job_unsupported(r, config_get(c, "type"), "%s is not supported, because %s",
                                   p->type, refused[i].because);
    const char *near = closest(p->type, names);
    if (near)
        return job_wrong(r, config_get(c, "type"), "unknown pass '%.60s'; did you mean %s?",
                         p->type, near);
    return job_wrong(r, config_get(c, "type"), "unknown pass '%.60s'", p->type);
}

static bool read_pass(job_reader *r, const config *c, const char *name, job_pass *p) {
    const char *mode = NULL;
    p->name = name;
    if (c->kind != CONFIG_OBJECT)
        return job_wrong(r, c, "%s, not an object", config_kind_name(c));
    if (!job_string(r, c, "type", &p->type))
        return false;
    if (!p->type)
        return job_wrong(r, c, "its type is missing");
    if (!find_type(r, c, p, &mode) || !job_read_data(r, c, &p->data))
        return false;
    if (p->action == ACTION_NOTHING)
        return true;
    if (p->action == ACTION_TUNE)
        return read_tuning(r, c, p);
    if (p->action == ACTION_SENSITIVITY)
        return job_read_parameters(r, c, NULL, p);
    if (*mode >= '0' && *mode <= '9')
        return job_read_narrow(r, c, strtol(mode, NULL, 10), p);
    p->automatic = strcmp(mode, "auto") == 0;
    return job_read_parameters(r, c, p->automatic ? NULL : mode, p);
}

static job_pass *pass_named(job *j, const char *name) {
    for (size_t i = 0; i < j->pass_count; i++)
        if (strcmp(j->passes[i].name, name) == 0)
            return &j->passes[i];
    return NULL;
}

static bool read_flow(job_reader *r, const config *c, job_flow *f) {
    text name = {0};
    if (!job_is_array(r, c, CONFIG_STRING))
        return false;
    f->passes = tool_alloc(c->count, sizeof(*f->passes));
    for (size_t i = 0; i < c->count; i++) {
        job_pass *p = pass_named(r->job, c->items[i].string);
        if (!p) {
            text_free(&name);
            return job_wrong(r, &c->items[i], "there is no pass '%.60s'", c->items[i].string);
        }
        f->passes[f->count++] = *p;
        text_printf(&name, "%s%s", i ? "-" : "", p->name);
    }
    for (char *s = name.data; s && *s; s++)
        if (*s == '/' || (unsigned char)*s < ' ')
            *s = '_';
    f->name = name.data;
    return true;
}

static bool read_flows(job_reader *r) {
    job *j = r->job;
    const config *flows = config_get(&j->root, "pass_flows");
    if (flows && flows->kind != CONFIG_NULL) {
        if (!job_is_array(r, flows, CONFIG_ARRAY))
            return false;
        j->flows = tool_alloc(flows->count, sizeof(*j->flows));
        for (size_t i = 0; i < flows->count; i++)
            if (!read_flow(r, &flows->items[i], &j->flows[j->flow_count++]))
                return false;
    }
    if (j->flow_count > 0)
        return true;
    j->flows = tool_grow(j->flows, 1, sizeof(*j->flows));
    j->flows[0] =
        (job_flow){.passes = tool_alloc(j->pass_count, sizeof(*j->passes)), .count = j->pass_count};
    if (j->pass_count > 0)
        memcpy(j->flows[0].passes, j->passes, j->pass_count * sizeof(*j->passes));
    j->flow_count = 1;
    return true;
}

/* Passes of a flow write into one folder. */
static bool check_recipes(job_reader *r, const config *passes) {
    for (size_t k = 0; k < r->job->flow_count; k++) {
        const job_flow *f = &r->job->flows[k];
        for (size_t i = 0; i < f->count; i++)
            for (size_t n = 0; n < i; n++) {
                const char *file = job_recipe(&f->passes[i]), *other = job_recipe(&f->passes[n]);
                if (file && other && strcmp(file, other) == 0)
                    return job_wrong(r, config_get(passes, f->passes[i].name),
                                     "its recipe has the name of another, '%.60s'", file);
            }
    }
    return true;
}

bool job_read_passes(job_reader *r) {
    const config *passes = config_get(&r->job->root, "passes");
    job *j = r->job;
    if (!passes)
        return read_flows(r);
    if (passes->kind != CONFIG_OBJECT)
        return job_wrong(r, passes, "%s, not an object", config_kind_name(passes));
    j->passes = tool_alloc(passes->count, sizeof(*j->passes));
    for (size_t i = 0; i < passes->count; i++) {
        const config *c = &passes->items[i];
        if (c->kind == CONFIG_ARRAY && c->count == 1) /* the newest form has lists */
            c = &c->items[0];
        if (!read_pass(r, c, passes->items[i].key, &j->passes[j->pass_count++]))
            return false;
    }
    return read_flows(r) && check_recipes(r, passes);
}

void job_free(job *j) {
    for (size_t i = 0; i < j->pass_count; i++)
        job_choices_free(&j->passes[i]);
    for (size_t i = 0; i < j->flow_count; i++) {
        free(j->flows[i].passes);
        free(j->flows[i].name);
    }
    free(j->flows);
    free(j->passes);
    free(j->metrics);
    text_free(&j->notes);
    config_free(&j->root);
}
