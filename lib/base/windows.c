/* SPDX-License-Identifier: MIT */
/* What posix.h lists, for Windows. */
#ifdef _WIN32
#define _CRT_RAND_S /* rand_s */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <io.h>
#include <math.h>
#endif

#include "base/base.h"

#ifdef _WIN32
#include "base/posix.h"

/* UTF-16 units of a path, its \\?\ included. */
#define LONGEST 32768

typedef struct wide {
    wchar_t text[LONGEST];
} wide;

static int fail(int code) {
    errno = code;
    return -1;
}

static int fail_last(void) {
    static const struct {
        DWORD error;
        int code;
    } known[] = {
        {ERROR_FILE_NOT_FOUND, ENOENT},      {ERROR_PATH_NOT_FOUND, ENOENT},
        {ERROR_INVALID_NAME, ENOENT},        {ERROR_BAD_PATHNAME, ENOENT},
        {ERROR_INVALID_DRIVE, ENOENT},       {ERROR_BAD_NETPATH, ENOENT},
        {ERROR_FILE_EXISTS, EEXIST},         {ERROR_ALREADY_EXISTS, EEXIST},
        {ERROR_ACCESS_DENIED, EACCES},       {ERROR_WRITE_PROTECT, EROFS},
        {ERROR_SHARING_VIOLATION, EBUSY},    {ERROR_LOCK_VIOLATION, EBUSY},
        {ERROR_USER_MAPPED_FILE, EBUSY},     {ERROR_DISK_FULL, ENOSPC},
        {ERROR_HANDLE_DISK_FULL, ENOSPC},    {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
        {ERROR_DIRECTORY, ENOTDIR},          {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
        {ERROR_TOO_MANY_OPEN_FILES, EMFILE}, {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
        {ERROR_COMMITMENT_LIMIT, ENOMEM},    {ERROR_BROKEN_PIPE, EPIPE},
        {ERROR_INVALID_HANDLE, EBADF},       {ERROR_NOT_SAME_DEVICE, EXDEV},
    };
    const DWORD error = GetLastError();
    for (size_t i = 0; i < QS_COUNT(known); i++)
        if (known[i].error == error)
            return fail(known[i].code);
    return fail(EIO);
}

static HANDLE handle_of(int fd) {
    return (HANDLE)_get_osfhandle(fd);
}

/* The path of an open file or folder, with \\?\; its length, or 0 with the last error. */
static DWORD path_of(HANDLE handle, wide *out) {
    const DWORD n = GetFinalPathNameByHandleW(handle, out->text, LONGEST, FILE_NAME_NORMALIZED);
    return n < LONGEST ? n : 0;
}

/* `path`, below the folder `at` unless that is AT_FDCWD; NULL with errno. To be freed. */
static wide *widen(int at, const char *path) {
    wide *w = malloc(sizeof(*w));
    DWORD n = 0;
    if (!w) {
        errno = ENOMEM;
        return NULL;
    }
    if (at != AT_FDCWD) {
        n = path_of(handle_of(at), w);
        if (n == 0 || n + 1 >= LONGEST) {
            (void)fail_last();
            free(w);
            return NULL;
        }
        w->text[n++] = '\\';
    }
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, w->text + n,
                             (int)(LONGEST - n))) {
        errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : ENOENT;
        free(w);
        return NULL;
    }
    for (wchar_t *p = w->text + n; at != AT_FDCWD && *p; p++)
        *p = *p == '/' ? '\\' : *p; /* the only separator of \\?\ paths */
    return w;
}

static int query_handle(HANDLE handle, struct qs_win_stat *st) {
    BY_HANDLE_FILE_INFORMATION info;
    const DWORD type = GetFileType(handle);
    st->st_size = 0;
    st->st_mode = type == FILE_TYPE_PIPE ? QS_WIN_PIPE : QS_WIN_OTHER;
    if (type != FILE_TYPE_DISK)
        return 0;
    if (!GetFileInformationByHandle(handle, &info))
        return fail_last();
    st->st_size = (int64_t)((uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow);
    st->st_mode = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? QS_WIN_FOLDER : QS_WIN_FILE;
    if (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) /* opened without following it */
        return fail(ELOOP);
    return 0;
}

/* Opens a file such that others can still rename and remove it; NULL with errno. */
static HANDLE open_handle(const wide *w, DWORD rights, DWORD how, int flags) {
    HANDLE h = CreateFileW(
        w->text, rights, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, how,
        FILE_FLAG_BACKUP_SEMANTICS | (flags & O_NOFOLLOW ? FILE_FLAG_OPEN_REPARSE_POINT : 0), NULL);
    struct qs_win_stat st;
    if (h == INVALID_HANDLE_VALUE) {
        (void)fail_last();
        return NULL;
    }
    if (query_handle(h, &st) == 0 && (!(flags & O_DIRECTORY) || st.st_mode == QS_WIN_FOLDER))
        return h;
    if (errno != ELOOP)
        errno = ENOTDIR;
    CloseHandle(h);
    return NULL;
}

int qs_win_openat(int at, const char *path, int flags, ...) {
    wide *w = widen(at, path);
    if (!w)
        return -1;
    const DWORD rights = flags & O_RDWR     ? GENERIC_READ | GENERIC_WRITE
                         : flags & O_WRONLY ? GENERIC_WRITE
                                            : GENERIC_READ;
    errno = 0;
    HANDLE h = open_handle(w, rights, flags & O_CREAT ? CREATE_NEW : OPEN_EXISTING, flags);
    free(w);
    if (!h)
        return -1;
    const int fd = _open_osfhandle((intptr_t)h, O_BINARY | O_NOINHERIT);
    if (fd < 0)
        CloseHandle(h);
    return fd;
}

/* The part of `size` that one call can take, whose size is an unsigned int. */
static unsigned part(size_t size) {
    return size < ((size_t)1 << 30) ? (unsigned)size : 1u << 30;
}

ptrdiff_t qs_win_read(int fd, void *data, size_t size) {
    return _read(fd, data, part(size));
}

ptrdiff_t qs_win_write(int fd, const void *data, size_t size) {
    return _write(fd, data, part(size));
}

int qs_win_fsync(int fd) {
    return FlushFileBuffers(handle_of(fd)) ? 0 : fail_last();
}

int qs_win_fstat(int fd, struct qs_win_stat *st) {
    return query_handle(handle_of(fd), st);
}

/* Whether a component on the way to `w`, which does not exist, is a file. */
static bool passes_file(wide *w) {
    for (wchar_t *p = w->text + wcslen(w->text); p > w->text; p--)
        if (*p == '\\' || *p == '/') {
            *p = 0;
            const DWORD found = GetFileAttributesW(w->text);
            if (found != INVALID_FILE_ATTRIBUTES)
                return !(found & FILE_ATTRIBUTE_DIRECTORY);
        }
    return false;
}

int qs_win_fstatat(int at, const char *path, struct qs_win_stat *st, int flags) {
    wide *w = widen(at, path);
    if (!w)
        return -1;
    HANDLE h = open_handle(w, FILE_READ_ATTRIBUTES, OPEN_EXISTING, flags ? O_NOFOLLOW : 0);
    const int code = h || errno != ENOENT ? errno : passes_file(w) ? ENOTDIR : ENOENT;
    free(w);
    if (!h)
        return fail(code);
    const int result = query_handle(h, st);
    CloseHandle(h);
    return result;
}

int qs_win_stat(const char *path, struct qs_win_stat *st) {
    return qs_win_fstatat(AT_FDCWD, path, st, 0);
}

int qs_win_mkdirat(int at, const char *path, int mode) {
    (void)mode;
    wide *w = widen(at, path);
    const int result = !w ? -1 : CreateDirectoryW(w->text, NULL) ? 0 : fail_last();
    free(w);
    return result;
}

int qs_win_unlinkat(int at, const char *path, int flags) {
    wide *w = widen(at, path);
    if (!w)
        return -1;
    const BOOL done = flags & AT_REMOVEDIR ? RemoveDirectoryW(w->text) : DeleteFileW(w->text);
    const int result = done ? 0 : fail_last();
    free(w);
    return result;
}

int qs_win_renameat(int from_at, const char *from, int to_at, const char *to) {
    wide *a = widen(from_at, from), *b = a ? widen(to_at, to) : NULL;
    const DWORD how = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
    const int result = !b ? -1 : MoveFileExW(a->text, b->text, how) ? 0 : fail_last();
    free(a);
    free(b);
    return result;
}

/* `resolved` has PATH_MAX bytes. */
char *qs_win_realpath(const char *path, char *resolved) {
    wide *w = widen(AT_FDCWD, path);
    HANDLE h = w ? open_handle(w, FILE_READ_ATTRIBUTES, OPEN_EXISTING, 0) : NULL;
    const DWORD n = h ? path_of(h, w) : 0;
    /* Paths of a drive lose their \\?\, so that they are as people write them, and may have '/'. */
    const size_t skip = n > 6 && w->text[5] == ':' ? 4 : 0;
    const bool good = n > 0 && WideCharToMultiByte(CP_UTF8, 0, w->text + skip, -1, resolved,
                                                   PATH_MAX, NULL, NULL) > 0;
    if (h)
        CloseHandle(h);
    free(w);
    return good ? resolved : NULL;
}

/* ---- folders ---- */

struct qs_win_dir {
    HANDLE search; /* INVALID_HANDLE_VALUE after the last entry */
    WIN32_FIND_DATAW next;
    struct dirent entry;
};

DIR *qs_win_opendir(const char *path) {
    const int fd = open(path, O_RDONLY | O_DIRECTORY);
    wide *w = fd >= 0 ? widen(fd, "*") : NULL;
    DIR *d = w ? malloc(sizeof(*d)) : NULL;
    if (d)
        d->search = FindFirstFileW(w->text, &d->next);
    free(w);
    if (fd >= 0)
        close(fd);
    return d;
}

struct dirent *qs_win_readdir(DIR *d) {
    if (d->search == INVALID_HANDLE_VALUE)
        return NULL;
    if (!WideCharToMultiByte(CP_UTF8, 0, d->next.cFileName, -1, d->entry.d_name,
                             sizeof(d->entry.d_name), NULL, NULL))
        strcpy(d->entry.d_name, "?"); /* half of a surrogate pair: no name that can be opened */
    if (!FindNextFileW(d->search, &d->next)) {
        FindClose(d->search);
        d->search = INVALID_HANDLE_VALUE;
    }
    return &d->entry;
}

int qs_win_closedir(DIR *d) {
    if (d->search != INVALID_HANDLE_VALUE)
        FindClose(d->search);
    free(d);
    return 0;
}

/* ---- memory and the machine ---- */

void *qs_win_map(int fd, size_t size) {
    HANDLE section = CreateFileMappingW(handle_of(fd), NULL, PAGE_READONLY, 0, 0, NULL);
    void *data = section ? MapViewOfFile(section, FILE_MAP_READ, 0, 0, size) : NULL;
    if (!data)
        (void)fail_last();
    if (section)
        CloseHandle(section);
    return data;
}

int qs_win_unmap(void *data) {
    return UnmapViewOfFile(data) ? 0 : fail_last();
}

int qs_win_entropy(void *data, size_t size) {
    unsigned value;
    for (size_t at = 0; at < size; at += sizeof(value)) {
        if (rand_s(&value) != 0)
            return -1;
        memcpy((char *)data + at, &value, size - at < sizeof(value) ? size - at : sizeof(value));
    }
    return 0;
}

int qs_win_cpus(void) {
    DWORD_PTR mine = 0, all;
    int count = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &all))
        for (; mine; mine &= mine - 1)
            count++;
    return count > 0 ? count : (int)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

/* ---- arithmetic ---- */

/*
 * Takes the place of mingw-w64's, which rounds twice. The product is exact in double; the sum is
 * rounded to odd there, after which rounding to float is as if of the exact sum (Boldo, Melquiond:
 * "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd").
 */
float fmaf(float x, float y, float z) {
    const double p = (double)x * y, sum = p + z, z_in = sum - p;
    const double error = (p - (sum - z_in)) + (z - z_in);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof(bits));
    if (error == 0 || bits & 1 || !isfinite(sum))
        return (float)sum;
    bits += (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
    double odd;
    memcpy(&odd, &bits, sizeof(odd));
    return (float)odd;
}
#endif
