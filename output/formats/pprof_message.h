/* SPDX-License-Identifier: MIT */
/*
 * A profile.proto message, written in parts so that it is never in memory as a whole, and its
 * string table.
 *
 * Source: protobuf.dev/programming-guides/encoding, "Last One Wins"
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/profile.pb-c.h"
#include "output/tables/string_table.h"
#include "output/text/text.h"

/* Initialise with out, the rest zero. pprof_message_done() frees everything but out. */
struct pprof_message {
	FILE *out;		     /* borrowed */
	struct string_table strings; /* of the message, by index */
	struct text text;
	uint8_t *packed; /* owned */
	size_t max_packed;
};

void pprof_message_done(struct pprof_message *message);

/*
 * Write a message with a few fields set. Readers merge consecutive messages: repeated fields are
 * appended, and other fields may occur in one message only. Returns 0, -ENOMEM, or the error of
 * the write.
 */
int pprof_message_append(struct pprof_message *message, const Perftools__Profiles__Profile *part);

/* The same for one location, and for one sample. */
int pprof_message_append_location(struct pprof_message *message,
				  Perftools__Profiles__Location *location);
int pprof_message_append_sample(struct pprof_message *message, Perftools__Profiles__Sample *sample);

/*
 * Write the next string of the table; characters that the format forbids are escaped as on a
 * screen. The string is not kept, so pprof_message_string() must not be called afterwards.
 * Returns the same.
 */
int pprof_message_append_string(struct pprof_message *message, const char *string);

/*
 * Find the index of a string, which is borrowed until the end, or add and write it. Returns the
 * same.
 */
int pprof_message_string(struct pprof_message *message, const char *string, int64_t *ret_index);
