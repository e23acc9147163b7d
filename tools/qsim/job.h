/* SPDX-License-Identifier: MIT */
/*
 * An Olive run configuration, in the older form (parts have a "config", the engine's keys are in
 * "engine") or in the newer, flat one; and the plan that qsim makes of it.
 */
#ifndef QSIM_JOB_H
#define QSIM_JOB_H

#include "common/config.h"
#include "pages.h"
#include "quantizing.h"

/* The source of data: an entry of data_configs, or a SPEC. Texts belong to the configuration. */
typedef struct job_data {
    const char *spec; /* NULL: made up data */
    const char *preprocess;
    const config *shapes;       /* values of --shape, a string or an array of them; NULL: none */
    int64_t batch, limit, skip; /* 0: not given */
} job_data;

enum {
    METRIC_LATENCY,
    METRIC_THROUGHPUT, /* samples per second */
    METRIC_ACCURACY,
    METRIC_SIZE,
    METRIC_DIFFERENCE,
    METRIC_KINDS
};
enum { GOAL_NONE, GOAL_THRESHOLD, GOAL_GAIN, GOAL_GAIN_PERCENT, GOAL_LOSS, GOAL_LOSS_PERCENT };

/* One sub-type of one metric. */
typedef struct job_metric {
    const char *name; /* name of the metric */
    const char *sub;  /* "avg", "p99", "accuracy_score", "sqnr", … */
    int kind, goal;
    double goal_value;
    bool higher; /* higher values are better */
    int64_t priority;
    job_data data;
    int64_t warmup, repeat;
} job_metric;

/* An option of qsim quantize and the values to try; a value NULL: without the option. */
typedef struct job_choice {
    const char *option;
    char **values;
    size_t count;
} job_choice;

enum { ACTION_QUANTIZE, ACTION_TUNE, ACTION_NOTHING, ACTION_SENSITIVITY };

typedef struct job_pass {
    const char *name, *type;
    int action;
    const char *because; /* why the pass has no effect here, for ACTION_NOTHING */
    job_choice *choices;
    size_t choice_count;
    const config *op_types; /* array of strings; NULL: all types, with 4 bits MatMul */
    int bits;               /* bits of the weights: 4, else 0 */
    bool automatic;         /* uses the ladder of qsim auto */
    job_data data;
    const config *threads, *levels; /* arrays of values that tuning tries; NULL: all */
} job_pass;

typedef struct job_flow {
    job_pass *passes; /* copies; their fields belong to the job's passes */
    size_t count;
    char *name; /* name of its folder; NULL: the only flow */
} job_flow;

enum { SEARCH_EXHAUSTIVE, SEARCH_RANDOM };

typedef struct job {
    config root;
    const char *file;  /* file name of the configuration */
    const char *model; /* file name of the input model */
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
    int64_t samples; /* most candidates; 0: all */
    double seconds;  /* most time for the search; 0: no limit */
    const char *output_dir, *output_name, *package;
    text *made; /* folders of outputs that were not there, each ended by NUL */
    text notes; /* lines "path: not used, because …" */
} job;

/* The first error; code 0: none. */
typedef struct job_trouble {
    int code;
    text message, hint;
} job_trouble;

/* Reads the whole configuration; false: see `trouble`. The job must not be moved. */
bool job_read(job *j, const void *data, size_t size, job_trouble *trouble);
void job_free(job *j);

/* The effective plan, as JSON. */
void job_print(const tool *t, const job *j);

/* ---- reading (job_keys.c) ---- */

typedef struct job_reader {
    job *job;
    job_trouble *trouble;
} job_reader;

/* Reports "path: what" as the error; returns false. */
bool job_wrong(job_reader *r, const config *at, const char *format, ...) TOOL_PRINTF(3, 4);
/* The same for settings that are understood but not supported. */
bool job_unsupported(job_reader *r, const config *at, const char *format, ...) TOOL_PRINTF(3, 4);
/* Notes that a key is not used. */
void job_note(job_reader *r, const config *at, const char *because);
/* Checks that every key of an object is one of the names. */
bool job_keys(job_reader *r, const config *object, const char *const *names);
/* Checks that an object and its "config", if there is one, have known keys only. */
bool job_part(job_reader *r, const config *object, const char *const *names);
/* The value of a key in the "config" of a part, or in the part itself. */
const config *job_key(const config *part, const char *key);
/* Read a value of a kind; without the key they return true and leave *out as it is. */
bool job_string(job_reader *r, const config *part, const char *key, const char **out);
bool job_int(job_reader *r, const config *part, const char *key, int64_t low, int64_t *out);
bool job_number(job_reader *r, const config *part, const char *key, double *out);
bool job_bool(job_reader *r, const config *part, const char *key, bool *out);
bool job_is_array(job_reader *r, const config *c, config_kind of);

bool job_read_passes(job_reader *r);
/* `mode`: the default; NULL: the pass's verb has none. */
bool job_read_parameters(job_reader *r, const config *c, const char *mode, job_pass *pass);
/* The choice of an option, made if there is none. */
job_choice *job_choice_of(job_pass *p, const char *name);
/* Adds a value, once; NULL: without the option. */
void job_choice_add(job_choice *c, const char *value);
/*
 * Joins per_channel and WeightSymmetric, which are one option here: every value of one with every
 * value of the other.
 */
void job_choices_join(job_pass *p);
void job_choices_free(job_pass *p);
/* Parameters of a 4-bit pass, with its default block (job_kinds.c). */
bool job_read_narrow(job_reader *r, const config *c, int64_t block, job_pass *pass);

/* The verb whose options a pass has (job_options.c). */
const verb *job_verb(const job_pass *p);
/* The option of a pass that a key names, '_' for '-'; NULL: none, or it is said elsewhere. */
const option *job_option(const job_pass *p, const char *key);
/* Lists these names; returns their number. */
size_t job_option_names(const job_pass *p, const char **names, size_t capacity);
/* Reads the value of an option, or an array of values to try; of "set" an array of rules. */
bool job_read_option(job_reader *r, job_pass *pass, const option *o, const config *v);
/* Is an option valid with this mode, method and type of weights (NULL: the default)? */
bool job_applies(const char *mode, const char *method, const char *weights, const char *name);

/* Adds a rule "NAME=fp32" per name of an array, each as a choice with one value. */
bool job_rules(job_reader *r, job_pass *pass, const config *v, const char *action);
/* Adds the rules of nodes_to_exclude, if there are any, after all others. */
bool job_exclude(job_reader *r, const config *c, job_pass *pass);
bool job_read_search(job_reader *r, const config *c);
bool job_read_evaluator(job_reader *r, const config *evaluator);
bool job_read_data_configs(job_reader *r);
/* Reads a "data_config" (a name or an object), or data_dir and batch_size. */
bool job_read_data(job_reader *r, const config *part, job_data *d);

/* ---- running ---- */

/* Measurements of one model. */
typedef struct job_result {
    double *values;                                      /* in the order of job.metrics */
    double mean_ms, throughput, accuracy, max_abs, sqnr; /* for the table; NaN: not measured */
    int64_t bytes;
    bool good; /* meets all goals */
} job_result;

/* Measures `m` against `reference` (may be `m`); `base`: the latter's results, or NULL. */
int job_measure(const tool *t, const job *j, const qsim_model *reference, const qsim_model *m,
                const char *label, const job_result *base, job_result *out);
/* A is better than B by the order of the metrics. */
bool job_better(const job *j, const job_result *a, const job_result *b);

/* The k-th of the shapes; NULL: there are no more. */
const char *job_shape(const job_data *d, size_t k);
/* Makes a tool whose command line has the options of `d`, for `m`; job_tool_close ends it. */
void job_tool(const tool *t, const job_data *d, const qsim_model *m, tool *own);
void job_tool_close(tool *own);

/* A candidate that was measured. */
typedef struct job_candidate {
    text command;
    double *values; /* in the order of job.metrics */
    bool good;      /* meets all goals */
} job_candidate;

/* The best candidate of a flow. */
typedef struct job_best {
    qsim_model *model;
    job_result result;
    size_t *picks;             /* index of each choice's value, over all passes of the flow */
    job_candidate *candidates; /* `tried` of `possible` ones */
    size_t tried, possible, chosen;
    bool interrupted;              /* before all candidates were tried */
    judging judged;                /* the model judged against the input model */
    qsim_calibration *calibration; /* calibration of the last quantization; NULL: none */
    bool has_ranges;               /* static: activations are quantized by the calibration */
    double percentile;
    pace pace;
    text session;          /* result of tuning, "--threads 2, level all" */
    qsim_recipe **recipes; /* by pass; NULL: of a pass without "save_recipe" */
    size_t recipe_count;
} job_best;

void job_best_free(job_best *b);
/* Runs a flow with all candidates of the search. */
int job_run_flow(const tool *t, const job *j, const job_flow *f, const qsim_model *input,
                 const job_result *base, job_best *best);
/* Judges the best candidate of a flow; `kept`: calibrations of its passes. */
int job_judge(const tool *t, const job *j, const job_flow *f, const qsim_model *input,
              qsim_calibration *const *kept, job_best *best);
/* Data of the first metric of this kind that names some, else of any metric or pass. */
const job_data *job_data_of(const job *j, int kind);
/* What a pass makes. */
typedef struct job_made {
    qsim_model *model;
    qsim_recipe *recipe; /* of all decisions, for "save_recipe"; else NULL */
} job_made;

/* Runs one pass with these picks; *kept gets the calibration (`kept` NULL: it is not kept). */
int job_quantize(const tool *t, const job *j, const job_pass *p, const size_t *picks,
                 const qsim_model *m, qsim_calibration **kept, job_made *made);
/* The name of the file that the pass's recipe is written to; NULL: none. */
const char *job_recipe(const job_pass *p);
/* Gives a tool the options of a pass; picks NULL: the first value of each choice. */
int job_give(const tool *t, const job_pass *p, const size_t *picks, tool *own);
/* Gives `own` one option, before those that it has. */
int job_give_option(const tool *t, tool *own, const char *name, const char *value);
/* Gives rules, before all others, that keep all nodes float except those of the pass's types. */
int job_give_types(const tool *t, const job_pass *p, const qsim_model *m, tool *own);
/* Finds q->recipe by the ladder of qsim auto, with the options of `own`. */
int job_auto(const tool *t, const tool *own, const job_pass *p, quantizing *q);
/* Writes sensitivity.csv for a model. */
int job_sensitivity(const tool *t, const job *j, const job_flow *f, const job_pass *p,
                    const qsim_model *m);
int job_tune(const tool *t, const job *j, const job_pass *p, const qsim_model *m, text *found);
/* "qsim quantize --mode dynamic …"; without picks "--format qdq|qoperator", all values. */
void job_command(const job_pass *p, const size_t *picks, text *out);

/* ---- output ---- */

/* The path of a flow's file (f NULL: a file of the whole run) in the output folder. */
void job_path(const job *j, const job_flow *f, const char *name, text *out);
/* Makes the folders; refuses existing files that must not be replaced. */
int job_prepare_output(const tool *t, const job *j);
/* Removes those folders, but for one that is not empty. */
void job_drop_folders(text *made);
/* Writes model.onnx of each flow, metrics.json and the package. */
int job_write(const tool *t, const job *j, const qsim_model *input, const job_result *base,
              const job_best *best);
/* A candidate with its first metrics: "accuracy_score 0.91, avg 0.35 ms". */
void job_candidate_line(const job *j, const job_candidate *c, text *out);
/* A flow's candidates, if it has several: charts of the first two metrics, and lines. */
void job_candidates_page(const job *j, const job_best *best, page *p);
/* "attempts": [...] with every metric. */
void job_candidates_json(const job *j, const job_best *best, json *out);
void job_candidates_free(job_best *b);
/* Writes the object of metrics.json and --json. */
void job_report(const job *j, const job_result *base, const job_best *best, json *out);
void job_print_table(const job *j, const job_result *base, const job_best *best);

#endif
