/* SPDX-License-Identifier: MIT */
#include "not_finite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

static const char *const a_nan = "a NaN";

const char *not_finite(const qsim_tensor *x, size_t *at) {
    const size_t n = is_float(x->dtype) ? elements(x) : 0;
    for (*at = 0; *at < n; ++*at) {
        const double v = element(x, *at);
        if (!isfinite(v))
            return isnan(v) ? a_nan : "an infinity";
    }
    return NULL;
}

const char *not_finite_next(const qsim_model *m, const name_index *readers, int32_t *from,
                            qsim_value_info *v, qsim_node_info *n) {
    while (*from < qsim_model_value_count(m)) {
        *v = (qsim_value_info){.struct_size = sizeof(*v)};
        *n = (qsim_node_info){.struct_size = sizeof(*n)};
        if (qsim_model_value(m, (*from)++, v) || !v->data)
            continue;
        size_t at;
        const qsim_tensor x = {v->dtype, v->rank, v->dims, (void *)(uintptr_t)v->data, v->bytes};
        const char *what = not_finite(&x, &at);
        const int32_t node = what ? name_index_find(readers, v->name) : -1;
        if (node >= 0 && qsim_model_node(m, node, n) == QSIM_OK && (what == a_nan || n->macs > 0))
            return what;
    }
    return NULL;
}

static int blame_sample(const tool *t, const dataset *d, const batch *b, size_t row,
                        const char *input, const char *what) {
    const char *file = dataset_file(d, b), *spec = args_value(&t->args, "data");
    if (file)
        return tool_fail(t, QSIM_E_VALUE, "%s: holds %s, for input '%.100s'", file, what, input);
    return tool_fail(t, QSIM_E_VALUE, "%s: sample %lld holds %s, for input '%.100s'", spec,
                     (long long)b->at + (long long)row, what, input);
}

/* The first node with a NaN, or else an infinity, in a run that keeps all; false: not found. */
static bool find_maker(const tool *t, const char *file, const qsim_model *m, const batch *b,
                       const char **name, qsim_node_info *n) {
    const char **names = NULL;
    int32_t *makers = NULL; /* the node of each name */
    size_t count = 0, at;
    engine e = {0};
    qsim_error error;
    kept_error unused = {0};
    bool found = false;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        *n = (qsim_node_info){.struct_size = sizeof(*n)};
        for (int32_t k = 0; qsim_model_node(m, i, n) == QSIM_OK && k < n->output_count; k++)
            if (n->outputs[k][0]) {
                names = tool_grow(names, count + 1, sizeof(*names));
                makers = tool_grow(makers, count + 1, sizeof(*makers));
                names[count] = n->outputs[k];
                makers[count++] = i;
            }
    }
    tool_keep_errors(t, &unused);
    const int code = engine_of_model(t, file, m, names, count, &e);
    tool_keep_errors(t, NULL);
    if (code == EXIT_OK && engine_try(&e, b->inputs, b->input_count, &error) == QSIM_OK)
        for (size_t i = 0; i < 2 * count && !found; i++) { /* infinities, as of masks, come last */
            const char *what = not_finite(&e.outputs[i % count], &at);
            *name = names[i % count];
            found = (what == a_nan || (what && i >= count)) &&
                    qsim_model_node(m, makers[i % count], n) == QSIM_OK;
        }
    kept_error_free(&unused);
    engine_close(&e);
    free(makers);
    free(names);
    return found;
}

static int blame_node(const tool *t, const char *file, const qsim_model *m, const batch *b,
                      const qsim_error *e) {
    const char *name;
    qsim_node_info n;
    return find_maker(t, file, m, b, &name, &n)
               ? tool_fail(t, QSIM_E_VALUE,
                           "%s: tensor '%.100s' holds a NaN or an infinity, and neither the data "
                           "nor the weights do (node '%.100s', %s)",
                           file, name, n.name, n.op_type)
               : tool_error(t, file, e);
}

/* Says which initializer is not finite; EXIT_OK: all are that a node reads. */
static int blame_weights(const tool *t, const char *file, const qsim_model *m) {
    name_index readers = {0};
    qsim_value_info v;
    qsim_node_info n;
    int32_t from = 0;
    name_index_readers(m, &readers);
    const char *what = not_finite_next(m, &readers, &from, &v, &n);
    name_index_free(&readers);
    return what
               ? tool_fail(t, QSIM_E_VALUE, "%s: initializer '%.100s' holds %s (node '%.100s', %s)",
                           file, v.name, what, n.name, n.op_type)
               : EXIT_OK;
}

int not_finite_fail(const tool *t, const char *file, const qsim_model *m, const dataset *d,
                    const batch *b, const qsim_error *e) {
    const char *what;
    size_t at;
    for (size_t i = 0; i < b->input_count; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_input(m, (int32_t)i, &v) || !(what = not_finite(&b->inputs[i], &at)))
            continue;
        const size_t all = elements(&b->inputs[i]), rows = (size_t)b->samples;
        const size_t row = rows > 0 && all % rows == 0 ? at / (all / rows) : 0;
        return blame_sample(t, d, b, row, v.name, what);
    }
    const int code = blame_weights(t, file, m);
    return code == EXIT_OK ? blame_node(t, file, m, b, e) : code;
}
