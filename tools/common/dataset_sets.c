/* SPDX-License-Identifier: MIT */
/* Data sets of files: each file or test_data_set_* is a sample. */
#include "common/dataset_sets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file_labels.h"
#include "common/folder.h"
#include "common/sample_source.h"
#include "common/utf8.h"

/* ---- opening ---- */

static int list(dataset *d, const class_names *names) {
    const char *path = d->x_path;
    if (folder_is(path, strlen(path)))
        return sample_files_folder(d->t, path, d->inputs, names, &d->files);
    if (sample_is_pattern(path, strlen(path)))
        return sample_files_pattern(d->t, path, d->inputs, &d->files);
    sample_files_one(path, d->inputs, &d->files);
    return EXIT_OK;
}

static int open_files(dataset *d, const char *spec, size_t size, const char *labels) {
    class_names names;
    d->x_path = tool_copy(spec);
    d->x_path[size] = 0;
    int code = class_names_read(d->t, &names);
    if (code == EXIT_OK)
        code = list(d, &names);
    if (code == EXIT_OK)
        code = file_labels_read(d->t, d->x_path, labels, d->inputs, &names, &d->files);
    class_names_free(&names);
    d->labels = d->files.labels;
    d->files.labels = NULL;
    d->label_count = (int64_t)d->files.groups;
    d->sets = true;
    d->step = 1;
    d->end = (int64_t)d->files.groups;
    return code;
}

/* An archive whose arrays have no axis of samples in common is one sample. */
static bool is_set(const dataset *d, const char *path) {
    return d->inputs > 1 && sample_is_archive(path) && !dataset_shares_samples(d);
}

bool dataset_open_files(dataset *d, const char *spec, int *code) {
    struct stat st;
    size_t size = strlen(spec);
    bool there = stat(spec, &st) == 0;
    const char *comma = there ? NULL : strrchr(spec, ',');
    size_t name = comma ? (size_t)(comma - spec) : size;
    bool files = folder_is(spec, name) || (!there && sample_is_pattern(spec, name)) ||
                 (there && (sample_is_single(spec) || is_set(d, spec)));
    if (files)
        *code = open_files(d, spec, name, comma ? comma + 1 : NULL);
    return files;
}

/* ---- reading ---- */

/* Does a run take one window of this file, a sound? */
static bool has_windows(const dataset *d) {
    return d->inputs == 1 && d->files.files && d->slots[0].rank > 1 && d->slots[0].dims[0] == 1 &&
           sound_is_name(d->files.files[d->at]);
}

static int open_member(dataset *d, size_t i) {
    preprocess how = d->how;
    slot s = d->slots[i];
    int code = EXIT_OK;
    if (has_windows(d))
        s.dims[0] = -1;
    if (!d->files.files)
        dataset_make_up(d, i, d->seed + (uint64_t)d->at * d->inputs + i, 0);
    else
        code = sample_source(d->t, d->files.files[(size_t)d->at * d->inputs + i], &s, &d->how,
                             &d->sources[i], &how);
    return code ? code : feed_plan(d->t, &d->feeds[i], &s, &d->sources[i], &how, false);
}

static int read_set(dataset *d) {
    int code = EXIT_OK;
    const int64_t window = has_windows(d) ? d->window : 0;
    if (window == 0)
        dataset_close_sources(d);
    for (size_t i = 0; i < d->inputs && code == EXIT_OK; i++) {
        if (window == 0)
            code = open_member(d, i);
        if (code == EXIT_OK)
            code = feed_read(d->t, &d->feeds[i], window,
                             has_windows(d) ? 1 : feed_positions(&d->feeds[i]), &d->tensors[i]);
    }
    return code;
}

/* Goes on to the next window of the file, or to the next file. */
static void step_set(dataset *d) {
    if (has_windows(d) && ++d->window < feed_positions(&d->feeds[0]))
        return;
    d->window = 0;
    d->at++;
}

/* A set whose file cannot be read: an error, or skipped. */
static int miss_set(dataset *d, kept_error *error) {
    const char *path = d->files.files ? d->files.files[(size_t)d->at * d->inputs] : "random";
    if (!unreadable_skip(d->t, path, error))
        return unreadable_refuse(d->t, d->files.groups > 1, error);
    if (!d->skipped)
        d->skipped = tool_alloc(d->files.groups, sizeof(*d->skipped));
    d->skipped[d->at++] = true;
    return EXIT_OK;
}

const char *dataset_file(const dataset *d, const batch *b) {
    return d->files.files ? d->files.files[(size_t)b->at * d->inputs] : NULL;
}

void dataset_name_row(const dataset *d, const batch *b, size_t row, text *out) {
    const char *file = dataset_file(d, b);
    if (!file) {
        text_printf(out, "sample %lld", (long long)b->at + (long long)row);
        return;
    }
    utf8_printable(out, tool_base_name(file), 60);
    if (b->samples > 1)
        text_printf(out, " [%zu]", row);
}

int dataset_end_sets(const dataset *d) {
    return d->skipped && !d->given
               ? tool_fail(d->t, QSIM_E_FORMAT, "%s: no file can be read", d->x_path)
               : EXIT_OK;
}

int dataset_next_set(dataset *d, batch *b) {
    kept_error error = {0};
    if (d->skipped && d->skipped[d->at]) {
        d->at++;
        return EXIT_OK;
    }
    tool_keep_errors(d->t, &error);
    const int code = read_set(d);
    tool_keep_errors(d->t, NULL);
    if (code)
        return miss_set(d, &error);
    d->given = true;
    b->samples = d->files.files && d->tensors[0].rank > 0 ? d->tensors[0].dims[0] : 1;
    if (b->samples == 0) /* 0 would mean the end */
        return tool_fail(d->t, QSIM_E_VALUE, "%s: no samples",
                         d->files.files[(size_t)d->at * d->inputs]);
    b->labels = d->labels && b->samples == 1 ? d->labels + d->at : NULL;
    b->at = d->at;
    step_set(d);
    return EXIT_OK;
}
