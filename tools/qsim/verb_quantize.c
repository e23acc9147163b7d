/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "common/preprocess.h"
#include "common/progress.h"
#include "io_option.h"
#include "pages.h"
#include "quantizing.h"
#include "verbs.h"

static int get_calibration(const tool *t, quantizing *q) {
    const char *path = args_value(&t->args, "calibration");
    /* In other modes a calibration is optional: its means correct biases. */
    bool needed = q->options.mode == QSIM_MODE_STATIC;
    bool wanted = needed || !q->options.no_bias_correction;
    int code = EXIT_OK;
    if (needed && !path && recipe_has_ranges(q) && !args_has(&t->args, "data"))
        return EXIT_OK;
    if (needed && !path && !args_has(&t->args, "data"))
        return tool_usage(t, "--data SPEC calibrates on data; --mode dynamic needs none",
                          "quantize: --data or --calibration "
                          "is missing");
    if (args_has(&t->args, "data"))
        code = dataset_open(t, q->model, &q->data);
    q->judges &= q->data != NULL;
    const bool narrow = q->options.weight_type == QSIM_INT4 || q->options.weight_type == QSIM_UINT4;
    if (!code && narrow && !q->options.no_gptq && (path || !q->data))
        tool_note(t, "4-bit weights are rounded to the nearest; --data without --calibration "
                     "rounds them by GPTQ");
    needed |= narrow && !q->options.no_gptq;
    if (code || !(wanted || needed) || !(path || q->data))
        return code;
    if (!path && !judge_hold_out(t, q->data, &q->held_out))
        return EXIT_USAGE;
    qsim_quantize_options kept = q->options;
    kept.keep_moments = args_has(&t->args, "refine");
    const qsim_calibration_options o = {.struct_size = sizeof(o), .quantize = &kept};
    return path ? calibration_open(t, path, &q->calibration)
                : calibrate_data(t, q->file, q->model, &o, q->data, &q->calibration);
}

static int quantize(const tool *t, quantizing *q) {
    progress p = {.t = t}; /* not begun after an interrupt */
    qsim_error e;
    if (!q->interrupted) {
        progress_begin(&p, t);
        q->options.progress = progress_step;
        q->options.progress_user = &p;
    }
    int code = qsim_recipe_create(t->ctx, &q->decided, &e);
    q->options.decided = q->decided;
    if (!code)
        code = qsim_quantize(q->model, q->calibration, &q->options, &q->result, &e);
    progress_end(&p);
    if (code)
        return quantize_error(t, q, &e);
    qsim_ctx *before = tool_begin_work(t->ctx);
    code = tool_list_model(t, q->file, q->result);
    if (code == EXIT_OK)
        code = quantize_layers_read(t, q);
    tool_end_work(t->ctx, before);
    return code;
}

static void draw_page(page *p, const quantizing *q, const quantize_check *check) {
    const qsim_verdict *v = check->judging.verdict;
    const page_model models[2] = {
        {tool_base_name(q->file), qsim_model_bytes(q->model), check->pace.ms[0]},
        {tool_base_name(q->output), qsim_model_bytes(q->result), check->pace.ms[1]}};
    if (!p->path)
        return;
    page_models(p, models, 2);
    page_layers(p, v);
    if (q->options.mode == QSIM_MODE_STATIC)
        page_ranges(p, RANGES_CHOSEN, q->calibration, q->options.method, q->options.percentile, v,
                    24);
}

static void report(const tool *t, page *p, quantizing *q, const quantize_check *check) {
    quantize_warn_unchanged(t, q);
    draw_page(p, q, check);
    if (!t->json || p->path) {
        page_report_begin(t, p);
        quantize_print(t, q, check);
        page_report_end(t, p);
    }
    if (t->json)
        quantize_print_json(t, q, check);
}

static int quantize_file(tool *t, page *p, quantizing *q, quantize_check *check) {
    qsim_error e;
    int code = tool_load_model(t, q->file, 0, &q->model);
    if (code == EXIT_OK)
        code = recipe_open(t, q);
    if (code == EXIT_OK && args_has(&t->args, "dry-run")) {
        preprocess unused;
        if (!preprocess_find(t, &unused))
            return EXIT_USAGE;
        const char *path = args_value(&t->args, "calibration");
        code = path ? calibration_open(t, path, &q->calibration) : EXIT_OK;
        return code ? code : quantize_print_layers(t, q);
    }
    /* Finds rules without a match before long work begins. */
    if (code == EXIT_OK && q->options.rule_count > 0 &&
        qsim_quantize_layers(q->model, NULL, &q->options, NULL, NULL, &e) < 0)
        code = quantize_error(t, q, &e);
    if (code == EXIT_OK)
        code = get_calibration(t, q);
    if (code == EXIT_OK && quantize_searches(t, q))
        code = quantize_search(t, q);
    if (code == EXIT_OK)
        code = quantize(t, q);
    if (code == EXIT_OK)
        quantize_warn_of_rules(t, q);
    if (code == EXIT_OK && !q->interrupted)
        code = quantize_measure(t, q, check);
    if (code == EXIT_OK)
        code = io_apply(t, q->file, args_value(&t->args, "io"), &q->result);
    if (!q->interrupted)
        code = tool_go_on(t, q->file, code);
    if (code == EXIT_OK)
        code = tool_save_model(t, q->result, q->output);
    if (code == EXIT_OK)
        code = recipe_save(t, q);
    if (code == EXIT_OK)
        code = quantize_save_attempts(t, q);
    if (code == EXIT_OK && q->interrupted)
        return tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted; %s is the best found until then",
                         q->file, q->output);
    if (code == EXIT_OK && strcmp(q->output, "-") != 0)
        report(t, p, q, check);
    return code ? code : judge_bounds(&check->judging, &check->limits);
}

static int run(tool *t) {
    quantizing q = {.output = args_value(&t->args, "output")};
    const char *recipe = args_value(&t->args, "save-recipe"),
               *attempts = args_value(&t->args, "attempts");
    quantize_check check = {.next = {.count = 0}};
    page p;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    q.file = t->args.operands[0];
    if (!q.output && !args_has(&t->args, "dry-run"))
        return tool_usage(t, "for instance -o model-int8.onnx", "quantize: -o FILE is missing");
    if (q.output && !tool_may_write_model(t, q.output, &code))
        return code;
    if (recipe && !tool_may_write(t, recipe, &code))
        return code;
    if (attempts && !tool_may_write(t, attempts, &code))
        return code;
    if (!page_open(t, &p, &code))
        return code;
    if (judge_has_bounds(t) && !args_has(&t->args, "data"))
        return tool_usage(t, NULL, "quantize: --min-... judges by --data, which is missing");
    if (!judge_bounds_read(t, &check.limits))
        return EXIT_USAGE;
    code = quantize_search_fits(t) ? quantize_options(t, &q) : EXIT_USAGE;
    if (code == EXIT_OK)
        code = quantize_file(t, &p, &q, &check);
    code = page_close(t, &p, "qsim quantize", code);
    quantize_check_free(&check);
    quantize_close(&q);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    {"calibration", "FILE",
     "use the ranges that qsim calibrate wrote; --data is for search and verdict then", 0, NULL},
    {"mode", "NAME", "activation ranges from data, at run time, or only weights (static)", 0,
     "static|dynamic|weights"},
    {"per-row", NULL, "dynamic: a scale for each row or image, not for the whole tensor", 0, NULL},
    OPTION_RANGES,
    {"format", "NAME", "form of the written model (qdq)", 0, "qdq|qoperator"},
    OPTION_IO,
    {"set", "GLOB=int8|int4|int16|fp32",
     "type of the nodes with this name, or else operator; repeatable, the last match wins", 0,
     NULL},
    {"recipe", "FILE", "read settings of layers and tensors; options override them", 0, NULL},
    {"save-recipe", "FILE", "write the settings of each layer and tensor", 0, NULL},
    {"equalize", NULL, "rescale channels between layers where that loses less", 0, NULL},
    {"smooth", NULL, "rescale channels between normalizations and layers where that loses less", 0,
     NULL},
    {"fallback", NULL, "keep in float the few layers that spoil the result, where that loses less",
     0, NULL},
    {"refine", NULL, "round by GPTQ and correct biases layer by layer where that loses less", 0,
     NULL},
    {"search", "NAME", "search weight schemes, activation percentiles, or both", 0,
     "greedy|anneal|both"},
    {"attempts", "FILE", "write the attempts of a search as CSV", 0, NULL},
    {"seed", "N", "random seed of the annealing (0)", 0, NULL},
    {"steps", "N", "steps of the annealing (200)", 0, NULL},
    {"max-drop", "P", "percent of accuracy that the annealing may lose against float (2)", 0, NULL},
    {"config", "FILE", "read options from JSON; the command line overrides them", 0, NULL},
    {"dry-run", NULL, "write nothing; list what each layer would become", 'n', NULL},
    OPTION_JUDGE,
    OPTION_NO_CLASSES,
    {"labels", "FILE", "class names; their order numbers the folders of --data", 0, NULL},
    OPTION_HTML,
    OPTION_OUTPUT("the quantized model; '-': stdout"),
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_quantize = {"quantize",
                            "MODEL [--data SPEC] -o FILE",
                            "quantize a float model to INT8, and judge the result",
                            options,
                            run,
                            false,
                            "model.onnx --data photos --preprocess imagenet -o int8.onnx"};
