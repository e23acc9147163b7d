/* SPDX-License-Identifier: MIT */
/*
 * A model's hash: changes of results change it, the producer's name and metadata do not.
 * Calibrations recognize their model by it.
 */
#include "test.h"
#include "proto.h"

#include <qsim/qsim.h>

#include "graph/graph.h"

typedef struct hash {
    char text[65];
} hash;

/* The fields of a model of two nodes; each variant below changes one of them. */
typedef struct words {
    const char *name, *author, *input, *type, *first, *second, *mode;
    int64_t pads[4];
    float weight, alpha;
    int32_t opset;
} words;

static hash hash_of(const words *w) {
    hash h = {""};
    qsim_error e = {0};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    CHECK_INT(qsim_builder_create(NULL, w->opset, w->name, &b, NULL), QSIM_OK);
    qsim_builder_metadata(b, "author", w->author);
    qsim_builder_input_as(b, w->input, w->type);
    qsim_builder_constant_as(b, "k", "float[1]", &w->weight);
    qsim_builder_node(b, "", "Pad", "pad", w->first, "p");
    if (w->opset < 11)
        qsim_builder_attr_ints(b, "pads", w->pads, 4);
    qsim_builder_attr_string(b, "mode", w->mode);
    qsim_builder_node(b, "", "LeakyRelu", "leaky", "p", "l");
    qsim_builder_attr_float(b, "alpha", w->alpha);
    qsim_builder_node(b, "", w->second, "", "l,k", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    if (m)
        CHECK_INT(qsim_model_hash(m, h.text), QSIM_OK);
    else
        fprintf(stderr, "%s\n", e.message);
    CHECK_INT(strlen(h.text), 64);
    qsim_model_free(m);
    qsim_builder_free(b);
    return h;
}

static void check_words(void) {
    const words first = {"g",        "me",         "x",  "float[N,4]", "x", "Add",
                         "constant", {0, 1, 0, 2}, 0.5f, 0.25f,        10};
    words all[10];
    for (int i = 0; i < 10; i++)
        all[i] = first;
    all[1].input = all[1].first = "input";
    all[2].type = "float[N,5]";
    all[3].second = "Sub";
    all[4].mode = "edge";
    all[5].pads[3] = 1;
    all[6].weight = 0.75f;
    all[7].alpha = 0.125f;
    all[8].opset = 9;
    all[9].type = "float[7,4]";
    hash h[10];
    for (int i = 0; i < 10; i++)
        h[i] = hash_of(&all[i]);
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < i; j++)
            CHECK(strcmp(h[i].text, h[j].text) != 0);
    words same = first;
    same.name = "another";
    same.author = "you";
    CHECK_STR(hash_of(&same).text, h[0].text);
}

static void ints(proto *node, const char *name, const int64_t *v, size_t n) {
    proto a = {0};
    proto_text(&a, 1, name);
    for (size_t i = 0; i < n; i++)
        proto_int(&a, 8, v[i]);
    proto_int(&a, 20, QSIM_ATTR_INTS);
    proto_take(node, 5, &a);
    proto_free(&a);
}

/* The 64-bit integer whose little-endian bytes are the eight letters. */
static int64_t number(const char *letters) {
    uint64_t v = 0;
    for (int i = 8; i-- > 0;)
        v = v << 8 | (uint8_t)letters[i];
    return (int64_t)v;
}

/* The end of one list is not taken for the beginning of the next attribute. */
static void check_lists(void) {
    static const int64_t dims[] = {2};
    const int64_t one[] = {1}, rest[] = {9, 8, number("cccccccc"), QSIM_ATTR_INTS, 3};
    const int64_t most[] = {1, 8, number("bbbbbbbb"), QSIM_ATTR_INTS, 9}, last[] = {3};
    char text[2][65];
    for (int i = 0; i < 2; i++) {
        qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_INSPECT};
        qsim_model *m = NULL;
        proto p = {0}, g = {0}, node = {0};
        proto_text(&node, 1, "x");
        proto_text(&node, 2, "y");
        proto_text(&node, 4, "Unheard");
        ints(&node, "a", i ? most : one, i ? 5 : 1);
        ints(&node, i ? "cccccccc" : "bbbbbbbb", i ? last : rest, i ? 1 : 5);
        proto_take(&g, 1, &node);
        proto_text(&g, 2, "g");
        proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
        proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
        proto_model(&p, &g);
        CHECK_INT(qsim_model_load_memory(NULL, p.data, p.size, &o, &m, NULL), QSIM_OK);
        CHECK_INT(qsim_model_hash(m, text[i]), QSIM_OK);
        qsim_model_free(m);
        proto_free(&p);
        proto_free(&g);
        proto_free(&node);
    }
    CHECK(strcmp(text[0], text[1]) != 0);
}

/*
 * What the names of nodes' outputs alone tell: which of two nodes makes which operand, and that an
 * output is left out. A constant of texts, whose bytes stand nowhere else.
 */
static void check_outputs(void) {
    static const int64_t dims[] = {2};
    static const char *const forms[][4] = {
        /* outputs of Relu, of Neg, the second of Dropout, the text */
        {"a", "b", NULL, "t"}, {"b", "a", NULL, "t"}, {"a", "b", "", "t"},
        {"a", "b", "m", "t"},  {"a", "b", NULL, "u"},
    };
    char text[5][65];
    for (int i = 0; i < 5; i++) {
        qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_INSPECT};
        qsim_model *m = NULL;
        qsim_error e = {0};
        proto p = {0}, g = {0}, node = {0};
        proto_node(&g, "Relu", NULL, "x", NULL, forms[i][0]);
        proto_node(&g, "Neg", NULL, "x", NULL, forms[i][1]);
        proto_node(&g, "Sub", NULL, "a", "b", "d");
        proto_text(&node, 1, "d");
        proto_text(&node, 2, "y");
        if (forms[i][2])
            proto_text(&node, 2, forms[i][2]);
        proto_text(&node, 4, "Dropout");
        proto_take(&g, 1, &node);
        proto_int(&node, 1, 1);
        proto_int(&node, 2, QSIM_STRING);
        proto_text(&node, 6, forms[i][3]);
        proto_text(&node, 8, "words");
        proto_take(&g, 5, &node);
        proto_node(&g, "Unheard", NULL, "words", NULL, "z");
        proto_text(&g, 2, "g");
        proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
        proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
        proto_value(&g, 12, "z", QSIM_FLOAT, dims, 1);
        proto_model(&p, &g);
        CHECK_INT(qsim_model_load_memory(NULL, p.data, p.size, &o, &m, &e), QSIM_OK);
        CHECK_STR(e.message, "");
        CHECK_INT(qsim_model_hash(m, text[i]), QSIM_OK);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(text[k], text[i]) != 0);
        qsim_model_free(m);
        proto_free(&p);
        proto_free(&g);
        proto_free(&node);
    }
    CHECK_INT(qsim_model_hash(NULL, text[0]), QSIM_E_ARGUMENT);
}

int main(void) {
    check_outputs();
    check_words();
    check_lists();
    return test_done();
}
