/* SPDX-License-Identifier: MIT */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss against their formulas in plain loops. */
#include "net.h"

#include <math.h>

enum { BATCH = 2, CLASSES = 3, PIXELS = 4, COUNT = BATCH * PIXELS };

/* One of the operators' forms. */
typedef struct form {
    bool entropy, weighted, ignores, wide; /* wide: double and int32 in place of float and int64 */
    const char *reduction;                 /* NULL: left out, which means "mean" */
} form;

static const double weights[CLASSES] = {0.5, 2, 0.25};
static const int64_t target[COUNT] = {0, 2, 1, 1, 2, 0, 1, 2};
static double scores[BATCH * CLASSES * PIXELS];

static double score(int n, int c, int d) {
    return scores[(n * CLASSES + c) * PIXELS + d];
}

/* y: a number, or one for each target; logs: the logarithms of the softmax over the classes. */
static void expect(const form *f, double *y, double *logs) {
    double sum = 0, weight = 0;
    for (int i = 0; i < COUNT; i++) {
        const int n = i / PIXELS, d = i % PIXELS;
        double all = 0;
        for (int c = 0; c < CLASSES; c++)
            all += exp(score(n, c, d));
        for (int c = 0; c < CLASSES; c++)
            logs[(n * CLASSES + c) * PIXELS + d] = score(n, c, d) - log(all);
        const int64_t t = target[i];
        const bool ignored = f->ignores && t == 1;
        const double w = ignored ? 0 : f->weighted ? weights[t] : 1;
        const double p = score(n, (int)t, d) - (f->entropy ? log(all) : 0);
        y[i] = ignored ? 0 : -p * w;
        sum += y[i];
        weight += w;
    }
    if (!f->reduction || strcmp(f->reduction, "none") != 0)
        y[0] = f->reduction && strcmp(f->reduction, "sum") == 0 ? sum : sum / weight;
}

/* With `unknown`, sizes are not in the file. Ignored targets lie outside of the classes. */
static void begin(net *n, qsim_ctx *ctx, const form *f, bool unknown) {
    const int32_t dtype = f->wide ? QSIM_DOUBLE : QSIM_FLOAT;
    const float narrow[CLASSES] = {0.5f, 2, 0.25f};
    net_begin(n, ctx, f->wide ? 12 : 13);
    net_input(n, "x", dtype, NET_DIMS(unknown ? -1 : BATCH, CLASSES, unknown ? -1 : PIXELS));
    net_input(n, "t", f->wide ? QSIM_INT32 : QSIM_INT64, NET_DIMS(BATCH, unknown ? -1 : PIXELS));
    net_const(n, "w", dtype, NET_DIMS(CLASSES),
              f->wide ? (const void *)weights : (const void *)narrow);
    const qs_id node =
        net_node(n, "", f->entropy ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
                 f->weighted ? "x,t,w" : "x,t", f->entropy ? "y,logs" : "y");
    const qs_attr reduction = {
        .name = "reduction",
        .type = QSIM_ATTR_STRING,
        .u.s = {(const uint8_t *)f->reduction, f->reduction ? strlen(f->reduction) : 0}};
    if (f->reduction)
        CHECK_INT(qs_node_set_attr(n->g, node, &reduction), 0);
    if (f->ignores)
        CHECK_INT(qs_node_set_int(n->g, node, "ignore_index", -5), 0);
    net_output(n, "y");
    if (f->entropy)
        net_output(n, "logs");
    NET_OK(n, net_end(n));
}

static double number(const form *f, const void *from, int i) {
    return f->wide ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

static void one(qsim_ctx *ctx, const form *f, bool unknown) {
    const int32_t dtype = f->wide ? QSIM_DOUBLE : QSIM_FLOAT;
    const bool each = f->reduction && strcmp(f->reduction, "none") == 0;
    const double tolerance = f->wide ? 1e-12 : 1e-6;
    float x[BATCH * CLASSES * PIXELS];
    int32_t t32[COUNT];
    int64_t t64[COUNT];
    double y[COUNT], logs[BATCH * CLASSES * PIXELS], want[COUNT], wanted[QS_COUNT(logs)];
    net n;
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)scores[i];
    for (int i = 0; i < COUNT; i++)
        t32[i] = (int32_t)(t64[i] = f->ignores && target[i] == 1 ? -5 : target[i]);
    expect(f, want, wanted);
    begin(&n, ctx, f, unknown);
    const qsim_tensor in[2] = {
        net_tensor(dtype, NET_DIMS(BATCH, CLASSES, PIXELS), f->wide ? (void *)scores : (void *)x),
        f->wide ? net_tensor(QSIM_INT32, NET_DIMS(BATCH, PIXELS), t32)
                : net_tensor(QSIM_INT64, NET_DIMS(BATCH, PIXELS), t64)};
    qsim_tensor out[2] = {net_tensor(dtype, each ? 2 : 0, (const int64_t[]){BATCH, PIXELS}, y),
                          net_tensor(dtype, NET_DIMS(BATCH, CLASSES, PIXELS), logs)};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, in, 2, out, f->entropy ? 2 : 1));
    for (int i = 0; i < (each ? COUNT : 1); i++)
        CHECK_NEAR(number(f, y, i), want[i], tolerance * (1 + fabs(want[i])));
    for (int i = 0; f->entropy && i < (int)QS_COUNT(logs); i++)
        CHECK_NEAR(number(f, logs, i), wanted[i], tolerance * (1 + fabs(wanted[i])));
    net_free(&n);
}

static void test_forms(qsim_ctx *ctx) {
    static const char *const reductions[] = {NULL, "mean", "sum", "none"};
    for (int i = 0; i < 64; i++) {
        const form f = {i & 1, i & 2, i & 4, i & 8, reductions[i >> 4]};
        one(ctx, &f, i % 3 == 0);
    }
}

/* An ignored target's probability may be 0: its loss is 0 and not infinite times 0. */
static void test_impossible(qsim_ctx *ctx) {
    float x[4] = {-INFINITY, -1, -2, -3}, y = 0;
    int64_t t[2] = {0, 1};
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 2));
    net_input(&n, "t", QSIM_INT64, NET_DIMS(2));
    const qs_id node = net_node(&n, "", "NegativeLogLikelihoodLoss", "x,t", "y");
    CHECK_INT(qs_node_set_int(n.g, node, "ignore_index", 0), 0);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    const qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(2, 2), x),
                               net_tensor(QSIM_INT64, NET_DIMS(2), t)};
    qsim_tensor out = net_tensor(QSIM_FLOAT, 0, NULL, &y);
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, in, 2, &out, 1));
    CHECK_NEAR((double)y, 3, 0);
    net_free(&n);
}

/* The graph's memory for nodes may grow between any two nodes that the loss is made of. */
static void test_crowded(qsim_ctx *ctx) {
    float x[4] = {0, 0, 0, 0};
    int64_t t[2] = {0, 1};
    for (int others = 0; others < 70; others++) {
        float y = 0;
        char from[16] = "x", to[16];
        net n;
        net_begin(&n, ctx, 13);
        net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 2));
        net_input(&n, "t", QSIM_INT64, NET_DIMS(2));
        for (int i = 0; i < others; i++) {
            snprintf(to, sizeof(to), "x%d", i);
            net_node(&n, "", "Abs", from, to);
            memcpy(from, to, sizeof(from));
        }
        snprintf(to, sizeof(to), "%.8s,t", from);
        const qs_id node = net_node(&n, "", "SoftmaxCrossEntropyLoss", to, "y");
        CHECK_INT(qs_node_set_int(n.g, node, "ignore_index", 0), 0);
        net_output(&n, "y");
        NET_OK(&n, net_end(&n));
        const qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(2, 2), x),
                                   net_tensor(QSIM_INT64, NET_DIMS(2), t)};
        qsim_tensor out = net_tensor(QSIM_FLOAT, 0, NULL, &y);
        NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, in, 2, &out, 1));
        CHECK_NEAR((double)y, log(2), 1e-6);
        net_free(&n);
    }
}

/* ---- refusals ---- */

static void refused(qsim_ctx *ctx, int32_t rank, const int64_t *t, int64_t classes,
                    const char *reduction, int code, const char *words) {
    static const float w[4];
    const qs_attr a = {.name = "reduction",
                       .type = QSIM_ATTR_STRING,
                       .u.s = {(const uint8_t *)reduction, strlen(reduction)}};
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 4));
    net_input(&n, "t", QSIM_INT64, rank, t);
    net_const(&n, "w", QSIM_FLOAT, 1, &classes, w);
    const qs_id node = net_node(&n, "", "SoftmaxCrossEntropyLoss", "x,t,w", "y");
    CHECK_INT(qs_node_set_attr(n.g, node, &a), 0);
    net_output(&n, "y");
    CHECK_INT(net_end(&n), code);
    if (!strstr(n.error.message, words))
        CHECK_STR(n.error.message, words);
    net_free(&n);
}

int main(void) {
    static const char shape[] = "target or weights do not fit scores (N, C, ...)";
    uint64_t seed = 5;
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    for (size_t i = 0; i < QS_COUNT(scores); i++)
        scores[i] = (double)((int32_t)(test_random(&seed) % 2001) - 1000) / 256;
    test_forms(ctx);
    test_impossible(ctx);
    test_crowded(ctx);
    refused(ctx, NET_DIMS(2, 3), 3, "sum", QSIM_E_SHAPE, shape);
    refused(ctx, NET_DIMS(2, 4, 1), 3, "sum", QSIM_E_SHAPE, shape);
    refused(ctx, NET_DIMS(2, 4), 4, "sum", QSIM_E_SHAPE, shape);
    refused(ctx, NET_DIMS(2, 4), 3, "max", QSIM_E_VALUE,
            "reduction is 'max', none of mean|sum|none");
    qsim_ctx_free(ctx);
    return test_done();
}
