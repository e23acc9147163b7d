/* SPDX-License-Identifier: MIT */
/* The attempts of qsim auto: each is printed as it ends. */
#include <math.h>
#include <string.h>

#include "ladder.h"

const char *const ladder_goals[] = {"accuracy", "size", "latency"};

static bool prints(const ladder *l) {
    return !l->tool->json && strcmp(l->q->output, "-") != 0;
}

static void put_heading(const ladder *l, text *out) {
    text_printf(out,
                "%s: %zu sample%s to search with, %zu unseen; at most %g %s lost, goal %s, %g "
                "s\n\n",
                tool_base_name(l->q->file), l->seen.samples, tool_plural((int64_t)l->seen.samples),
                l->unseen.samples, l->max_drop, ladder_unit(l), ladder_goals[l->goal], l->seconds);
    text_printf(out, "%8s  %9s  %9s  %8s  %10s  %10s    %s\n", "time", "loss", "agreement", "top-1",
                "size", "a sample", "attempt");
}

void ladder_percent(char capacity[16], double x) {
    if (isnan(x))
        snprintf(capacity, 16, "-");
    else
        snprintf(capacity, 16, "%.2f %%", x);
}

static void put_attempt(const attempt *r, text *out) {
    char agreement[16], top1[16], bytes[32], time[32];
    ladder_percent(agreement, r->judgement.agreement);
    ladder_percent(top1, r->judgement.top1);
    text_printf(out, "%6.1f s  %9.6f  %9s  %8s  %10s  %10s  %s %s%s\n", r->seconds,
                r->judgement.loss, agreement, top1, tool_bytes((double)r->bytes, bytes),
                tool_time(r->microseconds / 1e3, time), r->kept ? "*" : " ", r->what,
                r->met ? "" : " (loses too much)");
}

static void print(text *out) {
    fputs(out->data, stdout);
    fflush(stdout);
    text_free(out);
}

void ladder_heading(const ladder *l) {
    text out = {0};
    if (!prints(l))
        return;
    put_heading(l, &out);
    print(&out);
}

void ladder_table(const ladder *l, text *out) {
    put_heading(l, out);
    for (size_t i = 0; i < l->count; i++)
        put_attempt(&l->attempts[i], out);
    text_puts(out, "\n* kept: better by the goal than the best before it\n");
}

int32_t ladder_add(void *user, const qsim_attempt *a) {
    ladder *l = user;
    text out = {0};
    l->attempts = tool_grow(l->attempts, l->count + 1, sizeof(*l->attempts));
    attempt *r = &l->attempts[l->count++];
    *r = (attempt){.what = tool_copy(a->what),
                   .judgement = *a->judgement,
                   .bytes = a->bytes,
                   .microseconds = a->microseconds,
                   .seconds = (tool_now() - l->begun) / 1e3,
                   .floats = a->floats,
                   .kept = a->kept != 0,
                   .met = a->met != 0};
    if (l->count == 1)
        l->reserve = ladder_trial_ms(tool_now() - l->searching, l->seen.samples,
                                     l->on_unseen ? l->unseen.samples : l->seen.samples);
    if (a->kept)
        l->mode = a->mode;
    if (prints(l)) {
        put_attempt(r, &out);
        print(&out);
    }
    if (a->kept && strcmp(l->q->output, "-") != 0) {
        tool own = *l->tool;
        own.force = own.force || l->count > 1; /* the file is its own, from an earlier attempt */
        l->saved = tool_save_model(&own, a->model, l->q->output);
    }
    return l->saved != 0;
}
