/* SPDX-License-Identifier: MIT */
/* The lists of a manual page, from the option tables. */
#include "common/args.h"

#include <string.h>

/* Adds text for roff: hyphens that can be copied, and no accidental requests. */
static void add_roff(const char *string, size_t size, text *out) {
    for (size_t i = 0; i < size; i++) {
        if (i == 0 && (string[i] == '.' || string[i] == '\''))
            text_puts(out, "\\&");
        if (string[i] == '-')
            text_puts(out, "\\-");
        else if (string[i] == '\\')
            text_puts(out, "\\e");
        else if (string[i] == '"')
            text_puts(out, "\\(dq");
        else
            text_add(out, string + i, 1);
    }
}

static void add_string(const char *string, text *out) {
    add_roff(string, strlen(string), out);
}

static void add_options(const option *o, text *out) {
    for (; o && o->name; o++) {
        text_puts(out, ".TP\n.BR ");
        if (o->letter)
            text_printf(out, "\\-%c \", \" ", o->letter);
        text_puts(out, "\\-\\-");
        add_string(o->name, out);
        if (o->value) {
            text_puts(out, " \" \\fI");
            add_string(o->value, out);
            text_puts(out, "\\fR\"");
        }
        text_puts(out, "\n");
        add_string(o->help, out);
        if (o->choices) {
            text_puts(out, ": ");
            add_string(o->choices, out);
        }
        text_puts(out, "\n");
    }
}

static void add_usage(const verb *v, text *out) {
    text_puts(out, ".B qsim ");
    add_string(v->name, out);
    text_puts(out, "\n[options] ");
    add_string(v->operands, out);
    text_puts(out, "\n");
}

static void add_synopsis(const verb *const *verbs, text *out) {
    for (size_t i = 0; verbs[i]; i++) {
        if (i > 0)
            text_puts(out, ".br\n");
        add_usage(verbs[i], out);
    }
}

static bool is_line(const char *line, size_t size, const char *word) {
    return size == strlen(word) && memcmp(line, word, size) == 0;
}

/* The verb in a line "@WORD VERB@"; NULL: another line, or no such verb. */
static const verb *named(const verb *const *verbs, const char *word, const char *line,
                         size_t size) {
    size_t skip = strlen(word);
    if (size <= skip + 1 || memcmp(line, word, skip) != 0 || line[size - 1] != '@')
        return NULL;
    for (size_t i = 0; verbs[i]; i++)
        if (is_line(line + skip, size - skip - 1, verbs[i]->name))
            return verbs[i];
    return NULL;
}

/* Expands a line that begins with '@'; false: it names no verb. */
static bool add_list(const verb *const *verbs, const char *line, size_t size, text *out) {
    const verb *usage = named(verbs, "@USAGE ", line, size);
    const verb *options = named(verbs, "@OPTIONS ", line, size);
    if (is_line(line, size, "@SYNOPSIS@"))
        add_synopsis(verbs, out);
    else if (is_line(line, size, "@COMMON OPTIONS@"))
        add_options(common_options, out);
    else if (usage)
        add_usage(usage, out);
    else if (options)
        add_options(options->options, out);
    else
        return false;
    return true;
}

bool args_manual(const verb *const *verbs, const char *page, text *out) {
    for (const char *line = page; *line;) {
        size_t size = strcspn(line, "\n");
        if (line[0] != '@')
            text_printf(out, "%.*s\n", (int)size, line);
        else if (!add_list(verbs, line, size, out)) {
            text_add(out, line, size);
            return false;
        }
        line += size + (line[size] == '\n');
    }
    return true;
}
