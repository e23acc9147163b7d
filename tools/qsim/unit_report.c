/* SPDX-License-Identifier: MIT */
#include "unit_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/columns.h"
#include "common/svg.h"

#define BAR  10.0
#define ROW  28.0
#define ROOM 480.0

static char *copy_or_null(const char *s) {
    return s ? tool_copy(s) : NULL;
}

int32_t units_add(void *user, const qsim_unit *unit) {
    units *u = user;
    u->items = tool_grow(u->items, u->count + 1, sizeof(*u->items));
    qsim_unit *own = &u->items[u->count++];
    *own = *unit;
    own->name = tool_copy(unit->name);
    own->op_type = tool_copy(unit->op_type);
    own->takes = copy_or_null(unit->takes);
    return 0;
}

void units_free(units *u) {
    for (size_t i = 0; i < u->count; i++) {
        free((void *)(uintptr_t)u->items[i].name);
        free((void *)(uintptr_t)u->items[i].op_type);
        free((void *)(uintptr_t)u->items[i].takes);
    }
    free(u->items);
}

static bool has_classes(const units *u) {
    return !isnan(u->plain.agreement);
}

/* The gain of the units before the knee, in percent of the gain of all units. */
static double knee_share(const units *u, size_t *count) {
    double all = 0, before = 0;
    *count = 0;
    for (size_t i = 0; i < u->count; i++) {
        const double gain = fmax(u->items[i].loss_gained, 0);
        all += gain;
        before += u->items[i].before_knee ? gain : 0;
        *count += u->items[i].before_knee != 0;
    }
    return all > 0 ? 100 * before / all : 0;
}

/* ---- table ---- */

static void number_cell(table *rows, const char *format, double x) {
    if (isnan(x))
        table_cell(rows, "-");
    else
        table_cell(rows, format, x);
}

static void print_row(table *rows, const qsim_unit *u) {
    char b[32];
    table_cell(rows, "%s", u->before_knee ? "*" : "");
    table_cell(rows, "%s", u->name);
    table_cell(rows, "%s", u->op_type);
    number_cell(rows, "%.6f", u->loss_alone);
    number_cell(rows, "%+.6f", u->loss_gained);
    number_cell(rows, "%.2f %%", u->agreement);
    number_cell(rows, "%.1f dB", u->sqnr);
    table_cell(rows, "%s",
               u->float_bytes ? tool_bytes((double)(u->float_bytes - u->bytes), b) : "-");
    number_cell(rows, "%.2f", u->float_us);
    number_cell(rows, "%.2f", u->us);
}

void units_print(const char *file, const units *u) {
    const char *measure = has_classes(u) ? "KL" : "loss";
    table rows = {.columns = "lllrrrrrrr"};
    size_t knee;
    const double share = knee_share(u, &knee);
    printf("%s: %zu unit%s; all in 8 bits: %s %.6f", tool_base_name(file), u->count,
           tool_plural((int64_t)u->count), measure, u->plain.loss);
    if (has_classes(u))
        printf(", agreement %.2f %% of %lld rows", u->plain.agreement, (long long)u->plain.rows);
    printf("\n\n");
    const char *const heading[] = {"agreement", "local SQNR", "saves", "float \xc2\xb5s",
                                   "int8 \xc2\xb5s"};
    table_cell(&rows, "%s", "");
    table_cell(&rows, "unit");
    table_cell(&rows, "operator");
    table_cell(&rows, "%s alone", measure);
    table_cell(&rows, "gain in float");
    for (size_t i = 0; i < sizeof(heading) / sizeof(*heading); i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < u->count; i++)
        print_row(&rows, &u->items[i]);
    table_print(&rows, stdout);
    printf("\n* before the knee: %zu of %zu units, %.0f %% of what all would gain one by one\n",
           knee, u->count, share);
}

/* ---- files ---- */

void units_json(const tool *t, const char *file, const units *u) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", file);
    json_string(&j, "measure", has_classes(u) ? "kl" : "relative_error");
    json_number(&j, "loss", u->plain.loss);
    json_number(&j, "agreement", u->plain.agreement);
    json_int(&j, "rows", u->plain.rows);
    json_array(&j, "units");
    for (size_t i = 0; i < u->count; i++) {
        const qsim_unit *x = &u->items[i];
        json_object(&j, NULL);
        json_string(&j, "name", x->name);
        json_string(&j, "operator", x->op_type);
        json_string(&j, "takes", x->takes);
        json_number(&j, "loss_alone", x->loss_alone);
        json_number(&j, "loss_gained", x->loss_gained);
        json_number(&j, "agreement", x->agreement);
        json_number(&j, "sqnr_db", x->sqnr);
        json_int(&j, "float_bytes", x->float_bytes);
        json_int(&j, "bytes", x->bytes);
        json_number(&j, "float_us", x->float_us);
        json_number(&j, "us", x->us);
        json_bool(&j, "before_knee", x->before_knee);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}

static void csv_number(text *out, double x) {
    text_puts(out, ",");
    if (isfinite(x))
        text_printf(out, "%.9g", x);
}

int units_csv(const tool *t, const char *path, const units *u) {
    text out = {0};
    text_puts(&out, "unit,operator,takes,loss_alone,loss_gained,agreement_percent,sqnr_db,"
                    "float_bytes,bytes,float_us,us,before_knee\n");
    for (size_t i = 0; i < u->count; i++) {
        const qsim_unit *x = &u->items[i];
        text_csv(&out, x->name);
        text_puts(&out, ",");
        text_csv(&out, x->op_type);
        text_puts(&out, ",");
        text_csv(&out, x->takes ? x->takes : "");
        csv_number(&out, x->loss_alone);
        csv_number(&out, x->loss_gained);
        csv_number(&out, x->agreement);
        csv_number(&out, x->sqnr);
        text_printf(&out, ",%lld,%lld", (long long)x->float_bytes, (long long)x->bytes);
        csv_number(&out, x->float_us);
        csv_number(&out, x->us);
        text_printf(&out, ",%d\n", (int)x->before_knee);
    }
    int code = tool_write(t, path, out.data, out.size);
    text_free(&out);
    return code;
}

/* One bar with its number behind it, to the left of `zero` where it is negative. */
static void draw_bar(text *svg, double zero, double y, double value, double scale,
                     svg_color color) {
    const double w = fabs(value) * scale;
    char number[32];
    if (isnan(value))
        return;
    snprintf(number, sizeof(number), "%.3g", value);
    svg_rect(svg, value < 0 ? zero - w : zero, y, fmax(w, 0.5), BAR, color, NULL);
    svg_text(svg, zero + fmax(value * scale, 0) + 5, y + BAR - 1,
             (svg_style){9, SVG_START, 0, svg_black}, number);
}

/* Draws two bars per unit, on one scale: gain of staying float, and loss alone in 8 bits. */
void units_draw(text *svg, const char *file, const units *u) {
    double longest = 0, low = 0, high = 1e-12;
    char title[256], legend[128];
    for (size_t i = 0; i < u->count; i++) {
        const qsim_unit *x = &u->items[i];
        longest = fmax(longest, svg_width(x->name, 12));
        low = fmin(low, x->loss_gained);
        high = fmax(high, fmax(x->loss_gained, x->loss_alone));
    }
    const double left = longest + 30, top = 70, height = ROW * (double)u->count;
    const double scale = ROOM / (high - low), zero = left - low * scale;
    snprintf(title, sizeof(title), "Sensitivity: %.200s", tool_base_name(file));
    snprintf(legend, sizeof(legend),
             "%s. Blue: gained when in float (orange: after the knee); gray: alone in 8 bits",
             has_classes(u) ? "KL to float" : "noise / signal");
    svg_begin(svg, fmax(left + ROOM + 110, svg_width(legend, 12) + 40), top + height + 20, title);
    svg_text(svg, 20, 30, (svg_style){18, SVG_START, 0, svg_black}, title);
    svg_text(svg, 20, 52, (svg_style){12, SVG_START, 0, svg_gray}, legend);
    svg_line(svg, zero, top - 4, zero, top + height, svg_pale);
    for (size_t i = 0; i < u->count; i++) {
        const qsim_unit *x = &u->items[i];
        const double y = top + ROW * (double)i;
        svg_text(svg, left - 8, y + 14, (svg_style){12, SVG_END, 0, svg_black}, x->name);
        draw_bar(svg, zero, y + 2, x->loss_gained, scale, x->before_knee ? svg_blue : svg_orange);
        draw_bar(svg, zero, y + 2 + BAR, x->loss_alone, scale, svg_gray);
    }
    svg_end(svg);
}

int units_svg(const tool *t, const char *path, const char *file, const units *u) {
    text svg = {0};
    units_draw(&svg, file, u);
    int code = tool_write(t, path, svg.data, svg.size);
    text_free(&svg);
    return code;
}
