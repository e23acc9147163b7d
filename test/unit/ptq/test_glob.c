/* SPDX-License-Identifier: MIT */
/* Globs over node names. */
#include "test.h"

#include "ptq/quantizer.h"

int main(void) {
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything/at.all", true},
        {"conv?", "conv1", true},
        {"conv?", "conv", false},
        {"conv?", "conv12", false},
        {"conv*", "conv12", true},
        {"*conv*", "block/conv_2/x", true},
        {"*a*b*c", "xxaxxbxxbxc", true},
        {"*a*b*c", "xxaxxbxxbx", false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "ax", false},
        {"[]x]", "]", true},
        {"[a-]", "-", true},
        {"[a", "[a", true},
        {"[a", "a", false},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"a\\", "a\\", true},
        {"**a", "bba", true},
        {"fc[2-9]", "fc2", true},
        {"fc[2-9]", "fc1", false},
    };
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        bool matches = qs_glob(cases[i].pattern, cases[i].text);
        if (matches != cases[i].matches)
            fprintf(stderr, "'%s' against '%s'\n", cases[i].pattern, cases[i].text);
        CHECK_INT(matches, cases[i].matches);
    }
    /* A pattern of many stars takes no exponential time. */
    char text[4001], pattern[201];
    memset(text, 'a', 4000);
    text[4000] = 0;
    for (int i = 0; i < 200; i += 2)
        memcpy(pattern + i, "*a", 2);
    memcpy(pattern + 198, "*b", 3);
    CHECK(!qs_glob(pattern, text));
    return test_done();
}
