/* SPDX-License-Identifier: MIT */
/*
 * Process events from perf events that count nothing. Each CPU has one ring, which belongs to an
 * event of our own thread, so that it outlives the threads that are followed; all other events of
 * that CPU write into it.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"
#include "procmem/memory.h"
#include "procmem/tree/pid_table.h"
#include "procmem/tree/process_events.h"

/*
 * A ring holds 1,300 records of 48 bytes: at 100 Hz, of 65,000 new threads a second on each CPU. An
 * unprivileged user may lock 516 KiB for each CPU (kernel.perf_event_mlock_kb).
 */
enum { RING_BYTES = 64 << 10 };

/* The longest record has a name of 16 bytes, two ids, a time, and a header. */
enum { RECORD_MAX_BYTES = 128 };

/* At most this many records are skipped per call of next(). */
enum { MAX_SKIPPED = 1024 };

struct task_ring {
	int fd;
	uint32_t cpu;
	struct perf_event_mmap_page *page; /* precedes the ring */
	uint64_t head;			   /* where the records of this series end */
	uint64_t time_ns;		   /* of the record at the tail; 0: not read yet */
};

struct perf_task_events {
	struct process_events events;
	bool all_processes;
	bool in_series; /* until_ns and the heads are set */
	bool was_full;	/* a ring was when the series began */
	uint64_t until_ns;
	struct task_ring *rings;
	uint32_t nr_rings;
	int *fds; /* of the events that write into the rings */
	uint32_t nr_fds, max_fds;
	struct pid_table threads; /* that have events */
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Open an event. tid 0 is our own thread, -1 all threads. Returns a descriptor or errno. */
static int open_event(pid_t tid, uint32_t cpu, bool records_tasks)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.task = records_tasks,
		.comm = records_tasks,
		.comm_exec = records_tasks,
		.inherit = records_tasks && tid > 0,
		.watermark = 1,
		.wakeup_watermark = RING_BYTES / 2, /* to wake costs the target */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	if (!descriptor_limit_is_near(fd))
		return fd;
	(void)close(fd);
	return -EMFILE;
}

/* Reading. */

static void copy_out(const struct task_ring *ring, uint64_t position, void *buffer, size_t nr_bytes)
{
	const uint8_t *bytes = (const uint8_t *)ring->page + ring->page->data_offset;
	const size_t start = position & (RING_BYTES - 1);
	const size_t nr_first = nr_bytes < RING_BYTES - start ? nr_bytes : RING_BYTES - start;

	memcpy(buffer, bytes + start, nr_first);
	memcpy((uint8_t *)buffer + nr_first, bytes, nr_bytes - nr_first);
}

/*
 * Begin a series: the records up to now. Records of different CPUs are ordered by time, and a fork
 * is written before its child can run. So once every record until a moment is visible, none is
 * missing that precedes another. The moment is taken first.
 */
static void begin_series(struct perf_task_events *perf)
{
	perf->until_ns = clock_now_ns();
	perf->in_series = true;
	for (uint32_t i = 0; i < perf->nr_rings; i++) {
		struct task_ring *ring = &perf->rings[i];

		ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
		/* The kernel tells of a loss only with the next record, which may be far off. */
		perf->was_full |=
			ring->head - ring->page->data_tail > RING_BYTES - RECORD_MAX_BYTES;
	}
}

/*
 * Read the record at the tail of a ring. Returns its size, or 0 if there is none. No record has
 * another size than those that are checked; if one had, the series would be dropped.
 */
static size_t peek(struct task_ring *ring, uint8_t record[RECORD_MAX_BYTES])
{
	const uint64_t tail = ring->page->data_tail; /* only we write it */
	struct perf_event_header header;

	if (ring->head - tail < sizeof(header))
		return 0;
	copy_out(ring, tail, &header, sizeof(header));
	if (header.size < sizeof(header) + sizeof(uint64_t) || header.size > RECORD_MAX_BYTES ||
	    header.size > ring->head - tail) {
		__atomic_store_n(&ring->page->data_tail, ring->head, __ATOMIC_RELEASE);
		return 0;
	}
	copy_out(ring, tail, record, header.size);
	return header.size;
}

/* Returns the time of the record at the tail, or UINT64_MAX if there is none. */
static uint64_t next_time(struct task_ring *ring)
{
	uint8_t record[RECORD_MAX_BYTES];

	if (!ring->time_ns) {
		const size_t nr_bytes = peek(ring, record);

		if (!nr_bytes)
			return UINT64_MAX;
		ring->time_ns = field_u64(record, nr_bytes - sizeof(uint64_t));
	}
	return ring->time_ns;
}

/* Take the oldest record of the series. Returns its size, or 0 after the last. */
static size_t take_record(struct perf_task_events *perf, uint8_t record[RECORD_MAX_BYTES])
{
	struct task_ring *oldest = NULL;
	uint64_t oldest_ns = perf->until_ns;

	for (uint32_t i = 0; i < perf->nr_rings; i++) {
		const uint64_t time_ns = next_time(&perf->rings[i]);

		if (time_ns <= oldest_ns) {
			oldest_ns = time_ns;
			oldest = &perf->rings[i];
		}
	}
	if (!oldest)
		return 0;
	const size_t nr_bytes = peek(oldest, record);

	__atomic_store_n(&oldest->page->data_tail, oldest->page->data_tail + nr_bytes,
			 __ATOMIC_RELEASE);
	oldest->time_ns = 0;
	return nr_bytes;
}

/* Returns whether the record is an event of a process. */
static bool decode(const uint8_t *record, size_t nr_bytes, struct process_event *ret_event)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid, other; /* the parent's or creator's process, or the thread */
		uint32_t tid;
	} *task = (const void *)record;
	struct process_event event = {
		.wait_status = -1,
		.time_ns = field_u64(record, nr_bytes - sizeof(uint64_t)),
	};

	if (task->header.type == PERF_RECORD_LOST) {
		event.kind = PROCESS_EVENTS_LOST;
		*ret_event = event;
		return true;
	}
	if (nr_bytes < sizeof(*task) + sizeof(uint64_t))
		return false;
	event.pid = (pid_t)task->pid;
	if (task->header.type == PERF_RECORD_FORK && task->pid == task->tid) {
		event.kind = PROCESS_FORKED;
		event.parent_pid = (pid_t)task->other;
	} else if (task->header.type == PERF_RECORD_COMM &&
		   task->header.misc & PERF_RECORD_MISC_COMM_EXEC) {
		event.kind = PROCESS_CALLED_EXEC;
	} else if (task->header.type == PERF_RECORD_EXIT && task->pid == task->tid) {
		event.kind = PROCESS_MAIN_THREAD_ENDED;
	} else {
		return false;
	}
	*ret_event = event;
	return true;
}

static int perf_next(struct process_events *events, struct process_event *ret_event)
{
	struct perf_task_events *perf = (struct perf_task_events *)events;
	_Alignas(8) uint8_t record[RECORD_MAX_BYTES];

	if (!perf->in_series)
		begin_series(perf);
	for (unsigned int i = 0; i < MAX_SKIPPED; i++) {
		const size_t nr_bytes = take_record(perf, record);

		if (!nr_bytes && perf->was_full) {
			perf->was_full = false;
			*ret_event = (struct process_event){.kind = PROCESS_EVENTS_LOST,
							    .wait_status = -1};
			return 0;
		}
		if (!nr_bytes) {
			perf->in_series = false;
			return -ENOENT;
		}
		if (decode(record, nr_bytes, ret_event))
			return 0;
	}
	return -EAGAIN;
}

/* Opening. */

/* Let an event of each CPU write into its ring. Returns 0, -ESRCH, or another errno. */
static int add_events(struct perf_task_events *perf, pid_t tid)
{
	int *fds = array_reserve(perf->fds, perf->nr_fds + perf->nr_rings, &perf->max_fds,
				 sizeof(*perf->fds));

	if (!fds)
		return -ENOMEM;
	perf->fds = fds;
	for (uint32_t i = 0; i < perf->nr_rings; i++) {
		const struct task_ring *ring = &perf->rings[i];
		const int fd = open_event(tid, ring->cpu, true);

		if (fd < 0)
			return fd;
		perf->fds[perf->nr_fds++] = fd;
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
			return -errno;
	}
	return 0;
}

static int perf_follow(struct process_events *events, pid_t pid, bool *ret_is_complete)
{
	struct perf_task_events *perf = (struct perf_task_events *)events;
	const struct dirent *entry;
	bool is_complete = true;
	char path[32];
	int err = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	cleanup_closedir DIR *folder = opendir(path);

	while (folder && !err && (entry = readdir(folder))) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || pid_table_find(&perf->threads, tid))
			continue;
		is_complete = false;
		err = pid_table_add(&perf->threads, tid) ? add_events(perf, tid) : -ENOMEM;
		err = err == -ESRCH ? 0 : err;
	}
	if (!err)
		*ret_is_complete = is_complete;
	return err;
}

static void perf_close(struct process_events *events)
{
	struct perf_task_events *perf = (struct perf_task_events *)events;

	for (uint32_t i = 0; i < perf->nr_fds; i++)
		(void)close(perf->fds[i]);
	for (uint32_t i = 0; perf->rings && i < perf->nr_rings; i++) {
		if (perf->rings[i].page)
			(void)munmap(perf->rings[i].page, page_bytes() + RING_BYTES);
		(void)close(perf->rings[i].fd);
	}
	if (events->fd >= 0)
		(void)close(events->fd);
	pid_table_done(&perf->threads);
	free(perf->rings);
	free(perf->fds);
	free(perf);
}

/* Make the ring of a CPU. A CPU that is offline has none. Returns 0 or an errno. */
static int add_ring(struct perf_task_events *perf, uint32_t cpu)
{
	struct task_ring *ring = &perf->rings[perf->nr_rings];
	struct epoll_event event = {.events = EPOLLIN};
	void *map;

	*ring = (struct task_ring){.fd = open_event(0, cpu, false), .cpu = cpu};
	if (ring->fd < 0)
		return ring->fd == -ENODEV ? 0 : ring->fd;
	perf->nr_rings++;
	map = mmap(NULL, page_bytes() + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		   0);
	if (map == MAP_FAILED)
		return errno == EPERM ? -EPERM : -ENOMEM;
	ring->page = map;
	return epoll_ctl(perf->events.fd, EPOLL_CTL_ADD, ring->fd, &event) ? -errno : 0;
}

static int add_rings(struct perf_task_events *perf)
{
	const long nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int err = 0;

	perf->rings = nr_cpus > 0 ? calloc((size_t)nr_cpus, sizeof(*perf->rings)) : NULL;
	if (!perf->rings)
		return -ENOMEM;
	for (long cpu = 0; cpu < nr_cpus && !err; cpu++)
		err = add_ring(perf, (uint32_t)cpu);
	return err;
}

int process_events_open_perf(bool all_processes, struct process_events **ret_events)
{
	static const struct process_events_ops all_ops = {.next = perf_next, .close = perf_close};
	static const struct process_events_ops thread_ops = {
		.next = perf_next,
		.follow = perf_follow,
		.close = perf_close,
	};
	struct perf_task_events *perf = calloc(1, sizeof(*perf));
	int err;

	if (!perf)
		return -ENOMEM;
	perf->events = (struct process_events){
		.ops = all_processes ? &all_ops : &thread_ops,
		.fd = epoll_create1(EPOLL_CLOEXEC),
		.reports_ends = true,
	};
	err = perf->events.fd < 0 ? -errno : add_rings(perf);
	if (!err && all_processes)
		err = add_events(perf, -1);
	if (err) {
		perf_close(&perf->events);
		return err == -ENOSYS || err == -ENOENT || err == -EOPNOTSUPP || err == -EINVAL
			       ? -ENOTSUP
			       : err;
	}
	*ret_events = &perf->events;
	return 0;
}
