/* SPDX-License-Identifier: MIT */
#include "sampler/look_memory.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/support/fake_memory.h"

#define BASE	 UINT64_C(0x100000)
#define GAP_ADDR UINT64_C(0x200000)
#define SEAL_A	 UINT64_C(0x300000)
#define SEAL_B	 UINT64_C(0x300100)

enum { MAP_BYTES = 64 << 10, PAGE_BYTES = 4096 };

/* A target of 16 pages, in which each word is its own address, and two words to be sealed. */
struct stage {
	struct fake_memory fake;
	struct look_memory look;
	remote_addr changed_addr; /* incremented before each range of a read; 0: none */
};

static void begin(struct stage *stage)
{
	*stage = (struct stage){0};
	fake_memory_init(&stage->fake);
	(void)fake_memory_map(&stage->fake, BASE, MAP_BYTES);
	(void)fake_memory_map(&stage->fake, SEAL_A, PAGE_BYTES);
	for (remote_addr addr = BASE; addr < BASE + MAP_BYTES; addr += 8)
		fake_memory_write_u64(&stage->fake, addr, addr);
	look_memory_init(&stage->look, &stage->fake.memory);
}

static void end(struct stage *stage)
{
	look_memory_done(&stage->look);
	fake_memory_done(&stage->fake);
}

static uint64_t read_word(struct stage *stage, remote_addr addr)
{
	uint64_t word = 0;

	cr_assert(zero(int, remote_memory_read_u64(&stage->look.memory, addr, &word)));
	return word;
}

/* Make a look that reads these words. Returns the number of read calls. */
static uint64_t look_at(struct stage *stage, const remote_addr *addrs, size_t nr)
{
	const uint64_t nr_calls = stage->fake.nr_calls;

	cr_assert(zero(int, look_memory_begin(&stage->look)));
	for (size_t i = 0; i < nr; i++)
		cr_expect(eq(u64, read_word(stage, addrs[i]), addrs[i]));
	cr_assert(zero(int, look_memory_end(&stage->look)));
	return stage->fake.nr_calls - nr_calls;
}

Test(look_memory, recent_reads_are_prefetched_in_one_call)
{
	static const remote_addr addrs[] = {BASE + 0x8008, BASE + 0x18, BASE + 0x3000,
					    BASE + 0xfff8};
	struct stage stage;

	begin(&stage);
	cr_expect(lt(u64, 1, look_at(&stage, addrs, 4)), "no block is known yet");
	for (int i = 0; i < 100; i++)
		cr_expect(eq(u64, look_at(&stage, addrs, 4), 1));
	/* A word that only some looks read is prefetched in all of them. */
	for (int i = 0; i < 100; i++)
		cr_expect(eq(u64, look_at(&stage, addrs, i % 10 ? 3 : 4), 1));
	end(&stage);
}

Test(look_memory, unrequested_blocks_are_dropped)
{
	static const remote_addr addrs[] = {BASE + 0x8008, BASE + 0x18};
	struct stage stage;
	uint64_t nr_bytes;

	begin(&stage);
	(void)look_at(&stage, addrs, 2);
	nr_bytes = stage.fake.nr_bytes;
	(void)look_at(&stage, addrs, 2);
	cr_expect(eq(u64, stage.fake.nr_bytes - nr_bytes, 2 * LOOK_BLOCK_BYTES));
	for (int i = 0; i < 100; i++)
		cr_expect(eq(u64, look_at(&stage, addrs, 1), 1));
	nr_bytes = stage.fake.nr_bytes;
	(void)look_at(&stage, addrs, 1);
	cr_expect(eq(u64, stage.fake.nr_bytes - nr_bytes, LOOK_BLOCK_BYTES));
	cr_expect(lt(u64, 1, look_at(&stage, addrs, 2)), "the block is no longer prefetched");
	end(&stage);
}

Test(look_memory, narrow_look_prefetches_nothing)
{
	static const remote_addr addrs[] = {BASE + 0x8008, BASE + 0x18, BASE + 0x3000};
	struct stage stage;
	uint64_t nr_bytes;

	begin(&stage);
	(void)look_at(&stage, addrs, 3);
	for (int i = 0; i < 100; i++) {
		/* Data from the previous look does not answer reads of this one. */
		fake_memory_write_u64(&stage.fake, addrs[1], (uint64_t)i);
		nr_bytes = stage.fake.nr_bytes;
		cr_assert(zero(int, look_memory_begin_narrow(&stage.look)));
		cr_expect(eq(u64, read_word(&stage, addrs[1]), (uint64_t)i));
		cr_expect(eq(u64, read_word(&stage, addrs[1]), (uint64_t)i));
		cr_assert(zero(int, look_memory_end(&stage.look)));
		cr_expect(eq(u64, stage.fake.nr_bytes - nr_bytes, LOOK_BLOCK_BYTES));
		/* A look may read more than fits. */
		cr_assert(zero(int, look_memory_begin_narrow(&stage.look)));
		for (remote_addr addr = BASE + MAP_BYTES; addr > BASE + 0x4000; addr -= 128)
			cr_expect(eq(u64, read_word(&stage, addr - 128), addr - 128));
		cr_assert(zero(int, look_memory_end(&stage.look)));
	}
	fake_memory_write_u64(&stage.fake, addrs[1], addrs[1]);
	nr_bytes = stage.fake.nr_bytes;
	cr_expect(eq(u64, look_at(&stage, addrs, 3), 1), "all blocks are prefetched as before");
	cr_expect(eq(u64, stage.fake.nr_bytes - nr_bytes, 3 * LOOK_BLOCK_BYTES));
	end(&stage);
}

/*
 * A frame's callers are below it, so blocks below one that is not buffered are read with it: a
 * large stack takes few calls, and each byte is read once.
 */
Test(look_memory, miss_also_reads_the_blocks_below)
{
	struct stage stage;

	begin(&stage);
	cr_assert(zero(int, look_memory_begin(&stage.look)));
	for (remote_addr addr = BASE + MAP_BYTES; addr > BASE; addr -= 128)
		cr_expect(eq(u64, read_word(&stage, addr - 128), addr - 128));
	/* Pages read at once: 1, 1, 2, 4, 8 of 16. */
	cr_expect(le(u64, stage.fake.nr_calls, 7));
	cr_expect(eq(u64, stage.fake.nr_bytes, MAP_BYTES));
	cr_assert(zero(int, look_memory_end(&stage.look)));
	end(&stage);
}

static void count_up(struct fake_memory *fake, size_t range_index)
{
	struct stage *stage = fake->context;
	uint64_t word;

	(void)range_index;
	memcpy(&word, fake->segments[0].bytes + (stage->changed_addr - BASE), sizeof(word));
	fake_memory_write_u64(fake, stage->changed_addr, word + 1);
}

Test(look_memory, each_byte_is_read_once_a_look)
{
	struct stage stage;
	uint64_t first;
	uint8_t bytes[1024];

	begin(&stage);
	stage.changed_addr = BASE + 0x1010;
	stage.fake.before_range = count_up;
	stage.fake.context = &stage;
	for (int look = 0; look < 3; look++) {
		cr_assert(zero(int, look_memory_begin(&stage.look)));
		first = read_word(&stage, BASE + 0x1010);
		(void)read_word(&stage, BASE + 0x9000 + (remote_addr)look * PAGE_BYTES);
		cr_expect(eq(u64, read_word(&stage, BASE + 0x1010), first));
		/* The word is the same within a larger read across blocks. */
		cr_assert(zero(int, remote_memory_read(&stage.look.memory, BASE + 0x0f10, bytes,
						       sizeof(bytes))));
		cr_expect(eq(u64, field_u64(bytes, 0x100), first));
		cr_expect(eq(u64, field_u64(bytes, 0), BASE + 0x0f10));
		cr_expect(eq(u64, field_u64(bytes, 1016), BASE + 0x0f10 + 1016));
		cr_assert(zero(int, look_memory_end(&stage.look)));
		cr_expect(ne(u64, read_word(&stage, BASE + 0x1010), first), "no look is open");
		cr_assert(zero(int, look_memory_begin(&stage.look)));
		cr_expect(ne(u64, read_word(&stage, BASE + 0x1010), first), "another look");
		cr_assert(zero(int, look_memory_end(&stage.look)));
	}
	end(&stage);
}

Test(look_memory, reads_between_looks_are_not_cached)
{
	struct stage stage;
	uint64_t nr_calls;

	begin(&stage);
	(void)read_word(&stage, BASE);
	nr_calls = stage.fake.nr_calls;
	cr_expect(eq(u64, read_word(&stage, BASE), BASE));
	cr_expect(eq(u64, stage.fake.nr_calls, nr_calls + 1));
	cr_expect(eq(u64, stage.fake.nr_bytes, 16));
	end(&stage);
}

/* Set both seals to the number of ranges read before. */
static void count_ranges(struct fake_memory *fake, size_t range_index)
{
	(void)range_index;
	fake_memory_write_u64(fake, SEAL_A, fake->nr_ranges);
	fake_memory_write_u64(fake, SEAL_B, fake->nr_ranges);
}

Test(look_memory, seals_are_read_first_and_last)
{
	static const remote_addr addrs[] = {BASE + 0x8008, BASE + 0x18, BASE + 0x3000};
	struct stage stage;
	uint32_t outer, inner;
	uint64_t nr_before, nr_calls;

	begin(&stage);
	(void)look_at(&stage, addrs, 3);
	stage.fake.before_range = count_ranges;
	stage.fake.context = &stage;
	cr_assert(zero(int, look_memory_seal(&stage.look, SEAL_A, 8, &outer)));
	cr_assert(zero(int, look_memory_seal(&stage.look, SEAL_B, 24, &inner)));

	/* Without a read after them they are read twice in one call. */
	nr_before = stage.fake.nr_ranges;
	nr_calls = stage.fake.nr_calls;
	cr_assert(zero(int, look_memory_begin(&stage.look)));
	for (size_t i = 0; i < 3; i++)
		(void)read_word(&stage, addrs[i]);
	cr_assert(zero(int, look_memory_end(&stage.look)));
	const struct look_seal *seals[] = {look_memory_seal_at(&stage.look, outer),
					   look_memory_seal_at(&stage.look, inner)};
	cr_expect(eq(u64, stage.fake.nr_calls, nr_calls + 1));
	cr_expect(eq(u64, stage.fake.nr_ranges, nr_before + 7));
	cr_expect(seals[0]->is_read && seals[1]->is_read);
	cr_expect(eq(u64, field_u64(seals[0]->first, 0), nr_before));
	cr_expect(eq(u64, field_u64(seals[1]->first, 0), nr_before + 1));
	cr_expect(eq(u64, field_u64(seals[1]->last, 0), nr_before + 5));
	cr_expect(eq(u64, field_u64(seals[0]->last, 0), nr_before + 6));

	/* After another read they are read once more. */
	nr_before = stage.fake.nr_ranges;
	cr_assert(zero(int, look_memory_begin(&stage.look)));
	(void)read_word(&stage, BASE + 0xb000);
	cr_expect(eq(u64, stage.fake.nr_ranges, nr_before + 8));
	cr_assert(zero(int, look_memory_end(&stage.look)));
	cr_expect(eq(u64, stage.fake.nr_ranges, nr_before + 10));
	cr_expect(eq(u64, field_u64(seals[0]->first, 0), nr_before));
	cr_expect(eq(u64, field_u64(seals[1]->last, 0), nr_before + 8));
	cr_expect(eq(u64, field_u64(seals[0]->last, 0), nr_before + 9));

	/* Without seals. */
	look_memory_clear_seals(&stage.look);
	nr_before = stage.fake.nr_ranges;
	(void)look_at(&stage, addrs, 3);
	cr_expect(eq(u64, stage.fake.nr_ranges, nr_before + 4));
	end(&stage);
}

/* Every kind of read after the seals makes them be read again. */
Test(look_memory, seals_are_read_again_after_late_reads)
{
	uint8_t large[PAGE_BYTES];
	struct stage stage;

	for (int kind = 0; kind < 4; kind++) {
		uint64_t first_two[2];
		struct remote_range ranges[] = {
			{.addr = BASE, .buffer = &first_two[0], .size = 8},
			{.addr = BASE + 8, .buffer = &first_two[1], .size = 8}};
		uint64_t nr_calls, word;
		uint32_t index;

		begin(&stage);
		cr_assert(zero(int, look_memory_seal(&stage.look, SEAL_A, 8, &index)));
		cr_assert(zero(int, look_memory_begin(&stage.look)));
		fake_memory_write_u64(&stage.fake, SEAL_A, 77);
		nr_calls = stage.fake.nr_calls;
		if (kind == 1)
			cr_assert(zero(int, remote_memory_read(&stage.look.memory, BASE, large,
							       sizeof(large))));
		if (kind == 2)
			cr_assert(zero(int,
				       remote_memory_read_ranges(&stage.look.memory, ranges, 2)));
		if (kind == 3)
			cr_expect(eq(int,
				     remote_memory_read_u64(&stage.look.memory, GAP_ADDR, &word),
				     -EFAULT));
		cr_expect(eq(int, kind != 0, stage.fake.nr_calls != nr_calls));
		cr_assert(zero(int, look_memory_end(&stage.look)));
		cr_expect(zero(u64, field_u64(look_memory_seal_at(&stage.look, index)->first, 0)));
		cr_expect(eq(u64, field_u64(look_memory_seal_at(&stage.look, index)->last, 0),
			     kind ? 77 : 0),
			  "kind %d", kind);
		end(&stage);
	}
}

Test(look_memory, unreadable_seals_are_reported)
{
	struct stage stage;
	uint32_t index, gone;

	begin(&stage);
	cr_assert(zero(int, look_memory_seal(&stage.look, GAP_ADDR, 8, &gone)));
	cr_assert(zero(int, look_memory_seal(&stage.look, SEAL_A, 8, &index)));
	cr_assert(zero(int, look_memory_begin(&stage.look)));
	cr_expect(not(look_memory_seal_at(&stage.look, gone)->is_read));
	cr_expect(look_memory_seal_at(&stage.look, index)->is_read);
	/* The seal disappears during the look. */
	fake_memory_unmap(&stage.fake, SEAL_A);
	(void)read_word(&stage, BASE);
	cr_assert(zero(int, look_memory_end(&stage.look)));
	cr_expect(not(look_memory_seal_at(&stage.look, index)->is_read));
	end(&stage);
}

static void unmap_seal(struct fake_memory *fake, size_t range_index)
{
	if (range_index == 1)
		fake_memory_unmap(fake, SEAL_A);
}

/* The seal disappears between its two reads at the beginning. */
Test(look_memory, seal_that_disappears_is_reported)
{
	struct stage stage;
	uint32_t index;

	begin(&stage);
	stage.fake.before_range = unmap_seal;
	cr_assert(zero(int, look_memory_seal(&stage.look, SEAL_A, 8, &index)));
	cr_assert(zero(int, look_memory_begin(&stage.look)));
	cr_expect(not(look_memory_seal_at(&stage.look, index)->is_read));
	cr_assert(zero(int, look_memory_end(&stage.look)));
	cr_expect(not(look_memory_seal_at(&stage.look, index)->is_read));
	end(&stage);
}

/* The target maps whole pages. Data near an unmapped page can be read, too. */
Test(look_memory, unreadable_block_falls_back_to_single_reads)
{
	struct stage stage;
	uint64_t word;

	begin(&stage);
	/* Smaller than a block, unlike real mappings. */
	(void)fake_memory_map(&stage.fake, GAP_ADDR + 8, 16);
	fake_memory_write_u64(&stage.fake, GAP_ADDR + 16, 5);
	for (int look = 0; look < 3; look++) {
		cr_assert(zero(int, look_memory_begin(&stage.look)));
		cr_expect(eq(u64, read_word(&stage, GAP_ADDR + 16), 5));
		cr_expect(eq(int, remote_memory_read_u64(&stage.look.memory, GAP_ADDR, &word),
			     -EFAULT));
		cr_expect(eq(int, remote_memory_read_u64(&stage.look.memory, UINT64_MAX - 3, &word),
			     -EFAULT));
		cr_assert(zero(int, look_memory_end(&stage.look)));
	}

	/* A block that was read ahead disappears, then one inside a run. */
	for (int look = 0; look < 3; look++) {
		cr_assert(zero(int, look_memory_begin(&stage.look)));
		for (remote_addr addr = SEAL_A; addr < SEAL_A + PAGE_BYTES;
		     addr += LOOK_BLOCK_BYTES)
			(void)read_word(&stage, addr);
		cr_assert(zero(int, look_memory_end(&stage.look)));
	}
	fake_memory_unmap(&stage.fake, SEAL_A);
	(void)fake_memory_map(&stage.fake, SEAL_A, 2 * LOOK_BLOCK_BYTES + 16);
	fake_memory_write_u64(&stage.fake, SEAL_A + 2 * LOOK_BLOCK_BYTES + 8, 9);
	for (int look = 0; look < 3; look++) {
		cr_assert(zero(int, look_memory_begin(&stage.look)));
		cr_expect(zero(u64, read_word(&stage, SEAL_A + LOOK_BLOCK_BYTES)));
		cr_expect(eq(u64, read_word(&stage, SEAL_A + 2 * LOOK_BLOCK_BYTES + 8), 9));
		cr_expect(eq(int,
			     remote_memory_read_u64(&stage.look.memory,
						    SEAL_A + 3 * LOOK_BLOCK_BYTES, &word),
			     -EFAULT));
		cr_assert(zero(int, look_memory_end(&stage.look)));
	}
	end(&stage);
}

/* Long reads and reads of several ranges are passed on, and nothing of them is kept. */
Test(look_memory, large_reads_pass_through)
{
	static uint8_t large[3 * PAGE_BYTES];
	struct stage stage;
	uint64_t words[2];
	struct remote_range ranges[] = {{.addr = BASE, .buffer = &words[0], .size = 8},
					{.addr = BASE + 0x8000, .buffer = &words[1], .size = 8}};

	begin(&stage);
	for (int look = 0; look < 3; look++) {
		const uint64_t nr_calls = stage.fake.nr_calls;
		const uint64_t nr_bytes = stage.fake.nr_bytes;

		cr_assert(zero(int, look_memory_begin(&stage.look)));
		cr_assert(zero(int, remote_memory_read(&stage.look.memory, BASE + 8, large,
						       sizeof(large))));
		cr_expect(eq(u64, field_u64(large, 4096), BASE + 8 + 4096));
		cr_assert(zero(int, remote_memory_read_ranges(&stage.look.memory, ranges, 2)));
		cr_expect(eq(u64, words[1], BASE + 0x8000));
		cr_assert(zero(int, look_memory_end(&stage.look)));
		cr_expect(eq(u64, stage.fake.nr_bytes - nr_bytes, sizeof(large) + 16));
		/* The beginning, two reads, and the end for the seals, of which there are none. */
		cr_expect(le(u64, stage.fake.nr_calls - nr_calls, 4));
	}
	end(&stage);
}

/* Reads beyond what can be kept give the right data, too. */
Test(look_memory, reads_beyond_the_buffer_are_correct)
{
	enum { LARGE_BYTES = 6 << 20 };
	struct stage stage;
	uint64_t word;

	begin(&stage);
	uint8_t *bytes = fake_memory_map(&stage.fake, UINT64_C(0x1000000), LARGE_BYTES);
	for (size_t i = 0; i < LARGE_BYTES; i += LOOK_BLOCK_BYTES)
		memcpy(bytes + i, &i, sizeof(i));
	for (int look = 0; look < 2; look++) {
		cr_assert(zero(int, look_memory_begin(&stage.look)));
		for (size_t i = LARGE_BYTES; i > 0; i -= LOOK_BLOCK_BYTES) {
			const size_t at = i - LOOK_BLOCK_BYTES;

			word = read_word(&stage, UINT64_C(0x1000000) + at);
			cr_assert(eq(u64, word, at));
		}
		cr_assert(zero(int, look_memory_end(&stage.look)));
	}
	end(&stage);
}

Test(look_memory, memory_errors_end_a_look)
{
	static const int errors[] = {-ESRCH, -EPERM};

	for (size_t i = 0; i < 2; i++) {
		struct stage stage;
		uint64_t word;
		uint32_t index;

		begin(&stage);
		cr_assert(zero(int, look_memory_seal(&stage.look, SEAL_A, 8, &index)));
		stage.fake.error = errors[i];
		cr_expect(eq(int, look_memory_begin(&stage.look), errors[i]));
		cr_expect(zero(int, look_memory_end(&stage.look)), "no look is open now");
		stage.fake.error = 0;
		cr_assert(zero(int, look_memory_begin(&stage.look)));
		stage.fake.error = errors[i];
		cr_expect(eq(int, remote_memory_read_u64(&stage.look.memory, BASE, &word),
			     errors[i]));
		cr_expect(eq(int, look_memory_end(&stage.look), errors[i]));
		stage.fake.error = 0;
		cr_expect(eq(u64, read_word(&stage, BASE), BASE));
		end(&stage);
	}
}

/* Write permission and the check of the process come from the inner memory. */
Test(look_memory, writes_and_checks_are_forwarded)
{
	struct stage stage;

	begin(&stage);
	cr_expect(not(remote_memory_is_writable(&stage.look.memory)));
	cr_expect(zero(int, remote_memory_check(&stage.look.memory)));
	fake_memory_allow_writes(&stage.fake);
	look_memory_done(&stage.look);
	look_memory_init(&stage.look, &stage.fake.memory);
	cr_assert(remote_memory_is_writable(&stage.look.memory));
	cr_expect(zero(int, remote_memory_write_u64(&stage.look.memory, BASE + 8, 5)));
	cr_expect(eq(u64, stage.fake.written_value, 5));
	cr_expect(eq(u64, stage.fake.written_addr, BASE + 8));
	stage.fake.check_error = -ESRCH;
	cr_expect(eq(int, remote_memory_check(&stage.look.memory), -ESRCH));
	cr_expect(eq(int, remote_memory_write_u64(&stage.look.memory, BASE + 8, 6), -ESRCH));
	cr_expect(eq(u64, stage.fake.nr_writes, 1));
	end(&stage);
}
