/* SPDX-License-Identifier: MIT */
/*
 * The sentence that a set-up call which fails hands to the user: what is wrong
 * and what to do about it. Only cmd/ prints it.
 */
#pragma once

/* Room for the longest sentence with a path in it; a longer one is cut. */
#define MESSAGE_MAX_BYTES 1024

/* Zero-initialised it is the empty sentence. */
struct message {
	char text[MESSAGE_MAX_BYTES];
};

/* Write the sentence; message may be NULL (the caller does not want one). Keeps errno. */
void message_set(struct message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
