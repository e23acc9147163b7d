/* SPDX-License-Identifier: MIT */
/*
 * The search `fallback` keeps in float the few units that spoil the result. Where several of them
 * read and make the same tensors, none gains by being in float alone, so it measures parts of the
 * network in integers with all else in float. It halves the part that loses most until single units
 * are left: some 20 measurements for 200 units.
 */
#include <stdio.h>

#include "ptq/search.h"

/* A unit is kept in float if it loses this share of the whole loss alone. */
#define SHARE 0.125
/* At most one unit in FEW is kept in float, those that lose most: more would cost time. */
#define FEW 8
/* Parts at most, if the loss has no place. */
#define PARTS 32

/* Units [begin, end), and the loss with them alone in integers. */
typedef struct part {
    size_t begin, end;
    double loss;
} part;

static int measure(qs_search *s, const qs_units *u, part *p, size_t done) {
    qsim_judgement j;
    int code = qs_search_progress(s, u->items[p->begin].name, done, 2 * PARTS);
    for (size_t i = 0; i < u->count && !code; i++)
        code = qs_unit_set(s, &u->items[i], i < p->begin || i >= p->end);
    if (!code)
        code = qs_units_judge(s, &j);
    p->loss = code ? 0 : j.loss;
    return code;
}

/* The part of several units that loses most, and at least `least`; NULL: there is none. */
static part *worst_part(part *parts, size_t count, double least) {
    part *worst = NULL;
    for (size_t i = 0; i < count; i++)
        if (parts[i].end - parts[i].begin > 1 && parts[i].loss >= (worst ? worst->loss : least))
            worst = &parts[i];
    return worst;
}

/* Finds the units that lose `least` alone, and makes them the first parts, the worst first. */
static int find_worst(qs_search *s, const qs_units *u, double least, part *parts, size_t *found) {
    size_t count = 1;
    int code = QSIM_OK;
    parts[0] = (part){0, u->count, s->judgement.loss};
    for (part *p; !code && count < PARTS && !qs_search_is_over(s) &&
                  (p = worst_part(parts, count, least)) != NULL;) {
        const size_t middle = (p->begin + p->end) / 2;
        part *half = &parts[count++];
        *half = (part){.begin = middle, .end = p->end};
        p->end = middle;
        code = measure(s, u, p, 2 * count);
        if (!code)
            code = measure(s, u, half, 2 * count + 1);
    }
    *found = 0;
    for (size_t i = 0; i < count; i++)
        if (parts[i].end - parts[i].begin == 1 && parts[i].loss >= least) {
            const part unit = parts[i];
            size_t k = (*found)++;
            for (; k > 0 && parts[k - 1].loss < unit.loss; k--)
                parts[k] = parts[k - 1];
            parts[k] = unit;
        }
    return code ? code : qs_search_return(s);
}

/* Keeps the units that lose most in float, up to `most`, if that is better. */
static int fall_back(qs_search *s, const qs_units *u, size_t most) {
    part parts[PARTS];
    size_t found;
    char what[80];
    int code = find_worst(s, u, SHARE * s->judgement.loss, parts, &found);
    found = found < most ? found : most;
    if (code || found == 0)
        return code;
    const double before = s->best;
    for (size_t i = 0; i < found && !code; i++)
        code = qs_unit_set(s, &u->items[parts[i].begin], true);
    s->floats += (int32_t)found;
    snprintf(what, sizeof(what), "%d unit%s in float that lose%s most alone", (int)s->floats,
             s->floats == 1 ? "" : "s", s->floats == 1 ? "s" : "");
    if (!code)
        code = qs_search_try(s, what, NULL);
    if (!(s->best > before))
        s->floats -= (int32_t)found;
    return code ? code : qs_search_return(s);
}

int qs_search_fallback(qs_search *s) {
    double before;
    int code = QSIM_OK;
    if (qs_search_is_met(s))
        return QSIM_OK;
    do {
        qs_units u = {0};
        before = s->best;
        code = qs_units_find(s, &u);
        const size_t floats = (size_t)s->floats, most = (u.count + floats) / FEW;
        if (!code && floats < most)
            code = fall_back(s, &u, most - floats);
        qs_units_free(s, &u);
    } while (!code && s->best > before && !qs_search_is_met(s) && !qs_search_is_over(s));
    return code;
}
