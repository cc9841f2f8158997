/* SPDX-License-Identifier: MIT */
/*
 * The target of proofs.c: a thread that increments a counter in user mode, in a program that makes
 * it hard to find out whether that thread ran.
 *
 *	proofs_target MODE BOARD
 *
 * BOARD is the file that both programs map (proofs_board.h). The target runs until it is killed,
 * and everything that it starts ends with it. Plain C for any libc: with musl threads have no
 * rseq area.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/tools/proofs_board.h"

/* Successive threads have different counters; no two counters share a cache line. */
enum { NR_COUNTERS = 32768, LINE_BYTES = 64 };

enum { PAYLOAD_BYTES = 64 << 10, PAGE_BYTES = 4096 };

/* Size of a stack that is paged out. The rseq area is in the thread-local variables at its end. */
enum { STACK_BYTES = 256 << 10 };

/* Size of what is mapped and unmapped all the time: large, so that the lock is held for long. */
enum { MAPPED_BYTES = 4 << 20 };

struct counter {
	_Alignas(LINE_BYTES) volatile uint64_t number;
};

struct target {
	const char *path; /* of the board */
	struct proofs_board *board;
	struct counter *counters; /* NR_COUNTERS of them */
	uint8_t *payload;
	uint64_t program;    /* 1, and one more after each exec */
	uint64_t nr_threads; /* announced so far */
	cpu_set_t cpus;	     /* that the process may use */
	_Atomic pid_t tid;   /* of the counting thread */
	int to_partner[2];   /* pipes to and from a partner that wakes that thread, if any */
	int to_counter[2];
	uint8_t *stack; /* NULL: libc allocates the thread's stack */
};

static void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static uint32_t random_below(unsigned int *seed, uint32_t limit)
{
	return (uint32_t)rand_r(seed) % limit;
}

static void sleep_us(uint32_t us)
{
	const struct timespec time = {.tv_nsec = (long)us * 1000};

	(void)nanosleep(&time, NULL);
}

/* CPUs. */

/* The n-th of the usable CPUs, modulo their number. */
static size_t nth_cpu(const struct target *target, uint32_t n)
{
	uint32_t left = n % (uint32_t)CPU_COUNT(&target->cpus);

	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &target->cpus) && left-- == 0)
			return cpu;
	return 0;
}

static void move_thread(const struct target *target, pid_t tid, uint32_t n)
{
	cpu_set_t there;

	CPU_ZERO(&there);
	CPU_SET(nth_cpu(target, n), &there);
	(void)sched_setaffinity(tid, sizeof(there), &there);
}

/* Counting. */

/* Announce the calling thread on the board. Returns a counter for it alone. */
static volatile uint64_t *announce(struct target *target)
{
	struct counter *counter = &target->counters[target->nr_threads++ % NR_COUNTERS];
	const pid_t tid = (pid_t)syscall(SYS_gettid);

	atomic_store(&target->tid, tid);
	atomic_fetch_or(&target->board->sequence, 1);
	atomic_thread_fence(memory_order_seq_cst);
	target->board->thread = (struct proofs_thread){
		.program = target->program,
		.tid = (uint64_t)tid,
		.thread_pointer = (uint64_t)(uintptr_t)pthread_self(),
		.counter_addr = (uint64_t)(uintptr_t)&counter->number,
		.payload_addr = (uint64_t)(uintptr_t)target->payload,
		.payload_bytes = PAYLOAD_BYTES,
	};
	atomic_thread_fence(memory_order_seq_cst);
	atomic_fetch_add(&target->board->sequence, 1);
	return &counter->number;
}

static void count(volatile uint64_t *counter, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		*counter = *counter + 1;
}

static void *count_for_ever(void *argument)
{
	volatile uint64_t *counter = announce(argument);

	for (;;)
		count(counter, UINT32_MAX);
	return NULL;
}

static void start(struct target *target, void *(*run)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;

	(void)pthread_attr_init(&attributes);
	if (target->stack)
		(void)pthread_attr_setstack(&attributes, target->stack, STACK_BYTES);
	if (pthread_create(&thread, &attributes, run, target))
		fail("pthread_create");
	while (!atomic_load(&target->tid))
		sleep_us(100);
}

/* Fork a helper that ends with the target. Returns true in the helper. */
static bool is_helper(void)
{
	const pid_t parent = getpid();
	const pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid)
		return false;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	return true;
}

/* The modes. */

static void run_pinned(struct target *target)
{
	move_thread(target, 0, 0);
	(void)count_for_ever(target);
}

static void run_free(struct target *target)
{
	unsigned int seed = 1;

	start(target, count_for_ever);
	for (uint32_t i = 0;; i++) {
		move_thread(target, atomic_load(&target->tid), i);
		sleep_us(500 + random_below(&seed, 5000));
	}
}

static void run_shared(struct target *target)
{
	for (int i = 0; i < 2 * CPU_COUNT(&target->cpus); i++)
		if (is_helper())
			for (volatile uint64_t number = 0;; number = number + 1)
				;
	(void)count_for_ever(target);
}

/* Keep the lock of the memory map busy. */
static void run_mapping(struct target *target)
{
	start(target, count_for_ever);
	for (;;) {
		uint8_t *memory = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (memory == MAP_FAILED)
			fail("mmap");
		for (int i = 0; i < 20; i++) {
			(void)mprotect(memory, MAPPED_BYTES, PROT_READ);
			(void)mprotect(memory, MAPPED_BYTES, PROT_READ | PROT_WRITE);
		}
		(void)munmap(memory, MAPPED_BYTES);
	}
}

/* Count a little, wait for the partner, and go on counting on the CPU that it chose. */
static void *count_and_wait(void *argument)
{
	struct target *target = argument;
	volatile uint64_t *counter = announce(target);
	unsigned int seed = 1;
	char byte = 0;

	for (;;) {
		count(counter, 1 + random_below(&seed, 200000));
		if (write(target->to_partner[1], &byte, 1) != 1 ||
		    read(target->to_counter[0], &byte, 1) != 1)
			fail("pipe");
	}
	return NULL;
}

static void run_blocking(struct target *target)
{
	char byte;

	if (pipe(target->to_partner) || pipe(target->to_counter))
		fail("pipe");
	start(target, count_and_wait);
	for (uint32_t i = 0;; i++) {
		if (read(target->to_partner[0], &byte, 1) != 1)
			fail("pipe");
		move_thread(target, atomic_load(&target->tid), i);
		if (write(target->to_counter[1], &byte, 1) != 1)
			fail("pipe");
	}
}

/* Each child goes on counting at the same address in its own memory. */
static void run_forking(struct target *target)
{
	volatile uint64_t *counter = announce(target);
	unsigned int seed = 1;

	for (;;) {
		const pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		count(counter, random_below(&seed, 500000));
		if (!pid)
			_exit(0);
		(void)waitpid(pid, NULL, 0);
	}
}

/* The next program has the same memory at the same addresses. */
static void run_executing(struct target *target)
{
	const bool is_fixed = personality(0xffffffff) & ADDR_NO_RANDOMIZE;
	unsigned int seed = (unsigned int)target->program;
	char program[24];

	if (is_fixed || personality(ADDR_NO_RANDOMIZE) < 0)
		count(announce(target), 1000000 + random_below(&seed, 20000000));
	(void)snprintf(program, sizeof(program), "%llu", (unsigned long long)target->program + 1);
	(void)execl("/proc/self/exe", "proofs_target", "exec", target->path, program, (char *)NULL);
	fail("exec");
}

static void *count_and_end(void *argument)
{
	struct target *target = argument;
	volatile uint64_t *counter = announce(target);
	unsigned int seed = (unsigned int)(uintptr_t)counter;

	count(counter, random_below(&seed, 10000000));
	atomic_fetch_or(&target->board->sequence, 1);
	return NULL;
}

/* The next thread gets the stack and the thread pointer of the one that has ended. */
static void run_ending(struct target *target)
{
	for (;;) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, count_and_end, target))
			fail("pthread_create");
		(void)pthread_join(thread, NULL);
	}
}

static void run_stopped(struct target *target)
{
	const pid_t pid = getpid();
	unsigned int seed = 1;

	if (!is_helper())
		(void)count_for_ever(target);
	for (;;) {
		sleep_us(200 + random_below(&seed, 3000));
		(void)kill(pid, SIGSTOP);
		sleep_us(200 + random_below(&seed, 1000));
		(void)kill(pid, SIGCONT);
	}
}

/* Map memory that can be paged out without swap: a file in the current folder. */
static void *map_file(size_t nr_bytes)
{
	char name[] = "proofs_target.XXXXXX";
	const int fd = mkstemp(name);
	void *memory = MAP_FAILED;

	if (fd >= 0 && !unlink(name) && !ftruncate(fd, (off_t)nr_bytes))
		memory = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("mapping a file");
	(void)close(fd);
	memset(memory, 0, nr_bytes);
	return memory;
}

/*
 * Page out the stack, which has the thread's rseq area, the counter and the payload. Dirty pages
 * only leave the page tables; pages that were written to the file are read from the disk again.
 */
static void page_out(const struct target *target, bool is_written)
{
	const struct {
		void *memory;
		size_t nr_bytes;
	} pieces[] = {{target->stack, STACK_BYTES},
		      {target->counters, PAGE_BYTES},
		      {target->payload, PAYLOAD_BYTES}};

	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		if (is_written)
			(void)msync(pieces[i].memory, pieces[i].nr_bytes, MS_SYNC);
		(void)madvise(pieces[i].memory, pieces[i].nr_bytes, MADV_PAGEOUT);
	}
}

static void run_without_memory(struct target *target)
{
	unsigned int seed = 1;

	start(target, count_for_ever);
	for (uint32_t i = 0;; i++) {
		page_out(target, i % 4 == 0);
		move_thread(target, atomic_load(&target->tid), i / 4);
		sleep_us(200 + random_below(&seed, 1000));
	}
}

static void run_paged_out(struct target *target)
{
	target->counters = map_file(NR_COUNTERS * sizeof(*target->counters));
	target->payload = map_file(PAYLOAD_BYTES);
	target->stack = map_file(STACK_BYTES);
	run_without_memory(target);
}

static void run_swapped(struct target *target)
{
	target->stack = aligned_alloc(PAGE_BYTES, STACK_BYTES);
	if (!target->stack)
		fail("setting up");
	run_without_memory(target);
}

static const struct mode {
	char name[16];
	void (*run)(struct target *target);
} modes[] = {
	{"pinned", run_pinned},	      {"free", run_free},	  {"shared", run_shared},
	{"mapping", run_mapping},     {"blocking", run_blocking}, {"fork", run_forking},
	{"exec", run_executing},      {"threads", run_ending},	  {"stopped", run_stopped},
	{"paged-out", run_paged_out}, {"swapped", run_swapped},
};

static struct proofs_board *open_board(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	void *board = MAP_FAILED;

	if (fd >= 0)
		board = mmap(NULL, sizeof(struct proofs_board), PROT_READ | PROT_WRITE, MAP_SHARED,
			     fd, 0);
	if (board == MAP_FAILED)
		fail(path);
	(void)close(fd);
	return board;
}

int main(int argc, char **argv)
{
	struct target target = {.path = argc > 2 ? argv[2] : ""};

	if (argc < 3) {
		(void)fputs("usage: proofs_target MODE BOARD\n", stderr);
		return 2;
	}
	target.program = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	target.board = open_board(target.path);
	target.counters = aligned_alloc(PAGE_BYTES, NR_COUNTERS * sizeof(*target.counters));
	target.payload = aligned_alloc(PAGE_BYTES, PAYLOAD_BYTES);
	if (!target.counters || !target.payload ||
	    sched_getaffinity(0, sizeof(target.cpus), &target.cpus))
		fail("setting up");
	memset(target.counters, 0, NR_COUNTERS * sizeof(*target.counters));
	memset(target.payload, 1, PAYLOAD_BYTES);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(modes[i].name, argv[1]) == 0)
			modes[i].run(&target);
	(void)fprintf(stderr, "proofs_target: no such mode: %s\n", argv[1]);
	return 2;
}
