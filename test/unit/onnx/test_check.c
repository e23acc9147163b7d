/* SPDX-License-Identifier: MIT */
/* QSIM_LOAD_CHECK: every problem of a broken model, none of them twice. */
#include <string.h>

#include <qsim/qsim.h>

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
    proto t = {0};
    proto_int(&t, 1, n);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, name);
    proto_bytes(&t, 9, zeros, bytes);
    proto_take(graph, 5, &t);
    proto_free(&t);
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
    proto_node(&g, "Add", "too_many", "x", "twice_w", "y");
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
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

int main(void) {
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
        CHECK_INT(qsim_model_check(m, note, &l), 8);
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
