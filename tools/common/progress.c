/* SPDX-License-Identifier: MIT */
#include "common/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"

#define QUIET_MS 2000.0

void progress_begin(progress *p, const tool *t) {
    const char *term = getenv("TERM");
    *p = (progress){.t = t, .silent = t->quiet};
    p->terminal = isatty(2) && term && strcmp(term, "dumb") != 0;
    p->start = p->last = tool_now();
    tool_catch_interrupt(t->ctx);
}

static void draw_bar(const char *what, uint64_t done, uint64_t total, double elapsed) {
    char bar[31];
    double share = total ? (double)done / (double)total : 0;
    int filled = (int)(share * 30);
    memset(bar, '-', 30);
    memset(bar, '#', (size_t)(filled < 0 ? 0 : filled > 30 ? 30 : filled));
    bar[30] = 0;
    fprintf(stderr, "\r\x1b[K[%s] %3.0f %%", bar, share * 100);
    if (done > 0 && done < total)
        fprintf(stderr, "  %.0f s left", elapsed / 1000 * (1 - share) / share);
    fprintf(stderr, "  %s", what);
    fflush(stderr);
}

int32_t progress_step(void *user, const char *what, uint64_t done, uint64_t total) {
    progress *p = user;
    double now = tool_now();
    double pause = p->terminal ? 100 : 1000;
    if (!p->silent && now - p->start >= QUIET_MS && (now - p->last >= pause || !p->drawn)) {
        text name = {0};
        utf8_printable(&name, what ? what : "", 40);
        if (p->terminal)
            draw_bar(name.data ? name.data : "", done, total, now - p->start);
        else
            fprintf(stderr, "[%llu/%llu] %s\n", (unsigned long long)done, (unsigned long long)total,
                    name.data ? name.data : "");
        text_free(&name);
        p->last = now;
        p->drawn = true;
        p->t->state->bar_drawn = p->terminal;
    }
    return tool_interrupted();
}

void progress_clear(const tool *t) {
    if (t->state->bar_drawn)
        fputs("\r\x1b[K", stderr);
    t->state->bar_drawn = false;
}

void progress_end(progress *p) {
    progress_clear(p->t);
    tool_after_interrupt();
    p->drawn = false;
}
