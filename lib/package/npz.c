/* SPDX-License-Identifier: MIT */
/*
 * Reads .npz files through libzip. A zip's directory is not trusted: names, methods and sizes are
 * checked against each other and against the .npy header before a member is inflated.
 */
#include <stdio.h>
#include <zip.h>

#include "base/file.h"
#include "kernel/context.h"
#include "package/archive.h"
#include "tensor/array.h"

/* The greatest ratio of deflate is 1032 to 1. */
#define DEFLATE_RATIO 1032u
#define HEADER_BYTES  (65536u + 12u)

typedef struct member {
    char *name; /* without ".npy" */
    zip_uint64_t size;
    qsim_array array;
} member;

struct qsim_npz {
    qsim_ctx *ctx;
    qs_arena arena;
    zip_t *zip;
    member *members;
    int32_t count;
};

static int fail_zip(qsim_error *error, zip_error_t *e, const char *what) {
    if (zip_error_code_zip(e) == ZIP_ER_EXISTS)
        return qs_fail(error, QSIM_E_FORMAT, ".npz: two members have the same name");
    return qs_zip_fail(e, QSIM_E_FORMAT, ".npz", what, error);
}

static int open_zip(qsim_npz *z, const void *data, size_t size, qsim_error *error) {
    zip_error_t e;
    if (size < 4 || memcmp(data, "PK", 2) != 0)
        return qs_fail(error, QSIM_E_FORMAT, "not an .npz file: it is not a zip archive");
    zip_error_init(&e);
    zip_source_t *source = zip_source_buffer_create(data, size, 0, &e);
    if (source)
        z->zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &e);
    if (!z->zip) {
        if (source)
            zip_source_free(source);
        int code = fail_zip(error, &e, "damaged archive");
        zip_error_fini(&e);
        return code;
    }
    zip_error_fini(&e);
    return QSIM_OK;
}

/* Checks a directory entry by itself. */
static int check_entry(qsim_npz *z, zip_int64_t index, const zip_stat_t *st, qsim_error *error) {
    const zip_uint64_t wanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((st->valid & wanted) != wanted)
        return qs_fail(error, QSIM_E_FORMAT, ".npz: member %lld is described incompletely",
                       (long long)index);
    size_t n = strlen(st->name);
    if (n < 5 || strcmp(st->name + n - 4, ".npy") != 0)
        return qs_fail(error, QSIM_E_FORMAT, ".npz: member '%s' is not a .npy file", st->name);
    /* Tensors are called "x:0", "onnx::Gemm_0" and "/a/b", too. */
    const char *fault = qs_path_fault(st->name);
    if (fault)
        return qs_fail(error, QSIM_E_FORMAT, ".npz: member '%s': its name %s", st->name, fault);
    if (zip_name_locate(z->zip, st->name, 0) != index)
        return qs_fail(error, QSIM_E_FORMAT, ".npz: two members are called '%s'", st->name);
    if (st->encryption_method != ZIP_EM_NONE)
        return qs_fail(error, QSIM_E_UNSUPPORTED, ".npz: member '%s' is encrypted", st->name);
    if (st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE)
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       ".npz: member '%s' uses compression method %d; stored and deflated ones are "
                       "read",
                       st->name, st->comp_method);
    bool stored = st->comp_method == ZIP_CM_STORE;
    if (stored ? st->size != st->comp_size : st->size / DEFLATE_RATIO > st->comp_size)
        return qs_fail(error, QSIM_E_FORMAT,
                       ".npz: member '%s' cannot hold %llu bytes in %llu compressed ones", st->name,
                       (unsigned long long)st->size, (unsigned long long)st->comp_size);
    return QSIM_OK;
}

/* Reads until `size` bytes are there or the member ends; -1 when it is damaged. */
static int64_t read_bytes(zip_file_t *f, void *out, size_t size) {
    size_t at = 0;
    while (at < size) {
        zip_int64_t n = zip_fread(f, (char *)out + at, size - at);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        at += (size_t)n;
    }
    return (int64_t)at;
}

static int fail_member(zip_file_t *f, const char *name, qsim_error *error) {
    char what[128];
    snprintf(what, sizeof(what), "member '%.100s' is damaged", name);
    return qs_zip_fail(zip_file_get_error(f), QSIM_E_FORMAT, ".npz", what, error);
}

/* Inflates the header alone and parses it. `scratch` has HEADER_BYTES. */
static int read_header(qsim_npz *z, zip_uint64_t index, member *m, uint8_t *scratch,
                       qsim_error *error) {
    zip_file_t *f = zip_fopen_index(z->zip, index, 0);
    if (!f)
        return fail_zip(error, zip_get_error(z->zip), m->name);
    size_t wanted = 12, length;
    int64_t n = read_bytes(f, scratch, wanted);
    if (n == 12 && memcmp(scratch, "\x93NUMPY", 6) == 0) {
        length = (size_t)scratch[8] | (size_t)scratch[9] << 8;
        if (scratch[6] > 1)
            length |= (size_t)scratch[10] << 16 | (size_t)scratch[11] << 24;
        length = length < HEADER_BYTES - 12 ? length : HEADER_BYTES - 12;
        int64_t more = read_bytes(f, scratch + 12, length);
        n = more < 0 ? more : n + more;
    }
    int code = QSIM_OK;
    if (n < 0)
        code = fail_member(f, m->name, error);
    else {
        qsim_error inner;
        m->array.struct_size = sizeof(m->array);
        code = qsim_npy_parse(scratch, (size_t)n, m->size, &m->array, &inner);
        if (code)
            qs_fail(error, code, ".npz: member '%s': %s", m->name, inner.message);
    }
    zip_fclose(f);
    return code;
}

static int read_directory(qsim_npz *z, qsim_error *error) {
    zip_int64_t count = zip_get_num_entries(z->zip, 0);
    if (count <= 0)
        return qs_fail(error, QSIM_E_FORMAT, ".npz: the archive has no members");
    if (count > INT32_MAX)
        return qs_fail(error, QSIM_E_LIMIT, ".npz: too many members");
    z->members = qs_arena_alloc(&z->arena, (size_t)count, sizeof(*z->members));
    uint8_t *scratch = qs_arena_alloc(&z->arena, HEADER_BYTES, 1);
    if (!z->members || !scratch)
        return qs_fail(error, QSIM_E_NOMEM, ".npz: out of memory");
    for (zip_int64_t i = 0; i < count; i++) {
        member *m = &z->members[i];
        zip_stat_t st;
        zip_stat_init(&st);
        if (zip_stat_index(z->zip, (zip_uint64_t)i, 0, &st) != 0)
            return fail_zip(error, zip_get_error(z->zip), "bad directory");
        int code = check_entry(z, i, &st, error);
        if (code)
            return code;
        m->name = qs_arena_string(&z->arena, st.name, strlen(st.name) - 4);
        m->size = st.size;
        if (!m->name)
            return qs_fail(error, QSIM_E_NOMEM, ".npz: out of memory");
        code = read_header(z, (zip_uint64_t)i, m, scratch, error);
        if (code)
            return code;
    }
    z->count = (int32_t)count;
    return QSIM_OK;
}

int qsim_npz_open(qsim_ctx *ctx, const void *data, size_t size, qsim_npz **out, qsim_error *error) {
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!out || (!data && size > 0))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_npz_open: bad argument");
    int code = qs_ctx_hold(ctx, &ctx, error);
    if (code)
        return code;
    qsim_npz *z = qs_calloc(ctx, 1, sizeof(*z));
    if (!z) {
        qs_ctx_drop(ctx);
        return qs_fail(error, QSIM_E_NOMEM, ".npz: out of memory");
    }
    z->ctx = ctx;
    qs_arena_init(&z->arena, ctx);
    code = open_zip(z, data, size, error);
    if (code == QSIM_OK)
        code = read_directory(z, error);
    if (code) {
        qsim_npz_free(z);
        return code;
    }
    *out = z;
    return QSIM_OK;
}

void qsim_npz_free(qsim_npz *z) {
    if (!z)
        return;
    if (z->zip)
        zip_discard(z->zip);
    qsim_ctx *ctx = z->ctx;
    qs_arena_free(&z->arena);
    qs_free(ctx, z);
    qs_ctx_drop(ctx);
}

int32_t qsim_npz_count(const qsim_npz *z) {
    return z ? z->count : 0;
}

const char *qsim_npz_name(const qsim_npz *z, int32_t index) {
    return z && index >= 0 && index < z->count ? z->members[index].name : NULL;
}

int qsim_npz_array(const qsim_npz *z, int32_t index, qsim_array *array) {
    if (!z || !array || array->struct_size < sizeof(*array) || index < 0 || index >= z->count)
        return QSIM_E_ARGUMENT;
    *array = z->members[index].array;
    return QSIM_OK;
}

/* Skips the header, reads the elements to `out`, and reads on to the end, where libzip checks the
 * CRC. */
static int inflate_member(zip_file_t *f, const member *m, uint8_t *out, qsim_error *error) {
    uint8_t skipped[256], rest;
    for (size_t left = m->array.offset; left > 0;) {
        size_t n = left < sizeof(skipped) ? left : sizeof(skipped);
        if (read_bytes(f, skipped, n) != (int64_t)n)
            return fail_member(f, m->name, error);
        left -= n;
    }
    const int64_t n = read_bytes(f, out, m->array.bytes), more = read_bytes(f, &rest, 1);
    if (n < 0 || more < 0)
        return fail_member(f, m->name, error);
    if ((size_t)n != m->array.bytes || more > 0)
        return qs_fail(error, QSIM_E_FORMAT,
                       ".npz: member '%s' inflates to another size than the directory says",
                       m->name);
    return QSIM_OK;
}

int qsim_npz_read(qsim_npz *z, int32_t index, void *out, size_t capacity, qsim_error *error) {
    qs_error_clear(error);
    if (!z || index < 0 || index >= z->count)
        return qs_fail(error, QSIM_E_ARGUMENT, ".npz: no member %d", index);
    const member *m = &z->members[index];
    size_t bytes = m->array.bytes;
    if (bytes > capacity || (bytes > 0 && !out))
        return qs_fail(error, QSIM_E_ARGUMENT, ".npz: member '%s' does not fit %zu bytes", m->name,
                       capacity);
    zip_file_t *f = zip_fopen_index(z->zip, (zip_uint64_t)index, 0);
    if (!f)
        return fail_zip(error, zip_get_error(z->zip), m->name);
    uint8_t *raw = qs_alloc(z->ctx, bytes ? bytes : 1, 1);
    int code = raw ? inflate_member(f, m, raw, error)
                   : qs_fail(error, QSIM_E_NOMEM, ".npz: out of memory for member '%s'", m->name);
    if (code == QSIM_OK) {
        qsim_array plain = m->array;
        plain.offset = 0;
        int64_t rows = plain.rank > 0 ? plain.dims[0] : 1;
        code = qsim_array_read(&plain, raw, bytes, 0, rows, out, capacity, error);
    }
    qs_free(z->ctx, raw);
    zip_fclose(f);
    return code;
}
