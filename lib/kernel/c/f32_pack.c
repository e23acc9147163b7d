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

/* Terms that are packed at once: they and the rows they go to stay in the cache. */
#define TERMS 16

static void move(float *to, const uint8_t *from) {
    memcpy(to, from, sizeof(*to));
}

/* Columns side by side: whole rows. */
static void pack_lines(float *to, size_t width, size_t k, size_t cols, ptrdiff_t step,
                       const uint8_t *src) {
    for (size_t i = 0; i < k; i++, to += width) {
        memcpy(to, src + (ptrdiff_t)i * step, cols * sizeof(float));
        memset(to + cols, 0, (width - cols) * sizeof(float));
    }
}

/* Memory is gone through column by column, all `outer` terms of a few inner ones in turn. */
static void pack_panel(float *to, size_t width, size_t outer, size_t cols, const qk_pack_source *s,
                       const uint8_t *src) {
    const ptrdiff_t size = sizeof(float);
    for (size_t first = 0; first < s->inner; first += TERMS) {
        size_t end = s->inner - first < TERMS ? s->inner : first + TERMS;
        for (size_t j = 0; j < cols; j++)
            for (size_t o = 0; o < outer; o++) {
                const uint8_t *from =
                    src + size * ((ptrdiff_t)j * s->col_step + (ptrdiff_t)o * s->outer_step);
                float *row = to + o * s->inner * width + j;
                for (size_t i = first; i < end; i++)
                    move(row + i * width, from + size * (ptrdiff_t)i * s->inner_step);
            }
    }
    for (size_t i = 0; i < outer * s->inner && cols < width; i++)
        memset(to + i * width + cols, 0, (width - cols) * sizeof(float));
}

void qk_pack_f32(float *packed, size_t panel, size_t k, size_t cols, const qk_pack_source *source) {
    const ptrdiff_t size = sizeof(float);
    qk_pack_source s = *source;
    if (s.inner == 1) { /* a matrix */
        s.inner = k;
        s.inner_step = s.outer_step;
    }
    for (size_t col = 0; col < cols; col += panel) {
        size_t width = qk_panel_width(panel, cols, col);
        size_t used = cols - col < width ? cols - col : width;
        const uint8_t *src = (const uint8_t *)s.src + size * (ptrdiff_t)col * s.col_step;
        if (s.col_step == 1 && s.inner == k)
            pack_lines(packed, width, k, used, size * s.inner_step, src);
        else
            pack_panel(packed, width, s.inner ? k / s.inner : 0, used, &s, src);
        packed += width * k;
    }
    memset(packed, 0, SLACK * sizeof(float));
}
