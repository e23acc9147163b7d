/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "common/columns.h"
#include "saturation.h"

#define MOST_ROWS 10

static double sqnr(const saturation_layer *l) {
    return 10 * log10(l->signal / l->noise);
}

static const char *name_of(const saturation_layer *l) {
    return l->node.name[0] ? l->node.name : l->node.outputs[0];
}

static size_t count_saturating(const saturation *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        count += s->layers[i].saturated > 0;
    return count;
}

static int by_sqnr(const void *a, const void *b) {
    const saturation_layer *x = *(const saturation_layer *const *)a,
                           *y = *(const saturation_layer *const *)b;
    const double p = x->noise * y->signal, q = y->noise * x->signal;
    return p == q ? (x > y) - (x < y) : p > q ? -1 : 1;
}

static void print_layers(const tool *t, const saturation *s, size_t saturating) {
    static const char *const heading[] = {"layer", "operator", "sums that saturate", "SQNR"};
    const saturation_layer **order = tool_alloc(saturating, sizeof(*order));
    const size_t shown = t->verbose || saturating <= MOST_ROWS ? saturating : MOST_ROWS;
    table rows = {.columns = "llrr"};
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->layers[i].saturated > 0)
            order[n++] = &s->layers[i];
    qsort(order, n, sizeof(*order), by_sqnr);
    for (size_t i = 0; i < 4; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < shown; i++) {
        table_cell(&rows, "%s", name_of(order[i]));
        table_cell(&rows, "%s", order[i]->node.op_type);
        table_cell(&rows, "%.3g %%", 100.0 * (double)order[i]->saturated / (double)order[i]->sums);
        table_cell(&rows, "%.2f dB", table_number(sqnr(order[i])));
    }
    table_print(&rows, stdout);
    if (shown < saturating)
        printf("and %zu more; -v prints all\n", saturating - shown);
    free(order);
}

static void print_outputs(const saturation *s) {
    for (size_t i = 0; i < s->outputs.count; i++) {
        const qsim_metrics *m = &s->outputs.metrics[i];
        printf("output '%s': SQNR %.2f dB", s->outputs.a[i], table_number(qsim_metrics_sqnr(m)));
        if (s->has_classes[i])
            printf(", top-1 agreement %.2f %% of %llu row%s",
                   tensor_pairs_agreement(&s->outputs, i), (unsigned long long)m->rows,
                   tool_plural((int64_t)m->rows));
        putchar('\n');
    }
}

static void warn(const tool *t, const saturation *s) {
    if (s->is_signed)
        tool_warn(t,
                  "activations are int8, of which ONNX Runtime turns some into uint8: the figures "
                  "are estimates");
    if (s->unknown.size)
        tool_warn(t, "not simulated, computed exactly: %s", s->unknown.data);
}

void saturation_print(const tool *t, const saturation *s) {
    const size_t saturating = count_saturating(s);
    if (s->count == 0) {
        printf(
            "%s: nothing saturates: of %zu layer%s on integers none has uint8 activations and int8 "
            "weights\n",
            tool_base_name(s->file), s->exact, tool_plural((int64_t)s->exact));
        warn(t, s);
        return;
    }
    printf("%s, %lld sample%s: runtimes that add two products in 16 bits where a CPU has no VNNI,\n"
           "as ONNX Runtime on x86, compared with exact sums\n\n",
           tool_base_name(s->file), (long long)s->samples, tool_plural(s->samples));
    if (saturating > 0) {
        print_layers(t, s, saturating);
        putchar('\n');
    }
    printf("%zu of %zu layers with uint8 activations and int8 weights saturate; %zu other%s exact "
           "there\n",
           saturating, s->count, s->exact, s->exact == 1 ? " is" : "s are");
    print_outputs(s);
    warn(t, s);
    if (saturating > 0 && !t->quiet)
        fprintf(stderr,
                "hint: qsim quantize --reduce-pairs scales weights so that ONNX Runtime's sums are "
                "exact there, --reduce-range so that those of any runtime are\n");
}

void saturation_print_json(const tool *t, const saturation *s) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", s->file);
    json_int(&j, "samples", s->samples);
    json_array(&j, "layers");
    for (size_t i = 0; i < s->count; i++) {
        const saturation_layer *l = &s->layers[i];
        json_object(&j, NULL);
        json_string(&j, "name", name_of(l));
        json_string(&j, "operator", l->node.op_type);
        json_int(&j, "sums", (int64_t)l->sums);
        json_int(&j, "saturated", (int64_t)l->saturated);
        json_number(&j, "sqnr_db", sqnr(l));
        json_end(&j);
    }
    json_end(&j);
    json_int(&j, "exact_layers", (int64_t)s->exact);
    json_string(&j, "not_simulated", s->unknown.size ? s->unknown.data : NULL);
    json_array(&j, "outputs");
    for (size_t i = 0; i < s->outputs.count; i++) {
        json_object(&j, NULL);
        json_string(&j, "name", s->outputs.a[i]);
        json_number(&j, "sqnr_db", qsim_metrics_sqnr(&s->outputs.metrics[i]));
        json_number(&j, "agreement", tensor_pairs_agreement(&s->outputs, i));
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}
