/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts_layout.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "sampler/bpf/interrupt_identity.h"
#include "tests/support/fake_python.h"

static struct py_build build_of(uint32_t minor)
{
	struct py_build build;

	cr_assert(zero(int, offsets_of_version(0x03000000 | minor << 16, &build, NULL)));
	return build;
}

Test(interrupts_layout, every_version_fits)
{
	for (uint32_t minor = 6; minor <= 12; minor++) {
		const struct py_build build = build_of(minor);
		const struct py_offsets *offsets = &build.offsets;
		const struct interrupt_layout layout = interrupts_layout(offsets);

		cr_expect(interrupts_layout_fits(&layout), "3.%u", minor);
		cr_expect(eq(u32, layout.code.first % sizeof(uint64_t), 0), "3.%u", minor);
		cr_expect(ge(u32, layout.code.first + layout.code.size,
			     offsets->code.linetable + (uint32_t)sizeof(uint64_t)));
		/* The BPF program reads whole words. */
		const uint32_t words[] = {layout.code.type, layout.code.filename,
					  layout.code.qualname, layout.code.linetable};
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			cr_expect(zero(u32, words[i] % sizeof(uint64_t)), "3.%u", minor);
	}
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;

		fake_python_init(&py, fake_stack_minors[v]);
		const struct interrupt_layout layout = interrupts_layout(&py.build.offsets);
		cr_expect(interrupts_layout_fits(&layout), "3.%u", py.minor);
		fake_python_done(&py);
	}
}

Test(interrupts_layout, oversized_layouts_are_refused)
{
	uint32_t changes[] = {
		offsetof(struct interrupt_layout, state.head_size),
		offsetof(struct interrupt_layout, state.current_frame),
		offsetof(struct interrupt_layout, state.cframe),
		offsetof(struct interrupt_layout, frame.head_size),
		offsetof(struct interrupt_layout, frame.previous),
		offsetof(struct interrupt_layout, frame.executable),
		offsetof(struct interrupt_layout, code.head_size),
		offsetof(struct interrupt_layout, code.size),
		offsetof(struct interrupt_layout, code.type),
		offsetof(struct interrupt_layout, code.bytecode),
		offsetof(struct interrupt_layout, code.version),
		offsetof(struct interrupt_layout, text.state),
		offsetof(struct interrupt_layout, code.qualname),
		offsetof(struct interrupt_layout, code.first_line),
	};
	const struct py_build build = build_of(11);

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct interrupt_layout layout = interrupts_layout(&build.offsets);
		const uint32_t large = 100000;

		memcpy((uint8_t *)&layout + changes[i], &large, sizeof(large));
		cr_expect(not(interrupts_layout_fits(&layout)), "%zu", i);
	}
}

Test(interrupts_layout, parts_of_a_record_are_adjacent)
{
	const struct py_build build = build_of(11);
	const struct interrupt_layout layout = interrupts_layout(&build.offsets);
	const struct interrupt_record record = {.nr_loops = 2};
	const uint8_t *state = interrupt_record_state(&record);
	const struct interrupt_loop *loops = interrupt_record_loop(&layout, &record, 0);
	const struct interrupt_frame *first = interrupt_record_frame(&layout, &record, 0);
	const struct interrupt_frame *second = interrupt_record_frame(&layout, &record, 1);

	cr_expect(eq(ptr, (void *)state, (void *)(&record + 1)));
	cr_expect(ge(sz, (size_t)((const uint8_t *)loops - state), layout.state.head_size));
	cr_expect(zero(sz, (size_t)((const uint8_t *)loops - state) % sizeof(uint64_t)));
	cr_expect(eq(ptr, (void *)first, (void *)(loops + record.nr_loops)));
	cr_expect(ge(sz, (size_t)((const uint8_t *)second - (const uint8_t *)(first + 1)),
		     layout.frame.head_size));
	cr_expect(eq(ptr, (void *)interrupt_frame_bytes(first), (void *)(first + 1)));
}

/* Identities of code objects. */

enum { NAME, PATH, NR_TEXTS };

/* Write the words of an ASCII str from its length field on. Returns their size in bytes. */
static uint64_t fill_words(__u64 words[IDENTITY_TEXT_WORDS], const char *text)
{
	const size_t length = strlen(text);

	memset(words, 0xa5, sizeof(__u64[IDENTITY_TEXT_WORDS]));
	words[0] = length;
	memcpy(words + 3, text, length);
	return 24 + length;
}

static __u64 identity_of(const char *name, const char *path)
{
	const char *const texts[NR_TEXTS] = {[NAME] = name, [PATH] = path};
	__u64 hash = identity_begin();

	for (int i = 0; i < NR_TEXTS; i++) {
		__u64 words[IDENTITY_TEXT_WORDS];
		const uint64_t own_bytes = fill_words(words, texts[i]);

		hash = identity_mix_text(hash, words, own_bytes, 24);
	}
	return hash;
}

/* Names and paths that differ in one character have different identities. */
Test(interrupts_layout, similar_names_have_different_identities)
{
	enum { NR_NAMES = 40 };
	__u64 seen[NR_NAMES * NR_NAMES];
	size_t nr_seen = 0;
	char name[32], path[32];

	for (int length = 1; length <= 17; length++) {
		nr_seen = 0;
		for (int i = 0; i < NR_NAMES * NR_NAMES; i++) {
			(void)snprintf(name, sizeof(name), "%0*d%c", length, 0, '0' + i / NR_NAMES);
			(void)snprintf(path, sizeof(path), "/%0*d%c", length, 0,
				       '0' + i % NR_NAMES);
			seen[nr_seen] = identity_of(name, path);
			for (size_t k = 0; k < nr_seen; k++)
				cr_assert(ne(u64, seen[k], seen[nr_seen]), "%s %s", name, path);
			nr_seen++;
		}
	}
}

Test(interrupts_layout, identity_ignores_cached_fields)
{
	__u64 words[IDENTITY_TEXT_WORDS];
	const uint64_t own_bytes = fill_words(words, "function");
	const __u64 hash = identity_mix_text(1, words, own_bytes, 24);

	/*
	 * The hash and the UTF-8 form may be computed at any time, and the words after the str do
	 * not belong to it.
	 */
	words[1]++;
	words[2]++;
	words[4]++;
	cr_expect(eq(u64, identity_mix_text(1, words, own_bytes, 24), hash));
	words[3]++;
	cr_expect(ne(u64, identity_mix_text(1, words, own_bytes, 24), hash));
	words[3]--;
	words[0]++;
	cr_expect(ne(u64, identity_mix_text(1, words, own_bytes, 24), hash));
	/* A str longer than the part that is read, and one in an unknown form. */
	cr_expect(ne(u64, identity_mix_text(1, words, 10000, 24),
		     identity_mix_text(1, words, own_bytes, 24)));
	cr_expect(
		eq(u64, identity_mix_text(1, words, sizeof(__u64), 24), identity_mix(1, words[0])));
}
