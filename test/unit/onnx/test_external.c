/* SPDX-License-Identifier: MIT */
/* Tensors outside the model: read beside it or through a callback, saved inside or outside. */
#include "test.h"
#include "proto.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include <qsim/data.h>
#include <qsim/model.h>

static const float values[6] = {9, 9, 1, 2, 3, 9}; /* w is 1, 2, 3 at offset 8 */
static const int64_t dims[] = {-1, 3};

static void write_model(proto *model, const char *location, const char *offset, const char *length,
                        bool inside) {
    proto g = {0}, t = {0};
    model->size = 0;
    proto_node(&g, "Add", "add", "x", "w", "y");
    proto_int(&t, 1, 3);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    proto_text(&t, 12, "kept");
    proto_external(&t, "location", location);
    if (offset)
        proto_external(&t, "offset", offset);
    if (length)
        proto_external(&t, "length", length);
    proto_int(&t, 14, 1);
    if (inside)
        proto_bytes(&t, 9, values + 2, 12);
    proto_take(&g, 5, &t);
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 2);
    proto_model(model, &g);
    proto_free(&g);
    proto_free(&t);
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        abort();
}

static void check_weights(const qsim_model *m) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    for (int32_t i = 0; i < qsim_model_value_count(m); i++)
        if (qsim_model_value(m, i, &v) == QSIM_OK && strcmp(v.name, "w") == 0)
            break;
    CHECK_INT(v.bytes, 12);
    CHECK(v.data && v.bytes == 12 && memcmp(v.data, values + 2, 12) == 0);
}

/* Saved elsewhere, the model includes its tensors: the same graph, no external data. */
static void check_saved(const qsim_model *m, const char *folder) {
    char path[600], a[65], b[65];
    qsim_error e = {0};
    qsim_model *again = NULL;
    snprintf(path, sizeof(path), "%s/sub/saved.onnx", folder);
    CHECK_INT(qsim_model_save(m, path, NULL, &e), QSIM_OK);
    CHECK_INT(qsim_model_save(m, path, NULL, &e), QSIM_E_EXISTS);
    qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_REPLACE};
    CHECK_INT(qsim_model_save(m, path, &o, &e), QSIM_OK);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &again, &e), QSIM_OK);
    if (again) {
        check_weights(again);
        qsim_model_hash(m, a);
        qsim_model_hash(again, b);
        CHECK_STR(b, a);
        CHECK_INT(qsim_model_bytes(again) > 0, 1);
    }
    qsim_model_free(again);
    unlink(path);
}

/* One location, at most one offset and one length. */
static void check_counts(const char *path, proto *model) {
    static const int counts[][3] = {{1, 0, 0}, {1, 1, 1}, {0, 0, 0}, {0, 1, 1},
                                    {2, 0, 0}, {1, 2, 1}, {1, 1, 2}};
    static const char *const keys[] = {"location", "offset", "length"}, *const facts[] = {
                                                                            "sub/w.bin", "8", "12"};
    for (int i = 0; i < 7; i++) {
        proto g = {0}, t = {0};
        qsim_model *m = NULL;
        qsim_error e = {0};
        proto_node(&g, "Neg", "neg", "w", NULL, "y");
        proto_int(&t, 1, 3);
        proto_int(&t, 2, QSIM_FLOAT);
        proto_text(&t, 8, "w");
        for (int k = 0; k < 3; k++)
            for (int n = 0; n < counts[i][k]; n++)
                proto_external(&t, keys[k], facts[k]);
        proto_external(&t, "checksum", "of no use");
        proto_int(&t, 14, 1);
        proto_take(&g, 5, &t);
        proto_value(&g, 12, "y", QSIM_FLOAT, dims + 1, 1);
        model->size = 0;
        proto_model(model, &g);
        write_file(path, model->data, model->size);
        CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), i < 2 ? QSIM_OK : QSIM_E_FORMAT);
        if (i >= 2)
            CHECK(strstr(e.message, "'w': external data needs one location and at most one "
                                    "offset and length") != NULL);
        qsim_model_free(m);
        proto_free(&g);
        proto_free(&t);
    }
}

/* Tensors of two files, and a second one of the first. */
static void check_several(const char *folder, const char *path, proto *model) {
    static const float other[3] = {40, 50, 60};
    static const char *const names[] = {"w", "v", "u"}, *const files[] = {"sub/w.bin", "other.bin",
                                                                          "sub/w.bin"};
    char file[600];
    proto g = {0}, t = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    qsim_value_info v = {.struct_size = sizeof(v)};
    snprintf(file, sizeof(file), "%s/other.bin", folder);
    write_file(file, other, sizeof(other));
    for (int i = 0; i < 3; i++) {
        proto_int(&t, 1, 3);
        proto_int(&t, 2, QSIM_FLOAT);
        proto_text(&t, 8, names[i]);
        proto_external(&t, "location", files[i]);
        proto_external(&t, "length", "12");
        if (i != 1)
            proto_external(&t, "offset", i ? "4" : "8");
        proto_int(&t, 14, 1);
        proto_take(&g, 5, &t);
    }
    proto_node(&g, "Sum", "sum", "w", "v", "y");
    proto_node(&g, "Neg", "neg", "u", NULL, "z");
    proto_value(&g, 12, "y", QSIM_FLOAT, dims + 1, 1);
    proto_value(&g, 12, "z", QSIM_FLOAT, dims + 1, 1);
    model->size = 0;
    proto_model(model, &g);
    write_file(path, model->data, model->size);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    const void *const wanted[] = {values + 2, other, values + 1};
    int found = 0;
    for (int32_t i = 0; i < qsim_model_value_count(m); i++)
        for (int k = 0; k < 3 && qsim_model_value(m, i, &v) == QSIM_OK; k++)
            if (strcmp(v.name, names[k]) == 0) {
                CHECK(v.data && memcmp(v.data, wanted[k], 12) == 0);
                found++;
            }
    CHECK_INT(found, 3);
    CHECK_STR(qsim_model_external_file(m, 0), "sub/w.bin");
    CHECK_STR(qsim_model_external_file(m, 1), "other.bin");
    CHECK(!qsim_model_external_file(m, 2) && !qsim_model_external_file(m, -1) &&
          !qsim_model_external_file(NULL, 0));
    qsim_model_free(m);
    unlink(file);
    proto_free(&g);
    proto_free(&t);
}

/* Places in sub/w.bin, of 24 bytes, and locations. */
static const struct {
    const char *location, *offset, *length;
    int code;
    const char *part;
} places[] = {
    {"sub/w.bin", "12", "12", QSIM_OK, ""},
    {"sub/w.bin", "12", NULL, QSIM_OK, ""},
    {"sub/w.bin", NULL, NULL, QSIM_OK, ""},
    {"sub/w.bin", "13", "12", QSIM_E_FORMAT, "ends at 24, 13 + 12 are needed"},
    {"sub/w.bin", "25", "12", QSIM_E_FORMAT, "ends at 24, 25 + 12 are needed"},
    {"sub/w.bin", "8", "11", QSIM_E_FORMAT, "has length 11, the shape needs 12"},
    {"sub/w.bin", "8", "13", QSIM_E_FORMAT, "has length 13, the shape needs 12"},
    {"sub/w.bin", "-8", "12", QSIM_E_FORMAT, "is not a number"},
    {"sub/w.bin", "", "12", QSIM_E_FORMAT, "is not a number"},
    {"sub/w.bin", "8", "", QSIM_E_FORMAT, "is not a number"},
    {"sub/w.bin", "8", "12 ", QSIM_E_FORMAT, "is not a number"},
    {"sub/w.bin", "18446744073709551608", "12", QSIM_E_FORMAT,
     "ends at 24, 18446744073709551608 + 12"},
    {"sub/w.bin", "18446744073709551615", "12", QSIM_E_FORMAT,
     "ends at 24, 18446744073709551615 + 12"},
    {"sub/w.bin", "18446744073709551616", "12", QSIM_E_FORMAT, "is not a number"},
    {"sub/w.bin", "8x", NULL, QSIM_E_FORMAT, "is not a number"},
    {"sub/w.bin", ":", "12", QSIM_E_FORMAT, "is not a number"}, /* the character after 9 */
    {"sub/w.bin", "/", "12", QSIM_E_FORMAT, "is not a number"},
    {"sub/none.bin", NULL, NULL, QSIM_E_IO, "external data file 'sub/none.bin': "},
    {"../w.bin", NULL, NULL, QSIM_E_VALUE, "has an empty, \".\" or \"..\" component"},
    {"/etc/passwd", NULL, NULL, QSIM_E_VALUE, "'/etc/passwd' is absolute"},
    {"sub", NULL, NULL, QSIM_E_IO, "external data file 'sub' is not a regular file"},
};

static void check_files(const char *folder, const char *path, proto *model) {
    qsim_error e = {0};
    qsim_model *m = NULL;
    write_model(model, "sub/w.bin", "8", "12", false);
    write_file(path, model->data, model->size);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), QSIM_OK);
    if (m) {
        check_weights(m);
        check_saved(m, folder);
    } else {
        fprintf(stderr, "%s\n", e.message);
    }
    qsim_model_free(m);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        e.message[0] = 0;
        write_model(model, places[i].location, places[i].offset, places[i].length, false);
        write_file(path, model->data, model->size);
        CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), places[i].code);
        if (places[i].code)
            CHECK(strstr(e.message, "'w'") != NULL);
        if (!strstr(e.message, places[i].part))
            CHECK_STR(e.message, places[i].part);
        qsim_model_free(m);
        m = NULL;
    }
    check_counts(path, model);
    write_model(model, "", NULL, NULL, false);
    write_file(path, model->data, model->size);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), QSIM_E_VALUE);
    CHECK(strstr(e.message, "is empty") != NULL);
    write_model(model, "sub/w.bin", "8", "12", true);
    write_file(path, model->data, model->size);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, "inside and outside") != NULL);
}

/* The longest name that a file can have; no bytes, at a file's end. */
static void check_edges(const char *folder, const char *path, proto *model) {
    char name[257], file[600];
    qsim_error e = {0};
    qsim_model *m = NULL;
    memset(name, 'n', 256);
    name[256] = 0;
    write_model(model, name, "8", "12", false);
    write_file(path, model->data, model->size);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), QSIM_E_IO);
    name[255] = 0;
    snprintf(file, sizeof(file), "%s/%s", folder, name);
    write_file(file, values, sizeof(values));
    write_model(model, name, "8", "12", false);
    write_file(path, model->data, model->size);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), QSIM_OK);
    check_weights(m);
    qsim_model_free(m);
    unlink(file);

    static const int64_t none[] = {0};
    proto g = {0}, t = {0};
    for (int past = 0; past < 2; past++) {
        proto_int(&t, 1, 0);
        proto_int(&t, 2, QSIM_FLOAT);
        proto_text(&t, 8, "w");
        proto_external(&t, "location", "sub/w.bin");
        proto_external(&t, "offset", past ? "25" : "24");
        proto_int(&t, 14, 1);
        proto_node(&g, "Neg", "neg", "w", NULL, "y");
        proto_take(&g, 5, &t);
        proto_value(&g, 12, "y", QSIM_FLOAT, none, 1);
        model->size = 0;
        proto_model(model, &g);
        write_file(path, model->data, model->size);
        m = NULL;
        CHECK_INT(qsim_model_load(NULL, path, NULL, &m, &e), past ? QSIM_E_FORMAT : QSIM_OK);
        qsim_model_free(m);
    }
    proto_free(&g);
    proto_free(&t);
}

/* ---- saved in two files ---- */

#define WIDTH 300 /* of w, v and k, which go outside; b stays inside */
#define ROWS  16  /* of w, whose bytes are a multiple of 64 */

static qsim_model *build_two(void) {
    float w[ROWS * WIDTH], b[1] = {7};
    qsim_error e = {0};
    qsim_builder *builder = NULL;
    qsim_model *m = NULL;
    for (int i = 0; i < ROWS * WIDTH; i++)
        w[i] = (float)i / 2;
    CHECK_INT(qsim_builder_create(NULL, 17, "two", &builder, &e), QSIM_OK);
    qsim_builder_input_as(builder, "x", "float[16,300]");
    qsim_builder_constant_as(builder, "w", "float[16,300]", w);
    qsim_builder_constant_as(builder, "b", "float[1]", b);
    qsim_builder_constant_as(builder, "v", "float[300]", w);
    qsim_builder_constant_as(builder, "k", "float[300]", w);
    qsim_builder_node(builder, "", "Add", "first", "x,w", "t");
    qsim_builder_node(builder, "", "Mul", "second", "t,b", "u");
    qsim_builder_node(builder, "", "Sub", "third", "u,v", "z");
    qsim_builder_node(builder, "", "Sub", "fourth", "z,k", "y");
    qsim_builder_output_as(builder, "y", "float[16,300]");
    CHECK_INT(qsim_builder_finish(builder, &m, &e), QSIM_OK);
    qsim_builder_free(builder);
    return m;
}

static long size_of(const char *path) {
    struct stat st;
    return stat(path, &st) ? -1 : (long)st.st_size;
}

/* `m` in two files, read again: the same graph, the large constants at multiples of 64. */
static void check_two(const qsim_model *m, const char *path, const char *data) {
    char a[65], b[65];
    qsim_error e = {0};
    qsim_model *again = NULL;
    qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_EXTERNAL};
    CHECK_INT(qsim_model_save(m, path, &o, &e), QSIM_OK);
    CHECK_INT(qsim_model_save(m, path, &o, &e), QSIM_E_EXISTS);
    CHECK(size_of(path) > 0 && size_of(path) < 1000);
    CHECK_INT(size_of(data), 19200 + 1216 + 1200);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &again, &e), QSIM_OK);
    if (again) {
        qsim_model_hash(m, a);
        qsim_model_hash(again, b);
        CHECK_STR(b, a);
        CHECK_STR(qsim_model_external_file(again, 0), "two.onnx.data");
    }
    qsim_value_info v = {.struct_size = sizeof(v)};
    for (int32_t i = 0; i < qsim_model_value_count(again); i++)
        if (qsim_model_value(again, i, &v) == QSIM_OK && strcmp(v.name, "v") == 0)
            break;
    CHECK(v.data && v.bytes == 1200 && ((const float *)v.data)[WIDTH - 1] == 149.5f);
    qsim_model_free(again);
}

static void check_two_files(const char *folder) {
    char path[600], data[620], other[620];
    qsim_error e = {0};
    qsim_model *made = build_two(), *loaded = NULL;
    qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_EXTERNAL};
    snprintf(path, sizeof(path), "%s/two.onnx", folder);
    snprintf(data, sizeof(data), "%s.data", path);
    CHECK_INT(qsim_model_save(made, path, NULL, &e), QSIM_OK);
    CHECK_INT(qsim_model_load(NULL, path, NULL, &loaded, &e), QSIM_OK);
    unlink(path);
    snprintf(other, sizeof(other), "%s.data1", path);
    CHECK_INT(qsim_file_write(NULL, other, 0, &(qsim_bytes){"1", 1}, 1, &e), QSIM_OK);
    check_two(made, path, data);
    CHECK_INT(size_of(other), 1); /* nothing is replaced, no other file removed */
    unlink(other);
    unlink(path);
    /* the second file exists: no file is written */
    CHECK_INT(qsim_model_save(made, path, &o, &e), QSIM_E_EXISTS);
    CHECK_INT(size_of(path), -1);
    unlink(data);
    check_two(loaded, path, data); /* read from one file, and not changed */
    o.flags |= QSIM_SAVE_REPLACE;
    CHECK_INT(qsim_model_save(made, path, &o, &e), QSIM_OK);
    CHECK_INT(size_of(data), -1); /* the new data has another name */
    strcat(data, "1");
    unlink(path);
    unlink(data);
    qsim_model_free(made);
    qsim_model_free(loaded);
}

static int calls;

static int give(void *user, const char *location, const void **data, size_t *size) {
    calls++;
    CHECK_STR(location, "weights/here");
    if (!user)
        return -1;
    *data = user;
    *size = sizeof(values);
    return 0;
}

static int give_all(void *user, const char *location, const void **data, size_t *size) {
    CHECK_STR(location, "w");
    *data = user;
    *size = 16;
    return 0;
}

static void check_callback(proto *model) {
    float copy[6];
    qsim_error e = {0};
    qsim_model *m = NULL;
    memcpy(copy, values, sizeof(copy));
    qsim_load_options o = {.struct_size = sizeof(o), .external = give, .external_user = copy};
    write_model(model, "weights/here", "8", NULL, false);
    CHECK_INT(qsim_model_load_memory(NULL, model->data, model->size, &o, &m, &e), QSIM_OK);
    CHECK_INT(calls, 1);
    if (m)
        check_weights(m);
    qsim_model_free(m);
    o.external_user = NULL;
    CHECK_INT(qsim_model_load_memory(NULL, model->data, model->size, &o, &m, &e), QSIM_E_IO);
    CHECK_INT(qsim_model_load_memory(NULL, model->data, model->size, NULL, &m, &e), QSIM_E_IO);
    CHECK(strstr(e.message, "callback") != NULL);
    write_model(model, "../up", "8", NULL, false); /* the callback is not called for this path */
    CHECK_INT(qsim_model_load_memory(NULL, model->data, model->size, &o, &m, &e), QSIM_E_VALUE);
    CHECK_INT(calls, 2);
}

/* ---- where the bytes are ---- */

/* Sixteen bytes, read as `size` floats from an offset on, with a length. */
static int read_at(int64_t size, const char *const keys[][2], qsim_error *e) {
    static uint8_t bytes[16];
    proto g = {0}, t = {0}, model = {0};
    qsim_model *m = NULL;
    uint8_t *copy = exact_copy(bytes, sizeof(bytes));
    qsim_load_options o = {.struct_size = sizeof(o), .external = give_all, .external_user = copy};
    *e = (qsim_error){0};
    proto_node(&g, "Add", "add", "x", "w", "y");
    proto_int(&t, 1, size);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    for (int i = 0; keys[i][0]; i++)
        proto_external(&t, keys[i][0], keys[i][1]);
    proto_int(&t, 14, 1);
    proto_take(&g, 5, &t);
    proto_value(&g, 11, "x", QSIM_FLOAT, &size, 1);
    proto_value(&g, 12, "y", QSIM_FLOAT, &size, 1);
    proto_model(&model, &g);
    const int code = qsim_model_load_memory(NULL, model.data, model.size, &o, &m, e);
    char hash[65];
    if (!code)
        CHECK_INT(qsim_model_hash(m, hash), QSIM_OK); /* which reads all bytes */
    qsim_model_free(m);
    free(copy);
    proto_free(&g);
    proto_free(&t);
    proto_free(&model);
    return code;
}

static void check_ranges(void) {
    static const struct {
        int64_t size;
        const char *offset, *length, *why; /* NULL: it is read */
    } ranges[] = {
        {4, NULL, NULL, NULL},
        {4, "0", "16", NULL},
        {4, "0", "15", "has length 15"},
        {4, "0", "17", "has length 17"},
        {4, "1", NULL, "ends at 16, 1 + 16"},
        {5, NULL, NULL, "ends at 16, 0 + 20"},
        {3, "4", "12", NULL},
        {3, "004", "12", NULL},
        {3, "5", "12", "ends at 16"},
        {0, NULL, NULL, NULL},
        {0, "16", "0", NULL},
        {0, "17", "0", "ends at 16"},
        {0, "0", "1", "has length 1"},
        {0, "18446744073709551615", NULL, "ends at 16"},
        {0, "18446744073709551616", NULL, "not a number"},
        {0, "184467440737095516150", NULL, "not a number"},
        {4, "", NULL, "not a number"},
        {4, "-0", NULL, "not a number"},
        {4, "+0", NULL, "not a number"},
        {4, " 0", NULL, "not a number"},
        {4, "0 ", NULL, "not a number"},
        {4, "/", NULL, "not a number"},
        {4, ":", NULL, "not a number"},
        {4, NULL, "", "not a number"},
        {4, NULL, "1x", "not a number"},
    };
    qsim_error e;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
        const char *keys[4][2] = {{"location", "w"}};
        int n = 1;
        if (ranges[i].offset)
            keys[n][0] = "offset", keys[n++][1] = ranges[i].offset;
        if (ranges[i].length)
            keys[n][0] = "length", keys[n++][1] = ranges[i].length;
        const int code = read_at(ranges[i].size, keys, &e);
        CHECK_INT(code, ranges[i].why ? QSIM_E_FORMAT : QSIM_OK);
        if (code && !strstr(e.message, ranges[i].why))
            CHECK_FAIL(ranges[i].why);
    }
    static const char *const twice[][4][2] = {
        {{"location", "w"}, {"location", "w"}},
        {{"location", "w"}, {"offset", "0"}, {"offset", "0"}},
        {{"location", "w"}, {"length", "16"}, {"length", "16"}},
        {{"offset", "0"}, {"length", "16"}}, /* no location */
    };
    for (int i = 0; i < 4; i++) {
        CHECK_INT(read_at(4, twice[i], &e), QSIM_E_FORMAT);
        CHECK(strstr(e.message, "needs one location") != NULL);
    }
    static const char *const unknown[][2] = {{"location", "w"}, {"checksum", "x"}, {NULL, NULL}};
    CHECK_INT(read_at(4, unknown, &e), QSIM_OK);
}

/* ---- a model that is read twice ---- */

static void *take(void *user, size_t size, size_t align) {
    (void)user;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

/* Nothing that was in the block can be read from it. */
static void wipe(void *user, void *ptr, size_t size) {
    (void)user;
    memset(ptr, 0xa5, size);
    free(ptr);
}

/* y = x + w if c, else its greatest element: the If is read as a choice, then again as a node. */
static void write_if(proto *model) {
    proto g = {0}, t = {0}, node = {0}, then = {0}, otherwise = {0};
    model->size = 0;
    proto_int(&t, 1, 3);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    proto_external(&t, "location", "weights/here");
    proto_external(&t, "offset", "8");
    proto_int(&t, 14, 1);
    proto_take(&g, 5, &t);
    proto_node(&then, "Add", "add", "x", "w", "a");
    proto_name(&then, 12, "a");
    proto_node(&otherwise, "ReduceMax", "max", "x", NULL, "b");
    proto_name(&otherwise, 12, "b");
    proto_text(&node, 1, "c");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "If");
    proto_graph(&node, "then_branch", &then);
    proto_graph(&node, "else_branch", &otherwise);
    proto_take(&g, 1, &node);
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
    proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
    proto_name(&g, 12, "y");
    proto_model(model, &g);
    proto_free(&g);
    proto_free(&node);
    proto_free(&then);
    proto_free(&otherwise);
    proto_free(&t);
}

static void check_twice(proto *model) {
    float copy[6];
    const qsim_allocator a = {take, wipe, NULL};
    const qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a};
    const qsim_load_options l = {.struct_size = sizeof(l), .external = give, .external_user = copy};
    qsim_ctx *ctx = NULL;
    qsim_model *m = NULL;
    memcpy(copy, values, sizeof(copy));
    calls = 0;
    write_if(model);
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(ctx, model->data, model->size, &l, &m, NULL), QSIM_OK);
    CHECK_INT(calls, 1);
    CHECK_STR(qsim_model_external_file(m, 0), "weights/here");
    CHECK(qsim_model_external_file(m, 1) == NULL);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
}

int main(void) {
    char folder[] = "qsim_external_XXXXXX", path[600];
    proto model = {0};
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof(path), "%s/sub", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/sub/w.bin", folder);
    write_file(path, values, sizeof(values));
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    check_files(folder, path, &model);
    check_several(folder, path, &model);
    check_edges(folder, path, &model);
    check_callback(&model);
    check_ranges();
    check_twice(&model);
    unlink(path);
    check_two_files(folder);
    snprintf(path, sizeof(path), "%s/sub/w.bin", folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/sub", folder);
    rmdir(path);
    CHECK_INT(rmdir(folder), 0); /* no temporary file was left */
    proto_free(&model);
    return test_done();
}
