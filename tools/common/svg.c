/* SPDX-License-Identifier: MIT */
#include "common/svg.h"

#include <math.h>

const svg_color svg_black = {34, 34, 34}, svg_gray = {110, 110, 110}, svg_pale = {225, 225, 225},
                svg_white = {255, 255, 255}, svg_blue = {33, 102, 172}, svg_orange = {217, 120, 20};

/* Adds XML text: markup is escaped, control characters and broken bytes become '?'. */
void svg_escaped(text *t, const char *s) {
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '&')
            text_puts(t, "&amp;");
        else if (c == '<')
            text_puts(t, "&lt;");
        else if (c == '>')
            text_puts(t, "&gt;");
        else if (c == '"')
            text_puts(t, "&quot;");
        else if ((c < 0x20 && c != '\n') || c == 0x7f)
            text_puts(t, "?");
        else
            text_add(t, s, 1);
    }
}

static void add_color(text *t, const char *attribute, svg_color c) {
    text_printf(t, " %s=\"#%02x%02x%02x\"", attribute, (unsigned)c.r, (unsigned)c.g, (unsigned)c.b);
}

void svg_begin(text *t, double width, double height, const char *title) {
    text_printf(t,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans,Verdana,Helvetica,Arial,"
                "sans-serif\">\n<title>",
                width, height, width, height);
    svg_escaped(t, title);
    text_puts(t, "</title>\n");
    svg_rect(t, 0, 0, width, height, svg_white, NULL);
}

void svg_end(text *t) {
    text_puts(t, "</svg>\n");
}

void svg_rect(text *t, double x, double y, double w, double h, svg_color fill, const char *tip) {
    text_printf(t, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x, y, w, h);
    add_color(t, "fill", fill);
    if (!tip) {
        text_puts(t, "/>\n");
        return;
    }
    text_puts(t, "><title>");
    svg_escaped(t, tip);
    text_puts(t, "</title></rect>\n");
}

void svg_line(text *t, double x1, double y1, double x2, double y2, svg_color color) {
    text_printf(t, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"", x1, y1, x2, y2);
    add_color(t, "stroke", color);
    text_puts(t, "/>\n");
}

void svg_text(text *t, double x, double y, svg_style style, const char *string) {
    static const char *const anchors[] = {"start", "middle", "end"};
    text_printf(t, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" text-anchor=\"%s\"", x, y,
                style.size, anchors[style.anchor]);
    add_color(t, "fill", style.color);
    if (style.turn != 0)
        text_printf(t, " transform=\"rotate(%.0f %.1f %.1f)\"", style.turn, x, y);
    text_puts(t, ">");
    svg_escaped(t, string);
    text_puts(t, "</text>\n");
}

double svg_width(const char *string, double size) {
    return (double)text_columns(string) * size * 0.64;
}

static svg_color mix(const svg_color *stops, int count, double at) {
    double p = (at < 0 || isnan(at) ? 0 : at > 1 ? 1 : at) * (count - 1);
    int i = p >= count - 1 ? count - 2 : (int)p;
    double f = p - i;
    svg_color a = stops[i], b = stops[i + 1];
    return (svg_color){(int)lround(a.r + f * (b.r - a.r)), (int)lround(a.g + f * (b.g - a.g)),
                       (int)lround(a.b + f * (b.b - a.b))};
}

svg_color svg_sequential(double value) {
    static const svg_color stops[] = {
        {247, 250, 253}, {198, 219, 239}, {107, 174, 214}, {33, 113, 181}, {8, 48, 107}};
    return mix(stops, 5, value);
}

svg_color svg_diverging(double value) {
    static const svg_color stops[] = {{179, 88, 6},    {241, 163, 64},  {254, 224, 182},
                                      {250, 250, 250}, {209, 229, 240}, {103, 169, 207},
                                      {33, 102, 172}};
    return mix(stops, 7, (value + 1) / 2);
}

svg_color svg_ink(svg_color c) {
    return 299 * c.r + 587 * c.g + 114 * c.b > 140000 ? svg_black : svg_white;
}
