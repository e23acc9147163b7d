/* SPDX-License-Identifier: MIT */
/*
 * Tries the candidates of a flow: every combination of the values of its choices. Joint search
 * varies all passes together; pass by pass, each one is settled before the next.
 */
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "modelinfo.h"

#define MOST_CANDIDATES 4096

typedef struct walk {
    const tool *t;
    const job *j;
    const job_flow *f;
    const qsim_model *input;
    const job_result *base;
    qsim_calibration **kept; /* calibrations of the input model, per pass */
    qsim_recipe **made;      /* the candidate's recipes, per pass */
    size_t *picks;
    double start;
} walk;

static size_t first_pick(const job_flow *f, size_t pass) {
    size_t at = 0;
    for (size_t i = 0; i < pass; i++)
        at += f->passes[i].choice_count;
    return at;
}

/* Combinations of the choices of passes [first, last], at most MOST_CANDIDATES + 1. */
static size_t combinations(const job_flow *f, size_t first, size_t last) {
    size_t n = 1;
    for (size_t i = first; i <= last && i < f->count; i++)
        for (size_t k = 0; k < f->passes[i].choice_count; k++) {
            size_t values = f->passes[i].choices[k].count;
            n *= values ? values : 1;
            if (n > MOST_CANDIDATES)
                return MOST_CANDIDATES + 1;
        }
    return n;
}

static void pick(walk *w, size_t first, size_t last, size_t number) {
    size_t at = first_pick(w->f, first);
    for (size_t i = first; i <= last && i < w->f->count; i++)
        for (size_t k = 0; k < w->f->passes[i].choice_count; k++) {
            size_t values = w->f->passes[i].choices[k].count;
            w->picks[at++] = values ? number % values : 0;
            number /= values ? values : 1;
        }
}

static void free_recipes(qsim_recipe **recipes, size_t count) {
    for (size_t i = 0; i < count; i++)
        qsim_recipe_free(recipes[i]);
    free(recipes);
}

/* Makes the model after passes [0, last], and the recipes of these passes. */
static int build(walk *w, size_t last, qsim_model **out) {
    const qsim_model *m = w->input;
    int code = EXIT_OK;
    *out = NULL;
    free_recipes(w->made, w->made ? w->f->count : 0);
    w->made = tool_alloc(w->f->count, sizeof(*w->made));
    for (size_t i = 0; i <= last && i < w->f->count && code == EXIT_OK; i++) {
        const job_pass *p = &w->f->passes[i];
        job_made made = {0};
        if (p->action != ACTION_QUANTIZE)
            continue;
        code = job_quantize(w->t, w->j, p, w->picks + first_pick(w->f, i), m,
                            m == w->input ? &w->kept[i] : NULL, &made);
        if (code)
            break;
        qsim_model_free(*out);
        *out = made.model;
        w->made[i] = made.recipe;
        m = made.model;
    }
    return code;
}

void job_best_free(job_best *b) {
    qsim_model_free(b->model);
    free(b->result.values);
    free(b->picks);
    job_candidates_free(b);
    judge_close(&b->judged);
    qsim_calibration_free(b->calibration);
    pace_free(&b->pace);
    text_free(&b->session);
    free_recipes(b->recipes, b->recipe_count);
    memset(b, 0, sizeof(*b));
}

static void keep(walk *w, qsim_model *m, const job_result *result, job_best *best) {
    size_t n = first_pick(w->f, w->f->count);
    size_t *picks = tool_alloc(n, sizeof(*picks));
    if (n > 0)
        memcpy(picks, w->picks, n * sizeof(*picks));
    qsim_model_free(best->model);
    free(best->result.values);
    free(best->picks);
    best->model = m;
    best->result = *result;
    best->picks = picks;
    free_recipes(best->recipes, best->recipe_count);
    best->recipes = w->made;
    best->recipe_count = w->f->count;
    w->made = NULL;
}

/* Records a candidate. */
static job_candidate *add_candidate(const walk *w, size_t last, const job_result *result,
                                    job_best *best) {
    const size_t n = w->j->metric_count;
    best->candidates = tool_grow(best->candidates, best->tried + 1, sizeof(*best->candidates));
    job_candidate *c = &best->candidates[best->tried++];
    *c = (job_candidate){.values = tool_alloc(n, sizeof(*c->values)), .good = result->good};
    for (size_t i = 0; i < n; i++)
        c->values[i] = result->values[i];
    for (size_t i = 0; i <= last && i < w->f->count; i++)
        if (w->f->passes[i].action == ACTION_QUANTIZE) {
            text_puts(&c->command, c->command.size ? "; " : "");
            job_command(&w->f->passes[i], w->picks + first_pick(w->f, i), &c->command);
        }
    return c;
}

static void say_candidate(const walk *w, size_t at, size_t count, const job_candidate *c) {
    text line = {0};
    char label[48];
    if (w->t->quiet || w->t->json || count < 2)
        return;
    job_candidate_line(w->j, c, &line);
    snprintf(label, sizeof(label), "%zu/%zu", at, count);
    table_line(label, "%s", line.data);
    fflush(stdout);
    text_free(&line);
}

static int try_one(walk *w, size_t last, size_t at, size_t count, job_best *best, bool first) {
    qsim_model *m = NULL;
    job_result result = {0};
    int code = build(w, last, &m);
    if (code == EXIT_OK)
        code = job_measure(w->t, w->j, w->input, m ? m : w->input, "the result", w->base, &result);
    if (code) {
        qsim_model_free(m);
        free(result.values);
        return code;
    }
    say_candidate(w, at, count, add_candidate(w, last, &result, best));
    if (first || job_better(w->j, &result, &best->result)) {
        keep(w, m, &result, best);
        best->chosen = best->tried - 1;
    } else {
        qsim_model_free(m);
        free(result.values);
    }
    return EXIT_OK;
}

/* Indices of the candidates in the order of trying. */
static size_t *draw_order(const walk *w, size_t count) {
    size_t *order = tool_alloc(count, sizeof(*order));
    uint64_t state = w->j->seed * 2 + 1;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i-- > 1 && w->j->algorithm == SEARCH_RANDOM;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t other = (size_t)(state >> 33) % (i + 1), spare = order[i];
        order[i] = order[other];
        order[other] = spare;
    }
    return order;
}

static int try_stage(walk *w, size_t first, size_t last, job_best *best) {
    size_t count = combinations(w->f, first, last);
    if (count > MOST_CANDIDATES)
        return tool_usage(w->t, "fewer values, or pass-by-pass", "%s: more than %d candidates",
                          w->j->file, MOST_CANDIDATES);
    size_t *order = draw_order(w, count);
    size_t wanted =
        w->j->samples > 0 && (size_t)w->j->samples < count ? (size_t)w->j->samples : count;
    int code = EXIT_OK;
    best->possible += count;
    for (size_t i = 0; i < wanted && code == EXIT_OK; i++) {
        if (i > 0 && w->j->seconds > 0 && tool_now() - w->start > w->j->seconds * 1000)
            break;
        pick(w, first, last, order[i]);
        code = try_one(w, last, i + 1, wanted, best, i == 0);
    }
    free(order);
    /*
     * Results found before an interrupt are kept; if there are none, the reason has been reported.
     */
    best->interrupted |= code == EXIT_INTERRUPTED;
    if (code == EXIT_INTERRUPTED && best->picks)
        code = EXIT_OK;
    if (best->picks && first_pick(w->f, w->f->count) > 0)
        memcpy(w->picks, best->picks, first_pick(w->f, w->f->count) * sizeof(*w->picks));
    return code;
}

static int search(walk *w, job_best *best) {
    size_t last = w->f->count ? w->f->count - 1 : 0;
    int code = EXIT_OK;
    if (!w->j->pass_by_pass)
        return try_stage(w, 0, last, best);
    for (size_t i = 0; i <= last && code == EXIT_OK; i++)
        if (!best->interrupted && (i == last || combinations(w->f, i, i) > 1))
            code = try_stage(w, i, i, best);
    return code;
}

int job_run_flow(const tool *t, const job *j, const job_flow *f, const qsim_model *input,
                 const job_result *base, job_best *best) {
    walk w = {.t = t, .j = j, .f = f, .input = input, .base = base, .start = tool_now()};
    w.kept = tool_alloc(f->count, sizeof(*w.kept));
    w.picks = tool_alloc(first_pick(f, f->count), sizeof(*w.picks));
    int code = search(&w, best);
    for (size_t i = 0; i < f->count && code == EXIT_OK; i++)
        if (f->passes[i].action == ACTION_TUNE && !best->interrupted)
            code = job_tune(t, j, &f->passes[i], best->model ? best->model : input, &best->session);
    for (size_t i = 0; i < f->count && code == EXIT_OK; i++)
        if (f->passes[i].action == ACTION_SENSITIVITY && !best->interrupted)
            code = job_sensitivity(t, j, f, &f->passes[i], input);
    if (code == EXIT_OK)
        code = job_judge(t, j, f, input, w.kept, best);
    for (size_t i = 0; i < f->count; i++) {
        if (w.kept[i] && w.kept[i] == best->judged.calibration)
            best->calibration = w.kept[i];
        else
            qsim_calibration_free(w.kept[i]);
    }
    free_recipes(w.made, w.made ? f->count : 0);
    free(w.kept);
    free(w.picks);
    return code;
}
