/* SPDX-License-Identifier: MIT */
#include "inputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/folder.h"
#include "common/sample_files.h"
#include "common/sample_source.h"
#include "common/unreadable.h"

/* An archive without a name feeds all of several inputs that have no --input of their own. */
static bool is_archive(const char *spec) {
    struct stat st;
    return sample_is_archive(spec) && stat(spec, &st) == 0;
}

/* Without a name, `random` makes up all of several inputs that have no --input of their own. */
static bool is_for_all(const char *spec) {
    uint64_t seed;
    return source_is_random(spec, &seed) || is_archive(spec);
}

static const char *find_spec(const tool *t, const slot *s, bool only, bool *shared) {
    const char *spec, *found = NULL, *for_all = NULL;
    for (size_t i = 0; (spec = args_repeated(&t->args, "input", i)) != NULL; i++)
        if (slot_value(spec, s, only))
            found = slot_value(spec, s, only);
        else if (is_for_all(spec))
            for_all = spec;
    *shared = for_all && !found;
    return found ? found : for_all;
}

/* Opens a file for an input; in an archive that feeds all inputs the member has the input's name.
 */
static int open_file(const tool *t, inputs *in, size_t i, const slot *s, const char *spec,
                     bool shared, preprocess *how) {
    source *src = &in->sources[i];
    if (folder_is(spec, strlen(spec)))
        return tool_usage(t, args_option(t->args.verb, "data") ? "--data takes folders" : NULL,
                          "--input '%s' is a folder, not a file for input '%.100s'", spec, s->name);
    const bool opened = i > 0 && src[-1].npz && strcmp(src[-1].path, spec) == 0;
    int code = opened ? source_open_beside(t, &src[-1], s->name, src)
                      : sample_source(t, spec, s, &in->how, src, how);
    in->single = in->single || sample_is_single(spec);
    if (code == EXIT_OK && shared && !source_has_member(src, s->name))
        code = tool_usage(t, "--input NAME=FILE feeds one input", "%s: nothing for input '%.100s'",
                          spec, s->name);
    return code;
}

/* Fills an input with one number, which must be whole for integer types. */
static int fill_with(const tool *t, const slot *s, double number, source *src) {
    const bool floats = is_float(s->dtype);
    int64_t n = (int64_t)src->array.elements,
            whole = number > -1e15 && number < 1e15 ? (int64_t)number : 0;
    size_t bytes = src->array.elements * 8;
    qsim_error e;
    if (!floats && (double)whole != number)
        return tool_usage(t, NULL, "input '%.100s' is %s: %g is no whole number for it", s->name,
                          qsim_dtype_name(s->dtype), number);
    src->kind = SOURCE_PROTO; /* needs no decoding */
    src->elements = tool_alloc(src->array.bytes, 1);
    void *all = tool_alloc(src->array.elements, 8);
    for (int64_t i = 0; i < n; i++) {
        if (floats)
            ((double *)all)[i] = number;
        else
            ((int64_t *)all)[i] = whole;
    }
    qsim_tensor from = {floats ? QSIM_DOUBLE : QSIM_INT64, 1, &n, all, bytes};
    qsim_tensor to = {s->dtype, 1, &n, src->elements, src->array.bytes};
    int code = qsim_tensor_convert(&from, &to, &e) ? tool_error(t, s->name, &e) : EXIT_OK;
    free(all);
    return code;
}

/* Makes up an input of the slot's sizes: all elements the same number, or random. */
static int make_up(const tool *t, const slot *s, const double *number, uint64_t seed, int64_t first,
                   source *src) {
    int64_t dims[QSIM_MAX_RANK];
    for (int32_t k = 0; k < s->rank; k++)
        dims[k] = s->dims[k] >= 0 ? s->dims[k] : first; /* only axis 0 is free still */
    source_random(src, seed, s, dims);
    return number ? fill_with(t, s, *number, src) : EXIT_OK;
}

/* Is this a number, and not the name of a file? */
static bool is_number(const char *spec, double *number) {
    struct stat st;
    return parse_number(spec, number) && stat(spec, &st) != 0;
}

static bool is_made_up(const char *spec) {
    uint64_t seed;
    double number;
    return !spec || source_is_random(spec, &seed) || is_number(spec, &number);
}

/* Reads what feeds input i: planned, then read as one batch. */
static int take(const tool *t, inputs *in, size_t i, const slot *s, const preprocess *how) {
    int code = feed_plan(t, &in->feeds[i], s, &in->sources[i], how, false);
    return code ? code
                : feed_read(t, &in->feeds[i], 0, feed_positions(&in->feeds[i]), &in->tensors[i]);
}

/* Reads a file, whose sizes become those of the input. */
static int fill_from(const tool *t, inputs *in, size_t i, slot *slots, const char *spec,
                     bool shared) {
    preprocess how = in->how;
    slot *s = &slots[i];
    int code = open_file(t, in, i, s, spec, shared, &how);
    if (code == EXIT_OK)
        code = take(t, in, i, s, &how);
    for (int32_t k = 0; code == EXIT_OK && k < s->rank && k < in->tensors[i].rank; k++)
        s->dims[k] = in->tensors[i].dims[k];
    return code;
}

static int fill_made_up(const tool *t, inputs *in, size_t i, const slot *s, const char *spec,
                        int64_t first) {
    const preprocess plain = {.multiply = 1, .divide = 1, .std = {1}};
    uint64_t seed = 0;
    double number;
    const bool random = !spec || source_is_random(spec, &seed);
    int code = make_up(t, s, random || !is_number(spec, &number) ? NULL : &number, seed + i, first,
                       &in->sources[i]);
    return code ? code : take(t, in, i, s, random ? &in->how : &plain);
}

/* Is a single input's value given without its name? A file may have "=" in its name. */
static bool is_bare(const char *spec) {
    struct stat st;
    return !strchr(spec, '=') || stat(spec, &st) == 0;
}

/* The index of the input that --input `spec` names; `count`: none. */
static size_t find_slot(const char *spec, const slot *slots, size_t count) {
    size_t i = 0;
    while (i < count && !slot_value(spec, &slots[i], count == 1 && is_bare(spec)))
        i++;
    return i;
}

static int name_inputs(const tool *t, const char *spec, const slot *slots, size_t count) {
    text hint = {0};
    for (size_t i = 0; i < count; i++)
        text_printf(
            &hint, "%s'%.100s'",
            i ? ", "
              : (count > 1
                     ? "an .npz with the inputs' names, NAME=FILE or NAME=NUMBER, where NAME is one of "
                     : "NAME=FILE, where NAME is "),
            slots[i].name);
    const int code =
        tool_usage(t, count ? hint.data : NULL, "--input '%s' names no input of the model", spec);
    text_free(&hint);
    return code;
}

/* Each --input must name an input of the model that no other names. */
static int check_names(const tool *t, const slot *slots, size_t count) {
    const char *spec, *other;
    for (size_t n = 0; (spec = args_repeated(&t->args, "input", n)) != NULL; n++) {
        const size_t i = find_slot(spec, slots, count);
        if (i == count && !(count > 1 && is_for_all(spec)))
            return name_inputs(t, spec, slots, count);
        for (size_t k = 0; k < n && (other = args_repeated(&t->args, "input", k)) != NULL; k++)
            if (find_slot(other, slots, count) == i)
                return tool_usage(t, "a folder or 'PATTERN' is run file by file",
                                  "--input '%s' and '%s' are for the same input '%.100s'", other,
                                  spec, slots[i < count ? i : 0].name);
    }
    return EXIT_OK;
}

static int refuse_missing(const tool *t, const slot *s, size_t count) {
    char shape[256];
    return tool_usage(t,
                      count == 1 ? "--input NAME=random makes one up, NAME=0 fills one with zeros"
                                 : "--input random makes up all that have no other, NAME=0 fills "
                                   "one with zeros",
                      "input '%.100s' (%s %s) is missing", s->name, qsim_dtype_name(s->dtype),
                      shape_text(s->dims, s->rank, shape));
}

/*
 * Files first: they tell sizes of what is made up, by the names of axes, but not of each other:
 * some exporters give one name to all free axes.
 */
static int fill_all(const tool *t, inputs *in, slot *slots, bool invent, const char *file) {
    bool shared = false, any = false;
    int64_t first;
    int code = tool_int(t, "batch", 1, INT32_MAX, 1, &first) ? EXIT_OK : EXIT_USAGE;
    for (size_t i = 0; i < in->count && code == EXIT_OK && !invent && !file; i++)
        if (!find_spec(t, &slots[i], in->count == 1, &shared))
            code = refuse_missing(t, &slots[i], in->count);
    for (size_t i = 0; i < in->count && code == EXIT_OK; i++) {
        const char *spec = file ? file : find_spec(t, &slots[i], in->count == 1, &shared);
        if (is_made_up(spec))
            any = true;
        else
            code = fill_from(t, in, i, slots, spec, shared);
        /* A run without samples is allowed; timing one is not. */
        if (code == EXIT_OK && spec && invent && in->count == 1 && !any &&
            feed_positions(&in->feeds[i]) == 0)
            code = tool_fail(t, QSIM_E_VALUE, "%s: no samples", spec);
    }
    for (size_t i = 0; i < in->count && any && code == EXIT_OK; i++)
        if (in->tensors[i].dtype)
            slots_share(slots, in->count, &slots[i]);
    if (any && code == EXIT_OK)
        slots_make_up(t, slots, in->count, first);
    for (size_t i = 0; i < in->count && any && code == EXIT_OK; i++) {
        const char *spec = file ? file : find_spec(t, &slots[i], in->count == 1, &shared);
        if (is_made_up(spec))
            code = fill_made_up(t, in, i, &slots[i], spec, first);
    }
    return code;
}

static int open_inputs(const tool *t, const qsim_model *model, bool invent, const char *file,
                       inputs *in) {
    memset(in, 0, sizeof(*in));
    slot *slots;
    int code = slots_of_model(t, model, &slots, &in->count);
    in->sources = tool_alloc(in->count, sizeof(*in->sources));
    in->feeds = tool_alloc(in->count, sizeof(*in->feeds));
    in->tensors = tool_alloc(in->count, sizeof(*in->tensors));
    if (code == EXIT_OK && !preprocess_find(t, &in->how))
        code = EXIT_USAGE;
    if (code == EXIT_OK)
        code = check_names(t, slots, in->count);
    if (code == EXIT_OK)
        code = fill_all(t, in, slots, invent, file);
    free(slots);
    return code;
}

static int open_data(const tool *t, const qsim_model *model, const char *spec, inputs *in) {
    batch b = {.input_count = 0};
    memset(in, 0, sizeof(*in));
    if (args_has(&t->args, "input"))
        return tool_usage(t, NULL, "%s: --data and --input both feed the model",
                          t->args.verb->name);
    int code = dataset_open_spec(t, spec, 1, model, &in->data);
    if (code == EXIT_OK)
        code = dataset_next(in->data, &b);
    in->tensors = tool_alloc(b.input_count, sizeof(*in->tensors));
    for (; in->count < b.input_count && code == EXIT_OK; in->count++)
        in->tensors[in->count] = b.inputs[in->count];
    return code;
}

int inputs_open(const tool *t, const qsim_model *model, bool invent, inputs *in) {
    const char *spec = args_value(&t->args, "data");
    if (spec)
        return open_data(t, model, spec, in);
    return open_inputs(t, model, invent, NULL, in);
}

int inputs_open_file(const tool *t, const qsim_model *model, const char *file, inputs *in) {
    kept_error error = {0};
    tool_keep_errors(t, &error);
    const int code = open_inputs(t, model, false, file, in);
    tool_keep_errors(t, NULL);
    if (code == EXIT_OK)
        return EXIT_OK;
    inputs_close(in);
    return unreadable_skip(t, file, &error) ? EXIT_OK : unreadable_refuse(t, true, &error);
}

void inputs_close(inputs *in) {
    for (size_t i = 0; i < in->count && !in->data; i++) {
        feed_close(&in->feeds[i]);
        source_close(&in->sources[i]);
    }
    dataset_close(in->data);
    free(in->sources);
    free(in->feeds);
    free(in->tensors);
    memset(in, 0, sizeof(*in));
}
