/* SPDX-License-Identifier: MIT */
/* qsim_model_load, for ONNX files and packages. It is in the topmost layer, which knows both. */
#include "package/archive.h"

#include "kernel/context.h"
#include "onnx/reader.h"

#include <stdio.h>

/* ---- from a package ---- */

typedef struct externals {
    qsim_package *package;
    const char *model;
    qsim_error why; /* of the first damaged entry */
} externals;

/* The callback for external data. Locations are relative to the entry of the model. */
static int read_external(void *user, const char *location, const void **data, size_t *size) {
    externals *x = user;
    char name[2048];
    const char *slash = strrchr(x->model, '/');
    const int folder = slash ? (int)(slash - x->model) : 0;
    const int n =
        snprintf(name, sizeof(name), "%.*s%s%s", folder, x->model, slash ? "/" : "", location);
    if ((size_t)n >= sizeof(name))
        return QSIM_E_NOT_FOUND;
    int32_t index = qsim_package_find(x->package, name);
    if (index < 0)
        return index;
    return qsim_package_data(x->package, index, data, size, &x->why);
}

static void release_package(void *owner) {
    qsim_package_free(owner);
}

/* Names a model in a package: "P.zip:int8.onnx". */
static char *join_names(const qsim_package *p, const char *package, const char *entry) {
    size_t n = strlen(package), k = strlen(entry);
    char *name = qs_alloc(p->ctx, n + k + 2, 1);
    if (name) {
        memcpy(name, package, n);
        name[n] = ':';
        memcpy(name + n + 1, entry, k + 1);
    }
    return name;
}

static int load_entry(qsim_package *p, size_t index, const qsim_load_options *options,
                      qsim_model **out, qsim_error *error) {
    const qs_member *m = &p->members[index];
    qsim_load_options o = *options;
    externals x = {.package = p, .model = m->name};
    const void *data;
    size_t size;
    if (qs_role_of_name(m->name) != QSIM_ROLE_MODEL)
        return qs_fail(error, QSIM_E_NOT_FOUND, "%s: entry '%s' is not a model", p->name, m->name);
    int code = qsim_package_data(p, (int32_t)index, &data, &size, error);
    if (code)
        return code;
    char *name = join_names(p, o.name ? o.name : p->name, m->name);
    if (!name)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", p->name);
    o.name = name;
    o.external = read_external;
    o.external_user = &x;
    atomic_fetch_add(&p->holds, 1);
    code = qs_onnx_load_bytes(p->ctx, (qs_span){data, size}, &o, release_package, p, out, error);
    qs_free(p->ctx, name);
    if (code && x.why.code && error)
        *error = x.why;
    return code && x.why.code ? x.why.code : code;
}

int qsim_package_model(qsim_package *p, const char *name, const qsim_load_options *options,
                       qsim_model **out, qsim_error *error) {
    qsim_load_options o;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!p || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_package_model: bad argument");
    int code = qs_load_options(options, &o, error);
    if (code)
        return code;
    int32_t index = name ? qsim_package_find(p, name) : (int32_t)p->model;
    if (index < 0)
        return qs_fail(error, QSIM_E_NOT_FOUND, "%s: no entry '%s'", p->name, name);
    return load_entry(p, (size_t)index, &o, out, error);
}

/* ---- from any file ---- */

/* Loads a model from a package, which the model keeps. Takes `map` over. */
static int load_package(qsim_ctx *ctx, qs_map *map, const char *name, const qsim_load_options *o,
                        qsim_model **out, qsim_error *error) {
    qsim_package *p = NULL;
    int code = qs_package_of_map(ctx, map, name, &p, error);
    if (!code)
        code = load_entry(p, p->model, o, out, error);
    qsim_package_free(p);
    return code;
}

int qsim_model_load(qsim_ctx *ctx, const char *path, const qsim_load_options *options,
                    qsim_model **out, qsim_error *error) {
    qsim_load_options o;
    qs_map map = {0};
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!path || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "load: no path or no place for the model");
    int code = qs_load_options(options, &o, error);
    if (!code)
        code = qs_ctx_hold(ctx, &ctx, error);
    if (code)
        return code;
    code = qs_map_open(ctx, path, (o.flags & QSIM_LOAD_COPY) != 0, &map, error);
    if (!code && qsim_package_sniff(map.data, map.size))
        code = load_package(ctx, &map, o.name ? o.name : path, &o, out, error);
    else if (!code)
        code = qs_onnx_load_map(ctx, &map, path, &o, out, error);
    qs_leave(ctx, code, error);
    qs_ctx_drop(ctx);
    return code;
}

static int copy_bytes(qsim_ctx *ctx, const void *data, size_t size, const char *name, qs_map *map,
                      qsim_error *error) {
    uint8_t *copy = qs_alloc(ctx, size ? size : 1, 1);
    if (!copy)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", name);
    *map = (qs_map){copy, size, false};
    const int code = qs_stop_fail(ctx, qs_copy(ctx, copy, data, size), name, error);
    if (code)
        qs_map_close(ctx, map);
    return code;
}

int qsim_model_load_memory(qsim_ctx *ctx, const void *data, size_t size,
                           const qsim_load_options *options, qsim_model **out, qsim_error *error) {
    qsim_load_options o;
    qs_map map = {0};
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if ((!data && size) || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "load: no data or no place for the model");
    int code = qs_load_options(options, &o, error);
    if (!code)
        code = qs_ctx_hold(ctx, &ctx, error);
    if (code)
        return code;
    const char *name = o.name ? o.name : "(memory)";
    bool copy = (o.flags & QSIM_LOAD_COPY) != 0, package = qsim_package_sniff(data, size) != 0;
    if (copy)
        code = copy_bytes(ctx, data, size, name, &map, error);
    if (!code && package && copy)
        code = load_package(ctx, &map, name, &o, out, error);
    else if (!code && package) {
        qsim_package *p = NULL;
        code = qsim_package_open_memory(ctx, data, size, name, &p, error);
        if (!code)
            code = load_entry(p, p->model, &o, out, error);
        qsim_package_free(p);
    } else if (!code && copy)
        code = qs_onnx_load_map(ctx, &map, NULL, &o, out, error);
    else if (!code)
        code = qs_onnx_load_bytes(ctx, (qs_span){data, size}, &o, NULL, NULL, out, error);
    qs_leave(ctx, code, error);
    qs_ctx_drop(ctx);
    return code;
}
