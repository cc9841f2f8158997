/* SPDX-License-Identifier: MIT */
/*
 * The registers of one frame of a native stack, by their DWARF numbers. Sources: the
 * System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, §4.1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"

/*
 * REGISTERS_KEPT: the registers that a function preserves for its caller, one bit each.
 * REGISTERS_CALL_BYTES: what a call pushes.
 */
#if defined(__x86_64__)
enum {
	REGISTER_RBX = 3,
	REGISTER_RBP = 6,
	REGISTER_SP = 7,
	REGISTER_R12 = 12, /* up to r15 */
	REGISTER_PC = 16,
	NR_REGISTERS = 17,
	REGISTER_FRAME_POINTER = REGISTER_RBP,
};
#define REGISTERS_KEPT	     (1u << REGISTER_RBX | 1u << REGISTER_RBP | 0xfu << REGISTER_R12)
#define REGISTERS_CALL_BYTES 8
#elif defined(__aarch64__)
enum {
	REGISTER_X19 = 19, /* up to x29, the frame pointer */
	REGISTER_LR = 30,
	REGISTER_SP = 31,
	REGISTER_PC = 32,
	NR_REGISTERS = 33,
	REGISTER_FRAME_POINTER = 29,
};
#define REGISTERS_KEPT	     (0x7ffu << REGISTER_X19)
#define REGISTERS_CALL_BYTES 0
#else
#error "unsupported architecture: its registers are unknown"
#endif

struct registers {
	uint64_t values[NR_REGISTERS];
	uint64_t known; /* one bit for each known value; the others are undefined */
	/*
	 * The pc is the next instruction itself: in the innermost frame and in a frame that a
	 * signal interrupted. Otherwise the pc is a return address.
	 */
	bool is_interrupted;
};

/* Whether the value of a register is known. False for a number that names no register. */
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
 * The address to look up for the frame. A return address may lie beyond the end of its function,
 * whose last instruction may be the call, so 1 is subtracted from it.
 */
static inline remote_addr registers_lookup_addr(const struct registers *registers)
{
	return registers->values[REGISTER_PC] - (registers->is_interrupted ? 0 : 1);
}

/* The least number of words that registers_of_user() needs. */
#if defined(__x86_64__)
#define REGISTERS_USER_WORDS 20
#elif defined(__aarch64__)
#define REGISTERS_USER_WORDS 33
#endif

/*
 * The registers of a stopped thread, all known, from the words that ptrace(2) and core files
 * provide: REGISTERS_USER_WORDS in the order of struct user_regs_struct (sys/user.h) on x86-64,
 * of struct user_pt_regs (asm/ptrace.h) on aarch64.
 */
struct registers registers_of_user(const uint64_t *words);

/*
 * As registers_of_user(), from the NR_PERF_RECORD_REGISTERS words of procmem/sched/perf_record.h.
 */
struct registers registers_of_perf(const uint64_t *words);
