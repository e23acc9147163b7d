/* SPDX-License-Identifier: MIT */
/*
 * A run configuration as Olive writes them, in its older form (parts have a "config", the engine's
 * keys stand in "engine") or its newer, flat one; and what qsim makes of it.
 */
#ifndef QSIM_JOB_H
#define QSIM_JOB_H

#include "common/config.h"
#include "quantizing.h"

/* Where data come from: an entry of data_configs, or a SPEC. Texts belong to the configuration. */
typedef struct job_data {
    const char *spec; /* NULL: made up */
    const char *preprocess;
    int64_t batch, limit, skip; /* 0: not said */
} job_data;

enum {
    METRIC_LATENCY,
    METRIC_THROUGHPUT, /* samples a second */
    METRIC_ACCURACY,
    METRIC_SIZE,
    METRIC_DIFFERENCE,
    METRIC_KINDS
};
enum { GOAL_NONE, GOAL_THRESHOLD, GOAL_GAIN, GOAL_GAIN_PERCENT, GOAL_LOSS, GOAL_LOSS_PERCENT };

/* One sub type of one metric. */
typedef struct job_metric {
    const char *name; /* of the metric it belongs to */
    const char *sub;  /* "avg", "p99", "accuracy_score", "sqnr", … */
    int kind, goal;
    double goal_value;
    bool higher; /* is better */
    int64_t priority;
    job_data data;
    int64_t warmup, repeat;
} job_metric;

/* An option of qsim quantize and the values that may be tried; a value NULL: without the option. */
typedef struct job_choice {
    const char *option;
    char **values;
    size_t count;
} job_choice;

enum { ACTION_QUANTIZE, ACTION_TUNE, ACTION_NOTHING, ACTION_SENSITIVITY };

typedef struct job_pass {
    const char *name, *type;
    int action;
    const char *because; /* nothing is to be done */
    job_choice *choices;
    size_t choice_count;
    const config *op_types; /* array of strings, or NULL: all, of 4 bits MatMul */
    int bits;               /* of the weights: 4, else 0 */
    bool automatic;         /* the ladder of qsim auto */
    job_data data;
    const config *threads, *levels; /* what tuning tries, arrays; NULL: what there is */
} job_pass;

typedef struct job_flow {
    job_pass *passes; /* copies; what they hold belongs to the job's passes */
    size_t count;
    char *name; /* of its folder; NULL: there is one flow only */
} job_flow;

enum { SEARCH_EXHAUSTIVE, SEARCH_RANDOM };

typedef struct job {
    config root;
    const char *file;  /* the configuration */
    const char *model; /* its input */
    job_pass *passes;
    size_t pass_count;
    job_flow *flows;
    size_t flow_count;
    job_metric *metrics; /* by priority */
    size_t metric_count;
    bool evaluate_input;
    bool search, pass_by_pass;
    int algorithm;
    uint64_t seed;
    int64_t samples; /* candidates at most; 0: all */
    double seconds;  /* of searching at most; 0: any */
    const char *output_dir, *output_name, *package;
    text notes; /* lines "path: not used, because …" */
} job;

/* The first error; code 0: none. */
typedef struct job_trouble {
    int code;
    text message, hint;
} job_trouble;

/* Reads the whole configuration; false: see `trouble`. The job may not move. */
bool job_read(job *j, const void *data, size_t size, job_trouble *trouble);
void job_free(job *j);

/* The effective plan, as JSON. */
void job_print(const tool *t, const job *j);

/* ---- reading (job_keys.c) ---- */

typedef struct job_reader {
    job *job;
    job_trouble *trouble;
} job_reader;

/* "path: what"; false. */
bool job_wrong(job_reader *r, const config *at, const char *format, ...) TOOL_PRINTF(3, 4);
/* The same for what is understood and cannot be done. */
bool job_unsupported(job_reader *r, const config *at, const char *format, ...) TOOL_PRINTF(3, 4);
/* Notes that a key is not used. */
void job_note(job_reader *r, const config *at, const char *because);
/* Every key of an object must be one of the names. */
bool job_keys(job_reader *r, const config *object, const char *const *names);
/* The object and its "config" (which may not be there) must have known keys only. */
bool job_part(job_reader *r, const config *object, const char *const *names);
/* A key of a part: in its "config" or in itself. */
const config *job_key(const config *part, const char *key);
/* Values of a kind; true where the key is not there: *out stays as it was. */
bool job_string(job_reader *r, const config *part, const char *key, const char **out);
bool job_int(job_reader *r, const config *part, const char *key, int64_t low, int64_t *out);
bool job_number(job_reader *r, const config *part, const char *key, double *out);
bool job_bool(job_reader *r, const config *part, const char *key, bool *out);
bool job_is_array(job_reader *r, const config *c, config_kind of);

bool job_read_passes(job_reader *r);
bool job_read_parameters(job_reader *r, const config *c, const char *mode, job_pass *pass);
/* That of an option, made where there is none. */
job_choice *job_choice_of(job_pass *p, const char *name);
/* Adds a value that it does not have; NULL: without the option. */
void job_choice_add(job_choice *c, const char *value);
/* per_channel and WeightSymmetric are one option: all values of the one with all of the other. */
void job_choices_join(job_pass *p);
void job_choices_free(job_pass *p);
/* The same of a pass of 4 bits with these blocks by default, and of qsim's own (job_kinds.c). */
bool job_read_narrow(job_reader *r, const config *c, int64_t block, job_pass *pass);
bool job_read_auto(job_reader *r, const config *c, job_pass *pass);
bool job_read_sensitivity(job_reader *r, const config *c, job_pass *pass);
/* One rule per name of an array, "NAME=fp32"; each is a choice of its own, of one value. */
bool job_rules(job_reader *r, job_pass *pass, const config *v, const char *action);
/* nodes_to_exclude, if it is there: rules after all others. */
bool job_exclude(job_reader *r, const config *c, job_pass *pass);
bool job_read_search(job_reader *r, const config *c);
bool job_read_evaluator(job_reader *r, const config *evaluator);
bool job_read_data_configs(job_reader *r);
/* A "data_config" (a name or an object), or data_dir and batch_size. */
bool job_read_data(job_reader *r, const config *part, job_data *d);

/* ---- running ---- */

/* Measurements of a model. */
typedef struct job_result {
    double *values;                                      /* as job.metrics */
    double mean_ms, throughput, accuracy, max_abs, sqnr; /* for the table; NaN: not known */
    int64_t bytes;
    bool good; /* all goals are met */
} job_result;

/* Measures `m` against the reference (which may be `m`); `base` (may be NULL): its results. */
int job_measure(const tool *t, const job *j, const qsim_model *reference, const qsim_model *m,
                const char *label, const job_result *base, job_result *out);
/* A is better than B by the order of the metrics. */
bool job_better(const job *j, const job_result *a, const job_result *b);

/* A tool whose command line has the data's options, for `m`; closed with job_tool_close. */
void job_tool(const tool *t, const job_data *d, const qsim_model *m, tool *own);
void job_tool_close(tool *own);

/* The best that a flow has come to. */
typedef struct job_best {
    qsim_model *model;
    job_result result;
    size_t *picks; /* the value of each choice, over all passes of the flow */
    size_t tried, possible;
    bool interrupted;              /* before all was tried */
    judging judged;                /* the model beside the input */
    qsim_calibration *calibration; /* of the last quantization; NULL: it had none */
    double percentile;
    pace pace;
    text session; /* what tuning found, "--threads 2, level all" */
} job_best;

void job_best_free(job_best *b);
/* Runs a flow with all candidates that the search wants. */
int job_run_flow(const tool *t, const job *j, const job_flow *f, const qsim_model *input,
                 const job_result *base, job_best *best);
/* The verdict on the best of a flow; `kept`: the calibrations of its passes. */
int job_judge(const tool *t, const job *j, const job_flow *f, const qsim_model *input,
              qsim_calibration *const *kept, job_best *best);
/* The data of the first metric of a kind that names some, else of any metric or pass. */
const job_data *job_data_of(const job *j, int kind);
/* One pass with these picks, kept calibrations in *kept (NULL: none are kept). */
int job_quantize(const tool *t, const job *j, const job_pass *p, const size_t *picks,
                 const qsim_model *m, qsim_calibration **kept, qsim_model **out);
/* Gives the pass's options to a tool; picks NULL: the first of each choice. */
int job_give(const tool *t, const job_pass *p, const size_t *picks, tool *own);
/* Finds q->recipe by the ladder, with the options that `own` has. */
int job_climb(const tool *t, const tool *own, const job_pass *p, quantizing *q);
/* Writes sensitivity.csv of a model. */
int job_sensitivity(const tool *t, const job *j, const job_flow *f, const job_pass *p,
                    const qsim_model *m);
int job_tune(const tool *t, const job *j, const job_pass *p, const qsim_model *m, text *found);
/* "qsim quantize --mode dynamic …"; without picks "--format qdq|qoperator" where there are more. */
void job_command(const job_pass *p, const size_t *picks, text *out);

/* ---- output ---- */

/* The path of a file of a flow (NULL: of the whole run) below the output folder. */
void job_path(const job *j, const job_flow *f, const char *name, text *out);
/* Makes the folders; refuses what exists and may not be replaced. */
int job_prepare_output(const tool *t, const job *j);
/* Writes model.onnx of each flow, metrics.json and the package. */
int job_write(const tool *t, const job *j, const qsim_model *input, const job_result *base,
              const job_best *best);
/* The object in metrics.json and under --json. */
void job_report(const job *j, const job_result *base, const job_best *best, json *out);
void job_print_table(const job *j, const job_result *base, const job_best *best);

#endif
