/* SPDX-License-Identifier: MIT */
/* Factors moved between layers, and from a normalization to the layers that read it. */
#include <math.h>

#include "graph/model.h"
#include "ptq_nets.h"

static qsim_recipe *make_recipe(const char *text) {
    qsim_recipe *r = NULL;
    qsim_error e = {0};
    if (text ? qsim_recipe_load_memory(NULL, text, strlen(text), NULL, &r, &e)
             : qsim_recipe_create(NULL, &r, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(r != NULL);
    return r;
}

static qsim_recipe_entry entry(const qsim_recipe *r, int32_t kind, const char *name) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    CHECK_INT(qsim_recipe_get(r, qsim_recipe_find(r, kind, name), &e), QSIM_OK);
    return e;
}

/* ---- convolutions ---- */

static float crooked[4] = {1, 256, 1.0f / 64, 16};

/* Random weights whose `axis` (0: outputs, 1: inputs) has these scales, or their inverses. */
static void crook(qsim_builder *b, const char *name, const int64_t *dims, int rank, int axis,
                  int inverse, uint64_t seed) {
    static float w[4096];
    size_t n = 1, inner = 1;
    seed = seed * 7919 + 12345;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    for (int i = axis + 1; i < rank; i++)
        inner *= (size_t)dims[i];
    for (size_t i = 0; i < n; i++) {
        const float k = crooked[i / inner % (size_t)dims[axis] % 4];
        w[i] = ((float)test_random(&seed) / 2147483648.0f - 1) * (inverse ? 1 / k : k);
    }
    const qsim_tensor t = {QSIM_FLOAT, rank, dims, w, n * sizeof(float)};
    CHECK_INT(qsim_builder_constant(b, name, &t), QSIM_OK);
}

/*
 * conv(1->4) relu|clip pool conv(4->8, 2 groups) relu mean flatten fc(8->5), where the channels of
 * the first differ by 2^14 and the second has the inverse factors.
 */
static qsim_model *make_net(float most) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    const int64_t two[2] = {2, 2};
    const float zero = 0;
    const qsim_tensor low = {QSIM_FLOAT, 0, NULL, (void *)(uintptr_t)&zero, sizeof(zero)};
    const qsim_tensor high = {QSIM_FLOAT, 0, NULL, &most, sizeof(most)};
    CHECK_INT(qsim_builder_create(NULL, 13, "crooked", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, 12, 12}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, 5}, symbol);
    crook(b, "w1", (int64_t[]){4, 1, 3, 3}, 4, 0, 0, 1);
    crook(b, "b1", (int64_t[]){4}, 1, 0, 0, 2);
    /* Two groups of two inputs: input channel c of the network is channel c % 2 of a group. */
    static float w2[8 * 2 * 9];
    uint64_t seed = 77;
    for (int i = 0; i < 8 * 2 * 9; i++)
        w2[i] = ((float)test_random(&seed) / 2147483648.0f - 1) /
                crooked[i / (4 * 2 * 9) * 2 + i / 9 % 2];
    const qsim_tensor second = {QSIM_FLOAT, 4, (int64_t[]){8, 2, 3, 3}, w2, sizeof(w2)};
    CHECK_INT(qsim_builder_constant(b, "w2", &second), QSIM_OK);
    net_constant(b, "b2", 1, (int64_t[]){8}, 0.3f, 4);
    net_constant(b, "w3", 2, (int64_t[]){8, 5}, 0.5f, 5);
    CHECK_INT(qsim_builder_constant(b, "low", &low), QSIM_OK);
    CHECK_INT(qsim_builder_constant(b, "high", &high), QSIM_OK);
    qsim_builder_node(b, "", "Conv", "conv1", "x,w1,b1", "c1");
    if (most > 0)
        qsim_builder_node(b, "", "Clip", "relu1", "c1,low,high", "r1");
    else
        qsim_builder_node(b, "", "Relu", "relu1", "c1", "r1");
    qsim_builder_node(b, "", "MaxPool", "pool1", "r1", "p1");
    qsim_builder_attr_ints(b, "kernel_shape", two, 2);
    qsim_builder_attr_ints(b, "strides", two, 2);
    qsim_builder_node(b, "", "Conv", "conv2", "p1,w2,b2", "c2");
    qsim_builder_attr_int(b, "group", 2);
    qsim_builder_node(b, "", "Relu", "relu2", "c2", "r2");
    qsim_builder_node(b, "", "GlobalAveragePool", "mean", "r2", "g");
    qsim_builder_node(b, "", "Flatten", "flat", "g", "f");
    qsim_builder_node(b, "", "MatMul", "fc", "f,w3", "y");
    return net_finish(b);
}

/* Greatest difference of two models' outputs for 8 samples, over the greatest output. */
static double distance(const qsim_model *m, const qsim_model *q) {
    static float x[144 * 8];
    float y[40], z[40], worst = 0, most = 0;
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    net_batch(x, 8, 7);
    CHECK_INT(net_run(m, &t, y, 40), 40);
    CHECK_INT(net_run(q, &t, z, 40), 40);
    for (int i = 0; i < 40; i++) {
        worst = fmaxf(worst, fabsf(y[i] - z[i]));
        most = fmaxf(most, fabsf(y[i]));
    }
    return (double)worst / (double)most;
}

/* All layers in float: only the factors act. Powers of two change no bit of the outputs. */
static void test_exact(void) {
    static const char text[] = "qsim-recipe 1\n"
                               "equalize \"c1\" 4 1 0.00390625 64 0.0625\n"
                               "equalize \"c2\" 8 2 4 8 16 0.5 0.25 1 1\n"
                               "layer \"conv1\" float\nlayer \"conv2\" float\nlayer \"fc\" float\n";
    qsim_model *m = make_net(0), *q = NULL;
    qsim_recipe *r = make_recipe(text);
    const qsim_quantize_options o = {
        .struct_size = sizeof(o), .recipe = r, .no_bias_correction = 1, .mode = QSIM_MODE_WEIGHTS};
    qsim_node_info node;
    CHECK_INT(qsim_quantize(m, NULL, &o, &q, NULL), QSIM_OK);
    CHECK(distance(m, q) == 0);
    /* The factors are applied: the first layer's weights and bias are multiplied. */
    const float *was = qs_graph_aligned(m->graph, qs_graph_find(m->graph, "w1"));
    const float *w = qs_graph_aligned(q->graph, qs_graph_find(q->graph, "w1"));
    const float by[4] = {1, 0.00390625f, 64, 0.0625f};
    for (int i = 0; w && was && i < 36; i++)
        CHECK(w[i] == was[i] * by[i / 9]);
    /* A tensor with factors differs from the float network's, so it has another name. */
    CHECK(net_find(q, "Conv", "conv1", &node) && strcmp(node.outputs[0], "c1_equalized") == 0);
    CHECK(net_find(q, "Conv", "conv2", &node) && strcmp(node.outputs[0], "c2_equalized") == 0);
    qsim_model_free(q);
    qsim_recipe_free(r);
    qsim_model_free(m);
}

typedef struct seen {
    int attempts, kept;
    double loss[8];
} seen;

static int32_t on_attempt(void *user, const qsim_attempt *a) {
    seen *s = user;
    if (s->attempts < 8)
        s->loss[s->attempts] = a->judgement->loss;
    s->attempts++;
    s->kept += a->kept;
    return 0;
}

/* Runs a search by the method on 8 samples; returns the recipe. */
static qsim_recipe *search(const qsim_model *m, const qsim_calibration *c,
                           const qsim_quantize_options *by, const char *methods, qsim_tensor *in,
                           seen *s) {
    qsim_recipe *found = make_recipe(NULL);
    qsim_error e = {0};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = methods,
                                   .inputs = in,
                                   .input_count = 1,
                                   .attempt = on_attempt,
                                   .attempt_user = s};
    *s = (seen){.attempts = 0};
    CHECK_INT(qsim_search(m, c, by, &o, found, NULL, &e), QSIM_OK);
    if (e.code)
        fprintf(stderr, "%s\n", e.message);
    return found;
}

/* One scale for all weights: equalizing divides the loss by 100; the recipe has the factors. */
static void test_per_tensor(void) {
    static float x[144 * 8];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *m = make_net(0), *plain = NULL, *q = NULL, *again = NULL;
    qsim_calibration *c = net_calibrate(m, 4);
    qsim_recipe *decided = make_recipe(NULL);
    qsim_quantize_options by = {.struct_size = sizeof(by),
                                .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC};
    seen s;
    net_batch(x, 8, 3);
    qsim_recipe *found = search(m, c, &by, "equalize", &in, &s);
    CHECK_INT(s.attempts, 2);
    CHECK_INT(s.kept, 2);
    CHECK(s.loss[1] < s.loss[0] / 100);
    const qsim_recipe_entry e = entry(found, QSIM_RECIPE_EQUALIZE, "c1");
    CHECK_INT(e.shift_count, 4);
    for (int i = 0; e.shift && i < 4; i++) { /* within 2 of the inverse, and 2^n */
        int n;
        const float k = e.shift[i] * crooked[i] / (e.shift[0] * crooked[0]);
        CHECK(frexpf(e.shift[i], &n) == 0.5f && k >= 0.25f && k <= 4);
    }
    by.recipe = found;
    by.decided = decided;
    CHECK_INT(qsim_quantize(m, c, &by, &q, NULL), QSIM_OK);
    by.recipe = NULL;
    by.decided = NULL;
    CHECK_INT(qsim_quantize(m, c, &by, &plain, NULL), QSIM_OK);
    CHECK(distance(m, q) < distance(m, plain) / 5);
    by.recipe = decided;
    CHECK_INT(qsim_quantize(m, c, &by, &again, NULL), QSIM_OK);
    CHECK(net_same_bytes(q, again));
    /* refine continues from the recipe. */
    qsim_recipe *both = search(m, c, &by, "refine", &in, &s);
    CHECK(s.attempts > 1);
    qsim_recipe_free(both);
    qsim_recipe_free(found);
    qsim_recipe_free(decided);
    qsim_model_free(q);
    qsim_model_free(again);
    qsim_model_free(plain);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* A channel that reaches the bound of a Clip keeps its scale; none is brought above it. */
static void test_clip(void) {
    static float x[144 * 8];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    crooked[1] = 8;
    crooked[3] = 1;
    qsim_model *m = make_net(6);
    qsim_calibration *c = net_calibrate(m, 4);
    const qsim_quantize_options by = {.struct_size = sizeof(by),
                                      .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC};
    seen s;
    net_batch(x, 8, 100); /* samples of the calibration */
    qsim_recipe *found = search(m, c, &by, "equalize", &in, &s);
    CHECK(s.kept == 2);
    const qsim_recipe_entry e = entry(found, QSIM_RECIPE_EQUALIZE, "c1");
    CHECK(e.shift && e.shift[1] == 1 && e.shift[2] > 1);
    /* The same network except for the numbers' scale: no further values are cut off. */
    char text[512];
    size_t n = (size_t)snprintf(text, sizeof(text), "qsim-recipe 1\nequalize \"c1\" 4");
    for (int i = 0; e.shift && i < 4; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, " %a", (double)e.shift[i]);
    snprintf(text + n, sizeof(text) - n,
             "\nlayer \"conv1\" float\nlayer \"conv2\" float\nlayer \"fc\" float\n");
    qsim_recipe *r = make_recipe(text);
    qsim_model *q = NULL;
    const qsim_quantize_options o = {
        .struct_size = sizeof(o), .recipe = r, .no_bias_correction = 1, .mode = QSIM_MODE_WEIGHTS};
    float y[40], z[40];
    CHECK_INT(qsim_quantize(m, NULL, &o, &q, NULL), QSIM_OK);
    CHECK(net_run(m, &in, y, 40) == 40 && net_run(q, &in, z, 40) == 40);
    CHECK(memcmp(y, z, sizeof(y)) == 0);
    qsim_model_free(q);
    qsim_recipe_free(r);
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- normalizations ---- */

/* y = LayerNormalization(x) times three matrices, added up; two channels are 200 times the rest. */
static qsim_model *make_attention(int residual) {
    qsim_builder *b = NULL;
    static float gamma[16];
    for (int i = 0; i < 16; i++)
        gamma[i] = i == 3 || i == 11 ? 200 : 1;
    const int64_t dims[3] = {4, 8, 16};
    const qsim_tensor g = {QSIM_FLOAT, 1, (int64_t[]){16}, gamma, sizeof(gamma)};
    CHECK_INT(qsim_builder_create(NULL, 17, "attention", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 3, dims, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 3, dims, NULL);
    CHECK_INT(qsim_builder_constant(b, "gamma", &g), QSIM_OK);
    net_constant(b, "beta", 1, (int64_t[]){16}, 0.3f, 2);
    static float w[16 * 16];
    for (int k = 0; k < 3; k++) {
        uint64_t seed = 31 + (uint64_t)k;
        const char *name[3] = {"wq", "wk", "wv"};
        for (int i = 0; i < 256; i++)
            w[i] = ((float)test_random(&seed) / 2147483648.0f - 1) / gamma[i / 16];
        const qsim_tensor t = {QSIM_FLOAT, 2, (int64_t[]){16, 16}, w, sizeof(w)};
        CHECK_INT(qsim_builder_constant(b, name[k], &t), QSIM_OK);
    }
    qsim_builder_node(b, "", "LayerNormalization", "norm", "x,gamma,beta", "n");
    qsim_builder_node(b, "", "MatMul", "q", "n,wq", "nq");
    qsim_builder_node(b, "", "MatMul", "k", "n,wk", "nk");
    qsim_builder_node(b, "", "MatMul", "v", "n,wv", "nv");
    qsim_builder_node(b, "", "Add", "qk", "nq,nk", "s");
    qsim_builder_node(b, "", "Add", "qkv", "s,nv", residual ? "t" : "y");
    if (residual)
        qsim_builder_node(b, "", "Add", "residual", "t,n", "y");
    return net_finish(b);
}

/* One activation scale for all channels: smoothing restores the small channels' resolution. */
static void test_smooth(void) {
    static float x[512], y[512], z[512];
    const int64_t dims[3] = {4, 8, 16};
    qsim_tensor in = {QSIM_FLOAT, 3, dims, x, sizeof(x)};
    uint64_t seed = 5;
    for (int i = 0; i < 512; i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    for (int residual = 0; residual < 2; residual++) {
        qsim_model *m = make_attention(residual), *q = NULL;
        qsim_calibration *c = NULL;
        seen s;
        qsim_quantize_options by = {.struct_size = sizeof(by)};
        CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
        CHECK_INT(qsim_calibration_feed(c, &in, 1, NULL), QSIM_OK);
        qsim_recipe *found = search(m, c, &by, "smooth", &in, &s);
        if (residual) { /* the sum cannot take factors */
            CHECK_INT(s.attempts, 1);
        } else {
            CHECK_INT(s.attempts, 4);
            CHECK(s.kept >= 2 && s.loss[1] < s.loss[0] / 100);
            const qsim_recipe_entry e = entry(found, QSIM_RECIPE_EQUALIZE, "n");
            CHECK(e.shift_count == 16 && e.shift && e.shift[3] < e.shift[4] / 16);
            by.recipe = found;
            CHECK_INT(qsim_quantize(m, c, &by, &q, NULL), QSIM_OK);
            double signal = 0, noise = 0;
            CHECK(net_run(m, &in, y, 512) == 512 && net_run(q, &in, z, 512) == 512);
            for (int i = 0; i < 512; i++) {
                signal += (double)y[i] * (double)y[i];
                noise += ((double)y[i] - (double)z[i]) * ((double)y[i] - (double)z[i]);
            }
            CHECK(noise < signal * 1e-3);
            qsim_model_free(q);
        }
        qsim_recipe_free(found);
        qsim_calibration_free(c);
        qsim_model_free(m);
    }
}

/* ---- refusals ---- */

static void test_refused(void) {
    static const struct {
        const char *line, *message;
        int code;
    } cases[] = {
        {"equalize \"nobody\" 4 1 1 1 1", "the recipe's tensor 'nobody' does not exist",
         QSIM_E_NOT_FOUND},
        {"equalize \"c1\" 3 1 1 1", "equalizes 'c1' by 3 factors, not 4", QSIM_E_MISMATCH},
        {"equalize \"x\" 1 1", "equalizes 'x': factors can be moved only from a layer",
         QSIM_E_UNSUPPORTED},
        {"equalize \"y\" 5 1 1 1 1 1", "equalizes 'y': factors can be moved only from a layer",
         QSIM_E_UNSUPPORTED},
        {"equalize \"r1\" 4 1 1 1 1", "equalizes 'r1': factors can be moved only from a layer",
         QSIM_E_UNSUPPORTED},
    };
    qsim_model *m = make_net(0);
    qsim_calibration *c = net_calibrate(m, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[128];
        qsim_model *q = NULL;
        qsim_error e = {0};
        snprintf(text, sizeof(text), "qsim-recipe 1\n%s\n", cases[i].line);
        qsim_recipe *r = make_recipe(text);
        const qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r};
        CHECK_INT(qsim_quantize(m, c, &o, &q, &e), cases[i].code);
        CHECK(!q && strstr(e.message, cases[i].message));
        if (!strstr(e.message, cases[i].message))
            fprintf(stderr, "%s\n", e.message);
        qsim_recipe_free(r);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* An older file has no extremes: refused, with advice; so is a file merged with it. */
static void test_old_calibration(void) {
    static char text[1 << 20];
    const char *path = "test_equalize.qcal";
    qsim_model *m = make_net(0), *q = NULL;
    qsim_calibration *c = net_calibrate(m, 1), *old = NULL;
    qsim_recipe *r = make_recipe("qsim-recipe 1\nequalize \"c1\" 4 1 2 4 8\n");
    const qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r};
    qsim_error e = {0};
    size_t size = 0;
    CHECK_INT(qsim_calibration_save(c, path, 1, NULL), QSIM_OK);
    FILE *f = fopen(path, "rb");
    while (f && size + 4096 < sizeof(text) && fgets(text + size, 4096, f))
        if (strncmp(text + size, "extremes ", 9) != 0)
            size += strlen(text + size);
    if (f)
        fclose(f);
    CHECK_INT(qsim_calibration_load(NULL, path, &old, NULL), QSIM_OK);
    CHECK_INT(qsim_quantize(m, old, &o, &q, NULL), QSIM_OK);
    qsim_model_free(q);
    qsim_calibration_free(old);
    remove(path);
    CHECK_INT(qsim_calibration_load_memory(NULL, text, size, NULL, &old, NULL), QSIM_OK);
    for (int merged = 0; merged < 2; merged++) {
        q = NULL;
        CHECK_INT(qsim_quantize(m, merged ? c : old, &o, &q, &e), QSIM_E_ARGUMENT);
        CHECK(!q && strstr(e.message, "'r1': the calibration has no extremes of its channels"));
        CHECK(strstr(e.hint, "calibrate again"));
        CHECK_INT(qsim_calibration_merge(c, old, NULL), QSIM_OK);
    }
    qsim_recipe_free(r);
    qsim_calibration_free(old);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    test_exact();
    test_per_tensor();
    test_clip();
    test_smooth();
    test_refused();
    test_old_calibration();
    return test_done();
}
