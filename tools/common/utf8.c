/* SPDX-License-Identifier: MIT */
#include "common/utf8.h"

#include <string.h>

size_t utf8_length(const unsigned char *s, size_t left) {
    unsigned char c = s[0];
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Refuses overlong forms, surrogates and code points above U+10FFFF. */
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) ||
        (c == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* Is this a control character? C1 controls (U+0080 to U+009F) drive terminals, too. */
static int is_control(const unsigned char *s, size_t n) {
    return s[0] < 0x20 || s[0] == 0x7f || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

/* The greatest offset up to `at` that does not split a sequence. */
static size_t whole(const char *s, size_t at) {
    while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80)
        at--;
    return at;
}

void utf8_printable(text *t, const char *s, size_t limit) {
    text all = {0};
    const unsigned char *p = (const unsigned char *)s;
    size_t left = strlen(s);
    text_puts(&all, "");
    while (left > 0) {
        size_t n = utf8_length(p, left);
        if (n == 0 || is_control(p, n)) {
            text_printf(&all, "\\x%02x", *p);
            n = 1;
        } else
            text_add(&all, (const char *)p, n);
        p += n;
        left -= n;
    }
    if (all.size <= limit)
        text_add(t, all.data, all.size);
    else {
        size_t head = whole(all.data, (limit - 3) / 2);
        size_t tail = all.size - (limit - 3 - head);
        while (tail < all.size && ((unsigned char)all.data[tail] & 0xc0) == 0x80)
            tail++;
        text_add(t, all.data, head);
        text_puts(t, "...");
        text_add(t, all.data + tail, all.size - tail);
    }
    text_free(&all);
}

char *utf8_behind_mark(char *s) {
    return s + (strncmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
}
