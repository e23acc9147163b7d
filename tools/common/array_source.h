/* SPDX-License-Identifier: MIT */
/*
 * One array from any source: .npy, IDX (.gz), a member of an .npz, a TensorProto, .csv, or made up.
 */
#ifndef TOOL_SOURCE_H
#define TOOL_SOURCE_H

#include <qsim/data.h>

#include "common/slot.h"

enum { SOURCE_FILE, SOURCE_NPZ, SOURCE_PROTO, SOURCE_RANDOM };

typedef struct source {
    int kind;
    bool idx;         /* pixels, which become 0..1 in float inputs */
    bool picture;     /* the file is a picture */
    bool sound;       /* the file is a sound */
    bool table;       /* the file is a text table: a row has the elements of one sample */
    const char *path; /* owned by the caller */
    const void *data; /* bytes of the file, inflated */
    size_t size;
    qsim_array array;
    qsim_file *file;
    void *owned;    /* those bytes, if they were inflated or read */
    void *elements; /* decoded elements of a member or message */
    qsim_npz *npz;
    bool beside; /* `npz` is that of another source, which closes it */
    int32_t member;
    uint64_t seed;
    bool ones; /* made-up elements are 1 */
} source;

/* Stands for the member of an .npz with one of the usual names of labels. */
#define SOURCE_LABELS ""
/*
 * Opens a file. In an .npz it takes `member`, else "x", "x_test" or the like, else the only member.
 * Prints errors and returns the exit code. `s` may be closed either way.
 */
int source_open(const tool *t, const char *path, const char *member, source *s);
/* Reads a text table, whose bytes s->data has, as [rows, columns] of floats. */
int source_open_table(const tool *t, source *s);
/* Converts a table of whole numbers to the integers that an input takes; others are refused. */
int source_table_as(const tool *t, source *s, const slot *to);
/* Opens another member of the .npz that `archive` has open, and keeps open while `s` is read. */
int source_open_beside(const tool *t, const source *archive, const char *member, source *s);
/*
 * Reproducible elements: element i of seed s depends on both alone. Floats are uniform in [0, 1),
 * 8-bit integers use their whole range, wider ones and bool are 0 or 1; an attention mask of
 * integers is all 1, since a text without any token is none.
 */
void source_random(source *s, uint64_t seed, const slot *of, const int64_t *dims);
/* The finalizer of SplitMix64 (Steele, Lea, Flood, 2014). */
uint64_t source_scramble(uint64_t z);
/* "random" or "random:SEED". */
bool source_is_random(const char *spec, uint64_t *seed);
/* Copies positions of the first axis, row-major. */
int source_read(const tool *t, source *s, int64_t first, int64_t count, void *out, size_t capacity);
void source_close(source *s);
/* 1 if an open .npz has a member of this name. */
bool source_has_member(const source *s, const char *member);
/* The usual names of labels, from 0 on: y, y_test, labels, ...; NULL behind the last. */
const char *source_label_name(size_t k);

#endif
