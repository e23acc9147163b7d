/* SPDX-License-Identifier: MIT */
/*
 * A pool and a convolution over three axes, the convolution's window one pixel wide and high,
 * against plain loops: with all sizes known they are pools and a convolution over two axes. What
 * multiplies and adds a number per channel behind it is folded into it.
 */
#include "net.h"

#include <math.h>

enum { N = 2, C = 3, D = 7, H = 5, W = 6, M = 4, AXES = 3 };

/* A window along each axis, and the sizes that it makes. */
typedef struct window {
    int64_t kernel[AXES], stride[AXES], dilation[AXES], before[AXES], after[AXES], out[AXES];
} window;

static const window pool = {{3, 2, 3}, {2, 1, 2}, {1, 2, 1}, {1, 0, 1}, {0, 1, 1}, {3, 4, 3}};
static const float more[M] = {0, 0.25f, -1, 0.5f}; /* added to each channel */
static const window conv = {{3, 1, 1}, {2, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}, {2, 4, 3}};

/* The pixel of tap k of the window of output o along an axis of size n; -1: padding. */
static int64_t pixel(const window *w, int axis, int64_t o, int64_t k, int64_t n) {
    const int64_t at = o * w->stride[axis] + k * w->dilation[axis] - w->before[axis];
    return at < n ? at : -1;
}

typedef enum kind { GREATEST, MEAN, MEAN_WITH_PADS } kind;

/* The taps of a window that do not lie beyond the padding behind the image. */
static int64_t padded(int axis, int64_t o, int64_t n) {
    int64_t count = 0;
    for (int64_t k = 0; k < pool.kernel[axis]; k++)
        count += o * pool.stride[axis] + k * pool.dilation[axis] - pool.before[axis] <
                 n + pool.after[axis];
    return count;
}

static double pooled(kind of, const float *x, int64_t d, int64_t h, int64_t w) {
    double top = -INFINITY, sum = 0, count = 0;
    for (int64_t t = 0; t < 18; t++) {
        const int64_t a = pixel(&pool, 0, d, t / 6, D), b = pixel(&pool, 1, h, t / 3 % 2, H),
                      c = pixel(&pool, 2, w, t % 3, W);
        if (a < 0 || b < 0 || c < 0)
            continue;
        top = fmax(top, (double)x[(a * H + b) * W + c]);
        sum += (double)x[(a * H + b) * W + c];
        count++;
    }
    if (of == MEAN_WITH_PADS)
        count = (double)(padded(0, d, D) * padded(1, h, H) * padded(2, w, W));
    return of == GREATEST ? top : sum / count;
}

static void expect(kind of, const float *x, const float *k, const float *bias, double *y) {
    static double p[C][3][4][3];
    for (size_t n = 0; n < N; n++, x += (size_t)C * D * H * W) {
        for (int64_t i = 0; i < C * 36; i++)
            (&p[0][0][0][0])[i] = pooled(of, x + i / 36 * D * H * W, i / 12 % 3, i / 3 % 4, i % 3);
        for (int64_t i = 0; i < M * 24; i++) {
            double sum = (double)bias[i / 24];
            for (int64_t t = 0; t < C * 3; t++) {
                const int64_t d = pixel(&conv, 0, i / 12 % 2, t % 3, 3);
                if (d >= 0)
                    sum += p[t / 3][d][i / 3 % 4][i % 3] * (double)k[i / 24 * C * 3 + t];
            }
            sum = 2 * sum + (double)more[i / 24];
            *y++ = sum > 0 ? sum : 0;
        }
    }
}

static void set_window(net *n, qs_id node, const window *w, bool kernel) {
    int64_t pads[2 * AXES];
    memcpy(pads, w->before, sizeof(w->before));
    memcpy(pads + AXES, w->after, sizeof(w->after));
    if (kernel)
        net_ints(n, node, "kernel_shape", AXES, w->kernel);
    net_ints(n, node, "strides", AXES, w->stride);
    net_ints(n, node, "dilations", AXES, w->dilation);
    net_ints(n, node, "pads", 2 * AXES, pads);
}

/* How many steps have this kernel. */
static int steps(const qsim_run *r, const char *kernel) {
    int found = 0;
    for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_run_step(r, i, &info), 0);
        found += strcmp(info.kernel, kernel) == 0;
    }
    return found;
}

/* known: the model says the sizes of the input. */
static void check(kind of, bool known) {
    static float x[N * C * D * H * W], y[N * M * 24];
    static double expected[N * M * 24];
    const int64_t dims[] = {N, C, D, H, W};
    uint64_t seed = 3;
    net n;
    net_begin(&n, NULL, 19);
    net_input(&n, "x", QSIM_FLOAT, 5, known ? dims : (const int64_t[]){-1, C, -1, -1, -1});
    net_random(&n, "k", NET_DIMS(M, C, 3, 1, 1), 1, 1);
    net_random(&n, "b", NET_DIMS(M), 2, 1);
    const qs_id node = net_node(&n, "", of ? "AveragePool" : "MaxPool", "x", "p");
    set_window(&n, node, &pool, true);
    if (of == MEAN_WITH_PADS)
        CHECK_INT(qs_node_set_int(n.g, node, "count_include_pad", 1), 0);
    set_window(&n, net_node(&n, "", "Conv", "p,k,b", "c"), &conv, false);
    net_const(&n, "two", QSIM_FLOAT, NET_DIMS(M, 1, 1, 1), (const float[M]){2, 2, 2, 2});
    net_const(&n, "more", QSIM_FLOAT, NET_DIMS(M, 1, 1, 1), more);
    net_node(&n, "", "Mul", "c,two", "m");
    net_node(&n, "", "Add", "m,more", "s");
    net_node(&n, "", "Relu", "s", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(test_random(&seed) % 2001) / 1000.0f - 1.0f;
    expect(of, x, n.g->values[qs_graph_find(n.g, "k")].data->data,
           n.g->values[qs_graph_find(n.g, "b")].data->data, expected);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        qsim_session_options o = {.struct_size = sizeof(o), .level = level};
        qsim_session *s = NULL;
        qsim_run *r = NULL;
        const qsim_tensor in = net_tensor(QSIM_FLOAT, 5, dims, x);
        qsim_tensor out = {.data = y, .bytes = sizeof(y)};
        NET_OK(&n, qs_session_compile(n.model, &o, 0, &s, &n.error));
        NET_OK(&n, qsim_run_create(s, &r, &n.error));
        NET_OK(&n, qsim_run_execute(r, &in, 1, &out, 1, &n.error));
        CHECK_INT(out.rank, 5);
        CHECK_INT(out.bytes, sizeof(y));
        for (size_t i = 0; i < QS_COUNT(y); i++)
            CHECK_NEAR(y[i], expected[i], 1e-6);
        CHECK_INT(steps(r, "plane pool"), !known);
        CHECK_INT(steps(r, "depth columns"), !known);
        CHECK_INT(steps(r, "binary"), level >= QSIM_LEVEL_EXTENDED ? 0 : 3 - level);
        qsim_run_free(r);
        qsim_session_free(s);
    }
    net_free(&n);
}

int main(void) {
    for (kind of = GREATEST; of <= MEAN_WITH_PADS; of++) {
        check(of, true);
        check(of, false);
    }
    return test_done();
}
