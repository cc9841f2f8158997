/* SPDX-License-Identifier: MIT */
#include "procmem/live.h"

#include <errno.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * Limit on the bytes of one call. The kernel silently cuts a call at MAX_RW_COUNT (2 GiB less a
 * page); below that, a short count always means a fault.
 */
#define LIVE_MAX_CALL_BYTES ((size_t)1 << 30)

/*
 * A thread that is ending loses its memory shortly before /proc shows that it has ended. The
 * search for another live thread is repeated this often, a millisecond apart.
 */
enum { ENDING_MAX_TRIES = 10, ENDING_PAUSE_US = 1000 };

/* Limit on threads that end during one read. Beyond it the target counts as gone. */
enum { MAX_THREAD_CHANGES = 64 };

/* One process_vm_readv call: a run of ranges, each continued at its done_bytes. */
struct live_batch {
	struct remote_range *ranges; /* start of the run */
	size_t nr_ranges;	     /* length of the run; 1 to IOV_MAX */
	struct iovec local[IOV_MAX];
	struct iovec remote[IOV_MAX];
};

/* Add as many ranges as one call can carry; the last one may be partial. */
static void batch_fill(struct live_batch *batch, struct remote_range *ranges, size_t nr_ranges)
{
	size_t left_bytes = LIVE_MAX_CALL_BYTES;
	size_t i;

	for (i = 0; i < nr_ranges && i < IOV_MAX && left_bytes; i++) {
		size_t done = ranges[i].done_bytes;
		size_t want = ranges[i].size - done;

		if (want > left_bytes)
			want = left_bytes;
		left_bytes -= want;
		batch->local[i].iov_base = (char *)ranges[i].buffer + done;
		batch->local[i].iov_len = want;
		/* Never dereferenced here. NOLINTNEXTLINE(performance-no-int-to-ptr) */
		batch->remote[i].iov_base = (void *)(uintptr_t)(ranges[i].addr + done);
		batch->remote[i].iov_len = want;
	}
	batch->ranges = ranges;
	batch->nr_ranges = i;
}

/*
 * Distribute the bytes that a call read. Returns how many ranges are settled: complete or stopped
 * by a fault. The kernel reads the pieces in order and stops at the first byte that it cannot
 * read, even inside a piece (process_vm_rw in mm/process_vm_access.c; the man page mentions whole
 * pieces only).
 */
static size_t batch_account(struct live_batch *batch, size_t read_bytes)
{
	for (size_t i = 0; i < batch->nr_ranges; i++) {
		struct remote_range *range = &batch->ranges[i];
		size_t want = batch->local[i].iov_len;

		if (read_bytes < want) {
			range->done_bytes += read_bytes;
			return i + 1;
		}
		range->done_bytes += want;
		read_bytes -= want;
		if (range->done_bytes < range->size)
			return i; /* cut by LIVE_MAX_CALL_BYTES: continue there */
	}
	return batch->nr_ranges;
}

/*
 * Map the errors that end the whole read. Any other error concerns the first piece: EFAULT, or
 * ENOMEM when its page cannot be brought in.
 */
static int fatal_error(int error)
{
	switch (error) {
	case ESRCH:
		return -ESRCH;
	case EPERM:
	case EACCES:
	case ENOSYS: /* no CONFIG_CROSS_MEMORY_ATTACH, or hidden by a seccomp filter */
		return -EPERM;
	default:
		return 0;
	}
}

/* How many of the nr_after ranges after a settled one are skipped with it. */
static size_t nr_skipped(const struct remote_range *range, size_t nr_after)
{
	if (range->done_bytes || !range->size)
		return 0;
	return range->nr_dependent < nr_after ? range->nr_dependent : nr_after;
}

/*
 * Continue with the id of another thread, because live->tid has no memory. Returns 0, or -ESRCH if
 * there is none.
 */
static int change_thread(struct live_memory *live)
{
	for (int i = 0; i < ENDING_MAX_TRIES; i++) {
		pid_t tid;

		if (process_live_thread(live->process, &tid))
			return -ESRCH;
		if (tid != live->tid) {
			live->tid = tid;
			return 0;
		}
		(void)usleep(ENDING_PAUSE_US);
	}
	return -ESRCH;
}

int live_memory_probe(void)
{
	char from = 0;
	char to;
	struct iovec local = {.iov_base = &to, .iov_len = 1};
	struct iovec remote = {.iov_base = &from, .iov_len = 1};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : -errno;
}

/*
 * After a call that was not permitted, switch to the file if the system call itself is forbidden
 * here. If the kernel forbids only this target, the read stays forbidden: the file may have been
 * opened while access was still allowed.
 */
static bool change_to_file(struct live_memory *live)
{
	live->through_file = live->process->memory_fd >= 0 && live_memory_probe() != 0;
	return live->through_file;
}

/*
 * Read one range through the file, to its end or to a fault. A fault gives EIO, after a short
 * count up to it (mem_rw() in fs/proc/base.c). A read of 0 bytes means that the memory is gone.
 * Returns 0 or -ESRCH.
 */
static int read_from_file(struct live_memory *live, struct remote_range *range)
{
	while (range->done_bytes < range->size) {
		uint64_t offset = range->addr + range->done_bytes;
		ssize_t read_bytes;

		if (offset > INT64_MAX) /* the kernel's half of the address space */
			return 0;
		live->nr_reads++;
		read_bytes =
			pread(live->process->memory_fd, (char *)range->buffer + range->done_bytes,
			      range->size - range->done_bytes, (off_t)offset);
		if (read_bytes == 0)
			return -ESRCH;
		if (read_bytes < 0 && errno != EINTR)
			return 0;
		if (read_bytes > 0)
			range->done_bytes += (size_t)read_bytes;
	}
	return 0;
}

static int read_all_from_file(struct live_memory *live, struct remote_range *ranges,
			      size_t nr_ranges)
{
	int err = 0;

	for (size_t i = 0; !err && i < nr_ranges; i++)
		err = read_from_file(live, &ranges[i]);
	return err;
}

static int live_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
			    size_t nr_ranges)
{
	struct live_memory *live = (struct live_memory *)memory;
	struct live_batch batch; /* not initialised: only the parts that a call uses are touched */
	unsigned int nr_changes = 0;

	for (size_t i = 0; i < nr_ranges; i++)
		ranges[i].done_bytes = 0;

	if (live->through_file)
		return read_all_from_file(live, ranges, nr_ranges);
	while (nr_ranges > 0) {
		batch_fill(&batch, ranges, nr_ranges);
		live->nr_reads++;
		ssize_t read_bytes = process_vm_readv(live->tid, batch.local, batch.nr_ranges,
						      batch.remote, batch.nr_ranges, 0);
		if (read_bytes < 0) {
			int err = fatal_error(errno);

			if (err == -ESRCH && nr_changes++ < MAX_THREAD_CHANGES &&
			    change_thread(live) == 0)
				continue;
			if (err == -EPERM && change_to_file(live))
				return read_all_from_file(live, ranges, nr_ranges);
			if (err)
				return err;
			read_bytes = 0;
		}
		size_t nr_settled = batch_account(&batch, (size_t)read_bytes);

		if (nr_settled)
			nr_settled += nr_skipped(&ranges[nr_settled - 1], nr_ranges - nr_settled);
		ranges += nr_settled;
		nr_ranges -= nr_settled;
	}
	return 0;
}

static int live_check(struct remote_memory *memory)
{
	struct live_memory *live = (struct live_memory *)memory;

	live->nr_checks += 2;
	if (process_memory_is_gone(live->process))
		return -ESRCH;
	return process_has_thread(live->process, live->tid) ? 0 : change_thread(live);
}

/* Never write through the file: it bypasses the protection of read-only pages. */
static int live_write_u64(struct remote_memory *memory, remote_addr addr, uint64_t value)
{
	struct live_memory *live = (struct live_memory *)memory;
	struct iovec local = {.iov_base = &value, .iov_len = sizeof(value)};
	/* Never dereferenced here. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = sizeof(value)};

	if (!live_memory_can_write(live) || addr % sizeof(value))
		return -EPERM;
	live->nr_writes++;
	if (process_vm_writev(live->tid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(value))
		return 0;
	return fatal_error(errno) ? fatal_error(errno) : -EFAULT;
}

static const struct remote_memory_ops live_memory_ops = {
	.read_ranges = live_read_ranges,
	.check = live_check,
};

static const struct remote_memory_ops writable_memory_ops = {
	.read_ranges = live_read_ranges,
	.check = live_check,
	.write_u64 = live_write_u64,
};

void live_memory_init(struct live_memory *live, const struct process *process)
{
	*live = (struct live_memory){
		.memory = {.ops = &live_memory_ops},
		.process = process,
		.tid = process->pid,
	};
}

void live_memory_allow_writes(struct live_memory *live)
{
	live->memory.ops = &writable_memory_ops;
}
