/* SPDX-License-Identifier: MIT */
/*
 * The processes of a session that its root has started, and those that these have: each is sampled
 * from its fork, or from the start of its interpreter, until it ends. A process without CPython is
 * forgotten after one search, until it calls exec.
 */
#pragma once

#include "cmd/sampling/session.h"

/*
 * Begin to follow the descendants of the root. Must be called before the root is opened, and before
 * rights are dropped. Returns EXIT_OK, or another status with a message.
 */
enum exit_status session_children_open(struct session *session, struct message *reterr);

/*
 * Between ticks: follow what processes have begun and ended, and search new ones, and the root.
 * Sets *ret_next_ns to the time of the next search, UINT64_MAX if none is due, and *ret_is_over:
 * there is nothing more to sample. Returns 0, or an error that ends the run.
 */
int session_children_update(struct session *session, uint64_t now_ns, uint64_t *ret_next_ns,
			    bool *ret_is_over);

/* As session_process_ended(), for the child that has this sampler. */
int session_children_ended(struct session *session, const struct sampler *sampler,
			   enum sampler_end end, int err);

/* Tell a new sink of all children that the one before knew. Returns 0 or what the sink returned. */
int session_children_record(struct session *session);

/* Free all children, none of which may be in the group. */
void session_children_close(struct session *session);
