/* SPDX-License-Identifier: MIT */
#include "operator_list.h"

#include "common/columns.h"

typedef void (*operator_fn)(void *user, const qsim_operator_info *op);

/* Calls fn for each operator. */
static int each(const tool *t, operator_fn fn, void *user) {
    qsim_operator_info op = {.struct_size = sizeof(op)};
    int code = QSIM_OK;
    for (int32_t i = 0; !code; i++) {
        code = qsim_operator(t->ctx, i, &op);
        if (!code)
            fn(user, &op);
    }
    return code == QSIM_E_NOT_FOUND ? EXIT_OK : tool_fail(t, code, "%s", qsim_error_text(code));
}

static void print_one(void *user, const qsim_operator_info *op) {
    table *rows = user;
    text types = {0};
    for (int32_t t = 1; t < 32; t++)
        if (op->types >> t & 1)
            text_printf(&types, "%s%s", types.data ? " " : "", qsim_dtype_name(t));
    table_cell(rows, "%s%s%s", op->domain, *op->domain ? ":" : "", op->op_type);
    if (op->until == op->since)
        table_cell(rows, "%d", op->since);
    else if (op->until)
        table_cell(rows, "%d-%d", op->since, op->until);
    else
        table_cell(rows, "%d-", op->since);
    if (op->max_inputs < 0)
        table_cell(rows, "%d-", op->min_inputs);
    else if (op->max_inputs == op->min_inputs)
        table_cell(rows, "%d", op->min_inputs);
    else
        table_cell(rows, "%d-%d", op->min_inputs, op->max_inputs);
    table_cell(rows, "%s", *op->integer_form ? op->integer_form : "-");
    table_cell(rows, "%s", *op->kernel ? op->kernel : "-");
    table_cell(rows, "%s", types.data ? types.data : "-");
    text_free(&types);
}

int operators_print(const tool *t) {
    static const char *const heading[] = {"operator",       "opsets", "inputs",
                                          "quantized form", "kernel", "types of the first operand"};
    table rows = {.columns = "llllll"};
    for (size_t i = 0; i < 6; i++)
        table_cell(&rows, "%s", heading[i]);
    const int code = each(t, print_one, &rows);
    table_print(&rows, stdout);
    return code;
}

static void json_one(void *user, const qsim_operator_info *op) {
    json *j = user;
    json_object(j, NULL);
    json_string(j, "domain", op->domain);
    json_string(j, "operator", op->op_type);
    json_int(j, "since", op->since);
    if (op->until)
        json_int(j, "until", op->until);
    else
        json_null(j, "until");
    json_int(j, "min_inputs", op->min_inputs);
    if (op->max_inputs < 0)
        json_null(j, "max_inputs");
    else
        json_int(j, "max_inputs", op->max_inputs);
    json_array(j, "types");
    for (int32_t t = 1; t < 32; t++)
        if (op->types >> t & 1)
            json_string(j, NULL, qsim_dtype_name(t));
    json_end(j);
    json_string(j, "integer_form", op->integer_form);
    json_string(j, "kernel", op->kernel);
    json_end(j);
}

int operators_json(const tool *t, json *j) {
    json_array(j, "operators");
    const int code = each(t, json_one, j);
    json_end(j);
    return code;
}
