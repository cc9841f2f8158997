/* SPDX-License-Identifier: MIT */
/*
 * The program of one function's call frame information, run: for each range of its
 * instructions a row, with what the caller's registers are found by. Source: DWARF 5 §6.4.2.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbols/unwind/cfi.h"
#include "symbols/unwind/registers.h"

/* How the value that a register has in the caller is found. */
enum cfi_rule_kind {
	CFI_SAME = 0,	   /* it has it now: nothing was said of it, or that it is kept */
	CFI_UNDEFINED,	   /* not at all; of the return address: there is no caller */
	CFI_AT_CFA,	   /* in memory, value bytes from the CFA */
	CFI_IS_CFA,	   /* it is value more than the CFA */
	CFI_IN_REGISTER,   /* in the register with the number value */
	CFI_AT_EXPRESSION, /* in memory, where the expression at value says; given the CFA */
	CFI_IS_EXPRESSION, /* it is what the expression at value says; given the CFA */
};

struct cfi_rule {
	uint8_t kind; /* enum cfi_rule_kind */
	/* As that says; an expression is so many bytes into the section, its length first. */
	int32_t value;
};

/*
 * What is true in [start_vaddr, end_vaddr). The CFA (canonical frame address) is cfa_offset
 * more than a register; or what an expression says, that many bytes into the section.
 */
struct cfi_row {
	uint64_t start_vaddr;
	uint64_t end_vaddr;
	int32_t cfa_offset;
	uint8_t cfa_register; /* below NR_REGISTERS */
	bool cfa_is_expression;
	bool is_return_signed; /* aarch64: the return address has a pointer authentication code */
	struct cfi_rule rules[NR_REGISTERS];
};

/* What takes the rows, by rising address: 0, or an error that ends the run. */
struct cfi_row_sink {
	int (*row)(struct cfi_row_sink *sink, const struct cfi_row *row);
};

/*
 * More steps are not taken for one function: for the largest one seen, the evaluation loop of
 * CPython 3.15, it takes 6723. What functions have in common is run for each of them again.
 */
#define CFI_MAX_STEPS (1u << 17)

/* Compilers remember one state, to have it again behind a return; more than this are an error. */
#define CFI_MAX_REMEMBERED 16

/*
 * Run the program of a function of the section. 0; -EBADMSG (it is not one that this machine
 * has; rows that were handed over before are still what it says), -E2BIG (CFI_MAX_STEPS,
 * CFI_MAX_REMEMBERED), or an error of the sink.
 */
int cfi_program_run(const struct cfi_section *section, const struct cfi_function *function,
		    struct cfi_row_sink *sink);
