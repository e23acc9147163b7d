/* SPDX-License-Identifier: MIT */
#include "pace_reasons.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The time of a node. */
typedef struct node_time {
    const char *node;
    double us;
} node_time;

static int by_node(const void *a, const void *b) {
    return strcmp(((const node_time *)a)->node, ((const node_time *)b)->node);
}

/* The times of the nodes of steps, sorted by name, each once; *count: their number. */
static node_time *times_of(const pace_step *s, size_t n, size_t *count) {
    node_time *times = tool_alloc(n, sizeof(*times));
    *count = 0;
    for (size_t i = 0; i < n; i++)
        times[i] = (node_time){s[i].node, s[i].us};
    if (n)
        qsort(times, n, sizeof(*times), by_node);
    for (size_t i = 0; i < n; i++) {
        if (*count && strcmp(times[*count - 1].node, times[i].node) == 0)
            times[*count - 1].us += times[i].us;
        else
            times[(*count)++] = times[i];
    }
    return times;
}

/* A step of B that takes longer than its node in A. */
typedef struct slower {
    const pace_step *step;
    double before, lost;
} slower;

static slower compare_step(const node_time *times, size_t count, const pace_step *b) {
    const node_time key = {.node = b->node};
    const node_time *a = b->kind != IN_INTEGERS || !*b->node || !count
                             ? NULL
                             : bsearch(&key, times, count, sizeof(key), by_node);
    const bool is_slower = a && a->us > 0 && b->us >= a->us * PACE_LEAST_GAIN;
    return is_slower ? (slower){b, a->us, b->us - a->us} : (slower){NULL, 0, 0};
}

/* Names the layers that lose most, the worst first. */
static void explain_slower(const pace_step *a, size_t m, const pace_step *b, size_t n, text *why) {
    slower worst[MOST_SLOWER + 1] = {{NULL, 0, 0}};
    text line = {0};
    size_t count;
    node_time *times = times_of(a, m, &count);
    for (size_t i = 0; i < n; i++) {
        int k = MOST_SLOWER;
        worst[k] = compare_step(times, count, &b[i]);
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
    free(times);
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
