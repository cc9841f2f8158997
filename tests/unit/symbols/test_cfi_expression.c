/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/cfi_expression.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dwarf.h>
#include <errno.h>

#include "tests/support/fake_memory.h"

#define STACK_ADDR 0x7ffe0000

/* Evaluate an expression with sp = STACK_ADDR, pc = 0x401028 and no other register known. */
static int evaluate(const uint8_t *expression, size_t nr_bytes, const uint64_t *initial,
		    uint64_t *ret_value)
{
	static const uint64_t words[] = {0x1122334455667788, 0x99};
	uint8_t *block = malloc(nr_bytes + 1);
	const struct cfi_section section = {.bytes = block, .nr_bytes = nr_bytes + 1};
	struct stack_window window = {
		.start = STACK_ADDR, .bytes = (const uint8_t *)words, .nr_bytes = sizeof(words)};
	struct registers registers = {.known = 0};
	int err;

	registers_set(&registers, REGISTER_SP, STACK_ADDR);
	registers_set(&registers, REGISTER_PC, 0x401028);
	block[0] = (uint8_t)nr_bytes;
	memcpy(block + 1, expression, nr_bytes);
	err = cfi_expression_value(&section, 0, &registers, &window, initial, ret_value);
	free(block);
	return err;
}

/*
 * A linker's expression for the procedure linkage table: one more word from offset 11 of each
 * entry on.
 */
Test(cfi_expression, evaluates_a_linkage_table_entry)
{
	const uint8_t expression[] = {DW_OP_breg0 + REGISTER_SP,
				      8,
				      DW_OP_bregx,
				      REGISTER_PC,
				      0,
				      DW_OP_lit15,
				      DW_OP_and,
				      DW_OP_lit11,
				      DW_OP_ge,
				      DW_OP_lit3,
				      DW_OP_shl,
				      DW_OP_plus};
	struct registers registers = {.known = 0};
	uint8_t block[sizeof(expression) + 1] = {sizeof(expression)};
	const struct cfi_section section = {.bytes = block, .nr_bytes = sizeof(block)};
	struct stack_window window = {.nr_bytes = 0};

	memcpy(block + 1, expression, sizeof(expression));
	for (uint64_t pc = 0x401020; pc < 0x401030; pc++) {
		uint64_t cfa = 0;

		registers_set(&registers, REGISTER_SP, STACK_ADDR);
		registers_set(&registers, REGISTER_PC, pc);
		cr_assert(zero(int,
			       cfi_expression_value(&section, 0, &registers, &window, NULL, &cfa)));
		cr_expect(eq(u64, cfa, STACK_ADDR + (pc >= 0x40102b ? 16 : 8)));
	}
}

Test(cfi_expression, evaluates_each_operation)
{
	static const struct {
		uint8_t nr_bytes;
		uint8_t expression[12];
		uint64_t value;
	} cases[] = {
		{1, {DW_OP_lit31}, 31},
		{2, {DW_OP_const1u, 0xff}, 0xff},
		{2, {DW_OP_const1s, 0xff}, UINT64_MAX},
		{3, {DW_OP_const2u, 0xfe, 0xff}, 0xfffe},
		{3, {DW_OP_const2s, 0xfe, 0xff}, (uint64_t)-2},
		{5, {DW_OP_const4u, 4, 3, 2, 0x81}, 0x81020304},
		{5, {DW_OP_const4s, 4, 3, 2, 0x81}, 0xffffffff81020304},
		{9, {DW_OP_const8u, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201},
		{3, {DW_OP_constu, 0x80, 1}, 128},
		{3, {DW_OP_consts, 0x80, 0x7f}, (uint64_t)-128},
		{2, {DW_OP_breg0 + REGISTER_SP, 0x78}, STACK_ADDR - 8},
		{3, {DW_OP_bregx, REGISTER_PC, 1}, 0x401029},
		{3, {DW_OP_breg0 + REGISTER_SP, 0, DW_OP_deref}, 0x1122334455667788},
		{4, {DW_OP_breg0 + REGISTER_SP, 0, DW_OP_deref_size, 2}, 0x7788},
		{3, {DW_OP_lit5, DW_OP_lit3, DW_OP_minus}, 2},
		{3, {DW_OP_lit5, DW_OP_lit3, DW_OP_mul}, 15},
		{3, {DW_OP_lit5, DW_OP_lit3, DW_OP_and}, 1},
		{3, {DW_OP_lit5, DW_OP_lit3, DW_OP_or}, 7},
		{3, {DW_OP_lit5, DW_OP_lit3, DW_OP_xor}, 6},
		{3, {DW_OP_lit5, DW_OP_lit3, DW_OP_shl}, 40},
		{4, {DW_OP_lit5, DW_OP_const1u, 64, DW_OP_shl}, 0},
		{4, {DW_OP_lit0, DW_OP_not, DW_OP_lit31, DW_OP_shr}, UINT64_MAX >> 31},
		{5, {DW_OP_lit8, DW_OP_neg, DW_OP_const1u, 200, DW_OP_shra}, UINT64_MAX},
		{4, {DW_OP_lit8, DW_OP_neg, DW_OP_lit1, DW_OP_shra}, (uint64_t)-4},
		{4, {DW_OP_lit1, DW_OP_neg, DW_OP_lit1, DW_OP_lt}, 1},
		{3, {DW_OP_lit5, DW_OP_lit5, DW_OP_le}, 1},
		{3, {DW_OP_lit5, DW_OP_lit5, DW_OP_gt}, 0},
		{3, {DW_OP_lit5, DW_OP_lit5, DW_OP_eq}, 1},
		{3, {DW_OP_lit5, DW_OP_lit5, DW_OP_ne}, 0},
		{3, {DW_OP_lit5, DW_OP_plus_uconst, 2}, 7},
		{3, {DW_OP_lit5, DW_OP_dup, DW_OP_plus}, 10},
		{4, {DW_OP_lit5, DW_OP_lit3, DW_OP_over, DW_OP_minus}, (uint64_t)-2},
		{5, {DW_OP_lit5, DW_OP_lit3, DW_OP_lit1, DW_OP_pick, 2}, 5},
		{4, {DW_OP_lit5, DW_OP_lit3, DW_OP_swap, DW_OP_minus}, (uint64_t)-2},
		{3, {DW_OP_lit5, DW_OP_lit3, DW_OP_drop}, 5},
		{2, {DW_OP_lit5, DW_OP_nop}, 5},
		{6, {DW_OP_lit5, DW_OP_skip, 1, 0, DW_OP_lit3, DW_OP_nop}, 5},
		{7, {DW_OP_lit5, DW_OP_lit1, DW_OP_bra, 1, 0, DW_OP_lit3, DW_OP_nop}, 5},
		{7, {DW_OP_lit5, DW_OP_lit0, DW_OP_bra, 1, 0, DW_OP_lit3, DW_OP_nop}, 3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t value = 0;

		cr_expect(zero(int, evaluate(cases[i].expression, cases[i].nr_bytes, NULL, &value)),
			  "%zu", i);
		cr_expect(eq(u64, value, cases[i].value), "%zu", i);
	}
}

Test(cfi_expression, expression_may_start_with_the_cfa)
{
	const uint8_t expression[] = {DW_OP_plus_uconst, 8};
	uint64_t value = 0;

	cr_assert(zero(int, evaluate(expression, 2, &(uint64_t){0x100}, &value)));
	cr_expect(eq(u64, value, 0x108));
	cr_expect(eq(int, evaluate(expression, 2, NULL, &value), -EBADMSG));
}

Test(cfi_expression, damaged_expressions_are_refused)
{
	static const struct {
		uint8_t nr_bytes;
		uint8_t expression[20];
		int err;
	} cases[] = {
		{0, {0}, -EBADMSG}, /* no value */
		{1, {DW_OP_drop}, -EBADMSG},
		{1, {DW_OP_plus}, -EBADMSG},
		{2, {DW_OP_lit1, DW_OP_swap}, -EBADMSG},
		{3, {DW_OP_lit1, DW_OP_pick, 1}, -EBADMSG},
		{3, {DW_OP_const4u, 1, 2}, -EBADMSG}, /* truncated */
		{1, {DW_OP_addr}, -EBADMSG},	      /* unsupported */
		{1, {0}, -EBADMSG},
		{2, {DW_OP_breg6, 0}, -ENOENT}, /* unknown */
		{3, {DW_OP_bregx, 99, 0}, -ENOENT},
		{2, {DW_OP_lit1, DW_OP_deref}, -EFAULT},
		{4, {DW_OP_breg0 + REGISTER_SP, 0, DW_OP_deref_size, 9}, -EBADMSG},
		{4, {DW_OP_breg0 + REGISTER_SP, 0, DW_OP_deref_size, 0}, -EBADMSG},
		{3, {DW_OP_skip, 0xfd, 0xff}, -E2BIG},	 /* endless */
		{3, {DW_OP_skip, 0xfc, 0xff}, -EBADMSG}, /* before the start */
		{3, {DW_OP_skip, 1, 0}, -EBADMSG},	 /* beyond the end */
		{17,
		 {DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0,
		  DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0,
		  DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0, DW_OP_lit0},
		 -E2BIG},
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(int, evaluate(cases[i].expression, cases[i].nr_bytes, NULL, &value),
			     cases[i].err),
			  "%zu", i);
}

Test(cfi_expression, block_must_be_in_the_section)
{
	const uint8_t block[] = {2, DW_OP_lit1};
	const struct cfi_section section = {.bytes = block, .nr_bytes = sizeof(block)};
	const struct registers registers = {.known = 0};
	struct stack_window window = {.nr_bytes = 0};
	uint64_t value;

	for (uint64_t offset = 0; offset < 4; offset += 2)
		cr_expect(eq(
			int,
			cfi_expression_value(&section, offset, &registers, &window, NULL, &value),
			-EBADMSG));
}
