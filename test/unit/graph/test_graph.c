/* SPDX-License-Identifier: MIT */
/* The intermediate representation: names, order, uses, edits, clones. */
#include "base/ctx.h"
#include "graph/graph.h"
#include "test.h"

static qsim_ctx *ctx;

static qs_id value(qs_graph *g, const char *name) {
    qs_id id = qs_graph_find(g, name);
    return id == QS_NONE ? qs_graph_add_value(g, name) : id;
}

/* Adds a node reading a and b (b may be NULL) and writing out. */
static qs_id node(qs_graph *g, const char *op, const char *a, const char *b, const char *out) {
    qs_id in[2] = {value(g, a), b ? value(g, b) : QS_NONE}, o = value(g, out);
    return qs_graph_add_node(g, "", op, op, in, b ? 2 : 1, &o, 1);
}

static void test_order(void) {
    qs_graph *g;
    qsim_error e;
    qs_error_clear(&e);
    CHECK_INT(qs_graph_create(ctx, &g), QSIM_OK);
    qs_id d = node(g, "D", "b", "c", "y"); /* the file has them backwards */
    qs_id c = node(g, "C", "a", NULL, "c");
    qs_id b = node(g, "B", "a", "a", "b");
    qs_id a = node(g, "A", "x", NULL, "a");
    CHECK_INT(qs_graph_sort(g, &e), QSIM_OK);
    CHECK_INT(g->order_count, 4);
    CHECK(g->order[0] == a && g->order[1] == c && g->order[2] == b && g->order[3] == d);
    qs_uses u;
    CHECK_INT(qs_graph_uses(g, &u), QSIM_OK);
    qs_id va = qs_graph_find(g, "a"), vy = qs_graph_find(g, "y");
    CHECK_INT(u.start[va + 1] - u.start[va], 3); /* C once, B twice */
    CHECK_INT(u.start[vy + 1] - u.start[vy], 0);
    qs_uses_free(g, &u);
    /* C has no readers once D is rewired: pruning removes C and nothing else. */
    qs_node_set_input(g, d, 1, qs_graph_find(g, "b"));
    qs_graph_push_output(g, vy);
    CHECK_INT(qs_graph_prune(g), QSIM_OK);
    CHECK_INT(g->order_count, 3);
    CHECK(g->nodes[c].removed && !g->nodes[a].removed);
    /* A cycle is named. */
    qs_node_set_input(g, a, 0, vy);
    CHECK_INT(qs_graph_sort(g, &e), QSIM_E_GRAPH);
    CHECK(strstr(e.message, "cycle") != NULL);
    qs_graph_free(g);
}

static void test_long_chain(void) {
    qs_graph *g;
    char from[32], to[32];
    CHECK_INT(qs_graph_create(ctx, &g), QSIM_OK);
    for (int i = 100000; i-- > 0;) { /* reversed: a recursive sort would overflow the stack */
        snprintf(from, sizeof(from), "v%d", i);
        snprintf(to, sizeof(to), "v%d", i + 1);
        node(g, "N", from, NULL, to);
    }
    CHECK_INT(qs_graph_sort(g, NULL), QSIM_OK);
    CHECK_INT(g->order_count, 100000);
    CHECK_INT(g->order[0], 99999);
    qs_graph_free(g);
}

static void test_clone_and_edit(void) {
    qs_graph *g, *copy;
    const int64_t dims[] = {2, 2};
    const float w[] = {1, 2, 3, 4};
    CHECK_INT(qs_graph_create(ctx, &g), QSIM_OK);
    qs_graph_set_import(g, "", 13);
    qs_id c = qs_graph_add_const(g, "w", QSIM_FLOAT, 2, dims, w, true);
    CHECK(c >= 0 && g->values[c].data->bytes == sizeof(w));
    qs_id n = node(g, "A", "x", "w", "y");
    CHECK_INT(g->nodes[n].version, 13);
    qs_node_set_int(g, n, "axis", 1);
    qs_graph_push_output(g, qs_graph_find(g, "y"));
    CHECK_INT(qs_graph_clone(g, ctx, &copy), QSIM_OK);
    qs_node_set_int(copy, n, "axis", 2);
    qs_node_set_float(copy, n, "alpha", 0.5f);
    copy->nodes[n].inputs[0] = qs_graph_find(copy, "w");
    qs_graph_add_value(copy, "z");
    CHECK_INT(qs_node_int(&g->nodes[n], "axis", -1), 1);
    CHECK_INT(qs_node_int(&copy->nodes[n], "axis", -1), 2);
    CHECK(qs_node_attr(&g->nodes[n], "alpha") == NULL);
    CHECK_NEAR(qs_node_float(&copy->nodes[n], "alpha", 0), 0.5, 0);
    CHECK_INT(g->nodes[n].inputs[0], qs_graph_find(g, "x"));
    CHECK_INT(copy->nodes[n].inputs[0], c);
    CHECK_INT(qs_graph_find(g, "z"), QS_NONE);
    qs_node_drop_attr(copy, n, "axis");
    CHECK_INT(qs_node_int(&copy->nodes[n], "axis", -1), -1);
    CHECK_STR(qs_graph_fresh_name(copy, "z"), "z_1");
    CHECK_STR(qs_graph_fresh_name(g, "z"), "z");
    qs_graph_free(copy);
    qs_graph_free(g);
}

static void test_alignment(void) {
    qs_graph *g;
    const int64_t dims[] = {3};
    char raw[16];
    const float w[] = {1, 2, 3};
    memcpy(raw + 1, w, sizeof(w));
    CHECK_INT(qs_graph_create(ctx, &g), QSIM_OK);
    qs_id c = qs_graph_add_const(g, "w", QSIM_FLOAT, 1, dims, raw + 1, false);
    CHECK(g->values[c].data->data == (void *)(raw + 1)); /* in place until a reader needs more */
    const float *p = qs_graph_aligned(g, c);
    CHECK((uintptr_t)p % sizeof(float) == 0 && p[0] == 1 && p[2] == 3);
    CHECK(qs_graph_aligned(g, c) == p);
    qs_graph_free(g);
}

int main(void) {
    qsim_error e;
    if (qsim_ctx_create(NULL, &ctx, &e))
        return 1;
    test_order();
    test_long_chain();
    test_clone_and_edit();
    test_alignment();
    qsim_ctx_free(ctx);
    return test_done();
}
