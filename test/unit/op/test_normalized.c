/* SPDX-License-Identifier: MIT */
/*
 * BatchNormalization folded into a convolution: from the same input no further from the exact
 * result than the two nodes, and within 1e-5 of their largest value. (Across whole networks the
 * difference grows like any rounding: no bound holds for all.)
 */
#include "net.h"

#include <math.h>

#define SIDE 6

typedef struct layer {
    int64_t in, out, kernel;
    float *w, *x, *stat[4]; /* scale, shift, mean, variance */
    double *exact;
    size_t results;
} layer;

static float *numbers(uint64_t *seed, size_t count, float lo, float hi) {
    float *v = malloc(count * sizeof(*v));
    for (size_t i = 0; i < count; i++)
        v[i] = lo + (hi - lo) * (float)(test_random(seed) >> 8) * (1.0f / 16777216.0f);
    return v;
}

static double product(const layer *l, int64_t out, int64_t y, int64_t x) {
    double sum = 0;
    for (int64_t c = 0; c < l->in; c++)
        for (int64_t i = 0; i < l->kernel; i++)
            for (int64_t k = 0; k < l->kernel; k++)
                sum += (double)l->w[((out * l->in + c) * l->kernel + i) * l->kernel + k] *
                       (double)l->x[(c * SIDE + y + i) * SIDE + x + k];
    return sum;
}

/*
 * Statistics of the results themselves, as training leaves them; their mean may be many times their
 * deviation.
 */
static void normalize(layer *l, double epsilon) {
    const int64_t side = SIDE - l->kernel + 1, plane = side * side;
    for (int64_t o = 0; o < l->out; o++) {
        double mean = 0, variance = 0;
        double *y = l->exact + o * plane;
        for (int64_t i = 0; i < plane; i++) {
            y[i] = product(l, o, i / side, i % side);
            mean += y[i] / (double)plane;
        }
        for (int64_t i = 0; i < plane; i++)
            variance += (y[i] - mean) * (y[i] - mean) / (double)plane;
        l->stat[2][o] = (float)mean;
        l->stat[3][o] = (float)variance;
        const double by = (double)l->stat[0][o] / sqrt((double)l->stat[3][o] + epsilon);
        for (int64_t i = 0; i < plane; i++)
            y[i] = (y[i] - (double)l->stat[2][o]) * by + (double)l->stat[1][o];
    }
}

static layer make(uint64_t *seed, bool leaning) {
    layer l = {.in = 1 + test_random(seed) % 96, .out = 1 + test_random(seed) % 24};
    l.kernel = test_random(seed) % 2 ? 3 : 1;
    const float lean = leaning ? 1.0f : 0.0f; /* all values have one sign */
    const size_t outs = (size_t)l.out, terms = (size_t)(l.in * l.kernel * l.kernel);
    l.w = numbers(seed, outs * terms, -1.0f + lean, 1.0f);
    l.x = numbers(seed, (size_t)l.in * SIDE * SIDE, -1.0f + lean, 1.0f);
    l.stat[0] = numbers(seed, outs, 0.2f, 3.0f);
    l.stat[1] = numbers(seed, outs, -1.0f, 1.0f);
    l.stat[2] = numbers(seed, outs, 0, 0);
    l.stat[3] = numbers(seed, outs, 0, 0);
    l.results = outs * (size_t)((SIDE - l.kernel + 1) * (SIDE - l.kernel + 1));
    l.exact = malloc(l.results * sizeof(*l.exact));
    normalize(&l, (double)1e-3f);
    return l;
}

static void run_at(net *n, const layer *l, int32_t level, float *y) {
    const int64_t dims[] = {1, l->in, SIDE, SIDE};
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, l->x);
    qsim_tensor out = {.data = y, .bytes = l->results * sizeof(*y)};
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    NET_OK(n, qsim_session_create(n->model, &o, &s, &n->error));
    NET_OK(n, qsim_run_create(s, &r, &n->error));
    NET_OK(n, qsim_run_execute(r, &in, 1, &out, 1, &n->error));
    qsim_run_free(r);
    qsim_session_free(s);
}

/* Adds the largest distance from the exact results at the lowest and at the highest level. */
static void check(uint64_t *seed, bool leaning, double sum[2]) {
    static const char *const names[] = {"scale", "shift", "mean", "variance"};
    layer l = make(seed, leaning);
    float *y[2] = {malloc(l.results * sizeof(float)), malloc(l.results * sizeof(float))};
    double largest = 0, off[2] = {0, 0}, difference = 0;
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, l.in, SIDE, SIDE));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(l.out, l.in, l.kernel, l.kernel), l.w);
    for (int i = 0; i < 4; i++)
        net_const(&n, names[i], QSIM_FLOAT, 1, &l.out, l.stat[i]);
    net_node(&n, "", "Conv", "x,w", "c");
    const qs_id bn = net_node(&n, "", "BatchNormalization", "c,scale,shift,mean,variance", "y");
    CHECK_INT(qs_node_set_float(n.g, bn, "epsilon", 1e-3f), 0);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    run_at(&n, &l, QSIM_LEVEL_DISABLE, y[0]);
    run_at(&n, &l, QSIM_LEVEL_ALL, y[1]);
    for (size_t i = 0; i < l.results; i++) {
        largest = fmax(largest, fabs(l.exact[i]));
        difference = fmax(difference, fabs((double)y[0][i] - (double)y[1][i]));
        for (int k = 0; k < 2; k++)
            off[k] = fmax(off[k], fabs((double)y[k][i] - l.exact[i]));
    }
    CHECK(leaning || difference <= 1e-5 * largest);
    for (int k = 0; k < 2; k++)
        sum[k] += off[k] / largest;
    net_free(&n);
    float *const all[] = {l.w, l.x, l.stat[0], l.stat[1], l.stat[2], l.stat[3], y[0], y[1]};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        free(all[i]);
    free(l.exact);
}

int main(void) {
    uint64_t seed = 1;
    for (int leaning = 0; leaning < 2; leaning++) {
        double sum[2] = {0, 0};
        for (int i = 0; i < 200; i++)
            check(&seed, leaning != 0, sum);
        printf("mean distance from exact results: %.2e difference, %.2e folded\n", sum[0] / 200,
               sum[1] / 200);
        CHECK(sum[1] <= 1.25 * sum[0]);
    }
    return test_done();
}
