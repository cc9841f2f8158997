/* SPDX-License-Identifier: MIT */
#include "symbols/jit/perf_trampoline.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "symbols/unwind/registers.h"
#include "tests/support/fake_memory.h"

#if defined(__x86_64__)

enum { ADDR = 0x40000 };

/*
 * Trampolines of CPython 3.13 in Debian. The bytes around them belong to the next one, or are
 * zeros.
 */
static const uint8_t with_endbr64[] = {
	0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3, 0, 0, 0, 0,
	0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3, 0, 0, 0, 0};
static const uint8_t without[] = {0, 0, 0, 0, 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3, 0, 0};

/* The call frame information that -X perf_jit writes, as CFA and saves for each byte. */
static const struct {
	uint8_t cfa_register;
	int32_t cfa_offset;
	bool saves_rbp;
} rows[] = {
	{REGISTER_SP, 8, false},  {REGISTER_SP, 8, false},  {REGISTER_SP, 8, false},
	{REGISTER_SP, 8, false},  {REGISTER_SP, 8, false},  {REGISTER_SP, 16, true},
	{REGISTER_SP, 16, true},  {REGISTER_SP, 16, true},  {REGISTER_RBP, 16, true},
	{REGISTER_RBP, 16, true}, {REGISTER_RBP, 16, true}, {REGISTER_SP, 8, false},
};

static bool is_trampoline(struct remote_memory *memory, remote_addr addr)
{
	remote_addr start_addr;

	return perf_trampoline_rule(memory, addr, &start_addr) != NULL;
}

static void expect_rows(const uint8_t *bytes, size_t nr_bytes, size_t start, size_t end)
{
	struct fake_memory fake;

	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, ADDR, bytes, nr_bytes);
	for (size_t i = 0; i < nr_bytes; i++) {
		remote_addr start_addr = 0;
		const struct unwind_rule *rule =
			perf_trampoline_rule(&fake.memory, ADDR + i, &start_addr);

		if (i % 16 < start || i % 16 >= end) {
			cr_expect(not(rule != NULL), "%zu", i);
			continue;
		}
		cr_assert(rule != NULL, "%zu", i);
		cr_expect(eq(u64, start_addr, ADDR + i / 16 * 16 + start), "%zu", i);
		cr_expect(eq(u8, rule->cfa_register, rows[i % 16].cfa_register), "%zu", i);
		cr_expect(eq(i32, rule->cfa_offset, rows[i % 16].cfa_offset), "%zu", i);
		cr_expect(eq(u8, rule->nr_saves, 1 + rows[i % 16].saves_rbp), "%zu", i);
	}
	fake_memory_done(&fake);
}

Test(perf_trampoline, has_unwind_rows)
{
	expect_rows(with_endbr64, sizeof(with_endbr64), 0, 12);
	expect_rows(without, sizeof(without), 4, 12);
}

/* In CPython 3.12 the CFA is always relative to the stack pointer. */
Test(perf_trampoline, has_unwind_rows_of_3_12)
{
	static const uint8_t bytes[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08,
					0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3, 0};
	struct fake_memory fake;

	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, ADDR, bytes, sizeof(bytes));
	for (size_t i = 0; i < 15; i++) {
		remote_addr start_addr = 0;
		const struct unwind_rule *rule =
			perf_trampoline_rule(&fake.memory, ADDR + i, &start_addr);

		cr_assert(rule != NULL, "%zu", i);
		cr_expect(eq(u64, start_addr, ADDR), "%zu", i);
		cr_expect(eq(u8, rule->cfa_register, REGISTER_SP), "%zu", i);
		cr_expect(eq(i32, rule->cfa_offset, i > 4 && i < 14 ? 16 : 8), "%zu", i);
	}
	cr_expect(not(is_trampoline(&fake.memory, ADDR + 15)));
	fake_memory_done(&fake);
}

/* Those of CPython 3.12 follow each other without gaps, so some cross into the next page. */
Test(perf_trampoline, recognises_code_across_a_page_boundary)
{
	static const uint8_t bytes[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
					0x48, 0x83, 0xc4, 0x08, 0xc3};
	const size_t length = sizeof(bytes);
	const remote_addr page_addr = ADDR + 4096;

	for (size_t nr_below = 1; nr_below < length; nr_below++) {
		const remote_addr first_addr = page_addr - nr_below - length;
		struct fake_memory fake;

		fake_memory_init(&fake);
		fake.whole_pages = true;
		for (size_t i = 0; i < 3; i++)
			fake_memory_map_bytes(&fake, first_addr + i * length, bytes, length);
		for (size_t i = 0; i < 3 * length; i++) {
			remote_addr start_addr = 0;
			const struct unwind_rule *rule =
				perf_trampoline_rule(&fake.memory, first_addr + i, &start_addr);
			const int32_t cfa_offset = i % length > 0 && i % length < 10 ? 16 : 8;

			cr_assert(rule != NULL, "%zu: %zu", nr_below, i);
			cr_expect(eq(u64, start_addr, first_addr + i / length * length));
			cr_expect(eq(i32, rule->cfa_offset, cfa_offset), "%zu: %zu", nr_below, i);
		}
		fake_memory_done(&fake);
	}
}

/* The page before an arena is usually unmapped. */
Test(perf_trampoline, recognises_code_at_the_start_of_a_page)
{
	struct fake_memory fake;

	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, ADDR, without + 4, sizeof(without) - 4);
	fake_memory_map_bytes(&fake, ADDR - 20, without, 10);
	for (size_t i = 0; i < 8; i++)
		cr_expect(is_trampoline(&fake.memory, ADDR + i), "%zu", i);
	cr_expect(not(is_trampoline(&fake.memory, ADDR + 8)));
	fake_memory_done(&fake);
}

Test(perf_trampoline, other_code_is_no_trampoline)
{
	struct fake_memory fake;
	uint8_t bytes[sizeof(with_endbr64)];

	for (size_t changed = 4; changed < 12; changed++) {
		fake_memory_init(&fake);
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(with_endbr64[i] ^ (i == changed));
		fake_memory_map_bytes(&fake, ADDR, bytes, sizeof(bytes));
		for (size_t i = 0; i < 12; i++)
			cr_expect(not(is_trampoline(&fake.memory, ADDR + i)), "%zu", i);
		fake_memory_done(&fake);
	}
}

Test(perf_trampoline, unmapped_address_is_no_trampoline)
{
	struct fake_memory fake;

	fake_memory_init(&fake);
	cr_expect(not(is_trampoline(&fake.memory, ADDR)));
	cr_expect(not(is_trampoline(&fake.memory, 0)));
	cr_expect(not(is_trampoline(&fake.memory, UINT64_MAX)));
	fake_memory_done(&fake);
}

Test(perf_trampoline, measures_a_trampoline)
{
	static const uint8_t of_3_12[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
					  0x48, 0x83, 0xc4, 0x08, 0xc3};

	cr_expect(eq(sz, perf_trampoline_bytes(with_endbr64, sizeof(with_endbr64)), 12));
	cr_expect(eq(sz, perf_trampoline_bytes(with_endbr64, 12), 12));
	cr_expect(eq(sz, perf_trampoline_bytes(with_endbr64, 11), 0), "truncated code");
	cr_expect(eq(sz, perf_trampoline_bytes(without + 4, 8), 8));
	cr_expect(eq(sz, perf_trampoline_bytes(without, sizeof(without)), 0),
		  "code before the trampoline");
	cr_expect(eq(sz, perf_trampoline_bytes(of_3_12, sizeof(of_3_12)), 11));
	cr_expect(eq(sz, perf_trampoline_bytes(of_3_12, 0), 0));
}

#endif
