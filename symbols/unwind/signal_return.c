/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/signal_return.h"

#include <signal.h>
#include <stddef.h>

#if defined(__aarch64__)

/* mov x8, #__NR_rt_sigreturn; svc #0 */
static const uint32_t instructions[] = {0xd2801168, 0xd4000001};
enum { INSTRUCTION_BYTES = sizeof(instructions[0]) };

/* What the stack pointer points to. */
struct signal_frame {
	siginfo_t info;
	ucontext_t context;
};

#define SAVED_AT(field)                                     \
	((int32_t)(offsetof(struct signal_frame, context) + \
		   offsetof(ucontext_t, uc_mcontext.field)))
#define SAVED(register_number, field)                                                     \
	{                                                                                 \
		.number = (register_number), .kind = CFI_AT_CFA, .value = SAVED_AT(field) \
	}
#define SAVED_X(i) SAVED(i, regs[i])

/* All registers are saved, at offsets from the stack pointer. */
static const struct unwind_rule rule = {
	.cfa_register = REGISTER_SP,
	.is_signal_frame = true,
	.return_register = REGISTER_PC,
	.nr_saves = NR_REGISTERS,
	.saves = {SAVED_X(0),
		  SAVED_X(1),
		  SAVED_X(2),
		  SAVED_X(3),
		  SAVED_X(4),
		  SAVED_X(5),
		  SAVED_X(6),
		  SAVED_X(7),
		  SAVED_X(8),
		  SAVED_X(9),
		  SAVED_X(10),
		  SAVED_X(11),
		  SAVED_X(12),
		  SAVED_X(13),
		  SAVED_X(14),
		  SAVED_X(15),
		  SAVED_X(16),
		  SAVED_X(17),
		  SAVED_X(18),
		  SAVED_X(19),
		  SAVED_X(20),
		  SAVED_X(21),
		  SAVED_X(22),
		  SAVED_X(23),
		  SAVED_X(24),
		  SAVED_X(25),
		  SAVED_X(26),
		  SAVED_X(27),
		  SAVED_X(28),
		  SAVED_X(29),
		  SAVED_X(30),
		  SAVED(REGISTER_SP, sp),
		  SAVED(REGISTER_PC, pc)},
};

const struct unwind_rule *signal_return_rule(struct remote_memory *memory, remote_addr lookup_addr)
{
	/* A return address leads to the first instruction; a thread may have stopped at either. */
	const remote_addr pc = lookup_addr % INSTRUCTION_BYTES ? lookup_addr + 1 : lookup_addr;
	uint32_t code[2];

	if (pc % INSTRUCTION_BYTES)
		return NULL;
	for (unsigned int i = 0; i < 2; i++) {
		const remote_addr start_addr = pc - i * INSTRUCTION_BYTES;

		if (remote_memory_read(memory, start_addr, code, sizeof(code)) == 0 &&
		    code[0] == instructions[0] && code[1] == instructions[1])
			return &rule;
		if (pc != lookup_addr)
			break;
	}
	return NULL;
}

#else

const struct unwind_rule *signal_return_rule(struct remote_memory *memory, remote_addr lookup_addr)
{
	(void)memory, (void)lookup_addr;
	return NULL;
}

#endif
