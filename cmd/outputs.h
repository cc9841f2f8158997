/* SPDX-License-Identifier: MIT */
/* What a command writes of a profile: several files, each in a format of its own. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "cmd/command.h"
#include "cmd/output_file.h"
#include "output/format.h"
#include "procmem/message.h"

/* More in one command are refused: nobody types them, and each is looked at with each. */
enum { MAX_OUTPUTS = 16 };

struct output {
	const char *path;	     /* as it was given, borrowed; NULL: stdout */
	const struct format *format; /* NULL until outputs_choose(), if -f did not name it */
	struct output_file file;
	bool is_written; /* or tried, or passed over */
};

/* All zero none was named. */
struct outputs {
	struct output list[MAX_OUTPUTS];
	unsigned nr;
	const struct format *next; /* a -f that waits for its -o; NULL: none does */
	bool holds_stdout;	   /* what goes there is not written yet, whatever is asked for */
};

/*
 * Take an option: -o PATH, or -f NAME, which belongs to the -o in front of it, if that has no
 * format yet, else to the next one. False after an error was printed.
 */
bool outputs_take_path(struct outputs *outputs, const char *path);
bool outputs_take_format(struct outputs *outputs, const char *name);

/*
 * When all options were taken: give each output its format, from -f, else from the longest
 * suffix of its name, else, if it has no suffix or is no regular file, collapsed. Without any -o
 * it is stdout, which has a summary if it is a terminal, else collapsed stacks. False after an
 * error was printed: a name that tells no format, two on stdout, a recording onto a terminal, a
 * second recording.
 */
bool outputs_choose(struct outputs *outputs);

/* Whether all of them can show a comparison; false after an error was printed. */
bool outputs_can_compare(const struct outputs *outputs);

/* Whether all of them can show what has no time; false after an error was printed. */
bool outputs_can_count(const struct outputs *outputs);

/* The table of formats for a help text: name, what it is, suffixes. */
void outputs_print_formats(FILE *out);

/* The one that is a recording itself; NULL if none is. */
struct output *outputs_recording(struct outputs *outputs);

/*
 * Whether each sample has to be kept for them, in a recording or in a file to make them from;
 * else all can be written from one profile that the sampler fills.
 */
bool outputs_need_samples(const struct outputs *outputs);

/*
 * Open all of them, which finds out whether they can be written and changes nothing. EXIT_OK;
 * EXIT_USAGE, two are one file; EXIT_ERROR; with a sentence. outputs_discard() must follow.
 */
enum exit_status outputs_open(struct outputs *outputs, struct message *reterr);

/*
 * Open once more those that are made from a profile and are replaced as a whole, to write them
 * now and then again; what is written in place, as stdout and pipes, is not. 0 or -ENOMEM;
 * outputs_discard() must follow. What outputs borrow is borrowed.
 */
int outputs_open_again(const struct outputs *outputs, struct outputs *ret_outputs);

/* The name of one of them, opened, that is what is open for reading in fd; NULL: none is. */
const char *outputs_find(const struct outputs *outputs, int fd);

/* Whether one of them, opened, is the same file as other. */
bool outputs_have(const struct outputs *outputs, const struct output_file *other);

/* Whether all of them, opened, are ours: output_file_is_ours(). */
bool outputs_are_ours(const struct outputs *outputs);

/* The next one that is made from a profile and was not written yet; NULL if there is none. */
const struct output *outputs_next(const struct outputs *outputs);

/* What an output's profile is made with, if those options were asked for. */
struct profile_options output_profile_options(const struct output *output,
					      const struct profile_options *asked);

/*
 * Write those of them, opened and not written yet, that are made from such a profile as the
 * artefact's. Its options' columns and colour are those of each output's own stream. EXIT_OK, or
 * EXIT_ERROR after an error was printed for each that failed.
 */
enum exit_status outputs_write(struct outputs *outputs, const struct artefact *artefact,
			       const struct profile_options *asked);

/* Give up those that would be made from such a profile, which cannot be made. */
void outputs_pass_over(struct outputs *outputs, const struct profile_options *made,
		       const struct profile_options *asked);

/* Close what is open, without keeping anything of what was not written. */
void outputs_discard(struct outputs *outputs);
