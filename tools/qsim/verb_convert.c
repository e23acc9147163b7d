/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <qsim/ptq.h>

#include "deriving.h"
#include "verbs.h"

static bool is_to_onnx(const deriving *d) {
    return strcmp(d->how, "onnx") == 0;
}

/* The number of QuantizeLinear, also of dynamic ones, and DequantizeLinear, or of operators that
 * ONNX lacks. */
static int32_t count_nodes(const deriving *d, const qsim_model *m) {
    int32_t count = 0;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) != QSIM_OK)
            continue;
        count += is_to_onnx(d) ? n.domain[0] != 0 : strstr(n.op_type, "uantizeLinear") != NULL;
    }
    return count;
}

static void report(json *j, const deriving *d) {
    const int32_t before = count_nodes(d, d->model), now = count_nodes(d, d->result);
    if (!j) {
        printf("%s: %d before, %d now\n",
               is_to_onnx(d) ? "operators of other domains" : "QuantizeLinear and DequantizeLinear",
               (int)before, (int)now);
        return;
    }
    json_int(j, is_to_onnx(d) ? "foreign_nodes_before" : "pair_nodes_before", before);
    json_int(j, is_to_onnx(d) ? "foreign_nodes" : "pair_nodes", now);
}

static int convert(const tool *t, deriving *d, qsim_error *e) {
    const int32_t format = is_to_onnx(d)                ? QSIM_FORMAT_ONNX
                           : strcmp(d->how, "qdq") == 0 ? QSIM_FORMAT_QDQ
                                                        : QSIM_FORMAT_FLOAT;
    (void)t;
    return qsim_model_convert_to(d->model, format, &d->result, e);
}

static int run(tool *t) {
    deriving d = {.verb = "convert", .key = "to", .how = args_value(&t->args, "to")};
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    if (!d.how)
        return tool_usage(t, "--to qdq, --to float or --to onnx", "convert: --to FORM is missing");
    return derive_model(t, &d, convert, report);
}

static const option options[] = {
    {"to", "FORM",
     "pairs of QuantizeLinear and DequantizeLinear, a float model, or one without com.microsoft", 0,
     "qdq|float|onnx"},
    OPTION_OUTPUT("the converted model, standard ONNX; '-': stdout"),
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_convert = {"convert",
                           "MODEL --to qdq|float|onnx -o FILE",
                           "write a model as QDQ pairs, in floats or in ONNX alone",
                           options,
                           run,
                           false,
                           "int8.onnx --to qdq -o qdq.onnx"};
