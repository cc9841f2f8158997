/* SPDX-License-Identifier: MIT */
/*
 * Evaluates the DWARF expressions of call frame information. They occur in the procedure linkage
 * table, in functions that realign their stack, and in signal frames. Source: DWARF 5 §2.5.
 */
#pragma once

#include <stdint.h>

#include "symbols/unwind/cfi.h"
#include "symbols/unwind/registers.h"
#include "symbols/unwind/stack_window.h"

/*
 * Limits on steps and stack entries: the expression of the procedure linkage table takes nine
 * steps. An expression that exceeds either fails with -E2BIG.
 */
#define CFI_EXPRESSION_MAX_STEPS 256
#define CFI_EXPRESSION_MAX_DEPTH 16

/*
 * Evaluate the expression at offset in the section, where its length precedes it, with the
 * registers of the frame. If initial is not NULL, *initial is pushed first.
 *
 * Returns 0; -EBADMSG if the expression is malformed or unsupported; -E2BIG if it exceeds a limit
 * above; -ENOENT if it needs a register whose value is unknown; or an error of the window.
 */
int cfi_expression_value(const struct cfi_section *section, uint64_t offset,
			 const struct registers *registers, struct stack_window *window,
			 const uint64_t *initial, uint64_t *ret_value);
