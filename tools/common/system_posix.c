/* SPDX-License-Identifier: MIT */
#include "common/system.h"

#ifndef _WIN32
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool.h"

void system_begin(int argc, char **argv) {
    (void)argc;
    (void)argv;
    signal(SIGXFSZ, SIG_IGN);
}

void system_catch(void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- memory ---- */

double system_memory(void) {
    const int limits[] = {RLIMIT_DATA, RLIMIT_AS};
    double least = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct rlimit limit;
        if (!getrlimit(limits[i], &limit) && limit.rlim_cur != RLIM_INFINITY)
            least = (double)limit.rlim_cur < least ? (double)limit.rlim_cur : least;
    }
    return least;
}

#define STACKS ((rlim_t)16 << 20) /* address space of one thread's stack */

/*
 * Whether AddressSanitizer is in use: gcc defines a macro, clang has __has_feature, which gcc 12
 * refuses even behind a defined() on the same line.
 */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

void system_limit_memory(double bytes, int32_t threads) {
#if SANITIZED /* a sanitizer's memory would count, too */
    (void)bytes;
    (void)threads;
#else
    const rlim_t all =
        (rlim_t)bytes + STACKS * (rlim_t)(threads ? threads : sysconf(_SC_NPROCESSORS_ONLN));
    const struct rlimit limit = {all, all};
    (void)setrlimit(RLIMIT_DATA, &limit);
#endif
}

int64_t system_peak_memory(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (int64_t)usage.ru_maxrss * 1024;
}

/* ---- files ---- */

int system_make_folder(const char *path) {
    return mkdir(path, 0777);
}

void system_remove_folder(const char *path) {
    (void)rmdir(path);
}

bool system_may_write_into(const char *folder) {
    return access(folder, W_OK | X_OK) == 0;
}

bool system_same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool system_matches(const char *pattern, const char *name) {
    return fnmatch(pattern, name, FNM_NOESCAPE) == 0;
}

/* Ends the search where memory is missing; a folder that cannot be read holds no match. */
static int search_error(const char *path, int error) {
    (void)path;
    return error == ENOMEM;
}

char **system_find(const char *pattern) {
    glob_t found;
    const int code = glob(pattern, 0, search_error, &found);
    if (code == GLOB_ABORTED || code == GLOB_NOSPACE)
        tool_no_memory(0);
    if (code != 0)
        return NULL;
    char **paths = tool_alloc(found.gl_pathc + 1, sizeof(*paths));
    for (size_t i = 0; i < found.gl_pathc; i++)
        paths[i] = tool_copy(found.gl_pathv[i]);
    globfree(&found);
    return paths;
}

#endif
