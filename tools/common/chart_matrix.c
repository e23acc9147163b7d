/* SPDX-License-Identifier: MIT */
/* Matrices of class against class: confusion, and the difference of two. */
#include "common/chart.h"
#include "common/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Positions and sizes, computed once from the labels. */
typedef struct layout {
    double cell, left, top, right, bottom, font, label_font;
    double width, height, side;
} layout;

static const char *label(const chart *c, int i, char buffer[16]) {
    if (c->labels && c->labels[i])
        return c->labels[i];
    snprintf(buffer, 16, "%d", i);
    return buffer;
}

static layout lay_out(const chart *c, int digits) {
    layout l = {.label_font = 13};
    double longest = 0;
    char buffer[16];
    /* With many classes cells are small; numbers are left out where they would be unreadable. */
    l.cell = c->classes <= 12 ? 52 : c->classes <= 20 ? 40 : fmax(3, 900.0 / c->classes);
    if (l.cell < l.label_font * 1.3)
        l.label_font = fmax(2, l.cell / 1.3);
    for (int i = 0; i < c->classes; i++)
        longest = fmax(longest, svg_width(label(c, i, buffer), l.label_font));
    l.font = fmin(13, l.cell / (0.68 * digits + 0.4));
    l.side = l.cell * c->classes;
    l.left = 40 + longest;
    l.top = c->note ? 74 : 54;
    l.bottom = 44 + longest * 0.71 + l.label_font;
    l.right = 90;
    l.width = fmax(l.left + l.side + l.right, fmax(svg_width(c->title, 18), 300) + 40);
    if (c->note)
        l.width = fmax(l.width, svg_width(c->note, 12) + 40);
    l.height = l.top + l.side + l.bottom;
    return l;
}

static void draw_frame(text *t, const chart *c, const layout *l) {
    char buffer[16];
    svg_begin(t, l->width, l->height, c->title);
    svg_text(t, 20, 30, (svg_style){18, SVG_START, 0, svg_black}, c->title);
    if (c->note)
        svg_text(t, 20, 50, (svg_style){12, SVG_START, 0, svg_gray}, c->note);
    svg_rect(t, l->left - 1, l->top - 1, l->side + 2, l->side + 2, svg_pale, NULL);
    for (int i = 0; i < c->classes; i++) {
        double middle = (i + 0.5) * l->cell;
        svg_text(t, l->left - 8, l->top + middle + l->label_font * 0.35,
                 (svg_style){l->label_font, SVG_END, 0, svg_black}, label(c, i, buffer));
        svg_text(t, l->left + middle + l->label_font * 0.3,
                 l->top + l->side + 10 + l->label_font * 0.7,
                 (svg_style){l->label_font, SVG_END, -45, svg_black}, label(c, i, buffer));
    }
    svg_text(t, 20, l->top + l->side / 2, (svg_style){13, SVG_MIDDLE, -90, svg_gray}, "actual");
    svg_text(t, l->left + l->side / 2, l->height - 12, (svg_style){13, SVG_MIDDLE, 0, svg_gray},
             "predicted");
}

static void draw_cell(text *t, const chart *c, const layout *l, int row, int column,
                      svg_color color, const char *number) {
    char actual[16], predicted[16];
    text tip = {0};
    double x = l->left + column * l->cell, y = l->top + row * l->cell;
    double gap = l->cell > 8 ? 0.5 : 0;
    text_printf(&tip, "actual %s, predicted %s: %s", label(c, row, actual),
                label(c, column, predicted), number);
    svg_rect(t, x + gap, y + gap, l->cell - 2 * gap, l->cell - 2 * gap, color, tip.data);
    if (l->font >= 7)
        svg_text(t, x + l->cell / 2, y + l->cell / 2 + l->font * 0.36,
                 (svg_style){l->font, SVG_MIDDLE, 0, svg_ink(color)}, number);
    text_free(&tip);
}

typedef svg_color (*scale_fn)(double value);

static void draw_scale(text *t, const layout *l, scale_fn scale, double low, const char *top,
                       const char *bottom) {
    const int steps = 50;
    double x = l->left + l->side + 24, h = fmin(l->side, 260) / steps;
    for (int i = 0; i < steps; i++) {
        double value = 1 - (1 - low) * (i + 0.5) / steps;
        svg_rect(t, x, l->top + i * h, 14, h + 0.3, scale(value), NULL);
    }
    svg_text(t, x + 18, l->top + 10, (svg_style){11, SVG_START, 0, svg_gray}, top);
    svg_text(t, x + 18, l->top + steps * h, (svg_style){11, SVG_START, 0, svg_gray}, bottom);
}

static int count_digits(uint64_t n) {
    int digits = 1;
    for (; n > 9; n /= 10)
        digits++;
    return digits;
}

void chart_confusion(text *svg, const chart *c, const uint64_t *counts) {
    size_t n = (size_t)c->classes;
    uint64_t largest = 0;
    for (size_t i = 0; i < n * n; i++)
        largest = counts[i] > largest ? counts[i] : largest;
    layout l = lay_out(c, count_digits(largest));
    draw_frame(svg, c, &l);
    svg_rect(svg, l.left, l.top, l.side, l.side, svg_sequential(0), NULL);
    for (size_t row = 0; row < n; row++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += counts[row * n + k];
        for (size_t k = 0; k < n; k++) {
            uint64_t count = counts[row * n + k];
            char number[24];
            if (count == 0 && c->classes > 40)
                continue;
            snprintf(number, sizeof(number), "%llu", (unsigned long long)count);
            /* The square root lets rare confusions show beside the diagonal. */
            double share = sum ? sqrt((double)count / (double)sum) : 0;
            draw_cell(svg, c, &l, (int)row, (int)k, svg_sequential(share), number);
        }
    }
    double x = l.left + l.side + 24, h = fmin(l.side, 260);
    draw_scale(svg, &l, svg_sequential, 0, "100 %", "0 %");
    svg_text(svg, x + 18, l.top + h / 2 + 4, (svg_style){11, SVG_START, 0, svg_gray}, "25 %");
    svg_text(svg, x, l.top + h + 20, (svg_style){11, SVG_START, 0, svg_gray}, "of the row");
    svg_end(svg);
}

void chart_difference(text *svg, const chart *c, const uint64_t *before, const uint64_t *after) {
    size_t n = (size_t)c->classes;
    double largest = 1;
    for (size_t i = 0; i < n * n; i++)
        largest = fmax(largest, fabs((double)after[i] - (double)before[i]));
    layout l = lay_out(c, count_digits((uint64_t)largest) + 1);
    draw_frame(svg, c, &l);
    svg_rect(svg, l.left, l.top, l.side, l.side, svg_diverging(0), NULL);
    for (size_t i = 0; i < n * n; i++) {
        double d = (double)after[i] - (double)before[i];
        char number[32];
        if (d == 0 && c->classes > 40)
            continue;
        if (d == 0)
            snprintf(number, sizeof(number), "0");
        else
            snprintf(number, sizeof(number), "%s%.0f", d < 0 ? "\xe2\x88\x92" : "+", fabs(d));
        draw_cell(svg, c, &l, (int)(i / n), (int)(i % n), svg_diverging(d / largest), number);
    }
    char high[32], low[32];
    snprintf(high, sizeof(high), "+%.0f", largest);
    snprintf(low, sizeof(low), "\xe2\x88\x92%.0f", largest);
    draw_scale(svg, &l, svg_diverging, -1, high, low);
    svg_end(svg);
}
