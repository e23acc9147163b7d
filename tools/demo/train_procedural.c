/* SPDX-License-Identifier: MIT */
#include "train_procedural.h"

#include "train_net.h"

#include <qsim/data.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_POINTS 12

typedef struct outline {
    size_t points;
    int8_t xy[MAX_POINTS][2]; /* pixels, y down */
} outline;

/* A silhouette and a hole in it. */
typedef struct garment {
    outline body, cut;
} garment;

/* In the order of Fashion-MNIST's classes. */
static const garment garments[NET_CLASSES] = {
    /* t-shirt */
    {{10,
      {{9, 4}, {19, 4}, {26, 9}, {23, 13}, {20, 11}, {20, 25}, {8, 25}, {8, 11}, {5, 13}, {2, 9}}},
     {3, {{12, 4}, {16, 4}, {14, 6}}}},
    /* trouser */
    {{7, {{9, 2}, {19, 2}, {20, 26}, {15, 26}, {14, 9}, {13, 26}, {8, 26}}}, {0, {{0}}}},
    /* pullover */
    {{12,
      {{10, 4},
       {18, 4},
       {23, 7},
       {26, 22},
       {22, 23},
       {20, 12},
       {20, 25},
       {8, 25},
       {8, 12},
       {6, 23},
       {2, 22},
       {5, 7}}},
     {0, {{0}}}},
    /* dress */
    {{6, {{11, 2}, {17, 2}, {17, 10}, {22, 26}, {6, 26}, {11, 10}}},
     {3, {{12, 2}, {16, 2}, {14, 5}}}},
    /* coat */
    {{12,
      {{10, 2},
       {18, 2},
       {23, 6},
       {25, 20},
       {21, 21},
       {20, 12},
       {21, 27},
       {7, 27},
       {8, 12},
       {7, 21},
       {3, 20},
       {5, 6}}},
     {3, {{14, 6}, {15, 27}, {13, 27}}}},
    /* sandal */
    {{7, {{2, 20}, {8, 15}, {12, 17}, {20, 19}, {26, 20}, {26, 23}, {2, 23}}},
     {4, {{7, 18}, {12, 19}, {20, 21}, {6, 21}}}},
    /* shirt */
    {{12,
      {{10, 3},
       {18, 3},
       {23, 7},
       {24, 16},
       {21, 17},
       {19, 11},
       {19, 26},
       {9, 26},
       {9, 11},
       {7, 17},
       {4, 16},
       {5, 7}}},
     {3, {{13, 3}, {15, 3}, {14, 14}}}},
    /* sneaker */
    {{6, {{2, 13}, {8, 12}, {14, 16}, {24, 18}, {26, 22}, {2, 22}}},
     {3, {{8, 14}, {12, 17}, {8, 17}}}},
    /* bag */
    {{8, {{4, 12}, {8, 12}, {9, 6}, {19, 6}, {20, 12}, {24, 12}, {25, 25}, {3, 25}}},
     {4, {{10, 12}, {11, 8}, {17, 8}, {18, 12}}}},
    /* ankle boot */
    {{6, {{8, 4}, {16, 4}, {17, 15}, {25, 18}, {26, 25}, {7, 25}}},
     {3, {{12, 24}, {15, 22}, {12, 22}}}},
};

/* Uniform in [-1, 1). */
static double draw_unit(uint64_t *random) {
    return (double)(net_random(random) >> 11) * 0x1p-52 - 1.0;
}

/* x' = xx x + xy y + x0, y' likewise: a garment slightly rotated, scaled and moved. */
typedef struct view {
    double xx, xy, yx, yy, x0, y0;
} view;

static view draw_view(uint64_t *random, int may_mirror) {
    const double t = 0.09 * draw_unit(random); /* tangent of half the angle: no sine needed */
    const double c = (1 - t * t) / (1 + t * t), s = 2 * t / (1 + t * t);
    const double size = 0.9 + 0.12 * draw_unit(random),
                 wide = size * (1 + 0.12 * draw_unit(random));
    const double flip = may_mirror && draw_unit(random) < 0 ? -1 : 1;
    return (view){flip * wide * c,
                  -s * size,
                  flip * wide * s,
                  size * c,
                  14 + 1.5 * draw_unit(random),
                  14 + 1.5 * draw_unit(random)};
}

/* Four samples per pixel: a row of samples is 56 bits, for half a row of pixels. */
#define SAMPLES 56

/*
 * Fills an outline by the even-odd rule, over earlier ones: every edge that crosses a row flips all
 * samples to its right.
 */
static void fill(uint64_t rows[SAMPLES], const double (*p)[2], size_t points) {
    for (size_t i = 0; i < points; i++) {
        const double *a = p[i], *b = p[(i + 1) % points];
        for (size_t row = 0; row < SAMPLES; row++) {
            const double y = ((double)row + 0.5) / 2;
            if ((a[1] <= y) == (b[1] <= y))
                continue;
            const double x = a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
            const double sample = ceil(2 * x - 0.5);
            if (sample < SAMPLES)
                rows[row] ^= ~UINT64_C(0) << (sample < 0 ? 0 : (unsigned)sample);
        }
    }
}

static void draw_outline(uint64_t *random, uint64_t rows[SAMPLES], const outline *o,
                         const view *v) {
    double p[MAX_POINTS][2];
    for (size_t i = 0; i < o->points; i++) {
        const double x = o->xy[i][0] - 14 + 4.0 * draw_unit(random);
        const double y = o->xy[i][1] - 14 + 4.0 * draw_unit(random);
        p[i][0] = v->xx * x + v->xy * y + v->x0;
        p[i][1] = v->yx * x + v->yy * y + v->y0;
    }
    fill(rows, (const double(*)[2])p, o->points);
}

static uint8_t to_byte(double v) {
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void procedural_draw(uint64_t *random, size_t label, uint8_t pixels[28 * 28]) {
    uint64_t rows[SAMPLES] = {0};
    const int mirrored = label == 5 || label >= 7; /* shoes and bags may point either way */
    const view v = draw_view(random, mirrored);
    draw_outline(random, rows, &garments[label].body, &v);
    draw_outline(random, rows, &garments[label].cut, &v);
    const double light = 170 + 70 * draw_unit(random), stripe = 60 * draw_unit(random);
    const size_t period = 3 + (size_t)(net_random(random) % 4);
    const int upright = (int)(net_random(random) % 2);
    for (size_t y = 0; y < 28; y++)
        for (size_t x = 0; x < 28; x++) {
            const uint64_t both[2] = {rows[2 * y] >> 2 * x, rows[2 * y + 1] >> 2 * x};
            const double cover =
                (double)((both[0] & 1) + (both[0] >> 1 & 1) + (both[1] & 1) + (both[1] >> 1 & 1)) /
                4;
            const double shade = (upright ? x : y) / period % 2 ? stripe : 0;
            const double noise = 30 * draw_unit(random);
            pixels[y * 28 + x] = to_byte(cover * (light + shade + noise));
        }
}

static void put_be32(uint8_t *p, size_t v) {
    for (size_t i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static int write_file(const char *dir, const char *name, const void *head, size_t head_size,
                      const void *data, size_t size, qsim_error *error) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
        return QSIM_E_LIMIT;
    const qsim_bytes pieces[] = {{head, head_size}, {data, size}};
    return qsim_file_write(NULL, path, QSIM_FILE_REPLACE, pieces, 2, error);
}

static int write_part(const char *dir, const char *part, size_t count, uint64_t *random,
                      qsim_error *error) {
    uint8_t *images = malloc(count * NET_PIXELS), *labels = malloc(count);
    uint8_t images_head[16] = {0, 0, 8, 3}, labels_head[8] = {0, 0, 8, 1};
    char name[64];
    int status = images && labels ? QSIM_OK : QSIM_E_NOMEM;
    if (status != QSIM_OK)
        goto out;
    for (size_t i = 0; i < count; i++) {
        labels[i] = (uint8_t)(net_random(random) % NET_CLASSES);
        procedural_draw(random, labels[i], images + i * NET_PIXELS);
    }
    put_be32(images_head + 4, count);
    put_be32(images_head + 8, NET_SIDE);
    put_be32(images_head + 12, NET_SIDE);
    put_be32(labels_head + 4, count);
    snprintf(name, sizeof(name), "%s-images-idx3-ubyte", part);
    status = write_file(dir, name, images_head, 16, images, count * NET_PIXELS, error);
    if (status != QSIM_OK)
        goto out;
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", part);
    status = write_file(dir, name, labels_head, 8, labels, count, error);
out:
    free(labels);
    free(images);
    return status;
}

int procedural_write(const char *dir, size_t train, size_t test, qsim_error *error) {
    uint64_t random = 1;
    int status = write_part(dir, "train", train, &random, error);
    if (status == QSIM_OK)
        status = write_part(dir, "t10k", test, &random, error);
    if (status == QSIM_OK)
        status = write_file(dir, "NAME", "procedural\n", 11, NULL, 0, error);
    return status;
}
