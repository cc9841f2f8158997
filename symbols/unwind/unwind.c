/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/unwind.h"

#include <assert.h>
#include <errno.h>

#include "symbols/unwind/cfi_expression.h"

/* The state of applying one rule. */
struct step {
	const struct unwind_rule *rule;
	const struct cfi_section *section;
	const struct registers *callee;
	struct stack_window *window;
	remote_addr cfa;
	struct registers *caller;
};

/* Whether the rule says that the function has no caller: the first function of a thread. */
static bool has_no_caller(const struct unwind_rule *rule)
{
	for (unsigned int i = 0; i < rule->nr_saves; i++)
		if (rule->saves[i].number == rule->return_register)
			return rule->saves[i].kind == CFI_UNDEFINED;
	return false;
}

static int find_cfa(struct step *step)
{
	const struct unwind_rule *rule = step->rule;
	const struct registers *callee = step->callee;
	const uint64_t sp = callee->values[REGISTER_SP];

	if (rule->cfa_is_expression) {
		int err = cfi_expression_value(step->section, (uint32_t)rule->cfa_offset, callee,
					       step->window, NULL, &step->cfa);

		if (err)
			return err;
	} else {
		if (!registers_know(callee, rule->cfa_register))
			return -ENOENT;
		step->cfa =
			callee->values[rule->cfa_register] + (uint64_t)(int64_t)rule->cfa_offset;
	}
	/*
	 * The CFA must lie above the stack pointer, so that every unwinding ends; find_cfa() and
	 * check_caller_sp() ensure that. Exception: where calls push nothing (aarch64), an
	 * interrupted function and the first one of a thread may have used no stack. An
	 * interrupted function may have been on another stack, so signal frames are counted
	 * instead.
	 */
	if (rule->is_signal_frame || step->cfa > sp ||
	    (step->cfa == sp && (callee->is_interrupted || has_no_caller(rule))))
		return 0;
	return -EBADMSG;
}

/*
 * Recover a register saved at addr. Nothing is saved below the stack pointer: after the
 * instruction that pops a register, and up to the return, compilers do not emit that it is
 * restored.
 */
static int recover_saved(struct step *step, unsigned int number, remote_addr addr)
{
	uint64_t value;
	int err;

	if (addr < step->callee->values[REGISTER_SP] && !step->rule->is_signal_frame)
		return 0;
	err = stack_window_u64(step->window, addr, &value);
	if (!err)
		registers_set(step->caller, number, value);
	return err;
}

static int recover_by_expression(struct step *step, const struct unwind_save *save)
{
	uint64_t value;
	int err;

	err = cfi_expression_value(step->section, (uint32_t)save->value, step->callee, step->window,
				   &step->cfa, &value);
	if (!err && save->kind == CFI_AT_EXPRESSION)
		err = stack_window_u64(step->window, value, &value);
	if (!err)
		registers_set(step->caller, save->number, value);
	return err;
}

static void recover_from_register(struct step *step, const struct unwind_save *save)
{
	const uint64_t from = (uint32_t)save->value;

	if (registers_know(step->callee, from))
		registers_set(step->caller, save->number, step->callee->values[from]);
	else
		step->caller->known &= ~((uint64_t)1 << save->number);
}

static int recover_register(struct step *step, const struct unwind_save *save)
{
	const remote_addr addr = step->cfa + (uint64_t)(int64_t)save->value;

	switch ((enum cfi_rule_kind)save->kind) {
	case CFI_AT_CFA:
		return recover_saved(step, save->number, addr);
	case CFI_IS_CFA:
		registers_set(step->caller, save->number, addr);
		return 0;
	case CFI_IN_REGISTER:
		recover_from_register(step, save);
		return 0;
	case CFI_AT_EXPRESSION:
	case CFI_IS_EXPRESSION:
		return recover_by_expression(step, save);
	case CFI_UNDEFINED:
		step->caller->known &= ~((uint64_t)1 << save->number);
		return 0;
	case CFI_SAME:
	default:
		return 0;
	}
}

/*
 * Set the caller's pc: the return address without its signature (user-space addresses have 48
 * bits at most). The first function of a thread has no caller: a rule says so, or the return
 * address is 0. Code that a signal interrupted may have a pc of 0.
 */
static void set_caller_pc(struct step *step)
{
	const struct unwind_rule *rule = step->rule;
	struct registers *caller = step->caller;
	uint64_t pc = caller->values[rule->return_register];

	if (rule->is_return_signed)
		pc &= ((uint64_t)1 << 48) - 1;
	if (registers_know(caller, rule->return_register) && (pc || rule->is_signal_frame))
		registers_set(caller, REGISTER_PC, pc);
	else
		caller->known &= ~((uint64_t)1 << REGISTER_PC);
}

/* A rule for the stack pointer itself, which few functions have, must not undo find_cfa(). */
static int check_caller_sp(const struct step *step)
{
	if (step->rule->is_signal_frame || step->caller->values[REGISTER_SP] >= step->cfa)
		return 0;
	return -EBADMSG;
}

/* Recover the caller's registers from the CFA. */
static int recover_caller(struct step *step)
{
	const struct unwind_rule *rule = step->rule;
	struct registers *caller = step->caller;
	int err = 0;

	*caller = *step->callee;
	caller->known &= REGISTERS_KEPT | (uint64_t)1 << rule->return_register;
	caller->is_interrupted = rule->is_signal_frame;
	registers_set(caller, REGISTER_SP, step->cfa);
	for (unsigned int i = 0; !err && i < rule->nr_saves; i++)
		err = recover_register(step, &rule->saves[i]);
	if (!err)
		err = check_caller_sp(step);
	if (!err)
		set_caller_pc(step);
	return err;
}

/* The return address of a function that has only been called. Returns 0 or an error. */
static int called_from(const struct registers *registers, struct stack_window *window,
		       uint64_t *ret_pc)
{
#if defined(__aarch64__)
	(void)window;
	*ret_pc = registers->values[REGISTER_LR];
	return registers_know(registers, REGISTER_LR) ? 0 : -ENOENT;
#else
	return stack_window_u64(window, registers->values[REGISTER_SP], ret_pc);
#endif
}

/*
 * Step out of a pc at which nothing is mapped: a function was called through an invalid pointer,
 * usually NULL, and the call has saved only its return address. Returns 0 or -ENOENT.
 */
static int leave_unmapped(struct unwind_modules *modules, struct stack_window *window,
			  struct registers *registers, remote_addr *ret_cfa)
{
	const struct cfi_section *section;
	uint64_t pc;

	if (!registers->is_interrupted || called_from(registers, window, &pc) ||
	    !unwind_modules_find(modules, pc - 1, &section))
		return -ENOENT;
	*ret_cfa = registers->values[REGISTER_SP] + REGISTERS_CALL_BYTES;
	registers_set(registers, REGISTER_PC, pc);
	registers_set(registers, REGISTER_SP, *ret_cfa);
	registers->known &=
		REGISTERS_KEPT | (uint64_t)1 << REGISTER_PC | (uint64_t)1 << REGISTER_SP;
	registers->is_interrupted = false;
	return 0;
}

/*
 * Step out of a function without call frame information. Which registers it has saved, and where,
 * is unknown. Returns 0 or an error as unwind_step().
 */
static int leave_without_rule(struct unwind_modules *modules, struct stack_window *window,
			      struct registers *registers, remote_addr *ret_cfa)
{
	const remote_addr sp = registers->values[REGISTER_SP];
	enum call_site_kind kind;
	uint64_t pc = 0;
	int err = unwind_modules_find_call(modules, window, registers, &kind, ret_cfa);

	if (!err && kind == CALL_SITE_FOUND)
		err = stack_window_u64(window, *ret_cfa - sizeof(pc), &pc);
	if (err)
		return err;
	if (kind == CALL_SITE_NONE)
		*ret_cfa = sp + sizeof(pc);
	registers->known = 0;
	registers->is_interrupted = false;
	registers_set(registers, REGISTER_SP, *ret_cfa);
	if (kind == CALL_SITE_FOUND)
		registers_set(registers, REGISTER_PC, pc);
	return 0;
}

int unwind_step(struct unwind_modules *modules, struct stack_window *window,
		struct registers *registers, remote_addr *ret_cfa)
{
	struct registers caller;
	struct step step = {.callee = registers, .window = window, .caller = &caller};
	int err;

	step.rule = unwind_modules_find(modules, registers_lookup_addr(registers), &step.section);
	if (!step.rule)
		return unwind_modules_has(modules, registers->values[REGISTER_PC])
			       ? leave_without_rule(modules, window, registers, ret_cfa)
			       : leave_unmapped(modules, window, registers, ret_cfa);
	err = find_cfa(&step);
	if (!err)
		err = recover_caller(&step);
	if (err)
		return err;
	/* A signal frame may restore another stack pointer. */
	*ret_cfa = caller.values[REGISTER_SP];
	*registers = caller;
	return 0;
}

int unwind_leave(struct unwind_modules *modules, struct stack_window *window,
		 remote_addr lookup_addr, remote_addr cfa, struct registers *registers)
{
	struct registers caller;
	struct step step = {.callee = registers, .window = window, .cfa = cfa, .caller = &caller};
	int err;

	step.rule = unwind_modules_find(modules, lookup_addr, &step.section);
	if (!step.rule)
		return -ENOENT;
	err = cfa > registers->values[REGISTER_SP] ? recover_caller(&step) : -EBADMSG;
	if (err)
		return err;
	*registers = caller;
	return 0;
}

int unwind_stack(struct unwind_modules *modules, struct stack_window *window,
		 const struct registers *innermost, struct unwound *unwound)
{
	struct registers current = *innermost;
	unsigned int nr_signals = 0;
	int err = 0;

	assert(unwound->nr_frames < unwound->max_frames);
	do {
		struct unwind_frame *frame = &unwound->frames[unwound->nr_frames];

		unwound->registers = current;
		unwound->nr_frames++;
		*frame = (struct unwind_frame){.pc = current.values[REGISTER_PC],
					       .lookup_addr = registers_lookup_addr(&current),
					       .sp = current.values[REGISTER_SP]};
		err = unwind_step(modules, window, &current, &frame->cfa);
		frame->is_signal_frame = !err && current.is_interrupted;
		nr_signals += frame->is_signal_frame;
	} while (!err && registers_know(&current, REGISTER_PC) &&
		 unwound->nr_frames < unwound->max_frames &&
		 nr_signals <= UNWIND_MAX_SIGNAL_FRAMES);
	return !err && registers_know(&current, REGISTER_PC) ? -E2BIG : err;
}
