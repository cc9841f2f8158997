/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/stack_depth.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"

enum { WORD_BYTES = 8 };

/* Values of depths[] other than a depth, which is positive. */
enum { NOT_REACHED = 0, DIFFERS = -1 };

/* A walk along the paths through a function. */
struct walk {
	const struct stack_depth_code *code;
	ZydisDecoder decoder;
	int32_t *depths;    /* by offset: the depth before the instruction there */
	uint32_t *to_do;    /* offsets whose depth has changed */
	size_t nr_to_do;    /* a depth changes twice at most, which bounds it */
	size_t call_end;    /* end of the requested call; 0: none */
	int32_t call_depth; /* during that call; values as in depths */
};

struct instruction {
	ZydisDecodedInstruction decoded;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* Instructions. */

static bool is_register(const ZydisDecodedOperand *operand, ZydisRegister number)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == number;
}

/* Whether the instruction changes the stack pointer or a part of it. */
static bool writes_sp(const struct instruction *instruction)
{
	for (unsigned int i = 0; i < instruction->decoded.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     operand->reg.value) == ZYDIS_REGISTER_RSP &&
		    operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return true;
	}
	return false;
}

/* The bytes allocated by "sub $n,%rsp" or "add $-n,%rsp"; 0 if the instruction is neither. */
static int64_t allocated_bytes(const struct instruction *instruction, int sign)
{
	const ZydisDecodedOperand *operands = instruction->operands;

	if (!is_register(&operands[0], ZYDIS_REGISTER_RSP) ||
	    operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    operands[1].imm.value.s > STACK_DEPTH_MAX || operands[1].imm.value.s < -STACK_DEPTH_MAX)
		return 0;
	return sign * operands[1].imm.value.s;
}

/* The depth after "lea n(%rsp),%rsp" or "lea n(%rbp),%rsp"; 0 if unknown. */
static int64_t depth_by_lea(const struct stack_depth_code *code,
			    const struct instruction *instruction, int64_t depth)
{
	const ZydisDecodedOperandMem *place = &instruction->operands[1].mem;

	if (!is_register(&instruction->operands[0], ZYDIS_REGISTER_RSP) ||
	    place->index != ZYDIS_REGISTER_NONE || place->disp.value > STACK_DEPTH_MAX ||
	    place->disp.value < -STACK_DEPTH_MAX)
		return 0;
	if (place->base == ZYDIS_REGISTER_RSP)
		return depth - place->disp.value;
	if (place->base == ZYDIS_REGISTER_RBP && code->frame_pointer_bytes)
		return code->frame_pointer_bytes - place->disp.value;
	return 0;
}

/* The depth after an instruction that changes the stack pointer; 0 if unknown. */
static int64_t depth_after(const struct stack_depth_code *code,
			   const struct instruction *instruction, int64_t depth)
{
	const ZydisDecodedOperand *operands = instruction->operands;
	const int64_t word_bytes = instruction->decoded.operand_width / 8;
	int64_t change;

	switch ((int)instruction->decoded.mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		return depth; /* the callee restores it */
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
		return depth + word_bytes;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPFQ:
		return is_register(&operands[0], ZYDIS_REGISTER_RSP) ? 0 : depth - word_bytes;
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_ADD:
		change = allocated_bytes(
			instruction, instruction->decoded.mnemonic == ZYDIS_MNEMONIC_SUB ? 1 : -1);
		return change ? depth + change : 0;
	case ZYDIS_MNEMONIC_LEA:
		return depth_by_lea(code, instruction, depth);
	case ZYDIS_MNEMONIC_LEAVE:
		return code->frame_pointer_bytes ? code->frame_pointer_bytes - WORD_BYTES : 0;
	case ZYDIS_MNEMONIC_MOV:
		return is_register(&operands[0], ZYDIS_REGISTER_RSP) &&
				       is_register(&operands[1], ZYDIS_REGISTER_RBP)
			       ? code->frame_pointer_bytes
			       : 0;
	default:
		return 0;
	}
}

/* Paths. */

/* Continue at an offset, which may be outside the function. */
static void reach(struct walk *walk, uint64_t offset, int32_t depth)
{
	int32_t *known;

	if (offset >= walk->code->nr_bytes)
		return;
	known = &walk->depths[offset];
	if (*known == depth || *known == DIFFERS)
		return;
	*known = *known == NOT_REACHED ? depth : DIFFERS;
	walk->to_do[walk->nr_to_do++] = (uint32_t)offset;
}

static bool ends_path(const struct instruction *instruction)
{
	switch ((int)instruction->decoded.mnemonic) {
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD2:
		return true;
	default:
		return instruction->decoded.meta.category == ZYDIS_CATEGORY_RET;
	}
}

/* Process an instruction whose depth has changed. A path ends where the depth becomes unknown. */
static void follow_instruction(struct walk *walk, uint64_t offset)
{
	const struct stack_depth_code *code = walk->code;
	const int32_t depth = walk->depths[offset];
	struct instruction instruction;
	const ZydisDecodedOperand *target = &instruction.operands[0];
	ZydisInstructionCategory category;
	int64_t next_depth = depth;
	uint64_t end;

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&walk->decoder, code->bytes + offset,
					       code->nr_bytes - offset, &instruction.decoded,
					       instruction.operands)))
		return;
	end = offset + instruction.decoded.length;
	category = instruction.decoded.meta.category;
	if (category == ZYDIS_CATEGORY_CALL && end == walk->call_end)
		walk->call_depth = depth;
	if (depth != DIFFERS && writes_sp(&instruction)) {
		next_depth = depth_after(code, &instruction, depth);
		if (next_depth <= 0 || next_depth > STACK_DEPTH_MAX)
			return;
	}
	/* Continue at the jump target, and after the instruction. */
	if ((category == ZYDIS_CATEGORY_UNCOND_BR || category == ZYDIS_CATEGORY_COND_BR) &&
	    target->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && target->imm.is_relative)
		reach(walk, end + target->imm.value.u, (int32_t)next_depth);
	if (category != ZYDIS_CATEGORY_UNCOND_BR && !ends_path(&instruction))
		reach(walk, end, (int32_t)next_depth);
}

static int depth_result(int32_t depth, uint32_t *ret_depth_bytes)
{
	if (depth == NOT_REACHED)
		return -ENOENT;
	if (depth == DIFFERS)
		return -EBADMSG;
	*ret_depth_bytes = (uint32_t)depth;
	return 0;
}

int stack_depth_find(const struct stack_depth_code *code, size_t offset, bool is_call,
		     uint32_t *ret_depth_bytes)
{
	cleanup_free int32_t *depths = NULL;
	cleanup_free uint32_t *to_do = NULL;
	struct walk walk = {.code = code, .call_end = is_call ? offset : 0};

	if (offset >= code->nr_bytes + is_call || code->nr_bytes > STACK_DEPTH_MAX_BYTES)
		return -ENOENT;
	walk.depths = depths = calloc(code->nr_bytes, sizeof(*depths));
	walk.to_do = to_do = calloc(code->nr_bytes, 2 * sizeof(*to_do));
	if (!depths || !to_do)
		return -ENOMEM;
	(void)ZydisDecoderInit(&walk.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	reach(&walk, code->entry_offset, STACK_DEPTH_AT_ENTRY);
	for (uint32_t steps = 0; walk.nr_to_do; steps++) {
		if (code->max_steps && steps >= code->max_steps)
			return -E2BIG;
		follow_instruction(&walk, walk.to_do[--walk.nr_to_do]);
	}
	return depth_result(is_call ? walk.call_depth : depths[offset], ret_depth_bytes);
}
