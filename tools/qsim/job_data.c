/* SPDX-License-Identifier: MIT */
/* The data configurations and the search strategy of a run configuration. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

static bool read_shapes(job_reader *r, const config *c, job_data *d) {
    d->shapes = c;
    return c->kind == CONFIG_STRING || job_is_array(r, c, CONFIG_STRING);
}

const char *job_shape(const job_data *d, size_t k) {
    const config *c = d->shapes;
    if (!c || c->kind == CONFIG_STRING)
        return c && k == 0 ? c->string : NULL;
    return k < c->count ? c->items[k].string : NULL;
}

/* Notes keys that only other tools need. */
static bool note_unused(job_reader *r, const config *c) {
    static const char *const told[] = {"input_shapes", "input_names", "input_types", NULL};
    bool shuffle = false;
    for (size_t i = 0; told[i]; i++)
        if (job_key(c, told[i]))
            job_note(r, job_key(c, told[i]), "the model tells its inputs; shape sets free sizes");
    if (!job_bool(r, c, "shuffle", &shuffle))
        return false;
    if (shuffle)
        job_note(r, job_key(c, "shuffle"), "samples are read in the order of the data");
    return true;
}

static bool read_data_object(job_reader *r, const config *c, job_data *d) {
    static const char *const keys[] = {"name",
                                       "type",
                                       "data_dir",
                                       "params",
                                       "batch_size",
                                       "limit",
                                       "max_samples",
                                       "skip",
                                       "preprocess",
                                       "shape",
                                       "load_dataset_config",
                                       "dataloader_config",
                                       "shuffle",
                                       "pre_process_data_config",
                                       "post_process_data_config",
                                       "user_script",
                                       "script_dir",
                                       "data_name",
                                       "input_shapes",
                                       "input_names",
                                       "input_types",
                                       NULL};
    static const char *const python[] = {"user_script", "pre_process_data_config",
                                         "post_process_data_config", NULL};
    static const char *const parts[] = {"load_dataset_config", "dataloader_config", "params", NULL};
    if (!job_part(r, c, keys))
        return false;
    if (job_key(c, "data_name"))
        return job_unsupported(
            r, job_key(c, "data_name"),
            "not supported, because qsim downloads nothing: store the arrays and "
            "name them in data_dir");
    for (size_t i = 0; python[i]; i++)
        if (job_key(c, python[i]))
            return job_unsupported(r, job_key(c, python[i]),
                                   "not supported, because qsim runs no Python: store the arrays "
                                   "(.npy, .npz) and name them in data_dir");
    if (!note_unused(r, c))
        return false;
    if (!job_string(r, c, "data_dir", &d->spec) ||
        !job_string(r, c, "preprocess", &d->preprocess) ||
        !job_int(r, c, "batch_size", 1, &d->batch) || !job_int(r, c, "limit", 1, &d->limit) ||
        !job_int(r, c, "max_samples", 1, &d->limit) || !job_int(r, c, "skip", 0, &d->skip))
        return false;
    if (job_key(c, "shape") && !read_shapes(r, job_key(c, "shape"), d))
        return false;
    for (size_t i = 0; parts[i]; i++)
        if (job_key(c, parts[i]) && !read_data_object(r, job_key(c, parts[i]), d))
            return false;
    return true;
}

/* Finds an entry by name: data_configs is an array of objects with names, or an object. */
static const config *find_data(const config *list, const char *name) {
    for (size_t i = 0; list && i < list->count; i++) {
        const config *c = &list->items[i], *own = config_get(c, "name");
        const char *called = c->key ? c->key : own && own->string ? own->string : "";
        if (strcmp(called, name) == 0)
            return c;
    }
    return NULL;
}

bool job_read_data(job_reader *r, const config *part, job_data *d) {
    const config *c = job_key(part, "data_config");
    if (c && c->kind == CONFIG_STRING) {
        const config *found = find_data(config_get(&r->job->root, "data_configs"), c->string);
        if (!found)
            return job_wrong(r, c, "there is no data configuration '%.60s' in data_configs",
                             c->string);
        c = found;
    }
    return (!c || read_data_object(r, c, d)) && job_string(r, part, "data_dir", &d->spec) &&
           job_int(r, part, "batch_size", 1, &d->batch);
}

bool job_read_data_configs(job_reader *r) {
    const config *list = config_get(&r->job->root, "data_configs");
    job_data unused = {0};
    if (list && list->kind != CONFIG_ARRAY && list->kind != CONFIG_OBJECT)
        return job_wrong(r, list, "%s, not an array", config_kind_name(list));
    for (size_t i = 0; list && i < list->count; i++)
        if (!read_data_object(r, &list->items[i], &unused))
            return false;
    return true;
}

/* ---- search ---- */

bool job_read_search(job_reader *r, const config *c) {
    static const char *const keys[] = {"execution_order",
                                       "search_algorithm",
                                       "search_algorithm_config",
                                       "sampler",
                                       "sampler_config",
                                       "max_samples",
                                       "num_samples",
                                       "seed",
                                       "max_iter",
                                       "max_time",
                                       "output_model_num",
                                       "stop_when_goals_met",
                                       "include_pass_params",
                                       "multivariate",
                                       "group",
                                       NULL};
    job *j = r->job;
    const char *order = "joint", *algorithm = "exhaustive";
    int64_t seed = 0;
    if (!c || (c->kind == CONFIG_BOOL && !c->truth))
        return true;
    j->search = true;
    if (c->kind == CONFIG_BOOL)
        return true;
    if (!job_keys(r, c, keys) || !job_string(r, c, "execution_order", &order) ||
        !job_string(r, c, "search_algorithm", &algorithm) ||
        !job_string(r, c, "sampler", &algorithm))
        return false;
    if (strcmp(order, "joint") != 0 && strcmp(order, "pass-by-pass") != 0)
        return job_wrong(r, job_key(c, "execution_order"),
                         "'%.60s' is neither joint nor "
                         "pass-by-pass",
                         order);
    bool exhaustive = strcmp(algorithm, "exhaustive") == 0 || strcmp(algorithm, "sequential") == 0;
    if (!exhaustive && strcmp(algorithm, "random") != 0 && strcmp(algorithm, "tpe") != 0)
        return job_wrong(r, c, "'%.60s' is none of exhaustive, random, tpe", algorithm);
    j->pass_by_pass = strcmp(order, "joint") != 0;
    j->algorithm = exhaustive ? SEARCH_EXHAUSTIVE : SEARCH_RANDOM;
    if (strcmp(algorithm, "tpe") == 0)
        text_puts(&j->notes,
                  "search_strategy: tpe draws as random does, since a few hundred choices "
                  "need no model of the past\n");
    const config *parts[] = {c, job_key(c, "search_algorithm_config"),
                             job_key(c, "sampler_config")};
    for (size_t i = 0; i < 3; i++)
        if (parts[i] &&
            (!job_keys(r, parts[i], keys) || !job_int(r, parts[i], "num_samples", 1, &j->samples) ||
             !job_int(r, parts[i], "max_samples", 1, &j->samples) ||
             !job_int(r, parts[i], "max_iter", 1, &j->samples) ||
             !job_int(r, parts[i], "seed", 0, &seed) ||
             !job_number(r, parts[i], "max_time", &j->seconds)))
            return false;
    j->seed = (uint64_t)seed;
    return true;
}
