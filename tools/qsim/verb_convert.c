/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <qsim/ptq.h>

#include "engine.h"
#include "verbs.h"

typedef struct converting {
    const char *file, *output, *form;
    qsim_model *model, *result;
} converting;

/* The number of QuantizeLinear and DequantizeLinear. */
static int32_t count_pairs(const qsim_model *m) {
    int32_t count = 0;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) == QSIM_OK)
            count += !strcmp(n.op_type, "QuantizeLinear") || !strcmp(n.op_type, "DequantizeLinear");
    }
    return count;
}

static void print(const tool *t, const converting *o) {
    const int32_t before = qsim_model_node_count(o->model);
    const int32_t after = qsim_model_node_count(o->result);
    const int32_t pairs = count_pairs(o->model), made = count_pairs(o->result);
    char a[32], b[32];
    json j = {0};
    if (!t->json) {
        printf("%s: %d nodes, %s -> %s: %d nodes, %s\n", tool_base_name(o->file), (int)before,
               tool_bytes((double)qsim_model_bytes(o->model), a), tool_base_name(o->output),
               (int)after, tool_bytes((double)qsim_model_bytes(o->result), b));
        printf("QuantizeLinear and DequantizeLinear: %d before, %d now\n", (int)pairs, (int)made);
        return;
    }
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", o->file);
    json_string(&j, "output", o->output);
    json_string(&j, "to", o->form);
    json_int(&j, "nodes_before", before);
    json_int(&j, "nodes", after);
    json_int(&j, "pair_nodes_before", pairs);
    json_int(&j, "pair_nodes", made);
    json_int(&j, "bytes_before", qsim_model_bytes(o->model));
    json_int(&j, "bytes", qsim_model_bytes(o->result));
    json_end(&j);
    tool_print_json(t, &j);
}

static int convert(const tool *t, converting *o) {
    const int32_t format = strcmp(o->form, "qdq") == 0 ? QSIM_FORMAT_QDQ : QSIM_FORMAT_FLOAT;
    qsim_error e;
    int code = tool_load_model(t, o->file, 0, &o->model);
    if (code)
        return code;
    if (qsim_model_convert_to(o->model, format, &o->result, &e))
        return tool_error(t, o->file, &e);
    code = tool_list_model(t, o->output, o->result);
    if (code == EXIT_OK)
        code = tool_save_model(t, o->result, o->output);
    if (code == EXIT_OK && strcmp(o->output, "-") != 0)
        print(t, o);
    return code;
}

static int run(tool *t) {
    converting o = {.output = args_value(&t->args, "output"), .form = args_value(&t->args, "to")};
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    o.file = t->args.operands[0];
    if (!o.form)
        return tool_usage(t, "--to qdq or --to float", "convert: --to FORM is missing");
    if (!o.output)
        return tool_usage(t, "for instance -o converted.onnx", "convert: -o FILE is missing");
    if (!tool_may_write_model(t, o.output, &code))
        return code;
    code = convert(t, &o);
    qsim_model_free(o.result);
    qsim_model_free(o.model);
    return code;
}

static const option options[] = {
    {"to", "FORM", "pairs of QuantizeLinear and DequantizeLinear, or a float model", 0,
     "qdq|float"},
    OPTION_OUTPUT("the converted model, standard ONNX; '-': stdout"),
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_convert = {"convert",
                           "MODEL --to qdq|float -o FILE",
                           "write a quantized model as QDQ pairs or in floats",
                           options,
                           run,
                           false,
                           "int8.onnx --to qdq -o qdq.onnx"};
