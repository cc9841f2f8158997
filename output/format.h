/* SPDX-License-Identifier: MIT */
/* The table of output formats. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "output/artefact.h"

enum { FORMAT_MAX_SUFFIXES = 4 };

struct format {
	const char *name;			   /* as on the command line; stable */
	const char *suffixes[FORMAT_MAX_SUFFIXES]; /* of file names; the rest is NULL */
	const char *prefix;			   /* of file names, if no suffix fits; or NULL */
	const char *summary;			   /* a few words for --help */
	bool by_line;	   /* needs a row per line, whatever the options say */
	bool keep_samples; /* needs each sample, not only the sums */
	bool compares;	   /* can show a base */
	bool needs_time;   /* shows when samples were taken, so not for PROFILE_COUNT */
	/*
	 * Write and flush. Returns 0, -ENOMEM, or the stream's error as negative errno. NULL for
	 * a recording.
	 */
	int (*write)(const struct artefact *artefact, FILE *out);
};

/* Find a format by name; NULL if there is none. */
const struct format *format_find(const char *name);

/*
 * Find a format by the longest suffix that fits a path, else by the file name's prefix; NULL if
 * none fits.
 */
const struct format *format_of_path(const char *path);

/* Returns all formats; *ret_nr is their number. */
const struct format *format_list(size_t *ret_nr);
