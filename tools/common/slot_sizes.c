/* SPDX-License-Identifier: MIT */
/* Sizes of free axes in data that is made up: 1, or what other axes tell. */
#include <stdlib.h>
#include <string.h>

#include "common/slot.h"

#define MOST_PARTS 4
#define MOST_NAMED 12 /* axes in the sentence that says what was taken */

typedef struct sum {
    char name[MOST_PARTS][64]; /* of axes; or a number */
    int count;
} sum;

static bool is_axis(const slot *s, int32_t k, const char *name) {
    return s->axes[k] && strcmp(s->axes[k], name) == 0;
}

/* The size of the axes with a name: -1, none has one; -2: there is no such axis. */
static int64_t size_of(const slot *slots, size_t count, const char *name) {
    int64_t size = -2;
    for (size_t i = 0; i < count; i++)
        for (int32_t k = 0; k < slots[i].rank; k++)
            if (is_axis(&slots[i], k, name) && size < 0)
                size = slots[i].dims[k];
    return size;
}

static void set(slot *slots, size_t count, const char *name, int64_t size) {
    for (size_t i = 0; i < count; i++)
        for (int32_t k = 0; k < slots[i].rank; k++)
            if (is_axis(&slots[i], k, name) && slots[i].dims[k] < 0)
                slots[i].dims[k] = size;
}

/* The same, without axis 0. */
static void set_others(slot *slots, size_t count, const char *name, int64_t size) {
    for (size_t i = 0; i < count; i++)
        for (int32_t k = 1; k < slots[i].rank; k++)
            if (is_axis(&slots[i], k, name) && slots[i].dims[k] < 0)
                slots[i].dims[k] = size;
}

void slots_share(slot *slots, size_t count, const slot *from) {
    for (int32_t k = 0; k < from->rank; k++)
        if (from->axes[k] && from->dims[k] >= 0)
            set(slots, count, from->axes[k], from->dims[k]);
}

/* Splits "past_length + length"; false: it is no sum. */
static bool split(const char *name, sum *s) {
    s->count = 0;
    while (s->count < MOST_PARTS) {
        name += strspn(name, " ");
        size_t n = strcspn(name, "+");
        const char *next = name[n] ? name + n + 1 : NULL;
        while (n > 0 && name[n - 1] == ' ')
            n--;
        if (n == 0 || n >= sizeof(s->name[0]))
            return false;
        memcpy(s->name[s->count], name, n);
        s->name[s->count++][n] = 0;
        if (!next)
            return s->count > 1;
        name = next;
    }
    return false;
}

/* The parts of an axis that is a sum: by its name, or total_X, which is past_X and X. */
static bool parts_of(const slot *slots, size_t count, const char *name, sum *s) {
    int64_t number;
    if (strncmp(name, "total_", 6) == 0 && strlen(name) < sizeof(s->name[0])) {
        snprintf(s->name[0], sizeof(s->name[0]), "past_%s", name + 6);
        snprintf(s->name[1], sizeof(s->name[1]), "%s", name + 6);
        s->count = 2;
    } else if (!split(name, s)) {
        return false;
    }
    for (int i = 0; i < s->count; i++)
        if (!parse_int(s->name[i], 0, INT32_MAX, &number) &&
            (strcmp(s->name[i], name) == 0 || size_of(slots, count, s->name[i]) == -2))
            return false;
    return true;
}

/* The size of a sum; -1: a part has none. `without`: all but the first part. */
static int64_t add_up(const slot *slots, size_t count, const sum *s, bool without) {
    int64_t total = 0, size;
    for (int i = without; i < s->count; i++) {
        if (!parse_int(s->name[i], 0, INT32_MAX, &size))
            size = size_of(slots, count, s->name[i]);
        if (size < 0)
            return -1;
        total += size;
    }
    return total;
}

/* Axis k of the first input whose name begins so: its size, -1; NULL: there is none. */
static const int64_t *axis_of(const slot *slots, size_t count, const char *begin, int32_t k) {
    for (size_t i = 0; i < count; i++)
        if (strncmp(slots[i].name, begin, strlen(begin)) == 0 && slots[i].rank > k)
            return &slots[i].dims[k];
    return NULL;
}

/*
 * The last axis of an attention mask has the positions of the past (keys are [batch, heads,
 * positions, size]) and of the input, if no name tells; false: it is none.
 */
static bool is_mask(const slot *slots, size_t count, const slot *s, int64_t *size) {
    const int64_t *past = axis_of(slots, count, "past", 2),
                  *now = axis_of(slots, count, "input", 1);
    if (strcmp(s->name, "attention_mask") != 0 || s->rank != 2 || !past || !now)
        return false;
    for (size_t i = 0; i < count && s->axes[1]; i++)
        for (int32_t k = 0; k < slots[i].rank; k++)
            if (&slots[i] != s && is_axis(&slots[i], k, s->axes[1]))
                return false;
    *size = *past < 0 || *now < 0 ? -1 : *past + *now;
    return true;
}

/* Whether the size of axis k follows from others; *size is -1 until those are known. */
static bool follows(const slot *slots, size_t count, const slot *s, int32_t k, int64_t *size) {
    sum parts;
    if (s->axes[k] && parts_of(slots, count, s->axes[k], &parts)) {
        *size = add_up(slots, count, &parts, false);
        return true;
    }
    return k == 1 && is_mask(slots, count, s, size);
}

/* Where the size of a sum was given, the past is what the other parts, or else 1 each, leave. */
static void give_past(slot *slots, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (int32_t k = 1; k < slots[i].rank; k++) {
            const char *name = slots[i].axes[k];
            sum s;
            if (slots[i].dims[k] < 0 || !name || !parts_of(slots, count, name, &s))
                continue;
            const int64_t rest = add_up(slots, count, &s, true);
            const int64_t past = slots[i].dims[k] - (rest < 0 ? s.count - 1 : rest);
            if (past >= 0)
                set(slots, count, s.name[0], past);
        }
}

/* Axis 0 counts samples: its size follows from the option --batch, not from others. */
static void give_sizes(slot *slots, size_t count, bool following) {
    for (size_t i = 0; i < count; i++)
        for (int32_t k = 1; k < slots[i].rank; k++) {
            int64_t size = 1;
            if (slots[i].dims[k] >= 0 || follows(slots, count, &slots[i], k, &size) != following)
                continue;
            size = size < 0 ? 1 : size;
            if (slots[i].axes[k])
                set(slots, count, slots[i].axes[k], size);
            slots[i].dims[k] = size;
        }
}

/* Whether a list "a=1, b=2" has the entry. */
static bool lists(const char *list, const char *entry) {
    const size_t n = strlen(entry);
    while (list && !(strncmp(list, entry, n) == 0 && (!list[n] || list[n] == ','))) {
        list = strstr(list, ", ");
        list = list ? list + 2 : NULL;
    }
    return list != NULL;
}

/* Says which sizes were taken: by the axes' names, or x[2], axis 2 of input x. */
static void say(const tool *t, const slot *slots, size_t count, const slot *before, int64_t first) {
    text names = {0}, line = {0};
    bool unnamed = false;
    for (size_t i = 0, n = 0; i < count; i++)
        for (int32_t k = slots[i].rank > 1; k < slots[i].rank && n < MOST_NAMED; k++) {
            const int64_t size = slots[i].dims[k] < 0 ? first : slots[i].dims[k];
            text label = {0};
            if (slots[i].axes[k])
                text_printf(&label, "%.60s=%lld", slots[i].axes[k], (long long)size);
            else
                text_printf(&label, "%.60s[%d]=%lld", slots[i].name, (int)k, (long long)size);
            const bool given = before[i].dims[k] >= 0 || (k == 0 && first > 1);
            if (!given && !lists(names.data, label.data)) {
                text_printf(&names, "%s%s", n++ ? ", " : "", label.data);
                unnamed = unnamed || !slots[i].axes[k];
            }
            text_free(&label);
        }
    if (names.size)
        text_printf(&line, "free axes were taken as %s; --shape %s gives others", names.data,
                    unnamed ? "INPUT=DIMS" : "NAME=SIZE");
    if (line.size)
        tool_assume(t, line.data);
    text_free(&names);
    text_free(&line);
}

void slots_make_up(const tool *t, slot *slots, size_t count, int64_t first) {
    slot *before = tool_alloc(count, sizeof(*before));
    for (size_t i = 0; i < count; i++) /* states may count samples along another axis */
        if (slots[i].rank > 0 && slots[i].dims[0] < 0 && slots[i].axes[0])
            set_others(slots, count, slots[i].axes[0], first);
    memcpy(before, slots, count * sizeof(*before));
    give_past(slots, count);
    give_sizes(slots, count, false);
    give_sizes(slots, count, true);
    say(t, slots, count, before, first);
    free(before);
}
