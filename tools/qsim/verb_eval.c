/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset.h"
#include "common/progress.h"
#include "engine.h"
#include "evaluating.h"
#include "verbs.h"

#define LABELLED "X.npy,Y.npy, an .npz with x and y or an IDX pair has labels"
#define FILES_LABELLED                                                                             \
    "labels.txt in the folder (lines NAME NUMBER), FOLDER,LABELS or one folder for each class"

static const char *const outputs[] = {"csv", "svg", "svg-classes"};

/* The number of outputs that go to standard output. */
static int to_stdout(const tool *t) {
    int count = t->json;
    for (size_t i = 0; i < 3; i++)
        count +=
            args_has(&t->args, outputs[i]) && strcmp(args_value(&t->args, outputs[i]), "-") == 0;
    return count;
}

static int report(const tool *t, page *p, const evaluation *e, double min_top1) {
    const char *csv = args_value(&t->args, "csv");
    const double top1 = scores_percent(&e->scores, e->scores.top1);
    int code = csv ? eval_write_csv(t, csv, e) : EXIT_OK;
    if (code == EXIT_OK)
        code = eval_write_charts(t, e);
    if (code)
        return code;
    eval_draw_page(p, e);
    if (p->path || (!t->json && to_stdout(t) == 0)) {
        page_report_begin(t, p);
        eval_print_table(e);
        page_report_end(t, p);
    }
    if (t->json)
        eval_print_json(t, e);
    if (top1 < min_top1) {
        fprintf(stderr, "qsim: %s: top-1 %.4f %%, the bound is %g %%\n", e->file, top1, min_top1);
        code = EXIT_BOUND;
    }
    return e->against && eval_drops_too_much(e) ? EXIT_BOUND : code;
}

/* Classes numbered by the order of their folders must be all classes of the model. */
static int check_folders(const tool *t, const char *file, const dataset *d, const scores *s) {
    size_t folders = dataset_classes(d);
    if (folders == 0 || folders == s->classes)
        return EXIT_OK;
    return tool_usage(t, "--labels FILE with the model's class names, or folders named by number",
                      "%s: %zu folder%s of classes, and %s has %zu classes",
                      args_value(&t->args, "data"), folders, folders == 1 ? "" : "s", file,
                      s->classes);
}

/* ---- counting ---- */

/* Notes a wrong answer by its lead over the right class. */
static void note_wrong(evaluation *e, const dataset *d, const batch *b, const qsim_tensor *scored,
                       size_t row, size_t guess, bool lost) {
    const size_t classes = e->scores.classes, label = (size_t)b->labels[row];
    const double lead =
        element(scored, row * classes + guess) - element(scored, row * classes + label);
    char right[24], wrong[24];
    text caption = {0};
    dataset_name_row(d, b, row, &caption);
    text_printf(&caption, ": %.30s taken for %.30s", class_name(&e->names, label, right),
                class_name(&e->names, guess, wrong));
    thumbs_add(&e->wrong, &b->inputs[0], row, lead, caption.data);
    if (lost)
        thumbs_add(&e->lost, &b->inputs[0], row, lead, caption.data);
    text_free(&caption);
}

/* Looks at each answer to a batch, beside the reference's (NULL: there is none). */
static void note_answers(evaluation *e, const dataset *d, const batch *b, const qsim_tensor *scored,
                         const qsim_tensor *reference) {
    const size_t classes = e->scores.classes;
    for (size_t i = 0; i < (size_t)b->samples && (e->wrong.wanted || reference); i++) {
        const size_t label = (size_t)b->labels[i], guess = largest(scored, i * classes, classes);
        bool lost = false;
        if (reference) {
            const size_t other = largest(reference, i * classes, classes);
            pairing_add(&e->pair, label, other, guess);
            lost = other == label;
        }
        if (guess != label && e->wrong.wanted)
            note_wrong(e, d, b, scored, i, guess, lost);
    }
}

/* Adds the answers of both models; their first outputs score the same classes. */
static int add_scores(const tool *t, evaluation *e, const engine models[2], const dataset *d,
                      const batch *b) {
    const qsim_tensor *reference = e->against ? &models[1].outputs[0] : NULL;
    int code = scores_add(t, &e->scores, e->file, d, &models[0].outputs[0], b);
    if (code == EXIT_OK)
        code = check_folders(t, e->file, d, &e->scores);
    if (code == EXIT_OK)
        code = class_names_check(t, &e->names, e->scores.classes);
    if (code == EXIT_OK && reference) {
        const size_t classes = scores_count(reference, b->samples);
        if (classes && classes != e->scores.classes)
            return tool_usage(t, "--against takes a model of the same classes",
                              "%s scores %zu classes, %s %zu", e->file, e->scores.classes,
                              e->against, classes);
        code = scores_add(t, &e->reference, e->against, d, reference, b);
    }
    if (code == EXIT_OK)
        note_answers(e, d, b, &models[0].outputs[0], reference);
    return code;
}

/* Runs the models on a batch, each in its own types; notes whether Ctrl-C ended a run. */
static int run_batch(const tool *t, evaluation *e, engine models[2], dataset *d, const batch *b) {
    const char *const files[2] = {e->file, e->against};
    for (int k = 0; k < 2 && files[k]; k++) {
        qsim_error error;
        batch own = *b;
        const int code = k ? dataset_retype(d, models[k].model, &own) : EXIT_OK;
        if (code)
            return code;
        const int ran = engine_try(&models[k], own.inputs, own.input_count, &error);
        e->scores.interrupted = ran == QSIM_E_CANCELLED && e->scores.samples > 0;
        if (ran)
            return e->scores.interrupted ? EXIT_OK : tool_error(t, files[k], &error);
    }
    return EXIT_OK;
}

/* Counts answers; if interrupted, of the samples before the interrupt. */
static int count(const tool *t, evaluation *e, engine models[2], dataset *d) {
    progress p;
    batch b;
    scores *s = &e->scores;
    uint64_t total = (uint64_t)dataset_samples(d);
    int code;
    progress_begin(&p, t);
    while ((code = dataset_next(d, &b)) == EXIT_OK && b.samples > 0) {
        code = run_batch(t, e, models, d, &b);
        if (code || s->interrupted)
            break;
        code = add_scores(t, e, models, d, &b);
        if (code)
            break;
        progress_step(&p, "evaluating", s->samples, total);
    }
    progress_end(&p);
    if (s->interrupted)
        fprintf(stderr, "qsim: %s: interrupted; the figures are of %llu of %llu samples\n", e->file,
                (unsigned long long)s->samples, (unsigned long long)total);
    return code;
}

/* ---- the verb ---- */

#define UNLABELLED "without labels, qsim compare FLOAT MODEL --min-agreement P is a bound"

static int read_options(const tool *t, evaluation *e, double *min_top1) {
    if (!tool_percent(t, "min-top1", 0, min_top1) ||
        !tool_number(t, "max-drop", 0, 100, NAN, &e->max_drop))
        return EXIT_USAGE;
    e->against = args_value(&t->args, "against");
    if (args_has(&t->args, "max-drop") && !e->against)
        return tool_usage(t, NULL, "--max-drop goes with --against");
    if (to_stdout(t) > 1)
        return tool_usage(t, NULL, "eval: one thing at a time can go to standard output");
    if (!args_has(&t->args, "data"))
        return tool_usage(t, LABELLED, "eval: --data is missing");
    return EXIT_OK;
}

static int open_data(const tool *t, const evaluation *e, const engine *model, dataset **d) {
    int code = dataset_open(t, model->model, d);
    if (code == EXIT_OK && !dataset_has_labels(*d))
        code = tool_usage(t,
                          e->against             ? UNLABELLED
                          : dataset_is_files(*d) ? FILES_LABELLED
                                                 : LABELLED,
                          "%s: the data has no labels%s", args_value(&t->args, "data"),
                          args_has(&t->args, "labels") ? "; --labels names classes" : "");
    return code;
}

static void close_all(evaluation *e, engine models[2]) {
    class_names_free(&e->names);
    thumbs_free(&e->wrong);
    thumbs_free(&e->lost);
    scores_free(&e->scores);
    scores_free(&e->reference);
    engine_close(&models[0]);
    engine_close(&models[1]);
}

static int run(tool *t) {
    engine models[2] = {{0}};
    dataset *d = NULL;
    evaluation e = {0};
    page p;
    double min_top1;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    int code = read_options(t, &e, &min_top1);
    if (code)
        return code;
    e.file = t->args.operands[0];
    for (size_t i = 0; i < 3; i++)
        if (args_has(&t->args, outputs[i]) &&
            !tool_may_write(t, args_value(&t->args, outputs[i]), &code))
            return code;
    if (!page_open(t, &p, &code))
        return code;
    e.wrong.wanted = e.lost.wanted = p.path != NULL;
    code = engine_open(t, e.file, &models[0]);
    if (code == EXIT_OK && e.against)
        code = engine_open(t, e.against, &models[1]);
    if (code == EXIT_OK)
        code = open_data(t, &e, &models[0], &d);
    if (code == EXIT_OK)
        code = class_names_read(t, &e.names);
    if (code == EXIT_OK)
        code = count(t, &e, models, d);
    if (code == EXIT_OK)
        code = report(t, &p, &e, min_top1);
    code = page_close(t, &p, "qsim eval", code);
    if (code == EXIT_OK && e.scores.interrupted)
        code = EXIT_INTERRUPTED;
    dataset_close(d);
    close_all(&e, models);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    OPTION_LEVEL,
    {"labels", "FILE", "class names, one a line; or NUMBER,NAME", 0, NULL},
    {"csv", "FILE", "write per-class counts and the confusion matrix", 0, NULL},
    {"svg", "FILE", "draw the confusion matrix", 0, NULL},
    {"svg-classes", "FILE", "draw the accuracy per class", 0, NULL},
    {"min-top1", "P", "exit 3 if fewer than P percent are right", 0, NULL},
    {"against", "FILE", "also evaluate this model, for instance in float, on the same samples", 0,
     NULL},
    {"max-drop", "P", "exit 3 if top-1 is more than P points lower than with --against", 0, NULL},
    OPTION_HTML,
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_eval = {"eval",
                        "MODEL --data SPEC",
                        "measure a classifier: top-1, top-5, per class, confusion",
                        options,
                        run,
                        false,
                        "int8.onnx --data photos,labels.csv --preprocess imagenet --against "
                        "model.onnx --max-drop 0.5"};
