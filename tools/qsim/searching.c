/* SPDX-License-Identifier: MIT */
/* --search: holds the data in memory and runs every candidate on it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/progress.h"
#include "quantizing.h"
#include "samples.h"

/* Refuses options of the annealing without it; false: one was given. */
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

/* Most samples for the methods of `flags`, which run them again and again. */
#define REFINED 128

/* Options that need data, in the order of their methods. */
static const char *const flags[] = {"equalize", "smooth", "fallback", "refine"};

bool quantize_searches(const tool *t, const quantizing *q) {
    bool any = q->chooses || (q->judges && q->calibration) || args_has(&t->args, "search");
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        any |= args_has(&t->args, flags[i]);
    return any;
}

/* The option that asks for a search, for messages. */
static const char *asking(const tool *t, const quantizing *q) {
    size_t i = 0;
    if (q->chooses || args_has(&t->args, "search"))
        return q->chooses ? "method auto" : "search";
    while (i + 1 < sizeof(flags) / sizeof(*flags) && !args_has(&t->args, flags[i]))
        i++;
    return flags[i];
}

/* Lists the methods: factors between layers, ranges or those of --search, then --fallback,
 * --refine.
 */
static void list_methods(const tool *t, const quantizing *q, text *out) {
    const char *kind = args_value(&t->args, "search");
    const char *const wanted[] = {
        args_has(&t->args, flags[0]) ? flags[0] : NULL,
        args_has(&t->args, flags[1]) ? flags[1] : NULL,
        !q->chooses && !q->judges             ? NULL
        : q->options.mode == QSIM_MODE_STATIC ? "ranges"
                                              : "correction",
        kind && strcmp(kind, "anneal") != 0 ? "greedy" : NULL,
        kind && strcmp(kind, "greedy") != 0 ? "anneal" : NULL,
        args_has(&t->args, flags[2]) ? flags[2] : NULL,
        args_has(&t->args, flags[3]) ? flags[3] : NULL,
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        if (wanted[i])
            text_printf(out, "%s%s", out->size ? "," : "", wanted[i]);
}

static int read_options(const tool *t, qsim_search_options *o) {
    const char *seed = args_value(&t->args, "seed");
    int64_t steps;
    if (seed && !parse_uint64(seed, &o->seed))
        return tool_usage(t, NULL, "--seed is '%s', not a whole number", seed);
    if (!tool_int(t, "steps", 1, 1000000, 200, &steps) ||
        !tool_number(t, "max-drop", 0, 100, 0, &o->max_drop) ||
        !tool_number(t, "percentile", 50, 100, 0, &o->start_percentile))
        return EXIT_USAGE;
    if (args_has(&t->args, "max-drop"))
        o->max_drop = fmax(o->max_drop, LEAST_DROP);
    o->steps = (int32_t)steps;
    return EXIT_OK;
}

/* Records the candidates; the first is the plain model. */
static int32_t on_attempt(void *user, const qsim_attempt *a) {
    quantizing *q = user;
    if (isnan(q->plain_loss))
        q->plain_loss = a->judgement->loss;
    q->has_classes = !isnan(a->judgement->agreement);
    q->attempts = tool_grow(q->attempts, q->attempt_count + 1, sizeof(*q->attempts));
    q->attempts[q->attempt_count++] =
        (search_attempt){tool_copy(a->what ? a->what : ""), a->judgement->loss,
                         a->judgement->agreement, a->bytes, a->kept != 0};
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
    o->labels = NULL; /* accuracy moves by whole samples, the loss does not, and needs no labels */
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
    if (q->judges && (code == QSIM_E_UNSUPPORTED || code == QSIM_E_SHAPE)) {
        tool_note(t, "biases are corrected unjudged: %s", e.message);
        q->searched = false;
        return EXIT_OK;
    }
    return code && !q->interrupted ? quantize_error(t, q, &e) : EXIT_OK;
}

/*
 * Samples that tell whether correcting biases gains: more of them where they are small, since what
 * it gains or loses in dynamic mode may be little.
 */
#define JUDGED_BYTES (64 << 20)
#define LEAST_JUDGED 32
#define JUDGED       1024

static size_t most_samples(const tool *t, const quantizing *q) {
    qsim_value_info x = {.struct_size = sizeof(x)};
    double bytes = 4;
    if (args_has(&t->args, "search") || q->chooses)
        return SIZE_MAX;
    if (!q->judges || qsim_model_input(q->model, 0, &x))
        return REFINED;
    for (int32_t i = 1; i < x.rank; i++)
        bytes *= x.dims[i] > 0 ? (double)x.dims[i] : INFINITY;
    const double most = isfinite(bytes) ? JUDGED_BYTES / bytes : REFINED;
    return most < LEAST_JUDGED ? LEAST_JUDGED : most > JUDGED ? JUDGED : (size_t)most;
}

int quantize_search(const tool *t, quantizing *q) {
    samples s = {.samples = 0};
    text list = {0};
    qsim_search_options o = {.struct_size = sizeof(o)};
    int code = read_options(t, &o);
    list_methods(t, q, &list);
    o.methods = list.data;
    if (code == EXIT_OK && !q->data)
        code = tool_usage(t, NULL, "--%s needs --data", asking(t, q));
    if (code == EXIT_OK)
        dataset_rewind(q->data);
    if (code == EXIT_OK)
        code = samples_read(t, q->data, q->model, most_samples(t, q), &s, NULL);
    if (code == EXIT_OK)
        code = search(t, q, &s, &o);
    samples_free(&s);
    text_free(&list);
    return code;
}

/* ---- candidates ---- */

int quantize_save_attempts(const tool *t, const quantizing *q) {
    const char *path = args_value(&t->args, "attempts");
    text out = {0};
    if (!path)
        return EXIT_OK;
    text_puts(&out, "attempt,loss,agreement_percent,bytes,best_so_far,what\n");
    for (size_t i = 0; i < q->attempt_count; i++) {
        const search_attempt *a = &q->attempts[i];
        text_printf(&out, "%zu,%.9g,", i + 1, a->loss);
        if (!isnan(a->agreement))
            text_printf(&out, "%.9g", a->agreement);
        text_puts(&out, ",");
        if (a->bytes > 0)
            text_printf(&out, "%lld", (long long)a->bytes);
        text_printf(&out, ",%d,\"", a->kept);
        for (const char *c = a->what; *c; c++)
            text_printf(&out, *c == '"' ? "\"\"" : "%c", *c);
        text_puts(&out, "\"\n");
    }
    int code = tool_write(t, path, out.data, out.size);
    text_free(&out);
    return code;
}

void quantize_json_attempts(json *j, const quantizing *q) {
    json_array(j, "attempts");
    for (size_t i = 0; i < q->attempt_count; i++) {
        const search_attempt *a = &q->attempts[i];
        json_line(j, NULL);
        json_string(j, "what", a->what);
        json_number(j, "loss", a->loss);
        json_number(j, "agreement", a->agreement);
        json_int(j, "bytes", a->bytes);
        json_bool(j, "best", a->kept);
        json_end(j);
    }
    json_end(j);
}

void quantize_attempts_free(quantizing *q) {
    for (size_t i = 0; i < q->attempt_count; i++)
        free(q->attempts[i].what);
    free(q->attempts);
}
