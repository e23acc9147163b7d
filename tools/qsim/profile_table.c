/* SPDX-License-Identifier: MIT */
/* Tables of steps, summed by node, by operator and by shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/columns.h"
#include "machine_limits.h"
#include "profiling.h"

enum { BY_NODE, BY_OPERATOR, BY_SHAPE, KINDS };
static const char *const kind_names[KINDS] = {"nodes", "operators", "shapes"};

/* Steps that make one row of a table. */
typedef struct row {
    const profiled_step *first;
    size_t count;
    double ns, ideal, macs, bytes;
} row;

static bool same(const profiled_step *a, const profiled_step *b, int kind) {
    if (kind == BY_NODE)
        return a == b;
    return strcmp(a->info.op_type, b->info.op_type) == 0 &&
           (kind == BY_OPERATOR || strcmp(a->shapes, b->shapes) == 0);
}

static int slowest_first(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static row *make_rows(const profiling *p, int kind, size_t *count) {
    row *rows = tool_alloc(p->step_count, sizeof(*rows));
    *count = 0;
    for (size_t i = 0; i < p->step_count; i++) {
        const profiled_step *s = &p->steps[i];
        size_t at = kind == BY_NODE ? *count : 0;
        while (at < *count && !same(rows[at].first, s, kind))
            at++;
        row *r = &rows[at];
        if (at == *count) {
            (*count)++;
            r->first = s;
        }
        r->count++;
        r->ns += s->ns;
        r->ideal += s->ideal;
        r->macs += (double)s->info.macs;
        r->bytes += (double)(s->info.bytes_read + s->info.bytes_written);
    }
    if (*count > 0)
        qsort(rows, *count, sizeof(*rows), slowest_first);
    return rows;
}

static double sum_of_steps(const profiling *p) {
    double sum = 0;
    for (size_t i = 0; i < p->step_count; i++)
        sum += p->steps[i].ns;
    return sum;
}

static double ratio(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

/* ---- text ---- */

static void number_cell(table *t, const char *format, double value) {
    if (isfinite(value))
        table_cell(t, format, value);
    else
        table_cell(t, "-");
}

/* Did kernels of several instruction sets run? Then each row names its own. */
static bool is_mixed(const profiling *p) {
    bool mixed = false;
    for (size_t i = 1; i < p->step_count; i++)
        mixed = mixed || p->steps[i].info.isa != p->steps[0].info.isa;
    return mixed;
}

static void name_cells(table *t, const row *r, int kind, bool mixed) {
    const qsim_step_info *i = &r->first->info;
    if (kind == BY_NODE)
        table_cell(t, "%s", *i->node ? i->node : "(no name)");
    table_cell(t, "%s", i->op_type);
    if (kind == BY_NODE && mixed)
        table_cell(t, "%s, %s", i->kernel, qsim_isa_name(i->isa));
    else if (kind == BY_NODE)
        table_cell(t, "%s", i->kernel);
    if (kind == BY_SHAPE)
        table_cell(t, "%s", r->first->shapes);
}

static void print_rows(const profiling *p, int kind, size_t top) {
    static const char *const headings[KINDS][3] = {
        {"node", "operator", "kernel"}, {"operator"}, {"operator", "shapes"}};
    static const char *const columns[KINDS] = {"lllrrrrrr", "lrrrrrr", "llrrrrrr"};
    static const char *const numbers[] = {"steps", "time", "share", "GMAC/s", "GB/s", "of limit"};
    size_t count;
    row *rows = make_rows(p, kind, &count);
    const double total = sum_of_steps(p);
    table t = {.columns = columns[kind]};
    char b[32];
    for (int i = 0; i < 3 && headings[kind][i]; i++)
        table_cell(&t, "%s", headings[kind][i]);
    for (int i = 0; i < 6; i++)
        table_cell(&t, "%s", numbers[i]);
    for (size_t i = 0; i < count && i < top; i++) {
        const row *r = &rows[i];
        name_cells(&t, r, kind, is_mixed(p));
        table_cell(&t, "%zu", r->count);
        table_cell(&t, "%s", tool_time(r->ns / 1e6, b));
        table_cell(&t, "%.1f %%", 100 * ratio(r->ns, total));
        number_cell(&t, "%.1f", r->macs > 0 ? ratio(r->macs, r->ns) : NAN);
        number_cell(&t, "%.1f", ratio(r->bytes, r->ns));
        number_cell(&t, "%.0f %%", 100 * ratio(r->ideal, r->ns));
    }
    printf("\n");
    table_print(&t, stdout);
    if (count > top)
        printf("... and %zu more\n", count - top);
    free(rows);
}

static void print_machine(const tool *t, const profiling *p) {
    const qsim_machine *m = &p->machine;
    printf("%s, %d thread%s", qsim_isa_name(qsim_ctx_isa(t->ctx)), (int)m->threads,
           m->threads == 1 ? "" : "s");
    limits_end_line(m);
}

void profile_print(const tool *t, const profiling *p, size_t top) {
    double percent, ns = profiling_overhead(p, &percent);
    char least[32], median[32];
    printf("%s: %s a run at best, median %s of %zu, %zu steps\n", tool_base_name(p->file),
           tool_time(p->plain.min, least), tool_time(p->plain.median, median), p->plain.count,
           p->step_count);
    print_machine(t, p);
    for (int kind = 0; kind < KINDS; kind++)
        print_rows(p, kind, top);
    if (p->deferred.count > 0)
        printf(
            "\nnodes whose sizes only a run knows (NonZero, If, Loop and what follows) have no rows: "
            "%s, %.1f %% of a run\n",
            tool_time(p->deferred.median / 1e6, median),
            100 * ratio(p->deferred.median / 1e6, p->timed.median));
    if (ns >= 0.5)
        printf("\nthe profile costs %.0f ns a step, %.2f %% of a run", ns, percent);
    else /* noise: runs with the profile were faster */
        printf("\nthe profile costs nothing measurable");
    printf(" (best of %zu with and without)\n", p->plain.count);
}

/* ---- JSON ---- */

static void json_rows(const profiling *p, json *j, int kind, size_t top) {
    size_t count;
    row *rows = make_rows(p, kind, &count);
    const double total = sum_of_steps(p);
    json_array(j, kind_names[kind]);
    for (size_t i = 0; i < count && i < top; i++) {
        const row *r = &rows[i];
        json_line(j, NULL);
        if (kind == BY_NODE)
            json_string(j, "node", r->first->info.node);
        json_string(j, "operator", r->first->info.op_type);
        if (kind == BY_NODE)
            json_string(j, "kernel", r->first->info.kernel);
        if (kind == BY_NODE)
            json_string(j, "isa", qsim_isa_name(r->first->info.isa));
        if (kind != BY_OPERATOR)
            json_string(j, "shapes", r->first->shapes);
        json_int(j, "count", (int64_t)r->count);
        json_number(j, "us", r->ns / 1e3);
        json_number(j, "share", 100 * ratio(r->ns, total));
        json_int(j, "macs", (int64_t)r->macs);
        json_int(j, "bytes", (int64_t)r->bytes);
        json_number(j, "gmacs", ratio(r->macs, r->ns));
        json_number(j, "gbs", ratio(r->bytes, r->ns));
        json_number(j, "of_limit", 100 * ratio(r->ideal, r->ns));
        json_end(j);
    }
    json_end(j);
    free(rows);
}

void profile_print_json(const tool *t, const profiling *p, size_t top, const char *trace) {
    double percent, ns = profiling_overhead(p, &percent);
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", p->file);
    json_int(&j, "threads", p->machine.threads);
    json_string(&j, "isa", qsim_isa_name(qsim_ctx_isa(t->ctx)));
    json_int(&j, "runs", (int64_t)p->plain.count);
    json_int(&j, "steps", (int64_t)p->step_count);
    json_number(&j, "min_ms", p->plain.min);
    json_number(&j, "median_ms", p->plain.median);
    json_number(&j, "steps_ms", sum_of_steps(p) / 1e6);
    json_number(&j, "deferred_ms", p->deferred.count ? p->deferred.median / 1e6 : 0);
    json_number(&j, "overhead_ns_per_step", ns);
    json_number(&j, "overhead_percent", percent);
    json_string(&j, "trace", trace);
    limits_json(&p->machine, &j);
    for (int kind = 0; kind < KINDS; kind++)
        json_rows(p, &j, kind, top);
    json_end(&j);
    tool_print_json(t, &j);
}
