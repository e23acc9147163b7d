/* SPDX-License-Identifier: MIT */
/*
 * Factors for equalization, each a power of two, so that moving it changes no float but its
 * exponent. Between layers (Nagel et al., 2019, section 4.1), until nothing changes:
 *
 *     k[c] = sqrt(max over readers of |W2[:, c]| / max |W1[c, :]|)
 *
 * and between a normalization and the layers that read it (Xiao et al., 2023), for some a:
 *
 *     k[c] = max |W[:, c]|^(1 - a) / max |x[c]|^a
 */
#include <math.h>

#include "base/ctx.h"
#include "ptq/equalize.h"
#include "ptq/search.h"
#include "quant/observer.h"

#define ROUNDS   10
#define MOST_LOG 13   /* factors from 2^-13 to 2^13 */
#define TINY     1e-9 /* weights or values below this count as 0 */
#define FULL     0.98 /* of a Clip's bound */

/* A site and its statistics. */
typedef struct place {
    qs_site site;
    float *factor;
    double *made, *read;    /* greatest magnitudes of weights on either side, by channel */
    const qs_means *values; /* of a tensor that carries the factors; NULL: not known */
} place;

typedef struct scaling {
    qs_search *s;
    qs_quantizer q;
    place *places;
    size_t count;
    int32_t *reads, *makes; /* by node: the site that it reads, and the one it makes; -1: none */
} scaling;

/* 2^n nearest to x by ratio. */
static float power_near(double x) {
    int n;
    const double part = frexp(x, &n); /* [0.5, 1) */
    n -= part < 0.70710678118654752;
    return (float)ldexp(1, n < -MOST_LOG ? -MOST_LOG : n > MOST_LOG ? MOST_LOG : n);
}

/* ---- places ---- */

/* The extremes of channels in the calibration, of the first tensor of the site that has some. */
static const qs_means *find_values(const scaling *g, const qs_site *site) {
    for (size_t i = 0; i < site->tensor_count; i++) {
        int32_t index;
        const char *name = g->q.g->values[site->tensors[i].value].name;
        const qs_means *m = qs_calibration_means(g->s->c, name, &index);
        if (m && !m->bare && m->channels == site->channels && m->axis == site->tensors[i].axis)
            return m;
    }
    return NULL;
}

static int keep_place(scaling *g, qs_site *site) {
    qs_arena *a = &g->q.g->arena;
    place *p = &g->places[g->count++];
    *p = (place){.site = *site, .values = find_values(g, site)};
    p->factor = qs_arena_alloc(a, site->channels, sizeof(*p->factor));
    p->made = qs_arena_alloc(a, site->channels, sizeof(*p->made));
    p->read = qs_arena_alloc(a, site->channels, sizeof(*p->read));
    if (!p->factor || !p->made || !p->read)
        return QSIM_E_NOMEM;
    for (size_t c = 0; c < site->channels; c++)
        p->factor[c] = 1;
    return QSIM_OK;
}

/*
 * Whether the calibration has extremes of channels for all quantized tensors of a site, from which
 * their ranges after multiplication follow.
 */
static bool is_usable(const scaling *g, const qs_site *site) {
    for (size_t i = 0; i < site->tensor_count; i++) {
        int32_t index;
        const qs_id v = site->tensors[i].value;
        const qs_activation *a = &g->q.activations[v];
        const qs_means *m = qs_calibration_means(g->s->c, g->q.g->values[v].name, &index);
        if (a->quantized && a->root == v && (!m || m->bare || m->channels != site->channels))
            return false;
    }
    return true;
}

static int find_places(scaling *g, bool normalized) {
    int code = QSIM_OK;
    for (size_t v = 0; v < g->q.value_count && !code; v++) {
        qs_site site;
        code = qs_site_find(g->q.ctx, g->q.g, &g->q.uses, (qs_id)v, &site);
        if (code)
            code = QSIM_E_NOMEM;
        const bool wanted = !code && site.reader_count > 0 && site.normalized == normalized &&
                            !(g->q.scaled && g->q.scaled[v].factor) && is_usable(g, &site);
        if (wanted)
            code = keep_place(g, &site);
        else
            qs_site_free(g->q.ctx, &site);
        for (size_t i = 0; wanted && i < site.reader_count; i++)
            g->reads[site.readers[i]] = (int32_t)g->count - 1;
        if (wanted && !site.normalized)
            g->makes[site.producer] = (int32_t)g->count - 1;
    }
    return code;
}

static int begin(scaling *g, qs_search *s, bool normalized) {
    *g = (scaling){.s = s};
    int code = qs_search_begin(s, &g->q);
    if (code)
        return code;
    qs_activation_mark(&g->q);
    g->places = qs_calloc(g->q.ctx, g->q.value_count + 1, sizeof(*g->places));
    g->reads = qs_alloc(g->q.ctx, g->q.node_count + 1, sizeof(*g->reads));
    g->makes = qs_alloc(g->q.ctx, g->q.node_count + 1, sizeof(*g->makes));
    if (!g->places || !g->reads || !g->makes)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < g->q.node_count; i++)
        g->reads[i] = g->makes[i] = -1;
    code = qs_equalize_apply(&g->q); /* the recipe has an entry already */
    return code ? code : find_places(g, normalized);
}

static void end(scaling *g) {
    for (size_t i = 0; i < g->count; i++)
        qs_site_free(g->q.ctx, &g->places[i].site);
    qs_free(g->q.ctx, g->places);
    qs_free(g->q.ctx, g->reads);
    qs_free(g->q.ctx, g->makes);
    qs_search_end(&g->q);
}

/* ---- magnitudes ---- */

/*
 * The greatest magnitude of a node's weights, by output or by input channel, with the factors of
 * the other side in them.
 */
static int magnitudes(scaling *g, qs_id node, bool by_output, double *most) {
    const qs_id value = g->q.g->nodes[node].inputs[1];
    const float *w = qs_graph_aligned(g->q.g, value);
    const qs_weight_map map = qs_weight_map_of(g->q.g, &g->q.g->nodes[node]);
    const int32_t other = by_output ? g->reads[node] : g->makes[node];
    const float *factor = other < 0 ? NULL : g->places[other].factor;
    if (!w)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < g->q.g->values[value].data->elements; i++) {
        const size_t o = qs_weight_output(&map, i), c = qs_weight_input(&map, i);
        const double at = fabs((double)w[i]);
        const double scaled = !factor     ? at
                              : by_output ? at / (double)factor[c]
                                          : at * (double)factor[o];
        double *to = &most[by_output ? o : c];
        *to = scaled > *to ? scaled : *to;
    }
    return QSIM_OK;
}

static int measure(scaling *g, place *p) {
    int code = QSIM_OK;
    memset(p->made, 0, p->site.channels * sizeof(*p->made));
    memset(p->read, 0, p->site.channels * sizeof(*p->read));
    if (!p->site.normalized)
        code = magnitudes(g, p->site.producer, true, p->made);
    for (size_t i = 0; i < p->site.reader_count && !code; i++)
        code = magnitudes(g, p->site.readers[i], false, p->read);
    return code;
}

/* ---- factors ---- */

/*
 * The greatest factor with which a channel stays below the Clip's bound; 0: it reaches the bound.
 */
static double headroom_of(const place *p, size_t c) {
    if (!isfinite(p->site.most))
        return INFINITY;
    if (!p->values)
        return 0;
    const double high = (double)p->values->extreme[p->site.channels + c];
    const double bound = FULL * (double)p->site.most;
    return high >= bound ? 0 : high > TINY ? bound / high : INFINITY;
}

/* Computes the factors of a site between layers; *changed: one has changed. */
static void balance(place *p, bool *changed) {
    for (size_t c = 0; c < p->site.channels; c++) {
        const double headroom = headroom_of(p, c);
        float k = 1;
        if (headroom > 0 && p->made[c] > TINY && p->read[c] > TINY)
            k = power_near(sqrt(p->read[c] / p->made[c]));
        while (headroom > 0 && (double)k > headroom)
            k /= 2;
        *changed |= k != p->factor[c];
        p->factor[c] = k;
    }
}

/* Computes the factors of a site after a normalization, with the library's logarithm. */
static void smooth(place *p, double a) {
    for (size_t c = 0; c < p->site.channels; c++) {
        const double low = fabs((double)p->values->extreme[c]);
        const double high = fabs((double)p->values->extreme[p->site.channels + c]);
        const double x = low > high ? low : high;
        p->factor[c] = 1;
        if (!(x > TINY) || !(p->read[c] > TINY))
            continue;
        const double n =
            ((1 - a) * qs_logarithm(p->read[c]) - a * qs_logarithm(x)) * 1.4426950408889634;
        const double whole = rint(n);
        p->factor[c] = (float)ldexp(1, whole < -MOST_LOG  ? -MOST_LOG
                                       : whole > MOST_LOG ? MOST_LOG
                                                          : (int)whole);
    }
}

/* ---- the recipe ---- */

/* Drops the recipe's range of a tensor, since it is that without factors. */
static int drop_range(scaling *g, qs_id value) {
    const char *name = g->q.g->values[value].name;
    const qsim_recipe_entry *e = qs_recipe_find(g->s->recipe, QSIM_RECIPE_TENSOR, name);
    if (!e || !(e->flags & QSIM_RECIPE_RANGE))
        return QSIM_OK;
    qsim_recipe_entry own = qs_search_method_entry(g->s, QSIM_METHOD_MINMAX, 0);
    own.dtype = e->dtype;
    own.symmetric = e->symmetric;
    return qs_recipe_put(g->s->recipe, &own, name);
}

/* Stores the factors in the recipe; *moved: number of sites with a factor other than 1. */
static int put_factors(scaling *g, size_t *moved) {
    int code = QSIM_OK;
    *moved = 0;
    for (size_t i = 0; i < g->count && !code; i++) {
        const place *p = &g->places[i];
        const qsim_recipe_entry e = {.kind = QSIM_RECIPE_EQUALIZE,
                                     .shift = p->factor,
                                     .shift_count = (int64_t)p->site.channels};
        bool any = false;
        for (size_t c = 0; c < p->site.channels; c++)
            any |= p->factor[c] != 1;
        if (!any)
            continue;
        ++*moved;
        code = qs_recipe_put(g->s->recipe, &e, g->q.g->values[p->site.tensors[0].value].name);
        for (size_t t = 0; t < p->site.tensor_count && !code; t++)
            code = drop_range(g, p->site.tensors[t].value);
    }
    return code;
}

static int try_factors(scaling *g, const char *what) {
    size_t moved;
    int code = put_factors(g, &moved);
    if (!code && moved > 0)
        code = qs_search_try(g->s, what, NULL);
    return code;
}

/* ---- methods ---- */

int qs_search_equalize(qs_search *s) {
    scaling g;
    bool changed = true;
    int code = begin(&g, s, false);
    for (int round = 0; round < ROUNDS && changed && !code; round++) {
        changed = false;
        code = qs_search_progress(s, "equalizing", (size_t)round, ROUNDS);
        for (size_t i = 0; i < g.count && !code; i++) {
            code = measure(&g, &g.places[i]);
            if (!code)
                balance(&g.places[i], &changed);
        }
    }
    if (!code)
        code = try_factors(&g, "channels equalized between layers");
    end(&g);
    return code ? code : qs_search_return(s);
}

int qs_search_smooth(qs_search *s) {
    static const struct {
        const char *what;
        double share;
    } tries[] = {{"channels smoothed, 0.5", 0.5},
                 {"channels smoothed, 0.75", 0.75},
                 {"channels smoothed, 0.25", 0.25}};
    scaling g;
    int code = begin(&g, s, true);
    for (size_t i = 0; i < g.count && !code; i++)
        code = measure(&g, &g.places[i]);
    for (size_t k = 0; k < QS_COUNT(tries) && !code && !qs_search_is_over(s); k++) {
        code = qs_search_progress(s, tries[k].what, k, QS_COUNT(tries));
        for (size_t i = 0; i < g.count; i++)
            if (g.places[i].values)
                smooth(&g.places[i], tries[k].share);
        if (!code)
            code = try_factors(&g, tries[k].what);
    }
    end(&g);
    return code ? code : qs_search_return(s);
}
