/* SPDX-License-Identifier: MIT */
/* Names of a graph's parts: missing, given twice, defined nowhere. */
#include "test.h"
#include "proto.h"

#include <stdbool.h>

#include <qsim/model.h>

enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12, STATED = 13 };

static const int64_t two[] = {2};

/* An initializer, an input or an output, or what is stated of a value, called `name`, if it is. */
static void put(proto *graph, uint32_t field, const char *name) {
    static const float w[2] = {1, 2};
    proto t = {0};
    if (field != INITIALIZER && name) {
        proto_value(graph, field, name, QSIM_FLOAT, two, 1);
        return;
    }
    if (field == INITIALIZER) {
        proto_int(&t, 1, 2);
        proto_int(&t, 2, QSIM_FLOAT);
        proto_bytes(&t, 9, w, sizeof(w));
    }
    if (name)
        proto_text(&t, field == INITIALIZER ? 8 : 1, name);
    proto_take(graph, field, &t);
    proto_free(&t);
}

/* What is added to the graph of y = x + w. */
static const struct {
    uint32_t field;
    const char *name, *result; /* of a node: its input and its output */
    int code;
    const char *part;
} cases[] = {
    {INITIALIZER, "v", NULL, QSIM_OK, ""},
    {INITIALIZER, "", NULL, QSIM_E_GRAPH, "an initializer has no name"},
    {INITIALIZER, NULL, NULL, QSIM_E_GRAPH, "an initializer has no name"},
    {INITIALIZER, "w", NULL, QSIM_E_GRAPH, "initializer 'w' is defined twice"},
    {INITIALIZER, "y", NULL, QSIM_E_GRAPH, "tensor 'y' is written twice"},
    {INITIALIZER, "x", NULL, QSIM_OK, ""}, /* a default of the input */
    {INPUT, "v", NULL, QSIM_OK, ""},
    {INPUT, "", NULL, QSIM_E_GRAPH, "a graph input has no name"},
    {INPUT, NULL, NULL, QSIM_E_GRAPH, "a graph input has no name"},
    {INPUT, "x", NULL, QSIM_E_GRAPH, "input 'x' is defined twice"},
    {INPUT, "w", NULL, QSIM_OK, ""}, /* listed, as once they had to be */
    {INPUT, "y", NULL, QSIM_E_GRAPH, "tensor 'y' is written twice"},
    {OUTPUT, "x", NULL, QSIM_OK, ""},
    {OUTPUT, "w", NULL, QSIM_OK, ""},
    {OUTPUT, "", NULL, QSIM_E_GRAPH, "output '' is made by no node"},
    {OUTPUT, NULL, NULL, QSIM_E_GRAPH, "output '' is made by no node"},
    {OUTPUT, "nowhere", NULL, QSIM_E_GRAPH, "output 'nowhere' is made by no node"},
    {STATED, "", NULL, QSIM_OK, ""},
    {STATED, NULL, NULL, QSIM_OK, ""},
    {STATED, "nowhere", NULL, QSIM_OK, ""},
    {STATED, "y", NULL, QSIM_OK, ""},
    {NODE, "x", "z", QSIM_OK, ""},
    {NODE, "nowhere", "z", QSIM_E_GRAPH, "input 'nowhere' is defined nowhere"},
    {NODE, "x", NULL, QSIM_E_GRAPH, "the node has no outputs"},
    {NODE, "x", "", QSIM_E_GRAPH, "the node has no outputs"},
    {NODE, "x", "y", QSIM_E_GRAPH, "tensor 'y' is written twice"},
    {NODE, "x", "x", QSIM_E_GRAPH, "tensor 'x' is written twice"},
    {NODE, "x", "w", QSIM_E_GRAPH, "tensor 'w' is written twice"},
};

/* A node without a name is called by its output. */
static void check_unnamed(const char *name, const char *part) {
    proto graph = {0}, file = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    proto_node(&graph, "Neg", name, "nowhere", NULL, "y");
    put(&graph, INPUT, "x");
    put(&graph, OUTPUT, "y");
    proto_model(&file, &graph);
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), QSIM_E_GRAPH);
    CHECK(strstr(e.message, part) != NULL);
    proto_free(&graph);
    proto_free(&file);
}

/* A file without a version, a graph or both. */
static void check_head(bool version, bool graph, const char *part) {
    proto g = {0}, file = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    if (version)
        proto_int(&file, 1, 7);
    proto_text(&file, 2, "a producer");
    put(&g, INPUT, "x");
    put(&g, OUTPUT, "x");
    if (graph)
        proto_take(&file, 7, &g);
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, part) != NULL);
    proto_free(&g);
    proto_free(&file);
}

int main(void) {
    check_head(false, false, "not an ONNX model: no version and no graph");
    check_head(true, false, "the model has no graph");
    check_head(false, true, "the model has no ir_version");
    check_head(true, true, "the model imports no operator set");
    check_unnamed("neg", "(node 'neg', Neg)");
    check_unnamed("", "(node of 'y', Neg)");
    check_unnamed(NULL, "(node of 'y', Neg)");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        proto graph = {0}, file = {0};
        qsim_model *m = NULL;
        qsim_error e = {0};
        proto_node(&graph, "Add", "add", "x", "w", "y");
        put(&graph, INITIALIZER, "w");
        put(&graph, INPUT, "x");
        put(&graph, OUTPUT, "y");
        proto_text(&graph, 2, "g");
        if (cases[i].field == NODE)
            proto_node(&graph, "Neg", "neg", cases[i].name, NULL, cases[i].result);
        else
            put(&graph, cases[i].field, cases[i].name);
        proto_model(&file, &graph);
        CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), cases[i].code);
        if (!strstr(e.message, cases[i].part))
            CHECK_FAIL(e.message);
        qsim_model_free(m);
        proto_free(&graph);
        proto_free(&file);
    }
    return test_done();
}
