/* SPDX-License-Identifier: MIT */
/*
 * Writes a package. Entries have one fixed date and mode, so that the same contents make the same
 * archive.
 */
#include "package/packer.h"

#include "base/ctx.h"

#include <zip.h>

/* 1980-01-01 12:00: libzip converts it by the local time zone, and that noon exists in all. */
#define DOS_DATE   0x0021
#define DOS_TIME   0x6000
#define UNIX_MODE  (0100644u << 16)
#define MOST_BYTES 0xf0000000u /* leaves room for the directory below 4 GiB */
#define PER_ENTRY  4096u       /* most bytes of headers and names */

static void sort_parts(qsim_packer *w) {
    for (size_t i = 1; i < w->part_count; i++) {
        qs_package_part part = w->parts[i];
        size_t k = i;
        for (; k > 0 && strcmp(w->parts[k - 1].name, part.name) > 0; k--)
            w->parts[k] = w->parts[k - 1];
        w->parts[k] = part;
    }
}

static int fail_zip(zip_error_t *e, const char *path, qsim_error *error) {
    return qs_zip_fail(e, QSIM_E_INTERNAL, path, "cannot make the archive", error);
}

static bool add_part(zip_t *z, const qs_package_part *p, int32_t flags) {
    zip_source_t *s = zip_source_buffer(z, p->data, p->size, 0);
    if (!s)
        return false;
    zip_int64_t at = zip_file_add(z, p->name, s, ZIP_FL_ENC_UTF_8);
    if (at < 0) {
        zip_source_free(s);
        return false;
    }
    zip_uint64_t i = (zip_uint64_t)at;
    const int method = flags & QSIM_PACK_DEFLATE ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    return zip_set_file_compression(z, i, method, method == ZIP_CM_DEFLATE ? 9 : 0) == 0 &&
           zip_file_set_dostime(z, i, DOS_TIME, DOS_DATE, 0) == 0 &&
           zip_file_set_external_attributes(z, i, 0, ZIP_OPSYS_UNIX, UNIX_MODE) == 0;
}

/* ---- the file as libzip's target: archives of any size are written in little memory ---- */

typedef struct target {
    qs_out *out;
    zip_uint64_t at, size;
    zip_error_t error;
} target;

static zip_int64_t fail_target(target *t) {
    zip_error_set(&t->error, ZIP_ER_WRITE, t->out->code);
    return -1;
}

static zip_int64_t seek_target(target *t, void *data, zip_uint64_t size) {
    const zip_int64_t at = zip_source_seek_compute_offset(t->at, t->size, data, size, &t->error);
    if (at < 0)
        return -1;
    t->at = (zip_uint64_t)at;
    return qs_out_seek(t->out, t->at) ? fail_target(t) : 0;
}

static zip_int64_t target_call(void *user, void *data, zip_uint64_t size, zip_source_cmd_t cmd) {
    target *t = user;
    switch (cmd) {
    case ZIP_SOURCE_SUPPORTS: /* the commands that libzip needs; it reads nothing of a new file */
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
            ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_SEEK_WRITE,
            ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_ERROR: return zip_error_to_data(&t->error, data, size);
    case ZIP_SOURCE_STAT: zip_stat_init(data); return sizeof(zip_stat_t);
    case ZIP_SOURCE_SEEK_WRITE: return seek_target(t, data, size);
    case ZIP_SOURCE_TELL_WRITE: return (zip_int64_t)t->at;
    case ZIP_SOURCE_WRITE:
        if (qs_out_write(t->out, data, (size_t)size))
            return fail_target(t);
        t->at += size;
        t->size = t->size > t->at ? t->size : t->at;
        return (zip_int64_t)size;
    default: return 0;
    }
}

/* Writes the archive to a file; qs_out_commit reports a failed write. */
static int write_archive(const qsim_packer *w, target *t, int32_t flags, const char *path,
                         qsim_error *error) {
    zip_error_t e;
    zip_error_init(&e);
    zip_source_t *source = zip_source_function_create(target_call, t, &e);
    zip_t *z = source ? zip_open_from_source(source, ZIP_TRUNCATE, &e) : NULL;
    int code = z ? QSIM_OK : fail_zip(&e, path, error);
    if (source && !z)
        zip_source_free(source);
    for (size_t i = 0; i < w->part_count && !code; i++)
        if (!add_part(z, &w->parts[i], flags))
            code = fail_zip(zip_get_error(z), path, error);
    if (!code && zip_close(z) == 0)
        z = NULL;
    else if (!code && !t->out->code && !t->out->stopped)
        code = fail_zip(zip_get_error(z), path, error);
    if (z)
        zip_discard(z);
    zip_error_fini(&e);
    return code;
}

/* Refuses packages that the library's own reader would refuse. */
static int check_archive(const qs_out *out, const char *path, qsim_error *error) {
    qsim_package *p = NULL;
    qs_map map;
    int code = qs_out_map(out, &map, error);
    if (!code)
        code = qsim_package_open_memory(out->ctx, map.data, map.size, path, &p, error);
    qsim_package_free(p);
    qs_map_close(out->ctx, &map);
    return code;
}

static int write_file(const qsim_packer *w, const char *path, int32_t flags, qsim_error *error) {
    qs_out out;
    target t = {.out = &out};
    int code = qs_out_open(w->ctx, path, (flags & QSIM_PACK_REPLACE) != 0, &out, error);
    if (code)
        return code;
    zip_error_init(&t.error);
    code = write_archive(w, &t, flags, path, error);
    zip_error_fini(&t.error);
    if (!code && !out.code && !out.stopped)
        code = check_archive(&out, path, error);
    if (!code)
        return qs_out_commit(&out, error);
    qs_out_abort(&out);
    return code;
}

/* Adds the manifest and the list of hashes, and writes the archive. */
static int save_sorted(qsim_packer *w, const char *path, int32_t flags, qsim_error *error) {
    qs_text manifest = {.ctx = w->ctx}, sums = {.ctx = w->ctx};
    sort_parts(w);
    qs_manifest_write(w, &manifest);
    qs_package_part part = {.name = QS_MANIFEST, .data = manifest.data, .size = manifest.size};
    int code = manifest.failed ? qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", path)
                               : qs_packer_part(w, &part, error);
    if (!code) {
        sort_parts(w);
        qs_sums_write(w, &sums);
        part = (qs_package_part){.name = QS_SUMS, .data = sums.data, .size = sums.size};
        code = sums.failed ? qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", path)
                           : qs_packer_part(w, &part, error);
    }
    sort_parts(w);
    if (!code)
        code = write_file(w, path, flags, error);
    qs_free(w->ctx, manifest.data);
    qs_free(w->ctx, sums.data);
    return code;
}

/* Removes the manifest and the list of hashes again, since a packer can be saved twice. */
static void drop_generated(qsim_packer *w) {
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
    drop_generated(w);
    return qs_leave(w->ctx, code, error);
}
