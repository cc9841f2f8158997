/* SPDX-License-Identifier: MIT */
#include "output/dump/thread_waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *thread_state_text(char state)
{
	switch (state) {
	case 'R':
		return "runs";
	case 'D':
		return "waits uninterruptibly";
	case 'T':
		return "is stopped";
	case 't':
		return "is stopped by a tracer";
	case 'Z':
	case 'X':
		return "has ended";
	default:
		return "waits";
	}
}

int thread_waiting_copy(struct thread_waiting *to, const struct thread_waiting *from)
{
	struct thread_waiting copy = *from;

	copy.text = from->text ? strdup(from->text) : NULL;
	copy.call = from->call ? strdup(from->call) : NULL;
	if ((from->text && !copy.text) || (from->call && !copy.call)) {
		thread_waiting_done(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

void thread_waiting_done(struct thread_waiting *waiting)
{
	free(waiting->text);
	free(waiting->call);
	*waiting = (struct thread_waiting){.text = NULL};
}

/* Returns the length of the text without the time at its end; 0 if there is none. */
static size_t lasting_bytes(const struct thread_waiting *waiting)
{
	return waiting->text ? strlen(waiting->text) - waiting->time_bytes : 0;
}

bool thread_waiting_equals(const struct thread_waiting *a, const struct thread_waiting *b)
{
	const size_t length = lasting_bytes(a);

	return length == lasting_bytes(b) &&
	       (length == 0 || memcmp(a->text, b->text, length) == 0) &&
	       a->holder_pid == b->holder_pid && a->holder_tid == b->holder_tid;
}

void thread_waiting_write(struct json *json, const struct thread_waiting *waiting)
{
	if (!waiting->text) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_member_string(json, "text", waiting->text);
	json_member_string(json, "system_call", waiting->call);
	json_key(json, "holder");
	if (waiting->holder_tid) {
		json_object_begin(json);
		json_key(json, "pid");
		json_i64(json, waiting->holder_pid);
		json_key(json, "tid");
		json_i64(json, waiting->holder_tid);
		json_object_end(json);
	} else {
		json_null(json);
	}
	json_object_end(json);
}
