/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/cfi_program.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>

/* Three instructions hold an operand in their lower six bits. */
#define PRIMARY_MASK 0xc0
#define OPERAND_MASK 0x3f

/* DW_CFA_AARCH64_negate_ra_state_with_pc: the signature also depends on the pc. */
#define NEGATE_RA_STATE_WITH_PC 0x2c

struct machine {
	const struct cfi_section *section;
	const struct cfi_function *function;
	struct cfi_row_sink *sink;
	struct byte_cursor cursor;
	uint32_t nr_steps;
	struct cfi_row row;	/* end_vaddr is not set */
	struct cfi_row initial; /* the row after the CIE's program */
	struct cfi_row remembered[CFI_MAX_REMEMBERED];
	uint32_t nr_remembered;
};

/* Operands. A product or sum that does not fit makes the program bad. */

static int32_t to_offset(struct machine *machine, int64_t number)
{
	if (number < INT32_MIN || number > INT32_MAX) {
		machine->cursor.is_bad = true;
		return 0;
	}
	return (int32_t)number;
}

static int32_t scaled(struct machine *machine, int64_t number)
{
	int64_t product;

	if (__builtin_mul_overflow(number, machine->function->common.data_alignment, &product)) {
		machine->cursor.is_bad = true;
		return 0;
	}
	return to_offset(machine, product);
}

/* An unsigned operand. A value above INT64_MAX makes the program bad. */
static int64_t read_unsigned(struct machine *machine)
{
	const uint64_t number = byte_cursor_uint(&machine->cursor);

	if (number > INT64_MAX)
		machine->cursor.is_bad = true;
	return (int64_t)(number & INT64_MAX);
}

static int32_t read_scaled(struct machine *machine)
{
	return scaled(machine, read_unsigned(machine));
}

static int32_t read_signed_scaled(struct machine *machine)
{
	return scaled(machine, byte_cursor_signed_leb(&machine->cursor));
}

/* Skip an expression. Returns its offset in the section. */
static int32_t skip_expression(struct machine *machine)
{
	const int64_t offset = machine->cursor.at - machine->section->bytes;
	const uint64_t nr_bytes = byte_cursor_uint(&machine->cursor);

	(void)byte_cursor_split(&machine->cursor, nr_bytes);
	return to_offset(machine, offset);
}

/* Rules of untracked registers, such as vector registers, are dropped. */
static void set_rule(struct machine *machine, uint64_t number, enum cfi_rule_kind kind,
		     int32_t value)
{
	if (number < NR_REGISTERS)
		machine->row.rules[number] =
			(struct cfi_rule){.kind = (uint8_t)kind, .value = value};
}

static void restore_rule(struct machine *machine, uint64_t number)
{
	if (number < NR_REGISTERS)
		machine->row.rules[number] = machine->initial.rules[number];
}

/* The CFA. */

static void set_cfa_register(struct machine *machine, uint64_t number)
{
	if (number >= NR_REGISTERS)
		machine->cursor.is_bad = true;
	else
		machine->row.cfa_register = (uint8_t)number;
}

static void set_cfa(struct machine *machine, uint64_t number, int32_t offset)
{
	set_cfa_register(machine, number);
	machine->row.cfa_offset = offset;
	machine->row.cfa_is_expression = false;
}

/* Changing only the register or the offset is invalid for an expression. */
static void change_cfa_register(struct machine *machine)
{
	machine->cursor.is_bad |= machine->row.cfa_is_expression;
	set_cfa_register(machine, byte_cursor_uint(&machine->cursor));
}

static void change_cfa_offset(struct machine *machine, int32_t offset)
{
	machine->cursor.is_bad |= machine->row.cfa_is_expression;
	machine->row.cfa_offset = offset;
}

static void set_cfa_expression(struct machine *machine)
{
	machine->row.cfa_offset = skip_expression(machine);
	machine->row.cfa_is_expression = true;
}

/* Rows. */

/* Pass the row, which ends at vaddr, to the sink, cut at the end of the function. */
static int finish_row(struct machine *machine, uint64_t vaddr)
{
	const uint64_t end_vaddr = machine->function->start_vaddr + machine->function->nr_bytes;

	if (!machine->sink || machine->row.start_vaddr >= end_vaddr)
		return 0;
	machine->row.end_vaddr = vaddr < end_vaddr ? vaddr : end_vaddr;
	return machine->sink->row(machine->sink, &machine->row);
}

static int set_location(struct machine *machine, uint64_t vaddr)
{
	int err = 0;

	if (vaddr < machine->row.start_vaddr)
		return -EBADMSG;
	if (vaddr > machine->row.start_vaddr)
		err = finish_row(machine, vaddr);
	machine->row.start_vaddr = vaddr;
	return err;
}

static int advance(struct machine *machine, uint64_t nr)
{
	uint64_t nr_bytes;
	uint64_t vaddr;

	if (__builtin_mul_overflow(nr, machine->function->common.code_alignment, &nr_bytes) ||
	    __builtin_add_overflow(machine->row.start_vaddr, nr_bytes, &vaddr))
		return -EBADMSG;
	return set_location(machine, vaddr);
}

static int remember_state(struct machine *machine)
{
	if (machine->nr_remembered == CFI_MAX_REMEMBERED)
		return -E2BIG;
	machine->remembered[machine->nr_remembered++] = machine->row;
	return 0;
}

static int restore_state(struct machine *machine)
{
	const uint64_t start_vaddr = machine->row.start_vaddr;

	if (machine->nr_remembered == 0)
		return -EBADMSG;
	machine->row = machine->remembered[--machine->nr_remembered];
	machine->row.start_vaddr = start_vaddr;
	return 0;
}

/* Instructions. */

/* Run an instruction that sets the rule of a register. Returns whether it is one. */
static bool run_register_rule(struct machine *machine, uint8_t instruction)
{
	struct byte_cursor *cursor = &machine->cursor;
	const struct byte_cursor before = *cursor;
	const uint64_t number = byte_cursor_uint(cursor); /* the first operand of all of them */

	switch (instruction) {
	case DW_CFA_offset_extended:
		set_rule(machine, number, CFI_AT_CFA, read_scaled(machine));
		return true;
	case DW_CFA_offset_extended_sf:
		set_rule(machine, number, CFI_AT_CFA, read_signed_scaled(machine));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		set_rule(machine, number, CFI_AT_CFA, scaled(machine, -read_unsigned(machine)));
		return true;
	case DW_CFA_val_offset:
		set_rule(machine, number, CFI_IS_CFA, read_scaled(machine));
		return true;
	case DW_CFA_val_offset_sf:
		set_rule(machine, number, CFI_IS_CFA, read_signed_scaled(machine));
		return true;
	case DW_CFA_restore_extended:
		restore_rule(machine, number);
		return true;
	case DW_CFA_undefined:
		set_rule(machine, number, CFI_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		set_rule(machine, number, CFI_SAME, 0);
		return true;
	case DW_CFA_register:
		set_rule(machine, number, CFI_IN_REGISTER,
			 to_offset(machine, read_unsigned(machine)));
		return true;
	case DW_CFA_expression:
		set_rule(machine, number, CFI_AT_EXPRESSION, skip_expression(machine));
		return true;
	case DW_CFA_val_expression:
		set_rule(machine, number, CFI_IS_EXPRESSION, skip_expression(machine));
		return true;
	default:
		*cursor = before;
		return false;
	}
}

/* Run an instruction that sets the CFA. Returns whether it is one. */
static bool run_cfa_rule(struct machine *machine, uint8_t instruction)
{
	uint64_t number;

	switch (instruction) {
	case DW_CFA_def_cfa:
		number = byte_cursor_uint(&machine->cursor);
		set_cfa(machine, number, to_offset(machine, read_unsigned(machine)));
		return true;
	case DW_CFA_def_cfa_sf:
		number = byte_cursor_uint(&machine->cursor);
		set_cfa(machine, number, read_signed_scaled(machine));
		return true;
	case DW_CFA_def_cfa_register:
		change_cfa_register(machine);
		return true;
	case DW_CFA_def_cfa_offset:
		change_cfa_offset(machine, to_offset(machine, read_unsigned(machine)));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		change_cfa_offset(machine, read_signed_scaled(machine));
		return true;
	case DW_CFA_def_cfa_expression:
		set_cfa_expression(machine);
		return true;
	default:
		return false;
	}
}

/* Run any other instruction without an embedded operand. */
static int run_other(struct machine *machine, uint8_t instruction)
{
	struct byte_cursor *cursor = &machine->cursor;

	switch (instruction) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return set_location(machine,
				    cfi_pointer(machine->section, cursor,
						machine->function->common.pointer_encoding));
	case DW_CFA_advance_loc1:
		return advance(machine, byte_cursor_fixed(cursor, 1));
	case DW_CFA_advance_loc2:
		return advance(machine, byte_cursor_fixed(cursor, 2));
	case DW_CFA_advance_loc4:
		return advance(machine, byte_cursor_fixed(cursor, 4));
	case DW_CFA_remember_state:
		return remember_state(machine);
	case DW_CFA_restore_state:
		return restore_state(machine);
	case DW_CFA_GNU_args_size: /* matters only for exceptions that discard the stack */
		(void)byte_cursor_uint(cursor);
		return 0;
#if defined(__aarch64__)
	case DW_CFA_AARCH64_negate_ra_state:
	case NEGATE_RA_STATE_WITH_PC:
		machine->row.is_return_signed = !machine->row.is_return_signed;
		return 0;
#endif
	default:
		return -EBADMSG;
	}
}

static int run_instruction(struct machine *machine)
{
	const uint8_t instruction = (uint8_t)byte_cursor_fixed(&machine->cursor, 1);
	const uint8_t operand = instruction & OPERAND_MASK;

	switch (instruction & PRIMARY_MASK) {
	case DW_CFA_advance_loc:
		return advance(machine, operand);
	case DW_CFA_offset:
		set_rule(machine, operand, CFI_AT_CFA, read_scaled(machine));
		return 0;
	case DW_CFA_restore:
		restore_rule(machine, operand);
		return 0;
	default:
		break;
	}
	if (run_register_rule(machine, instruction) || run_cfa_rule(machine, instruction))
		return 0;
	return run_other(machine, instruction);
}

static int run_all(struct machine *machine, struct byte_cursor program)
{
	int err = 0;

	machine->cursor = program;
	while (!err && !byte_cursor_is_at_end(&machine->cursor)) {
		err = machine->nr_steps++ < CFI_MAX_STEPS ? run_instruction(machine) : -E2BIG;
		if (!err && machine->cursor.is_bad)
			err = -EBADMSG;
	}
	return err;
}

int cfi_program_run(const struct cfi_section *section, const struct cfi_function *function,
		    struct cfi_row_sink *sink)
{
	struct machine machine;
	int err;

	machine.section = section;
	machine.function = function;
	machine.nr_steps = 0;
	machine.nr_remembered = 0;
	machine.row = (struct cfi_row){.start_vaddr = function->start_vaddr};
	machine.initial = machine.row;
	machine.sink = NULL; /* the CIE's program yields no rows */
	err = run_all(&machine, function->common.program);
	if (err)
		return err;
	machine.row.start_vaddr = function->start_vaddr;
	machine.initial = machine.row;
	machine.sink = sink;
	err = run_all(&machine, function->program);
	return err ? err : finish_row(&machine, UINT64_MAX);
}
