/* SPDX-License-Identifier: MIT */
/* Convolutions and pools over three axes of space, as networks on videos and scans have them. */
#include "random_graph.h"

#include <math.h>

#define SPACE        3
#define MOST_WEIGHTS 20000

typedef struct window {
    int64_t kernel[SPACE], stride[SPACE], dilation[SPACE], pads[2 * SPACE];
} window;

static window draw_window(rg *g, int64_t most) {
    window w;
    for (int i = 0; i < SPACE; i++) {
        w.kernel[i] = rg_chance(g, 60) ? (most < 3 ? most : 3) : 1 + rg_draw(g, (uint32_t)most);
        w.stride[i] = rg_chance(g, 75) ? 1 : 2;
        w.dilation[i] = 1;
        w.pads[i] = rg_chance(g, 70) ? w.kernel[i] / 2 : 0;
        w.pads[SPACE + i] = rg_chance(g, 90) ? w.pads[i] : 0;
    }
    return w;
}

static bool sizes_behind(const window *w, const rg_tensor *t, int64_t dims[2 + SPACE]) {
    for (int i = 0; i < SPACE; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t last = t->dims[2 + i] + w->pads[i] + w->pads[SPACE + i] - reach;
        if (last < 0)
            return false;
        dims[2 + i] = last / w->stride[i] + 1;
    }
    return true;
}

static void attributes(rg *g, const window *w) {
    qsim_builder_attr_ints(g->b, "kernel_shape", w->kernel, SPACE);
    qsim_builder_attr_ints(g->b, "strides", w->stride, SPACE);
    qsim_builder_attr_ints(g->b, "pads", w->pads, 2 * SPACE);
}

static bool conv(rg *g, int32_t x) {
    const rg_tensor *t = &g->t[x];
    const int64_t in = t->dims[1];
    const int64_t group = rg_chance(g, 25) ? in : in % 2 == 0 && rg_chance(g, 20) ? 2 : 1;
    const int64_t channels = group * RG_ONE_OF(g, 1, 1, 2, 3, 8);
    int64_t dims[2 + SPACE] = {t->dims[0], channels};
    window w = draw_window(g, 4);
    if (rg_chance(g, 15))
        w.dilation[rg_draw(g, SPACE)] = 2;
    const int64_t weights[2 + SPACE] = {channels, in / group, w.kernel[0], w.kernel[1],
                                        w.kernel[2]};
    const int64_t sum = weights[1] * weights[2] * weights[3] * weights[4];
    if (!sizes_behind(&w, t, dims) || channels * sum > MOST_WEIGHTS || channels > 64)
        return false;
    const char *name = rg_weight(g, 2 + SPACE, weights, 1.7f / sqrtf((float)sum), 0);
    const char *bias = rg_chance(g, 70) ? rg_bias(g, channels, x) : "";
    rg_node(g, "Conv", rg_text(g, "%s,%s%s%s", rg_in(g, x), name, *bias ? "," : "", bias));
    attributes(g, &w);
    qsim_builder_attr_ints(g->b, "dilations", w.dilation, SPACE);
    qsim_builder_attr_int(g->b, "group", group);
    rg_made(g, x, 2 + SPACE, dims);
    return true;
}

static bool pool(rg *g, int32_t x) {
    const rg_tensor *t = &g->t[x];
    int64_t dims[2 + SPACE] = {t->dims[0], t->dims[1]};
    const window w = draw_window(g, 3);
    if (!sizes_behind(&w, t, dims))
        return false;
    const bool max = rg_chance(g, 55);
    rg_node(g, max ? "MaxPool" : "AveragePool", rg_in(g, x));
    attributes(g, &w);
    if (!max)
        qsim_builder_attr_int(g->b, "count_include_pad", rg_chance(g, 30));
    rg_made(g, x, 2 + SPACE, dims);
    return true;
}

bool rg_volume(rg *g) {
    const int32_t x = rg_pick(g, 2 + SPACE);
    return x >= 0 && (rg_chance(g, 60) ? conv(g, x) : pool(g, x));
}
