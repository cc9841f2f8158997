/* SPDX-License-Identifier: MIT */
/*
 * Parks threads in C functions of many kinds, and reports the return addresses of each in a line
 * of JSON, {"threads": {NAME: {"tid": TID, "returns": [ADDRESS, …]}}}, outermost first.
 * tests/live/native/test_unwind.py compiles it.
 */
#include <alloca.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define NR_THREADS  7
#define MAX_RETURNS 128
#define NOINLINE    __attribute__((noinline, noclone))
/* Keeps a call from being the last thing that a function does, which would become a jump. */
#define KEEP() __asm__ volatile("" ::: "memory")

struct stack {
	const char *name;
	void (*run)(void);
	pid_t tid;
	unsigned int nr;
	uintptr_t returns[MAX_RETURNS];
};

static __thread struct stack *self;
static pthread_barrier_t parked;

/* Records the return address of the function that contains it. */
#define RECORD_RETURN() (self->returns[self->nr++] = (uintptr_t)__builtin_return_address(0))

static NOINLINE void park(void)
{
	RECORD_RETURN();
	pthread_barrier_wait(&parked);
	for (;;)
		pause();
}

static NOINLINE void plain(int depth)
{
	RECORD_RETURN();
	if (depth)
		plain(depth - 1);
	else
		park();
	KEEP();
}

static void run_plain(void)
{
	RECORD_RETURN();
	plain(100);
	KEEP();
}

/* A stack whose size is known only at run time, and one that is aligned. */
static NOINLINE void sized(size_t nr_bytes)
{
	__attribute__((aligned(256))) volatile char aligned[256];
	volatile char *bytes = alloca(nr_bytes);

	RECORD_RETURN();
	memset((void *)bytes, 0xff, nr_bytes);
	aligned[0] = bytes[nr_bytes - 1];
	park();
	aligned[1] = bytes[0];
}

static void run_sized(void)
{
	RECORD_RETURN();
	sized(5000);
	KEEP();
}

/* Called by a function of the C library. */
static int compare(const void *a, const void *b)
{
	RECORD_RETURN();
	park();
	return *(const int *)a - *(const int *)b;
}

static void run_sort(void)
{
	int numbers[2] = {2, 1};

	RECORD_RETURN();
	qsort(numbers, 2, sizeof(numbers[0]), compare);
	KEEP();
}

/* Signals. */

static void handler(int number)
{
	(void)number;
	RECORD_RETURN();
	park();
}

static void handle(int number, int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	stack_t alternate = {.ss_sp = malloc(65536), .ss_size = 65536};

	sigaltstack(&alternate, NULL);
	sigaction(number, &action, NULL);
}

static void run_signal(void)
{
	RECORD_RETURN();
	handle(SIGUSR1, 0);
	raise(SIGUSR1);
	KEEP();
}

static void run_alternate_stack(void)
{
	RECORD_RETURN();
	handle(SIGUSR2, SA_ONSTACK);
	raise(SIGUSR2);
	KEEP();
}

/* The first instruction of a function, before it has pushed anything. */
__attribute__((naked)) static void trap(void)
{
#if defined(__x86_64__)
	__asm__("ud2");
#else
	__asm__("udf #0");
#endif
}

static void run_first_instruction(void)
{
	RECORD_RETURN();
	handle(SIGILL, 0);
	trap();
	KEEP();
}

static NOINLINE void call(void (*function)(void))
{
	RECORD_RETURN();
	function();
	KEEP();
}

static void run_null(void)
{
	RECORD_RETURN();
	handle(SIGSEGV, SA_ONSTACK);
	call(NULL);
	KEEP();
}

static struct stack stacks[NR_THREADS] = {
	{.name = "plain", .run = run_plain},
	{.name = "sized", .run = run_sized},
	{.name = "sort", .run = run_sort},
	{.name = "signal", .run = run_signal},
	{.name = "alternate_stack", .run = run_alternate_stack},
	{.name = "first_instruction", .run = run_first_instruction},
	{.name = "null", .run = run_null},
};

static void *start(void *arg)
{
	self = arg;
	self->tid = (pid_t)syscall(SYS_gettid);
	self->run();
	return NULL;
}

int main(void)
{
	const char *separator = "";

	pthread_barrier_init(&parked, NULL, NR_THREADS + 1);
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, start, &stacks[i]);
	}
	pthread_barrier_wait(&parked);
	printf("{\"threads\": {");
	for (int i = 0; i < NR_THREADS; i++) {
		printf("%s\"%s\": {\"tid\": %d, \"returns\": [", separator, stacks[i].name,
		       (int)stacks[i].tid);
		for (unsigned int j = 0; j < stacks[i].nr; j++)
			printf("%s%" PRIuPTR, j ? ", " : "", stacks[i].returns[j]);
		printf("]}");
		separator = ", ";
	}
	printf("}}\n");
	fflush(stdout);
	for (;;)
		pause();
}
