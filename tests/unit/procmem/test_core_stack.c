/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_stack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>

#include "tests/support/made_core.h"

/*
 * A core with: a stack below which mprotect() made two guard pages; a stack whose first page is a
 * guard made by madvise(); a stack that was not saved; one of zeros beside another stack; and
 * read-only memory.
 */
static struct core *open_core(void)
{
	enum { GUARD = 0x1000 };
	static const uint8_t words[0x80] = {[0x7f] = 1};
	static const uint8_t zeros[0x80];
	static const uint8_t with_guard[GUARD + 0x80] = {[GUARD] = 1};
	struct made_core file = MADE_CORE_EMPTY;
	struct message message = {0};
	struct core *core = NULL;

	made_core_add_load(&file, 0x100000, 0x2000, 0, words, 0);
	made_core_add_load(&file, 0x102000, 0x80, PF_R | PF_W, words, sizeof(words));
	made_core_add_load(&file, 0x200000, sizeof(with_guard), PF_R | PF_W, with_guard,
			   sizeof(with_guard));
	made_core_add_load(&file, 0x300000, 0x1000, PF_R | PF_W, words, 0);
	made_core_add_load(&file, 0x500000, 0x80, PF_R | PF_W, zeros, sizeof(zeros));
	made_core_add_load(&file, 0x500080, 0x80, PF_R | PF_W, words, sizeof(words));
	made_core_add_load(&file, 0x400000, 0x80, PF_R, words, sizeof(words));
	cr_assert(zero(int, core_open(made_core_write(&file), &core, &message)), "%s",
		  message.text);
	return core;
}

Test(core_stack, finds_the_state_of_a_stack)
{
	static const struct {
		remote_addr sp_addr;
		enum core_stack_state state;
	} cases[] = {
		{0x102000, CORE_STACK_SAVED},
		{0x10207f, CORE_STACK_SAVED},
		{0x101ff8, CORE_STACK_SAVED}, /* in its guard pages, */
		{0x100000, CORE_STACK_SAVED},
		{0xf0000, CORE_STACK_SAVED},	/* below them */
		{0xe1000, CORE_STACK_UNMAPPED}, /* too far */
		{0x200800, CORE_STACK_SAVED},
		{0x200000, CORE_STACK_SAVED}, /* after a page of zeros */
		{0x500010, CORE_STACK_MISSING},
		{0x500080, CORE_STACK_SAVED}, /* another stack */
		{0x300008, CORE_STACK_MISSING},
		{0x2ffff8, CORE_STACK_MISSING},
		{0x400000, CORE_STACK_UNMAPPED},
		{0x8, CORE_STACK_UNMAPPED},
		{0, CORE_STACK_UNMAPPED},
		{UINT64_MAX, CORE_STACK_UNMAPPED},
	};
	struct core *core = open_core();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct core_thread thread = {.sp_addr = cases[i].sp_addr};

		cr_expect(eq(int, core_stack_find_state(core, &thread), cases[i].state), "case %zu",
			  i);
	}
	core_close(core);
}

Test(core_stack, recognises_a_stack_overflow)
{
	static const struct {
		remote_addr sp_addr;
		remote_addr addr;
		int code;
		bool was_full;
	} cases[] = {
		{0x101f00, 0x101f80, SEGV_ACCERR, true},  {0x102000, 0x101ff8, SEGV_ACCERR, true},
		{0xfff00, 0xfff10, SEGV_MAPERR, true},	  {0x102000, 0x8, SEGV_MAPERR, false},
		{0x8, 0x0, SEGV_MAPERR, false},		  /* an invalid stack pointer */
		{0x102040, 0x102100, SEGV_MAPERR, false}, /* above the stack */
		{0x200e80, 0x200ef0, SEGV_MAPERR, true},  /* in its own mapping */
		{0x200e80, 0x200ef0, SEGV_ACCERR, false}, {0x400000, 0x400008, SEGV_ACCERR, false},
	};
	struct core *core = open_core();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_death death = {.signal = SIGSEGV,
					   .code = cases[i].code,
					   .has_addr = true,
					   .addr = cases[i].addr};

		cr_expect(eq(int, core_stack_overflowed(core, &death, cases[i].sp_addr),
			     cases[i].was_full),
			  "case %zu", i);
		death.signal = SIGBUS;
		cr_expect(not(core_stack_overflowed(core, &death, cases[i].sp_addr)), "case %zu",
			  i);
	}
	core_close(core);
}
