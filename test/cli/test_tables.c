/* SPDX-License-Identifier: MIT */
/* Tables of numbers as text: what is read, and what is said of which line. */
#include "../test.h"
#include "common/csv.h"

#define MARK "\xef\xbb\xbf" /* a byte order mark */
#define NONE "there are no numbers in it"
#define WORD "is not a number"
#define SIZE "it has not as many fields as the lines before it"

static const struct {
    const char *text, *why; /* NULL: it is read */
    size_t rows, columns;   /* or the line, and 0 */
    float values[6];
} tables[] = {
    {"1,2\n3,4\n", NULL, 2, 2, {1, 2, 3, 4}},
    {"1,2\n3,4", NULL, 2, 2, {1, 2, 3, 4}},
    {"1;2;3\r\n4;5;6\r\n", NULL, 2, 3, {1, 2, 3, 4, 5, 6}},
    {"7\t8", NULL, 1, 2, {7, 8}},
    {"1 2  3", NULL, 1, 3, {1, 2, 3}},
    {"  1 2 \r\n \r\n\r\n3 4   \r\n", NULL, 2, 2, {1, 2, 3, 4}}, /* blank lines */
    {"\r\n# none\r\n  # none\n1\r\n#2\n", NULL, 1, 1, {1}},
    {" 1 ,\t2\t\n", NULL, 1, 2, {1, 2}},
    {"1\r\r\n", NULL, 1, 1, {1}},
    {"-3.5e2,.5,+1,-.25,7.,0\n", NULL, 1, 6, {-350, 0.5f, 1, -0.25f, 7, 0}},
    {"3.4028234e38,-3.4028234e38", NULL, 1, 2, {3.4028234e38f, -3.4028234e38f}},
    {"a,b\n1,2\n", NULL, 1, 2, {1, 2}}, /* a heading, of any number of fields */
    {"a\n1,2\n", NULL, 1, 2, {1, 2}},
    {MARK "1,2\n", NULL, 1, 2, {1, 2}},
    {MARK "\"a\",\"b\"\n1,2\n", NULL, 1, 2, {1, 2}},
    {"1,x\n1,2\n", WORD, 1, 0, {0}}, /* a sample, no heading */
    {"1e39\n2\n", WORD, 1, 0, {0}},
    {".x\n2\n", WORD, 1, 0, {0}},
    {" \t\"-1\"\n2\n", WORD, 1, 0, {0}},    /* an empty field */
    {"  \"-1\"\n2\n", NULL, 2, 1, {-1, 2}}, /* quoted */
    {"\"a\";\"b\"\n\"1\"; \"2.5\" \r\n", NULL, 1, 2, {1, 2.5f}},
    {"\"1\n2\n", WORD, 1, 0, {0}},
    {"1\"\n2\n", WORD, 1, 0, {0}},
    {"\"1\"2\n2\n", WORD, 1, 0, {0}},
    {"\"\"\n2\n", NULL, 1, 1, {2}}, /* an empty heading */
    {"NaN,1\n2,3\n", WORD, 1, 0, {0}},
    {"\"inf\"\n2\n", WORD, 1, 0, {0}},
    {"", NONE, 1, 0, {0}},
    {"\n\n", NONE, 3, 0, {0}},
    {"# 1", NONE, 1, 0, {0}},
    {"a,b", NONE, 1, 0, {0}},
    {"a,b\nc,d\n1,2", WORD, 2, 0, {0}}, /* one heading alone */
    {"1,2\n3\n", SIZE, 2, 0, {0}},
    {"1\n\n2,3\n", SIZE, 3, 0, {0}},
    {"h\n1,2\n3,4\n1,2,3\n", SIZE, 4, 0, {0}},
    {"1;2\n3,4\n", NULL, 2, 2, {1, 2, 3, 4}}, /* each line has a separator of its own */
    {"0\nx\n", WORD, 2, 0, {0}},
    {"0,0\n1,\n", WORD, 2, 0, {0}},
    {"0,0\n,1\n", WORD, 2, 0, {0}},
    {"0;0\n1;2,5\n", WORD ": decimals have a point, no comma", 2, 0, {0}},
    {"0\n1x\n", WORD, 2, 0, {0}},
    {"0\n1\t2x\n", WORD, 2, 0, {0}},
    {"0\n0x1\n", WORD, 2, 0, {0}},
    {"0\nnan\n", WORD, 2, 0, {0}},
    {"0\ninf\n", WORD, 2, 0, {0}},
    {"0\n-inf\n", WORD, 2, 0, {0}},
    {"0\n-\n", WORD, 2, 0, {0}},
    {"0\n1e39\n", WORD, 2, 0, {0}}, /* no float is so large */
    {"0\n-1e39\n", WORD, 2, 0, {0}},
    {"0\n1e400\n", WORD, 2, 0, {0}},
};

static void check_tables(void) {
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        char *lines = exact_copy(tables[i].text, strlen(tables[i].text) + 1);
        const char *why = NULL;
        size_t line = 0;
        csv table;
        const long before = test_failures;
        const bool good = csv_parse(lines, &table, &line, &why);
        CHECK_INT(good, !tables[i].why);
        if (good) {
            CHECK(table.rows == tables[i].rows && table.columns == tables[i].columns);
            for (size_t k = 0; k < table.rows * table.columns && k < 6; k++)
                CHECK(table.values[k] == tables[i].values[k]);
        } else {
            CHECK_STR(why, tables[i].why ? tables[i].why : "");
            CHECK_INT(line, tables[i].rows);
        }
        if (test_failures > before)
            fprintf(stderr, "table %zu: %s\n", i, tables[i].text);
        free(table.values);
        free(lines);
    }
}

/* Room is made as numbers come. */
static void check_long(void) {
    enum { ROWS = 31, COLUMNS = 27 };
    char *lines = calloc(ROWS * COLUMNS, 8);
    const char *why;
    size_t at = 0, line;
    csv table;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        at += (size_t)sprintf(lines + at, "%d%c", i, i % COLUMNS == COLUMNS - 1 ? '\n' : ',');
    CHECK(csv_parse(lines, &table, &line, &why));
    CHECK(table.rows == ROWS && table.columns == COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK(table.values[i] == (float)i);
    free(table.values);
    free(lines);
}

int main(void) {
    check_tables();
    check_long();
    return test_done();
}
