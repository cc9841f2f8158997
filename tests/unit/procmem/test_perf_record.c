/* SPDX-License-Identifier: MIT */
#include "procmem/sched/perf_record.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "symbols/unwind/registers.h"

/* A record as the kernel writes it: header, ids, then words. */
struct made_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t words[64];
};

enum {
	AT_TIME,
	AT_COUNT,
	AT_ABI,
	AT_REGISTERS,
	AT_SIZE = AT_REGISTERS + NR_PERF_RECORD_REGISTERS,
	AT_STACK
};

enum { STACK_WORDS = 4 };

static size_t make_record(struct made_record *record)
{
	*record = (struct made_record){.pid = 7, .tid = 9};
	record->words[AT_TIME] = 1234;
	record->words[AT_COUNT] = 5;
	record->words[AT_ABI] = PERF_SAMPLE_REGS_ABI_64;
	for (unsigned int i = 0; i < NR_PERF_RECORD_REGISTERS; i++)
		record->words[AT_REGISTERS + i] = 0x100 + i;
	record->words[AT_SIZE] = 8 * STACK_WORDS;
	for (unsigned int i = 0; i < STACK_WORDS; i++)
		record->words[AT_STACK + i] = 0x200 + i;
	record->words[AT_STACK + STACK_WORDS] = 24; /* of 32 reserved bytes */
	return offsetof(struct made_record, words) + 8 * (AT_STACK + STACK_WORDS + 1);
}

Test(perf_record, parses_a_sample)
{
	struct made_record record;
	const size_t nr_bytes = make_record(&record);
	struct perf_copy copy;

	cr_assert(zero(int, perf_record_parse((const uint8_t *)&record, nr_bytes,
					      PERF_RECORD_SAMPLE_TYPE, &copy)));
	cr_expect(eq(int, copy.tid, 9));
	cr_expect(eq(u64, copy.time_ns, 1234));
	cr_expect(eq(u64, copy.count_ns, 5));
	cr_expect(eq(sz, copy.nr_stack_bytes, 24));
	cr_expect(zero(int, memcmp(copy.stack, &record.words[AT_STACK], 24)));
	cr_expect(eq(u64, copy.registers[0], 0x100));
	cr_expect(eq(u64, copy.registers[NR_PERF_RECORD_REGISTERS - 1],
		     0x100 + NR_PERF_RECORD_REGISTERS - 1));
}

/* Every truncated length, and invalid values of single fields. */
Test(perf_record, truncated_and_invalid_samples_are_refused)
{
	static const struct {
		unsigned int word;
		uint64_t value;
		int err;
	} cases[] = {
		{AT_ABI, PERF_SAMPLE_REGS_ABI_NONE, -ENOENT},
		{AT_ABI, PERF_SAMPLE_REGS_ABI_32, -ENOENT},
		{AT_SIZE, 0, -ENOENT},
		{AT_SIZE, UINT64_MAX, -EBADMSG},
		{AT_SIZE, 40, -EBADMSG},
		{AT_STACK + STACK_WORDS, 33, -EBADMSG},
		{AT_STACK + STACK_WORDS, 0, -ENOENT},
	};
	struct made_record record;
	const size_t nr_bytes = make_record(&record);
	struct perf_copy copy;

	for (size_t nr = 0; nr < nr_bytes; nr++)
		cr_expect(eq(int,
			     perf_record_parse((const uint8_t *)&record, nr,
					       PERF_RECORD_SAMPLE_TYPE, &copy),
			     -EBADMSG),
			  "%zu bytes", nr);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)make_record(&record);
		record.words[cases[i].word] = cases[i].value;
		cr_expect(eq(int,
			     perf_record_parse((const uint8_t *)&record, nr_bytes,
					       PERF_RECORD_SAMPLE_TYPE, &copy),
			     cases[i].err),
			  "case %zu", i);
	}
}

/* The call chain's words, between count and registers, and the addresses expected from them. */
struct chain_case {
	uint64_t words[8];
	uint32_t nr_words;
	uint64_t addrs[4];
	uint32_t nr_addrs;
};

/* A record like that of make_record(), with a call chain. */
static size_t make_chained(struct made_record *record, const struct chain_case *chain)
{
	struct made_record plain;
	const size_t nr_bytes = make_record(&plain);
	const size_t nr_extra = chain->nr_words + 1;

	*record = plain;
	record->words[AT_COUNT + 1] = chain->nr_words;
	memcpy(&record->words[AT_COUNT + 2], chain->words, 8 * chain->nr_words);
	memcpy(&record->words[AT_ABI + nr_extra], &plain.words[AT_ABI],
	       nr_bytes - offsetof(struct made_record, words) - 8 * AT_ABI);
	return nr_bytes + 8 * nr_extra;
}

static int parse_chained(const struct made_record *record, size_t nr_bytes, struct perf_copy *copy)
{
	return perf_record_parse((const uint8_t *)record, nr_bytes, PERF_RECORD_KERNEL_SAMPLE_TYPE,
				 copy);
}

/* Only addresses after the kernel's marker are the kernel's. */
Test(perf_record, keeps_kernel_addresses_only)
{
	static const struct chain_case cases[] = {
		{{0}, 0, {0}, 0},
		{{(uint64_t)PERF_CONTEXT_KERNEL, 0x21, 0x22}, 3, {0x21, 0x22}, 2},
		{{(uint64_t)PERF_CONTEXT_KERNEL}, 1, {0}, 0},
		{{(uint64_t)PERF_CONTEXT_USER, 0x21}, 2, {0}, 0},
		{{0x21, 0x22}, 2, {0}, 0},
		{{(uint64_t)PERF_CONTEXT_KERNEL, 0x21, (uint64_t)PERF_CONTEXT_USER, 0x31,
		  (uint64_t)PERF_CONTEXT_KERNEL, 0x22},
		 6,
		 {0x21, 0x22},
		 2},
	};
	struct made_record record;
	struct perf_copy copy;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t nr_bytes = make_chained(&record, &cases[i]);

		cr_assert(zero(int, parse_chained(&record, nr_bytes, &copy)), "case %zu", i);
		cr_expect(eq(u32, copy.nr_kernel_addrs, cases[i].nr_addrs), "case %zu", i);
		cr_expect(
			zero(int, memcmp(copy.kernel_addrs, cases[i].addrs, 8 * cases[i].nr_addrs)),
			"case %zu", i);
		cr_expect(eq(u64, copy.registers[0], 0x100), "case %zu", i);
		cr_expect(eq(sz, copy.nr_stack_bytes, 24), "case %zu", i);
	}
}

Test(perf_record, truncated_and_endless_chains_are_refused)
{
	static const struct chain_case chain = {
		.words = {(uint64_t)PERF_CONTEXT_KERNEL, 0x21, 0x22}, .nr_words = 3};
	static const uint64_t numbers[] = {
		64,	   65535, 65536, 1ull << 32, 1ull << 61, (1ull << 61) + 3, UINT64_MAX / 8,
		UINT64_MAX};
	struct made_record record;
	const size_t nr_bytes = make_chained(&record, &chain);
	struct perf_copy copy;

	for (size_t nr = 0; nr < nr_bytes; nr++)
		cr_expect(eq(int, parse_chained(&record, nr, &copy), -EBADMSG), "%zu bytes", nr);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		record.words[AT_COUNT + 1] = numbers[i];
		cr_expect(eq(int, parse_chained(&record, nr_bytes, &copy), -EBADMSG), "%#llx words",
			  (unsigned long long)numbers[i]);
	}
}

/*
 * A kernel configured for longer chains: the inner addresses are kept, and the stack is still
 * found.
 */
Test(perf_record, long_chain_keeps_its_inner_addresses)
{
	enum { NR_ADDRS = 1000, NR_FIRST = 5 /* header, ids, time, count, length */ };
	static uint64_t words[NR_FIRST + 1 + NR_ADDRS + AT_STACK + STACK_WORDS];
	struct made_record plain;
	const size_t nr_bytes = make_record(&plain);
	struct perf_copy copy;

	memcpy(words, &plain, (NR_FIRST - 1) * 8);
	words[NR_FIRST - 1] = NR_ADDRS + 1;
	words[NR_FIRST] = (uint64_t)PERF_CONTEXT_KERNEL;
	for (uint64_t i = 0; i < NR_ADDRS; i++)
		words[NR_FIRST + 1 + i] = 0x1000 + i;
	memcpy(&words[NR_FIRST + 1 + NR_ADDRS], &plain.words[AT_ABI],
	       nr_bytes - (NR_FIRST - 1) * 8);
	cr_assert(zero(int, perf_record_parse((const uint8_t *)words, sizeof(words),
					      PERF_RECORD_KERNEL_SAMPLE_TYPE, &copy)));
	cr_expect(eq(u32, copy.nr_kernel_addrs, PERF_RECORD_MAX_KERNEL_FRAMES));
	cr_expect(eq(u64, copy.kernel_addrs[PERF_RECORD_MAX_KERNEL_FRAMES - 1],
		     0x1000 + PERF_RECORD_MAX_KERNEL_FRAMES - 1));
	cr_expect(eq(sz, copy.nr_stack_bytes, 24));
}

#if defined(__x86_64__)
/*
 * The kernel's order is ax, bx, cx, dx, si, di, bp, sp, ip, r8 to r15. DWARF's begins with rax,
 * rdx.
 */
Test(perf_record, maps_registers_to_dwarf_numbers)
{
	static const struct {
		unsigned int number, place;
	} cases[] = {
		{0, 0},
		{1, 3},
		{2, 2},
		{REGISTER_RBX, 1},
		{4, 4},
		{5, 5},
		{REGISTER_RBP, 6},
		{REGISTER_SP, 7},
		{8, 9},
		{REGISTER_R12, 13},
		{15, 16},
		{REGISTER_PC, 8},
	};
	uint64_t words[NR_PERF_RECORD_REGISTERS];
	struct registers registers;

	for (unsigned int i = 0; i < NR_PERF_RECORD_REGISTERS; i++)
		words[i] = 0x100 + i;
	registers = registers_of_perf(words);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(u64, registers.values[cases[i].number], 0x100 + cases[i].place));
	cr_expect(registers.is_interrupted);
}
#endif
