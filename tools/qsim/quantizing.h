/* SPDX-License-Identifier: MIT */
/* qsim quantize: options, search, check and reports. */
#ifndef QSIM_QUANTIZING_H
#define QSIM_QUANTIZING_H

#include <qsim/ptq.h>

#include "judging.h"
#include "pace.h"

/* What --max-drop 0 asks of the library, for which 0 is the default. */
#define LEAST_DROP 1e-9

/* A candidate of a search. */
typedef struct search_attempt {
    char *what;
    double loss, agreement; /* agreement NaN: outputs are no class scores */
    int64_t bytes;
    bool kept; /* the best so far */
} search_attempt;

typedef struct quantizing {
    const char *file, *output;
    qsim_model *model, *result;
    qsim_model *folded; /* in a dry run: the model with constants folded */
    qsim_calibration *calibration;
    dataset *data; /* NULL with --calibration alone */
    qsim_quantize_options options;
    qsim_rule *rules;
    char **patterns;
    qsim_recipe *recipe;     /* recipe of --recipe and the searches; NULL: neither */
    qsim_recipe *decided;    /* recipe of all decisions */
    qsim_layer_info *layers; /* layers, with the schemes they get */
    size_t layer_count;
    bool searched, has_classes; /* has_classes: the losses are KL */
    bool chooses;               /* --method auto */
    bool judges;                /* dynamic: with data, they tell whether correcting biases gains */
    search_attempt *attempts;   /* in the order of trying */
    size_t attempt_count;
    double plain_loss, found_loss; /* losses on the data before and after the search */
    bool interrupted;              /* during a search, whose best result so far is written */
    int64_t held_out;              /* samples held out from calibration */
} quantizing;

/* Options for ranges and weights, of all verbs that quantize. */
#define OPTION_RANGES                                                                                  \
    {"method", "NAME",                                                                                 \
     "how activation ranges are chosen (minmax); auto: tries several; entropy may cut large "          \
     "values that a network needs",                                                                    \
     0, "minmax|percentile|mse|entropy|auto"},                                                         \
        {"percentile", "P",                                                                            \
         "percent of values within the range; implies --method percentile (99.999)", 0, NULL},         \
        {"activations", "TYPE", "type of activations (uint8)", 0, "uint8|int8|uint16|int16"},          \
        {"weights", "TYPE",                                                                            \
         "type of weights (int8); 4 bits: all but the first and last layer; float16: of mode weights", \
         0, "int8|uint8|int4|uint4|float16"},                                                          \
        {"weight-scheme", "NAME",                                                                      \
         "one weight scale per channel or per tensor, symmetric or not (channel)", 0,                  \
         "channel|tensor|tensor-asymmetric|channel-asymmetric"},                                       \
        {"block", "N", "4 bits: weights that share a scale, 16 to 256 (a channel)", 0, NULL},          \
        {"no-gptq", NULL, "4 bits: round each weight to the nearest", 0, NULL},                        \
        {"symmetric", NULL, "activation ranges symmetric around zero", 0, NULL},                       \
        {"split-curves", NULL,                                                                         \
         "also round between the nodes of curves as x * sigmoid(x), for other runtimes", 0, NULL},     \
        {"no-bias-correction", NULL,                                                                   \
         "leave biases as they are; by default they correct means that rounding shifts", 0, NULL},     \
        {"reduce-range", NULL, "7-bit weights, for other runtimes on CPUs without VNNI", 0, NULL},     \
    {                                                                                                  \
        "reduce-pairs", NULL,                                                                          \
            "larger weight scales where ONNX Runtime would saturate on CPUs without VNNI", 0, NULL     \
    }

/* Reads the options of the command line into q->options. */
int quantize_options(const tool *t, quantizing *q);
/* Does an option go with --mode static alone? */
bool quantize_is_static(const char *name);
void quantize_options_free(quantizing *q);
/* Frees all fields. */
void quantize_close(quantizing *q);
/* Prints why there is no result; for a rule without a match, a hint with the nearest name. */
int quantize_error(const tool *t, const quantizing *q, qsim_error *e);

/* Does any option ask for a search? */
bool quantize_searches(const tool *t, const quantizing *q);
/* Runs the searches and puts their results into q->options. */
int quantize_search(const tool *t, quantizing *q);
/* --attempts FILE: the candidates as CSV. */
int quantize_save_attempts(const tool *t, const quantizing *q);
void quantize_json_attempts(json *j, const quantizing *q);
void quantize_attempts_free(quantizing *q);
/* Checks options of the annealing without --search anneal: false after a usage error. */
bool quantize_search_fits(const tool *t);

/* Reads --recipe; writes --save-recipe; prints the recipe as JSON (recipes.c). */
int recipe_open(const tool *t, quantizing *q);
int recipe_save(const tool *t, const quantizing *q);
/* How the ranges that were decided were found; "mixed" where not all in the same way. */
const char *recipe_method(const quantizing *q);
void recipe_print_ranges(const quantizing *q);
bool recipe_has_ranges(const quantizing *q);
void recipe_json(json *j, const quantizing *q);

/* Lists q->layers (quantize_layers.c). */
int quantize_layers_read(const tool *t, quantizing *q);
void quantize_layers_free(quantizing *q);

/* Command lines to try next. */
#define NEXT_MOST 3
typedef struct next_steps {
    char *lines[NEXT_MOST + 1]; /* ended by NULL */
    size_t count;
} next_steps;

/* Finds none for a good result, and other input ranges where those are at fault (next_steps.c). */
void next_steps_find(const tool *t, const quantizing *q, const judging *j, next_steps *n);
void next_steps_free(next_steps *n);

/* Results of checking the quantized model (quantize_check.c). */
typedef struct quantize_check {
    judging judging;
    judge_limits limits; /* against the float model */
    pace pace;
    next_steps next;
} quantize_check;

int quantize_measure(const tool *t, quantizing *q, quantize_check *c);
void quantize_check_free(quantize_check *c);
/* Warns if no layer has become integers though no rule asked for floats. */
void quantize_warn_unchanged(const tool *t, const quantizing *q);
void quantize_print(const tool *t, quantizing *q, const quantize_check *c);
void quantize_print_json(const tool *t, quantizing *q, const quantize_check *c);
/* Prints the layers and the schemes they get. */
int quantize_print_layers(const tool *t, quantizing *q);
/* Warns of each --set that names nodes or an operator and changes none of them. */
void quantize_warn_of_rules(const tool *t, const quantizing *q);

#endif
