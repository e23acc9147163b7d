/* SPDX-License-Identifier: MIT */
#include "selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/slot.h"
#include "engine.h"
#include "name_index.h"

/* ---- ways ---- */

static int add_way(selftest *s, int32_t isa, int32_t threads) {
    s->ways = tool_grow(s->ways, s->way_count + 1, sizeof(*s->ways));
    selftest_way *w = &s->ways[s->way_count];
    *w = (selftest_way){.isa = isa, .threads = threads};
    const int code = tool_context(s->t, isa, threads, &w->ctx);
    s->way_count += code == EXIT_OK;
    return code;
}

int selftest_open(const tool *t, selftest *s) {
    memset(s, 0, sizeof(*s));
    s->t = t;
    const int32_t all = qsim_ctx_threads(t->ctx), many = t->threads == 1 ? 1 : all < 2 ? 2 : all;
    int code = tool_context(t, QSIM_ISA_C, 1, &s->plain);
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa) && code == EXIT_OK; isa++) {
        if (!tool_takes_isa(t, isa))
            continue;
        if (isa != QSIM_ISA_C)
            code = add_way(s, isa, 1);
        if (code == EXIT_OK && many > 1)
            code = add_way(s, isa, many);
    }
    if (code == EXIT_OK && s->way_count == 0)
        code = tool_usage(t, "another --isa or -T has something to compare",
                          "selftest: plain C on one thread is what all else is compared with");
    return code;
}

void selftest_close(selftest *s) {
    for (size_t i = 0; i < s->way_count; i++)
        qsim_ctx_free(s->ways[i].ctx);
    qsim_ctx_free(s->plain);
    free(s->ways);
    text_free(&s->fault);
}

/* ---- one model ---- */

/* The results of all nodes, the first of which that differs is told, and the outputs as users get
 * them. */
enum { APART, FUSED, FORMS };

typedef struct subject {
    const char *name;
    const qsim_model *model;
    const qsim_tensor *inputs;
    size_t input_count;
    const char **tensors; /* results of nodes, and the nodes */
    int32_t *nodes;
    size_t tensor_count;
    engine plain[FORMS];
} subject;

/* Those of a known type: sequences have none. */
static void list_tensors(subject *x) {
    name_index values = {.count = 0};
    for (int32_t i = 0; i < qsim_model_value_count(x->model); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_value(x->model, i, &v) == QSIM_OK && v.dtype != QSIM_UNDEFINED)
            name_index_add(&values, v.name, i);
    }
    name_index_sort(&values);
    for (int32_t i = 0; i < qsim_model_node_count(x->model); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(x->model, i, &n))
            continue;
        for (int32_t k = 0; k < n.output_count; k++) {
            if (name_index_find(&values, n.outputs[k]) < 0)
                continue;
            x->tensors = tool_grow(x->tensors, x->tensor_count + 1, sizeof(*x->tensors));
            x->nodes = tool_grow(x->nodes, x->tensor_count + 1, sizeof(*x->nodes));
            x->tensors[x->tensor_count] = n.outputs[k];
            x->nodes[x->tensor_count++] = i;
        }
    }
    name_index_free(&values);
}

static int open_form(const tool *t, const subject *x, int form, engine *e) {
    if (form == APART)
        return engine_of_model(t, x->name, x->model, x->tensors, x->tensor_count, e);
    return engine_of_model(t, x->name, x->model, NULL, 0, e);
}

/*
 * The first element whose bits differ, or as many as `a` has elements: there is none. All NaNs are
 * the same, since IEEE 754 leaves open which one an operation makes. Types and sizes are the same.
 */
static size_t first_difference(const qsim_tensor *a, const qsim_tensor *b) {
    const size_t n = elements(a), bits = (size_t)qsim_dtype_bits(a->dtype);
    if (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0)
        return n;
    for (size_t i = 0; i < n; i++) {
        const size_t at = i * bits / 8, size = bits < 8 ? 1 : bits / 8;
        if (memcmp((char *)a->data + at, (char *)b->data + at, size) != 0 &&
            !(is_float(a->dtype) && isnan(element(a, i)) && isnan(element(b, i))))
            return i;
    }
    return n;
}

static bool same_sizes(const qsim_tensor *a, const qsim_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(*a->dims)) == 0);
}

static void tell_fault(selftest *s, const selftest_way *w, const subject *x, int form, size_t i,
                       const qsim_tensor *got, const qsim_tensor *plain) {
    qsim_node_info n = {.struct_size = sizeof(n)};
    if (s->fault.size)
        return;
    text_printf(&s->fault, "%s: %s on %d thread%s: '%.100s'", x->name, qsim_isa_name(w->isa),
                w->threads, tool_plural(w->threads),
                form == APART ? x->tensors[i]
                              : qsim_session_output_name(x->plain[form].session, (int32_t)i));
    if (form == APART && qsim_model_node(x->model, x->nodes[i], &n) == QSIM_OK)
        text_printf(&s->fault, " (node '%.100s', %s)", n.name, n.op_type);
    if (!same_sizes(got, plain)) {
        text_puts(&s->fault, " has other sizes than in plain C on one thread");
        return;
    }
    const size_t at = first_difference(got, plain);
    text_printf(&s->fault, ": element %zu is %.9g, in plain C on one thread %.9g", at,
                element(got, at), element(plain, at));
}

static void compare_outputs(selftest *s, selftest_way *w, const subject *x, int form,
                            const engine *e) {
    for (size_t i = 0; i < e->output_count; i++) {
        const qsim_tensor *got = &e->outputs[i], *plain = &x->plain[form].outputs[i];
        w->tensors++;
        if (same_sizes(got, plain) && first_difference(got, plain) == elements(got))
            continue;
        w->different++;
        tell_fault(s, w, x, form, i, got, plain);
    }
}

/* The second execution finds what the first one left in the run's memory. */
static int try_form(selftest *s, selftest_way *w, const subject *x, int form) {
    tool as = *s->t;
    engine e;
    as.ctx = w->ctx;
    int code = open_form(&as, x, form, &e);
    for (int i = 0; i < 2 && code == EXIT_OK; i++) {
        code = engine_execute(&as, x->name, &e, x->inputs, x->input_count);
        if (code == EXIT_OK)
            compare_outputs(s, w, x, form, &e);
    }
    engine_close(&e);
    return code;
}

int selftest_model(selftest *s, const char *name, const qsim_model *m, const qsim_tensor *inputs,
                   size_t count) {
    subject x = {.name = name, .model = m, .inputs = inputs, .input_count = count};
    tool plain = *s->t;
    plain.ctx = s->plain;
    int code = tool_list_model(s->t, name, m);
    if (code == EXIT_OK)
        list_tensors(&x);
    for (int form = 0; form < FORMS && code == EXIT_OK; form++) {
        code = open_form(&plain, &x, form, &x.plain[form]);
        if (code == EXIT_OK)
            code = engine_execute(&plain, name, &x.plain[form], inputs, count);
        for (size_t i = 0; i < s->way_count && code == EXIT_OK; i++)
            code = try_form(s, &s->ways[i], &x, form);
    }
    s->models++;
    for (int form = 0; form < FORMS; form++)
        engine_close(&x.plain[form]);
    free(x.tensors);
    free(x.nodes);
    return code;
}
