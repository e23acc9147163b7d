/* SPDX-License-Identifier: MIT */
/*
 * Opens a package: checks its structure, SHA256SUMS and manifest. Other entries are checked when
 * they are read.
 */
#include "package/archive.h"

#include <zip.h>

#include "kernel/context.h"

int qsim_package_sniff(const void *data, size_t size) {
    return data && size >= 4 && (memcmp(data, "PK\3\4", 4) == 0 || memcmp(data, "PK\5\6", 4) == 0);
}

static int open_zip(qsim_package *p, qsim_error *error) {
    zip_error_t e;
    zip_error_init(&e);
    zip_source_t *source = zip_source_buffer_create(p->data, p->size, 0, &e);
    if (source)
        p->zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &e);
    int code = QSIM_OK;
    if (!p->zip) {
        if (zip_error_code_zip(&e) ==
            ZIP_ER_NOZIP) /* not true, since zip_directory.c has read it: libzip had no memory */
            zip_error_set(&e, ZIP_ER_MEMORY, 0);
        code = qs_zip_fail(&e, QSIM_E_FORMAT, p->name, "damaged package", error);
        if (source)
            zip_source_free(source);
    } else if (zip_get_num_entries(p->zip, 0) != (zip_int64_t)p->count)
        code = qs_fail(error, QSIM_E_FORMAT,
                       "%s: damaged package: its directory can be read in two "
                       "ways",
                       p->name);
    zip_error_fini(&e);
    return code;
}

/* ---- SHA256SUMS ---- */

static int bad_sums(const qsim_package *p, size_t line, const char *what, qsim_error *error) {
    return qs_fail(error, QSIM_E_FORMAT, "%s: " QS_SUMS " line %zu %s", p->name, line, what);
}

static qs_member *find_member(const qsim_package *p, const uint8_t *name, size_t length) {
    for (size_t i = 0; i < p->count; i++)
        if (strlen(p->members[i].name) == length && memcmp(p->members[i].name, name, length) == 0)
            return &p->members[i];
    return NULL;
}

static bool read_hash(const uint8_t *text, char hex[65]) {
    for (int i = 0; i < 64; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    memcpy(hex, text, 64);
    hex[64] = 0;
    return true;
}

/* Reads a line of SHA256SUMS: "hash  name", or "hash *name" as sha256sum --binary writes it. */
static int read_sum(qsim_package *p, size_t number, const uint8_t *line, size_t length,
                    qsim_error *error) {
    char hex[65];
    if (length < 67 || line[64] != ' ' || (line[65] != ' ' && line[65] != '*') ||
        !read_hash(line, hex))
        return bad_sums(p, number, "is not a hash and a name", error);
    qs_member *m = find_member(p, line + 66, length - 66);
    if (!m)
        return bad_sums(p, number, "names an entry that is missing", error);
    if (m->sha256[0] || strcmp(m->name, QS_SUMS) == 0)
        return bad_sums(p, number, "names an entry a second time, or itself", error);
    memcpy(m->sha256, hex, sizeof(hex));
    return QSIM_OK;
}

/* Recognizes archives of other programs by an entry that all of them have. */
static int refuse_archive(const qsim_package *p, const char *missing, qsim_error *error) {
    static const struct {
        const char *end, *what, *hint;
    } known[] = {
        {"/data.pkl", "a PyTorch file",
         "export the model to ONNX: torch.onnx.export(model, example, \"model.onnx\")"},
        {"model.weights.h5", "a Keras model", "export it to ONNX: tf2onnx"},
        {"saved_model.pb", "a TensorFlow SavedModel", "export it to ONNX: tf2onnx"},
        {".npy", "an .npz of arrays", "an array is an input, not a model"},
    };
    for (size_t k = 0; k < QS_COUNT(known); k++)
        for (size_t i = 0; i < p->count; i++) {
            size_t n = strlen(p->members[i].name), m = strlen(known[k].end);
            if (n < m || strcmp(p->members[i].name + n - m, known[k].end) != 0)
                continue;
            qs_fail(error, QSIM_E_FORMAT, "%s: not a model: %s", p->name, known[k].what);
            qs_hint(error, "%s", known[k].hint);
            return QSIM_E_FORMAT;
        }
    return qs_fail(error, QSIM_E_FORMAT, "%s: no %s in this archive: it is not a package", p->name,
                   missing);
}

static int read_sums(qsim_package *p, qsim_error *error) {
    int32_t index = qsim_package_find(p, QS_SUMS);
    const void *data;
    size_t size, number = 1;
    if (index < 0)
        return refuse_archive(p, QS_SUMS, error);
    if (p->members[index].size > QS_SUMS_BYTES)
        return qs_fail(error, QSIM_E_LIMIT, "%s: " QS_SUMS " has %llu bytes", p->name,
                       (unsigned long long)p->members[index].size);
    int code = qsim_package_data(p, index, &data, &size, error);
    if (code)
        return code;
    const uint8_t *line = data, *end = line + size;
    for (; !code && line < end; number++) {
        const uint8_t *stop = line;
        while (stop < end && *stop != '\n')
            stop++;
        if (stop == end)
            return bad_sums(p, number, "is cut off", error);
        code = read_sum(p, number, line, (size_t)(stop - line), error);
        line = stop + 1;
    }
    for (size_t i = 0; i < p->count && !code; i++)
        if (!p->members[i].sha256[0] && i != (size_t)index)
            code = qs_fail(error, QSIM_E_FORMAT, "%s: entry '%s' is not listed in " QS_SUMS,
                           p->name, p->members[i].name);
    return code;
}

/* ---- manifest ---- */

static int read_manifest(qsim_package *p, qsim_error *error) {
    int32_t index = qsim_package_find(p, QS_MANIFEST);
    const void *data;
    const uint8_t *model;
    size_t size, model_size;
    int64_t schema;
    if (index < 0)
        return refuse_archive(p, QS_MANIFEST, error);
    if (p->members[index].size > QS_MANIFEST_BYTES)
        return qs_fail(error, QSIM_E_LIMIT, "%s: " QS_MANIFEST " has %llu bytes", p->name,
                       (unsigned long long)p->members[index].size);
    int code = qsim_package_data(p, index, &data, &size, error);
    if (code)
        return code;
    const char *fault = qs_manifest_read(data, size, &schema, &model, &model_size);
    if (fault)
        return qs_fail(error, QSIM_E_FORMAT, "%s: " QS_MANIFEST " %s", p->name, fault);
    if (schema != QS_SCHEMA)
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "%s: " QS_MANIFEST " has schema %lld, %d is the one that is read", p->name,
                       (long long)schema, QS_SCHEMA);
    const qs_member *m = find_member(p, model, model_size);
    if (!m || qs_role_of_name(m->name) != QSIM_ROLE_MODEL)
        return qs_fail(error, QSIM_E_FORMAT,
                       "%s: " QS_MANIFEST " names the model '%.*s', which is not there", p->name,
                       model_size < 200 ? (int)model_size : 200, (const char *)model);
    p->model = (size_t)(m - p->members);
    return QSIM_OK;
}

/*
 * Checks the manifest before the list of hashes, so that an archive of another kind is refused for
 * its missing manifest.
 */
static int read_package(qsim_package *p, qsim_error *error) {
    const void *data;
    size_t size;
    int code = qs_zip_directory(p, error);
    if (!code)
        code = open_zip(p, error);
    if (!code)
        code = read_manifest(p, error);
    if (!code)
        code = read_sums(p, error);
    if (code)
        return code;
    const int32_t manifest = qsim_package_find(p, QS_MANIFEST);
    p->members[manifest].verified = false; /* checked again, now that its hash is known */
    return qsim_package_data(p, manifest, &data, &size, error);
}

static int create(qsim_ctx *ctx, const char *name, qsim_package **out, qsim_error *error) {
    int code = qs_ctx_hold(ctx, &ctx, error);
    if (code)
        return code;
    qsim_package *p = qs_calloc(ctx, 1, sizeof(*p));
    if (!p) {
        qs_ctx_drop(ctx);
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", name);
    }
    p->ctx = ctx;
    qs_arena_init(&p->arena, ctx);
    atomic_init(&p->holds, 1);
    p->name = qs_arena_string(&p->arena, name, strlen(name));
    if (!p->name) {
        qsim_package_free(p);
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", name);
    }
    *out = p;
    return QSIM_OK;
}

static int finish(qsim_package *p, qsim_package **out, qsim_error *error) {
    int code = read_package(p, error);
    if (code)
        qsim_package_free(p);
    else
        *out = p;
    return code;
}

int qs_package_of_map(qsim_ctx *ctx, qs_map *map, const char *name, qsim_package **out,
                      qsim_error *error) {
    qsim_package *p = NULL;
    int code = create(ctx, name, &p, error);
    if (code) {
        qs_map_close(ctx, map);
        return code;
    }
    p->map = *map;
    p->data = map->data;
    p->size = map->size;
    memset(map, 0, sizeof(*map));
    return finish(p, out, error);
}

int qsim_package_open(qsim_ctx *ctx, const char *path, int32_t flags, qsim_package **out,
                      qsim_error *error) {
    qsim_package *p = NULL;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!path || !out || (flags & ~QSIM_LOAD_COPY))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_package_open: bad argument");
    int code = create(ctx, path, &p, error);
    if (code)
        return code;
    code = qs_map_open(p->ctx, path, (flags & QSIM_LOAD_COPY) != 0, &p->map, error);
    if (code) {
        qsim_package_free(p);
        return code;
    }
    p->data = p->map.data;
    p->size = p->map.size;
    return finish(p, out, error);
}

int qsim_package_open_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                             qsim_package **out, qsim_error *error) {
    qsim_package *p = NULL;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!out || (!data && size > 0))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_package_open_memory: bad argument");
    int code = create(ctx, name ? name : "(memory)", &p, error);
    if (code)
        return code;
    p->data = data;
    p->size = size;
    return finish(p, out, error);
}

void qsim_package_free(qsim_package *p) {
    if (!p || atomic_fetch_sub(&p->holds, 1) != 1)
        return;
    qsim_ctx *ctx = p->ctx;
    if (p->zip)
        zip_discard(p->zip);
    for (size_t i = 0; p->members && i < p->count; i++)
        qs_free(ctx, p->members[i].inflated);
    if (p->map.data)
        qs_map_close(ctx, &p->map);
    qs_arena_free(&p->arena);
    qs_free(ctx, p);
    qs_ctx_drop(ctx);
}
