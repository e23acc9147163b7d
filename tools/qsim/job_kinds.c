/* SPDX-License-Identifier: MIT */
/* Parameters of Olive's 4-bit passes. */
#include <string.h>

#include "job.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void choose(job_pass *pass, const char *name, const char *value) {
    job_choice_add(job_choice_of(pass, name), value);
}

/* Writes a glob that matches this name only. */
static void exact_glob(const char *name, text *out) {
    for (; *name; name++) {
        if (strchr("*?[\\", *name))
            text_puts(out, "\\");
        text_add(out, name, 1);
    }
}

bool job_rules(job_reader *r, job_pass *pass, const config *v, const char *action) {
    if (!job_is_array(r, v, CONFIG_STRING))
        return false;
    for (size_t i = 0; i < v->count; i++) {
        text rule = {0};
        exact_glob(v->items[i].string, &rule);
        text_printf(&rule, "=%s", action);
        pass->choices = tool_grow(pass->choices, pass->choice_count + 1, sizeof(*pass->choices));
        job_choice *c = &pass->choices[pass->choice_count++];
        *c = (job_choice){.option = "set", .values = tool_alloc(1, sizeof(char *)), .count = 1};
        c->values[0] = rule.data;
    }
    return true;
}

bool job_exclude(job_reader *r, const config *c, job_pass *pass) {
    const config *excluded = job_key(c, "nodes_to_exclude");
    return !excluded || job_rules(r, pass, excluded, "fp32");
}

/* ---- 4 bits ---- */

static bool one_of(job_reader *r, const config *c, const char *key, const char *value,
                   const char *const *words) {
    char known[128] = "";
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(words[i], value) == 0)
            return true;
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "",
                 words[i]);
    }
    return job_unsupported(r, job_key(c, key), "'%.60s' is not supported, because there is %s only",
                           value, known);
}

static bool read_rounding(job_reader *r, const config *c, job_pass *pass) {
    static const char *const words[] = {"DEFAULT", "RTN", "GPTQ", NULL};
    const char *algorithm = "DEFAULT";
    if (!job_string(r, c, "algorithm", &algorithm) || !one_of(r, c, "algorithm", algorithm, words))
        return false;
    if (strcmp(algorithm, "GPTQ") != 0)
        choose(pass, "no-gptq", "");
    else if (!pass->data.spec)
        return job_wrong(r, job_key(c, "algorithm"), "GPTQ needs a data_config");
    return true;
}

static const char *const narrow_keys[] = {"type",
                                          "disable_search",
                                          "host",
                                          "evaluator",
                                          "data_config",
                                          "data_dir",
                                          "batch_size",
                                          "bits",
                                          "block_size",
                                          "axis",
                                          "quant_axes",
                                          "is_symmetric",
                                          "accuracy_level",
                                          "algorithm",
                                          "quant_format",
                                          "nodes_to_exclude",
                                          "op_types_to_quantize",
                                          "save_as_external_data",
                                          "all_tensors_to_one_file",
                                          "external_data_name",
                                          "size_threshold",
                                          "convert_attribute",
                                          NULL};

bool job_read_narrow(job_reader *r, const config *c, int64_t block, job_pass *pass) {
    static const char *const formats[] = {"QOperator", "QDQ", NULL};
    const char *format = "QOperator";
    int64_t bits = 4, level = 0;
    bool symmetric = true;
    char size[24];
    if (!job_part(r, c, narrow_keys) || !job_int(r, c, "bits", 1, &bits) ||
        !job_int(r, c, "block_size", 1, &block) || !job_int(r, c, "accuracy_level", 0, &level) ||
        !job_bool(r, c, "is_symmetric", &symmetric) || !job_string(r, c, "quant_format", &format) ||
        !one_of(r, c, "quant_format", format, formats))
        return false;
    if (bits != 4)
        return job_unsupported(r, job_key(c, "bits"),
                               "not supported, because blocks are of 4 bits here");
    if (block < 16 || block > 256 || (block & (block - 1)) != 0)
        return job_unsupported(r, job_key(c, "block_size"),
                               "not supported, because blocks have 16, 32, 64, 128 or 256 weights");
    if (level != 0 && level != 4)
        return job_unsupported(r, job_key(c, "accuracy_level"),
                               "not supported, because there is 0 (floats) and 4 (integers) only");
    const char *const axes[] = {"axis", "quant_axes"};
    for (size_t i = 0; i < COUNT(axes); i++)
        if (job_key(c, axes[i]))
            job_note(r, job_key(c, axes[i]), "blocks lie along the sums");
    snprintf(size, sizeof(size), "%lld", (long long)block);
    const bool integers = level == 4 && strcmp(format, "QOperator") == 0;
    choose(pass, "mode", integers ? "dynamic" : "weights");
    choose(pass, "weights", symmetric ? "int4" : "uint4");
    choose(pass, "block", size);
    if (!symmetric)
        choose(pass, "weight-scheme", "channel-asymmetric");
    if (!integers)
        choose(pass, "format", strcmp(format, "QDQ") == 0 ? "qdq" : "qoperator");
    pass->bits = 4;
    pass->op_types = job_key(c, "op_types_to_quantize");
    if (pass->op_types && !job_is_array(r, pass->op_types, CONFIG_STRING))
        return false;
    return read_rounding(r, c, pass) && job_exclude(r, c, pass);
}
