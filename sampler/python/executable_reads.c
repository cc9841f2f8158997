/* SPDX-License-Identifier: MIT */
#include "sampler/python/executable_reads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Keep what one piece gave. 0; -ENOMEM, -E2BIG. */
static int keep(struct executable_reads *reads, const struct remote_range *range)
{
	if (reads->nr_reads == EXECUTABLE_MAX_READS ||
	    range->done_bytes > EXECUTABLE_MAX_BYTES - reads->nr_bytes)
		return -E2BIG;
	if (range->done_bytes > reads->max_bytes - reads->nr_bytes) {
		size_t max_bytes = (reads->nr_bytes + range->done_bytes) * 2;
		uint8_t *bytes = realloc(reads->bytes, max_bytes);

		if (!bytes)
			return -ENOMEM;
		reads->bytes = bytes;
		reads->max_bytes = max_bytes;
	}
	if (range->done_bytes)
		memcpy(reads->bytes + reads->nr_bytes, range->buffer, range->done_bytes);
	reads->nr_bytes += range->done_bytes;
	reads->reads[reads->nr_reads++] = (struct executable_read){
		.addr = range->addr,
		.nr_bytes = (uint32_t)range->done_bytes,
	};
	return 0;
}

static int read_and_keep(struct remote_memory *memory, struct remote_range *ranges,
			 size_t nr_ranges)
{
	struct executable_reads *reads = (struct executable_reads *)memory;
	int err = remote_memory_read_ranges(reads->source, ranges, nr_ranges);

	for (size_t i = 0; !err && i < nr_ranges; i++) {
		err = keep(reads, &ranges[i]);
		if (err == -E2BIG) {
			ranges[i].done_bytes = 0;
			err = 0;
		}
	}
	return err;
}

void executable_reads_begin(struct executable_reads *reads, struct remote_memory *source)
{
	static const struct remote_memory_ops ops = {.read_ranges = read_and_keep};

	reads->memory.ops = &ops;
	reads->source = source;
	reads->nr_reads = 0;
	reads->nr_bytes = 0;
}

void executable_reads_done(struct executable_reads *reads)
{
	if (!reads)
		return;
	free(reads->bytes);
	*reads = (struct executable_reads){0};
}

void executable_reads_again(const struct executable_reads *reads, struct remote_range *ranges,
			    void *bytes)
{
	size_t nr_bytes = 0;

	for (size_t i = 0; i < reads->nr_reads; i++) {
		ranges[i] = (struct remote_range){
			.addr = reads->reads[i].addr,
			.buffer = (uint8_t *)bytes + nr_bytes,
			.size = reads->reads[i].nr_bytes,
		};
		nr_bytes += reads->reads[i].nr_bytes;
	}
}

bool executable_reads_same(const struct executable_reads *reads, const struct remote_range *ranges)
{
	const uint8_t *bytes = reads->bytes;

	for (size_t i = 0; i < reads->nr_reads; i++) {
		if (ranges[i].done_bytes != ranges[i].size ||
		    (ranges[i].size && memcmp(ranges[i].buffer, bytes, ranges[i].size) != 0))
			return false;
		bytes += ranges[i].size;
	}
	return true;
}
