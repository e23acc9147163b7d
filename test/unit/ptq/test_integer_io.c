/* SPDX-License-Identifier: MIT */
/* Integers in place of a quantized model's float inputs and outputs. */
#include <stdbool.h>

#include "ptq_nets.h"

#include <qsim/quant.h>

enum { SAMPLES = 8, PIXELS = 144, MOST = 4096 };

static const int64_t image_dims[4] = {SAMPLES, 1, 12, 12};

/* The numbers of floats in a model's output for `x`, which is quantized if the input is integers,
 * as are floats that the output's integers stand for. */
static size_t run_as_floats(const qsim_model *m, const float *x, const int64_t *dims, int32_t rank,
                            float *y) {
    static uint16_t codes[MOST]; /* of 8 bits, too */
    qsim_value_info in = {.struct_size = sizeof(in)}, out = {.struct_size = sizeof(out)};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {0};
    qsim_tensor result = {0};
    double scale = 0;
    int64_t zero = 0;
    size_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    CHECK_INT(qsim_model_input(m, 0, &in), QSIM_OK);
    CHECK_INT(qsim_model_output(m, 0, &out), QSIM_OK);
    qsim_tensor given = {QSIM_FLOAT, rank, dims, (void *)(uintptr_t)x, n * sizeof(*x)};
    if (in.dtype != QSIM_FLOAT) {
        CHECK_INT(qsim_model_scale(m, in.name, &scale, &zero, NULL), QSIM_OK);
        CHECK_INT(qsim_values_quantize(x, n, (float)scale, (int32_t)zero, in.dtype, codes),
                  QSIM_OK);
        given =
            (qsim_tensor){in.dtype, rank, dims, codes, n * (size_t)qsim_dtype_bits(in.dtype) / 8};
    }
    if (qsim_session_create(m, NULL, &s, &e) || qsim_run_create(s, &r, &e) ||
        qsim_run_execute(r, &given, 1, &result, 1, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK_INT(e.code, QSIM_OK);
    CHECK_INT(result.dtype, out.dtype);
    n = e.code ? 0 : result.bytes * 8 / (size_t)qsim_dtype_bits(result.dtype);
    CHECK(n <= MOST);
    if (n > 0 && out.dtype == QSIM_FLOAT)
        memcpy(y, result.data, result.bytes);
    else if (n > 0) {
        CHECK_INT(qsim_model_scale(m, out.name, &scale, &zero, NULL), QSIM_OK);
        CHECK_INT(qsim_values_dequantize(result.data, n, (float)scale, (int32_t)zero, out.dtype, y),
                  QSIM_OK);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return n;
}

static int32_t dtype_of(const qsim_model *m, bool output) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    CHECK_INT((output ? qsim_model_output : qsim_model_input)(m, 0, &v), QSIM_OK);
    CHECK(strcmp(v.name, output ? "y" : "x") == 0);
    return v.dtype;
}

/* Makes the three forms of a quantized model, which compute the same, also when saved and loaded.
 */
static void check_forms(const qsim_model *q, int32_t dtype, const float *x, const int64_t *dims,
                        int32_t rank) {
    static float wanted[MOST], y[MOST];
    static char bytes[1 << 17];
    const size_t n = run_as_floats(q, x, dims, rank, wanted);
    CHECK(n > 0);
    for (int32_t which = 1; which <= 3; which++) {
        qsim_model *m = NULL, *loaded = NULL;
        qsim_error e = {0};
        size_t size = 0;
        if (qsim_model_integer_io(q, which, &m, &e))
            fprintf(stderr, "%s\n", e.message);
        CHECK(m != NULL);
        CHECK_INT(dtype_of(m, false), which & QSIM_INTEGER_INPUTS ? dtype : QSIM_FLOAT);
        CHECK_INT(dtype_of(m, true), which & QSIM_INTEGER_OUTPUTS ? dtype : QSIM_FLOAT);
        CHECK_INT(run_as_floats(m, x, dims, rank, y), n);
        CHECK(memcmp(y, wanted, n * sizeof(*y)) == 0);
        CHECK_INT(qsim_model_save_memory(m, bytes, sizeof(bytes), &size, &e), QSIM_OK);
        CHECK_INT(qsim_model_load_memory(NULL, bytes, size, NULL, &loaded, &e), QSIM_OK);
        CHECK_INT(run_as_floats(loaded, x, dims, rank, y), n);
        CHECK(memcmp(y, wanted, n * sizeof(*y)) == 0);
        qsim_model_free(loaded);
        qsim_model_free(m);
    }
    CHECK_INT(dtype_of(q, false), QSIM_FLOAT);
}

static void test_forms(void) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16};
    static float x[SAMPLES * PIXELS];
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 2);
    net_batch(x, SAMPLES, 7);
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        for (int32_t format = 0; format < (i < 2 ? 2 : 1); format++) {
            const qsim_quantize_options o = {
                .struct_size = sizeof(o), .activation_type = types[i], .format = format};
            qsim_model *q = net_quantize(m, c, &o);
            check_forms(q, types[i], x, image_dims, 4);
            qsim_model_free(q);
        }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- networks that are written quantized ---- */

/* QuantizeLinear and DequantizeLinear by the same numbers, "scale,zero point": x to q to y. */
static void put_pair(qsim_builder *b, const char *x, const char *by, const char *q, const char *y) {
    char inputs[32], name[32];
    snprintf(inputs, sizeof(inputs), "%s,%s", x, by);
    snprintf(name, sizeof(name), "make %s", q);
    qsim_builder_node(b, "", "QuantizeLinear", name, inputs, q);
    snprintf(inputs, sizeof(inputs), "%s,%s", q, by);
    snprintf(name, sizeof(name), "read %s", q);
    qsim_builder_node(b, "", "DequantizeLinear", name, inputs, y);
}

static qsim_builder *begin(void) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "small", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2,3]");
    net_scale(b, "s", "z", 0.5f, 10);
    net_scale(b, "t", "u", 0.25f, 3);
    return b;
}

static const int64_t small_dims[2] = {2, 3};
static const float small[6] = {-4.2f, -0.3f, 0, 0.7f, 3.1f, 40};

/* Transposes between the input and QuantizeLinear, a Reshape between DequantizeLinear and output.
 */
static void test_moves(void) {
    qsim_builder *b = begin();
    CHECK_INT(qsim_builder_constant_as(b, "shape", "int64[3]", (int64_t[]){1, 6, 1}), QSIM_OK);
    qsim_builder_node(b, "", "Transpose", "turn", "x", "xt");
    put_pair(b, "xt", "s,z", "a", "af");
    qsim_builder_node(b, "", "Relu", "relu", "af", "r");
    put_pair(b, "r", "t,u", "c", "cf");
    qsim_builder_node(b, "", "Reshape", "flat", "cf,shape", "y");
    qsim_builder_output_as(b, "y", "float[1,6,1]");
    qsim_model *q = net_finish(b);
    check_forms(q, QSIM_UINT8, small, small_dims, 2);
    qsim_model_free(q);
}

/* Parts of the input, cut and joined before they are quantized, as a detector's focus layer does.
 */
static void test_cut_and_joined(void) {
    qsim_builder *b = begin();
    CHECK_INT(qsim_builder_constant_as(b, "first", "int64[1]", (int64_t[]){0}), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "second", "int64[1]", (int64_t[]){1}), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "third", "int64[1]", (int64_t[]){2}), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "fourth", "int64[1]", (int64_t[]){3}), QSIM_OK);
    qsim_builder_node(b, "", "Slice", "left", "x,first,third,second", "l");
    qsim_builder_node(b, "", "Slice", "right", "x,third,fourth,second", "r");
    qsim_builder_node(b, "", "Concat", "join", "r,l", "j");
    qsim_builder_attr_int(b, "axis", 1);
    put_pair(b, "j", "s,z", "a", "af");
    qsim_builder_node(b, "", "Relu", "relu", "af", "p");
    put_pair(b, "p", "t,u", "c", "y");
    qsim_builder_output_as(b, "y", "float[2,3]");
    qsim_model *q = net_finish(b);
    check_forms(q, QSIM_UINT8, small, small_dims, 2);
    qsim_model_free(q);
}

/* Two nodes quantize the input by one scale; another node reads what is an output, too. */
static void test_several_readers(void) {
    qsim_builder *b = begin();
    put_pair(b, "x", "s,z", "a", "af");
    put_pair(b, "x", "s,z", "c", "cf");
    qsim_builder_node(b, "", "Add", "add", "af,cf", "sum");
    put_pair(b, "sum", "t,u", "e", "y");
    qsim_builder_node(b, "", "Abs", "abs", "y", "other");
    qsim_builder_output_as(b, "y", "float[2,3]");
    qsim_builder_output_as(b, "other", "float[2,3]");
    qsim_model *q = net_finish(b), *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_model_integer_io(q, QSIM_INTEGER_OUTPUTS, &m, &e), QSIM_E_UNSUPPORTED);
    CHECK(strstr(e.message, "'other'") && strstr(e.message, "Abs"));
    CHECK_INT(qsim_model_integer_io(q, QSIM_INTEGER_INPUTS, &m, &e), QSIM_OK);
    CHECK_INT(dtype_of(m, false), QSIM_UINT8);
    CHECK_INT(net_count(m, "QuantizeLinear"), 1);
    qsim_model_free(m);
    qsim_model_free(q);
}

/* Checks both outputs of the model with integer outputs that is made of `q`, for x [2, 3]. */
static void check_two_outputs(qsim_model *q, const float *x, const uint8_t first[6],
                              const uint8_t second[6]) {
    qsim_tensor in = {QSIM_FLOAT, 2, small_dims, (void *)(uintptr_t)x, 6 * sizeof(*x)}, y[2];
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    CHECK_INT(qsim_model_integer_io(q, QSIM_INTEGER_OUTPUTS, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, NULL), QSIM_OK);
    memset(y, 0, sizeof(y));
    CHECK_INT(qsim_run_execute(r, &in, 1, y, 2, NULL), QSIM_OK);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(((const uint8_t *)y[0].data)[i], first[i]);
        CHECK_INT(((const uint8_t *)y[1].data)[i], second[i]);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_model_free(q);
}

static void test_output_that_is_read(void) {
    qsim_builder *b = begin();
    put_pair(b, "x", "s,z", "a", "y");
    qsim_builder_node(b, "", "Neg", "neg", "y", "n");
    put_pair(b, "n", "t,u", "c", "w");
    qsim_builder_output_as(b, "y", "float[2,3]");
    qsim_builder_output_as(b, "w", "float[2,3]");
    uint8_t first[6], second[6];
    for (int i = 0; i < 6; i++) {
        const double v = fmin(fmax(nearbyint((double)small[i] / 0.5) + 10, 0), 255);
        const double w = fmin(fmax(nearbyint(-(v - 10) * 0.5 / 0.25) + 3, 0), 255);
        first[i] = (uint8_t)v;
        second[i] = (uint8_t)w;
    }
    check_two_outputs(net_finish(b), small, first, second);
}

/* ---- Softmax before an output ---- */

/* x, quantized and dequantized by 1/32 in a type, in front of what follows. */
static qsim_builder *begin_typed(int32_t dtype, const char *domain) {
    qsim_builder *b = NULL;
    const uint16_t zero = 0; /* in any of the types */
    const qsim_tensor z = {dtype, 0, NULL, (void *)(uintptr_t)&zero,
                           (size_t)qsim_dtype_bits(dtype) / 8};
    CHECK_INT(qsim_builder_create(NULL, *domain ? 13 : 21, "shares", &b, NULL), QSIM_OK);
    CHECK_INT(qsim_builder_import(b, "com.microsoft", 1), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2,3]");
    CHECK_INT(qsim_builder_constant_as(b, "s", "float[]", &(float){0.03125f}), QSIM_OK);
    CHECK_INT(qsim_builder_constant(b, "z", &z), QSIM_OK);
    qsim_builder_node(b, domain, "QuantizeLinear", "make", "x,s,z", "k");
    qsim_builder_node(b, domain, "DequantizeLinear", "read", "k,s,z", "f");
    return b;
}

/*
 * The outputs of `q`, shares from 0 to 1, become codes of `dtype`: by ONNX's formula, from the
 * floats that `q` computes. Another reader of the first output still reads floats.
 */
static void check_shares(const qsim_model *q, int32_t dtype) {
    const double steps = qsim_dtype_bits(dtype) == 8 ? 256 : 65536;
    const bool sign = dtype == QSIM_INT8 || dtype == QSIM_INT16;
    /* the first row is 1, 0, 0 in floats of any model here */
    const float x[6] = {3, -3, -3.5f, 0.25f, 0.375f, -0.5f};
    float wanted[6], y[6];
    for (int32_t which = 2; which <= 3; which++) {
        qsim_model *m = NULL, *loaded = NULL;
        qsim_error e = {0};
        static char bytes[1 << 14];
        size_t size = 0;
        double scale = 0;
        int64_t zero = 1;
        CHECK_INT(run_as_floats(q, x, small_dims, 2, wanted), 6);
        if (qsim_model_integer_io(q, which, &m, &e))
            fprintf(stderr, "%s\n", e.message);
        CHECK_INT(qsim_model_save_memory(m, bytes, sizeof(bytes), &size, &e), QSIM_OK);
        CHECK_INT(qsim_model_load_memory(NULL, bytes, size, NULL, &loaded, &e), QSIM_OK);
        for (int k = 0; k < 2; k++) {
            CHECK_INT(dtype_of(k ? loaded : m, true), dtype);
            CHECK_INT(qsim_model_scale(k ? loaded : m, "y", &scale, &zero, &e), QSIM_OK);
            CHECK(scale == 1 / steps);
            CHECK_INT(zero, sign ? -steps / 2 : 0);
            CHECK_INT(run_as_floats(k ? loaded : m, x, small_dims, 2, y), 6);
            for (int i = 0; i < 6; i++)
                CHECK_NEAR(y[i], fmin(nearbyint((double)wanted[i] * steps), steps - 1) / steps, 0);
            CHECK(y[0] == 1 - 1 / steps);
        }
        qsim_model_free(loaded);
        qsim_model_free(m);
    }
}

static void test_softmax(void) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16};
    for (int i = 0; i < 4; i++)
        for (int moved = 0; moved < 2; moved++) {
            qsim_builder *b = begin_typed(types[i], moved && i >= 2 ? "com.microsoft" : "");
            CHECK_INT(qsim_builder_constant_as(b, "to", "int64[3]", (int64_t[]){1, 2, 3}), QSIM_OK);
            CHECK_INT(qsim_builder_constant_as(b, "ten", "float[]", &(float){10}), QSIM_OK);
            qsim_builder_node(b, "", "Mul", "sharpen", "f,ten", "g");
            qsim_builder_node(b, "", "Softmax", "soft", "g", moved ? "p" : "y");
            if (moved)
                qsim_builder_node(b, "", "Reshape", "move", "p,to", "y");
            qsim_builder_output_as(b, "y", moved ? "float[1,2,3]" : "float[2,3]");
            qsim_model *q = net_finish(b);
            check_shares(q, types[i]);
            qsim_model_free(q);
        }
}

/* What else reads the shares reads floats: the second output is -y. */
static void test_softmax_that_is_read(void) {
    qsim_builder *b = begin_typed(QSIM_UINT8, "");
    qsim_builder_node(b, "", "Softmax", "soft", "f", "y");
    qsim_builder_node(b, "", "Neg", "neg", "y", "n");
    net_scale(b, "t", "u", 0.0078125f, 128);
    put_pair(b, "n", "t,u", "c", "w");
    qsim_builder_output_as(b, "y", "float[2,3]");
    qsim_builder_output_as(b, "w", "float[2,3]");
    const float x[6] = {0, 0, 0, 0, 0, 0}; /* thirds: 85.33 / 256, 128 - 42.67 */
    const uint8_t third[6] = {85, 85, 85, 85, 85, 85};
    check_two_outputs(net_finish(b), x, third, third);
}

/* ---- refusals ---- */

static void refused(qsim_model *m, int32_t which, const char *what) {
    qsim_model *made = m;
    qsim_error e = {0};
    CHECK_INT(qsim_model_integer_io(m, which, &made, &e), QSIM_E_UNSUPPORTED);
    CHECK(made == NULL);
    CHECK(strstr(e.message, what) != NULL);
    qsim_model_free(m);
}

static void test_refusals(void) {
    qsim_builder *b = begin();
    qsim_builder_node(b, "", "Neg", "neg", "x", "y");
    qsim_builder_output_as(b, "y", "float[2,3]");
    refused(net_finish(b), QSIM_INTEGER_INPUTS, "input 'x' cannot be integers");
    b = begin(); /* two scales */
    put_pair(b, "x", "s,z", "a", "y");
    put_pair(b, "x", "t,u", "c", "w");
    qsim_builder_output_as(b, "y", "float[2,3]");
    qsim_builder_output_as(b, "w", "float[2,3]");
    refused(net_finish(b), QSIM_INTEGER_INPUTS, "make c");
    b = begin(); /* a part of it is joined with other floats */
    CHECK_INT(qsim_builder_constant_as(b, "ones", "float[2,1]", (float[]){1, 1}), QSIM_OK);
    qsim_builder_node(b, "", "Concat", "join", "x,ones", "j");
    qsim_builder_attr_int(b, "axis", 1);
    put_pair(b, "j", "s,z", "a", "y");
    qsim_builder_output_as(b, "y", "float[2,4]");
    refused(net_finish(b), QSIM_INTEGER_INPUTS, "'join', Concat");
    b = begin(); /* two inputs, which could have two scales */
    qsim_builder_input_as(b, "k", "float[2,3]");
    qsim_builder_node(b, "", "Concat", "join", "x,k", "j");
    qsim_builder_attr_int(b, "axis", 1);
    put_pair(b, "j", "s,z", "a", "y");
    qsim_builder_output_as(b, "y", "float[2,6]");
    refused(net_finish(b), QSIM_INTEGER_INPUTS, "'join', Concat");
    b = begin(); /* what QuantizeLinear makes is an output */
    qsim_builder_node(b, "", "QuantizeLinear", "q1", "x,s,z", "y");
    qsim_builder_output_as(b, "y", "uint8[2,3]");
    refused(net_finish(b), QSIM_INTEGER_INPUTS, "q1");
    b = begin(); /* an output from an input of integers */
    qsim_builder_input_as(b, "k", "uint8[2,3]");
    qsim_builder_node(b, "", "Neg", "neg", "x", "n");
    qsim_builder_node(b, "", "DequantizeLinear", "d1", "k,s,z", "y");
    qsim_builder_output_as(b, "y", "float[2,3]");
    qsim_builder_output_as(b, "n", "float[2,3]");
    refused(net_finish(b), QSIM_INTEGER_OUTPUTS, "output 'y' cannot be integers");
    b = begin_typed(QSIM_UINT8, ""); /* no bounds are known */
    qsim_builder_node(b, "", "LogSoftmax", "log", "f", "y");
    qsim_builder_output_as(b, "y", "float[2,3]");
    refused(net_finish(b), QSIM_INTEGER_OUTPUTS, "output 'y' cannot be integers");
    b = begin(); /* not quantized: which type? */
    qsim_builder_node(b, "", "Softmax", "soft", "x", "y");
    qsim_builder_output_as(b, "y", "float[2,3]");
    refused(net_finish(b), QSIM_INTEGER_OUTPUTS, "'soft', Softmax");
    b = begin_typed(QSIM_INT8, ""); /* QuantizeLinear of doubles does not exist */
    qsim_builder_node(b, "", "Cast", "cast", "f", "d");
    qsim_builder_attr_int(b, "to", QSIM_DOUBLE);
    qsim_builder_node(b, "", "Softmax", "soft", "d", "y");
    qsim_builder_output_as(b, "y", "double[2,3]");
    refused(net_finish(b), QSIM_INTEGER_OUTPUTS, "output 'y' cannot be integers");
    qsim_model *m = net_lenet(), *made = NULL;
    CHECK_INT(qsim_model_integer_io(m, 0, &made, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_integer_io(m, 4, &made, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_integer_io(NULL, 1, &made, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_integer_io(m, 1, NULL, NULL), QSIM_E_ARGUMENT);
    qsim_model_free(m);
}

static void test_scale(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 1);
    qsim_model *q = net_quantize(m, c, NULL);
    double scale = 0;
    int64_t zero = 0;
    qsim_error e = {0};
    CHECK_INT(qsim_model_scale(q, "x_QuantizeLinear_Output", &scale, &zero, &e), QSIM_OK);
    CHECK(scale > 0.0038 && scale < 0.0040 && zero == 0); /* 1 / 255 = 0.00392 */
    CHECK_INT(qsim_model_scale(q, "x", &scale, &zero, &e), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_model_scale(q, "w1_quantized", &scale, &zero, &e), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_model_scale(q, "none", &scale, &zero, &e), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_model_scale(q, NULL, &scale, &zero, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_scale(q, "x", NULL, &zero, &e), QSIM_E_ARGUMENT);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* The scale of the last of 60 operands of QLinearConcat, which is input 2 + 3 * 59. */
static void test_many_operands(void) {
    char inputs[60 * 8 + 16] = "s,z";
    qsim_builder *b = begin();
    double scale = 0;
    int64_t zero = 0;
    for (int i = 0; i < 60; i++)
        strcat(inputs, i < 59 ? ",k,s,z" : ",l,t,u");
    qsim_builder_input_as(b, "k", "uint8[2,1]");
    qsim_builder_input_as(b, "l", "uint8[2,1]");
    qsim_builder_node(b, "com.microsoft", "QLinearConcat", "join", inputs, "y");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_output_as(b, "y", "uint8[2,60]");
    qsim_model *m = net_finish(b);
    CHECK_INT(qsim_model_scale(m, "l", &scale, &zero, NULL), QSIM_OK);
    CHECK(scale == 0.25 && zero == 3);
    CHECK_INT(qsim_model_scale(m, "k", &scale, &zero, NULL), QSIM_OK);
    CHECK(scale == 0.5 && zero == 10);
    CHECK_INT(qsim_model_scale(m, "y", &scale, &zero, NULL), QSIM_OK);
    CHECK(scale == 0.5 && zero == 10);
    qsim_model_free(m);
}

int main(void) {
    test_many_operands();
    test_forms();
    test_moves();
    test_cut_and_joined();
    test_several_readers();
    test_output_that_is_read();
    test_softmax();
    test_softmax_that_is_read();
    test_refusals();
    test_scale();
    return test_done();
}
