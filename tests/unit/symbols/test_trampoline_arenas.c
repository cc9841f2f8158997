/* SPDX-License-Identifier: MIT */
#include "symbols/jit/trampoline_arenas.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/support/expected_code.h"
#include "tests/support/fake_memory.h"

enum { RUNTIME_ADDR = 0x10000, STRUCTS_ADDR = 0x20000, STRUCT_STEP = 0x80, POINTER_AT = 2576 };
enum { CODE_ADDR = 0x100000, ARENA_BYTES = 0x2000, PADDING_BYTES = 0x100 };

#if defined(__x86_64__)
static const uint8_t trampoline[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48,
				     0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
#elif defined(__aarch64__)
static const uint32_t trampoline[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0};
#endif

enum {
	CODE_BYTES = sizeof(trampoline),
	COPY_BYTES = (CODE_BYTES + 15) / 16 * 16,
	STEP_BYTES = COPY_BYTES + PADDING_BYTES,
};

/* A process with two arenas; the second one is the newest. */
struct target {
	struct fake_memory fake;
	struct maps maps;
	struct jit_map *map;
};

static remote_addr struct_addr(unsigned int arena)
{
	return STRUCTS_ADDR + arena * STRUCT_STEP;
}

static remote_addr arena_addr(unsigned int arena)
{
	return CODE_ADDR + arena * ARENA_BYTES;
}

/* Address of a trampoline. */
static remote_addr addr_of(unsigned int arena, unsigned int index)
{
	return arena_addr(arena) + index * STEP_BYTES;
}

static void set_word(struct target *target, unsigned int arena, unsigned int word, uint64_t value)
{
	fake_memory_write_u64(&target->fake, struct_addr(arena) + 8 * word, value);
}

/* Set the fields of an arena's struct, except the previous arena. */
static void set_arena(struct target *target, unsigned int arena, remote_addr start_addr,
		      uint64_t nr_bytes, uint64_t used_bytes)
{
	set_word(target, arena, 0, start_addr);
	set_word(target, arena, 1, start_addr + used_bytes);
	set_word(target, arena, 2, nr_bytes);
	set_word(target, arena, 3, nr_bytes - used_bytes);
	set_word(target, arena, 4, CODE_BYTES);
}

/* Make an arena full of copies, nr_used of them used. */
static void make_arena(struct target *target, unsigned int arena, unsigned int nr_used)
{
	fake_memory_map(&target->fake, arena_addr(arena), ARENA_BYTES);
	for (unsigned int at = 0; at + CODE_BYTES <= ARENA_BYTES; at += COPY_BYTES)
		fake_memory_write(&target->fake, arena_addr(arena) + at, trampoline, CODE_BYTES);
	set_arena(target, arena, arena_addr(arena), ARENA_BYTES, nr_used * STEP_BYTES);
	set_word(target, arena, 5, arena ? struct_addr(arena - 1) : 0);
}

static void open_target(struct target *target)
{
	static const char text[] = "10000-14000 rw-p 00000000 00:00 0\n"
				   "20000-21000 rw-p 00000000 00:00 0 [heap]\n"
				   "30000-31000 r-xp 00000000 08:01 7 /lib/code.so\n"
				   "100000-104000 r-xp 00000000 00:00 0\n";

	fake_memory_init(&target->fake);
	fake_memory_map(&target->fake, RUNTIME_ADDR, TRAMPOLINE_ARENAS_RUNTIME_BYTES);
	fake_memory_map(&target->fake, STRUCTS_ADDR, 2 * STRUCT_STEP);
	make_arena(target, 0, 4);
	make_arena(target, 1, 2);
	/* An earlier pointer that leads to no arena. */
	fake_memory_write_u64(&target->fake, RUNTIME_ADDR + 8, STRUCTS_ADDR + 8);
	fake_memory_write_u64(&target->fake, RUNTIME_ADDR + POINTER_AT, struct_addr(1));
	fake_memory_write_u64(&target->fake, RUNTIME_ADDR + POINTER_AT + 40, PADDING_BYTES);
	cr_assert(zero(int, maps_parse(text, strlen(text), &target->maps)));
	target->map = jit_map_create();
}

static void close_target(struct target *target)
{
	jit_map_destroy(target->map);
	maps_done(&target->maps);
	fake_memory_done(&target->fake);
}

static uint32_t nr_found(struct target *target)
{
	uint32_t nr;

	cr_assert(zero(int, trampoline_arenas_read(&target->fake.memory, &target->maps,
						   RUNTIME_ADDR, target->map, 5)));
	(void)jit_map_codes(target->map, &nr);
	return nr;
}

Test(trampoline_arenas, finds_trampolines_in_use)
{
	struct target target;

	open_target(&target);
	cr_expect(eq(u32, nr_found(&target), 6));
	for (unsigned int i = 0; i < 4; i++)
		expect_code(target.map, addr_of(0, i), 5, TRAMPOLINE_ARENAS_NAME);
	expect_code(target.map, addr_of(0, 0) + CODE_BYTES - 1, 5, TRAMPOLINE_ARENAS_NAME);
	expect_code(target.map, addr_of(0, 0) + CODE_BYTES, 5, "-");
	expect_code(target.map, addr_of(0, 0), 4, "-");
	expect_code(target.map, addr_of(0, 4), 5, "-");
	expect_code(target.map, addr_of(1, 1), 5, TRAMPOLINE_ARENAS_NAME);
	expect_code(target.map, addr_of(1, 2), 5, "-");
	cr_expect(eq(u32, nr_found(&target), 6), "known trampolines are not added again");
	close_target(&target);
}

/* In newer releases they are aligned to 32 bytes. */
Test(trampoline_arenas, alignment_is_recognised)
{
	static const uint8_t no_code[ARENA_BYTES];
	enum { NEW_STEP_BYTES = (CODE_BYTES + PADDING_BYTES + 31) / 32 * 32 };

	for (unsigned int nr_used = 1; nr_used < 20; nr_used++) {
		struct target target;

		open_target(&target);
		fake_memory_write(&target.fake, arena_addr(1), no_code, sizeof(no_code));
		for (unsigned int i = 0; (i + 1) * NEW_STEP_BYTES <= ARENA_BYTES; i++)
			fake_memory_write(&target.fake, arena_addr(1) + i * NEW_STEP_BYTES,
					  trampoline, CODE_BYTES);
		set_arena(&target, 1, arena_addr(1), ARENA_BYTES, nr_used * NEW_STEP_BYTES);
		set_word(&target, 1, 5, 0);
		cr_expect(eq(u32, nr_found(&target), nr_used));
		for (unsigned int i = 0; i < nr_used; i++)
			expect_code(target.map, arena_addr(1) + i * NEW_STEP_BYTES, 5,
				    TRAMPOLINE_ARENAS_NAME);
		close_target(&target);
	}
}

Test(trampoline_arenas, named_trampoline_keeps_its_name)
{
	const struct jit_code named = {
		.start_addr = addr_of(0, 1),
		.nr_bytes = CODE_BYTES,
		.to_ns = JIT_MAP_OPEN_NS,
		.name = "py::f:f.py",
		.source = JIT_SOURCE_JITDUMP,
	};
	struct target target;

	open_target(&target);
	cr_assert(zero(int, jit_map_add(target.map, &named, strlen(named.name), NULL)));
	cr_expect(eq(u32, nr_found(&target), 6));
	expect_code(target.map, addr_of(0, 1), 5, named.name);
	close_target(&target);
}

/* What is no arena is refused, and so the previous arena is not found, either. */
Test(trampoline_arenas, invalid_arenas_are_skipped)
{
	static const struct {
		const char *what;
		uint64_t start_addr, nr_bytes, used_bytes;
	} cases[] = {
		{"it is in no mapping", 0xdead000, ARENA_BYTES, STEP_BYTES},
		{"it begins inside of a page", CODE_ADDR + 16, ARENA_BYTES, STEP_BYTES},
		{"not executable", RUNTIME_ADDR, ARENA_BYTES, STEP_BYTES},
		{"it is in a file", 0x30000, 0x1000, STEP_BYTES},
		{"it is longer than the mapping", CODE_ADDR, 2 * ARENA_BYTES + 0x1000, STEP_BYTES},
		{"it has no bytes", CODE_ADDR, 0, 0},
		{"it is too long", CODE_ADDR, UINT64_MAX, STEP_BYTES},
		{"more used than available", CODE_ADDR, ARENA_BYTES, ARENA_BYTES + 16},
		{"a negative size in use", CODE_ADDR, ARENA_BYTES, -(uint64_t)STEP_BYTES},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target target;

		open_target(&target);
		set_arena(&target, 1, cases[i].start_addr, cases[i].nr_bytes, cases[i].used_bytes);
		cr_expect(zero(u32, nr_found(&target)), "%s", cases[i].what);
		close_target(&target);
	}
}

Test(trampoline_arenas, inconsistent_arenas_are_skipped)
{
	struct target target;

	open_target(&target);
	set_word(&target, 1, 3, ARENA_BYTES);
	cr_expect(zero(u32, nr_found(&target)), "free bytes");
	close_target(&target);

	open_target(&target);
	set_word(&target, 1, 4, UINT64_MAX);
	cr_expect(zero(u32, nr_found(&target)), "trampoline size");
	close_target(&target);

	open_target(&target);
	fake_memory_write_u64(&target.fake, RUNTIME_ADDR + POINTER_AT + 40, 0);
	set_word(&target, 1, 4, 0);
	set_word(&target, 1, 5, 0);
	cr_expect(zero(u32, nr_found(&target)), "an empty trampoline");
	close_target(&target);
}

Test(trampoline_arenas, damaged_list_yields_what_precedes_it)
{
	struct target target;

	open_target(&target);
	set_word(&target, 0, 5, struct_addr(1)); /* a circle */
	cr_expect(eq(u32, nr_found(&target), 6));
	close_target(&target);

	open_target(&target);
	set_word(&target, 1, 5, 0xdead000);
	fake_memory_write(&target.fake, addr_of(1, 1), "no code", 7);
	cr_expect(eq(u32, nr_found(&target), 1));
	close_target(&target);

	open_target(&target); /* the distance between trampolines is unknown */
	fake_memory_write_u64(&target.fake, RUNTIME_ADDR + POINTER_AT + 40, 0x80);
	cr_expect(zero(u32, nr_found(&target)));
	target.fake.error = -ESRCH;
	cr_expect(eq(int,
		     trampoline_arenas_read(&target.fake.memory, &target.maps, RUNTIME_ADDR,
					    target.map, 5),
		     -ESRCH));
	close_target(&target);
}
