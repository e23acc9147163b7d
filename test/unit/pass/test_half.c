/* SPDX-License-Identifier: MIT */
/* float16 and bfloat16: computed as floats, rounded for outputs and where their bits matter. */
#include "net.h"

#include "exec/run.h"

static int count(const qs_graph *g, const char *op_type) {
    int n = 0;
    for (size_t i = 0; i < g->order_count; i++)
        n += strcmp(g->nodes[g->order[i]].op_type, op_type) == 0;
    return n;
}

/* x * 3 -> Transpose -> / 3, all halves: one Cast in, one out, and the product is not rounded. */
static void test_island(int32_t level) {
    const int64_t dims[] = {2, 2};
    const uint16_t three = 0x4200, x[] = {0x3c01, 0x3c00, 0xbc01, 0x7bff}; /* 1 + 2^-10, ... */
    uint16_t y[4];
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT16, NET_DIMS(2, 2));
    CHECK(qs_graph_add_const(n.g, "c", QSIM_FLOAT16, 0, NULL, &three, true) >= 0);
    net_node(&n, "", "Mul", "x,c", "a");
    net_node(&n, "", "Transpose", "a", "b");
    net_node(&n, "", "Div", "b,c", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    CHECK_INT(n.g->values[qs_graph_find(n.g, "y")].dtype, QSIM_FLOAT16);
    qsim_tensor in = net_tensor(QSIM_FLOAT16, 2, dims, (void *)(uintptr_t)x);
    qsim_tensor out = {.data = y, .bytes = sizeof(y)};
    NET_OK(&n, net_run(&n, level, false, &in, 1, &out, 1));
    CHECK_INT(out.dtype, QSIM_FLOAT16);
    /* 65504 * 3 would be infinite, 3 + 3 * 2^-10 is no float16 */
    CHECK(y[0] == 0x3c01 && y[1] == 0xbc01 && y[2] == 0x3c00 && y[3] == 0x7bff);
    qsim_session *s = NULL;
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    CHECK_INT(s ? count(s->graph, "Cast") : 0, 2);
    qsim_session_free(s);
    net_free(&n);
}

/* A comparison sees what was rounded: 1 + 2^-10 + 2^-12 is equal to 1 + 2^-10. */
static void test_compared(void) {
    const uint16_t one = 0x3c01, tiny = 0x0c00; /* 2^-12 */
    uint8_t y;
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT16, NET_DIMS(1));
    CHECK(qs_graph_add_const(n.g, "t", QSIM_FLOAT16, 0, NULL, &tiny, true) >= 0);
    net_node(&n, "", "Add", "x,t", "a");
    net_node(&n, "", "Equal", "a,x", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    qsim_tensor in = net_tensor(QSIM_FLOAT16, 1, (const int64_t[]){1}, (void *)(uintptr_t)&one);
    qsim_tensor out = {.data = &y, .bytes = 1};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, &in, 1, &out, 1));
    CHECK_INT(y, 1);
    net_free(&n);
}

/* A Cast to the half type rounds before an operator that jumps. */
static void test_jumps(void) {
    float x[3] = {0.5001f, 1.4999f, 0.51f}, y[3];
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(3));
    qs_node_set_int(n.g, net_node(&n, "", "Cast", "x", "h"), "to", QSIM_FLOAT16);
    net_node(&n, "", "Round", "h", "r");
    qs_node_set_int(n.g, net_node(&n, "", "Cast", "r", "y"), "to", QSIM_FLOAT);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(3), x);
    qsim_tensor out = {.data = y, .bytes = sizeof(y)};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, &in, 1, &out, 1));
    CHECK(y[0] == 0 && y[1] == 2 && y[2] == 1); /* 0.5 and 1.5, halves to even */
    net_free(&n);
}

/* What only moves elements stays as it is: no Cast. A model with both half types is refused. */
static void test_moved_and_mixed(void) {
    qsim_session *s = NULL;
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_BFLOAT16, NET_DIMS(2, 3));
    net_node(&n, "", "Transpose", "x", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    CHECK_INT(s ? count(s->graph, "Cast") : 9, 0);
    qsim_session_free(s);
    net_free(&n);
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_BFLOAT16, NET_DIMS(2, 3));
    net_input(&n, "z", QSIM_FLOAT16, NET_DIMS(2, 3));
    net_node(&n, "", "Add", "x,z", "y");
    net_output(&n, "y");
    CHECK_INT(net_end(&n), QSIM_E_DTYPE);
    net_free(&n);
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3));
    net_input(&n, "z", QSIM_FLOAT16, NET_DIMS(2, 3));
    net_node(&n, "", "Add", "x,z", "y");
    net_output(&n, "y");
    CHECK_INT(net_end(&n), QSIM_E_DTYPE);
    net_free(&n);
}

/* The result has the type of the first operand: a float, whatever the other inputs are. */
static void test_other_inputs(void) {
    const float two = 2, values[] = {0, 5};
    const uint16_t three = 0x4200, one = 0x3c00;
    const int64_t depth = 3;
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1));
    net_input(&n, "i", QSIM_FLOAT16, NET_DIMS(1));
    CHECK(qs_graph_add_const(n.g, "e", QSIM_FLOAT16, 0, NULL, &three, true) >= 0);
    CHECK(qs_graph_add_const(n.g, "d", QSIM_INT64, 0, NULL, &depth, true) >= 0);
    net_const(&n, "v", QSIM_FLOAT, NET_DIMS(2), values);
    net_node(&n, "", "Pow", "x,e", "p");
    net_node(&n, "", "OneHot", "i,d,v", "h");
    net_output(&n, "p");
    net_output(&n, "h");
    NET_OK(&n, net_end(&n));
    float p, h[3];
    const qsim_tensor in[] = {
        net_tensor(QSIM_FLOAT, 1, (const int64_t[]){1}, (void *)(uintptr_t)&two),
        net_tensor(QSIM_FLOAT16, 1, (const int64_t[]){1}, (void *)(uintptr_t)&one)};
    qsim_tensor out[] = {{.data = &p, .bytes = sizeof(p)}, {.data = h, .bytes = sizeof(h)}};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, in, 2, out, 2));
    CHECK(out[0].dtype == QSIM_FLOAT && p == 8);
    CHECK(out[1].dtype == QSIM_FLOAT && h[0] == 0 && h[1] == 5 && h[2] == 0);
    net_free(&n);
}

/* Statistics of a normalization are floats whatever its inputs are; the sum has the inputs' type.
 */
static void test_statistics(void) {
    const uint16_t x[] = {0x3c00, 0x3c00}, v[] = {0, 0x4000}, ones[] = {0x3c00, 0x3c00};
    float mean, inverse;
    uint16_t sum[2];
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT16, NET_DIMS(1, 2));
    net_input(&n, "v", QSIM_FLOAT16, NET_DIMS(1, 2));
    net_const(&n, "g", QSIM_FLOAT16, NET_DIMS(2), ones);
    net_node(&n, "com.microsoft", "SkipLayerNormalization", "x,v,g", "y,m,i,s");
    net_output(&n, "m");
    net_output(&n, "i");
    net_output(&n, "s");
    NET_OK(&n, net_end(&n));
    const qsim_tensor in[] = {
        net_tensor(QSIM_FLOAT16, 2, (const int64_t[]){1, 2}, (void *)(uintptr_t)x),
        net_tensor(QSIM_FLOAT16, 2, (const int64_t[]){1, 2}, (void *)(uintptr_t)v)};
    qsim_tensor out[] = {{.data = &mean, .bytes = sizeof(mean)},
                         {.data = &inverse, .bytes = sizeof(inverse)},
                         {.data = sum, .bytes = sizeof(sum)}};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, in, 2, out, 3));
    CHECK(out[0].dtype == QSIM_FLOAT && mean == 2);
    CHECK(out[1].dtype == QSIM_FLOAT && inverse > 0.999f && inverse <= 1);
    CHECK(out[2].dtype == QSIM_FLOAT16 && sum[0] == 0x3c00 && sum[1] == 0x4200);
    net_free(&n);
}

int main(void) {
    test_statistics();
    test_island(QSIM_LEVEL_DISABLE);
    test_island(QSIM_LEVEL_ALL);
    test_compared();
    test_jumps();
    test_moved_and_mixed();
    test_other_inputs();
    return test_done();
}
