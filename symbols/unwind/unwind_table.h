/* SPDX-License-Identifier: MIT */
/*
 * How to find the callers of the functions of one section of call frame information: rows
 * by address, with rules that many rows share. A function is compiled when it is first
 * asked for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/unwind/cfi.h"
#include "symbols/unwind/cfi_program.h"

/* More functions are left out: libLLVM has 95 thousand. */
#define UNWIND_TABLE_MAX_FUNCTIONS (8u << 20)

/*
 * Functions that would make more of them are as if they had none. Only functions that stacks
 * lead through make any: some hundreds, with ten rows each.
 */
#define UNWIND_TABLE_MAX_ROWS  (4u << 20)
#define UNWIND_TABLE_MAX_RULES (1u << 16)

/* Of one register that is not simply the same in the caller: a rule, as cfi_program.h says. */
struct unwind_save {
	uint8_t number; /* of the register */
	uint8_t kind;	/* enum cfi_rule_kind */
	int32_t value;
};

/* What a row of cfi_program.h says, with what its function does. */
struct unwind_rule {
	int32_t cfa_offset;
	uint8_t cfa_register;
	bool cfa_is_expression;
	bool is_signal_frame;
	bool is_return_signed;
	uint8_t return_register; /* below NR_REGISTERS */
	uint8_t nr_saves;
	struct unwind_save saves[NR_REGISTERS];
};

struct unwind_table;

/*
 * Create the table of a section of an image whose lowest vaddr is lowest_vaddr: functions that
 * begin below it, or end 4 GiB above, are left out. The section's bytes are the table's, to be
 * given to free(), also on failure. 0 or -ENOMEM. unwind_table_destroy() accepts NULL.
 */
int unwind_table_create(const struct cfi_section *section, uint64_t lowest_vaddr,
			struct unwind_table **ret_table);
void unwind_table_destroy(struct unwind_table *table);

/* The section, borrowed; its expressions are asked for by their offset. */
const struct cfi_section *unwind_table_section(const struct unwind_table *table);

/*
 * The rule for the instruction at vaddr, borrowed from the table. NULL: it is in no function, or
 * in one whose information is damaged there; or memory is lacking.
 */
const struct unwind_rule *unwind_table_find(struct unwind_table *table, uint64_t vaddr);

/* The function that the instruction at vaddr is in, from *ret_vaddr on. 0; -ENOENT: in none. */
int unwind_table_function(struct unwind_table *table, uint64_t vaddr, uint64_t *ret_vaddr,
			  uint64_t *ret_nr_bytes);
