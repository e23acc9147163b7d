/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "common/progress.h"
#include "ladder.h"
#include "verbs.h"

#define SEARCHED 256  /* most samples for the search, which runs them again and again */
#define TRIED    2000 /* most samples for the trial */

/* ---- samples ---- */

/* Reads samples: half of them at most are for the search, the rest for the trial. */
static int read_samples(const tool *t, ladder *l) {
    const int64_t all = dataset_samples(l->q->data);
    size_t half = all > 0 ? ((size_t)all + 1) / 2 : SEARCHED;
    int code = samples_read(t, l->q->data, l->q->model, half < SEARCHED ? half : SEARCHED, &l->seen,
                            &l->unseen);
    if (code == EXIT_OK && l->seen.samples > 0)
        code = samples_read(t, l->q->data, l->q->model, TRIED, &l->unseen, NULL);
    if (code == EXIT_OK)
        code = samples_check_labels(t, l->q->file, l->q->model, l->q->data, &l->seen);
    if (code == EXIT_OK)
        code = samples_check_labels(t, l->q->file, l->q->model, l->q->data, &l->unseen);
    l->on_unseen = l->unseen.samples > 0;
    if (code == EXIT_OK && l->seen.samples < 8)
        tool_warn(t, "%zu sample%s to search with: 32 to 256 tell more", l->seen.samples,
                  tool_plural((int64_t)l->seen.samples));
    return code;
}

/* ---- the search ---- */

typedef struct searching {
    progress p;
    const ladder *l;
    bool late; /* the search was ended so that the trial is in time */
} searching;

/*
 * A qsim_progress_fn. It is called before each run of a candidate, so that a candidate is given up
 * that cannot be judged in time.
 */
static int32_t step(void *user, const char *what, uint64_t done, uint64_t total) {
    searching *s = user;
    s->late = ladder_ends(s->l, tool_now());
    return progress_step(&s->p, what, done, total) || s->late;
}

static int search(const tool *t, ladder *l) {
    quantizing *q = l->q;
    searching s = {.l = l};
    qsim_error e;
    qsim_recipe *found = NULL;
    qsim_search_options o = {.struct_size = sizeof(o), .attempt = ladder_add, .attempt_user = l};
    if (qsim_recipe_create(t->ctx, &found, &e))
        return tool_error(t, q->file, &e);
    l->searching = tool_now();
    ladder_give(l, &o);
    ladder_heading(l);
    progress_begin(&s.p, t);
    if (!s.p.terminal)
        s.p.silent = true; /* attempts are lines of their own */
    o.progress = step;
    o.progress_user = &s;
    int code = qsim_search(q->model, q->calibration, &q->options, &o, found, NULL, &e);
    progress_end(&s.p);
    if (l->costs.unknown)
        tool_warn(t, "%s does not have all units: those count as 0",
                  args_value(&t->args, "latency"));
    l->over = ladder_ends(l, tool_now());
    l->interrupted = code == QSIM_E_CANCELLED && tool_interrupted() && l->count > 0;
    if (code == QSIM_E_CANCELLED && s.late && !l->interrupted)
        code = QSIM_OK;
    qsim_recipe_free(q->recipe);
    q->recipe = found;
    if (l->saved && !l->interrupted) /* after an interrupt the end saves once more */
        return l->saved;
    return code && !l->interrupted ? quantize_error(t, q, &e) : EXIT_OK;
}

/* Where options cannot repeat the result, names the saved recipe, or saves one beside OUTPUT. */
static int keep_recipe(const tool *t, ladder *l) {
    const char *named = args_value(&t->args, "save-recipe");
    qsim_error e;
    if (!ladder_needs_recipe(l) || strcmp(l->q->output, "-") == 0)
        return EXIT_OK;
    l->recipe = named ? named : l->own_recipe;
    if (named)
        return EXIT_OK;
    const int code = qsim_recipe_save(l->q->decided, l->own_recipe, 1, &e);
    return tool_written(t, l->own_recipe, code, &e);
}

static int finish(const tool *t, page *p, ladder *l) {
    quantizing *q = l->q;
    const char *report = args_value(&t->args, "report");
    json j = {0};
    tool own = *t;
    own.force = true; /* the best model so far is there */
    int code = tool_save_model(&own, q->result, q->output);
    if (code == EXIT_OK)
        code = recipe_save(t, q);
    if (code == EXIT_OK)
        code = keep_recipe(&own, l);
    l->met = ladder_result(l)->drop <= l->max_drop;
    ladder_command(l);
    if (code == EXIT_OK && report)
        code = ladder_report(l, report);
    if (code || strcmp(q->output, "-") == 0)
        return code;
    ladder_page(l, p);
    if (p->path || !t->json) {
        page_report_begin(t, p);
        ladder_print(l);
        page_report_end(t, p);
    }
    if (t->json) {
        ladder_json(l, &j);
        tool_print_json(t, &j);
    }
    if (l->met)
        return EXIT_OK;
    fprintf(stderr, "qsim: %s: loses %.4g %s, more than --max-drop %g; %s is the best found\n",
            q->file, ladder_result(l)->drop, ladder_unit(l), l->max_drop, q->output);
    return EXIT_BOUND;
}

/* --labels FILE adds the file to --data, as X,FILE does. */
static int open_data(tool *t, quantizing *q) {
    const char *labels = args_value(&t->args, "labels");
    text spec = {0};
    if (labels && strchr(args_value(&t->args, "data"), ','))
        return tool_usage(t, NULL, "--labels '%s': --data names labels already", labels);
    text_puts(&spec, args_value(&t->args, "data"));
    if (labels)
        text_printf(&spec, ",%s", labels);
    const int code = dataset_open_spec(t, spec.data, DATASET_BATCH, q->model, &q->data);
    free(spec.data);
    if (code == EXIT_OK && labels && !dataset_has_labels(q->data))
        return tool_fail(t, QSIM_E_VALUE, "%s: no labels of %s", labels,
                         args_value(&t->args, "data"));
    return code;
}

static int run_on(tool *t, page *p, ladder *l) {
    quantizing *q = l->q;
    qsim_recipe *begun = NULL;
    qsim_error e;
    tool_catch_interrupt(t->ctx); /* from here on Ctrl-C is reported in one line */
    int code = tool_load_model(t, q->file, 0, &q->model);
    if (code == EXIT_OK)
        code = recipe_open(t, q);
    if (code == EXIT_OK)
        code = open_data(t, q);
    if (code == EXIT_OK)
        code = read_samples(t, l);
    q->options.keep_moments = ladder_keeps_moments(l);
    if (code == EXIT_OK)
        code = samples_calibrate(t, q, &l->seen);
    q->options.keep_moments = 0;
    if (code == EXIT_OK && (qsim_recipe_create(t->ctx, &begun, &e) ||
                            (q->recipe && qsim_recipe_merge(begun, q->recipe, &e))))
        code = tool_error(t, q->file, &e);
    if (code == EXIT_OK)
        code = search(t, l);
    if (code == EXIT_OK)
        code = ladder_try(t, l, &begun);
    qsim_recipe_free(begun);
    return code ? code : finish(t, p, l);
}

static int run(tool *t) {
    static const char *const outputs[] = {"output", "save-recipe", "report"};
    quantizing q = {.output = args_value(&t->args, "output")};
    ladder l = {.tool = t, .q = &q, .begun = tool_now()};
    page p;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    q.file = t->args.operands[0];
    if (!q.output)
        return tool_usage(t, "for instance -o model-int8.onnx", "auto: -o FILE is missing");
    if (!args_has(&t->args, "data"))
        return tool_usage(t, "--data SPEC names one", "auto: --data is missing");
    for (size_t i = 0; i < sizeof(outputs) / sizeof(*outputs); i++) {
        const char *path = args_value(&t->args, outputs[i]);
        if (path && !(i == 0 ? tool_may_write_model : tool_may_write)(t, path, &code))
            return code;
    }
    if (!args_has(&t->args, "save-recipe") && strcmp(q.output, "-") != 0) {
        text path = {0};
        text_printf(&path, "%s.qrecipe", q.output);
        l.own_recipe = path.data;
        if (!tool_may_write(t, path.data, &code)) {
            free(path.data);
            return code;
        }
    }
    if (!page_open(t, &p, &code))
        return code;
    code = quantize_options(t, &q);
    if (code == EXIT_OK)
        code = ladder_options(t, &l);
    if (code == EXIT_OK)
        code = run_on(t, &p, &l);
    code = page_close(t, &p, "qsim auto", code);
    ladder_free(&l);
    quantize_close(&q);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    {"labels", "FILE", "classes of the samples, if --data does not name them", 0, NULL},
    {"max-drop", "P", "points of top-1 (without labels: of agreement) that may be lost (1)", 0,
     NULL},
    {"budget", "TIME", "how long all may take: 60s, 5m, 1h (60s)", 0, NULL},
    {"goal", "NAME", "what to improve within --max-drop (accuracy)", 0, "accuracy|size|latency"},
    {"bits", "LIST",
     "types to try: 4 (with --goal size), 8, 16 (activations), float; for all: dynamic, weights "
     "(8,float,dynamic,weights)",
     0, NULL},
    {"latency", "FILE", "times of units from qsim sensitivity (CSV, JSON), instead of measuring", 0,
     NULL},
    OPTION_NO_CLASSES,
    OPTION_RANGES,
    {"set", "GLOB=int8|int4|int16|fp32", "fixed type of the nodes with this name or operator", 0,
     NULL},
    {"recipe", "FILE", "begin with these settings of layers and tensors", 0, NULL},
    {"save-recipe", "FILE", "write the settings of each layer and tensor", 0, NULL},
    {"report", "FILE", "write the attempts and the choice: Markdown, or JSON for FILE.json", 0,
     NULL},
    OPTION_HTML,
    OPTION_OUTPUT("the best model so far, rewritten whenever a better one is found"),
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_auto = {
    "auto",
    "MODEL --data SPEC -o FILE",
    "search for the best quantized model in limited time",
    options,
    run,
    false,
    "model.onnx --data photos,labels.csv --preprocess imagenet --budget 5m -o int8.onnx"};
