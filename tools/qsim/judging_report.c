/* SPDX-License-Identifier: MIT */
/* Reports a verdict. */
#include <math.h>
#include <string.h>

#include "common/columns.h"
#include "judging.h"
#include "modelinfo.h"

#define WORST_LAYERS  3
#define ENOUGH_LABELS 32

/* Writes "7 held-out samples", or "1 sample, calibrated on: too few to hold some out". */
static void samples_text(const judging *j, text *out) {
    const int64_t n = qsim_verdict_samples(j->verdict);
    const char *kind = j->made_up ? "made-up " : j->samples == SAMPLES_HELD_OUT ? "held-out " : "";
    text_printf(out, "%lld %ssample%s", (long long)n, kind, tool_plural(n));
    if (j->samples == SAMPLES_SEEN)
        text_puts(out, ", calibrated on: none is held out");
}

static void print_output(const judging *j, int32_t i) {
    qsim_verdict_info o = {.struct_size = sizeof(o)};
    if (qsim_verdict_output(j->verdict, i, &o))
        return;
    if (o.measure == QSIM_MEASURE_NONE)
        table_line("", "output '%s' cannot be compared", o.name);
    else if (o.measure == QSIM_MEASURE_AGREEMENT)
        table_line("",
                   "output '%s': %s, agreement %.2f %% of %llu row%s, SQNR %.2f dB, cosine %.6f%s",
                   o.name, qsim_grade_name(o.grade), o.agreement, (unsigned long long)o.rows,
                   tool_plural((int64_t)o.rows), table_number(o.sqnr), table_number(o.cosine),
                   o.grade == QSIM_GRADE_GOOD ? ""
                   : o.sqnr >= 20      ? "; if it is numbers, not scores of classes: --no-classes"
                   : o.agreement >= 97 ? "; of so few rows SQNR decides"
                                       : "");
    else
        table_line("", "output '%s': %s, SQNR %.2f dB, cosine %.6f", o.name,
                   qsim_grade_name(o.grade), table_number(o.sqnr), table_number(o.cosine));
}

/* The verdict on the input's range as text. */
static const char *range_text(const judging *j, const qsim_verdict_input_info *in) {
    qsim_verdict_labels_info l = {.struct_size = sizeof(l)};
    qsim_verdict_info y = {.struct_size = sizeof(y)};
    if (j->made_up)
        return "made up";
    if (in->fits)
        return in->fits > 0 ? "as in training, as far as the model tells"
                            : "a warning says what is odd of it";
    if (!qsim_verdict_labels(j->verdict, &l))
        return l.rows < ENOUGH_LABELS ? "not judged: the model does not tell its range, and labels "
                                        "this few do not"
                                      : "the labels do not speak against it";
    if (!qsim_verdict_output(j->verdict, 0, &y) && y.measure == QSIM_MEASURE_AGREEMENT)
        return "not judged: the model does not tell its range. Look it up where the model is from, "
               "or give labels: --data DATA,LABELS";
    return "not judged: the model does not tell its range. Look it up where the model is from";
}

static void print_input(const judging *j) {
    qsim_verdict_input_info in = {.struct_size = sizeof(in)};
    if (!qsim_verdict_input(j->verdict, &in))
        table_line("", "input '%s': %.4g to %.4g, mean %.4g; %s", in.name, in.least, in.greatest,
                   in.mean, range_text(j, &in));
}

static double percent(uint64_t part, uint64_t all) {
    return 100.0 * (double)part / (double)all;
}

static void print_labels(const judging *j) {
    qsim_verdict_labels_info l = {.struct_size = sizeof(l)};
    if (!qsim_verdict_labels(j->verdict, &l))
        table_line(
            "",
            "accuracy %.2f %% of %llu label%s; the float model %.2f %%, its mean confidence %.0f %%",
            percent(l.right_quantized, l.rows), (unsigned long long)l.rows,
            tool_plural((int64_t)l.rows), percent(l.right, l.rows), 100 * l.confidence);
}

/* Is it another output of a layer that stands before it? */
static bool is_named(const qsim_verdict *v, int32_t count, const char *name) {
    qsim_verdict_info l = {.struct_size = sizeof(l)};
    for (int32_t i = 0; i < count; i++)
        if (!qsim_verdict_layer(v, i, &l) && strcmp(l.name, name) == 0)
            return true;
    return false;
}

/* Lists layers that add noise, the worst first: "conv7 (24.1 -> 18.2 dB), fc1 (...)". */
static void worst_text(const qsim_verdict *v, text *out) {
    for (int32_t i = 0, n = 0; i < qsim_verdict_layer_count(v) && n < WORST_LAYERS; i++) {
        qsim_verdict_info l = {.struct_size = sizeof(l)};
        if (qsim_verdict_layer(v, i, &l) || !(l.sqnr < l.before))
            break;
        if (is_named(v, i, l.name))
            continue;
        text_printf(out, "%s%s (", n++ ? ", " : "", l.name);
        if (isfinite(l.before))
            text_printf(out, "%.1f -> %.1f dB)", l.before, l.sqnr);
        else
            text_printf(out, "%.1f dB)", l.sqnr);
    }
}

const char *judge_warning(const judging *j, int32_t index, const char **kind) {
    const char *warning = qsim_verdict_warning(j->verdict, index, kind);
    return warning && j->outlier && strcmp(*kind, "outlier") == 0 ? j->outlier : warning;
}

static void print_warnings(const tool *t, const judging *j) {
    const char *warning, *kind;
    fflush(stdout);
    for (int32_t i = 0; (warning = judge_warning(j, i, &kind)) != NULL; i++)
        tool_warn(t, "%s", warning);
}

void judge_print(const tool *t, const judging *j) {
    text worst = {0}, samples = {0};
    if (!j->verdict) {
        table_line("verdict", "not judged: --data SPEC gives samples to judge by");
        return;
    }
    samples_text(j, &samples);
    table_line("verdict", "%s, by %s", qsim_grade_name(qsim_verdict_grade(j->verdict)),
               samples.data);
    text_free(&samples);
    for (int32_t i = 0; i < qsim_verdict_output_count(j->verdict); i++)
        print_output(j, i);
    print_labels(j);
    print_input(j);
    worst_text(j->verdict, &worst);
    if (worst.size)
        table_line("worst", "layers that add most noise (SQNR before -> behind): %s", worst.data);
    text_free(&worst);
    print_warnings(t, j);
}

/* ---- JSON ---- */

static void json_info(json *out, const qsim_verdict_info *o, bool layer) {
    static const char *const measures[] = {NULL, "agreement", "sqnr"};
    json_object(out, NULL);
    json_string(out, "name", o->name);
    if (layer) {
        json_string(out, "tensor", o->tensor);
        json_number(out, "before_db", o->before);
    } else {
        json_string(out, "measure", measures[o->measure]);
        json_string(out, "grade", qsim_grade_name(o->grade));
        json_number(out, "agreement", o->agreement);
        json_int(out, "rows", (int64_t)o->rows);
    }
    json_number(out, "sqnr_db", o->sqnr);
    json_number(out, "cosine", o->cosine);
    json_end(out);
}

static void json_input(const qsim_verdict *v, json *out) {
    qsim_verdict_input_info in = {.struct_size = sizeof(in)};
    if (qsim_verdict_input(v, &in)) {
        json_null(out, "input");
        return;
    }
    json_object(out, "input");
    json_string(out, "name", in.name);
    json_number(out, "min", in.least);
    json_number(out, "max", in.greatest);
    json_number(out, "mean", in.mean);
    if (in.fits)
        json_bool(out, "as_in_training", in.fits > 0);
    else
        json_null(out, "as_in_training");
    json_end(out);
}

static void json_labels(const qsim_verdict *v, json *out) {
    qsim_verdict_labels_info l = {.struct_size = sizeof(l)};
    if (qsim_verdict_labels(v, &l)) {
        json_null(out, "labels");
        return;
    }
    json_object(out, "labels");
    json_int(out, "rows", (int64_t)l.rows);
    json_int(out, "right_float", (int64_t)l.right);
    json_int(out, "right_quantized", (int64_t)l.right_quantized);
    json_number(out, "confidence_float", l.confidence);
    json_end(out);
}

static void json_warnings(const judging *j, json *out) {
    const char *warning, *kind;
    json_array(out, "warnings");
    for (int32_t i = 0; (warning = judge_warning(j, i, &kind)) != NULL; i++) {
        json_object(out, NULL);
        json_string(out, "kind", kind);
        json_string(out, "text", warning);
        json_end(out);
    }
    json_end(out);
}

void judge_json(const judging *j, const char *const *next, json *out) {
    const qsim_verdict *v = j->verdict;
    if (!v) {
        json_null(out, "verdict");
        return;
    }
    json_object(out, "verdict");
    json_string(out, "grade", qsim_grade_name(qsim_verdict_grade(v)));
    json_int(out, "samples", qsim_verdict_samples(v));
    json_int(out, "held_out", j->samples == SAMPLES_HELD_OUT ? qsim_verdict_samples(v) : 0);
    json_array(out, "outputs");
    for (int32_t i = 0; i < qsim_verdict_output_count(v); i++) {
        qsim_verdict_info o = {.struct_size = sizeof(o)};
        if (!qsim_verdict_output(v, i, &o))
            json_info(out, &o, false);
    }
    json_end(out);
    json_input(v, out);
    json_labels(v, out);
    json_array(out, "worst");
    for (int32_t i = 0; i < qsim_verdict_layer_count(v) && i < WORST_LAYERS; i++) {
        qsim_verdict_info l = {.struct_size = sizeof(l)};
        if (!qsim_verdict_layer(v, i, &l) && l.sqnr < l.before)
            json_info(out, &l, true);
    }
    json_end(out);
    json_warnings(j, out);
    json_array(out, "next");
    for (size_t i = 0; next && next[i]; i++)
        json_string(out, NULL, next[i]);
    json_end(out);
    json_end(out);
}
