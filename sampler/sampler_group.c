/* SPDX-License-Identifier: MIT */
#include "sampler/sampler_group.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/clock.h"
#include "procmem/hash.h"
#include "sampler/sampler_interrupts.h"
#include "sampler/sampler_state.h"

/*
 * A target whose interpreter is missing for this long, and in this many ticks in a row, has
 * finalized it. At a low rate two ticks may be further apart than that.
 */
#define REPLACED_AFTER_NS 500000000u
enum { REPLACED_AFTER_FAILURES = 4 };

/* A tick that began in time is finished, unless it goes on for this long after the run's end. */
#define CUT_OFF_AFTER_NS 1000000000u

/* Limit on one sleep: how late a signal may be noticed. */
#define MAX_SLEEP_NS 100000000u

/* How long before a look its CPU must be chosen, so that the sampler sleeps there. */
#define AIM_NS 50000u

/*
 * In a group of several, a process of which nothing moved in this many ticks has fewer of them: one
 * in twice the interval, then in four times, …, at most in MAX_STILL_NS. Its samples weigh as much
 * more. The decision rests on the past alone, so no part of the program is favoured. The ticks of
 * all such processes come together.
 */
enum { STILL_TICKS = 8 };
#define MAX_STILL_NS 100000000u

/*
 * CPU time goes to the stack of the next sample. So a process is not still if it has used more than
 * this part of an interval between two ticks, although both found it at the same place.
 */
enum { STILL_CPU_DIVISOR = 4 };

/*
 * A new process has its first ticks, those of two intervals, at this multiple of the rate. Right
 * after a fork nothing can be proven yet, and one that ends soon should have samples. Ticks without
 * a sample, while the interpreter starts, are not counted.
 */
enum { NEW_FACTOR = 4, NEW_TICKS = 2 * NEW_FACTOR };

/* The place of no tick. */
#define NO_MEMBER UINT32_MAX

/* A sampler of the group. */
struct member {
	struct sampler *sampler; /* borrowed */
	struct ticker ticker;
	uint64_t seed;	     /* of its ticker, while its process does not stand still */
	uint64_t checked_ns; /* the deadline for which it was checked whether that holds a CPU */
	/* when the look for the next tick begins, if its deadline was too soon: wait_for_tick() */
	uint64_t aim_ns;
	double rate_hz;	       /* once its process is not new */
	unsigned int nr_close; /* ticks that are left until then */
	bool ends_when_too_deep;
	unsigned int nr_failures; /* ticks in a row that failed */
	uint64_t first_failure_ns;
	bool has_ended; /* it leaves the group before the next sleep */
	enum sampler_end end;
	int err;
};

struct sampler_group {
	struct sampler_limits limits;
	const struct sampler_group_ops *ops;
	void *context;
	struct sample_sink *sink;
	struct member *members;
	uint32_t nr_members, max_members;
	struct preempt *preempt; /* owned; NULL until a sampler needs it */
	bool has_no_preempt;	 /* its creation failed: no CPU can be held */
	int epoll_fd;		 /* what ends sleeps */
	bool is_watching;	 /* there is something in it */
	bool was_watched;	 /* the last sleep was ended by what the owner watches */
	uint64_t origin_ns;	 /* of all ticks; 0: nothing was added yet */
	uint64_t end_ns;	 /* of the run */
	bool is_paused;
	uint64_t pause_ns;  /* when the pause began */
	uint64_t paused_ns; /* the sum of those that are over */
};

int sampler_group_create(const struct sampler_limits *limits, const struct sampler_group_ops *ops,
			 void *context, struct sample_sink *sink, struct sampler_group **ret_group)
{
	struct sampler_group *group = calloc(1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	*group = (struct sampler_group){
		.limits = *limits,
		.ops = ops,
		.context = context,
		.sink = sink,
		.end_ns = UINT64_MAX,
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	};
	if (group->epoll_fd < 0) {
		const int err = -errno;

		free(group);
		return err;
	}
	/* The default slack of 50 µs would delay every tick at 10 kHz by half of it. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	*ret_group = group;
	return 0;
}

void sampler_group_destroy(struct sampler_group *group)
{
	if (!group)
		return;
	preempt_destroy(group->preempt);
	(void)close(group->epoll_fd);
	free(group->members);
	free(group);
}

/* What a descriptor in the epoll set is. */
enum { WATCHED_RING, WATCHED_BY_OWNER };

static int watch(struct sampler_group *group, int fd, uint32_t events, uint32_t kind)
{
	struct epoll_event event = {.events = events, .data.u32 = kind};

	if (epoll_ctl(group->epoll_fd, EPOLL_CTL_ADD, fd, &event) && errno != EEXIST)
		return -errno;
	group->is_watching = true;
	return 0;
}

int sampler_group_watch(struct sampler_group *group, int fd)
{
	return watch(group, fd, EPOLLIN, WATCHED_BY_OWNER);
}

/* Create what holds CPUs. Returns 0, also if none can be held, or -ENOMEM. */
static int open_preempt(struct sampler_group *group)
{
	int err;

	if (group->preempt || group->has_no_preempt)
		return 0;
	err = preempt_create(&group->preempt);
	group->has_no_preempt = err != 0;
	return err == -ENOMEM ? err : 0;
}

/* Whether the sampler's looks hold CPUs. */
static bool holds_cpus(const struct member *member)
{
	return member->sampler->snapshot.instant.preempt != NULL;
}

/* Whether the next look must: the process may have run since the last one. */
static bool needs_cpus(const struct member *member)
{
	return holds_cpus(member) && !member->sampler->standstill.is_proven;
}

/*
 * Whether a process that stood still has to be checked shortly before its next tick: if it has
 * begun to run, the tick needs its CPU.
 */
static bool needs_check(const struct member *member)
{
	return holds_cpus(member) && member->sampler->standstill.is_proven &&
	       member->checked_ns != member->ticker.deadline_ns;
}

/* The duration begins at begin_ns. */
static void set_end(struct sampler_group *group, uint64_t begin_ns)
{
	if (group->limits.duration_ns)
		group->end_ns = begin_ns + group->limits.duration_ns;
}

int sampler_group_add(struct sampler_group *group, struct sampler *sampler,
		      const struct sampler_options *options, enum sampler_end *ret_end)
{
	const bool is_dead = sampler->snapshot.instant.is_dead;
	struct member *members = array_reserve(group->members, group->nr_members + 1,
					       &group->max_members, sizeof(*members));
	struct member member = {
		.sampler = sampler,
		.rate_hz = options->rate_hz,
		.nr_close = options->is_new ? NEW_TICKS : 0,
		.ends_when_too_deep = options->ends_when_too_deep,
	};
	uint64_t now_ns;
	int err = 0;

	if (!members)
		return -ENOMEM;
	group->members = members;
	if (options->engine == ENGINE_PREEMPT && !is_dead)
		err = open_preempt(group);
	if (!err && sampler->interrupts)
		err = watch(group,
			    interrupts_wake_fd(sampler_interrupts_program(sampler->interrupts)),
			    EPOLLIN | EPOLLET, WATCHED_RING);
	if (!err)
		err = sampler_begin(sampler, options->engine, group->preempt, group->sink,
				    !group->nr_members, ret_end);
	if (err)
		return err;
	now_ns = clock_now_ns();
	if (!group->origin_ns) {
		group->origin_ns = now_ns;
		set_end(group, now_ns);
	}
	member.seed = holds_cpus(&member) ? now_ns * HASH_GOLDEN_RATIO : group->origin_ns;
	ticker_start(&member.ticker, options->rate_hz * (options->is_new ? NEW_FACTOR : 1),
		     member.seed, group->origin_ns, now_ns, &sampler->stats);
	sampler->stats.start_ns = now_ns;
	sampler->snapshot.stop = group->limits.stop;
	if (group->end_ns != UINT64_MAX)
		sampler->tick.cut_ns = group->end_ns + CUT_OFF_AFTER_NS;
	group->members[group->nr_members++] = member;
	return 0;
}

/* Take a sampler out of the group. Returns 0 or what the sink returned for its last samples. */
static int remove_member(struct sampler_group *group, uint32_t index, enum sampler_end end)
{
	struct member member = group->members[index];

	group->members[index] = group->members[--group->nr_members];
	return sampler_finish(member.sampler, group->sink, &member.ticker, group->end_ns, end);
}

int sampler_group_remove(struct sampler_group *group, const struct sampler *sampler,
			 enum sampler_end end)
{
	for (uint32_t i = 0; i < group->nr_members; i++)
		if (group->members[i].sampler == sampler)
			return remove_member(group, i, end);
	return 0;
}

/* Tell the owner which samplers have ended. Returns 0 or its error. */
static int remove_ended(struct sampler_group *group)
{
	int err = 0;

	for (uint32_t i = group->nr_members; !err && i-- > 0;) {
		const struct member member = group->members[i];
		int finish_err;

		if (!member.has_ended)
			continue;
		finish_err = remove_member(group, i, member.end);
		err = group->ops->ended(group->context, member.sampler, member.end,
					member.err ? member.err : finish_err);
	}
	return err;
}

/* When a sampler has to be woken for its next tick, or to be checked before it. */
static uint64_t wake_of(const struct member *member)
{
	const uint64_t deadline_ns = member->ticker.deadline_ns;

	if (needs_check(member))
		return deadline_ns > AIM_NS ? deadline_ns - AIM_NS : 0;
	return member->aim_ns > deadline_ns ? member->aim_ns : deadline_ns;
}

/* Whether one has to be woken before the other. Of two at once, one that needs CPUs comes first. */
static bool is_before(const struct member *one, const struct member *other)
{
	const uint64_t wake_ns = wake_of(one), other_ns = wake_of(other);

	return wake_ns < other_ns || (wake_ns == other_ns && needs_cpus(one) && !needs_cpus(other));
}

/* The sampler that has to be woken next; NO_MEMBER: there is none. */
static uint32_t find_next(const struct sampler_group *group)
{
	uint32_t next = NO_MEMBER;

	for (uint32_t i = 0; i < group->nr_members; i++)
		if (next == NO_MEMBER || is_before(&group->members[i], &group->members[next]))
			next = i;
	return next;
}

/* Check the processes of which it is time, whether they still stand still. */
static void check_still(struct sampler_group *group)
{
	const uint64_t now_ns = clock_now_ns();

	for (uint32_t i = 0; i < group->nr_members; i++) {
		struct member *member = &group->members[i];

		if (!needs_check(member) || now_ns < wake_of(member))
			continue;
		member->checked_ns = member->ticker.deadline_ns;
		(void)sampler_stands_still(member->sampler);
	}
}

/* Sleep until a time, or until something that is watched becomes readable. */
static void sleep_until(struct sampler_group *group, struct sampler *only, uint64_t time_ns)
{
	const uint64_t now_ns = clock_now_ns();
	const struct timespec left = timespec_of(time_ns > now_ns ? time_ns - now_ns : 0);
	struct epoll_event event;
	int nr = -1;

	/* Copies of stacks wake us, which cannot be watched from elsewhere. */
	if (only && only->native && !only->interrupts &&
	    sampler_native_sleep_until(only->native, time_ns))
		return;
	group->was_watched = false;
	/* An edge: records that are there already must not wake us. */
	if (group->is_watching)
		nr = epoll_pwait2(group->epoll_fd, &event, 1, &left, NULL);
	/* A seccomp filter may reject that call: then nothing ends a sleep. */
	if (nr < 0 && (!group->is_watching || errno != EINTR))
		clock_sleep_until(time_ns);
	group->was_watched = nr > 0 && event.data.u32 == WATCHED_BY_OWNER;
}

/*
 * Sleep until the next tick is due or until_ns, but at most MAX_SLEEP_NS, so that a signal that
 * arrived just before is noticed. Returns the index of the sampler whose look was prepared, or
 * NO_MEMBER.
 */
static uint32_t wait_for_tick(struct sampler_group *group, uint64_t until_ns)
{
	const uint64_t now_ns = clock_now_ns();
	const uint32_t next = find_next(group);
	struct member *member = next == NO_MEMBER ? NULL : &group->members[next];
	uint64_t wake_ns = now_ns + MAX_SLEEP_NS;
	bool is_aimed;

	if (wake_ns > until_ns)
		wake_ns = until_ns;
	/*
	 * Another sampler's look may have taken the time in which to choose the CPU. Once chosen,
	 * the time stays, however often something else wakes us before it.
	 */
	if (member && needs_cpus(member) && group->nr_members > 1 &&
	    member->ticker.deadline_ns < now_ns + AIM_NS &&
	    member->aim_ns < member->ticker.deadline_ns)
		member->aim_ns = now_ns + AIM_NS;
	is_aimed = member && wake_of(member) <= wake_ns;
	if (is_aimed)
		wake_ns = wake_of(member);
	if (member && holds_cpus(member) && member->sampler->native)
		preempt_move(group->preempt, &member->sampler->snapshot.instant.followed);
	else if (is_aimed && needs_cpus(member) && wake_ns > now_ns)
		preempt_aim(group->preempt, &member->sampler->snapshot.instant.followed, wake_ns);
	if (wake_ns > now_ns) {
		if (member)
			member->sampler->stats.other_syscalls++;
		sleep_until(group, group->nr_members == 1 ? group->members[0].sampler : NULL,
			    wake_ns);
	}
	if (member && needs_check(member)) {
		check_still(group);
		return NO_MEMBER;
	}
	return is_aimed ? next : NO_MEMBER;
}

/* After a failed tick, or another error: whether the sampler ends, and why. */
static void judge_error(struct member *member, uint64_t now_ns, bool was_tick, int err)
{
	struct sampler *sampler = member->sampler;

	sampler->stats.failed_ticks += was_tick;
	/* The target is gone: another program can be read in its place, or none. */
	if (err == -ESRCH) {
		uint64_t word;

		err = remote_memory_read_u64(sampler->snapshot.memory,
					     sampler->snapshot.runtime_addr, &word);
		member->end = err == -ESRCH ? END_TARGET : END_REPLACED;
		member->has_ended = true;
		return;
	}
	if (!sampler_is_transient(err)) {
		member->err = err;
		member->has_ended = true;
		return;
	}
	if (!member->nr_failures++)
		member->first_failure_ns = now_ns;
	if (member->nr_failures >= REPLACED_AFTER_FAILURES &&
	    now_ns - member->first_failure_ns > REPLACED_AFTER_NS) {
		member->end = END_REPLACED;
		member->has_ended = true;
	}
}

/* Postpone the next tick of a sampler in whose process nothing moves. */
static void postpone_still(const struct sampler_group *group, struct member *member,
			   uint64_t now_ns)
{
	struct sampler *sampler = member->sampler;
	struct ticker *ticker = &member->ticker;
	uint64_t span_ns = ticker->interval_ns;
	uint32_t nr_doublings;

	ticker->seed = member->seed;
	if (sampler->tick.used_ns > span_ns / STILL_CPU_DIVISOR)
		sampler->tick.nr_still = 0;
	nr_doublings = sampler->tick.nr_still / STILL_TICKS;
	if (group->nr_members == 1 || !nr_doublings)
		return;
	sampler_note_standstill(sampler);
	for (uint32_t i = 0; i < nr_doublings && span_ns * 2 <= MAX_STILL_NS; i++)
		span_ns *= 2;
	if (span_ns == ticker->interval_ns)
		return;
	ticker->seed = group->origin_ns;
	sampler->stats.ticks +=
		ticker_postpone(ticker, ticker_time_in_span(ticker, now_ns, span_ns));
}

/* Take a sampler's tick if it is due, or what cannot wait for it. */
static void wake_member(struct sampler_group *group, struct member *member, uint64_t now_ns,
			bool is_due)
{
	struct sampler *sampler = member->sampler;
	struct sampler_stats *stats = &sampler->stats;
	const uint64_t nr_ticks = stats->ticks, nr_samples = stats->samples;
	int err;

	err = sampler_wake(sampler, group->sink, &member->ticker, now_ns, is_due);
	if (!sampler->pause.is_on)
		stats->active_ns = now_ns - stats->start_ns - sampler->pause.sum_ns;
	if (member->ends_when_too_deep && sampler->interrupts && stats->lost[LOSS_TOO_DEEP]) {
		member->end = END_TOO_DEEP;
		member->has_ended = true;
	} else if (err) {
		judge_error(member, now_ns, is_due && stats->ticks == nr_ticks, err);
	} else if (is_due) {
		member->nr_failures = 0;
		postpone_still(group, member, now_ns);
	}
	if (is_due && stats->samples > nr_samples && member->nr_close && !--member->nr_close)
		ticker_set_rate(&member->ticker, member->rate_hz, now_ns);
}

/* Whether a sampler's tick is due and taken. */
static bool take_tick(const struct sampler_group *group, struct member *member, uint64_t now_ns)
{
	const uint64_t wake_ns = wake_of(member);

	if (needs_check(member) || now_ns < wake_ns ||
	    !ticker_take(&member->ticker, now_ns, group->end_ns))
		return false;
	/* That another sampler was busy says nothing about this target. */
	member->sampler->tick.late_ns = now_ns - wake_ns;
	return true;
}

/* Take all ticks that are due; aimed is what wait_for_tick() returned. */
static void take_ticks(struct sampler_group *group, uint32_t aimed, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	bool is_due = false;

	if (aimed != NO_MEMBER)
		is_due = take_tick(group, &group->members[aimed], now_ns);
	for (uint32_t i = 0; i < group->nr_members; i++)
		if (needs_cpus(&group->members[i]) &&
		    group->members[i].ticker.deadline_ns < next_ns)
			next_ns = group->members[i].ticker.deadline_ns;
	if (is_due && group->preempt)
		preempt_set_next(group->preempt, next_ns);
	if (aimed != NO_MEMBER)
		wake_member(group, &group->members[aimed], now_ns, is_due);
	for (uint32_t i = 0; i < group->nr_members; i++) {
		struct member *member = &group->members[i];

		if (i == aimed)
			continue;
		/* A look that holds CPUs waits for its own wake-up there. */
		is_due = !needs_cpus(member) && take_tick(group, member, now_ns);
		if (is_due || !group->was_watched)
			wake_member(group, member, now_ns, is_due);
	}
}

/* Begin or end a pause if that is requested. */
static void update_pause(struct sampler_group *group)
{
	const bool is_wanted = group->limits.pause && *group->limits.pause;

	for (uint32_t i = 0; i < group->nr_members; i++) {
		struct member *member = &group->members[i];
		const int err = sampler_pause_update(member->sampler, is_wanted, &member->ticker);

		if (err && !member->has_ended)
			judge_error(member, clock_now_ns(), false, err);
	}
	if (is_wanted == group->is_paused)
		return;
	if (is_wanted)
		group->pause_ns = clock_now_ns();
	else
		group->paused_ns += clock_now_ns() - group->pause_ns;
	group->is_paused = is_wanted;
}

uint64_t sampler_group_paused_ns(const struct sampler_group *group)
{
	return group->paused_ns + (group->is_paused ? clock_now_ns() - group->pause_ns : 0);
}

/* The loop of sampler_group_run(). */
static int run_loop(struct sampler_group *group, enum sampler_end *ret_end)
{
	for (;;) {
		uint64_t next_ns = UINT64_MAX;
		bool is_over = true;
		int err = remove_ended(group);
		uint32_t aimed;
		uint64_t now_ns;

		if (!err && group->ops->before_sleep)
			err = group->ops->before_sleep(group->context, clock_now_ns(), &next_ns,
						       &is_over);
		if (err)
			return err;
		*ret_end = END_TARGET;
		if (!group->nr_members && is_over)
			return 0;
		update_pause(group);
		aimed = wait_for_tick(group, next_ns < group->end_ns ? next_ns : group->end_ns);
		now_ns = clock_now_ns();
		*ret_end = END_STOPPED;
		if (group->limits.stop && *group->limits.stop)
			return 0;
		*ret_end = END_DURATION;
		if (now_ns >= group->end_ns)
			return 0;
		take_ticks(group, aimed, now_ns);
		err = group->sink->ops->tick ? group->sink->ops->tick(group->sink, now_ns) : 0;
		if (err)
			return err;
	}
}

int sampler_group_run(struct sampler_group *group, enum sampler_end *ret_end)
{
	int err;

	if (!group->origin_ns)
		set_end(group, clock_now_ns());
	err = run_loop(group, ret_end);

	while (group->nr_members) {
		struct sampler *sampler = group->members[group->nr_members - 1].sampler;
		const int end_err = remove_member(group, group->nr_members - 1, *ret_end);
		const int owner_err = group->ops->ended(group->context, sampler, *ret_end, end_err);

		err = err ? err : owner_err;
	}
	return err;
}

/* A group of one. */
struct single_run {
	enum sampler_end end;
};

static int keep_end(void *context, struct sampler *sampler, enum sampler_end end, int err)
{
	struct single_run *single = context;

	(void)sampler;
	single->end = end;
	return err;
}

int sampler_run(struct sampler *sampler, const struct sampler_options *options,
		const struct sampler_limits *limits, struct sample_sink *sink,
		enum sampler_end *ret_end)
{
	static const struct sampler_group_ops ops = {.ended = keep_end};
	struct single_run single = {.end = END_STOPPED};
	struct sampler_group *group = NULL;
	int err = sampler_group_create(limits, &ops, &single, sink, &group);

	if (group)
		err = sampler_group_add(group, sampler, options, &single.end);
	if (group && !err)
		err = sampler_group_run(group, ret_end);
	*ret_end = single.end;
	if (err == -ENOTSUP)
		err = 0;
	sampler_group_destroy(group);
	return err;
}
