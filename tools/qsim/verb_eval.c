/* SPDX-License-Identifier: MIT */
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

static int report(const tool *t, page *p, const char *file, const scores *s, const class_names *n,
                  const thumbs *worst, double bound) {
    const char *csv = args_value(&t->args, "csv");
    int code = csv ? eval_write_csv(t, csv, s, n) : EXIT_OK;
    if (code == EXIT_OK)
        code = eval_write_charts(t, file, s, n);
    if (code == EXIT_OK) {
        eval_draw_page(p, file, s, n, worst);
        if (p->path || (!t->json && to_stdout(t) == 0)) {
            page_report_begin(t, p);
            eval_print_table(file, s, n);
            page_report_end(t, p);
        }
        if (t->json)
            eval_print_json(t, file, s, n);
        if (scores_percent(s, s->top1) < bound) {
            fprintf(stderr, "qsim: %s: top-1 %.4f %%, the bound is %g %%\n", file,
                    scores_percent(s, s->top1), bound);
            code = EXIT_BOUND;
        }
    }
    return code;
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

/* Notes wrong answers, ordered by their lead over the right class. */
static void note_wrong(thumbs *worst, const class_names *n, const dataset *d, const batch *b,
                       const qsim_tensor *scored) {
    const size_t classes = elements(scored) / (size_t)b->samples;
    for (size_t i = 0; i < (size_t)b->samples && worst->wanted; i++) {
        const size_t guess = largest(scored, i * classes, classes), label = (size_t)b->labels[i];
        char right[24], wrong[24];
        text caption = {0};
        if (guess == label)
            continue;
        dataset_name_row(d, b, i, &caption);
        text_printf(&caption, ": %.30s taken for %.30s", class_name(n, label, right),
                    class_name(n, guess, wrong));
        thumbs_add(worst, &b->inputs[0], i,
                   element(scored, i * classes + guess) - element(scored, i * classes + label),
                   caption.data);
        text_free(&caption);
    }
}

/* Counts answers; if s->interrupted, of the samples before the interrupt. */
static int count(const tool *t, const char *file, engine *e, dataset *d, const class_names *n,
                 scores *s, thumbs *worst) {
    progress p;
    batch b;
    qsim_error error;
    uint64_t total = (uint64_t)dataset_samples(d);
    int code;
    progress_begin(&p, t);
    while ((code = dataset_next(d, &b)) == EXIT_OK && b.samples > 0) {
        int ran = engine_try(e, b.inputs, b.input_count, &error);
        s->interrupted = ran == QSIM_E_CANCELLED && s->samples > 0;
        if (s->interrupted)
            break;
        code = ran ? tool_error(t, file, &error) : scores_add(t, s, file, d, &e->outputs[0], &b);
        if (code == EXIT_OK)
            code = check_folders(t, file, d, s);
        if (code == EXIT_OK)
            code = class_names_check(t, n, s->classes);
        if (code)
            break;
        note_wrong(worst, n, d, &b, &e->outputs[0]);
        progress_step(&p, "evaluating", s->samples, total);
    }
    progress_end(&p);
    if (s->interrupted)
        fprintf(stderr, "qsim: %s: interrupted; the figures are of %llu of %llu samples\n", file,
                (unsigned long long)s->samples, (unsigned long long)total);
    return code;
}

static int run(tool *t) {
    engine e = {0};
    dataset *d = NULL;
    scores s = {0};
    thumbs worst = {0};
    class_names n = {0};
    page p;
    double bound;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1) || !tool_percent(t, "min-top1", 0, &bound))
        return EXIT_USAGE;
    if (to_stdout(t) > 1)
        return tool_usage(t, NULL, "eval: one thing at a time can go to standard output");
    if (!args_has(&t->args, "data"))
        return tool_usage(t, LABELLED, "eval: --data is missing");
    const char *file = t->args.operands[0];
    for (size_t i = 0; i < 3; i++)
        if (args_has(&t->args, outputs[i]) &&
            !tool_may_write(t, args_value(&t->args, outputs[i]), &code))
            return code;
    if (!page_open(t, &p, &code))
        return code;
    worst.wanted = p.path != NULL;
    code = engine_open(t, file, &e);
    if (code == EXIT_OK)
        code = dataset_open(t, e.model, &d);
    if (code == EXIT_OK && !dataset_has_labels(d))
        code = tool_usage(t, dataset_is_files(d) ? FILES_LABELLED : LABELLED,
                          "%s: the data has no labels%s", args_value(&t->args, "data"),
                          args_has(&t->args, "labels") ? "; --labels names classes" : "");
    if (code == EXIT_OK)
        code = class_names_read(t, &n);
    if (code == EXIT_OK)
        code = count(t, file, &e, d, &n, &s, &worst);
    if (code == EXIT_OK)
        code = report(t, &p, file, &s, &n, &worst, bound);
    code = page_close(t, &p, "qsim eval", code);
    class_names_free(&n);
    thumbs_free(&worst);
    if (code == EXIT_OK && s.interrupted)
        code = EXIT_INTERRUPTED;
    dataset_close(d);
    engine_close(&e);
    scores_free(&s);
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
                        "int8.onnx --data photos,labels.csv --preprocess imagenet --min-top1 70"};
