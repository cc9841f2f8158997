/* SPDX-License-Identifier: MIT */
/* Random numbers that are the same in each run: Marsaglia's xorshift64. */
#pragma once

#include <stdint.h>

/* Returns the next number. The first *state is the seed, not 0. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
