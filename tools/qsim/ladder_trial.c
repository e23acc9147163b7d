/* SPDX-License-Identifier: MIT */
/* The trial of qsim auto: plain quantization and what was found, on samples that it has not seen.
 */
#include "ladder.h"
#include "modelinfo.h"

/* Makes the model of q->recipe, and the recipe with all decisions. */
static int make(const tool *t, quantizing *q) {
    qsim_error e;
    qsim_recipe_free(q->decided);
    q->decided = NULL;
    if (qsim_recipe_create(t->ctx, &q->decided, &e))
        return tool_error(t, q->file, &e);
    q->options.recipe = q->recipe;
    q->options.decided = q->decided;
    return qsim_quantize(q->model, q->calibration, &q->options, &q->result, &e)
               ? quantize_error(t, q, &e)
               : EXIT_OK;
}

/*
 * Whether plain quantization is better on samples that the search has not seen: what few samples
 * chose, others need not confirm. For other goals, and to meet --max-drop, accuracy may be lost.
 */
static bool is_plain_better(const ladder *l) {
    const trial_result *plain = &l->trial.of[0], *found = &l->trial.of[1];
    return l->on_unseen && l->goal == QSIM_GOAL_ACCURACY && plain->loss < found->loss &&
           (plain->drop <= l->max_drop || !(found->drop <= l->max_drop));
}

/*
 * Calibrates for the mode that was found, as the command that repeats the result does: observed for
 * other options, a network rounds differently in last bits. *begun gets the calibration so far.
 */
static int calibrate_again(const tool *t, ladder *l, qsim_calibration **begun) {
    quantizing *q = l->q;
    q->options.mode = l->mode;
    if (l->mode == QSIM_MODE_STATIC || l->interrupted)
        return EXIT_OK;
    *begun = q->calibration;
    q->calibration = NULL;
    return samples_calibrate(t, q, &l->seen);
}

/* Goes back to plain quantization. */
static int make_plain(const tool *t, ladder *l, qsim_recipe **begun,
                      qsim_calibration **calibration) {
    quantizing *q = l->q;
    qsim_recipe_free(q->recipe);
    q->recipe = *begun;
    *begun = NULL;
    qsim_model_free(q->result);
    q->result = NULL;
    q->options.mode = l->mode = QSIM_MODE_STATIC;
    if (*calibration) {
        qsim_calibration_free(q->calibration);
        q->calibration = *calibration;
        *calibration = NULL;
    }
    return make(t, q);
}

int ladder_try(const tool *t, ladder *l, qsim_recipe **begun) {
    quantizing *q = l->q;
    qsim_error e;
    qsim_model *plain = NULL;
    qsim_calibration *calibration = NULL;
    q->options.recipe = *begun;
    if (qsim_quantize(q->model, q->calibration, &q->options, &plain, &e))
        return quantize_error(t, q, &e);
    int code = calibrate_again(t, l, &calibration);
    if (code == EXIT_OK)
        code = make(t, q);
    const qsim_model *const models[2] = {plain, q->result};
    if (code == EXIT_OK)
        code = trial_run(t, q->file, q->model, models, l->on_unseen ? &l->unseen : &l->seen,
                         &l->trial);
    qsim_model_free(plain);
    l->kept_plain = code == EXIT_OK && is_plain_better(l);
    if (l->kept_plain)
        code = make_plain(t, l, begun, &calibration);
    qsim_calibration_free(calibration);
    return code == EXIT_OK ? tool_list_model(t, q->file, q->result) : code;
}
