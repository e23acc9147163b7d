/* SPDX-License-Identifier: MIT */
/*
 * Sparse initializers, of the graph and of a branch, and sparse values of Constant: they are read
 * as the tensor that they stand for, kept by saving, and refused by the rule that they break.
 */
#include <stdbool.h>

#include "test.h"
#include "proto.h"

#include <qsim/qsim.h>

enum { TENSOR = 5, SPARSE = 15, INPUT = 11, OUTPUT = 12 };

static const int64_t shape[] = {2, 3};
static const float dense[6] = {0, 5, 0, -7, 0, 0.5f};

/* A SparseTensorProto; what a case breaks is changed before it is written. */
typedef struct sparse {
    const char *name;
    int dtype, index_dtype;
    int64_t value_dims[2], index_dims[3], dims[3]; /* end at -1 */
    const void *values;
    size_t bytes;
    int64_t indices[8];
    bool external;
} sparse;

static const float three[] = {5, -7, 0.5f};

static sparse linear(const char *name) {
    return (sparse){name,       QSIM_FLOAT, QSIM_INT64,    {3, -1},   {3, -1},
                    {2, 3, -1}, three,      sizeof(three), {1, 3, 5}, false};
}

static sparse by_axes(const char *name) {
    sparse s = linear(name);
    memcpy(s.index_dims, (int64_t[]){3, 2, -1}, sizeof(s.index_dims));
    memcpy(s.indices, (int64_t[]){0, 1, 1, 0, 1, 2}, 6 * sizeof(int64_t));
    return s;
}

static void write_dims(proto *p, uint32_t field, const int64_t *dims) {
    for (; *dims != -1; dims++)
        proto_int(p, field, *dims);
}

static void write_sparse(proto *p, const sparse *s) {
    proto t = {0};
    size_t count = 1;
    write_dims(&t, 1, s->value_dims);
    proto_int(&t, 2, s->dtype);
    proto_text(&t, 8, s->name);
    if (s->external) {
        proto pair = {0};
        proto_text(&pair, 1, "location");
        proto_text(&pair, 2, "weights.bin");
        proto_take(&t, 13, &pair);
        proto_int(&t, 14, 1);
        proto_free(&pair);
    } else if (s->dtype == QSIM_STRING) {
        for (int i = 0; i < 3; i++)
            proto_text(&t, 6, "a");
    } else {
        proto_bytes(&t, 9, s->values, s->bytes);
    }
    proto_take(p, 1, &t);
    for (const int64_t *d = s->index_dims; *d != -1; d++)
        count *= (size_t)*d;
    write_dims(&t, 1, s->index_dims);
    proto_int(&t, 2, s->index_dtype);
    proto_bytes(&t, 9, s->indices, count * (s->index_dtype == QSIM_INT64 ? 8 : 4));
    proto_take(p, 2, &t);
    write_dims(p, 3, s->dims);
    proto_free(&t);
}

static void initializer(proto *graph, sparse s) {
    proto p = {0};
    write_sparse(&p, &s);
    proto_take(graph, SPARSE, &p);
    proto_free(&p);
}

/* Constant with attribute sparse_value. */
static void constant(proto *graph, sparse s, const char *y) {
    proto node = {0}, attr = {0}, p = {0};
    write_sparse(&p, &s);
    proto_text(&attr, 1, "sparse_value");
    proto_take(&attr, 22, &p);
    proto_int(&attr, 20, 11);
    proto_begin(&node, "Constant", "", y);
    proto_take(&node, 5, &attr);
    proto_take(graph, 1, &node);
    proto_free(&node);
    proto_free(&attr);
    proto_free(&p);
}

/* y = x + w + v + k + (c ? b : x): w by position, v by axes, k of Constant, b of a branch. */
static void make(proto *file) {
    static const float ones[6] = {1, 1, 1, 1, 1, 1};
    proto g = {0}, then = {0}, otherwise = {0}, node = {0};
    initializer(&then, by_axes("b"));
    proto_node(&then, "Add", "inside", "b", "one", "t");
    proto_name(&then, OUTPUT, "t");
    proto_node(&otherwise, "Neg", "neg", "x", NULL, "t");
    proto_name(&otherwise, OUTPUT, "t");
    initializer(&g, linear("w"));
    constant(&g, by_axes("k"), "k");
    initializer(&g, by_axes("v"));
    proto_node(&g, "Add", "first", "x", "w", "xw");
    proto_node(&g, "Add", "second", "xw", "v", "xwv");
    proto_node(&g, "Add", "third", "xwv", "k", "sum");
    proto_begin(&node, "If", "c", "choice");
    proto_graph(&node, "then_branch", &then);
    proto_graph(&node, "else_branch", &otherwise);
    proto_take(&g, 1, &node);
    proto_node(&g, "Add", "last", "sum", "choice", "y");
    proto_constant(&g, "unused", QSIM_FLOAT, 6, ones, sizeof(ones));
    proto_constant(&g, "one", QSIM_FLOAT, -1, ones, sizeof(float));
    proto_value(&g, INPUT, "x", QSIM_FLOAT, shape, 2);
    proto_value(&g, INPUT, "c", QSIM_BOOL, NULL, 0);
    proto_value(&g, OUTPUT, "y", QSIM_FLOAT, shape, 2);
    proto_model(file, &g);
    proto_free(&g);
    proto_free(&then);
    proto_free(&otherwise);
    proto_free(&node);
}

static void check_run(const qsim_model *m, int32_t level) {
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_session_create(m, &o, &s, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK_INT(qsim_run_create(s, &r, NULL), QSIM_OK);
    for (uint8_t c = 0; c < 2; c++) {
        const qsim_tensor in[] = {{QSIM_FLOAT, 2, shape, (void *)(uintptr_t)x, sizeof(x)},
                                  {QSIM_BOOL, 0, NULL, &c, 1}};
        qsim_tensor y = {0};
        CHECK_INT(qsim_run_execute(r, in, 2, &y, 1, NULL), QSIM_OK);
        for (int i = 0; y.data && i < 6; i++)
            CHECK(((const float *)y.data)[i] == x[i] + 3 * dense[i] + (c ? dense[i] + 1 : -x[i]));
    }
    qsim_run_free(r);
    qsim_session_free(s);
}

/* The model as saved again, loaded. */
static qsim_model *again(const qsim_model *m, uint8_t **file) {
    qsim_model *loaded = NULL;
    size_t size = 0;
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, &size, NULL), QSIM_OK);
    *file = malloc(size + 1);
    CHECK_INT(qsim_model_save_memory(m, *file, size, &size, NULL), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(NULL, *file, size, NULL, &loaded, NULL), QSIM_OK);
    return loaded;
}

static void test_runs(void) {
    static const int32_t levels[] = {QSIM_LEVEL_DISABLE, QSIM_LEVEL_BASIC, QSIM_LEVEL_ALL};
    proto file = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    make(&file);
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int i = 0; m && i < 3; i++) {
        qsim_model *optimized = NULL, *saved, *both;
        uint8_t *bytes[2];
        check_run(m, levels[i]);
        CHECK_INT(qsim_model_optimize(m, levels[i], &optimized, &e), QSIM_OK);
        saved = again(m, &bytes[0]);
        both = again(optimized, &bytes[1]);
        check_run(saved, QSIM_LEVEL_ALL);
        check_run(both, QSIM_LEVEL_ALL);
        qsim_model_free(optimized);
        qsim_model_free(saved);
        qsim_model_free(both);
        free(bytes[0]);
        free(bytes[1]);
    }
    qsim_model_free(m);
    proto_free(&file);
}

/* Loads a model with this sparse initializer w. */
static int load(const sparse *s, qsim_error *e) {
    proto g = {0}, file = {0};
    qsim_model *m = NULL;
    initializer(&g, *s);
    proto_node(&g, "Identity", "copy", "w", NULL, "y");
    proto_name(&g, OUTPUT, "y");
    proto_model(&file, &g);
    const int code = qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, e);
    qsim_model_free(m);
    proto_free(&g);
    proto_free(&file);
    return code;
}

static void refuse(const sparse *s, int code, const char *part) {
    qsim_error e = {0};
    CHECK_INT(load(s, &e), code);
    if (!strstr(e.message, part))
        CHECK_FAIL(e.message);
}

static void test_indices(void) {
    static const int64_t wrong[][3] = {{-1, 3, 5}, {1, 3, 6}, {1, INT64_MIN, 5}, {1, INT64_MAX, 5}};
    static const int64_t unsorted[][3] = {{3, 1, 5}, {1, 1, 5}, {1, 5, 5}};
    sparse s;
    for (int i = 0; i < 4; i++) {
        s = linear("w");
        memcpy(s.indices, wrong[i], sizeof(wrong[i]));
        refuse(&s, QSIM_E_VALUE, "sparse tensor 'w': index");
    }
    for (int i = 0; i < 3; i++) {
        s = linear("w");
        memcpy(s.indices, unsorted[i], sizeof(unsorted[i]));
        refuse(&s, QSIM_E_VALUE, "does not ascend");
    }
    for (int i = 0; i < 6; i++) { /* one beyond its axis, though the position would exist */
        s = by_axes("w");
        s.indices[i] = i % 2 ? 3 : 2;
        refuse(&s, QSIM_E_VALUE, "is out of range");
        s.indices[i] = -1;
        refuse(&s, QSIM_E_VALUE, "is out of range");
    }
    s = by_axes("w");
    s.indices[2] = 0; /* (0, 1), (0, 0) */
    refuse(&s, QSIM_E_VALUE, "index 1 does not ascend");
}

static void test_shapes(void) {
    static const int64_t dims[][3] = {{2, -1, -1}, {3, 3, -1}, {3, 1, -1}, {-1, -1, -1}};
    sparse s;
    for (int i = 0; i < 4; i++) {
        s = i % 2 ? by_axes("w") : linear("w");
        memcpy(s.index_dims, dims[i], sizeof(dims[i]));
        refuse(&s, QSIM_E_SHAPE, "values and indices do not fit");
    }
    s = linear("w");
    s.value_dims[0] = -1; /* a scalar */
    s.bytes = 4;
    refuse(&s, QSIM_E_SHAPE, "values and indices do not fit");
    s = linear("w");
    s.dims[0] = -2;
    refuse(&s, QSIM_E_SHAPE, "size of axis 0 is negative: -2");
    s.dims[0] = INT64_MAX;
    refuse(&s, QSIM_E_LIMIT, "too large");
    s.dims[0] = (int64_t)1 << 40; /* 12 TB in a file of 100 bytes */
    refuse(&s, QSIM_E_LIMIT, sizeof(size_t) > 4 ? "elements" : "too large");
    s = linear("w"); /* nothing is set; an axis of no elements */
    s.value_dims[0] = s.index_dims[0] = 0;
    s.bytes = 0;
    refuse(&s, QSIM_OK, "");
    s.dims[0] = 0;
    refuse(&s, QSIM_OK, "");
}

static void test_types(void) {
    sparse s = linear("w");
    s.index_dtype = QSIM_INT32;
    refuse(&s, QSIM_E_DTYPE, "indices are int32, not int64");
    s = linear("w");
    s.dtype = QSIM_INT4;
    s.bytes = 2;
    refuse(&s, QSIM_E_UNSUPPORTED, "sparse tensor 'w' is of type int4");
    s.dtype = QSIM_STRING;
    refuse(&s, QSIM_E_UNSUPPORTED, "sparse tensor 'w' is of type string");
    s.dtype = 99;
    refuse(&s, QSIM_E_DTYPE, "unknown data type 99");
    s = linear("w");
    s.bytes = 8;
    refuse(&s, QSIM_E_FORMAT, "raw_data has 8 bytes");
    s.name = "";
    refuse(&s, QSIM_E_GRAPH, "an initializer has no name");
    s = linear("w");
    s.external = true;
    qsim_error e = {0};
    CHECK(load(&s, &e) != QSIM_OK);
}

/* Parts that are missing, and a name that is defined twice. */
static void test_parts(void) {
    proto g = {0}, file = {0}, p = {0}, t = {0};
    qsim_error e = {0};
    for (int part = 0; part < 3; part++) {
        qsim_model *m = NULL;
        const sparse s = linear("w");
        if (part == 1) {
            proto_int(&t, 1, 3);
            proto_int(&t, 2, QSIM_FLOAT);
            proto_text(&t, 8, "w");
            proto_bytes(&t, 9, three, sizeof(three));
            proto_take(&p, 1, &t);
        } else if (part == 2) {
            write_sparse(&p, &s);
            proto_constant(&g, "w", QSIM_FLOAT, 3, three, sizeof(three));
        }
        proto_take(&g, SPARSE, &p);
        proto_node(&g, "Identity", "copy", "w", NULL, "y");
        proto_name(&g, OUTPUT, "y");
        file.size = 0;
        proto_model(&file, &g);
        const int code = qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e);
        CHECK_INT(code, part == 1 ? QSIM_E_DTYPE : QSIM_E_GRAPH);
        CHECK(m == NULL);
        g.size = 0;
    }
    CHECK_STR(e.message, "(memory): initializer 'w' is defined twice");
    proto_free(&g);
    proto_free(&file);
    proto_free(&p);
    proto_free(&t);
}

int main(void) {
    test_runs();
    test_indices();
    test_shapes();
    test_types();
    test_parts();
    return test_done();
}
