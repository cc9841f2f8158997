/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/cfi_expression.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>

struct evaluation {
	struct byte_cursor cursor;
	const uint8_t *start; /* start of the expression; no jump leaves it */
	const struct registers *registers;
	struct stack_window *window;
	uint64_t stack[CFI_EXPRESSION_MAX_DEPTH];
	uint32_t nr;
	int error; /* the first error */
};

static void fail(struct evaluation *evaluation, int err)
{
	if (!evaluation->error)
		evaluation->error = err;
}

static void push(struct evaluation *evaluation, uint64_t value)
{
	if (evaluation->nr == CFI_EXPRESSION_MAX_DEPTH)
		fail(evaluation, -E2BIG);
	else
		evaluation->stack[evaluation->nr++] = value;
}

static uint64_t pop(struct evaluation *evaluation)
{
	if (evaluation->nr == 0) {
		fail(evaluation, -EBADMSG);
		return 0;
	}
	return evaluation->stack[--evaluation->nr];
}

/* Push a copy of the entry depth entries below the top. */
static void pick(struct evaluation *evaluation, uint64_t depth)
{
	if (depth >= evaluation->nr)
		fail(evaluation, -EBADMSG);
	else
		push(evaluation, evaluation->stack[evaluation->nr - 1 - depth]);
}

static void push_register(struct evaluation *evaluation, uint64_t number)
{
	const uint64_t offset = (uint64_t)byte_cursor_signed_leb(&evaluation->cursor);

	if (!registers_know(evaluation->registers, number))
		fail(evaluation, -ENOENT);
	else
		push(evaluation, evaluation->registers->values[number] + offset);
}

static void push_memory(struct evaluation *evaluation, uint64_t nr_bytes)
{
	uint64_t value = 0;
	int err;

	if (nr_bytes == 0 || nr_bytes > sizeof(value)) {
		fail(evaluation, -EBADMSG);
		return;
	}
	err = stack_window_u64(evaluation->window, pop(evaluation), &value);
	if (err)
		fail(evaluation, err);
	if (nr_bytes < sizeof(value))
		value &= ((uint64_t)1 << 8 * nr_bytes) - 1;
	push(evaluation, value);
}

/* Move the cursor by offset bytes, within the expression. */
static void jump(struct evaluation *evaluation, int16_t offset)
{
	struct byte_cursor *cursor = &evaluation->cursor;

	if (offset < evaluation->start - cursor->at || offset > cursor->end - cursor->at)
		fail(evaluation, -EBADMSG);
	else
		cursor->at += offset;
}

/* Constants. Each run_*() returns whether the operation is of its kind. */
static bool run_constant(struct evaluation *evaluation, uint8_t operation)
{
	struct byte_cursor *cursor = &evaluation->cursor;

	switch (operation) {
	case DW_OP_const1u:
		push(evaluation, byte_cursor_fixed(cursor, 1));
		return true;
	case DW_OP_const1s:
		push(evaluation, (uint64_t)(int64_t)(int8_t)byte_cursor_fixed(cursor, 1));
		return true;
	case DW_OP_const2u:
		push(evaluation, byte_cursor_fixed(cursor, 2));
		return true;
	case DW_OP_const2s:
		push(evaluation, (uint64_t)(int64_t)(int16_t)byte_cursor_fixed(cursor, 2));
		return true;
	case DW_OP_const4u:
		push(evaluation, byte_cursor_fixed(cursor, 4));
		return true;
	case DW_OP_const4s:
		push(evaluation, (uint64_t)(int64_t)(int32_t)byte_cursor_fixed(cursor, 4));
		return true;
	case DW_OP_const8u:
	case DW_OP_const8s:
		push(evaluation, byte_cursor_fixed(cursor, 8));
		return true;
	case DW_OP_constu:
		push(evaluation, byte_cursor_uint(cursor));
		return true;
	case DW_OP_consts:
		push(evaluation, (uint64_t)byte_cursor_signed_leb(cursor));
		return true;
	default:
		return false;
	}
}

/* Arithmetic shift right. */
static uint64_t shift_signed(uint64_t value, uint64_t nr_bits)
{
	return value >> 63 ? ~(~value >> nr_bits) : value >> nr_bits;
}

/* Apply a binary operation to a and b; b was on top. Returns whether operation is one. */
static bool binary(uint8_t operation, uint64_t a, uint64_t b, uint64_t *ret_value)
{
	switch (operation) {
	case DW_OP_plus:
		*ret_value = a + b;
		return true;
	case DW_OP_minus:
		*ret_value = a - b;
		return true;
	case DW_OP_mul:
		*ret_value = a * b;
		return true;
	case DW_OP_and:
		*ret_value = a & b;
		return true;
	case DW_OP_or:
		*ret_value = a | b;
		return true;
	case DW_OP_xor:
		*ret_value = a ^ b;
		return true;
	case DW_OP_shl:
		*ret_value = b < 64 ? a << b : 0;
		return true;
	case DW_OP_shr:
		*ret_value = b < 64 ? a >> b : 0;
		return true;
	case DW_OP_shra:
		*ret_value = shift_signed(a, b < 64 ? b : 63);
		return true;
	default:
		return false;
	}
}

/* As binary(), for signed comparisons. */
static bool compare(uint8_t operation, uint64_t a, uint64_t b, uint64_t *ret_value)
{
	switch (operation) {
	case DW_OP_eq:
		*ret_value = a == b;
		return true;
	case DW_OP_ne:
		*ret_value = a != b;
		return true;
	case DW_OP_lt:
		*ret_value = (int64_t)a < (int64_t)b;
		return true;
	case DW_OP_le:
		*ret_value = (int64_t)a <= (int64_t)b;
		return true;
	case DW_OP_gt:
		*ret_value = (int64_t)a > (int64_t)b;
		return true;
	case DW_OP_ge:
		*ret_value = (int64_t)a >= (int64_t)b;
		return true;
	default:
		return false;
	}
}

/* Operations on the two topmost values. */
static bool run_binary(struct evaluation *evaluation, uint8_t operation)
{
	uint64_t value = 0;

	if (!binary(operation, 0, 0, &value) && !compare(operation, 0, 0, &value))
		return false;
	const uint64_t b = pop(evaluation);
	const uint64_t a = pop(evaluation);

	if (!binary(operation, a, b, &value))
		(void)compare(operation, a, b, &value);
	push(evaluation, value);
	return true;
}

/* Operations that move values on the stack. */
static bool run_stack(struct evaluation *evaluation, uint8_t operation)
{
	uint64_t a;
	uint64_t b;

	switch (operation) {
	case DW_OP_dup:
		pick(evaluation, 0);
		return true;
	case DW_OP_over:
		pick(evaluation, 1);
		return true;
	case DW_OP_pick:
		pick(evaluation, byte_cursor_fixed(&evaluation->cursor, 1));
		return true;
	case DW_OP_drop:
		(void)pop(evaluation);
		return true;
	case DW_OP_swap:
		b = pop(evaluation);
		a = pop(evaluation);
		push(evaluation, b);
		push(evaluation, a);
		return true;
	default:
		return false;
	}
}

/* All other operations. */
static bool run_other(struct evaluation *evaluation, uint8_t operation)
{
	struct byte_cursor *cursor = &evaluation->cursor;
	int16_t offset;
	uint64_t number;

	switch (operation) {
	case DW_OP_nop:
		return true;
	case DW_OP_bregx:
		number = byte_cursor_uint(cursor);
		push_register(evaluation, number);
		return true;
	case DW_OP_deref:
		push_memory(evaluation, sizeof(uint64_t));
		return true;
	case DW_OP_deref_size:
		push_memory(evaluation, byte_cursor_fixed(cursor, 1));
		return true;
	case DW_OP_plus_uconst:
		push(evaluation, pop(evaluation) + byte_cursor_uint(cursor));
		return true;
	case DW_OP_neg:
		push(evaluation, -pop(evaluation));
		return true;
	case DW_OP_not:
		push(evaluation, ~pop(evaluation));
		return true;
	case DW_OP_skip:
		jump(evaluation, (int16_t)byte_cursor_fixed(cursor, 2));
		return true;
	case DW_OP_bra:
		offset = (int16_t)byte_cursor_fixed(cursor, 2);
		if (pop(evaluation))
			jump(evaluation, offset);
		return true;
	default:
		return false;
	}
}

static void run_operation(struct evaluation *evaluation)
{
	const uint8_t operation = (uint8_t)byte_cursor_fixed(&evaluation->cursor, 1);

	if (operation >= DW_OP_lit0 && operation <= DW_OP_lit31)
		push(evaluation, operation - DW_OP_lit0);
	else if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31)
		push_register(evaluation, operation - DW_OP_breg0);
	else if (!run_constant(evaluation, operation) && !run_binary(evaluation, operation) &&
		 !run_stack(evaluation, operation) && !run_other(evaluation, operation))
		fail(evaluation, -EBADMSG);
}

int cfi_expression_value(const struct cfi_section *section, uint64_t offset,
			 const struct registers *registers, struct stack_window *window,
			 const uint64_t *initial, uint64_t *ret_value)
{
	struct byte_cursor cursor = {.at = section->bytes,
				     .end = section->bytes + section->nr_bytes};
	struct evaluation evaluation = {.registers = registers, .window = window};

	(void)byte_cursor_split(&cursor, offset);
	evaluation.cursor = byte_cursor_split(&cursor, byte_cursor_uint(&cursor));
	evaluation.start = evaluation.cursor.at;
	if (initial)
		push(&evaluation, *initial);
	for (uint32_t step = 0; !byte_cursor_is_at_end(&evaluation.cursor); step++) {
		if (step == CFI_EXPRESSION_MAX_STEPS)
			fail(&evaluation, -E2BIG);
		else
			run_operation(&evaluation);
		if (evaluation.error)
			return evaluation.error;
	}
	if (evaluation.cursor.is_bad || cursor.is_bad || evaluation.nr == 0)
		return -EBADMSG;
	*ret_value = evaluation.stack[evaluation.nr - 1];
	return 0;
}
