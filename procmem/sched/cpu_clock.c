/* SPDX-License-Identifier: MIT */
#include "procmem/sched/cpu_clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"
#include "procmem/procfile.h"
#include "procmem/sched/thread_stat.h"

/*
 * The thread is checked after the open: it may have ended, and its id been reused by another
 * process's thread.
 */
static int open_task_clock(const struct process *process, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (process_has_thread(process, tid))
		return fd;
	(void)close(fd);
	return -ESRCH;
}

static int open_schedstat(const struct process *process, pid_t tid)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	int fd;

	process_thread_path(name, tid, "schedstat");
	fd = procfile_open(process->proc_fd, name);
	if (fd != -ENOENT)
		return fd;
	return process_has_thread(process, tid) ? -ENOTSUP : -ESRCH;
}

int cpu_clock_read_process(pid_t pid, uint64_t *ret_ns)
{
	/* As the C library encodes the clock that clock_getcpuclockid(3) returns. */
	enum { SCHEDULED_TIME = 2, ID_SHIFT = 3 };
	const clockid_t clock = (clockid_t)(~(unsigned int)pid << ID_SHIFT | SCHEDULED_TIME);
	struct timespec time;

	if (clock_gettime(clock, &time))
		return -ESRCH;
	*ret_ns = (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
	return 0;
}

static bool is_final(int err)
{
	return err == -ESRCH || err == -EMFILE || err == -ENFILE;
}

int cpu_clock_open(const struct process *process, pid_t tid, struct cpu_clock *ret_clock)
{
	struct cpu_clock clock = {.kind = CPU_CLOCK_TASK};
	uint64_t ns;

	clock.fd = open_task_clock(process, tid);
	if (clock.fd < 0 && !is_final(clock.fd)) {
		clock.kind = CPU_CLOCK_SCHEDSTAT;
		clock.fd = open_schedstat(process, tid);
	}
	if (clock.fd < 0)
		return is_final(clock.fd) ? clock.fd : -ENOTSUP;
	if (descriptor_limit_is_near(clock.fd)) {
		cpu_clock_close(&clock);
		return -EMFILE;
	}
	if (cpu_clock_read(&clock, &ns) != 0) {
		cpu_clock_close(&clock);
		return -ENOTSUP;
	}
	*ret_clock = clock;
	return 0;
}

void cpu_clock_map(struct cpu_clock *clock)
{
#if defined(__x86_64__)
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page;

	if (clock->kind != CPU_CLOCK_TASK || clock->page)
		return;
	page = mmap(NULL, page_bytes, PROT_READ, MAP_SHARED, clock->fd, 0);
	if (page == MAP_FAILED)
		return;
	/* A kernel that knows this field is Linux 5.9 or newer. */
	if (page->size > offsetof(struct perf_event_mmap_page, time_mask))
		clock->page = page;
	else
		(void)munmap(page, page_bytes);
#else
	(void)clock;
#endif
}

void cpu_clock_close(struct cpu_clock *clock)
{
	if (!clock)
		return;
	if (clock->page)
		(void)munmap((void *)clock->page, (size_t)sysconf(_SC_PAGESIZE));
	if (clock->kind != CPU_CLOCK_NONE)
		(void)close(clock->fd);
	*clock = (struct cpu_clock){0};
}

int cpu_clock_parse(const char *text, size_t length, uint64_t *ret_number)
{
	uint64_t number = 0;
	size_t i;

	for (i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number))
			return -EBADMSG;
	if (!i || i == length || text[i] != ' ')
		return -EBADMSG;
	*ret_number = number;
	return 0;
}

/* The word that changes whenever the thread gets a CPU; odd: it is just being changed. */
static uint32_t page_word(const struct cpu_clock *clock)
{
	return __atomic_load_n(&clock->page->lock, __ATOMIC_ACQUIRE);
}

bool cpu_clock_stands(const struct cpu_clock *clock)
{
	return clock->is_standing && page_word(clock) == clock->last_word;
}

static int read_task_clock(struct cpu_clock *clock, uint64_t *ret_ns)
{
	uint32_t word;
	uint64_t ns;

	if (cpu_clock_stands(clock)) {
		*ret_ns = clock->last_ns;
		return 0;
	}
	word = clock->page ? page_word(clock) : 0;
	if (read(clock->fd, &ns, sizeof(ns)) != (ssize_t)sizeof(ns))
		return -ESRCH;
	clock->is_standing =
		clock->page && clock->has_last && ns == clock->last_ns && word % 2 == 0;
	clock->last_ns = ns;
	clock->last_word = word;
	clock->has_last = true;
	*ret_ns = ns;
	return 0;
}

int cpu_clock_read(struct cpu_clock *clock, uint64_t *ret_ns)
{
	char text[THREAD_SCHEDSTAT_MAX_BYTES];
	ssize_t length;

	if (clock->kind == CPU_CLOCK_TASK)
		return read_task_clock(clock, ret_ns);
	length = pread(clock->fd, text, sizeof(text), 0);
	return length < 0 || cpu_clock_parse(text, (size_t)length, ret_ns) ? -ESRCH : 0;
}
