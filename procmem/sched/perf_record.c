/* SPDX-License-Identifier: MIT */
#include "procmem/sched/perf_record.h"

#include <errno.h>

#include "procmem/byte_cursor.h"

/*
 * Parse the call chain: addresses, with a marker before those of the kernel and before the others.
 */
static void parse_chain(struct perf_copy *copy, struct byte_cursor *cursor)
{
	const uint64_t nr_words = byte_cursor_fixed(cursor, 8);
	struct byte_cursor chain;
	bool is_kernel = false;

	/* No record can hold more, so a larger count fails without overflowing the product. */
	chain = byte_cursor_split(cursor, nr_words < PERF_RECORD_MAX_BYTES
						  ? nr_words * sizeof(uint64_t)
						  : PERF_RECORD_MAX_BYTES);
	if (cursor->is_bad)
		return;
	while (!byte_cursor_is_at_end(&chain) &&
	       copy->nr_kernel_addrs < PERF_RECORD_MAX_KERNEL_FRAMES) {
		const uint64_t word = byte_cursor_fixed(&chain, sizeof(uint64_t));

		if (word >= PERF_CONTEXT_MAX)
			is_kernel = word == PERF_CONTEXT_KERNEL;
		else if (is_kernel)
			copy->kernel_addrs[copy->nr_kernel_addrs++] = word;
	}
}

int perf_record_parse(const uint8_t *bytes, size_t nr_bytes, uint64_t sample_type,
		      struct perf_copy *ret_copy)
{
	struct byte_cursor cursor = {.at = bytes, .end = bytes + nr_bytes};
	struct perf_copy copy = {.tid = 0};
	uint64_t abi, nr_reserved, nr_copied;

	(void)byte_cursor_split(&cursor, sizeof(struct perf_event_header));
	(void)byte_cursor_fixed(&cursor, 4); /* the process id */
	copy.tid = (pid_t)byte_cursor_fixed(&cursor, 4);
	copy.time_ns = byte_cursor_fixed(&cursor, 8);
	copy.count_ns = byte_cursor_fixed(&cursor, 8);
	if (sample_type & PERF_SAMPLE_CALLCHAIN)
		parse_chain(&copy, &cursor);
	abi = byte_cursor_fixed(&cursor, 8);
	if (!cursor.is_bad && abi != PERF_SAMPLE_REGS_ABI_64)
		return -ENOENT;
	for (size_t i = 0; i < NR_PERF_RECORD_REGISTERS; i++)
		copy.registers[i] = byte_cursor_fixed(&cursor, 8);
	nr_reserved = byte_cursor_fixed(&cursor, 8);
	if (!cursor.is_bad && !nr_reserved)
		return -ENOENT;
	copy.stack = byte_cursor_split(&cursor, nr_reserved).at;
	nr_copied = byte_cursor_fixed(&cursor, 8);
	if (cursor.is_bad || nr_copied > nr_reserved)
		return -EBADMSG;
	copy.nr_stack_bytes = nr_copied;
	if (!nr_copied)
		return -ENOENT;
	*ret_copy = copy;
	return 0;
}
