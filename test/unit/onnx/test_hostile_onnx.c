/* SPDX-License-Identifier: MIT */
/*
 * Damaged and malicious models. Nothing may crash (run it under the sanitizers), every refusal is
 * one clear line, and memory stays in proportion to the file.
 */
#include "heap.h"
#include "proto.h"

#include <qsim/model.h>

static test_heap heap;
static qsim_ctx *ctx;

static int load(const void *data, size_t size, int32_t flags, qsim_error *e) {
    qsim_load_options o = {.struct_size = sizeof(o), .name = "hostile.onnx", .flags = flags};
    qsim_model *m = NULL;
    /* A copy of exactly this size: sanitizers report any read beyond it. */
    uint8_t *copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, data, size);
    heap.peak = heap.bytes;
    int code = qsim_model_load_memory(ctx, copy, size, &o, &m, e);
    CHECK(code <= 0 && (code == 0) == (m != NULL));
    if (code) {
        CHECK(e->code == code && strncmp(e->message, "hostile.onnx: ", 14) == 0);
    } else {
        size_t need;
        int saved = qsim_model_save_memory(m, NULL, 0, &need, NULL);
        CHECK(need == size || (flags == QSIM_LOAD_CHECK && saved == QSIM_E_STATE));
        CHECK(qsim_model_check(m, NULL, NULL) >= 0);
    }
    qsim_model_free(m);
    free(copy);
    return code;
}

static void refused(const proto *p, int code, const char *part) {
    qsim_error e = {0};
    CHECK_INT(load(p->data, p->size, 0, &e), code);
    if (!strstr(e.message, part)) {
        fprintf(stderr, "message: %s\nexpected in it: %s\n", e.message, part);
        CHECK_FAIL("the message does not say what is wrong");
    }
}

/* ---- a small legal model ---- */

static const int64_t dims[] = {-1, 3};

static void small_graph(proto *g) {
    static const float w[] = {1, 2, 3};
    g->size = 0;
    proto_node(g, "Add", "add", "x", "w", "s");
    proto_node(g, "Relu", "relu", "s", NULL, "y");
    proto_text(g, 2, "small");
    proto_constant(g, "w", QSIM_FLOAT, 3, w, sizeof(w));
    proto_text(g, 10, "a doc string");
    proto_value(g, 11, "x", QSIM_FLOAT, dims, 2);
    proto_value(g, 12, "y", QSIM_FLOAT, dims, 2);
    proto_value(g, 13, "s", QSIM_FLOAT, dims, 2);
}

static void finish(proto *model, proto *graph) {
    model->size = 0;
    proto_model(model, graph);
}

/* Every prefix, every bit, and random changes of a model that loads. */
static void check_damage(const proto *model) {
    qsim_error e = {0};
    uint8_t *bytes = malloc(model->size);
    CHECK_INT(load(model->data, model->size, 0, &e), QSIM_OK);
    for (size_t n = 0; n < model->size; n++)
        load(model->data, n, 0, &e);
    memcpy(bytes, model->data, model->size);
    for (size_t bit = 0; bit < 8 * model->size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        load(bytes, model->size, bit % 2 ? QSIM_LOAD_INSPECT : bit % 4 ? QSIM_LOAD_CHECK : 0, &e);
        CHECK(heap.peak - heap.bytes < 4u << 20);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    uint64_t state = 7;
    for (int i = 0; i < 20000; i++) {
        memcpy(bytes, model->data, model->size);
        for (uint32_t k = test_random(&state) % 6; k-- > 0;)
            bytes[test_random(&state) % model->size] = (uint8_t)test_random(&state);
        load(bytes, model->size, i % 2 ? QSIM_LOAD_INSPECT : i % 4 ? QSIM_LOAD_CHECK : 0, &e);
    }
    free(bytes);
}

/* ---- files of other kinds ---- */

static void check_other_files(void) {
    static const struct {
        const char *bytes, *part;
        size_t size;
    } cases[] = {
        {"", "empty", 0},
        {"<!DOCTYPE html><html>", "HTML", 21},
        {"\n <html>", "HTML", 8},
        {"version https://git-lfs.github.com/spec/v1\noid", "Git LFS", 46},
        {"PK\3\4aaaaaaaaaaaa", "zip", 16},
        {"\x1f\x8b\x08\0\0\0\0\0", "gzip", 8},
        {"\x89PNG\r\n\x1a\n", "PNG", 8},
        {"\x80\x02}q\0.", "pickle", 6},
        {"\x1c\0\0\0TFL3\0\0", "TensorFlow Lite", 10},
        {"{\"a\": 1}", "JSON", 8},
        {"\t\r\n{\"a\": 1}", "JSON", 11},
        {"\0\0\0\0\0\0\0\0", "zero", 8},
        {"\3\0\0\0\0\0\0\0{\"a", "safetensors", 11},
        {"\2\0\0\0\0\0\0\0{\"", "malformed", 10},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        proto p = {(uint8_t *)(uintptr_t)cases[i].bytes, cases[i].size, 0};
        refused(&p, QSIM_E_FORMAT, cases[i].part);
    }
}

/* ---- the wire ---- */

static void check_wire(const proto *model) {
    static const struct {
        const char *bytes;
        size_t size;
    } tails[] = {
        {"\0\0", 2},                                            /* field number 0 */
        {"\x0b", 1},                                            /* a group */
        {"\x0c", 1},                                            /* the end of none */
        {"\x0e\1", 2},                                          /* wire type 6 */
        {"\x0f\1", 2},                                          /* wire type 7 */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 12}, /* 11 bytes */
        {"\x3a\xff\xff\xff\xff\x07", 6},                        /* length 2^31 */
        {"\x3a\x85\x80\x80\x80\x10", 6},                        /* 2^32 + 5 */
        {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11},     /* 2^64 - 1 */
        {"\x0d\1\2\3", 4},                                      /* 3 of 4 bytes */
        {"\x09\1\2\3\4\5\6\7", 8},                              /* 7 of 8 bytes */
        {"\x12\2\xc3\x28", 4},                                  /* no UTF-8 */
        {"\x12\3a\0b", 5},                                      /* NUL in a text */
        {"\x38\1", 2},                                          /* the graph as a number */
    };
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        proto p = {0};
        proto_raw(&p, model->data, model->size);
        proto_raw(&p, tails[i].bytes, tails[i].size);
        refused(&p, QSIM_E_FORMAT, "malformed");
        proto_free(&p);
    }
}

/* Legal forms beside these: unknown fields of every type, repeated fields, overlong varints. */
static void check_legal(const proto *model) {
    static const char tail[] = "\xa2\x06\3abc\xa8\x06\5\xad\x06"
                               "abcd\xa9\x06"
                               "abcdefgh\x12\5again\x08\x87\x80\0";
    qsim_error e = {0};
    proto p = {0};
    proto_raw(&p, model->data, model->size);
    proto_raw(&p, tail, sizeof(tail) - 1);
    CHECK_INT(load(p.data, p.size, 0, &e), QSIM_OK);
    if (e.code)
        fprintf(stderr, "%s\n", e.message);
    proto_free(&p);
}

/* Graphs in attributes of nodes of graphs. */
static void nest(proto *out, int depth) {
    proto graph = {0}, attr = {0}, node = {0};
    for (int i = 0; i < depth; i++) {
        proto_text(&attr, 1, "then_branch");
        proto_take(&attr, 6, &graph);
        proto_text(&node, 4, "If");
        proto_text(&node, 2, "y");
        proto_take(&node, 5, &attr);
        proto_take(&graph, 1, &node);
    }
    proto_value(&graph, 12, "y", QSIM_FLOAT, dims, 2);
    finish(out, &graph);
    proto_free(&graph);
    proto_free(&attr);
    proto_free(&node);
}

static void check_bombs(proto *model) {
    qsim_error e = {0};
    proto node = {0}, g = {0};
    nest(model, 3000);
    refused(model, QSIM_E_LIMIT, "nested");
    nest(model, 60);
    CHECK_INT(load(model->data, model->size, QSIM_LOAD_INSPECT, &e), QSIM_OK);
    proto_text(&node, 4, "Relu");
    for (int i = 0; i < 100000; i++)
        proto_bytes(&node, 5, NULL, 0);
    proto_take(&g, 1, &node);
    finish(model, &g);
    CHECK(load(model->data, model->size, QSIM_LOAD_INSPECT, &e) < 0);
    CHECK(heap.peak - heap.bytes < 4 * model->size);
    for (int i = 0; i < 100000; i++)
        proto_bytes(&g, 1, NULL, 0);
    finish(model, &g);
    refused(model, QSIM_E_GRAPH, "operator");
    CHECK(heap.peak - heap.bytes < 4 * model->size);
    proto_free(&node);
    proto_free(&g);
}

/* Memory of a chain of n nodes: proportional to n. */
static size_t chain(proto *model, int n) {
    qsim_error e = {0};
    proto g = {0};
    char names[2][16];
    snprintf(names[0], sizeof(names[0]), "x");
    for (int i = 0; i < n; i++) {
        snprintf(names[(i + 1) % 2], sizeof(names[0]), "v%d", i);
        proto_node(&g, "Relu", NULL, names[i % 2], NULL, names[(i + 1) % 2]);
    }
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
    proto_value(&g, 12, names[n % 2], QSIM_FLOAT, dims, 2);
    finish(model, &g);
    CHECK_INT(load(model->data, model->size, 0, &e), QSIM_OK);
    proto_free(&g);
    return heap.peak - heap.bytes;
}

static void check_growth(proto *model) {
    size_t one = chain(model, 35000), two = chain(model, 70000); /* more than 16 bits count */
    CHECK(two < 3 * one);
}

/* Names of a megabyte: of a legal model, then of one whose operator is unknown. */
static void check_names(proto *model) {
    enum { LONG = 1 << 20, COUNT = 20 };
    char *in = calloc(1, LONG + 16), *out = calloc(1, LONG + 16);
    qsim_error e = {0};
    proto g = {0};
    CHECK(in && out);
    for (int bad = 0; in && out && bad < 2; bad++) {
        strcpy(in, "x");
        for (int i = 0; i < COUNT; i++) {
            memset(out, 'n', LONG);
            snprintf(out + LONG, 16, "%d", i);
            proto_node(&g, bad && i == COUNT - 1 ? out : "Relu", out, in, NULL, out);
            strcpy(in, out);
        }
        proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
        proto_value(&g, 12, out, QSIM_FLOAT, dims, 2);
        finish(model, &g);
        CHECK_INT(load(model->data, model->size, 0, &e), bad ? QSIM_E_UNSUPPORTED : QSIM_OK);
        CHECK(strlen(e.message) < sizeof(e.message) && strchr(e.message, '\n') == NULL);
        CHECK(bad == 0 || strstr(e.message, "unknown") || strstr(e.message, "operator"));
        CHECK(heap.peak - heap.bytes < 2 * model->size);
    }
    proto_free(&g);
    free(in);
    free(out);
}

/* ---- graphs ---- */

static void check_graphs(proto *model) {
    static const float w[] = {1, 2, 3};
    proto g = {0};
    small_graph(&g);
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
    finish(model, &g);
    refused(model, QSIM_E_GRAPH, "'x' is defined twice");
    small_graph(&g);
    proto_constant(&g, "w", QSIM_FLOAT, 3, w, sizeof(w));
    finish(model, &g);
    refused(model, QSIM_E_GRAPH, "'w' is defined twice");
    small_graph(&g);
    proto_node(&g, "Relu", "again", "x", NULL, "s");
    finish(model, &g);
    refused(model, QSIM_E_GRAPH, "'s' is written twice (node 'again', Relu)");
    small_graph(&g);
    proto_node(&g, "Relu", "lost", "nowhere", NULL, "z");
    finish(model, &g);
    refused(model, QSIM_E_GRAPH, "'nowhere' is defined nowhere (node 'lost', Relu)");
    small_graph(&g);
    proto_node(&g, "Add", "a", "x", "q", "p");
    proto_node(&g, "Relu", "b", "p", NULL, "q");
    finish(model, &g);
    refused(model, QSIM_E_GRAPH, "cycle (node 'a', Add)");
    small_graph(&g);
    proto_value(&g, 12, "never", QSIM_FLOAT, dims, 2);
    finish(model, &g);
    refused(model, QSIM_E_GRAPH, "'never' is made by no node");
    small_graph(&g);
    proto_node(&g, "NoSuch", "strange", "x", NULL, "z");
    finish(model, &g);
    refused(model, QSIM_E_UNSUPPORTED, "NoSuch");
    small_graph(&g);
    proto_constant(&g, "short", QSIM_FLOAT, 3, w, 8);
    finish(model, &g);
    refused(model, QSIM_E_FORMAT, "initializer 'short': raw_data has 8 bytes, float[3] needs 12");
    small_graph(&g);
    proto_constant(&g, "huge", QSIM_FLOAT, INT64_MAX, w, 12);
    finish(model, &g);
    refused(model, QSIM_E_LIMIT, "'huge'");
    proto_free(&g);
}

static void opset(proto *p, int64_t version) {
    proto import = {0};
    proto_int(&import, 2, version);
    proto_take(p, 8, &import);
    proto_free(&import);
}

static void check_heads(void) {
    static const int64_t versions[] = {0, -1, 14, INT64_MAX};
    for (int i = 0; i < 6; i++) {
        proto p = {0}, g = {0};
        small_graph(&g);
        if (i < 4)
            proto_int(&p, 1, versions[i]);
        else if (i == 4)
            proto_int(&p, 1, 3); /* the first that has to say which operators it means */
        proto_take(&p, 7, &g);
        if (i != 4)
            opset(&p, 13);
        refused(&p, i < 4 ? QSIM_E_UNSUPPORTED : QSIM_E_FORMAT,
                i == 4 ? "imports no operator set" : "ir_version");
        proto_free(&p);
        proto_free(&g);
    }
    static const int64_t opsets[] = {0, -1, 999};
    for (int i = 0; i < 3; i++) {
        proto p = {0}, g = {0};
        small_graph(&g);
        proto_int(&p, 1, 7);
        proto_take(&p, 7, &g);
        opset(&p, opsets[i]);
        refused(&p, QSIM_E_UNSUPPORTED, "opset");
        proto_free(&p);
        proto_free(&g);
    }
}

/* A thousand operator sets, one of them twice, and one more. */
static void check_imports(void) {
    for (int count = 1000; count <= 1001; count++) {
        proto p = {0}, g = {0};
        qsim_model *m = NULL;
        small_graph(&g);
        proto_int(&p, 1, 7);
        proto_take(&p, 7, &g);
        opset(&p, 13);
        for (int i = 0; i < count; i++) {
            char domain[16];
            proto import = {0};
            snprintf(domain, sizeof(domain), "d%d", i ? i - 1 : 0);
            proto_text(&import, 1, domain);
            proto_int(&import, 2, 1);
            proto_take(&p, 8, &import);
            proto_free(&import);
        }
        if (count == 1001)
            refused(&p, QSIM_E_LIMIT, "more than 1000 operator sets");
        else
            CHECK_INT(qsim_model_load_memory(NULL, p.data, p.size, NULL, &m, NULL), QSIM_OK);
        qsim_model_free(m);
        proto_free(&p);
        proto_free(&g);
    }
}

/* Models older than operator sets have the first one. */
static void check_oldest(void) {
    for (int64_t ir = 1; ir <= 2; ir++) {
        proto p = {0}, g = {0};
        qsim_model *m = NULL;
        proto_node(&g, "Relu", "relu", "x", NULL, "y");
        proto_text(&g, 2, "old");
        proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
        proto_value(&g, 12, "y", QSIM_FLOAT, dims, 2);
        proto_int(&p, 1, ir);
        proto_take(&p, 7, &g);
        CHECK_INT(qsim_model_load_memory(NULL, p.data, p.size, NULL, &m, NULL), QSIM_OK);
        CHECK_INT(qsim_model_opset(m, ""), 1);
        qsim_model_free(m);
        proto_free(&p);
        proto_free(&g);
    }
}

/* An attribute with values of two kinds, of which one is that of its type. */
static void check_attribute(proto *model) {
    proto g = {0}, node = {0}, a = {0};
    small_graph(&g);
    proto_text(&a, 1, "axis");
    proto_raw(&a, "\x15\0\0\x80\x3f", 5); /* f: 1 */
    proto_int(&a, 3, 1);
    proto_int(&a, 20, 2);
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "z");
    proto_text(&node, 4, "Softmax");
    proto_take(&node, 5, &a);
    proto_take(&g, 1, &node);
    finish(model, &g);
    refused(model, QSIM_E_FORMAT, "'axis' has a value of another type");
    proto_free(&g);
    proto_free(&node);
    proto_free(&a);
}

/* Operators that only the library's own passes may make. */
static void check_internal(proto *model) {
    proto g = {0}, node = {0}, import = {0};
    small_graph(&g);
    finish(model, &g);
    proto_text(&import, 1, "qsim");
    proto_int(&import, 2, 1);
    proto_take(model, 8, &import);
    refused(model, QSIM_E_UNSUPPORTED, "imports the domain 'qsim'");
    small_graph(&g);
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "z");
    proto_text(&node, 3, "inside");
    proto_text(&node, 4, "Flip");
    proto_text(&node, 7, "qsim");
    proto_take(&g, 1, &node);
    finish(model, &g);
    refused(model, QSIM_E_UNSUPPORTED, "domain 'qsim' are not for files (node 'inside', Flip");
    CHECK_INT(load(model->data, model->size, QSIM_LOAD_INSPECT, &(qsim_error){0}),
              QSIM_E_UNSUPPORTED);
    proto_free(&g);
    proto_free(&node);
    proto_free(&import);
}

static void function(proto *model, const char *name, const char *calls) {
    proto f = {0}, node = {0};
    proto_text(&f, 1, name);
    proto_text(&f, 10, "mine");
    proto_text(&node, 4, calls);
    proto_text(&node, 7, "mine");
    proto_take(&f, 7, &node);
    proto_take(model, 25, &f);
    proto_free(&f);
    proto_free(&node);
}

static void check_functions(proto *model) {
    qsim_error e = {0};
    proto g = {0};
    small_graph(&g);
    finish(model, &g);
    function(model, "A", "B");
    function(model, "C", "A");
    CHECK_INT(load(model->data, model->size, 0, &e), QSIM_OK);
    function(model, "B", "C");
    refused(model, QSIM_E_GRAPH, "calls itself");
    proto_free(&g);
}

int main(void) {
    qsim_allocator counting = test_heap_allocator(&heap);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &counting, .threads = 1};
    proto model = {0}, graph = {0};
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    small_graph(&graph);
    finish(&model, &graph);
    check_damage(&model);
    check_wire(&model);
    check_legal(&model);
    check_other_files();
    check_bombs(&model);
    check_growth(&model);
    check_names(&model);
    check_graphs(&model);
    check_heads();
    check_imports();
    check_oldest();
    check_functions(&model);
    check_internal(&model);
    check_attribute(&model);
    proto_free(&model);
    proto_free(&graph);
    qsim_ctx_free(ctx);
    CHECK_INT(heap.live, 0);
    return test_done();
}
