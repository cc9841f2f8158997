/* SPDX-License-Identifier: MIT */
/*
 * Runs the program of one function's call frame information. It produces a row for each range of
 * the function's instructions, with the rules that recover the caller's registers. Source: DWARF
 * 5 §6.4.2.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbols/unwind/cfi.h"
#include "symbols/unwind/registers.h"

/* How to recover the value that a register has in the caller. */
enum cfi_rule_kind {
	CFI_SAME = 0,	   /* unchanged; also the default for registers without a rule */
	CFI_UNDEFINED,	   /* not recoverable; for the return address: there is no caller */
	CFI_AT_CFA,	   /* saved at CFA + value */
	CFI_IS_CFA,	   /* equal to CFA + value */
	CFI_IN_REGISTER,   /* in register number value */
	CFI_AT_EXPRESSION, /* saved where the expression at value says; given the CFA */
	CFI_IS_EXPRESSION, /* equal to what the expression at value says; given the CFA */
};

struct cfi_rule {
	uint8_t kind; /* enum cfi_rule_kind */
	/* See kind. For an expression: its offset in the section, where its length precedes it. */
	int32_t value;
};

/*
 * The rules for [start_vaddr, end_vaddr). The CFA (canonical frame address) is a register plus
 * cfa_offset or, if cfa_is_expression, the value of the expression at offset cfa_offset in the
 * section.
 */
struct cfi_row {
	uint64_t start_vaddr;
	uint64_t end_vaddr;
	int32_t cfa_offset;
	uint8_t cfa_register; /* below NR_REGISTERS */
	bool cfa_is_expression;
	bool is_return_signed; /* aarch64: the return address has an authentication code */
	struct cfi_rule rules[NR_REGISTERS];
};

/* Receives the rows by rising address. row returns 0, or an error that ends the run. */
struct cfi_row_sink {
	int (*row)(struct cfi_row_sink *sink, const struct cfi_row *row);
};

/*
 * Limit on the steps for one function, CIE program included, which runs again for each function.
 * The largest function seen, the evaluation loop of CPython 3.15, takes 6723.
 */
#define CFI_MAX_STEPS (1u << 17)

/*
 * Limit on nested DW_CFA_remember_state: compilers use one level, to restore the state after a
 * return. More are an error.
 */
#define CFI_MAX_REMEMBERED 16

/*
 * Run the program of a function of the section.
 *
 * Returns 0; -EBADMSG if the program is malformed or has instructions of another machine (the
 * rows already passed to the sink are what it says up to there); -E2BIG if it exceeds
 * CFI_MAX_STEPS or CFI_MAX_REMEMBERED; or an error of the sink.
 */
int cfi_program_run(const struct cfi_section *section, const struct cfi_function *function,
		    struct cfi_row_sink *sink);
