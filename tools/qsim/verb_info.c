/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "common/columns.h"
#include "attributes.h"
#include "io_option.h"
#include "library_info.h"
#include "modelinfo.h"
#include "scales.h"
#include "steps.h"
#include "verbs.h"

/* ---- text ---- */

static void add_value(table *lines, const char *what, const qsim_value_info *v,
                      const qsim_model *m) {
    text shape = {0};
    value_shape(v, &shape);
    text_puts(&shape, "  ");
    if (!io_text(m, v->name, &shape))
        shape.data[shape.size -= 2] = 0;
    table_cell(lines, "%-10s", what);
    table_cell(lines, "%s", v->name);
    table_cell(lines, "%s", qsim_dtype_name(v->dtype));
    table_cell(lines, "%s", shape.data);
    text_free(&shape);
}

/* Bytes of all constants, scales and zero points among them. */
static int64_t constant_bytes(const qsim_model *m) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < qsim_model_value_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_value(m, i, &v) == QSIM_OK && v.data)
            bytes += (int64_t)v.bytes;
    }
    return bytes;
}

/* What the file holds beside its parameters. */
static void print_rest(const qsim_model *m) {
    const int64_t all = constant_bytes(m), others = all - qsim_model_parameter_bytes(m);
    const int64_t graph = qsim_model_bytes(m) - all;
    const int64_t both = qsim_model_bytes(m) - qsim_model_parameter_bytes(m);
    char a[32], b[32];
    if (others < 0 && both >= 0) /* parameters are in nodes (Constant) */
        table_line("rest", "%s graph, names, metadata", tool_bytes((double)both, b));
    if (others >= 0 && graph >= 0) /* else the file stores constants in another encoding */
        table_line("rest", "%s scales and other constants, %s graph, names and metadata",
                   tool_bytes((double)others, a), tool_bytes((double)graph, b));
}

/* Does an input have an axis without a size, besides the first, which counts samples? */
static bool has_free_axes(const qsim_model *m) {
    bool found = false;
    for (int32_t i = 0; i < qsim_model_input_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_input(m, i, &v) == QSIM_OK)
            for (int32_t k = 1; k < v.rank; k++)
                found = found || v.dims[k] < 0;
    }
    return found;
}

static void print_summary(const tool *t, const char *file, const qsim_model *m,
                          const bool *integers) {
    char size[32], weights[32];
    table lines = {.columns = "llll"};
    model_facts f;
    model_collect(m, integers, &f);
    table_line("file", "%s  %s", tool_base_name(file),
               tool_bytes((double)qsim_model_bytes(m), size));
    if (t->state->other_models.size)
        table_line("others", "%s", t->state->other_models.data);
    table_line("opset", "%lld  ir version %lld", (long long)qsim_model_opset(m, NULL),
               (long long)qsim_model_ir_version(m));
    for (int32_t i = 0; i < qsim_model_input_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_input(m, i, &v) == QSIM_OK)
            add_value(&lines, i ? "" : "inputs", &v, m);
    }
    for (int32_t i = 0; i < qsim_model_output_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_output(m, i, &v) == QSIM_OK)
            add_value(&lines, i ? "" : "outputs", &v, m);
    }
    table_print(&lines, stdout);
    text ops = {0};
    for (size_t i = 0; i < f.op_count; i++)
        text_printf(&ops, "%s%s %d", i ? ", " : "", f.ops[i].name, f.ops[i].count);
    table_line("operators", "%s", ops.data ? ops.data : "none");
    table_line("parameters", "%lld  %s", (long long)qsim_model_parameters(m),
               tool_bytes((double)qsim_model_parameter_bytes(m), weights));
    print_rest(m);
    const char *sizes = has_free_axes(m) ? ", free axes taken as 1" : "";
    if (f.macs_unknown)
        table_line("MACs", "%lld and %d nodes of unknown shape%s", (long long)f.macs,
                   f.macs_unknown, sizes);
    else
        table_line("MACs", "%lld%s", (long long)f.macs, sizes);
    table_line("quantized", "%d of %d nodes run in integers", f.integer_nodes, f.nodes);
    for (int32_t i = 0; i < qsim_model_metadata_count(m); i++)
        table_line(i ? "" : "metadata", "%s = %s", qsim_model_metadata_key(m, i),
                   qsim_model_metadata_value(m, i));
    text_free(&ops);
    model_facts_free(&f);
}

static void join(text *out, const char *const *names, int32_t count) {
    text_puts(out, "");
    for (int32_t i = 0; i < count; i++)
        text_printf(out, "%s%s", i ? ", " : "", names[i]);
}

static void print_nodes(const qsim_model *m, const bool *integers) {
    table t = {.columns = "rlllrll"};
    const char *const heading[] = {"#", "operator", "node", "outputs", "MACs", "runs in", "inputs"};
    for (size_t i = 0; i < 7; i++)
        table_cell(&t, "%s", heading[i]);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        text in = {0}, out = {0};
        if (qsim_model_node(m, i, &n) != QSIM_OK)
            continue;
        join(&in, n.inputs, n.input_count);
        join(&out, n.outputs, n.output_count);
        table_cell(&t, "%d", i);
        table_cell(&t, "%s%s%s", n.domain, *n.domain ? ":" : "", n.op_type);
        table_cell(&t, "%s", n.name);
        table_cell(&t, "%s", out.data);
        table_cell(&t, n.macs < 0 ? "?" : "%lld", (long long)n.macs);
        table_cell(&t, "%s", integers[i] ? "integers" : "float");
        table_cell(&t, "%s", in.data);
        text_free(&in);
        text_free(&out);
    }
    putchar('\n');
    table_print(&t, stdout);
}

static void print_tensors(const qsim_model *m) {
    table t = {.columns = "lllr"};
    const char *const heading[] = {"tensor", "type", "shape", "constant bytes"};
    for (size_t i = 0; i < 4; i++)
        table_cell(&t, "%s", heading[i]);
    for (int32_t i = 0; i < qsim_model_value_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        text shape = {0};
        if (qsim_model_value(m, i, &v) != QSIM_OK)
            continue;
        value_shape(&v, &shape);
        table_cell(&t, "%s", v.name);
        table_cell(&t, "%s", qsim_dtype_name(v.dtype));
        table_cell(&t, "%s", shape.data);
        if (v.data)
            table_cell(&t, "%zu", v.bytes);
        else
            table_cell(&t, "%s", "");
        text_free(&shape);
    }
    putchar('\n');
    table_print(&t, stdout);
}

/* ---- JSON ---- */

static void json_nodes(json *j, const qsim_model *m, const bool *integers) {
    json_array(j, "nodes");
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) != QSIM_OK)
            continue;
        json_object(j, NULL);
        json_string(j, "name", n.name);
        json_string(j, "domain", n.domain);
        json_string(j, "operator", n.op_type);
        json_array(j, "inputs");
        for (int32_t k = 0; k < n.input_count; k++)
            json_string(j, NULL, n.inputs[k]);
        json_end(j);
        json_array(j, "outputs");
        for (int32_t k = 0; k < n.output_count; k++)
            json_string(j, NULL, n.outputs[k]);
        json_end(j);
        if (n.macs < 0)
            json_null(j, "macs");
        else
            json_int(j, "macs", n.macs);
        json_bool(j, "integer", integers[i]);
        attributes_json(j, m, i);
        json_end(j);
    }
    json_end(j);
}

static void json_tensors(json *j, const qsim_model *m) {
    json_array(j, "tensors");
    for (int32_t i = 0; i < qsim_model_value_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_value(m, i, &v) == QSIM_OK)
            json_value(j, &v, NULL, true);
    }
    json_end(j);
}

static int print_json(const tool *t, const char *file, const qsim_model *m, const bool *integers,
                      const steps *s) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", file);
    json_model(&j, m, integers);
    if (args_has(&t->args, "nodes"))
        json_nodes(&j, m, integers);
    if (args_has(&t->args, "steps"))
        steps_json(&j, "steps", s->engine.run);
    if (args_has(&t->args, "tensors"))
        json_tensors(&j, m);
    if (args_has(&t->args, "quantization"))
        scales_json(&j, m);
    json_end(&j);
    return tool_print_json(t, &j);
}

static int run(tool *t) {
    qsim_model *m;
    if (!tool_operands(t, 0, 1))
        return EXIT_USAGE;
    if (t->args.operand_count == 0)
        return library_info(t);
    if (args_has(&t->args, "ops"))
        return tool_usage(t, NULL, "--ops lists operators of the library, without a model");
    if (args_has(&t->args, "limits"))
        return tool_usage(t, NULL, "--limits measures this machine, without a model");
    const char *file = t->args.operands[0];
    int code = tool_load_model(t, file, args_has(&t->args, "inspect") ? QSIM_LOAD_INSPECT : 0, &m);
    if (code)
        return code;
    bool *integers = model_integers(m);
    steps s = {0};
    if (args_has(&t->args, "steps"))
        code = steps_open(t, file, m, &s);
    if (code == EXIT_OK && t->json)
        code = print_json(t, file, m, integers, &s);
    else if (code == EXIT_OK) {
        print_summary(t, file, m, integers);
        if (args_has(&t->args, "nodes"))
            print_nodes(m, integers);
        if (args_has(&t->args, "steps"))
            steps_print(s.engine.run);
        if (args_has(&t->args, "tensors"))
            print_tensors(m);
        if (args_has(&t->args, "quantization"))
            scales_print(m);
    }
    steps_close(&s);
    free(integers);
    qsim_model_free(m);
    return code;
}

static const option options[] = {
    {"nodes", NULL, "list the nodes, and the type in which each runs", 0, NULL},
    {"steps", NULL, "list the steps of a run, with kernel and instruction set", 0, NULL},
    OPTION_SHAPE,
    {"tensors", NULL, "list the tensors", 0, NULL},
    {"quantization", NULL, "list scale and zero point of every quantized tensor", 0, NULL},
    {"ops", NULL, "without a model: list the supported operators", 0, NULL},
    {"limits", NULL, "without a model: measure this machine with each instruction set", 0, NULL},
    {"inspect", NULL, "accept models with operators that cannot be run", 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_info = {
    "info", "[MODEL]",           "describe a model, or what this library can do", options, run,
    false,  "model.onnx --nodes"};
