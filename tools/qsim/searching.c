/* SPDX-License-Identifier: MIT */
/* --search: the data is held in memory and every candidate is run over it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/progress.h"
#include "quantizing.h"
#include "samples.h"

/* Options of the annealing where there is none; false: one was given. */
bool quantize_search_fits(const tool *t) {
    static const char *const names[] = {"seed", "steps", "max-drop"};
    const char *search = args_value(&t->args, "search");
    if (search && strcmp(search, "greedy") != 0)
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (args_has(&t->args, names[i])) {
            (void)tool_usage(t, NULL, "--%s goes with --search anneal or both", names[i]);
            return false;
        }
    return true;
}

static int read_options(const tool *t, qsim_search_options *o) {
    const char *kind = args_value(&t->args, "search");
    const char *seed = args_value(&t->args, "seed");
    int64_t steps;
    if (seed && !parse_uint64(seed, &o->seed))
        return tool_usage(t, NULL, "--seed is '%s', not a whole number", seed);
    if (!tool_int(t, "steps", 1, 1000000, 200, &steps) ||
        !tool_number(t, "max-drop", 0.001, 100, 0, &o->max_drop) ||
        !tool_number(t, "percentile", 0.001, 100, 0, &o->start_percentile))
        return EXIT_USAGE;
    o->methods = !kind ? "ranges" : strcmp(kind, "both") == 0 ? "greedy,anneal" : kind;
    o->steps = (int32_t)steps;
    return EXIT_OK;
}

/* Remembers the plain candidate. */
static int32_t on_attempt(void *user, const qsim_attempt *a) {
    quantizing *q = user;
    if (isnan(q->plain_loss))
        q->plain_loss = a->judgement->loss;
    q->has_classes = !isnan(a->judgement->agreement);
    return 0;
}

static int search(const tool *t, quantizing *q, const samples *s, qsim_search_options *o) {
    progress p;
    qsim_error e;
    qsim_recipe *found = NULL;
    double best = 0;
    if (qsim_recipe_create(t->ctx, &found, &e))
        return tool_error(t, q->file, &e);
    progress_begin(&p, t);
    samples_give(s, o);
    o->labels = NULL; /* accuracy moves in steps of a sample; the loss does not, and needs none */
    o->label_count = 0;
    o->attempt = on_attempt;
    o->attempt_user = q;
    o->progress = progress_step;
    o->progress_user = &p;
    q->plain_loss = NAN;
    int code = qsim_search(q->model, q->calibration, &q->options, o, found, &best, &e);
    progress_end(&p);
    qsim_recipe_free(q->recipe);
    q->options.recipe = q->recipe = found;
    q->searched = true;
    q->found_loss = -best;
    q->interrupted = code == QSIM_E_CANCELLED && tool_interrupted();
    return code && !q->interrupted ? quantize_error(t, q, &e) : EXIT_OK;
}

int quantize_search(const tool *t, quantizing *q) {
    samples s = {.samples = 0};
    qsim_search_options o = {.struct_size = sizeof(o)};
    int code = read_options(t, &o);
    if (code == EXIT_OK && !q->data)
        code = tool_usage(t, NULL, "%s needs --data",
                          args_has(&t->args, "search") ? "--search" : "--method auto");
    if (code == EXIT_OK)
        dataset_rewind(q->data);
    if (code == EXIT_OK)
        code = samples_read(q->data, q->model, SIZE_MAX, &s, NULL);
    if (code == EXIT_OK)
        code = search(t, q, &s, &o);
    samples_free(&s);
    return code;
}
