/* SPDX-License-Identifier: MIT */
/* Memory of the test's process, for tests that bound it. */
#ifndef PROCESS_MEMORY_H
#define PROCESS_MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers use memory of their own: bounds hold for the program alone. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||                         \
    __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A line of /proc/self/status, such as "VmRSS:", in bytes; 0 if there is none. */
static inline size_t process_memory(const char *name) {
    size_t kib = 0;
#if defined(__linux__) && !SANITIZED
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
#else
    (void)name;
#endif
    return kib * 1024;
}

#endif
