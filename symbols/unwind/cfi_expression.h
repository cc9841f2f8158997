/* SPDX-License-Identifier: MIT */
/*
 * The DWARF expressions of call frame information, evaluated: of the procedure linkage table,
 * of functions that align their stack, of the frames of signals. Source: DWARF 5 §2.5.
 */
#pragma once

#include <stdint.h>

#include "symbols/unwind/cfi.h"
#include "symbols/unwind/registers.h"
#include "symbols/unwind/stack_window.h"

/* That of the procedure linkage table has nine steps; more of them, or a deeper stack, are bad. */
#define CFI_EXPRESSION_MAX_STEPS 256
#define CFI_EXPRESSION_MAX_DEPTH 16

/*
 * Evaluate the expression offset bytes into the section, which its length goes before; with
 * the registers of the frame, and initial, if it is not NULL, on the stack. 0; -EBADMSG
 * (damaged, or what is not supported), -E2BIG (a limit from above), -ENOENT (the value of a
 * register is not known), or an error of the window.
 */
int cfi_expression_value(const struct cfi_section *section, uint64_t offset,
			 const struct registers *registers, struct stack_window *window,
			 const uint64_t *initial, uint64_t *ret_value);
