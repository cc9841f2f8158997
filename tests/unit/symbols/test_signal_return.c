/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/signal_return.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "symbols/unwind/registers.h"
#include "tests/support/fake_memory.h"

enum { ADDR = 0x40000 };

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

/* Offsets from the stack pointer, as in the kernel's struct rt_sigframe. */
Test(signal_return, restores_all_registers)
{
	const struct unwind_rule *rule = rule_at(code, 3);
	enum { REGISTERS_AT = 128 + 176 + 8 };

	cr_assert(rule != NULL);
	cr_expect(rule->is_signal_frame);
	cr_expect(eq(u8, rule->cfa_register, REGISTER_SP));
	cr_expect(zero(i32, rule->cfa_offset));
	cr_assert(eq(u8, rule->nr_saves, NR_REGISTERS));
	for (unsigned int i = 0; i < NR_REGISTERS; i++) {
		cr_expect(eq(u8, rule->saves[i].number, i));
		cr_expect(eq(int, rule->saves[i].kind, CFI_AT_CFA));
		cr_expect(eq(i32, rule->saves[i].value, (int32_t)(REGISTERS_AT + 8 * i)), "%u", i);
	}
}

#else

Test(signal_return, has_no_rule_on_other_machines)
{
	struct fake_memory fake;

	fake_memory_init(&fake);
	cr_expect(not(signal_return_rule(&fake.memory, ADDR) != NULL));
	fake_memory_done(&fake);
}

#endif
