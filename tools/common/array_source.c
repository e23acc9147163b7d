/* SPDX-License-Identifier: MIT */
#include "common/array_source.h"

#include <stdlib.h>
#include <string.h>

#include "common/feed.h"
#include "common/gunzip.h"
#include "common/other_formats.h"

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Usual names of samples and of their labels in archives. */
static const char *const sample_names[] = {"x",       "X",       "x_test", "X_test",
                                           "x_train", "X_train", "images", NULL};
static const char *const label_names[] = {"y",       "Y",       "y_test", "Y_test",
                                          "y_train", "Y_train", "labels", NULL};

const char *source_label_name(size_t k) {
    return label_names[k];
}

/*
 * The index of a name in an .npz; -1: not there. The search begins at the member that `s` has, or
 * the source before it: members mostly come in the order of the inputs.
 */
static int32_t find_name(const source *s, const char *name) {
    const int32_t count = s->npz ? qsim_npz_count(s->npz) : 0;
    for (int32_t k = 0; k < count; k++) {
        const int32_t i = (int32_t)(((int64_t)s->member + k) % count);
        if (strcmp(qsim_npz_name(s->npz, i), name) == 0)
            return i;
    }
    return -1;
}

static int find_member(const tool *t, source *s, const char *member) {
    const bool labels = member && !*member;
    const char *const *names = labels ? label_names : sample_names;
    int32_t found = member && !labels ? find_name(s, member) : -1;
    for (size_t k = 0; names[k] && found < 0; k++)
        found = find_name(s, names[k]);
    if (found < 0 && qsim_npz_count(s->npz) == 1)
        found = 0;
    s->member = found;
    if (found >= 0)
        return EXIT_OK;
    text list = {0};
    for (int32_t i = 0; i < qsim_npz_count(s->npz) && i < 8; i++)
        text_printf(&list, "%s%.40s", i ? ", " : "", qsim_npz_name(s->npz, i));
    int code = tool_fail(t, QSIM_E_MISMATCH,
                         "%s: has several members, but none called '%s' or '%s': %s", s->path,
                         labels   ? "y"
                         : member ? member
                                  : "x",
                         labels ? "labels" : "x", list.data);
    text_free(&list);
    return code;
}

bool source_has_member(const source *s, const char *member) {
    return find_name(s, member) >= 0;
}

static int take_member(const tool *t, source *s, const char *member) {
    int code = find_member(t, s, member);
    if (code == EXIT_OK && qsim_npz_array(s->npz, s->member, &s->array))
        code = tool_fail(t, QSIM_E_INTERNAL, "%s: no such member", s->path);
    return code;
}

static int open_npz(const tool *t, source *s, const char *member) {
    qsim_error e;
    s->kind = SOURCE_NPZ;
    if (qsim_npz_open(t->ctx, s->data, s->size, &s->npz, &e))
        return tool_error(t, s->path, &e);
    return take_member(t, s, member);
}

int source_open_beside(const tool *t, const source *archive, const char *member, source *s) {
    *s = (source){.kind = SOURCE_NPZ,
                  .path = archive->path,
                  .npz = archive->npz,
                  .beside = true,
                  .member = archive->member};
    s->array.struct_size = sizeof(s->array);
    return take_member(t, s, member);
}

static int open_proto(const tool *t, source *s) {
    qsim_error e;
    s->kind = SOURCE_PROTO;
    return qsim_proto_parse(s->data, s->size, &s->array, &e) ? tool_error(t, s->path, &e) : EXIT_OK;
}

/* A file that is no array: what it is, or else what qsim reads. */
static void refuse_kind(const source *s, qsim_error *e) {
    const char *other = other_format(s->data, s->size);
    if (other)
        snprintf(e->message, sizeof(e->message), "is %s%s", other,
                 s->size > 0 ? ", which qsim does not read" : "");
    else if (((const unsigned char *)s->data)[0] != 0x93)
        snprintf(e->message, sizeof(e->message), "no picture, sound or array that qsim reads");
    snprintf(e->hint, sizeof(e->hint),
             "pictures end in .jpg, .png, .bmp, .webp, .ppm or .pgm, sounds in .wav, .flac, .mp3 "
             "or .ogg, arrays in .npy, .npz, .pb or .csv");
    if (strcmp(s->path, "-") == 0)
        snprintf(e->hint, sizeof(e->hint),
                 "standard input takes an array; pictures and sounds are "
                 "known by the ends of their names");
}

static int parse_content(const tool *t, source *s, const char *member) {
    const unsigned char *p = s->data;
    qsim_error e = {0};
    int code;
    bool idx_name = strstr(s->path, "-ubyte") || strstr(s->path, ".idx");
    if (ends_with(s->path, ".npz") || (s->size >= 2 && p[0] == 'P' && p[1] == 'K'))
        return open_npz(t, s, member);
    if (ends_with(s->path, ".pb"))
        return open_proto(t, s);
    if (ends_with(s->path, ".csv"))
        return source_open_table(t, s);
    if (idx_name || (!ends_with(s->path, ".npy") && s->size >= 4 && p[0] == 0 && p[1] == 0 &&
                     !other_format(s->data, s->size))) {
        code = qsim_idx_parse(s->data, s->size, &s->array, &e);
        s->idx = true;
    } else {
        code = qsim_npy_parse(s->data, s->size, 0, &s->array, &e);
        if (code == QSIM_E_FORMAT && !ends_with(s->path, ".npy") && !e.hint[0])
            refuse_kind(s, &e);
    }
    return code ? tool_error(t, s->path, &e) : EXIT_OK;
}

int source_open(const tool *t, const char *path, const char *member, source *s) {
    qsim_error e;
    memset(s, 0, sizeof(*s));
    s->path = path;
    s->array.struct_size = sizeof(s->array);
    if (strcmp(path, "-") == 0) {
        int code = tool_read_all(t, path, &s->owned, &s->size);
        s->data = s->owned;
        return code ? code : parse_content(t, s, member);
    }
    if (qsim_file_open(t->ctx, path, 0, &s->file, &e))
        return tool_error(t, path, &e);
    s->data = qsim_file_data(s->file);
    s->size = qsim_file_size(s->file);
    const unsigned char *p = s->data;
    if (s->size >= 2 && p[0] == 0x1f && p[1] == 0x8b) {
        int code = tool_gunzip(t, path, s->data, s->size, &s->owned, &s->size);
        if (code)
            return code;
        s->data = s->owned;
    }
    return parse_content(t, s, member);
}

void source_close(source *s) {
    qsim_npz_free(s->beside ? NULL : s->npz);
    qsim_file_close(s->file);
    free(s->owned);
    free(s->elements);
    memset(s, 0, sizeof(*s));
}

/* ---- reading ---- */

static int64_t positions(const source *s) {
    return s->array.rank > 0 ? s->array.dims[0] : 1;
}

uint64_t source_scramble(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void fill_random(const source *s, size_t first, size_t count, void *out) {
    size_t size = (size_t)qsim_dtype_bits(s->array.dtype) / 8;
    memset(out, 0, count * size);
    for (size_t i = 0; i < count; i++) {
        uint64_t r = source_scramble(s->seed * UINT64_C(0x9e3779b97f4a7c15) + first + i + 1);
        unsigned char *at = (unsigned char *)out + i * size;
        float f = (float)(r >> 40) * 0x1p-24f;
        int64_t bit = s->ones ? 1 : (int64_t)(r >> 63);
        if (is_float(s->array.dtype))
            qsim_tensor_convert(&(qsim_tensor){QSIM_FLOAT, 0, NULL, &f, sizeof(f)},
                                &(qsim_tensor){s->array.dtype, 0, NULL, at, size}, NULL);
        else if (s->array.dtype == QSIM_UINT8 || s->array.dtype == QSIM_INT8)
            *at = s->ones ? 1 : (unsigned char)(r >> 56);
        else if (size == 2)
            memcpy(at, &(uint16_t){(uint16_t)bit}, size);
        else if (size == 8)
            memcpy(at, &bit, size);
        else if (size == 4)
            memcpy(at, &(int32_t){(int32_t)bit}, size);
        else
            *at = (unsigned char)bit;
    }
}

void source_random(source *s, uint64_t seed, const slot *of, const int64_t *dims) {
    const int32_t dtype = of->dtype, rank = of->rank;
    memset(s, 0, sizeof(*s));
    s->kind = SOURCE_RANDOM;
    s->path = "random";
    s->seed = seed;
    s->ones = strcmp(of->name, "attention_mask") == 0 && !is_float(dtype);
    s->array.struct_size = sizeof(s->array);
    s->array.dtype = dtype;
    s->array.rank = rank;
    if (rank > 0)
        memcpy(s->array.dims, dims, (size_t)rank * sizeof(*dims));
    if (qsim_tensor_size(dtype, rank, dims, &s->array.elements, &s->array.bytes))
        s->array.elements = s->array.bytes = 0;
}

bool source_is_random(const char *spec, uint64_t *seed) {
    *seed = 0;
    if (strncmp(spec, "random", 6) != 0)
        return false;
    return spec[6] == 0 || (spec[6] == ':' && parse_uint64(spec + 7, seed));
}

/* Copies rows of elements that need no decoding. */
static void copy_rows(const source *s, const void *from, int64_t first, int64_t count, void *out) {
    size_t row = positions(s) > 0 ? s->array.bytes / (size_t)positions(s) : 0;
    if (first == 0 && count == positions(s) && s->array.bytes > 0)
        memcpy(out, from, s->array.bytes); /* packed types: rows may end inside a byte */
    else if (row > 0 && count > 0)
        memcpy(out, (const char *)from + (size_t)first * row, (size_t)count * row);
}

/* Decodes a whole archive member or TensorProto, on first use. */
static int decode(const tool *t, source *s) {
    qsim_error e;
    if (s->elements)
        return EXIT_OK;
    s->elements = tool_alloc(s->array.bytes, 1);
    int code = s->kind == SOURCE_NPZ
                   ? qsim_npz_read(s->npz, s->member, s->elements, s->array.bytes, &e)
                   : qsim_proto_read(s->data, s->size, s->elements, s->array.bytes, &e);
    return code ? tool_error(t, s->path, &e) : EXIT_OK;
}

int source_read(const tool *t, source *s, int64_t first, int64_t count, void *out,
                size_t capacity) {
    qsim_error e;
    int code;
    int64_t rows = positions(s);
    if (first < 0 || count < 0 || first > rows || count > rows - first ||
        (rows > 0 && s->array.bytes / (size_t)rows * (size_t)count > capacity))
        return tool_fail(t, QSIM_E_INTERNAL, "%s: bad range", s->path);
    size_t row = rows > 0 ? s->array.elements / (size_t)rows : 0;
    switch (s->kind) {
    case SOURCE_FILE:
        code = qsim_array_read(&s->array, s->data, s->size, first, count, out, capacity, &e);
        return code ? tool_error(t, s->path, &e) : EXIT_OK;
    case SOURCE_RANDOM:
        fill_random(s, (size_t)first * row, (size_t)count * row, out);
        return EXIT_OK;
    default:
        code = decode(t, s);
        if (code == EXIT_OK)
            copy_rows(s, s->elements, first, count, out);
        return code;
    }
}
