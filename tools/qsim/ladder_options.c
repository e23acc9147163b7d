/* SPDX-License-Identifier: MIT */
/* Reads the options of qsim auto. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ladder.h"

#define ROUNDED 1000000 /* weights of the largest model that GPTQ rounding is tried on */

/* "60", "60s", "1.5m", "1h". */
static int read_budget(const tool *t, double *seconds) {
    const char *s = args_value(&t->args, "budget");
    char *end;
    *seconds = 60;
    if (!s)
        return EXIT_OK;
    *seconds = strtod(s, &end);
    const bool number = end != s && *seconds > 0 && *seconds < 1e7;
    const double unit = strcmp(end, "m") == 0                ? 60
                        : strcmp(end, "h") == 0              ? 3600
                        : *end == 0 || strcmp(end, "s") == 0 ? 1
                                                             : 0;
    if (!number || unit == 0)
        return tool_usage(t, "for instance --budget 60s, 5m or 1h",
                          "--budget is '%s', not a time above 0", s);
    *seconds *= unit;
    return EXIT_OK;
}

/*
 * --bits: the bits that a unit may have, and other modes for all. Options that are for activations
 * with scales say what the model is for: then other modes have to be asked for.
 */
static int read_bits(const tool *t, ladder *l) {
    static const struct {
        const char *word;
        int32_t bits;
    } words[] = {{"4", QSIM_BITS_4},
                 {"8", 0},
                 {"16", QSIM_BITS_16},
                 {"float", QSIM_BITS_FLOAT},
                 {"dynamic", QSIM_BITS_DYNAMIC},
                 {"weights", QSIM_BITS_WEIGHTS}};
    const char *list = args_value(&t->args, "bits");
    const bool given = list != NULL;
    const size_t count = sizeof(words) / sizeof(*words);
    const bool fixed = args_has(&t->args, "activations") || args_has(&t->args, "symmetric");
    l->bits = given   ? 0
              : fixed ? QSIM_BITS_FLOAT
                      : QSIM_BITS_FLOAT | QSIM_BITS_DYNAMIC | QSIM_BITS_WEIGHTS;
    while (list) {
        const size_t n = strcspn(list, ",");
        size_t i = 0;
        while (i < count && !(strlen(words[i].word) == n && strncmp(words[i].word, list, n) == 0))
            i++;
        if (i == count)
            return tool_usage(t, NULL,
                              "--bits: '%.*s' is none of 4, 8, 16, float, dynamic, weights", (int)n,
                              list);
        l->bits |= words[i].bits;
        list = list[n] ? list + n + 1 : NULL;
    }
    if (given && !l->bits)
        l->bits = QSIM_BITS_8;
    if (l->bits & QSIM_BITS_4 && l->goal != QSIM_GOAL_SIZE)
        return tool_usage(t, NULL, "--bits 4 goes with --goal size: 4 bits take as long as 8");
    return EXIT_OK;
}

int ladder_options(const tool *t, ladder *l) {
    static const char *const goals[] = {"accuracy", "size", "latency"};
    const char *goal = args_value(&t->args, "goal");
    for (int32_t i = 0; goal && i < 3; i++)
        if (strcmp(goal, goals[i]) == 0)
            l->goal = i;
    if (!tool_number(t, "max-drop", 0, 100, 1, &l->max_drop))
        return EXIT_USAGE;
    int code = read_budget(t, &l->seconds);
    if (!code)
        code = read_bits(t, l);
    const char *table = args_value(&t->args, "latency");
    return code || !table ? code : costs_read(t, table, &l->costs);
}

int32_t ladder_keeps_moments(const ladder *l) {
    return qsim_model_parameters(l->q->model) <= ROUNDED || (l->bits & QSIM_BITS_4) != 0;
}

void ladder_give(ladder *l, qsim_search_options *o) {
    o->methods = "auto";
    o->goal = l->goal;
    o->max_drop = fmax(l->max_drop, LEAST_DROP);
    /* What is left; > 0, since 0 would be no limit. */
    o->seconds = fmax(l->seconds - (l->searching - l->begun) / 1e3, 1e-9);
    o->bits = l->bits;
    o->cost = l->costs.count ? costs_say : NULL;
    o->cost_user = &l->costs;
    samples_give(&l->seen, o);
}
