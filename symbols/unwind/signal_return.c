/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/signal_return.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ucontext.h>

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

/* Whether the two instructions are at addr. */
static bool is_at(struct remote_memory *memory, remote_addr addr)
{
	uint32_t code[2];

	return remote_memory_read(memory, addr, code, sizeof(code)) == 0 &&
	       memcmp(code, instructions, sizeof(code)) == 0;
}

const struct unwind_rule *signal_return_rule(struct remote_memory *memory, remote_addr lookup_addr)
{
	/* A return address leads to the first instruction; a thread may have stopped at either. */
	if (lookup_addr % INSTRUCTION_BYTES)
		return (lookup_addr + 1) % INSTRUCTION_BYTES == 0 && is_at(memory, lookup_addr + 1)
			       ? &rule
			       : NULL;
	return is_at(memory, lookup_addr) || is_at(memory, lookup_addr - INSTRUCTION_BYTES) ? &rule
											    : NULL;
}

#elif defined(__x86_64__)

/* mov $__NR_rt_sigreturn,%rax; syscall */
static const uint8_t instructions[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
enum { SYSCALL_OFFSET = 7 };

/* The handler has popped its return address, so the stack pointer is at the ucontext. */
#define SAVED(register_number, place)                                             \
	{                                                                         \
		.number = (register_number), .kind = CFI_AT_CFA,                  \
		.value = (int32_t)offsetof(ucontext_t, uc_mcontext.gregs[place]), \
	}

/* All registers are saved, at offsets from the stack pointer. */
static const struct unwind_rule rule = {
	.cfa_register = REGISTER_SP,
	.is_signal_frame = true,
	.return_register = REGISTER_PC,
	.nr_saves = NR_REGISTERS,
	.saves = {SAVED(0, REG_RAX), SAVED(1, REG_RDX), SAVED(2, REG_RCX),
		  SAVED(REGISTER_RBX, REG_RBX), SAVED(4, REG_RSI), SAVED(5, REG_RDI),
		  SAVED(REGISTER_RBP, REG_RBP), SAVED(REGISTER_SP, REG_RSP), SAVED(8, REG_R8),
		  SAVED(9, REG_R9), SAVED(10, REG_R10), SAVED(11, REG_R11),
		  SAVED(REGISTER_R12, REG_R12), SAVED(13, REG_R13), SAVED(14, REG_R14),
		  SAVED(15, REG_R15), SAVED(REGISTER_PC, REG_RIP)},
};

const struct unwind_rule *signal_return_rule(struct remote_memory *memory, remote_addr lookup_addr)
{
	/* For a return address, or a thread that stopped at the first or second instruction. */
	static const int offsets[] = {1, 0, -SYSCALL_OFFSET};
	uint8_t code[SYSCALL_OFFSET + sizeof(instructions) + 1];
	const remote_addr start_addr = lookup_addr - SYSCALL_OFFSET;

	if (remote_memory_read(memory, start_addr, code, sizeof(code)))
		return NULL;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		if (memcmp(code + SYSCALL_OFFSET + offsets[i], instructions,
			   sizeof(instructions)) == 0)
			return &rule;
	return NULL;
}

#else
#error "the code that signal handlers return to is unknown"
#endif
