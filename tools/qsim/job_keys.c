/* SPDX-License-Identifier: MIT */
/* Keys and values of a run configuration, checked. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static void complain(job_reader *r, int code, const config *at, const char *format, va_list list) {
    char line[1024];
    if (r->trouble->code)
        return;
    r->trouble->code = code;
    config_path(at, &r->trouble->message);
    vsnprintf(line, sizeof(line), format, list);
    text_printf(&r->trouble->message, "%s%s", r->trouble->message.size ? ": " : "", line);
}

bool job_wrong(job_reader *r, const config *at, const char *format, ...) {
    va_list list;
    va_start(list, format);
    complain(r, QSIM_E_ARGUMENT, at, format, list);
    va_end(list);
    return false;
}

bool job_unsupported(job_reader *r, const config *at, const char *format, ...) {
    va_list list;
    va_start(list, format);
    complain(r, QSIM_E_UNSUPPORTED, at, format, list);
    va_end(list);
    return false;
}

void job_note(job_reader *r, const config *at, const char *because) {
    config_path(at, &r->job->notes);
    text_printf(&r->job->notes, ": not used, because %s\n", because);
}

bool job_keys(job_reader *r, const config *object, const char *const *names) {
    if (object->kind != CONFIG_OBJECT)
        return job_wrong(r, object, "%s, not an object", config_kind_name(object));
    for (size_t i = 0; i < object->count; i++) {
        size_t k = 0;
        while (names[k] && strcmp(names[k], object->items[i].key) != 0)
            k++;
        if (names[k])
            continue;
        const char *near = closest(object->items[i].key, names);
        if (near)
            return job_wrong(r, &object->items[i], "unknown key; did you mean %s?", near);
        return job_wrong(r, &object->items[i], "unknown key");
    }
    return true;
}

bool job_part(job_reader *r, const config *object, const char *const *names) {
    const char *inner[128];
    size_t n = 0;
    for (; n < 127 && names[n]; n++)
        inner[n] = names[n];
    inner[n] = NULL;
    const config *c = config_get(object, "config");
    if (c && c->kind != CONFIG_NULL && !job_keys(r, c, inner))
        return false;
    inner[n] = "config";
    inner[n + 1] = NULL;
    return job_keys(r, object, inner);
}

const config *job_key(const config *part, const char *key) {
    const config *c = config_get(config_get(part, "config"), key);
    if (!c)
        c = config_get(part, key);
    return c && c->kind != CONFIG_NULL ? c : NULL;
}

bool job_string(job_reader *r, const config *part, const char *key, const char **out) {
    const config *c = job_key(part, key);
    if (!c)
        return true;
    if (c->kind != CONFIG_STRING)
        return job_wrong(r, c, "%s, not a string", config_kind_name(c));
    *out = c->string;
    return true;
}

bool job_int(job_reader *r, const config *part, const char *key, int64_t low, int64_t *out) {
    const config *c = job_key(part, key);
    if (!c)
        return true;
    if (c->kind != CONFIG_INT || c->whole < low || c->whole > INT32_MAX)
        return job_wrong(r, c, "not a whole number from %lld on", (long long)low);
    *out = c->whole;
    return true;
}

bool job_number(job_reader *r, const config *part, const char *key, double *out) {
    const config *c = job_key(part, key);
    if (!c)
        return true;
    if (c->kind != CONFIG_INT && c->kind != CONFIG_REAL)
        return job_wrong(r, c, "%s, not a number", config_kind_name(c));
    *out = c->number;
    return true;
}

bool job_bool(job_reader *r, const config *part, const char *key, bool *out) {
    const config *c = job_key(part, key);
    if (!c)
        return true;
    if (c->kind != CONFIG_BOOL)
        return job_wrong(r, c, "%s, neither true nor false", config_kind_name(c));
    *out = c->truth;
    return true;
}

bool job_is_array(job_reader *r, const config *c, config_kind of) {
    if (c->kind != CONFIG_ARRAY)
        return job_wrong(r, c, "%s, not an array", config_kind_name(c));
    for (size_t i = 0; i < c->count; i++)
        if (c->items[i].kind != of)
            return job_wrong(r, &c->items[i], "%s is not what belongs here",
                             config_kind_name(&c->items[i]));
    return true;
}
