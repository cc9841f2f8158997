/* SPDX-License-Identifier: MIT */
/*
 * The code that a signal handler returns to, which asks the kernel to restore what it has saved. It
 * is recognised by its two instructions where no call frame information describes it, as in musl,
 * or where that lacks the interrupted pc: in the vDSO of aarch64 before Linux 5.8, which has none
 * since.
 *
 * Sources: struct rt_sigframe and uapi/asm/sigcontext.h of arch/x86 and arch/arm64 (kernel/signal.c,
 * include/asm/sigframe.h); arch/arm64/kernel/vdso/sigreturn.S; musl's src/signal/x86_64/restore.s.
 */
#pragma once

#include "procmem/memory.h"
#include "symbols/unwind/unwind_table.h"

/*
 * The rule of the code at lookup_addr (registers_lookup_addr()) if it is such code, as the memory is
 * now. The rule is static. NULL if it is not, or cannot be read.
 */
const struct unwind_rule *signal_return_rule(struct remote_memory *memory, remote_addr lookup_addr);
