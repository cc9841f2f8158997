/* SPDX-License-Identifier: MIT */
#include "symbols/jit_frames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "symbols/jit_sources.h"

struct jit_frames {
	struct jit_sources *sources;
	uint64_t time_ns; /* of what is asked for */
	uint64_t look_ns; /* of the last look; 0: there was none */
	uint64_t wait_ns; /* from there to the next one, if it is needed */
};

int jit_frames_create(const struct process *process, struct remote_memory *memory,
		      struct jit_frames **ret_frames)
{
	struct jit_frames *frames = calloc(1, sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	frames->wait_ns = JIT_FRAMES_MIN_WAIT_NS;
	frames->sources = jit_sources_create(process, memory);
	if (!frames->sources) {
		jit_frames_destroy(frames);
		return -ENOMEM;
	}
	*ret_frames = frames;
	return 0;
}

void jit_frames_destroy(struct jit_frames *frames)
{
	if (!frames)
		return;
	jit_sources_destroy(frames->sources);
	free(frames);
}

void jit_frames_set_time(struct jit_frames *frames, uint64_t time_ns)
{
	frames->time_ns = time_ns;
}

/* Stacks are not handed on in the order of their times. */
static bool is_due(const struct jit_frames *frames, uint64_t wait_ns)
{
	return !frames->look_ns ||
	       (frames->time_ns > frames->look_ns && frames->time_ns - frames->look_ns >= wait_ns);
}

/* What cannot be read now may be at the next look, or the process has ended. */
static void look(struct jit_frames *frames)
{
	(void)jit_sources_refresh(frames->sources, false);
	frames->look_ns = frames->time_ns;
}

/* Wait for the next look, after one that told what was asked, or did not. */
static void set_wait(struct jit_frames *frames, bool has_told)
{
	frames->wait_ns = has_told ? JIT_FRAMES_MIN_WAIT_NS : 2 * frames->wait_ns;
	if (frames->wait_ns > JIT_FRAMES_MAX_WAIT_NS)
		frames->wait_ns = JIT_FRAMES_MAX_WAIT_NS;
}

static const struct jit_code *find(const struct jit_frames *frames, remote_addr addr)
{
	return jit_map_find(jit_sources_map(frames->sources), addr, frames->time_ns);
}

const struct jit_code *jit_frames_find(struct jit_frames *frames, remote_addr addr)
{
	const struct jit_code *code = find(frames, addr);

	if (!is_due(frames, code ? JIT_FRAMES_MAX_WAIT_NS : frames->wait_ns))
		return code;
	look(frames);
	code = find(frames, addr);
	set_wait(frames, code != NULL);
	return code;
}
