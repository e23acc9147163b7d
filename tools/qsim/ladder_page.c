/* SPDX-License-Identifier: MIT */
#include "ladder.h"

#include <math.h>
#include <stdlib.h>

enum { LOSS, TIME, SIZE, CHARTS };

static double value_of(const attempt *r, int what) {
    return what == LOSS   ? r->judgement.loss
           : what == TIME ? r->microseconds / 1e3
                          : (double)r->bytes;
}

static void show(const attempt *r, int what, char shown[32]) {
    if (what == LOSS)
        snprintf(shown, 32, "%.6f", r->judgement.loss);
    else if (what == TIME)
        (void)tool_time(r->microseconds / 1e3, shown);
    else
        (void)tool_bytes((double)r->bytes, shown);
}

static void draw(const ladder *l, int what, page *p) {
    const bool classes = l->count > 0 && !isnan(l->attempts[0].judgement.agreement);
    const char *const titles[CHARTS] = {
        classes ? "KL divergence from the float model; kept attempts in orange"
                : "Noise over signal; kept attempts in orange",
        "Time of a sample", "Size of the file"};
    chart_value *values = tool_alloc(l->count, sizeof(*values));
    char(*shown)[32] = tool_alloc(l->count, sizeof(*shown));
    text svg = {0};
    for (size_t i = 0; i < l->count; i++) {
        const attempt *r = &l->attempts[i];
        show(r, what, shown[i]);
        values[i] = (chart_value){r->what, value_of(r, what), shown[i], r->kept};
    }
    chart_values(&svg, titles[what], values, l->count);
    page_chart(p, &svg);
    text_free(&svg);
    free(values);
    free(shown);
}

void ladder_page(const ladder *l, page *p) {
    text table = {0};
    if (!p->path)
        return;
    page_heading(p, "Attempts");
    ladder_table(l, &table);
    page_lines(p, &table);
    for (int what = 0; what < CHARTS; what++)
        draw(l, what, p);
}
