/* SPDX-License-Identifier: MIT */
/* The specification of the pooling kernels. */
#include <math.h>

#include "kernel/pool_window.h"

static void max_line_f32(const qk_pool *p, const float *x, float *y) {
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        for (size_t j = 0; j < p->channels; j++) {
            float m = -INFINITY;
            for (size_t t = 0; t < p->kh * w.count; t++) {
                ptrdiff_t column = w.first + (ptrdiff_t)(t % w.count * p->dw);
                float v = x[(ptrdiff_t)(t / w.count) * p->row_step +
                            column * (ptrdiff_t)p->channels + (ptrdiff_t)j];
                m = v > m ? v : m;
            }
            y[j] = m;
        }
    }
}

void qk_max_f32_c(const qk_pool *p) {
    const float *x = p->x;
    float *y = p->y;
    for (size_t i = p->lines; i > 0; i--, x += p->line_step, y += p->out_line)
        max_line_f32(p, x, y);
}

void qk_average_f32_c(const qk_pool *p) {
    const float *x = p->x;
    float *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        const float count = (float)w.divisor;
        for (size_t j = 0; j < p->channels; j++) {
            float sum = 0.0f;
            for (size_t t = 0; t < p->kh * w.count; t++) {
                ptrdiff_t column = w.first + (ptrdiff_t)(t % w.count * p->dw);
                sum += x[(ptrdiff_t)(t / w.count) * p->row_step + column * (ptrdiff_t)p->channels +
                         (ptrdiff_t)j];
            }
            y[j] = sum / count;
        }
    }
}

static void max_line_u8(const qk_pool *p, const uint8_t *x, uint8_t *y) {
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        for (size_t j = 0; j < p->channels; j++) {
            uint8_t m = 0;
            for (size_t t = 0; t < p->kh * w.count; t++) {
                ptrdiff_t column = w.first + (ptrdiff_t)(t % w.count * p->dw);
                uint8_t v = x[(ptrdiff_t)(t / w.count) * p->row_step +
                              column * (ptrdiff_t)p->channels + (ptrdiff_t)j];
                m = v > m ? v : m;
            }
            y[j] = m;
        }
    }
}

void qk_max_u8_c(const qk_pool *p) {
    const uint8_t *x = p->x;
    uint8_t *y = p->y;
    for (size_t i = p->lines; i > 0; i--, x += p->line_step, y += p->out_line)
        max_line_u8(p, x, y);
}

void qk_average_u8_c(const qk_pool *p) {
    const uint8_t *x = p->x;
    uint8_t *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        const float m = qk_average_multiplier(p, &w);
        for (size_t j = 0; j < p->channels; j++) {
            int32_t sum = 0;
            for (size_t t = 0; t < p->kh * w.count; t++) {
                ptrdiff_t column = w.first + (ptrdiff_t)(t % w.count * p->dw);
                sum += x[(ptrdiff_t)(t / w.count) * p->row_step + column * (ptrdiff_t)p->channels +
                         (ptrdiff_t)j];
            }
            sum -= p->x_zero * (int32_t)(p->kh * w.count);
            y[j] = (uint8_t)qs_requantize(sum, m, p->lo, p->hi, p->y_zero);
        }
    }
}
