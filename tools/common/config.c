/* SPDX-License-Identifier: MIT */
/* The only file that uses the JSON library. */
#include "common/config.h"

#include <stdlib.h>
#include <string.h>

#ifdef TOOL_JANSSON
#include <jansson.h>

static bool convert(const json_t *from, config *to, int depth, text *problem);

static bool convert_object(const json_t *from, config *to, int depth, text *problem) {
    /* The iterator is only read, but its type is not const. */
    json_t *object = (json_t *)(uintptr_t)from;
    to->kind = CONFIG_OBJECT;
    to->items = tool_alloc(json_object_size(from), sizeof(*to->items));
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        config *item = &to->items[to->count++];
        item->parent = to;
        item->key = tool_copy(json_object_iter_key(at));
        if (!convert(json_object_iter_value(at), item, depth, problem))
            return false;
    }
    return true;
}

static bool convert_array(const json_t *from, config *to, int depth, text *problem) {
    to->kind = CONFIG_ARRAY;
    to->items = tool_alloc(json_array_size(from), sizeof(*to->items));
    for (size_t i = 0; i < json_array_size(from); i++) {
        config *item = &to->items[to->count++];
        item->parent = to;
        if (!convert(json_array_get(from, i), item, depth, problem))
            return false;
    }
    return true;
}

static bool convert(const json_t *from, config *to, int depth, text *problem) {
    if (depth > CONFIG_MOST_DEPTH) {
        config_path(to, problem);
        text_printf(problem, ": more than %d levels deep", CONFIG_MOST_DEPTH);
        return false;
    }
    switch (json_typeof(from)) {
    case JSON_OBJECT: return convert_object(from, to, depth + 1, problem);
    case JSON_ARRAY: return convert_array(from, to, depth + 1, problem);
    case JSON_STRING:
        to->kind = CONFIG_STRING;
        to->string = tool_copy(json_string_value(from));
        return true;
    case JSON_INTEGER:
        to->kind = CONFIG_INT;
        to->whole = json_integer_value(from);
        to->number = (double)to->whole;
        return true;
    case JSON_REAL:
        to->kind = CONFIG_REAL;
        to->number = json_real_value(from);
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        to->kind = CONFIG_BOOL;
        to->truth = json_typeof(from) == JSON_TRUE;
        return true;
    default: to->kind = CONFIG_NULL; return true;
    }
}

/* jansson does not always report a lack of memory. */
static void *take(size_t size) {
    return tool_alloc(size, 1);
}

bool config_parse(const void *data, size_t size, config *c, text *problem) {
    json_error_t error;
    memset(c, 0, sizeof(*c));
    if (size > CONFIG_MOST_BYTES) {
        text_printf(problem, "%zu bytes are too many for a configuration, the limit is %u", size,
                    CONFIG_MOST_BYTES);
        return false;
    }
    if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
        text_puts(problem, "line 1, column 1: a byte order mark; JSON begins with '{'");
        return false;
    }
    json_set_alloc_funcs(take, free);
    json_t *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        text_printf(problem, "line %d, column %d: %s", error.line, error.column, error.text);
        return false;
    }
    bool good = json_is_object(root) && convert(root, c, 0, problem);
    if (!json_is_object(root))
        text_puts(problem, "line 1, column 1: a configuration is an object, '{'");
    json_decref(root);
    if (!good)
        config_free(c);
    return good;
}
#else
bool config_parse(const void *data, size_t size, config *c, text *problem) {
    (void)data;
    (void)size;
    memset(c, 0, sizeof(*c));
    text_puts(
        problem,
        "this qsim was built without libjansson (Debian: libjansson-dev) and reads no configurations");
    return false;
}
#endif

void config_free(config *c) {
    for (size_t i = 0; i < c->count; i++)
        config_free(&c->items[i]);
    free(c->items);
    free(c->key);
    free(c->string);
    memset(c, 0, sizeof(*c));
}

const config *config_get(const config *c, const char *key) {
    for (size_t i = 0; c && c->kind == CONFIG_OBJECT && i < c->count; i++)
        if (strcmp(c->items[i].key, key) == 0)
            return &c->items[i];
    return NULL;
}

void config_path(const config *c, text *out) {
    if (!c->parent)
        return;
    config_path(c->parent, out);
    if (c->key)
        text_printf(out, "%s%s", c->parent->parent ? "." : "", c->key);
    else
        text_printf(out, "[%zu]", (size_t)(c - c->parent->items));
}

const char *config_kind_name(const config *c) {
    static const char *const names[] = {"null",     "a truth value", "a whole number", "a fraction",
                                        "a string", "an array",      "an object"};
    return names[c->kind];
}
