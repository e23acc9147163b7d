/* SPDX-License-Identifier: MIT */
#include "tensor_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "name_index.h"

static void add(tensor_pairs *p, const char *a, const char *b) {
    p->a = tool_grow(p->a, p->count + 1, sizeof(*p->a));
    p->b = tool_grow(p->b, p->count + 1, sizeof(*p->b));
    p->a[p->count] = a;
    p->b[p->count++] = b;
}

double tensor_pairs_agreement(const tensor_pairs *p, size_t i) {
    const qsim_metrics *m = &p->metrics[i];
    return m->rows ? 100.0 * (double)m->agree / (double)m->rows : (double)NAN;
}

void tensor_pairs_free(tensor_pairs *p) {
    free(p->a);
    free(p->b);
    free(p->metrics);
    memset(p, 0, sizeof(*p));
}

typedef struct listing {
    name_index outputs[2]; /* of both models */
    tensor_pairs *out;
} listing;

static int32_t add_layer(void *user, const char *tensor, const char *counterpart) {
    const listing *l = user;
    if (name_index_find(&l->outputs[0], tensor) < 0 &&
        name_index_find(&l->outputs[1], counterpart) < 0)
        add(l->out, tensor, counterpart);
    return 0;
}

int tensor_pairs_layers(const tool *t, const qsim_model *a, const qsim_model *b,
                        tensor_pairs *out) {
    listing l = {.out = out};
    qsim_error e;
    name_index_outputs(a, &l.outputs[0]);
    name_index_outputs(b, &l.outputs[1]);
    const int code =
        qsim_model_pairs(a, b, add_layer, &l, &e) < 0 ? tool_error(t, "--layers", &e) : EXIT_OK;
    name_index_free(&l.outputs[0]);
    name_index_free(&l.outputs[1]);
    return code;
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
