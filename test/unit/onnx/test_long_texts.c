/* SPDX-License-Identifier: MIT */
/*
 * Each text of a model in turn is longer than all others together, so that room for it has to be
 * made, and this request, like each other one, is refused: reading says so, and nothing leaks. The
 * same with long lists, and with texts that a builder is given.
 */
#include "heap.h"
#include "proto.h"

#include <qsim/model.h>

enum {
    PRODUCER,
    VERSION,
    GRAPH,
    DOMAIN,
    KEY,
    VALUE,
    NODE,
    X,
    W,
    Z,
    CONDITION,
    SYMBOL,
    NOWHERE,
    MISSING,
    FUNCTION,
    FORMAL,
    INNER,
    RESULT,
    CALLED,
    THEN,
    ELSE,
    CHOSEN,
    INDEX,
    STATE,
    NEXT,
    STILL,
    LOOPED,
    TEXTS
};
#define LONG 20000 /* more than a block of the arena, and than room for names has ever been */

static char long_text[LONG + 1];

static const char *text(int which, int is_long) {
    static char texts[TEXTS][8];
    if (which == is_long)
        return long_text;
    snprintf(texts[which], sizeof(texts[which]), "t%d", which);
    return texts[which];
}

#define T(which) text(which, l)

/* If with a node in each branch; and a Loop, whose body negates its state. */
static void put_subgraphs(proto *g, int l) {
    proto then = {0}, other = {0}, node = {0}, body = {0};
    proto_node(&then, "Neg", NULL, T(X), NULL, T(THEN));
    proto_name(&then, 12, T(THEN));
    proto_node(&other, "Relu", NULL, T(X), NULL, T(ELSE));
    proto_name(&other, 12, T(ELSE));
    proto_text(&node, 1, T(CONDITION));
    proto_text(&node, 2, T(CHOSEN));
    proto_text(&node, 4, "If");
    proto_graph(&node, "then_branch", &then);
    proto_graph(&node, "else_branch", &other);
    proto_take(g, 1, &node);
    proto_node(&body, "Neg", NULL, T(STATE), NULL, T(NEXT));
    proto_node(&body, "Identity", NULL, T(CONDITION), NULL, T(STILL));
    proto_value(&body, 11, T(INDEX), QSIM_INT64, NULL, 0);
    proto_value(&body, 11, "on", QSIM_BOOL, NULL, 0);
    proto_name(&body, 11, T(STATE));
    proto_name(&body, 12, T(STILL));
    proto_name(&body, 12, T(NEXT));
    proto_text(&node, 1, "");
    proto_text(&node, 1, T(CONDITION));
    proto_text(&node, 1, T(CHOSEN));
    proto_text(&node, 2, T(LOOPED));
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &body);
    proto_take(g, 1, &node);
    proto *const all[] = {&then, &other, &node, &body};
    for (int i = 0; i < 4; i++)
        proto_free(all[i]);
}

/* A node of one input, into a graph (field 1) or a function (7). */
static void put_node(proto *to, uint32_t field, const char *op, const char *x, const char *y,
                     const char *name, const char *domain) {
    proto node = {0};
    proto_text(&node, 1, x);
    proto_text(&node, 2, y);
    proto_text(&node, 3, name);
    proto_text(&node, 4, op);
    proto_text(&node, 7, domain);
    proto_take(to, field, &node);
    proto_free(&node);
}

static void put_function(proto *file, int l) {
    proto f = {0}, opset = {0};
    proto_text(&f, 1, T(FUNCTION));
    proto_text(&f, 4, T(FORMAL));
    proto_text(&f, 5, T(RESULT));
    put_node(&f, 7, "Relu", T(FORMAL), T(INNER), "inner", "");
    put_node(&f, 7, "Gelu", T(INNER), T(RESULT), "", "com.microsoft");
    proto_int(&opset, 2, 13);
    proto_take(&f, 9, &opset);
    proto_text(&opset, 1, "com.microsoft");
    proto_int(&opset, 2, 1);
    proto_take(&f, 9, &opset);
    proto_text(&f, 10, T(DOMAIN));
    proto_take(file, 25, &f);
    proto_free(&f);
    proto_free(&opset);
}

static void put_model(proto *file, int l, int32_t flags) {
    static const float w[1] = {1};
    static const int64_t open[] = {-1};
    proto g = {0}, part = {0};
    proto_node(&g, "Add", "add", T(X), T(W), T(Z));
    put_node(&g, 1, T(FUNCTION), T(Z), T(CALLED), T(NODE), T(DOMAIN));
    put_subgraphs(&g, l);
    proto_text(&g, 2, T(GRAPH));
    proto_int(&part, 1, 1);
    proto_int(&part, 2, QSIM_FLOAT);
    proto_text(&part, 8, T(W));
    proto_bytes(&part, 9, w, sizeof(w));
    proto_take(&g, 5, &part);
    proto_named_size(&g, T(X), QSIM_FLOAT, T(SYMBOL));
    proto_value(&g, 11, T(CONDITION), QSIM_BOOL, NULL, 0);
    proto_name(&g, 12, T(CALLED));
    proto_name(&g, 12, T(LOOPED));
    if (flags & QSIM_LOAD_CHECK)
        proto_name(&g, 12, T(MISSING)); /* a problem that is collected */
    proto_value(&g, 13, T(Z), QSIM_FLOAT, open, 1);
    proto_value(&g, 13, T(NOWHERE), QSIM_FLOAT, open, 1);
    proto_int(file, 1, 8);
    proto_text(file, 2, T(PRODUCER));
    proto_text(file, 3, T(VERSION));
    proto_take(file, 7, &g);
    for (int i = 0; i < 8; i++) { /* the function's is one more than there is room for at first */
        const char domain[] = {'d', (char)('0' + i), 0};
        proto_text(&part, 1, i > 1 ? domain : i ? T(DOMAIN) : "");
        proto_int(&part, 2, i ? 1 : 13);
        proto_take(file, 8, &part);
    }
    proto_text(&part, 1, T(KEY));
    proto_text(&part, 2, T(VALUE));
    proto_take(file, 14, &part);
    put_function(file, l);
    proto_free(&g);
    proto_free(&part);
}

typedef struct loading {
    proto file;
    int32_t flags;
    bool imports; /* what a function imports is part of the model */
} loading;

static int load(qsim_ctx *ctx, const void *arg, qsim_error *e) {
    const loading *l = arg;
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = l->flags};
    qsim_model *m = NULL;
    const int code = qsim_model_load_memory(ctx, l->file.data, l->file.size, &o, &m, e);
    CHECK((m != NULL) == !code);
    CHECK(code || !l->imports || qsim_model_opset(m, "com.microsoft") == 1);
    qsim_model_free(m);
    return code;
}

static void check_text(int l, int32_t flags) {
    loading job = {.flags = flags, .imports = flags == 0};
    put_model(&job.file, l, flags);
    test_each_request(load, &job, l);
    proto_free(&job.file);
}

/* ---- lists ---- */

enum { INTS, FLOATS, STRINGS, MANY, TYPED, SINGLE, CAPTURED, LISTS };

/* A list attribute; or many attributes of one number. */
static void put_attributes(proto *node, int which) {
    static const char zeros[LONG];
    proto a = {0};
    if (which == MANY) {
        char name[16];
        for (int i = 0; i < 600; i++) {
            snprintf(name, sizeof(name), "a%d", i);
            proto_integer(node, name, i);
        }
        return;
    }
    proto_text(&a, 1, "list");
    if (which == INTS)
        proto_bytes(&a, 8, zeros, LONG / 4);
    if (which == FLOATS)
        proto_bytes(&a, 7, zeros, LONG);
    for (int i = 0; which == STRINGS && i < LONG / 8; i++)
        proto_text(&a, 9, "");
    proto_int(&a, 20, which == INTS ? 7 : which == FLOATS ? 6 : 8);
    proto_take(node, 5, &a);
    proto_free(&a);
}

/* A constant in a list of numbers that are decoded, in one piece or one by one. */
static void put_numbers(proto *g, int which) {
    static const char zeros[LONG];
    proto t = {0};
    proto_int(&t, 1, LONG / 4);
    proto_int(&t, 2, which == TYPED ? QSIM_INT32 : QSIM_FLOAT);
    proto_text(&t, 8, "w");
    if (which == TYPED)
        proto_bytes(&t, 5, zeros, LONG / 4);
    for (int i = 0; which == SINGLE && i < LONG / 4; i++) {
        proto_tag(&t, 4, 5);
        proto_raw(&t, zeros, 4);
    }
    proto_take(g, 5, &t);
    proto_free(&t);
}

/* A Loop whose body adds as many values of the outer graph. */
static void put_captures(proto *g) {
    proto node = {0}, body = {0}, sum = {0};
    char name[16];
    for (int i = 0; i < LONG / 4; i++) {
        snprintf(name, sizeof(name), "v%d", i);
        proto_value(g, 11, name, QSIM_FLOAT, NULL, 0);
        proto_text(&sum, 1, name);
    }
    proto_text(&sum, 2, "next");
    proto_text(&sum, 4, "Sum");
    proto_take(&body, 1, &sum);
    proto_node(&body, "Identity", NULL, "on", NULL, "still");
    proto_value(&body, 11, "i", QSIM_INT64, NULL, 0);
    proto_value(&body, 11, "on", QSIM_BOOL, NULL, 0);
    proto_value(&body, 11, "state", QSIM_FLOAT, NULL, 0);
    proto_name(&body, 12, "still");
    proto_name(&body, 12, "next");
    proto_value(g, 11, "on", QSIM_BOOL, NULL, 0);
    proto_text(&node, 1, "");
    proto_text(&node, 1, "on");
    proto_text(&node, 1, "v0");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &body);
    proto_take(g, 1, &node);
    proto_free(&node);
    proto_free(&body);
    proto_free(&sum);
}

static void check_list(int which) {
    proto file = {0}, g = {0}, node = {0};
    const bool attributes = which < TYPED;
    if (which == CAPTURED) {
        put_captures(&g);
    } else {
        proto_text(&node, 2, "y");
        proto_text(&node, 1, attributes ? "x" : "w");
        proto_text(&node, 4, attributes ? "Unheard" : "Neg");
        if (attributes)
            put_attributes(&node, which);
        else
            put_numbers(&g, which);
        proto_take(&g, 1, &node);
        proto_value(&g, 11, "x", QSIM_FLOAT, NULL, 0);
    }
    proto_text(&g, 2, "g");
    proto_name(&g, 12, "y");
    proto_model(&file, &g);
    const loading job = {file, attributes ? QSIM_LOAD_INSPECT : 0, false};
    test_each_request(load, &job, TEXTS + 1 + which);
    proto_free(&file);
    proto_free(&g);
    proto_free(&node);
}

/* ---- a builder ---- */

#define GIVEN 13 /* texts */

/* Gives a builder its texts; the model is not finished, since no operator has such names. */
static int build(qsim_ctx *ctx, const void *arg, qsim_error *e) {
    const int l = *(const int *)arg;
    static const int64_t any = -1, many = LONG, list[LONG / 8];
    const qsim_tensor w = {QSIM_UINT8, 1, &many, long_text, LONG};
    const char *symbol = T(2);
    qsim_builder *b = NULL;
    int code = qsim_builder_create(ctx, 13, T(0), &b, e);
    if (code)
        return code;
    (void)qsim_builder_import(b, T(1), 1);
    (void)qsim_builder_input(b, T(3), QSIM_FLOAT, 1, &any, &symbol);
    (void)qsim_builder_constant(b, T(4), &w);
    (void)qsim_builder_node(b, T(5), T(6), T(7), "x", "y");
    (void)qsim_builder_attr_string(b, T(12), T(8));
    (void)qsim_builder_attr_ints(b, "list", list, LONG / 8);
    (void)qsim_builder_attr_tensor(b, "tensor", &w);
    (void)qsim_builder_metadata(b, T(9), T(10));
    code = qsim_builder_output(b, T(11), QSIM_FLOAT, 1, &any, NULL); /* or an earlier failure */
    qsim_builder_free(b);
    return code;
}

int main(void) {
    memset(long_text, 'n', LONG);
    for (int l = 0; l <= GIVEN; l++)
        test_each_request(build, &l, l);
    for (int l = 0; l <= TEXTS; l++) /* the last: none is long */
        check_text(l, 0), check_text(l, QSIM_LOAD_INSPECT), check_text(l, QSIM_LOAD_CHECK);
    for (int which = 0; which < LISTS; which++)
        check_list(which);
    return test_done();
}
