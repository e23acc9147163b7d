/* SPDX-License-Identifier: MIT */
/* Every shared model: loaded and saved it is the same file; its counts add up. */
#include "test.h"

#include <qsim/model.h>

#include "graph/model.h"

static const char *const models[] = {
    "cifar_resnet20_akamaster",
    "coral_mobilenet_v1_0.75_192_qdq",
    "coral_mobilenet_v2_1.0_224_fp32deq",
    "coral_mobilenet_v2_1.0_224_qdq",
    "dtln_model_1",
    "fashion_lenetlite",
    "fashion_mobilenetv2_tiny",
    "fashion_resnet8",
    "mlptiny_ic_resnet8_fp32",
    "mlptiny_ic_resnet8_int8",
    "mlptiny_kws_dscnn_fp32",
    "mlptiny_kws_dscnn_int8",
    "mnist-8",
    "mobilenet_v1_025_224_imagenet",
    "ppocrv2_rec_en_number",
    "ppocrv3_det_ch",
    "shufflenet-v2-12-int8",
    "shufflenet-v2-12_fp32_dequantized",
    "silero_vad_op18_ifless",
    "squeezenet1.1_fp32_from_fp16",
    "super_resolution_onnxmodels",
    "ultraface_RFB-320_simplified",
    "yolox_nano",
};

static void *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        return NULL;
    *size = (size_t)ftell(f);
    rewind(f);
    void *data = malloc(*size);
    if (data && fread(data, 1, *size, f) != *size)
        abort();
    fclose(f);
    return data;
}

/* A derived model is written field by field: the same graph, and a fixed point of writing. */
static void check_derived(const qsim_model *m, const qsim_load_options *options) {
    qsim_model *derived = NULL, *again = NULL;
    qsim_error e = {0};
    size_t need = 0, second = 0;
    char a[65] = "", b[65] = "";
    CHECK_INT(qs_model_derive(m, &derived, &e), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(derived, NULL, 0, &need, &e), QSIM_OK);
    uint8_t *saved = malloc(need), *twice = malloc(need);
    CHECK_INT(qsim_model_save_memory(derived, saved, need, &need, &e), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(NULL, saved, need, options, &again, &e), QSIM_OK);
    if (again) {
        CHECK_INT(qsim_model_hash(m, a), QSIM_OK);
        CHECK_INT(qsim_model_hash(again, b), QSIM_OK);
        CHECK_STR(b, a);
        CHECK_INT(qsim_model_input_count(again), qsim_model_input_count(m));
        CHECK_INT(qsim_model_node_count(again), qsim_model_node_count(m));
        CHECK_INT(qsim_model_parameters(again), qsim_model_parameters(m));
        qsim_model_free(derived);
        CHECK_INT(qs_model_derive(again, &derived, &e), QSIM_OK);
        CHECK_INT(qsim_model_save_memory(derived, twice, need, &second, &e), QSIM_OK);
        CHECK(second == need && memcmp(saved, twice, need) == 0);
    } else {
        fprintf(stderr, "%s\n", e.message);
    }
    qsim_model_free(derived);
    qsim_model_free(again);
    free(saved);
    free(twice);
}

static void check(const char *name) {
    char relative[256], path[1024];
    snprintf(relative, sizeof(relative), "models/%s.onnx", name);
    test_shared(relative, path);
    qsim_load_options options = {.struct_size = sizeof(options), .flags = QSIM_LOAD_INSPECT};
    qsim_model *m = NULL;
    qsim_error e = {0};
    int code = qsim_model_load(NULL, path, &options, &m, &e);
    CHECK_INT(code, QSIM_OK);
    if (code) {
        fprintf(stderr, "%s\n", e.message);
        return;
    }
    size_t size = 0, need = 0;
    uint8_t *file = read_file(path, &size);
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, &need, &e), QSIM_OK);
    CHECK_INT(need, size);
    uint8_t *saved = malloc(need);
    CHECK_INT(qsim_model_save_memory(m, saved, need, &need, &e), QSIM_OK);
    CHECK(need == size && memcmp(saved, file, size) == 0);
    check_derived(m, &options);
    qsim_model_free(m);
    free(saved);
    free(file);
}

int main(void) {
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        check(models[i]);
    return test_done();
}
