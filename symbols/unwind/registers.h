/* SPDX-License-Identifier: MIT */
/*
 * The registers of one frame of a native stack, by their DWARF numbers. Sources: the
 * System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, §4.1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"

/* REGISTERS_KEPT: what a function gives back to its caller as it was, one bit a register. */
#if defined(__x86_64__)
enum {
	REGISTER_RBX = 3,
	REGISTER_RBP = 6,
	REGISTER_SP = 7,
	REGISTER_R12 = 12, /* to r15 */
	REGISTER_PC = 16,
	NR_REGISTERS = 17,
	REGISTER_FRAME_POINTER = REGISTER_RBP,
};
#define REGISTERS_KEPT (1u << REGISTER_RBX | 1u << REGISTER_RBP | 0xfu << REGISTER_R12)
#elif defined(__aarch64__)
enum {
	REGISTER_X19 = 19, /* to x29, the frame pointer */
	REGISTER_LR = 30,
	REGISTER_SP = 31,
	REGISTER_PC = 32,
	NR_REGISTERS = 33,
	REGISTER_FRAME_POINTER = 29,
};
#define REGISTERS_KEPT (0x7ffu << REGISTER_X19)
#else
#error "the registers of this architecture are not known"
#endif

struct registers {
	uint64_t values[NR_REGISTERS];
	uint64_t known; /* one bit for each of values that is known; the others are undefined */
	/*
	 * Whether the next instruction is that at the pc itself: in the innermost frame, and
	 * in one that a signal interrupted. Else the pc is a return address.
	 */
	bool is_interrupted;
};

/* Whether the value of a register is known; false for a number that is no register's. */
static inline bool registers_know(const struct registers *registers, uint64_t number)
{
	return number < NR_REGISTERS && registers->known >> number & 1;
}

static inline void registers_set(struct registers *registers, unsigned int number, uint64_t value)
{
	registers->values[number] = value;
	registers->known |= (uint64_t)1 << number;
}

/*
 * The address of the instruction that the frame is in, for looking things up: a call may
 * be the last instruction of its function, so a return address is one too far.
 */
static inline remote_addr registers_lookup_addr(const struct registers *registers)
{
	return registers->values[REGISTER_PC] - (registers->is_interrupted ? 0 : 1);
}

/* How many words the kernel hands over, at least. */
#if defined(__x86_64__)
#define REGISTERS_USER_WORDS 20
#elif defined(__aarch64__)
#define REGISTERS_USER_WORDS 33
#endif

/*
 * The registers of a thread at rest, all of them known, from the words that ptrace(2) and
 * core files have of them: REGISTERS_USER_WORDS in the order of struct user_regs_struct of
 * sys/user.h on x86-64, of struct user_pt_regs of asm/ptrace.h on aarch64.
 */
struct registers registers_of_user(const uint64_t *words);

/* The same from the NR_PERF_RECORD_REGISTERS words of procmem/sched/perf_record.h. */
struct registers registers_of_perf(const uint64_t *words);
