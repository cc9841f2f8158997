/* SPDX-License-Identifier: MIT */
/*
 * The error sentence of a set-up call: what is wrong and what to do about it. Only cmd/ prints it.
 */
#pragma once

/* A sentence with an ordinary path fits. A longer one is cut. */
#define MESSAGE_MAX_BYTES 1024

/* A zero-initialised message is the empty sentence. */
struct message {
	char text[MESSAGE_MAX_BYTES];
};

/* Write the sentence. message may be NULL if the caller does not want one. Preserves errno. */
void message_set(struct message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
