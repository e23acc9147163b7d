/* SPDX-License-Identifier: MIT */
/* The graph verifier: a valid graph passes, one with any single defect is refused by its rule. */
#include "net.h"

#include "pass/verify.h"

/* y = Relu(Add(x, c)), z = Neg(y), t = Abs(x) */
static void begin(net *n) {
    static const float c[4] = {1, 2, 3, 4};
    net_begin(n, NULL, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(2, 4));
    net_const(n, "c", QSIM_FLOAT, NET_DIMS(4), c);
    net_node(n, "", "Add", "x,c", "a");
    net_node(n, "", "Relu", "a", "y");
    net_node(n, "", "Neg", "y", "z");
    net_node(n, "", "Abs", "x", "t");
    net_output(n, "z");
    net_output(n, "t");
    NET_OK(n, net_end(n));
}

static qs_id id(const net *n, const char *name) {
    return qs_graph_find(n->g, name);
}

static qs_node *maker(const net *n, const char *name) {
    return &n->g->nodes[n->g->values[id(n, name)].producer];
}

static qs_value *value(const net *n, const char *name) {
    return &n->g->values[id(n, name)];
}

/* ---- each with one fault ---- */

static void input_out_of_range(net *n) {
    maker(n, "y")->inputs[0] = (qs_id)n->g->value_count;
}
static void output_out_of_range(net *n) {
    maker(n, "z")->outputs[0] = -7;
}
static void port_out_of_range(net *n) {
    n->g->outputs[1] = (qs_id)n->g->value_count;
}
static void unmarked_input(net *n) {
    value(n, "x")->is_input = false;
}
static void unmarked_output(net *n) {
    value(n, "t")->is_output = false;
}
static void two_producers(net *n) {
    maker(n, "t")->outputs[0] = id(n, "y");
}
static void removed_producer(net *n) {
    maker(n, "a")->removed = true;
    n->g->order[0] = n->g->order[--n->g->order_count];
}
static void foreign_producer(net *n) {
    value(n, "c")->producer = value(n, "t")->producer;
}
static void produced_constant(net *n) {
    value(n, "a")->data = value(n, "c")->data;
}
static void undefined_value(net *n) {
    maker(n, "y")->inputs[0] = qs_graph_add_value(n->g, "nothing");
}
static void unresolved_node(net *n) {
    maker(n, "y")->op = NULL;
}
static void other_row(net *n) {
    maker(n, "y")->op_type = "Neg";
}
static void late_producer(net *n) {
    const qs_id first = n->g->order[0];
    n->g->order[0] = n->g->order[1];
    n->g->order[1] = first;
}
static void node_twice(net *n) {
    n->g->order[3] = n->g->order[0];
}
static void node_left_out(net *n) {
    n->g->order_count--;
}
static void wrong_type(net *n) {
    value(n, "y")->dtype = QSIM_INT32;
}
static void wrong_rank(net *n) {
    value(n, "t")->rank = 1;
}
static void wrong_size(net *n) {
    static const qs_dim dims[2] = {{.size = 2}, {.size = 5}};
    value(n, "t")->dims = dims;
}

static const struct {
    const char *rule; /* part of the message */
    void (*fault)(net *n);
} cases[] = {
    {"an input of a node is no value", input_out_of_range},
    {"an output of a node is no value", output_out_of_range},
    {"a graph output is no value", port_out_of_range},
    {"a graph input is not marked", unmarked_input},
    {"a graph output is not marked", unmarked_output},
    {"two producers", two_producers},
    {"the producer of a value does not exist", removed_producer},
    {"the producer of a value does not make it", foreign_producer},
    {"a constant has a producer", produced_constant},
    {"a value is read that nothing makes", undefined_value},
    {"not looked up in the operator table", unresolved_node},
    {"not looked up in the operator table", other_row},
    {"a node stands before the producer", late_producer},
    {"the order has a node twice", node_twice},
    {"a live node is not in the order", node_left_out},
    {"not the one inferred", wrong_type},
    {"not the one inferred", wrong_rank},
    {"not the one inferred", wrong_size},
};

/* The pipeline verifies after each pass, in builds with assertions. */
static void test_pipeline(void) {
    net n;
#ifdef NDEBUG
    const int expected = QSIM_OK;
#else
    const int expected = QSIM_E_INTERNAL;
#endif
    begin(&n);
    wrong_size(&n);
    qs_pass p = net_pass(&n);
    CHECK_INT(qs_pipeline_run(&p, QS_FOR_FILE, QSIM_LEVEL_DISABLE), expected);
    CHECK(expected == QSIM_OK || strstr(n.error.message, "after prune") != NULL);
    net_free(&n);
}

int main(void) {
    net n;
    begin(&n);
    CHECK_INT(qs_graph_verify(n.g, "net", "nothing", &n.error), QSIM_OK);
    net_free(&n);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(&n);
        cases[i].fault(&n);
        CHECK_INT(qs_graph_verify(n.g, "net", "a pass", &n.error), QSIM_E_INTERNAL);
        CHECK(strstr(n.error.message, cases[i].rule) != NULL);
        CHECK(strstr(n.error.message, "after a pass") != NULL);
        net_free(&n);
    }
    test_pipeline();
    return test_done();
}
