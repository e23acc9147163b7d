/* SPDX-License-Identifier: MIT */
/* The verdict on the input's values. Expected values are worked out by hand. */
#include <stdbool.h>

#include "verdicts.h"

/* x * 1, then BatchNormalization of mean 0 and variance 1 on two channels. */
static qsim_model *make_norm(void) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    const int64_t dims[3] = {-1, 2, 4}, two = 2, one_dim = 1;
    float ones[2] = {1, 1}, zeros[2] = {0, 0};
    qsim_tensor one = {QSIM_FLOAT, 1, &two, ones, sizeof(ones)}, zero = one;
    qsim_tensor single = {QSIM_FLOAT, 1, &one_dim, ones, sizeof(*ones)};
    zero.data = zeros;
    CHECK_INT(qsim_builder_create(NULL, 13, "norm", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 3, dims, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 3, dims, symbol);
    CHECK_INT(qsim_builder_constant(b, "f", &single), QSIM_OK);
    CHECK_INT(qsim_builder_constant(b, "scale", &one), QSIM_OK);
    CHECK_INT(qsim_builder_constant(b, "bias", &zero), QSIM_OK);
    CHECK_INT(qsim_builder_constant(b, "mean", &zero), QSIM_OK);
    CHECK_INT(qsim_builder_constant(b, "var", &one), QSIM_OK);
    qsim_builder_node(b, "", "Mul", "mul", "x,f", "h");
    qsim_builder_node(b, "", "BatchNormalization", "bn", "h,scale,bias,mean,var", "y");
    return net_finish(b);
}

/*
 * Whether values size * (1, -1, 1, -1) + shift, of mean `shift` and variance size^2, bring a
 * warning of this kind.
 */
static int norm_says(const char *kind, float size, float shift) {
    float x[8 * 2 * 4];
    const int64_t dims[3] = {8, 2, 4};
    const qsim_tensor in = {QSIM_FLOAT, 3, dims, x, sizeof(x)};
    for (int i = 0; i < 64; i++) /* samples differ in the last place */
        x[i] = (i % 2 ? -size : size) + shift + 1e-4f * (float)(i / 8);
    qsim_model *m = make_norm();
    qsim_verdict *v = judge(m, m, NULL, &in);
    const int found = warns(v, kind);
    qsim_verdict_free(v);
    qsim_model_free(m);
    return found;
}

static int norm_warns(float size, float shift) {
    return norm_says("input-range", size, shift);
}

static void test_norm(void) {
    CHECK(!norm_warns(1, 0));
    CHECK(!norm_warns(1.5f, 0.4f)); /* variance 2.25 */
    CHECK(norm_warns(1.7f, 0));     /* 2.89 */
    CHECK(norm_warns(0.6f, 0));     /* 0.36 */
    CHECK(norm_warns(1, 0.6f));
    CHECK(norm_says("not-a-number", 1, NAN) && !norm_warns(1, NAN));
    CHECK(!norm_says("not-a-number", 1, 0));
}

/*
 * A convolution of one tap of weight 1 to four channels, with this bias; then InstanceNormalization
 * or nothing.
 */
static qsim_model *make_biased(const float bias[4], bool normalized) {
    qsim_builder *b = NULL;
    const char *symbol[3] = {"N", NULL, NULL};
    const int64_t in[3] = {-1, 1, 4}, out[3] = {-1, 4, 4}, four = 4;
    float ones[4] = {1, 1, 1, 1};
    const qsim_tensor w = {QSIM_FLOAT, 3, (int64_t[]){4, 1, 1}, ones, sizeof(ones)};
    const qsim_tensor c = {QSIM_FLOAT, 1, &four, (void *)(uintptr_t)bias, sizeof(ones)};
    CHECK_INT(qsim_builder_create(NULL, 13, "biased", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 3, in, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 3, out, symbol);
    CHECK_INT(qsim_builder_constant(b, "w", &w), QSIM_OK);
    CHECK_INT(qsim_builder_constant(b, "c", &c), QSIM_OK);
    qsim_builder_node(b, "", "Conv", "conv", "x,w,c", normalized ? "h" : "y");
    if (normalized)
        qsim_builder_node(b, "", "InstanceNormalization", "norm", "h,c,c", "y");
    return net_finish(b);
}

/* Values size * (1, -1, 1, -1): the deviation is size times that of a bias of 1. */
static const char *biased_warns(float size, const float bias[4], bool normalized) {
    float x[8 * 4];
    const int64_t dims[3] = {8, 1, 4};
    const qsim_tensor in = {QSIM_FLOAT, 3, dims, x, sizeof(x)};
    qsim_verdict_input_info i = {.struct_size = sizeof(i)};
    for (int k = 0; k < 32; k++)
        x[k] = (k % 2 ? -size : size) * (1 + 1e-4f * (float)(k / 4));
    qsim_model *m = make_biased(bias, normalized);
    qsim_verdict *v = judge(m, m, NULL, &in);
    const char *found = warns(v, "input-range")  ? "input-range"
                        : warns(v, "raw-pixels") ? "raw-pixels"
                                                 : "";
    CHECK_INT(qsim_verdict_input(v, &i), QSIM_OK);
    CHECK(strcmp(i.name, "x") == 0);
    CHECK_NEAR(i.least, (double)-size * 1.0007, 1e-5 * (double)size);
    CHECK_NEAR(i.greatest, (double)size * 1.0007, 1e-5 * (double)size);
    CHECK_NEAR(i.mean, 0, 1e-5 * (double)size);
    CHECK_INT(i.fits, *found ? -1 : 0);
    CHECK_INT(qsim_verdict_grade(v), *found ? QSIM_GRADE_DOUBTFUL : QSIM_GRADE_GOOD);
    qsim_verdict_free(v);
    qsim_model_free(m);
    return found;
}

static void test_biased(void) {
    const float ones[4] = {1, -1, 1, -1}, few[4] = {0, 0, 0, 1};
    CHECK(strcmp(biased_warns(0.02f, ones, false), "input-range") == 0);
    CHECK(strcmp(biased_warns(0.05f, ones, false), "") == 0);
    CHECK(strcmp(biased_warns(1, ones, false), "") == 0);
    CHECK(strcmp(biased_warns(25, ones, false), "") == 0);
    CHECK(strcmp(biased_warns(40, ones, false), "raw-pixels") == 0);
    CHECK(strcmp(biased_warns(40, ones, true), "") == 0);    /* any scale is right */
    CHECK(strcmp(biased_warns(0.02f, few, false), "") == 0); /* too few biases for a warning */
}

/* ---- folded BatchNormalization ---- */

enum { CHANNELS = 8, LAYERS = 4 };

/*
 * Four convolutions of one tap, channel c by c + 1, whose biases subtract the mean of their sums
 * except 1 for an input of mean `mean`: sums have mean 1 after each of them.
 */
static qsim_model *make_folded(float mean) {
    qsim_builder *b = NULL;
    const char *symbol[3] = {"N", NULL, NULL};
    const int64_t dims[3] = {-1, CHANNELS, 4}, channels = CHANNELS;
    float w[CHANNELS], bias[CHANNELS];
    char inputs[48], name[16], output[16] = "x";
    CHECK_INT(qsim_builder_create(NULL, 13, "folded", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 3, dims, symbol);
    qsim_builder_output(b, "y3", QSIM_FLOAT, 3, dims, symbol);
    for (int i = 0; i < LAYERS; i++) {
        for (int c = 0; c < CHANNELS; c++) {
            w[c] = (float)(c + 1);
            bias[c] = 1 - w[c] * (i ? 1 : mean);
        }
        const qsim_tensor k = {QSIM_FLOAT, 3, (int64_t[]){CHANNELS, 1, 1}, w, sizeof(w)};
        const qsim_tensor t = {QSIM_FLOAT, 1, &channels, bias, sizeof(bias)};
        snprintf(name, sizeof(name), "w%d", i);
        CHECK_INT(qsim_builder_constant(b, name, &k), QSIM_OK);
        name[0] = 'b';
        CHECK_INT(qsim_builder_constant(b, name, &t), QSIM_OK);
        snprintf(inputs, sizeof(inputs), "%s,w%d,b%d", output, i, i);
        snprintf(output, sizeof(output), "y%d", i);
        qsim_builder_node(b, "", "Conv", "", inputs, output);
        qsim_builder_attr_int(b, "group", CHANNELS);
    }
    return net_finish(b);
}

/* Values 0 and `size` by turns. */
static const char *folded_warns(float trained, float size, int fits) {
    static float x[8 * CHANNELS * 4];
    const int64_t dims[3] = {8, CHANNELS, 4};
    const qsim_tensor in = {QSIM_FLOAT, 3, dims, x, sizeof(x)};
    qsim_verdict_input_info i = {.struct_size = sizeof(i)};
    for (int k = 0; k < 8 * CHANNELS * 4; k++) /* no two samples are equal */
        x[k] = (k + (k / 32 == k % 8)) % 2 ? size : 0;
    qsim_model *m = make_folded(trained / 2);
    qsim_verdict *v = judge(m, m, NULL, &in);
    const char *found = warns(v, "input-range")  ? "input-range"
                        : warns(v, "raw-pixels") ? "raw-pixels"
                                                 : "";
    CHECK_INT(qsim_verdict_input(v, &i), QSIM_OK);
    CHECK_INT(i.fits, fits);
    CHECK_INT(qsim_verdict_grade(v), *found ? QSIM_GRADE_DOUBTFUL : QSIM_GRADE_GOOD);
    qsim_verdict_free(v);
    qsim_model_free(m);
    return found;
}

static void test_folded(void) {
    CHECK(strcmp(folded_warns(1, 1, 0), "") == 0);
    CHECK(strcmp(folded_warns(1, 1.05f, 0), "") == 0);
    CHECK(strcmp(folded_warns(1, 10, -1), "input-range") == 0);
    CHECK(strcmp(folded_warns(1, 255, -1), "raw-pixels") == 0);
    CHECK(strcmp(folded_warns(1, 255.5f, -1), "input-range") == 0);
    CHECK(strcmp(folded_warns(255, 255, 1), "") == 0);
    CHECK(strcmp(folded_warns(255, 1, -1), "input-range") == 0);
}

/* ---- answers ---- */

/* Softmax of 4 scores, `factor` times 1 for the sample's own class and 0 else. */
static int answers_warn(float factor, int rows, int classes) {
    const int64_t free_dims[2] = {-1, 4}, dims[2] = {rows, 4}, one = 1;
    const char *symbol[2] = {"N", NULL};
    const qsim_tensor f = {QSIM_FLOAT, 1, &one, &factor, sizeof(factor)};
    float x[16 * 4] = {0};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, (size_t)rows * 4 * sizeof(*x)};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "answers", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, free_dims, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, free_dims, symbol);
    CHECK_INT(qsim_builder_constant(b, "f", &f), QSIM_OK);
    qsim_builder_node(b, "", "Mul", "", "x,f", "s");
    qsim_builder_node(b, "", "Softmax", "", "s", "y");
    qsim_model *m = net_finish(b);
    for (int i = 0; i < rows; i++) {
        x[i * 4 + i % classes] = 1;
        x[i * 4] += 1e-4f * (float)i; /* no two samples are equal */
    }
    qsim_verdict *v = judge(m, m, NULL, &in);
    const int found = warns(v, "input-range");
    qsim_verdict_free(v);
    qsim_model_free(m);
    return found;
}

static void test_answers(void) {
    CHECK(
        answers_warn(0.1f, 8, 4)); /* 0.27 of 1 for the sample's own class: nearly a quarter each */
    CHECK(answers_warn(0.1f, 4, 4));
    CHECK(!answers_warn(0.1f, 3, 3)); /* too few samples for a warning */
    CHECK(!answers_warn(3, 8, 4));    /* 0.87, and all classes in turn */
    CHECK(!answers_warn(3, 8, 1));    /* sure of the same class: another warning */
}

/* ---- metadata ---- */

static int stated_warns(const char *range, float least, float greatest) {
    qsim_builder *b = NULL;
    const char *symbol[2] = {"N", NULL};
    const int64_t free_dims[2] = {-1, 4}, dims[2] = {8, 4};
    float x[8 * 4];
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    for (int i = 0; i < 8 * 4; i++)
        x[i] = least + (greatest - least) * (float)i / 31;
    CHECK_INT(qsim_builder_create(NULL, 13, "stated", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, free_dims, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, free_dims, symbol);
    qsim_builder_node(b, "", "Relu", "", "x", "y");
    qsim_builder_metadata(b, "Image.NominalPixelRange", range);
    qsim_model *m = net_finish(b);
    qsim_verdict *v = judge(m, m, NULL, &in);
    const int found = warns(v, "input-range");
    qsim_verdict_free(v);
    qsim_model_free(m);
    return found;
}

static void test_stated(void) {
    CHECK(!stated_warns("NominalRange_0_255", 0, 255));
    CHECK(stated_warns("NominalRange_0_255", 0, 1));
    CHECK(stated_warns("NominalRange_16_235", -1, 200));
    CHECK(!stated_warns("Normalized_0_1", 0, 1));
    CHECK(stated_warns("Normalized_0_1", -1, 1));
    CHECK(stated_warns("Normalized_0_1", 0, 255));
    CHECK(!stated_warns("Normalized_1_1", -1, 1));
    CHECK(stated_warns("Normalized_1_1", 0, 255));
}

/* ---- raw pixels ---- */

/* Whether pixels from 0 to `greatest` are reported, in a model without metadata on them. */
static int named_raw(int32_t rank, float greatest) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    const int64_t free_dims[4] = {-1, 4, 1, 1}, dims[4] = {8, 4, 1, 1};
    float x[8 * 4];
    const qsim_tensor in = {QSIM_FLOAT, rank, dims, x, sizeof(x)};
    qsim_verdict_input_info i = {.struct_size = sizeof(i)};
    for (int k = 0; k < 8 * 4; k++)
        x[k] = k % 5 ? (float)k : greatest;
    CHECK_INT(qsim_builder_create(NULL, 13, "raw", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, rank, free_dims, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, rank, free_dims, symbol);
    qsim_builder_node(b, "", "Relu", "", "x", "y");
    qsim_model *m = net_finish(b);
    qsim_verdict *v = judge(m, m, NULL, &in);
    const int found = warns(v, "raw-pixels");
    CHECK_INT(qsim_verdict_grade(v), QSIM_GRADE_GOOD); /* reported, without a lower grade */
    CHECK_INT(qsim_verdict_input(v, &i), QSIM_OK);
    CHECK_INT(i.fits, 0);
    qsim_verdict_free(v);
    qsim_model_free(m);
    return found;
}

static void test_raw(void) {
    CHECK(named_raw(4, 255));
    CHECK(!named_raw(4, 254.5f)); /* no pixels */
    CHECK(!named_raw(4, 256));
    CHECK(!named_raw(3, 255)); /* no images */
}

/* Class scores of another type than float are compared, too. */
static void test_half(void) {
    qsim_builder *b = NULL;
    const char *symbol[2] = {"N", NULL};
    const int64_t free_dims[2] = {-1, 4}, dims[2] = {8, 4};
    float x[8 * 4];
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    qsim_verdict_info o = {.struct_size = sizeof(o)};
    for (int i = 0; i < 8 * 4; i++)
        x[i] = (float)(i * 7 % 11);
    CHECK_INT(qsim_builder_create(NULL, 13, "half", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, free_dims, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT16, 2, free_dims, symbol);
    qsim_builder_node(b, "", "Cast", "", "x", "y");
    qsim_builder_attr_int(b, "to", QSIM_FLOAT16);
    qsim_model *m = net_finish(b);
    qsim_verdict *v = judge(m, m, NULL, &in);
    CHECK_INT(qsim_verdict_output(v, 0, &o), QSIM_OK);
    CHECK_INT(o.rows, 8);
    CHECK_NEAR(o.agreement, 100, 1e-12);
    qsim_verdict_free(v);
    qsim_model_free(m);
}

/* Inputs of any type of floats are described: 1.5, -2 and 4 in both halves. */
static void test_half_input(int32_t type, const uint16_t x[3]) {
    qsim_builder *b = NULL;
    const char *symbol[2] = {"N", NULL};
    const int64_t free_dims[2] = {-1, 1}, dims[2] = {3, 1};
    const qsim_tensor in = {type, 2, dims, (void *)(uintptr_t)x, 6};
    qsim_verdict_input_info i = {.struct_size = sizeof(i)};
    CHECK_INT(qsim_builder_create(NULL, 13, "half", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", type, 2, free_dims, symbol);
    qsim_builder_output(b, "y", type, 2, free_dims, symbol);
    qsim_builder_node(b, "", "Relu", "", "x", "y");
    qsim_model *m = net_finish(b);
    qsim_verdict *v = judge(m, m, NULL, &in);
    CHECK_INT(qsim_verdict_input(v, &i), QSIM_OK);
    CHECK(i.least == -2 && i.greatest == 4);
    CHECK_NEAR(i.mean, 3.5 / 3, 1e-12);
    qsim_verdict_free(v);
    qsim_model_free(m);
}

int main(void) {
    test_norm();
    test_biased();
    test_folded();
    test_answers();
    test_stated();
    test_raw();
    test_half();
    test_half_input(QSIM_FLOAT16, (const uint16_t[]){0x3e00, 0xc000, 0x4400});
    test_half_input(QSIM_BFLOAT16, (const uint16_t[]){0x3fc0, 0xc000, 0x4080});
    return test_done();
}
