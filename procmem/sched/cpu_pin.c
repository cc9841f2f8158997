/* SPDX-License-Identifier: MIT */
#include "procmem/sched/cpu_pin.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The shortest slice that the kernel accepts (fair.c clamps to 0.1 ms), and the longest requested.
 */
#define MIN_SLICE_NS 100000u
#define MAX_SLICE_NS 3200000u

/* The first version of struct sched_attr of linux/sched/types.h. */
struct sched_attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns; /* the slice, for policies that are not real-time */
	uint64_t deadline_ns;
	uint64_t period_ns;
};

/* Returns false if this kernel does not report them. */
static bool get_attributes(struct sched_attributes *ret_attributes)
{
	*ret_attributes = (struct sched_attributes){0};
	return !syscall(SYS_sched_getattr, 0, ret_attributes, sizeof(*ret_attributes), 0);
}

/* Set the slice; 0: the scheduler's default. Returns false if the kernel did not store it. */
static bool set_slice(uint64_t slice_ns)
{
	struct sched_attributes attributes;

	if (!get_attributes(&attributes))
		return false;
	if (attributes.policy != SCHED_OTHER && attributes.policy != SCHED_BATCH)
		return false;
	attributes.size = sizeof(attributes);
	attributes.runtime_ns = slice_ns;
	if (syscall(SYS_sched_setattr, 0, &attributes, 0))
		return false;
	/* Kernels before 6.12 accept the call but report 0 afterwards. */
	return get_attributes(&attributes) && attributes.runtime_ns == slice_ns;
}

int cpu_pin_open(struct cpu_pin *ret_pin)
{
	struct cpu_pin pin = {.is_open = true, .cpu = CPU_NONE};
	struct sched_attributes attributes;

	if (sched_getaffinity(0, sizeof(pin.usual), &pin.usual))
		return -errno;
	if (get_attributes(&attributes))
		pin.usual_slice_ns = attributes.runtime_ns;
	*ret_pin = pin;
	return 0;
}

/* Restore the slice that the thread had, or the scheduler's default. */
static void restore_slice(uint64_t usual_ns)
{
	struct sched_attributes attributes;

	(void)set_slice(0);
	if (get_attributes(&attributes) && attributes.runtime_ns != usual_ns)
		(void)set_slice(usual_ns);
}

void cpu_pin_close(struct cpu_pin *pin)
{
	if (!pin->is_open)
		return;
	(void)cpu_pin_move(pin, CPU_NONE);
	if (pin->slice_ns)
		restore_slice(pin->usual_slice_ns);
	*pin = (struct cpu_pin){.is_open = false};
}

int cpu_pin_move(struct cpu_pin *pin, uint32_t cpu)
{
	cpu_set_t there;

	if (pin->cpu == cpu)
		return 0;
	if (cpu != CPU_NONE && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &pin->usual)) {
		CPU_ZERO(&there);
		CPU_SET(cpu, &there);
		if (!sched_setaffinity(0, sizeof(there), &there)) {
			pin->cpu = cpu;
			return 0;
		}
	}
	/*
	 * This fails only if the usual CPUs were taken away; the kernel then frees the thread as
	 * well.
	 */
	(void)sched_setaffinity(0, sizeof(pin->usual), &pin->usual);
	pin->cpu = CPU_NONE;
	return cpu == CPU_NONE ? 0 : -EPERM;
}

void cpu_pin_fit_slice(struct cpu_pin *pin, uint64_t look_ns)
{
	uint64_t slice_ns = pin->slice_ns ? pin->slice_ns : MIN_SLICE_NS;

	if (pin->slice_is_refused)
		return;
	while (slice_ns < look_ns + look_ns / 4 && slice_ns < MAX_SLICE_NS)
		slice_ns *= 2;
	while (slice_ns > 3 * look_ns && slice_ns > MIN_SLICE_NS)
		slice_ns /= 2;
	if (slice_ns == pin->slice_ns)
		return;
	pin->slice_is_refused = !set_slice(slice_ns);
	pin->slice_ns = pin->slice_is_refused ? 0 : slice_ns;
}

uint32_t cpu_current(void)
{
	const int cpu = sched_getcpu();

	return cpu < 0 ? CPU_NONE : (uint32_t)cpu;
}

bool cpu_pin_shares_cpu(const struct cpu_pin *pin, pid_t tid)
{
	cpu_set_t theirs, both;

	if (sched_getaffinity(tid, sizeof(theirs), &theirs))
		return true;
	CPU_AND(&both, &theirs, &pin->usual);
	return CPU_COUNT(&both) > 0;
}

struct context_switches context_switches_read(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		return (struct context_switches){UINT64_MAX, UINT64_MAX};
	return (struct context_switches){
		.voluntary = (uint64_t)usage.ru_nvcsw,
		.involuntary = (uint64_t)usage.ru_nivcsw,
	};
}
