/* SPDX-License-Identifier: MIT */
#include "sampler/preempt.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "procmem/clock.h"
#include "sampler/sample.h"

/* A CPU where no thread was found for this many looks is no longer held. */
enum { FOLLOWED_LOOKS = 64 };

/*
 * The sampler is pinned to another CPU once this many looks in a row found a thread there. Until
 * then a guard holds that CPU.
 */
enum { MOVING_LOOKS = 4 };

/* A guard that is later than this stays away. The sampler waits this long for one. */
#define GUARD_LATE_NS 300000u
#define GUARD_WAIT_NS 100000u

/* The state of a guard. */
enum guard_state { GUARD_AWAY, GUARD_HERE, GUARD_STAYED, GUARD_LEFT, NR_GUARD_STATES };

/* state_of() masks requests. */
_Static_assert((NR_GUARD_STATES & (NR_GUARD_STATES - 1)) == 0, "a power of two");

struct guard {
	pthread_t thread;
	bool has_thread;
	cpu_set_t usual; /* the CPUs it may use: a new thread inherits its creator's affinity */
	/* For the next look; used by the calling thread only: */
	bool is_armed;
	bool is_due;   /* the look has begun */
	bool was_here; /* it was in place when the look began */
	/* Written by the calling thread only, which may read them directly: */
	_Atomic uint64_t look_ns; /* expected duration of a look, for its slice */
	_Atomic uint32_t cpu;
	_Atomic uint64_t deadline_ns; /* start of the look */
	_Atomic uint32_t request;     /* increased for each look that needs it; a futex */
	_Atomic uint32_t released;    /* the last request whose look is over */
	_Atomic bool ends;
	/* Written by the guard: */
	_Atomic uint32_t answer; /* request * NR_GUARD_STATES + enum guard_state */
};

struct preempt {
	struct cpu_pin pin;
	uint32_t cpu;			  /* the sampler is pinned to it; CPU_NONE: any */
	uint64_t next_ns;		  /* time of the next look; 0: unknown */
	struct context_switches switches; /* at the beginning of the look */
	uint64_t held_ns;		  /* when the look began to read */
	uint64_t long_ns;		  /* upper bound of nearly all recent looks */
	uint32_t here;			  /* the CPU at the beginning of the look */
	struct guard guards[MAX_GUARDS];
};

/* Guards. */

/* Sleep while the word has this value, until time_ns (UINT64_MAX: no limit). */
static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t time_ns)
{
	const struct timespec until = timespec_of(time_ns);

	(void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
		      time_ns == UINT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Whether the look of that request is over or cancelled. */
static bool is_released(const struct guard *guard, uint32_t request)
{
	return (int32_t)(atomic_load(&guard->released) - request) >= 0;
}

/* Hold the guard's CPU from now until the look is over. */
static void hold_cpu(struct guard *guard, uint32_t request)
{
	const struct context_switches before = context_switches_read();
	const uint64_t late_ns = atomic_load(&guard->deadline_ns) + GUARD_LATE_NS;
	struct context_switches after;
	bool stayed;

	if (is_released(guard, request) || cpu_current() != atomic_load(&guard->cpu) ||
	    clock_now_ns() > late_ns)
		return;
	atomic_store(&guard->answer, request * NR_GUARD_STATES + GUARD_HERE);
	while (!is_released(guard, request)) {
		pause_cpu();
		if (clock_now_ns() > late_ns)
			break;
	}
	stayed = is_released(guard, request);
	after = context_switches_read();
	stayed = stayed && cpu_has_stayed(before, after);
	atomic_store(&guard->answer,
		     request * NR_GUARD_STATES + (stayed ? GUARD_STAYED : GUARD_LEFT));
}

static void *run_guard(void *argument)
{
	struct guard *guard = argument;
	struct cpu_pin pin = {.is_open = false};
	uint32_t request = 0;
	uint64_t time_ns;

	if (cpu_pin_open(&pin))
		return NULL;
	pin.usual = guard->usual;
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	while (!atomic_load(&guard->ends)) {
		if (atomic_load(&guard->request) == request) {
			futex_wait(&guard->request, request, UINT64_MAX);
			continue;
		}
		request = atomic_load(&guard->request);
		if (cpu_pin_move(&pin, atomic_load(&guard->cpu)))
			continue;
		cpu_pin_fit_slice(&pin, atomic_load(&guard->look_ns));
		/* Until the look of this request, or until a new request. */
		time_ns = atomic_load(&guard->deadline_ns);
		while (atomic_load(&guard->request) == request && clock_now_ns() < time_ns)
			futex_wait(&guard->request, request, time_ns);
		hold_cpu(guard, request);
	}
	return NULL;
}

/* Start the guard's thread, with all signals blocked. */
static bool start_guard(struct guard *guard, const cpu_set_t *usual)
{
	sigset_t all, before;

	if (guard->has_thread)
		return true;
	guard->usual = *usual;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	guard->has_thread = pthread_create(&guard->thread, NULL, run_guard, guard) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return guard->has_thread;
}

/* Request that a guard, which is awake or will be woken, be on a CPU at a time. */
static void request_guard(struct guard *guard, uint32_t cpu, uint64_t deadline_ns, uint64_t look_ns)
{
	guard->is_armed = true;
	atomic_store(&guard->cpu, cpu);
	atomic_store(&guard->deadline_ns, deadline_ns);
	atomic_store(&guard->look_ns, look_ns);
	atomic_fetch_add(&guard->request, 1);
}

static enum guard_state state_of(struct guard *guard, uint32_t request)
{
	const uint32_t answer = atomic_load(&guard->answer);

	return answer / NR_GUARD_STATES == (request & UINT32_MAX / NR_GUARD_STATES)
		       ? (enum guard_state)(answer % NR_GUARD_STATES)
		       : GUARD_AWAY;
}

/* Wait for a guard to leave a state of that request, until until_ns. */
static enum guard_state await_guard(struct guard *guard, uint32_t request, enum guard_state state,
				    uint64_t until_ns)
{
	while (state_of(guard, request) == state && clock_now_ns() < until_ns)
		pause_cpu();
	return state_of(guard, request);
}

/* The guard's look is over or cancelled. */
static void release_guard(struct guard *guard)
{
	atomic_store(&guard->released, guard->request);
	guard->is_armed = false;
}

/* Creation. */

int preempt_create(struct preempt **ret_preempt)
{
	struct preempt *preempt = calloc(1, sizeof(*preempt));
	int err;

	if (!preempt)
		return -ENOMEM;
	preempt->cpu = CPU_NONE;
	err = cpu_pin_open(&preempt->pin);
	if (err) {
		free(preempt);
		return err;
	}
	cpu_pin_fit_slice(&preempt->pin, 0);
	*ret_preempt = preempt;
	return 0;
}

void preempt_destroy(struct preempt *preempt)
{
	if (!preempt)
		return;
	for (uint32_t i = 0; i < MAX_GUARDS; i++) {
		struct guard *guard = &preempt->guards[i];

		release_guard(guard);
		atomic_store(&guard->ends, true);
		atomic_fetch_add(&guard->request, 1);
		futex_wake(&guard->request);
	}
	/* No guard spins while another one is joined. */
	for (uint32_t i = 0; i < MAX_GUARDS; i++)
		if (preempt->guards[i].has_thread)
			(void)pthread_join(preempt->guards[i].thread, NULL);
	cpu_pin_close(&preempt->pin);
	free(preempt);
}

/* The index of a followed CPU; followed->nr: it is not followed. */
static uint32_t find_followed(const struct followed_cpus *followed, uint32_t cpu)
{
	uint32_t i = 0;

	while (i < followed->nr && followed->cpus[i].cpu != cpu)
		i++;
	return i;
}

bool preempt_follow(const struct preempt *preempt, struct followed_cpus *followed, uint32_t cpu)
{
	uint32_t i;

	if (cpu == CPU_NONE)
		return true;
	if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &preempt->pin.usual))
		return false;
	i = find_followed(followed, cpu);
	/* No thread was there lately: the target has moved. */
	if (i == followed->nr)
		followed->nr_moved_looks = MOVING_LOOKS;
	/* Move the CPU to the front, and drop the last one if there is no room. */
	if (i == MAX_GUARDS + 1)
		i--;
	else if (i == followed->nr)
		followed->nr++;
	for (; i > 0; i--)
		followed->cpus[i] = followed->cpus[i - 1];
	followed->cpus[0] = (struct followed_cpu){.cpu = cpu, .found_look = followed->nr_looks};
	return true;
}

bool preempt_can_reach(const struct preempt *preempt, pid_t tid)
{
	return cpu_pin_shares_cpu(&preempt->pin, tid);
}

void preempt_move(struct preempt *preempt, struct followed_cpus *followed)
{
	const uint32_t pinned_cpu = followed->is_pinned ? followed->pinned_cpu : CPU_NONE;
	const uint32_t found_cpu = followed->nr ? followed->cpus[0].cpu : CPU_NONE;
	uint32_t nr = 0;

	/* Forget CPUs where no thread was found for long. */
	for (uint32_t i = 0; i < followed->nr; i++)
		if (!nr || followed->cpus[i].found_look + FOLLOWED_LOOKS >= followed->nr_looks)
			followed->cpus[nr++] = followed->cpus[i];
	followed->nr = nr;
	followed->nr_moved_looks = found_cpu == pinned_cpu ? 0 : followed->nr_moved_looks + 1;
	if (find_followed(followed, pinned_cpu) == followed->nr ||
	    followed->nr_moved_looks >= MOVING_LOOKS) {
		followed->is_pinned = found_cpu != CPU_NONE;
		followed->pinned_cpu = found_cpu;
		followed->nr_moved_looks = 0;
	}
	preempt->cpu = followed->is_pinned ? followed->pinned_cpu : CPU_NONE;
	(void)cpu_pin_move(&preempt->pin, preempt->cpu);
}

/*
 * The guard to arm for a CPU, among those that are not armed, preferably the one that was there
 * last. NULL: none is left, or the CPU has one.
 */
static struct guard *find_idle_guard(struct preempt *preempt, uint32_t cpu)
{
	struct guard *found = NULL;

	for (uint32_t i = 0; i < MAX_GUARDS; i++) {
		struct guard *guard = &preempt->guards[i];

		if (guard->is_armed && guard->cpu == cpu)
			return NULL;
		if (!guard->is_armed && (!found || (guard->has_thread && guard->cpu == cpu)))
			found = guard;
	}
	return found;
}

static void arm_guards(struct preempt *preempt, const struct followed_cpus *followed,
		       uint64_t deadline_ns)
{
	for (uint32_t i = 0; i < MAX_GUARDS; i++) {
		struct guard *guard = &preempt->guards[i];

		if (guard->is_armed &&
		    (guard->deadline_ns != deadline_ns || guard->cpu == preempt->cpu ||
		     find_followed(followed, guard->cpu) == followed->nr))
			release_guard(guard);
	}
	for (uint32_t i = 0; i < followed->nr; i++) {
		const uint32_t cpu = followed->cpus[i].cpu;
		struct guard *guard = find_idle_guard(preempt, cpu);

		if (!guard || cpu == preempt->cpu || !start_guard(guard, &preempt->pin.usual))
			continue;
		request_guard(guard, cpu, deadline_ns, preempt->long_ns);
		futex_wake(&guard->request);
	}
}

void preempt_aim(struct preempt *preempt, struct followed_cpus *followed, uint64_t time_ns)
{
	preempt_move(preempt, followed);
	arm_guards(preempt, followed, time_ns);
}

void preempt_set_next(struct preempt *preempt, uint64_t time_ns)
{
	preempt->next_ns = time_ns;
}

/* Looks. */

void preempt_hold(struct preempt *preempt, struct followed_cpus *followed, cpu_set_t *ret_held)
{
	const uint64_t now_ns = clock_now_ns();

	followed->nr_looks++;
	CPU_ZERO(ret_held);
	for (uint32_t i = 0; i < MAX_GUARDS; i++) {
		struct guard *guard = &preempt->guards[i];

		/* Guards wait for the first look of a tick only. */
		guard->is_due = guard->is_armed && guard->deadline_ns <= now_ns;
		guard->was_here = guard->is_due &&
				  await_guard(guard, guard->request, GUARD_AWAY,
					      guard->deadline_ns + GUARD_WAIT_NS) == GUARD_HERE;
		if (guard->was_here)
			CPU_SET(guard->cpu, ret_held);
	}
	preempt->switches = context_switches_read();
	preempt->here = cpu_current();
	if (preempt->here < CPU_SETSIZE)
		CPU_SET(preempt->here, ret_held);
	preempt->held_ns = clock_now_ns();
}

/* Release a guard that was to hold this look. Returns the request that it had. */
static uint32_t release_due_guard(const struct preempt *preempt, struct guard *guard)
{
	const uint32_t request = guard->request;

	if (!guard->is_due)
		return request;
	if (guard->was_here && preempt->next_ns > clock_now_ns() + GUARD_WAIT_NS)
		request_guard(guard, guard->cpu, preempt->next_ns, preempt->long_ns);
	else
		guard->is_armed = false;
	atomic_store(&guard->released, request);
	/* It may have given up during a long look, and sleep. */
	if (guard->is_armed && state_of(guard, request) != GUARD_HERE)
		futex_wake(&guard->request);
	return request;
}

bool preempt_release(struct preempt *preempt, cpu_set_t *ret_held)
{
	/*
	 * The slice settles where 3 of 100 looks are longer: those that a virtual machine's host
	 * interrupts.
	 */
	enum { MIN_LOOK_NS = 16000, SLICE_RISE_DIVISOR = 8, SLICE_FADE_DIVISOR = 256 };
	const uint64_t look_ns = clock_now_ns() - preempt->held_ns;
	uint32_t requests[MAX_GUARDS];
	struct context_switches now;

	CPU_ZERO(ret_held);
	for (uint32_t i = 0; i < MAX_GUARDS; i++)
		requests[i] = release_due_guard(preempt, &preempt->guards[i]);
	now = context_switches_read();
	for (uint32_t i = 0; i < MAX_GUARDS; i++) {
		struct guard *guard = &preempt->guards[i];

		if (guard->was_here && await_guard(guard, requests[i], GUARD_HERE,
						   clock_now_ns() + GUARD_WAIT_NS) == GUARD_STAYED)
			CPU_SET(guard->cpu, ret_held);
		guard->was_here = false;
	}
	if (cpu_has_stayed(preempt->switches, now) && preempt->here < CPU_SETSIZE)
		CPU_SET(preempt->here, ret_held);
	/*
	 * Adapt the slice to the duration of looks, so that it suffices for nearly all. A look
	 * that did not hold counts, too, as it may have needed a longer slice. The wait for
	 * guards does not count, since guards are late if slices are long.
	 */
	if (preempt->long_ns < look_ns)
		preempt->long_ns += preempt->long_ns / SLICE_RISE_DIVISOR;
	else
		preempt->long_ns -= preempt->long_ns / SLICE_FADE_DIVISOR;
	if (preempt->long_ns < MIN_LOOK_NS)
		preempt->long_ns = MIN_LOOK_NS;
	cpu_pin_fit_slice(&preempt->pin, preempt->long_ns);
	return now.voluntary != preempt->switches.voluntary;
}
