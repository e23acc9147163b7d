/* SPDX-License-Identifier: MIT */
/*
 * Writing a package. What a zip says of its files beside their bytes is one fixed date and mode, so
 * that the same contents make the same archive.
 */
#include "package/packer.h"

#include <zip.h>

/* 1980-01-01 12:00: libzip takes it through the local time, and no zone leaves that noon out. */
#define DOS_DATE   0x0021
#define DOS_TIME   0x6000
#define UNIX_MODE  (0100644u << 16)
#define MOST_BYTES 0xf0000000u /* with the directory still below 4 GiB */
#define PER_ENTRY  4096u       /* at most for headers and names */

static void sort_parts(qsim_packer *w) {
    for (size_t i = 1; i < w->part_count; i++) {
        qs_part part = w->parts[i];
        size_t k = i;
        for (; k > 0 && strcmp(w->parts[k - 1].name, part.name) > 0; k--)
            w->parts[k] = w->parts[k - 1];
        w->parts[k] = part;
    }
}

static int fail_zip(zip_error_t *e, const char *path, qsim_error *error) {
    bool memory = zip_error_code_zip(e) == ZIP_ER_MEMORY;
    return qs_fail(error, memory ? QSIM_E_NOMEM : QSIM_E_INTERNAL,
                   "%s: cannot make the archive: %s", path, zip_error_strerror(e));
}

static bool add_part(zip_t *z, const qs_part *p, int32_t flags) {
    zip_source_t *s = zip_source_buffer(z, p->data, p->size, 0);
    if (!s)
        return false;
    zip_int64_t at = zip_file_add(z, p->name, s, ZIP_FL_ENC_UTF_8);
    if (at < 0) {
        zip_source_free(s);
        return false;
    }
    zip_uint64_t i = (zip_uint64_t)at;
    int method = (flags & QSIM_PACK_DEFLATE) && p->size > 0 ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    return zip_set_file_compression(z, i, method, method == ZIP_CM_DEFLATE ? 9 : 0) == 0 &&
           zip_file_set_dostime(z, i, DOS_TIME, DOS_DATE, 0) == 0 &&
           zip_file_set_external_attributes(z, i, 0, ZIP_OPSYS_UNIX, UNIX_MODE) == 0;
}

/* Fills `target`, a growing buffer, with the archive. */
static int build(const qsim_packer *w, zip_source_t *target, int32_t flags, const char *path,
                 qsim_error *error) {
    zip_error_t e;
    zip_error_init(&e);
    zip_source_keep(target);
    zip_t *z = zip_open_from_source(target, ZIP_TRUNCATE, &e);
    int code = QSIM_OK;
    if (!z) {
        zip_source_free(target);
        code = fail_zip(&e, path, error);
    }
    for (size_t i = 0; i < w->part_count && !code; i++)
        if (!add_part(z, &w->parts[i], flags))
            code = fail_zip(zip_get_error(z), path, error);
    if (z && !code && zip_close(z) != 0)
        code = fail_zip(zip_get_error(z), path, error);
    else if (z && !code)
        z = NULL;
    if (z)
        zip_discard(z);
    zip_error_fini(&e);
    return code;
}

static int copy_out(qsim_ctx *ctx, zip_source_t *source, uint8_t **data, size_t *size,
                    const char *path, qsim_error *error) {
    zip_stat_t st;
    zip_stat_init(&st);
    if (zip_source_stat(source, &st) || !(st.valid & ZIP_STAT_SIZE) || zip_source_open(source))
        return fail_zip(zip_source_error(source), path, error);
    *size = (size_t)st.size;
    *data = qs_alloc(ctx, *size + 1, 1);
    int code = *data ? QSIM_OK : qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", path);
    for (size_t at = 0; at < *size && !code;) {
        zip_int64_t n = zip_source_read(source, *data + at, *size - at);
        if (n <= 0)
            code = fail_zip(zip_source_error(source), path, error);
        else
            at += (size_t)n;
    }
    zip_source_close(source);
    return code;
}

/* The archive in memory; what our own reader would refuse is not written. */
static int make_archive(const qsim_packer *w, int32_t flags, const char *path, uint8_t **data,
                        size_t *size, qsim_error *error) {
    zip_error_t e;
    qsim_package *check = NULL;
    zip_error_init(&e);
    zip_source_t *target = zip_source_buffer_create(NULL, 0, 0, &e);
    int code = target ? build(w, target, flags, path, error) : fail_zip(&e, path, error);
    if (!code)
        code = copy_out(w->ctx, target, data, size, path, error);
    if (target)
        zip_source_free(target);
    zip_error_fini(&e);
    if (!code)
        code = qsim_package_open_memory(w->ctx, *data, *size, path, &check, error);
    qsim_package_free(check);
    return code;
}

static int write_file(qsim_ctx *ctx, const char *path, bool replace, const uint8_t *data,
                      size_t size, qsim_error *error) {
    qs_out out;
    int code = qs_out_open(ctx, path, replace, &out, error);
    if (code)
        return code;
    qs_out_write(&out, data, size); /* committing reports what failed */
    return qs_out_commit(&out, error);
}

/* With the two parts that the library writes itself. */
static int save_sorted(qsim_packer *w, const char *path, int32_t flags, qsim_error *error) {
    qs_text manifest = {.ctx = w->ctx}, sums = {.ctx = w->ctx};
    uint8_t *data = NULL;
    size_t size = 0;
    sort_parts(w);
    qs_manifest_write(w, &manifest);
    qs_part part = {.name = QS_MANIFEST, .data = manifest.data, .size = manifest.size};
    int code = manifest.failed ? qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", path)
                               : qs_packer_part(w, &part, error);
    if (!code) {
        sort_parts(w);
        qs_sums_write(w, &sums);
        part = (qs_part){.name = QS_SUMS, .data = sums.data, .size = sums.size};
        code = sums.failed ? qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", path)
                           : qs_packer_part(w, &part, error);
    }
    sort_parts(w);
    if (!code)
        code = make_archive(w, flags, path, &data, &size, error);
    if (!code)
        code = write_file(w->ctx, path, (flags & QSIM_PACK_REPLACE) != 0, data, size, error);
    qs_free(w->ctx, data);
    qs_free(w->ctx, manifest.data);
    qs_free(w->ctx, sums.data);
    return code;
}

/* Takes our own two parts out again: a packer can be saved twice. */
static void drop_own(qsim_packer *w) {
    size_t kept = 0;
    for (size_t i = 0; i < w->part_count; i++) {
        int32_t role = qs_role_of_name(w->parts[i].name);
        if (role != QSIM_ROLE_MANIFEST && role != QSIM_ROLE_SUMS)
            w->parts[kept++] = w->parts[i];
    }
    w->part_count = kept;
}

int qsim_packer_save(qsim_packer *w, const char *path, int32_t flags, qsim_error *error) {
    size_t total = 0;
    qs_error_clear(error);
    if (!w || !path || (flags & ~(QSIM_PACK_REPLACE | QSIM_PACK_DEFLATE)))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_packer_save: bad argument");
    if (!w->main)
        return qs_fail(error, QSIM_E_STATE, "%s: a package needs a model", path);
    for (size_t i = 0; i < w->part_count; i++)
        if (!qs_add(total, w->parts[i].size, &total) || !qs_add(total, PER_ENTRY, &total) ||
            total > MOST_BYTES)
            return qs_fail(error, QSIM_E_LIMIT, "%s: packages stay below 4 GiB", path);
    int code = save_sorted(w, path, flags, error);
    drop_own(w);
    return code;
}
