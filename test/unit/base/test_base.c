/* SPDX-License-Identifier: MIT */
/* Errors, memory, options, SHA-256, threads, files. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "base/ctx.h"
#include "base/file.h"
#include "base/tree.h"
#include "test.h"

#include <qsim/base.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static qsim_ctx *ctx;

static void test_errors(void) {
    qsim_error e;
    char longer[2000], expected[16] = "caf\xc3\xa9\\x0a\\xff";
    qs_error_clear(&e);
    CHECK_INT(qs_fail(&e, QSIM_E_SHAPE, "%s", "caf\xc3\xa9\n\xff"), QSIM_E_SHAPE);
    CHECK_STR(e.message, expected);
    CHECK_INT(qs_fail(&e, QSIM_E_IO, "second"), QSIM_E_IO);
    CHECK_INT(e.code, QSIM_E_SHAPE); /* the first one wins */
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    qs_error_clear(&e);
    qs_fail(&e, QSIM_E_IO, "head %s tail", longer);
    CHECK_INT(strlen(e.message), sizeof(e.message) - 1);
    CHECK(strncmp(e.message, "head ", 5) == 0);
    CHECK(strstr(e.message, "...") != NULL);
}

static void test_arena(void) {
    qs_arena a;
    unsigned char *last = NULL;
    uint64_t seed = 7;
    qs_arena_init(&a, ctx);
    for (int i = 0; i < 3000; i++) {
        size_t n = test_random(&seed) % 900;
        unsigned char *p = i % 5 ? qs_arena_alloc(&a, n, 1) : qs_arena_alloc64(&a, n);
        CHECK(p != NULL && (uintptr_t)p % (i % 5 ? 16 : 64) == 0);
        for (size_t k = 0; k < n; k++)
            if (p[k])
                CHECK_FAIL("arena memory is zeroed");
        memset(p, 0xaa, n);
        last = p;
    }
    CHECK(last != NULL);
    CHECK(qs_arena_alloc(&a, SIZE_MAX / 2, 3) == NULL);
    CHECK(qs_arena_alloc64(&a, SIZE_MAX - 8) == NULL);
    qs_arena_free(&a);
}

/* Values of CPython's hash() of bytes, which is SipHash-1-3, under PYTHONHASHSEED=0. */
static void test_keyed_hash(void) {
    static const struct {
        const char *text;
        uint64_t hash;
    } cases[] = {{"a", 0x407448d2b89b1813u},
                 {"abcdefg", 0x6db12aae9070f506u},
                 {"abcdefgh", 0x3f7b849c0b8e35eau},
                 {"a name of a tensor", 0x97a35be307956c21u}};
    const qs_secret none = {{0, 0}};
    for (size_t i = 0; i < QS_COUNT(cases); i++)
        CHECK(qs_keyed_hash(&none, cases[i].text, strlen(cases[i].text)) == cases[i].hash);
    qsim_ctx *other;
    CHECK_INT(qsim_ctx_create(NULL, &other, NULL), QSIM_OK);
    CHECK(qs_keyed_hash(qs_ctx_secret(ctx), "a", 1) != qs_keyed_hash(qs_ctx_secret(other), "a", 1));
    qsim_ctx_free(other);
}

/* FIPS 180-4 examples ("abc", the 448-bit message) and the well-known digest of no bytes at all. */
static void test_sha256(void) {
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[65];
    qs_sha256 h;
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        qs_sha256_init(&h);
        qs_sha256_add(&h, cases[i].text, strlen(cases[i].text));
        qs_sha256_hex(&h, hex);
        CHECK_STR(hex, cases[i].hex);
    }
    qs_sha256_init(&h); /* a million 'a', in uneven pieces */
    char a[777];
    memset(a, 'a', sizeof(a));
    for (size_t left = 1000000; left;) {
        size_t n = left < sizeof(a) ? left : sizeof(a);
        qs_sha256_add(&h, a, n);
        left -= n;
    }
    qs_sha256_hex(&h, hex);
    CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    uint64_t seed = 3; /* the CPU's instructions against the portable form */
    for (size_t n = 0; n < sizeof(a); n += 1 + n / 9) {
        char portable[65];
        qs_sha256 plain;
        for (size_t i = 0; i < n; i++)
            a[i] = (char)test_random(&seed);
        qs_sha256_init(&h);
        plain = h;
        plain.fast = 0;
        qs_sha256_add(&h, a, n);
        qs_sha256_add(&plain, a, n);
        qs_sha256_hex(&h, hex);
        qs_sha256_hex(&plain, portable);
        CHECK_STR(hex, portable);
    }
}

/* Checks the numbers of instruction sets: they have no gap, and AUTO is none of them. */
static void test_isas(void) {
    qsim_ctx *c = NULL;
    int32_t count = 0;
    while (qsim_isa_name(count))
        count++;
    CHECK_INT(count, QS_ISA_COUNT);
    CHECK(!qsim_isa_name(-1));
    CHECK_STR(qsim_isa_name(QSIM_ISA_AMX), "amx");
    CHECK_STR(qsim_isa_name(QSIM_ISA_NEONI8MM), "neoni8mm");
    CHECK_INT(qsim_isa_available(QSIM_ISA_C), 1);
    CHECK_INT(qsim_isa_available(count), 0);
    CHECK_INT(qsim_ctx_create(NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_isa_available(qsim_ctx_isa(c)), 1);
    /* Each of these computes what the one before does, faster. */
    static const int32_t x86[] = {QSIM_ISA_C, QSIM_ISA_AVX2, QSIM_ISA_AVXVNNI, QSIM_ISA_AVX512VNNI,
                                  QSIM_ISA_AMX};
    for (size_t i = 0, best = 0; i < 5 && !qsim_isa_available(QSIM_ISA_NEON); i++) {
        best = qsim_isa_available(x86[i]) ? i : best;
        CHECK(i < 4 || qsim_ctx_isa(c) == x86[best]);
    }
    qsim_ctx_free(c);
}

static void test_options(void) {
    struct {
        qsim_ctx_options o;
        int32_t newer;
    } big = {.o = {.struct_size = sizeof(big), .threads = 1}};
    qsim_ctx *c = NULL;
    qsim_error e;
    CHECK_INT(qsim_ctx_create(&big.o, &c, &e), QSIM_OK);
    CHECK_INT(qsim_ctx_threads(c), 1);
    qsim_ctx_free(c);
    big.newer = 1;
    CHECK_INT(qsim_ctx_create(&big.o, &c, &e), QSIM_E_VERSION);
    big.o.struct_size = 3;
    CHECK_INT(qsim_ctx_create(&big.o, &c, &e), QSIM_E_ARGUMENT);
    qsim_ctx_options older = {.struct_size = offsetof(qsim_ctx_options, isa), .threads = 2};
    older.isa = 99; /* beyond the ISAs that this caller's struct_size covers */
    CHECK_INT(qsim_ctx_create(&older, &c, &e), QSIM_OK);
#ifdef QS_NO_THREADS
    CHECK_INT(qsim_ctx_threads(c), 1);
#else
    CHECK_INT(qsim_ctx_threads(c), 2);
#endif
    qsim_ctx_free(c);
}

/* Info structs of callers older and newer than the library. */
static void test_give(void) {
    struct {
        size_t struct_size;
        int32_t a, b;
    } ours = {0, 1, 2}, theirs = {sizeof(size_t) + sizeof(int32_t), 7, 8};
    struct {
        size_t struct_size;
        int32_t a, b, c, d;
    } newer = {sizeof(newer), 7, 7, 7, 7};
    CHECK_INT(qs_give(&theirs, &ours, sizeof(ours)), QSIM_OK);
    CHECK(theirs.struct_size == sizeof(size_t) + sizeof(int32_t) && theirs.a == 1 && theirs.b == 8);
    CHECK_INT(qs_give(&newer, &ours, sizeof(ours)), QSIM_OK);
    CHECK(newer.struct_size == sizeof(newer) && newer.a == 1 && newer.b == 2);
    CHECK(newer.c == 0 && newer.d == 0);
    theirs.struct_size = 0;
    CHECK_INT(qs_give(&theirs, &ours, sizeof(ours)), QSIM_E_ARGUMENT);
    CHECK_INT(qs_give(NULL, &ours, sizeof(ours)), QSIM_E_ARGUMENT);
}

static void test_clock(void) {
    uint64_t before = qs_clock_ns(), after = qs_clock_ns();
    CHECK(before > 0 && after >= before);
}

struct counted {
    atomic_int seen[1000];
    atomic_int total;
};

static void count_task(void *arg, size_t i) {
    struct counted *c = arg;
    atomic_fetch_add(&c->seen[i], 1);
    atomic_fetch_add(&c->total, 1);
}

static void nested_task(void *arg, size_t i) {
    (void)i;
    qs_parallel(ctx, 10, count_task, arg); /* the pool is busy: this job runs inline */
}

static void test_threads(void) {
    static struct counted c;
    for (int round = 0; round < 200; round++)
        qs_parallel(ctx, 1000, count_task, &c);
    CHECK_INT(atomic_load(&c.total), 200 * 1000);
    for (int i = 0; i < 1000; i++)
        if (atomic_load(&c.seen[i]) != 200)
            CHECK_FAIL("each task runs once");
    atomic_store(&c.total, 0);
    qs_parallel(ctx, 20, nested_task, &c);
    CHECK_INT(atomic_load(&c.total), 200);
}

/* Many short jobs of different sizes: a worker late for one job is in time for the next. */
static void test_short_jobs(void) {
    for (size_t round = 0; round < 20000; round++) {
        static struct counted c;
        size_t n = 2 + round * 7 % 11;
        memset(&c, 0, sizeof(c));
        qs_parallel(ctx, n, count_task, &c);
        for (size_t i = 0; i < n; i++)
            if (atomic_load(&c.seen[i]) != 1)
                CHECK_FAIL("each task has run once when the job is over");
    }
}

static void write_file(const char *path, const char *text, bool replace, int expected) {
    qs_out out;
    qsim_error e;
    qs_error_clear(&e);
    int code = qs_out_open(ctx, path, replace, &out, &e);
    if (code == QSIM_OK) {
        qs_out_write(&out, text, strlen(text));
        code = qs_out_commit(&out, &e);
    }
    CHECK_INT(code, expected);
}

static void check_file(const char *path, const char *text) {
    qs_map m;
    qsim_error e;
    qs_error_clear(&e);
    for (int copy = 0; copy < 2; copy++) {
        CHECK_INT(qs_map_open(ctx, path, copy, &m, &e), QSIM_OK);
        CHECK(m.size == strlen(text) && memcmp(m.data, text, m.size) == 0);
        qs_map_close(ctx, &m);
    }
}

static void test_files(void) {
    char folder[] = "qs_test_XXXXXX", path[64], other[64];
    qs_out out;
    qs_map m;
    qsim_error e;
    if (!mkdtemp(folder)) {
        CHECK_FAIL("mkdtemp");
        return;
    }
    snprintf(path, sizeof(path), "%s/a", folder);
    write_file(path, "one", false, QSIM_OK);
    write_file(path, "two", false, QSIM_E_EXISTS);
    check_file(path, "one");
    write_file(path, "three", true, QSIM_OK);
    check_file(path, "three");
    qs_error_clear(&e);
    CHECK_INT(qs_out_open(ctx, path, true, &out, &e), QSIM_OK);
    qs_out_write(&out, "half", 4);
    qs_out_abort(&out);
    check_file(path, "three"); /* an abandoned write leaves the old file */
    write_file("nowhere/at/all", "x", true, QSIM_E_IO);
    CHECK_INT(qs_map_open(ctx, folder, false, &m, &e), QSIM_E_IO);
    qs_error_clear(&e);
    CHECK_INT(qs_map_open(ctx, "", false, &m, &e), QSIM_E_IO);
    CHECK_STR(e.message, "the name of a file is empty");
    CHECK_INT(qs_map_open_below(ctx, folder, "a", false, &m, &e), QSIM_OK);
    qs_map_close(ctx, &m);
    static const char *const bad[] = {"../a", "/etc/passwd", "",         ".",       "b/../a",
                                      "a/",   "C:\\x",       "http://x", "nothere", "a\nb"};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        qs_error_clear(&e);
        CHECK(qs_map_open_below(ctx, folder, bad[i], false, &m, &e) < 0);
        CHECK(e.message[0] != 0);
    }
    snprintf(other, sizeof(other), "%s/link", folder);
    CHECK_INT(symlink("/etc/passwd", other), 0);
    CHECK(qs_map_open_below(ctx, folder, "link", false, &m, &e) < 0);
    unlink(other);
    CHECK_INT(mkfifo(other, 0600), 0);
    CHECK(qs_map_open_below(ctx, folder, "link", false, &m, &e) < 0); /* a FIFO does not hang */
    unlink(other);
    unlink(path);
    CHECK_INT(rmdir(folder), 0); /* no temporary file is left */
}

/*
 * What a process leaves that is killed between the two calls that replace a file goes when the file
 * is replaced again. Processes that replace a file at once do not fail, and the file is whole.
 */
static void test_replaced_again(void) {
    char folder[] = "qs_again_XXXXXX", path[64], left[80], text[2][32] = {"short", "a longer text"};
    int status = 0;
    if (!mkdtemp(folder)) {
        CHECK_FAIL("mkdtemp");
        return;
    }
    snprintf(path, sizeof(path), "%s/a", folder);
    snprintf(left, sizeof(left), "%s.qs-new", path);
    write_file(path, "old", false, QSIM_OK);
    write_file(left, "what was left", false, QSIM_OK);
    write_file(path, "new", true, QSIM_OK);
    check_file(path, "new");
#ifdef O_TMPFILE
    int probe = open(folder, O_TMPFILE | O_RDWR, 0600);
    CHECK(probe < 0 || access(left, F_OK) != 0);
    close(probe);
#endif
    unlink(left);
    pid_t child = fork();
    for (int i = 0; i < 200; i++)
        write_file(path, text[child == 0], true, QSIM_OK);
    if (child == 0)
        _exit(test_failures > 0);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    qs_map m;
    CHECK_INT(qs_map_open(ctx, path, true, &m, NULL), QSIM_OK);
    CHECK(m.size == strlen(text[0]) || m.size == strlen(text[1]));
    qs_map_close(ctx, &m);
    unlink(path);
    CHECK_INT(rmdir(folder), 0);
}

/* A process killed in the middle of writing leaves the old file, and nothing beside it where the
 * file system has nameless files. */
static void test_killed_writer(void) {
    char folder[] = "qs_killed_XXXXXX", path[64];
    if (!mkdtemp(folder)) {
        CHECK_FAIL("mkdtemp");
        return;
    }
    snprintf(path, sizeof(path), "%s/a", folder);
    write_file(path, "old", false, QSIM_OK);
    pid_t child = fork();
    if (child == 0) {
        qs_out out;
        qsim_error e;
        qs_error_clear(&e);
        if (qs_out_open(ctx, path, true, &out, &e) == QSIM_OK)
            qs_out_write(&out, "new", 3);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    check_file(path, "old");
    unlink(path);
#ifdef O_TMPFILE
    int probe = open(folder, O_TMPFILE | O_RDWR, 0600);
    if (probe >= 0)
        CHECK_INT(rmdir(folder), 0); /* nothing is left */
    close(probe);
#endif
}

/* Locations that models and packages name, on either side of each rule. */
static void test_locations(void) {
    static const struct {
        const char *location, *fault; /* a part of what is wrong; NULL: nothing */
    } cases[] = {
        {"a", NULL},           {"a/b", NULL},           {"...", NULL},         {".a", NULL},
        {"a.", NULL},          {"..a/b..", NULL},       {"a b", NULL},         {"~", NULL},
        {"\x80", NULL},        {"", "empty"},           {"/a", "absolute"},    {"\\a", "absolute"},
        {"a\\b", "backslash"}, {"c:a", "drive"},        {"a\x1f", "control"},  {"\x01", "control"},
        {"a\x7f", "control"},  {".", "component"},      {"..", "component"},   {"./a", "component"},
        {"a/.", "component"},  {"a/../b", "component"}, {"a//b", "component"}, {"a/", "component"},
    };
    static char longest[PATH_MAX + 1];
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        const char *fault = qs_location_fault(cases[i].location);
        if (!fault != !cases[i].fault || (fault && !strstr(fault, cases[i].fault)))
            CHECK_FAIL(cases[i].location);
    }
    for (size_t n = PATH_MAX - 2; n <= PATH_MAX; n++) {
        memset(longest, 'a', n);
        longest[n] = 0;
        CHECK_INT(qs_location_fault(longest) == NULL, n < PATH_MAX);
    }
}

/* Whether a message ends with a reason of the system. */
static bool says(const qsim_error *e, int reason) {
    const char *text = strerror(reason), *at = strstr(e->message, text);
    return at && strlen(at) == strlen(text);
}

/* Names as long as the system takes, and longer; what a file that cannot be made names. */
static void test_long_names(void) {
    char name[NAME_MAX + 2], path[NAME_MAX + 16];
    qs_out out;
    qs_map m;
    for (size_t n = NAME_MAX - 1; n <= NAME_MAX + 1; n++) {
        memset(name, 'n', n);
        name[n] = 0;
        qsim_error e = {0};
        CHECK_INT(qs_map_open_below(ctx, "", name, false, &m, &e), QSIM_E_IO);
        CHECK(says(&e, n <= NAME_MAX ? ENOENT : ENAMETOOLONG));
        snprintf(path, sizeof(path), "%s/a", name);
        qs_error_clear(&e);
        CHECK_INT(qs_map_open_below(ctx, ".", path, false, &m, &e), QSIM_E_IO);
        CHECK(says(&e, n <= NAME_MAX ? ENOENT : ENAMETOOLONG));
    }
    qsim_error e = {0}, f = {0}, g = {0};
    char gone[] = "qs_gone_XXXXXX"; /* no folder is named, and this one does not exist any more */
    const int here = open(".", O_RDONLY);
    CHECK(mkdtemp(gone) && chdir(gone) == 0);
    snprintf(path, sizeof(path), "../%s", gone);
    CHECK_INT(rmdir(path), 0);
    CHECK_INT(qs_out_open(ctx, "a", false, &out, &e), QSIM_E_IO);
    CHECK(strstr(e.message, "cannot create a file in its folder") && says(&e, ENOENT));
    CHECK(here >= 0 && fchdir(here) == 0);
    close(here);
    CHECK_INT(qs_out_open(ctx, "nowhere/a", false, &out, &f), QSIM_E_IO);
    CHECK(strstr(f.message, "the folder 'nowhere' does not exist") != NULL);
    CHECK_INT(qs_out_open(ctx, "/dev/null/a", false, &out, &g), QSIM_E_IO);
    CHECK(strstr(g.message, "cannot create a file in its folder") && says(&g, ENOTDIR));
}

/* What reading and writing say where the system refuses, and a cancellation that is withdrawn. */
static void test_refusals(void) {
    qs_out out;
    qs_map m;
    qsim_error e = {0}, f = {0}, g = {0};
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_ctx *other = NULL;
    CHECK_INT(qs_map_open_below(ctx, "nowhere", "a", false, &m, &e), QSIM_E_IO);
    CHECK(strstr(e.message, "nowhere: cannot open the folder") && says(&e, ENOENT));
    CHECK_INT(qs_out_open(ctx, ".", true, &out, &f), QSIM_E_IO);
    CHECK(strstr(f.message, "is a directory") != NULL);
#ifdef __linux__
    if (access("/proc/self/mem", R_OK) == 0) { /* nothing is mapped at its start */
        qs_error_clear(&e);
        CHECK_INT(qs_map_open(ctx, "/proc/self/mem", false, &m, &e), QSIM_E_IO);
        CHECK(strstr(e.message, "cannot read") && says(&e, EIO));
    }
#endif
    CHECK_INT(qsim_ctx_create(&o, &other, NULL), QSIM_OK);
    for (int stopped = 0; stopped < 2; stopped++) {
        char name[] = "qs_stopped_XXXXXX";
        const int fd = mkstemp(name);
        close(fd);
        unlink(name);
        CHECK_INT(qs_out_open(other, name, false, &out, NULL), QSIM_OK);
        qsim_ctx_cancel(other, stopped);
        CHECK_INT(qs_out_write(&out, "half", 4), stopped ? QSIM_E_CANCELLED : QSIM_OK);
        qsim_ctx_cancel(other, 0);
        CHECK_INT(qs_out_write(&out, "more", 4), stopped ? QSIM_E_CANCELLED : QSIM_OK);
        CHECK_INT(qs_out_commit(&out, &g), stopped ? QSIM_E_CANCELLED : QSIM_OK);
        CHECK_INT(unlink(name), stopped ? -1 : 0);
    }
    qsim_ctx_free(other);
}

/* Writes files of a tree, and commits or aborts it; the code of what failed first. */
static int write_tree(const char *path, bool replace, const char *const *names, size_t count,
                      bool commit, qsim_error *e) {
    qs_tree t;
    qs_error_clear(e);
    int code = qs_tree_open(ctx, path, replace, &t, e);
    if (code)
        return code;
    for (size_t i = 0; i < count && !code; i++)
        code = qs_tree_write(&t, names[i], names[i], strlen(names[i]), e);
    if (code || !commit)
        qs_tree_abort(&t, names, count);
    else
        code = qs_tree_commit(&t, names, count, e);
    return code;
}

/* The longest folder, and names at the length of the longest path, are refused and leave nothing.
 */
static void check_long_names(const char *path) {
    static char text[PATH_MAX + 1];
    const char *const names[] = {text};
    qsim_error e;
    for (size_t n = NAME_MAX; n <= NAME_MAX + 1; n++) {
        memset(text, 'n', n);
        strcpy(text + n, "/x");
        CHECK_INT(write_tree(path, false, names, 1, false, &e),
                  n <= NAME_MAX ? QSIM_OK : QSIM_E_IO);
        CHECK(n <= NAME_MAX || says(&e, ENAMETOOLONG));
    }
    for (size_t n = PATH_MAX - 1; n <= PATH_MAX; n++) {
        memset(text, 'n', n);
        text[n] = 0;
        CHECK_INT(write_tree(path, false, names, 1, false, &e), QSIM_E_IO);
    }
}

static void test_trees(void) {
    static const char *const names[] = {"a", "b/c", "b/d/e"}, *const twice[] = {"a", "b/c", "a"};
    char folder[] = "qs_trees_XXXXXX", path[64], file[80];
    qsim_error e;
    if (!mkdtemp(folder)) {
        CHECK_FAIL("mkdtemp");
        return;
    }
    snprintf(path, sizeof(path), "%s/t//", folder);
    CHECK_INT(write_tree(path, false, names, 3, false, &e), QSIM_OK);
    CHECK_INT(write_tree(path, false, twice, 3, true, &e), QSIM_E_IO);
    CHECK(says(&e, EEXIST));
    check_long_names(path);
    CHECK_INT(mkdir(path, 0777), 0); /* nothing is left there; an empty folder is taken */
    CHECK_INT(write_tree(path, false, names, 3, true, &e), QSIM_OK);
    snprintf(file, sizeof(file), "%s/t/b/d/e", folder);
    check_file(file, "b/d/e");
    CHECK_INT(write_tree(path, false, names, 3, true, &e), QSIM_E_EXISTS);
    CHECK_INT(write_tree(path, true, names, 3, true, &e), QSIM_OK);
    CHECK_INT(write_tree("/", false, names, 3, true, &e), QSIM_E_EXISTS);
    CHECK_INT(write_tree("", true, names, 3, true, &e), QSIM_E_IO);
    for (int replace = 0; replace <= 1; replace++) { /* a file */
        CHECK_INT(write_tree(file, replace, names, 3, true, &e),
                  replace ? QSIM_E_IO : QSIM_E_EXISTS);
        CHECK(strstr(e.message, "exists and is not a folder") != NULL);
    }
    CHECK_INT(write_tree("nowhere/at/all", true, names, 3, true, &e), QSIM_E_IO);
    /* A file where a folder is, and a folder where a file is: nothing is replaced. */
    static const char *const over[][2] = {{"new", "b/d"}, {"new", "a/x"}};
    for (int i = 0; i < 2; i++) {
        CHECK_INT(write_tree(path, true, over[i], 2, true, &e), QSIM_E_IO);
        CHECK(says(&e, i ? ENOTDIR : EISDIR));
        snprintf(file, sizeof(file), "%s/t/new", folder);
        CHECK(access(file, F_OK) != 0);
    }
    static const char *const made[] = {"a", "b/c", "b/d/e"}, *const folders[] = {"b/d", "b"};
    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof(file), "%s/t/%s", folder, made[i]);
        CHECK_INT(unlink(file), 0);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof(file), "%s/t/%s", folder, folders[i]);
        CHECK_INT(rmdir(file), 0);
    }
    snprintf(file, sizeof(file), "%s/t", folder);
    CHECK_INT(rmdir(file), 0); /* no temporary folder is left */
    CHECK_INT(rmdir(folder), 0);
}

/* Temporary names differ from call to call, so that writers do not meet again and again. */
static void test_letters(void) {
    char letters[16][8] = {{0}};
    bool differ = false;
    for (int i = 0; i < 16; i++) {
        uint64_t state = 0;
        qs_fresh_letters(letters[i], &state);
        CHECK_INT(strspn(letters[i], "abcdefghijklmnopqrstuvwxyz"), 6);
        differ = differ || strcmp(letters[i], letters[0]) != 0;
    }
    CHECK(differ);
}

int main(void) {
    test_give();
    test_letters();
    test_locations();
    test_clock();
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 3};
    qsim_error e;
    if (qsim_ctx_create(&o, &ctx, &e))
        return 1;
    test_errors();
    test_arena();
    test_keyed_hash();
    test_sha256();
    test_isas();
    test_options();
    test_threads();
    test_short_jobs();
    test_files();
    test_long_names();
    test_refusals();
    test_trees();
    test_replaced_again();
    test_killed_writer();
    qsim_ctx_free(ctx);
    return test_done();
}
