/* SPDX-License-Identifier: MIT */
/* Judges candidates of a search by comparison with the float model on the same inputs. */
#ifndef QS_JUDGE_H
#define QS_JUDGE_H

#include "base/base.h"

#include <qsim/ptq.h>
#include <qsim/session.h>

/* Lists of samples' losses: of the candidate judged last, of the best so far, and of the best when
 * a method began. */
enum { QS_LOSSES_LAST, QS_LOSSES_BEST, QS_LOSSES_BEGUN, QS_LOSSES };

typedef struct qs_judge {
    qsim_ctx *ctx;
    const char *name; /* of the model, for messages */
    const qsim_search_options *options;
    size_t per_batch, batches; /* number of tensors of a batch, and of batches */
    size_t outputs, first;     /* of the model; the first that is float */
    qsim_tensor *answers;      /* of the float model, batch by batch; own memory */
    int32_t *kinds;            /* QSIM_ANSWER_* of each output */
    qsim_judgement reference;
    double *losses; /* QS_LOSSES lists: the share of each sample in the loss */
    double *totals; /* by output: the rows or the signal, by which KL or noise is divided */
    size_t samples;
    const char *doing; /* text for progress during a run */
    size_t done, total;
} qs_judge;

/* Runs the float model and keeps its outputs. The caller closes the judge, also after a failure. */
int qs_judge_open(qs_judge *j, const qsim_model *reference, const qsim_search_options *options,
                  qsim_error *error);
void qs_judge_close(qs_judge *j);
int qs_judge_model(qs_judge *j, const qsim_model *candidate, qsim_judgement *out,
                   qsim_error *error);
void qs_judge_copy(qs_judge *j, int from, int to);
/*
 * A loss that falls by this share is lower for certain, even with few samples: equal candidates
 * differ by chance by a factor of up to 1.7.
 */
#define QS_PLAIN_FALL 0.75
/*
 * Whether the losses of list `list` are lower than those of `than`: by QS_PLAIN_FALL, or by
 * `errors` standard errors of the mean difference, which a single sample does not have. With two
 * standard errors an equal candidate passes in 2 of 100 cases.
 */
bool qs_judge_is_sure(const qs_judge *j, int list, int than, double errors);
/* The loss of accuracy in percent, as for max_drop. */
double qs_judge_drop(const qs_judge *j, const qsim_judgement *of);

/* ---- time (timing.c) ---- */

/*
 * Median microseconds of an execution on one sample, or on a batch if the model takes no other
 * size.
 */
int qs_time_model(const qs_judge *j, const qsim_model *m, double *microseconds, qsim_error *error);

/* The least time of a node's steps, in microseconds for one sample; NaN: it has none of its own. */
typedef struct qs_node_time {
    const char *name, *other; /* of the node, and of one that it absorbs, or NULL */
    double us;
} qs_node_time;

int qs_time_nodes(const qs_judge *j, const qsim_model *m, qs_node_time *times, size_t count,
                  qsim_error *error);

#endif
