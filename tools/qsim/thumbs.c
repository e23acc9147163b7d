/* SPDX-License-Identifier: MIT */
/* Small pictures of samples. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "pages.h"

bool thumbs_take(const thumbs *s, double badness) {
    return s->wanted && (s->count < MOST_THUMBS || badness > s->items[MOST_THUMBS - 1].badness);
}

/* The axes of a batch of pictures. */
typedef struct view {
    size_t height, width, channels;
    bool last; /* channels are the last axis */
} view;

static bool find_axes(const qsim_tensor *x, view *v) {
    if (x->rank != 4)
        return false;
    v->last = x->dims[1] != 1 && x->dims[1] != 3 && (x->dims[3] == 1 || x->dims[3] == 3);
    v->channels = (size_t)x->dims[v->last ? 3 : 1];
    v->height = (size_t)x->dims[v->last ? 1 : 2];
    v->width = (size_t)x->dims[v->last ? 2 : 3];
    return (v->channels == 1 || v->channels == 3) && v->height > 0 && v->width > 0;
}

static double value_at(const qsim_tensor *x, const view *v, size_t at, size_t y, size_t col,
                       size_t c) {
    const size_t i = v->last ? ((at * v->height + y) * v->width + col) * v->channels + c
                             : ((at * v->channels + c) * v->height + y) * v->width + col;
    return element(x, i);
}

static void draw(thumb *out, const qsim_tensor *x, const view *v, size_t at) {
    const size_t side = v->height > v->width ? v->height : v->width;
    const size_t step = side > THUMB_SIDE ? (side + THUMB_SIDE - 1) / THUMB_SIDE : 1;
    double low = INFINITY, high = -INFINITY;
    out->width = (int32_t)((v->width + step - 1) / step);
    out->height = (int32_t)((v->height + step - 1) / step);
    out->channels = (int32_t)v->channels;
    for (size_t i = 0; i < v->height * v->width * v->channels; i++) {
        const double e = element(x, at * v->height * v->width * v->channels + i);
        low = fmin(low, e);
        high = fmax(high, e);
    }
    unsigned char *p = out->pixels =
        tool_alloc((size_t)out->width * (size_t)out->height, v->channels);
    for (size_t y = 0; y < v->height; y += step)
        for (size_t col = 0; col < v->width; col += step)
            for (size_t c = 0; c < v->channels; c++) {
                const double e = value_at(x, v, at, y, col, c);
                *p++ = high > low ? (unsigned char)((e - low) / (high - low) * 255) : 0;
            }
}

void thumbs_add(thumbs *s, const qsim_tensor *batch, size_t at, double badness,
                const char *caption) {
    thumb t = {.badness = badness};
    view v;
    if (!thumbs_take(s, badness) || !find_axes(batch, &v))
        return;
    draw(&t, batch, &v, at);
    snprintf(t.caption, sizeof(t.caption), "%s", caption);
    if (s->count == MOST_THUMBS)
        free(s->items[--s->count].pixels);
    size_t i = s->count++;
    for (; i > 0 && s->items[i - 1].badness < badness; i--)
        s->items[i] = s->items[i - 1];
    s->items[i] = t;
}

void page_thumbs(page *p, const char *heading, const thumbs *s) {
    if (s->count == 0)
        return;
    page_heading(p, heading);
    for (size_t i = 0; i < s->count; i++) {
        const thumb *t = &s->items[i];
        page_picture(p, t->pixels, t->width, t->height, t->channels, t->caption);
    }
}

void thumbs_free(thumbs *s) {
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].pixels);
    s->count = 0;
}
