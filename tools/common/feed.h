/* SPDX-License-Identifier: MIT */
/* Conversion of an array to a model's input: type, missing axes, scaling. */
#ifndef TOOL_FEED_H
#define TOOL_FEED_H

#include "common/array_source.h"
#include "common/preprocess.h"
#include "common/slot.h"

/*
 * Feeds one input from one source. With `samples` the first axis counts samples, in any number;
 * else the whole array is one input.
 */
typedef struct feed {
    slot slot;
    source *source;
    preprocess how;
    bool pixels;                 /* u8 becomes 0..1 */
    bool copies;                 /* elements are copied unchanged */
    bool quantizes;              /* floats become integers by the input's scale */
    int64_t dims[QSIM_MAX_RANK]; /* sizes of the tensor read last */
    int64_t first;               /* positions of the first axis in one reading; 0: no such axis */
    size_t sample;               /* elements per position */
    void *raw, *data;
    size_t raw_capacity, data_capacity;
} feed;

/* Plans the conversion; prints errors. The source must outlive the feed. */
int feed_plan(const tool *t, feed *f, const slot *s, source *src, const preprocess *how,
              bool samples);
/* Reads positions [first, first + count) as a tensor, valid until the next reading. */
int feed_read(const tool *t, feed *f, int64_t first, int64_t count, qsim_tensor *out);
/*
 * The tensor read last for another model's input, which has the same sizes, valid until the next
 * reading. `as` has its memory: zeroed before the first call, closed like `f`.
 */
int feed_read_as(const tool *t, const feed *f, const slot *s, feed *as, qsim_tensor *out);
/* Positions of the source's first axis (1 where the whole array is one sample). */
int64_t feed_positions(const feed *f);
void feed_close(feed *f);

/* Parts of a feed. Converts `elements` of f->raw to f->data in the input's type; prints errors. */
int feed_convert(const tool *t, feed *f, size_t elements);
/* The size of the input's channel axis. */
int64_t feed_channels(const feed *f);
/* A buffer of at least `bytes`, whose contents may be lost. */
void *feed_reserve(void *p, size_t *capacity, size_t bytes);

/* Writes sizes as "[N,1,28,28]"; returns the buffer. */
const char *shape_text(const int64_t *dims, int32_t rank, char buffer[256]);

#endif
