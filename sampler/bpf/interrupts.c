/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"
#include "sampler/bpf/interrupts_cpus.h"
#include "sampler/bpf/interrupts_layout.h"
#include "sampler/bpf/interrupts_state.h"
#include "symbols/elf/kernel_names.h"

/* Limit on the threads known to the program, of all processes. */
enum { MAX_INTERRUPTED_THREADS = 16384 };

/* Silences libbpf: errors are returned anyway. */
static int ignore_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

void interrupts_explain(int err, struct message *reterr)
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
	return interrupts->layout.tick_addr != 0;
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
	int nr_cpus, err;

	if (!is_verbose)
		(void)libbpf_set_print(ignore_message);
	nr_cpus = libbpf_num_possible_cpus();
	if (nr_cpus <= 0) {
		message_set(reterr, "the number of CPUs is not known: mount /sys");
		return -ENOTSUP;
	}
	err = open_program(interrupts, (uint32_t)nr_cpus);
	if (!err)
		err = interrupt_walk__load(interrupts->program);
	if (err) {
		interrupts_explain(err, reterr);
		return err == -EACCES || err == -EPERM ? -EPERM : -ENOTSUP;
	}
	interrupts->ring = ring_buffer__new(bpf_map__fd(interrupts->program->maps.records),
					    interrupts_deliver, interrupts, NULL);
	if (!interrupts->ring)
		return -errno;
	return 0;
}

/* The tick's interval, which is the resolution of the coarse clock. */
static uint64_t tick_ns(void)
{
	struct timespec resolution = {.tv_nsec = 0};

	(void)clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
	return (uint64_t)resolution.tv_nsec;
}

/*
 * Where the kernel's struct hrtimer has its function: as its type information (BTF) says, or else
 * as in Linux 6.18, after a node of 24 bytes and two times (include/linux/hrtimer_types.h).
 */
static uint64_t find_timer_function(void)
{
	struct btf *types = btf__load_vmlinux_btf();
	const int number = types ? btf__find_by_name_kind(types, "hrtimer", BTF_KIND_STRUCT) : -1;
	const struct btf_type *type = number > 0 ? btf__type_by_id(types, (uint32_t)number) : NULL;
	uint64_t offset = 40;

	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(types, btf_members(type)[i].name_off);

		if (name && strcmp(name, "function") == 0)
			offset = btf_member_bit_offset(type, i) / CHAR_BIT;
	}
	btf__free(types);
	return offset;
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
	interrupts->nr_of_period = (uint32_t)nr_ticks;
	err = find_tick(&addr, reterr);
	if (err)
		return err;
	interrupts->layout.tick_addr = addr;
	interrupts->layout.timer_function_offset = find_timer_function();
	return 0;
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
		counts = (struct interrupt_counts){0};
		interrupts_count(interrupts, &counts);
	} while (!counts.nr_ticks && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns);
	if (counts.nr_ticks)
		return 0;
	message_set(reterr, "the kernel's tick does not pass the tracepoint hrtimer_expire_entry: "
			    "use --engine bpf");
	return -ENOTSUP;
}

int interrupts_open(const struct interrupts_options *options, struct interrupts **ret_interrupts,
		    struct message *reterr)
{
	struct interrupts *interrupts;
	int err = 0;

	if (!interrupts_layout_fits(&options->layout)) {
		message_set(reterr,
			    "this CPython's structs are larger than those of any known version");
		return -ENOTSUP;
	}
	interrupts = calloc(1, sizeof(*interrupts));
	if (!interrupts)
		return -ENOMEM;
	interrupts->wanted_layout = options->layout;
	interrupts->wanted_period_ns = options->period_ns;
	interrupts->clock = options->clock;
	interrupts->layout = options->layout;
	interrupts->period_ns = options->period_ns;
	interrupts->nr_of_period = 1;
	descriptor_limit_raise();
	if (options->clock == INTERRUPTS_TICK)
		err = set_tick(interrupts, reterr);
	else
		interrupts->layout.period_ns = options->period_ns;
	if (!err)
		err = load(interrupts, options->is_verbose, reterr);
	if (!err && options->clock == INTERRUPTS_TICK)
		err = attach_tick(interrupts, reterr);
	if (err == -EPERM && !reterr->text[0])
		interrupts_explain(err, reterr);
	if (err) {
		interrupts_close(interrupts);
		return err;
	}
	*ret_interrupts = interrupts;
	return 0;
}

void interrupts_close(struct interrupts *interrupts)
{
	if (!interrupts)
		return;
	assert(!interrupts->nr_processes);
	(void)bpf_link__destroy(interrupts->tick);
	interrupts_cpus_close(interrupts);
	ring_buffer__free(interrupts->ring);
	interrupt_walk__destroy(interrupts->program);
	free(interrupts);
}

bool interrupts_have_options(const struct interrupts *interrupts,
			     const struct interrupts_options *options)
{
	/* Padding may only make them differ. NOLINTBEGIN(bugprone-suspicious-memory-comparison) */
	return interrupts->wanted_period_ns == options->period_ns &&
	       interrupts->clock == options->clock &&
	       memcmp(&interrupts->wanted_layout, &options->layout, sizeof(options->layout)) == 0;
	/* NOLINTEND(bugprone-suspicious-memory-comparison) */
}

int interrupts_program_fd(const struct interrupts *interrupts)
{
	return bpf_program__fd(interrupts->program->progs.handle_interrupt);
}

bool interrupts_use_cpus(const struct interrupts *interrupts)
{
	return interrupts->nr_cpu_events > 0;
}

uint64_t interrupts_period_ns(const struct interrupts *interrupts)
{
	return interrupts->period_ns;
}

int interrupts_wake_fd(const struct interrupts *interrupts)
{
	return bpf_map__fd(interrupts->program->maps.records);
}

/* Add counters to sums. Every counter is a word. */
static void add_counts(struct interrupt_counts *sums, const struct interrupt_counts *counts)
{
	__u64 *sum = (__u64 *)sums;
	const __u64 *count = (const __u64 *)counts;

	for (size_t i = 0; i < sizeof(*sums) / sizeof(*sum); i++)
		sum[i] += count[i];
}

void interrupts_count(const struct interrupts *interrupts, struct interrupt_counts *sums)
{
	const int nr_cpus = libbpf_num_possible_cpus();
	const struct bpf_program *program = has_tick(interrupts)
						    ? interrupts->program->progs.handle_tick
						    : interrupts->program->progs.handle_interrupt;
	const uint32_t zero = 0;
	cleanup_free struct interrupt_counts *counts = NULL;
	struct bpf_prog_info info = {0};
	uint32_t info_bytes = sizeof(info);

	counts = nr_cpus > 0 ? calloc((size_t)nr_cpus, sizeof(*counts)) : NULL;
	if (!counts || bpf_map__lookup_elem(interrupts->program->maps.counts, &zero, sizeof(zero),
					    counts, (size_t)nr_cpus * sizeof(*counts), 0))
		return;
	for (int i = 0; i < nr_cpus; i++)
		add_counts(sums, &counts[i]);
	if (!bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &info_bytes))
		sums->nr_skipped += info.recursion_misses;
}
