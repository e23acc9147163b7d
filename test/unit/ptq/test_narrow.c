/* SPDX-License-Identifier: MIT */
/* 4-bit weights: the layers, numbers and operators. */
#include "base/base.h"
#include "ptq_nets.h"

#include <math.h>

#define K 72 /* two blocks of 32 and a part */
#define N 24

/* Products (K -> N -> K -> N) with Relus and a bias; the second has no neighbours at an end. */
static qsim_model *products(void) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "products", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, (int64_t[]){-1, N}, (const char *[]){"M", NULL});
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, K}, (const char *[]){"M", NULL});
    net_constant(b, "w1", 2, (int64_t[]){N, K}, 0.5f, 1);
    net_constant(b, "w2", 2, (int64_t[]){K, N}, 0.5f, 2);
    net_constant(b, "b2", 1, (int64_t[]){N}, 0.5f, 3);
    net_constant(b, "w3", 2, (int64_t[]){K, N}, 0.5f, 4);
    qsim_builder_node(b, "", "MatMul", "first", "x,w1", "h1");
    qsim_builder_node(b, "", "Relu", "relu1", "h1", "r1");
    qsim_builder_node(b, "", "Gemm", "middle", "r1,w2,b2", "h2");
    qsim_builder_node(b, "", "Relu", "relu2", "h2", "r2");
    qsim_builder_node(b, "", "Gemm", "last", "r2,w3", "y");
    qsim_builder_attr_int(b, "transB", 1);
    return net_finish(b);
}

/* y = x w, alone. */
static qsim_model *product(void) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "product", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, (int64_t[]){-1, K}, (const char *[]){"M", NULL});
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, N}, (const char *[]){"M", NULL});
    net_constant(b, "w", 2, (int64_t[]){K, N}, 0.5f, 9);
    qsim_builder_node(b, "", "MatMul", "product", "x,w", "y");
    return net_finish(b);
}

static void run(const qsim_model *m, const float *x, int64_t rows, int64_t columns, float *y) {
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_tensor out = {0};
    qsim_error e = {0};
    const int64_t dims[2] = {rows, columns};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, (void *)(uintptr_t)x,
                            (size_t)(rows * columns) * sizeof(float)};
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
    CHECK_INT(qsim_run_execute(r, &in, 1, &out, 1, &e), QSIM_OK);
    memcpy(y, out.data, out.bytes);
    qsim_run_free(r);
    qsim_session_free(s);
}

static int nodes_of(const qsim_model *m, const char *op_type) {
    int count = 0;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        count += qsim_model_node(m, i, &n) == QSIM_OK && strcmp(n.op_type, op_type) == 0;
    }
    return count;
}

static float original[K * N];

/* Sum of squared errors of a block of weights rounded to codes of that scale. */
static double rounding_error(int n, int first, int end, float scale, int low, int high) {
    double sum = 0;
    for (int k = first; k < end; k++) {
        const double w = (double)original[k * N + n], s = (double)scale;
        const double e = w - s * fmin(high, fmax(low, rint(w / s)));
        sum += e * e;
    }
    return sum;
}

/* Whether weights are multiples of a step that 4 bits hold. */
static bool is_grid(const float *w, int n, int first, int end, float step, bool zeros) {
    bool fits = true;
    for (int k = first; k < end; k++) {
        const float code = w[k * N + n] / step;
        fits = fits && fabsf(code - rintf(code)) < 1e-3f && code > (zeros ? -15.01f : -8.01f) &&
               code < (zeros ? 15.01f : 7.01f);
    }
    return fits;
}

/* Weights of a column in blocks: few evenly spaced values, nearer than by the greatest scale. */
static void check_column(const float *w, int n, int block, bool zeros) {
    for (int first = 0; first < K; first += block) {
        const int end = first + block < K ? first + block : K;
        float low = 0, high = 0, step = INFINITY;
        double error = 0;
        for (int k = first; k < end; k++) {
            const double e = (double)w[k * N + n] - (double)original[k * N + n];
            error += e * e;
            low = fminf(low, original[k * N + n]);
            high = fmaxf(high, original[k * N + n]);
            for (int j = first; j < k; j++) {
                const float d = fabsf(w[k * N + n] - w[j * N + n]);
                step = d > 1e-5f && d < step ? d : step;
            }
        }
        const float widest = zeros ? (high - low) / 15 : fmaxf(-low, high) / 7;
        const int below = zeros ? (int)rintf(-low / widest) : 8;
        CHECK(error <= rounding_error(n, first, end, widest, -below, 15 - below) * 1.0001);
        CHECK(is_grid(w, n, first, end, step, zeros) ||
              is_grid(w, n, first, end, step / 2, zeros) ||
              is_grid(w, n, first, end, step / 3, zeros));
    }
}

/* The weights that a product of one layer uses, found by multiplying the unit matrix. */
static void check_weights(int32_t mode, int32_t format, int block, bool zeros, const char *op) {
    static float unit[K * K], w[K * N];
    const qsim_rule rule = {sizeof(rule), "*", QSIM_RULE_INT4, 0};
    const qsim_quantize_options o = {.struct_size = sizeof(o),
                                     .rules = &rule,
                                     .rule_count = 1,
                                     .mode = mode,
                                     .format = format,
                                     .weight_type = zeros ? QSIM_UINT4 : QSIM_INT4,
                                     .weight_scheme = zeros ? QSIM_WEIGHT_CHANNEL_ASYMMETRIC
                                                            : QSIM_WEIGHT_CHANNEL_SYMMETRIC,
                                     .weight_block = block};
    qsim_model *m = product(), *q = net_quantize(m, NULL, &o);
    for (int i = 0; i < K * K; i++)
        unit[i] = i / K == i % K;
    run(m, unit, K, K, original);
    run(q, unit, K, K, w);
    CHECK_INT(nodes_of(q, op), 1);
    for (int n = 0; n < N; n++)
        check_column(w, n, block ? block : K, zeros);
    if (strcmp(op, "DequantizeLinear") == 0)
        CHECK_INT(qsim_model_opset(q, ""), 21);
    qsim_model_free(q);
    qsim_model_free(m);
}

/* Both forms of a model give the same bits. */
static void check_forms(int block) {
    static float x[7 * N], y[2][7 * K];
    qsim_model *m = products();
    uint64_t seed = 5;
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(test_random(&seed) % 1000) / 500 - 1;
    for (int i = 0; i < 2; i++) {
        qsim_model *q =
            net_quantize(m, NULL,
                         &(qsim_quantize_options){.struct_size = sizeof(qsim_quantize_options),
                                                  .mode = QSIM_MODE_WEIGHTS,
                                                  .weight_type = QSIM_INT4,
                                                  .weight_block = block,
                                                  .format = i});
        CHECK_INT(nodes_of(q, "MatMulNBits"), i);
        run(q, x, 7, N, y[i]);
        qsim_model_free(q);
    }
    CHECK(memcmp(y[0], y[1], sizeof(y[0])) == 0);
    qsim_model_free(m);
}

/* ---- which layers ---- */

static int32_t keep_type(void *user, const qsim_layer_info *layer) {
    int32_t **to = user;
    *(*to)++ = layer->dtype;
    return 0;
}

static void check_types(const qsim_model *m, const qsim_quantize_options *o, int32_t first,
                        int32_t second, int32_t third) {
    int32_t types[8] = {0}, *at = types;
    qsim_error e = {0};
    CHECK(qsim_quantize_layers(m, NULL, o, keep_type, &at, &e) >= 3);
    CHECK_INT(types[0], first);
    CHECK_INT(types[1], second);
    CHECK_INT(types[2], third);
}

static void check_layers(void) {
    qsim_model *m = products();
    qsim_rule rules[2] = {{sizeof(*rules), "*", QSIM_RULE_INT4, 0},
                          {sizeof(*rules), "middle", QSIM_RULE_INT8, 0}};
    qsim_quantize_options o = {.struct_size = sizeof(o), .weight_type = QSIM_INT4};
    check_types(m, &o, QSIM_INT8, QSIM_INT4, QSIM_INT8);
    o.weight_type = QSIM_UINT4;
    check_types(m, &o, QSIM_UINT8, QSIM_UINT4, QSIM_UINT8);
    o.rules = rules;
    o.rule_count = 2;
    o.weight_type = QSIM_INT8;
    check_types(m, &o, QSIM_INT4, QSIM_INT8, QSIM_INT4);
    qsim_model_free(m);
    m = net_lenet(); /* convolutions have no 4 bits in dynamic mode */
    o.mode = QSIM_MODE_DYNAMIC;
    o.rule_count = 1;
    check_types(m, &o, QSIM_INT8, QSIM_INT8, QSIM_INT4);
    qsim_model_free(m);
}

/* ---- data ---- */

#define SAMPLES 96

/* Correlated inputs, so that errors can compensate each other. */
static void make_data(float *x) {
    uint64_t seed = 11;
    for (int s = 0; s < SAMPLES; s++) {
        float common = 0;
        for (int i = 0; i < N; i++) {
            if (i % 6 == 0)
                common = (float)(test_random(&seed) % 2000) / 1000 - 0.5f;
            x[s * N + i] = common + (float)(test_random(&seed) % 1000) / 4000;
        }
    }
}

static int feed(qsim_calibration *c, float *x, int64_t rows) {
    const int64_t dims[2] = {rows, N};
    const qsim_tensor t = {QSIM_FLOAT, 2, dims, x, (size_t)(rows * N) * sizeof(float)};
    return qsim_calibration_feed(c, &t, 1, NULL);
}

static qsim_calibration *calibrate(const qsim_model *m, const qsim_quantize_options *o, float *x,
                                   int64_t first, int64_t end, int64_t batch) {
    const qsim_calibration_options co = {.struct_size = sizeof(co), .quantize = o};
    qsim_calibration *c = NULL;
    CHECK_INT(qsim_calibration_create(m, &co, &c, NULL), QSIM_OK);
    for (int64_t s = first; s < end; s += batch)
        CHECK_INT(feed(c, x + s * N, end - s < batch ? end - s : batch), QSIM_OK);
    return c;
}

static void hash_of(const qsim_model *m, char hash[65]) {
    CHECK_INT(qsim_model_hash(m, hash), QSIM_OK);
}

static double loss_of(const qsim_model *m, const qsim_model *q, float *x) {
    static float a[SAMPLES * K], b[SAMPLES * K];
    double sum = 0;
    run(m, x, SAMPLES, N, a);
    run(q, x, SAMPLES, N, b);
    for (int i = 0; i < SAMPLES * K; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

/* GPTQ has less error, equally for any batches, also after a refused batch. */
static void check_gptq(int32_t mode, int32_t block) {
    static float x[SAMPLES * N];
    float bad[N];
    char hash[3][65];
    qsim_quantize_options o = {
        .struct_size = sizeof(o), .mode = mode, .weight_type = QSIM_INT4, .weight_block = block};
    qsim_model *m = products();
    make_data(x);
    for (int i = 0; i < N; i++)
        bad[i] = i == 3 ? NAN : 1;
    qsim_calibration *c = calibrate(m, &o, x, 0, SAMPLES, 32);
    qsim_model *q = net_quantize(m, c, &o);
    hash_of(q, hash[0]);
    qsim_calibration *one = calibrate(m, &o, x, 0, 40, 1);
    CHECK_INT(feed(one, bad, 1), QSIM_E_VALUE);
    for (int64_t s = 40; s < SAMPLES; s += 7)
        CHECK_INT(feed(one, x + s * N, SAMPLES - s < 7 ? SAMPLES - s : 7), QSIM_OK);
    qsim_model *again = net_quantize(m, one, &o);
    hash_of(again, hash[1]);
    CHECK_STR(hash[1], hash[0]);
    o.no_gptq = 1;
    qsim_model *plain = net_quantize(m, c, &o);
    CHECK(loss_of(m, q, x) < 0.8 * loss_of(m, plain, x));
    o.no_gptq = 0;
    /* Merged parts: an error as small, if not the same bits. */
    qsim_calibration *half = calibrate(m, &o, x, 0, SAMPLES / 2, 16);
    qsim_calibration *rest = calibrate(m, &o, x, SAMPLES / 2, SAMPLES, 16);
    CHECK_INT(qsim_calibration_merge(half, rest, NULL), QSIM_OK);
    qsim_model *merged = net_quantize(m, half, &o);
    CHECK(loss_of(m, merged, x) < 0.8 * loss_of(m, plain, x));
    qsim_model_free(merged);
    qsim_model_free(plain);
    qsim_model_free(again);
    qsim_model_free(q);
    qsim_calibration_free(rest);
    qsim_calibration_free(half);
    qsim_calibration_free(one);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* The decided recipe can be applied again, with the data. */
static void check_recipe(void) {
    static float x[SAMPLES * N];
    char hash[2][65], text[2000] = "";
    size_t need;
    qsim_recipe *decided = NULL;
    qsim_error e = {0};
    qsim_model *m = products(), *refused = NULL;
    qsim_quantize_options o = {.struct_size = sizeof(o),
                               .mode = QSIM_MODE_WEIGHTS,
                               .weight_type = QSIM_INT4,
                               .weight_block = 32};
    make_data(x);
    qsim_calibration *c = calibrate(m, &o, x, 0, SAMPLES, 32);
    CHECK_INT(qsim_recipe_create(NULL, &decided, NULL), QSIM_OK);
    o.decided = decided;
    qsim_model *q = net_quantize(m, c, &o);
    hash_of(q, hash[0]);
    CHECK_INT(qsim_recipe_text(decided, text, sizeof(text) - 1, &need, NULL), QSIM_OK);
    CHECK(strstr(text, "layer \"middle\" weights int4 block 32 symmetric rounding gptq") != NULL);
    CHECK(strstr(text, "layer \"first\" weights int8 channel symmetric") != NULL);
    const qsim_quantize_options by_recipe = {
        .struct_size = sizeof(o), .mode = QSIM_MODE_WEIGHTS, .recipe = decided};
    qsim_model *again = net_quantize(m, c, &by_recipe);
    hash_of(again, hash[1]);
    CHECK_STR(hash[1], hash[0]);
    CHECK_INT(qsim_quantize(m, NULL, &by_recipe, &refused, &e), QSIM_E_ARGUMENT);
    qsim_model_free(again);
    qsim_model_free(q);
    qsim_recipe_free(decided);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- refused ---- */

static void check_refused(void) {
    static const struct {
        int32_t type, scheme, block, mode, code;
        const char *what;
    } cases[] = {
        {QSIM_INT4, 0, 24, QSIM_MODE_WEIGHTS, QSIM_E_ARGUMENT, "blocks of 24 weights"},
        {QSIM_INT4, 0, 512, QSIM_MODE_WEIGHTS, QSIM_E_ARGUMENT, "blocks of 512 weights"},
        {QSIM_INT4, 0, 32, QSIM_MODE_STATIC, QSIM_E_UNSUPPORTED, "one scale for a channel"},
        {QSIM_INT8, 0, 32, QSIM_MODE_WEIGHTS, QSIM_E_UNSUPPORTED, "blocks of weights go with"},
        {QSIM_INT4, QSIM_WEIGHT_TENSOR_SYMMETRIC, 0, QSIM_MODE_WEIGHTS, QSIM_E_UNSUPPORTED,
         "weights of int4 have a scale for each channel"},
        {QSIM_INT16, 0, 0, QSIM_MODE_WEIGHTS, QSIM_E_UNSUPPORTED, "weights of int16"},
    };
    qsim_model *m = products(), *q = NULL;
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        qsim_error e = {0};
        const qsim_quantize_options o = {.struct_size = sizeof(o),
                                         .mode = cases[i].mode,
                                         .weight_type = cases[i].type,
                                         .weight_scheme = cases[i].scheme,
                                         .weight_block = cases[i].block};
        CHECK_INT(qsim_quantize(m, NULL, &o, &q, &e), cases[i].code);
        CHECK(strstr(e.message, cases[i].what) != NULL);
    }
    qsim_model_free(m);
}

int main(void) {
    check_weights(QSIM_MODE_WEIGHTS, QSIM_FORMAT_QDQ, 0, false, "DequantizeLinear");
    check_weights(QSIM_MODE_WEIGHTS, QSIM_FORMAT_QDQ, 32, false, "DequantizeLinear");
    check_weights(QSIM_MODE_WEIGHTS, QSIM_FORMAT_QDQ, 16, true, "DequantizeLinear");
    check_weights(QSIM_MODE_WEIGHTS, QSIM_FORMAT_QOPERATOR, 32, false, "MatMulNBits");
    check_weights(QSIM_MODE_WEIGHTS, QSIM_FORMAT_QOPERATOR, 64, true, "MatMulNBits");
    for (int32_t block = 16; block <= 256; block *= 2)
        check_forms(block);
    check_layers();
    check_gptq(QSIM_MODE_WEIGHTS, 0);
    check_gptq(QSIM_MODE_WEIGHTS, 32);
    check_gptq(QSIM_MODE_DYNAMIC, 32);
    check_gptq(QSIM_MODE_STATIC, 0);
    check_recipe();
    check_refused();
    return test_done();
}
