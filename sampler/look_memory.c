/* SPDX-License-Identifier: MIT */
#include "sampler/look_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/addr_slot.h"
#include "procmem/array.h"

/* A block that was not used for this many looks is no longer read ahead. */
enum { KEPT_LOOKS = 32 };

/* How often unused blocks are searched for. */
enum { SWEEP_LOOKS = 16 };

/* Limit on blocks, 4 MiB; memory beyond it is read each time it is needed. */
enum { MAX_BLOCKS = 8192 };

/* The table has at least twice as many slots as there are blocks; a power of two. */
enum { MIN_SLOTS = 256 };

/* Longer reads, of tables and texts, happen once and are passed through. */
enum { MAX_KEPT_BYTES = 1024 };

/*
 * The callers of a frame are below it, so missing memory is read together with memory below it:
 * first to the start of its page, then twice as far each time that was not enough.
 */
enum { PAGE_BYTES = 4096, BLOCKS_OF_PAGE = PAGE_BYTES / LOOK_BLOCK_BYTES, MAX_RUN_BLOCKS = 256 };

struct look_block {
	remote_addr addr;
	uint64_t used_look; /* the last look that read it; 0: none yet */
	uint64_t lost_look; /* the look in which it could not be read */
};

static int read_ranges(struct remote_memory *memory, struct remote_range *ranges, size_t nr_ranges);

static int check(struct remote_memory *memory)
{
	return remote_memory_check(((struct look_memory *)memory)->inner);
}

static int write_u64(struct remote_memory *memory, remote_addr addr, uint64_t value)
{
	struct remote_memory *inner = ((struct look_memory *)memory)->inner;

	return inner->ops->write_u64(inner, addr, value);
}

void look_memory_init(struct look_memory *look, struct remote_memory *inner)
{
	static const struct remote_memory_ops ops[] = {
		{.read_ranges = read_ranges, .check = check},
		{.read_ranges = read_ranges, .check = check, .write_u64 = write_u64},
	};

	*look = (struct look_memory){
		.memory.ops = &ops[remote_memory_is_writable(inner)],
		.inner = inner,
		.is_changed = true,
	};
}

void look_memory_done(struct look_memory *look)
{
	free(look->blocks);
	free(look->bytes);
	free(look->table);
	free(look->seals);
	free(look->ranges);
	*look = (struct look_memory){.is_open = false};
}

void look_memory_clear_seals(struct look_memory *look)
{
	look->nr_seals = 0;
}

int look_memory_seal(struct look_memory *look, remote_addr addr, size_t size, uint32_t *ret_index)
{
	struct look_seal *seals =
		array_reserve(look->seals, look->nr_seals + 1, &look->max_seals, sizeof(*seals));

	if (!seals)
		return -ENOMEM;
	look->seals = seals;
	*ret_index = look->nr_seals;
	seals[look->nr_seals++] = (struct look_seal){.addr = addr, .size = size};
	return 0;
}

/* The hash table. */

static uint32_t slot_of(const struct look_memory *look, remote_addr addr)
{
	return (uint32_t)addr_slot(addr / LOOK_BLOCK_BYTES, look->nr_slots);
}

static void table_put(struct look_memory *look, uint32_t index)
{
	uint32_t slot = slot_of(look, look->blocks[index].addr);

	while (look->table[slot])
		slot = (slot + 1) % look->nr_slots;
	look->table[slot] = (uint16_t)(index + 1);
}

static struct look_block *table_find(const struct look_memory *look, remote_addr addr)
{
	uint32_t slot;

	if (!look->table)
		return NULL;
	for (slot = slot_of(look, addr); look->table[slot]; slot = (slot + 1) % look->nr_slots)
		if (look->blocks[look->table[slot] - 1].addr == addr)
			return &look->blocks[look->table[slot] - 1];
	return NULL;
}

static void table_fill(struct look_memory *look)
{
	memset(look->table, 0, look->nr_slots * sizeof(*look->table));
	for (uint32_t i = look->is_narrow ? look->nr_ahead : 0; i < look->nr_blocks; i++)
		table_put(look, i);
}

/* Make room for nr blocks in all tables. Returns 0 or -ENOMEM. */
static int reserve(struct look_memory *look, uint32_t nr)
{
	uint32_t nr_slots = look->nr_slots ? look->nr_slots : MIN_SLOTS;
	struct look_block *blocks =
		array_reserve(look->blocks, nr, &look->max_blocks, sizeof(*blocks));
	uint16_t *table;

	if (!blocks)
		return -ENOMEM;
	look->blocks = blocks;
	/* Room for the bytes of all blocks costs nothing until it is used. */
	if (!look->bytes)
		look->bytes = malloc((size_t)MAX_BLOCKS * LOOK_BLOCK_BYTES);
	if (!look->bytes)
		return -ENOMEM;
	while (nr_slots < 2 * nr)
		nr_slots *= 2;
	if (nr_slots == look->nr_slots)
		return 0;
	table = reallocarray(look->table, nr_slots, sizeof(*table));
	if (!table)
		return -ENOMEM;
	look->table = table;
	look->nr_slots = nr_slots;
	table_fill(look);
	return 0;
}

/* Reading ahead. */

static int compare_blocks(const void *a, const void *b)
{
	const remote_addr x = ((const struct look_block *)a)->addr;
	const remote_addr y = ((const struct look_block *)b)->addr;

	return (x > y) - (x < y);
}

/* Select the blocks that are read ahead: those that were used lately. */
static void sweep(struct look_memory *look)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < look->nr_blocks; i++) {
		const struct look_block *block = &look->blocks[i];

		if (block->used_look && block->used_look + KEPT_LOOKS >= look->look &&
		    block->lost_look < block->used_look)
			look->blocks[nr++] = *block;
	}
	if (nr == look->nr_blocks && nr == look->nr_ahead && !look->is_changed)
		return;
	look->nr_blocks = nr;
	look->nr_ahead = nr;
	if (nr)
		qsort(look->blocks, nr, sizeof(*look->blocks), compare_blocks);
	if (look->table)
		table_fill(look);
	look->is_changed = true;
}

static uint8_t *bytes_of(const struct look_memory *look, uint32_t index)
{
	return look->bytes + (size_t)index * LOOK_BLOCK_BYTES;
}

/*
 * Make the ranges of a look: the seals, nr_ahead blocks, and the seals again. Returns 0 or
 * -ENOMEM.
 */
static int make_ranges(struct look_memory *look, uint32_t nr_ahead)
{
	const uint32_t nr_seals = look->nr_seals;
	struct remote_range *ranges = array_reserve(look->ranges, nr_ahead + 2 * nr_seals,
						    &look->max_ranges, sizeof(*ranges));
	uint32_t nr = nr_seals;

	if (!ranges)
		return -ENOMEM;
	look->ranges = ranges;
	for (uint32_t i = 0; i < nr_ahead; i++) {
		const remote_addr addr = look->blocks[i].addr;

		if (i && addr == look->blocks[i - 1].addr + LOOK_BLOCK_BYTES)
			ranges[nr - 1].size += LOOK_BLOCK_BYTES;
		else
			ranges[nr++] = (struct remote_range){
				.addr = addr,
				.buffer = bytes_of(look, i),
				.size = LOOK_BLOCK_BYTES,
			};
	}
	for (uint32_t i = 0; i < nr_seals; i++) {
		struct look_seal *seal = &look->seals[i];

		ranges[i] = (struct remote_range){
			.addr = seal->addr, .buffer = seal->first, .size = seal->size};
		ranges[nr + nr_seals - 1 - i] = (struct remote_range){
			.addr = seal->addr, .buffer = seal->last, .size = seal->size};
	}
	look->nr_ranges = nr + nr_seals;
	look->is_changed = false;
	return 0;
}

static bool is_complete(const struct remote_range *range)
{
	return range->done_bytes == range->size;
}

/* Note which blocks and seals could be read. */
static void note_ranges(struct look_memory *look)
{
	const uint32_t nr_seals = look->nr_seals;

	for (uint32_t i = 0; i < nr_seals; i++)
		look->seals[i].is_read = is_complete(&look->ranges[i]) &&
					 is_complete(&look->ranges[look->nr_ranges - 1 - i]);
	for (uint32_t r = nr_seals, i = 0; r < look->nr_ranges - nr_seals; r++) {
		const struct remote_range *range = &look->ranges[r];
		const uint32_t nr = (uint32_t)(range->size / LOOK_BLOCK_BYTES);

		if (!is_complete(range)) {
			for (uint32_t j = (uint32_t)(range->done_bytes / LOOK_BLOCK_BYTES); j < nr;
			     j++)
				look->blocks[i + j].lost_look = look->look;
			look->is_changed = true;
		}
		i += nr;
	}
}

/* Read the seals, nr_ahead blocks, and the seals again. */
static int begin(struct look_memory *look, uint32_t nr_ahead)
{
	/* Seals change from look to look, and the ranges have their addresses. */
	int err = make_ranges(look, nr_ahead);

	if (!err)
		err = remote_memory_read_ranges(look->inner, look->ranges, look->nr_ranges);
	if (err)
		return err;
	note_ranges(look);
	look->is_open = true;
	look->has_unsealed_reads = false;
	look->run_addr = 0;
	return 0;
}

/*
 * Set up the table for a narrow look, or for a full one; forget the blocks that the last look
 * added.
 */
static void set_narrow(struct look_memory *look, bool is_narrow)
{
	look->is_narrow = is_narrow;
	look->nr_blocks = look->nr_ahead;
	if (look->table)
		table_fill(look);
}

int look_memory_begin(struct look_memory *look)
{
	if (look->is_narrow)
		set_narrow(look, false);
	look->look++;
	if (look->is_changed || look->nr_blocks != look->nr_ahead || look->look % SWEEP_LOOKS == 0)
		sweep(look);
	return begin(look, look->nr_ahead);
}

int look_memory_begin_narrow(struct look_memory *look)
{
	/* Select from the last look's blocks before they are forgotten. */
	if (!look->is_narrow && look->nr_blocks != look->nr_ahead)
		sweep(look);
	set_narrow(look, true);
	return begin(look, 0);
}

int look_memory_end(struct look_memory *look)
{
	int err;

	if (!look->is_open)
		return 0;
	look->is_open = false;
	if (!look->has_unsealed_reads)
		return 0;
	for (uint32_t i = 0; i < look->nr_seals; i++) {
		struct look_seal *seal = &look->seals[look->nr_seals - 1 - i];

		look->ranges[i] = (struct remote_range){
			.addr = seal->addr, .buffer = seal->last, .size = seal->size};
	}
	look->is_changed = true;
	err = remote_memory_read_ranges(look->inner, look->ranges, look->nr_seals);
	for (uint32_t i = 0; !err && i < look->nr_seals; i++)
		if (!is_complete(&look->ranges[i]))
			look->seals[look->nr_seals - 1 - i].is_read = false;
	return err;
}

/* Reading on demand. */

/* Choose how many blocks to read, ending with the one at addr. */
static uint32_t choose_run(struct look_memory *look, remote_addr addr)
{
	const uint32_t in_page = (uint32_t)(addr % PAGE_BYTES / LOOK_BLOCK_BYTES) + 1;
	uint32_t nr = in_page;

	/* Continues below the last run: a deep stack. */
	if (look->run_addr && addr + LOOK_BLOCK_BYTES == look->run_addr &&
	    look->run_blocks < MAX_RUN_BLOCKS)
		nr = in_page - 1 +
		     (look->run_blocks < BLOCKS_OF_PAGE ? BLOCKS_OF_PAGE : look->run_blocks * 2);
	if (nr > addr / LOOK_BLOCK_BYTES)
		nr = in_page;
	return nr;
}

/*
 * Read the block at addr and some below it. The nearest page comes first, as unmapped memory ends
 * the call. NULL: it cannot be read or kept; *ret_err is set if the look cannot continue.
 */
static struct look_block *fetch(struct look_memory *look, remote_addr addr, int *ret_err)
{
	enum { MAX_PAGES = MAX_RUN_BLOCKS * 2 / BLOCKS_OF_PAGE + 2 };
	struct remote_range ranges[MAX_PAGES];
	const uint32_t first = look->nr_blocks;
	remote_addr end = addr + LOOK_BLOCK_BYTES;
	uint32_t nr_left = choose_run(look, addr);
	uint32_t nr_ranges = 0;
	uint32_t index = first;

	*ret_err = 0;
	if (first + nr_left > MAX_BLOCKS)
		return NULL;
	*ret_err = reserve(look, first + nr_left);
	if (*ret_err)
		return NULL;
	while (nr_left && nr_ranges < MAX_PAGES) {
		const remote_addr page = (end - 1) / PAGE_BYTES * PAGE_BYTES;
		const uint32_t in_page = (uint32_t)((end - page) / LOOK_BLOCK_BYTES);
		const uint32_t nr = in_page < nr_left ? in_page : nr_left;

		ranges[nr_ranges++] = (struct remote_range){
			.addr = end - (uint64_t)nr * LOOK_BLOCK_BYTES,
			.buffer = bytes_of(look, index),
			.size = (size_t)nr * LOOK_BLOCK_BYTES,
			.nr_dependent = MAX_PAGES,
		};
		index += nr;
		nr_left -= nr;
		end -= (uint64_t)nr * LOOK_BLOCK_BYTES;
	}
	look->has_unsealed_reads = true;
	*ret_err = remote_memory_read_ranges(look->inner, ranges, nr_ranges);
	if (*ret_err)
		return NULL;
	for (uint32_t r = 0; r < nr_ranges && is_complete(&ranges[r]); r++)
		for (uint32_t j = 0; j < ranges[r].size / LOOK_BLOCK_BYTES; j++) {
			const remote_addr block_addr =
				ranges[r].addr + (uint64_t)j * LOOK_BLOCK_BYTES;

			look->blocks[look->nr_blocks] = (struct look_block){.addr = block_addr};
			/* A block that was read before keeps its first contents. */
			if (!table_find(look, block_addr))
				table_put(look, look->nr_blocks);
			look->nr_blocks++;
			look->run_addr = ranges[r].addr;
		}
	look->run_blocks = look->nr_blocks - first;
	return table_find(look, addr);
}

/* Read a range from blocks. Returns 0; -ENOENT if a block is not available; errors of a read. */
static int read_kept(struct look_memory *look, struct remote_range *range)
{
	uint8_t *buffer = range->buffer;
	size_t size;

	for (size_t done = 0; done < range->size; done += size) {
		const remote_addr addr = range->addr + done;
		const size_t offset = addr % LOOK_BLOCK_BYTES;
		struct look_block *block = table_find(look, addr - offset);
		int err = 0;

		size = LOOK_BLOCK_BYTES - offset;
		if (size > range->size - done)
			size = range->size - done;
		if (!block)
			block = fetch(look, addr - offset, &err);
		if (err)
			return err;
		if (!block || block->lost_look == look->look)
			return -ENOENT;
		block->used_look = look->look;
		memcpy(buffer + done, bytes_of(look, (uint32_t)(block - look->blocks)) + offset,
		       size);
	}
	range->done_bytes = range->size;
	return 0;
}

static int read_ranges(struct remote_memory *memory, struct remote_range *ranges, size_t nr_ranges)
{
	struct look_memory *look = (struct look_memory *)memory;

	/* Several pieces at once are the caller's own read-ahead, of memory needed once. */
	if (look->is_open && nr_ranges == 1) {
		int err = -ENOENT;

		ranges->done_bytes = 0;
		if (ranges->size <= MAX_KEPT_BYTES && ranges->addr + ranges->size > ranges->addr)
			err = read_kept(look, ranges);
		if (err != -ENOENT)
			return err;
	}
	look->has_unsealed_reads = true;
	return remote_memory_read_ranges(look->inner, ranges, nr_ranges);
}
