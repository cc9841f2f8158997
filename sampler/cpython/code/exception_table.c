/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/exception_table.h"

#include <errno.h>
#include <stdbool.h>

/*
 * A number is one to six bytes, most significant first, with six bits each. The first byte of an
 * entry has the bit ENTRY_BEGINS.
 */
enum { MORE_FOLLOWS = 0x40, ENTRY_BEGINS = 0x80, NUMBER_BITS = 0x3f, NUMBER_MAX_BYTES = 6 };

/* Parse a number and advance *table, which ends at end. Returns false if it is cut or too long. */
static bool parse_number(const uint8_t **table, const uint8_t *end, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (int i = 0; i < NUMBER_MAX_BYTES && *table < end; i++) {
		const uint8_t byte = *(*table)++;

		number = number << 6 | (byte & NUMBER_BITS);
		if (!(byte & MORE_FOLLOWS)) {
			*ret_number = number;
			return true;
		}
	}
	return false;
}

int exception_table_depth(const uint8_t *table, size_t size_bytes, uint32_t unit,
			  uint32_t *ret_depth)
{
	const uint8_t *const end = table + size_bytes;

	while (table < end) {
		uint64_t start, size, target, depth_and_lasti;

		if (!(*table & ENTRY_BEGINS) || !parse_number(&table, end, &start) ||
		    !parse_number(&table, end, &size) || !parse_number(&table, end, &target) ||
		    !parse_number(&table, end, &depth_and_lasti))
			return -EBADMSG;
		if (unit < start || unit - start >= size)
			continue;
		if (depth_and_lasti >> 1 > UINT32_MAX)
			return -EBADMSG;
		*ret_depth = (uint32_t)(depth_and_lasti >> 1);
		return 0;
	}
	return -ENOENT;
}
