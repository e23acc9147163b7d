/* SPDX-License-Identifier: MIT */
/* qsim_builder with types in ONNX's text form: "float[N,64]". */
#include "base/base.h"

#include <qsim/model.h>

#include "onnx/builder_text.h"

static bool parse_dtype(const char *text, size_t n, int32_t *dtype) {
    for (*dtype = QSIM_FLOAT; *dtype <= QSIM_INT2; ++*dtype) {
        const char *name = qsim_dtype_name(*dtype);
        if (qsim_dtype_bits(*dtype) > 0 && strlen(name) == n && memcmp(name, text, n) == 0)
            return true;
    }
    return false;
}

/* Parses a size or the name of an unknown size, which is -1. */
static bool parse_dim(char *word, int64_t *dim, const char **name) {
    const int64_t limit = INT64_MAX / 10 - 1;
    *dim = -1;
    *name = NULL;
    if (*word < '0' || *word > '9') {
        *name = word;
        return *word != '\0' && word[strcspn(word, " []")] == 0;
    }
    for (*dim = 0; *word >= '0' && *word <= '9' && *dim <= limit; word++)
        *dim = *dim * 10 + (*word - '0');
    return *word == '\0';
}

bool qs_builder_type(const char *text, qs_text_type *t) {
    size_t n = text ? strcspn(text, "[") : 0;
    if (!text || strlen(text) >= sizeof(t->text) || !parse_dtype(text, n, &t->dtype))
        return false;
    t->rank = -1;
    memcpy(t->text, text, strlen(text) + 1);
    if (!t->text[n])
        return true;
    char *p = t->text + n + 1, *end = strchr(p, ']');
    if (!end || end[1])
        return false;
    *end = '\0';
    for (t->rank = 0; p && end != t->text + n + 1; t->rank++) {
        char *comma = strchr(p, ',');
        if (comma)
            *comma++ = '\0';
        if (t->rank == QSIM_MAX_RANK || !parse_dim(p, &t->dims[t->rank], &t->names[t->rank]))
            return false;
        p = comma;
    }
    return true;
}
