/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/interpreter_scan.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "sampler/cpython/threads/threads.h"
#include "tests/support/fake_python.h"
#include "tests/support/fake_stack.h"

/*
 * A program with the runtime of fake_python: variables before it, its page, and .bss after it.
 * The states that it refers to are in writable memory.
 */
struct program {
	struct fake_python py;
	struct mapping mappings[3];
	struct maps maps;
	struct elf_module module;
	remote_addr head_addr;
	remote_addr thread_addr;
};

enum { BEFORE_BYTES = 0x80000, BEHIND_BYTES = 0x1000, NR_DECOYS = 5000, POINTERS_BYTES = 400 };

static struct mapping data_mapping(remote_addr start, remote_addr end)
{
	return (struct mapping){
		.start = start, .end = end, .readable = true, .writable = true, .path = ""};
}

static void program_init(struct program *program)
{
	struct fake_python *py = &program->py;

	fake_python_init(py, 11);
	program->mappings[0] = data_mapping(py->runtime_addr - BEFORE_BYTES,
					    py->runtime_addr + 0x1000 + BEHIND_BYTES);
	program->mappings[1] = data_mapping(py->interp_addr, py->interp_addr + 0x200000);
	program->thread_addr = fake_python_thread(py, 7);
	remote_addr pointers_addr = fake_python_alloc(py, POINTERS_BYTES);

	for (uint64_t i = 0; i < POINTERS_BYTES; i += 8)
		fake_memory_write_u64(&py->fake, pointers_addr + i, pointers_addr + 8);
	program->mappings[2] =
		data_mapping(py->interp_addr + 0x100000000, py->free_addr + 0x100000);
	program->maps = (struct maps){.mappings = program->mappings, .nr_mappings = 3};
	program->module = (struct elf_module){.first = 0, .end = 1};
	(void)fake_memory_map(&py->fake, py->runtime_addr - BEFORE_BYTES, BEFORE_BYTES);
	(void)fake_memory_map(&py->fake, py->runtime_addr + 0x1000, BEHIND_BYTES);
	program->head_addr = py->runtime_addr + py->build.offsets.runtime.interpreters_head;
	fake_memory_write_u64(&py->fake, program->head_addr + 8, py->interp_addr);
	/* obmalloc's usedpools: pairs of pointers, each to 16 bytes before the pair. */
	for (uint64_t i = 0; i < 64; i++) {
		remote_addr addr = py->runtime_addr - 0x1000 + i * 16;

		fake_memory_write_u64(&py->fake, addr, addr - 16);
		fake_memory_write_u64(&py->fake, addr + 8, addr - 16);
	}
	/*
	 * Decoys: pairs of pointers into the interpreter state, some to its start, and to memory
	 * in which every word is such a pointer.
	 */
	for (uint64_t i = 0; i < NR_DECOYS; i++) {
		remote_addr addr = py->runtime_addr - BEFORE_BYTES + i * 24;

		fake_memory_write_u64(&py->fake, addr,
				      i % 3 ? py->interp_addr + i % 512 * 8 : pointers_addr);
		fake_memory_write_u64(&py->fake, addr + 8, py->interp_addr + 8);
	}
}

static int scan(struct program *program, remote_addr *ret_runtime_addr)
{
	return interpreter_scan(&program->py.fake.memory, &program->maps, &program->module,
				&program->py.build, ret_runtime_addr);
}

static void unchanged(struct program *program)
{
	(void)program;
}

static void wrong_main(struct program *program)
{
	fake_memory_write_u64(&program->py.fake, program->head_addr + 8, program->thread_addr);
}

static void newer_main(struct program *program)
{
	fake_memory_write_u64(&program->py.fake,
			      program->py.interp_addr + program->py.build.offsets.interpreter.id,
			      1);
}

static void no_interpreter(struct program *program)
{
	fake_memory_write_u64(&program->py.fake, program->head_addr, 0);
}

static void no_thread(struct program *program)
{
	fake_python_set_threads(&program->py, 0);
}

static void thread_of_another(struct program *program)
{
	fake_memory_write_u64(&program->py.fake,
			      program->thread_addr + program->py.build.offsets.thread.interp,
			      program->py.interp_addr + 8);
}

static void rings_of_threads(struct program *program)
{
	for (uint64_t addr = program->head_addr + 64; addr < program->head_addr + 1024; addr += 8)
		fake_memory_write_u64(&program->py.fake, addr, program->py.interp_addr);
	fake_memory_write_u64(&program->py.fake,
			      program->thread_addr + program->py.build.offsets.thread.next,
			      program->thread_addr);
}

static void not_writable(struct program *program)
{
	program->mappings[1].writable = false;
}

static void no_head_in_the_struct(struct program *program)
{
	program->py.build.offsets.runtime.interpreters_head = 0;
	program->py.build.offsets.runtime.size = 8;
}

Test(interpreter_scan, finds_the_head_of_valid_lists_only)
{
	static const struct {
		const char *name;
		void (*change)(struct program *program);
		int err;
	} cases[] = {
		{"valid", unchanged, 0},
		{"main is no interpreter", wrong_main, -ENOENT},
		{"main is not the first one", newer_main, -ENOENT},
		{"no interpreter", no_interpreter, -ENOENT},
		{"no thread", no_thread, -ENOENT},
		{"a thread of another interpreter", thread_of_another, -ENOENT},
		{"threads in a ring", rings_of_threads, -ENOENT},
		{"an interpreter in read-only memory", not_writable, -ENOENT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		remote_addr runtime_addr = 0;
		struct program program;

		program_init(&program);
		cases[i].change(&program);
		program.py.fake.nr_calls = 0;
		cr_expect(eq(int, scan(&program, &runtime_addr), cases[i].err), "%s",
			  cases[i].name);
		cr_expect(eq(u64, runtime_addr, cases[i].err ? 0 : program.py.runtime_addr), "%s",
			  cases[i].name);
		/* A ring is followed up to the limit, but not for every word that leads to it. */
		cr_expect(lt(u64, program.py.fake.nr_calls,
			     cases[i].change == rings_of_threads ? 4 * MAX_THREADS : 500),
			  "%s", cases[i].name);
		fake_python_done(&program.py);
	}
}

/* 3.6 has no struct around the head, and a second variable refers to the first interpreter. */
Test(interpreter_scan, longest_list_wins_without_a_main_interpreter)
{
	remote_addr runtime_addr = 0;
	remote_addr newer_addr;
	struct program program;

	program_init(&program);
	struct fake_python *py = &program.py;
	remote_addr other_addr = py->runtime_addr + 0x1000;

	no_head_in_the_struct(&program);
	memset(fake_memory_map(&py->fake, py->interp_addr + 0x100000, 0x100), 0, 0x100);
	newer_addr = py->interp_addr + 0x100000;
	fake_memory_write_u64(&py->fake, newer_addr + py->build.offsets.interpreter.next,
			      py->interp_addr);
	fake_memory_write_u64(&py->fake, other_addr, newer_addr);
	/* The newer interpreter does not count without a thread of its own. */
	cr_expect(zero(int, scan(&program, &runtime_addr)));
	cr_expect(ne(u64, runtime_addr, other_addr));
	remote_addr thread_addr = fake_python_alloc(py, 832);

	fake_python_thread_at(py, thread_addr, 8, 0);
	fake_memory_write_u64(&py->fake, thread_addr + py->build.offsets.thread.interp, newer_addr);
	fake_memory_write_u64(&py->fake, newer_addr + py->build.offsets.interpreter.threads_head,
			      thread_addr);
	cr_expect(zero(int, scan(&program, &runtime_addr)));
	cr_expect(eq(u64, runtime_addr, other_addr));
	fake_python_done(py);
}

/*
 * Another program's states, or words that resemble states, come first in memory and have no
 * stack.
 */
Test(interpreter_scan, prefers_states_with_a_stack)
{
	remote_addr runtime_addr = 0;
	struct fake_stack stack;
	struct program program;

	program_init(&program);
	struct fake_python *py = &program.py;
	remote_addr other_addr = fake_python_alloc(py, 4096);
	remote_addr thread_addr = fake_python_alloc(py, 4096);
	remote_addr word_addr = py->runtime_addr - 0x1008;

	fake_memory_write_u64(&py->fake, word_addr, other_addr);
	fake_memory_write_u64(&py->fake, word_addr + 8, other_addr);
	fake_memory_write_u64(&py->fake, other_addr + py->build.offsets.interpreter.threads_head,
			      thread_addr);
	fake_memory_write_u64(&py->fake, thread_addr + py->build.offsets.thread.interp, other_addr);
	cr_expect(zero(int, scan(&program, &runtime_addr)));
	cr_expect(lt(u64, runtime_addr, py->runtime_addr));
	fake_stack_init(&stack, py, 8, 4096);
	(void)fake_stack_call(&stack, fake_python_code(py, &(struct fake_code){.name = "f"}), 20);
	fake_stack_finish(&stack);
	cr_expect(zero(int, scan(&program, &runtime_addr)));
	cr_expect(eq(u64, runtime_addr, py->runtime_addr));
	fake_python_done(py);
}

Test(interpreter_scan, reports_the_end_of_the_process)
{
	remote_addr runtime_addr;
	struct program program;

	program_init(&program);
	program.py.fake.error = -ESRCH;
	cr_expect(lt(int, scan(&program, &runtime_addr), 0));
	fake_python_done(&program.py);
}
