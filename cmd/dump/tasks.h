/* SPDX-License-Identifier: MIT */
/* The tasks of asyncio for a dump, of a process or a core file. */
#pragma once

#include "output/dump/dump.h"
#include "procmem/maps.h"
#include "sampler/sampler.h"

/*
 * Pass the tasks of a sampler to sink, after sampler_dump(), and have dump show them; sink passes
 * them on to dump. A version whose tasks are unknown has none. Returns 0 or an error of
 * sampler_dump_tasks().
 */
int tasks_dump(struct sampler *sampler, const struct maps *maps, struct sample_sink *sink,
	       struct dump *dump);
