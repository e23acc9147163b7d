/* SPDX-License-Identifier: MIT */
#include "common/columns.h"
#include "common/progress.h"
#include "engine.h"
#include "inputs.h"
#include "selftest.h"
#include "verbs.h"

typedef struct scope {
    const char *file; /* NULL: networks that seeds draw */
    int64_t seed, count;
} scope;

static int64_t differing(const selftest *s) {
    int64_t n = 0;
    for (size_t i = 0; i < s->way_count; i++)
        n += s->ways[i].different;
    return n;
}

static void print(const selftest *s, const scope *of) {
    static const char *const heading[] = {"instructions", "threads", "results", "that differ"};
    table rows = {.columns = "lrrr"};
    if (of->file)
        printf("%s, compared with plain C on one thread, bit for bit\n\n",
               tool_base_name(of->file));
    else
        printf("%lld random network%s in %lld forms, compared with plain C on one thread, bit for "
               "bit\n\n",
               (long long)of->count, tool_plural(of->count), (long long)s->models);
    for (size_t i = 0; i < 4; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < s->way_count; i++) {
        const selftest_way *w = &s->ways[i];
        table_cell(&rows, "%s", qsim_isa_name(w->isa));
        table_cell(&rows, "%d", (int)w->threads);
        table_cell(&rows, "%lld", (long long)w->tensors);
        table_cell(&rows, "%lld", (long long)w->different);
    }
    table_print(&rows, stdout);
    if (!s->fault.size)
        printf("\nall results are the same\n");
}

static void print_json(const tool *t, const selftest *s, const scope *of) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", of->file);
    if (!of->file) {
        json_int(&j, "seed", of->seed);
        json_int(&j, "networks", of->count);
    }
    json_int(&j, "models", s->models);
    json_array(&j, "runs");
    for (size_t i = 0; i < s->way_count; i++) {
        json_line(&j, NULL);
        json_string(&j, "isa", qsim_isa_name(s->ways[i].isa));
        json_int(&j, "threads", s->ways[i].threads);
        json_int(&j, "results", s->ways[i].tensors);
        json_int(&j, "different", s->ways[i].different);
        json_end(&j);
    }
    json_end(&j);
    json_string(&j, "first_difference", s->fault.size ? s->fault.data : NULL);
    json_end(&j);
    tool_print_json(t, &j);
}

static int test_file(const tool *t, selftest *s, const char *file) {
    qsim_model *model = NULL;
    inputs in = {.count = 0};
    int code = tool_load_model(t, file, 0, &model);
    if (code == EXIT_OK)
        code = inputs_open(t, model, true, &in);
    if (code == EXIT_OK)
        code = selftest_model(s, file, model, in.tensors, in.count);
    inputs_close(&in);
    qsim_model_free(model);
    return code;
}

static int test_networks(const tool *t, selftest *s, const scope *of) {
    progress p;
    int code = EXIT_OK;
    progress_begin(&p, t);
    for (int64_t i = 0; i < of->count && code == EXIT_OK; i++) {
        code = tool_go_on(t, NULL, selftest_network_forms(s, (uint64_t)(of->seed + i)));
        progress_step(&p, "testing", (uint64_t)i + 1, (uint64_t)of->count);
    }
    progress_end(&p);
    return code;
}

static bool read_scope(const tool *t, scope *of) {
    static const char *const of_networks[] = {"networks", "seed"}, *const of_models[] = {
                                                                       "input", "data", "shape",
                                                                       "batch", "preprocess"};
    if (!tool_operands(t, 0, 1) || !tool_int(t, "networks", 1, INT32_MAX, 100, &of->count) ||
        !tool_int(t, "seed", 0, INT32_MAX, 1, &of->seed))
        return false;
    of->file = t->args.operand_count ? t->args.operands[0] : NULL;
    for (size_t i = 0; of->file && i < 2; i++)
        if (args_has(&t->args, of_networks[i]))
            return tool_usage(t, NULL, "--%s goes without a model", of_networks[i]), false;
    for (size_t i = 0; !of->file && i < 5; i++)
        if (args_has(&t->args, of_models[i]))
            return tool_usage(t, NULL, "--%s needs a model", of_models[i]), false;
    return true;
}

static int run(tool *t) {
    scope of;
    selftest s;
    if (!read_scope(t, &of))
        return EXIT_USAGE;
    tool_catch_interrupt(NULL);
    int code = selftest_open(t, &s);
    if (code == EXIT_OK)
        code = of.file ? test_file(t, &s, of.file) : test_networks(t, &s, &of);
    if (code == EXIT_OK) {
        if (t->json)
            print_json(t, &s, &of);
        else
            print(&s, &of);
        if (differing(&s) > 0) {
            fflush(stdout);
            fprintf(stderr, "qsim: %s\n", s.fault.data);
            code = EXIT_INTERNAL;
        }
    }
    selftest_close(&s);
    return code;
}

static const option options[] = {
    OPTION_INPUT("batch size of random inputs and of --data (1)"),
    OPTION_FIRST_BATCH,
    OPTION_LEVEL,
    {"networks", "N", "without a model: draw N networks (100)", 0, NULL},
    {"seed", "N", "without a model: the seed of the first network (1)", 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_selftest = {
    "selftest", "[MODEL]", "check that all kernels of this CPU compute the same bits",
    options,    run,       false,
    "int8.onnx"};
