/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "calibrating.h"
#include "common/page.h"
#include "common/progress.h"
#include "quantizing.h"
#include "samples.h"
#include "unit_report.h"
#include "verbs.h"

/* Default number of samples: enough to order units as all samples would. */
#define SAMPLES 128

static int analyse(const tool *t, quantizing *q, const samples *s, units *u) {
    progress p;
    qsim_error e;
    qsim_search_options o = {.struct_size = sizeof(o)};
    samples_give(s, &o);
    o.labels = NULL;
    o.label_count = 0;
    progress_begin(&p, t);
    o.progress = progress_step;
    o.progress_user = &p;
    u->plain.struct_size = sizeof(u->plain);
    const int32_t count =
        qsim_sensitivity(q->model, q->calibration, &q->options, &o, units_add, u, &u->plain, &e);
    progress_end(&p);
    if (count == QSIM_E_CANCELLED)
        return tool_fail(t, count, "%s: interrupted; %zu units were measured", q->file, u->count);
    return count < 0 ? quantize_error(t, q, &e) : EXIT_OK;
}

static void draw_page(page *p, const char *file, const units *u) {
    text svg = {0};
    units_draw(&svg, file, u);
    page_chart(p, &svg);
    text_free(&svg);
}

static int report(const tool *t, page *p, const char *file, const units *u) {
    const char *csv = args_value(&t->args, "csv"), *svg = args_value(&t->args, "svg");
    int code = csv ? units_csv(t, csv, u) : EXIT_OK;
    if (code == EXIT_OK && svg)
        code = units_svg(t, svg, file, u);
    const bool own = (csv && strcmp(csv, "-") == 0) || (svg && strcmp(svg, "-") == 0);
    if (p->path)
        draw_page(p, file, u);
    if (p->path || !(t->json || own)) {
        tool quiet = *t;
        quiet.json = t->json || own; /* then only the page shows the table */
        page_report_begin(&quiet, p);
        units_print(file, u);
        page_report_end(&quiet, p);
    }
    if (t->json)
        units_json(t, file, u);
    return code;
}

static int measure(tool *t, page *p, quantizing *q, samples *s, units *u) {
    const char *path = args_value(&t->args, "calibration");
    const size_t most = args_has(&t->args, "limit") ? SIZE_MAX : SAMPLES;
    int code = tool_load_model(t, q->file, 0, &q->model);
    if (code == EXIT_OK)
        code = recipe_open(t, q);
    if (code == EXIT_OK)
        code = dataset_open(t, q->model, &q->data);
    if (code == EXIT_OK)
        code = samples_read(t, q->data, q->model, most, s, NULL);
    if (code == EXIT_OK)
        code = path ? calibration_open(t, path, &q->calibration) : samples_calibrate(t, q, s);
    if (code == EXIT_OK)
        code = analyse(t, q, s, u);
    if (code == EXIT_OK || (code == EXIT_INTERRUPTED && u->count > 0)) {
        int told = report(t, p, q->file, u);
        code = code ? code : told;
    }
    return code;
}

static int run(tool *t) {
    static const char *const outputs[] = {"csv", "svg"};
    quantizing q = {.file = NULL};
    samples s = {0};
    units u = {0};
    page p;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    q.file = t->args.operands[0];
    if (!args_has(&t->args, "data"))
        return tool_usage(t, "--data SPEC names one", "sensitivity: --data is missing");
    for (size_t i = 0; i < 2; i++) {
        const char *path = args_value(&t->args, outputs[i]);
        if (path && !tool_may_write(t, path, &code))
            return code;
    }
    if (!page_open(t, &p, &code))
        return code;
    code = quantize_options(t, &q);
    if (code == EXIT_OK)
        code = measure(t, &p, &q, &s, &u);
    code = page_close(t, &p, "qsim sensitivity", code);
    quantize_close(&q);
    samples_free(&s);
    units_free(&u);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    {"calibration", "FILE", "use the ranges that qsim calibrate wrote, not those of --data", 0,
     NULL},
    OPTION_NO_CLASSES,
    OPTION_RANGES,
    {"set", "GLOB=int8|int4|int16|fp32", "fixed type of the nodes with this name or operator", 0,
     NULL},
    {"recipe", "FILE", "read settings of layers and tensors; options override them", 0, NULL},
    {"csv", "FILE", "write the table as CSV", 0, NULL},
    {"svg", "FILE", "draw the table as a chart", 0, NULL},
    OPTION_HTML,
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_sensitivity = {"sensitivity",
                               "MODEL --data SPEC",
                               "measure the accuracy that each unit loses in 8 bits",
                               options,
                               run,
                               false,
                               "model.onnx --data photos --preprocess imagenet --html page.html"};
