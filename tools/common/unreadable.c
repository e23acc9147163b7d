/* SPDX-License-Identifier: MIT */
#include "common/unreadable.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char *path, *reason;
} entry;

/* A verb may open several data sets, and read a file more than once. */
static entry *entries;
static size_t entry_count;

static void note(const char *path, const char *line) {
    const size_t n = strlen(path);
    const bool begins = strncmp(line, path, n) == 0 && strncmp(line + n, ": ", 2) == 0;
    for (size_t i = 0; i < entry_count; i++)
        if (strcmp(entries[i].path, path) == 0)
            return;
    entries = tool_grow(entries, entry_count + 1, sizeof(*entries));
    entries[entry_count++] = (entry){tool_copy(path), tool_copy(begins ? line + n + 2 : line)};
}

static bool is_unreadable(const kept_error *error) {
    return error->code == QSIM_E_IO || error->code == QSIM_E_FORMAT;
}

bool unreadable_skip(const tool *t, const char *path, kept_error *error) {
    if (!is_unreadable(error) || !args_has(&t->args, "skip-unreadable"))
        return false;
    note(path, error->line.data);
    kept_error_free(error);
    return true;
}

int unreadable_refuse(const tool *t, bool several, kept_error *error) {
    const bool helps = several && is_unreadable(error);
    return tool_print_kept(
        t, error,
        helps ? "--skip-unreadable leaves such files out, and names them at the end" : NULL);
}

void unreadable_json(const tool *t, json *j) {
    if (!args_has(&t->args, "skip-unreadable"))
        return;
    json_reopen(j);
    json_array(j, "skipped");
    for (size_t i = 0; i < entry_count; i++) {
        json_line(j, NULL);
        json_string(j, "file", entries[i].path);
        json_string(j, "reason", entries[i].reason);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

void unreadable_print(const tool *t) {
    if (entry_count > 0)
        tool_warn(t, "%zu file%s skipped, which cannot be read:", entry_count,
                  entry_count == 1 ? " was" : "s were");
    for (size_t i = 0; i < entry_count; i++) {
        tool_warn(t, "%s: %s", entries[i].path, entries[i].reason);
        free(entries[i].path);
        free(entries[i].reason);
    }
    free(entries);
    entries = NULL;
    entry_count = 0;
}
