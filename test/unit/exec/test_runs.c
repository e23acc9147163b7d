/* SPDX-License-Identifier: MIT */
/* One session, several runs at once; buffers of exactly their size; signed graph inputs. */
#include "net.h"

#include <math.h>
#include <pthread.h>

#define COUNT 4

/* s8 in, convolution, s8 out; and the input itself in float. */
static void make(net *n, qsim_ctx *ctx) {
    int8_t w[4 * 3 * 9];
    uint64_t state = 8;
    for (size_t i = 0; i < sizeof(w); i++)
        w[i] = (int8_t)test_random(&state);
    net_begin(n, ctx, 13);
    net_input(n, "x", QSIM_INT8, NET_DIMS(-1, 3, 7, 5));
    net_float(n, "s", 0.02f);
    net_float(n, "ys", 0.7f);
    net_byte(n, "z", QSIM_INT8, -7);
    net_const(n, "w", QSIM_INT8, NET_DIMS(4, 3, 3, 3), w);
    net_node(n, "", "DequantizeLinear", "x,s,z", "d");
    net_node(n, "", "DequantizeLinear", "w,s", "wd");
    net_node(n, "", "Conv", "d,wd", "c");
    net_node(n, "", "QuantizeLinear", "c,ys,z", "y");
    net_output(n, "y");
    net_output(n, "d");
    NET_OK(n, net_end(n));
}

/* The sum exactly, then the one requantization. */
static int plain(const net *n, const int8_t *x, int o, int r, int c) {
    const int8_t *w = n->g->values[qs_graph_find(n->g, "w")].data->data;
    int acc = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 9; k++)
            acc += (x[(i * 7 + r + k / 3) * 5 + c + k % 3] + 7) * w[(o * 3 + i) * 9 + k];
    float v = (float)acc * ((0.02f * 0.02f) / 0.7f);
    int q = (int)rintf(v) - 7;
    return q < -128 ? -128 : q > 127 ? 127 : q;
}

typedef struct worker {
    const qsim_session *session;
    const net *n;
    int index, wrong;
} worker;

static void *work(void *arg) {
    worker *me = arg;
    qsim_run *r;
    uint64_t state = (uint64_t)me->index + 5;
    me->wrong = qsim_run_create(me->session, &r, NULL) != 0;
    for (int round = 0; round < 60 && !me->wrong; round++) {
        int64_t dims[] = {1 + round % 3, 3, 7, 5};
        size_t samples = (size_t)dims[0], size = samples * 105, outs = samples * 60;
        int8_t *x = malloc(size), *y = malloc(outs);
        float *d = malloc(size * sizeof(float));
        for (size_t i = 0; i < size; i++)
            x[i] = (int8_t)test_random(&state);
        qsim_tensor in = {QSIM_INT8, 4, dims, x, size};
        qsim_tensor out[2] = {{.data = y, .bytes = outs}, {.data = d, .bytes = size * 4}};
        me->wrong += qsim_run_execute(r, &in, 1, out, 2, NULL) != 0;
        for (size_t i = 0; i < outs; i++) {
            int o = (int)(i / 15 % 4), row = (int)(i / 3 % 5), column = (int)(i % 3);
            me->wrong += y[i] != plain(me->n, x + i / 60 * 105, o, row, column);
        }
        for (size_t i = 0; i < size; i++)
            me->wrong += d[i] != (float)(x[i] + 7) * 0.02f;
        free(x);
        free(y);
        free(d);
    }
    qsim_run_free(r);
    return NULL;
}

int main(void) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 2};
    qsim_ctx *ctx;
    qsim_session *s;
    net n;
    pthread_t threads[COUNT];
    worker workers[COUNT];
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    make(&n, ctx);
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    for (int i = 0; i < COUNT; i++) {
        workers[i] = (worker){s, &n, i, 0};
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(workers[i].wrong, 0);
    }
    qsim_session_free(s);
    net_free(&n);
    qsim_ctx_free(ctx);
    return test_done();
}
