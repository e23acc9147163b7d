/* SPDX-License-Identifier: MIT */
#include "deriving.h"
#include "engine.h"
#include "verbs.h"

static int optimize(const tool *t, deriving *d, qsim_error *e) {
    return qsim_model_optimize(d->model, level_option(t), &d->result, e);
}

static int run(tool *t) {
    const char *level = args_value(&t->args, "level");
    deriving d = {.verb = "optimize", .key = "level", .how = level ? level : "all"};
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    return derive_model(t, &d, optimize, NULL);
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
