/* SPDX-License-Identifier: MIT */
/* The debug offsets of real CPython builds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/find/build.h"
#include "tests/support/fake_python.h"

/* Values in the debug offsets of 3.13.9, 3.14.0 and 3.15.2 (release builds, x86-64). */
static const struct py_offsets reported_offsets[] = {
	{
		.runtime = {.size = 283408, .finalizing = 608, .interpreters_head = 632},
		.interpreter = {.size = 194984,
				.id = 7272,
				.next = 7264,
				.threads_head = 7344,
				.modules = 7656,
				.gil_locked = 7768,
				.gil_last_holder = 7760,
				.gc = 7400},
		.gc = {.collecting = 200},
		.thread = {.size = 312,
			   .next = 8,
			   .interp = 16,
			   .current_frame = 72,
			   .thread_id = 152,
			   .native_thread_id = 160,
			   .datastack_chunk = 232},
		.frame = {.size = 80,
			  .executable = 0,
			  .previous = 8,
			  .instr_ptr = 56,
			  .owner = 70,
			  .localsplus = 72},
		.code = {.size = 208,
			 .filename = 112,
			 .qualname = 128,
			 .linetable = 136,
			 .firstlineno = 68,
			 .argcount = 52,
			 .names = 96,
			 .kinds = 104,
			 .code_adaptive = 200},
		.object = {.ob_type = 8, .tp_name = 24},
		.type = {.flags = 168},
		.dict = {.keys = 32, .values = 40},
		.integer = {.size = 16, .digits = 24},
		.unicode = {.length = 16, .state = 32, .ascii_data = 40},
		.bytes = {.ob_size = 16, .ob_sval = 32},
	},
	{
		.runtime = {.size = 316616, .finalizing = 784, .interpreters_head = 808},
		.interpreter = {.size = 225864,
				.id = 7280,
				.next = 7272,
				.threads_head = 7344,
				.modules = 7688,
				.gil_locked = 7800,
				.gil_last_holder = 7792,
				.code_object_generation = 7992,
				.gc = 7408},
		.gc = {.collecting = 192},
		.thread = {.size = 832,
			   .next = 8,
			   .interp = 16,
			   .current_frame = 72,
			   .thread_id = 152,
			   .native_thread_id = 160,
			   .datastack_chunk = 232},
		.frame = {.size = 88,
			  .executable = 0,
			  .previous = 8,
			  .instr_ptr = 56,
			  .stackpointer = 64,
			  .owner = 74,
			  .localsplus = 80},
		.generator = {.iframe = 72, .frame_state = 67},
		.code = {.size = 216,
			 .filename = 112,
			 .qualname = 128,
			 .linetable = 136,
			 .firstlineno = 68,
			 .argcount = 52,
			 .names = 96,
			 .kinds = 104,
			 .code_adaptive = 208},
		.object = {.ob_type = 8, .tp_name = 24},
		.type = {.flags = 168},
		.dict = {.keys = 32, .values = 40},
		.integer = {.size = 16, .digits = 24},
		.unicode = {.length = 16, .state = 32, .ascii_data = 40},
		.bytes = {.ob_size = 16, .ob_sval = 32},
	},
	{
		.runtime = {.size = 346568, .finalizing = 912, .interpreters_head = 936},
		.interpreter = {.size = 226240,
				.id = 7272,
				.next = 7264,
				.threads_head = 7336,
				.modules = 7592,
				.gil_locked = 7752,
				.gil_last_holder = 7744,
				.code_object_generation = 7944,
				.gc = 7400},
		.gc = {.collecting = 112, .frame = 120},
		.thread = {.size = 888,
			   .next = 8,
			   .interp = 16,
			   .current_frame = 72,
			   .base_frame = 80,
			   .last_profiled_frame = 88,
			   .last_profiled_frame_seq = 96,
			   .thread_id = 176,
			   .native_thread_id = 184,
			   .datastack_chunk = 256,
			   .gil_requested = 40,
			   .raised = 136,
			   .exc_state = 288},
		.exc_item = {.value = 0},
		.frame = {.size = 88,
			  .executable = 0,
			  .previous = 8,
			  .instr_ptr = 56,
			  .stackpointer = 64,
			  .owner = 74,
			  .localsplus = 80},
		.generator = {.iframe = 72, .frame_state = 67},
		.code = {.size = 216,
			 .filename = 112,
			 .qualname = 128,
			 .linetable = 136,
			 .firstlineno = 68,
			 .argcount = 52,
			 .names = 96,
			 .kinds = 104,
			 .code_adaptive = 208},
		.object = {.ob_type = 8, .tp_name = 24},
		.type = {.flags = 168, .basicsize = 32, .dictoffset = 288, .cached_keys = 888},
		.dict = {.keys = 32, .values = 40},
		.integer = {.size = 16, .digits = 24},
		.unicode = {.length = 16, .state = 32, .ascii_data = 40, .compact_data = 56},
		.bytes = {.ob_size = 16, .ob_sval = 32},
	},
};

/* The same for free-threaded builds, from the headers of 3.13.18, 3.14.10 and 3.15.2. */
static const struct py_offsets reported_free_threaded[] = {
	{
		.runtime = {.size = 328384, .finalizing = 608, .interpreters_head = 632},
		.interpreter = {.size = 215616,
				.id = 7272,
				.next = 7264,
				.threads_head = 7344,
				.modules = 7664,
				.gil_locked = 7784,
				.gil_last_holder = 7776,
				.gc = 7400},
		.gc = {.collecting = 200},
		.thread = {.size = 312,
			   .next = 8,
			   .interp = 16,
			   .current_frame = 72,
			   .thread_id = 152,
			   .native_thread_id = 160,
			   .datastack_chunk = 232},
		.frame = {.size = 80,
			  .executable = 0,
			  .previous = 8,
			  .instr_ptr = 56,
			  .owner = 70,
			  .localsplus = 72},
		.code = {.size = 224,
			 .filename = 128,
			 .qualname = 144,
			 .linetable = 152,
			 .firstlineno = 84,
			 .argcount = 68,
			 .names = 112,
			 .kinds = 120,
			 .code_adaptive = 216},
		.object = {.ob_type = 24, .tp_name = 40},
		.type = {.flags = 184},
		.dict = {.keys = 48, .values = 56},
		.integer = {.size = 32, .digits = 40},
		.unicode = {.length = 32, .state = 48, .ascii_data = 56},
		.bytes = {.ob_size = 32, .ob_sval = 48},
	},
	{
		.runtime = {.size = 365624, .finalizing = 784, .interpreters_head = 808},
		.interpreter = {.size = 249976,
				.id = 7280,
				.next = 7272,
				.threads_head = 7344,
				.modules = 7712,
				.gil_locked = 7832,
				.gil_last_holder = 7824,
				.code_object_generation = 8024,
				.gc = 7408},
		.gc = {.collecting = 192},
		.thread = {.size = 832,
			   .next = 8,
			   .interp = 16,
			   .current_frame = 72,
			   .thread_id = 152,
			   .native_thread_id = 160,
			   .datastack_chunk = 232},
		.frame = {.size = 88,
			  .executable = 0,
			  .previous = 8,
			  .instr_ptr = 56,
			  .stackpointer = 64,
			  .owner = 78,
			  .localsplus = 80},
		.generator = {.iframe = 88},
		.code = {.size = 240,
			 .filename = 128,
			 .qualname = 144,
			 .linetable = 152,
			 .firstlineno = 84,
			 .argcount = 68,
			 .names = 112,
			 .kinds = 120,
			 .code_adaptive = 232},
		.object = {.ob_type = 24, .tp_name = 40},
		.type = {.flags = 184},
		.dict = {.keys = 48, .values = 56},
		.integer = {.size = 32, .digits = 40},
		.unicode = {.length = 32, .state = 48, .ascii_data = 56},
		.bytes = {.ob_size = 32, .ob_sval = 48},
	},
	{
		.runtime = {.size = 409296, .finalizing = 912, .interpreters_head = 936},
		.interpreter = {.size = 250328,
				.id = 7272,
				.next = 7264,
				.threads_head = 7336,
				.modules = 7592,
				.gil_locked = 7760,
				.gil_last_holder = 7752,
				.code_object_generation = 7952,
				.gc = 7400},
		.gc = {.collecting = 112, .frame = 120},
		.thread = {.size = 888,
			   .next = 8,
			   .interp = 16,
			   .current_frame = 72,
			   .base_frame = 80,
			   .last_profiled_frame = 88,
			   .last_profiled_frame_seq = 96,
			   .thread_id = 176,
			   .native_thread_id = 184,
			   .datastack_chunk = 256,
			   .gil_requested = 40,
			   .raised = 136,
			   .exc_state = 288},
		.exc_item = {.value = 0},
		.frame = {.size = 88,
			  .executable = 0,
			  .previous = 8,
			  .instr_ptr = 56,
			  .stackpointer = 64,
			  .owner = 78,
			  .localsplus = 80},
		.generator = {.iframe = 88},
		.code = {.size = 240,
			 .filename = 128,
			 .qualname = 144,
			 .linetable = 152,
			 .firstlineno = 84,
			 .argcount = 68,
			 .names = 112,
			 .kinds = 120,
			 .code_adaptive = 232},
		.object = {.ob_type = 24, .tp_name = 40},
		.type = {.flags = 184, .basicsize = 48, .dictoffset = 304, .cached_keys = 904},
		.dict = {.keys = 48, .values = 56},
		.integer = {.size = 32, .digits = 40},
		.unicode = {.length = 32, .state = 48, .ascii_data = 56, .compact_data = 72},
		.bytes = {.ob_size = 32, .ob_sval = 48},
	},
};

static const struct py_tlbc reported_tlbc[] = {
	{0},
	{.code_array = 224, .generation = 17300},
	{.code_array = 224, .generation = 17252},
};

enum { NR_REPORTED = sizeof(reported_offsets) / sizeof(*reported_offsets) };

/*
 * The values of 3.minor. Of those of CPython's main only the sizes differ from 3.15's: each type
 * has its own cache of attributes (gh-145685), so that of the interpreter is gone. They are those
 * of 3.15.2's headers with main's types_state and managed_static_type_state.
 */
static struct py_offsets reported(uint32_t minor)
{
	const bool free_threaded = minor > FAKE_FREE_THREADED;
	const bool is_main = minor % FAKE_FREE_THREADED == FAKE_MAIN;
	const uint32_t index = minor % FAKE_FREE_THREADED - 13 - is_main;
	struct py_offsets offsets;

	if (index >= NR_REPORTED) {
		(void)fprintf(stderr, "fake_debug_offsets: no debug offsets for 3.%u\n", minor);
		abort();
	}
	offsets = free_threaded ? reported_free_threaded[index] : reported_offsets[index];
	if (is_main) {
		offsets.runtime.size = free_threaded ? 312696 : 249960;
		offsets.interpreter.size = free_threaded ? 153728 : 129632;
	}
	return offsets;
}

uint32_t fake_version_hex(uint32_t minor)
{
	if (minor % FAKE_FREE_THREADED == FAKE_MAIN)
		return 0x030000a2u | FAKE_MAIN << 16;
	return 0x030000f0u | minor % FAKE_FREE_THREADED << 16 | 2 << 8;
}

static void put_u64(uint8_t *image, uint32_t at, uint64_t value)
{
	if (at != OFFSET_ABSENT)
		memcpy(image + at, &value, sizeof(value));
}

size_t fake_debug_offsets(uint32_t minor, uint8_t *image, size_t size_bytes)
{
	const struct py_offsets offsets = reported(minor);
	const bool free_threaded = minor > FAKE_FREE_THREADED;
	const struct debug_offsets_layout layout = debug_offsets_layout(minor % FAKE_FREE_THREADED);
	const uint32_t *at = (const uint32_t *)&layout.at;
	const uint32_t *values = (const uint32_t *)&offsets;

	if (layout.size > size_bytes) {
		(void)fprintf(stderr, "fake_debug_offsets: no room for those of 3.%u\n", minor);
		abort();
	}
	memset(image, 0, layout.size);
	memcpy(image, DEBUG_OFFSETS_COOKIE, 8);
	put_u64(image, 8, fake_version_hex(minor));
	put_u64(image, 16, free_threaded);
	for (size_t i = 0; i < NR_OFFSETS; i++)
		put_u64(image, at[i], values[i]);
	if (free_threaded) {
		const struct py_tlbc *tlbc = &reported_tlbc[layout.minor - 13];

		put_u64(image, layout.tlbc_at.code_array, tlbc->code_array);
		put_u64(image, layout.tlbc_at.generation, tlbc->generation);
	}
	return layout.size;
}
