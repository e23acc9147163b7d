/* SPDX-License-Identifier: MIT */
#include "selftest.h"

#include <stdlib.h>
#include <string.h>

#include "selftest_layers.h"

#define OPSET         20
#define MOST_ELEMENTS 20000

/* Pads are smaller than windows: none lies in padding alone. */
static void pool(drawing *d) {
    windows w;
    do
        w = draw_windows(d, false);
    while (w.pads[2] >= w.size[0] || w.pads[3] >= w.size[1]);
    add_node(d, draw_chance(d, 2) ? "MaxPool" : "AveragePool", NULL, "");
    give_windows(d, &w, false);
    d->earlier[0] = 0;
}

static void resize(drawing *d) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    const float scales[] = {1, 1, (float)draw_between(d, 2, 6) / 2,
                            (float)draw_between(d, 2, 4) / 2};
    char name[16], second[24];
    name_constant(d, 's', name);
    snprintf(second, sizeof(second), ",%s", name); /* no roi */
    qsim_builder_constant_as(d->b, name, "float[4]", scales);
    add_node(d, "Resize", second, "");
    qsim_builder_attr_string(d->b, "mode", modes[draw_between(d, 0, 2)]);
    for (int i = 2; i < 4; i++)
        d->dims[i] = (int64_t)((float)d->dims[i] * scales[i]);
    d->earlier[0] = 0;
}

/* Of each element. */
static void function(drawing *d) {
    static const char *const names[] = {
        "LeakyRelu", "Sigmoid", "Tanh", "HardSwish",   "Gelu",     "Elu", "Softplus", "Mish",
        "Erf",       "Abs",     "Neg",  "HardSigmoid", "Softsign", "Sin", "Atan"};
    add_node(d, draw_chance(d, 3) ? "Relu" : names[draw_between(d, 0, 14)], NULL, "");
}

/* With the tensor before, or with a number for each channel. */
static void combination(drawing *d) {
    static const char *const names[] = {"Add", "Mul", "Sub", "Max", "Min"};
    const char *op = names[draw_between(d, 0, 4)];
    const int64_t image[] = {d->dims[1], 1, 1};
    char earlier[16];
    memcpy(earlier, d->earlier, sizeof(earlier));
    if (!earlier[0])
        add_constant(d, 'c', d->rank == 4 ? 3 : 1, d->rank == 4 ? image : &d->dims[2], 1);
    add_node(d, op, earlier[0] ? earlier : NULL, earlier[0] ? "" : "c");
}

static void rows(drawing *d) {
    const bool norm = draw_chance(d, 2);
    if (norm) {
        add_constant(d, 'w', 1, &d->dims[2], 1);
        add_constant(d, 'b', 1, &d->dims[2], 1);
    }
    add_node(d,
             norm                ? "LayerNormalization"
             : draw_chance(d, 2) ? "Softmax"
                                 : "LogSoftmax",
             NULL, norm ? "wb" : "");
    if (!norm)
        qsim_builder_attr_int(d->b, "axis", draw_chance(d, 3) ? 1 : -1);
}

/* ---- the network ---- */

static void follower(drawing *d) {
    const int64_t kind = draw_between(d, 1, 8);
    if (kind <= 3)
        function(d);
    else if (kind <= 5)
        combination(d);
    else if (d->rank == 3)
        rows(d);
    else if (kind == 6 && count_of(d->dims, 4) < MOST_ELEMENTS / 6)
        resize(d);
    else
        pool(d);
}

static void draw(drawing *d, selftest_network *n) {
    d->rank = draw_chance(d, 2) ? 3 : 4;
    d->dims[0] = draw_between(d, 1, 3);
    d->dims[1] = d->rank == 4 ? draw_channels(d) : draw_between(d, 1, 40);
    d->dims[2] = d->rank == 4 ? draw_between(d, 1, 28) : draw_between(d, 1, 300);
    d->dims[3] = draw_chance(d, 2) ? d->dims[2] : draw_between(d, 1, 28);
    while (count_of(d->dims, d->rank) > MOST_ELEMENTS)
        d->dims[2] = (d->dims[2] + 1) / 2;
    const size_t count = count_of(d->dims, d->rank);
    memcpy(n->dims, d->dims, sizeof(n->dims));
    n->numbers = draw_numbers(d, count);
    n->input = (qsim_tensor){QSIM_FLOAT, d->rank, n->dims, n->numbers, count * sizeof(float)};
    memcpy(d->last, "x", 2);
    qsim_builder_input(d->b, d->last, QSIM_FLOAT, d->rank, n->dims, NULL);
    for (int64_t layers = draw_between(d, 1, 3); layers > 0; layers--) {
        add_layer(d);
        for (int64_t more = draw_between(d, 0, 2); more > 0; more--)
            follower(d);
        if (count_of(d->dims, d->rank) > 2 * MOST_ELEMENTS)
            break;
    }
    qsim_builder_output_as(d->b, d->last, NULL);
}

int selftest_draw(const tool *t, uint64_t seed, selftest_network *n) {
    drawing d = {.state = seed};
    qsim_error e;
    memset(n, 0, sizeof(*n));
    if (qsim_builder_create(t->ctx, OPSET, "selftest", &d.b, &e))
        return tool_error(t, NULL, &e);
    draw(&d, n);
    const int code = qsim_builder_finish(d.b, &n->model, &e);
    qsim_builder_free(d.b);
    return code ? tool_error(t, NULL, &e) : EXIT_OK;
}

void selftest_network_free(selftest_network *n) {
    qsim_model_free(n->model);
    free(n->numbers);
    memset(n, 0, sizeof(*n));
}
