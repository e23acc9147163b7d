/* SPDX-License-Identifier: MIT */
#include "checkkernel.h"

#include "base/ctx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const ck_case *cases;
    const size_t *count;
} families[] = {
    {ck_cases_i8, &ck_cases_i8_count},       {ck_cases_conv_i8, &ck_cases_conv_i8_count},
    {ck_cases_f32, &ck_cases_f32_count},     {ck_cases_ew, &ck_cases_ew_count},
    {ck_cases_u8, &ck_cases_u8_count},       {ck_cases_nbits, &ck_cases_nbits_count},
    {ck_cases_pool, &ck_cases_pool_count},   {ck_cases_maps, &ck_cases_maps_count},
    {ck_cases_casts, &ck_cases_casts_count},
};

typedef struct options {
    const char *isa, *only;
    uint64_t seed;
    int rounds;
    bool bench, list, tile_load;
} options;

static void run_case(ck_state *s, const ck_case *k, const options *o) {
    if (o->only && !strstr(k->name, o->only))
        return;
    if (o->list) {
        printf("%s\n", k->name);
        return;
    }
    s->name = k->name;
    s->random = o->seed;
    long before = s->failures;
    if (o->bench) {
        if (k->bench)
            k->bench(s);
        ck_free(s);
        return;
    }
    for (int i = 0; i < o->rounds; i++) {
        k->check(s);
        ck_free(s);
    }
    printf("%-11s %-22s %s\n", s->isa, k->name, s->failures == before ? "ok" : "FAILED");
}

/*
 * Tables that are no instruction set of the library: kernels in another encoding, with other
 * constants, or in C.
 */
static const struct {
    const char *name;
    const qk_table *(*table)(void);
} others[] = {{"evex256", ck_table_evex256},
              {"smallblocks", ck_table_smallblocks},
              {"amxemulated", ck_table_amxemulated}};

static int32_t isa_number(const char *name) {
    for (int32_t isa = QSIM_ISA_C; isa < QS_ISA_COUNT; isa++)
        if (strcmp(name, qsim_isa_name(isa)) == 0)
            return isa;
    return -1;
}

static bool is_known(const char *name) {
    bool known = isa_number(name) >= 0;
    for (size_t i = 0; i < QS_COUNT(others); i++)
        known = known || strcmp(name, others[i].name) == 0;
    return known;
}

static int usage(void) {
    fprintf(stderr,
            "usage: checkkernel [--isa NAME] [--case TEXT] [--seed N] [--rounds N] "
            "[--bench | --tsv | --shapes | --serve SHAPE | --upper | --tile-load] [--list]\n");
    return 2;
}

static bool parse(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--bench") == 0)
            o->bench = true;
        else if (strcmp(a, "--tsv") == 0)
            o->bench = ck_timing.tab_separated = true;
        else if (strcmp(a, "--shapes") == 0)
            o->bench = ck_timing.names_only = true;
        else if (strcmp(a, "--upper") == 0)
            o->bench = ck_timing.upper = true;
        else if (strcmp(a, "--tile-load") == 0)
            o->tile_load = true;
        else if (strcmp(a, "--list") == 0)
            o->list = true;
        else if (!value)
            return false;
        else if (strcmp(a, "--isa") == 0)
            o->isa = argv[++i];
        else if (strcmp(a, "--case") == 0)
            o->only = argv[++i];
        else if (strcmp(a, "--serve") == 0) {
            ck_timing.serve = argv[++i];
            o->bench = true;
        } else if (strcmp(a, "--seed") == 0)
            o->seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(a, "--rounds") == 0)
            o->rounds = atoi(argv[++i]);
        else
            return false;
    }
    return o->seed != 0;
}

static void run_families(ck_state *s, const options *o) {
    for (size_t f = 0; f < QS_COUNT(families); f++)
        for (size_t i = 0; i < *families[f].count; i++)
            run_case(s, &families[f].cases[i], o);
}

static void run_table(ck_state *s, const options *o, const qk_table *t, const char *name) {
    s->t = t;
    s->isa = name;
    run_families(s, o);
}

/* All tables of an instruction set are checked; the one that suits this CPU is timed. */
static void run_tables(ck_state *s, const options *o, int32_t isa) {
    const qk_table *other = qk_table_two_ports(isa);
    if (o->bench || o->list || !other) {
        run_table(s, o, qk_table_here(isa), qsim_isa_name(isa));
        return;
    }
    run_table(s, o, qk_table_get(isa), qsim_isa_name(isa));
    run_table(s, o, other, "two ports");
}

/* Prints how long loading a tile takes now; nothing where there are no tiles. */
static int print_tile_load(void) {
    if (qsim_isa_available(QSIM_ISA_AMX) && qs_cpu_take_isa(QSIM_ISA_AMX))
        printf("%.2f\n", ck_tile_load_ns());
    return 0;
}

int main(int argc, char **argv) {
    options o = {.seed = 1, .rounds = 300};
    if (!parse(argc, argv, &o) || (o.isa && !is_known(o.isa)))
        return usage();
    if (o.tile_load)
        return print_tile_load();
    if (ck_timing.upper && !ck_upper_known()) {
        fprintf(stderr, "skipped: this CPU does not tell which registers are in use\n");
        return 77;
    }
    ck_state s = {.c = qk_table_get(QSIM_ISA_C)};
    int ran = 0;
    for (int32_t isa = QSIM_ISA_C; isa < QS_ISA_COUNT; isa++) {
        if ((o.isa && isa_number(o.isa) != isa) || !qsim_isa_available(isa) ||
            !qs_cpu_take_isa(isa) || (o.list && ran))
            continue;
        run_tables(&s, &o, isa);
        ran++;
    }
    for (size_t i = 0; i < QS_COUNT(others); i++) {
        const qk_table *t = others[i].table();
        if (!t || (o.isa && strcmp(o.isa, others[i].name) != 0) || (o.list && ran))
            continue;
        run_table(&s, &o, t, others[i].name);
        ran++;
    }
    if (!ran) {
        fprintf(stderr, "skipped: this CPU or this build has no %s\n", o.isa);
        return 77;
    }
    if (ck_timing.upper)
        printf("%ld calls, %ld left registers in use\n", s.comparisons, s.failures);
    else if (!o.bench && !o.list)
        printf("seed %" PRIu64 ": %ld comparisons, %ld failed\n", o.seed, s.comparisons,
               s.failures);
    return s.failures != 0;
}
