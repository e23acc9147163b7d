/* SPDX-License-Identifier: MIT */
#include "tensor_pairs.h"

#include <stdlib.h>
#include <string.h>

static void add(tensor_pairs *p, const char *a, const char *b) {
    p->a = tool_grow(p->a, p->count + 1, sizeof(*p->a));
    p->b = tool_grow(p->b, p->count + 1, sizeof(*p->b));
    p->a[p->count] = a;
    p->b[p->count++] = b;
}

void tensor_pairs_free(tensor_pairs *p) {
    free(p->a);
    free(p->b);
    free(p->metrics);
    memset(p, 0, sizeof(*p));
}

static bool is_output(const qsim_model *m, const char *name) {
    for (int32_t i = 0; i < qsim_model_output_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_output(m, i, &v) == QSIM_OK && strcmp(v.name, name) == 0)
            return true;
    }
    return false;
}

typedef struct listing {
    const qsim_model *a, *b;
    tensor_pairs *out;
} listing;

static int32_t add_layer(void *user, const char *tensor, const char *counterpart) {
    const listing *l = user;
    if (!is_output(l->a, tensor) && !is_output(l->b, counterpart))
        add(l->out, tensor, counterpart);
    return 0;
}

int tensor_pairs_layers(const tool *t, const qsim_model *a, const qsim_model *b,
                        tensor_pairs *out) {
    listing l = {a, b, out};
    qsim_error e;
    return qsim_model_pairs(a, b, add_layer, &l, &e) < 0 ? tool_error(t, "--layers", &e) : EXIT_OK;
}

int tensor_pairs_outputs(const tool *t, const qsim_model *a, const qsim_model *b,
                         tensor_pairs *out) {
    int32_t count = qsim_model_output_count(a);
    if (count == 0 || qsim_model_output_count(b) != count)
        return tool_fail(t, QSIM_E_SHAPE, "the models have %d and %d outputs", count,
                         qsim_model_output_count(b));
    for (int32_t i = 0; i < count; i++) {
        qsim_value_info x = {.struct_size = sizeof(x)}, y = {.struct_size = sizeof(y)};
        if (qsim_model_output(a, i, &x) || qsim_model_output(b, i, &y))
            return tool_fail(t, QSIM_E_INTERNAL, "no output %d", i);
        add(out, x.name, y.name);
    }
    return EXIT_OK;
}
