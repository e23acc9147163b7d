/* SPDX-License-Identifier: MIT */
#include "common/file_labels.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/folder.h"
#include "common/utf8.h"

/* Removes the quotes of "a ""quoted"" field" in place; returns the character after it. */
static char *unquote(char *s) {
    char *to = s;
    for (s++; *s && !(*s == '"' && s[1] != '"'); s++) {
        s += *s == '"';
        *to++ = *s;
    }
    char *after = *s ? s + 1 : s;
    *to = 0;
    return after;
}

/* Splits "NAME CLASS" in place: at the first comma or tab, else semicolon, else the last blank. */
static bool split(char *line, char **name, char **label) {
    line[strcspn(line, "\r")] = 0;
    char *cut = *name = line;
    if (*line == '"')
        cut = unquote(line);
    size_t n = strcspn(cut, ",\t");
    if (!cut[n])
        n = strcspn(cut, ";");
    char *blank = strrchr(cut, ' ');
    if (cut[n])
        cut += n;
    else if (blank)
        cut = blank;
    else
        return false;
    *label = cut + 1 + strspn(cut + 1, " ");
    *cut = 0;
    if (**label == '"')
        (void)unquote(*label);
    return **name && **label;
}

/* Gives the label to files with this name, or this path below the folder. */
static void give_label(const sample_files *s, const char *folder, size_t inputs, const char *name,
                       int64_t label) {
    size_t n = strlen(folder);
    for (size_t i = 0; i < s->groups; i++) {
        const char *file = s->files[i * inputs];
        const char *below = strncmp(file, folder, n) == 0 ? file + n + strspn(file + n, "/") : file;
        if (strcmp(tool_base_name(file), name) == 0 || strcmp(below, name) == 0)
            s->labels[i] = label;
    }
}

static bool class_of(const class_names *names, const char *word, int64_t *label) {
    if (parse_int(word, 0, INT32_MAX, label))
        return true;
    *label = names ? class_of_name(names, word) : -1;
    return *label >= 0;
}

static int read_lines(const tool *t, const char *folder, const char *path, size_t inputs,
                      const class_names *names, char *lines, const sample_files *s) {
    int number = 0;
    for (char *line = utf8_behind_mark(lines), *next; line; line = next) {
        char *name, *word;
        int64_t label;
        number++;
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (*line == 0 || *line == '#' || *line == '\r')
            continue;
        if (!split(line, &name, &word))
            return tool_fail(t, QSIM_E_FORMAT, "%s: line %d is not a file name and a number", path,
                             number);
        if (class_of(names, word, &label))
            give_label(s, folder, inputs, name, label);
        else if (number > 1)
            return tool_fail(t, QSIM_E_FORMAT, "%s: line %d: '%.60s' is no number%s", path, number,
                             word, names && names->count ? " and no name of a class" : "");
    }
    return EXIT_OK;
}

static int read_file(const tool *t, const char *folder, const char *path, size_t inputs,
                     const class_names *names, sample_files *s) {
    void *data;
    size_t size;
    int code = tool_read_all(t, path, &data, &size);
    if (code)
        return code;
    char *lines = tool_grow(data, size + 1, 1);
    lines[size] = 0;
    free(s->labels);
    s->labels = tool_alloc(s->groups, sizeof(*s->labels));
    s->classes = 0;
    for (size_t i = 0; i < s->groups; i++)
        s->labels[i] = -1;
    code = read_lines(t, folder, path, inputs, names, lines, s);
    for (size_t i = 0; i < s->groups && code == EXIT_OK; i++)
        if (s->labels[i] < 0)
            code = tool_fail(t, QSIM_E_FORMAT, "%s: no label for %s", path,
                             tool_base_name(s->files[i * inputs]));
    free(lines);
    return code;
}

int file_labels_read(const tool *t, const char *folder, const char *path, size_t inputs,
                     const class_names *names, sample_files *s) {
    static const char *const own[] = {"labels.txt", "labels.csv"};
    struct stat st;
    if (path && inputs != 1)
        return tool_fail(t, QSIM_E_UNSUPPORTED, "%s: the model has %zu inputs, not one", path,
                         inputs);
    if (path)
        return read_file(t, folder, path, inputs, names, s);
    for (size_t i = 0; i < 2 && inputs == 1; i++) {
        char *full = folder_join(folder, own[i]);
        bool there = stat(full, &st) == 0;
        int code = there ? read_file(t, folder, full, inputs, names, s) : EXIT_OK;
        free(full);
        if (there)
            return code;
    }
    return EXIT_OK;
}
