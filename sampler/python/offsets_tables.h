/* SPDX-License-Identifier: MIT */
/*
 * The numbers behind offsets.c, in a header of their own so that the tests can
 * prove each one against CPython's headers (tests/offsets/).
 */
#pragma once

#include "sampler/python/offsets.h"

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
					.interpreters_head = 40,
					.gil_locked = 376,
					.gil_last_holder = 368,
				},
			.interpreter =
				{
					.size = 107752,
					.id = 48,
					.next = 0,
					.threads_head = 16,
					.gil_locked = OFFSET_ABSENT,
					.gil_last_holder = OFFSET_ABSENT,
					.code_object_generation = OFFSET_ABSENT,
					.next_code_version = OFFSET_ABSENT,
				},
			.thread =
				{
					.size = 360,
					.next = 8,
					.interp = 16,
					.current_frame = OFFSET_ABSENT,
					.cframe = 56,
					.base_frame = OFFSET_ABSENT,
					.thread_id = 152,
					.native_thread_id = 160,
					.datastack_chunk = 296,
					.datastack_top = 304,
				},
			.cframe =
				{
					.current_frame = 8,
				},
			.frame =
				{
					.size = 80,
					.executable = 32,
					.previous = 48,
					.instr_ptr = 56,
					.stacktop = 64,
					.is_entry = 68,
					.stackpointer = OFFSET_ABSENT,
					.owner = 69,
					.localsplus = 72,
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
				},
			.object =
				{
					.ob_type = 8,
					.tp_name = 24,
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
			.shim_owner = UINT8_MAX,
			.extra_frame_words = 9, /* FRAME_SPECIALS_SIZE */
			.returns = {.value = 83},
		},
};
