/* SPDX-License-Identifier: MIT */
#include <qsim/package.h>
#include <sys/stat.h>

#include "verbs.h"

static int run(tool *t) {
    const char *folder = args_value(&t->args, "output");
    qsim_package *p;
    qsim_error e;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    if (!folder)
        return tool_usage(t, "-o names the folder", "unpack: --output is missing");
    const char *file = t->args.operands[0];
    if (qsim_package_open(t->ctx, file, 0, &p, &e))
        return tool_error(t, file, &e);
    int code = EXIT_OK;
    tool_catch_interrupt(t->ctx); /* handles one Ctrl-C: a second one ends the process at once */
    if (qsim_package_unpack(p, folder, t->force ? QSIM_UNPACK_REPLACE : 0, &e)) {
        struct stat st;
        if (e.code == QSIM_E_EXISTS && stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
            snprintf(e.hint, sizeof(e.hint), "-f writes into it all the same");
        code = tool_error(t, e.code == QSIM_E_IO || e.code == QSIM_E_EXISTS ? folder : file, &e);
    } else {
        tool_note_written();
        print_package(t, p, file);
    }
    qsim_package_free(p);
    return code;
}

static const option options[] = {
    {"output", "DIR", "the folder to write to; created if missing", 'o', NULL},
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_unpack = {
    "unpack", "P.zip -o DIR",       "check a package and write its entries as files", options, run,
    true,     "model.zip -o folder"};
