/* SPDX-License-Identifier: MIT */
#include "procmem/memory.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procmem/live.h"
#include "procmem/message.h"
#include "tests/support/fake_memory.h"
#include "tests/support/machine_offers.h"

#define PAGE_BYTES 4096

/* Open a process and its memory. The caller closes the process. */
static void begin(pid_t pid, struct process *process, struct live_memory *live)
{
	cr_assert(zero(int, process_open(pid, process, NULL)));
	live_memory_init(live, process);
}

/* Map a page followed by an unmapped one. Each byte identifies its position. */
static unsigned char *map_island(void)
{
	unsigned char *page = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(ne(ptr, page, MAP_FAILED));
	for (int i = 0; i < PAGE_BYTES; i++)
		page[i] = (unsigned char)(i * 7 + i / 256);
	cr_assert(zero(int, munmap(page + PAGE_BYTES, PAGE_BYTES)));
	return page;
}

/* The same cases for both ways of reading: process_vm_readv and /proc/PID/mem. */
static void check_each_range(bool through_file)
{
	unsigned char *page = map_island();
	remote_addr base = (uintptr_t)page;
	static const struct {
		char name[32];
		size_t offset; /* from the page; above it nothing is mapped */
		size_t size;
		size_t done;
	} cases[] = {
		{"first byte", 0, 1, 1},
		{"unmapped", PAGE_BYTES, 8, 0},
		{"after a fault", 100, 50, 50},
		{"empty", 7, 0, 0},
		{"empty and unmapped", PAGE_BYTES + 7, 0, 0},
		{"over the edge", PAGE_BYTES - 96, 200, 96},
		{"unmapped again", PAGE_BYTES, 8, 0},
		{"unmapped once more", PAGE_BYTES + 8, 8, 0},
		{"whole page", 0, PAGE_BYTES, PAGE_BYTES},
		{"last byte", PAGE_BYTES - 1, 1, 1},
		{"around the end of memory", 0, 64, 0},
	};
	enum { NR_CASES = sizeof(cases) / sizeof(cases[0]) };
	static unsigned char buffers[NR_CASES][PAGE_BYTES];
	struct remote_range ranges[NR_CASES];
	struct process process;
	struct live_memory live;

	for (size_t i = 0; i < NR_CASES; i++)
		ranges[i] = (struct remote_range){.addr = base + cases[i].offset,
						  .buffer = buffers[i],
						  .size = cases[i].size,
						  .done_bytes = 999};
	ranges[NR_CASES - 1].addr = UINT64_MAX - 31;
	begin(getpid(), &process, &live);
	live.through_file = through_file;
	cr_assert(zero(int, remote_memory_read_ranges(&live.memory, ranges, NR_CASES)));
	for (size_t i = 0; i < NR_CASES; i++) {
		cr_expect(eq(sz, ranges[i].done_bytes, cases[i].done), "%s", cases[i].name);
		cr_expect(zero(int, memcmp(buffers[i], page + cases[i].offset % PAGE_BYTES,
					   cases[i].done)),
			  "%s", cases[i].name);
	}
	process_close(&process);
}

Test(memory, reads_each_range_independently)
{
	check_each_range(false);
	check_each_range(true);
}

Test(memory, few_ranges_take_one_call)
{
	uint64_t from[20];
	uint64_t to[20];
	struct remote_range ranges[20];
	struct process process;
	struct live_memory live;

	if (!machine_offers_call(SYS_process_vm_readv))
		cr_skip("no process_vm_readv");
	for (size_t i = 0; i < 20; i++) {
		from[i] = i * i;
		ranges[i] = (struct remote_range){
			.addr = (uintptr_t)&from[i], .buffer = &to[i], .size = sizeof(to[i])};
	}
	begin(getpid(), &process, &live);
	cr_assert(zero(int, remote_memory_read_ranges(&live.memory, ranges, 20)));
	cr_expect(eq(u64, live.nr_reads, 1));
	cr_expect(zero(int, memcmp(from, to, sizeof(to))));
	process_close(&process);
}

Test(memory, many_ranges_take_the_fewest_calls)
{
	enum { NR_RANGES = 2 * IOV_MAX + 1 };
	static uint32_t from[NR_RANGES];
	static uint32_t to[NR_RANGES];
	static struct remote_range ranges[NR_RANGES];
	struct process process;
	struct live_memory live;

	if (!machine_offers_call(SYS_process_vm_readv))
		cr_skip("no process_vm_readv");
	for (uint32_t i = 0; i < NR_RANGES; i++) {
		from[i] = i ^ 0xabcd0000;
		ranges[i] = (struct remote_range){
			.addr = (uintptr_t)&from[i], .buffer = &to[i], .size = sizeof(to[i])};
	}
	begin(getpid(), &process, &live);
	cr_assert(zero(int, remote_memory_read_ranges(&live.memory, ranges, NR_RANGES)));
	cr_expect(eq(u64, live.nr_reads, 3));
	cr_expect(zero(int, memcmp(from, to, sizeof(to))));
	process_close(&process);
}

/* The results of five reads with the given nr_dependent, and the number of calls. */
Test(memory, dependent_ranges_are_skipped_after_a_fault)
{
	enum { NR_RANGES = 5 };
	static const struct {
		char name[32];
		size_t offset; /* of the second range (8 bytes); the others are at 0 */
		size_t nr_dependent[NR_RANGES];
		size_t done[NR_RANGES];
		uint64_t nr_reads;
	} cases[] = {
		{"none", PAGE_BYTES, {0}, {8, 0, 8, 8, 8}, 2},
		{"two", PAGE_BYTES, {0, 2}, {8, 0, 0, 0, 8}, 2},
		{"all", PAGE_BYTES, {0, 3}, {8, 0, 0, 0, 0}, 1},
		{"more than there are", PAGE_BYTES, {0, SIZE_MAX}, {8, 0, 0, 0, 0}, 1},
		{"only of ranges that are read", PAGE_BYTES, {4, 0, 2, 1}, {8, 0, 8, 8, 8}, 2},
		{"read in part", PAGE_BYTES - 4, {0, 3}, {8, 4, 8, 8, 8}, 2},
		{"all are mapped", 8, {4, 3, 2, 1}, {8, 8, 8, 8, 8}, 1},
	};
	unsigned char *page = map_island();
	struct process process;
	struct live_memory live;

	if (!machine_offers_call(SYS_process_vm_readv))
		cr_skip("no process_vm_readv");
	begin(getpid(), &process, &live);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		const uint64_t nr_reads = live.nr_reads;
		uint64_t to[NR_RANGES];
		struct remote_range ranges[NR_RANGES];

		for (size_t i = 0; i < NR_RANGES; i++)
			ranges[i] = (struct remote_range){
				.addr = (uintptr_t)page + (i == 1 ? cases[c].offset : 0),
				.buffer = &to[i],
				.size = sizeof(to[i]),
				.done_bytes = 999,
				.nr_dependent = cases[c].nr_dependent[i],
			};
		cr_assert(zero(int, remote_memory_read_ranges(&live.memory, ranges, NR_RANGES)));
		for (size_t i = 0; i < NR_RANGES; i++)
			cr_expect(eq(sz, ranges[i].done_bytes, cases[c].done[i]), "%s: %zu",
				  cases[c].name, i);
		cr_expect(eq(u64, live.nr_reads - nr_reads, cases[c].nr_reads), "%s",
			  cases[c].name);
	}
	process_close(&process);
}

Test(memory, empty_reads_do_nothing)
{
	struct process process;
	struct live_memory live;

	begin(getpid(), &process, &live);
	cr_expect(zero(int, remote_memory_read_ranges(&live.memory, NULL, 0)));
	process_close(&process);
}

Test(memory, single_reads_are_complete_or_fail)
{
	unsigned char *page = map_island();
	uint64_t expected;
	uint64_t value = 5;
	char buffer[16];
	struct process process;
	struct live_memory live;

	memcpy(&expected, page + 8, sizeof(expected));
	begin(getpid(), &process, &live);
	cr_expect(zero(int, remote_memory_read_u64(&live.memory, (uintptr_t)page + 8, &value)));
	cr_expect(eq(u64, value, expected));
	cr_expect(zero(int, remote_memory_read(&live.memory, (uintptr_t)page, buffer, 16)));
	cr_expect(zero(int, memcmp(buffer, page, 16)));
	cr_expect(eq(int,
		     remote_memory_read(&live.memory, (uintptr_t)page + PAGE_BYTES - 8, buffer, 16),
		     -EFAULT));
	cr_expect(eq(int, remote_memory_read_u64(&live.memory, 0, &value), -EFAULT));
	cr_expect(eq(u64, value, expected), "a failed read writes nothing");
	process_close(&process);
}

static void check_process_that_ends(bool through_file)
{
	pid_t pid = fork();
	struct process process;
	struct live_memory live;
	uint64_t value = 0;

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	begin(pid, &process, &live);
	live.through_file = through_file;
	cr_expect(zero(int, remote_memory_check(&live.memory)));
	cr_expect(zero(int, remote_memory_read_u64(&live.memory, (uintptr_t)&value, &value)));
	cr_assert(zero(int, kill(pid, SIGKILL)));
	cr_assert(eq(int, waitpid(pid, NULL, 0), pid));
	cr_expect(eq(int, remote_memory_read_u64(&live.memory, (uintptr_t)&value, &value), -ESRCH));
	cr_expect(eq(int, remote_memory_check(&live.memory), -ESRCH));
	process_close(&process);
}

Test(memory, reports_the_end_of_the_process)
{
	check_process_that_ends(false);
	check_process_that_ends(true);
}

/* Make process_vm_readv fail with EPERM or ENOSYS from now on, as in sandboxes. */
static void forbid_reads(uint32_t error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 4, .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		cr_skip("not tested here: a seccomp filter (it is not allowed)");
}

static void check_without_the_call(int error)
{
	const uint64_t from = 0x1122334455667788;
	struct process process;
	struct live_memory live;
	uint64_t value = 0;

	cr_expect(zero(int, live_memory_probe()));
	forbid_reads((uint32_t)error);
	cr_expect(eq(int, live_memory_probe(), -error));
	begin(getpid(), &process, &live);
	cr_expect(zero(int, remote_memory_read_u64(&live.memory, (uintptr_t)&from, &value)));
	cr_expect(eq(u64, value, from));
	cr_expect(live.through_file);
	cr_expect(zero(int, remote_memory_check(&live.memory)));
	process_close(&process);
	process.memory_fd = -1;
	live_memory_init(&live, &process);
	cr_expect(eq(int, remote_memory_read_u64(&live.memory, (uintptr_t)&from, &value), -EPERM));
}

Test(memory, falls_back_if_the_call_is_forbidden)
{
	if (!machine_offers_call(SYS_process_vm_readv))
		cr_skip("no process_vm_readv");
	check_without_the_call(EPERM);
}

Test(memory, falls_back_if_the_call_is_missing)
{
	if (!machine_offers_call(SYS_process_vm_readv))
		cr_skip("no process_vm_readv");
	check_without_the_call(ENOSYS);
}

Test(memory, fields_need_no_alignment)
{
	static const unsigned char bytes[] = {0xff, 1, 2, 3, 4, 5, 6, 7, 0x88, 9};

	cr_expect(eq(u64, field_u64(bytes, 1), 0x8807060504030201));
	cr_expect(eq(u32, field_u32(bytes, 1), 0x04030201));
	cr_expect(eq(i32, field_i32(bytes, 5), (int32_t)0x88070605));
	cr_expect(eq(u16, field_u16(bytes, 1), 0x0201));
	cr_expect(eq(u8, field_u8(bytes, 0), 0xff));
}

Test(memory, message_is_cut_and_keeps_errno)
{
	struct message message;
	char longest[2 * MESSAGE_MAX_BYTES];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	errno = EXDEV;
	message_set(&message, "%s", longest);
	cr_expect(eq(sz, strlen(message.text), MESSAGE_MAX_BYTES - 1));
	message_set(NULL, "%s", longest);
	cr_expect(eq(int, errno, EXDEV));
}
