/* SPDX-License-Identifier: MIT */
/*
 * A build with -Dquantizer=disabled has this file in place of those that calibrate, quantize,
 * search and judge: the same functions, which refuse by name. Models that are quantized already run
 * as always.
 */
#include "base/ctx.h"

#include <qsim/ptq.h>
#include <qsim/recipe.h>
#include <qsim/verdict.h>

#ifdef QS_NO_QUANTIZER

#pragma GCC diagnostic ignored "-Wunused-parameter"

static int refuse(const char *function, qsim_error *error) {
    qs_error_clear(error);
    qs_fail(error, QSIM_E_UNSUPPORTED, "%s: this build of libqsim does not quantize", function);
    qs_hint(error, "build it with -Dquantizer=enabled");
    return QSIM_E_UNSUPPORTED;
}

/* The same for a function that makes an object. */
#define REFUSE_TO_MAKE(out, error)                                                                 \
    do {                                                                                           \
        if (out)                                                                                   \
            *(out) = NULL;                                                                         \
        return refuse(__func__, error);                                                            \
    } while (0)

/* ---- calibrations ---- */

int32_t qsim_calibration_count(const qsim_calibration *c) {
    return 0;
}

int qsim_calibration_create(const qsim_model *model, const qsim_calibration_options *options,
                            qsim_calibration **out, qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int qsim_calibration_feed(qsim_calibration *c, const qsim_tensor *inputs, size_t input_count,
                          qsim_error *error) {
    return refuse(__func__, error);
}

void qsim_calibration_free(qsim_calibration *c) {
}

int qsim_calibration_load(qsim_ctx *ctx, const char *path, qsim_calibration **out,
                          qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int qsim_calibration_load_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                                 qsim_calibration **out, qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int qsim_calibration_merge(qsim_calibration *into, const qsim_calibration *from,
                           qsim_error *error) {
    return refuse(__func__, error);
}

const char *qsim_calibration_model(const qsim_calibration *c) {
    return NULL;
}

const char *qsim_calibration_name(const qsim_calibration *c, int32_t index) {
    return NULL;
}

const qsim_observer *qsim_calibration_observer(const qsim_calibration *c, int32_t index) {
    return NULL;
}

int qsim_calibration_outlier(const qsim_calibration *c, int32_t index, qsim_outlier *outlier) {
    return QSIM_E_UNSUPPORTED;
}

int qsim_calibration_range(const qsim_calibration *c, const char *tensor, int32_t method,
                           double percentile, int32_t dtype, int32_t flags, float *low,
                           float *high) {
    return QSIM_E_UNSUPPORTED;
}

int64_t qsim_calibration_samples(const qsim_calibration *c) {
    return 0;
}

int qsim_calibration_save(const qsim_calibration *c, const char *path, int32_t replace,
                          qsim_error *error) {
    return refuse(__func__, error);
}

/* ---- quantization ---- */

int qsim_model_convert_to(const qsim_model *model, int32_t format, qsim_model **out,
                          qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int qsim_quantize(const qsim_model *model, const qsim_calibration *c,
                  const qsim_quantize_options *options, qsim_model **out, qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int32_t qsim_quantize_layers(const qsim_model *model, const qsim_calibration *c,
                             const qsim_quantize_options *options, qsim_layer_fn layer, void *user,
                             qsim_error *error) {
    return refuse(__func__, error);
}

int qsim_search(const qsim_model *model, const qsim_calibration *c,
                const qsim_quantize_options *base, const qsim_search_options *options,
                qsim_recipe *found, double *score, qsim_error *error) {
    return refuse(__func__, error);
}

const char *qsim_search_method(int32_t index) {
    return NULL;
}

int32_t qsim_search_method_needs_inputs(int32_t index) {
    return 0;
}

int32_t qsim_sensitivity(const qsim_model *model, const qsim_calibration *c,
                         const qsim_quantize_options *base, const qsim_search_options *options,
                         qsim_unit_fn unit, void *user, qsim_judgement *plain, qsim_error *error) {
    return refuse(__func__, error);
}

/* ---- recipes ---- */

const char *qsim_recipe_calibration(const qsim_recipe *recipe) {
    return NULL;
}

int32_t qsim_recipe_count(const qsim_recipe *recipe) {
    return 0;
}

int qsim_recipe_create(qsim_ctx *ctx, qsim_recipe **out, qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int32_t qsim_recipe_find(const qsim_recipe *recipe, int32_t kind, const char *name) {
    return QSIM_E_UNSUPPORTED;
}

void qsim_recipe_free(qsim_recipe *recipe) {
}

int qsim_recipe_get(const qsim_recipe *recipe, int32_t index, qsim_recipe_entry *entry) {
    return QSIM_E_UNSUPPORTED;
}

int qsim_recipe_load(qsim_ctx *ctx, const char *path, qsim_recipe **out, qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int qsim_recipe_load_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                            qsim_recipe **out, qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int qsim_recipe_merge(qsim_recipe *into, const qsim_recipe *from, qsim_error *error) {
    return refuse(__func__, error);
}

const char *qsim_recipe_model(const qsim_recipe *recipe) {
    return NULL;
}

int qsim_recipe_save(const qsim_recipe *recipe, const char *path, int32_t replace,
                     qsim_error *error) {
    return refuse(__func__, error);
}

int qsim_recipe_set(qsim_recipe *recipe, const qsim_recipe_entry *entry, qsim_error *error) {
    return refuse(__func__, error);
}

int qsim_recipe_text(const qsim_recipe *recipe, void *buffer, size_t capacity, size_t *need,
                     qsim_error *error) {
    return refuse(__func__, error);
}

/* ---- verdicts ---- */

const char *qsim_grade_name(int32_t grade) {
    return NULL;
}

int qsim_verdict_create(const qsim_model *model, const qsim_model *quantized,
                        const qsim_verdict_options *options, qsim_verdict **out,
                        qsim_error *error) {
    REFUSE_TO_MAKE(out, error);
}

int qsim_verdict_feed(qsim_verdict *v, const qsim_tensor *inputs, size_t input_count,
                      qsim_error *error) {
    return refuse(__func__, error);
}

void qsim_verdict_free(qsim_verdict *v) {
}

int32_t qsim_verdict_grade(const qsim_verdict *v) {
    return 0;
}

int qsim_verdict_input(const qsim_verdict *v, qsim_verdict_input_info *info) {
    return QSIM_E_UNSUPPORTED;
}

int qsim_verdict_label(qsim_verdict *v, const int64_t *labels, size_t count, qsim_error *error) {
    return refuse(__func__, error);
}

int qsim_verdict_labels(const qsim_verdict *v, qsim_verdict_labels_info *info) {
    return QSIM_E_UNSUPPORTED;
}

int qsim_verdict_layer(const qsim_verdict *v, int32_t index, qsim_verdict_info *info) {
    return QSIM_E_UNSUPPORTED;
}

int32_t qsim_verdict_layer_count(const qsim_verdict *v) {
    return 0;
}

int qsim_verdict_output(const qsim_verdict *v, int32_t index, qsim_verdict_info *info) {
    return QSIM_E_UNSUPPORTED;
}

int32_t qsim_verdict_output_count(const qsim_verdict *v) {
    return 0;
}

int64_t qsim_verdict_samples(const qsim_verdict *v) {
    return 0;
}

const char *qsim_verdict_warning(const qsim_verdict *v, int32_t index, const char **kind) {
    return NULL;
}
#endif
