/* SPDX-License-Identifier: MIT */
/* Whole files for applications: the public form of base/file.h. */
#include "base/ctx.h"
#include "base/file.h"

#include <qsim/data.h>

struct qsim_file {
    qsim_ctx *ctx;
    qs_map map;
};

int qsim_file_open(qsim_ctx *ctx, const char *path, int32_t flags, qsim_file **out,
                   qsim_error *error) {
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!path || !out || (flags & ~QSIM_FILE_COPY))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_file_open: bad argument");
    int code = qs_ctx_hold_bare(ctx, &ctx, error);
    if (code != QSIM_OK)
        return code;
    qsim_file *f = qs_calloc(ctx, 1, sizeof(*f));
    code = f ? qs_map_open(ctx, path, flags & QSIM_FILE_COPY, &f->map, error)
             : qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", path);
    if (code != QSIM_OK) {
        qs_free(ctx, f);
        qs_ctx_drop(ctx);
        return code;
    }
    f->ctx = ctx;
    *out = f;
    return QSIM_OK;
}

const void *qsim_file_data(const qsim_file *file) {
    return file ? file->map.data : NULL;
}

size_t qsim_file_size(const qsim_file *file) {
    return file ? file->map.size : 0;
}

void qsim_file_close(qsim_file *file) {
    if (!file)
        return;
    qsim_ctx *ctx = file->ctx;
    qs_map_close(ctx, &file->map);
    qs_free(ctx, file);
    qs_ctx_drop(ctx);
}

int qsim_file_write(qsim_ctx *ctx, const char *path, int32_t flags, const qsim_bytes *pieces,
                    size_t count, qsim_error *error) {
    qs_out out;
    qs_error_clear(error);
    if (!path || (flags & ~QSIM_FILE_REPLACE) || (count > 0 && !pieces))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_file_write: bad argument");
    int code = qs_ctx_hold_bare(ctx, &ctx, error);
    if (code != QSIM_OK)
        return code;
    code = qs_out_open(ctx, path, flags & QSIM_FILE_REPLACE, &out, error);
    if (code == QSIM_OK) {
        /* Commit reports the first write that failed. */
        for (size_t i = 0; i < count; i++)
            qs_out_write(&out, pieces[i].data, pieces[i].size);
        code = qs_out_commit(&out, error);
    }
    qs_ctx_drop(ctx);
    return code;
}
