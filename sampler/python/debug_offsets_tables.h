/* SPDX-License-Identifier: MIT */
/*
 * The numbers behind debug_offsets.c, in a header of their own so that the tests can
 * prove each one against CPython's headers (tests/offsets/).
 */
#pragma once

#include "sampler/python/offsets.h"

/*
 * Where each number stands in _Py_DebugOffsets, in bytes from its start; 0
 * (where the cookie is) for what that version does not carry. The struct is
 * followed by no size of its own: size is where it ends.
 * Source: Include/internal/pycore_debug_offsets.h (3.13: pycore_runtime.h).
 */
struct debug_offsets_layout {
	uint32_t minor;
	uint32_t size;
	struct py_offsets at;
	struct py_tlbc tlbc_at;
};

static const struct debug_offsets_layout debug_offsets_layouts[] = {
	{
		.minor = 13,
		.size = 584,
		.at =
			{
				.runtime = {.size = 24, .finalizing = 32, .interpreters_head = 40},
				.interpreter =
					{
						.size = 48,
						.id = 56,
						.next = 64,
						.threads_head = 72,
						.modules = 88,
						.gil_locked = 136,
						.gil_last_holder = 144,
.gc = 80,
},
.gc = {.collecting = 576},
				.thread =
					{
						.size = 152,
						.next = 168,
						.interp = 176,
						.current_frame = 184,
						.thread_id = 192,
						.native_thread_id = 200,
						.datastack_chunk = 208,
					},
				.frame =
					{
						.size = 224,
						.previous = 232,
						.executable = 240,
						.instr_ptr = 248,
						.localsplus = 256,
						.owner = 264,
					},
				.code =
					{
						.size = 272,
						.filename = 280,
						.qualname = 296,
						.linetable = 304,
						.firstlineno = 312,
						.argcount = 320,
						.names = 328,
						.kinds = 336,
						.code_adaptive = 344,
					},
				.object = {.ob_type = 360, .tp_name = 376},
				.type = {.flags = 392},
				.dict = {.keys = 456, .values = 464},
				.integer = {.size = 496, .digits = 504},
				.bytes = {.ob_size = 520, .ob_sval = 528},
				.unicode = {.state = 544, .length = 552, .ascii_data = 560},
			},
	},
	{
		.minor = 14,
		.size = 760,
		.at =
			{
				.runtime = {.size = 24, .finalizing = 32, .interpreters_head = 40},
				.interpreter =
					{
						.size = 48,
						.id = 56,
						.next = 64,
						.threads_head = 72,
						.modules = 96,
						.gil_locked = 144,
						.gil_last_holder = 152,
						.code_object_generation = 160,
.gc = 88,
},
.gc = {.collecting = 656},
				.thread =
					{
						.size = 176,
						.next = 192,
						.interp = 200,
						.current_frame = 208,
						.thread_id = 216,
						.native_thread_id = 224,
						.datastack_chunk = 232,
					},
				.frame =
					{
						.size = 248,
						.previous = 256,
						.executable = 264,
						.instr_ptr = 272,
						.localsplus = 280,
						.owner = 288,
						.stackpointer = 296,
					},
				.generator = {.iframe = 680, .frame_state = 688},
				.code =
					{
						.size = 312,
						.filename = 320,
						.qualname = 336,
						.linetable = 344,
						.firstlineno = 352,
						.argcount = 360,
						.names = 368,
						.kinds = 376,
						.code_adaptive = 384,
					},
				.object = {.ob_type = 408, .tp_name = 424},
				.type = {.flags = 440},
				.dict = {.keys = 536, .values = 544},
				.integer = {.size = 576, .digits = 584},
				.bytes = {.ob_size = 600, .ob_sval = 608},
				.unicode = {.state = 624, .length = 632, .ascii_data = 640},
			},
		.tlbc_at = {.code_array = 392, .generation = 168},
	},
	{
		.minor = 15,
		.size = 888,
		.at =
			{
				.runtime = {.size = 24, .finalizing = 32, .interpreters_head = 40},
				.interpreter =
					{
						.size = 48,
						.id = 56,
						.next = 64,
						.threads_head = 72,
						.modules = 96,
						.gil_locked = 144,
						.gil_last_holder = 152,
						.code_object_generation = 160,
.gc = 88,
},
.gc = {.collecting = 760, .frame = 768},
				.thread =
					{
						.size = 176,
						.next = 192,
						.interp = 200,
						.current_frame = 208,
						.base_frame = 216,
						.last_profiled_frame = 224,
						.last_profiled_frame_seq = 232,
						.thread_id = 240,
						.native_thread_id = 248,
						.datastack_chunk = 256,
.gil_requested = 280,
.raised = 288,
.exc_state = 296,
},
.exc_item = {.value = 304},
				.frame =
					{
						.size = 312,
						.previous = 320,
						.executable = 328,
						.instr_ptr = 336,
						.localsplus = 344,
						.owner = 352,
						.stackpointer = 360,
					},
				.generator = {.iframe = 808, .frame_state = 816},
				.code =
					{
						.size = 376,
						.filename = 384,
						.qualname = 400,
						.linetable = 408,
						.firstlineno = 416,
						.argcount = 424,
						.names = 432,
						.kinds = 440,
						.code_adaptive = 448,
					},
				.object = {.ob_type = 472, .tp_name = 488},
				.type =
					{
						.flags = 504,
						.basicsize = 512,
						.dictoffset = 520,
						.cached_keys = 536,
					},
				.dict = {.keys = 632, .values = 640},
				.integer = {.size = 672, .digits = 680},
				.bytes = {.ob_size = 696, .ob_sval = 704},
				.unicode =
					{
						.state = 720,
						.length = 728,
						.ascii_data = 736,
						.compact_data = 744,
					},
			},
		.tlbc_at = {.code_array = 456, .generation = 168},
	},
};

/*
 * What no version's debug offsets carry, relative to a field that they do. Proved for
 * 3.13, 3.14 and 3.15, builds with the GIL and free-threaded ones.
 */
enum {
	FRAMESIZE_AFTER_FIRSTLINENO = 8,
	NLOCALSPLUS_AFTER_FIRSTLINENO = 4,
	VERSION_AFTER_FIRSTLINENO = 24,
	KWONLYARGCOUNT_AFTER_ARGCOUNT = 8,
	FLAGS_BEFORE_ARGCOUNT = 4,
	FIRSTTRACEABLE_BEFORE_CODE_ADAPTIVE = 16,
	FIRSTTRACEABLE_BEFORE_TLBC = 16,  /* where there is thread-local bytecode */
	STACKTOP_AFTER_INSTR_PTR = 8,	  /* 3.13 only */
	GENERATOR_IFRAME_AFTER_TYPE = 64, /* 3.13 only */
	DATASTACK_TOP_AFTER_CHUNK = 8,
	RAISED_AFTER_CURRENT_FRAME = 40, /* 3.13 and 3.14; 3.15 tells it */
	EXC_STATE_AFTER_CHUNK = 24,	 /* the same */
	EXC_INFO_AFTER_RAISED = 8,
	EXC_ITEM_VALUE = 0, /* 3.13 and 3.14 */
	EXC_ITEM_PREVIOUS = 8,
	COMPACT_DATA_AFTER_ASCII_DATA = 16,
	CODE_OB_SIZE_AFTER_TYPE = 8,
	BASICSIZE_AFTER_NAME = 8, /* 3.15 tells it, and the next two */
	DICTOFFSET_AFTER_FLAGS = 120,
	CACHED_KEYS_AFTER_FLAGS = 712,
	INSTANCE_DICT_BEFORE = 24,
	INSTANCE_DICT_BEFORE_FREE_THREADED = 8, /* which has no head for the collector */
	DICT_KEYS_LOG2_SIZE = 8,
	DICT_KEYS_LOG2_INDEX_BYTES = 9,
	DICT_KEYS_KIND = 10,
	DICT_KEYS_NR_ENTRIES = 24,
	DICT_KEYS_INDICES = 32,
	DICT_VALUES_VALID = 3,
	DICT_VALUES_VALUES = 8,
	INTEGER_SIZE_SHIFT = 3,
	CHUNK_PREVIOUS = 0,
	CHUNK_SIZE = 8,
	CHUNK_TOP = 16,
	CHUNK_DATA = 24,
	CODE_ARRAY_SIZE = 0, /* of _PyCodeArray, the copies of thread-local bytecode */
	CODE_ARRAY_ENTRIES = 8,
};

/*
 * func_state.next_version of release builds: [minor - 13][free_threaded]. The numbers of
 * debug builds are 16 to 80 bytes higher, those of free-threaded builds with mimalloc 2.1 (3.14 up
 * to 3.14.7 at least, pre-releases of 3.15) some 300: build_check.h finds them.
 */
static const uint32_t next_code_version_offsets[][2] = {
	{17000, 20092},
	{14256, 20052},
	{14264, 20004},
};

/* [minor - 14] */
static const struct generator_states generator_states[] = {
	{.first_awaiting = -1, .last_awaiting = -1, .first_finished = 1, .awaited_words = 1},
	{.first_awaiting = 2, .last_awaiting = 3, .first_finished = 5, .awaited_words = 2},
};

/* The bit of a str's kind in its state: `interned` has a byte for itself there since 3.14. */
enum { STATE_KIND_SHIFT = 2, STATE_KIND_SHIFT_FREE_THREADED_3_14 = 8 };
