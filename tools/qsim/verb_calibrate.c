/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "common/columns.h"
#include "common/page.h"
#include "verbs.h"

static int merge_files(const tool *t, qsim_calibration **out) {
    int code = calibration_open(t, t->args.operands[0], out);
    for (size_t i = 1; i < t->args.operand_count && code == EXIT_OK; i++) {
        qsim_calibration *next = NULL;
        qsim_error e;
        code = calibration_open(t, t->args.operands[i], &next);
        if (code == EXIT_OK && qsim_calibration_merge(*out, next, &e))
            code = tool_error(t, t->args.operands[i], &e);
        qsim_calibration_free(next);
    }
    return code;
}

static void warn_of_outliers(const tool *t, const qsim_calibration *c, const dataset *d) {
    char *outlier = calibration_outlier(c, d);
    if (outlier)
        tool_warn(t, "%s", outlier);
    free(outlier);
}

/* Calibrates with --tensors and --bins. */
static int calibrate(const tool *t, const char *file, const qsim_model *m, dataset *d,
                     qsim_calibration **out) {
    qsim_calibration_options o = {.struct_size = sizeof(o)};
    int64_t bins = 0;
    while (args_repeated(&t->args, "tensors", o.tensor_count))
        o.tensor_count++;
    const char **globs = tool_alloc(o.tensor_count + 1, sizeof(*globs));
    for (size_t i = 0; i < o.tensor_count; i++)
        globs[i] = args_repeated(&t->args, "tensors", i);
    o.tensors = globs;
    int code = tool_int(t, "bins", 128, 2048, 0, &bins) ? EXIT_OK : EXIT_USAGE;
    o.bins = (int32_t)bins;
    if (code == EXIT_OK && (bins & (bins - 1)) != 0)
        code = tool_usage(t, NULL, "--bins %d is no power of two", o.bins);
    if (code == EXIT_OK)
        code = calibrate_data(t, file, m, &o, d, out);
    if (code == EXIT_OK)
        warn_of_outliers(t, *out, d);
    free(globs);
    return code;
}

/* `next`: the place in the data of the sample that follows those calibrated on. */
static int from_data(const tool *t, qsim_calibration **out, int64_t *next) {
    const char *file = t->args.operands[0];
    qsim_model *m = NULL;
    dataset *d = NULL;
    int code = tool_load_model(t, file, 0, &m);
    if (code == EXIT_OK)
        code = dataset_open(t, m, &d);
    if (code == EXIT_OK)
        code = calibrate(t, file, m, d, out);
    if (code == EXIT_INTERRUPTED && *out)
        *next = dataset_number(d, qsim_calibration_samples(*out));
    dataset_close(d);
    qsim_model_free(m);
    return code;
}

/* Warns of tensors without values and returns the number of the others. */
static int32_t count_seen(const tool *t, const qsim_calibration *c) {
    const int32_t all = qsim_calibration_count(c);
    int32_t seen = 0, first = -1;
    for (int32_t i = 0; i < all; i++) {
        const bool has = qsim_observer_count(qsim_calibration_observer(c, i)) > 0;
        seen += has;
        first = has || first >= 0 ? first : i;
    }
    if (first >= 0)
        tool_warn(
            t, "tensors without values: %d, '%s' first (empty, or in a branch that is not taken)",
            (int)(all - seen), qsim_calibration_name(c, first));
    return seen;
}

static void print_json(const tool *t, const qsim_calibration *c, const char *output) {
    (void)count_seen(t, c);
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "output", output);
    json_int(&j, "samples", qsim_calibration_samples(c));
    json_array(&j, "tensors");
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        const qsim_observer *o = qsim_calibration_observer(c, i);
        if (qsim_observer_count(o) == 0)
            continue;
        json_object(&j, NULL);
        json_string(&j, "name", qsim_calibration_name(c, i));
        json_number(&j, "min", (double)qsim_observer_min(o));
        json_number(&j, "max", (double)qsim_observer_max(o));
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}

static void print_table(const tool *t, const qsim_calibration *c, const char *output) {
    table rows = {.columns = "lrr"};
    printf("%s: %lld sample%s, %d tensors\n", output, (long long)qsim_calibration_samples(c),
           tool_plural(qsim_calibration_samples(c)), (int)count_seen(t, c));
    if (!t->verbose)
        return;
    table_cell(&rows, "tensor");
    table_cell(&rows, "min");
    table_cell(&rows, "max");
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        const qsim_observer *o = qsim_calibration_observer(c, i);
        table_cell(&rows, "%s", qsim_calibration_name(c, i));
        if (qsim_observer_count(o) == 0) {
            table_cell(&rows, "-");
            table_cell(&rows, "-");
            continue;
        }
        table_cell(&rows, "%.6g", (double)qsim_observer_min(o));
        table_cell(&rows, "%.6g", (double)qsim_observer_max(o));
    }
    table_print(&rows, stdout);
}

/* Refuses options for feeding a model, since --merge reads files; false: one was given. */
static bool only_merges(const tool *t) {
    static const char *const names[] = {"data",       "limit",   "skip", "batch",          "shape",
                                        "preprocess", "tensors", "bins", "skip-unreadable"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (args_has(&t->args, names[i])) {
            (void)tool_usage(t, NULL, "calibrate: --%s does not go with --merge", names[i]);
            return false;
        }
    return true;
}

/* Says what an interrupted calibration holds, and how to go on: merging is exact. */
static void tell_rest(const tool *t, const char *output, int64_t done, int64_t next) {
    int64_t skip = 0, limit = 0;
    char left[48] = "";
    (void)tool_int(t, "skip", 0, INT64_MAX, 0, &skip);
    if (tool_int(t, "limit", 1, INT64_MAX, 0, &limit) && limit > next - skip)
        snprintf(left, sizeof(left), " --limit %lld", (long long)(limit - (next - skip)));
    fprintf(stderr,
            "qsim: %s holds the first %lld sample%s\n"
            "hint: to go on: this command with --skip %lld%s -o rest.qcal, then qsim calibrate "
            "--merge %s rest.qcal -o all.qcal\n",
            output, (long long)done, tool_plural(done), (long long)next, left, output);
}

static int run(tool *t) {
    const char *output = args_value(&t->args, "output");
    bool merge = args_has(&t->args, "merge");
    qsim_calibration *c = NULL;
    qsim_error e;
    int64_t next = 0;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, merge ? 4096 : 1))
        return EXIT_USAGE;
    if (args_has(&t->args, "show"))
        return calibration_show(t, t->args.operands[0]);
    if (args_has(&t->args, "html"))
        return tool_usage(t, NULL, "calibrate: --html goes with --show");
    if (merge && t->args.operand_count < 2)
        return tool_usage(t, NULL, "calibrate: --merge takes at least two calibrations");
    if (merge && !only_merges(t))
        return EXIT_USAGE;
    if (!output)
        return tool_usage(t, "for instance -o model.qcal", "calibrate: -o FILE is missing");
    if (strcmp(output, "-") == 0)
        return tool_usage(t, NULL, "a calibration goes to a file, not to standard output");
    if (!tool_may_write(t, output, &code))
        return code;
    code = merge ? merge_files(t, &c) : from_data(t, &c, &next);
    /* The batches before an interrupt make a valid calibration. */
    bool partial = code == EXIT_INTERRUPTED && c && qsim_calibration_samples(c) > 0;
    if (code == EXIT_OK || partial) {
        const int saved =
            tool_written(t, output, qsim_calibration_save(c, output, t->force, &e), &e);
        code = saved ? saved : code;
    }
    if (code == EXIT_INTERRUPTED && partial)
        tell_rest(t, output, qsim_calibration_samples(c), next);
    if (code == EXIT_OK && t->json)
        print_json(t, c, output);
    else if (code == EXIT_OK)
        print_table(t, c, output);
    qsim_calibration_free(c);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    {"tensors", "GLOB", "tensors to observe (all that get a scale); repeatable", 0, NULL},
    {"bins", "N", "histogram bins on each side of zero; a power of two (2048)", 0, NULL},
    {"merge", NULL, "merge calibration files (the operands) exactly", 0, NULL},
    {"show", NULL, "print the ranges and histograms of a calibration file (the operand)", 0, NULL},
    OPTION_HTML,
    OPTION_OUTPUT("the calibration, as editable text"),
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_calibrate = {"calibrate",
                             "MODEL --data SPEC -o FILE | --merge A B... -o FILE | --show FILE",
                             "record the ranges of activations on data, for quantize",
                             options,
                             run,
                             false,
                             "model.onnx --data photos --preprocess imagenet -o model.qcal"};
