/* SPDX-License-Identifier: MIT */
/* Reads back what output/page/page_columns.h writes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Read the number at *bytes and advance *bytes past it. */
static inline uint64_t page_unsigned(const unsigned char **bytes)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (; **bytes & 0x80; shift += 7)
		value |= (uint64_t)(*(*bytes)++ & 0x7f) << shift;
	return value | (uint64_t) * (*bytes)++ << shift;
}

static inline int64_t page_signed(const unsigned char **bytes)
{
	uint64_t value = page_unsigned(bytes);

	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}
