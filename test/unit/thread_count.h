/* SPDX-License-Identifier: MIT */
/* Threads of a program: those of libqsim come and go with contexts. */
#ifndef THREAD_COUNT_H
#define THREAD_COUNT_H

#include <dirent.h>
#include <pthread.h>
#include <time.h>

/* The number of threads of this process; -1 if the system does not tell. */
static int thread_count(void) {
    DIR *d = opendir("/proc/self/task");
    int n = d ? 0 : -1;
    for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d))
        n += entry->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static int idle; /* threads of this program before any test */

/* The number of threads, once it is `expected` or after seconds: joined ones may stay listed. */
static int settled(int expected) {
    const struct timespec rest = {0, 1000000};
    for (int i = 0; i < 5000 && thread_count() != expected; i++)
        nanosleep(&rest, NULL);
    return thread_count();
}

static void *nothing(void *arg) {
    return arg;
}

/* ThreadSanitizer starts a thread of its own, for good, at a program's first. */
static void thread_count_start(void) {
    pthread_t first;
    if (pthread_create(&first, NULL, nothing, NULL) == 0)
        pthread_join(first, NULL);
    idle = thread_count();
}

#endif
