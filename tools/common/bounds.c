/* SPDX-License-Identifier: MIT */
/* --memory and --time: limits of a verb. */
#include <stdlib.h>
#include <string.h>

#include "common/system.h"
#include "common/tool.h"

/* "512", "512KB", "1.5 GB": bytes, in steps of 1024. */
static bool parse_size(const char *s, double *out) {
    static const char units[] = "KMGT";
    char *end;
    *out = strtod(s, &end);
    if (end == s || !(*out >= 1) || *out > 1e18)
        return false;
    while (*end == ' ')
        end++;
    const char *unit = *end ? strchr(units, *end) : NULL;
    for (const char *u = units; unit && u <= unit; u++)
        *out *= 1024;
    end += unit ? 1 : 0;
    end += unit && *end == 'i' ? 1 : 0;
    end += *end == 'B' ? 1 : 0;
    return *end == 0;
}

/*
 * The library limits the memory that it counts. The program's own arrays are limited by the system,
 * at a somewhat higher value, so that the library's message comes first.
 */
#define OWN_MEMORY (24 << 20)

bool tool_limits(const tool *t, qsim_limits *limits) {
    const char *memory = args_value(&t->args, "memory");
    double bytes, seconds;
    if (memory && !parse_size(memory, &bytes)) {
        tool_usage(t, "as in 512MB", "--memory is '%s', not a size", memory);
        return false;
    }
    if (!tool_number(t, "time", 0.001, 1e9, 0, &seconds))
        return false;
    limits->milliseconds = (uint64_t)(seconds * 1000);
    if (!memory)
        return true;
    limits->memory = (uint64_t)bytes;
    tool_note_limit(memory);
    system_limit_memory(bytes + OWN_MEMORY, t->threads);
    return true;
}
