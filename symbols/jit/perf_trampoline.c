/* SPDX-License-Identifier: MIT */
#include "symbols/jit/perf_trampoline.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "symbols/unwind/registers.h"

/* The smallest page: memory may end at a multiple of it. */
enum { PAGE_BYTES = 4096 };

#if defined(__x86_64__)

/*
 * The trampolines of the versions. At offset 0 and from last on the stack is as at entry; from
 * at_frame on rbp is a frame pointer. An endbr64 may precede offset 0.
 */
static const struct trampoline {
	uint8_t nr_bytes;
	uint8_t bytes[11];
	uint8_t at_frame; /* 0: never */
	uint8_t last;
} trampolines[] = {
	/* 3.13 and newer: push rbp; mov rbp, rsp; call rcx; pop rbp; ret */
	{8, {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3}, 4, 7},
	/* 3.12: sub rsp, 8; call rcx; add rsp, 8; ret */
	{11, {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 0, 10},
};

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

enum { NR_TRAMPOLINES = sizeof(trampolines) / sizeof(trampolines[0]) };
enum { BEFORE = 10 + sizeof(endbr64), AFTER = BEFORE + 1, CODE_ALIGNMENT = 1 };

#define RETURN_ADDRESS                                                 \
	{                                                              \
		.number = REGISTER_PC, .kind = CFI_AT_CFA, .value = -8 \
	}
#define SAVED_RBP                                                        \
	{                                                                \
		.number = REGISTER_RBP, .kind = CFI_AT_CFA, .value = -16 \
	}

static const struct unwind_rule without_frame = {
	.cfa_register = REGISTER_SP,
	.cfa_offset = 8,
	.return_register = REGISTER_PC,
	.nr_saves = 1,
	.saves = {RETURN_ADDRESS},
};

static const struct unwind_rule with_a_word = {
	.cfa_register = REGISTER_SP,
	.cfa_offset = 16,
	.return_register = REGISTER_PC,
	.nr_saves = 1,
	.saves = {RETURN_ADDRESS},
};

static const struct unwind_rule with_rbp_saved = {
	.cfa_register = REGISTER_SP,
	.cfa_offset = 16,
	.return_register = REGISTER_PC,
	.nr_saves = 2,
	.saves = {RETURN_ADDRESS, SAVED_RBP},
};

static const struct unwind_rule with_frame_pointer = {
	.cfa_register = REGISTER_RBP,
	.cfa_offset = 16,
	.return_register = REGISTER_PC,
	.nr_saves = 2,
	.saves = {RETURN_ADDRESS, SAVED_RBP},
};

/* The rule at offset from the first instruction; that of an endbr64 is negative. */
static const struct unwind_rule *rule_at(const struct trampoline *trampoline, int offset)
{
	if (offset <= 0 || offset >= trampoline->last)
		return &without_frame;
	if (!trampoline->at_frame)
		return &with_a_word;
	return offset < trampoline->at_frame ? &with_rbp_saved : &with_frame_pointer;
}

/* Whether the trampoline at bytes + at has an instruction byte at offset. */
static bool has_instruction(const struct trampoline *trampoline, const uint8_t *bytes, size_t at,
			    int offset)
{
	if (offset >= 0)
		return offset < trampoline->nr_bytes;
	return offset >= -(int)sizeof(endbr64) && at >= sizeof(endbr64) &&
	       memcmp(bytes + at - sizeof(endbr64), endbr64, sizeof(endbr64)) == 0;
}

/*
 * The rule for the byte at index of bytes, if it is part of that trampoline. *ret_offset is its
 * distance from the start of the trampoline.
 */
static const struct unwind_rule *find_rule(const struct trampoline *trampoline,
					   const uint8_t *bytes, size_t nr_bytes, size_t index,
					   int *ret_offset)
{
	for (size_t at = 0; at + trampoline->nr_bytes <= nr_bytes; at++) {
		const int offset = (int)index - (int)at;

		if (memcmp(bytes + at, trampoline->bytes, trampoline->nr_bytes) != 0 ||
		    !has_instruction(trampoline, bytes, at, offset))
			continue;
		*ret_offset = offset;
		if (has_instruction(trampoline, bytes, at, -(int)sizeof(endbr64)))
			*ret_offset += (int)sizeof(endbr64);
		return rule_at(trampoline, offset);
	}
	return NULL;
}

size_t perf_trampoline_bytes(const uint8_t *bytes, size_t nr_bytes)
{
	const bool has_endbr64 =
		nr_bytes >= sizeof(endbr64) && memcmp(bytes, endbr64, sizeof(endbr64)) == 0;
	const size_t nr_before = has_endbr64 ? sizeof(endbr64) : 0;

	for (size_t i = 0; i < NR_TRAMPOLINES; i++)
		if (nr_bytes >= nr_before + trampolines[i].nr_bytes &&
		    memcmp(bytes + nr_before, trampolines[i].bytes, trampolines[i].nr_bytes) == 0)
			return nr_before + trampolines[i].nr_bytes;
	return 0;
}

#elif defined(__aarch64__)

enum {
	BTI_C = (int)0xd503245f,
	PACIASP = (int)0xd503233f,
	PACIBSP = (int)0xd503237f,
	STP = (int)0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
	MOV = (int)0x910003fd, /* mov x29, sp */
	BLR = (int)0xd63f0060, /* blr x3 */
	LDP = (int)0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
	AUTIASP = (int)0xd50323bf,
	AUTIBSP = (int)0xd50323ff,
	RET = (int)0xd65f03c0,
	MAX_INSTRUCTIONS = 7,
	CODE_ALIGNMENT = 4,
	BEFORE = (MAX_INSTRUCTIONS - 1) * CODE_ALIGNMENT,
	AFTER = MAX_INSTRUCTIONS * CODE_ALIGNMENT,
};

/*
 * The trampolines of all versions, by what the compiler was told to protect: return addresses
 * with key A or B, the targets of calls, nothing. The last one is also the end of the one before.
 */
static const struct trampoline {
	uint8_t nr_instructions;
	int32_t instructions[MAX_INSTRUCTIONS];
	uint8_t saves; /* index of the instruction that saves x29 and x30 */
	bool is_signed;
} trampolines[] = {
	{7, {PACIASP, STP, MOV, BLR, LDP, AUTIASP, RET}, 1, true},
	{7, {PACIBSP, STP, MOV, BLR, LDP, AUTIBSP, RET}, 1, true},
	{6, {BTI_C, STP, MOV, BLR, LDP, RET}, 1, false},
	{5, {STP, MOV, BLR, LDP, RET}, 0, false},
};

enum { NR_TRAMPOLINES = sizeof(trampolines) / sizeof(trampolines[0]) };

#define WITHOUT_FRAME(is_signed_now)                                         \
	{                                                                    \
		.cfa_register = REGISTER_SP, .return_register = REGISTER_LR, \
		.is_return_signed = (is_signed_now)                          \
	}
#define WITH_FRAME(is_signed_now)                                                              \
	{                                                                                      \
		.cfa_register = REGISTER_SP, .cfa_offset = 16, .return_register = REGISTER_LR, \
		.is_return_signed = (is_signed_now), .nr_saves = 2,                            \
		.saves = {{REGISTER_FRAME_POINTER, CFI_AT_CFA, -16},                           \
			  {REGISTER_LR, CFI_AT_CFA, -8}},                                      \
	}

/* By whether the return address is signed. */
static const struct unwind_rule without_frame[] = {WITHOUT_FRAME(false), WITHOUT_FRAME(true)};
static const struct unwind_rule with_frame[] = {WITH_FRAME(false), WITH_FRAME(true)};

static const struct unwind_rule *rule_at(const struct trampoline *trampoline, size_t index)
{
	/* From the first instruction on until the one before the return. */
	const bool is_signed =
		trampoline->is_signed && index > 0 && index + 1u < trampoline->nr_instructions;

	if (index > trampoline->saves && index < trampoline->saves + 4u)
		return &with_frame[is_signed];
	return &without_frame[is_signed];
}

static bool is_at(const struct trampoline *trampoline, const uint8_t *bytes, size_t nr_bytes)
{
	const size_t length = trampoline->nr_instructions * sizeof(trampoline->instructions[0]);

	return nr_bytes >= length && memcmp(bytes, trampoline->instructions, length) == 0;
}

/* As on x86-64. */
static const struct unwind_rule *find_rule(const struct trampoline *trampoline,
					   const uint8_t *bytes, size_t nr_bytes, size_t index,
					   int *ret_offset)
{
	for (size_t at = 0; at <= index; at += CODE_ALIGNMENT) {
		const size_t nth = (index - at) / CODE_ALIGNMENT;

		if (nth >= trampoline->nr_instructions ||
		    !is_at(trampoline, bytes + at, nr_bytes - at))
			continue;
		*ret_offset = (int)(index - at);
		return rule_at(trampoline, nth);
	}
	return NULL;
}

size_t perf_trampoline_bytes(const uint8_t *bytes, size_t nr_bytes)
{
	for (size_t i = 0; i < NR_TRAMPOLINES; i++)
		if (is_at(&trampolines[i], bytes, nr_bytes))
			return trampolines[i].nr_instructions * (size_t)CODE_ALIGNMENT;
	return 0;
}

#endif

const struct unwind_rule *perf_trampoline_rule(struct remote_memory *memory, remote_addr addr,
					       remote_addr *ret_start_addr)
{
	/*
	 * Trampolines of 3.12 are not aligned and may cross a page, but the page before that of
	 * addr may be unmapped, so it is a range of its own.
	 */
	const remote_addr code_addr = addr - addr % CODE_ALIGNMENT;
	const size_t in_page = code_addr % PAGE_BYTES;
	const size_t nr_below = in_page < BEFORE ? BEFORE - in_page : 0;
	const struct unwind_rule *rule = NULL;
	uint8_t bytes[BEFORE + AFTER] = {0};
	int offset = 0;
	struct remote_range ranges[] = {
		{.addr = code_addr - BEFORE, .buffer = bytes, .size = nr_below},
		{.addr = code_addr - BEFORE + nr_below,
		 .buffer = bytes + nr_below,
		 .size = sizeof(bytes) - nr_below},
	};

	if (remote_memory_read_ranges(memory, ranges, 2))
		return NULL;
	const size_t first = ranges[0].done_bytes == nr_below ? 0 : nr_below;

	for (size_t i = 0; !rule && i < NR_TRAMPOLINES; i++)
		rule = find_rule(&trampolines[i], bytes + first,
				 nr_below - first + ranges[1].done_bytes, BEFORE - first, &offset);
	if (rule)
		*ret_start_addr = code_addr - (remote_addr)offset;
	return rule;
}
