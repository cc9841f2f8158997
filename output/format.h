/* SPDX-License-Identifier: MIT */
/* The formats that a profile can be written in: one table. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "output/artefact.h"

enum { FORMAT_MAX_SUFFIXES = 4 };

struct format {
	const char *name;			   /* as on the command line; stable */
	const char *suffixes[FORMAT_MAX_SUFFIXES]; /* of files; NULL from the last one on */
	const char *prefix;  /* of the names of files, if no suffix fits; NULL */
	const char *summary; /* a few words for --help */
	bool by_line;	     /* needs a row per line, whatever was asked for */
	bool keep_samples;   /* needs each sample, not only the sums */
	bool compares;	     /* can show a base */
	bool needs_time;     /* is about when samples were: not for PROFILE_COUNT */
	/* Write and flush. 0; -ENOMEM; the stream's error as negative errno. NULL: a recording. */
	int (*write)(const struct artefact *artefact, FILE *out);
};

/* By its name; NULL if there is none. */
const struct format *format_find(const char *name);

/* By the longest suffix that a path ends with, else by its file's prefix; NULL if none fits. */
const struct format *format_of_path(const char *path);

/* All of them; *ret_nr how many. */
const struct format *format_list(size_t *ret_nr);
