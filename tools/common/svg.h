/* SPDX-License-Identifier: MIT */
/* SVG elements for charts. Units are pixels. */
#ifndef TOOL_SVG_H
#define TOOL_SVG_H

#include "common/text.h"

typedef struct svg_color {
    int r, g, b;
} svg_color;

/* The anchor of a text. */
enum { SVG_START, SVG_MIDDLE, SVG_END };

/* `turn` rotates a text around its anchor, in degrees. */
typedef struct svg_style {
    double size;
    int anchor;
    double turn;
    svg_color color;
} svg_style;

/* Adds text between tags. */
void svg_escaped(text *t, const char *string);
void svg_begin(text *t, double width, double height, const char *title);
void svg_end(text *t);
void svg_rect(text *t, double x, double y, double w, double h, svg_color fill, const char *tip);
void svg_line(text *t, double x1, double y1, double x2, double y2, svg_color color);
void svg_text(text *t, double x, double y, svg_style style, const char *string);
/* An upper estimate of the width of a string. */
double svg_width(const char *string, double size);

/* Light to dark blue for 0 to 1; orange over white to blue for -1 to 1. */
svg_color svg_sequential(double value);
svg_color svg_diverging(double value);
/* Black or white, whichever is more readable on this colour. */
svg_color svg_ink(svg_color background);

extern const svg_color svg_black, svg_gray, svg_pale, svg_white, svg_blue, svg_orange;

#endif
