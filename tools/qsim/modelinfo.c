/* SPDX-License-Identifier: MIT */
#include "modelinfo.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "io_option.h"

static int by_count(const void *a, const void *b) {
    const op_count *x = a, *y = b;
    return x->count != y->count ? y->count - x->count : strcmp(x->name, y->name);
}

static int by_op_name(const void *a, const void *b) {
    return strcmp(((const op_count *)a)->name, ((const op_count *)b)->name);
}

/* Joins operators of one name, each counted once so far, and sorts them. */
static void count_ops(model_facts *f) {
    size_t kept = 0;
    if (f->op_count == 0)
        return;
    qsort(f->ops, f->op_count, sizeof(*f->ops), by_op_name);
    for (size_t i = 1; i < f->op_count; i++) {
        if (strcmp(f->ops[i].name, f->ops[kept].name) == 0)
            f->ops[kept].count++;
        else
            f->ops[++kept] = f->ops[i];
    }
    f->op_count = kept + 1;
    qsort(f->ops, f->op_count, sizeof(*f->ops), by_count);
}

bool *model_integers(const qsim_model *m) {
    int32_t count = qsim_model_node_count(m);
    bool *integers = tool_alloc((size_t)count, sizeof(*integers));
    for (int32_t i = 0; i < count; i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        integers[i] = qsim_model_node(m, i, &n) == QSIM_OK && n.integer != 0;
    }
    return integers;
}

bool model_has_graphs(const qsim_model *m) {
    qsim_node_info n = {.struct_size = sizeof(n)};
    for (int32_t i = 0; i < qsim_model_node_count(m); i++)
        if (qsim_model_node(m, i, &n) == QSIM_OK && n.graphs > 0)
            return true;
    return false;
}

void model_collect(const qsim_model *m, const bool *integers, model_facts *f) {
    const int32_t count = qsim_model_node_count(m);
    *f = (model_facts){.ops = tool_alloc(count > 0 ? (size_t)count : 0, sizeof(*f->ops))};
    for (int32_t i = 0; i < count; i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) != QSIM_OK)
            continue;
        f->ops[f->op_count++] = (op_count){n.op_type, 1};
        f->nodes++;
        f->integer_nodes += integers[i];
        if (n.macs < 0)
            f->macs_unknown++;
        else
            f->macs += n.macs;
    }
    count_ops(f);
}

void model_facts_free(model_facts *f) {
    free(f->ops);
}

void value_shape(const qsim_value_info *v, text *out) {
    if (v->rank < 0) {
        text_puts(out, "?");
        return;
    }
    text_puts(out, "[");
    for (int32_t i = 0; i < v->rank; i++) {
        text_puts(out, i ? "," : "");
        if (v->dims[i] >= 0)
            text_printf(out, "%lld", (long long)v->dims[i]);
        else
            text_puts(out, v->dim_names && v->dim_names[i] ? v->dim_names[i] : "?");
    }
    text_puts(out, "]");
}

void json_value(json *j, const qsim_value_info *v, const qsim_model *m, bool constant) {
    json_object(j, NULL);
    json_string(j, "name", v->name);
    json_string(j, "dtype", qsim_dtype_name(v->dtype));
    if (v->rank < 0)
        json_null(j, "shape");
    else {
        json_row(j, "shape");
        for (int32_t i = 0; i < v->rank; i++)
            if (v->dims[i] >= 0)
                json_int(j, NULL, v->dims[i]);
            else
                json_string(j, NULL, v->dim_names && v->dim_names[i] ? v->dim_names[i] : "?");
        json_end(j);
    }
    if (constant && v->data)
        json_int(j, "constant_bytes", (int64_t)v->bytes);
    if (m)
        io_json(j, m, v->name);
    json_end(j);
}

void json_model(json *j, const qsim_model *m, const bool *integers) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    model_facts f;
    model_collect(m, integers, &f);
    json_int(j, "opset", qsim_model_opset(m, NULL));
    json_int(j, "ir_version", qsim_model_ir_version(m));
    json_array(j, "inputs");
    for (int32_t i = 0; i < qsim_model_input_count(m); i++)
        if (qsim_model_input(m, i, &v) == QSIM_OK)
            json_value(j, &v, m, false);
    json_end(j);
    json_array(j, "outputs");
    for (int32_t i = 0; i < qsim_model_output_count(m); i++)
        if (qsim_model_output(m, i, &v) == QSIM_OK)
            json_value(j, &v, m, false);
    json_end(j);
    json_object(j, "operators");
    for (size_t i = 0; i < f.op_count; i++)
        json_int(j, f.ops[i].name, f.ops[i].count);
    json_end(j);
    json_int(j, "parameters", qsim_model_parameters(m));
    json_int(j, "parameter_bytes", qsim_model_parameter_bytes(m));
    json_int(j, "macs", f.macs);
    json_int(j, "nodes_of_unknown_macs", f.macs_unknown);
    json_int(j, "integer_nodes", f.integer_nodes);
    json_int(j, "bytes", qsim_model_bytes(m));
    json_object(j, "metadata");
    for (int32_t i = 0; i < qsim_model_metadata_count(m); i++)
        json_string(j, qsim_model_metadata_key(m, i), qsim_model_metadata_value(m, i));
    json_end(j);
    model_facts_free(&f);
}

void table_line(const char *label, const char *format, ...) {
    char line[4096];
    text printable = {0};
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    utf8_printable(&printable, line, 4000);
    printf("%-10s  %s\n", label, printable.data ? printable.data : "");
    text_free(&printable);
}
