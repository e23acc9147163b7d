/* SPDX-License-Identifier: MIT */
/* Names of entries: they have to be valid on every system that a package may be unpacked on. */
#include "package/archive.h"

#include "onnx/schema.h"

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equal_part(const char *part, size_t n, const char *word) {
    for (size_t i = 0; i < n; i++)
        if (lower(part[i]) != word[i])
            return false;
    return word[n] == 0;
}

/* Whether a name is a device on Windows: CON, NUL, COM1, …, with any extension. */
static bool is_device(const char *part, size_t n) {
    static const char *const names[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
    size_t stem = 0;
    while (stem < n && part[stem] != '.' && part[stem] != ' ')
        stem++;
    for (size_t i = 0; i < QS_COUNT(names); i++)
        if (equal_part(part, stem, names[i]))
            return true;
    return stem == 4 && part[3] >= '0' && part[3] <= '9' &&
           (equal_part(part, 3, "com") || equal_part(part, 3, "lpt"));
}

const char *qs_entry_name_fault(const char *name) {
    size_t length = strlen(name);
    if (length > 0 && name[length - 1] == '/')
        return "is a folder entry (zip -D leaves them out)";
    const char *fault = qs_location_fault(name);
    if (fault)
        return fault;
    if (!qs_text_ok((qs_span){(const uint8_t *)name, length}))
        return "is not UTF-8";
    if (length > 1024)
        return "is too long";
    if (name[strcspn(name, "\"*<>?|")])
        return "has one of \"*<>?|";
    for (const char *p = name; p; p = strchr(p, '/')) {
        p += *p == '/';
        size_t n = strcspn(p, "/");
        if (n > 255)
            return "has a component that is too long";
        if (is_device(p, n))
            return "is the name of a device";
        if (p[n - 1] == '.' || p[n - 1] == ' ')
            return "has a component that ends in a dot or a blank";
    }
    return NULL;
}

bool qs_entry_names_clash(const char *a, const char *b) {
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return (!*a && !*b) || (!*a && *b == '/') || (!*b && *a == '/');
}

static const struct {
    const char *role, *name; /* name NULL: entries may have any */
} roles[QSIM_ROLE_COUNT] = {
    [QSIM_ROLE_DATA] = {"data", NULL},
    [QSIM_ROLE_MODEL] = {"model", NULL},
    [QSIM_ROLE_CALIBRATION] = {"calibration", "calibration.qcal"},
    [QSIM_ROLE_PREPROCESS] = {"preprocess", "preprocess.txt"},
    [QSIM_ROLE_LABELS] = {"labels", "labels.txt"},
    [QSIM_ROLE_REPORT] = {"report", "report.json"},
    [QSIM_ROLE_MANIFEST] = {"manifest", QS_MANIFEST},
    [QSIM_ROLE_SUMS] = {"sums", QS_SUMS},
};

const char *qsim_role_name(int32_t role) {
    return role >= 0 && role < QSIM_ROLE_COUNT ? roles[role].role : NULL;
}

const char *qs_name_of_role(int32_t role) {
    return role >= 0 && role < QSIM_ROLE_COUNT ? roles[role].name : NULL;
}

int32_t qs_role_of_name(const char *name) {
    size_t n = strlen(name);
    for (int32_t i = 0; i < QSIM_ROLE_COUNT; i++)
        if (roles[i].name && strcmp(roles[i].name, name) == 0)
            return i;
    return n > 5 && strcmp(name + n - 5, ".onnx") == 0 ? QSIM_ROLE_MODEL : QSIM_ROLE_DATA;
}
