/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A model and its run, which works after Ctrl-C, too: that interrupted only the search. */
typedef struct player {
    qsim_session *session;
    qsim_run *run;
    qsim_tensor *outputs;
    void *floats; /* memory for the first output's floats, if it is in half precision */
    size_t count;
} player;

static int open_player(const qsim_model *m, player *p, qsim_error *e) {
    int code = qsim_session_create(m, NULL, &p->session, e);
    if (!code)
        code = qsim_run_create(p->session, &p->run, e);
    p->count = code ? 0 : (size_t)qsim_session_output_count(p->session);
    p->outputs = tool_alloc(p->count + 1, sizeof(*p->outputs));
    return code;
}

static void close_player(player *p) {
    qsim_run_free(p->run);
    qsim_session_free(p->session);
    free(p->outputs);
    free(p->floats);
}

/* Outputs in half precision are compared as floats. */
static int widen(player *p, qsim_error *e) {
    const qsim_tensor y = p->outputs[0];
    if (y.dtype != QSIM_FLOAT16 && y.dtype != QSIM_BFLOAT16)
        return QSIM_OK;
    free(p->floats);
    p->floats = tool_alloc(y.bytes, 2);
    p->outputs[0] = (qsim_tensor){QSIM_FLOAT, y.rank, y.dims, p->floats, 2 * y.bytes};
    return qsim_tensor_convert(&y, &p->outputs[0], e);
}

static int play(player *p, const samples *s, size_t first, qsim_error *e) {
    memset(p->outputs, 0, p->count * sizeof(*p->outputs));
    int code = qsim_run_execute(p->run, s->inputs + first, s->per_batch, p->outputs, p->count, e);
    return code ? code : widen(p, e);
}

/* Adds the counts of one batch, whose labels begin at `at`. */
static void count_batch(const samples *s, const player p[3], size_t at, trial *t,
                        uint64_t right[3]) {
    const qsim_tensor *y = &p[0].outputs[0];
    const size_t rows = y->rank > 0 ? (size_t)y->dims[0] : 0;
    const size_t classes = rows ? y->bytes / sizeof(float) / rows : 0;
    for (size_t r = 0; s->labelled && classes > 1 && r < rows && at + r < s->rows; r++) {
        const size_t label = (size_t)s->labels[at + r];
        size_t answer[3];
        if (s->labels[at + r] < 0)
            continue;
        for (size_t k = 0; k < 3; k++) {
            answer[k] = largest(&p[k].outputs[0], r * classes, classes);
            right[k] += answer[k] == label;
        }
        for (size_t k = 0; k < 2; k++)
            pairing_add(&t->of[k].pair, label, answer[0], answer[k + 1]);
        t->labelled++;
    }
}

static void conclude(trial *t, const qsim_divergence d[2], const uint64_t right[3]) {
    const double n = (double)t->labelled;
    t->rows = d[0].rows;
    t->float_top1 = t->labelled ? 100 * (double)right[0] / n : NAN;
    for (size_t k = 0; k < 2; k++) {
        trial_result *r = &t->of[k];
        r->loss = qsim_divergence_loss(&d[k]);
        r->agreement = qsim_divergence_agreement(&d[k]);
        r->top1 = t->labelled ? 100 * (double)right[k + 1] / n : NAN;
        r->drop = t->labelled           ? pairing_drop(&r->pair)
                  : isnan(r->agreement) ? 100 * sqrt(r->loss)
                                        : 100 * (double)(t->rows - d[k].agree) / (double)t->rows;
        r->error = t->labelled ? pairing_error(&r->pair) : proportion_error(r->agreement, t->rows);
        r->p = t->labelled ? qsim_mcnemar(r->pair.lost, r->pair.won) : NAN;
    }
}

int trial_run(const tool *t, const char *file, const qsim_model *reference,
              const qsim_model *const models[2], const samples *s, trial *out) {
    player p[3] = {{0}};
    qsim_divergence d[2] = {{.struct_size = sizeof(*d)}, {.struct_size = sizeof(*d)}};
    uint64_t right[3] = {0};
    qsim_error e = {0};
    size_t at = 0;
    memset(out, 0, sizeof(*out));
    out->samples = s->samples;
    int code = open_player(reference, &p[0], &e);
    for (size_t k = 0; k < 2 && !code; k++)
        code = open_player(models[k], &p[k + 1], &e);
    for (size_t i = 0; i < s->count && !code; i += s->per_batch) {
        for (size_t k = 0; k < 3 && !code; k++)
            code = play(&p[k], s, i, &e);
        const char *name = qsim_session_output_name(p[0].session, 0);
        for (size_t k = 0; k < 2 && !code && i == 0; k++)
            d[k].answer =
                s->no_classes ? QSIM_ANSWER_VALUES : qsim_answer_of(name, p[0].outputs[0].rank);
        for (size_t k = 0; k < 2 && !code; k++)
            code = qsim_divergence_add(&d[k], &p[0].outputs[0], &p[k + 1].outputs[0]);
        if (code)
            break;
        count_batch(s, p, at, out, right);
        at += s->inputs[i].rank > 0 ? (size_t)s->inputs[i].dims[0] : 1;
    }
    for (size_t k = 0; k < 3; k++)
        close_player(&p[k]);
    if (!code)
        conclude(out, d, right);
    if (!code)
        return EXIT_OK;
    return e.code ? tool_error(t, file, &e)
                  : tool_fail(t, code, "%s: answers cannot be compared: %s", file,
                              qsim_error_text(code));
}
