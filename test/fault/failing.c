/* SPDX-License-Identifier: MIT */
/*
 * Linked into the tool, this makes it a server of failures: for each command on descriptor 100 it
 * forks before main, and in the child the n-th request fails, or kills the process. verbs.py sends
 * the commands and judges the files that are left.
 *
 *   command  KIND AT STICKY ERRNO  KIND: m memory, t threads, s system calls; AT counts from 1;
 *                                  STICKY 1: all later ones fail, too; ERRNO 0: SIGKILL instead;
 *                                  below 0: that signal instead
 *   answer   STATUS COUNT          status of waitpid; number of requests of that kind
 *
 * The child's standard output and error go to ../out and ../err.
 *
 * Memory: malloc and related functions are defined here, so that other libraries' requests fail,
 * too. Under a sanitizer, which defines them itself, the linker wraps the calls of our own objects.
 * System calls: by a seccomp filter the kernel sends SIGSYS for those that concern files, whichever
 * code makes them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define COMMANDS 100
#define ANSWERS  101

static struct {
    char kind;
    long at;
    int sticky, error;
} fail;
static atomic_long *seen; /* shared with the server */

/* Does this request fail? */
static bool hit(char kind) {
    if (kind != fail.kind)
        return false;
    const long n = atomic_fetch_add(seen, 1) + 1;
    if (n != fail.at && !(fail.sticky && n > fail.at))
        return false;
    if (fail.error > 0)
        return true;
    kill(getpid(), fail.error ? -fail.error : SIGKILL);
    return false;
}

/* ---- memory and threads ---- */

#ifdef WRAPPED
#define REAL(name)  __real_##name
#define OURS(name)  __wrap_##name
#define DUPLICATE() /* strdup and strndup are wrapped, too */
void *__real_malloc(size_t n);
void *__real_calloc(size_t a, size_t b);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t a, size_t b);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
int __wrap_posix_memalign(void **p, size_t align, size_t n);
int __wrap_posix_memalign(void **p, size_t align, size_t n) {
    return hit('m') ? ENOMEM : __real_posix_memalign(p, align, n);
}
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s) {
    return hit('m') ? NULL : __real_strdup(s);
}
#else
#define REAL(name)         real_##name
#define OURS(name)         name
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t a, size_t b);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);
#define real_malloc        __libc_malloc
#define real_calloc        __libc_calloc
#define real_realloc       __libc_realloc
#define real_aligned_alloc __libc_memalign
int posix_memalign(void **p, size_t align, size_t n) {
    *p = hit('m') ? NULL : __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}
void *memalign(size_t align, size_t n);
void *memalign(size_t align, size_t n) {
    return hit('m') ? NULL : __libc_memalign(align, n);
}
#endif

static void *refuse(void) {
    errno = ENOMEM;
    return NULL;
}
void *OURS(malloc)(size_t n) {
    return hit('m') ? refuse() : REAL(malloc)(n);
}
void *OURS(calloc)(size_t a, size_t b) {
    return hit('m') ? refuse() : REAL(calloc)(a, b);
}
void *OURS(realloc)(void *p, size_t n) {
    return n && hit('m') ? refuse() : REAL(realloc)(p, n);
}
void *OURS(aligned_alloc)(size_t align, size_t n) {
    return hit('m') ? refuse() : REAL(aligned_alloc)(align, n);
}

typedef void *start_fn(void *);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, start_fn *f, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, start_fn *f, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, start_fn *f, void *arg) {
    return hit('t') ? EAGAIN : __real_pthread_create(t, a, f, arg);
}

/* ---- system calls ---- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
long failing_syscall(long n, long a, long b, long c, long d, long e, long f);
extern const char failing_syscall_end[];
__asm__(".text\n.globl failing_syscall\n.type failing_syscall, @function\nfailing_syscall:\n"
        "endbr64\n\tmov %rdi, %rax\n\tmov %rsi, %rdi\n\tmov %rdx, %rsi\n\tmov %rcx, %rdx\n"
        "\tmov %r8, %r10\n\tmov %r9, %r8\n\tmov 8(%rsp), %r9\n\tsyscall\n"
        ".globl failing_syscall_end\nfailing_syscall_end:\n\tret\n"
        ".size failing_syscall, .-failing_syscall\n");
#define RESULT(u) (u)->uc_mcontext.gregs[REG_RAX]
#define ARGS(u)                                                                                    \
    {                                                                                              \
        (u)->uc_mcontext.gregs[REG_RDI], (u)->uc_mcontext.gregs[REG_RSI],                          \
            (u)->uc_mcontext.gregs[REG_RDX], (u)->uc_mcontext.gregs[REG_R10],                      \
            (u)->uc_mcontext.gregs[REG_R8], (u)->uc_mcontext.gregs[REG_R9]                         \
    }

static void on_call(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    ucontext_t *u = context;
    const long a[6] = ARGS(u), n = info->si_syscall;
    (void)number;
    long result = -(long)fail.error;
    const bool failed = hit('s');
    if (!failed || n == SYS_close) /* close always closes the descriptor */
        result = failing_syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
    RESULT(u) = failed ? -(long)fail.error : result;
    errno = saved;
}

#define LOAD(member)                                                                               \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, member))
#define ARGUMENT(i)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                                             \
             (unsigned)(offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (i)))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define TRAP  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
/* Traps one system call, in two instructions. */
#define CALL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), TRAP

static bool watch_calls(void) {
    const uintptr_t own = (uintptr_t)failing_syscall_end;
    struct sock_filter code[] = {
        /* Allow the call of the handler itself. */
        LOAD(instruction_pointer), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)own, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 (unsigned)offsetof(struct seccomp_data, instruction_pointer) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(own >> 32), 0, 1), ALLOW,
        /* Allow anonymous mappings and writes to standard error, trap other ones. */
        LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4), ARGUMENT(4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 1), ALLOW, TRAP,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 4), ARGUMENT(0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1), ALLOW, TRAP, CALL(open), CALL(openat),
        CALL(read), CALL(pread64), CALL(readv), CALL(pwrite64), CALL(writev), CALL(close),
        CALL(fsync), CALL(fdatasync), CALL(link), CALL(linkat), CALL(rename), CALL(renameat),
        CALL(renameat2), CALL(unlink), CALL(unlinkat), CALL(mkdir), CALL(mkdirat), CALL(rmdir),
        CALL(stat), CALL(fstat), CALL(lstat), CALL(newfstatat), CALL(statx), CALL(lseek),
        CALL(ftruncate), CALL(fchmod), CALL(getdents64), CALL(access), CALL(faccessat),
        CALL(faccessat2), CALL(dup), CALL(readlink), ALLOW};
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool watch_calls(void) {
    return false;
}
#endif

/* ---- the server ---- */

static void send_to(const char *path, int descriptor) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || dup2(fd, descriptor) < 0)
        _exit(125);
    close(fd);
}

__attribute__((constructor)) static void serve(void) {
    char line[64];
    ssize_t n;
    if (!getenv("QSIM_FAILING"))
        return;
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (seen != MAP_FAILED && (n = read(COMMANDS, line, sizeof(line) - 1)) > 0) {
        int status = 0;
        line[n] = 0;
        char kind;
        long at;
        int sticky, error;
        if (sscanf(line, "%c %ld %d %d", &kind, &at, &sticky, &error) != 4)
            _exit(125);
        atomic_store(seen, 0);
        const pid_t child = fork();
        if (child == 0) {
            send_to("../out", 1);
            send_to("../err", 2);
            close(COMMANDS);
            close(ANSWERS);
            alarm(120);
            if (kind == 's' && !watch_calls())
                _exit(77);
            fail.at = at;
            fail.sticky = sticky;
            fail.error = error;
            fail.kind = kind;
            return; /* to main */
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            _exit(125);
        n = snprintf(line, sizeof(line), "%d %ld\n", status, atomic_load(seen));
        if (write(ANSWERS, line, (size_t)n) != n)
            _exit(125);
    }
    _exit(0);
}

/* After main neither the program nor a sanitizer gets failures. */
__attribute__((destructor)) static void done(void) {
    fail.kind = 0;
}
