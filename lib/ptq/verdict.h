/* SPDX-License-Identifier: MIT */
/* The verdict object: the two models, and statistics of the data. */
#ifndef QS_VERDICT_H
#define QS_VERDICT_H

#include "graph/graph.h"
#include "ptq/calibration.h"
#include "ptq/side.h"

#include <qsim/verdict.h>

#define QS_MOST_WARNINGS 16
#define QS_FEW_JUDGED    8

typedef struct qs_warning {
    const char *kind;
    int32_t at_best; /* QSIM_GRADE_* that the model can still have */
    char text[320];
} qs_warning;

/* Two tensors that are compared. */
typedef struct qs_pair {
    const char *name, *a, *b;
    qs_id node; /* of the prepared graph; QS_NONE: an output */
    qs_id value;
    double before; /* noise over signal of the layer's input */
    bool unknown;  /* a type without metrics, or sizes that differ */
    bool classes;
    qsim_metrics metrics;
} qs_pair;

/* Statistics of the data. */
typedef struct qs_seen_data {
    int64_t samples;
    int64_t constant;       /* samples whose elements are all one number */
    int64_t same;           /* samples equal to the first */
    uint64_t first;         /* hash of the first sample */
    bool whole;             /* all elements of the first input are integers from 0 to 255 */
    bool pictures;          /* the first input has four axes */
    double least, greatest; /* of the first input, as the two below */
    uint64_t elements;
    double sum;
    uint64_t rows, certain; /* rows of class scores; those with a margin that no training gives */
    uint64_t sure;          /* rows with a margin that few have */
    uint64_t one_class;     /* rows of the same class as the first */
    size_t first_class;
    double *share, entropy, top; /* of rows of probabilities: sums, by class and of each row */
    uint64_t shared;             /* rows of probabilities */
    size_t classes;
} qs_seen_data;

#define QS_WITNESSES 12
#define QS_PIXELS    16 /* larger values come from no input that was scaled for a network */

/* How the first input was fed. */
enum { QS_AS_GIVEN, QS_DIVIDED /* by 255 */, QS_TRIALS };

/* Sums over positions, by channel. */
typedef struct qs_channel_sums {
    double *sum, *square;
    uint64_t positions;
} qs_channel_sums;

typedef struct qs_witness {
    const char *name;
    double *mean, *variance; /* stored, by channel; mean: the bias of a convolution */
    double *sorted;          /* for medians */
    size_t channels;
    qs_channel_sums seen[QS_TRIALS];
} qs_witness;

/*
 * Layers near the input whose parameters show the values that the model was trained on: the first
 * BatchNormalization with its means and variances, or else the first convolutions with biases.
 */
typedef struct qs_witnesses {
    qs_side side; /* has the watched tensors as outputs; no session: there is no such layer */
    qs_witness layers[QS_WITNESSES];
    size_t count;
    int64_t samples;
    bool is_bias;
} qs_witnesses;

/*
 * Medians over channels, then over layers. The biases of a convolution into which
 * BatchNormalization was folded are the negated means of its sums: slope 1.
 */
typedef struct qs_biases {
    size_t layers; /* number of layers in correlation and slope */
    double correlation, slope;
    double first, rest; /* deviation over bias: of the first layer, of the others; NaN: unknown */
} qs_biases;

struct qsim_verdict {
    qsim_ctx *ctx;
    qs_arena arena; /* names, pairs */
    qsim_verdict_options options;
    qsim_model *model, *quantized; /* held; both NULL once layers were looked at */
    qsim_model *prepared;
    qs_side side[2];
    qs_pair *outputs, *layers; /* layers: the worst first, once fed */
    size_t output_count, layer_count;
    const char *input;       /* the first one's name */
    const char *pixel_range; /* metadata Image.NominalPixelRange, or NULL */
    qs_seen_data data;
    qsim_verdict_labels_info labels;
    qs_witnesses witness;
    qs_warning warnings[QS_MOST_WARNINGS];
    int32_t fits;                 /* as qsim_verdict_input has it */
    int32_t warning_count, early; /* early: those known before the first run */
};

/* Adds the pair's outputs `i` of both sides. */
int qs_pair_add(qs_pair *p, const qsim_tensor *a, const qsim_tensor *b, qsim_error *error);
/* Noise power over signal power; 0: both tensors are equal. */
double qs_pair_noise(const qs_pair *p);

/* Runs both models with all tensors that they share as outputs, and sorts the layers
 * (verdict_layers.c). */
int qs_verdict_layers(qsim_verdict *v, const qsim_tensor *inputs, size_t count, qsim_error *error);

/* verdict_witness.c */
int qs_witness_open(qsim_verdict *v, qsim_error *error);
int qs_witness_feed(qsim_verdict *v, const qsim_tensor *inputs, size_t count, qsim_error *error);
/*
 * Medians over channels of the difference of means in standard deviations, and of the ratio of
 * variances. False: there is no BatchNormalization.
 */
bool qs_witness_norm(const qsim_verdict *v, double *off, double *ratio);
qs_biases qs_witness_biases(const qsim_verdict *v, int trial);

/* Adds a warning if something says that the model was not trained on such values
 * (verdict_input.c). */
void qs_input_warn(qsim_verdict *v);

/* Adds a warning if the float model is seldom right (verdict_labels.c). */
void qs_labels_warn(qsim_verdict *v);

/* verdict_data.c */
void qs_verdict_say(qsim_verdict *v, const char *kind, int32_t at_best, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void qs_data_feed(qs_seen_data *d, const qsim_tensor *x);
int qs_data_scores(qsim_verdict *v, const qsim_tensor *scores, size_t rows, size_t classes);
/* Add the warnings of the calibration, and those of the data that was fed. */
void qs_verdict_warn_early(qsim_verdict *v);
void qs_verdict_warn(qsim_verdict *v);

#endif
