/* SPDX-License-Identifier: MIT */
#include "pace_reasons.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "name_index.h"

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

/* The times of the nodes of a model, by the number of their first step. */
typedef struct node_times {
    name_index steps;
    double *us;
} node_times;

static void sum_nodes(const pace_step *s, size_t n, node_times *times) {
    *times = (node_times){.us = tool_alloc(n, sizeof(*times->us))};
    for (size_t i = 0; i < n; i++)
        name_index_add(&times->steps, s[i].node, (int32_t)i);
    name_index_sort(&times->steps);
    for (size_t i = 0; i < n; i++)
        times->us[name_index_find(&times->steps, s[i].node)] += s[i].us;
}

/* A step of B that takes longer than its node in A. */
typedef struct slower {
    const pace_step *step;
    double before, lost;
} slower;

static slower compare_step(const node_times *a, const pace_step *b) {
    const bool is_layer = b->kind == IN_INTEGERS && *b->node;
    const int32_t at = is_layer ? name_index_find(&a->steps, b->node) : -1;
    const double before = at < 0 ? 0 : a->us[at];
    const bool is_slower = before > 0 && b->us >= before * PACE_LEAST_GAIN;
    return is_slower ? (slower){b, before, b->us - before} : (slower){NULL, 0, 0};
}

/* Names the layers that lose most, the worst first. */
static void explain_slower(const pace_step *a, size_t m, const pace_step *b, size_t n, text *why) {
    slower worst[MOST_SLOWER + 1] = {{NULL, 0, 0}};
    text line = {0};
    node_times times;
    sum_nodes(a, m, &times);
    for (size_t i = 0; i < n; i++) {
        int k = MOST_SLOWER;
        worst[k] = compare_step(&times, &b[i]);
        for (; k > 0 && worst[k].lost > worst[k - 1].lost; k--) {
            const slower other = worst[k];
            worst[k] = worst[k - 1];
            worst[k - 1] = other;
        }
    }
    for (int k = 0; k < MOST_SLOWER && worst[k].step; k++)
        text_printf(&line, "%s'%.60s' %.3g -> %.3g \xc2\xb5s",
                    k ? ", " : "slower layers: ", worst[k].step->node, worst[k].before,
                    worst[k].step->us);
    if (line.size)
        add(why, line.data);
    text_free(&line);
    name_index_free(&times.steps);
    free(times.us);
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
