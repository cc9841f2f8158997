/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/call_site.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <errno.h>

#include "symbols/unwind/unwind.h"
#include "tests/support/fake_memory.h"

#if defined(__x86_64__)

#define MODULE_ADDR  0x7f0000000000
#define MODULE_BYTES 0x4000
#define STACK_ADDR   0x7ffe00000000
#define STACK_WORDS  4096

/* Offsets in the module. */
enum {
	INNER = 0x1100,
	IN_INNER = INNER + 0xa, /* after its call, 32 bytes below its CFA */
	LINKAGE = 0x1200,
	TAIL = 0x1300,
	OTHER = 0x1400,
	AFTER_DIRECT = 0x1505, /* return addresses, named by their calls */
	AFTER_LINKED = 0x1605,
	AFTER_TAIL = 0x1705,
	AFTER_GOT = 0x1806,
	AFTER_POINTER = 0x1902,
	AFTER_OTHER = 0x1a05,
	AFTER_THREAD = 0x1b03, /* begins a thread */
	ENTRY = 0x1c00,
	AFTER_ENTRY = ENTRY + 5,
	HANDLED = 0x1e00, /* where signal handlers return to */
	UNKNOWN = 0x1d00, /* no call leads to it */
	GOT = 0x3000,
};

static const struct {
	uint32_t offset;
	uint8_t bytes[16];
} code[] = {
	/* push %rbx; sub $0x10,%rsp; call; ret */
	{INNER, {0x53, 0x48, 0x83, 0xec, 0x10, 0xe8, 0, 0, 0, 0, 0xc3}},
	/* endbr64; jmp *GOT(%rip) */
	{LINKAGE, {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0x1d, 0, 0}},
	/* jmp INNER */
	{TAIL, {0xe9, 0xfb, 0xfd, 0xff, 0xff}},
	{OTHER, {0xc3}},
	/* call INNER, LINKAGE, TAIL */
	{AFTER_DIRECT - 5, {0xe8, 0xfb, 0xfb, 0xff, 0xff}},
	{AFTER_LINKED - 5, {0xe8, 0xfb, 0xfb, 0xff, 0xff}},
	{AFTER_TAIL - 5, {0xe8, 0xfb, 0xfb, 0xff, 0xff}},
	/* call *GOT(%rip) */
	{AFTER_GOT - 6, {0xff, 0x15, 0xfa, 0x17, 0, 0}},
	/* call *%rax */
	{AFTER_POINTER - 2, {0xff, 0xd0}},
	/* call OTHER */
	{AFTER_OTHER - 5, {0xe8, 0xfb, 0xf9, 0xff, 0xff}},
	/* call *%r9; mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall */
	{AFTER_THREAD - 3, {0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05}},
	/* mov $15,%rax; syscall */
	{HANDLED, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}},
	/* call OTHER */
	{ENTRY, {0xe8, 0xfb, 0xf7, 0xff, 0xff}},
};

static const struct {
	const char *name;
	uint32_t pc_offset;
	struct {
		uint8_t index; /* of a word of the stack */
		uint32_t offset;
	} words[3]; /* return addresses; 0: no more */
	int err;
	uint32_t cfa_bytes; /* above the stack pointer */
	enum call_site_kind kind;
} cases[] = {
	{"direct call", IN_INNER, {{3, AFTER_DIRECT}}, 0, 32, CALL_SITE_FOUND},
	{"older return addresses below",
	 IN_INNER,
	 {{0, AFTER_DIRECT}, {1, AFTER_POINTER}, {3, AFTER_DIRECT}},
	 0,
	 32,
	 CALL_SITE_FOUND},
	{"procedure linkage table", IN_INNER, {{3, AFTER_LINKED}}, 0, 32, CALL_SITE_FOUND},
	{"global offset table", IN_INNER, {{3, AFTER_GOT}}, 0, 32, CALL_SITE_FOUND},
	{"tail call", IN_INNER, {{3, AFTER_TAIL}}, 0, 32, CALL_SITE_FOUND},
	{"at another depth", IN_INNER, {{4, AFTER_DIRECT}}, -ENOENT, 0, CALL_SITE_FOUND},
	{"through a pointer", IN_INNER, {{3, AFTER_POINTER}}, -ENOENT, 0, CALL_SITE_FOUND},
	{"of another function", IN_INNER, {{3, AFTER_OTHER}}, -ENOENT, 0, CALL_SITE_FOUND},
	{"no return address", IN_INNER, {{0, 0}}, -ENOENT, 0, CALL_SITE_FOUND},
	{"begins a thread", AFTER_THREAD, {{0, 0}}, 0, 0, CALL_SITE_NONE},
	{"entry point", AFTER_ENTRY, {{0, 0}}, 0, 0, CALL_SITE_NONE},
	{"called by the beginning of a thread",
	 UNKNOWN,
	 {{5, AFTER_THREAD}},
	 0,
	 48,
	 CALL_SITE_FOUND},
	{"called by the entry point", UNKNOWN, {{5, AFTER_ENTRY}}, 0, 48, CALL_SITE_FOUND},
	{"called by the kernel", UNKNOWN, {{5, HANDLED}, {27, ENTRY}}, 0, 48, CALL_SITE_FOUND},
	{"the kernel's, but nothing was interrupted",
	 UNKNOWN,
	 {{5, HANDLED}},
	 -ENOENT,
	 0,
	 CALL_SITE_FOUND},
	{"the kernel's as data",
	 IN_INNER,
	 {{2, HANDLED}, {3, AFTER_DIRECT}, {24, ENTRY}},
	 0,
	 32,
	 CALL_SITE_FOUND},
	{"perhaps not",
	 UNKNOWN,
	 {{2, AFTER_POINTER}, {5, AFTER_THREAD}},
	 -ENOENT,
	 0,
	 CALL_SITE_FOUND},
	{"in data", GOT, {{3, AFTER_DIRECT}}, -ENOENT, 0, CALL_SITE_FOUND},
};

struct target {
	struct fake_memory fake;
	struct mapping mappings[2]; /* the code, and data of the same file */
	struct maps maps;
	struct module_map map;
	struct stack_window window;
	struct call_sites sites;
	struct registers frame;
};

static void write_module(struct fake_memory *fake)
{
	const Elf64_Phdr interpreter = {.p_type = PT_INTERP};
	const Elf64_Ehdr header = {.e_ident = ELFMAG,
				   .e_type = ET_DYN,
				   .e_entry = ENTRY,
				   .e_phoff = sizeof(header),
				   .e_phentsize = sizeof(interpreter),
				   .e_phnum = 1};

	fake_memory_map(fake, MODULE_ADDR, MODULE_BYTES);
	fake_memory_write(fake, MODULE_ADDR, &header, sizeof(header));
	fake_memory_write(fake, MODULE_ADDR + sizeof(header), &interpreter, sizeof(interpreter));
	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
		fake_memory_write(fake, MODULE_ADDR + code[i].offset, code[i].bytes,
				  sizeof(code[i].bytes));
	fake_memory_write_u64(fake, MODULE_ADDR + GOT, MODULE_ADDR + INNER);
}

static void write_stack(struct fake_memory *fake, size_t index)
{
	fake_memory_map(fake, STACK_ADDR, STACK_WORDS * sizeof(uint64_t));
	for (size_t i = 0; i < 3; i++)
		if (cases[index].words[i].offset)
			fake_memory_write_u64(fake, STACK_ADDR + 8ull * cases[index].words[i].index,
					      MODULE_ADDR + cases[index].words[i].offset);
}

static void begin(struct target *target, size_t index)
{
	*target = (struct target){
		.mappings = {{.start = MODULE_ADDR,
			      .end = MODULE_ADDR + GOT,
			      .executable = true,
			      .inode = 1,
			      .path = "/m"},
			     {.start = MODULE_ADDR + GOT,
			      .end = MODULE_ADDR + MODULE_BYTES,
			      .inode = 1,
			      .path = "/m"}},
		.maps = {.nr_mappings = 2},
	};
	target->maps.mappings = target->mappings;
	fake_memory_init(&target->fake);
	write_module(&target->fake);
	write_stack(&target->fake, index);
	cr_assert(zero(int, module_map_init(&target->map, &target->maps)));
	cr_assert(zero(int, stack_window_init(&target->window, &target->fake.memory)));
	call_sites_init(&target->sites, &target->fake.memory, &target->map);
	registers_set(&target->frame, REGISTER_PC, MODULE_ADDR + cases[index].pc_offset);
	registers_set(&target->frame, REGISTER_SP, STACK_ADDR);
}

static void end(struct target *target)
{
	stack_window_done(&target->window);
	module_map_done(&target->map);
	fake_memory_done(&target->fake);
}

static int find(struct target *target, enum call_site_kind *ret_kind, remote_addr *ret_cfa)
{
	return call_sites_find(&target->sites, &target->window, &target->frame, ret_kind, ret_cfa);
}

Test(call_site, the_call_that_entered_the_function)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum call_site_kind kind;
		struct target target;
		remote_addr cfa = 0;

		begin(&target, i);
		/* The second time it may be known. */
		for (int n = 0; n < 2; n++) {
			cr_expect(eq(int, find(&target, &kind, &cfa), cases[i].err), "%s",
				  cases[i].name);
			if (cases[i].err)
				continue;
			cr_expect(eq(int, kind, cases[i].kind), "%s", cases[i].name);
			if (kind == CALL_SITE_FOUND)
				cr_expect(eq(u64, cfa, STACK_ADDR + cases[i].cfa_bytes), "%s",
					  cases[i].name);
		}
		end(&target);
	}
}

Test(call_site, a_dead_process_is_reported_and_forgotten)
{
	enum call_site_kind kind;
	struct target target;
	remote_addr cfa;

	begin(&target, 0);
	target.fake.error = -ESRCH;
	cr_expect(eq(int, find(&target, &kind, &cfa), -ESRCH));
	target.fake.error = 0;
	cr_expect(zero(int, find(&target, &kind, &cfa)));
	cr_expect(eq(u64, cfa, STACK_ADDR + 32));
	end(&target);
}

Test(call_site, searches_in_vain_end)
{
	enum { MANY = 20 };
	enum call_site_kind kind;
	struct target target;
	remote_addr cfa;
	uint64_t nr_calls;

	begin(&target, 6);
	for (int i = 0; i < MANY; i++)
		cr_expect(eq(int, find(&target, &kind, &cfa), -ENOENT));
	nr_calls = target.fake.nr_calls;
	cr_expect(eq(int, find(&target, &kind, &cfa), -ENOENT));
	cr_expect(eq(u64, target.fake.nr_calls, nr_calls));
	end(&target);
}

/* A copy of the stack may be too short, which says nothing of the function. */
Test(call_site, a_stack_that_ends_is_tried_again)
{
	enum { MANY = 20 };
	enum call_site_kind kind;
	struct target target;
	remote_addr cfa;

	begin(&target, 0);
	registers_set(&target.frame, REGISTER_SP,
		      STACK_ADDR + (STACK_WORDS - 2) * sizeof(uint64_t));
	for (int i = 0; i < MANY; i++)
		cr_expect(eq(int, find(&target, &kind, &cfa), -EFAULT));
	registers_set(&target.frame, REGISTER_SP, STACK_ADDR);
	cr_expect(zero(int, find(&target, &kind, &cfa)));
	end(&target);
}

/* Old linkers gave libraries an entry. */
Test(call_site, only_programs_have_an_entry)
{
	const Elf64_Phdr load = {.p_type = PT_LOAD};
	enum call_site_kind kind;
	struct target target;
	remote_addr cfa;
	size_t i = 0;

	while (cases[i].kind != CALL_SITE_NONE || cases[i].pc_offset != AFTER_ENTRY)
		i++;
	begin(&target, i);
	fake_memory_write(&target.fake, MODULE_ADDR + sizeof(Elf64_Ehdr), &load, sizeof(load));
	cr_expect(eq(int, find(&target, &kind, &cfa), -ENOENT));
	end(&target);
}

/* Step out of the frame of a case. */
static struct registers step(size_t index, remote_addr *ret_cfa)
{
	struct module_files *files = module_files_create();
	struct unwind_modules *modules;
	struct target target;

	begin(&target, index);
	cr_assert(ne(ptr, files, NULL));
	cr_assert(zero(int, unwind_modules_create(&target.fake.memory, &target.map, NULL, files,
						  &modules)));
	registers_set(&target.frame, REGISTER_RBP, 1);
	cr_expect(zero(int, unwind_step(modules, &target.window, &target.frame, ret_cfa)), "%s",
		  cases[index].name);
	unwind_modules_destroy(modules);
	module_files_destroy(files);
	end(&target);
	return target.frame;
}

static size_t find_case(const char *name)
{
	size_t i = 0;

	while (strcmp(cases[i].name, name) != 0)
		i++;
	return i;
}

Test(call_site, the_caller_has_its_pc_and_sp)
{
	remote_addr cfa;
	struct registers caller = step(find_case("direct call"), &cfa);

	cr_expect(eq(u64, cfa, STACK_ADDR + 32));
	cr_expect(eq(u64, caller.values[REGISTER_SP], cfa));
	cr_expect(eq(u64, caller.values[REGISTER_PC], MODULE_ADDR + AFTER_DIRECT));
	cr_expect(not(registers_know(&caller, REGISTER_RBP)));
	caller = step(find_case("entry point"), &cfa);
	cr_expect(lt(u64, STACK_ADDR, cfa));
	cr_expect(not(registers_know(&caller, REGISTER_PC)));
}

#endif
