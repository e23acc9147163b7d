/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a table of numbers. */
#include <math.h>
#include <string.h>

#include "common/csv.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *lines = malloc(size + 1);
    const char *why;
    size_t line;
    csv table;
    if (!lines)
        return 0;
    memcpy(lines, data, size);
    lines[size] = 0;
    if (csv_parse(lines, &table, &line, &why))
        for (size_t i = 0; i < table.rows * table.columns; i++)
            if (!isfinite(table.values[i]))
                abort();
    free(table.values);
    free(lines);
    return 0;
}

size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const char *const seeds[] = {"a,b\n1,2\n-3.5e2,.5\n", "1;2;3\r\n4;5;6\r\n",
                                        "1 2  3\n4 5 6\n", "# none\n\n7\t8\n"};
    if (index >= sizeof(seeds) / sizeof(*seeds) || capacity < 64)
        return 0;
    size_t size = strlen(seeds[index]);
    memcpy(buffer, seeds[index], size);
    return size;
}
