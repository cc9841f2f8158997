/* SPDX-License-Identifier: MIT */
/*
 * A file that a command writes. Opening it, before the work begins, finds out whether
 * it can be written, and changes nothing; what was there stays until the new contents
 * are whole.
 *
 * A regular file, also one behind symbolic links, is replaced: the new one is written
 * under a temporary name in its folder and renamed, with the old one's permissions
 * and, if we may, its owner and group; where it cannot have that group, no group may do more
 * than everybody. What is no regular file (a pipe, a terminal, /dev/null),
 * stdout under whatever name, and a file that cannot be replaced because it or its
 * folder belongs to somebody else, is written in place.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "procmem/message.h"

/* All zero is a file that is not open. */
struct output_file {
	FILE *stream;	  /* to write to, from output_file_begin() to output_file_finish() */
	const char *path; /* borrowed, as it was given; NULL: stdout */
	char *target;	  /* owned; the name that is replaced; NULL if written in place */
	char *temporary;  /* owned; what is renamed to target; NULL while there is none */
	sigset_t signals; /* the mask to go back to when temporary is gone */
	bool is_growing;  /* output_file_begin_growing() was called */
	bool is_published;
};

/*
 * Open path, "-" or NULL for stdout. path is borrowed until the file is finished or
 * discarded. Waits for the reader of a named pipe. 0; or a negative errno and a
 * sentence: nothing is open then.
 */
int output_file_open(const char *path, struct output_file *ret_file, struct message *reterr);

/*
 * Open once more the file that another one, open, will replace, which it does not hinder: both
 * can be written, one after the other. 0; -ENOTSUP: file is written in place; -ENOMEM.
 */
int output_file_open_again(const struct output_file *file, struct output_file *ret_file);

/* Whether it is open: it was neither finished nor discarded. */
static inline bool output_file_is_open(const struct output_file *file)
{
	return file->stream || file->target;
}

/* Whether what is open for reading in fd is the file that would be written. */
bool output_file_is(const struct output_file *file, int fd);

/*
 * Whether two open files are one, by whatever names, so that one would spoil the other.
 * False of a character device under two names: nothing is lost there.
 */
bool output_file_same(const struct output_file *a, const struct output_file *b);

/*
 * Whether an open file can be written to the end by who has no right but that of its user and group (on
 * capabilities in effect: procmem/capabilities.h), as nobody else's folder or file is in the way.
 */
bool output_file_is_ours(const struct output_file *file);

/*
 * Make file->stream ready to be written from the beginning; output_file_finish() must
 * follow. No signal is delivered from here until then if the file is replaced, so that
 * none leaves the temporary one behind. 0; or a negative errno and a sentence: the file
 * is closed then, and as it was before.
 */
int output_file_begin(struct output_file *file, struct message *reterr);

/*
 * The same for a file that is to be read while it grows, which nothing ends in time: signals
 * come, and what is there has its name from output_file_publish() on, whatever becomes of us.
 * Until then a file that is replaced has no name, where the file system has such files.
 */
int output_file_begin_growing(struct output_file *file, struct message *reterr);

/*
 * Give a growing file its name, if it has not got it yet. 0; or a negative errno: the file goes
 * on, but has not got its name, which can be tried again. The sentence is for who does not.
 */
int output_file_publish(struct output_file *file, struct message *reterr);

/*
 * Another descriptor of the file that is being written, to read it; the caller closes it. A
 * negative errno, -ESPIPE among them: it cannot be read, or does not begin with what we write.
 */
int output_file_reopen(const struct output_file *file);

/*
 * Close the file and give it its name, if err (what writing it returned) is 0;
 * else leave what was there before; a growing file that was published stays as it is. 0, or a
 * negative errno and a sentence; the file is closed either way. What cannot have its name
 * stays under the temporary one, which is told, if it has one.
 */
int output_file_finish(struct output_file *file, int err, struct message *reterr);

/* Close without keeping anything; for NULL and a file that is open, closed or all zero. */
void output_file_discard(struct output_file *file);
