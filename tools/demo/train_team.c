/* SPDX-License-Identifier: MIT */
#include "train_team.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct member {
    train_team *team;
    size_t index;
    pthread_t thread;
} member;

struct train_team {
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    uint64_t round; /* counts tasks; a change starts the members */
    size_t busy, size;
    team_fn fn; /* NULL: threads end */
    void *arg;
    member members[];
};

static void *member_main(void *arg) {
    member *m = arg;
    train_team *t = m->team;
    for (uint64_t seen = 0;; seen++) {
        pthread_mutex_lock(&t->lock);
        while (t->round == seen)
            pthread_cond_wait(&t->start, &t->lock);
        const team_fn fn = t->fn;
        void *fn_arg = t->arg;
        pthread_mutex_unlock(&t->lock);
        if (!fn)
            return NULL;
        fn(fn_arg, m->index);
        pthread_mutex_lock(&t->lock);
        if (--t->busy == 0)
            pthread_cond_signal(&t->done);
        pthread_mutex_unlock(&t->lock);
    }
}

static void start_round(train_team *t, team_fn fn, void *arg) {
    pthread_mutex_lock(&t->lock);
    t->fn = fn;
    t->arg = arg;
    t->busy = t->size - 1;
    t->round++;
    pthread_cond_broadcast(&t->start);
    pthread_mutex_unlock(&t->lock);
}

train_team *team_create(size_t size) {
    train_team *t = calloc(1, sizeof(*t) + size * sizeof(t->members[0]));
    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->start, NULL);
    pthread_cond_init(&t->done, NULL);
    for (t->size = 1; t->size < size; t->size++) {
        member *m = &t->members[t->size];
        *m = (member){.team = t, .index = t->size};
        if (pthread_create(&m->thread, NULL, member_main, m) != 0) {
            team_free(t);
            return NULL;
        }
    }
    return t;
}

size_t team_size(const train_team *t) {
    return t->size;
}

void team_run(train_team *t, team_fn fn, void *arg) {
    start_round(t, fn, arg);
    fn(arg, 0);
    pthread_mutex_lock(&t->lock);
    while (t->busy)
        pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void team_free(train_team *t) {
    if (!t)
        return;
    start_round(t, NULL, NULL);
    for (size_t i = 1; i < t->size; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->done);
    pthread_cond_destroy(&t->start);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
