/* SPDX-License-Identifier: MIT */
#include "procmem/sched/perf_record.h"

#include <errno.h>

#include "procmem/byte_cursor.h"

/*
 * Parse the call chain: addresses, with a marker before those of the kernel and before the others.
 */
static void parse_chain(struct perf_dump *dump, struct byte_cursor *cursor)
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
	       dump->nr_kernel_addrs < PERF_RECORD_MAX_KERNEL_FRAMES) {
		const uint64_t word = byte_cursor_fixed(&chain, sizeof(uint64_t));

		if (word >= PERF_CONTEXT_MAX)
			is_kernel = word == PERF_CONTEXT_KERNEL;
		else if (is_kernel)
			dump->kernel_addrs[dump->nr_kernel_addrs++] = word;
	}
}

int perf_record_parse(const uint8_t *bytes, size_t nr_bytes, uint64_t sample_type,
		      struct perf_dump *ret_dump)
{
	struct byte_cursor cursor = {.at = bytes, .end = bytes + nr_bytes};
	struct perf_dump dump = {.tid = 0};
	uint64_t abi, nr_reserved, nr_dumped;

	(void)byte_cursor_split(&cursor, sizeof(struct perf_event_header));
	(void)byte_cursor_fixed(&cursor, 4); /* the process id */
	dump.tid = (pid_t)byte_cursor_fixed(&cursor, 4);
	dump.time_ns = byte_cursor_fixed(&cursor, 8);
	dump.count_ns = byte_cursor_fixed(&cursor, 8);
	if (sample_type & PERF_SAMPLE_CALLCHAIN)
		parse_chain(&dump, &cursor);
	abi = byte_cursor_fixed(&cursor, 8);
	if (!cursor.is_bad && abi != PERF_SAMPLE_REGS_ABI_64)
		return -ENOENT;
	for (size_t i = 0; i < NR_PERF_RECORD_REGISTERS; i++)
		dump.registers[i] = byte_cursor_fixed(&cursor, 8);
	nr_reserved = byte_cursor_fixed(&cursor, 8);
	if (!cursor.is_bad && !nr_reserved)
		return -ENOENT;
	dump.stack = byte_cursor_split(&cursor, nr_reserved).at;
	nr_dumped = byte_cursor_fixed(&cursor, 8);
	if (cursor.is_bad || nr_dumped > nr_reserved)
		return -EBADMSG;
	dump.nr_stack_bytes = nr_dumped;
	if (!nr_dumped)
		return -ENOENT;
	*ret_dump = dump;
	return 0;
}
