/* SPDX-License-Identifier: MIT */
/*
 * qs_pass_redundant: nodes that undo each other are removed; similar nodes stay. qs_pass_shapes.
 * qs_pass_broadcast.
 */
#include "net.h"

static void ints(net *n, const char *name, int64_t count, const int64_t *v) {
    net_const(n, name, QSIM_INT64, 1, &count, v);
}

/* Runs the pass over a checked net; returns how many nodes remain. */
static int left(net *n) {
    qs_pass p = net_pass(n);
    NET_OK(n, net_end(n));
    NET_OK(n, qs_pass_redundant(&p));
    NET_OK(n, qs_pass_finish(&p));
    return (int)n->g->order_count;
}

static void transposes(void) {
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 4));
    net_ints(&n, net_node(&n, "", "Transpose", "x", "a"), "perm", 3, (int64_t[]){1, 2, 0});
    net_ints(&n, net_node(&n, "", "Transpose", "a", "b"), "perm", 3, (int64_t[]){2, 0, 1});
    net_node(&n, "", "Neg", "b", "y"); /* b is x */
    net_ints(&n, net_node(&n, "", "Transpose", "a", "c"), "perm", 3, (int64_t[]){1, 0, 2});
    net_node(&n, "", "Neg", "c", "z"); /* two of them make one */
    net_output(&n, "y");
    net_output(&n, "z");
    CHECK_INT(left(&n), 3);
    CHECK_INT(net_count(&n, "Transpose"), 1);
    const qs_node *t = &n.g->nodes[n.g->values[qs_graph_find(n.g, "c")].producer];
    const int64_t *perm = qs_node_attr(t, "perm")->u.ints;
    CHECK(perm[0] == 2 && perm[1] == 1 && perm[2] == 0);
    CHECK_INT(t->inputs[0], qs_graph_find(n.g, "x"));
    net_free(&n);
}

static void reshapes(void) {
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(-1, 3, 4));
    ints(&n, "six", 2, (int64_t[]){-1, 6});
    ints(&n, "keep", 3, (int64_t[]){0, 2, -1});
    net_node(&n, "", "Flatten", "x", "a");
    net_node(&n, "", "Reshape", "a,six", "b");  /* reads x */
    net_node(&n, "", "Reshape", "a,keep", "c"); /* 0: the first axis of a itself */
    net_node(&n, "", "Neg", "b", "y");
    net_node(&n, "", "Neg", "c", "z");
    net_output(&n, "y");
    net_output(&n, "z");
    CHECK_INT(left(&n), 5);
    CHECK_INT(n.g->nodes[n.g->values[qs_graph_find(n.g, "b")].producer].inputs[0],
              qs_graph_find(n.g, "x"));
    CHECK_INT(n.g->nodes[n.g->values[qs_graph_find(n.g, "c")].producer].inputs[0],
              qs_graph_find(n.g, "a"));
    net_free(&n);
}

static void axes(void) {
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(-1, 1, 4, 1));
    ints(&n, "one", 1, (int64_t[]){1});
    ints(&n, "three", 1, (int64_t[]){-1});
    net_node(&n, "", "Squeeze", "x,one", "s");
    net_node(&n, "", "Unsqueeze", "s,one", "u");   /* x */
    net_node(&n, "", "Unsqueeze", "s,three", "v"); /* not x */
    net_node(&n, "", "Neg", "u", "y");
    net_node(&n, "", "Neg", "v", "z");
    net_output(&n, "y");
    net_output(&n, "z");
    CHECK_INT(left(&n), 4);
    CHECK_INT(net_count(&n, "Unsqueeze"), 1);
    CHECK_INT(net_count(&n, "Squeeze"), 1);
    net_free(&n);
}

/* At known sizes: casts to the same type, a Concat of one input; an output keeps its name. */
static void nothing_to_do(void) {
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3));
    ints(&n, "shape", 2, (int64_t[]){0, -1});
    net_node(&n, "", "Reshape", "x,shape", "a");
    qs_node_set_int(n.g, net_node(&n, "", "Cast", "a", "b"), "to", QSIM_FLOAT);
    qs_node_set_int(n.g, net_node(&n, "", "Concat", "b", "c"), "axis", 0);
    net_node(&n, "", "Neg", "c", "d");
    net_ints(&n, net_node(&n, "", "Transpose", "d", "y"), "perm", 2, (int64_t[]){0, 1});
    qs_node_set_int(n.g, net_node(&n, "", "Cast", "d", "z"), "to", QSIM_INT32);
    net_output(&n, "y");
    net_output(&n, "z");
    CHECK_INT(left(&n), 2);
    CHECK_INT(net_count(&n, "Neg"), 1);
    CHECK_STR(n.g->values[n.g->outputs[0]].name, "y");
    net_free(&n);
}

/* Sizes that are known make Shape, and what follows from it, constants. */
static void known_sizes(void) {
    net n;
    net_begin(&n, NULL, 15);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 4));
    net_const(&n, "two", QSIM_INT64, NET_DIMS(1), (const int64_t[]){2});
    const qs_id shape = net_node(&n, "", "Shape", "x", "s");
    qs_node_set_int(n.g, shape, "end", 2);
    net_node(&n, "", "Mul", "s,two", "double");
    net_node(&n, "", "ConstantOfShape", "double", "zeros");
    net_node(&n, "", "ReduceMax", "zeros", "zero");
    net_node(&n, "", "Add", "x,zero", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    qs_pass p = net_pass(&n);
    CHECK_INT(qs_pass_shapes(&p), 0);
    CHECK_INT(n.g->order_count, 1);
    CHECK_INT(net_count(&n, "Add"), 1);
    net_free(&n);
}

/*
 * The rank of a fill is known by the length of its computed shape, as exporters write the tokens
 * before an image's patches: ConstantOfShape(Concat(batch of x, 1, 4)).
 */
static void filled_rank(void) {
    net n;
    net_begin(&n, NULL, 15);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(-1, 3));
    net_const(&n, "sizes", QSIM_INT64, NET_DIMS(2), (const int64_t[]){1, 4});
    qs_node_set_int(n.g, net_node(&n, "", "Shape", "x", "batch"), "end", 1);
    qs_node_set_int(n.g, net_node(&n, "", "Concat", "batch,sizes", "shape"), "axis", 0);
    net_node(&n, "", "ConstantOfShape", "shape", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    const qs_value *y = &n.g->values[n.g->outputs[0]];
    CHECK_INT(y->rank, 3);
    static const int64_t sizes[] = {-1, 1, 4};
    for (int i = 0; i < 3 && y->rank == 3; i++)
        CHECK_INT(y->dims[i].size, sizes[i]);
    net_free(&n);
}

/* What node `name` reads as its input `index`. */
static qs_id input_of(const net *n, const char *name, int32_t index) {
    return n->g->nodes[n->g->values[qs_graph_find(n->g, name)].producer].inputs[index];
}

static void expanded_operands(void) {
    net n;
    net_begin(&n, NULL, 16);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 4));
    net_input(&n, "row", QSIM_FLOAT, NET_DIMS(1, 4));
    net_input(&n, "slope", QSIM_FLOAT, NET_DIMS(3, 1));
    net_input(&n, "sizes", QSIM_INT64, NET_DIMS(3));
    net_input(&n, "any", QSIM_FLOAT, NET_DIMS(-1, 3, 4));
    ints(&n, "to", 3, (int64_t[]){2, 3, 4});
    ints(&n, "wider", 4, (int64_t[]){5, 2, 3, 4});
    net_node(&n, "", "Expand", "slope,to", "e");
    net_node(&n, "", "PRelu", "x,e", "read"); /* reads the slope */
    net_node(&n, "", "Expand", "row,to", "f");
    net_node(&n, "", "Sub", "f,x", "left");  /* reads the row */
    net_node(&n, "", "Add", "e,f", "stays"); /* one of the two must be expanded */
    net_node(&n, "", "Expand", "row,wider", "w");
    net_node(&n, "", "Add", "x,w", "grows"); /* only the Expand gives its first axis */
    net_node(&n, "", "Expand", "row,sizes", "s");
    net_node(&n, "", "Mul", "x,s", "computed"); /* the sizes are not constant */
    net_node(&n, "", "Mul", "any,f", "open");   /* 1 as first size would be another result */
    static const char *const outputs[] = {"read", "left", "stays", "grows", "computed", "open"};
    for (size_t i = 0; i < QS_COUNT(outputs); i++)
        net_output(&n, outputs[i]);
    qs_pass p = net_pass(&n);
    NET_OK(&n, net_end(&n));
    NET_OK(&n, qs_pass_broadcast(&p));
    CHECK_INT(input_of(&n, "read", 1), qs_graph_find(n.g, "slope"));
    CHECK_INT(input_of(&n, "left", 0), qs_graph_find(n.g, "row"));
    CHECK_INT(input_of(&n, "grows", 1), qs_graph_find(n.g, "w"));
    CHECK_INT(input_of(&n, "computed", 1), qs_graph_find(n.g, "s"));
    CHECK_INT(input_of(&n, "open", 1), qs_graph_find(n.g, "f"));
    CHECK_INT(input_of(&n, "stays", 0), qs_graph_find(n.g, "slope"));
    CHECK_INT(input_of(&n, "stays", 1), qs_graph_find(n.g, "f"));
    net_free(&n);
}

int main(void) {
    expanded_operands();
    transposes();
    reshapes();
    axes();
    nothing_to_do();
    known_sizes();
    filled_rank();
    return test_done();
}
