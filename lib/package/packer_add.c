/* SPDX-License-Identifier: MIT */
/* Adds models and other entries to a package under construction. */
#include "package/packer.h"

#include "kernel/context.h"
#include "onnx/reader.h"

#include <qsim/ptq.h>

static int nomem(qsim_error *error) {
    return qs_fail(error, QSIM_E_NOMEM, "package: out of memory");
}

int qsim_packer_create(qsim_ctx *ctx, qsim_packer **out, qsim_error *error) {
    qs_error_clear(error);
    if (!out)
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_packer_create: no place for the packer");
    *out = NULL;
    int code = qs_ctx_hold(ctx, &ctx, error);
    if (code)
        return code;
    qsim_packer *w = qs_calloc(ctx, 1, sizeof(*w));
    if (!w) {
        qs_ctx_drop(ctx);
        return nomem(error);
    }
    w->ctx = ctx;
    qs_arena_init(&w->arena, ctx);
    *out = w;
    return QSIM_OK;
}

void qsim_packer_free(qsim_packer *w) {
    if (!w)
        return;
    qsim_ctx *ctx = w->ctx;
    for (size_t i = 0; i < w->model_count; i++)
        qsim_model_free(w->models[i]);
    qs_free(ctx, w->models);
    qs_free(ctx, w->parts);
    qs_free(ctx, w->options);
    qs_arena_free(&w->arena);
    qs_free(ctx, w);
    qs_ctx_drop(ctx);
}

static void hash_part(qs_package_part *part) {
    qs_sha256 h;
    qs_sha256_init(&h);
    qs_sha256_add(&h, part->data, part->size);
    qs_sha256_hex(&h, part->sha256);
}

/*
 * Checks that a name is valid and free. QSIM_E_EXISTS: it clashes; *same: the part of the same
 * name, if that is why.
 */
static int check_name(const qsim_packer *w, const char *name, size_t *same, qsim_error *error) {
    const char *fault = qs_entry_name_fault(name);
    *same = w->part_count;
    if (fault)
        return qs_fail(error, QSIM_E_VALUE, "package: the name '%s' %s", name, fault);
    for (size_t i = 0; i < w->part_count; i++)
        if (qs_entry_names_clash(w->parts[i].name, name)) {
            if (strcmp(w->parts[i].name, name) == 0)
                *same = i;
            return qs_fail(error, QSIM_E_EXISTS, "package: '%s' and '%s' cannot be in one folder",
                           name, w->parts[i].name);
        }
    if (w->part_count + 2 >= QS_MOST_ENTRIES)
        return qs_fail(error, QSIM_E_LIMIT, "package: more than %u entries", QS_MOST_ENTRIES);
    return QSIM_OK;
}

int qs_packer_part(qsim_packer *w, const qs_package_part *part, qsim_error *error) {
    size_t same;
    int code = check_name(w, part->name, &same, error);
    if (code)
        return code;
    char *name = qs_arena_string(&w->arena, part->name, strlen(part->name));
    if (!name ||
        !qs_grow(w->ctx, (void **)&w->parts, &w->part_capacity, w->part_count, sizeof(*w->parts)))
        return nomem(error);
    w->parts[w->part_count] = *part;
    w->parts[w->part_count].name = name;
    hash_part(&w->parts[w->part_count++]);
    return QSIM_OK;
}

/* ---- models ---- */

/* The name of a model's entry: the last component of its path, ending in .onnx. In the arena. */
static char *model_name(qsim_packer *w, const char *path, const char *given) {
    const char *slash = strrchr(path, '/'), *base = given ? given : slash ? slash + 1 : path;
    const char *colon = given ? NULL : strrchr(base, ':'); /* the path names a package's model */
    base = colon ? colon + 1 : base;
    size_t n = strlen(base);
    bool whole = n > 5 && strcmp(base + n - 5, ".onnx") == 0;
    char *name = qs_arena_alloc(&w->arena, n + 6, 1);
    if (name) {
        memcpy(name, base, n);
        memcpy(name + n, whole ? "" : ".onnx", whole ? 1 : 6);
    }
    return name;
}

static int add_external(qsim_packer *w, const qs_outside *o, qsim_error *error) {
    qs_package_part part = {.name = o->location, .data = o->data, .size = o->size};
    qsim_error clash = {0};
    size_t same;
    (void)check_name(w, part.name, &same, &clash);
    if (same == w->part_count)
        return qs_packer_part(w, &part, error);
    const qs_package_part *old = &w->parts[same];
    if (old->size == part.size && memcmp(old->data, part.data, part.size) == 0)
        return QSIM_OK;
    return qs_fail(error, QSIM_E_EXISTS, "package: two models have different external data '%s'",
                   part.name);
}

static int add_model(qsim_packer *w, const qsim_model *m, const char *given, qsim_error *error) {
    char *name = model_name(w, m->name, given);
    if (!name)
        return nomem(error);
    const struct qs_source *s = m->source;
    if (strchr(name, '/') && s->outside_count)
        return qs_fail(error, QSIM_E_VALUE,
                       "package: '%s': a model with external data must not be in a folder", name);
    qs_package_part part = {.name = name, .data = s->bytes.data, .size = s->bytes.size, .model = m};
    int code = qs_packer_part(w, &part, error);
    for (size_t i = 0; i < s->outside_count && !code; i++)
        code = add_external(w, &s->outside[i], error);
    if (!code && !w->main)
        w->main = name;
    return code;
}

int qsim_packer_model(qsim_packer *w, const char *path, const char *name, qsim_error *error) {
    qsim_model *m = NULL;
    qs_error_clear(error);
    if (!w || !path)
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_packer_model: bad argument");
    if (!qs_grow(w->ctx, (void **)&w->models, &w->model_capacity, w->model_count,
                 sizeof(qsim_model *)))
        return nomem(error);
    int code = qsim_model_load(w->ctx, path, NULL, &m, error);
    if (code)
        return code;
    size_t before = w->part_count;
    code = add_model(w, m, name, error);
    if (code) {
        w->part_count = before;
        qsim_model_free(m);
    } else
        w->models[w->model_count++] = m;
    return qs_leave(w->ctx, code, error);
}

/* ---- other entries ---- */

static int check_content(qsim_packer *w, int32_t role, const void *data, size_t size,
                         qsim_error *error) {
    const char *name = qs_name_of_role(role), *fault = NULL;
    if (role == QSIM_ROLE_CALIBRATION) {
        qsim_calibration *c = NULL;
        int code = qsim_calibration_load_memory(w->ctx, data, size, name, &c, error);
        qsim_calibration_free(c);
        return code;
    }
    if (role == QSIM_ROLE_REPORT)
        fault = qs_json_fault(data, size);
    else if (name && (size == 0 || !qs_text_ok((qs_span){data, size})))
        fault = size ? "is not UTF-8 text" : "is empty";
    return fault ? qs_fail(error, QSIM_E_FORMAT, "package: the %s %s", qsim_role_name(role), fault)
                 : QSIM_OK;
}

int qsim_packer_add(qsim_packer *w, int32_t role, const char *name, const void *data, size_t size,
                    qsim_error *error) {
    qs_error_clear(error);
    if (!w || (size > 0 && !data) || role < 0 || role >= QSIM_ROLE_COUNT ||
        role == QSIM_ROLE_MODEL || role == QSIM_ROLE_MANIFEST || role == QSIM_ROLE_SUMS ||
        (role == QSIM_ROLE_DATA) != (name != NULL))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_packer_add: bad argument");
    if (name && qs_role_of_name(name) != QSIM_ROLE_DATA)
        return qs_fail(error, QSIM_E_VALUE, "package: the name '%s' is kept for a %s", name,
                       qsim_role_name(qs_role_of_name(name)));
    int code = check_content(w, role, data, size, error);
    if (code)
        return code;
    qs_package_part part = {.name = name ? name : qs_name_of_role(role), .size = size};
    void *copy = qs_arena_alloc(&w->arena, size ? size : 1, 1);
    if (!copy)
        return qs_leave(w->ctx, nomem(error), error);
    if (size)
        memcpy(copy, data, size);
    part.data = copy;
    return qs_leave(w->ctx, qs_packer_part(w, &part, error), error);
}

int qsim_packer_option(qsim_packer *w, const char *key, const char *value, qsim_error *error) {
    qs_error_clear(error);
    if (!w || !key || !value)
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_packer_option: bad argument");
    if (!qs_text_ok((qs_span){(const uint8_t *)key, strlen(key)}) ||
        !qs_text_ok((qs_span){(const uint8_t *)value, strlen(value)}))
        return qs_fail(error, QSIM_E_VALUE, "package: option '%s' is not UTF-8 text", key);
    char *kept = qs_arena_string(&w->arena, value, strlen(value));
    if (!kept)
        return nomem(error);
    for (size_t i = 0; i < w->option_count; i++)
        if (strcmp(w->options[i].key, key) == 0) {
            w->options[i].value = kept;
            return QSIM_OK;
        }
    char *name = qs_arena_string(&w->arena, key, strlen(key));
    if (!name || !qs_grow(w->ctx, (void **)&w->options, &w->option_capacity, w->option_count,
                          sizeof(*w->options)))
        return nomem(error);
    w->options[w->option_count++] = (qs_choice){name, kept};
    return QSIM_OK;
}
