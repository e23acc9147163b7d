/* SPDX-License-Identifier: MIT */
#include "inputs.h"

#include <stdlib.h>
#include <string.h>

static const char *find_spec(const tool *t, const slot *s, bool only) {
    const char *spec, *found = NULL;
    for (size_t i = 0; (spec = args_repeated(&t->args, "input", i)) != NULL; i++)
        if (slot_value(spec, s, only))
            found = slot_value(spec, s, only);
    return found;
}

static int fill(const tool *t, inputs *in, size_t i, const slot *s, bool invent) {
    uint64_t seed;
    int64_t dims[QSIM_MAX_RANK], batch;
    const char *spec = find_spec(t, s, in->count == 1);
    char shape[256];
    int code = EXIT_OK;
    if (!tool_int(t, "batch", 1, INT32_MAX, 1, &batch))
        return EXIT_USAGE;
    if (!spec && !invent)
        return tool_usage(t, "--input NAME=random makes one up",
                          "input '%.100s' (%s %s) is missing", s->name, qsim_dtype_name(s->dtype),
                          shape_text(s->dims, s->rank, shape));
    if (!spec || source_is_random(spec, &seed)) {
        for (int32_t k = 0; k < s->rank; k++)
            dims[k] = s->dims[k] >= 0 ? s->dims[k] : k == 0 ? batch : 1;
        seed = spec ? seed : 0;
        source_random(&in->sources[i], seed + i, s->dtype, s->rank, dims);
        slot_made_up(t, s);
    } else
        code = source_open(t, spec, s->name, &in->sources[i]);
    if (code == EXIT_OK)
        code = feed_plan(t, &in->feeds[i], s, &in->sources[i], &in->how, false);
    if (code == EXIT_OK)
        code = feed_read(t, &in->feeds[i], 0, feed_positions(&in->feeds[i]), &in->tensors[i]);
    /* To run nothing is fine, to time it says nothing. */
    if (code == EXIT_OK && spec && invent && in->count == 1 && feed_positions(&in->feeds[i]) == 0)
        code = tool_fail(t, QSIM_E_VALUE, "%s: no samples", spec);
    return code;
}

/* The input that an --input is for; `count`: none. */
static size_t find_slot(const char *spec, const slot *slots, size_t count) {
    size_t i = 0;
    while (i < count && !slot_value(spec, &slots[i], count == 1))
        i++;
    return i;
}

/* Every --input must be for some input of the model, and for one that has no other. */
static int check_names(const tool *t, const slot *slots, size_t count) {
    const char *spec, *other;
    for (size_t n = 0; (spec = args_repeated(&t->args, "input", n)) != NULL; n++) {
        size_t i = find_slot(spec, slots, count);
        if (i == count)
            return tool_usage(t, "several inputs need NAME=FILE",
                              "--input '%s' names no input of the model", spec);
        for (size_t k = 0; k < n && (other = args_repeated(&t->args, "input", k)) != NULL; k++)
            if (find_slot(other, slots, count) == i)
                return tool_usage(t, NULL, "--input '%s' and '%s' are for the same input '%.100s'",
                                  other, spec, slots[i].name);
    }
    return EXIT_OK;
}

int inputs_open(const tool *t, const qsim_model *model, bool invent, inputs *in) {
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
    for (size_t i = 0; i < in->count && code == EXIT_OK; i++)
        code = fill(t, in, i, &slots[i], invent);
    free(slots);
    return code;
}

void inputs_close(inputs *in) {
    for (size_t i = 0; i < in->count; i++) {
        feed_close(&in->feeds[i]);
        source_close(&in->sources[i]);
    }
    free(in->sources);
    free(in->feeds);
    free(in->tensors);
    memset(in, 0, sizeof(*in));
}
