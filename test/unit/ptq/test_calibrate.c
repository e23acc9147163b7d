/* SPDX-License-Identifier: MIT */
/* Observing a running network: memory, choice of tensors, exact means, samples, cancelling. */
#include "heap.h"
#include "ptq_nets.h"

#include <math.h>
#include <unistd.h>

#include "ptq/calibration.h"

/* ---- memory ---- */

/* Ten 3x3 convolutions of 16 channels with ReLUs on 64 x 64. */
static qsim_model *chain(qsim_ctx *ctx) {
    qsim_builder *b = NULL;
    char x[16] = "x", w[16], c[16], r[16], both[64];
    CHECK_INT(qsim_builder_create(ctx, 13, "chain", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 16, 64, 64}, NULL);
    for (int i = 0; i < 10; i++) {
        snprintf(w, sizeof(w), "w%d", i);
        snprintf(c, sizeof(c), "c%d", i);
        snprintf(r, sizeof(r), "r%d", i);
        net_constant(b, w, 4, (int64_t[]){16, 16, 3, 3}, 0.1f, (uint64_t)i);
        snprintf(both, sizeof(both), "%s,%s", x, w);
        qsim_builder_node(b, "", "Conv", c, both, c);
        qsim_builder_attr_ints(b, "pads", (int64_t[]){1, 1, 1, 1}, 4);
        qsim_builder_node(b, "", "Relu", r, c, r);
        strcpy(x, r);
    }
    qsim_builder_output(b, x, QSIM_FLOAT, 4, (int64_t[]){-1, 16, 64, 64}, NULL);
    return net_finish(b);
}

/* A batch of 8: the most memory that running it takes, and that calibrating on it takes. */
static void test_memory(void) {
    test_heap h = {0};
    qsim_allocator a = test_heap_allocator(&h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    qsim_model *m = chain(ctx);
    const int64_t dims[4] = {8, 16, 64, 64};
    const size_t bytes = 8 * 16 * 64 * 64 * sizeof(float);
    float *x = calloc(1, bytes);
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, bytes}, out = {0};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_calibration *c = NULL;
    uint64_t seed = 1;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    const size_t before = h.bytes;
    h.peak = before;
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, NULL), QSIM_OK);
    CHECK_INT(qsim_run_execute(r, &in, 1, &out, 1, NULL), QSIM_OK);
    const size_t run = h.peak - before;
    qsim_run_free(r);
    qsim_session_free(s);
    h.peak = h.bytes;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &in, 1, NULL), QSIM_OK);
    const size_t calibrate = h.peak - before;
    CHECK_INT(qsim_calibration_count(c), 11); /* x and ten ReLUs */
    if (calibrate > run / 2 * 3)
        fprintf(stderr, "running takes %zu bytes, calibrating %zu\n", run, calibrate);
    CHECK(run > 2 * bytes && calibrate <= run / 2 * 3);
    qsim_calibration_free(c);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    free(x);
    CHECK_INT(h.live, 0);
}

/* ---- sums ---- */

static bool same_bins(const qsim_observer *a, const qsim_observer *b) {
    qs_observer_settle(a);
    qs_observer_settle(b);
    return a->count == b->count && a->exponent == b->exponent && a->min == b->min &&
           a->max == b->max && memcmp(a->bins, b->bins, 2 * QS_SIDE * sizeof(*a->bins)) == 0;
}

#define SIDE 32

/*
 * Sums of two tensors of which no later node reads either, the first, the second, or, of u, the
 * first; of a tensor and itself; and of the graph's input.
 */
static qsim_model *sums(void) {
    static const char *const node[][3] = {{"Relu", "x", "r"},    {"Conv", "r,w0", "c"},
                                          {"Add", "c,r", "s"},   {"Conv", "s,w1", "d"},
                                          {"Add", "s,d", "t"},   {"Add", "t,t", "u"},
                                          {"Conv", "u,w2", "f"}, {"Add", "u,f", "v"},
                                          {"Add", "x,v", "y"},   {"GlobalAveragePool", "u", "p"}};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "sums", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 8, SIDE, SIDE}, NULL);
    net_constant(b, "w0", 4, (int64_t[]){8, 8, 3, 3}, 0.2f, 1);
    net_constant(b, "w1", 4, (int64_t[]){8, 8, 3, 3}, 0.2f, 2);
    net_constant(b, "w2", 4, (int64_t[]){8, 8, 3, 3}, 0.2f, 3);
    for (size_t i = 0; i < sizeof(node) / sizeof(*node); i++) {
        qsim_builder_node(b, "", node[i][0], node[i][2], node[i][1], node[i][2]);
        if (strcmp(node[i][0], "Conv") == 0)
            qsim_builder_attr_ints(b, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    }
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, (int64_t[]){-1, 8, SIDE, SIDE}, NULL);
    qsim_builder_output(b, "p", QSIM_FLOAT, 4, (int64_t[]){-1, 8, 1, 1}, NULL);
    return net_finish(b);
}

/* A sum is written over an operand, after both have been seen: no more than two are held. */
static void test_sums(void) {
    static const char *const name[] = {"r", "c", "s", "d", "t", "u", "f", "v", "y", "p"};
    enum { COUNT = sizeof(name) / sizeof(*name), SAMPLES = 8, N = SAMPLES * 8 * SIDE * SIDE };
    static float x[N];
    uint64_t seed = 4;
    for (int i = 0; i < N; i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    const int64_t dims[4] = {SAMPLES, 8, SIDE, SIDE};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)}, out[COUNT] = {{0}};
    qsim_model *m = sums();
    qsim_session *session = NULL;
    qsim_run *run = NULL;
    qsim_calibration *c = NULL;
    const char *const all = "*";
    const qsim_session_options so = {
        .struct_size = sizeof(so), .outputs = name, .output_count = COUNT};
    const qsim_calibration_options co = {
        .struct_size = sizeof(co), .tensors = &all, .tensor_count = 1};
    CHECK_INT(qsim_session_create(m, &so, &session, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(session, &run, NULL), QSIM_OK);
    CHECK_INT(qsim_run_execute(run, &in, 1, out, COUNT, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_create(m, &co, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &in, 1, NULL), QSIM_OK);
    for (int i = 0; i < COUNT; i++) {
        qsim_observer *o = NULL;
        const qsim_observer *found = qs_calibration_find(c, name[i], NULL);
        CHECK_INT(qsim_observer_create(NULL, NULL, &o, NULL), QSIM_OK);
        CHECK_INT(qsim_observer_feed(o, out[i].data, out[i].bytes / sizeof(float)), QSIM_OK);
        CHECK(found && same_bins(found, o));
        qsim_observer_free(o);
    }
    CHECK(qsim_run_arena_bytes(c->run) < sizeof(x) / 2 * 5);
    qsim_calibration_free(c);
    qsim_run_free(run);
    qsim_session_free(session);
    qsim_model_free(m);
}

/* ---- which tensors ---- */

static qsim_calibration *create(const qsim_model *m, const qsim_calibration_options *o) {
    qsim_calibration *c = NULL;
    qsim_error e = {0};
    if (qsim_calibration_create(m, o, &c, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(c != NULL);
    return c;
}

static void feed(qsim_calibration *c, const float *x, int64_t n) {
    const int64_t dims[4] = {n, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, (float *)(uintptr_t)x, (size_t)n * 576};
    CHECK_INT(qsim_calibration_feed(c, &t, 1, NULL), QSIM_OK);
}

/* Tensors that get a scale by default; all tensors; the histograms of both are equal. */
static void test_tensors(void) {
    static const char *const star[] = {"*"}, *const some[] = {"r?", "y"}, *const none[] = {"nix"};
    static float x[144 * 8];
    qsim_model *m = net_lenet();
    qsim_calibration_options o = {.struct_size = sizeof(o), .tensors = star, .tensor_count = 1};
    qsim_calibration *few = create(m, NULL), *all = create(m, &o), *named, *c = NULL;
    net_batch(x, 8, 3);
    feed(few, x, 8);
    feed(all, x, 8);
    CHECK_INT(qsim_calibration_count(all), 10);
    CHECK_INT(qsim_calibration_count(few), 7); /* without c1, c2 and g1 */
    CHECK(!qs_calibration_find(few, "c1", NULL) && qs_calibration_find(all, "c1", NULL));
    for (int32_t i = 0; i < qsim_calibration_count(few); i++) {
        const qsim_observer *found = qs_calibration_find(all, qsim_calibration_name(few, i), NULL);
        CHECK(found && same_bins(found, qsim_calibration_observer(few, i)));
    }
    o.tensors = some;
    o.tensor_count = 2;
    named = create(m, &o);
    CHECK_INT(qsim_calibration_count(named), 4);
    o.tensors = none;
    o.tensor_count = 1;
    qsim_error e = {0};
    CHECK_INT(qsim_calibration_create(m, &o, &c, &e), QSIM_E_NOT_FOUND);
    CHECK(c == NULL && strstr(e.message, "'nix'"));
    /* A ReLU kept in float: the convolution before it needs its own range. */
    qsim_rule rule = {.struct_size = sizeof(rule), .pattern = "relu1", .action = QSIM_RULE_FLOAT};
    qsim_quantize_options q = {.struct_size = sizeof(q), .rules = &rule, .rule_count = 1};
    o = (qsim_calibration_options){.struct_size = sizeof(o), .quantize = &q};
    c = create(m, &o);
    feed(c, x, 8);
    CHECK(qs_calibration_find(c, "c1", NULL) && !qs_calibration_find(c, "c2", NULL));
    qsim_calibration_free(c);
    q = (qsim_quantize_options){.struct_size = sizeof(q), .mode = QSIM_MODE_DYNAMIC};
    c = create(m, &o);
    CHECK_INT(qsim_calibration_count(c), 4); /* the inputs of the four layers */
    qsim_calibration_free(c);
    qsim_calibration_free(named);
    qsim_calibration_free(few);
    qsim_calibration_free(all);
    qsim_model_free(m);
}

static void test_options(void) {
    static float x[144 * 8];
    qsim_model *m = net_lenet();
    qsim_calibration_options o = {.struct_size = sizeof(o), .bins = 128};
    qsim_calibration *coarse = create(m, &o), *fine = create(m, NULL), *c = NULL;
    net_batch(x, 8, 3);
    feed(coarse, x, 8);
    feed(fine, x, 8);
    const qsim_observer *a = qsim_calibration_observer(coarse, 0);
    const qsim_observer *b = qsim_calibration_observer(fine, 0);
    qs_observer_settle(a);
    qs_observer_settle(b);
    CHECK_INT(a->exponent, b->exponent + 4); /* 2048 = 128 * 2^4 */
    CHECK_INT(a->bins[QS_SIDE] > 0 && a->count == b->count, 1);
    uint64_t sum = 0;
    for (int i = 0; i < 16; i++)
        sum += b->bins[QS_SIDE + i];
    CHECK(a->bins[QS_SIDE] == sum);
    CHECK_INT(qsim_calibration_merge(fine, coarse, NULL), QSIM_E_MISMATCH);
    CHECK_INT(qsim_calibration_samples(fine), 8);
    static const int32_t wrong[] = {-1, 64, 100, 4096};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        o.bins = wrong[i];
        CHECK_INT(qsim_calibration_create(m, &o, &c, NULL), QSIM_E_ARGUMENT);
    }
    o = (qsim_calibration_options){.struct_size = sizeof(o), .batch_axis = 3};
    c = create(m, &o);
    feed(c, x, 2);
    CHECK_INT(qsim_calibration_samples(c), 12);
    qsim_calibration_free(c);
    qsim_calibration_free(coarse);
    qsim_calibration_free(fine);
    qsim_model_free(m);
}

/* ---- progress ---- */

typedef struct counter {
    int calls, stop_at;
    uint64_t total;
} counter;

static int32_t count(void *user, const char *what, uint64_t done, uint64_t total) {
    counter *c = user;
    c->calls++;
    c->total = total;
    CHECK(what[0] && done <= total);
    return c->calls == c->stop_at;
}

/* Cancelled after its third tensor, or with a NaN somewhere, a batch leaves no trace. */
static void test_no_trace(void) {
    static float x[144 * 8];
    char before[65], after[65];
    counter n = {0};
    qsim_error e = {0};
    qsim_model *m = net_lenet();
    qsim_calibration_options o = {.struct_size = sizeof(o), .progress = count, .progress_user = &n};
    qsim_calibration *c = create(m, &o);
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    net_batch(x, 8, 3);
    feed(c, x, 8);
    CHECK(n.calls == qsim_calibration_count(c) && n.total == (uint64_t)n.calls);
    CHECK_INT(qs_calibration_hash(c->ctx, c, NULL, before), QSIM_OK);
    n = (counter){.stop_at = 3};
    net_batch(x, 8, 4);
    CHECK_INT(qsim_calibration_feed(c, &t, 1, &e), QSIM_E_CANCELLED);
    CHECK(strstr(e.message, "cancelled after tensor"));
    x[700] = NAN;
    n.stop_at = 0;
    CHECK_INT(qsim_calibration_feed(c, &t, 1, &e), QSIM_E_VALUE);
    CHECK(strstr(e.message, "'x'") && !e.hint[0]);
    for (int i = 144; i < 288; i++)
        x[i] = i % 5 ? 3.4e38f : -3.4e38f; /* overflows inside the network */
    x[700] = 0;
    CHECK_INT(qsim_calibration_feed(c, &t, 1, &e), QSIM_E_VALUE);
    CHECK(!strstr(e.message, "'x'") && strstr(e.hint, "look at the weights"));
    CHECK_INT(qs_calibration_hash(c->ctx, c, NULL, after), QSIM_OK);
    CHECK_STR(after, before);
    CHECK_INT(qsim_calibration_samples(c), 8);
    net_batch(x, 8, 3); /* and the next batch counts as before */
    feed(c, x, 8);
    qsim_calibration *twice = create(m, NULL);
    feed(twice, x, 8);
    feed(twice, x, 8);
    CHECK_INT(qs_calibration_hash(c->ctx, c, NULL, before), QSIM_OK);
    CHECK_INT(qs_calibration_hash(twice->ctx, twice, NULL, after), QSIM_OK);
    CHECK_STR(after, before);
    qsim_calibration_free(twice);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- means ---- */

/* The mean of the input, by hand; the same bytes for any grouping and merging of samples. */
static void test_means(void) {
    static float x[144 * 8];
    char hex[3][65];
    double sum = 0;
    qsim_model *m = net_lenet();
    qsim_calibration *c[3] = {create(m, NULL), create(m, NULL), create(m, NULL)};
    qsim_calibration *rest = create(m, NULL), *back = NULL;
    net_batch(x, 8, 7);
    for (int i = 0; i < 144 * 8; i++)
        sum += (double)x[i];
    feed(c[0], x, 8);
    for (int i = 0; i < 8; i++)
        feed(c[1], x + 144 * i, 1);
    feed(c[2], x + 144 * 5, 3);
    feed(rest, x, 5);
    CHECK_INT(qsim_calibration_merge(c[2], rest, NULL), QSIM_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(qs_calibration_hash(c[i]->ctx, c[i], NULL, hex[i]), QSIM_OK);
        CHECK_STR(hex[i], hex[0]);
    }
    const qs_means *mean = qs_calibration_means(c[0], "x", NULL);
    CHECK(mean && mean->channels == 1 && mean->axis == 1 && mean->positions == 144 * 8);
    if (mean)
        CHECK(fabs(qs_means_mean(mean, 0) - sum / (144 * 8)) < 1e-12);
    CHECK(qs_calibration_means(c[0], "p1", NULL) && qs_calibration_means(c[0], "f", NULL));
    CHECK(!qs_calibration_means(c[0], "y", NULL));
    const qs_means *inside = qs_calibration_means(c[0], "p1", NULL);
    CHECK(inside && inside->channels == 4 && inside->positions == 25 * 8);
    const char *path = "test_calibrate.qcal";
    CHECK_INT(qsim_calibration_save(c[0], path, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_load(NULL, path, &back, NULL), QSIM_OK);
    remove(path);
    CHECK_INT(qs_calibration_hash(back->ctx, back, NULL, hex[1]), QSIM_OK);
    CHECK_STR(hex[1], hex[0]);
    qsim_calibration_free(back);
    qsim_calibration_free(rest);
    for (int i = 0; i < 3; i++)
        qsim_calibration_free(c[i]);
    qsim_model_free(m);
}

/* Means of the first convolution's channels, against a separate run. */
static void test_channels(void) {
    static float x[144 * 8];
    const char *const name[] = {"p1"};
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)}, out = {0};
    qsim_session_options o = {.struct_size = sizeof(o), .outputs = name, .output_count = 1};
    qsim_model *m = net_lenet();
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_calibration *c = create(m, NULL);
    net_batch(x, 8, 7);
    feed(c, x, 8);
    CHECK_INT(qsim_session_create(m, &o, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, NULL), QSIM_OK);
    CHECK_INT(qsim_run_execute(r, &in, 1, &out, 1, NULL), QSIM_OK);
    const qs_means *mean = qs_calibration_means(c, "p1", NULL);
    const float *y = out.data;
    for (int k = 0; mean && k < 4; k++) {
        double sum = 0;
        for (int i = 0; i < 8; i++)
            for (int p = 0; p < 25; p++)
                sum += (double)y[(i * 4 + k) * 25 + p];
        CHECK(fabs(qs_means_mean(mean, (size_t)k) - sum / 200) < 1e-9);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- samples ---- */

static void test_outlier(void) {
    static float x[144 * 8];
    qsim_outlier o = {.struct_size = sizeof(o)};
    qsim_model *m = net_lenet();
    qsim_calibration *c = create(m, NULL), *other = create(m, NULL), *one = create(m, NULL);
    net_batch(x, 8, 3);
    feed(one, x, 1);
    CHECK_INT(qsim_calibration_outlier(one, 0, &o), QSIM_E_NOT_FOUND);
    feed(c, x, 8);
    CHECK_INT(qsim_calibration_outlier(c, 0, &o), QSIM_OK);
    CHECK(o.ratio >= 1 && o.ratio < 1.1);
    x[144 * 5 + 7] = -20; /* of values from 0 to 1 */
    feed(c, x, 8);
    CHECK_INT(qsim_calibration_outlier(c, 0, &o), QSIM_OK);
    CHECK_INT(o.sample, 13);
    CHECK(o.value == -20 && o.others >= 0 && o.ratio > 20 && o.ratio < 22);
    feed(other, x + 144 * 6, 2);
    CHECK_INT(qsim_calibration_merge(other, c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_outlier(other, 0, &o), QSIM_OK);
    CHECK_INT(o.sample, 15);
    CHECK_INT(qsim_calibration_outlier(c, 99, &o), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_calibration_outlier(c, 0, NULL), QSIM_E_ARGUMENT);
    qsim_calibration_free(one);
    qsim_calibration_free(other);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- moved values ---- */

/* A unit of ShuffleNet: half of the channels go past a convolution, then both are shuffled. */
static qsim_model *shuffle(void) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "shuffle", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, 12, 12}, NULL);
    net_constant(b, "w1", 4, (int64_t[]){4, 1, 3, 3}, 0.5f, 1);
    net_constant(b, "w2", 4, (int64_t[]){2, 2, 1, 1}, 0.9f, 2);
    net_constant(b, "w3", 4, (int64_t[]){3, 4, 3, 3}, 0.4f, 3);
    const int64_t apart[5] = {-1, 2, 2, 10, 10}, together[4] = {-1, 4, 10, 10};
    const qsim_tensor t = {QSIM_INT64, 1, (int64_t[]){5}, (void *)apart, sizeof(apart)};
    const qsim_tensor u = {QSIM_INT64, 1, (int64_t[]){4}, (void *)together, sizeof(together)};
    CHECK_INT(qsim_builder_constant(b, "apart", &t), QSIM_OK);
    CHECK_INT(qsim_builder_constant(b, "together", &u), QSIM_OK);
    qsim_builder_node(b, "", "Conv", "", "x,w1", "c1");
    qsim_builder_node(b, "", "Relu", "", "c1", "r1");
    qsim_builder_node(b, "", "Split", "", "r1", "left,right");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_node(b, "", "Conv", "", "right,w2", "c2");
    qsim_builder_node(b, "", "Concat", "", "c2,left", "both");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_node(b, "", "Reshape", "", "both,apart", "wide");
    qsim_builder_node(b, "", "Transpose", "", "wide", "turned");
    qsim_builder_attr_ints(b, "perm", (int64_t[]){0, 2, 1, 3, 4}, 5);
    qsim_builder_node(b, "", "Reshape", "", "turned,together", "mixed");
    qsim_builder_node(b, "", "Conv", "", "mixed,w3", "y");
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, (int64_t[]){-1, 3, 8, 8}, NULL);
    return net_finish(b);
}

/* The greatest value of the samples, but for `without`; *at gets whose it is. */
static float greatest(const float *x, int samples, size_t each, int without, int *at) {
    float most = -INFINITY;
    for (int s = 0; s < samples; s++)
        for (size_t i = 0; i < each; i++)
            if (s != without && x[(size_t)s * each + i] > most) {
                most = x[(size_t)s * each + i];
                *at = s;
            }
    return most;
}

/*
 * Tensors that are not read have the histograms and outliers of what a session computes for them.
 */
static void test_moved(void) {
    static const char *const names[] = {"c1",   "r1",   "left",   "right", "c2",
                                        "both", "wide", "turned", "mixed", "y"};
    enum { COUNT = sizeof(names) / sizeof(*names) };
    static float x[144 * 8];
    static const char *const star[] = {"*"};
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)}, out[COUNT] = {{0}};
    qsim_model *m = shuffle();
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    counter n = {0};
    qsim_calibration_options o = {.struct_size = sizeof(o),
                                  .tensors = star,
                                  .tensor_count = 1,
                                  .progress = count,
                                  .progress_user = &n};
    qsim_calibration *c = create(m, &o);
    net_batch(x, 8, 3);
    for (int i = 144 * 5; i < 144 * 6; i++)
        x[i] *= 9; /* sample 5 is the outlier */
    for (int i = 144 * 2; i < 144 * 3; i++)
        x[i] *= 4; /* the next */
    feed(c, x, 8);
    CHECK_INT(qsim_calibration_count(c), 11);
    CHECK(n.calls == 8 && n.total == 8); /* not both, wide, turned */
    const qsim_session_options so = {
        .struct_size = sizeof(so), .outputs = names, .output_count = COUNT};
    CHECK_INT(qsim_session_create(m, &so, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, NULL), QSIM_OK);
    CHECK_INT(qsim_run_execute(run, &in, 1, out, COUNT, NULL), QSIM_OK);
    for (int i = 0; i < COUNT; i++) {
        const size_t each = out[i].bytes / sizeof(float) / 8;
        int first = -1, other = -1;
        const float most = greatest(out[i].data, 8, each, -1, &first);
        const float next = greatest(out[i].data, 8, each, first, &other);
        int32_t at;
        qsim_observer *seen = NULL;
        qsim_outlier found = {.struct_size = sizeof(found)};
        CHECK_INT(qsim_observer_create(NULL, NULL, &seen, NULL), QSIM_OK);
        CHECK_INT(qsim_observer_feed(seen, out[i].data, 8 * each), QSIM_OK);
        const qsim_observer *taken = qs_calibration_find(c, names[i], &at);
        CHECK(taken && same_bins(taken, seen));
        CHECK_INT(qsim_calibration_outlier(c, at, &found), QSIM_OK);
        if (found.value > 0) /* else the least values stand out more */
            CHECK(found.sample == first && found.value == most && found.others == next);
        CHECK_INT(found.sample, 5);
        qsim_observer_free(seen);
    }
    qsim_run_free(run);
    qsim_session_free(s);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- branches ---- */

/* y = rate == 16000 ? Relu(Conv(x, w0)) : Relu(Conv(x, w1)), as an If is read. */
static qsim_model *branches(void) {
    qsim_builder *b = NULL;
    const int64_t rate = 16000, dims[4] = {-1, 4, 8, 8};
    CHECK_INT(qsim_builder_create(NULL, 13, "branches", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, dims, NULL);
    qsim_builder_input(b, "rate", QSIM_INT64, 0, NULL, NULL);
    qsim_builder_constant(b, "wide",
                          &(qsim_tensor){QSIM_INT64, 0, NULL, (void *)(uintptr_t)&rate, 8});
    net_constant(b, "w0", 4, (int64_t[]){4, 4, 1, 1}, 0.4f, 1);
    net_constant(b, "w1", 4, (int64_t[]){4, 4, 1, 1}, 0.4f, 2);
    qsim_builder_node(b, "", "Equal", "is", "rate,wide", "is");
    for (int i = 0; i < 2; i++) {
        static const char *const name[2][3] = {{"x,w0", "c0", "a0"}, {"x,w1", "c1", "a1"}};
        qsim_builder_node(b, "", "Conv", name[i][1], name[i][0], name[i][1]);
        qsim_builder_node(b, "", "Relu", name[i][2], name[i][1], name[i][2]);
    }
    qsim_builder_node(b, "", "Where", "y", "is,a0,a1", "y");
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, dims, NULL);
    return net_finish(b);
}

static void feed_rate(qsim_calibration *c, int64_t rate, uint64_t seed) {
    float x[2 * 4 * 8 * 8];
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    const qsim_tensor in[2] = {{QSIM_FLOAT, 4, (int64_t[]){2, 4, 8, 8}, x, sizeof(x)},
                               {QSIM_INT64, 0, NULL, &rate, sizeof(rate)}};
    CHECK_INT(qsim_calibration_feed(c, in, 2, NULL), QSIM_OK);
}

static uint64_t seen(const qsim_calibration *c, const char *name) {
    for (int32_t i = 0; i < qsim_calibration_count(c); i++)
        if (strcmp(qsim_calibration_name(c, i), name) == 0)
            return qsim_observer_count(qsim_calibration_observer(c, i));
    return UINT64_MAX;
}

static int32_t count_integers(void *user, const qsim_layer_info *layer) {
    *(int32_t *)user += layer->scheme >= 0;
    return 0;
}

/* A branch is observed where samples take it; without any its layers stay in float. */
static void test_branches(void) {
    qsim_model *m = branches(), *q = NULL;
    qsim_calibration *one = create(m, NULL), *two = create(m, NULL), *both = create(m, NULL);
    int32_t integers = 0;
    char a[65], b[65];
    feed_rate(one, 16000, 1);
    CHECK_INT(seen(one, "a0"), 512);
    CHECK_INT(seen(one, "a1"), 0);
    CHECK_INT(qsim_quantize_layers(m, one, NULL, count_integers, &integers, NULL), 2);
    CHECK_INT(integers, 1);
    CHECK_INT(qsim_quantize(m, one, NULL, &q, NULL), QSIM_OK);
    qsim_model_free(q);
    feed_rate(two, 8000, 2);
    CHECK(seen(two, "a0") == 0 && seen(two, "a1") == 512);
    feed_rate(both, 8000, 2);
    feed_rate(both, 16000, 1);
    integers = 0;
    CHECK_INT(qsim_quantize_layers(m, both, NULL, count_integers, &integers, NULL), 2);
    CHECK_INT(integers, 2);
    CHECK_INT(qsim_calibration_merge(one, two, NULL), QSIM_OK);
    CHECK_INT(qs_calibration_hash(one->ctx, one, NULL, a), QSIM_OK);
    CHECK_INT(qs_calibration_hash(both->ctx, both, NULL, b), QSIM_OK);
    CHECK_STR(a, b);
    qsim_calibration_free(one);
    qsim_calibration_free(two);
    qsim_calibration_free(both);
    qsim_model_free(m);
}

int main(void) {
    test_branches();
    test_memory();
    test_sums();
    test_moved();
    test_tensors();
    test_options();
    test_no_trace();
    test_means();
    test_channels();
    test_outlier();
    return test_done();
}
