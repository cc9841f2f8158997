/* SPDX-License-Identifier: MIT */
/*
 * The frame that a signal handler returns to, on aarch64: there the kernel's vDSO has had no call
 * frame information for it since Linux 5.8, and before that one without the interrupted pc. It is
 * recognised by its two instructions. On x86-64 the C library describes it.
 *
 * Sources: arch/arm64/kernel/vdso/sigreturn.S; struct rt_sigframe of arch/arm64/kernel/signal.c;
 * arch/arm64/include/uapi/asm/sigcontext.h.
 */
#pragma once

#include "procmem/memory.h"
#include "symbols/unwind/unwind_table.h"

/*
 * The rule of the code at lookup_addr (registers_lookup_addr()) if it is such a frame, as the
 * memory is now. The rule is static. NULL if it is not, or on machines other than aarch64.
 */
const struct unwind_rule *signal_return_rule(struct remote_memory *memory, remote_addr lookup_addr);
