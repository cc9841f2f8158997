/* SPDX-License-Identifier: MIT */
#include "symbols/jit/perf_trampoline.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

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

#elif defined(__aarch64__)

/* As in Python/asm_trampoline.S, built without protection, with BTI, and with PAC of each key. */
#define TRAMPOLINE(name, head, tail)                                             \
	extern const uint8_t name[] __attribute__((visibility("hidden")));       \
	extern const uint8_t name##_end[] __attribute__((visibility("hidden"))); \
	__asm__(".pushsection .rodata\n"                                         \
		".balign 4\n" #name ": " head "\n"                               \
		"stp x29, x30, [sp, -16]!\n"                                     \
		"mov x29, sp\n"                                                  \
		"blr x3\n"                                                       \
		"ldp x29, x30, [sp], 16\n" tail "\n"                             \
		"ret\n" #name "_end: .word 0\n"                                  \
		".popsection\n")

TRAMPOLINE(unprotected, "", "");
TRAMPOLINE(with_bti, "hint 34", "");
TRAMPOLINE(with_key_a, "hint 25", "hint 29");
TRAMPOLINE(with_key_b, "hint 27", "hint 31");

enum { ADDR = 0x40000 };

/* The call frame information that -X perf_jit writes for each: f a frame, s a signed address. */
static const struct {
	const uint8_t *code, *end;
	char rows[7][3];
} trampolines[] = {
	{unprotected, unprotected_end, {"", "f", "f", "f", ""}},
	{with_bti, with_bti_end, {"", "", "f", "f", "f", ""}},
	{with_key_a, with_key_a_end, {"", "s", "fs", "fs", "fs", "s", ""}},
	{with_key_b, with_key_b_end, {"", "s", "fs", "fs", "fs", "s", ""}},
};
enum { NR_TRAMPOLINES = sizeof(trampolines) / sizeof(trampolines[0]) };

static const struct unwind_rule *rule_in(struct fake_memory *fake, remote_addr addr,
					 remote_addr *ret_start_addr)
{
	*ret_start_addr = 0;
	return perf_trampoline_rule(&fake->memory, addr, ret_start_addr);
}

/* At a page's start, across a page's end, and after another one without a gap. */
Test(perf_trampoline, has_unwind_rows)
{
	static const remote_addr addrs[] = {ADDR, ADDR - 8, ADDR - 20};

	for (size_t n = 0; n < NR_TRAMPOLINES; n++)
		for (size_t a = 0; a < sizeof(addrs) / sizeof(addrs[0]); a++) {
			const size_t length = (size_t)(trampolines[n].end - trampolines[n].code);
			struct fake_memory fake;
			remote_addr start_addr;

			fake_memory_init(&fake);
			fake.whole_pages = true;
			fake_memory_map_bytes(&fake, addrs[a], trampolines[n].code, length);
			for (size_t i = 0; i < length; i++) {
				const char *row = trampolines[n].rows[i / 4];
				const bool has_frame = row[0] == 'f';
				const struct unwind_rule *rule =
					rule_in(&fake, addrs[a] + i, &start_addr);

				cr_assert(rule != NULL, "%zu: %zu", n, i);
				cr_expect(eq(u64, start_addr, addrs[a]), "%zu: %zu", n, i);
				cr_expect(eq(u8, rule->cfa_register, REGISTER_SP));
				cr_expect(eq(i32, rule->cfa_offset, has_frame ? 16 : 0), "%zu: %zu",
					  n, i);
				cr_expect(eq(u8, rule->nr_saves, has_frame ? 2 : 0));
				cr_expect(eq(int, rule->is_return_signed, strchr(row, 's') != NULL),
					  "%zu: %zu", n, i);
			}
			cr_expect(not(rule_in(&fake, addrs[a] + length, &start_addr) != NULL));
			cr_expect(not(rule_in(&fake, addrs[a] - 1, &start_addr) != NULL));
			fake_memory_done(&fake);
		}
}

Test(perf_trampoline, other_code_is_no_trampoline)
{
	struct fake_memory fake;
	remote_addr start_addr;
	uint8_t bytes[20];

	for (size_t changed = 0; changed < sizeof(bytes); changed++) {
		fake_memory_init(&fake);
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(unprotected[i] ^ (i == changed));
		fake_memory_map_bytes(&fake, ADDR, bytes, sizeof(bytes));
		for (size_t i = 0; i < sizeof(bytes); i++)
			cr_expect(not(rule_in(&fake, ADDR + i, &start_addr) != NULL), "%zu", i);
		cr_expect(zero(sz, perf_trampoline_bytes(bytes, sizeof(bytes))));
		fake_memory_done(&fake);
	}
	fake_memory_init(&fake);
	cr_expect(not(rule_in(&fake, ADDR, &start_addr) != NULL), "unmapped");
	cr_expect(not(rule_in(&fake, 0, &start_addr) != NULL));
	cr_expect(not(rule_in(&fake, UINT64_MAX, &start_addr) != NULL));
	fake_memory_done(&fake);
}

Test(perf_trampoline, measures_a_trampoline)
{
	for (size_t n = 0; n < NR_TRAMPOLINES; n++) {
		const size_t length = (size_t)(trampolines[n].end - trampolines[n].code);

		cr_expect(eq(sz, perf_trampoline_bytes(trampolines[n].code, length), length));
		cr_expect(eq(sz, perf_trampoline_bytes(trampolines[n].code, length + 4), length));
		cr_expect(zero(sz, perf_trampoline_bytes(trampolines[n].code, length - 1)));
	}
}

#endif
