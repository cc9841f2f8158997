/* SPDX-License-Identifier: MIT */
#include "procmem/sched/perf_events.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"

/*
 * A ring holds 15 copies of 32 KiB: at 1 kHz, enough for 15 ms without the sampler. When the memory
 * that may be locked (RLIMIT_MEMLOCK, kernel.perf_event_mlock_kb) runs out, smaller rings are
 * tried; the smallest holds one copy of maximum size.
 */
enum { RING_MAX_BYTES = 512 << 10, RING_MIN_BYTES = 128 << 10 };

/* The parts of a copy besides the stack: registers and up to 127 addresses of kernel functions. */
enum { COPY_HEAD_MAX_BYTES = 2048 };

/*
 * The kernel writes a copy after its program has reported it. perf_events_find() checks for it at
 * this interval, until this long after the report.
 */
enum { FIND_PAUSE_NS = 50000, WRITTEN_WITHIN_NS = 2000000 };

/* At most this many ready threads are handled per call; the others follow with the next. */
enum { MAX_READY = 64 };

#define NS_IN_MS 1000000u

struct perf_thread {
	pid_t tid;
	int fd;
	struct perf_event_mmap_page *page; /* precedes the ring */
	size_t ring_bytes;
	bool is_ready; /* there may be records */
	bool has_ended;
};

/* Opening. */

static uint64_t sample_type(const struct perf_events *events)
{
	return events->options.kernel_frames && !events->user_only ? PERF_RECORD_KERNEL_SAMPLE_TYPE
								   : PERF_RECORD_SAMPLE_TYPE;
}

static struct perf_event_attr make_attr(const struct perf_events *events)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = events->options.period_ns,
		.sample_type = sample_type(events),
		.sample_regs_user = PERF_RECORD_REGISTERS,
		.sample_stack_user = events->options.max_stack_bytes,
		.exclude_kernel = events->user_only,
		.exclude_hv = 1,
		.exclude_callchain_user = 1,
		.mmap = 1,
		.mmap2 = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.disabled = events->options.has_program,
		.watermark = events->options.has_program,
		/* Never reached, so nobody is woken. */
		.wakeup_events = events->options.has_program ? UINT32_MAX : 1,
	};
}

/*
 * Returns the descriptor, or negative errno. The thread is checked after the open, because its id
 * may have been reused by another process.
 */
static int open_event(const struct perf_events *events, pid_t tid)
{
	struct perf_event_attr attr = make_attr(events);
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	if (process_has_thread(events->process, tid))
		return fd;
	(void)close(fd);
	return -ESRCH;
}

static void explain(int err, struct message *reterr)
{
	if (err == -EPERM)
		message_set(
			reterr,
			"perf_event_open is not allowed: your own processes need "
			"kernel.perf_event_paranoid at 2 or less, those of other users need "
			"CAP_PERFMON; sandboxes and containers forbid it with a seccomp filter");
	else if (err == -ENOSYS || err == -ENOENT || err == -EOPNOTSUPP || err == -EINVAL)
		message_set(reterr, "perf_event_open of this kernel cannot copy stacks");
	else
		message_set(reterr, "perf_event_open: %s", strerror(-err));
}

/* Find out what is permitted, with a thread of the process. */
static int find_rights(struct perf_events *events, struct message *reterr)
{
	pid_t tid;
	int err = process_live_thread(events->process, &tid);
	int fd;

	if (err)
		return err;
	fd = open_event(events, tid);
	if (fd == -EPERM) {
		events->user_only = true;
		fd = open_event(events, tid);
	}
	if (fd >= 0) {
		(void)close(fd);
		return 0;
	}
	if (fd != -ESRCH)
		explain(fd, reterr);
	return fd == -ENOSYS || fd == -ENOENT || fd == -EOPNOTSUPP || fd == -EINVAL ? -ENOTSUP : fd;
}

int perf_events_open(const struct process *process, const struct perf_events_options *options,
		     struct perf_events *ret_events, struct message *reterr)
{
	struct perf_events events = {.process = process, .options = *options, .epoll_fd = -1};
	int err = find_rights(&events, reterr);

	assert(options->max_stack_bytes % 8 == 0 &&
	       options->max_stack_bytes <= PERF_RECORD_MAX_STACK_BYTES);
	if (err)
		return err;
	events.record = malloc(PERF_RECORD_MAX_BYTES);
	if (!events.record)
		return -ENOMEM;
	events.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (events.epoll_fd < 0) {
		free(events.record);
		return -errno;
	}
	*ret_events = events;
	return 0;
}

/* Release the resources of a thread. Its entry becomes that of a thread that has ended. */
static void thread_close(struct perf_thread *thread)
{
	if (thread->page)
		(void)munmap(thread->page, (size_t)sysconf(_SC_PAGESIZE) + thread->ring_bytes);
	if (thread->fd >= 0)
		(void)close(thread->fd);
	*thread = (struct perf_thread){.fd = -1, .has_ended = true};
}

void perf_events_close(struct perf_events *events)
{
	for (uint32_t i = 0; i < events->nr_threads; i++)
		thread_close(&events->threads[i]);
	if (events->epoll_fd >= 0)
		(void)close(events->epoll_fd);
	free(events->threads);
	free(events->record);
	*events = PERF_EVENTS_CLOSED;
}

/* Threads. */

/* Map the largest ring possible. Returns 0, -ENOMEM or -EPERM. */
static int map_ring(struct perf_thread *thread)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int err = -ENOMEM;

	for (size_t bytes = RING_MAX_BYTES; bytes >= RING_MIN_BYTES; bytes /= 2) {
		void *map = mmap(NULL, page_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				 thread->fd, 0);

		if (map != MAP_FAILED) {
			thread->page = map;
			thread->ring_bytes = bytes;
			return 0;
		}
		err = errno == EPERM ? -EPERM : -ENOMEM;
	}
	return err;
}

/* Attach the program to an event and enable it. Returns 0 or the errno of a system call. */
static int run_program(const struct perf_events *events, const struct perf_thread *thread)
{
	return ioctl(thread->fd, PERF_EVENT_IOC_SET_BPF, events->options.program_fd) ||
			       ioctl(thread->fd, PERF_EVENT_IOC_ENABLE, 0)
		       ? -errno
		       : 0;
}

/* Let the event of the thread at index wake the caller. */
static int add_to_epoll(const struct perf_events *events, const struct perf_thread *thread,
			uint32_t index)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};

	return epoll_ctl(events->epoll_fd, EPOLL_CTL_ADD, thread->fd, &event) ? -errno : 0;
}

static int thread_open(struct perf_events *events, pid_t tid, uint32_t index,
		       struct perf_thread *ret_thread)
{
	struct perf_thread thread = {.tid = tid};
	int err;

	thread.fd = open_event(events, tid);
	if (thread.fd < 0)
		return thread.fd;
	err = descriptor_limit_is_near(thread.fd) ? -EMFILE : map_ring(&thread);
	if (events->options.has_program && err != -EMFILE) {
		const int ring_err = err;

		err = run_program(events, &thread);
		events->stats.nr_refused += ring_err && !err;
	} else if (!err) {
		err = add_to_epoll(events, &thread, index);
	}
	if (err) {
		thread_close(&thread);
		return err;
	}
	*ret_thread = thread;
	return 0;
}

/* Returns a free entry: that of a thread that has ended, or a new one. NULL if out of memory. */
static struct perf_thread *find_free_entry(struct perf_events *events)
{
	struct perf_thread *threads;

	for (uint32_t i = 0; i < events->nr_threads; i++)
		if (events->threads[i].has_ended)
			return &events->threads[i];
	threads = array_reserve(events->threads, events->nr_threads + 1, &events->max_threads,
				sizeof(*threads));
	if (!threads)
		return NULL;
	events->threads = threads;
	threads[events->nr_threads] = (struct perf_thread){.fd = -1, .has_ended = true};
	return &threads[events->nr_threads++];
}

/* Returns the followed thread, or NULL. */
static struct perf_thread *find_thread(const struct perf_events *events, pid_t tid)
{
	for (uint32_t i = 0; i < events->nr_threads; i++)
		if (events->threads[i].tid == tid && !events->threads[i].has_ended)
			return &events->threads[i];
	return NULL;
}

int perf_events_add(struct perf_events *events, pid_t tid)
{
	struct perf_thread *place;
	int err = -ENOMEM;

	if (find_thread(events, tid))
		return 0;
	place = find_free_entry(events);
	if (place) {
		thread_close(place);
		err = thread_open(events, tid, (uint32_t)(place - events->threads), place);
	}
	events->stats.nr_refused += err && err != -ESRCH;
	return err;
}

/* Return the space of the last record to the kernel. */
static void release_record(struct perf_events *events)
{
	struct perf_event_mmap_page *page;

	if (!events->record_bytes)
		return;
	page = events->threads[events->current].page;
	__atomic_store_n(&page->data_tail, page->data_tail + events->record_bytes,
			 __ATOMIC_RELEASE);
	events->record_bytes = 0;
}

/* Waiting. */

/*
 * Querying an event resets its readiness. So the epoll descriptor itself must not be polled by
 * poll(2) or another epoll; wait for it instead.
 */
static int wait_ready(const struct perf_events *events, uint64_t left_ns,
		      struct epoll_event ready[MAX_READY])
{
	const struct timespec timeout = timespec_of(left_ns);
	int nr = epoll_pwait2(events->epoll_fd, ready, MAX_READY, &timeout, NULL);

	/* Linux before 5.11 lacks epoll_pwait2() and counts in milliseconds. */
	if (nr < 0 && errno == ENOSYS)
		nr = epoll_wait(events->epoll_fd, ready, MAX_READY,
				left_ns / NS_IN_MS < INT_MAX
					? (int)((left_ns + NS_IN_MS - 1) / NS_IN_MS)
					: INT_MAX);
	return nr;
}

int perf_events_enable(struct perf_events *events, bool is_on)
{
	const unsigned long request = is_on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	int err = 0;

	for (uint32_t i = 0; i < events->nr_threads; i++)
		if (events->threads[i].fd >= 0 && ioctl(events->threads[i].fd, request, 0))
			err = -errno;
	return err;
}

void perf_events_wait(struct perf_events *events, uint64_t until_ns)
{
	struct epoll_event ready[MAX_READY];
	const uint64_t begin_ns = clock_now_ns();
	int nr = wait_ready(events, until_ns > begin_ns ? until_ns - begin_ns : 0, ready);

	release_record(events);
	events->current = 0;
	events->is_drained = false;
	for (int i = 0; i < nr; i++) {
		struct perf_thread *thread = &events->threads[ready[i].data.u32];

		thread->is_ready = true;
		if (!(ready[i].events & (EPOLLHUP | EPOLLERR)))
			continue;
		/*
		 * A thread that has ended would stay ready for ever, so it leaves the set. Its
		 * remaining records can still be read.
		 */
		(void)epoll_ctl(events->epoll_fd, EPOLL_CTL_DEL, thread->fd, NULL);
		thread->has_ended = true;
	}
}

void perf_events_catch_up(struct perf_events *events)
{
	if (events->is_drained)
		perf_events_wait(events, 0);
}

/* Reading. */

static void copy_out(const struct perf_thread *thread, uint64_t position, uint8_t *buffer,
		     size_t nr_bytes)
{
	const uint8_t *ring = (const uint8_t *)thread->page + thread->page->data_offset;
	const size_t start = position & (thread->ring_bytes - 1);
	const size_t nr_first =
		nr_bytes < thread->ring_bytes - start ? nr_bytes : thread->ring_bytes - start;

	memcpy(buffer, ring + start, nr_first);
	memcpy(buffer + nr_first, ring, nr_bytes - nr_first);
}

/*
 * Read the next record of the current thread's ring. It stays in place unless it wraps around,
 * because most of a copy is unused stack space. Returns NULL if there is none.
 */
static const uint8_t *next_record(struct perf_events *events)
{
	const struct perf_thread *thread = &events->threads[events->current];
	const uint8_t *ring = (const uint8_t *)thread->page + thread->page->data_offset;
	const uint64_t head = __atomic_load_n(&thread->page->data_head, __ATOMIC_ACQUIRE);
	const uint64_t tail = thread->page->data_tail; /* only we write it */
	const size_t start = tail & (thread->ring_bytes - 1);
	struct perf_event_header header;

	if (head - tail < sizeof(header))
		return NULL;
	copy_out(thread, tail, (uint8_t *)&header, sizeof(header));
	if (header.size < sizeof(header) || header.size > head - tail) {
		events->record_bytes = head - tail;
		release_record(events);
		return NULL;
	}
	events->record_bytes = header.size;
	if (start + header.size <= thread->ring_bytes)
		return ring + start;
	copy_out(thread, tail, events->record, header.size);
	return events->record;
}

/* Count a PERF_RECORD_MMAP2. Code made by a JIT is usually in anonymous memory. */
static void count_mapping(struct perf_events_stats *stats, const uint8_t *record, size_t nr_bytes)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t addr, nr_bytes, offset;
		uint32_t major, minor;
		uint64_t inode;
	} *mapped = (const void *)record;

	if (mapped->header.type != PERF_RECORD_MMAP2 || nr_bytes < sizeof(*mapped))
		return;
	stats->nr_mapped += mapped->inode != 0;
	stats->nr_anonymous += mapped->inode == 0;
}

/* Handle one record. Returns 0 if it is a copy. */
static int decode_record(struct perf_events *events, const uint8_t *record,
			 struct perf_copy *ret_copy)
{
	const size_t nr_bytes = events->record_bytes;
	const struct {
		struct perf_event_header header;
		uint64_t id, nr_lost;
	} *lost = (const void *)record;
	int err;

	if (lost->header.type == PERF_RECORD_LOST && nr_bytes >= sizeof(*lost))
		events->stats.nr_lost += lost->nr_lost;
	count_mapping(&events->stats, record, nr_bytes);
	if (lost->header.type != PERF_RECORD_SAMPLE)
		return -ENOENT;
	err = perf_record_parse(record, nr_bytes, sample_type(events), ret_copy);
	if (err)
		return err;
	events->stats.nr_copies++;
	return 0;
}

int perf_events_next(struct perf_events *events, struct perf_copy *ret_copy)
{
	while (events->current < events->nr_threads) {
		struct perf_thread *thread = &events->threads[events->current];
		const uint8_t *record;

		release_record(events);
		record = thread->is_ready ? next_record(events) : NULL;
		if (!record) {
			thread->is_ready = false;
			events->current++;
			if (thread->has_ended)
				thread_close(thread);
		} else if (!decode_record(events, record, ret_copy)) {
			return 0;
		}
	}
	events->is_drained = true;
	return -ENOENT;
}

/* Read the current ring up to the copy with this count. Returns whether the ring has reached it. */
static bool find_in_ring(struct perf_events *events, uint64_t count_ns)
{
	const uint8_t *record;

	for (release_record(events); (record = next_record(events)); release_record(events)) {
		if (decode_record(events, record, &events->found))
			continue;
		if (events->found.count_ns == count_ns)
			return true;
		if (events->found.count_ns > count_ns) {
			events->record_bytes = 0; /* a later copy: leave it in the ring */
			events->stats.nr_copies--;
			return true;
		}
	}
	return false;
}

const struct perf_copy *perf_events_find(struct perf_events *events, pid_t tid, uint64_t count_ns,
					 uint64_t time_ns)
{
	const struct timespec pause = {.tv_nsec = FIND_PAUSE_NS};
	struct perf_thread *thread;

	if (events->record_bytes && events->found.tid == tid && events->found.count_ns == count_ns)
		return &events->found;
	release_record(events);
	thread = find_thread(events, tid);
	if (!thread || !thread->page)
		return NULL;
	events->current = (uint32_t)(thread - events->threads);
	while (!find_in_ring(events, count_ns)) {
		if (clock_now_ns() - time_ns > WRITTEN_WITHIN_NS)
			return NULL;
		(void)nanosleep(&pause, NULL);
	}
	return events->record_bytes ? &events->found : NULL;
}

uint32_t perf_events_room(const struct perf_events *events)
{
	const size_t copy_bytes = events->options.max_stack_bytes + COPY_HEAD_MAX_BYTES;
	size_t ring_bytes = RING_MAX_BYTES;

	for (uint32_t i = 0; i < events->nr_threads; i++)
		if (events->threads[i].page && events->threads[i].ring_bytes < ring_bytes)
			ring_bytes = events->threads[i].ring_bytes;
	return (uint32_t)(ring_bytes / copy_bytes);
}

/* The kernel reports an event without a ring as if its thread had ended. */
static bool has_ended(const struct perf_events *events, const struct perf_thread *thread)
{
	struct pollfd event = {.fd = thread->fd};

	return thread->page ? poll(&event, 1, 0) > 0 && event.revents & (POLLHUP | POLLERR)
			    : !process_has_thread(events->process, thread->tid);
}

void perf_events_drop_ended(struct perf_events *events)
{
	release_record(events);
	for (uint32_t i = 0; i < events->nr_threads; i++) {
		if (events->threads[i].fd >= 0 && has_ended(events, &events->threads[i]))
			thread_close(&events->threads[i]);
	}
}

int perf_events_count(const struct perf_events *events, pid_t tid, uint64_t *ret_count_ns)
{
	const struct perf_thread *thread = find_thread(events, tid);

	return thread && read(thread->fd, ret_count_ns, sizeof(*ret_count_ns)) ==
				       (ssize_t)sizeof(*ret_count_ns)
		       ? 0
		       : -ESRCH;
}
