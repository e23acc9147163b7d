/* SPDX-License-Identifier: MIT */
/* Dropout in training: which elements are dropped, what the others become, and what it depends on.
 */
#include "net.h"

#include <math.h>

enum { COUNT = 20000 };

static float x[COUNT], y[3][COUNT];
static uint8_t kept[3][COUNT];

/* Two nodes without names; `seed` < 0: no attribute. */
static void run(qsim_ctx *ctx, bool training, bool constant, float ratio, int64_t seed,
                int32_t level) {
    uint8_t on = training;
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(COUNT));
    if (constant)
        net_byte(&n, "t", QSIM_BOOL, on);
    else
        net_input(&n, "t", QSIM_BOOL, 0, NULL);
    net_float(&n, "r", ratio);
    for (int i = 0; i < 2; i++) {
        const qs_id id = net_node(&n, "", "Dropout", "x,r,t", i ? "b,mb" : "a,ma");
        n.g->nodes[id].name = "";
        if (seed >= 0)
            qs_node_set_int(n.g, id, "seed", seed);
    }
    net_output(&n, "a");
    net_output(&n, "ma");
    net_output(&n, "b");
    NET_OK(&n, net_end(&n));
    const qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(COUNT), x),
                               net_tensor(QSIM_BOOL, 0, NULL, &on)};
    qsim_tensor out[3] = {net_tensor(QSIM_FLOAT, NET_DIMS(COUNT), y[0]),
                          net_tensor(QSIM_BOOL, NET_DIMS(COUNT), kept[0]),
                          net_tensor(QSIM_FLOAT, NET_DIMS(COUNT), y[1])};
    NET_OK(&n, net_run(&n, level, false, in, constant ? 1 : 2, out, 3));
    net_free(&n);
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 200 - 100) + 0.5f;
    for (int form = 0; form < 4; form++) {
        const bool constant = form & 1, seeded = form & 2;
        int dropped = 0, alike = 0;
        run(ctx, true, constant, 0.25f, seeded ? 7 : -1, QSIM_LEVEL_ALL);
        for (int i = 0; i < COUNT; i++) {
            CHECK(kept[0][i] < 2);
            CHECK_NEAR(y[0][i], kept[0][i] ? (double)x[i] / 0.75 : 0, 1e-4);
            dropped += !kept[0][i];
            alike += (y[0][i] != 0) == (y[1][i] != 0);
        }
        /* Five deviations of 20,000 draws around a quarter; two nodes agree in 10 of 16. */
        CHECK(fabs(dropped - 0.25 * COUNT) < 5 * sqrt(COUNT * 0.25 * 0.75));
        CHECK(seeded ? alike == COUNT : fabs(alike - 0.625 * COUNT) < 5 * sqrt(COUNT * 0.25));
        memcpy(y[2], y[0], sizeof(y[2]));
        memcpy(kept[2], kept[0], sizeof(kept[2]));
        run(ctx, true, constant, 0.25f, seeded ? 7 : -1, QSIM_LEVEL_DISABLE);
        CHECK(memcmp(y[2], y[0], sizeof(y[2])) == 0);
        run(ctx, true, constant, 0.25f, 8, QSIM_LEVEL_ALL);
        CHECK(memcmp(kept[2], kept[0], sizeof(kept[2])) != 0);
        run(ctx, false, constant, 0.25f, -1, QSIM_LEVEL_ALL);
        CHECK(memcmp(x, y[0], sizeof(x)) == 0);
        for (int i = 0; i < COUNT; i++)
            CHECK(kept[0][i] == 1);
    }
    qsim_ctx_free(ctx);
    return test_done();
}
