/* SPDX-License-Identifier: MIT */
/* SipHash-1-3 (one round per word, three at the end), and its random key. */
#if defined(__linux__)
#define _GNU_SOURCE /* getrandom */
#include <sys/random.h>
#else
#define _DARWIN_C_SOURCE /* getentropy, there and elsewhere */
#define _DEFAULT_SOURCE
#if defined(__APPLE__)
#include <sys/random.h>
#endif
#endif
#include "base/base.h"
#include "base/posix.h"

void qs_secret_choose(qs_secret *secret) {
#if defined(__linux__)
    if (getrandom(secret, sizeof(*secret), GRND_NONBLOCK) == (ssize_t)sizeof(*secret))
        return;
#else
    if (getentropy(secret, sizeof(*secret)) == 0)
        return;
#endif
    /*
     * The system has not gathered randomness yet: the key is made of addresses and the time, which
     * authors of files cannot know.
     */
    secret->word[0] = qs_clock_ticks() * 0x9e3779b97f4a7c15u ^ (uintptr_t)secret;
    secret->word[1] = qs_clock_ns() * 0xc2b2ae3d27d4eb4fu ^ (uintptr_t)&secret;
}

static uint64_t turn(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static void mix(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turn(v[1], 13) ^ v[0];
    v[3] = turn(v[3], 16) ^ v[2];
    v[0] = turn(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = turn(v[1], 17) ^ v[2];
    v[3] = turn(v[3], 21) ^ v[0];
    v[2] = turn(v[2], 32);
}

uint64_t qs_keyed_hash(const qs_secret *secret, const void *data, size_t size) {
    const uint64_t a = secret->word[0], b = secret->word[1];
    uint64_t v[4] = {a ^ 0x736f6d6570736575u, b ^ 0x646f72616e646f6du, a ^ 0x6c7967656e657261u,
                     b ^ 0x7465646279746573u};
    const uint8_t *p = data;
    uint64_t word;
    for (size_t left = size; left >= sizeof(word); left -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        v[3] ^= word;
        mix(v);
        v[0] ^= word;
    }
    word = (uint64_t)size << 56;
    for (size_t i = 0; i < size % sizeof(word); i++)
        word |= (uint64_t)p[i] << 8 * i;
    v[3] ^= word;
    mix(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
