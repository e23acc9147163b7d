/* SPDX-License-Identifier: MIT */
#include "common/slot.h"

#include <stdlib.h>
#include <string.h>

bool is_float(int32_t dtype) {
    return dtype == QSIM_FLOAT || dtype == QSIM_DOUBLE || dtype == QSIM_FLOAT16 ||
           dtype == QSIM_BFLOAT16;
}

bool slot_is_real(const slot *s) {
    return is_float(s->dtype) || s->scale > 0;
}

#define MOST_LOOKS 1e8

bool slot_find_scale(const qsim_model *m, const char *tensor, double *scale, int64_t *zero_point) {
    const double ends = qsim_model_input_count(m) + (double)qsim_model_output_count(m);
    return ends * qsim_model_node_count(m) <= MOST_LOOKS &&
           qsim_model_scale(m, tensor, scale, zero_point, NULL) == QSIM_OK;
}

bool slot_retype(const qsim_model *model, int32_t index, slot *s) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    if (qsim_model_input(model, index, &v))
        return false;
    s->dtype = v.dtype;
    s->scale = 0;
    (void)slot_find_scale(model, v.name, &s->scale, &s->zero_point);
    return true;
}

static int slot_of_model(const tool *t, const qsim_model *model, int32_t index, slot *s) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    if (qsim_model_input(model, index, &v) != QSIM_OK)
        return tool_fail(t, QSIM_E_INTERNAL, "no input %d", index);
    if (v.rank < 0 || v.rank > QSIM_MAX_RANK || v.dtype == QSIM_UNDEFINED)
        return tool_fail(t, QSIM_E_UNSUPPORTED, "input '%s' has no known type and rank", v.name);
    s->name = v.name;
    s->rank = v.rank;
    for (int32_t i = 0; i < v.rank; i++) {
        s->dims[i] = v.dims[i];
        s->axes[i] = v.dims[i] < 0 ? v.dim_names[i] : NULL;
    }
    (void)slot_retype(model, index, s);
    return EXIT_OK;
}

const char *slot_value(const char *given, const slot *s, bool only) {
    size_t n = strlen(s->name);
    if (strncmp(given, s->name, n) == 0 && given[n] == '=')
        return given + n + 1;
    return only ? given : NULL;
}

/* Parses "1x3x32x320" into dims; returns the rank, or -1. */
static int32_t parse_sizes(const char *at, int64_t dims[QSIM_MAX_RANK]) {
    char part[24];
    int32_t rank = 0;
    for (size_t n; rank < QSIM_MAX_RANK; at += n + 1) {
        n = strcspn(at, "x");
        if (n == 0 || n >= sizeof(part))
            return -1;
        memcpy(part, at, n);
        part[n] = 0;
        if (!parse_int(part, 1, INT32_MAX, &dims[rank++]))
            return -1;
        if (!at[n])
            return rank;
    }
    return -1;
}

static int give(const tool *t, slot *s, const char *sizes) {
    int64_t dims[QSIM_MAX_RANK];
    int32_t rank = parse_sizes(sizes, dims);
    if (rank < 0)
        return tool_usage(t, "sizes are whole numbers above 0, as in --shape 1x3x32x320",
                          "--shape '%.100s': not sizes of an input", sizes);
    bool fits = rank == s->rank;
    for (int32_t i = 0; i < rank && fits; i++)
        fits = s->dims[i] < 0 || s->dims[i] == dims[i];
    if (!fits) {
        text shape = {0};
        for (int32_t i = 0; i < s->rank; i++)
            if (s->dims[i] < 0)
                text_printf(&shape, "%s?", i ? "," : "");
            else
                text_printf(&shape, "%s%lld", i ? "," : "", (long long)s->dims[i]);
        int code = tool_usage(t, "axes that are ? are free; the others stay as they are",
                              "--shape '%.100s' does not fit input '%.100s': its shape is [%s]",
                              sizes, s->name, shape.data ? shape.data : "");
        text_free(&shape);
        return code;
    }
    memcpy(s->dims, dims, (size_t)rank * sizeof(*dims));
    return EXIT_OK;
}

/* Is the option's NAME= that of an axis? */
static bool names_axis(const char *given, const char *axis) {
    size_t n = axis ? strlen(axis) : 0;
    return n > 0 && strncmp(given, axis, n) == 0 && given[n] == '=';
}

/* Refuses a NAME of --shape, with the one that was probably meant. */
static int refuse_name(const tool *t, const slot *slots, size_t count, const char *given) {
    const char **names = tool_alloc(count * (QSIM_MAX_RANK + 1) + 1, sizeof(*names));
    size_t n = 0;
    text hint = {0}, name = {0};
    for (size_t i = 0; i < count; i++) {
        names[n++] = slots[i].name;
        for (int32_t k = 0; k < slots[i].rank; k++)
            if (slots[i].axes[k])
                names[n++] = slots[i].axes[k];
    }
    text_add(&name, given, strcspn(given, "="));
    const char *near = closest(name.data, names);
    text_puts(&hint, "NAME=DIMS names an input or a free axis; qsim info lists both");
    if (near) {
        hint.size = 0;
        text_printf(&hint, "did you mean %.100s%s?", near, given + name.size);
    }
    const int code = tool_usage(
        t, hint.data, "--shape '%.100s' names no input and no free axis of the model", given);
    text_free(&hint);
    text_free(&name);
    free(names);
    return code;
}

/* AXIS=SIZE: the size of all axes of this name, whichever inputs they are of. */
static int give_axis(const tool *t, slot *slots, size_t count, const char *given) {
    bool found = false;
    for (size_t i = 0; i < count; i++)
        for (int32_t k = 0; k < slots[i].rank; k++) {
            int64_t size;
            if (!names_axis(given, slots[i].axes[k]))
                continue;
            if (!parse_int(given + strlen(slots[i].axes[k]) + 1, 0, INT32_MAX, &size))
                return tool_usage(t, "a whole number, as in --shape seq=128",
                                  "--shape '%.100s': not the size of an axis", given);
            if (slots[i].dims[k] >= 0 && slots[i].dims[k] != size)
                return tool_usage(t, NULL,
                                  "--shape '%.100s': another size is given for input '%.100s'",
                                  given, slots[i].name);
            slots[i].dims[k] = size;
            found = true;
        }
    return found ? EXIT_OK : refuse_name(t, slots, count, given);
}

/* The input that an option --shape is for; `count`: none. */
static size_t shaped_input(const char *given, const slot *slots, size_t count, const char **sizes) {
    const bool only = count == 1 && !strchr(given, '=');
    size_t i = 0;
    while (i < count && !(*sizes = slot_value(given, &slots[i], only)))
        i++;
    return i;
}

/* The sizes of inputs first, then those of axes, so that their order does not matter. */
static int give_shapes(const tool *t, slot *slots, size_t count) {
    const char *given, *sizes;
    int code = EXIT_OK;
    for (size_t k = 0; code == EXIT_OK && (given = args_repeated(&t->args, "shape", k)); k++) {
        const size_t i = shaped_input(given, slots, count, &sizes);
        if (i < count)
            code = give(t, &slots[i], sizes);
    }
    for (size_t k = 0; code == EXIT_OK && (given = args_repeated(&t->args, "shape", k)); k++)
        if (shaped_input(given, slots, count, &sizes) == count)
            code = give_axis(t, slots, count, given);
    for (size_t k = 0; code == EXIT_OK && (given = args_repeated(&t->args, "shape", k)); k++) {
        const size_t i = shaped_input(given, slots, count, &sizes);
        if (i < count)
            slots_share(slots, count, &slots[i]);
    }
    return code;
}

int slots_of_model(const tool *t, const qsim_model *model, slot **slots, size_t *count) {
    int code = EXIT_OK;
    *count = (size_t)qsim_model_input_count(model);
    *slots = tool_alloc(*count, sizeof(**slots));
    for (size_t i = 0; i < *count && code == EXIT_OK; i++)
        code = slot_of_model(t, model, (int32_t)i, &(*slots)[i]);
    return code ? code : give_shapes(t, *slots, *count);
}

int32_t slot_sound_axis(const slot *s) {
    int32_t axis = s->rank - 1;
    while (axis > 0 && s->dims[axis] == 1)
        axis--;
    return axis > 0 ? axis : s->rank - 1;
}
