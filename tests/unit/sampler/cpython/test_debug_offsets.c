/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/build.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>

#include "tests/support/fake_stack.h"

enum { CHUNK_BYTES = 4096, WORDS = 20, MAX_EDITS = 8, TABLE_BYTES = 1024 };

static const uint32_t minors[] = {
	13, 14, 15, FAKE_FREE_THREADED + 13, FAKE_FREE_THREADED + 14, FAKE_FREE_THREADED + 15,
};

enum { NR_MINORS = sizeof(minors) / sizeof(*minors) };

/* An interpreter with a thread that runs a function. */
static void begin(struct fake_python *py, uint32_t minor)
{
	struct fake_stack stack;
	remote_addr code;

	fake_python_init(py, minor);
	code = fake_python_code(py, &(struct fake_code){.name = "f", .frame_words = WORDS});
	fake_stack_init(&stack, py, 1000, CHUNK_BYTES);
	fake_stack_call_c(&stack);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_finish(&stack);
}

/* Insert words into a table before the field at `at`; negative: remove words from there on. */
struct edit {
	uint32_t at;
	int words;
	uint64_t value; /* first inserted word; each next one is 8 more */
};

struct layout_case {
	const char *name;
	uint32_t minor;
	struct edit edits[MAX_EDITS]; /* by descending `at` */
};

/* Give the interpreter an edited table with the version 3.version_minor. */
static void edit_table(struct fake_python *py, const struct edit *edits, uint32_t version_minor)
{
	uint8_t table[TABLE_BYTES + 256] = {0};
	const uint64_t version = 0x030000a1 | version_minor % FAKE_FREE_THREADED << 16;

	(void)fake_debug_offsets(py->minor, table, TABLE_BYTES);
	memcpy(table + 8, &version, sizeof(version));
	for (size_t i = 0; i < MAX_EDITS && edits[i].words; i++) {
		uint8_t *at = table + edits[i].at;
		size_t words = (size_t)abs(edits[i].words);
		size_t after = TABLE_BYTES - edits[i].at - 8 * words;

		if (edits[i].words < 0) {
			memmove(at, at + 8 * words, after);
			continue;
		}
		memmove(at + 8 * words, at, after);
		for (size_t k = 0; k < words; k++) {
			uint64_t value = edits[i].value + 8 * k;

			memcpy(at + 8 * k, &value, sizeof(value));
		}
	}
	fake_memory_write(&py->fake, py->runtime_addr, table, TABLE_BYTES);
	/* The runtime's other words are after its table. */
	fake_memory_write_u64(&py->fake,
			      py->runtime_addr + py->build.offsets.runtime.interpreters_head,
			      py->interp_addr);
}

static int load(struct fake_python *py, struct py_build *build, struct message *message)
{
	*message = (struct message){0};
	return build_load(&py->fake.memory, py->runtime_addr, 0, build, message);
}

/* Fields that pre-releases of 3.14 and 3.15 lacked, or that a later version may add. */
static const struct layout_case cases[] = {
	{"no change", 15, {{0}}},
	{"thread: a field more before the ids", 15, {{240, 1, 104}}},
	{"thread: three more before the ids", 14, {{216, 3, 80}}},
	{"thread: fields more at its end", 13, {{216, 4, 240}}},
	{"interpreter: a field more at its end", 15, {{176, 1, 7960}}},
	{"interpreter: a field more before the GIL", 14, {{136, 2, 7700}}},
	{"frame: a field more at its end", 15, {{376, 1, 76}}},
	{"code: a field more at its end", 14, {{400, 2, 200}}},
	{"a struct more before the frame", 15, {{312, 3, 32}}},
	{"a struct less before the frame", 15, {{304, -1, 0}}},
	{"two structs more before bytes", 13, {{512, 8, 48}}},
	{"type and heap type as in 3.14", 15, {{536, -2, 0}, {520, -2, 0}}},
	{"no last_profiled_frame", 15, {{224, -2, 0}}},
	{"no last_profiled_frame_seq, and a struct more", 15, {{312, 2, 16}, {232, -1, 0}}},
	{"the same of a free-threaded build",
	 FAKE_FREE_THREADED + 15,
	 {{312, 3, 32}, {240, 1, 104}}},
	{"and of 3.14's", FAKE_FREE_THREADED + 14, {{512, 2, 48}, {216, 1, 104}}},
	{"all over", 15, {{696, 2, 24}, {376, 1, 76}, {312, 1, 8}, {240, 1, 104}, {176, 1, 7960}}},
};

/*
 * Whether this offset is searched for. Those of thread names, exceptions, the garbage collector and
 * tasks are not, nor are those of words that are written to.
 */
static bool is_searched(size_t index)
{
	const size_t bytes = index * sizeof(uint32_t);

	return bytes != offsetof(struct py_offsets, interpreter.modules) &&
	       bytes != offsetof(struct py_offsets, generator.frame_state) &&
	       (bytes < offsetof(struct py_offsets, interpreter.gc) ||
		bytes >= offsetof(struct py_offsets, thread)) &&
	       (bytes < offsetof(struct py_offsets, thread.last_profiled_frame) ||
		bytes >= offsetof(struct py_offsets, cframe)) &&
	       (bytes < offsetof(struct py_offsets, type) ||
		bytes >= offsetof(struct py_offsets, unicode));
}

/* Expect equal builds, except for offsets that only some layouts have. */
static void expect_same(const struct py_build *got, const struct py_build *want, const char *name)
{
	const uint32_t *ours = (const uint32_t *)&got->offsets;
	const uint32_t *theirs = (const uint32_t *)&want->offsets;

	for (size_t i = 0; i < sizeof(got->offsets) / sizeof(uint32_t); i++)
		if (is_searched(i))
			cr_expect(eq(uint, ours[i], theirs[i]), "%s: number %zu", name, i);
	cr_expect(eq(uint, got->tlbc.code_array, want->tlbc.code_array), "%s", name);
	cr_expect(eq(uint, got->tlbc.generation, want->tlbc.generation), "%s", name);
}

Test(debug_offsets, added_and_removed_fields_are_recognised)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake_python py;
		struct message message;
		struct py_build build;
		struct py_build want;

		begin(&py, cases[i].minor);
		want = py.build;
		want.offsets.interpreter.next_code_version = OFFSET_ABSENT;
		edit_table(&py, cases[i].edits, cases[i].minor);
		cr_expect(zero(int, load(&py, &build, &message)), "%s", cases[i].name);
		build.offsets.interpreter.next_code_version = OFFSET_ABSENT;
		expect_same(&build, &want, cases[i].name);
		if (build.newer_than_tested)
			cr_expect(eq(uint, build.offsets.thread.last_profiled_frame, OFFSET_ABSENT),
				  "%s", cases[i].name);
		cr_expect(eq(int, build.newer_than_tested, cases[i].edits[0].words != 0), "%s",
			  cases[i].name);
		fake_python_done(&py);
	}
}

/* A newer version may differ from the newest known one in the same ways. */
Test(debug_offsets, newer_versions_may_have_other_fields)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake_python py;
		struct message message;
		struct py_build build;

		if (cases[i].minor % FAKE_FREE_THREADED != NEWEST_MINOR)
			continue;
		begin(&py, cases[i].minor);
		edit_table(&py, cases[i].edits, NEWEST_MINOR + 2);
		cr_expect(zero(int, load(&py, &build, &message)), "%s: %s", cases[i].name,
			  message.text);
		build.offsets.interpreter.next_code_version =
			py.build.offsets.interpreter.next_code_version;
		expect_same(&build, &py.build, cases[i].name);
		cr_expect(build.newer_than_tested, "%s", cases[i].name);
		fake_python_done(&py);
	}
}

static const uint32_t mains[] = {FAKE_MAIN, FAKE_FREE_THREADED + FAKE_MAIN};

enum { NR_MAINS = sizeof(mains) / sizeof(*mains) };

/* main has the table of 3.15; of the numbers, only sizes differ. */
Test(debug_offsets, main_is_read_and_reported_as_newer)
{
	for (size_t v = 0; v < NR_MAINS; v++) {
		const uint32_t newest = mains[v] - FAKE_MAIN + NEWEST_MINOR;
		struct fake_python py, known;
		struct message message;
		struct py_build build;
		char version[VERSION_MAX_BYTES], want[VERSION_MAX_BYTES];

		begin(&py, mains[v]);
		fake_python_init(&known, newest);
		cr_assert(zero(int, load(&py, &build, &message)), "%s", message.text);
		cr_expect(build.newer_than_tested);
		version_format(build.version_hex, version);
		(void)snprintf(want, sizeof(want), "3.%d.0a2", FAKE_MAIN);
		cr_expect(eq(str, version, want));
		cr_expect(lt(uint, build.offsets.interpreter.size,
			     known.build.offsets.interpreter.size));
		known.build.offsets.interpreter.size = build.offsets.interpreter.size;
		known.build.offsets.runtime.size = build.offsets.runtime.size;
		cr_expect(zero(
			int, memcmp(&build.offsets, &known.build.offsets, sizeof(build.offsets))));
		cr_expect(zero(int, memcmp(&build.tlbc, &known.build.tlbc, sizeof(build.tlbc))));
		fake_python_done(&known);
		fake_python_done(&py);
	}
}

/* Without a frame nothing can prove a layout that is not its version's. */
Test(debug_offsets, unknown_layout_without_frames_is_refused)
{
	const struct edit edits[MAX_EDITS] = {{240, 1, 104}};

	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct message message;
		struct py_build build;

		fake_python_init(&py, minors[v]);
		fake_python_thread(&py, 1000);
		edit_table(&py, edits, minors[v]);
		cr_expect(eq(int, load(&py, &build, &message), -EBADMSG));
		cr_expect(ne(ptr, strstr(message.text, "pre-release"), NULL), "%s", message.text);
		fake_python_done(&py);
	}
}

static remote_addr newest_thread(const struct fake_python *py)
{
	struct remote_memory *memory = (struct remote_memory *)&py->fake.memory;
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr thread_addr;

	cr_assert(zero(int, remote_memory_read_u64(
				    memory, py->interp_addr + offsets->interpreter.threads_head,
				    &thread_addr)));
	return thread_addr;
}

/*
 * The version's own layout, but a list that ends in unmapped memory: these are not this CPython's
 * structs.
 */
Test(debug_offsets, contradicted_layout_is_refused)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct fake_python py;
		struct message message;
		struct py_build build;
		remote_addr thread_addr;

		begin(&py, minors[v]);
		cr_assert(zero(int, load(&py, &build, &message)));
		thread_addr = newest_thread(&py);
		fake_memory_write_u64(&py.fake, thread_addr + build.offsets.thread.interp,
				      py.interp_addr + 8);
		cr_expect(eq(int, load(&py, &build, &message), -EBADMSG));
		fake_python_done(&py);
	}
}

static remote_addr word_at(const struct fake_python *py, remote_addr addr, uint32_t offset)
{
	uint64_t word;

	cr_assert(zero(int, remote_memory_read_u64((struct remote_memory *)&py->fake.memory,
						   addr + offset, &word)));
	return word;
}

static remote_addr current_frame(const struct fake_python *py)
{
	return word_at(py, newest_thread(py), py->build.offsets.thread.current_frame);
}

static remote_addr current_code(const struct fake_python *py)
{
	return word_at(py, current_frame(py), py->build.offsets.frame.executable) & ~UINT64_C(3);
}

static void references_have_a_third_tag(struct fake_python *py)
{
	fake_memory_write_u64(&py->fake, current_frame(py) + py->build.offsets.frame.executable,
			      current_code(py) | 4);
}

static void names_are_no_str(struct fake_python *py)
{
	fake_memory_write_u64(&py->fake, current_code(py) + py->build.offsets.code.qualname,
			      py->none_addr);
}

static void line_tables_are_no_bytes(struct fake_python *py)
{
	fake_memory_write_u64(&py->fake, current_code(py) + py->build.offsets.code.linetable,
			      py->none_addr);
}

static void chunks_have_another_size(struct fake_python *py)
{
	const remote_addr chunk_addr =
		word_at(py, newest_thread(py), py->build.offsets.thread.datastack_chunk);

	fake_memory_write_u64(&py->fake, chunk_addr + py->build.offsets.chunk.size, 0);
}

/* What the table does not say may have changed in a newer version; a known one is trusted. */
Test(debug_offsets, newer_version_whose_frames_prove_nothing_is_refused)
{
	static void (*const changes[])(struct fake_python * py) = {
		references_have_a_third_tag,
		names_are_no_str,
		line_tables_are_no_bytes,
		chunks_have_another_size,
	};

	for (size_t v = 0; v < NR_MAINS; v++) {
		for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
			struct fake_python py;
			struct message message;
			struct py_build build;

			begin(&py, mains[v]);
			changes[i](&py);
			cr_expect(eq(int, load(&py, &build, &message), -ENOTSUP), "%zu", i);
			cr_expect(ne(ptr, strstr(message.text, "use a newer pysample"), NULL), "%s",
				  message.text);
			fake_python_done(&py);

			begin(&py, mains[v] - FAKE_MAIN + NEWEST_MINOR);
			changes[i](&py);
			cr_expect(zero(int, load(&py, &build, &message)), "%zu", i);
			fake_python_done(&py);
		}
	}
}

/* A newer version that is starting, or in which only C runs, has no frame. */
Test(debug_offsets, newer_version_without_frames_is_read)
{
	for (size_t v = 0; v < NR_MAINS; v++) {
		struct fake_python py;
		struct message message;
		struct py_build build;

		fake_python_init(&py, mains[v]);
		fake_python_thread(&py, 1000);
		cr_expect(zero(int, load(&py, &build, &message)), "%s", message.text);
		cr_expect(build.newer_than_tested);
		fake_python_done(&py);
	}
}

/* The only thread appears to have ended for this many reads, more than three attempts need. */
enum { TORN_READS = 24 };

static void repair_later(struct fake_memory *fake, size_t range_index)
{
	const struct fake_python *py = fake->context;

	if (range_index != 0 || fake->nr_calls < TORN_READS)
		return;
	fake->before_range = NULL;
	fake_memory_write_u64(fake, newest_thread(py) + py->build.offsets.thread.interp,
			      py->interp_addr);
}

static void thread_ends_for_a_while(struct fake_python *py)
{
	fake_memory_write_u64(&py->fake, newest_thread(py) + py->build.offsets.thread.interp, 0);
	py->fake.nr_calls = 0;
	py->fake.context = py;
	py->fake.before_range = repair_later;
}

static void newest_thread_has_ended(struct fake_python *py)
{
	remote_addr thread_addr = fake_python_thread(py, 1001);

	fake_memory_write_u64(&py->fake, thread_addr + py->build.offsets.thread.interp, 0);
}

static void list_breaks_after_the_first(struct fake_python *py)
{
	remote_addr thread_addr = fake_python_thread(py, 1001);

	fake_memory_write_u64(&py->fake, thread_addr + py->build.offsets.thread.next, 0x1230);
}

/* Threads that begin and end while the list is followed do not refute a layout. */
Test(debug_offsets, changing_list_does_not_refute_a_layout)
{
	static void (*const changes[])(struct fake_python * py) = {
		thread_ends_for_a_while, newest_thread_has_ended, list_breaks_after_the_first};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
			struct fake_python py;
			struct message message = {0};
			struct py_build build;

			begin(&py, fake_stack_minors[v]);
			changes[i](&py);
			cr_expect(zero(int, build_load(&py.fake.memory, py.runtime_addr,
						       py.build.version_hex, &build, &message)),
				  "3.%u, %zu: %s", fake_stack_minors[v], i, message.text);
			cr_expect(eq(int, build.newer_than_tested, py.build.newer_than_tested),
				  "3.%u, %zu", fake_stack_minors[v], i);
			fake_python_done(&py);
		}
	}
}

/* The tables are those of release builds. In other builds objects may begin with other words. */
Test(debug_offsets, frames_without_code_refute_a_layout)
{
	static const uint32_t old[] = {11, 12};

	for (size_t v = 0; v < sizeof(old) / sizeof(*old); v++) {
		struct fake_python py;
		struct message message = {0};
		struct py_build build;
		struct fake_stack stack;
		remote_addr code;

		fake_python_init(&py, old[v]);
		code = fake_python_code(&py, &(struct fake_code){.name = "f"});
		fake_stack_init(&stack, &py, 1000, CHUNK_BYTES);
		fake_stack_call(&stack, code, WORDS);
		fake_stack_finish(&stack);
		cr_expect(zero(int, build_load(&py.fake.memory, py.runtime_addr,
					       py.build.version_hex, &build, &message)));
		fake_memory_write_u64(&py.fake, code + build.offsets.object.ob_type, py.none_addr);
		cr_expect(eq(int,
			     build_load(&py.fake.memory, py.runtime_addr, py.build.version_hex,
					&build, &message),
			     -ENOTSUP));
		cr_expect(ne(ptr, strstr(message.text, "unusual"), NULL), "%s", message.text);
		fake_python_done(&py);
	}
}

/* Two layouts fit: the thread ids are in the table twice, with different offsets. */
Test(debug_offsets, ambiguous_layout_is_refused)
{
	const struct edit edits[MAX_EDITS] = {{240, 3, 600}};
	const uint64_t more[] = {600, 608, 640};
	struct fake_python py;
	struct message message;
	struct py_build build;
	remote_addr thread_addr;
	uint64_t value;

	begin(&py, 15);
	edit_table(&py, edits, 15);
	fake_memory_write(&py.fake, py.runtime_addr + 240, more, sizeof(more));
	cr_assert(zero(int, remote_memory_read_u64(
				    &py.fake.memory,
				    py.interp_addr + py.build.offsets.interpreter.threads_head,
				    &thread_addr)));
	cr_assert(zero(int, load(&py, &build, &message)), "only one layout fits yet");
	for (uint32_t offset = 0; offset <= 16; offset += 8) {
		const uint32_t *own = &py.build.offsets.thread.native_thread_id;
		uint32_t from = offset == 0 ? *own : py.build.offsets.thread.datastack_chunk;

		from += offset == 16 ? 8 : 0;
		cr_assert(zero(
			int, remote_memory_read_u64(&py.fake.memory, thread_addr + from, &value)));
		fake_memory_write_u64(&py.fake, thread_addr + (offset == 0 ? 608 : 632 + offset),
				      value);
	}
	cr_expect(eq(int, load(&py, &build, &message), -EBADMSG));
	fake_python_done(&py);
}

/* Write a list head that points to itself twice, and the word after it. */
static void add_empty_list(struct fake_python *py, uint32_t offset, uint64_t after)
{
	const uint64_t addr = py->interp_addr + offset;
	const uint64_t words[] = {addr, addr, after};

	fake_memory_write(&py->fake, addr, words, sizeof(words));
}

/* In a debug build or a newer version func_state is found by the pointer before it. */
Test(debug_offsets, code_version_is_found)
{
	static const struct {
		int moved;     /* distance from the table's place */
		uint64_t used; /* bytes of the pool */
		bool found;
	} counters[] = {
		{0, 776, true},	    {16, 776, true},   {80, 0, true},	  {-40, 1496, true},
		{-40, 1500, false}, {16, 2304, false}, {16, 2312, false}, {0, 2304, true},
	};

	for (size_t v = 0; v < NR_MINORS; v++) {
		for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
			struct fake_python py;
			struct message message;
			struct py_build build;
			uint32_t table_at, at;
			remote_addr pool_end;

			begin(&py, minors[v]);
			table_at = py.build.offsets.interpreter.next_code_version;
			at = table_at + (uint32_t)counters[i].moved;
			pool_end = py.interp_addr + at / 8 * 8 - 8;
			fake_memory_write_u32(&py.fake, py.interp_addr + table_at, 0);
			fake_memory_write_u64(&py.fake, pool_end,
					      pool_end - 2304 + counters[i].used);
			fake_memory_write_u32(&py.fake, py.interp_addr + at, 1654);
			add_empty_list(&py, 8480, 12289912);
			add_empty_list(&py, 8544, 10 | 77ull << 32);
			cr_assert(zero(int, load(&py, &build, &message)));
			cr_expect(eq(uint, build.offsets.interpreter.next_code_version,
				     counters[i].found ? at : OFFSET_ABSENT),
				  "3.%u, %zu", minors[v], i);
			fake_python_done(&py);
		}
	}
}
