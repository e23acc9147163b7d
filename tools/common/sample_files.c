/* SPDX-License-Identifier: MIT */
#include "common/sample_files.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/folder.h"
#include "common/image.h"
#include "common/sample_source.h"
#include "common/system.h"

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcasecmp(name + n - m, end) == 0;
}

bool sample_is_single(const char *name) {
    return image_is_name(name) || sound_is_name(name);
}

bool sample_is_archive(const char *name) {
    return ends_with(name, ".npz");
}

bool sample_is_name(const char *name) {
    return sample_is_single(name) || ends_with(name, ".npy") || sample_is_archive(name) ||
           ends_with(name, ".pb") || ends_with(name, ".csv");
}

/* Is this the name of a file of labels beside samples? */
static bool is_label_file(const char *name) {
    return strcmp(name, "labels.txt") == 0 || strcmp(name, "labels.csv") == 0;
}

static bool exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

static bool has_input(const char *folder) {
    char *first = folder_join(folder, "input_0.pb");
    bool there = exists(first);
    free(first);
    return there;
}

/* ---- the list ---- */

typedef struct listing {
    const tool *t;
    size_t inputs, count, skipped;
    text names; /* names of the first skipped files */
    sample_files *out;
} listing;

static void put(listing *l, char *path) {
    sample_files *s = l->out;
    s->files = tool_grow(s->files, l->count + 2, sizeof(*s->files));
    s->files[l->count++] = path;
    s->files[l->count] = NULL;
    s->groups = l->inputs ? l->count / l->inputs : 0;
}

/* Adds a file that feeds all inputs. */
static void put_file(listing *l, const char *path) {
    for (size_t i = 0; i < l->inputs; i++)
        put(l, tool_copy(path));
}

/* Adds input_0.pb, input_1.pb, ... of a folder. */
static void put_inputs(listing *l, const char *folder) {
    for (size_t i = 0; i < l->inputs; i++) {
        char name[32];
        snprintf(name, sizeof(name), "input_%zu.pb", i);
        put(l, folder_join(folder, name));
    }
}

static void skip(listing *l, const char *name, bool folder) {
    const size_t most = 5;
    if (l->skipped++ < most)
        text_printf(&l->names, "%s%s%s", l->names.size ? ", " : "", name, folder ? "/" : "");
}

static void say_skipped(listing *l, const char *path) {
    if (l->skipped > 0 && l->count > 0)
        tool_warn(l->t, "%s: %zu of %zu entries skipped, which are no samples: %s%s", path,
                  l->skipped, l->skipped + l->out->groups, l->names.data,
                  l->skipped > 5 ? ", ..." : "");
    text_free(&l->names);
}

/* Adds the files of a folder that may be samples; `deep`: also those of sub-folders. */
static int list_files(listing *l, const char *path) {
    char **names;
    size_t count;
    int code = folder_read(l->t, path, &names, &count);
    for (size_t i = 0; i < count; i++) {
        char *full = folder_join(path, names[i]);
        bool folder = folder_is(full, strlen(full));
        if (folder && strncmp(names[i], "test_data_set_", 14) == 0 && has_input(full))
            put_inputs(l, full);
        else if (!folder && sample_is_name(names[i]) && !is_label_file(names[i]))
            put_file(l, full);
        else if (!is_label_file(names[i]))
            skip(l, names[i], folder);
        free(full);
    }
    folder_free(names);
    return code;
}

/* ---- trees ---- */

/* Are all folders named by numbers? */
static bool numbered(char *const *names, size_t count) {
    int64_t n;
    for (size_t i = 0; i < count; i++)
        if (!parse_int(names[i], 0, INT32_MAX, &n))
            return false;
    return count > 0;
}

static int class_of_folder(const listing *l, const char *path, const char *name,
                           const class_names *classes, int64_t *label) {
    if (!classes || !classes->count || (*label = class_of_name(classes, name)) >= 0)
        return EXIT_OK;
    return tool_fail(l->t, QSIM_E_VALUE, "%s/%s: %s names no such class", path, name,
                     classes->from);
}

static int list_tree(listing *l, const char *path, const class_names *classes) {
    char **names;
    size_t count, folders = 0;
    int code = folder_read(l->t, path, &names, &count);
    for (size_t i = 0; i < count; i++) { /* folders come first */
        char *full = folder_join(path, names[i]), *name = names[i];
        if (folder_is(full, strlen(full))) {
            names[i] = names[folders];
            names[folders++] = name;
        } else if (!is_label_file(name))
            skip(l, name, false);
        free(full);
    }
    bool by_number = numbered(names, folders);
    bool in_order = !by_number && !(classes && classes->count);
    for (size_t i = 0; i < folders && code == EXIT_OK; i++) {
        int64_t label = (int64_t)i;
        size_t before = l->out->groups;
        char *full = folder_join(path, names[i]);
        if (by_number)
            (void)parse_int(names[i], 0, INT32_MAX, &label);
        else
            code = class_of_folder(l, path, names[i], classes, &label);
        if (code == EXIT_OK)
            code = list_files(l, full);
        size_t after = l->out->groups;
        l->out->labels = tool_grow(l->out->labels, after + 1, sizeof(*l->out->labels));
        for (size_t k = before; k < after; k++)
            l->out->labels[k] = label;
        free(full);
    }
    l->out->classes = in_order ? folders : 0;
    folder_free(names);
    return code;
}

int sample_files_folder(const tool *t, const char *path, size_t inputs, const class_names *names,
                        sample_files *out) {
    listing l = {.t = t, .inputs = inputs, .out = out};
    int code = EXIT_OK;
    memset(out, 0, sizeof(*out));
    if (has_input(path)) {
        put_inputs(&l, path);
        return EXIT_OK;
    }
    code = list_files(&l, path);
    if (code == EXIT_OK && l.count == 0 && l.skipped > 0) {
        l.skipped = 0;
        text_free(&l.names);
        code = list_tree(&l, path, names);
    }
    say_skipped(&l, path);
    if (code == EXIT_OK && l.count == 0)
        code = tool_fail(t, QSIM_E_FORMAT,
                         "%s: no pictures, sounds, .npy, .npz, .pb or .csv files and no "
                         "test_data_set_* in this folder or the folders in it",
                         path);
    return code;
}

/* ---- other ways to name files ---- */

bool sample_is_pattern(const char *spec, size_t size) {
    return memchr(spec, '*', size) || memchr(spec, '?', size) || memchr(spec, '[', size);
}

int sample_files_pattern(const tool *t, const char *pattern, size_t inputs, sample_files *out) {
    listing l = {.t = t, .inputs = inputs, .out = out};
    char **found = system_find(pattern);
    memset(out, 0, sizeof(*out));
    if (!found)
        return tool_fail(t, QSIM_E_IO, "%s: no file has such a name", pattern);
    for (size_t i = 0; found[i]; i++) {
        bool folder = folder_is(found[i], strlen(found[i]));
        if (!folder && sample_is_name(found[i]))
            put_file(&l, found[i]);
        else
            skip(&l, found[i], folder);
    }
    folder_free(found);
    say_skipped(&l, pattern);
    return l.count ? EXIT_OK
                   : tool_fail(t, QSIM_E_FORMAT, "%s: no pictures, sounds or arrays", pattern);
}

void sample_files_one(const char *path, size_t inputs, sample_files *out) {
    listing l = {.inputs = inputs, .out = out};
    memset(out, 0, sizeof(*out));
    put_file(&l, path);
}

/* FOLDER/STEM-images-idx3-ubyte[.gz],FOLDER/STEM-labels-idx1-ubyte[.gz] */
static bool idx_pair(const char *path, const char *stem, char **out) {
    static const char *const ends[] = {"", ".gz"};
    text pair = {0}, name = {0};
    int found = 0;
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < 2 && found <= part; i++) {
            name.size = 0;
            text_printf(&name, "%s-%s-ubyte%s", stem, part ? "labels-idx1" : "images-idx3",
                        ends[i]);
            char *full = folder_join(path, name.data);
            if (exists(full)) {
                text_printf(&pair, "%s%s", part ? "," : "", full);
                found++;
            }
            free(full);
        }
    text_free(&name);
    *out = found == 2 ? pair.data : NULL;
    if (found < 2)
        text_free(&pair);
    return found == 2;
}

bool sample_files_idx(const char *path, bool training, char **out) {
    return idx_pair(path, training ? "train" : "t10k", out) ||
           idx_pair(path, training ? "t10k" : "train", out);
}

void sample_files_free(sample_files *s) {
    folder_free(s->files);
    free(s->labels);
    memset(s, 0, sizeof(*s));
}
