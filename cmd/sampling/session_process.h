/* SPDX-License-Identifier: MIT */
/*
 * One process of a session: its interpreter is searched for, sampled, and searched for again when
 * it was replaced. Nothing here waits. Errors end the run; what concerns this process alone is in
 * its course.
 */
#pragma once

#include "cmd/sampling/session.h"

/*
 * Count a process of the tree that cannot be sampled, and keep why. With --verbose it is printed
 * at once.
 */
void session_process_refuse(struct session *session, pid_t pid, const struct message *why);

/* Tell the sink of the process. Returns 0 or what the sink returned. */
int session_process_record(struct session *session, struct session_process *process);

/*
 * Create the sampler of the interpreter that was found, and check that it can do what the options
 * request. Returns EXIT_OK, or another status with a message.
 */
enum exit_status session_process_prepare(struct session *session, struct session_process *process,
					 struct message *reterr);

/*
 * Add its sampler to the group, with another engine if this one cannot reach the process. If none
 * can, the process is not sampled, and its course says why. Returns 0; -ENOMEM or an error of
 * engine_open() or interrupts_enable().
 */
int session_process_begin(struct session *session, struct session_process *process);

/*
 * Its sampler has left the group: count, and continue with another engine or a search for the next
 * program, unless the run is over. Returns 0, or an error that ends the run.
 */
int session_process_ended(struct session *session, struct session_process *process,
			  enum sampler_end end, int err);

/*
 * A process that was forked by parent, which may be NULL, at forked_ns: begin to sample it with the
 * parent's interpreter, or else to search it for wait. Returns 0, or an error that ends the run.
 */
int session_process_fork(struct session *session, struct session_process *process,
			 const struct session_process *parent, uint64_t forked_ns,
			 const struct target_wait *wait);

/*
 * If it is time for a look of a search, look, and begin to sample what was found. The row of a
 * process that is no longer sampled ends. Returns 0, or an error that ends the run.
 */
int session_process_search(struct session *session, struct session_process *process,
			   uint64_t now_ns);

/*
 * A process of the tree has executed another program at time_ns, which is another process to those
 * who read the profile: search that. Returns 0, or an error that ends the run.
 */
int session_process_executed(struct session *session, struct session_process *process,
			     uint64_t time_ns);

/*
 * A process of the tree has ended at time_ns. Its row ends, and what its last samples fail by
 * concerns no one else. Returns 0, or an error that ends the run.
 */
int session_process_exited(struct session *session, struct session_process *process,
			   uint64_t time_ns);

/* Free what the process uses. It must not be in the group. */
void session_process_close(struct session_process *process);
