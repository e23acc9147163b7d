/* SPDX-License-Identifier: MIT */
/* The intermediate representation: names, order, uses, edits, clones. */
#include "base/ctx.h"
#include "graph/graph.h"
#include "graph/names.h"
#include "tensor/shape.h"
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

/* ---- random graphs ---- */

enum { NODES = 9, VALUES = 12 };

/* Node i reads up to three values and makes value i, in random numbers; some are removed. */
static qs_graph *draw(uint64_t *seed, bool cycles) {
    qs_graph *g;
    char name[16];
    qs_id place[NODES]; /* value i is made by the node that comes at place[i] in some order */
    CHECK_INT(qs_graph_create(ctx, &g), QSIM_OK);
    for (int i = 0; i < VALUES; i++) {
        snprintf(name, sizeof(name), "v%d", i);
        qs_graph_add_value(g, name);
    }
    for (int i = 0; i < NODES; i++)
        place[i] = (qs_id)(test_random(seed) % 1000);
    for (int i = 0; i < NODES; i++) {
        qs_id in[3], out = i;
        const int32_t count = (int32_t)(test_random(seed) % 4);
        for (int32_t k = 0; k < count; k++) {
            const qs_id from = (qs_id)(test_random(seed) % VALUES);
            const bool legal = from >= NODES || cycles || place[from] < place[i];
            in[k] = legal ? from : QS_NONE;
        }
        qs_graph_add_node(g, "", "N", "n", in, count, &out, 1);
        if (test_random(seed) % 5 == 0)
            qs_graph_remove_node(g, i);
    }
    for (int i = 0; i < 2; i++)
        qs_graph_push_output(g, (qs_id)(test_random(seed) % NODES));
    return g;
}

static bool reads(const qs_graph *g, qs_id n, qs_id v) {
    for (int32_t k = 0; k < g->nodes[n].input_count; k++)
        if (g->nodes[n].inputs[k] == v)
            return !g->nodes[n].removed;
    return false;
}

/* The order by its definition: of the nodes that can come next, the one with the least number. */
static size_t order_of(const qs_graph *g, qs_id order[NODES]) {
    bool done[NODES] = {false};
    size_t count = 0;
    for (bool more = true; more;) {
        more = false;
        for (qs_id n = 0; n < NODES && !more; n++) {
            bool ready = !done[n] && !g->nodes[n].removed;
            for (qs_id v = 0; v < VALUES && ready; v++)
                ready = !reads(g, n, v) || g->values[v].producer == QS_NONE ||
                        done[g->values[v].producer];
            if (ready) {
                done[n] = more = true;
                order[count++] = n;
            }
        }
    }
    return count;
}

static void check_uses(const qs_graph *g) {
    qs_uses u;
    CHECK_INT(qs_graph_uses(g, &u), QSIM_OK);
    for (qs_id v = 0; v < VALUES; v++) {
        qs_id at = u.start[v], only = QS_NONE;
        for (qs_id n = 0; n < NODES; n++)
            for (int32_t k = 0; !g->nodes[n].removed && k < g->nodes[n].input_count; k++)
                if (g->nodes[n].inputs[k] == v) {
                    CHECK(at < u.start[v + 1] && u.nodes[at] == n);
                    only = n;
                    at++;
                }
        CHECK_INT(at, u.start[v + 1]);
        only = at - u.start[v] == 1 && !g->values[v].is_output ? only : QS_NONE;
        CHECK_INT(qs_only_reader(g, &u, v), only);
        CHECK_INT(qs_only_producer(g, &u, v), only == QS_NONE ? QS_NONE : g->values[v].producer);
    }
    CHECK_INT(qs_only_reader(g, &u, QS_NONE), QS_NONE);
    CHECK_INT(qs_only_reader(g, &u, VALUES), QS_NONE);
    qs_uses_free(g, &u);
}

/* Removes what no output needs, and keeps the order of the others. */
static void check_pruned(qs_graph *g) {
    qs_id before[NODES], kept[NODES];
    bool needed[NODES] = {false};
    const size_t count = g->order_count;
    size_t left = 0;
    memcpy(before, g->order, count * sizeof(*before));
    for (size_t i = 0; i < g->output_count; i++)
        needed[g->outputs[i]] = true;
    for (int round = 0; round < NODES; round++)
        for (qs_id n = 0; n < NODES; n++)
            for (qs_id v = 0; v < NODES && needed[n]; v++)
                needed[v] = needed[v] || reads(g, n, v);
    for (size_t i = 0; i < count; i++)
        if (needed[before[i]] && !g->nodes[before[i]].removed)
            kept[left++] = before[i];
    CHECK_INT(qs_graph_prune(g), QSIM_OK);
    CHECK(g->order_count == left && memcmp(g->order, kept, left * sizeof(*kept)) == 0);
    for (qs_id n = 0; n < NODES; n++)
        CHECK(g->nodes[n].removed || needed[n]);
}

static void test_random_order(void) {
    uint64_t seed = 11;
    for (int i = 0; i < 250; i++) {
        qs_graph *g = draw(&seed, i % 3 == 0);
        qs_id order[NODES];
        size_t live = 0;
        for (qs_id n = 0; n < NODES; n++)
            live += !g->nodes[n].removed;
        const size_t count = order_of(g, order);
        CHECK_INT(qs_graph_sort(g, NULL), count == live ? QSIM_OK : QSIM_E_GRAPH);
        check_uses(g);
        if (count == live) {
            CHECK(g->order_count == count && memcmp(g->order, order, count * sizeof(*order)) == 0);
            check_pruned(g);
        }
        qs_graph_free(g);
    }
}

/* Names: found after each addition, also in a copy, and not found before. */
static void test_names(void) {
    static char text[300][16];
    struct qs_names *names = qs_names_create(ctx);
    CHECK(names && qs_names_find(names, "n0") == QS_NONE && !qs_names_counter(names, "n0"));
    for (int i = 0; i < 300; i++) {
        snprintf(text[i], sizeof(text[i]), "n%d", i);
        CHECK_INT(qs_names_find(names, text[i]), QS_NONE);
        CHECK(!qs_names_counter(names, text[i]));
        CHECK_INT(qs_names_put(ctx, names, text[i], i), QSIM_OK);
        for (int k = 0; k <= i; k++)
            CHECK_INT(qs_names_find(names, text[k]), k);
    }
    CHECK_INT(*qs_names_counter(names, "n7"), 1);
    *qs_names_counter(names, "n7") = 5;
    CHECK_INT(qs_names_put(ctx, names, text[7], 77), QSIM_OK); /* another value, the same counter */
    CHECK(qs_names_find(names, "n7") == 77 && *qs_names_counter(names, "n7") == 5);
    struct qs_names *copy = qs_names_clone(ctx, names), *none = qs_names_create(ctx), *empty;
    empty = qs_names_clone(ctx, none);
    CHECK_INT(qs_names_put(ctx, names, "other", 1), QSIM_OK);
    CHECK(qs_names_find(copy, "n299") == 299 && qs_names_find(copy, "other") == QS_NONE);
    CHECK(empty && qs_names_find(empty, "n1") == QS_NONE);
    qs_names_free(ctx, names);
    qs_names_free(ctx, copy);
    qs_names_free(ctx, none);
    qs_names_free(ctx, empty);
    qs_names_free(ctx, NULL);
}

/* A number has no sizes, and a value of unknown rank neither: NULL is not copied from (UBSan). */
static void test_no_sizes(void) {
    const qs_value number = {.rank = 0}, unknown = {.rank = -1};
    const qsim_tensor tensor = {.dtype = QSIM_FLOAT, .rank = 0};
    qs_dim dim = {7, NULL};
    int64_t size = 7;
    qs_value_dims(&number, &dim);
    qs_value_dims(&unknown, &dim);
    qs_tensor_dims(&tensor, &size);
    CHECK(dim.size == 7 && size == 7);
}

int main(void) {
    qsim_error e;
    if (qsim_ctx_create(NULL, &ctx, &e))
        return 1;
    test_order();
    test_long_chain();
    test_clone_and_edit();
    test_alignment();
    test_random_order();
    test_names();
    test_no_sizes();
    qsim_ctx_free(ctx);
    return test_done();
}
