/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <qsim/ptq.h>

#include "deriving.h"
#include "verbs.h"

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

static void report(json *j, const deriving *d) {
    const int32_t before = count_pairs(d->model), now = count_pairs(d->result);
    if (!j) {
        printf("QuantizeLinear and DequantizeLinear: %d before, %d now\n", (int)before, (int)now);
        return;
    }
    json_int(j, "pair_nodes_before", before);
    json_int(j, "pair_nodes", now);
}

static int convert(const tool *t, deriving *d, qsim_error *e) {
    const int32_t format = strcmp(d->how, "qdq") == 0 ? QSIM_FORMAT_QDQ : QSIM_FORMAT_FLOAT;
    (void)t;
    return qsim_model_convert_to(d->model, format, &d->result, e);
}

static int run(tool *t) {
    deriving d = {.verb = "convert", .key = "to", .how = args_value(&t->args, "to")};
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    if (!d.how)
        return tool_usage(t, "--to qdq or --to float", "convert: --to FORM is missing");
    return derive_model(t, &d, convert, report);
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
