/* SPDX-License-Identifier: MIT */
#include "deriving.h"

#include <string.h>

static void print(const tool *t, const deriving *d, derive_report_fn *report) {
    const int32_t before = qsim_model_node_count(d->model);
    const int32_t after = qsim_model_node_count(d->result);
    char a[32], b[32];
    json j = {0};
    if (!t->json) {
        printf("%s: %d nodes, %s -> %s: %d nodes, %s\n", tool_base_name(d->file), (int)before,
               tool_bytes((double)qsim_model_bytes(d->model), a), tool_base_name(d->output),
               (int)after, tool_bytes((double)qsim_model_bytes(d->result), b));
        if (report)
            report(NULL, d);
        return;
    }
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", d->file);
    json_string(&j, "output", d->output);
    json_string(&j, d->key, d->how);
    json_int(&j, "nodes_before", before);
    json_int(&j, "nodes", after);
    if (report)
        report(&j, d);
    json_int(&j, "bytes_before", qsim_model_bytes(d->model));
    json_int(&j, "bytes", qsim_model_bytes(d->result));
    json_end(&j);
    tool_print_json(t, &j);
}

static int derive(const tool *t, deriving *d, derive_fn *work, derive_report_fn *report) {
    qsim_error e;
    int code = tool_load_model(t, d->file, 0, &d->model);
    if (code)
        return code;
    if (work(t, d, &e))
        return tool_error(t, d->file, &e);
    code = tool_list_model(t, d->output, d->result);
    if (code == EXIT_OK)
        code = tool_save_model(t, d->result, d->output);
    if (code == EXIT_OK && strcmp(d->output, "-") != 0)
        print(t, d, report);
    return code;
}

int derive_model(tool *t, deriving *d, derive_fn *work, derive_report_fn *report) {
    int code = EXIT_OK;
    d->output = args_value(&t->args, "output");
    d->file = t->args.operands[0];
    if (!d->output)
        return tool_usage(t, "for instance -o result.onnx", "%s: -o FILE is missing", d->verb);
    if (!tool_may_write_model(t, d->output, &code))
        return code;
    code = derive(t, d, work, report);
    qsim_model_free(d->result);
    qsim_model_free(d->model);
    return code;
}
