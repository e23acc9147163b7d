/* SPDX-License-Identifier: MIT */
/* Networks of quantize/dequantize pairs, compared with their literal evaluation. */
#ifndef QDQ_NETS_H
#define QDQ_NETS_H

#include "net.h"

#define QDQ_MAX 14000

static void begin(net *n, int32_t rank, const int64_t *dims) {
    net_begin(n, NULL, 13);
    net_input(n, "x", QSIM_FLOAT, rank, dims);
}

/* The graph with its quantize/dequantize pairs replaced by integers. */
static qs_graph *integers(net *n) {
    qs_graph *clone, *kept = n->g;
    qs_pass p = net_pass(n);
    CHECK_INT(qs_graph_clone(n->g, n->model->ctx, &clone), 0);
    p.graph = n->g = clone;
    NET_OK(n, qs_pass_u8(&p));
    NET_OK(n, qs_pass_qdq(&p));
    n->g = kept;
    return clone;
}

static int operators(net *n, const char *op) {
    qs_graph *clone = integers(n), *kept = n->g;
    n->g = clone;
    int count = op ? net_count(n, op) : (int)clone->order_count;
    n->g = kept;
    qs_graph_free(clone);
    return count;
}

/*
 * Runs at every level as integers and literally; outputs are of type `dtype`, `step` is how far
 * they may differ, `rare` in how many of 1000 elements. Integer results are the same at all levels.
 */
static void judge(net *n, int32_t rank, const int64_t *dims, int32_t dtype, int step, int rare) {
    float x[QDQ_MAX];
    uint8_t want[QDQ_MAX], got[QDQ_MAX], first[QDQ_MAX];
    uint64_t state = 99;
    for (int i = 0; i < QDQ_MAX; i++)
        x[i] = ((float)(test_random(&state) % 4001) - 2000) / 600;
    qsim_tensor in = net_tensor(QSIM_FLOAT, rank, dims, x);
    qsim_tensor out = {.data = want, .bytes = sizeof(want)};
    NET_OK(n, net_run(n, 0, true, &in, 1, &out, 1));
    size_t count = out.bytes;
    CHECK_INT(out.dtype, dtype);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        int worst = 0, differ = 0;
        memset(got, 0xcc, sizeof(got));
        out = (qsim_tensor){.data = got, .bytes = sizeof(got)};
        NET_OK(n, net_run(n, level, false, &in, 1, &out, 1));
        CHECK_INT(out.bytes, count);
        for (size_t i = 0; i < count; i++) {
            int a = dtype == QSIM_INT8 ? (int8_t)got[i] : got[i];
            int b = dtype == QSIM_INT8 ? (int8_t)want[i] : want[i];
            worst = abs(a - b) > worst ? abs(a - b) : worst;
            differ += a != b;
        }
        CHECK(worst <= step);
        CHECK(differ * 1000 <= rare * (int)count + 1000);
        if (level == QSIM_LEVEL_DISABLE)
            memcpy(first, got, count);
        CHECK(memcmp(first, got, count) == 0);
    }
}

static void finish(net *n, const char *output) {
    net_output(n, output);
    NET_OK(n, net_end(n));
}

#endif
