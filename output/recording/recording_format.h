/* SPDX-License-Identifier: MIT */
/* Constants of the recording format, for writers and readers (docs/formats.md). */
#pragma once

#include <stdint.h>

#include "sampler/sample.h"

#define RECORDING_MAGIC "pysample" /* without its NUL */
enum {
	RECORDING_MAGIC_BYTES = 8,
	RECORDING_VERSION = 1,
	RECORDING_HEADER_BYTES = RECORDING_MAGIC_BYTES + 1 + 1 + 8,
};

enum record_tag {
	RECORD_INFO = 1,
	RECORD_COUNTERS = 2,
	RECORD_PROCESS = 3,
	RECORD_THREAD = 4,
	RECORD_RENAME = 5,
	RECORD_FUNCTION = 6,
	RECORD_NODES = 7,
	RECORD_RESET = 8,
	RECORD_SAMPLES = 9,
	RECORD_END = 10,
	RECORD_PROCESS_END = 11,
};

/* Flags of a thread, and the flag of a sample that enum sample_flags does not have. */
#define RECORD_MAIN_THREAD 1u
#define RECORD_WEIGHED	   (1u << 7) /* the weights are stored, not derived from times */

/* The members of enum sample_flags in recordings; the others are for core files. */
#define RECORD_SAMPLE_FLAGS \
	((RECORD_WEIGHED - 1) | SAMPLE_IN_JIT | SAMPLE_APPROXIMATE | SAMPLE_IDLE)

enum { NODES_PARENTS, NODES_FUNCTIONS, NODES_LINES, NR_NODES_COLUMNS };

enum samples_column {
	SAMPLES_OFFSETS,
	SAMPLES_HIGH_OFFSETS,
	SAMPLES_SKIPS,
	SAMPLES_THREADS,
	SAMPLES_NODE_GAPS,
	SAMPLES_NODES,
	SAMPLES_FLAG_GAPS,
	SAMPLES_FLAGS,
	SAMPLES_WALLS,
	SAMPLES_CPU_GAPS,
	SAMPLES_CPUS,
	NR_SAMPLES_COLUMNS,
};

/*
 * Storage of a tick's time: packed in at most MAX_WIDTH bits, in units of 1 µs << at most
 * MAX_SHIFT.
 */
enum { SAMPLES_MAX_WIDTH = 16, SAMPLES_MAX_SHIFT = 20 };

/*
 * Limits that a reader must allow for.
 *
 * - Frame: the nodes and functions of one second, or 2^16 threads that begin in it. A record of
 *   samples is only a part of a frame.
 * - Nodes: as in a profile.
 * - Slots: twice the threads that a sampler follows, because samplers can follow one another.
 * - Strings: twice the strings of one sampler.
 * - Names in INFO: five times those in use.
 * - Names and command lines of processes: 2^16 with 1 KiB each.
 * - Threads: a hundred new ones a second for half a day, which take a reader 640 MB.
 * - Samples of a frame: 4,600 threads at 1 kHz for one second. A few bytes can stand for very many
 *   samples; with this limit the size of a file bounds their number.
 */
#define RECORDING_FRAME_MAX_BYTES   (16u << 20)
#define RECORDING_WINDOW_LOG	    23
#define RECORDING_MAX_NODES	    (1u << 22)
#define RECORDING_MAX_FUNCTIONS	    (1u << 22)
#define RECORDING_MAX_STRINGS_BYTES (256u << 20) /* of functions and paths */
#define RECORDING_MAX_STRING_BYTES  65535u
#define RECORDING_MAX_PROCESSES	    (1u << 16)
#define RECORDING_MAX_COMMAND_BYTES (64u << 20) /* sum over all names and command lines */
#define RECORDING_MAX_THREADS	    (1u << 22)
#define RECORDING_MAX_SLOTS	    (1u << 17)
#define RECORDING_MAX_NAMES	    256u
#define RECORDING_MAX_SAMPLES	    (1u << 22) /* in one frame */
