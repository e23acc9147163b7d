/* SPDX-License-Identifier: MIT */
/* Text tables of numbers as arrays: of floats, or of the integers that an input takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array_source.h"
#include "common/csv.h"
#include "common/utf8.h"

static int refuse_table(const tool *t, const source *s, const csv *table, size_t line,
                        const char *why) {
    const unsigned char *p = s->data;
    text word = {0};
    utf8_printable(&word, table->word, sizeof(table->word));
    int code;
    if (s->size >= 2 && p[0] + p[1] == 0xff + 0xfe)
        code = tool_fail(t, QSIM_E_FORMAT, "%s: is UTF-16 text; tables are UTF-8", s->path);
    else if (table->field && !table->word[0])
        code = tool_fail(t, QSIM_E_FORMAT, "%s: line %zu: field %zu is empty", s->path, line,
                         table->field);
    else if (table->field)
        code = tool_fail(t, QSIM_E_FORMAT, "%s: line %zu: field %zu, '%s', %s", s->path, line,
                         table->field, word.data, why);
    else
        code = tool_fail(t, QSIM_E_FORMAT, "%s: line %zu: %s", s->path, line, why);
    text_free(&word);
    return code;
}

int source_open_table(const tool *t, source *s) {
    csv table;
    size_t line;
    const char *why;
    char *lines = tool_alloc(s->size + 1, 1);
    if (s->size)
        memcpy(lines, s->data, s->size);
    bool good = csv_parse(lines, &table, &line, &why);
    free(lines);
    s->kind = SOURCE_PROTO; /* needs no decoding */
    s->table = true;
    s->elements = table.values;
    if (!good)
        return refuse_table(t, s, &table, line, why);
    size_t n = table.rows * table.columns;
    s->array.dtype = QSIM_FLOAT;
    s->array.rank = 2;
    s->array.dims[0] = (int64_t)table.rows;
    s->array.dims[1] = (int64_t)table.columns;
    s->array.elements = n;
    s->array.bytes = n * sizeof(float);
    return EXIT_OK;
}

#define EXACT 16777216.0f /* floats hold whole numbers up to 2^24 */

int source_table_as(const tool *t, source *s, const slot *to) {
    const int64_t n = (int64_t)s->array.elements, columns = s->array.dims[1];
    const float *x = s->elements;
    size_t bytes = 0;
    qsim_error e = {0};
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) < EXACT) || (float)(int32_t)x[i] != x[i])
            return tool_fail(t, QSIM_E_VALUE,
                             "%s: row %lld, column %lld: %.9g is no whole number up to 2^24, which "
                             "input '%.100s' (%s) takes",
                             s->path, (long long)(i / columns + 1), (long long)(i % columns + 1),
                             (double)x[i], to->name, qsim_dtype_name(to->dtype));
    int64_t *whole = tool_alloc((size_t)n, sizeof(*whole));
    for (int64_t i = 0; i < n; i++)
        whole[i] = (int64_t)x[i];
    const qsim_tensor from = {QSIM_INT64, 1, &n, whole, (size_t)n * sizeof(*whole)};
    int code = qsim_tensor_size(to->dtype, 1, &n, NULL, &bytes);
    const qsim_tensor made = {to->dtype, 1, &n, tool_alloc(bytes + 1, 1), bytes};
    code = code || qsim_tensor_convert(&from, &made, &e) ? tool_error(t, s->path, &e) : EXIT_OK;
    free(whole);
    free(s->elements);
    s->elements = made.data;
    s->array.dtype = to->dtype;
    s->array.bytes = bytes;
    return code;
}
