/* SPDX-License-Identifier: MIT */
/* Reports a classifier's answers beside those of a reference: qsim eval --against. */
#include <math.h>
#include <string.h>

#include <qsim/compare.h>

#include "evaluating.h"
#include "modelinfo.h"

const char *eval_name(const evaluation *e, const char *file) {
    const bool same =
        e->against && strcmp(tool_base_name(e->file), tool_base_name(e->against)) == 0;
    return same ? file : tool_base_name(file);
}

void eval_put_scores(const scores *s, text *out) {
    const double top1 = scores_percent(s, s->top1), top5 = scores_percent(s, s->top5);
    text_printf(out, "top-1 %.2f %% ± %.2f, top-5 %.2f %% ± %.2f", top1,
                proportion_error(top1, s->samples), top5, proportion_error(top5, s->samples));
}

static double agreement(const pairing *p) {
    return p->samples ? 100.0 * (double)p->same / (double)p->samples : NAN;
}

void eval_print_against(const evaluation *e) {
    const pairing *p = &e->pair;
    const double drop = pairing_drop(p);
    text line = {0};
    if (!e->against)
        return;
    eval_put_scores(&e->reference, &line);
    table_line("against", "%s: %s", eval_name(e, e->against), line.data);
    table_line(drop < 0 ? "gained" : "lost", "%.2f points of top-1 ± %.2f, McNemar p = %.3g",
               fabs(drop), pairing_error(p), qsim_mcnemar(p->lost, p->won));
    table_line("right", "%llu sample%s by %s alone, %llu by %s alone", (unsigned long long)p->lost,
               tool_plural((int64_t)p->lost), eval_name(e, e->against), (unsigned long long)p->won,
               eval_name(e, e->file));
    table_line("agreement", "%.2f %%", agreement(p));
    text_free(&line);
}

void eval_json_against(json *j, const evaluation *e) {
    const pairing *p = &e->pair;
    const scores *s = &e->reference;
    const double top1 = scores_percent(s, s->top1), top5 = scores_percent(s, s->top5);
    if (!e->against)
        return;
    json_object(j, "against");
    json_string(j, "file", e->against);
    json_number(j, "top1", top1);
    json_number(j, "top1_standard_error", proportion_error(top1, s->samples));
    json_number(j, "top5", top5);
    json_number(j, "top5_standard_error", proportion_error(top5, s->samples));
    json_number(j, "drop", pairing_drop(p));
    json_number(j, "standard_error", pairing_error(p));
    json_int(j, "only_against_right", (int64_t)p->lost);
    json_int(j, "only_file_right", (int64_t)p->won);
    json_number(j, "mcnemar_p", qsim_mcnemar(p->lost, p->won));
    json_number(j, "agreement", agreement(p));
    json_row(j, "per_class");
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        json_number(j, NULL, scores_class(s, c, &samples, &right));
    }
    json_end(j);
    if (!isnan(e->max_drop)) {
        json_number(j, "max_drop", e->max_drop);
        json_bool(j, "met", !(pairing_drop(p) > e->max_drop));
    }
    json_end(j);
}

void eval_draw_against(page *p, const evaluation *e) {
    text title = {0}, svg = {0};
    if (!p->path || !e->against)
        return;
    if (e->scores.classes <= 100) {
        text_printf(&title, "What changes from %s to %s", eval_name(e, e->against),
                    eval_name(e, e->file));
        const chart c = {(int)e->scores.classes, e->names.items, title.data, NULL};
        chart_difference(&svg, &c, e->reference.confusion, e->scores.confusion);
        page_chart(p, &svg);
    }
    title.size = 0;
    text_printf(&title, "Most certain of the wrong answers that %s gets right",
                eval_name(e, e->against));
    page_thumbs(p, title.data, &e->lost);
    text_free(&title);
    text_free(&svg);
}

bool eval_drops_too_much(const evaluation *e) {
    const double drop = pairing_drop(&e->pair);
    if (!(drop > e->max_drop))
        return false;
    fprintf(stderr, "qsim: %s: top-1 is %.4f points lower than that of %s, the bound is %g\n",
            e->file, drop, e->against, e->max_drop);
    return true;
}
