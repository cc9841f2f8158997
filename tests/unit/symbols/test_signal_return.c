/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/signal_return.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "symbols/unwind/registers.h"
#include "tests/support/fake_memory.h"

enum { ADDR = 0x40000 };

/* Expect a rule that finds all registers, in this order, from an offset to the stack pointer on. */
static void expect_all_restored(const struct unwind_rule *rule, const uint8_t *order,
				int32_t first_offset)
{
	cr_assert(rule != NULL);
	cr_expect(rule->is_signal_frame);
	cr_expect(eq(u8, rule->cfa_register, REGISTER_SP));
	cr_expect(zero(i32, rule->cfa_offset));
	cr_assert(eq(u8, rule->nr_saves, NR_REGISTERS));
	for (int32_t i = 0; i < NR_REGISTERS; i++) {
		cr_expect(eq(u8, rule->saves[order[i]].number, order[i]));
		cr_expect(eq(int, rule->saves[order[i]].kind, CFI_AT_CFA));
		cr_expect(eq(i32, rule->saves[order[i]].value, first_offset + 8 * i), "%d", i);
	}
}

#if defined(__aarch64__)

/* The vDSO's function, with the instructions before and after it. */
static const uint32_t code[] = {0xd503201f, 0xd2801168, 0xd4000001, 0xd503201f};

static const struct unwind_rule *rule_at(const uint32_t *words, remote_addr offset)
{
	const struct unwind_rule *rule;
	struct fake_memory fake;

	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, ADDR, words, sizeof(code));
	rule = signal_return_rule(&fake.memory, ADDR + offset);
	fake_memory_done(&fake);
	return rule;
}

Test(signal_return, is_recognised_by_its_instructions)
{
	static const struct {
		remote_addr offset; /* of the look-up */
		bool is_found;
	} cases[] = {
		{3, true}, /* a return address to the first instruction */
		{4, true},  {8, true},	{0, false},  {1, false},  {2, false},	{5, false},
		{6, false}, {7, false}, {11, false}, {12, false}, {100, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(int, rule_at(code, cases[i].offset) != NULL, cases[i].is_found), "%u",
			  (unsigned int)cases[i].offset);
	for (size_t bit = 0; bit < 64; bit++) {
		uint32_t other[4] = {code[0], code[1], code[2], code[3]};

		other[1 + bit / 32] ^= 1u << bit % 32;
		cr_expect(not(rule_at(other, 3) != NULL), "%zu", bit);
	}
}

/* x0 to x30, sp and pc in the kernel's struct rt_sigframe. */
Test(signal_return, restores_all_registers)
{
	uint8_t order[NR_REGISTERS];

	for (unsigned int i = 0; i < NR_REGISTERS; i++)
		order[i] = (uint8_t)i;
	expect_all_restored(rule_at(code, 3), order, 128 + 176 + 8);
}

#else

/* musl's function, with a byte before and after it. */
static const uint8_t code[] = {0xc3, 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x90};
enum { FUNCTION_OFFSET = 32 };

static const struct unwind_rule *rule_at(const uint8_t *bytes, remote_addr offset)
{
	const struct unwind_rule *rule;
	struct fake_memory fake;

	fake_memory_init(&fake);
	fake_memory_map(&fake, ADDR, 128);
	fake_memory_write(&fake, ADDR + FUNCTION_OFFSET - 1, bytes, sizeof(code));
	rule = signal_return_rule(&fake.memory, ADDR + FUNCTION_OFFSET + offset);
	fake_memory_done(&fake);
	return rule;
}

Test(signal_return, is_recognised_by_its_instructions)
{
	/* The look-up of a return address, and of the two instructions. */
	static const remote_addr offsets[] = {(remote_addr)-1, 0, 7};

	for (remote_addr offset = (remote_addr)-16; offset != 16; offset++) {
		bool is_found = false;

		for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
			is_found |= offsets[i] == offset;
		cr_expect(eq(int, rule_at(code, offset) != NULL, is_found), "%d", (int)offset);
	}
	for (size_t bit = 0; bit < 72; bit++) {
		uint8_t other[sizeof(code)];

		memcpy(other, code, sizeof(code));
		other[1 + bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_expect(not(rule_at(other, 0) != NULL), "%zu", bit);
	}
}

/* The kernel's struct sigcontext, after 40 bytes. */
Test(signal_return, restores_all_registers)
{
	/* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp and rip in DWARF's numbers. */
	static const uint8_t order[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};

	expect_all_restored(rule_at(code, 0), order, 40);
}

#endif
