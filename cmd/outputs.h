/* SPDX-License-Identifier: MIT */
/* The files that a command writes from a profile, each in its own format. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "cmd/command.h"
#include "cmd/output_file.h"
#include "cmd/output_pattern.h"
#include "output/format.h"
#include "procmem/message.h"

/*
 * Limit on the outputs of one command; more are refused. Nobody needs more, and each output is
 * compared with every other.
 */
enum { MAX_OUTPUTS = 16 };

struct output {
	const char *path;	     /* borrowed, as given, or from expanded; NULL: stdout */
	const struct format *format; /* NULL until outputs_choose(), unless -f named it */
	struct output_file file;
	bool is_written;     /* or tried, or given up */
	bool is_complete;    /* written without an error */
	const char *pattern; /* borrowed, as given; NULL: path is not a pattern */
	size_t counter_at;   /* in path, for output_file_open_unique(); 0: it is no new file */
	char *expanded;	     /* owned; what pattern became; NULL: nothing yet */
};

/* All zero: no output was named. */
struct outputs {
	struct output list[MAX_OUTPUTS];
	unsigned nr;
	const struct format *next; /* a -f that waits for its -o; NULL: none */
	bool defers_stdout;	   /* outputs to stdout wait for a later call */
	bool is_silent;		   /* errors of writing are not printed */
	bool opens;		   /* a page is wanted, to be opened once it is written */
	const char *page_path; /* borrowed; with opens: the name of a page that no option names */
	bool of_tree; /* of several processes, whose number decides about their roots at the end */
};

/*
 * Process an option: -o PATH or -f NAME. A -f belongs to the -o before it if that has no format
 * yet, otherwise to the next one. Returns false after printing an error.
 */
bool outputs_add_path(struct outputs *outputs, const char *path);
bool outputs_add_format(struct outputs *outputs, const char *name);

/*
 * Choose the format of each output, after all options: the one given by -f; else by the longest
 * suffix of its name; else, if the name has no suffix or is not a regular file, collapsed.
 * Without -o the output is stdout, with a summary on a terminal and collapsed stacks elsewhere.
 * With opens it is a page instead, which is also added if no other output is one.
 * Returns false after printing an error: a name implies no format, two outputs go to stdout, or
 * two are recordings.
 */
bool outputs_choose(struct outputs *outputs);

/*
 * Take the names of the outputs for patterns (output_pattern.h). is_periodic: each must have a
 * name of its own for each period. Returns false after printing an error.
 */
bool outputs_use_patterns(struct outputs *outputs, bool is_periodic);

/*
 * Give the outputs, which are not open, the names that their patterns have with these values.
 * Names with %t or %n are those of new files. Returns 0 or -ENOMEM.
 */
int outputs_expand(struct outputs *outputs, const struct output_pattern_values *values);

/* Whether all formats can show a comparison. Returns false after printing an error. */
bool outputs_can_compare(const struct outputs *outputs);

/* Whether all formats can show samples without time. Returns false after printing an error. */
bool outputs_can_count(const struct outputs *outputs);

/* Print the table of formats for a help text: name, summary, suffixes. */
void outputs_print_formats(FILE *out);

/* Returns the output that is a recording, or NULL if there is none. */
struct output *outputs_recording(struct outputs *outputs);

/* Returns the name of the first page in a regular file that was written; NULL if there is none. */
const char *outputs_page(const struct outputs *outputs);

/*
 * Whether the outputs need every sample to be kept, in a recording or in a temporary file from
 * which they are made. Otherwise all can be written from the one profile that the sampler fills.
 */
bool outputs_need_samples(const struct outputs *outputs);

/* Whether an output shows no threads that wait, or not at first, in PROFILE_BUSY. */
bool outputs_hide_idle(const struct outputs *outputs);

/*
 * Open all outputs, which checks that they can be written and changes nothing. Returns EXIT_OK;
 * with a message EXIT_USAGE if two are the same file or a recording would go to a terminal, or
 * EXIT_ERROR if one cannot be opened. outputs_discard() must follow in any case.
 */
enum exit_status outputs_open(struct outputs *outputs, struct message *reterr);

/* The same, but prints the message. */
enum exit_status outputs_open_or_print(struct outputs *outputs);

/*
 * Open a second time the outputs that are made from a profile and replaced as a whole, to write
 * them now and again later. Outputs written in place, such as stdout and pipes, are left out.
 * What outputs borrows is borrowed. Returns 0 or -ENOMEM; outputs_discard() must follow.
 */
int outputs_open_again(const struct outputs *outputs, struct outputs *ret_outputs);

/*
 * After others, from outputs_open_again(), were written: let outputs replace the new files that
 * these made.
 */
void outputs_replace_written(struct outputs *outputs, struct outputs *others);

/*
 * Returns the name of the open output that is the file open for reading in fd; NULL if there is
 * none.
 */
const char *outputs_find(const struct outputs *outputs, int fd);

/* Whether an open output is the same file as other. */
bool outputs_have(const struct outputs *outputs, const struct output_file *other);

/* Whether output_file_is_ours() holds for all open outputs. */
bool outputs_are_ours(const struct outputs *outputs);

/*
 * Returns the next output that is made from a profile and not written yet; NULL if there is none.
 */
const struct output *outputs_next(const struct outputs *outputs);

/* Returns the options of an output's profile, given those that were requested. */
struct profile_options output_profile_options(const struct output *output,
					      const struct profile_options *requested);

/*
 * Write the open outputs that are not written yet and whose profile has the options of the
 * artefact's. Columns and colour are set for each output's stream. Returns EXIT_OK, or EXIT_ERROR
 * after printing an error for each that failed.
 */
enum exit_status outputs_write(struct outputs *outputs, const struct artefact *artefact,
			       const struct profile_options *requested);

/* Give up the outputs that need a profile with the options made, which could not be created. */
void outputs_skip(struct outputs *outputs, const struct profile_options *made,
		  const struct profile_options *requested);

/* Close all open outputs; what was not written is not kept. */
void outputs_discard(struct outputs *outputs);
