/* SPDX-License-Identifier: MIT */
/* QSIM_LOAD_CHECK: every problem of a broken model, none of them twice. What is no model at all is
 * named. */
#include <string.h>

#include <qsim/qsim.h>

#include "onnx/reader.h"
#include "proto.h"
#include "test.h"

struct list {
    char text[16][384];
    int count;
};

static void note(void *user, const qsim_error *error) {
    struct list *l = user;
    CHECK(error->code < 0);
    if (l->count < 16)
        memcpy(l->text[l->count], error->message, 384);
    l->count++;
}

static int count_of(const struct list *l, const char *part) {
    int n = 0;
    for (int i = 0; i < l->count && i < 16; i++)
        n += strstr(l->text[i], part) != NULL;
    return n;
}

/* A float tensor [n] with `bytes` bytes of data. */
static void add_constant(proto *graph, const char *name, int64_t n, size_t bytes) {
    static const uint8_t zeros[64];
    proto_constant(graph, name, QSIM_FLOAT, n, zeros, bytes);
}

/* As add_constant(), with its data in a file that does not exist. */
static void add_external(proto *graph, const char *name) {
    proto t = {0};
    proto_int(&t, 1, 3);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, name);
    proto_external(&t, "location", "no_such_file.bin");
    proto_int(&t, 14, 1);
    proto_take(graph, 5, &t);
    proto_free(&t);
}

static void make_broken(proto *model) {
    static const int64_t dims[] = {3};
    proto g = {0};
    add_constant(&g, "short_w", 3, 8);
    add_constant(&g, "twice_w", 3, 12);
    add_constant(&g, "twice_w", 3, 12);
    add_external(&g, "far_w");
    proto_node(&g, "Wobble", "unknown", "x", NULL, "a");
    proto_node(&g, "Add", "uses_short", "x", "short_w", "b");
    proto_node(&g, "Add", "uses_far", "x", "far_w", "c");
    proto_node(&g, "Relu", "no_input", "nowhere", NULL, "d");
    proto_node(&g, "Relu", "again", "x", NULL, "d");
    proto_node(&g, "Add", "round_1", "x", "r2", "r1");
    proto_node(&g, "Relu", "round_2", "r1", NULL, "r2");
    proto_node(&g, "Relu", "uses_odd", "odd_x", NULL, "e"); /* no second problem of this input */
    proto_node(&g, "Add", "too_many", "x", "twice_w", "y");
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
    proto_value(&g, 11, "odd_x", 99, dims, 1);
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
    proto_value(&g, 12, "missing", QSIM_FLOAT, dims, 1);
    proto_model(model, &g);
    proto_free(&g);
}

/* A caller who goes on despite the problems: saving, optimizing and compiling are refused. */
static void check_use(qsim_model *m) {
    qsim_error e;
    size_t need;
    qsim_model *other = NULL;
    qsim_session *s = NULL;
    qsim_session_options so = {.struct_size = sizeof(so)};
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, &need, &e), QSIM_E_STATE);
    CHECK_INT(qsim_model_optimize(m, 0, &other, &e), QSIM_E_STATE);
    CHECK_INT(qsim_session_create(m, &so, &s, &e), QSIM_E_STATE);
}

/* A part that cannot be read is one problem: what reads its tensors has none. */
static void check_once(void) {
    static const int64_t dims[] = {3};
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_CHECK};
    for (int part = 0; part < 3; part++) {
        proto model = {0}, g = {0}, node = {0};
        struct list l = {0};
        qsim_model *m = NULL;
        if (part == 0)
            add_constant(&g, "p", 3, 8);
        if (part == 1)
            proto_name(&g, 11, "p"); /* an input without a type */
        if (part == 2) {             /* a node without an operator */
            proto_text(&node, 1, "x");
            proto_text(&node, 2, "p");
            proto_text(&node, 2, "q");
            proto_take(&g, 1, &node);
        }
        proto_node(&g, "Add", NULL, "x", "p", "y");
        proto_node(&g, "Relu", NULL, part == 2 ? "q" : "x", NULL, "z");
        proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
        proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
        proto_model(&model, &g);
        CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, &o, &m, NULL), QSIM_OK);
        CHECK_INT(qsim_model_check(m, note, &l), 1);
        for (int i = 1; i < l.count && i < 16; i++)
            CHECK_FAIL(l.text[i]);
        qsim_model_free(m);
        proto_free(&model);
        proto_free(&g);
        proto_free(&node);
    }
}

/* Outputs without names: reading goes on after 1000 problems at most. */
static void check_many(int count) {
    static const int64_t dims[] = {3};
    proto model = {0}, g = {0};
    struct list l = {0};
    qsim_model *m = NULL;
    qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_CHECK};
    for (int i = 0; i < count; i++)
        proto_node(&g, "Relu", NULL, "x", NULL, "");
    proto_node(&g, "Relu", NULL, "x", NULL, "y");
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
    proto_model(&model, &g);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, &o, &m, NULL),
              count > 1000 ? QSIM_E_GRAPH : QSIM_OK);
    if (m)
        CHECK(qsim_model_check(m, note, &l) >= count);
    qsim_model_free(m);
    proto_free(&model);
    proto_free(&g);
}

/* ---- files of other formats ---- */

/* Whether a file, whose memory ends with it, is taken for `what`; "": for nothing that is known. */
static bool is_taken_for(const void *data, size_t size, const char *what) {
    qsim_error e = {0};
    uint8_t *copy = exact_copy(data, size);
    const int code = qs_sniff((qs_span){copy, size}, "f", &e);
    free(copy);
    if (code == QSIM_OK)
        return !what[0];
    CHECK_INT(code, QSIM_E_FORMAT);
    return what[0] && strstr(e.message, what) != NULL;
}

#define BYTES(text) text, sizeof(text) - 1
static const struct {
    const char *bytes; /* as many as it takes */
    size_t size;
    const char *what;
    const char *free; /* a ? for each byte that may be another; NULL: none */
} formats[] = {
    {BYTES("version https://git-lfs"), "Git LFS", NULL},
    {BYTES("PK\3\4"), "a zip archive", NULL},
    {BYTES("PK\5\6"), "an empty zip archive", NULL},
    {BYTES("\x1f\x8b"), "gzip", NULL},
    {BYTES("\x78\x01"), "zlib", NULL},
    {BYTES("\x78\x9c"), "zlib", NULL},
    {BYTES("\x78\xda"), "zlib", NULL},
    {BYTES("\xfd\x37zXZ"), "xz data", NULL},
    {BYTES("\x28\xb5\x2f\xfd"), "zstd", NULL},
    {BYTES("BZh"), "bzip2", NULL},
    {BYTES("\x89PNG"), "a PNG image", NULL},
    {BYTES("\xff\xd8\xff"), "a JPEG image", NULL},
    {BYTES("GIF8"), "a GIF image", NULL},
    {BYTES("II*\0"), "a TIFF image", NULL},
    {BYTES("MM\0*"), "a TIFF image", NULL},
    {BYTES("RIFFsizeWEBP"), "a WebP image", "????????...."},
    {BYTES("RIFFsizeWAVE"), "a .wav sound", "????????...."},
    {BYTES("\0\0\x08"), "an IDX array", NULL},
    {BYTES("\x93NUMPY"), "a .npy array", NULL},
    {BYTES("\x89HDF"), "an HDF5 file", NULL},
    {BYTES("sizeTFL3"), "a TensorFlow Lite model", "????...."},
    {BYTES("sizeORTM"), "an ORT-format model", "????...."},
    {BYTES("\x80\x02"), "a Python pickle", NULL},
    {BYTES("\x80\x05"), "a Python pickle", NULL},
    {BYTES("GGUF"), "a GGUF file", NULL},
    {BYTES("7767517\n"), "an ncnn model", NULL},
    {BYTES("\177ELF"), "an ELF binary", NULL},
    {BYTES("%PDF"), "a PDF document", NULL},
    {BYTES("<h"), "an HTML page", ".?"},
    {BYTES("<?"), "an XML document", NULL},
    {BYTES(" <h"), "an HTML page", "..?"},
    {BYTES("\t\n\v\f\r<h"), "an HTML page", "......?"},
    {BYTES("\xef\xbb\xbf<h"), "an HTML page", "....?"},
    {BYTES("\xef\xbb\xbf <?"), "an XML document", NULL},
    {BYTES("{\""), "JSON text", NULL},
    {BYTES("{\n"), "JSON text", NULL},
    {BYTES("{\r"), "JSON text", NULL},
    {BYTES("12345\1\0\0{\"x"), "a safetensors file", "??????....?"},
    {BYTES("BMsize\0\0\0\0offset, size, wid"), "a BMP image", "..????....?????????????????"},
    {BYTES("\x0a\4\x0a\1x\x12"), "a TensorFlow graph", ".?..?."},
    {BYTES("\x0a\4\x0a\0\x12"), "a TensorFlow graph", ".?..."},
    {BYTES("\x0a\x84\x80\x80\x80\x80\x80\x80\x80\x80\0\x0a\0\x12"), "a TensorFlow graph",
     ".??????????..."}, /* the longest number */
    {BYTES("\x08\1\x12\3\x0a"), "a TensorFlow SavedModel", "...?."},
    {BYTES("\x08\1\x12\x83\0\x0a"), "a TensorFlow SavedModel", "...??."},
    {BYTES("\0"), "zero bytes", NULL},
};

/* Each is known by its first bytes, and no longer when one is missing or another. */
static void check_formats(void) {
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
        const size_t size = formats[i].size;
        uint8_t data[64];
        memset(data, 0x81, sizeof(data));
        memcpy(data, formats[i].bytes, size);
        if (!is_taken_for(data, size, formats[i].what))
            CHECK_FAIL(formats[i].what);
        if (formats[i].bytes[0] && !is_taken_for(data, sizeof(data), formats[i].what))
            CHECK_FAIL(formats[i].what);
        if (is_taken_for(data, size - 1, formats[i].what))
            CHECK_FAIL(formats[i].what);
        for (size_t k = 0; k < size; k++) {
            const bool is_free = formats[i].free && formats[i].free[k] == '?';
            data[k] ^= 0x40;
            if (is_taken_for(data, size, formats[i].what) != is_free) {
                fprintf(stderr, "byte %zu of %s\n", k, formats[i].what);
                CHECK_FAIL("a byte is looked at, or not");
            }
            data[k] ^= 0x40;
        }
    }
}

/* Beginnings that are like those of other formats. */
static void check_none(void) {
    static const struct {
        const char *bytes;
        size_t size;
    } none[] = {
        {BYTES("<")},
        {BYTES("\xef\xbb\xbf<")},
        {BYTES("\xef\xbb\xbf")},
        {BYTES("\xef\xbb")},
        {BYTES("\b<h")}, /* the bytes beside blanks */
        {BYTES("\x0e<h")},
        {BYTES("\x1f<h")},
        {BYTES("  ")},
        {BYTES("{ ")},
        {BYTES("12345\1\0\0{\"")},
        {BYTES("\x0a\3\x0a\1x")}, /* the name ends the file */
        {BYTES("\x0a\2\x0a\1")},
        {BYTES("\x0a\1\x0a")},
        {BYTES("\x0a\0")},
        {BYTES("\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0\x0a\0\x12")},
        {BYTES("\x08\1\x12\0")},
        {BYTES("\x08\1\x12\x80\x80")},
        {BYTES("\x08\2\x12\3\x0a")},
        {BYTES("\x08\1\x1a\3\x0a")},
        {BYTES("\x08\1")},
        {BYTES("\x08")},
        {BYTES("a,b")}, /* too short for text without lines */
    };
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        if (!is_taken_for(none[i].bytes, none[i].size, "")) {
            fprintf(stderr, "%zu\n", i);
            CHECK_FAIL("taken for another format");
        }
    CHECK(is_taken_for("\x0a\x80\x80", 3, "lines of text")); /* a number that does not end */
    CHECK(is_taken_for("", 0, "the file is empty"));
}

/* Text has lines, or 256 bytes of it; no control bytes but those of lines and tables are in it. */
static void check_texts(void) {
    char data[258];
    for (int c = 0; c < 256; c++) {
        const bool text = c == '\n' || c == '\r' || c == '\t' || (c >= 32 && c != 127);
        for (size_t at = 1; at < 258; at += at == 1 ? 254 : 1) {
            memset(data, 'y', sizeof(data));
            data[at] = (char)c;
            CHECK(is_taken_for(data, 258, text || at >= 256 ? "lines of text" : ""));
            CHECK(at >= 256 || is_taken_for(data, 256, text ? "lines of text" : ""));
            CHECK(at >= 255 || is_taken_for(data, 255, c == '\n' ? "lines of text" : ""));
        }
    }
    for (size_t n = 63; n <= 65; n++) { /* bytes of 0 that are no file of zeros alone */
        memset(data, 0, sizeof(data));
        data[n] = 1;
        CHECK(is_taken_for(data, n + 1, n >= 64 ? "begins with zero bytes" : ""));
        CHECK(is_taken_for(data, n, "begins with zero bytes"));
    }
}

int main(void) {
    check_once();
    check_formats();
    check_none();
    check_texts();

    static const char *const parts[] = {
        "'short_w'",
        "'twice_w'",
        "'far_w'",
        "Wobble",
        "'nowhere' is defined nowhere",
        "'missing'",
        "cycle",
        "'d' is written twice",
        "'again'",
        "'odd_x'",
    };
    proto model = {0};
    struct list l = {0};
    qsim_error e = {0};
    qsim_model *m = NULL;
    qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_CHECK};
    make_broken(&model);
    CHECK(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e) < 0);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, &o, &m, NULL), QSIM_OK);
    if (m) {
        CHECK_INT(qsim_model_check(m, note, &l), 9);
        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
            if (count_of(&l, parts[i]) < 1)
                CHECK_FAIL(parts[i]);
        for (int i = 0; i < l.count && i < 16; i++)
            for (int k = 0; k < i; k++)
                CHECK(strcmp(l.text[i], l.text[k]) != 0);
        check_use(m);
    }
    qsim_model_free(m);
    model.size /= 2;
    CHECK(qsim_model_load_memory(NULL, model.data, model.size, &o, &m, &e) < 0);
    proto_free(&model);
    check_many(1000);
    check_many(1001);
    return test_done();
}
