/* SPDX-License-Identifier: MIT */
/* How an array becomes a model's input: type, missing axes, scaling. */
#ifndef TOOL_FEED_H
#define TOOL_FEED_H

#include "common/array_source.h"
#include "common/preprocess.h"
#include "common/slot.h"

/*
 * One input being fed from one source. With `samples` the first axis counts samples, which may be
 * fewer or more than the model's; else the whole array is one input.
 */
typedef struct feed {
    slot slot;
    source *source;
    preprocess how;
    bool pixels;                 /* u8 to 0..1 */
    bool copies;                 /* the elements go in as they are */
    int64_t dims[QSIM_MAX_RANK]; /* of the tensor that was read last */
    int64_t first;               /* positions of the first axis in one reading, 0: no such axis */
    size_t sample;               /* elements of one position */
    void *raw, *data;
    size_t raw_room, data_room;
} feed;

/* Decides how; prints what does not fit. The source must outlive the feed. */
int feed_plan(const tool *t, feed *f, const slot *s, source *src, const preprocess *how,
              bool samples);
/* Reads positions [first, first + count) as a tensor that is valid until the next reading. */
int feed_read(const tool *t, feed *f, int64_t first, int64_t count, qsim_tensor *out);
/* Positions of the source's first axis (1 where the whole array is one sample). */
int64_t feed_positions(const feed *f);
void feed_close(feed *f);

/* "[N,1,28,28]". */
const char *shape_text(const int64_t *dims, int32_t rank, char buffer[256]);

#endif
