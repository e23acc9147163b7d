/* SPDX-License-Identifier: MIT */
/* The calibration object, for the files of lib/ptq. */
#ifndef QS_CALIBRATION_H
#define QS_CALIBRATION_H

#include "base/base.h"
#include "graph/names.h"
#include "ptq/record.h"

#include <qsim/ptq.h>
#include <qsim/session.h>

typedef struct qs_seen {
    const char *name;
    qs_record kept;
    qs_record batch; /* of the batch that is being fed; without observer in a loaded calibration */
    int32_t input;   /* of the session, or -1 */
    /* Tensors whose values together are those of this one, which is not read then. */
    int32_t *parts;
    size_t part_count;
} qs_seen;

struct qsim_calibration {
    qsim_ctx *ctx;
    qs_arena arena; /* names */
    char model[65];
    int64_t samples;
    qs_seen *tensors;
    size_t count, capacity;
    struct qs_names *names; /* name -> index in tensors */
    int32_t bits;           /* of observers */
    /* NULL in a calibration that was loaded. */
    qsim_model *prepared; /* counted reference: the graph that the session runs */
    qsim_session *session;
    qsim_run *run;
    qs_watch watch;
    size_t inside;     /* the first tensors, of subgraphs */
    size_t read_count; /* tensors that are read; the others have moved values of these */
    int32_t batch_axis;
    qsim_progress_fn progress;
    void *progress_user;
    struct qs_gram *grams; /* for weights of 4 bits (gram.h) */
    size_t gram_count, gram_capacity, gram_bytes;
    void *gram_scratch;
    const char *label; /* in messages: the file that it was loaded from, or what it is */
};

/* Creates an empty calibration without a session. */
int qs_calibration_new(qsim_ctx *ctx, qsim_calibration **out, qsim_error *error);
/* Adds a tensor with an empty observer; the name is copied. FORMAT: it exists already. */
int qs_calibration_add(qsim_calibration *c, const char *name, size_t length, qsim_error *error);
/* The observer of a tensor; NULL: there is none, or it has no values. */
const qsim_observer *qs_calibration_find(const qsim_calibration *c, const char *name,
                                         int32_t *index);
/* The statistics of a tensor that a hash covers. */
#define QS_HASH_RANGE    1
#define QS_HASH_MEANS    2
#define QS_HASH_EXTREMES 4
/*
 * SHA-256 of the text of the file, for each tensor restricted to `used`; NULL: of all. Errors:
 * CANCELLED, TIME, without a message.
 */
int qs_calibration_hash(const qsim_ctx *ctx, const qsim_calibration *c, const uint8_t *used,
                        char hex[65]);
/* Means of a tensor's channels; NULL: there are none. */
const qs_means *qs_calibration_means(const qsim_calibration *c, const char *name, int32_t *index);

/*
 * The graph that calibration observes and quantization rewrites: `model` at opset 13 or later with
 * BatchNormalization, biases and factors folded. Names and shapes are the same for both.
 */
int qs_ptq_prepare(const qsim_model *model, qsim_model **out, qsim_error *error);
/*
 * The same graph, from the calibration if it was made of the same model object; `c` may be NULL.
 * *out is a reference of the caller's.
 */
int qs_ptq_prepared(const qsim_model *model, const qsim_calibration *c, qsim_model **out,
                    qsim_error *error);
/*
 * Infers the types and shapes of a subgraph. *broken: it breaks a rule, which a branch that is
 * never taken may. Errors: NOMEM.
 */
int qs_ptq_infer_inside(qs_graph *g, const char *model, bool *broken);
/*
 * Refuses a model that is quantized already (UNSUPPORTED). Weights alone after a DequantizeLinear
 * count as floats in all modes but WEIGHTS (quantize.c).
 */
int qs_ptq_refuse_quantized(const qsim_model *m, int32_t mode, qsim_error *error);

#endif
