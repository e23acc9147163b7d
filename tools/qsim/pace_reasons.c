/* SPDX-License-Identifier: MIT */
#include "pace_reasons.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEP_US     0.5 /* shorter steps are mostly overhead */
#define MOST_SLOWER 3

static void add(text *why, const char *part) {
    text_printf(why, "%s%s", why->size ? "; " : "", part);
}

/* The time of one kind of steps, and the longest of them. */
static double spent(const pace_step *s, size_t n, pace_kind kind, const pace_step **longest) {
    double sum = 0;
    *longest = NULL;
    for (size_t i = 0; i < n; i++)
        if (s[i].kind == kind) {
            sum += s[i].us;
            *longest = !*longest || s[i].us > (*longest)->us ? &s[i] : *longest;
        }
    return sum;
}

static double us_of(const pace_step *s, size_t n, const char *node) {
    double sum = 0;
    for (size_t i = 0; i < n && *node; i++)
        sum += strcmp(s[i].node, node) == 0 ? s[i].us : 0;
    return sum;
}

/* The time that a step of B takes more than its node in A; 0: none, or A has no such node. */
static double lost(const pace_step *a, size_t m, const pace_step *b) {
    const double before = b->kind == IN_INTEGERS ? us_of(a, m, b->node) : 0;
    return before > 0 && b->us >= before * PACE_LEAST_GAIN ? b->us - before : 0;
}

/* Names the layers that lose most, the worst first. */
static void explain_slower(const pace_step *a, size_t m, const pace_step *b, size_t n, text *why) {
    text line = {0};
    double below = INFINITY;
    for (int found = 0; found < MOST_SLOWER; found++) {
        const pace_step *worst = NULL;
        for (size_t i = 0; i < n; i++) {
            const double own = lost(a, m, &b[i]);
            if (own > 0 && own < below && (!worst || own > lost(a, m, worst)))
                worst = &b[i];
        }
        if (!worst)
            break;
        below = lost(a, m, worst);
        text_printf(&line, "%s'%.60s' %.3g -> %.3g \xc2\xb5s",
                    found ? ", " : "slower layers: ", worst->node, us_of(a, m, worst->node),
                    worst->us);
    }
    if (line.size)
        add(why, line.data);
    text_free(&line);
}

void pace_reasons(const pace_step *a, size_t m, const pace_step *b, size_t n, text *why) {
    const pace_step *longest, *other, *layer;
    char line[256];
    const double floats = spent(b, n, IN_FLOATS, &longest);
    const double between = spent(b, n, CONVERTING, &other);
    const double all = floats + between + spent(b, n, IN_INTEGERS, &layer);
    if (longest && floats > 0.2 * all) {
        snprintf(line, sizeof(line),
                 "%.0f %% of its time stays in floats, '%.60s' (%s) most of all",
                 100 * floats / all, longest->node, longest->op_type);
        add(why, line);
    }
    if (other && between > 0.15 * all) {
        snprintf(line, sizeof(line),
                 "%.0f %% goes into conversions between floats and integers, '%.60s' most of all",
                 100 * between / all, other->node);
        add(why, line);
    }
    if (all < STEP_US * (double)n) {
        snprintf(
            line, sizeof(line),
            "too small: its %zu steps take %.3g \xc2\xb5s each, mostly their own beginning and "
            "end",
            n, all / (double)n);
        add(why, line);
    }
    const size_t known = why->size;
    explain_slower(a, m, b, n, why);
    if (why->size == known && layer && all >= STEP_US * (double)n) {
        snprintf(line, sizeof(line), "of its integer layers '%.60s' takes longest, %.3g \xc2\xb5s",
                 layer->node, layer->us);
        add(why, line);
    }
    if (!why->size)
        text_puts(why, "no single layer; qsim profile tells where the time goes");
}
