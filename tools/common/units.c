/* SPDX-License-Identifier: MIT */
/* Sizes, times and names in readable form. */
#include <string.h>
#include <time.h>

#include "common/tool.h"

const char *tool_bytes(double bytes, char buffer[32]) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    int u = 0;
    for (; bytes >= 1024 && u < 4; u++)
        bytes /= 1024;
    snprintf(buffer, 32, u == 0 ? "%.0f %s" : bytes < 100 ? "%.2f %s" : "%.1f %s", bytes, units[u]);
    return buffer;
}

const char *tool_time(double ms, char buffer[32]) {
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"µs", 1e-3}, {"ms", 1}, {"s", 1e3}};
    int u = ms < 0.99995 ? 0 : ms < 999.95 ? 1 : 2;
    double n = ms / units[u].ms;
    snprintf(buffer, 32,
             n < 9.995   ? "%.2f %s"
             : n < 99.95 ? "%.1f %s"
                         : "%.0f %s",
             n, units[u].unit);
    return buffer;
}

const char *tool_plural(int64_t count) {
    return count == 1 ? "" : "s";
}

const char *tool_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

double tool_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

const char *tool_rate(double per_second, char buffer[32]) {
    snprintf(buffer, 32, per_second >= 100 ? "%.0f/s" : "%.3g/s", per_second);
    return buffer;
}
