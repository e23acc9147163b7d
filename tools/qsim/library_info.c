/* SPDX-License-Identifier: MIT */
#include "library_info.h"

#include "machine_limits.h"
#include "operator_list.h"

static int print_library(const tool *t) {
    if (t->json) {
        json j = {0};
        json_object(&j, NULL);
        json_int(&j, "schema", 1);
        json_string(&j, "version", qsim_version_string());
        json_int(&j, "abi", 0);
        json_array(&j, "isas");
        for (int32_t i = QSIM_ISA_C; qsim_isa_name(i); i++)
            if (qsim_isa_available(i))
                json_string(&j, NULL, qsim_isa_name(i));
        json_end(&j);
        json_string(&j, "isa", qsim_isa_name(qsim_ctx_isa(t->ctx)));
        json_int(&j, "threads", qsim_ctx_threads(t->ctx));
        json_end(&j);
        return tool_print_json(t, &j);
    }
    printf("qsim      %s\nabi       libqsim.so.0\nisa      ", qsim_version_string());
    for (int32_t i = QSIM_ISA_C; qsim_isa_name(i); i++)
        if (qsim_isa_available(i))
            printf(" %s", qsim_isa_name(i));
    printf("\nkernels   %s\nthreads   %d\n", qsim_isa_name(qsim_ctx_isa(t->ctx)),
           qsim_ctx_threads(t->ctx));
    return EXIT_OK;
}

/* A table, or one JSON object with what `fill` adds. */
static int print_list(const tool *t, int (*print)(const tool *t),
                      int (*fill)(const tool *t, json *j)) {
    json j = {0};
    if (!t->json)
        return print(t);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    const int code = fill(t, &j);
    json_end(&j);
    const int printed = tool_print_json(t, &j);
    return code ? code : printed;
}

int library_info(const tool *t) {
    const bool ops = args_has(&t->args, "ops"), limits = args_has(&t->args, "limits");
    if (ops && limits)
        return tool_usage(t, NULL, "--ops and --limits print a list each: give one of them");
    if (limits)
        return print_list(t, limits_print_all, limits_json_all);
    return ops ? print_list(t, operators_print, operators_json) : print_library(t);
}
