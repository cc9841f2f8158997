/* SPDX-License-Identifier: MIT */
/*
 * The loop of a run: wakes up for the ticks of any number of samplers, one for each interpreter
 * that is studied. Samplers may be added and end at any time. All of them run in the calling
 * thread and feed one sink, one after another, so neither needs a lock.
 *
 * A sampler that holds its target's CPU (preempt.h) wakes up at times of its own. Those that need
 * no CPU tick together, so that many processes cost no more wake-ups than one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sampler.h"

struct sampler_group;

/* What the owner of a group decides. context is the one of sampler_group_create(). */
struct sampler_group_ops {
	/*
	 * A sampler has ended, or failed with the error err (else 0), and has left the group. It
	 * may be destroyed. end is as for sampler_run(). Returns 0, or a negative errno that ends
	 * the run.
	 */
	int (*ended)(void *context, struct sampler *sampler, enum sampler_end end, int err);

	/*
	 * Called before each sleep: a chance to add and remove samplers. *ret_next_ns: when it must
	 * be called again at the latest; UINT64_MAX: no need. *ret_is_over: no sampler will be
	 * added any more, which ends the run once there is none. Returns 0 or a negative errno
	 * that ends the run. May be NULL: nothing is ever added.
	 */
	int (*before_sleep)(void *context, uint64_t now_ns, uint64_t *ret_next_ns,
			    bool *ret_is_over);
};

/*
 * Create a group without samplers. ops, sink and *limits.stop are borrowed until
 * sampler_group_destroy(), which accepts NULL. All calls must come from the thread that creates it.
 * Returns 0; -ENOMEM or the errno of epoll_create1().
 */
int sampler_group_create(const struct sampler_limits *limits, const struct sampler_group_ops *ops,
			 void *context, struct sample_sink *sink, struct sampler_group **ret_group);
void sampler_group_destroy(struct sampler_group *group);

/*
 * Add a sampler, whose first tick is due at once. The sampler is borrowed until it has ended or was
 * removed. Returns 0; or it was not added: -ENOTSUP, with END_NO_SHARED_CPU or END_REAL_TIME in
 * *ret_end; -ENOMEM or an error of interrupts_enable().
 */
int sampler_group_add(struct sampler_group *group, struct sampler *sampler,
		      const struct sampler_options *options, enum sampler_end *ret_end);

/*
 * End a sampler, unless it has ended: its last records become samples. ended() is not called.
 * Returns 0 or what the sink returned.
 */
int sampler_group_remove(struct sampler_group *group, const struct sampler *sampler,
			 enum sampler_end end);

/* End sleeps early when descriptor fd becomes readable. Returns 0 or the errno of epoll_ctl(). */
int sampler_group_watch(struct sampler_group *group, int fd);

/* The time of all pauses so far. */
uint64_t sampler_group_paused_ns(const struct sampler_group *group);

/*
 * Sample until the limits, or until no sampler is left and none will be added. Calls ended() for
 * those that are left. Returns 0 and *ret_end:
 * END_DURATION, END_STOPPED, or END_TARGET (none is left); -ENOMEM; what the sink or the ops
 * returned.
 */
int sampler_group_run(struct sampler_group *group, enum sampler_end *ret_end);
