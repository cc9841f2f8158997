/* SPDX-License-Identifier: MIT */
/*
 * A file that a command writes. Opening it, before the work begins, checks that it can be written
 * and changes nothing; the old contents stay until the new ones are complete.
 *
 * A regular file, also one reached through symbolic links, is replaced: the new file is written
 * under a temporary name in the same folder and renamed. It gets the old file's permissions and,
 * if allowed, its owner and group. If it cannot have that group, its own group gets no more
 * permissions than everybody. These are written in place: files that are not regular (a pipe, a
 * terminal, /dev/null), stdout under any name, and files that cannot be replaced because they or
 * their folder belong to another user.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "procmem/message.h"

/* A file that was written. All zero: none. */
struct written_file {
	char *name; /* owned */
	dev_t device;
	ino_t inode;
};

/* All zero: not open. */
struct output_file {
	FILE *stream;	  /* for writing, from output_file_begin() to output_file_finish() */
	const char *path; /* borrowed, as given; NULL: stdout */
	char *target;	  /* owned; the name that is replaced; NULL if written in place */
	char *temporary;  /* owned; the file to be renamed to target; NULL if there is none */
	sigset_t signals; /* the mask to restore when temporary is gone */
	bool is_growing;  /* output_file_begin_growing() was called */
	bool is_published;
	/*
	 * Where in the name a counter is inserted if a file of that name exists: no file is
	 * replaced. 0: it is replaced.
	 */
	size_t counter_at;
	struct written_file written; /* once it is written, if counter_at was set */
};

/*
 * Open path; "-" or NULL is stdout. path is borrowed until the file is finished or discarded.
 * Waits for the reader of a named pipe. Returns 0; or a negative errno with a message, and
 * nothing is open.
 */
int output_file_open(const char *path, struct output_file *ret_file, struct message *reterr);

/*
 * The same for a file that replaces no other one: if its name is taken when it gets it, "-2",
 * "-3", … is inserted at the offset counter_at of path, which is not 0. Symbolic links are not
 * followed.
 */
int output_file_open_unique(const char *path, size_t counter_at, struct output_file *ret_file,
			    struct message *reterr);

/*
 * Take what was written of a unique file: its name is the caller's to free. All zero if it was
 * not written.
 */
struct written_file output_file_take_written(struct output_file *file);

/* From now on a unique file replaces the one that was written, whose name is consumed. */
void output_file_replace(struct output_file *file, struct written_file *written);

/*
 * Open a second time the file that an open file will replace. Both can be written, one after the
 * other. Returns 0; -ENOTSUP if file is written in place; -ENOMEM.
 */
int output_file_open_again(const struct output_file *file, struct output_file *ret_file);

/* Whether the file is open: neither finished nor discarded. */
static inline bool output_file_is_open(const struct output_file *file)
{
	return file->stream || file->target;
}

/* Whether fd, open for reading, is the file that would be written. */
bool output_file_has_fd(const struct output_file *file, int fd);

/*
 * Whether two open files are the same file, under any names, so that one would overwrite the
 * other. False for a character device under two names: nothing is lost there.
 */
bool output_file_same(const struct output_file *a, const struct output_file *b);

/*
 * Whether an open file can be written to the end with no rights but those of its user and group:
 * neither it nor its folder belongs to another user. Ask with the capabilities dropped that would
 * not be kept (procmem/capabilities.h): the answer depends on those in effect.
 */
bool output_file_is_ours(const struct output_file *file);

/*
 * Make file->stream ready to be written from the beginning; output_file_finish() must follow. If
 * the file is replaced, signals are blocked until then, so that none leaves the temporary file
 * behind. Returns 0; or a negative errno with a message, and the file is closed and unchanged.
 */
int output_file_begin(struct output_file *file, struct message *reterr);

/*
 * The same for a file that is read while it grows and that may never be finished. Signals are not
 * blocked. From output_file_publish() on, the contents have their name, whatever happens to us.
 * Until then a file that is replaced has no name, where the file system supports that.
 */
int output_file_begin_growing(struct output_file *file, struct message *reterr);

/*
 * Give a growing file its name if it does not have it yet. Returns 0; or a negative errno, after
 * which the file can still be written and this can be tried again. The message is for callers
 * that give up.
 */
int output_file_publish(struct output_file *file, struct message *reterr);

/*
 * Open another descriptor, for reading, of the file that is being written; the caller closes it.
 * Returns a negative errno on failure, -ESPIPE if the file cannot be read or need not begin with
 * what we write.
 */
int output_file_reopen(const struct output_file *file);

/*
 * Close the file. Gives it its name if err, the result of writing it, is 0; otherwise the old
 * contents stay. A growing file that was published stays as it is. Returns 0, or a negative errno
 * with a message; the file is closed either way. A file that cannot get its name stays under its
 * temporary one, if it has one, and the message names it.
 */
int output_file_finish(struct output_file *file, int err, struct message *reterr);

/* Close without keeping anything. Accepts NULL and a file that is open, closed or all zero. */
void output_file_discard(struct output_file *file);
