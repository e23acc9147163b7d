/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a configuration. Every value that is read has a path; a configuration
 * that is no job gets one line that says so.
 */
#include "qsim/job.h"

#include "fuzz.h"

/* The build names an initial file. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    (void)index, (void)buffer, (void)capacity;
    return 0;
}

static void walk(const config *c, int depth) {
    text path = {0};
    config_path(c, &path);
    if (depth > CONFIG_MOST_DEPTH || (c->parent && path.size == 0 && c->key && *c->key))
        abort();
    if (c->key && !config_get(c->parent, c->key))
        abort();
    text_free(&path);
    for (size_t i = 0; i < c->count; i++)
        walk(&c->items[i], depth + 1);
}

static void read_job(const uint8_t *data, size_t size) {
    job j = {.output_dir = "."};
    job_trouble trouble = {0};
    bool good = job_read(&j, data, size, &trouble);
    if (good == (trouble.code != 0) || good == (trouble.message.size > 0))
        abort();
    if (good && (!j.model || j.flow_count == 0))
        abort();
    job_free(&j);
    text_free(&trouble.message);
    text_free(&trouble.hint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    config c;
    text problem = {0};
    if (config_parse(data, size, &c, &problem))
        walk(&c, 0);
    else if (problem.size == 0)
        abort();
    config_free(&c);
    text_free(&problem);
    read_job(data, size);
    return 0;
}
