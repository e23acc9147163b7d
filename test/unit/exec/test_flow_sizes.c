/* SPDX-License-Identifier: MIT */
/*
 * Sizes that only the run knows. Scan of opset 8, whose inputs have a batch as axis 0: inputs that
 * differ in it or lack it, a batch of nothing, and results of one element that are larger than
 * those of the first. Loop with a trip count and a condition that are no single values. Images
 * whose rank the file does not have.
 */
#include <qsim/qsim.h>

#include "proto.h"
#include "test.h"

/* A value of a type, whose rank and sizes are known at run time only. */
static void value(proto *g, uint32_t field, const char *name, int dtype) {
    proto v = {0}, type = {0}, tensor = {0};
    proto_int(&tensor, 1, dtype);
    proto_take(&type, 1, &tensor);
    proto_text(&v, 1, name);
    proto_take(&v, 2, &type);
    proto_take(g, field, &v);
    proto_free(&v);
    proto_free(&type);
    proto_free(&tensor);
}

static qsim_model *load(proto *g, int64_t version) {
    proto model = {0}, opset = {0};
    qsim_model *m = NULL;
    qsim_error e;
    proto_text(g, 2, "g");
    proto_int(&model, 1, 7);
    proto_take(&model, 7, g);
    proto_int(&opset, 2, version);
    proto_take(&model, 8, &opset);
    proto_text(&opset, 1, "com.microsoft");
    proto_int(&opset, 2, 1);
    proto_take(&model, 8, &opset);
    qsim_load_options copy = {.struct_size = sizeof(copy), .flags = QSIM_LOAD_COPY};
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, &copy, &m, &e), QSIM_OK);
    proto_free(g);
    proto_free(&model);
    proto_free(&opset);
    return m;
}

/* Each time the state s becomes s and the slice, one behind the other; the result is the slice. */
static qsim_model *build_scan(void) {
    proto b = {0}, g = {0}, node = {0};
    proto_name(&b, 11, "s");
    proto_name(&b, 11, "x");
    proto_text(&node, 1, "s");
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "t");
    proto_text(&node, 4, "Concat");
    proto_integer(&node, "axis", 0);
    proto_take(&b, 1, &node);
    proto_node(&b, "Identity", "same", "x", NULL, "z");
    proto_name(&b, 12, "t");
    proto_name(&b, 12, "z");
    value(&g, 11, "lengths", QSIM_INT64);
    value(&g, 11, "first", QSIM_FLOAT);
    value(&g, 11, "xs", QSIM_FLOAT);
    proto_text(&node, 1, "lengths");
    proto_text(&node, 1, "first");
    proto_text(&node, 1, "xs");
    proto_text(&node, 2, "last");
    proto_text(&node, 2, "zs");
    proto_text(&node, 4, "Scan");
    proto_graph(&node, "body", &b);
    proto_integer(&node, "num_scan_inputs", 1);
    proto_take(&g, 1, &node);
    value(&g, 12, "last", QSIM_FLOAT);
    value(&g, 12, "zs", QSIM_FLOAT);
    proto_free(&b);
    proto_free(&node);
    return load(&g, 8);
}

typedef struct batch_case {
    int32_t ranks[3];
    int64_t dims[3][3]; /* of lengths, first, xs */
    int64_t lengths[2];
    const char *message; /* NULL: it is legal */
} batch_case;

static const batch_case cases[] = {
    {{1, 2, 3}, {{2}, {2, 3}, {2, 4, 5}}, {2, 2}, NULL},
    {{1, 2, 3}, {{1}, {1, 3}, {1, 4, 5}}, {4}, NULL},
    {{1, 0, 3}, {{2}, {0}, {2, 4, 5}}, {2, 2}, "differ in the size of the batch"},
    {{1, 2, 3}, {{2}, {1, 3}, {2, 4, 5}}, {2, 2}, "differ in the size of the batch"},
    {{1, 2, 3}, {{1}, {2, 3}, {2, 4, 5}}, {2, 2}, "differ in the size of the batch"},
    {{0, 2, 3}, {{0}, {2, 3}, {2, 4, 5}}, {2, 2}, "differ in the size of the batch"},
    {{2, 2, 3}, {{2, 1}, {2, 3}, {2, 4, 5}}, {2, 2}, "differ in the size of the batch"},
    {{1, 2, 3}, {{0}, {0, 3}, {0, 4, 5}}, {0}, "the batch is empty"},
    {{1, 2, 3}, {{2}, {2, 3}, {2, 4, 5}}, {1, 4}, "other sizes in another element of the batch"},
    {{1, 2, 3}, {{2}, {2, 3}, {2, 4, 5}}, {4, 1}, "other sizes in another element of the batch"},
    {{1, 2, 3}, {{2}, {2, 3}, {2, 4, 5}}, {2, 5}, "a length is beyond the sequence"},
};

/* Of element b: what the state begins with, and behind it the slices; a result is 0 from there on.
 */
static void check_results(const batch_case *c, const float *x, const qsim_tensor *y) {
    const int64_t batch = c->dims[1][0], first = c->dims[1][1], n = c->dims[2][2];
    const int64_t all = c->dims[2][1], last = first + c->lengths[0] * n;
    CHECK_INT(y[0].rank, 2);
    CHECK_INT(y[0].dims[1], last);
    CHECK_INT(y[1].rank, 3);
    for (int64_t b = 0; b < batch; b++) {
        const float *s = (const float *)y[0].data + b * last, *z = y[1].data;
        for (int64_t i = 0; i < last; i++)
            CHECK(s[i] == (i < first ? x[b * first + i] : x[b * all * n + i - first]));
        for (int64_t i = 0; i < all * n; i++)
            CHECK(z[b * all * n + i] == (i < c->lengths[b] * n ? x[b * all * n + i] : 0));
    }
}

/* ---- Loop ---- */

/* y is x + x, `count` times while the condition is true. */
static qsim_model *build_loop(void) {
    proto b = {0}, g = {0}, node = {0};
    proto_name(&b, 11, "trip");
    proto_name(&b, 11, "go");
    proto_name(&b, 11, "s");
    proto_node(&b, "Add", "double", "s", "s", "t");
    proto_node(&b, "Identity", "same", "go", NULL, "more");
    proto_name(&b, 12, "more");
    proto_name(&b, 12, "t");
    value(&g, 11, "count", QSIM_INT64);
    value(&g, 11, "first", QSIM_BOOL);
    value(&g, 11, "x", QSIM_FLOAT);
    proto_text(&node, 1, "count");
    proto_text(&node, 1, "first");
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &b);
    proto_take(&g, 1, &node);
    value(&g, 12, "y", QSIM_FLOAT);
    proto_free(&b);
    proto_free(&node);
    return load(&g, 13);
}

static void check_loop(void) {
    static const struct {
        int32_t rank[2];
        int64_t size[2]; /* of axis 0 of trip count and condition */
        const char *message;
    } loops[] = {
        {{0, 0}, {1, 1}, NULL},
        {{1, 1}, {1, 1}, NULL},
        {{1, 0}, {0, 1}, "the trip count is not a single value"},
        {{1, 0}, {2, 1}, "the trip count is not a single value"},
        {{0, 1}, {1, 0}, "the condition is not a single value"},
        {{0, 1}, {1, 2}, "the condition is not a single value"},
    };
    qsim_model *m = build_loop();
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e;
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
    for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++) {
        int64_t trips[2] = {3, 3};
        uint8_t first[2] = {1, 1};
        float x = 1;
        qsim_tensor y = {0};
        const qsim_tensor in[3] = {{QSIM_INT64, loops[i].rank[0], &loops[i].size[0],
                                    loops[i].size[0] ? trips : NULL, (size_t)loops[i].size[0] * 8},
                                   {QSIM_BOOL, loops[i].rank[1], &loops[i].size[1],
                                    loops[i].size[1] ? first : NULL, (size_t)loops[i].size[1]},
                                   {QSIM_FLOAT, 0, NULL, &x, 4}};
        const int code = qsim_run_execute(r, in, 3, &y, 1, &e);
        CHECK_INT(code, loops[i].message ? QSIM_E_SHAPE : QSIM_OK);
        CHECK(!loops[i].message || strstr(e.message, loops[i].message) != NULL);
        CHECK(code || *(const float *)y.data == 8);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
}

static void check_scan(void) {
    static float x[64];
    qsim_model *m = build_scan();
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e;
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i + 1);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const batch_case *c = &cases[i];
        int64_t lengths[2] = {c->lengths[0], c->lengths[1]};
        qsim_tensor y[2] = {{0}, {0}}, in[3];
        for (int k = 0; k < 3; k++) {
            in[k] = (qsim_tensor){k ? QSIM_FLOAT : QSIM_INT64, c->ranks[k], c->dims[k],
                                  k ? (void *)x : (void *)lengths, 0};
            CHECK_INT(qsim_tensor_size(in[k].dtype, in[k].rank, in[k].dims, NULL, &in[k].bytes),
                      QSIM_OK);
        }
        const int code = qsim_run_execute(r, in, 3, y, 2, &e);
        CHECK((code == QSIM_OK) == (c->message == NULL));
        if (code && c->message && !strstr(e.message, c->message))
            CHECK_FAIL(e.message);
        if (!code && !c->message)
            check_results(c, x, y);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
}

/* ---- images ---- */

enum { UNRANKED, RANKED, WINDOWED, FORMS };

/* Gives a node the attribute [size, size]. */
static void square(proto *node, const char *name, int64_t size) {
    proto a = {0};
    proto_text(&a, 1, name);
    proto_int(&a, 8, size);
    proto_int(&a, 8, size);
    proto_int(&a, 20, 7);
    proto_take(node, 5, &a);
    proto_free(&a);
}

/* y = op(x, w), x declared with its rank or without; the window tells it, too. */
static qsim_model *build_image(const char *op, const char *domain, int form) {
    static const int64_t any[] = {-1, -1, -1, -1};
    proto g = {0}, node = {0};
    proto_text(&node, 1, "x");
    proto_text(&node, 1, "w");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, op);
    proto_text(&node, 7, domain);
    if (form == WINDOWED)
        square(&node, "kernel_shape", 2);
    proto_take(&g, 1, &node);
    if (form == RANKED)
        proto_value(&g, 11, "x", QSIM_FLOAT, any, 4);
    else
        value(&g, 11, "x", QSIM_FLOAT);
    proto_value(&g, 11, "w", QSIM_FLOAT, any, 4);
    proto_name(&g, 12, "y");
    proto_free(&node);
    return load(&g, 13);
}

/* Steps for images are channels last, and the layout cannot be chosen without a rank or a window.
 */
static void check_images(void) {
    static const char *const of[][2] = {
        {"Conv", ""}, {"ConvTranspose", ""}, {"FusedConv", "com.microsoft"}};
    static float data[16] = {1};
    const int64_t dims[] = {1, 1, 2, 2};
    const qsim_tensor in[2] = {{QSIM_FLOAT, 4, dims, data, 16}, {QSIM_FLOAT, 4, dims, data, 16}};
    for (int i = 0; i < 3 * FORMS; i++) {
        const int form = i % FORMS;
        qsim_model *m = build_image(of[i / FORMS][0], of[i / FORMS][1], form);
        qsim_session *s = NULL;
        qsim_run *r = NULL;
        qsim_tensor y = {0};
        qsim_error e;
        CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
        CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
        const int code = qsim_run_execute(r, in, 2, &y, 1, &e);
        CHECK_INT(code, form == UNRANKED ? QSIM_E_UNSUPPORTED : QSIM_OK);
        CHECK(!code || strstr(e.message, "must be in the file") != NULL);
        CHECK(code || *(const float *)y.data == 1);
        qsim_run_free(r);
        qsim_session_free(s);
        qsim_model_free(m);
    }
}

int main(void) {
    check_images();
    check_scan();
    check_loop();
    return test_done();
}
