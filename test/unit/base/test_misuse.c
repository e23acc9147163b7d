/* SPDX-License-Identifier: MIT */
/* Callers' mistakes: NULL objects, missing sizes, forged arrays. Each gets an error. */
#include "base/base.h"

#include <qsim/qsim.h>

#include "test.h"

static void null_objects(void) {
    qsim_value_info value = {.struct_size = sizeof(value)};
    CHECK_INT(qsim_ctx_isa(NULL), QSIM_ISA_AUTO);
    CHECK_INT(qsim_ctx_threads(NULL), 0);
    CHECK_INT(qsim_model_input_count(NULL), 0);
    CHECK_INT(qsim_model_output_count(NULL), 0);
    CHECK_INT(qsim_model_value_count(NULL), 0);
    CHECK_INT(qsim_model_node_count(NULL), 0);
    CHECK_INT(qsim_model_opset(NULL, ""), 0);
    CHECK_INT(qsim_model_ir_version(NULL), 0);
    CHECK_INT(qsim_model_bytes(NULL), 0);
    CHECK_INT(qsim_model_parameters(NULL), 0);
    CHECK_INT(qsim_model_parameter_bytes(NULL), 0);
    CHECK_INT(qsim_model_metadata_count(NULL), 0);
    CHECK(!qsim_model_metadata_key(NULL, 0) && !qsim_model_metadata_value(NULL, 0));
    CHECK_INT(qsim_model_input(NULL, 0, &value), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npz_count(NULL), 0);
    CHECK_INT(qsim_package_count(NULL), 0);
    CHECK_INT(qsim_observer_count(NULL), 0);
    CHECK_INT(qsim_calibration_count(NULL), 0);
    CHECK_INT(qsim_recipe_count(NULL), 0);
    CHECK_INT(qsim_session_input_count(NULL), 0);
    CHECK_INT(qsim_session_output_count(NULL), 0);
    CHECK_INT((int)qsim_session_bytes(NULL), 0);
    qsim_run_set_seed(NULL, 1);
    CHECK_INT((int)qsim_run_arena_bytes(NULL), 0);
    CHECK_INT(qsim_run_step_count(NULL), 0);
}

/* y = Relu(x) for rows of 4 floats. */
static qsim_model *elu(void) {
    qsim_builder *b;
    qsim_model *m = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[N,4]");
    qsim_builder_node(b, "", "Elu", "", "x", "y");
    qsim_builder_attr_float(b, "alpha", 1);
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    qsim_builder_free(b);
    return m;
}

/* Structs of unset memory: bytes past the caller's struct_size are neither read nor written. */
static void unset_sizes(void) {
    static const size_t wild[] = {
        0, 1, sizeof(size_t) - 1, 4096, (size_t)1 << 20, SIZE_MAX / 2, SIZE_MAX};
    struct {
        qsim_value_info info;
        uint8_t after[64];
    } guarded;
    qsim_model *m = elu();
    for (size_t i = 0; m && i < QS_COUNT(wild); i++) {
        qsim_ctx_options options = {.struct_size = wild[i]};
        qsim_node_info node = {.struct_size = wild[i]};
        qsim_attr_info attr = {.struct_size = wild[i]};
        qsim_error e;
        qsim_ctx *ctx;
        memset(&guarded, 0x5a, sizeof(guarded));
        guarded.info.struct_size = wild[i];
        CHECK_INT(qsim_ctx_create(&options, &ctx, &e), QSIM_E_ARGUMENT);
        CHECK(!ctx && strstr(e.message, "struct_size"));
        CHECK_INT(qsim_model_input(m, 0, &guarded.info), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_model_node(m, 0, &node), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_model_attr(m, 0, 0, &attr), QSIM_E_ARGUMENT);
        for (size_t k = 0; k < sizeof(guarded.after); k++)
            CHECK_INT(guarded.after[k], 0x5a);
    }
    qsim_model_free(m);
}

static void forged_array(void) {
    uint8_t bytes[64] = {0}, out[64];
    qsim_error e;
    qsim_array a = {.struct_size = sizeof(a),
                    .dtype = QSIM_FLOAT,
                    .rank = 1,
                    .dims = {16},
                    .elements = 16,
                    .bytes = 64};
    CHECK_INT(qsim_array_read(&a, bytes, 64, INT64_MAX, INT64_MAX, out, 64, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_array_read(&a, bytes, 64, INT64_MIN, INT64_MIN, out, 64, &e), QSIM_E_ARGUMENT);
    /* whose sum, if it wraps, is no position, and whose bytes, if they wrap, are none */
    const int64_t half = INT64_MAX / 2 + 1;
    CHECK_INT(qsim_array_read(&a, bytes, 64, half, half, out, 64, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_array_read(&a, bytes, 64, 15, 1, out, 64, &e), QSIM_OK);
}

static void no_sizes(void) {
    const int64_t dims[] = {4};
    float values[4] = {0}, scale[] = {1};
    uint8_t q[4];
    qsim_error e;
    qsim_qparams p = {QSIM_UINT8, 0, 0, 1, scale, NULL};
    qsim_tensor x = {QSIM_FLOAT, 1, dims, values, sizeof(values)};
    qsim_tensor y = {QSIM_UINT8, 1, NULL, q, sizeof(q)};
    CHECK_INT(qsim_tensor_quantize(&x, &p, &y, &e), QSIM_E_SHAPE);
    y.dims = dims;
    CHECK_INT(qsim_tensor_quantize(&x, &p, &y, &e), QSIM_OK);
}

/* Tensors without sizes or memory, which comparisons read. */
static void no_tensors(void) {
    const int64_t dims[] = {2, 2};
    float values[4] = {1, 2, 3, 4};
    const qsim_tensor x = {QSIM_FLOAT, 2, dims, values, sizeof(values)};
    qsim_tensor bad[3] = {x, x, x};
    bad[0].data = NULL;
    bad[1].dims = NULL;
    bad[2].bytes = 15;
    for (int i = 0; i < 7; i++) {
        const qsim_tensor *a = i < 3 ? &bad[i] : &x, *b = i >= 3 && i < 6 ? &bad[i - 3] : &x;
        const int code = i == 6 ? QSIM_OK : i % 3 == 1 ? QSIM_E_SHAPE : QSIM_E_ARGUMENT;
        qsim_metrics m = {.struct_size = sizeof(m)};
        qsim_divergence d = {.struct_size = sizeof(d)};
        CHECK_INT(qsim_metrics_add(&m, a, b, 0, 0), code);
        CHECK_INT(qsim_divergence_add(&d, a, b), code);
    }
    CHECK_INT(qsim_package_sniff(NULL, 8), 0);
    CHECK_INT(qsim_package_sniff("PK\3\4....", 8), 1);
}

/* Inputs without sizes, and of no rows, fed to what looks at axis 0. */
static void no_sizes_fed(void) {
    const int64_t dims[] = {1, 4}, none[] = {0, 4};
    const qsim_tensor empty = {QSIM_FLOAT, 2, none, NULL, 0};
    float values[4] = {0};
    qsim_model *m = elu();
    for (int i = 0; m && i < 2; i++) {
        const qsim_tensor x = {QSIM_FLOAT, 2, i ? dims : NULL, values, sizeof(values)};
        qsim_calibration *c = NULL;
        qsim_verdict *v = NULL;
        CHECK_INT(qsim_verdict_create(m, m, NULL, &v, NULL), QSIM_OK);
        CHECK_INT(qsim_verdict_feed(v, &empty, 1, NULL), QSIM_OK);
        CHECK_INT(qsim_verdict_feed(v, &x, 1, NULL), i ? QSIM_OK : QSIM_E_ARGUMENT);
        CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
        CHECK_INT(qsim_calibration_feed(c, &x, 1, NULL), i ? QSIM_OK : QSIM_E_ARGUMENT);
        qsim_calibration_free(c);
        qsim_verdict_free(v);
    }
    qsim_model_free(m);
}

/* Lists of names that are empty or NULL, for a builder's first node; Constant may have them. */
static void empty_lists(void) {
    static const char *const ops[] = {"Relu", "Constant"};
    for (int i = 0; i < 4; i++) {
        qsim_builder *b = NULL;
        qsim_model *m = NULL;
        qsim_error e;
        const bool legal = i == 1;
        CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, &e), QSIM_OK);
        qsim_builder_node(b, "", ops[i % 2], "", i < 2 ? "" : NULL,
                          legal   ? "y"
                          : i < 2 ? ""
                                  : NULL);
        if (i % 2)
            qsim_builder_attr_float(b, "value_float", 2);
        if (legal)
            qsim_builder_output_as(b, "y", NULL);
        const int code = qsim_builder_finish(b, &m, &e);
        CHECK(legal ? code == QSIM_OK : code != QSIM_OK && !m && e.message[0]);
        qsim_model_free(m);
        qsim_builder_free(b);
    }
}

enum { MODEL, NPY, NPZ, IDX, PACKAGE, CALIBRATION, RECIPE, READERS };

/* A reader's code for `size` bytes. */
static int read_bytes(int reader, const void *data, size_t size, qsim_error *e) {
    qsim_array a = {.struct_size = sizeof(a)};
    qsim_model *m;
    qsim_npz *z;
    qsim_package *p;
    qsim_calibration *c;
    qsim_recipe *r;
    switch (reader) {
    case MODEL: return qsim_model_load_memory(NULL, data, size, NULL, &m, e);
    case NPY: return qsim_npy_parse(data, size, 0, &a, e);
    case NPZ: return qsim_npz_open(NULL, data, size, &z, e);
    case IDX: return qsim_idx_parse(data, size, &a, e);
    case PACKAGE: return qsim_package_open_memory(NULL, data, size, "t", &p, e);
    case CALIBRATION: return qsim_calibration_load_memory(NULL, data, size, "t", &c, e);
    default: return qsim_recipe_load_memory(NULL, data, size, "t", &r, e);
    }
}

/* No bytes at NULL are an empty file; a byte there is a mistake, unless the build reads no such
 * file. */
static void no_bytes(void) {
    for (int reader = 0; reader < READERS; reader++) {
        qsim_error empty, null;
        const int code = read_bytes(reader, "", 0, &empty);
        CHECK(code < 0 && code != QSIM_E_ARGUMENT);
        CHECK_INT(read_bytes(reader, NULL, 0, &null), code);
        CHECK_STR(null.message, empty.message);
        CHECK_INT(read_bytes(reader, NULL, 1, &null),
                  code == QSIM_E_UNSUPPORTED ? code : QSIM_E_ARGUMENT);
    }
}

int main(void) {
    no_bytes();
    null_objects();
    unset_sizes();
    forged_array();
    no_sizes();
    no_tensors();
    no_sizes_fed();
    empty_lists();
    return test_done();
}
