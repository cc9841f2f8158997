/* SPDX-License-Identifier: MIT */
/*
 * The unwind rules of one section of call frame information: rows sorted by address, which share
 * rules. A function is compiled on its first look-up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/unwind/cfi.h"
#include "symbols/unwind/cfi_program.h"

/* Further functions are left out: libLLVM has 95 thousand. */
#define UNWIND_TABLE_MAX_FUNCTIONS (8u << 20)

/*
 * Functions that would exceed these limits have no rules. Only functions met on stacks are
 * compiled: some hundreds, with ten rows each.
 */
#define UNWIND_TABLE_MAX_ROWS  (4u << 20)
#define UNWIND_TABLE_MAX_RULES (1u << 16)

/* The rule of one register that is not unchanged in the caller (cfi_program.h). */
struct unwind_save {
	uint8_t number; /* register number */
	uint8_t kind;	/* enum cfi_rule_kind */
	int32_t value;
};

/* A row of cfi_program.h, without its range, plus the properties of its function. */
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
 * Create the table of a section of an image whose lowest vaddr is lowest_vaddr. Functions that
 * begin below it or end more than 4 GiB above it are left out. Takes ownership of the section's
 * bytes, also on failure; they are released with free(). Returns 0 or -ENOMEM.
 * unwind_table_destroy() accepts NULL.
 */
int unwind_table_create(const struct cfi_section *section, uint64_t lowest_vaddr,
			struct unwind_table **ret_table);
void unwind_table_destroy(struct unwind_table *table);

/* The section, borrowed from the table. Rules refer to its expressions by offset. */
const struct cfi_section *unwind_table_section(const struct unwind_table *table);

/*
 * The rule for the instruction at vaddr, borrowed from the table. NULL if no function contains
 * it, if the information of the function is damaged, or if memory is lacking.
 */
const struct unwind_rule *unwind_table_find(struct unwind_table *table, uint64_t vaddr);

/*
 * The range of the function that contains the instruction at vaddr. Returns 0, or -ENOENT if none
 * does.
 */
int unwind_table_function(struct unwind_table *table, uint64_t vaddr, uint64_t *ret_vaddr,
			  uint64_t *ret_nr_bytes);
