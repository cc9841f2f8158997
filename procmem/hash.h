/* SPDX-License-Identifier: MIT */
/*
 * FNV-1a with 64 bits, and the multiplier of Fibonacci hashing, for hash tables and comparisons
 * within one run. It is no protection against a target that forces collisions. Source:
 * http://www.isthe.com/chongo/tech/comp/fnv/
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * 2^64 divided by the golden ratio, an odd number: a product with it spreads neighbouring numbers
 * over the upper bits (Knuth, TAOCP 3, 6.4).
 */
#define HASH_GOLDEN_RATIO UINT64_C(0x9e3779b97f4a7c15)

/* The hash of no bytes. */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_add_byte(uint64_t hash, unsigned char byte)
{
	return (hash ^ byte) * UINT64_C(0x100000001b3);
}

static inline uint64_t hash_add_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = hash_add_byte(hash, bytes[i]);
	return hash;
}

/* Add the bytes of a string without its NUL. */
static inline uint64_t hash_add_string(uint64_t hash, const char *string)
{
	for (; *string; string++)
		hash = hash_add_byte(hash, (unsigned char)*string);
	return hash;
}

/* Add the bytes of a number, the lowest first. */
static inline uint64_t hash_add_u64(uint64_t hash, uint64_t value)
{
	for (unsigned int i = 0; i < sizeof(value); i++)
		hash = hash_add_byte(hash, value >> 8 * i & 0xff);
	return hash;
}
