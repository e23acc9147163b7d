/* SPDX-License-Identifier: MIT */
/* qsim-train-lenet: trains LeNetLite in FP32 and writes it as ONNX. */
#include "common/progress.h"

#include "demo_data.h"
#include "program.h"
#include "train_export.h"
#include "train_fit.h"
#include "train_procedural.h"

#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 8 /* passes per batch: more threads would idle */

typedef struct training {
    tool *tool;
    demo_data data;
    train_team *team;
    train_fit *fit;
    int64_t seed, epochs;
    double seconds;
    size_t validation, test; /* correct images */
} training;

static train_set as_set(const demo_set *s) {
    return (train_set){s->images, s->labels, s->count};
}

static double percent(size_t right, const demo_set *s) {
    return 100.0 * (double)right / (double)s->count;
}

static int start_fit(training *tr) {
    const int32_t threads = qsim_ctx_threads(tr->tool->ctx);
    tr->team = team_create(threads < MAX_THREADS ? (size_t)threads : MAX_THREADS);
    if (tr->team)
        tr->fit =
            fit_create(tr->team, as_set(&tr->data.train), (uint64_t)tr->seed, (size_t)tr->epochs);
    return tr->fit ? EXIT_OK : tool_fail(tr->tool, QSIM_E_NOMEM, "cannot start training");
}

/* Runs all epochs, each followed by an evaluation on the validation images. */
static int train(training *tr) {
    const size_t steps = fit_steps_per_epoch(tr->fit), total = steps * (size_t)tr->epochs;
    const double start = tool_now();
    progress p;
    progress_begin(&p, tr->tool);
    for (size_t step = 0; step < total; step++) {
        char what[64];
        snprintf(what, sizeof(what), "epoch %zu of %lld", step / steps + 1, (long long)tr->epochs);
        fit_step(tr->fit);
        /* Without a terminal, the line printed after each epoch shows progress. */
        if (p.terminal ? progress_step(&p, what, step + 1, total) : tool_interrupted()) {
            progress_end(&p);
            return EXIT_INTERRUPTED;
        }
        if ((step + 1) % steps != 0)
            continue;
        tr->validation = fit_evaluate(tr->fit, as_set(&tr->data.validation));
        progress_end(&p);
        if (!tr->tool->quiet)
            fprintf(stderr, "%s: validation %.2f %%\n", what,
                    percent(tr->validation, &tr->data.validation));
    }
    tr->test = fit_evaluate(tr->fit, as_set(&tr->data.test));
    tr->seconds = (tool_now() - start) / 1e3;
    return EXIT_OK;
}

static int save(training *tr, const char *path) {
    qsim_model *model = NULL;
    qsim_error e = {0};
    void *bytes = NULL;
    size_t size = 0;
    int status = train_export(fit_params(tr->fit), tr->data.name, (uint64_t)tr->seed,
                              (size_t)tr->epochs, &model, &e);
    if (status == QSIM_OK)
        status = qsim_model_save_memory(model, NULL, 0, &size, &e);
    if (status == QSIM_OK) {
        bytes = tool_alloc(size, 1);
        status = qsim_model_save_memory(model, bytes, size, &size, &e);
    }
    const int code = status == QSIM_OK ? tool_write(tr->tool, path, bytes, size)
                                       : tool_error(tr->tool, path, &e);
    free(bytes);
    qsim_model_free(model);
    return code;
}

static int report(const training *tr, const char *path) {
    const demo_data *d = &tr->data;
    if (tr->tool->json) {
        json j = {0};
        json_object(&j, NULL);
        json_int(&j, "schema", 1);
        json_string(&j, "file", path);
        json_string(&j, "data", d->name);
        json_int(&j, "seed", tr->seed);
        json_int(&j, "epochs", tr->epochs);
        json_number(&j, "seconds", tr->seconds);
        json_number(&j, "validation_top1", percent(tr->validation, &d->validation));
        json_number(&j, "test_top1", percent(tr->test, &d->test));
        json_end(&j);
        return tool_print_json(tr->tool, &j);
    }
    FILE *out = strcmp(path, "-") == 0 ? stderr : stdout;
    fprintf(out, "%s: LeNetLite, %d parameters (%.2f KB), trained on %s\n", path, NET_PARAMS,
            NET_PARAMS * 4 / 1024.0, d->name);
    fprintf(out, "%zu images, %lld epochs, seed %lld, %zu threads: %.1f s\n", d->train.count,
            (long long)tr->epochs, (long long)tr->seed, team_size(tr->team), tr->seconds);
    fprintf(out, "validation %.2f %% of %zu, test %.2f %% of %zu\n",
            percent(tr->validation, &d->validation), d->validation.count,
            percent(tr->test, &d->test), d->test.count);
    return EXIT_OK;
}

static int make_procedural(tool *t, const char *dir) {
    qsim_error e = {0};
    int64_t count;
    if (!tool_int(t, "count", 10, 60000, 60000, &count))
        return EXIT_USAGE;
    if (procedural_write(dir, (size_t)count, (size_t)count / 6, &e) != QSIM_OK)
        return tool_error(t, dir, &e);
    if (!t->quiet)
        fprintf(stderr, "%s: %lld training and %lld test images, drawn (procedural)\n", dir,
                (long long)count, (long long)count / 6);
    return EXIT_OK;
}

static int run(tool *t) {
    training tr = {.tool = t};
    int code = EXIT_OK;
    const char *dir = args_value(&t->args, "data"), *path = args_value(&t->args, "output");
    if (args_value(&t->args, "make-procedural"))
        return make_procedural(t, args_value(&t->args, "make-procedural"));
    if (!dir || !path)
        return tool_usage(t, "qsim-train-lenet --data DIR -o MODEL.onnx", "--%s is missing",
                          dir ? "output" : "data");
    if (!tool_int(t, "seed", 0, INT64_MAX, 1, &tr.seed) ||
        !tool_int(t, "epochs", 1, 1000, 12, &tr.epochs))
        return EXIT_USAGE;
    if (!tool_may_write(t, path, &code))
        return code;
    code = demo_data_load(t, dir, &tr.data);
    if (code == EXIT_OK)
        code = start_fit(&tr);
    if (code == EXIT_OK)
        code = train(&tr);
    if (code == EXIT_OK)
        code = save(&tr, path);
    if (code == EXIT_OK)
        code = report(&tr, path);
    fit_free(tr.fit);
    team_free(tr.team);
    demo_data_free(&tr.data);
    return code;
}

static const option options[] = {
    {"data", "DIR", "folder of the Fashion-MNIST files (IDX, plain or .gz)", 0, NULL},
    OPTION_OUTPUT("the ONNX model to write"),
    OPTION_FORCE,
    {"epochs", "N", "passes over the training images (12)", 0, NULL},
    {"seed", "N", "of weights and order; the same seed gives the same bytes (1)", 0, NULL},
    {"make-procedural", "DIR", "only draw a data set into DIR, for when there is no other", 0,
     NULL},
    {"count", "N", "training images to draw; a sixth as many for the test (60000)", 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

static const verb train_verb = {
    .name = "qsim-train-lenet",
    .operands = "--data DIR -o MODEL.onnx",
    .summary = "Trains LeNetLite, a small convolutional network, in FP32 and writes it as ONNX.",
    .options = options,
    .run = run,
};

int main(int argc, char **argv) {
    return program_main(&train_verb, 0, argc, argv);
}
