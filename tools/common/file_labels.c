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

/* ---- the files by their names ---- */

typedef struct named_file {
    const char *name; /* the last part of the path, or the path below the folder */
    size_t sample;
} named_file;

typedef struct labelling {
    const tool *t;
    const char *path; /* of the labels */
    const class_names *names;
    sample_files *files;
    size_t inputs;
    named_file *by_name; /* sorted */
    size_t count;
    bool found;
} labelling;

static int compare(const void *a, const void *b) {
    const named_file *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->sample > y->sample) - (x->sample < y->sample);
}

static const char *file_of(const labelling *l, size_t sample) {
    return l->files->files[sample * l->inputs];
}

static void sort_names(labelling *l, const char *folder) {
    const size_t n = strlen(folder);
    l->by_name = tool_alloc(l->files->groups * 2, sizeof(*l->by_name));
    for (size_t i = 0; i < l->files->groups; i++) {
        const char *file = file_of(l, i), *base = tool_base_name(file);
        const char *below = strncmp(file, folder, n) == 0 ? file + n + strspn(file + n, "/") : file;
        l->by_name[l->count++] = (named_file){base, i};
        if (below != base)
            l->by_name[l->count++] = (named_file){below, i};
    }
    qsort(l->by_name, l->count, sizeof(*l->by_name), compare);
}

/* The first file of this name or a later one. */
static size_t lower_bound(const labelling *l, const char *name) {
    size_t low = 0, high = l->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(l->by_name[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * The place of the files with this name, or this path below the folder. Lists may have folders of
 * another machine before that: `*name` becomes what is known of it.
 */
static bool find_files(const labelling *l, const char **name, size_t *at) {
    for (const char *part = *name; part; part = strchr(part, '/')) {
        part += *part == '/';
        *at = lower_bound(l, part);
        if (*at < l->count && strcmp(l->by_name[*at].name, part) == 0) {
            *name = part;
            return true;
        }
    }
    return false;
}

static int give_label(labelling *l, int line, const char *name, int64_t label) {
    size_t at;
    if (!find_files(l, &name, &at))
        return EXIT_OK;
    l->found = true;
    for (; at < l->count && strcmp(l->by_name[at].name, name) == 0; at++) {
        int64_t *given = &l->files->labels[l->by_name[at].sample];
        if (*given >= 0 && *given != label)
            return tool_fail(l->t, QSIM_E_VALUE, "%s: line %d: %.100s has label %lld already",
                             l->path, line, name, (long long)*given);
        *given = label;
    }
    return EXIT_OK;
}

/* ---- the lines ---- */

/* A class by its number, which pandas may write as 3.0, or by its name. */
static bool class_of(const class_names *names, const char *word, int64_t *label) {
    double number;
    if (parse_int(word, 0, INT32_MAX, label))
        return true;
    if (parse_number(word, &number) && number >= 0 && number <= INT32_MAX &&
        (double)(int64_t)number == number) {
        *label = (int64_t)number;
        return true;
    }
    *label = names ? class_of_name(names, word) : -1;
    return *label >= 0;
}

/* Reads one line; a first one that names no file is a heading. */
static int read_line(labelling *l, char *line, int number, bool *headed) {
    char *name, *word;
    int64_t label;
    size_t at;
    if (*line == 0 || *line == '#' || *line == '\r')
        return EXIT_OK;
    if (!split(line, &name, &word))
        return tool_fail(l->t, QSIM_E_FORMAT, "%s: line %d is not a file name and a number",
                         l->path, number);
    const bool first = !*headed;
    const char *known = name;
    *headed = true;
    if (class_of(l->names, word, &label))
        return give_label(l, number, name, label);
    if (first && !find_files(l, &known, &at))
        return EXIT_OK;
    return tool_fail(l->t, QSIM_E_FORMAT, "%s: line %d: '%.60s' is no number%s", l->path, number,
                     word, l->names && l->names->count ? " and no name of a class" : "");
}

static int read_lines(labelling *l, char *lines) {
    int number = 0, code = EXIT_OK;
    bool headed = false;
    for (char *line = utf8_behind_mark(lines), *next; line && code == EXIT_OK; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        code = read_line(l, line, ++number, &headed);
    }
    return code;
}

static int read_file(labelling *l, const char *folder) {
    void *data;
    size_t size;
    sample_files *s = l->files;
    int code = tool_read_all(l->t, l->path, &data, &size);
    if (code)
        return code;
    char *lines = tool_grow(data, size + 1, 1);
    lines[size] = 0;
    free(s->labels);
    s->labels = tool_alloc(s->groups, sizeof(*s->labels));
    s->classes = 0;
    for (size_t i = 0; i < s->groups; i++)
        s->labels[i] = -1;
    sort_names(l, folder);
    code = read_lines(l, lines);
    for (size_t i = 0; i < s->groups && code == EXIT_OK; i++)
        if (s->labels[i] < 0)
            code =
                tool_fail(l->t, QSIM_E_FORMAT, "%s: no label for %s%s", l->path,
                          tool_base_name(file_of(l, i)),
                          l->found ? "" : ": no line begins with the name of a file of the data");
    free(l->by_name);
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
    labelling l = {.t = t, .path = path, .names = names, .files = s, .inputs = inputs};
    if (path)
        return read_file(&l, folder);
    for (size_t i = 0; i < 2 && inputs == 1; i++) {
        char *full = folder_join(folder, own[i]);
        bool there = stat(full, &st) == 0;
        l.path = full;
        int code = there ? read_file(&l, folder) : EXIT_OK;
        free(full);
        if (there)
            return code;
    }
    return EXIT_OK;
}
