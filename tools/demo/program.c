/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdlib.h>

#include "common/system.h"

static int print(const tool *t, text *out) {
    fputs(out->data, stdout);
    text_free(out);
    return tool_finish(t, EXIT_OK);
}

int program_main(const verb *v, int32_t threads, int argc, char **argv) {
    tool_state state = {.skipped = NULL};
    tool t = {.state = &state};
    text out = {0}, hint = {0};
    int code = EXIT_OK;
    system_begin(argc, argv);
    if (!args_parse(&t.args, v, argc - 1, argv + 1, &out, &hint)) {
        code = tool_usage(&t, hint.data, "%s", out.data);
    } else if (args_has(&t.args, "help")) {
        args_help(v, &out);
        code = print(&t, &out);
    } else if (args_has(&t.args, "version")) {
        text_printf(&out, "%s %s\n", v->name, qsim_version_string());
        code = print(&t, &out);
    } else {
        code = tool_start(&t, threads);
        if (code == EXIT_OK)
            code = tool_finish(&t, v->run(&t));
    }
    text_free(&out);
    text_free(&hint);
    tool_stop(&t);
    return code;
}
