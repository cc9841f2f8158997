/* SPDX-License-Identifier: MIT */
/*
 * The numbers behind offsets.c, in a header of their own so that the tests can
 * prove each one against CPython's headers (tests/offsets/).
 */
#pragma once

#include "sampler/python/executable_offsets.h"
#include "sampler/python/offsets.h"
#include "sampler/python/value_offsets.h"

/* What is known of a version that does not carry its offsets itself. */
struct version_table {
	uint32_t minor;
	struct py_offsets offsets;
	struct py_traits traits;
};

/*
 * CPython 3.11, release build, x86-64 and aarch64. The layout did not change
 * between 3.11.0 and 3.11.14.
 * Source: Include/internal/pycore_frame.h, pycore_interp.h, pycore_runtime.h,
 * Include/cpython/code.h, pystate.h, unicodeobject.h.
 */
static const struct version_table version_3_11 = {
	.minor = 11,
	.offsets =
		{
			.runtime =
				{
					.size = 166688,
					.finalizing = 24,
					.interpreters_head = 40,
					.gil_locked = 376,
					.gil_last_holder = 368,
					.gc = OFFSET_ABSENT,
				},
			.interpreter =
				{
					.size = 107752,
					.id = 48,
					.next = 0,
					.threads_head = 16,
					.modules = 888,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.code_object_generation = OFFSET_ABSENT,
					.next_code_version = OFFSET_ABSENT,
					.gc = 648,
				},
			.gc =
				{
					.collecting = 200,
					.frame = OFFSET_ABSENT,
				},
			.thread =
				{
					.size = 360,
					.next = 8,
					.interp = 16,
					.current_frame = OFFSET_ABSENT,
					.cframe = 56,
					.base_frame = OFFSET_ABSENT,
					.last_profiled_frame = OFFSET_ABSENT,
					.last_profiled_frame_seq = OFFSET_ABSENT,
					.thread_id = 152,
					.native_thread_id = 160,
					.unique_id = OFFSET_ABSENT,
					.datastack_chunk = 296,
					.datastack_top = 304,
					.gil_requested = OFFSET_ABSENT,
					.raised = 96,
					.exc_info = 120,
					.exc_state = 320,
				},
			.exc_item =
				{
					.value = 0,
					.previous = 8,
				},
			.cframe =
				{
					.current_frame = 8,
					.previous = 16,
				},
			.frame =
				{
					.size = 80,
					.executable = 32,
					.previous = 48,
					.instr_ptr = 56,
					.lasti = OFFSET_ABSENT,
					.state = OFFSET_ABSENT,
					.stacktop = 64,
					.is_entry = 68,
					.stackpointer = OFFSET_ABSENT,
					.owner = 69,
					.localsplus = 72,
					.heap_locals = OFFSET_ABSENT,
				},
			.generator =
				{
					.iframe = 80,
				},
			.chunk =
				{
					.previous = 0,
					.size = 8,
					.top = 16,
					.data = 24,
				},
			.code =
				{
					.size = 192,
					.ob_size = 16,
					.filename = 112,
					.qualname = 128,
					.linetable = 136,
					.firstlineno = 72,
					.framesize = OFFSET_ABSENT,
					.nlocalsplus = 76,
					.stacksize = 68,
					.version = OFFSET_ABSENT,
					.firsttraceable = 168,
					.code_adaptive = 184,
					.bytecode = OFFSET_ABSENT,
					.argcount = 56,
					.names = 96,
					.kinds = 104,
					.kwonlyargcount = 64,
					.flags = 48,
					.cellvars = OFFSET_ABSENT,
					.freevars = OFFSET_ABSENT,
				},
			.object =
				{
					.ob_type = 8,
					.tp_name = 24,
				},
			.type =
				{
					.flags = 168,
					.basicsize = 32,
					.dictoffset = 288,
					.cached_keys = 872,
				},
			.instance =
				{
					.dict_before = 24,
					.values_before = 32,
				},
			.dict =
				{
					.keys = 32,
					.values = 40,
				},
			.dict_keys =
				{
					.size = OFFSET_ABSENT,
					.log2_size = 8,
					.log2_index_bytes = 9,
					.kind = 10,
					.nr_entries = 24,
					.indices = 32,
				},
			.dict_values =
				{
					.valid = OFFSET_ABSENT,
					.values = 0,
				},
			.integer =
				{
					.size = 16,
					.size_shift = 0,
					.digits = 24,
				},
			.unicode =
				{
					.length = 16,
					.state = 32,
					.state_kind_shift = 2,
					.ascii_data = 48,
					.compact_data = 72,
					.data = 72,
				},
			.bytes =
				{
					.ob_size = 16,
					.ob_sval = 32,
				},
		},
	.traits =
		{
			.leaf_rule = LEAF_BY_STACKTOP,
			.attribute_rule = ATTRIBUTES_BY_TWO_WORDS,
			.handled_none = true,
			.shim_owner = UINT8_MAX,
			.tuple_items_after_type = TUPLE_ITEMS_AFTER_TYPE,
			.qualname_after_type = QUALNAME_AFTER_TYPE,
			.oserror_errno_after_type = OSERROR_ERRNO_AFTER_TYPE,
			.extra_frame_words = 9, /* FRAME_SPECIALS_SIZE */
		},
};

/*
 * CPython 3.12, release build, x86-64 and aarch64.
 * Source: as of 3.11; Objects/codeobject.c (_Py_next_func_version).
 */
static const struct version_table version_3_12 = {
	.minor = 12,
	.offsets =
		{
			.runtime =
				{
					.size = 459944,
					.finalizing = 24,
					.interpreters_head = 40,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.gc = OFFSET_ABSENT,
				},
			.interpreter =
				{
					.size = 383552,
					.id = 8,
					.next = 0,
					.threads_head = 72,
					.modules = 944,
					.gil_locked = 1056,
					.gil_last_holder = 1048,
					.code_object_generation = OFFSET_ABSENT,
					.next_code_version =
						OFFSET_ABSENT, /* a variable of its own */
					.gc = 112,
				},
			.gc =
				{
					.collecting = 200,
					.frame = OFFSET_ABSENT,
				},
			.thread =
				{
					.size = 288,
					.next = 8,
					.interp = 16,
					.current_frame = OFFSET_ABSENT,
					.cframe = 56,
					.base_frame = OFFSET_ABSENT,
					.last_profiled_frame = OFFSET_ABSENT,
					.last_profiled_frame_seq = OFFSET_ABSENT,
					.thread_id = 136,
					.native_thread_id = 144,
					.unique_id = OFFSET_ABSENT,
					.datastack_chunk = 232,
					.datastack_top = 240,
					.gil_requested = OFFSET_ABSENT,
					.raised = 96,
					.exc_info = 104,
					.exc_state = 256,
				},
			.exc_item =
				{
					.value = 0,
					.previous = 8,
				},
			.cframe =
				{
					.current_frame = 0,
					.previous = 8,
				},
			.frame =
				{
					.size = 80,
					.executable = 0,
					.previous = 8,
					.instr_ptr = 56,
					.lasti = OFFSET_ABSENT,
					.state = OFFSET_ABSENT,
					.stacktop = 64,
					.is_entry = OFFSET_ABSENT,
					.stackpointer = OFFSET_ABSENT,
					.owner = 70,
					.localsplus = 72,
					.heap_locals = OFFSET_ABSENT,
				},
			.generator =
				{
					.iframe = 72,
				},
			.chunk =
				{
					.previous = 0,
					.size = 8,
					.top = 16,
					.data = 24,
				},
			.code =
				{
					.size = 200,
					.ob_size = 16,
					.filename = 112,
					.qualname = 128,
					.linetable = 136,
					.firstlineno = 68,
					.framesize = 76,
					.nlocalsplus = 72,
					.stacksize = 64,
					.version = 92,
					.firsttraceable = 176,
					.code_adaptive = 192,
					.bytecode = OFFSET_ABSENT,
					.argcount = 52,
					.names = 96,
					.kinds = 104,
					.kwonlyargcount = 60,
					.flags = 48,
					.cellvars = OFFSET_ABSENT,
					.freevars = OFFSET_ABSENT,
				},
			.object =
				{
					.ob_type = 8,
					.tp_name = 24,
				},
			.type =
				{
					.flags = 168,
					.basicsize = 32,
					.dictoffset = 288,
					.cached_keys = 880,
				},
			.instance =
				{
					.dict_before = 24,
					.values_before = OFFSET_ABSENT,
				},
			.dict =
				{
					.keys = 32,
					.values = 40,
				},
			.dict_keys =
				{
					.size = OFFSET_ABSENT,
					.log2_size = 8,
					.log2_index_bytes = 9,
					.kind = 10,
					.nr_entries = 24,
					.indices = 32,
				},
			.dict_values =
				{
					.valid = OFFSET_ABSENT,
					.values = 0,
				},
			.integer =
				{
					.size = 16,
					.size_shift = 3,
					.digits = 24,
				},
			.unicode =
				{
					.length = 16,
					.state = 32,
					.state_kind_shift = 2,
					.ascii_data = 40,
					.compact_data = 56,
					.data = 56,
				},
			.bytes =
				{
					.ob_size = 16,
					.ob_sval = 32,
				},
		},
	.traits =
		{
			.leaf_rule = LEAF_BY_STACKTOP,
			.attribute_rule = ATTRIBUTES_BY_TAGGED_WORD,
			.handled_none = true,
			.shim_owner = 3, /* FRAME_OWNED_BY_CSTACK */
			.tuple_items_after_type = TUPLE_ITEMS_AFTER_TYPE,
			.qualname_after_type = QUALNAME_AFTER_TYPE,
			.oserror_errno_after_type = OSERROR_ERRNO_AFTER_TYPE,
		},
};
