/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "sweeping.h"
#include "verbs.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)) - 1) /* without the last NULL */

/* ---- combinations ---- */

/* Reads a list "a,b" into the flags of `names`; all if it is NULL. False: an unknown name. */
static bool read_list(const tool *t, const char *name, const char *const *names, bool *wanted) {
    const char *list = args_value(&t->args, name);
    for (size_t i = 0; names[i]; i++)
        wanted[i] = !list;
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        size_t i = 0;
        while (names[i] && (strlen(names[i]) != n || strncmp(names[i], list, n) != 0))
            i++;
        if (!names[i])
            return tool_usage(t, NULL, "--%s: '%.*s' is none", name, (int)n, list) == EXIT_OK;
        wanted[i] = true;
        list += n + (list[n] == ',');
    }
    return true;
}

static void add_attempt(sweep *s, size_t scheme, size_t method, double percentile) {
    s->attempts = tool_grow(s->attempts, s->count + 1, sizeof(*s->attempts));
    s->attempts[s->count++] = (attempt){.scheme = weight_schemes[scheme],
                                        .method = range_methods[method],
                                        .weight_scheme = (int32_t)scheme,
                                        .range_method = (int32_t)method,
                                        .percentile = percentile,
                                        .top1 = (double)NAN};
}

/* Adds a combination per percentile. */
static bool add_percentiles(const tool *t, sweep *s, size_t scheme) {
    const char *list = args_value(&t->args, "percentiles");
    char number[32];
    for (list = list ? list : "99,99.9,99.99,99.999"; *list;) {
        const size_t n = strcspn(list, ",");
        double p = 0;
        snprintf(number, sizeof(number), "%.*s", (int)(n < 31 ? n : 31), list);
        if (!parse_number(number, &p) || !(p > 0 && p <= 100))
            return tool_usage(t, NULL, "--percentiles: '%s' is no percentile", number) == EXIT_OK;
        add_attempt(s, scheme, QSIM_METHOD_PERCENTILE, p);
        list += n + (list[n] == ',');
    }
    return true;
}

static bool list_attempts(const tool *t, sweep *s) {
    bool scheme[COUNT(weight_schemes)] = {0}, method[COUNT(range_methods)] = {0};
    if (!read_list(t, "schemes", weight_schemes, scheme) ||
        !read_list(t, "methods", range_methods, method))
        return false;
    for (size_t i = 0; i < COUNT(weight_schemes); i++)
        for (size_t k = 0; k < COUNT(range_methods) && scheme[i]; k++) {
            if (method[k] && k == QSIM_METHOD_PERCENTILE && !add_percentiles(t, s, i))
                return false;
            if (method[k] && k != QSIM_METHOD_PERCENTILE)
                add_attempt(s, i, k, (double)NAN);
        }
    return true;
}

/* ---- the verb ---- */

static const char *const files[] = {"csv", "markdown", "svg"};

static int write_files(const tool *t, const sweep *s) {
    int code = EXIT_OK;
    for (size_t i = 0; i < 3 && code == EXIT_OK; i++) {
        const char *path = args_value(&t->args, files[i]);
        text out = {0};
        if (!path)
            continue;
        (i == 0 ? sweep_csv : i == 1 ? sweep_markdown : sweep_chart)(s, &out);
        code = tool_write(t, path, out.data, out.size);
        text_free(&out);
    }
    return code;
}

static void report(const tool *t, page *p, const sweep *s) {
    text out = {0};
    if (p->path) {
        sweep_chart(s, &out);
        page_chart(p, &out);
    }
    if (!t->json || p->path) {
        page_report_begin(t, p);
        out.size = 0;
        sweep_markdown(s, &out);
        fputs(out.data, stdout);
        printf(
            "\n%s: calibrated on %lld samples, judged by %lld%s; run: the shortest of %zu runs of "
            "%lld sample%s\n",
            tool_base_name(s->file), (long long)s->samples,
            (long long)(s->held_out ? s->held_out : s->samples),
            s->held_out ? " others" : " of them, none held out", s->runs, (long long)s->rows,
            tool_plural(s->rows));
        page_report_end(t, p);
    }
    if (t->json) {
        json j = {0};
        sweep_json(s, &j);
        tool_print_json(t, &j);
    }
    text_free(&out);
}

static int run_sweep(tool *t, sweep *s) {
    qsim_model *m = NULL;
    dataset *d = NULL;
    page p;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1) || !list_attempts(t, s))
        return EXIT_USAGE;
    s->file = t->args.operands[0];
    for (size_t i = 0; i < 3; i++)
        if (args_has(&t->args, files[i]) &&
            !tool_may_write(t, args_value(&t->args, files[i]), &code))
            return code;
    if (!page_open(t, &p, &code))
        return code;
    code = tool_load_model(t, s->file, 0, &m);
    if (code == EXIT_OK) {
        s->float_bytes = qsim_model_bytes(m);
        code = dataset_open(t, m, &d);
    }
    if (code == EXIT_OK)
        code = sweep_try(t, s, m, d);
    const bool partial = code == EXIT_INTERRUPTED && s->count > 0;
    if (code == EXIT_OK || partial) {
        report(t, &p, s);
        const int failed = write_files(t, s);
        code = failed ? failed : code;
    }
    code = page_close(t, &p, "qsim sweep", code);
    dataset_close(d);
    qsim_model_free(m);
    return code;
}

static int run(tool *t) {
    sweep s = {.float_top1 = (double)NAN};
    const int code = run_sweep(t, &s);
    free(s.attempts);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    {"schemes", "LIST", "some of channel,tensor,tensor-asymmetric,channel-asymmetric (all)", 0,
     NULL},
    {"methods", "LIST", "some of minmax,percentile,mse,entropy (all)", 0, NULL},
    {"percentiles", "LIST", "for the method percentile (99,99.9,99.99,99.999)", 0, NULL},
    {"held-out", "N", "hold back at most N samples from calibration, for the verdict (128)", 0,
     NULL},
    OPTION_NO_CLASSES,
    {"markdown", "FILE", "write the table as Markdown", 0, NULL},
    {"csv", "FILE", "write the table as CSV", 0, NULL},
    {"svg", "FILE", "draw the SQNR of each combination", 0, NULL},
    OPTION_HTML,
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_sweep = {"sweep",
                         "MODEL --data SPEC",
                         "try every combination of weight scheme and range method",
                         options,
                         run,
                         false,
                         "model.onnx --data X.npy,Y.npy --csv table.csv"};
