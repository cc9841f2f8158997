/* SPDX-License-Identifier: MIT */
/* The tasks of asyncio for a dump, of a process or a core file. */
#pragma once

#include "output/dump/dump.h"
#include "procmem/maps.h"
#include "sampler/sampler.h"

/*
 * Have the tasks of a sampler, behind sampler_dump(), come to sink, which hands them on to dump,
 * and dump tell of them; a version that tells of none has none. 0, or an error of
 * sampler_dump_tasks().
 */
int tasks_dump(struct sampler *sampler, const struct maps *maps, struct sample_sink *sink,
	       struct dump *dump);
