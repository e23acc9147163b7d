/* SPDX-License-Identifier: MIT */
/*
 * A model and its external data, replaced while each system call on files fails, once or from then
 * on, or ends the process: what can be loaded is the old model with the old data, or the new one
 * with the new data, and saving again leaves those two files alone.
 */
#define _GNU_SOURCE
#include "folder_count.h"
#include "test.h"

#include <qsim/model.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "save-pairs"
#define PATH   FOLDER "/m.onnx"
#define COUNT  2000

/* ---- calls that fail ---- */

enum { ONCE, FROM_THEN_ON, KILLED, MODES };
static long calls, at; /* the call that fails, counted from 1; 0: none */
static int mode;
static long closes, closed_badly; /* the same of closing a file, which is reported late */

static int fails(void) {
    calls++;
    if (!at || (mode == FROM_THEN_ON ? calls < at : calls != at))
        return 0;
    if (mode == KILLED)
        _exit(9);
    errno = EIO;
    return 1;
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    return fails() ? -1 : (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return fails() ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int unlink(const char *path) {
    return fails() ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int fsync(int fd) {
    return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t write(int fd, const void *data, size_t size) {
    return fails() ? -1 : (ssize_t)syscall(SYS_write, fd, data, size);
}

int close(int fd) {
    const int code = (int)syscall(SYS_close, fd);
    if (++closes != closed_badly)
        return code;
    errno = EIO;
    return -1;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const unsigned how = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, unsigned) : 0;
    va_end(more);
    return fails() ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, how);
}

/* ---- */

/* Two constants, every element of which is `value`. */
static qsim_model *model(float value) {
    float w[COUNT];
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e = {0};
    for (int i = 0; i < COUNT; i++)
        w[i] = value;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2000]");
    qsim_builder_constant_as(b, "v", "float[2000]", w);
    qsim_builder_constant_as(b, "w", "float[2000]", w);
    qsim_builder_node(b, "", "Add", "", "x,v", "s");
    qsim_builder_node(b, "", "Add", "", "s,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    return m;
}

static int save(const qsim_model *m, int32_t flags) {
    const qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_EXTERNAL | flags};
    return qsim_model_save(m, PATH, &o, NULL);
}

/* The value of every element of the saved model; -1: it cannot be loaded, or elements differ. */
static float loaded(void) {
    qsim_model *m = NULL;
    qsim_value_info v = {.struct_size = sizeof(v)};
    float found = -1;
    int constants = 0;
    if (qsim_model_load(NULL, PATH, NULL, &m, NULL))
        return -1;
    for (int32_t i = 0; i < qsim_model_value_count(m); i++) {
        if (qsim_model_value(m, i, &v) || !v.data)
            continue;
        const float *w = v.data;
        found = constants++ ? found : w[0];
        for (size_t k = 0; k < COUNT; k++)
            found = w[k] == found ? found : -2;
    }
    qsim_model_free(m);
    return constants == 2 ? found : -1;
}

static void clear(void) {
    char path[300];
    DIR *d = opendir(FOLDER);
    for (struct dirent *e; d && (e = readdir(d));)
        if (snprintf(path, sizeof(path), FOLDER "/%s", e->d_name) > 0 && e->d_name[0] != '.')
            unlink(path);
    if (d)
        closedir(d);
}

/* The code of saving with call `which` failing; -1: killed. */
static int save_with(const qsim_model *m, long which, int how) {
    int status = 0, code = -1;
    calls = 0;
    mode = how;
    at = which;
    if (how != KILLED) {
        code = save(m, QSIM_SAVE_REPLACE);
        at = 0;
        return code;
    }
    const pid_t child = fork();
    if (child == 0)
        _exit(save(m, QSIM_SAVE_REPLACE) == QSIM_OK ? 0 : 1);
    at = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status) == 9 ? -1 : WEXITSTATUS(status);
}

static void check(const qsim_model *old, const qsim_model *new, long which, int how) {
    clear();
    CHECK_INT(save(old, 0), QSIM_OK);
    const int code = save_with(new, which, how);
    const float is = loaded();
    if (is != 1 && is != 2)
        fprintf(stderr, "call %ld, mode %d: code %d, loaded %g\n", which, how, code, (double)is);
    CHECK(is == 1 || is == 2);
    CHECK(code != QSIM_OK || is == 2);
    if (how == ONCE && code != QSIM_OK)
        CHECK(is == 1 && folder_count(FOLDER) == 2);
    CHECK(folder_count(FOLDER) <= 4);
    CHECK_INT(save(new, QSIM_SAVE_REPLACE), QSIM_OK);
    CHECK(loaded() == 2);
    if (how != FROM_THEN_ON)
        CHECK(folder_count(FOLDER) <=
              3); /* a name that was for a moment only may be left by a kill */
}

/* A file that is at its place when closing it fails stays there, with its data. */
static void check_closing(const qsim_model *old, const qsim_model *new) {
    int failed = 0;
    for (long which = 1; which <= 12; which++) {
        clear();
        CHECK_INT(save(old, 0), QSIM_OK);
        closes = 0;
        closed_badly = which;
        const int code = save(new, QSIM_SAVE_REPLACE);
        closed_badly = 0;
        const float is = loaded();
        CHECK(is == 2 || (is == 1 && code != QSIM_OK));
        failed += code != QSIM_OK;
    }
    CHECK(failed >= 2); /* of the model and of its data */
}

/* ---- sizes ---- */

/* Two constants of n bytes, 1 2 3 ... and 2 3 4 ... */
static qsim_model *sized(size_t n) {
    uint8_t *bytes = malloc(n + 1);
    char type[32];
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    for (size_t i = 0; i <= n; i++)
        bytes[i] = (uint8_t)(i + 1);
    snprintf(type, sizeof(type), "uint8[%zu]", n);
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_constant_as(b, "v", type, bytes);
    qsim_builder_constant_as(b, "w", type, bytes + 1);
    qsim_builder_node(b, "", "Identity", "", "v", "y");
    qsim_builder_node(b, "", "Identity", "", "w", "z");
    qsim_builder_output_as(b, "y", NULL);
    qsim_builder_output_as(b, "z", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    qsim_builder_free(b);
    free(bytes);
    return m;
}

static long size_of(const char *path) {
    struct stat st;
    return stat(path, &st) ? -1 : (long)st.st_size;
}

/* Constants from 1024 bytes on stand outside, each at the next multiple of 64. */
static void check_outside(size_t n) {
    qsim_model *m = sized(n), *again = NULL;
    qsim_value_info v = {.struct_size = sizeof(v)};
    const long data = n < 1024 ? 0 : (long)((n + 63) / 64 * 64 + n);
    clear();
    CHECK_INT(save(m, 0), QSIM_OK);
    CHECK_INT(size_of(PATH ".data"), data);
    CHECK(n < 1024 ? size_of(PATH) > 2 * (long)n : size_of(PATH) < 1024);
    CHECK_INT(qsim_model_load(NULL, PATH, NULL, &again, NULL), QSIM_OK);
    CHECK_INT(qsim_model_bytes(again), size_of(PATH) + data);
    int found = 0;
    for (int32_t i = 0; i < qsim_model_value_count(again); i++) {
        if (qsim_model_value(again, i, &v) || !v.data)
            continue;
        const uint8_t *bytes = v.data, first = v.name[0] == 'v' ? 1 : 2;
        CHECK(v.bytes == n && bytes[0] == first && bytes[n - 1] == (uint8_t)(first + n - 1));
        found++;
    }
    CHECK_INT(found, 2);
    qsim_model_free(again);
    qsim_model_free(m);
}

/* Files have the bytes that memory has, whatever fits the buffer in front of the file. */
static void check_inside(size_t n) {
    static uint8_t memory[40000], file[40000];
    const qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_REPLACE};
    qsim_model *m = sized(n);
    size_t need = 0;
    CHECK_INT(qsim_model_save_memory(m, memory, sizeof(memory), &need, NULL), QSIM_OK);
    CHECK_INT(qsim_model_bytes(m), need);
    CHECK_INT(qsim_model_save(m, PATH, &o, NULL), QSIM_OK);
    FILE *f = fopen(PATH, "rb");
    CHECK(f && fread(file, 1, sizeof(file), f) == need && memcmp(file, memory, need) == 0);
    if (f)
        fclose(f);
    uint8_t *exact = malloc(need);
    memset(memory, 7, sizeof(memory));
    for (size_t room = need - 1; room <= need; room++) {
        CHECK_INT(qsim_model_save_memory(m, room < need ? memory : exact, room, &need, NULL),
                  QSIM_OK);
        CHECK(memory[0] == 7 && memory[need - 1] == 7); /* nothing, where not all has room */
    }
    CHECK(memcmp(exact, file, need) == 0);
    free(exact);
    qsim_model_free(m);
}

int main(void) {
    mkdir(FOLDER, 0777);
    for (size_t n = 1022; n <= 1026; n++)
        check_outside(n);
    for (size_t n = 1087; n <= 1089; n++)
        check_outside(n);
    for (size_t n = 16370; n <= 16386; n++) /* the buffer has 16384 bytes */
        check_inside(n);
    clear();
    qsim_model *old = model(1), *new = model(2);
    mkdir(FOLDER, 0777);
    CHECK_INT(save(old, 0), QSIM_OK);
    CHECK(loaded() == 1);
    calls = 0;
    CHECK_INT(save(new, QSIM_SAVE_REPLACE), QSIM_OK);
    const long all = calls;
    CHECK(loaded() == 2 && folder_count(FOLDER) == 2);
    CHECK(all > 10);
    for (long which = 1; which <= all; which++)
        for (int how = 0; how < MODES; how++)
            check(old, new, which, how);
    check_closing(old, new);
    for (int i = 0; i < 25; i++) { /* names are taken in turns */
        CHECK_INT(save(i % 2 ? old : new, QSIM_SAVE_REPLACE), QSIM_OK);
        CHECK(loaded() == (float)(2 - i % 2) && folder_count(FOLDER) == 2);
    }
    clear();
    rmdir(FOLDER);
    qsim_model_free(old);
    qsim_model_free(new);
    return test_done();
}
