/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/unwind_table.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>

#include "procmem/cleanup.h"
#include "tests/support/cfi_bytes.h"

/* A table of a private copy of the bytes. */
static struct unwind_table *make_table(const struct cfi_bytes *bytes)
{
	struct cfi_section section = cfi_bytes_section(bytes);
	struct unwind_table *table = NULL;
	uint8_t *copy = malloc(section.nr_bytes);

	memcpy(copy, section.bytes, section.nr_bytes);
	section.bytes = copy;
	cr_assert(zero(int, unwind_table_create(&section, 0x1000, &table)));
	return table;
}

/*
 * A rule as text, "7+16 3=1:-24": register and offset of the CFA, then number, kind and value of
 * each save.
 */
static const char *text_of_rule(const struct unwind_rule *rule)
{
	static char text[256];
	size_t length;

	if (!rule)
		return "none";
	length = (size_t)snprintf(text, sizeof(text), "%s%d+%d",
				  rule->cfa_is_expression ? "exp " : "", rule->cfa_register,
				  rule->cfa_offset);
	for (unsigned int i = 0; i < rule->nr_saves; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, " %d=%d:%d",
					   rule->saves[i].number, rule->saves[i].kind,
					   rule->saves[i].value);
	return text;
}

/* A table of one function at 0x1000 with 0x40 bytes. */
static struct unwind_table *table_of_program(const void *program, size_t nr_bytes)
{
	static const uint8_t common_program[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};
	struct cfi_bytes bytes = {.kind = CFI_DEBUG_FRAME};
	const size_t common =
		cfi_bytes_common(&bytes, "", NULL, 0, common_program, sizeof(common_program));

	cfi_bytes_function(&bytes, common, 0x1000, 0x40, program, nr_bytes);
	return make_table(&bytes);
}

Test(unwind_table, finds_the_rows_of_a_function)
{
	const uint8_t program[] = {
		DW_CFA_advance_loc | 1,
		DW_CFA_def_cfa_offset,
		16,
		DW_CFA_offset | 3,
		2,
		DW_CFA_advance_loc1,
		8,
		DW_CFA_remember_state,
		DW_CFA_def_cfa,
		6,
		24,
		DW_CFA_offset_extended,
		6,
		3,
		DW_CFA_advance_loc2,
		8,
		0,
		DW_CFA_restore_state,
		DW_CFA_advance_loc4,
		8,
		0,
		0,
		0,
		DW_CFA_restore | 3,
	};
	static const struct {
		uint64_t vaddr;
		char rule[48];
	} cases[] = {
		{0xfff, "none"},
		{0x1000, "7+8 16=2:-8"},
		{0x1001, "7+16 3=2:-16 16=2:-8"},
		{0x1008, "7+16 3=2:-16 16=2:-8"},
		{0x1009, "6+24 3=2:-16 6=2:-24 16=2:-8"},
		{0x1010, "6+24 3=2:-16 6=2:-24 16=2:-8"},
		{0x1011, "7+16 3=2:-16 16=2:-8"},
		{0x1019, "7+16 16=2:-8"},
		{0x103f, "7+16 16=2:-8"},
		{0x1040, "none"},
	};
	struct unwind_table *table = table_of_program(program, sizeof(program));

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(str, (char *)text_of_rule(unwind_table_find(table, cases[i].vaddr)),
			     (char *)cases[i].rule),
			  "%#lx", (unsigned long)cases[i].vaddr);
	unwind_table_destroy(table);
}

/* Each instruction, from the state 7+8 16=2:-8. */
Test(unwind_table, executes_each_instruction)
{
	static const struct {
		uint8_t nr_bytes;
		uint8_t program[12];
		char rule[48];
	} cases[] = {
		{0, {0}, "7+8 16=2:-8"},
		{1, {DW_CFA_nop}, "7+8 16=2:-8"},
		{2, {DW_CFA_GNU_args_size, 16}, "7+8 16=2:-8"},
		{3, {DW_CFA_def_cfa, 6, 16}, "6+16 16=2:-8"},
		{3, {DW_CFA_def_cfa_sf, 6, 0x7e}, "6+16 16=2:-8"},
		{2, {DW_CFA_def_cfa_register, 6}, "6+8 16=2:-8"},
		{2, {DW_CFA_def_cfa_offset, 64}, "7+64 16=2:-8"},
		{2, {DW_CFA_def_cfa_offset_sf, 0x7d}, "7+24 16=2:-8"},
		{2, {DW_CFA_undefined, 16}, "7+8 16=1:0"},
		{2, {DW_CFA_same_value, 16}, "7+8"},
		{2, {DW_CFA_restore | 16}, "7+8 16=2:-8"},
		{3, {DW_CFA_offset_extended_sf, 3, 0x7f}, "7+8 3=2:8 16=2:-8"},
		{3, {DW_CFA_GNU_negative_offset_extended, 3, 2}, "7+8 3=2:16 16=2:-8"},
		{3, {DW_CFA_val_offset, 3, 2}, "7+8 3=3:-16 16=2:-8"},
		{3, {DW_CFA_val_offset_sf, 3, 0x7e}, "7+8 3=3:16 16=2:-8"},
		{3, {DW_CFA_register, 3, 12}, "7+8 3=4:12 16=2:-8"},
		{3, {DW_CFA_restore_extended, 3}, "7+8 16=2:-8"},
		/* A register that is not kept. */
		{3, {DW_CFA_offset_extended, NR_REGISTERS, 2}, "7+8 16=2:-8"},
		/* The value of these is the offset of their block in the section. */
		{4, {DW_CFA_expression, 3, 1, DW_OP_lit1}, "7+8 3=5:44 16=2:-8"},
		{4, {DW_CFA_val_expression, 3, 1, DW_OP_lit1}, "7+8 3=6:44 16=2:-8"},
		{3, {DW_CFA_def_cfa_expression, 1, DW_OP_lit1}, "exp 7+43 16=2:-8"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct unwind_table *table = table_of_program(cases[i].program, cases[i].nr_bytes);

		cr_expect(eq(str, (char *)text_of_rule(unwind_table_find(table, 0x1010)),
			     (char *)cases[i].rule),
			  "%zu", i);
		unwind_table_destroy(table);
	}
}

/* A function with a damaged program has no rules at all. */
Test(unwind_table, damaged_programs_have_no_rules)
{
	static const struct {
		uint8_t nr_bytes;
		uint8_t program[16];
	} cases[] = {
		{1, {DW_CFA_restore_state}},
		{1, {0x3f}},
		{1, {DW_CFA_def_cfa_offset}},
		{3, {DW_CFA_def_cfa, 99, 8}},
		{6, {DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff, 0xff, 0x7f}},
		{6, {DW_CFA_offset | 3, 0xff, 0xff, 0xff, 0xff, 0x7f}},
		{12, {DW_CFA_offset | 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
		{4, {DW_CFA_expression, 3, 9, DW_OP_lit1}},
		{5, {DW_CFA_def_cfa_expression, 1, DW_OP_lit1, DW_CFA_def_cfa_offset, 8}},
		{9, {DW_CFA_set_loc, 0, 0x0f, 0, 0, 0, 0, 0, 0}}, /* backwards */
	};
	uint8_t remembers[CFI_MAX_REMEMBERED + 1];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct unwind_table *table = table_of_program(cases[i].program, cases[i].nr_bytes);

		cr_expect(eq(ptr, (void *)unwind_table_find(table, 0x1010), NULL), "%zu", i);
		unwind_table_destroy(table);
	}
	memset(remembers, DW_CFA_remember_state, sizeof(remembers));
	for (size_t nr = CFI_MAX_REMEMBERED; nr <= sizeof(remembers); nr++) {
		struct unwind_table *table = table_of_program(remembers, nr);

		cr_expect(
			eq(int, unwind_table_find(table, 0x1010) != NULL, nr < sizeof(remembers)));
		unwind_table_destroy(table);
	}
}

Test(unwind_table, finds_functions_added_in_any_order)
{
	static const uint8_t common_program[] = {DW_CFA_offset | 16, 1};
	struct cfi_bytes bytes = {.kind = CFI_DEBUG_FRAME};
	const size_t common =
		cfi_bytes_common(&bytes, "", NULL, 0, common_program, sizeof(common_program));
	struct unwind_table *table;
	char rule[48];

	/*
	 * 100 functions of 0x18 bytes, 0x20 apart, written in the order of steps of 37, which
	 * visit all.
	 */
	for (unsigned int i = 0; i < 100; i++) {
		const unsigned int place = i * 37 % 100;
		const uint8_t program[] = {DW_CFA_def_cfa, 7, (uint8_t)place};

		cfi_bytes_function(&bytes, common, 0x1000 + place * 0x20, 0x18, program,
				   sizeof(program));
	}
	cfi_bytes_function(&bytes, common, 0x900, 0x18, "", 0);	      /* below the image */
	cfi_bytes_function(&bytes, common, 0x200000000, 0x18, "", 0); /* and far above it */
	table = make_table(&bytes);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < 100; i++) {
			const uint64_t vaddr = 0x1000 + i * 0x20;

			(void)snprintf(rule, sizeof(rule), "7+%u 16=2:-8", i);
			cr_expect(eq(str, (char *)text_of_rule(unwind_table_find(table, vaddr)),
				     rule));
			cr_expect(eq(str,
				     (char *)text_of_rule(unwind_table_find(table, vaddr + 0x17)),
				     rule));
			cr_expect(eq(ptr, (void *)unwind_table_find(table, vaddr + 0x18), NULL));
		}
	}
	cr_expect(eq(ptr, (void *)unwind_table_find(table, 0x900), NULL));
	cr_expect(eq(ptr, (void *)unwind_table_find(table, 0x200000000), NULL));
	cr_expect(eq(ptr, (void *)unwind_table_find(table, 0x100001000), NULL)); /* modulo 2^32 */
	unwind_table_destroy(table);
}

/*
 * The row offsets of a function across 4 GiB do not fit 32 bits; the second row would be before
 * the first.
 */
Test(unwind_table, function_across_4_gib_has_no_rows)
{
	static const uint8_t common_program[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};
	static const uint8_t program[] = {DW_CFA_advance_loc1, 0x80, DW_CFA_def_cfa_offset, 16};
	const uint64_t end = 0x1000 + (1ull << 32);
	struct cfi_bytes bytes = {.kind = CFI_DEBUG_FRAME};
	const size_t common =
		cfi_bytes_common(&bytes, "", NULL, 0, common_program, sizeof(common_program));
	struct unwind_table *table;

	cfi_bytes_function(&bytes, common, end - 0x81, 0x80, "", 0);
	cfi_bytes_function(&bytes, common, end - 1, 0x100, program, sizeof(program));
	table = make_table(&bytes);
	cr_expect(ne(ptr, (void *)unwind_table_find(table, end - 0x81), NULL));
	cr_expect(eq(ptr, (void *)unwind_table_find(table, end - 1), NULL));
	unwind_table_destroy(table);
}

Test(unwind_table, empty_section_has_no_rules)
{
	struct cfi_section section = {.bytes = NULL};
	struct unwind_table *table = NULL;

	cr_assert(zero(int, unwind_table_create(&section, 0, &table)));
	cr_expect(eq(ptr, (void *)unwind_table_find(table, 0), NULL));
	unwind_table_destroy(table);
	unwind_table_destroy(NULL);
}

/* Both instructions turn the state; it belongs to what is remembered. Other machines lack them. */
Test(unwind_table, return_addresses_are_signed_in_part_of_a_function)
{
	enum { NEGATE_RA_STATE = 0x2d, NEGATE_RA_STATE_WITH_PC = 0x2c };
	static const uint8_t program[] = {
		DW_CFA_advance_loc | 4, NEGATE_RA_STATE,	DW_CFA_advance_loc | 4,
		DW_CFA_remember_state,	NEGATE_RA_STATE,	DW_CFA_advance_loc | 4,
		DW_CFA_restore_state,	DW_CFA_advance_loc | 4, NEGATE_RA_STATE_WITH_PC,
		DW_CFA_advance_loc | 4, NEGATE_RA_STATE_WITH_PC};
	static const bool is_signed[] = {false, true, false, true, false, true};
	struct unwind_table *table = table_of_program(program, sizeof(program));

	for (size_t i = 0; i < sizeof(is_signed) / sizeof(is_signed[0]); i++) {
		const struct unwind_rule *rule = unwind_table_find(table, 0x1000 + 4 * i);

#if defined(__aarch64__)
		cr_assert(rule != NULL, "%zu", i);
		cr_expect(eq(int, rule->is_return_signed, is_signed[i]), "%zu", i);
#else
		cr_expect(not(rule != NULL), "%zu", i);
#endif
	}
	unwind_table_destroy(table);
}
