/* SPDX-License-Identifier: MIT */
/*
 * As offsets_tables.h, for the versions whose frames are objects: 3.6 to 3.10, release
 * builds, x86-64 and aarch64.
 * Source: Include/frameobject.h (3.10: cpython/frameobject.h), code.h, pystate.h,
 * unicodeobject.h, internal/pystate.h (3.8 and newer: pycore_pystate.h, pycore_interp.h,
 * pycore_runtime.h). In the patch levels of 3.7 and 3.8 the place of the GIL's words has
 * moved: where they make no sense nobody is said to hold it.
 */
#pragma once

#include "sampler/python/offsets_tables.h"

/* 3.6 has no _PyRuntime: the list begins at a variable of its own, interp_head. */
static const struct version_table version_3_6 = {
	.minor = 6,
	.offsets =
		{
			.runtime =
				{
					.size = 8,
					.finalizing = OFFSET_ABSENT,
					.interpreters_head = 0,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.gc = OFFSET_ABSENT,
				},
			.interpreter =
				{
					.size = 120,
					.id = OFFSET_ABSENT,
					.next = 0,
					.threads_head = 8,
					.modules = 16,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.code_object_generation = OFFSET_ABSENT,
					.next_code_version = OFFSET_ABSENT,
					.gc = OFFSET_ABSENT,
				},
			.gc =
				{
					.collecting = OFFSET_ABSENT,
					.frame = OFFSET_ABSENT,
				},
			.thread =
				{
					.size = 2272,
					.next = 8,
					.interp = 16,
					.current_frame = 24,
					.cframe = OFFSET_ABSENT,
					.base_frame = OFFSET_ABSENT,
					.last_profiled_frame = OFFSET_ABSENT,
					.last_profiled_frame_seq = OFFSET_ABSENT,
					.thread_id = 152,
					.native_thread_id = OFFSET_ABSENT,
					.unique_id = OFFSET_ABSENT,
					.datastack_chunk = OFFSET_ABSENT,
					.datastack_top = OFFSET_ABSENT,
					.gil_requested = OFFSET_ABSENT,
					.raised = 80,
					.exc_info = OFFSET_ABSENT,
					.exc_state = 104,
				},
			.exc_item =
				{
					.value = 0,
					.previous = OFFSET_ABSENT,
				},
			.cframe =
				{
					.current_frame = OFFSET_ABSENT,
					.previous = OFFSET_ABSENT,
				},
			.frame =
				{
					.size = 384,
					.executable = 32,
					.previous = 24,
					.instr_ptr = OFFSET_ABSENT,
					.lasti = 120,
					.state = 132,
					.stacktop = OFFSET_ABSENT,
					.is_entry = OFFSET_ABSENT,
					.stackpointer = OFFSET_ABSENT,
					.owner = OFFSET_ABSENT,
					.localsplus = OFFSET_ABSENT,
					.heap_locals = 376,
				},
			.generator =
				{
					.iframe = OFFSET_ABSENT,
				},
			.chunk =
				{
					.previous = OFFSET_ABSENT,
					.size = OFFSET_ABSENT,
					.top = OFFSET_ABSENT,
					.data = OFFSET_ABSENT,
				},
			.code =
				{
					.size = 144,
					.ob_size = OFFSET_ABSENT,
					.filename = 96,
					.qualname = 104,
					.linetable = 112,
					.firstlineno = 36,
					.framesize = OFFSET_ABSENT,
					.nlocalsplus = OFFSET_ABSENT,
					.stacksize = OFFSET_ABSENT,
					.version = OFFSET_ABSENT,
					.firsttraceable = OFFSET_ABSENT,
					.code_adaptive = OFFSET_ABSENT,
					.bytecode = 40,
					.argcount = 16,
					.names = 64,
					.kinds = OFFSET_ABSENT,
					.kwonlyargcount = 20,
					.flags = 32,
					.cellvars = 80,
					.freevars = 72,
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
					.cached_keys = 856,
				},
			.instance =
				{
					.dict_before = OFFSET_ABSENT,
					.values_before = OFFSET_ABSENT,
				},
			.dict =
				{
					.keys = 32,
					.values = 40,
				},
			.dict_keys =
				{
					.size = 8,
					.log2_size = OFFSET_ABSENT,
					.log2_index_bytes = OFFSET_ABSENT,
					.kind = OFFSET_ABSENT,
					.nr_entries = 32,
					.indices = 40,
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
			.attribute_rule = ATTRIBUTES_IN_DICT,
			.handled_none = true,
			.frames_on_heap = true,
			.linetable_format = LINETABLE_LNOTAB,
			.lasti_unit_bytes = 1,
			.executing = 1,
			.shim_owner = UINT8_MAX,
			.tuple_items_after_type = TUPLE_ITEMS_AFTER_TYPE,
			.qualname_after_type = QUALNAME_AFTER_TYPE_3_9,
			.oserror_errno_after_type = OSERROR_ERRNO_AFTER_TYPE_3_10,
		},
};

static const struct version_table version_3_7 = {
	.minor = 7,
	.offsets =
		{
			.runtime =
				{
					.size = 1520,
					.finalizing = 8,
					.interpreters_head = 24,
					.gil_locked = 1280,
					.gil_last_holder = 1272,
					.gc = 320,
				},
			.interpreter =
				{
					.size = 2568,
					.id = 16,
					.next = 0,
					.threads_head = 8,
					.modules = 40,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.code_object_generation = OFFSET_ABSENT,
					.next_code_version = OFFSET_ABSENT,
					.gc = OFFSET_ABSENT,
				},
			.gc =
				{
					.collecting = 312,
					.frame = OFFSET_ABSENT,
				},
			.thread =
				{
					.size = 280,
					.next = 8,
					.interp = 16,
					.current_frame = 24,
					.cframe = OFFSET_ABSENT,
					.base_frame = OFFSET_ABSENT,
					.last_profiled_frame = OFFSET_ABSENT,
					.last_profiled_frame_seq = OFFSET_ABSENT,
					.thread_id = 176,
					.native_thread_id = OFFSET_ABSENT,
					.unique_id = 272,
					.datastack_chunk = OFFSET_ABSENT,
					.datastack_top = OFFSET_ABSENT,
					.gil_requested = OFFSET_ABSENT,
					.raised = 88,
					.exc_info = 144,
					.exc_state = 112,
				},
			.exc_item =
				{
					.value = 0,
					.previous = 24,
				},
			.cframe =
				{
					.current_frame = OFFSET_ABSENT,
					.previous = OFFSET_ABSENT,
				},
			.frame =
				{
					.size = 368,
					.executable = 32,
					.previous = 24,
					.instr_ptr = OFFSET_ABSENT,
					.lasti = 104,
					.state = 116,
					.stacktop = OFFSET_ABSENT,
					.is_entry = OFFSET_ABSENT,
					.stackpointer = OFFSET_ABSENT,
					.owner = OFFSET_ABSENT,
					.localsplus = OFFSET_ABSENT,
					.heap_locals = 360,
				},
			.generator =
				{
					.iframe = OFFSET_ABSENT,
				},
			.chunk =
				{
					.previous = OFFSET_ABSENT,
					.size = OFFSET_ABSENT,
					.top = OFFSET_ABSENT,
					.data = OFFSET_ABSENT,
				},
			.code =
				{
					.size = 144,
					.ob_size = OFFSET_ABSENT,
					.filename = 96,
					.qualname = 104,
					.linetable = 112,
					.firstlineno = 36,
					.framesize = OFFSET_ABSENT,
					.nlocalsplus = OFFSET_ABSENT,
					.stacksize = OFFSET_ABSENT,
					.version = OFFSET_ABSENT,
					.firsttraceable = OFFSET_ABSENT,
					.code_adaptive = OFFSET_ABSENT,
					.bytecode = 40,
					.argcount = 16,
					.names = 64,
					.kinds = OFFSET_ABSENT,
					.kwonlyargcount = 20,
					.flags = 32,
					.cellvars = 80,
					.freevars = 72,
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
					.cached_keys = 856,
				},
			.instance =
				{
					.dict_before = OFFSET_ABSENT,
					.values_before = OFFSET_ABSENT,
				},
			.dict =
				{
					.keys = 32,
					.values = 40,
				},
			.dict_keys =
				{
					.size = 8,
					.log2_size = OFFSET_ABSENT,
					.log2_index_bytes = OFFSET_ABSENT,
					.kind = OFFSET_ABSENT,
					.nr_entries = 32,
					.indices = 40,
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
			.attribute_rule = ATTRIBUTES_IN_DICT,
			.handled_none = true,
			.frames_on_heap = true,
			.linetable_format = LINETABLE_LNOTAB,
			.lasti_unit_bytes = 1,
			.executing = 1,
			.shim_owner = UINT8_MAX,
			.tuple_items_after_type = TUPLE_ITEMS_AFTER_TYPE,
			.qualname_after_type = QUALNAME_AFTER_TYPE_3_9,
			.oserror_errno_after_type = OSERROR_ERRNO_AFTER_TYPE_3_10,
		},
};

static const struct version_table version_3_8 = {
	.minor = 8,
	.offsets =
		{
			.runtime =
				{
					.size = 1464,
					.finalizing = 16,
					.interpreters_head = 32,
					.gil_locked = 1168,
					.gil_last_holder = 1160,
					.gc = 344,
				},
			.interpreter =
				{
					.size = 2720,
					.id = 16,
					.next = 0,
					.threads_head = 8,
					.modules = 56,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.code_object_generation = OFFSET_ABSENT,
					.next_code_version = OFFSET_ABSENT,
					.gc = OFFSET_ABSENT,
				},
			.gc =
				{
					.collecting = 200,
					.frame = OFFSET_ABSENT,
				},
			.thread =
				{
					.size = 264,
					.next = 8,
					.interp = 16,
					.current_frame = 24,
					.cframe = OFFSET_ABSENT,
					.base_frame = OFFSET_ABSENT,
					.last_profiled_frame = OFFSET_ABSENT,
					.last_profiled_frame_seq = OFFSET_ABSENT,
					.thread_id = 176,
					.native_thread_id = OFFSET_ABSENT,
					.unique_id = 256,
					.datastack_chunk = OFFSET_ABSENT,
					.datastack_top = OFFSET_ABSENT,
					.gil_requested = OFFSET_ABSENT,
					.raised = 88,
					.exc_info = 144,
					.exc_state = 112,
				},
			.exc_item =
				{
					.value = 0,
					.previous = 24,
				},
			.cframe =
				{
					.current_frame = OFFSET_ABSENT,
					.previous = OFFSET_ABSENT,
				},
			.frame =
				{
					.size = 368,
					.executable = 32,
					.previous = 24,
					.instr_ptr = OFFSET_ABSENT,
					.lasti = 104,
					.state = 116,
					.stacktop = OFFSET_ABSENT,
					.is_entry = OFFSET_ABSENT,
					.stackpointer = OFFSET_ABSENT,
					.owner = OFFSET_ABSENT,
					.localsplus = OFFSET_ABSENT,
					.heap_locals = 360,
				},
			.generator =
				{
					.iframe = OFFSET_ABSENT,
				},
			.chunk =
				{
					.previous = OFFSET_ABSENT,
					.size = OFFSET_ABSENT,
					.top = OFFSET_ABSENT,
					.data = OFFSET_ABSENT,
				},
			.code =
				{
					.size = 176,
					.ob_size = OFFSET_ABSENT,
					.filename = 104,
					.qualname = 112,
					.linetable = 120,
					.firstlineno = 40,
					.framesize = OFFSET_ABSENT,
					.nlocalsplus = OFFSET_ABSENT,
					.stacksize = OFFSET_ABSENT,
					.version = OFFSET_ABSENT,
					.firsttraceable = OFFSET_ABSENT,
					.code_adaptive = OFFSET_ABSENT,
					.bytecode = 48,
					.argcount = 16,
					.names = 72,
					.kinds = OFFSET_ABSENT,
					.kwonlyargcount = 24,
					.flags = 36,
					.cellvars = 88,
					.freevars = 80,
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
					.dict_before = OFFSET_ABSENT,
					.values_before = OFFSET_ABSENT,
				},
			.dict =
				{
					.keys = 32,
					.values = 40,
				},
			.dict_keys =
				{
					.size = 8,
					.log2_size = OFFSET_ABSENT,
					.log2_index_bytes = OFFSET_ABSENT,
					.kind = OFFSET_ABSENT,
					.nr_entries = 32,
					.indices = 40,
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
			.attribute_rule = ATTRIBUTES_IN_DICT,
			.handled_none = true,
			.frames_on_heap = true,
			.linetable_format = LINETABLE_LNOTAB,
			.lasti_unit_bytes = 1,
			.executing = 1,
			.shim_owner = UINT8_MAX,
			.tuple_items_after_type = TUPLE_ITEMS_AFTER_TYPE,
			.qualname_after_type = QUALNAME_AFTER_TYPE_3_9,
			.oserror_errno_after_type = OSERROR_ERRNO_AFTER_TYPE_3_10,
		},
};

static const struct version_table version_3_9 = {
	.minor = 9,
	.offsets =
		{
			.runtime =
				{
					.size = 656,
					.finalizing = 16,
					.interpreters_head = 32,
					.gil_locked = 368,
					.gil_last_holder = 360,
					.gc = OFFSET_ABSENT,
				},
			.interpreter =
				{
					.size = 5656,
					.id = 24,
					.next = 0,
					.threads_head = 8,
					.modules = 856,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.code_object_generation = OFFSET_ABSENT,
					.next_code_version = OFFSET_ABSENT,
					.gc = 616,
				},
			.gc =
				{
					.collecting = 200,
					.frame = OFFSET_ABSENT,
				},
			.thread =
				{
					.size = 264,
					.next = 8,
					.interp = 16,
					.current_frame = 24,
					.cframe = OFFSET_ABSENT,
					.base_frame = OFFSET_ABSENT,
					.last_profiled_frame = OFFSET_ABSENT,
					.last_profiled_frame_seq = OFFSET_ABSENT,
					.thread_id = 176,
					.native_thread_id = OFFSET_ABSENT,
					.unique_id = 256,
					.datastack_chunk = OFFSET_ABSENT,
					.datastack_top = OFFSET_ABSENT,
					.gil_requested = OFFSET_ABSENT,
					.raised = 88,
					.exc_info = 144,
					.exc_state = 112,
				},
			.exc_item =
				{
					.value = 0,
					.previous = 24,
				},
			.cframe =
				{
					.current_frame = OFFSET_ABSENT,
					.previous = OFFSET_ABSENT,
				},
			.frame =
				{
					.size = 368,
					.executable = 32,
					.previous = 24,
					.instr_ptr = OFFSET_ABSENT,
					.lasti = 104,
					.state = 116,
					.stacktop = OFFSET_ABSENT,
					.is_entry = OFFSET_ABSENT,
					.stackpointer = OFFSET_ABSENT,
					.owner = OFFSET_ABSENT,
					.localsplus = OFFSET_ABSENT,
					.heap_locals = 360,
				},
			.generator =
				{
					.iframe = OFFSET_ABSENT,
				},
			.chunk =
				{
					.previous = OFFSET_ABSENT,
					.size = OFFSET_ABSENT,
					.top = OFFSET_ABSENT,
					.data = OFFSET_ABSENT,
				},
			.code =
				{
					.size = 176,
					.ob_size = OFFSET_ABSENT,
					.filename = 104,
					.qualname = 112,
					.linetable = 120,
					.firstlineno = 40,
					.framesize = OFFSET_ABSENT,
					.nlocalsplus = OFFSET_ABSENT,
					.stacksize = OFFSET_ABSENT,
					.version = OFFSET_ABSENT,
					.firsttraceable = OFFSET_ABSENT,
					.code_adaptive = OFFSET_ABSENT,
					.bytecode = 48,
					.argcount = 16,
					.names = 72,
					.kinds = OFFSET_ABSENT,
					.kwonlyargcount = 24,
					.flags = 36,
					.cellvars = 88,
					.freevars = 80,
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
					.cached_keys = 864,
				},
			.instance =
				{
					.dict_before = OFFSET_ABSENT,
					.values_before = OFFSET_ABSENT,
				},
			.dict =
				{
					.keys = 32,
					.values = 40,
				},
			.dict_keys =
				{
					.size = 8,
					.log2_size = OFFSET_ABSENT,
					.log2_index_bytes = OFFSET_ABSENT,
					.kind = OFFSET_ABSENT,
					.nr_entries = 32,
					.indices = 40,
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
			.attribute_rule = ATTRIBUTES_IN_DICT,
			.handled_none = true,
			.frames_on_heap = true,
			.linetable_format = LINETABLE_LNOTAB,
			.lasti_unit_bytes = 1,
			.executing = 1,
			.shim_owner = UINT8_MAX,
			.tuple_items_after_type = TUPLE_ITEMS_AFTER_TYPE,
			.qualname_after_type = QUALNAME_AFTER_TYPE_3_9,
			.oserror_errno_after_type = OSERROR_ERRNO_AFTER_TYPE_3_10,
		},
};

static const struct version_table version_3_10 = {
	.minor = 10,
	.offsets =
		{
			.runtime =
				{
					.size = 672,
					.finalizing = 16,
					.interpreters_head = 32,
					.gil_locked = 368,
					.gil_last_holder = 360,
					.gc = OFFSET_ABSENT,
				},
			.interpreter =
				{
					.size = 113528,
					.id = 24,
					.next = 0,
					.threads_head = 8,
					.modules = 856,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.code_object_generation = OFFSET_ABSENT,
					.next_code_version = OFFSET_ABSENT,
					.gc = 616,
				},
			.gc =
				{
					.collecting = 200,
					.frame = OFFSET_ABSENT,
				},
			.thread =
				{
					.size = 280,
					.next = 8,
					.interp = 16,
					.current_frame = 24,
					.cframe = 48,
					.base_frame = OFFSET_ABSENT,
					.last_profiled_frame = OFFSET_ABSENT,
					.last_profiled_frame_seq = OFFSET_ABSENT,
					.thread_id = 176,
					.native_thread_id = OFFSET_ABSENT,
					.unique_id = 256,
					.datastack_chunk = OFFSET_ABSENT,
					.datastack_top = OFFSET_ABSENT,
					.gil_requested = OFFSET_ABSENT,
					.raised = 88,
					.exc_info = 144,
					.exc_state = 112,
				},
			.exc_item =
				{
					.value = 0,
					.previous = 24,
				},
			.cframe =
				{
					.current_frame = OFFSET_ABSENT,
					.previous = 8,
				},
			.frame =
				{
					.size = 360,
					.executable = 32,
					.previous = 24,
					.instr_ptr = OFFSET_ABSENT,
					.lasti = 96,
					.state = 108,
					.stacktop = OFFSET_ABSENT,
					.is_entry = OFFSET_ABSENT,
					.stackpointer = OFFSET_ABSENT,
					.owner = OFFSET_ABSENT,
					.localsplus = OFFSET_ABSENT,
					.heap_locals = 352,
				},
			.generator =
				{
					.iframe = OFFSET_ABSENT,
				},
			.chunk =
				{
					.previous = OFFSET_ABSENT,
					.size = OFFSET_ABSENT,
					.top = OFFSET_ABSENT,
					.data = OFFSET_ABSENT,
				},
			.code =
				{
					.size = 176,
					.ob_size = OFFSET_ABSENT,
					.filename = 104,
					.qualname = 112,
					.linetable = 120,
					.firstlineno = 40,
					.framesize = OFFSET_ABSENT,
					.nlocalsplus = OFFSET_ABSENT,
					.stacksize = OFFSET_ABSENT,
					.version = OFFSET_ABSENT,
					.firsttraceable = OFFSET_ABSENT,
					.code_adaptive = OFFSET_ABSENT,
					.bytecode = 48,
					.argcount = 16,
					.names = 72,
					.kinds = OFFSET_ABSENT,
					.kwonlyargcount = 24,
					.flags = 36,
					.cellvars = 88,
					.freevars = 80,
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
					.dict_before = OFFSET_ABSENT,
					.values_before = OFFSET_ABSENT,
				},
			.dict =
				{
					.keys = 32,
					.values = 40,
				},
			.dict_keys =
				{
					.size = 8,
					.log2_size = OFFSET_ABSENT,
					.log2_index_bytes = OFFSET_ABSENT,
					.kind = OFFSET_ABSENT,
					.nr_entries = 32,
					.indices = 40,
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
			.attribute_rule = ATTRIBUTES_IN_DICT,
			.handled_none = true,
			.frames_on_heap = true,
			.linetable_format = LINETABLE_RANGES,
			.lasti_unit_bytes = 2,
			.executing = 0, /* FRAME_EXECUTING */
			.shim_owner = UINT8_MAX,
			.tuple_items_after_type = TUPLE_ITEMS_AFTER_TYPE,
			.qualname_after_type = QUALNAME_AFTER_TYPE,
			.oserror_errno_after_type = OSERROR_ERRNO_AFTER_TYPE_3_10,
		},
};
