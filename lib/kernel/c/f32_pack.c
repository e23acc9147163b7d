/* SPDX-License-Identifier: MIT */
#include "kernel/f32.h"

/* Kernels load whole vectors behind the last panel's last row. */
#define SLACK 64

bool qk_pack_f32_size(size_t panel, size_t k, size_t cols, size_t *floats) {
    size_t width, n;
    (void)panel;
    if (!qs_add(cols, 7, &width)) {
        return false;
    }
    return qs_mul(width & ~(size_t)7, k, &n) && qs_add(n, SLACK, floats);
}

static void pack_panel(float *to, size_t width, size_t k, size_t cols, const qk_pack_source *source,
                       const float *src) {
    const size_t inner = source->inner;
    for (size_t i = 0; i < k; i++) {
        const float *from = src + (ptrdiff_t)(i / inner) * source->outer_step +
                            (ptrdiff_t)(i % inner) * source->inner_step;
        for (size_t j = 0; j < cols; j++) {
            to[j] = from[(ptrdiff_t)j * source->col_step];
        }
        for (size_t j = cols; j < width; j++) {
            to[j] = 0.0f;
        }
        to += width;
    }
}

void qk_pack_f32(float *packed, size_t panel, size_t k, size_t cols, const qk_pack_source *source) {
    for (size_t col = 0; col < cols; col += panel) {
        size_t width = qk_panel_width(panel, cols, col);
        size_t used = cols - col < width ? cols - col : width;
        pack_panel(packed, width, k, used, source, source->src + (ptrdiff_t)col * source->col_step);
        packed += width * k;
    }
    memset(packed, 0, SLACK * sizeof(float));
}
