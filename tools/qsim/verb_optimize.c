/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "engine.h"
#include "verbs.h"

typedef struct optimizing {
    const char *file, *output;
    qsim_model *model, *result;
} optimizing;

static void print(const tool *t, const optimizing *o) {
    const char *level = args_value(&t->args, "level");
    const int32_t before = qsim_model_node_count(o->model);
    const int32_t after = qsim_model_node_count(o->result);
    char a[32], b[32];
    json j = {0};
    if (!t->json) {
        printf("%s: %d nodes, %s -> %s: %d nodes, %s\n", tool_base_name(o->file), (int)before,
               tool_bytes((double)qsim_model_bytes(o->model), a), tool_base_name(o->output),
               (int)after, tool_bytes((double)qsim_model_bytes(o->result), b));
        return;
    }
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", o->file);
    json_string(&j, "output", o->output);
    json_string(&j, "level", level ? level : "all");
    json_int(&j, "nodes_before", before);
    json_int(&j, "nodes", after);
    json_int(&j, "bytes_before", qsim_model_bytes(o->model));
    json_int(&j, "bytes", qsim_model_bytes(o->result));
    json_end(&j);
    tool_print_json(t, &j);
}

static int optimize(const tool *t, optimizing *o) {
    qsim_error e;
    int code = tool_load_model(t, o->file, 0, &o->model);
    if (code)
        return code;
    if (qsim_model_optimize(o->model, level_option(t), &o->result, &e))
        return tool_error(t, o->file, &e);
    code = tool_list_model(t, o->output, o->result);
    if (code == EXIT_OK)
        code = tool_save_model(t, o->result, o->output);
    if (code == EXIT_OK && strcmp(o->output, "-") != 0)
        print(t, o);
    return code;
}

static int run(tool *t) {
    optimizing o = {.output = args_value(&t->args, "output")};
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    o.file = t->args.operands[0];
    if (!o.output)
        return tool_usage(t, "for instance -o optimized.onnx", "optimize: -o FILE is missing");
    if (!tool_may_write_model(t, o.output, &code))
        return code;
    code = optimize(t, &o);
    qsim_model_free(o.result);
    qsim_model_free(o.model);
    return code;
}

static const option options[] = {
    OPTION_LEVEL,
    OPTION_OUTPUT("the optimized model, standard ONNX; '-': stdout"),
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_optimize = {"optimize",
                            "MODEL -o FILE",
                            "write the optimized model",
                            options,
                            run,
                            false,
                            "model.onnx --level extended -o optimized.onnx"};
