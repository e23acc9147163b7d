/* SPDX-License-Identifier: MIT */
#include "train_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * A batch is always SLOTS passes of NET_LANES images. Each pass has a gradient of its own, and
 * these are added slot by slot, so the number of workers changes no bits.
 */
#define SLOTS         8
#define BATCH         (SLOTS * NET_LANES)
#define LEARNING_RATE 3e-3
#define BETA1         0.9f
#define BETA2         0.999f
#define EPSILON       1e-8f

struct train_fit {
    train_team *team;
    const net_passes *passes;
    train_set set;
    uint64_t random;
    size_t step, epochs;
    double beta1_power, beta2_power;
    uint32_t *order;      /* numbers of set.count images */
    net_scratch *scratch; /* one per worker */
    net_params params, grad[SLOTS];
    net_params mean, variance; /* Adam's moments */
    float rate, scale;         /* learning rate of this step; 1 / images */
    size_t first;              /* first image of this step, an index into order */
    train_set eval;
    size_t *correct; /* one per worker */
};

static size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

train_fit *fit_create(train_team *team, train_set set, uint64_t seed, size_t epochs) {
    train_fit *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    *f = (train_fit){.team = team,
                     .passes = net_passes_select(),
                     .set = set,
                     .epochs = epochs,
                     .random = seed ^ 0x5851f42d4c957f2du,
                     .beta1_power = 1,
                     .beta2_power = 1};
    f->order = malloc(set.count * sizeof(f->order[0]));
    f->scratch = aligned_alloc(64, team_size(team) * ((sizeof(net_scratch) + 63) / 64 * 64));
    f->correct = calloc(team_size(team), sizeof(f->correct[0]));
    if (!f->order || !f->scratch || !f->correct) {
        fit_free(f);
        return NULL;
    }
    memset(f->scratch, 0, team_size(team) * sizeof(net_scratch));
    for (size_t i = 0; i < set.count; i++)
        f->order[i] = (uint32_t)i;
    net_init(&f->params, seed);
    return f;
}

size_t fit_steps_per_epoch(const train_fit *f) {
    return (f->set.count + BATCH - 1) / BATCH;
}

static void shuffle(train_fit *f) {
    for (size_t i = f->set.count; i > 1; i--) {
        const size_t j = (size_t)(net_random(&f->random) % i);
        const uint32_t swap = f->order[i - 1];
        f->order[i - 1] = f->order[j];
        f->order[j] = swap;
    }
}

static void compute_gradients(void *arg, size_t worker) {
    train_fit *f = arg;
    net_scratch *s = &f->scratch[worker];
    for (size_t slot = worker; slot < SLOTS; slot += team_size(f->team)) {
        for (size_t lane = 0; lane < NET_LANES; lane++) {
            const size_t at = f->first + slot * NET_LANES + lane;
            const size_t image = f->order[min_size(at, f->set.count - 1)];
            net_load(s, lane, f->set.images + image * NET_PIXELS,
                     at < f->set.count ? f->set.labels[image] : -1);
        }
        f->passes->forward(&f->params, s);
        f->passes->backward(&f->params, s, &f->grad[slot]);
    }
}

/* Updates this worker's share of the parameters by Adam. */
static void update_params(void *arg, size_t worker) {
    train_fit *f = arg;
    const size_t size = team_size(f->team);
    const size_t end = NET_PARAMS * (worker + 1) / size;
    for (size_t i = NET_PARAMS * worker / size; i < end; i++) {
        float g = f->grad[0].all[i];
        for (size_t slot = 1; slot < SLOTS; slot++)
            g += f->grad[slot].all[i];
        g *= f->scale;
        f->mean.all[i] = BETA1 * f->mean.all[i] + (1.0f - BETA1) * g;
        f->variance.all[i] = BETA2 * f->variance.all[i] + (1.0f - BETA2) * g * g;
        f->params.all[i] -= f->rate * f->mean.all[i] / (sqrtf(f->variance.all[i]) + EPSILON);
    }
}

void fit_step(train_fit *f) {
    const size_t per_epoch = fit_steps_per_epoch(f), in_epoch = f->step % per_epoch;
    if (in_epoch == 0)
        shuffle(f);
    /* A cubic close to a half cosine, which avoids the C library's cos. */
    const double t = (double)f->step / (double)(per_epoch * f->epochs);
    const double decay = 1.0 - t * t * (3.0 - 2.0 * t);
    f->beta1_power *= (double)BETA1;
    f->beta2_power *= (double)BETA2;
    f->rate = (float)(LEARNING_RATE * decay * sqrt(1.0 - f->beta2_power) / (1.0 - f->beta1_power));
    f->first = in_epoch * BATCH;
    f->scale = 1.0f / (float)min_size(BATCH, f->set.count - f->first);
    team_run(f->team, compute_gradients, f);
    team_run(f->team, update_params, f);
    f->step++;
}

static void count_correct(void *arg, size_t worker) {
    train_fit *f = arg;
    net_scratch *s = &f->scratch[worker];
    const size_t stride = NET_LANES * team_size(f->team);
    size_t correct = 0;
    for (size_t first = worker * NET_LANES; first < f->eval.count; first += stride) {
        const size_t lanes = min_size(NET_LANES, f->eval.count - first);
        for (size_t lane = 0; lane < lanes; lane++)
            net_load(s, lane, f->eval.images + (first + lane) * NET_PIXELS, 0);
        f->passes->forward(&f->params, s);
        for (size_t lane = 0; lane < lanes; lane++)
            correct += net_top1(s, lane) == f->eval.labels[first + lane];
    }
    f->correct[worker] = correct;
}

size_t fit_evaluate(train_fit *f, train_set set) {
    f->eval = set;
    team_run(f->team, count_correct, f);
    size_t correct = 0;
    for (size_t i = 0; i < team_size(f->team); i++)
        correct += f->correct[i];
    return correct;
}

const net_params *fit_params(const train_fit *f) {
    return &f->params;
}

void fit_free(train_fit *f) {
    if (!f)
        return;
    free(f->correct);
    free(f->scratch);
    free(f->order);
    free(f);
}
