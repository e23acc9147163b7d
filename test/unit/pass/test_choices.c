/* SPDX-License-Identifier: MIT */
/*
 * Choices between bools, as If becomes, in files: ONNX Runtime has no Where of bools, so bytes are
 * chosen, in the graph and in graphs inside of it. The results stay.
 */
#include "graph/model.h"
#include "graph/subgraph.h"

#include "proto.h"
#include "test.h"

#include <qsim/qsim.h>

static const int64_t pair[] = {2};

/* y = condition ? not x : x and x */
static void choose(proto *g, const char *condition, const char *x, const char *y) {
    proto then = {0}, otherwise = {0};
    proto_node(&then, "Not", "not", x, NULL, "turned");
    proto_name(&then, 12, "turned");
    proto_node(&otherwise, "And", "and", x, x, "kept");
    proto_name(&otherwise, 12, "kept");
    proto_if(g, NULL, condition, &then, &otherwise, y);
    proto_free(&then);
    proto_free(&otherwise);
}

/* z = y, turned in the second of three iterations. */
static void turn_once(proto *g) {
    proto node = {0}, body = {0};
    const int64_t three = 3, one = 1;
    proto_constant(g, "three", QSIM_INT64, -1, &three, sizeof(three));
    proto_begin(&node, "Loop", "three,,y", "z");
    proto_constant(&body, "one", QSIM_INT64, -1, &one, sizeof(one));
    proto_node(&body, "Equal", "equal", "i", "one", "second");
    choose(&body, "second", "state", "next");
    proto_node(&body, "Identity", NULL, "on", NULL, "still");
    proto_value(&body, 11, "i", QSIM_INT64, NULL, 0);
    proto_value(&body, 11, "on", QSIM_BOOL, NULL, 0);
    proto_value(&body, 11, "state", QSIM_BOOL, pair, 1);
    proto_value(&body, 12, "still", QSIM_BOOL, NULL, 0);
    proto_value(&body, 12, "next", QSIM_BOOL, pair, 1);
    proto_graph(&node, "body", &body);
    proto_take(g, 1, &node);
    proto_free(&node);
    proto_free(&body);
}

static void build(proto *model) {
    proto g = {0};
    choose(&g, "c", "x", "y");
    turn_once(&g);
    proto_text(&g, 2, "g");
    proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
    proto_value(&g, 11, "x", QSIM_BOOL, pair, 1);
    proto_value(&g, 12, "y", QSIM_BOOL, pair, 1);
    proto_value(&g, 12, "z", QSIM_BOOL, pair, 1);
    proto_model(model, &g);
    proto_free(&g);
}

typedef struct counted {
    int all, bools;
} counted;

static int count(void *user, qs_graph *g) {
    counted *c = user;
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        const bool chooses = qs_node_is_onnx(n, "Where");
        c->all += chooses;
        c->bools += chooses && g->values[n->outputs[0]].dtype == QSIM_BOOL;
    }
    return QSIM_OK;
}

static void check_run(const qsim_model *m) {
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    uint8_t x[2] = {0, 1};
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, NULL), QSIM_OK);
    for (uint8_t c = 0; c < 2; c++) {
        qsim_tensor in[] = {{QSIM_BOOL, 0, NULL, &c, 1}, {QSIM_BOOL, 1, pair, x, 2}},
                    out[2] = {{0}};
        CHECK_INT(qsim_run_execute(run, in, 2, out, 2, NULL), QSIM_OK);
        for (int i = 0; i < 2 && out[1].data; i++) {
            CHECK_INT(((const uint8_t *)out[0].data)[i], x[i] ^ c);
            CHECK_INT(((const uint8_t *)out[1].data)[i], !(x[i] ^ c));
        }
    }
    qsim_run_free(run);
    qsim_session_free(s);
}

static void check_level(const qsim_model *m, int32_t level) {
    qsim_model *made = NULL, *read = NULL;
    unsigned char file[4096];
    size_t size = 0;
    counted c = {0, 0};
    qsim_error e = {0};
    CHECK_INT(qsim_model_optimize(m, level, &made, &e), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(made, file, sizeof(file), &size, &e), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(NULL, file, size, NULL, &read, &e), QSIM_OK);
    if (read) {
        CHECK_INT(qs_graphs_visit(read->graph, count, &c), QSIM_OK);
        CHECK_INT(c.all, 2);
        CHECK_INT(c.bools, 0);
        check_run(read);
    }
    qsim_model_free(read);
    qsim_model_free(made);
}

int main(void) {
    proto p = {0};
    qsim_model *m = NULL;
    counted c = {0, 0};
    build(&p);
    CHECK_INT(qsim_model_load_memory(NULL, p.data, p.size, NULL, &m, NULL), QSIM_OK);
    if (m) {
        CHECK_INT(qs_graphs_visit(m->graph, count, &c), QSIM_OK);
        CHECK_INT(c.bools, 2);
        check_run(m);
        check_level(m, QSIM_LEVEL_DISABLE);
        check_level(m, QSIM_LEVEL_ALL);
    }
    qsim_model_free(m);
    proto_free(&p);
    return test_done();
}
