/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/registers.h"

struct registers registers_of_user(const uint64_t *words)
{
#if defined(__x86_64__)
	/* rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip */
	static const uint8_t places[NR_REGISTERS] = {10, 12, 11, 5, 13, 14, 4, 19, 9,
						     8,	 7,  6,	 3, 2,	1,  0, 16};
#endif
	struct registers registers = {.is_interrupted = true};

	for (unsigned int i = 0; i < NR_REGISTERS; i++) {
#if defined(__x86_64__)
		registers_set(&registers, i, words[places[i]]);
#else
		registers_set(&registers, i, words[i]);
#endif
	}
	return registers;
}

struct registers registers_of_perf(const uint64_t *words)
{
#if defined(__x86_64__)
	/* rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip */
	static const uint8_t places[NR_REGISTERS] = {0,	 3,  2,	 1,  4,	 5,  6,	 7, 9,
						     10, 11, 12, 13, 14, 15, 16, 8};
	struct registers registers = {.is_interrupted = true};

	for (unsigned int i = 0; i < NR_REGISTERS; i++)
		registers_set(&registers, i, words[places[i]]);
	return registers;
#else
	return registers_of_user(words); /* same order */
#endif
}
