/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void misuse(const char *what, remote_addr addr)
{
	(void)fprintf(stderr, "fake_memory: %s at 0x%" PRIx64 "\n", what, addr);
	abort();
}

/* Index of the first piece that ends after addr: the one with addr in it, or the next one above. */
static size_t segment_index(const struct fake_memory *fake, remote_addr addr)
{
	size_t low = 0;
	size_t high = fake->nr_segments;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct fake_segment *segment = &fake->segments[middle];

		if (segment->addr + (segment->size_bytes - 1) < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The bytes from addr to the end of its piece, or NULL if addr is unmapped. */
static uint8_t *mapped_bytes(const struct fake_memory *fake, remote_addr addr, size_t *ret_size)
{
	size_t index = segment_index(fake, addr);

	if (index == fake->nr_segments || fake->segments[index].addr > addr)
		return NULL;
	const struct fake_segment *segment = &fake->segments[index];
	size_t offset = (size_t)(addr - segment->addr);
	*ret_size = segment->size_bytes - offset;
	return segment->bytes + offset;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Number of zeros at addr, which is in no piece, because other pieces share its page. */
static size_t zeros_around(const struct fake_memory *fake, remote_addr addr)
{
	enum { PAGE_BYTES = 4096 };
	const remote_addr page = addr - addr % PAGE_BYTES;
	const size_t index = segment_index(fake, addr);
	const remote_addr next_addr =
		index < fake->nr_segments ? fake->segments[index].addr : UINT64_MAX;
	const bool is_last =
		index &&
		fake->segments[index - 1].addr + (fake->segments[index - 1].size_bytes - 1) >= page;

	if (!fake->whole_pages || (!is_last && next_addr - page >= PAGE_BYTES))
		return 0;
	return min_size((size_t)(next_addr - addr), PAGE_BYTES - (size_t)(addr - page));
}

static size_t read_range(const struct fake_memory *fake, const struct remote_range *range)
{
	size_t done = 0;

	while (done < range->size) {
		uint8_t *buffer = (uint8_t *)range->buffer + done;
		size_t available;
		const uint8_t *bytes = mapped_bytes(fake, range->addr + done, &available);

		if (!bytes)
			available = zeros_around(fake, range->addr + done);
		if (!available)
			break;
		size_t size = min_size(available, range->size - done);
		if (bytes)
			memcpy(buffer, bytes, size);
		else
			memset(buffer, 0, size);
		done += size;
		if (range->addr + done < range->addr) /* end of the address space */
			break;
	}
	return done;
}

static int fake_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
			    size_t nr_ranges)
{
	struct fake_memory *fake = (struct fake_memory *)memory;
	int error = fake->error;

	fake->nr_calls++;
	for (size_t i = 0; i < nr_ranges; i++)
		ranges[i].done_bytes = 0;
	if (error)
		return error;
	for (size_t i = 0; i < nr_ranges; i++) {
		if (fake->before_range)
			fake->before_range(fake, i);
		ranges[i].done_bytes = read_range(fake, &ranges[i]);
		fake->nr_ranges++;
		fake->nr_bytes += ranges[i].done_bytes;
	}
	return 0;
}

void fake_memory_init(struct fake_memory *fake)
{
	static const struct remote_memory_ops ops = {.read_ranges = fake_read_ranges};

	*fake = (struct fake_memory){.memory.ops = &ops};
}

static int fake_check(struct remote_memory *memory)
{
	struct fake_memory *fake = (struct fake_memory *)memory;

	fake->nr_checks++;
	return fake->check_error;
}

static int fake_write_u64(struct remote_memory *memory, remote_addr addr, uint64_t value)
{
	struct fake_memory *fake = (struct fake_memory *)memory;

	if (fake->before_write)
		fake->before_write(fake);
	fake->nr_writes++;
	if (fake->write_error)
		return fake->write_error;
	fake_memory_write_u64(fake, addr, value);
	fake->written_addr = addr;
	fake->written_value = value;
	return 0;
}

void fake_memory_allow_writes(struct fake_memory *fake)
{
	static const struct remote_memory_ops ops = {
		.read_ranges = fake_read_ranges,
		.check = fake_check,
		.write_u64 = fake_write_u64,
	};

	fake->memory.ops = &ops;
}

void fake_memory_done(struct fake_memory *fake)
{
	if (!fake)
		return;
	for (size_t i = 0; i < fake->nr_segments; i++)
		free(fake->segments[i].bytes);
	free(fake->segments);
	*fake = (struct fake_memory){0};
}

uint8_t *fake_memory_map(struct fake_memory *fake, remote_addr addr, size_t size_bytes)
{
	remote_addr last;
	size_t index = segment_index(fake, addr);
	size_t nr_after = fake->nr_segments - index;

	if (!size_bytes || __builtin_add_overflow(addr, size_bytes - 1, &last))
		misuse("a piece that is empty or wraps around", addr);
	if (nr_after && fake->segments[index].addr <= last)
		misuse("already mapped", addr);
	uint8_t *bytes = calloc(1, size_bytes);
	struct fake_segment *segments =
		reallocarray(fake->segments, fake->nr_segments + 1, sizeof(*segments));
	if (!bytes || !segments)
		misuse("out of memory", addr);
	memmove(&segments[index + 1], &segments[index], nr_after * sizeof(*segments));
	segments[index] = (struct fake_segment){addr, size_bytes, bytes};
	fake->segments = segments;
	fake->nr_segments++;
	return bytes;
}

void fake_memory_map_bytes(struct fake_memory *fake, remote_addr addr, const void *bytes,
			   size_t size_bytes)
{
	uint8_t *mapped = fake_memory_map(fake, addr, size_bytes);

	memcpy(mapped, bytes, size_bytes);
}

void fake_memory_unmap(struct fake_memory *fake, remote_addr addr)
{
	size_t index = segment_index(fake, addr);

	if (index == fake->nr_segments || fake->segments[index].addr != addr)
		misuse("no piece starts", addr);
	free(fake->segments[index].bytes);
	fake->nr_segments--;
	memmove(&fake->segments[index], &fake->segments[index + 1],
		(fake->nr_segments - index) * sizeof(*fake->segments));
}

void fake_memory_write(struct fake_memory *fake, remote_addr addr, const void *bytes,
		       size_t size_bytes)
{
	const uint8_t *source = bytes;

	while (size_bytes) {
		size_t available;
		uint8_t *target = mapped_bytes(fake, addr, &available);

		if (!target)
			misuse("a write to what is not mapped", addr);
		size_t size = min_size(available, size_bytes);
		memcpy(target, source, size);
		source += size;
		addr += size;
		size_bytes -= size;
	}
}

void fake_memory_write_u64(struct fake_memory *fake, remote_addr addr, uint64_t value)
{
	fake_memory_write(fake, addr, &value, sizeof(value));
}

void fake_memory_write_u32(struct fake_memory *fake, remote_addr addr, uint32_t value)
{
	fake_memory_write(fake, addr, &value, sizeof(value));
}

void fake_memory_write_u16(struct fake_memory *fake, remote_addr addr, uint16_t value)
{
	fake_memory_write(fake, addr, &value, sizeof(value));
}

void fake_memory_write_u8(struct fake_memory *fake, remote_addr addr, uint8_t value)
{
	fake_memory_write(fake, addr, &value, sizeof(value));
}
