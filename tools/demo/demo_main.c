/* SPDX-License-Identifier: MIT */
/* qsim-demo: quantizes a trained classifier and compares FP32 with INT8. */
#include "common/tool.h"

#include "demo_data.h"
#include "program.h"
#include "demo_report.h"

#include <qsim/ptq.h>

#include <stdlib.h>
#include <string.h>

#include "common/folder.h"

typedef struct demo {
    tool *tool;
    const char *results;
    demo_data data;
    qsim_model *models[2]; /* FP32, INT8 */
    demo_net nets[2];
    demo_result result;
    int64_t calibrate, rounds;
} demo;

/* Feeds the first validation images. */
static int calibrate(demo *d, qsim_calibration *c, qsim_error *e) {
    static float x[DEMO_BATCH * DEMO_PIXELS];
    const demo_set *v = &d->data.validation;
    const size_t count = (size_t)d->calibrate < v->count ? (size_t)d->calibrate : v->count;
    for (size_t first = 0; first < count; first += DEMO_BATCH) {
        const size_t batch = count - first < DEMO_BATCH ? count - first : DEMO_BATCH;
        const int64_t dims[] = {(int64_t)batch, 1, 28, 28};
        const qsim_tensor in = {QSIM_FLOAT, 4, dims, x, batch * DEMO_PIXELS * sizeof(float)};
        demo_scale(v->images + first * DEMO_PIXELS, batch * DEMO_PIXELS, x);
        const int status = qsim_calibration_feed(c, &in, 1, e);
        if (status != QSIM_OK)
            return status;
    }
    d->result.calibration_count = count;
    return QSIM_OK;
}

/* Quantizes and writes the INT8 model, which is measured as loaded from its file. */
static int quantize(demo *d, const char *path, qsim_error *e) {
    const qsim_save_options save = {.struct_size = sizeof(save), .flags = QSIM_SAVE_REPLACE};
    qsim_calibration *c = NULL;
    qsim_model *int8 = NULL;
    int status = qsim_calibration_create(d->models[0], NULL, &c, e);
    if (status == QSIM_OK)
        status = calibrate(d, c, e);
    if (status == QSIM_OK)
        status = qsim_quantize(d->models[0], c, NULL, &int8, e);
    if (status == QSIM_OK)
        status = qsim_model_save(int8, path, &save, e);
    qsim_model_free(int8);
    qsim_calibration_free(c);
    return status;
}

static size_t count_right(const uint8_t *predicted, const demo_set *s) {
    size_t right = 0;
    for (size_t i = 0; i < s->count; i++)
        right += predicted[i] == s->labels[i];
    return right;
}

/* Both networks on all validation and test images. */
static int evaluate(demo *d, qsim_error *e) {
    const demo_set *v = &d->data.validation, *test = &d->data.test;
    uint8_t *of_val = tool_alloc(v->count, 1);
    uint8_t *of_test[2] = {tool_alloc(test->count, 1), tool_alloc(test->count, 1)};
    int status = QSIM_OK;
    for (size_t k = 0; k < 2 && status == QSIM_OK; k++) {
        demo_mode *m = &d->result.mode[k];
        m->weight_bytes = qsim_model_parameter_bytes(d->models[k]);
        m->file_bytes = qsim_model_bytes(d->models[k]);
        status = demo_predict(&d->nets[k], v->images, v->count, of_val, e);
        if (status == QSIM_OK)
            status = demo_predict(&d->nets[k], test->images, test->count, of_test[k], e);
        m->val_correct = count_right(of_val, v);
    }
    if (status == QSIM_OK)
        demo_count(&d->result, test->labels, (const uint8_t *const[]){of_test[0], of_test[1]});
    free(of_val);
    free(of_test[0]);
    free(of_test[1]);
    return status;
}

static int time_both(demo *d, qsim_error *e) {
    demo_times t[2];
    const demo_set *s = &d->data.test;
    const size_t rounds = (size_t)d->rounds;
    int status = demo_time(d->nets, s->images, s->count, 1, rounds, t, e);
    if (status != QSIM_OK)
        return status;
    d->result.mode[0].single = t[0];
    d->result.mode[1].single = t[1];
    status = demo_time(d->nets, s->images, s->count, DEMO_BATCH, (rounds + 9) / 10, t, e);
    if (status != QSIM_OK)
        return status;
    d->result.mode[0].batch = t[0];
    d->result.mode[1].batch = t[1];
    return QSIM_OK;
}

static int measure(demo *d, const char *int8_path) {
    qsim_error e = {0};
    if (quantize(d, int8_path, &e) != QSIM_OK)
        return tool_error(d->tool, int8_path, &e);
    const int code = tool_load_model(d->tool, int8_path, 0, &d->models[1]);
    if (code != EXIT_OK)
        return code;
    int status = demo_open(d->models[0], &d->nets[0], &e);
    if (status == QSIM_OK)
        status = demo_open(d->models[1], &d->nets[1], &e);
    if (status == QSIM_OK)
        status = evaluate(d, &e);
    if (status == QSIM_OK)
        status = time_both(d, &e);
    return status == QSIM_OK ? EXIT_OK : tool_error(d->tool, NULL, &e);
}

static int report(const demo *d) {
    qsim_error e = {0};
    text out = {0};
    if (demo_write(&d->result, d->results, &e) != QSIM_OK)
        return tool_error(d->tool, d->results, &e);
    demo_table(&d->result, &out);
    text_puts(&out, "\n");
    const int met = demo_bars(&d->result, &out);
    if (d->tool->json) {
        json j = {0};
        demo_json(&d->result, met, &j);
        tool_print_json(d->tool, &j);
    } else
        fputs(out.data, stdout);
    text_free(&out);
    return met ? EXIT_OK : EXIT_BOUND;
}

/* Reads options, data and models. */
static int prepare(demo *d, text *int8_path) {
    tool *t = d->tool;
    int code = EXIT_OK;
    const char *dir = args_value(&t->args, "data"), *results = args_value(&t->args, "results");
    if (!tool_operands(t, 1, 1) || !tool_int(t, "calibrate", 1, 1000000, 512, &d->calibrate) ||
        !tool_int(t, "rounds", 1, 1000000, 5000, &d->rounds))
        return EXIT_USAGE;
    if (!dir)
        return tool_usage(t, "qsim-demo --data DIR MODEL.onnx", "--data is missing");
    d->results = results ? results : "results";
    code = folder_make(t, d->results);
    if (code)
        return code;
    text_printf(int8_path, "%s/lenetlite_int8.onnx", d->results);
    if (!tool_may_write(t, int8_path->data, &code))
        return code;
    code = demo_data_load(t, dir, &d->data);
    if (code != EXIT_OK)
        return code;
    if (d->data.test.count < DEMO_BATCH)
        return tool_fail(t, QSIM_E_SHAPE, "%s: fewer than %d test images", dir, DEMO_BATCH);
    d->result = (demo_result){.data_name = d->data.name,
                              .val_count = d->data.validation.count,
                              .test_count = d->data.test.count,
                              .threads = qsim_ctx_threads(t->ctx),
                              .isa = qsim_isa_name(qsim_ctx_isa(t->ctx))};
    for (size_t i = 0; i < DEMO_CLASSES; i++)
        d->result.classes[i] = d->data.classes[i];
    d->result.mode[0].name = "fp32";
    d->result.mode[1].name = "int8";
    return tool_load_model(t, t->args.operands[0], 0, &d->models[0]);
}

static int run(tool *t) {
    demo d = {.tool = t};
    text int8_path = {0};
    int code = prepare(&d, &int8_path);
    if (code == EXIT_OK)
        code = measure(&d, int8_path.data);
    if (code == EXIT_OK)
        code = report(&d);
    for (size_t k = 0; k < 2; k++) {
        demo_close(&d.nets[k]);
        qsim_model_free(d.models[k]);
    }
    demo_data_free(&d.data);
    text_free(&int8_path);
    return code;
}

static const option options[] = {
    {"data", "DIR", "folder of the Fashion-MNIST files (IDX, plain or .gz)", 0, NULL},
    {"results", "DIR", "where the INT8 model, tables and pictures go (results)", 0, NULL},
    OPTION_FORCE,
    {"calibrate", "N", "validation images to calibrate on (512)", 0, NULL},
    {"rounds", "N", "timed runs of one image; a tenth as many of 64 (5000)", 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

static const verb demo_verb = {
    .name = "qsim-demo",
    .operands = "--data DIR MODEL",
    .summary =
        "Quantizes a classifier of 28 x 28 images to INT8 and compares it with the original.",
    .options = options,
    .run = run,
};

int main(int argc, char **argv) {
    return program_main(&demo_verb, 1, argc, argv);
}
