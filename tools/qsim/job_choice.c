/* SPDX-License-Identifier: MIT */
/* Options of a quantization pass, and the values to try. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

job_choice *job_choice_of(job_pass *p, const char *name) {
    for (size_t i = 0; i < p->choice_count; i++)
        if (strcmp(p->choices[i].option, name) == 0)
            return &p->choices[i];
    p->choices = tool_grow(p->choices, p->choice_count + 1, sizeof(*p->choices));
    p->choices[p->choice_count] = (job_choice){.option = name};
    return &p->choices[p->choice_count++];
}

void job_choice_add(job_choice *c, const char *value) {
    for (size_t i = 0; i < c->count; i++)
        if (value && c->values[i] ? strcmp(c->values[i], value) == 0 : value == c->values[i])
            return;
    c->values = tool_grow(c->values, c->count + 1, sizeof(*c->values));
    c->values[c->count++] = value ? tool_copy(value) : NULL;
}

static void free_values(job_choice *c) {
    for (size_t i = 0; i < c->count; i++)
        free(c->values[i]);
    free(c->values);
    c->values = NULL;
    c->count = 0;
}

void job_choices_free(job_pass *p) {
    for (size_t i = 0; i < p->choice_count; i++)
        free_values(&p->choices[i]);
    free(p->choices);
}

static const char *scheme_of(const char *scheme, bool asymmetric) {
    const bool channel = scheme && strncmp(scheme, "channel", 7) == 0;
    return !asymmetric ? scheme : channel ? "channel-asymmetric" : "tensor-asymmetric";
}

void job_choices_join(job_pass *p) {
    (void)job_choice_of(p, "weight-scheme"); /* made first: making it later would move the other */
    job_choice *asymmetric = job_choice_of(p, "weight-asymmetric");
    job_choice *scheme = job_choice_of(p, "weight-scheme"), old = *scheme;
    const size_t schemes = old.count ? old.count : 1;
    scheme->values = NULL;
    scheme->count = 0;
    for (size_t i = 0; i < asymmetric->count * schemes; i++)
        job_choice_add(scheme, scheme_of(old.count ? old.values[i % schemes] : NULL,
                                         asymmetric->values[i / schemes] != NULL));
    if (asymmetric->count)
        free_values(&old);
    else
        *scheme = old;
    free_values(asymmetric);
}
