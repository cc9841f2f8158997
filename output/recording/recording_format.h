/* SPDX-License-Identifier: MIT */
/* The numbers of recordings, for those who write and read them: docs/formats.md. */
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
};

/* Flags of a thread, and the one of a sample that enum sample_flags has not. */
#define RECORD_MAIN_THREAD 1u
#define RECORD_WEIGHED	   (1u << 7) /* weights are told, not derived */

/* What recordings have of enum sample_flags: not what dumps alone have. */
#define RECORD_SAMPLE_FLAGS ((RECORD_WEIGHED - 1) | SAMPLE_IN_JIT | SAMPLE_APPROXIMATE)

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

/* How a tick's time is stored: at most so many bits packed, in units of 1 µs << so many. */
enum { SAMPLES_MAX_WIDTH = 16, SAMPLES_MAX_SHIFT = 20 };

/*
 * What a reader has to have room for. A frame: the nodes and functions of one second, or 2^16
 * threads that all begin in it; a record of samples is a frame's part. Nodes are as
 * many as a profile's. Slots: twice as many threads as the sampler follows, since one
 * sampler can come after another. Strings: of one sampler, which has at most half of it.
 * Names that INFO has: five times as many as there are. Command lines: those of 2^16 processes
 * with 1 KiB each. Threads: a hundred new ones a second for half a day, which are 640 MB for a
 * reader. Samples of a frame: of 4,600 threads at 1 kHz in one second; few bytes can stand for
 * very many, and with this a file's size tells how many at most.
 */
#define RECORDING_FRAME_MAX_BYTES   (16u << 20)
#define RECORDING_WINDOW_LOG	    23
#define RECORDING_MAX_NODES	    (1u << 22)
#define RECORDING_MAX_FUNCTIONS	    (1u << 22)
#define RECORDING_MAX_STRINGS_BYTES (256u << 20) /* of functions */
#define RECORDING_MAX_STRING_BYTES  65535u
#define RECORDING_MAX_PROCESSES	    (1u << 16)
#define RECORDING_MAX_COMMAND_BYTES (64u << 20) /* of all command lines */
#define RECORDING_MAX_THREADS	    (1u << 22)
#define RECORDING_MAX_SLOTS	    (1u << 17)
#define RECORDING_MAX_NAMES	    256u
#define RECORDING_MAX_SAMPLES	    (1u << 22) /* of one frame */
