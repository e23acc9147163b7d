/* SPDX-License-Identifier: MIT */
/* Accuracy per class as horizontal bars: labels stay readable however long they are. */
#include "common/chart.h"
#include "common/svg.h"

#include <math.h>
#include <stdio.h>

#define BAR   17.0
#define GAP   12.0
#define WIDTH 520.0

static const char *label(const chart *c, int i, char buffer[16]) {
    if (c->labels && c->labels[i])
        return c->labels[i];
    snprintf(buffer, 16, "%d", i);
    return buffer;
}

static void draw_axis(text *t, double left, double top, double height) {
    for (int v = 0; v <= 100; v += 20) {
        double x = left + WIDTH * v / 100;
        char number[16];
        snprintf(number, sizeof(number), "%d %%", v);
        svg_line(t, x, top - 4, x, top + height, svg_pale);
        svg_text(t, x, top + height + 16, (svg_style){11, SVG_MIDDLE, 0, svg_gray}, number);
    }
}

static void draw_bar(text *t, double left, double y, double value, svg_color color) {
    char number[16] = "no data";
    double w = 0;
    if (!isnan(value)) {
        snprintf(number, sizeof(number), "%.1f", value);
        w = WIDTH * value / 100;
        svg_rect(t, left, y, fmax(w, 0.5), BAR - 2, color, NULL);
    }
    svg_text(t, left + w + 5, y + BAR * 0.68, (svg_style){11, SVG_START, 0, svg_black}, number);
}

static void draw_legend(text *t, double left, double y, const chart_series *series, int count,
                        const svg_color *colors) {
    for (int s = 0; s < count; s++) {
        svg_rect(t, left, y - 10, 12, 12, colors[s], NULL);
        svg_text(t, left + 18, y, (svg_style){12, SVG_START, 0, svg_black}, series[s].name);
        left += 40 + svg_width(series[s].name, 12);
    }
}

void chart_bars(text *svg, const chart *c, const chart_series *series, int count) {
    const svg_color colors[] = {svg_blue, svg_orange};
    char buffer[16];
    double longest = 0, group = BAR * count + GAP;
    for (int i = 0; i < c->classes; i++)
        longest = fmax(longest, svg_width(label(c, i, buffer), 13));
    double left = longest + 30, top = c->note ? 96 : 76, height = group * c->classes;
    double width = fmax(left + WIDTH + 60, svg_width(c->title, 18) + 40);
    if (c->note)
        width = fmax(width, svg_width(c->note, 12) + 40);
    svg_begin(svg, width, top + height + 34, c->title);
    svg_text(svg, 20, 30, (svg_style){18, SVG_START, 0, svg_black}, c->title);
    if (c->note)
        svg_text(svg, 20, 50, (svg_style){12, SVG_START, 0, svg_gray}, c->note);
    draw_legend(svg, left, top - 16, series, count, colors);
    draw_axis(svg, left, top, height);
    for (int i = 0; i < c->classes; i++) {
        double y = top + i * group + GAP / 2;
        svg_text(svg, left - 8, y + BAR * count / 2 + 4, (svg_style){13, SVG_END, 0, svg_black},
                 label(c, i, buffer));
        for (int s = 0; s < count; s++)
            draw_bar(svg, left, y + s * BAR, series[s].percent[i], colors[s]);
    }
    svg_end(svg);
}
