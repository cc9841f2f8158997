/* SPDX-License-Identifier: MIT */
#include "procmem/perf_record.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "symbols/registers.h"

/* A record as the kernel writes it: words behind the header and the ids. */
struct made_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t words[64];
};

enum { AT_TIME, AT_ABI, AT_REGISTERS, AT_SIZE = AT_REGISTERS + NR_PERF_RECORD_REGISTERS, AT_STACK };

enum { STACK_WORDS = 4 };

static size_t make_record(struct made_record *record)
{
	*record = (struct made_record){.pid = 7, .tid = 9};
	record->words[AT_TIME] = 1234;
	record->words[AT_ABI] = PERF_SAMPLE_REGS_ABI_64;
	for (unsigned int i = 0; i < NR_PERF_RECORD_REGISTERS; i++)
		record->words[AT_REGISTERS + i] = 0x100 + i;
	record->words[AT_SIZE] = 8 * STACK_WORDS;
	for (unsigned int i = 0; i < STACK_WORDS; i++)
		record->words[AT_STACK + i] = 0x200 + i;
	record->words[AT_STACK + STACK_WORDS] = 24; /* of the 32 bytes that were reserved */
	return offsetof(struct made_record, words) + 8 * (AT_STACK + STACK_WORDS + 1);
}

Test(perf_record, whole)
{
	struct made_record record;
	const size_t nr_bytes = make_record(&record);
	struct perf_dump dump;

	cr_assert(zero(int, perf_record_parse((const uint8_t *)&record, nr_bytes, &dump)));
	cr_expect(eq(int, dump.tid, 9));
	cr_expect(eq(u64, dump.time_ns, 1234));
	cr_expect(eq(sz, dump.nr_stack_bytes, 24));
	cr_expect(zero(int, memcmp(dump.stack, &record.words[AT_STACK], 24)));
	cr_expect(eq(u64, dump.registers[0], 0x100));
	cr_expect(eq(u64, dump.registers[NR_PERF_RECORD_REGISTERS - 1],
		     0x100 + NR_PERF_RECORD_REGISTERS - 1));
}

/* Every length that is too short, and a field each that says what cannot be. */
Test(perf_record, cut_off_and_wrong)
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
	struct perf_dump dump;

	for (size_t nr = 0; nr < nr_bytes; nr++)
		cr_expect(eq(int, perf_record_parse((const uint8_t *)&record, nr, &dump), -EBADMSG),
			  "%zu bytes", nr);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)make_record(&record);
		record.words[cases[i].word] = cases[i].value;
		cr_expect(eq(int, perf_record_parse((const uint8_t *)&record, nr_bytes, &dump),
			     cases[i].err),
			  "case %zu", i);
	}
}

#if defined(__x86_64__)
/* ax, bx, cx, dx, si, di, bp, sp, ip, r8 to r15 are the kernel's; DWARF's begin with rax, rdx. */
Test(perf_record, registers_by_their_dwarf_numbers)
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
