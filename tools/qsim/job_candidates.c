/* SPDX-License-Identifier: MIT */
/* The candidates of run-config's search, as they are reported. */
#include <math.h>
#include <stdlib.h>

#include "job.h"

#define FIRST_METRICS 3

static void put_value(const job_metric *m, double value, text *out) {
    char b[32];
    if (m->kind == METRIC_LATENCY)
        text_puts(out, tool_time(value, b));
    else if (m->kind == METRIC_SIZE)
        text_puts(out, tool_bytes(value, b));
    else
        text_printf(out, "%.6g", value);
}

void job_candidate_line(const job *j, const job_candidate *c, text *out) {
    text_puts(out, c->command.data ? c->command.data : "as it is");
    for (size_t i = 0; i < j->metric_count && i < FIRST_METRICS; i++) {
        text_printf(out, "%s%s ", i ? ", " : ": ", j->metrics[i].sub);
        put_value(&j->metrics[i], c->values[i], out);
    }
    text_puts(out, c->good ? "" : " (misses a goal)");
}

static void draw(const job *j, const job_best *best, size_t metric, page *p) {
    chart_value *values = tool_alloc(best->tried, sizeof(*values));
    char(*labels)[24] = tool_alloc(best->tried, sizeof(*labels));
    text *texts = tool_alloc(best->tried, sizeof(*texts));
    text svg = {0}, title = {0};
    for (size_t i = 0; i < best->tried; i++) {
        const double value = best->candidates[i].values[metric];
        snprintf(labels[i], sizeof(labels[i]), "%zu", i + 1);
        put_value(&j->metrics[metric], value, &texts[i]);
        values[i] = (chart_value){labels[i], value, texts[i].data, i == best->chosen};
    }
    text_printf(&title, "%s, %s; the best in orange", j->metrics[metric].name,
                j->metrics[metric].sub);
    chart_values(&svg, title.data, values, best->tried);
    page_half_chart(p, &svg);
    for (size_t i = 0; i < best->tried; i++)
        text_free(&texts[i]);
    text_free(&svg);
    text_free(&title);
    free(values);
    free(labels);
    free(texts);
}

void job_candidates_page(const job *j, const job_best *best, page *p) {
    text lines = {0};
    if (!p->path || best->tried < 2)
        return;
    page_heading(p, "Candidates");
    for (size_t i = 0; i < j->metric_count && i < 2; i++)
        draw(j, best, i, p);
    for (size_t i = 0; i < best->tried; i++) {
        text_printf(&lines, "%-12zu", i + 1);
        job_candidate_line(j, &best->candidates[i], &lines);
        text_puts(&lines, "\n");
    }
    page_lines(p, &lines);
}

void job_candidates_json(const job *j, const job_best *best, json *out) {
    json_array(out, "attempts");
    for (size_t i = 0; i < best->tried; i++) {
        const job_candidate *c = &best->candidates[i];
        json_object(out, NULL);
        json_string(out, "command", c->command.data);
        for (size_t k = 0; k < j->metric_count; k++) {
            text name = {0};
            text_printf(&name, "%s-%s", j->metrics[k].name, j->metrics[k].sub);
            json_number(out, name.data, c->values[k]);
            text_free(&name);
        }
        json_bool(out, "goals_met", c->good);
        json_bool(out, "best", i == best->chosen);
        json_end(out);
    }
    json_end(out);
}

void job_candidates_free(job_best *b) {
    for (size_t i = 0; i < b->tried; i++) {
        text_free(&b->candidates[i].command);
        free(b->candidates[i].values);
    }
    free(b->candidates);
}
