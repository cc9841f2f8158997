/* SPDX-License-Identifier: MIT */
/*
 * Reads the variables of frames with their values, for a dump that asks for them. All that is
 * read belongs to the target, so how much it can be is limited: for each value, and as a whole.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/frame_list.h"
#include "sampler/python/offsets.h"
#include "sampler/sample.h"

/*
 * A value takes so many reads at most, and then ends in "…". One of 100 characters takes a few
 * dozen; a dict of 100,000 removed entries half of these.
 */
enum { VALUE_MAX_READS = 8192 };

/*
 * All variables of a dump take so long, and so many bytes, at most: 300,000 values of 100
 * characters, and the time that these take twice. Frames for which nothing is left have none.
 */
#define VARIABLES_MAX_NS    5000000000u
#define VARIABLES_MAX_BYTES (64u << 20)

/* A name is cut after so many characters. */
enum { VARIABLE_NAME_MAX_CHARS = 256 };

struct variable_reader;

/*
 * A reader of values of value_max_chars characters at most, which is not 0. memory and build
 * are borrowed until variable_reader_destroy(), which accepts NULL. 0 or -ENOMEM.
 */
int variable_reader_create(struct remote_memory *memory, const struct py_build *build,
			   uint32_t value_max_chars, struct variable_reader **ret_reader);
void variable_reader_destroy(struct variable_reader *reader);

/* The next frames are another thread's: what was read before is read again. */
void variable_reader_forget(struct variable_reader *reader);

/*
 * Put the variables of a frame into detail, where there are none yet; free them with
 * frame_detail_free_variables(). A frame that is not there any more, or of which they cannot be
 * read, gets none, and lacks_variables; one that runs no code object has none. 0, -ENOMEM, -ESRCH,
 * -EPERM.
 */
int variable_reader_read(struct variable_reader *reader, const struct walked_frame *frame,
			 struct frame_detail *detail);
void frame_detail_free_variables(struct frame_detail *detail);
