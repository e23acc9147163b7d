/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/ptq.h>

#include "common/dataset.h"
#include "common/progress.h"
#include "comparison.h"
#include "name_index.h"
#include "saturation.h"
#include "verbs.h"

/* A result with memory of its own. */
typedef struct result {
    qsim_tensor tensor;
    int64_t dims[QSIM_MAX_RANK];
    size_t capacity;
} result;

typedef struct simulation {
    saturation *s;
    engine *parts;     /* one for each layer, and one for outputs that are no results of layers */
    result *results;   /* of layers */
    name_index inputs; /* of the model by name */
    const char **outputs; /* that the last part computes */
    size_t output_count;
    size_t *place; /* of each output of the model among those, where no layer makes it */
    result *exact; /* outputs of the model */
} simulation;

/* ---- sessions ---- */

static int open_part(const tool *t, simulation *x, const char *const *names, size_t count,
                     size_t i) {
    qsim_model *part = NULL;
    int code = saturation_make_part(t, x->s, names, count, i, &part);
    if (code == EXIT_OK)
        code = engine_of_model(t, x->s->file, part, names, count, &x->parts[i]);
    qsim_model_free(part);
    return tool_go_on(t, x->s->file, code);
}

static int open_parts(const tool *t, simulation *x) {
    saturation *s = x->s;
    int code = EXIT_OK;
    x->parts = tool_alloc(s->count + 1, sizeof(*x->parts));
    x->results = tool_alloc(s->count, sizeof(*x->results));
    x->exact = tool_alloc(s->outputs.count, sizeof(*x->exact));
    for (int32_t i = 0; i < qsim_model_input_count(s->model); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_input(s->model, i, &v) == QSIM_OK)
            name_index_add(&x->inputs, v.name, i);
    }
    name_index_sort(&x->inputs);
    x->outputs = tool_alloc(s->outputs.count, sizeof(*x->outputs));
    x->place = tool_alloc(s->outputs.count, sizeof(*x->place));
    for (size_t i = 0; i < s->outputs.count; i++)
        if (name_index_find(&s->results, s->outputs.a[i]) < 0) {
            x->place[i] = x->output_count;
            x->outputs[x->output_count++] = s->outputs.a[i];
        }
    for (size_t i = 0; i < s->count && code == EXIT_OK; i++) {
        const char *const names[] = {s->layers[i].codes, s->layers[i].node.outputs[0]};
        code = open_part(t, x, names, 2, i);
    }
    if (code == EXIT_OK && x->output_count > 0)
        code = open_part(t, x, x->outputs, x->output_count, s->count);
    return code;
}

static void close_parts(simulation *x) {
    for (size_t i = 0; x->parts && i <= x->s->count; i++)
        engine_close(&x->parts[i]);
    for (size_t i = 0; x->results && i < x->s->count; i++)
        free(x->results[i].tensor.data);
    free(x->parts);
    for (size_t i = 0; x->exact && i < x->s->outputs.count; i++)
        free(x->exact[i].tensor.data);
    free(x->results);
    free(x->exact);
    free(x->outputs);
    free(x->place);
    name_index_free(&x->inputs);
}

/* ---- runs ---- */

static void keep(result *r, const qsim_tensor *y) {
    if (y->bytes > r->capacity) {
        free(r->tensor.data);
        r->tensor.data = tool_alloc(y->bytes, 1);
        r->capacity = y->bytes;
    }
    for (int32_t i = 0; i < y->rank; i++)
        r->dims[i] = y->dims[i];
    if (y->bytes > 0)
        memcpy(r->tensor.data, y->data, y->bytes);
    r->tensor = (qsim_tensor){y->dtype, y->rank, r->dims, r->tensor.data, y->bytes};
}

/* Runs a part on what it reads of the batch and of results. */
static int run_part(const tool *t, simulation *x, engine *e, const batch *b) {
    const int32_t count = qsim_session_input_count(e->session);
    qsim_tensor *inputs = tool_alloc((size_t)count, sizeof(*inputs));
    for (int32_t i = 0; i < count; i++) {
        const char *name = qsim_session_input_name(e->session, i);
        const int32_t at = name_index_find(&x->inputs, name);
        inputs[i] =
            at >= 0 ? b->inputs[at] : x->results[name_index_find(&x->s->results, name)].tensor;
    }
    const int code = engine_execute(t, x->s->file, e, inputs, (size_t)count);
    free(inputs);
    return code;
}

/* Output i as the last part or a layer has computed it. */
static const qsim_tensor *output(const simulation *x, size_t i) {
    const int32_t layer = name_index_find(&x->s->results, x->s->outputs.a[i]);
    return layer >= 0 ? &x->results[layer].tensor : &x->parts[x->s->count].outputs[x->place[i]];
}

/* Runs all parts, with saturation or without. */
static int run_parts(const tool *t, simulation *x, const batch *b, bool saturate) {
    saturation *s = x->s;
    int code = EXIT_OK;
    for (size_t i = 0; i < s->count && code == EXIT_OK; i++) {
        code = run_part(t, x, &x->parts[i], b);
        if (code)
            break;
        keep(&x->results[i], &x->parts[i].outputs[1]);
        if (saturate)
            saturation_add(&s->layers[i], &x->parts[i].outputs[0], &x->results[i].tensor,
                           tool_interrupted);
        code = tool_go_on(t, s->file, code);
    }
    return code == EXIT_OK && x->output_count > 0 ? run_part(t, x, &x->parts[s->count], b) : code;
}

/* Simulates; and runs the same parts without saturation, so that nothing else differs. */
static int simulate(const tool *t, simulation *x, const batch *b) {
    saturation *s = x->s;
    int code = run_parts(t, x, b, false);
    for (size_t i = 0; i < s->outputs.count && code == EXIT_OK; i++) {
        keep(&x->exact[i], output(x, i));
        s->has_classes[i] = tensor_has_classes(s->outputs.a[i], output(x, i));
    }
    if (code == EXIT_OK)
        code = run_parts(t, x, b, true);
    for (size_t i = 0; i < s->outputs.count && code == EXIT_OK; i++) {
        const int wrong =
            qsim_metrics_add(&s->outputs.metrics[i], &x->exact[i].tensor, output(x, i), 1e-3, 1e-5);
        if (wrong)
            code = tool_fail(t, wrong, "%s: output '%.100s': %s", s->file, s->outputs.a[i],
                             qsim_error_text(wrong));
    }
    return code;
}

static int simulate_all(const tool *t, simulation *x, dataset *d) {
    progress p;
    batch b;
    int code;
    progress_begin(&p, t);
    for (;;) {
        code = dataset_next(d, &b);
        if (code || b.samples == 0)
            break;
        code = simulate(t, x, &b);
        if (code)
            break;
        x->s->samples += b.samples;
        progress_step(&p, "simulating", (uint64_t)x->s->samples, (uint64_t)dataset_samples(d));
    }
    progress_end(&p);
    return code;
}

/* ---- the verb ---- */

/* Loads the model, in the form in which each layer stands between DequantizeLinear. */
static int open_model(const tool *t, saturation *s) {
    qsim_model *read = NULL;
    qsim_error e;
    int code = tool_load_model(t, s->file, 0, &read);
    if (code)
        return code;
    if (qsim_model_convert_to(read, QSIM_FORMAT_QDQ, &s->model, &e) == QSIM_OK)
        qsim_model_free(read);
    else
        s->model = read; /* dynamic quantization has no such form, and needs none */
    code = tool_list_model(t, s->file, s->model);
    if (code == EXIT_OK)
        code = tensor_pairs_outputs(t, s->model, s->model, &s->outputs);
    s->has_classes = tool_alloc(s->outputs.count, sizeof(*s->has_classes));
    s->outputs.metrics = tool_alloc(s->outputs.count, sizeof(*s->outputs.metrics));
    for (size_t i = 0; i < s->outputs.count; i++)
        s->outputs.metrics[i].struct_size = sizeof(*s->outputs.metrics);
    if (code == EXIT_OK)
        saturation_find(s);
    return code;
}

static int run(tool *t) {
    bounds b = {.max_abs = NAN, .min_cosine = NAN};
    saturation s = {.file = NULL};
    simulation x = {.s = &s};
    dataset *d = NULL;
    if (!tool_operands(t, 1, 1) || !tool_number(t, "min-sqnr", -1e3, 1e3, NAN, &b.min_sqnr) ||
        !tool_percent(t, "min-agreement", NAN, &b.min_agreement))
        return EXIT_USAGE;
    if (!args_has(&t->args, "data"))
        return tool_usage(t, "--data random makes some up, which saturate less or more",
                          "saturation depends on data: --data is missing");
    s.file = t->args.operands[0];
    tool_catch_interrupt(NULL);
    int code = open_model(t, &s);
    const bool any = s.count > 0; /* else outputs are as they are, and need no data */
    if (code == EXIT_OK && any)
        code = dataset_open_spec(t, args_value(&t->args, "data"), DATASET_BATCH, s.model, &d);
    if (code == EXIT_OK && any)
        code = open_parts(t, &x);
    if (code == EXIT_OK && any)
        code = simulate_all(t, &x, d);
    if (code == EXIT_OK) {
        if (t->json)
            saturation_print_json(t, &s);
        else
            saturation_print(t, &s);
        code = any && comparison_fails(s.file, &s.outputs, &b) ? EXIT_BOUND : EXIT_OK;
    }
    close_parts(&x);
    dataset_close(d);
    saturation_close(&s);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    {"min-sqnr", "DB", "exit 3 if an output's SQNR is lower", 0, NULL},
    {"min-agreement", "P", "exit 3 if fewer than P percent of the classes agree", 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_saturation = {"saturation",
                              "MODEL --data SPEC",
                              "simulate INT8 sums of other runtimes on CPUs without VNNI",
                              options,
                              run,
                              false,
                              "int8.onnx --data photos --preprocess imagenet"};
