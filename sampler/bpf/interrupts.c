/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"
#include "sampler/bpf/interrupt_program.h"
#include "sampler/bpf/interrupts_layout.h"
#include "symbols/elf/kernel_names.h"

/* Limit on the threads known to the program. */
enum { MAX_INTERRUPTED_THREADS = 16384 };

/* Limit on thread listings until none is new: a process may keep making threads. */
enum { MAX_LISTINGS = 8 };

struct interrupted {
	pid_t tid;
	int fd;
	struct bpf_link *link;
};

struct interrupts {
	struct interrupts_options options;
	struct interrupt_layout layout;
	struct interrupt_walk *program;
	struct bpf_link *tick; /* the link of the program in the tick; NULL: there are events */
	uint64_t period_ns;
	struct ring_buffer *ring;
	struct interrupted *threads;
	uint32_t nr_threads, max_threads;
	const struct interrupts_handler *handler; /* of the current drain; NULL: discard records */
	struct interrupt_counts before;		  /* counts of a program that was replaced */
};

static int handle_record(void *context, void *data, size_t size)
{
	const struct interrupts *interrupts = context;
	const struct interrupts_handler *handler = interrupts->handler;
	const struct interrupt_head *head = data;

	if (!handler)
		return 0;
	if (size < sizeof(*head) || head->nr_bytes != size)
		return -EBADMSG; /* the program and this were compiled with different headers */
	return head->kind == INTERRUPT_CODE ? handler->handle_code(handler->context, data)
					    : handler->handle_stack(handler->context, data);
}

/* Silences libbpf: errors are returned anyway. */
static int ignore_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

/* Find the namespace of the process, and its id there. */
static int find_namespace(const struct process *process, struct interrupt_layout *layout)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;
	struct stat status;
	int err = process_threads(process, &threads, &nr_threads);

	if (err)
		return err;
	if (fstatat(process->proc_fd, "ns/pid", &status, 0))
		return -errno;
	layout->namespace_dev = status.st_dev;
	layout->namespace_ino = status.st_ino;
	for (size_t i = 0; i < nr_threads; i++)
		if (threads[i].tid == process->pid)
			layout->process_id = (uint32_t)threads[i].ns_tid;
	return layout->process_id ? 0 : -ESRCH;
}

static void explain(int err, struct message *reterr)
{
	if (err == -EPERM || err == -EACCES)
		message_set(reterr,
			    "loading a BPF program requires root, or CAP_BPF and CAP_PERFMON, "
			    "and neither a seccomp filter nor lockdown may forbid it");
	else
		message_set(reterr, "the kernel rejected the BPF program: %s", strerror(-err));
}

static bool has_tick(const struct interrupts *interrupts)
{
	return interrupts->layout.tick.function_addr != 0;
}

/* Open the program and configure it for loading. */
static int open_program(struct interrupts *interrupts, uint32_t nr_cpus)
{
	const uint32_t nr_codes = nr_cpus > INTERRUPT_KNOWN_CODES / INTERRUPT_KNOWN_CODES_OF_ONE_CPU
					  ? nr_cpus * INTERRUPT_KNOWN_CODES_OF_ONE_CPU
					  : INTERRUPT_KNOWN_CODES;
	struct interrupt_walk *program = interrupt_walk__open();
	int err;

	if (!program)
		return -errno;
	interrupts->program = program;
	memcpy((void *)&program->rodata->layout, &interrupts->layout, sizeof(interrupts->layout));
	/* The unused one of the two programs may need what this kernel lacks. */
	err = bpf_program__set_autoload(has_tick(interrupts) ? program->progs.handle_interrupt
							     : program->progs.handle_tick,
					false);
	if (!err)
		err = bpf_map__set_max_entries(program->maps.threads, MAX_INTERRUPTED_THREADS);
	if (!err)
		err = bpf_map__set_max_entries(program->maps.scratches, nr_cpus);
	return err ? err : bpf_map__set_max_entries(program->maps.known_codes, nr_codes);
}

static int load(struct interrupts *interrupts, bool is_verbose, struct message *reterr)
{
	const int nr_cpus = libbpf_num_possible_cpus();
	int err;

	if (!is_verbose)
		(void)libbpf_set_print(ignore_message);
	err = open_program(interrupts, nr_cpus > 0 ? (uint32_t)nr_cpus : 1);
	if (!err)
		err = interrupt_walk__load(interrupts->program);
	if (err) {
		explain(err, reterr);
		return err == -EACCES || err == -EPERM ? -EPERM : -ENOTSUP;
	}
	interrupts->ring = ring_buffer__new(bpf_map__fd(interrupts->program->maps.records),
					    handle_record, interrupts, NULL);
	if (!interrupts->ring)
		return -errno;
	return 0;
}

/* Interrupt a thread, and those that it makes from now on. */
static int open_event(const struct interrupts *interrupts, pid_t tid,
		      struct interrupted *ret_interrupted)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = interrupts->period_ns,
		.disabled = 1,
		.inherit = 1,
		.inherit_thread = 1,
		.exclude_hv = 1,
	};
	struct interrupted interrupted = {.tid = tid};
	int err = 0;

	interrupted.fd =
		(int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (interrupted.fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	if (!process_has_thread(interrupts->options.process, tid))
		err = -ESRCH;
	else if (descriptor_limit_is_near(interrupted.fd))
		err = -EMFILE;
	if (!err) {
		interrupted.link = bpf_program__attach_perf_event(
			interrupts->program->progs.handle_interrupt, interrupted.fd);
		err = interrupted.link ? 0 : -errno;
	}
	if (err)
		(void)close(interrupted.fd);
	else
		*ret_interrupted = interrupted;
	return err;
}

/* Follow all existing threads. One that is made meanwhile may get two events. */
static int follow_all(struct interrupts *interrupts)
{
	bool is_new = true;
	int err = 0;

	for (int turn = 0; !err && is_new && turn < MAX_LISTINGS; turn++) {
		cleanup_free struct process_thread *threads = NULL;
		struct interrupted *followed;
		size_t nr_threads;

		err = process_threads(interrupts->options.process, &threads, &nr_threads);
		is_new = false;
		for (size_t i = 0; !err && i < nr_threads; i++) {
			uint32_t k = 0;

			while (k < interrupts->nr_threads &&
			       interrupts->threads[k].tid != threads[i].tid)
				k++;
			if (k < interrupts->nr_threads)
				continue;
			is_new = true;
			followed = array_reserve(interrupts->threads, interrupts->nr_threads + 1,
						 &interrupts->max_threads, sizeof(*followed));
			if (!followed)
				return -ENOMEM;
			interrupts->threads = followed;
			err = open_event(interrupts, threads[i].tid,
					 &followed[interrupts->nr_threads]);
			interrupts->nr_threads += !err;
			if (err == -ESRCH)
				err = 0;
		}
	}
	return err;
}

/* Stop interrupting any thread. */
static void unfollow_all(struct interrupts *interrupts)
{
	while (interrupts->nr_threads) /* a link closes its event as well */
		(void)bpf_link__destroy(interrupts->threads[--interrupts->nr_threads].link);
}

/* The tick's interval, which is the resolution of the coarse clock. */
static uint64_t tick_ns(void)
{
	struct timespec resolution = {.tv_nsec = 0};

	(void)clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
	return (uint64_t)resolution.tv_nsec;
}

/* Find the tick's function in the kernel; its name depends on the version. */
static int find_tick(uint64_t *ret_addr, struct message *reterr)
{
	static const char *const functions[] = {
		"tick_sched_timer",  /* before 6.9; there the other one is no hrtimer handler */
		"tick_nohz_handler", /* since 6.9 */
	};
	struct kernel_names *names;
	bool is_found = false;
	int err = kernel_names_read(&names);

	if (err == -ENOMEM)
		return err;
	for (size_t i = 0; !err && !is_found && i < sizeof(functions) / sizeof(*functions); i++)
		is_found = kernel_names_addr(names, functions[i], ret_addr);
	if (!err)
		kernel_names_destroy(names);
	if (is_found)
		return 0;
	if (err == -EPERM) {
		message_set(
			reterr,
			"/proc/kallsyms hides addresses: they require " KERNEL_NAMES_REQUIREMENTS);
		return err;
	}
	message_set(reterr, "the address of the kernel's tick is not in /proc/kallsyms: "
			    "use --engine bpf");
	return -ENOTSUP;
}

/* Round the period to whole ticks. */
static int set_tick(struct interrupts *interrupts, struct message *reterr)
{
	const uint64_t one_ns = tick_ns();
	uint64_t nr_ticks, addr;
	int err;

	if (!one_ns) {
		message_set(reterr,
			    "the kernel's tick rate is unknown (CLOCK_MONOTONIC_COARSE has no "
			    "resolution): use --engine bpf");
		return -ENOTSUP;
	}
	nr_ticks = (interrupts->period_ns + one_ns / 2) / one_ns;
	if (!nr_ticks)
		nr_ticks = 1;
	interrupts->period_ns = nr_ticks * one_ns;
	interrupts->layout.tick.nr_of_period = (uint32_t)nr_ticks;
	err = find_tick(&addr, reterr);
	if (!err)
		interrupts->layout.tick.function_addr = addr;
	return err;
}

/*
 * Attach to the tick, and check that it arrives: the kernel's layout may differ. Spins, because a
 * sleeping CPU may have no tick, for at most 20 ticks of its own CPU time: on a busy machine
 * more time than that may pass before it runs at all.
 */
static int attach_tick(struct interrupts *interrupts, struct message *reterr)
{
	enum { MAX_TICKS = 20 };
	const uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + MAX_TICKS * tick_ns();
	struct interrupt_counts counts = {0};

	interrupts->tick = bpf_program__attach(interrupts->program->progs.handle_tick);
	if (!interrupts->tick)
		return -errno;
	do {
		interrupts_count(interrupts, &counts);
	} while (!counts.nr_ticks && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns);
	if (counts.nr_ticks)
		return 0;
	message_set(reterr, "the kernel's tick does not pass the tracepoint hrtimer_expire_entry: "
			    "use --engine bpf");
	return -ENOTSUP;
}

/* Continuing after an exec. */

static bool has_same_options(const struct interrupts *before,
			     const struct interrupts_options *options)
{
	const struct interrupts_options *old = &before->options;

	/* Padding may only make them differ. NOLINTBEGIN(bugprone-suspicious-memory-comparison) */
	return old->process == options->process && old->period_ns == options->period_ns &&
	       old->clock == options->clock &&
	       memcmp(&old->layout, &options->layout, sizeof(old->layout)) == 0;
	/* NOLINTEND(bugprone-suspicious-memory-comparison) */
}

/* Delete all entries of a map. Returns whether that succeeded. */
static bool clear_map(const struct bpf_map *map)
{
	enum { NR_AT_ONCE = 1024 };
	cleanup_free uint8_t *keys = malloc(NR_AT_ONCE * (size_t)bpf_map__key_size(map));
	cleanup_free uint8_t *values = malloc(NR_AT_ONCE * (size_t)bpf_map__value_size(map));
	uint32_t place;
	int err = keys && values ? 0 : -ENOMEM;

	for (bool has_begun = false; !err; has_begun = true) {
		uint32_t nr = NR_AT_ONCE;

		err = bpf_map_lookup_and_delete_batch(bpf_map__fd(map), has_begun ? &place : NULL,
						      &place, keys, values, &nr, NULL);
	}
	return err == -ENOENT; /* no more entries */
}

/*
 * Forget the program that was replaced, and interrupt its successor. Returns whether that
 * succeeded. If the process may no longer be dumped after its exec (set-user-ID, file
 * capabilities) its events have ended silently, so all are opened again.
 *
 * Source: fs/exec.c (perf_event_exit_task()).
 */
static bool restart(struct interrupts *interrupts)
{
	unfollow_all(interrupts);
	interrupts->program->bss->code_type_addr = 0;
	interrupts->program->bss->unreachable_addr = 0;
	interrupts->before = (struct interrupt_counts){0};
	interrupts_count(interrupts, &interrupts->before);
	return clear_map(interrupts->program->maps.threads) &&
	       clear_map(interrupts->program->maps.known_codes) &&
	       interrupts_drain(interrupts, NULL) == 0 &&
	       (interrupts->options.clock != INTERRUPTS_OWN_EVENTS || follow_all(interrupts) == 0);
}

int interrupts_open(const struct interrupts_options *options, struct interrupts **ret_interrupts,
		    struct message *reterr)
{
	struct interrupts *interrupts = options->reused;
	int err;

	if (interrupts && has_same_options(interrupts, options) && restart(interrupts)) {
		*ret_interrupts = interrupts;
		return 0;
	}
	interrupts_close(interrupts);
	interrupts = calloc(1, sizeof(*interrupts));
	if (!interrupts)
		return -ENOMEM;
	interrupts->options = *options;
	interrupts->options.reused = NULL;
	interrupts->layout = options->layout;
	interrupts->period_ns = options->period_ns;
	if (!interrupts_layout_fits(&interrupts->layout)) {
		free(interrupts);
		message_set(reterr,
			    "this CPython's structs are larger than those of any known version");
		return -ENOTSUP;
	}
	descriptor_limit_raise();
	err = find_namespace(options->process, &interrupts->layout);
	if (!err && options->clock == INTERRUPTS_TICK)
		err = set_tick(interrupts, reterr);
	else
		interrupts->layout.period_ns = options->period_ns;
	if (!err)
		err = load(interrupts, options->is_verbose, reterr);
	if (!err && options->clock != INTERRUPTS_CALLER_EVENTS) {
		err = options->clock == INTERRUPTS_TICK ? attach_tick(interrupts, reterr)
							: follow_all(interrupts);
		if (err == -EPERM)
			explain(err, reterr);
	}
	if (err) {
		interrupts_close(interrupts);
		return err;
	}
	*ret_interrupts = interrupts;
	return 0;
}

int interrupts_program_fd(const struct interrupts *interrupts)
{
	return bpf_program__fd(interrupts->program->progs.handle_interrupt);
}

uint64_t interrupts_period_ns(const struct interrupts *interrupts)
{
	return interrupts->period_ns;
}

int interrupts_enable(struct interrupts *interrupts, bool is_on)
{
	const unsigned long request = is_on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	int err = 0;

	interrupts->program->bss->is_on = is_on;
	for (uint32_t i = 0; i < interrupts->nr_threads; i++)
		if (ioctl(interrupts->threads[i].fd, request, 0))
			err = -errno;
	return err;
}

void interrupts_close(struct interrupts *interrupts)
{
	if (!interrupts)
		return;
	unfollow_all(interrupts);
	(void)bpf_link__destroy(interrupts->tick);
	ring_buffer__free(interrupts->ring);
	interrupt_walk__destroy(interrupts->program);
	free(interrupts->threads);
	free(interrupts);
}

int interrupts_set_thread(struct interrupts *interrupts, uint32_t own_tid,
			  const struct interrupt_thread *thread)
{
	const struct bpf_map *map = interrupts->program->maps.threads;

	return thread ? bpf_map__update_elem(map, &own_tid, sizeof(own_tid), thread,
					     sizeof(*thread), BPF_ANY)
		      : bpf_map__delete_elem(map, &own_tid, sizeof(own_tid), 0);
}

void interrupts_forget_code(struct interrupts *interrupts, uint64_t code_addr)
{
	(void)bpf_map__delete_elem(interrupts->program->maps.known_codes, &code_addr,
				   sizeof(code_addr), 0);
}

void interrupts_ignore_fault(struct interrupts *interrupts, uint64_t addr)
{
	interrupts->program->bss->unreachable_addr = addr;
}

void interrupts_set_code_type(struct interrupts *interrupts, uint64_t code_type_addr)
{
	interrupts->program->bss->code_type_addr = code_type_addr;
}

int interrupts_wake_fd(const struct interrupts *interrupts)
{
	return bpf_map__fd(interrupts->program->maps.records);
}

int interrupts_drain(struct interrupts *interrupts, const struct interrupts_handler *handler)
{
	int nr;

	interrupts->handler = handler;
	nr = ring_buffer__consume(interrupts->ring);
	return nr < 0 ? nr : 0;
}

/* Add counters, times a factor, to sums. Every counter is a word. */
static void add_counts(struct interrupt_counts *sums, const struct interrupt_counts *counts,
		       __u64 times)
{
	__u64 *sum = (__u64 *)sums;
	const __u64 *count = (const __u64 *)counts;

	for (size_t i = 0; i < sizeof(*sums) / sizeof(*sum); i++)
		sum[i] += times * count[i];
}

void interrupts_count(const struct interrupts *interrupts, struct interrupt_counts *ret_counts)
{
	const int nr_cpus = libbpf_num_possible_cpus();
	const struct bpf_program *program = has_tick(interrupts)
						    ? interrupts->program->progs.handle_tick
						    : interrupts->program->progs.handle_interrupt;
	const uint32_t zero = 0;
	cleanup_free struct interrupt_counts *counts = NULL;
	struct bpf_prog_info info = {0};
	uint32_t info_bytes = sizeof(info);

	*ret_counts = (struct interrupt_counts){0};
	counts = nr_cpus > 0 ? calloc((size_t)nr_cpus, sizeof(*counts)) : NULL;
	if (!counts || bpf_map__lookup_elem(interrupts->program->maps.counts, &zero, sizeof(zero),
					    counts, (size_t)nr_cpus * sizeof(*counts), 0))
		return;
	for (int i = 0; i < nr_cpus; i++)
		add_counts(ret_counts, &counts[i], 1);
	if (!bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &info_bytes))
		ret_counts->nr_skipped = info.recursion_misses;
	add_counts(ret_counts, &interrupts->before, -1ull);
}
