/* SPDX-License-Identifier: MIT */
#include "checkkernel.h"

#include "base/ctx.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GUARD  64
#define POISON 0xa5

static const struct {
    const ck_case *cases;
    const size_t *count;
} families[] = {
    {ck_cases_i8, &ck_cases_i8_count},   {ck_cases_conv_i8, &ck_cases_conv_i8_count},
    {ck_cases_f32, &ck_cases_f32_count}, {ck_cases_ew, &ck_cases_ew_count},
    {ck_cases_u8, &ck_cases_u8_count},
};

struct ck_block {
    struct ck_block *next;
    uint8_t *memory;
};

uint32_t ck_random(ck_state *s) {
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return (uint32_t)((s->random * 2685821657736338717ull) >> 32);
}

int32_t ck_between(ck_state *s, int32_t least, int32_t greatest) {
    return least + (int32_t)(ck_random(s) % (uint32_t)(greatest - least + 1));
}

float ck_real(ck_state *s, float least, float greatest) {
    return least + (greatest - least) * (float)(ck_random(s) >> 8) / 16777216.0f;
}

static uint8_t *new_block(ck_state *s, size_t bytes) {
    struct ck_block *b = malloc(sizeof(*b));
    uint8_t *memory = NULL;
    if (!b || posix_memalign((void **)&memory, 64, bytes)) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    *b = (struct ck_block){s->blocks, memory};
    s->blocks = b;
    return memory;
}

void *ck_output(ck_state *s, size_t bytes) {
    uint8_t *memory = new_block(s, bytes + 2 * GUARD);
    memset(memory, POISON, bytes + 2 * GUARD);
    return memory + GUARD;
}

void *ck_input(ck_state *s, size_t bytes) {
    uint8_t *data = new_block(s, bytes + 64);
    for (size_t i = 0; i < bytes + 64; i++)
        data[i] = (uint8_t)ck_random(s);
    return data;
}

void *ck_floats(ck_state *s, size_t count, float least, float greatest) {
    float *data = ck_input(s, count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        data[i] = ck_real(s, least, greatest);
    return data;
}

static void free_blocks(ck_state *s) {
    while (s->blocks) {
        struct ck_block *b = s->blocks;
        s->blocks = b->next;
        free(b->memory);
        free(b);
    }
}

static bool guards_intact(const uint8_t *data, size_t bytes) {
    for (size_t i = 1; i <= GUARD; i++)
        if (data[bytes + i - 1] != POISON || *(data - i) != POISON)
            return false;
    return true;
}

void ck_same(ck_state *s, const void *expected, const void *actual, size_t bytes,
             const char *shape) {
    const uint8_t *e = expected, *a = actual;
    s->comparisons++;
    size_t i = 0;
    while (i < bytes && e[i] == a[i])
        i++;
    bool intact = guards_intact(a, bytes);
    if (i == bytes && intact)
        return;
    s->failures++;
    if (s->failures > 10)
        return;
    fprintf(stderr, "%s %s [%s]: ", s->isa, s->name, shape);
    if (i < bytes)
        fprintf(stderr, "byte %zu of %zu is %u, expected %u", i, bytes, a[i], e[i]);
    fprintf(stderr, "%s\n", intact ? "" : " wrote outside the output");
}

uint8_t ck_requantize(int32_t acc, float m, int32_t zp, int32_t lo, int32_t hi) {
    float v = (float)acc * m;
    v = fminf(fmaxf(v, (float)(lo - zp)), (float)(hi - zp));
    return (uint8_t)((int32_t)nearbyintf(v) + zp);
}

typedef struct options {
    const char *isa, *only;
    uint64_t seed;
    int rounds;
    bool bench, list;
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
        free_blocks(s);
        return;
    }
    for (int i = 0; i < o->rounds; i++) {
        k->check(s);
        free_blocks(s);
    }
    printf("%-11s %-22s %s\n", s->isa, k->name, s->failures == before ? "ok" : "FAILED");
}

/* No instruction sets of the library's: kernels of one in another encoding, with other constants,
 * or in C. */
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
    fprintf(stderr, "usage: checkkernel [--isa NAME] [--case TEXT] [--seed N] [--rounds N] "
                    "[--bench | --tsv | --shapes | --serve SHAPE | --upper] [--list]\n");
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

int main(int argc, char **argv) {
    options o = {.seed = 1, .rounds = 300};
    if (!parse(argc, argv, &o) || (o.isa && !is_known(o.isa)))
        return usage();
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
