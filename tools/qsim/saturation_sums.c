/* SPDX-License-Identifier: MIT */
/*
 * Sums of two products in 16 bits. ONNX Runtime lays an image's windows out as rows, kernel
 * positions first, channels last, and adds the products of neighbours in that order; after an odd
 * number of them one is alone.
 */
#include "saturation.h"

#include <stdlib.h>
#include <string.h>

/* The weight of column m of a group in row k of its windows. */
static int8_t weight_at(const saturation_layer *l, int64_t group, int64_t m, int64_t k) {
    const int64_t tap = k / l->channels, channel = k % l->channels;
    if (l->by_row)
        return l->weights[k * l->columns + m];
    const int64_t column = group * (l->columns / l->groups) + m;
    return l->weights[(column * l->channels + channel) * l->taps + tap];
}

/* Puts weights in the order in which rows of windows meet them. */
static void pack(saturation_layer *l) {
    const int64_t rows = l->channels * l->taps, pairs = (rows + 1) / 2,
                  columns = l->columns / l->groups;
    l->pairs = tool_alloc((size_t)(l->groups * pairs), (size_t)(2 * columns));
    for (int64_t g = 0; g < l->groups; g++)
        for (int64_t k = 0; k < rows; k++)
            for (int64_t m = 0; m < columns; m++)
                l->pairs[((g * pairs + k / 2) * 2 + k % 2) * columns + m] = weight_at(l, g, m, k);
}

/*
 * Adds to `change` what saturation changes in the sums of one row, and counts the sums that
 * saturate. Below 257 no two codes together can: 256 * 128 is 2^15.
 */
static uint64_t change_row(const saturation_layer *l, int64_t group, const uint8_t *row,
                           int32_t *change) {
    const int64_t rows = l->channels * l->taps, pairs = (rows + 1) / 2,
                  columns = l->columns / l->groups;
    uint64_t saturated = 0;
    for (int64_t p = 0; p < rows / 2; p++) {
        const int32_t a = row[2 * p], b = row[2 * p + 1];
        if (a + b <= 256)
            continue;
        const int8_t *w = l->pairs + (group * pairs + p) * 2 * columns;
        for (int64_t m = 0; m < columns; m++) {
            const int32_t sum = a * w[m] + b * w[columns + m];
            const int32_t cut = sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : sum;
            change[m] += cut - sum;
            saturated += cut != sum;
        }
    }
    return saturated;
}

/* ---- windows ---- */

typedef struct plane {
    int64_t in[SATURATION_AXES], out[SATURATION_AXES], pad[SATURATION_AXES];
    int64_t inputs, outputs; /* elements of one channel */
} plane;

static int64_t total_pad(const saturation_layer *l, const plane *p, int32_t axis) {
    const int64_t reach = (l->kernel[axis] - 1) * l->dilation[axis] + 1;
    const int64_t total = (p->out[axis] - 1) * l->stride[axis] + reach - p->in[axis];
    return total > 0 ? total : 0;
}

static plane plane_of(const saturation_layer *l, const qsim_tensor *codes, const qsim_tensor *y) {
    plane p = {.inputs = 1, .outputs = 1};
    for (int32_t i = 0; i < l->axes; i++) {
        p.in[i] = codes->dims[2 + i];
        p.out[i] = y->dims[2 + i];
        p.pad[i] = l->pad[i];
        if (p.pad[i] < 0)
            p.pad[i] = (total_pad(l, &p, i) + l->same_lower) / 2;
        p.inputs *= p.in[i];
        p.outputs *= p.out[i];
    }
    return p;
}

/* Offset in a channel of the element that kernel position `tap` reads for output `at`; -1: none. */
static int64_t offset_of(const saturation_layer *l, const plane *p, int64_t at, int64_t tap) {
    int64_t offset = 0, step = 1;
    for (int32_t i = l->axes; i-- > 0;) {
        const int64_t x =
            at % p->out[i] * l->stride[i] + tap % l->kernel[i] * l->dilation[i] - p->pad[i];
        if (x < 0 || x >= p->in[i])
            return -1;
        offset += x * step;
        step *= p->in[i];
        at /= p->out[i];
        tap /= l->kernel[i];
    }
    return offset;
}

/* Writes the window of output `at`, of channels that begin at `codes`. */
static void gather(const saturation_layer *l, const plane *p, const uint8_t *codes, int64_t at,
                   uint8_t *row) {
    const uint8_t flip = l->is_signed ? 0x80 : 0;
    for (int64_t tap = 0; tap < l->taps; tap++) {
        const int64_t offset = offset_of(l, p, at, tap);
        for (int64_t c = 0; c < l->channels; c++)
            *row++ = offset < 0 ? l->zero : (uint8_t)(codes[c * p->inputs + offset] ^ flip);
    }
}

/* ---- results ---- */

static double scale_of(const saturation_layer *l, int64_t column) {
    float scale = 1;
    if (l->scales)
        memcpy(&scale, (const char *)l->scales + (l->scale_count > 1 ? column * 4 : 0), 4);
    return (double)(l->scale * scale);
}

/* Adds the changes of a group's columns to results that lie `step` apart. */
static void apply(saturation_layer *l, int64_t group, const int32_t *change, qsim_tensor *y,
                  int64_t first, int64_t step) {
    const int64_t columns = l->columns / l->groups;
    for (int64_t m = 0; m < columns; m++) {
        const int64_t at = first + m * step;
        const double by = change[m] * scale_of(l, group * columns + m);
        if (y->dtype == QSIM_FLOAT) {
            float *v = (float *)y->data + at;
            l->signal += (double)*v * (double)*v;
            *v = (float)((double)*v + by);
        } else {
            int32_t *v = (int32_t *)y->data + at;
            l->signal += (double)*v * *v;
            *v = (int32_t)((uint32_t)*v + (uint32_t)change[m]);
        }
        l->noise += by * by;
    }
}

static void add_row(saturation_layer *l, int64_t group, const uint8_t *row, int32_t *change,
                    qsim_tensor *y, int64_t first, int64_t step) {
    const int64_t columns = l->columns / l->groups;
    memset(change, 0, (size_t)columns * sizeof(*change));
    l->saturated += change_row(l, group, row, change);
    l->sums += (uint64_t)((l->channels * l->taps + 1) / 2 * columns);
    apply(l, group, change, y, first, step);
}

/* Asks now and then: rows take microseconds. */
static bool is_stopped(bool (*stopped)(void), int64_t row) {
    return row % 16 == 0 && stopped && stopped();
}

static void add_images(saturation_layer *l, const qsim_tensor *codes, qsim_tensor *y, uint8_t *row,
                       int32_t *change, bool (*stopped)(void)) {
    const plane p = plane_of(l, codes, y);
    const int64_t columns = l->columns / l->groups;
    for (int64_t n = 0; n < codes->dims[0]; n++) {
        for (int64_t g = 0; g < l->groups; g++) {
            const uint8_t *x =
                (const uint8_t *)codes->data + (n * l->groups + g) * l->channels * p.inputs;
            for (int64_t at = 0; at < p.outputs; at++) {
                if (is_stopped(stopped, at))
                    return;
                gather(l, &p, x, at, row);
                add_row(l, g, row, change, y, (n * l->columns + g * columns) * p.outputs + at,
                        p.outputs);
            }
        }
    }
}

static void add_matrix(saturation_layer *l, const qsim_tensor *codes, qsim_tensor *y, uint8_t *row,
                       int32_t *change, bool (*stopped)(void)) {
    const int64_t rows = (int64_t)codes->bytes / l->channels;
    const uint8_t flip = l->is_signed ? 0x80 : 0;
    for (int64_t i = 0; i < rows && !is_stopped(stopped, i); i++) {
        for (int64_t k = 0; k < l->channels; k++)
            row[k] = (uint8_t)(((const uint8_t *)codes->data)[i * l->channels + k] ^ flip);
        add_row(l, 0, row, change, y, i * l->columns, 1);
    }
}

void saturation_add(saturation_layer *l, const qsim_tensor *codes, qsim_tensor *result,
                    bool (*stopped)(void)) {
    if (!l->pairs)
        pack(l);
    uint8_t *row = tool_alloc((size_t)(l->channels * l->taps), 1);
    int32_t *change = tool_alloc((size_t)(l->columns / l->groups), sizeof(*change));
    if (l->axes > 0)
        add_images(l, codes, result, row, change, stopped);
    else
        add_matrix(l, codes, result, row, change, stopped);
    free(row);
    free(change);
}
