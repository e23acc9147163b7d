/* SPDX-License-Identifier: MIT */
#include "common/unreadable.h"

#include <stdlib.h>
#include <string.h>

static void note(tool_state *s, const char *path, const char *line) {
    const size_t n = strlen(path);
    const bool begins = strncmp(line, path, n) == 0 && strncmp(line + n, ": ", 2) == 0;
    for (size_t i = 0; i < s->skipped_count; i++)
        if (strcmp(s->skipped[i].path, path) == 0)
            return;
    s->skipped = tool_grow(s->skipped, s->skipped_count + 1, sizeof(*s->skipped));
    s->skipped[s->skipped_count++] =
        (skipped_file){tool_copy(path), tool_copy(begins ? line + n + 2 : line)};
}

static bool is_unreadable(const kept_error *error) {
    return error->code == QSIM_E_IO || error->code == QSIM_E_FORMAT;
}

bool unreadable_skip(const tool *t, const char *path, kept_error *error) {
    if (!is_unreadable(error) || !args_has(&t->args, "skip-unreadable"))
        return false;
    note(t->state, path, error->line.data);
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
    for (size_t i = 0; i < t->state->skipped_count; i++) {
        json_line(j, NULL);
        json_string(j, "file", t->state->skipped[i].path);
        json_string(j, "reason", t->state->skipped[i].reason);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

void unreadable_print(const tool *t) {
    tool_state *s = t->state;
    if (s->skipped_count > 0)
        tool_warn(t, "%zu file%s skipped, which cannot be read:", s->skipped_count,
                  s->skipped_count == 1 ? " was" : "s were");
    for (size_t i = 0; i < s->skipped_count; i++) {
        tool_warn(t, "%s: %s", s->skipped[i].path, s->skipped[i].reason);
        free(s->skipped[i].path);
        free(s->skipped[i].reason);
    }
    free(s->skipped);
    s->skipped = NULL;
    s->skipped_count = 0;
}
