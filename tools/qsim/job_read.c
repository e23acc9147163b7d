/* SPDX-License-Identifier: MIT */
/* Reads a run configuration, but for its passes and evaluators. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static const char *const engine_keys[] = {"search_strategy",
                                          "evaluator",
                                          "host",
                                          "target",
                                          "cache_dir",
                                          "cache_config",
                                          "output_dir",
                                          "output_name",
                                          "packaging_config",
                                          "evaluate_input_model",
                                          "clean_cache",
                                          "clean_run_cache",
                                          "clean_evaluation_cache",
                                          "plot_pareto_frontier",
                                          "no_artifacts",
                                          "log_severity_level",
                                          "log_to_file",
                                          "ort_log_severity_level",
                                          "ort_py_log_severity_level",
                                          "execution_providers",
                                          NULL};

/* ---- input_model ---- */

static bool read_model(job_reader *r) {
    static const char *const keys[] = {"type",      "model_path",       "onnx_file_name",
                                       "name",      "is_file",          "inference_settings",
                                       "io_config", "model_attributes", NULL};
    const config *model = config_get(&r->job->root, "input_model");
    const char *type = NULL, *path = NULL;
    if (!model)
        return job_wrong(r, &r->job->root, "input_model is missing");
    if (model->kind != CONFIG_OBJECT)
        return job_wrong(r, model, "%s, not an object", config_kind_name(model));
    if (!job_string(r, model, "type", &type))
        return false;
    if (!type)
        return job_wrong(r, model, "its type is missing: OnnxModel");
    if (strcmp(type, "ONNXModel") != 0 && strcmp(type, "OnnxModel") != 0 &&
        strcmp(type, "onnxmodel") != 0)
        return job_unsupported(r, config_get(model, "type"),
                               "'%.60s' is not supported, because qsim starts from an ONNX file: "
                               "export the model first (torch.onnx.export), then type OnnxModel",
                               type);
    if (!job_part(r, model, keys) || !job_string(r, model, "model_path", &path))
        return false;
    if (!path || !*path)
        return job_wrong(r, model, "model_path is missing");
    r->job->model = path;
    return true;
}

/* ---- systems ---- */

static bool check_providers(job_reader *r, const config *list) {
    if (list->kind != CONFIG_ARRAY)
        return job_wrong(r, list, "%s, not an array", config_kind_name(list));
    for (size_t i = 0; i < list->count; i++) {
        const config *c = &list->items[i];
        if (c->kind != CONFIG_STRING)
            return job_wrong(r, c, "%s, not a string", config_kind_name(c));
        if (strcmp(c->string, "CPUExecutionProvider") != 0)
            return job_unsupported(r, c,
                                   "'%.60s' is not supported, because qsim runs on CPUs: "
                                   "CPUExecutionProvider",
                                   c->string);
    }
    return true;
}

static bool check_accelerator(job_reader *r, const config *a) {
    static const char *const keys[] = {"device", "execution_providers", "memory", NULL};
    const config *device = a;
    if (a->kind == CONFIG_OBJECT) {
        const config *providers = config_get(a, "execution_providers");
        if (!job_keys(r, a, keys) || (providers && !check_providers(r, providers)))
            return false;
        device = config_get(a, "device");
    }
    if (device && device->kind != CONFIG_STRING)
        return job_wrong(r, device, "%s, not the name of a device", config_kind_name(device));
    if (device && strcmp(device->string, "cpu") != 0 && strcmp(device->string, "CPU") != 0)
        return job_unsupported(
            r, device, "'%.60s' is not supported, because qsim runs on CPUs: cpu", device->string);
    return true;
}

static bool check_system(job_reader *r, const config *s) {
    static const char *const keys[] = {"type", "accelerators", "hf_token", NULL};
    const char *type = NULL;
    if (!job_part(r, s, keys) || !job_string(r, s, "type", &type))
        return false;
    if (!type || strcmp(type, "LocalSystem") != 0)
        return job_unsupported(r, type ? config_get(s, "type") : s,
                               "'%.60s' is not supported, because qsim runs where it is started: "
                               "LocalSystem",
                               type ? type : "no type");
    const config *list = job_key(s, "accelerators");
    if (list && list->kind != CONFIG_ARRAY)
        return job_wrong(r, list, "%s, not an array", config_kind_name(list));
    for (size_t i = 0; list && i < list->count; i++)
        if (!check_accelerator(r, &list->items[i]))
            return false;
    return true;
}

/* Checks a system, given by name or in place. */
static bool check_system_name(job_reader *r, const config *c) {
    if (!c)
        return true;
    if (c->kind == CONFIG_OBJECT)
        return check_system(r, c);
    if (c->kind != CONFIG_STRING)
        return job_wrong(r, c, "%s, not the name of a system", config_kind_name(c));
    if (config_get(config_get(&r->job->root, "systems"), c->string))
        return true;
    return job_wrong(r, c, "there is no system '%.60s' in systems", c->string);
}

static bool read_systems(job_reader *r) {
    const config *systems = config_get(&r->job->root, "systems");
    if (systems && systems->kind != CONFIG_OBJECT)
        return job_wrong(r, systems, "%s, not an object", config_kind_name(systems));
    for (size_t i = 0; systems && i < systems->count; i++)
        if (!check_system(r, &systems->items[i]))
            return false;
    return true;
}

/* ---- engine ---- */

static const config *setting(const job *j, const char *key) {
    const config *c = job_key(config_get(&j->root, "engine"), key);
    return c ? c : job_key(&j->root, key);
}

static bool read_packaging(job_reader *r, const config *c) {
    static const char *const keys[] = {"type",
                                       "name",
                                       "include_runtime_packages",
                                       "include_sample_code",
                                       "export_in_mlflow_format",
                                       NULL};
    const char *type = "Zipfile";
    if (c && c->kind == CONFIG_ARRAY && c->count == 1)
        c = &c->items[0];
    if (!c)
        return true;
    if (!job_part(r, c, keys) || !job_string(r, c, "type", &type))
        return false;
    if (strcmp(type, "Zipfile") != 0)
        return job_unsupported(r, job_key(c, "type"),
                               "'%.60s' is not supported, because qsim writes files only: Zipfile",
                               type);
    r->job->package = "OutputModels";
    if (!job_string(r, c, "name", &r->job->package))
        return false;
    if (!*r->job->package || strchr(r->job->package, '/') || r->job->package[0] == '.')
        return job_wrong(r, job_key(c, "name"), "'%.60s' is not a file name", r->job->package);
    return true;
}

static bool read_engine(job_reader *r) {
    static const char *const unused[] = {"cache_dir", "cache_config", "plot_pareto_frontier",
                                         "log_to_file", NULL};
    job *j = r->job;
    const config *keys = config_get(&j->root, "engine");
    if (keys && !job_part(r, keys, engine_keys))
        return false;
    const config *holders[] = {&j->root, keys};
    assert(j);
    for (size_t i = 0; i < 2; i++)
        if (holders[i] && (!job_string(r, holders[i], "output_dir", &j->output_dir) ||
                           !job_string(r, holders[i], "output_name", &j->output_name) ||
                           !job_bool(r, holders[i], "evaluate_input_model", &j->evaluate_input)))
            return false;
    if (j->output_name && (strchr(j->output_name, '/') || j->output_name[0] == '.'))
        return job_wrong(r, setting(j, "output_name"), "'%.60s' is not a folder name",
                         j->output_name);
    for (size_t i = 0; unused[i]; i++)
        if (setting(j, unused[i]))
            job_note(r, setting(j, unused[i]),
                     strncmp(unused[i], "cache", 5) == 0 ? "a run takes seconds: nothing is cached"
                                                         : "the table at the end shows it");
    return check_system_name(r, setting(j, "host")) && check_system_name(r, setting(j, "target")) &&
           (!setting(j, "execution_providers") ||
            check_providers(r, setting(j, "execution_providers"))) &&
           job_read_search(r, setting(j, "search_strategy")) &&
           read_packaging(r, setting(j, "packaging_config"));
}

static bool read_all(job_reader *r) {
    static const char *const own[] = {"input_model", "systems", "data_configs",   "data_root",
                                      "evaluators",  "passes",  "pass_flows",     "engine",
                                      "workflow_id", "verbose", "azureml_client", NULL};
    const char *names[64];
    size_t n = 0;
    for (size_t i = 0; own[i]; i++)
        names[n++] = own[i];
    for (size_t i = 0; engine_keys[i]; i++)
        names[n++] = engine_keys[i];
    names[n] = NULL;
    if (!job_keys(r, &r->job->root, names) || !read_model(r) || !read_systems(r) ||
        !job_read_data_configs(r) || !read_engine(r))
        return false;
    return job_read_passes(r) && job_read_evaluator(r, setting(r->job, "evaluator"));
}

bool job_read(job *j, const void *data, size_t size, job_trouble *trouble) {
    job_reader r = {.job = j, .trouble = trouble};
    if (!config_parse(data, size, &j->root, &trouble->message)) {
        trouble->code = QSIM_E_FORMAT;
        return false;
    }
    return read_all(&r);
}
