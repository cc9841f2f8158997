/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/layout/offsets.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>

#include "sampler/cpython/find/build.h"
#include "tests/support/fake_python.h"
#include "tests/support/random.h"

#define RUNTIME_ADDR 0x10000u

enum { IMAGE_MAX_BYTES = 1024 };

static int load(const uint8_t *image, size_t size_bytes, uint32_t version_hex,
		struct py_build *build, struct message *message)
{
	struct fake_memory fake;
	int err;

	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, RUNTIME_ADDR, image, size_bytes);
	*message = (struct message){0};
	err = build_load(&fake.memory, RUNTIME_ADDR, version_hex, build, message);
	fake_memory_done(&fake);
	return err;
}

/* Load the table of 3.minor with the number at `at` changed. Returns the error, and its message. */
static int load_changed(uint32_t minor, uint32_t at, uint64_t value, struct message *message)
{
	uint8_t image[IMAGE_MAX_BYTES];
	size_t size_bytes = fake_debug_offsets(minor, image, sizeof(image));
	struct py_build build;

	memcpy(image + at, &value, sizeof(value));
	return load(image, size_bytes, 0, &build, message);
}

struct bounded_field {
	uint32_t offset, width, end;
};

static bool all_inside(const struct bounded_field *fields, size_t nr_fields)
{
	for (size_t i = 0; i < nr_fields; i++)
		if (fields[i].offset != OFFSET_ABSENT &&
		    (uint64_t)fields[i].offset + fields[i].width > fields[i].end)
			return false;
	return true;
}

/* Whether every field in use is inside the buffer for its struct. */
static bool within_buffers(const struct py_build *build)
{
	const struct py_offsets *o = &build->offsets;
	const struct bounded_field fields[] = {
		{o->thread.next, 8, THREAD_STATE_MAX_BYTES},
		{o->thread.interp, 8, THREAD_STATE_MAX_BYTES},
		{o->thread.current_frame, 8, THREAD_STATE_MAX_BYTES},
		{o->thread.base_frame, 8, THREAD_STATE_MAX_BYTES},
		{o->thread.native_thread_id, 8, THREAD_STATE_MAX_BYTES},
		{o->thread.datastack_chunk, 8, THREAD_STATE_MAX_BYTES},
		{o->thread.datastack_top, 8, THREAD_STATE_MAX_BYTES},
		{frame_head_bytes(o), 0, FRAME_MAX_BYTES},
		{code_head_bytes(o), 0, CODE_MAX_BYTES},
		{thread_head_bytes(o), 0, THREAD_STATE_MAX_BYTES},
	};

	return all_inside(fields, sizeof(fields) / sizeof(*fields));
}

/*
 * Whether fields are before the end of what is copied: a frame up to its locals, a code object up
 * to its bytecode.
 */
static bool within_copies(const struct py_build *build)
{
	const struct py_offsets *o = &build->offsets;
	const uint32_t frame_end = frame_head_bytes(o);
	const uint32_t code_end = code_head_bytes(o);
	const uint32_t thread_end = thread_head_bytes(o);
	const struct bounded_field fields[] = {
		{o->thread.last_profiled_frame, 8, thread_end},
		{o->thread.last_profiled_frame_seq, 8, thread_end},
		{o->frame.executable, 8, frame_end},
		{o->frame.previous, 8, frame_end},
		{o->frame.instr_ptr, 8, frame_end},
		{o->frame.lasti, 4, frame_end},
		{o->frame.state, 1, frame_end},
		{o->frame.stacktop, 4, frame_end},
		{o->frame.owner, 1, frame_end},
		{o->code.filename, 8, code_end},
		{o->code.qualname, 8, code_end},
		{o->code.linetable, 8, code_end},
		{o->code.firstlineno, 4, code_end},
		{o->code.bytecode, 8, code_end},
		{o->code.framesize, 4, code_end},
		{o->code.version, 4, code_end},
		{o->code.firsttraceable, 4, code_end},
	};

	return all_inside(fields, sizeof(fields) / sizeof(*fields));
}

Test(offsets, each_version_is_loaded)
{
	for (uint32_t minor = 13; minor <= NEWEST_MINOR; minor++) {
		uint8_t image[IMAGE_MAX_BYTES];
		size_t size_bytes = fake_debug_offsets(minor, image, sizeof(image));
		struct message message;
		struct py_build build;

		cr_assert(zero(int, load(image, size_bytes, 0, &build, &message)));
		cr_expect(eq(chr, message.text[0], 0));
		cr_expect(eq(uint, build.version_hex >> 16, 0x300 | minor));
		cr_expect(within_buffers(&build) && within_copies(&build));
		const struct py_offsets *o = &build.offsets;
		/* A number from the target, and one from the tables. */
		cr_expect(eq(uint, o->frame.instr_ptr, 56));
		cr_expect(eq(uint, o->code.framesize, 76));
		cr_expect(eq(uint, o->code.version, 92));
		cr_expect(eq(uint, o->code.firsttraceable, o->code.code_adaptive - 16));
		cr_expect(eq(uint, o->thread.datastack_top, o->thread.datastack_chunk + 8));
		cr_expect(eq(uint, o->frame.stacktop, minor == 13 ? 64 : OFFSET_ABSENT));
		cr_expect(eq(uint, o->thread.base_frame, minor >= 15 ? 80 : OFFSET_ABSENT));
		cr_expect(eq(uint, o->thread.cframe, OFFSET_ABSENT));
		cr_expect(eq(uint, o->interpreter.code_object_generation,
			     minor == 13   ? OFFSET_ABSENT
			     : minor == 14 ? 7992
					   : 7944));
		cr_expect(eq(uint, o->unicode.compact_data, 56));
		cr_expect(eq(int, build.traits.leaf_rule,
			     minor == 13 ? LEAF_BY_STACKTOP : LEAF_BY_EXECUTABLE));
		cr_expect(eq(uint, build.traits.shim_owner, 3));
		cr_expect(ne(u8, build.traits.shim_owner, UINT8_MAX));
	}
}

Test(offsets, older_versions_use_tables)
{
	static const uint8_t image[64];

	for (uint32_t minor = 6; minor <= 12; minor++) {
		uint32_t version_hex = 0x030001f0 | minor << 16;
		struct message message;
		struct py_build build;

		cr_assert(zero(int, load(image, sizeof(image), version_hex, &build, &message)));
#define ROW(of, field, width, cells, truth)                                                       \
	cr_expect(eq(uint, build.offsets.of.field, ((const uint32_t[]){CELLS cells})[minor - 6]), \
		  "3.%u: %s.%s", minor, #of, #field);
#include "sampler/cpython/layout/offsets.def"
		cr_expect(eq(int, build.traits.frames_on_heap, minor <= 10));
		cr_expect(eq(u8, build.traits.shim_owner, minor <= 11 ? UINT8_MAX : 3));
		cr_expect(within_buffers(&build) && within_copies(&build), "3.%u", minor);
	}
}

Test(offsets, other_versions_are_refused_with_a_message)
{
	static const struct {
		uint32_t in_table; /* 0: no table */
		uint32_t elsewhere;
		char names[8]; /* part of the message */
	} cases[] = {
		{0x030c01f0, 0, "3.12"}, {0x020d01f0, 0, "2.13"}, {0, 0, "could"},
		{0x040000f0, 0, "4.0"},	 {0, 0x030502f0, "3.5"},  {0, 0x020712f0, "2.7"},
		{0, 0x030d00f0, "3.13"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t image[IMAGE_MAX_BYTES] = {0};
		size_t size_bytes = sizeof(image);
		struct py_build build = {.version_hex = 77};
		struct message message;

		if (cases[i].in_table) {
			size_bytes = fake_debug_offsets(15, image, sizeof(image));
			memcpy(image + 8, &cases[i].in_table, sizeof(uint32_t));
		}
		cr_expect(eq(int, load(image, size_bytes, cases[i].elsewhere, &build, &message),
			     -ENOTSUP));
		cr_expect(ne(ptr, strstr(message.text, cases[i].names), NULL), "%s: %s",
			  cases[i].names, message.text);
		cr_expect(ne(ptr, strstr(message.text, "supports " SUPPORTED_VERSIONS), NULL), "%s",
			  message.text);
		cr_expect(eq(uint, build.version_hex, 77));
	}
}

/* A version added to the tables must be added to the messages. */
Test(offsets, newest_version_is_named)
{
	char versions[32];

	(void)snprintf(versions, sizeof(versions), "3.%u to 3.%u", OLDEST_MINOR, NEWEST_MINOR);
	cr_expect(eq(str, (char *)SUPPORTED_VERSIONS, versions));
}

/* Invalid flags, and one that the objects' headers contradict. */
Test(offsets, free_threaded_flag_must_match_the_objects)
{
	for (uint32_t minor = 13; minor <= NEWEST_MINOR; minor++) {
		struct message message;

		for (uint64_t flag = 1; flag <= 2; flag++) {
			cr_expect(eq(int, load_changed(minor, 16, flag, &message), -EBADMSG));
			cr_expect(ne(ptr, strstr(message.text, "inconsistent"), NULL));
		}
		cr_expect(eq(int, load_changed(FAKE_FREE_THREADED + minor, 16, 0, &message),
			     -EBADMSG));
	}
}

Test(offsets, free_threaded_builds_are_loaded)
{
	for (uint32_t minor = 13; minor <= NEWEST_MINOR; minor++) {
		uint8_t image[IMAGE_MAX_BYTES];
		size_t size_bytes =
			fake_debug_offsets(FAKE_FREE_THREADED + minor, image, sizeof(image));
		struct message message;
		struct py_build build;

		cr_assert(zero(int, load(image, size_bytes, 0, &build, &message)));
		const struct py_offsets *o = &build.offsets;
		cr_expect(build.free_threaded && !build.newer_than_tested);
		cr_expect(within_buffers(&build) && within_copies(&build));
		cr_expect(eq(uint, o->object.ob_type, 24));
		cr_expect(eq(uint, o->code.ob_size, 32));
		cr_expect(eq(uint, o->code.framesize, 92));
		cr_expect(eq(uint, o->code.firsttraceable, minor == 13 ? 200 : 208));
		cr_expect(eq(uint, o->generator.iframe, 88));
		cr_expect(eq(uint, o->unicode.state_kind_shift, minor == 13 ? 2 : 8));
		cr_expect(eq(uint, o->unicode.compact_data, 72));
		cr_expect(eq(uint, build.tlbc.code_array, minor == 13 ? 0 : 224));
		cr_expect(eq(uint, o->interpreter.next_code_version,
			     minor == 13   ? 20092
			     : minor == 14 ? 20052
					   : 20004));
	}
}

/* Versions after the newest get its layout until something contradicts it. */
Test(offsets, newer_versions_are_loaded_and_flagged)
{
	const uint32_t newer = 0x03000000 | (NEWEST_MINOR + 1) << 16;
	const uint32_t versions[] = {newer | 0xa1, newer | 0x2f0, newer + 0x100f0};

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		uint8_t image[IMAGE_MAX_BYTES];
		size_t size_bytes = fake_debug_offsets(NEWEST_MINOR, image, sizeof(image));
		struct message message;
		struct py_build build;

		memcpy(image + 8, &versions[i], sizeof(uint32_t));
		cr_assert(zero(int, load(image, size_bytes, 0, &build, &message)));
		cr_expect(build.newer_than_tested && !build.free_threaded);
		cr_expect(eq(uint, build.version_hex, versions[i]));
		cr_expect(eq(uint, build.offsets.frame.instr_ptr, 56));
		/* The table does not have it, and there is no interpreter to find it with. */
		cr_expect(eq(uint, build.offsets.interpreter.next_code_version, OFFSET_ABSENT));
		cr_expect(eq(int, build.traits.leaf_rule, LEAF_BY_EXECUTABLE));
	}
}

Test(offsets, inconsistent_newer_versions_are_refused)
{
	uint8_t image[IMAGE_MAX_BYTES];
	size_t size_bytes = fake_debug_offsets(NEWEST_MINOR, image, sizeof(image));
	const uint64_t version = 0x030000f0 | (NEWEST_MINOR + 1) << 16, wrong = 72;
	struct message message;
	struct py_build build;
	char newer[8];

	(void)snprintf(newer, sizeof(newer), "3.%d", NEWEST_MINOR + 1);
	memcpy(image + 8, &version, sizeof(version));
	memcpy(image + debug_offsets_layout(NEWEST_MINOR).at.frame.previous, &wrong, sizeof(wrong));
	cr_expect(eq(int, load(image, size_bytes, 0, &build, &message), -ENOTSUP));
	cr_expect(ne(ptr, strstr(message.text, newer), NULL));
	cr_expect(ne(ptr, strstr(message.text, "use a newer pysample"), NULL));
}

/*
 * Replace every number of the table by absurd ones. Numbers from which only addresses are made
 * may have any value up to the largest struct. All others are refused with a message.
 */
Test(offsets, absurd_numbers_are_refused_with_a_message)
{
	static const uint64_t absurd[] = {UINT64_MAX, 1ull << 63, UINT32_MAX, 1ull << 32,
					  (4u << 20) + 8};

	for (uint32_t minor = 13; minor <= NEWEST_MINOR; minor++) {
		const struct debug_offsets_layout layout = debug_offsets_layout(minor);
		const uint32_t *at = (const uint32_t *)&layout.at;

		for (size_t i = 0; i < NR_OFFSETS; i++) {
			for (size_t k = 0;
			     at[i] != OFFSET_ABSENT && k < sizeof(absurd) / sizeof(*absurd); k++) {
				struct message message;

				cr_expect(eq(int, load_changed(minor, at[i], absurd[k], &message),
					     -EBADMSG),
					  "3.%u, number %zu", minor, i);
				cr_expect(ne(ptr, strstr(message.text, "inconsistent"), NULL));
			}
		}
	}
}

struct wrong_number {
	char name[32];
	uint32_t at;
	uint64_t value;
};

static void expect_refused(uint32_t minor, const struct wrong_number *cases, size_t nr_cases)
{
	for (size_t i = 0; i < nr_cases; i++) {
		struct message message;

		cr_expect(eq(int, load_changed(minor, cases[i].at, cases[i].value, &message),
			     -EBADMSG),
			  "3.%u: %s", minor, cases[i].name);
	}
}

/* A struct smaller than its fields, or larger than its buffer. */
Test(offsets, contradictory_numbers_are_refused)
{
	for (uint32_t minor = 13; minor <= NEWEST_MINOR; minor++) {
		const struct debug_offsets_layout layout = debug_offsets_layout(minor);
		const struct py_offsets *at = &layout.at;
		const struct wrong_number cases[] = {
			{"runtime too small", at->runtime.size, 0},
			{"interpreter too small", at->interpreter.size, 16},
			{"thread too small", at->thread.size, 8},
			{"frame too small", at->frame.size, 0},
			{"frame too large", at->frame.size, FRAME_MAX_BYTES + 8},
			{"frame as large as can be", at->frame.size, 4u << 20},
			{"code too small", at->code.size, 0},
			{"code too large", at->code.code_adaptive, CODE_MAX_BYTES + 8},
			{"thread field too far", at->thread.datastack_chunk,
			 THREAD_STATE_MAX_BYTES},
			{"unaligned", at->frame.previous, 9},
			{"str fields after the str", at->unicode.length, 40},
		};

		expect_refused(minor, cases, sizeof(cases) / sizeof(*cases));
	}
}

/* Frames are copied up to their locals, code objects up to their bytecode. */
Test(offsets, fields_after_the_copied_bytes_are_refused)
{
	for (uint32_t minor = 13; minor <= NEWEST_MINOR; minor++) {
		const struct debug_offsets_layout layout = debug_offsets_layout(minor);
		const struct py_offsets *at = &layout.at;
		const struct wrong_number cases[] = {
			{"no locals", at->frame.localsplus, 0},
			{"locals before the fields", at->frame.localsplus, 16},
			{"bytecode before the fields", at->code.code_adaptive, 16},
		};

		expect_refused(minor, cases, sizeof(cases) / sizeof(*cases));
	}
}

/* The words for profilers are read from the copy of the thread state, and written to. */
Test(offsets, profiler_words_outside_the_copied_bytes_are_refused)
{
	const struct debug_offsets_layout layout = debug_offsets_layout(15);
	const struct py_offsets *at = &layout.at;
	const struct wrong_number cases[] = {
		{"frame after the copy", at->thread.last_profiled_frame, THREAD_STATE_MAX_BYTES},
		{"frame far after it", at->thread.last_profiled_frame, 1u << 20},
		{"counter after the copy", at->thread.last_profiled_frame_seq, 1u << 20},
		{"frame unaligned", at->thread.last_profiled_frame, 9},
	};

	expect_refused(15, cases, sizeof(cases) / sizeof(*cases));
}

Test(offsets, truncated_table_is_unreadable)
{
	for (uint32_t minor = 13; minor <= NEWEST_MINOR; minor++) {
		uint8_t image[IMAGE_MAX_BYTES];
		size_t size_bytes = fake_debug_offsets(minor, image, sizeof(image));
		struct message message;
		struct py_build build;

		for (size_t cut = 1; cut < size_bytes; cut += 7)
			cr_expect(eq(int, load(image, cut, 0, &build, &message), -EFAULT));
	}
}

static void flip_bits(bool (*holds)(const struct py_build *build))
{
	enum { NR_ROUNDS = 10000 };
	uint64_t random = 88172645463325252u;

	for (int i = 0; i < NR_ROUNDS; i++) {
		uint32_t minor = 13 + (uint32_t)i % (NEWEST_MINOR - 12);
		uint8_t image[IMAGE_MAX_BYTES];
		size_t size_bytes = fake_debug_offsets(minor, image, sizeof(image));
		struct message message;
		struct py_build build;

		for (int k = 0; k <= i % 4; k++) {
			(void)random_next(&random);
			/*
			 * Three of four flips hit the low two bytes of a word, which gives
			 * plausible numbers.
			 */
			size_t byte = random / 8 % size_bytes;
			if (random >> 32 & 3)
				byte = byte / 8 * 8 + (random >> 40 & 1);
			image[byte] ^= (uint8_t)(1u << random % 8);
		}
		int err = load(image, size_bytes, 0, &build, &message);
		/* A newer version's table may be longer than the mapped memory: -EFAULT. */
		if (err && err != -EFAULT)
			cr_expect(ne(chr, message.text[0], 0));
		else if (!err)
			cr_expect(holds(&build), "round %d", i);
	}
}

Test(offsets, flipped_bits_never_lead_outside_the_buffers)
{
	flip_bits(within_buffers);
}

Test(offsets, flipped_bits_never_lead_outside_the_copied_bytes)
{
	flip_bits(within_copies);
}

Test(offsets, versions_are_formatted_as_python_does)
{
	static const struct {
		uint32_t version_hex;
		char text[VERSION_MAX_BYTES];
	} cases[] = {
		{0x030f02f0, "3.15.2"},
		{0x030e00c1, "3.14.0rc1"},
		{0x030d00a6, "3.13.0a6"},
		{0x030d00b2, "3.13.0b2"},
		{0x030a0000, "3.10"},
		{0x030b0ef0, "3.11.14"},
		{0, "0.0"},
		{0xffffffff, "255.255.255"},
		{0xffffffcf, "255.255.255rc15"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[VERSION_MAX_BYTES];

		version_format(cases[i].version_hex, text);
		cr_expect(zero(int, strcmp(text, cases[i].text)), "%s, not %s", text,
			  cases[i].text);
	}
}
