/* SPDX-License-Identifier: MIT */
/*
 * The message of a profile.proto file, which is written in parts, so that it is never in memory as
 * a whole, and its table of strings.
 *
 * Source: protobuf.dev/programming-guides/encoding, "Last One Wins"
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/profile.pb-c.h"
#include "output/text/string_table.h"
#include "output/text/text.h"

/* Zero-initialised but for out nothing has been written. pprof_message_done() frees the rest. */
struct pprof_message {
	FILE *out;		     /* borrowed */
	struct string_table strings; /* as the message has them, by their place */
	struct text text;
	uint8_t *packed; /* owned */
	size_t max_packed;
};

void pprof_message_done(struct pprof_message *message);

/*
 * Write a message that has a few fields set, and is packed whole. One message after another
 * is their sum: repeated fields are appended, and no other field may be in two of them. 0,
 * -ENOMEM, or what writing to out failed with.
 */
int pprof_message_append(struct pprof_message *message, const Perftools__Profiles__Profile *part);

/* The same of one location, and of one sample. */
int pprof_message_append_location(struct pprof_message *message,
				  Perftools__Profiles__Location *location);
int pprof_message_append_sample(struct pprof_message *message, Perftools__Profiles__Sample *sample);

/*
 * Write the next string of the table; what the format forbids is escaped as on a screen. It is not
 * kept: none may be found after this. Errors as above.
 */
int pprof_message_append_string(struct pprof_message *message, const char *string);

/* The place of a string, borrowed until the end, which is written if it is new. Errors as above. */
int pprof_message_string(struct pprof_message *message, const char *string, int64_t *ret_index);
