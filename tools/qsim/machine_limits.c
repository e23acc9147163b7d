/* SPDX-License-Identifier: MIT */
#include "machine_limits.h"

#include "common/columns.h"

static const char *const levels[QSIM_MEMORY_LEVELS] = {"L1", "L2", "L3", "memory"};

void limits_end_line(const qsim_machine *m) {
    const char *between = "; limits measured here: ";
    if (m->int8_gmacs > 0) {
        printf("%s%.0f GMAC/s of 8 bits", between, m->int8_gmacs);
        between = ", ";
    }
    if (m->tile_gmacs > 0)
        printf(" (%.0f by tiles)", m->tile_gmacs);
    if (m->float_gmacs > 0)
        printf("%s%.0f of floats", between, m->float_gmacs);
    between = "; reading in GB/s: ";
    for (int i = 0; i < QSIM_MEMORY_LEVELS; i++)
        if (m->read_gbs[i] > 0) { /* 0: no such memory, or not measured */
            printf("%s%s %.0f", between, levels[i], m->read_gbs[i]);
            between = ", ";
        }
    printf("\n");
}

static void json_numbers(const qsim_machine *m, json *j) {
    json_number(j, "int8_gmacs", m->int8_gmacs);
    json_number(j, "tile_gmacs", m->tile_gmacs);
    json_number(j, "float_gmacs", m->float_gmacs);
    json_array(j, "read");
    for (int i = 0; i < QSIM_MEMORY_LEVELS; i++) {
        json_object(j, NULL);
        json_int(j, "bytes", m->read_bytes[i]);
        json_number(j, "gbs", m->read_gbs[i]);
        json_end(j);
    }
    json_end(j);
}

void limits_json(const qsim_machine *m, json *j) {
    json_line(j, "machine");
    json_numbers(m, j);
    json_end(j);
}

/* ---- all instruction sets ---- */

/* With a context of its own, which has the command's threads and limits. */
static int measure(const tool *t, int32_t isa, qsim_machine *m) {
    qsim_ctx *ctx = NULL;
    qsim_error e;
    *m = (qsim_machine){.struct_size = sizeof(*m)};
    int code = tool_context(t, isa, qsim_ctx_threads(t->ctx), &ctx);
    if (code)
        return code;
    code = qsim_machine_measure(ctx, m, &e);
    qsim_ctx_free(ctx);
    return code ? tool_error(t, NULL, &e) : EXIT_OK;
}

static void rate_cell(table *rows, double rate) {
    if (rate > 0)
        table_cell(rows, "%.0f", rate);
    else
        table_cell(rows, "-");
}

int limits_print_all(const tool *t) {
    static const char *const heading[] = {
        "instructions", "8 bits, GMAC/s", "by tiles", "floats", "L1, GB/s", "L2", "L3", "memory"};
    table rows = {.columns = "lrrrrrrr"};
    int code = EXIT_OK;
    for (size_t i = 0; i < sizeof(heading) / sizeof(*heading); i++)
        table_cell(&rows, "%s", heading[i]);
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa) && code == EXIT_OK; isa++) {
        qsim_machine m;
        if (!tool_takes_isa(t, isa))
            continue;
        code = measure(t, isa, &m);
        table_cell(&rows, "%s", qsim_isa_name(isa));
        rate_cell(&rows, m.int8_gmacs);
        rate_cell(&rows, m.tile_gmacs);
        rate_cell(&rows, m.float_gmacs);
        for (int i = 0; i < QSIM_MEMORY_LEVELS; i++)
            rate_cell(&rows, m.read_gbs[i]);
    }
    if (code == EXIT_OK)
        table_print(&rows, stdout);
    table_free(&rows);
    return code;
}

int limits_json_all(const tool *t, json *j) {
    int code = EXIT_OK;
    json_array(j, "limits");
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa) && code == EXIT_OK; isa++) {
        qsim_machine m;
        if (!tool_takes_isa(t, isa))
            continue;
        code = measure(t, isa, &m);
        json_object(j, NULL);
        json_string(j, "isa", qsim_isa_name(isa));
        json_int(j, "threads", m.threads);
        json_numbers(&m, j);
        json_end(j);
    }
    json_end(j);
    return code;
}
