/* SPDX-License-Identifier: MIT */
/* What a picture is drawn of. Data only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/live/live.h"
#include "output/live/live_figures.h"
#include "output/run/run.h"
#include "output/source/source_lines.h"

/* What there is to show. Everything is borrowed. */
struct picture {
	const struct run *run; /* since the start or the last reset */
	const struct live *live;
	const struct live_figures *figures; /* arranged by the view */
	const struct live_detail *detail;   /* of the selected row; NULL: none */
	struct source_lines *sources;	    /* NULL: no source may be shown */
	const char *name;		    /* of the process; not escaped */
	const char *message;		    /* "": none */
	double cpu_share;		    /* as in struct live_context */
	unsigned nr_cpus;		    /* of the machine: the end of the CPU meter */
	uint64_t elapsed_ns;		    /* since the start or the last reset */
	bool of_tree;			    /* with all that the process starts */
	bool is_paused, has_ended;
};
