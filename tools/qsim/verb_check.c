/* SPDX-License-Identifier: MIT */
#include "verbs.h"

#include <string.h>

#include "common/utf8.h"

typedef struct findings {
    const tool *tool;
    const char *file;
    json json;
    int code; /* of the first problem */
} findings;

static void report(void *user, const qsim_error *e) {
    findings *f = user;
    if (f->code == 0)
        f->code = e->code;
    if (f->tool->json) {
        json_object(&f->json, NULL);
        json_int(&f->json, "code", e->code);
        json_string(&f->json, "name", qsim_error_name(e->code));
        json_string(&f->json, "message", e->message);
        json_end(&f->json);
        return;
    }
    text line = {0};
    utf8_printable(&line, e->message, 380);
    printf("%s\n", line.data);
    text_free(&line);
}

static int run(tool *t) {
    qsim_model *m;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    findings f = {.tool = t, .file = t->args.operands[0]};
    int code = tool_load_model(t, f.file, QSIM_LOAD_INSPECT, &m);
    if (code)
        return code;
    json_object(&f.json, NULL);
    json_int(&f.json, "schema", 1);
    json_string(&f.json, "file", f.file);
    json_array(&f.json, "problems");
    int n = qsim_model_check(m, report, &f);
    json_end(&f.json);
    json_end(&f.json);
    qsim_model_free(m);
    if (n < 0) {
        text_free(&f.json.out);
        return tool_fail(t, n, "%s: the check failed: %s", f.file, qsim_error_text(n));
    }
    if (t->json)
        tool_print_json(t, &f.json);
    else
        text_free(&f.json.out);
    if (n > 0 && !t->json)
        fprintf(stderr, "qsim: %s: %d problem%s found\n", tool_base_name(f.file), n,
                n == 1 ? "" : "s");
    if (n == 0 && !t->json && !t->quiet)
        printf("%s: no problems\n", tool_base_name(f.file));
    return n > 0 ? EXIT_DATA : EXIT_OK;
}

static const option options[] = {{NULL, NULL, NULL, 0, NULL}};

const verb verb_check = {"check", "MODEL", "validate a model and list every problem", options, run};
