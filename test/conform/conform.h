/* SPDX-License-Identifier: MIT */
/*
 * Runs recorded models, named in a list, judges each and counts. A model that is refused by name is
 * counted, not judged; a wrong result is a failure.
 * Usage of both programs: PROGRAM FOLDER LIST MINIMUM  (fails also if fewer than MINIMUM pass)
 */
#ifndef CONFORM_H
#define CONFORM_H

#include "test.h"

#include <qsim/qsim.h>

enum verdict { PASSED, WRONG, REFUSED };

/* A file's bytes followed by a NUL, freed by the caller; NULL: it cannot be opened. */
static inline void *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *data = malloc(n > 0 ? (size_t)n + 1 : 1);
    *size = data && n > 0 ? fread(data, 1, (size_t)n, f) : 0;
    if (data)
        data[*size] = 0;
    fclose(f);
    return data;
}

typedef enum verdict judge_fn(qsim_ctx *ctx, const char *folder, const char *name, qsim_error *e);

static inline int judge_list(int argc, char **argv, judge_fn *judge) {
    if (argc != 4)
        return 2;
    qsim_ctx *ctx = NULL;
    qsim_error e;
    char name[256];
    int counts[3] = {0};
    FILE *list = fopen(argv[2], "r");
    if (!list || qsim_ctx_create(NULL, &ctx, &e))
        return 2;
    while (fscanf(list, "%255s", name) == 1) {
        memset(&e, 0, sizeof(e));
        enum verdict v = judge(ctx, argv[1], name, &e);
        counts[v]++;
        if (v == WRONG)
            printf("WRONG %s\n", name);
        if (v == REFUSED && getenv("VERBOSE"))
            printf("refused %s: %s\n", name, e.message);
    }
    fclose(list);
    qsim_ctx_free(ctx);
    printf("%d passed, %d wrong, %d refused by name\n", counts[PASSED], counts[WRONG],
           counts[REFUSED]);
    CHECK_INT(counts[WRONG], 0);
    CHECK(counts[PASSED] >= atoi(argv[3]));
    return test_done();
}

#endif
