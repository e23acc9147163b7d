/* SPDX-License-Identifier: MIT */
/*
 * What the tools ask of the operating system, beside what POSIX and mingw-w64 both have: one file
 * of functions for each kind of system, system_posix.c and system_windows.c.
 */
#ifndef COMMON_SYSTEM_H
#define COMMON_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first call of main. A file over the shell's limit (ulimit -f) becomes an error instead of the
 * program's end. On Windows the standard streams pass bytes as they are, the console reads
 * UTF-8, and backslashes of arguments become slashes, the only separator that the tools know.
 */
void system_begin(int argc, char **argv);

/* Calls `handler` at the first Ctrl-C or request to end; the second one ends the program. */
void system_catch(void (*handler)(int));

/* Bytes that this process may have at most: the machine's memory, or a lower limit on the process.
 */
double system_memory(void);
/*
 * Limits this process's own memory to `bytes` and the stacks of the threads, where the system can.
 * `threads` as in qsim_ctx_options.
 */
void system_limit_memory(double bytes, int32_t threads);
/* The most memory that this process has had, in bytes; 0: unknown. */
int64_t system_peak_memory(void);

/* Makes a folder; 0, or -1 with errno. */
int system_make_folder(const char *path);
/* Removes a folder that is empty. */
void system_remove_folder(const char *path);
/* May files be made in this folder? errno says why not. */
bool system_may_write_into(const char *folder);
/* Do both names mean the same existing file? */
bool system_same_file(const char *a, const char *b);

/* Whether a name fits a pattern of the shell: *, ?, [abc], [a-z], [!a]. */
bool system_matches(const char *pattern, const char *name);
/*
 * The files and folders whose paths fit the pattern, sorted, NULL after the last, to be freed by
 * folder_free; NULL: none. Names that begin with a dot are found only by a pattern that does.
 */
char **system_find(const char *pattern);

#endif
