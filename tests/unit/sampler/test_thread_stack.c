/* SPDX-License-Identifier: MIT */
#include "sampler/thread_stack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/live.h"
#include "tests/support/fake_memory.h"
#include "tests/support/own_process.h"

/* Two stacks separated by a guard page, one mapping with two more, and the main thread's. */
static const char maps_text[] =
	"7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n"
	"7f0000800000-7f0000801000 ---p 00000000 00:00 0 \n"
	"7f0000801000-7f0001001000 rw-p 00000000 00:00 0 \n"
	"7f0002000000-7f0003000000 rw-p 00000000 00:00 0 \n"
	"7f0004000000-7f0004100000 rw-p 00000000 00:00 0 \n"
	"7f0005000000-7f0005010000 rw-p 00000000 00:00 0 \n"
	"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n";

#define LOWER	    UINT64_C(0x7f00007ff740)
#define UPPER	    UINT64_C(0x7f0001000740)
#define INNER	    UINT64_C(0x7f0002800000)
#define OUTER	    UINT64_C(0x7f0002fff740)
#define CONTROL	    UINT64_C(0x7f00040ff740) /* of a thread without a thread state */
#define MAIN	    UINT64_C(0x7f0005000740)
#define OTHER(id)   ((struct stack_thread){.thread_id = (id), .is_other = true})
#define MAIN_THREAD ((struct stack_thread){.thread_id = MAIN, .is_main = true})
#define UNKNOWN(id) ((struct stack_thread){.thread_id = (id)})

Test(thread_stack, finds_the_owner_of_a_stack)
{
	static const struct {
		char name[48];
		struct stack_thread thread;
		remote_addr addr;
		enum stack_owner owner;
	} cases[] = {
		{"far down", OTHER(UPPER), 0x7f0000802000, STACK_OWN},
		{"another thread's", OTHER(UPPER), 0x7f0000400000, STACK_FOREIGN},
		{"another thread's, above", OTHER(LOWER), 0x7f0000f00000, STACK_FOREIGN},
		{"the upper one of a mapping", OTHER(OUTER), 0x7f0002a00000, STACK_OWN},
		{"and the lower one", OTHER(OUTER), 0x7f0002700000, STACK_FOREIGN},
		{"the lower one's own", OTHER(INNER), 0x7f0002100000, STACK_OWN},
		{"one without a state", OTHER(UPPER), 0x7f0004000100, STACK_FOREIGN},
		{"unowned: after its end", OTHER(UPPER), 0x7f00040fff00, STACK_UNKNOWN},
		{"the first thread's", MAIN_THREAD, 0x7ffc00020000, STACK_OWN},
		{"below it", MAIN_THREAD, 0x7ffbfffff000, STACK_UNKNOWN},
		{"the first thread on another one's", MAIN_THREAD, 0x7f0000400000, STACK_FOREIGN},
		{"another one on the first one's", OTHER(UPPER), 0x7ffc00020000, STACK_FOREIGN},
		{"an unknown thread on the first one's", UNKNOWN(UPPER), 0x7ffc00020000,
		 STACK_UNKNOWN},
		{"below the first one's other stack", OTHER(UPPER), 0x7f0005000100, STACK_UNKNOWN},
		{"the first one of a forked thread", MAIN_THREAD, 0x7f0005000100, STACK_OWN},
		{"not mapped", OTHER(UPPER), 0x1000, STACK_UNKNOWN},
	};
	static const uint64_t ids[] = {UPPER, LOWER, MAIN, OUTER, INNER};
	struct fake_memory fake;
	struct stack_context context;
	struct maps maps;

	fake_memory_init(&fake);
	fake.whole_pages = true;
	(void)fake_memory_map(&fake, 0x7f0004000000, 0x100000);
	fake_memory_write_u64(&fake, CONTROL, CONTROL);
	fake_memory_write_u64(&fake, CONTROL + 16, CONTROL);
	/* Only one of the two words. */
	fake_memory_write_u64(&fake, CONTROL - 64, CONTROL - 64);
	fake_memory_write_u64(&fake, CONTROL - 128 + 16, CONTROL - 128);
	cr_assert(zero(int, maps_parse(maps_text, strlen(maps_text), &maps)));
	context = (struct stack_context){&fake.memory, &maps, ids, sizeof(ids) / sizeof(*ids),
					 .main_thread_id = MAIN};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct thread_stack stack =
			thread_stack_of_id(cases[i].thread.is_main ? 0 : cases[i].thread.thread_id);

		cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, cases[i].addr),
			     STACK_UNKNOWN),
			  "%s", cases[i].name);
		cr_expect(eq(u64, stack.pending_addr, cases[i].addr), "%s", cases[i].name);
		thread_stack_resolve(&stack, &cases[i].thread, &context);
		cr_expect(zero(u64, stack.pending_addr));
		cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, cases[i].addr),
			     cases[i].owner),
			  "%s", cases[i].name);
		cr_expect(eq(int, stack.pending_addr != 0, !maps_find(&maps, cases[i].addr)),
			  "%s: the owner was learned", cases[i].name);
	}
	maps_done(&maps);
	fake_memory_done(&fake);
}

Test(thread_stack, finds_the_owner_by_pthread_t_alone)
{
	struct thread_stack stack = thread_stack_of_id(UPPER), nobodys = thread_stack_of_id(0);
	struct fake_memory fake;

	fake_memory_init(&fake);
	fake.whole_pages = true;
	(void)fake_memory_map(&fake, UPPER - 0x60000, 0x61000);
	fake_memory_write_u64(&fake, UPPER, UPPER);
	fake_memory_write_u64(&fake, UPPER + 16, UPPER);
	fake_memory_write_u64(&fake, UPPER - 0x30000, UPPER - 0x30000);
	fake_memory_write_u64(&fake, UPPER - 0x30000 + 16, UPPER - 0x30000);
	cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, UPPER - 1), STACK_OWN));
	cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, UPPER - 10000), STACK_OWN));
	cr_expect(zero(u64, stack.pending_addr));
	/* Further down, all memory in between must be readable and have no other control block. */
	cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, UPPER - 0x20000), STACK_OWN));
	cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, UPPER - 0x2fff0), STACK_OWN));
	cr_expect(zero(u64, stack.pending_addr));
	cr_expect(
		eq(int, thread_stack_owner(&stack, &fake.memory, UPPER - 0x30000), STACK_UNKNOWN));
	cr_expect(eq(u64, stack.pending_addr, UPPER - 0x30000));
	/* If the thread has no control block, memory proves nothing. */
	fake_memory_write_u64(&fake, UPPER + 16, 0);
	stack = thread_stack_of_id(UPPER);
	cr_expect(
		eq(int, thread_stack_owner(&stack, &fake.memory, UPPER - 0x20000), STACK_UNKNOWN));
	cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, UPPER), STACK_UNKNOWN));
	cr_expect(eq(int, thread_stack_owner(&nobodys, &fake.memory, 1), STACK_UNKNOWN));
	cr_expect(eq(int, thread_stack_owner(&nobodys, &fake.memory, UINT64_MAX), STACK_UNKNOWN));
	fake_memory_done(&fake);
}

Test(thread_stack, finds_the_stack_of_the_first_thread)
{
	static const char without[] = "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n";
	struct thread_stack stack, nobodys;
	struct fake_memory fake;
	struct maps maps;

	fake_memory_init(&fake);
	cr_assert(zero(int, maps_parse(maps_text, strlen(maps_text), &maps)));
	stack = thread_stack_of_first(&maps);
	maps_done(&maps);
	cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, 0x7ffc00000000), STACK_OWN));
	cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, 0x7ffc00020fff), STACK_OWN));
	cr_expect(zero(u64, stack.pending_addr));
	cr_expect(eq(int, thread_stack_owner(&stack, &fake.memory, UPPER - 1), STACK_UNKNOWN));
	cr_expect(eq(u64, stack.pending_addr, UPPER - 1));
	cr_assert(zero(int, maps_parse(without, strlen(without), &maps)));
	nobodys = thread_stack_of_first(&maps);
	maps_done(&maps);
	cr_expect(
		eq(int, thread_stack_owner(&nobodys, &fake.memory, 0x7f0000400000), STACK_UNKNOWN));
	fake_memory_done(&fake);
}

/* On other machines nothing ends the stack of an unknown thread (thread_stack.c). */
#if defined(__x86_64__)
enum { OF_AN_UNKNOWN_THREAD = STACK_FOREIGN };
#else
enum { OF_AN_UNKNOWN_THREAD = STACK_UNKNOWN };
#endif

/* Real threads with the pthread_t that CPython keeps. Some have no thread state. */
struct other {
	pthread_t thread;
	int pipe[2];
	const char *local;
};

static void *wait_in_deep_frame(void *argument)
{
	struct other *other = argument;
	char local[300000];
	char byte;

	local[0] = 0;
	__atomic_store_n(&other->local, local, __ATOMIC_RELEASE);
	(void)!read(other->pipe[0], &byte, 1);
	return NULL;
}

static void begin_other(struct other *other, const pthread_attr_t *attr)
{
	cr_assert(zero(int, pipe(other->pipe)));
	cr_assert(zero(int, pthread_create(&other->thread, attr, wait_in_deep_frame, other)));
	while (!__atomic_load_n(&other->local, __ATOMIC_ACQUIRE))
		(void)usleep(1000);
}

Test(thread_stack, finds_stacks_of_real_threads, .timeout = 60)
{
	enum { NR = 3, SIZE = 1 << 20 };
	struct process process;
	struct live_memory live;
	struct other others[NR] = {0};
	struct stack_context context;
	pthread_attr_t attr;
	struct maps maps;
	char local;
	void *room = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* The last thread has a stack allocated by the program. */
	cr_assert(ne(ptr, room, MAP_FAILED));
	cr_assert(zero(int, pthread_attr_init(&attr)));
	cr_assert(zero(int, pthread_attr_setstack(&attr, room, SIZE)));
	for (int i = 0; i < NR; i++)
		begin_other(&others[i], i == NR - 1 ? &attr : NULL);
	process = own_process_open();
	live_memory_init(&live, &process);
	cr_assert(zero(int, maps_read(&process, &maps)));
	for (int i = 0; i < NR; i++) {
		const uint64_t id = (uint64_t)others[i].thread;
		struct thread_stack stack = thread_stack_of_id(id);

		context = (struct stack_context){&live.memory, &maps, &id, 1, 0};
		for (int k = 0; k < NR; k++) {
			const remote_addr addr = (remote_addr)others[k].local;

			(void)thread_stack_owner(&stack, &live.memory, addr);
			thread_stack_resolve(&stack, &OTHER(id), &context);
			cr_expect(eq(int, thread_stack_owner(&stack, &live.memory, addr),
				     i == k ? STACK_OWN : OF_AN_UNKNOWN_THREAD),
				  "%d on %d", i, k);
		}
		(void)thread_stack_owner(&stack, &live.memory, (remote_addr)&local);
		thread_stack_resolve(&stack, &OTHER(id), &context);
		cr_expect(ne(int, thread_stack_owner(&stack, &live.memory, (remote_addr)&local),
			     STACK_OWN));
	}
	for (int i = 0; i < NR; i++) {
		(void)close(others[i].pipe[1]);
		(void)pthread_join(others[i].thread, NULL);
	}
	maps_done(&maps);
	process_close(&process);
}
