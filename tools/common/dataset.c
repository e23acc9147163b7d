/* SPDX-License-Identifier: MIT */
#include "common/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/folder.h"
#include "common/dataset_sets.h"
#include "common/labels.h"

void dataset_close_sources(dataset *d) {
    for (size_t i = 0; i < d->inputs; i++) {
        feed_close(&d->feeds[i]);
        source_close(&d->sources[i]);
    }
}

void dataset_close(dataset *d) {
    if (!d)
        return;
    dataset_close_sources(d);
    dataset_close_other(d);
    sample_files_free(&d->files);
    free(d->slots);
    free(d->sources);
    free(d->feeds);
    free(d->tensors);
    free(d->labels);
    free(d->skipped);
    free(d->x_path);
    free(d->y_path);
    free(d);
}

/* ---- arrays ---- */

static int plan_arrays(dataset *d) {
    d->step = 0;
    for (size_t i = 0; i < d->inputs; i++) {
        int code = feed_plan(d->t, &d->feeds[i], &d->slots[i], &d->sources[i], &d->how, true);
        if (code)
            return code;
        int64_t n = feed_positions(&d->feeds[i]);
        if (i > 0 && n != d->end)
            return tool_fail(d->t, QSIM_E_SHAPE, "%s: %lld samples for input '%.100s', not %lld",
                             d->sources[i].path, (long long)n, d->slots[i].name, (long long)d->end);
        d->end = n;
        if (d->slots[i].rank > 0 && d->slots[i].dims[0] > 0)
            d->step = d->slots[i].dims[0];
    }
    if (d->labels && d->label_count != d->end)
        return tool_fail(d->t, QSIM_E_SHAPE, "%s: %lld labels for %lld samples",
                         d->y_path ? d->y_path : d->x_path, (long long)d->label_count,
                         (long long)d->end);
    return EXIT_OK;
}

bool dataset_shares_samples(const dataset *d) {
    bool shared = true;
    for (size_t i = 0; i < d->inputs; i++)
        shared = shared && d->slots[i].rank > 0 && d->slots[i].dims[0] == d->slots[0].dims[0];
    return shared;
}

void dataset_make_up(dataset *d, size_t i, uint64_t seed, int64_t first) {
    const slot *s = &d->slots[i];
    int64_t dims[QSIM_MAX_RANK];
    for (int32_t k = 0; k < s->rank; k++)
        dims[k] = k == 0 && first ? first : s->dims[k] < 0 ? 1 : s->dims[k];
    source_random(&d->sources[i], seed, s, dims);
}

static int open_random(dataset *d, uint64_t seed) {
    d->sets = d->inputs > 1 && !dataset_shares_samples(d);
    int64_t limit, fixed = d->sets || d->slots[0].rank < 1 ? 0 : d->slots[0].dims[0];
    if (!tool_int(d->t, "limit", 1, INT32_MAX, fixed > 16 ? fixed : 16, &limit))
        return EXIT_USAGE;
    slots_make_up(d->t, d->slots, d->inputs, d->sets ? 1 : limit);
    if (d->sets) {
        d->step = 1;
        d->seed = seed;
        d->end = limit;
        return EXIT_OK;
    }
    for (size_t i = 0; i < d->inputs; i++)
        dataset_make_up(d, i, seed + i, limit);
    return plan_arrays(d);
}

/* The name of the archive's member with labels; NULL: none. An input may be called "y", too. */
static const char *find_labels(const dataset *d) {
    const char *name;
    for (size_t k = 0; (name = source_label_name(k)) != NULL; k++) {
        bool is_input = false;
        for (size_t i = 0; i < d->inputs; i++)
            is_input = is_input || strcmp(d->slots[i].name, name) == 0;
        if (!is_input && source_has_member(&d->sources[0], name))
            return name;
    }
    return NULL;
}

static int open_arrays(dataset *d, const char *spec) {
    struct stat st;
    const char *comma = stat(spec, &st) == 0 ? NULL : strchr(spec, ',');
    d->x_path = tool_copy(spec);
    if (comma) {
        d->x_path[comma - spec] = 0;
        d->y_path = tool_copy(comma + 1);
    }
    for (size_t i = 0; i < d->inputs; i++) {
        source *s = &d->sources[i];
        int code = i > 0 && s[-1].npz ? source_open_beside(d->t, &s[-1], d->slots[i].name, s)
                                      : source_open(d->t, d->x_path, d->slots[i].name, s);
        if (code)
            return code;
        if (d->inputs > 1 && !source_has_member(s, d->slots[i].name))
            return tool_usage(d->t, "an .npz with the inputs' names, or a folder, feeds several",
                              "%s: nothing for input '%.100s' of %zu", d->x_path, d->slots[i].name,
                              d->inputs);
    }
    const char *member = d->y_path ? SOURCE_LABELS : find_labels(d);
    int code = EXIT_OK;
    if (member)
        code = labels_read(d->t, d->y_path ? d->y_path : d->x_path, member, &d->labels,
                           &d->label_count);
    return code ? code : plan_arrays(d);
}

/* ---- opening ---- */

static int apply_window(dataset *d, const char *spec) {
    int64_t limit, skip, size;
    if (!tool_int(d->t, "limit", 1, INT64_MAX, INT64_MAX, &limit) ||
        !tool_int(d->t, "skip", 0, INT64_MAX, 0, &skip) ||
        !tool_int(d->t, "batch", 1, INT32_MAX, d->batch, &size))
        return EXIT_USAGE;
    d->first = skip < d->end ? skip : d->end;
    d->all = d->end;
    d->unit = 1;
    if (limit < d->end - d->first)
        d->end = d->first + limit;
    if (d->all == 0)
        return tool_fail(d->t, QSIM_E_VALUE, "%s: no samples", spec);
    if (d->first == d->end)
        return tool_fail(d->t, QSIM_E_VALUE, "%s: no samples are left after --skip %lld of %lld",
                         spec, (long long)skip, (long long)d->all);
    int64_t n = d->end - d->first;
    if (d->sets)
        return EXIT_OK;
    d->unit = d->step > 0 ? d->step : 1;
    if (d->step > 1 && n % d->step != 0) {
        if (n < d->step)
            return tool_fail(d->t, QSIM_E_SHAPE,
                             "%s: %lld samples, but the model takes %lld at once", spec,
                             (long long)n, (long long)d->step);
        tool_warn(d->t, "%s: the last %lld samples do not fill the model's batch of %lld", spec,
                  (long long)(n % d->step), (long long)d->step);
        d->end -= n % d->step;
    }
    if (d->step == 0)
        d->step = d->t->state->together = size;
    return EXIT_OK;
}

/* Opens the folder of Fashion-MNIST's four files. The test set tells what other verbs gained. */
static bool open_idx_folder(dataset *d, const char *spec, int *code) {
    static const char *const verbs[] = {"calibrate", "quantize", "auto", "sensitivity", "sweep"};
    bool training = false;
    char *pair;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs) && d->t->args.verb; i++)
        training = training || strcmp(d->t->args.verb->name, verbs[i]) == 0;
    if (!folder_is(spec, strlen(spec)) || !sample_files_idx(spec, training, &pair))
        return false;
    tool_note(d->t, "%s: takes %s", spec, pair);
    *code = open_arrays(d, pair);
    free(pair);
    return true;
}

static int open_any(dataset *d, const char *spec) {
    uint64_t seed;
    int code;
    if (source_is_random(spec, &seed))
        code = open_random(d, seed);
    else if (!open_idx_folder(d, spec, &code) && !dataset_open_files(d, spec, &code))
        code = open_arrays(d, spec);
    return code ? code : apply_window(d, spec);
}

int dataset_open(const tool *t, const qsim_model *model, dataset **out) {
    const char *spec = args_value(&t->args, "data");
    *out = NULL;
    if (!spec)
        return tool_usage(t, "--data random makes some up", "%s: --data is missing",
                          t->args.verb->name);
    return dataset_open_spec(t, spec, DATASET_BATCH, model, out);
}

int dataset_open_spec(const tool *t, const char *spec, int64_t fallback, const qsim_model *model,
                      dataset **out) {
    *out = NULL;
    dataset *d = tool_alloc(1, sizeof(*d));
    d->t = t;
    d->batch = fallback;
    int code = slots_of_model(t, model, &d->slots, &d->inputs);
    d->sources = tool_alloc(d->inputs, sizeof(*d->sources));
    d->feeds = tool_alloc(d->inputs, sizeof(*d->feeds));
    d->tensors = tool_alloc(d->inputs, sizeof(*d->tensors));
    if (code == EXIT_OK && !preprocess_find(t, &d->how))
        code = EXIT_USAGE;
    if (code == EXIT_OK && d->inputs == 0)
        code = tool_fail(t, QSIM_E_UNSUPPORTED, "the model has no inputs");
    if (code == EXIT_OK)
        code = open_any(d, spec);
    if (code) {
        dataset_close(d);
        return code;
    }
    dataset_rewind(d);
    *out = d;
    return EXIT_OK;
}

/* ---- batches ---- */

void dataset_use_held(dataset *d, bool held) {
    d->using_held = held;
    dataset_rewind(d);
}

/* The end of the samples that dataset_next gives. */
static int64_t last_of(const dataset *d) {
    return d->using_held && d->beyond ? d->beyond : d->end;
}

/* The number of samples from here on that can be read together; skips unwanted ones. */
static int64_t next_run(dataset *d) {
    const int64_t end = last_of(d);
    if (d->using_held && !d->beyond && !d->period)
        return 0;
    if (!d->period)
        return end - d->at;
    int64_t place = (d->at - d->first) / d->unit % d->period;
    if (d->using_held) {
        d->at += (d->period - 1 - place) * d->unit;
        return d->at < end ? d->unit : 0;
    }
    if (place == d->period - 1) {
        d->at += d->unit;
        place = 0;
    }
    const int64_t run = (d->period - 1 - place) * d->unit;
    return run < end - d->at ? run : end - d->at;
}

bool dataset_has_labels(const dataset *d) {
    return d->labels != NULL;
}

bool dataset_is_files(const dataset *d) {
    return d->files.groups > 0;
}

size_t dataset_classes(const dataset *d) {
    return d->files.classes;
}

void dataset_rewind(dataset *d) {
    d->window = 0;
    d->at = d->using_held && d->beyond ? d->end : d->first;
}

int dataset_next(dataset *d, batch *b) {
    b->inputs = d->tensors;
    b->input_count = d->inputs;
    b->samples = 0;
    b->labels = NULL;
    int code = EXIT_OK;
    int64_t n;
    while ((n = d->at < last_of(d) ? next_run(d) : 0) > 0 && d->sets) {
        code = dataset_next_set(d, b);
        if (code || b->samples > 0)
            return code;
    }
    if (n <= 0)
        return dataset_end_sets(d);
    n = n < d->step ? n : d->step;
    for (size_t i = 0; i < d->inputs; i++) {
        code = feed_read(d->t, &d->feeds[i], d->at, n, &d->tensors[i]);
        if (code)
            return code;
    }
    b->labels = d->labels ? d->labels + d->at : NULL;
    b->samples = n;
    b->at = d->at;
    d->at += n;
    return EXIT_OK;
}
