/* SPDX-License-Identifier: MIT */
#include "output/profile/profile_mode.h"

#include <string.h>

static const struct {
	const char *name;
	const char *time;
	const char *unit;
	uint32_t flags;	 /* required of a sample to be shown */
	uint32_t hidden; /* flags that hide a sample */
} modes[NR_PROFILE_MODES] = {
	[PROFILE_WALL] = {"wall", "wall time", "samples", 0, 0},
	[PROFILE_BUSY] = {"busy", "wall time of busy threads", "samples", 0, SAMPLE_IDLE},
	[PROFILE_CPU] = {"cpu", "CPU time", "microseconds", SAMPLE_ON_CPU, 0},
	[PROFILE_GIL] = {"gil", "wall time with the GIL", "samples", SAMPLE_HOLDS_GIL, 0},
	[PROFILE_EXCEPTION] = {"exception", "wall time handling exceptions", "samples",
			       SAMPLE_EXCEPTION, 0},
	[PROFILE_COUNT] = {"count", "threads of cores", "threads", 0, 0},
};

bool profile_mode_shows(enum profile_mode mode, uint32_t flags, uint64_t wall_ns, uint64_t cpu_ns,
			uint64_t *ret_ns)
{
	if ((flags & modes[mode].flags) != modes[mode].flags || (flags & modes[mode].hidden))
		return false;
	if (!profile_mode_is_time(mode))
		*ret_ns = 1;
	else
		*ret_ns = mode == PROFILE_CPU ? cpu_ns : wall_ns;
	return true;
}

const char *profile_mode_name(enum profile_mode mode)
{
	return modes[mode].name;
}

bool profile_mode_parse(const char *name, enum profile_mode *ret_mode)
{
	for (int mode = 0; mode < NR_PROFILE_MODES; mode++)
		if (strcmp(name, modes[mode].name) == 0) {
			*ret_mode = (enum profile_mode)mode;
			return true;
		}
	return false;
}

bool profile_mode_is_time(enum profile_mode mode)
{
	return mode != PROFILE_COUNT;
}

const char *profile_mode_time(enum profile_mode mode)
{
	return modes[mode].time;
}

const char *profile_mode_unit(enum profile_mode mode)
{
	return modes[mode].unit;
}
