/* SPDX-License-Identifier: MIT */
/*
 * The manifest (qsim.manifest) makes UTF-8 the code page of the C library's files and of arguments,
 * from Windows 10, version 1903, on.
 */
#include "common/system.h"

#ifdef _WIN32
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <psapi.h>

#include "common/folder.h"
#include "common/tool.h"

void system_begin(int argc, char **argv) {
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
    _setmode(2, _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    for (int i = 1; i < argc; i++)
        for (char *c = argv[i]; *c; c++)
            *c = *c == '\\' ? '/' : *c;
}

/* signal() drops a handler once it was called, as wanted; it is called on a thread of its own. */
void system_catch(void (*handler)(int)) {
    signal(SIGINT, handler);
    signal(SIGBREAK, handler);
    signal(SIGTERM, handler);
}

/* ---- memory ---- */

double system_memory(void) {
    MEMORYSTATUSEX status = {.dwLength = sizeof(status)};
    return GlobalMemoryStatusEx(&status) ? (double)status.ullTotalPhys : 1e18;
}

void system_limit_memory(double bytes, int32_t threads) {
    (void)bytes;
    (void)threads;
}

int64_t system_peak_memory(void) {
    PROCESS_MEMORY_COUNTERS counters = {.cb = sizeof(counters)};
    return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof(counters))
               ? (int64_t)counters.PeakWorkingSetSize
               : 0;
}

/* ---- files ---- */

int system_make_folder(const char *path) {
    return mkdir(path);
}

void system_remove_folder(const char *path) {
    (void)rmdir(path);
}

bool system_may_write_into(const char *folder) {
    return _access(folder, 2) == 0;
}

static bool file_identity(const char *path, BY_HANDLE_FILE_INFORMATION *out) {
    HANDLE file =
        CreateFileA(path, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL); /* the flag: folders, too */
    if (file == INVALID_HANDLE_VALUE)
        return false;
    const bool known = GetFileInformationByHandle(file, out) != 0;
    CloseHandle(file);
    return known;
}

bool system_same_file(const char *a, const char *b) {
    BY_HANDLE_FILE_INFORMATION x, y;
    return file_identity(a, &x) && file_identity(b, &y) &&
           x.dwVolumeSerialNumber == y.dwVolumeSerialNumber &&
           x.nFileIndexHigh == y.nFileIndexHigh && x.nFileIndexLow == y.nFileIndexLow;
}

/* ---- patterns ---- */

/* Does the first element of a pattern, no '*', fit the character? *next: what follows it. */
static bool fits_one(const char *p, char c, const char **next) {
    const bool none_of = p[0] == '[' && (p[1] == '!' || p[1] == '^');
    const char *first = p + 1 + none_of, *end = *first ? strchr(first + 1, ']') : NULL;
    bool found = false;
    *next = p + 1;
    if (*p != '[' || !end) /* an open bracket alone is itself */
        return *p == '?' ? true : *p == c;
    for (const char *s = first; s < end; s++)
        if (s[1] == '-' && s + 2 < end) {
            found = found || (s[0] <= c && c <= s[2]);
            s += 2;
        } else
            found = found || *s == c;
    *next = end + 1;
    return found != none_of;
}

/* After a mismatch the last '*' takes one character more: earlier ones need not be tried again. */
bool system_matches(const char *pattern, const char *name) {
    const char *star = NULL, *from = NULL, *next;
    while (*name)
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (*pattern && fits_one(pattern, *name, &next)) {
            pattern = next;
            name++;
        } else if (star) {
            pattern = star;
            name = ++from;
        } else
            return false;
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

typedef struct found_paths {
    char **paths;
    size_t count;
} found_paths;

static void find_in(found_paths *f, const char *folder, const char *pattern);

/* Goes on below `path`, which fits so far, with what follows the pattern's next slash. */
static void found(found_paths *f, char *path, const char *rest) {
    if (*rest) {
        if (folder_is(path, strlen(path)))
            find_in(f, path, rest + 1);
        free(path);
        return;
    }
    f->paths = tool_grow(f->paths, f->count + 2, sizeof(*f->paths));
    f->paths[f->count++] = path;
    f->paths[f->count] = NULL;
}

static void find_in(found_paths *f, const char *folder, const char *pattern) {
    const size_t n = strcspn(pattern, "/");
    char *part = tool_copy(pattern);
    part[n] = 0;
    DIR *dir = opendir(*folder ? folder : ".");
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        if ((e->d_name[0] != '.' || part[0] == '.') && system_matches(part, e->d_name))
            found(f, *folder ? folder_join(folder, e->d_name) : tool_copy(e->d_name), pattern + n);
    if (dir)
        closedir(dir);
    free(part);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **system_find(const char *pattern) {
    found_paths f = {0};
    /* What stands before the first component with a wildcard is a folder's name. */
    const size_t plain = strcspn(pattern, "*?[");
    size_t n = plain;
    while (n > 0 && pattern[n - 1] != '/')
        n--;
    char *folder = tool_copy(pattern);
    folder[n] = 0;
    find_in(&f, folder, pattern + n);
    free(folder);
    if (f.count)
        qsort(f.paths, f.count, sizeof(*f.paths), by_name);
    return f.paths;
}

#endif
