/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "common/columns.h"
#include "sweeping.h"

size_t sweep_best(const sweep *s) {
    size_t best = s->count;
    for (size_t i = 0; i < s->count; i++)
        if (best == s->count || s->attempts[i].sqnr > s->attempts[best].sqnr)
            best = i;
    return best;
}

void attempt_name(const attempt *a, text *out) {
    text_printf(out, "%s %s", a->scheme, a->method);
    if (!isnan(a->percentile))
        text_printf(out, " %g", a->percentile);
}

static void number_cell(table *rows, const char *format, double value) {
    if (isnan(value))
        table_cell(rows, "-");
    else
        table_cell(rows, format, value);
}

void sweep_markdown(const sweep *s, text *out) {
    static const char *const heading[] = {"weights", "ranges", "grade", "agreement", "SQNR",
                                          "cosine",  "top-1",  "size",  "run"};
    const size_t best = sweep_best(s);
    table rows = {.columns = "lllrrrrrr"};
    char b[32];
    for (size_t i = 0; i < sizeof(heading) / sizeof(*heading); i++)
        table_cell(&rows, "%s", heading[i]);
    table_cell(&rows, "fp32");
    for (int i = 0; i < 5; i++)
        table_cell(&rows, "%s", "");
    number_cell(&rows, "%.2f %%", s->float_top1);
    table_cell(&rows, "%s", tool_bytes((double)s->float_bytes, b));
    table_cell(&rows, "%s", tool_time(s->float_ms, b));
    for (size_t i = 0; i < s->count; i++) {
        const attempt *a = &s->attempts[i];
        table_cell(&rows, "%s", a->scheme);
        table_cell(&rows, isnan(a->percentile) ? "%s" : "%s %g", a->method, a->percentile);
        table_cell(&rows, "%s%s", qsim_grade_name(a->grade), i == best ? ", **best SQNR**" : "");
        number_cell(&rows, "%.2f %%", a->agreement);
        number_cell(&rows, "%.2f dB", a->sqnr);
        number_cell(&rows, "%.6f", a->cosine);
        number_cell(&rows, "%.2f %%", a->top1);
        table_cell(&rows, "%s", tool_bytes((double)a->bytes, b));
        table_cell(&rows, "%s", tool_time(a->ms, b));
    }
    table_markdown(&rows, out);
}

static void csv_number(text *out, double value) {
    text_puts(out, ",");
    if (!isnan(value))
        text_printf(out, "%.9g", value);
}

void sweep_csv(const sweep *s, text *out) {
    text_puts(out, "weights,method,percentile,grade,agreement_percent,sqnr_db,cosine,top1_percent,"
                   "bytes,ms\n");
    for (size_t i = 0; i < s->count; i++) {
        const attempt *a = &s->attempts[i];
        text_printf(out, "%s,%s", a->scheme, a->method);
        csv_number(out, a->percentile);
        text_printf(out, ",%s", qsim_grade_name(a->grade));
        csv_number(out, a->agreement);
        csv_number(out, a->sqnr);
        csv_number(out, a->cosine);
        csv_number(out, a->top1);
        text_printf(out, ",%lld", (long long)a->bytes);
        csv_number(out, a->ms);
        text_puts(out, "\n");
    }
}

void sweep_json(const sweep *s, json *out) {
    const size_t best = sweep_best(s);
    json_object(out, NULL);
    json_int(out, "schema", 1);
    json_string(out, "file", s->file);
    json_int(out, "bytes", s->float_bytes);
    json_number(out, "top1", s->float_top1);
    json_number(out, "ms", s->float_ms);
    json_int(out, "calibrated", s->samples);
    json_int(out, "held_out", s->held_out);
    json_array(out, "attempts");
    for (size_t i = 0; i < s->count; i++) {
        const attempt *a = &s->attempts[i];
        json_object(out, NULL);
        json_string(out, "weight_scheme", a->scheme);
        json_string(out, "method", a->method);
        json_number(out, "percentile", a->percentile);
        json_string(out, "grade", qsim_grade_name(a->grade));
        json_number(out, "agreement", a->agreement);
        json_number(out, "sqnr_db", a->sqnr);
        json_number(out, "cosine", a->cosine);
        json_number(out, "top1", a->top1);
        json_int(out, "bytes", a->bytes);
        json_number(out, "ms", a->ms);
        json_bool(out, "best", i == best);
        json_end(out);
    }
    json_end(out);
    json_end(out);
}

void sweep_chart(const sweep *s, text *svg) {
    const size_t best = sweep_best(s);
    chart_value *values = tool_alloc(s->count, sizeof(*values));
    text *names = tool_alloc(s->count, sizeof(*names));
    char(*texts)[24] = tool_alloc(s->count, sizeof(*texts));
    for (size_t i = 0; i < s->count; i++) {
        attempt_name(&s->attempts[i], &names[i]);
        snprintf(texts[i], sizeof(texts[i]), "%.2f dB", s->attempts[i].sqnr);
        values[i] = (chart_value){names[i].data, s->attempts[i].sqnr, texts[i], i == best};
    }
    chart_values(svg, "SQNR of the worst output in dB", values, s->count);
    for (size_t i = 0; i < s->count; i++)
        text_free(&names[i]);
    free(names);
    free(values);
    free(texts);
}
