/* SPDX-License-Identifier: MIT */
/*
 * Promises of qsim/base.h for every function: success empties an error, failure sets it to the
 * returned code and one line of text; on failure *out is NULL.
 */
#include <stdbool.h>
#include <unistd.h>

#include "test.h"

#include <qsim/qsim.h>

typedef struct things {
    qsim_ctx *ctx;
    qsim_model *model;
    qsim_calibration *calibration;
    qsim_session *session;
    qsim_run *run;
    qsim_package *package;
    char folder[32], onnx[64], qcal[64], zip[64], out[64];
} things;

static float pixels[8];
static const int64_t dims[] = {2, 4};
static const qsim_tensor input = {QSIM_FLOAT, 2, dims, pixels, sizeof(pixels)};
static const char junk[] = "no file of any kind";
static char elsewhere;

static qsim_error used(void) {
    qsim_error e = {.code = 77, .message = "of the call before", .hint = "too"};
    return e;
}

static bool emptied(const qsim_error *e) {
    return e->code == QSIM_OK && !e->message[0] && !e->hint[0];
}

static bool tells(const qsim_error *e, int code) {
    return code < 0 && e->code == code && e->message[0] && !strchr(e->message, '\n') &&
           strcmp(e->message, "of the call before") != 0 && strcmp(e->hint, "too") != 0;
}

/* A call that succeeds, and one that fails; both receive &e and, if they make an object, &out. */
#define WORKS(call)                                                                                \
    do {                                                                                           \
        qsim_error e = used();                                                                     \
        CHECK_INT(call, QSIM_OK);                                                                  \
        CHECK(emptied(&e));                                                                        \
    } while (0)

#define FAILS(call)                                                                                \
    do {                                                                                           \
        qsim_error e = used();                                                                     \
        int code = call;                                                                           \
        CHECK(tells(&e, code));                                                                    \
    } while (0)

#define MAKES(type, release, call)                                                                 \
    do {                                                                                           \
        type *out = (type *)(void *)&elsewhere;                                                    \
        WORKS(call);                                                                               \
        CHECK(out && (void *)out != (void *)&elsewhere);                                           \
        release(out);                                                                              \
    } while (0)

#define MAKES_NOTHING(type, call)                                                                  \
    do {                                                                                           \
        type *out = (type *)(void *)&elsewhere;                                                    \
        FAILS(call);                                                                               \
        CHECK(!out);                                                                               \
    } while (0)

static int build(qsim_ctx *ctx, const char *op, const char *inputs, qsim_model **out,
                 qsim_error *e) {
    static const float w[4 * 3];
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(ctx, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[N,4]");
    qsim_builder_constant_as(b, "w", "float[4,3]", w);
    qsim_builder_node(b, "", op, "fc", inputs, "y");
    qsim_builder_output_as(b, "y", NULL);
    int code = qsim_builder_finish(b, out, e);
    qsim_builder_free(b);
    return code;
}

/* A builder makes one model only. */
static void test_builder(things *t) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(t->ctx, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[N,4]");
    qsim_builder_node(b, "", "Relu", "", "x", "y");
    qsim_builder_output_as(b, "y", NULL);
    MAKES(qsim_model, qsim_model_free, qsim_builder_finish(b, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_builder_finish(b, &out, &e));
    CHECK_INT(qsim_builder_node(b, "", "Relu", "", "y", "z"), QSIM_E_STATE);
    qsim_builder_free(b);
}

static void test_models(things *t) {
    qsim_ctx_options lacks = {.struct_size = sizeof(lacks), .isa = 99};
    size_t need;
    char bytes[4096];
    MAKES(qsim_ctx, qsim_ctx_free, qsim_ctx_create(NULL, &out, &e));
    MAKES_NOTHING(qsim_ctx, qsim_ctx_create(&lacks, &out, &e));
    MAKES(qsim_builder, qsim_builder_free, qsim_builder_create(t->ctx, 13, "g", &out, &e));
    MAKES_NOTHING(qsim_builder, qsim_builder_create(t->ctx, 99, "g", &out, &e));
    MAKES(qsim_model, qsim_model_free, build(t->ctx, "MatMul", "x,w", &out, &e));
    MAKES_NOTHING(qsim_model, build(t->ctx, "MatMul", "w,w", &out, &e));
    MAKES(qsim_model, qsim_model_free, qsim_model_load(t->ctx, t->onnx, NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_load(t->ctx, t->out, NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_load(t->ctx, NULL, NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_load(t->ctx, "", NULL, &out, &e));
    WORKS(qsim_model_save_memory(t->model, bytes, sizeof(bytes), &need, &e));
    FAILS(qsim_model_save_memory(NULL, bytes, sizeof(bytes), &need, &e));
    MAKES(qsim_model, qsim_model_free, qsim_model_load_memory(t->ctx, bytes, need, NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_load_memory(t->ctx, junk, sizeof(junk), NULL, &out, &e));
    MAKES(qsim_model, qsim_model_free, qsim_model_optimize(t->model, QSIM_LEVEL_BASIC, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_load_memory(t->ctx, NULL, 1, NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_optimize(t->model, 99, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_optimize(NULL, QSIM_LEVEL_BASIC, &out, &e));
    MAKES(qsim_model, qsim_model_free, qsim_model_upgrade(t->model, 21, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_upgrade(t->model, 7, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_model_upgrade(NULL, 21, &out, &e));
    MAKES_NOTHING(qsim_builder, qsim_builder_create(t->ctx, 13, NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_builder_finish(NULL, &out, &e));
    WORKS(qsim_model_save(t->model, t->out, NULL, &e));
    FAILS(qsim_model_save(t->model, t->out, NULL, &e));
    unlink(t->out);
}

static void test_sessions(things *t) {
    qsim_session_options unknown = {.struct_size = sizeof(unknown), .level = 99};
    qsim_tensor y = {0};
    MAKES(qsim_session, qsim_session_free, qsim_session_create(t->model, NULL, &out, &e));
    MAKES_NOTHING(qsim_session, qsim_session_create(t->model, &unknown, &out, &e));
    MAKES_NOTHING(qsim_session, qsim_session_create(NULL, NULL, &out, &e));
    MAKES(qsim_run, qsim_run_free, qsim_run_create(t->session, &out, &e));
    MAKES_NOTHING(qsim_run, qsim_run_create(NULL, &out, &e));
    WORKS(qsim_run_reserve(t->run, &input, 1, &e));
    FAILS(qsim_run_reserve(t->run, &input, 0, &e));
    WORKS(qsim_run_execute(t->run, &input, 1, &y, 1, &e));
    FAILS(qsim_run_execute(t->run, &input, 0, &y, 1, &e));
}

static void test_ptq(things *t) {
    qsim_quantize_options dynamic = {.struct_size = sizeof(dynamic), .mode = QSIM_MODE_DYNAMIC};
    MAKES(qsim_observer, qsim_observer_free, qsim_observer_create(t->ctx, NULL, &out, &e));
    FAILS(qsim_observer_create(t->ctx, NULL, NULL, &e));
    MAKES(qsim_calibration, qsim_calibration_free,
          qsim_calibration_create(t->model, NULL, &out, &e));
    MAKES_NOTHING(qsim_calibration, qsim_calibration_create(NULL, NULL, &out, &e));
    WORKS(qsim_calibration_feed(t->calibration, &input, 1, &e));
    FAILS(qsim_calibration_feed(t->calibration, &input, 0, &e));
    WORKS(qsim_calibration_merge(t->calibration, t->calibration, &e));
    FAILS(qsim_calibration_merge(t->calibration, NULL, &e));
    WORKS(qsim_calibration_save(t->calibration, t->qcal, 1, &e));
    FAILS(qsim_calibration_save(t->calibration, t->qcal, 0, &e));
    MAKES(qsim_calibration, qsim_calibration_free,
          qsim_calibration_load(t->ctx, t->qcal, &out, &e));
    MAKES_NOTHING(qsim_calibration, qsim_calibration_load(t->ctx, t->onnx, &out, &e));
    MAKES_NOTHING(qsim_calibration, qsim_calibration_load(t->ctx, t->out, &out, &e));
    MAKES_NOTHING(qsim_calibration, qsim_calibration_load(t->ctx, NULL, &out, &e));
    MAKES_NOTHING(qsim_calibration, qsim_calibration_load_memory(t->ctx, NULL, 1, NULL, &out, &e));
    MAKES_NOTHING(qsim_calibration,
                  qsim_calibration_load_memory(t->ctx, junk, sizeof(junk), NULL, &out, &e));
    MAKES(qsim_model, qsim_model_free, qsim_quantize(t->model, t->calibration, NULL, &out, &e));
    MAKES(qsim_model, qsim_model_free, qsim_quantize(t->model, NULL, &dynamic, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_quantize(t->model, NULL, NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_quantize(NULL, NULL, &dynamic, &out, &e));
}

static void test_packages(things *t) {
    qsim_bytes piece = {junk, sizeof(junk)};
    qsim_packer *packer = NULL;
    const void *data = NULL;
    size_t size = 0;
    MAKES(qsim_packer, qsim_packer_free, qsim_packer_create(t->ctx, &out, &e));
    FAILS(qsim_packer_create(t->ctx, NULL, &e));
    CHECK_INT(qsim_packer_create(t->ctx, &packer, NULL), QSIM_OK);
    FAILS(qsim_packer_save(packer, t->out, 0, &e));
    WORKS(qsim_packer_model(packer, t->onnx, NULL, &e));
    FAILS(qsim_packer_model(packer, t->out, NULL, &e));
    WORKS(qsim_packer_add(packer, QSIM_ROLE_LABELS, NULL, "a\n", 2, &e));
    FAILS(qsim_packer_add(packer, 99, NULL, "a\n", 2, &e));
    WORKS(qsim_packer_option(packer, "note", "x", &e));
    FAILS(qsim_packer_option(packer, NULL, "x", &e));
    WORKS(qsim_packer_save(packer, t->zip, 0, &e));
    qsim_packer_free(packer);
    MAKES(qsim_package, qsim_package_free, qsim_package_open(t->ctx, t->zip, 0, &out, &e));
    MAKES_NOTHING(qsim_package, qsim_package_open(t->ctx, t->onnx, 0, &out, &e));
    MAKES_NOTHING(qsim_package,
                  qsim_package_open_memory(t->ctx, junk, sizeof(junk), NULL, &out, &e));
    MAKES_NOTHING(qsim_package, qsim_package_open(t->ctx, NULL, 0, &out, &e));
    MAKES_NOTHING(qsim_package, qsim_package_open_memory(t->ctx, NULL, 1, NULL, &out, &e));
    CHECK_INT(qsim_package_open(t->ctx, t->zip, 0, &t->package, NULL), QSIM_OK);
    WORKS(qsim_package_data(t->package, 0, &data, &size, &e));
    FAILS(qsim_package_data(t->package, 99, &data, &size, &e));
    MAKES(qsim_model, qsim_model_free, qsim_package_model(t->package, NULL, NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_package_model(t->package, "none", NULL, &out, &e));
    MAKES_NOTHING(qsim_model, qsim_package_model(NULL, NULL, NULL, &out, &e));
    FAILS(qsim_package_unpack(t->package, t->zip, 0, &e));
    MAKES(qsim_file, qsim_file_close, qsim_file_open(t->ctx, t->zip, 0, &out, &e));
    MAKES_NOTHING(qsim_file, qsim_file_open(t->ctx, t->out, 0, &out, &e));
    WORKS(qsim_file_write(t->ctx, t->out, 0, &piece, 1, &e));
    FAILS(qsim_file_write(t->ctx, t->out, 0, &piece, 1, &e));
    MAKES_NOTHING(qsim_file, qsim_file_open(t->ctx, NULL, 0, &out, &e));
    MAKES_NOTHING(qsim_npz, qsim_npz_open(t->ctx, NULL, 1, &out, &e));
    MAKES_NOTHING(qsim_npz, qsim_npz_open(t->ctx, junk, sizeof(junk), &out, &e));
}

static void test_values(things *t) {
    float scale[4] = {1, 1, 1, 1}, nought[4] = {0};
    int32_t zero[4] = {0}, sums[2 * 2] = {0};
    uint8_t bytes[8] = {0}, proto[64];
    size_t need;
    qsim_array array = {.struct_size = sizeof(array)};
    qsim_qparams q = {QSIM_UINT8, 0, 0, 1, scale, zero}, none = {QSIM_UINT8, 0, 0, 1, nought, zero};
    qsim_tensor x = input, y = {QSIM_UINT8, 2, dims, bytes, sizeof(bytes)};
    const int64_t square[] = {2, 2};
    qsim_tensor w = {QSIM_INT8, 2, dims, bytes, sizeof(bytes)};
    qsim_tensor acc = {QSIM_INT32, 2, square, sums, sizeof(sums)};
    WORKS(qsim_qparams_measure(&x, QSIM_INT8, 0, 0, 0, 1, scale, zero, &e));
    FAILS(qsim_qparams_measure(&x, QSIM_INT8, 0, 0, 0, 3, scale, zero, &e));
    WORKS(qsim_tensor_quantize(&x, &q, &y, &e));
    FAILS(qsim_tensor_quantize(&x, &none, &y, &e));
    WORKS(qsim_tensor_dequantize(&y, &q, &x, &e));
    FAILS(qsim_tensor_dequantize(&x, &q, &x, &e));
    WORKS(qsim_tensor_convert(&y, &x, &e));
    FAILS(qsim_tensor_convert(&y, &acc, &e));
    WORKS(qsim_linear(t->ctx, &y, &w, NULL, &acc, &e));
    FAILS(qsim_linear(t->ctx, &x, &w, NULL, &acc, &e));
    FAILS(qsim_conv2d(t->ctx, &x, &w, NULL, &acc, &e));
    FAILS(qsim_npy_parse(junk, sizeof(junk), sizeof(junk), &array, &e));
    FAILS(qsim_idx_parse(junk, sizeof(junk), &array, &e));
    FAILS(qsim_proto_parse(junk, sizeof(junk), &array, &e));
    CHECK_INT(qsim_proto_write(&y, "y", proto, sizeof(proto), &need), QSIM_OK);
    WORKS(qsim_proto_parse(proto, need, &array, &e));
    WORKS(qsim_proto_read(proto, need, bytes, sizeof(bytes), &e));
    FAILS(qsim_proto_read(proto, need, bytes, 1, &e));
}

static void setup(things *t) {
    strcpy(t->folder, "qsim-promises-XXXXXX");
    CHECK(mkdtemp(t->folder) != NULL);
    snprintf(t->onnx, sizeof(t->onnx), "%s/m.onnx", t->folder);
    snprintf(t->qcal, sizeof(t->qcal), "%s/m.qcal", t->folder);
    snprintf(t->zip, sizeof(t->zip), "%s/p.zip", t->folder);
    snprintf(t->out, sizeof(t->out), "%s/out", t->folder);
    CHECK_INT(qsim_ctx_create(NULL, &t->ctx, NULL), QSIM_OK);
    CHECK_INT(build(t->ctx, "MatMul", "x,w", &t->model, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save(t->model, t->onnx, NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_session_create(t->model, NULL, &t->session, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(t->session, &t->run, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_create(t->model, NULL, &t->calibration, NULL), QSIM_OK);
}

static void teardown(things *t) {
    qsim_package_free(t->package);
    qsim_run_free(t->run);
    qsim_session_free(t->session);
    qsim_calibration_free(t->calibration);
    qsim_model_free(t->model);
    qsim_ctx_free(t->ctx);
    unlink(t->onnx);
    unlink(t->qcal);
    unlink(t->zip);
    unlink(t->out);
    CHECK_INT(rmdir(t->folder), 0);
}

int main(void) {
    static things t;
    setup(&t);
    test_builder(&t);
    test_models(&t);
    test_sessions(&t);
    test_ptq(&t);
    test_packages(&t);
    test_values(&t);
    teardown(&t);
    return test_done();
}
