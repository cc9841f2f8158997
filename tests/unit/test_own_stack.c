/* SPDX-License-Identifier: MIT */
#include "sampler/own_stack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "procmem/live.h"
#include "tests/support/fake_memory.h"

#define PAGE	   UINT64_C(4096)
#define CONTROL	   UINT64_C(0x7f0000800740)
#define STACK_SIZE UINT64_C(0x800000)

/* A stack of 8 MB below a control block, and another thread's below a page that cannot be read. */
static void make_stacks(struct fake_memory *fake)
{
	const remote_addr top_addr = (CONTROL | (PAGE - 1)) + 1;

	fake_memory_init(fake);
	fake->whole_pages = true;
	(void)fake_memory_map(fake, top_addr - STACK_SIZE, STACK_SIZE);
	(void)fake_memory_map(fake, top_addr - 2 * STACK_SIZE, STACK_SIZE - PAGE);
}

Test(own_stack, what_lies_on_it)
{
	const remote_addr low_addr = (CONTROL | (PAGE - 1)) + 1 - STACK_SIZE;
	struct fake_memory fake;
	struct own_stack stack = own_stack_of(CONTROL);

	make_stacks(&fake);
	cr_expect(own_stack_has(&stack, &fake.memory, CONTROL - 1));
	cr_expect(own_stack_has(&stack, &fake.memory, CONTROL - 200000));
	cr_expect(not(own_stack_has(&stack, &fake.memory, CONTROL)), "above all of it");
	cr_expect(not(own_stack_has(&stack, &fake.memory, 0)));
	cr_expect(not(own_stack_has(&stack, &fake.memory, UINT64_MAX)));
	/* Another thread's, however often it is asked for. */
	for (int i = 0; i < 10; i++)
		cr_expect(not(own_stack_has(&stack, &fake.memory, low_addr - 2 * PAGE)));
	cr_expect(own_stack_has(&stack, &fake.memory, low_addr));
	cr_expect(not(own_stack_has(&stack, &fake.memory, low_addr - 1)), "the page in between");
	fake_memory_done(&fake);
}

/* What is far down is found after some looks, each of which reads so much at most. */
Test(own_stack, deep_ones_take_several_looks)
{
	const remote_addr low_addr = (CONTROL | (PAGE - 1)) + 1 - STACK_SIZE;
	struct fake_memory fake;
	struct own_stack stack = own_stack_of(CONTROL);
	int nr_looks = 1;

	make_stacks(&fake);
	while (!own_stack_has(&stack, &fake.memory, low_addr + 16) && nr_looks < 10) {
		cr_expect(le(u64, fake.nr_calls, (uint64_t)nr_looks * 16));
		nr_looks++;
	}
	cr_expect(eq(int, nr_looks, 2));
	const uint64_t nr_calls = fake.nr_calls;

	cr_expect(own_stack_has(&stack, &fake.memory, low_addr + 16));
	cr_expect(eq(u64, fake.nr_calls, nr_calls), "what is known is not read again");
	fake_memory_done(&fake);
}

Test(own_stack, unknown_ones_hold_everything)
{
	struct own_stack nobodys = own_stack_of(0), low = own_stack_of(1);

	cr_expect(own_stack_has(&nobodys, NULL, 1));
	cr_expect(own_stack_has(&low, NULL, UINT64_MAX));
}

/* The stacks of real threads, by the pthread_t that CPython keeps. */
struct other {
	pthread_t thread;
	int pipe[2];
	const char *local;
};

static void *stay(void *argument)
{
	struct other *other = argument;
	char local[300000];
	char byte;

	local[0] = 0;
	__atomic_store_n(&other->local, local, __ATOMIC_RELEASE);
	(void)!read(other->pipe[0], &byte, 1);
	return NULL;
}

Test(own_stack, of_real_threads, .timeout = 60)
{
	struct process process;
	struct live_memory live;
	struct other others[2] = {0};

	cr_assert(zero(int, process_open(getpid(), &process, NULL)));
	live_memory_init(&live, &process);
	for (int i = 0; i < 2; i++) {
		cr_assert(zero(int, pipe(others[i].pipe)));
		cr_assert(zero(int, pthread_create(&others[i].thread, NULL, stay, &others[i])));
		while (!__atomic_load_n(&others[i].local, __ATOMIC_ACQUIRE))
			(void)usleep(1000);
	}
	for (int i = 0; i < 2; i++) {
		struct own_stack stack = own_stack_of((uint64_t)others[i].thread);

		cr_expect(
			not(own_stack_has(&stack, &live.memory, (remote_addr)others[1 - i].local)));
		cr_expect(not(own_stack_has(&stack, &live.memory, (remote_addr)&stack)));
		cr_expect(own_stack_has(&stack, &live.memory, (remote_addr)others[i].local));
	}
	for (int i = 0; i < 2; i++) {
		(void)close(others[i].pipe[1]);
		(void)pthread_join(others[i].thread, NULL);
	}
	process_close(&process);
}
