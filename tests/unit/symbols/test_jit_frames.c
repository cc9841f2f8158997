/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jit_frames.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "procmem/live.h"
#include "symbols/unwind/registers.h"
#include "tests/support/jitdump_bytes.h"
#include "tests/support/machine_offers.h"
#include "tests/support/own_process.h"

/* A file with this process's code, and its reader. */
struct own_map {
	char path[64];
	FILE *file;
	struct process process;
	struct live_memory live;
	struct jit_frames *frames;
	uint64_t start_ns; /* time of begin() */
};

/* Create /tmp/PREFIX<pid>SUFFIX. */
static void begin(struct own_map *map, const char *prefix, const char *suffix)
{
	struct timespec now;

	(void)snprintf(map->path, sizeof(map->path), "/tmp/%s%d%s", prefix, (int)getpid(), suffix);
	map->file = fopen(map->path, "w+e");
	cr_assert(ne(ptr, map->file, NULL));
	map->process = PROCESS_CLOSED;
	map->process = own_process_open();
	live_memory_init(&map->live, &map->process);
	cr_assert(zero(int, jit_frames_create(&map->process, &map->live.memory, &map->frames)));
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	map->start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void end(struct own_map *map)
{
	jit_frames_destroy(map->frames);
	process_close(&map->process);
	(void)fclose(map->file);
	(void)unlink(map->path);
}

static void write_code(struct own_map *map, unsigned int start_addr, const char *name)
{
	cr_assert(lt(int, 0, fprintf(map->file, "%x 10 %s\n", start_addr, name)));
	cr_assert(zero(int, fflush(map->file)));
}

/* The name of the code at addr, ms after the beginning; "" if there is none. */
static char *name_at(struct own_map *map, uint64_t ms, remote_addr addr)
{
	const struct jit_code *code;

	jit_frames_set_time(map->frames, map->start_ns + ms * 1000000);
	code = jit_frames_find(map->frames, addr);
	return (char *)(code ? code->name : "");
}

/* So late that the next search is due, however long the last one took. */
#define LATER_MS 10000000

/* Lines appended to a known file are read for each stack; changed codes show up after a while. */
Test(jit_frames, names_follow_a_growing_map)
{
	struct own_map map;

	begin(&map, "perf-", ".map");
	write_code(&map, 0x1000, "first");
	cr_expect(eq(str, name_at(&map, 0, 0x1008), (char *)"first"), "the first search");
	cr_expect(eq(str, name_at(&map, 1, 0x2000), (char *)""));
	write_code(&map, 0x2000, "second");
	cr_expect(eq(str, name_at(&map, 1, 0x2000), (char *)""), "the same stack");
	cr_expect(eq(str, name_at(&map, 2, 0x2000), (char *)"second"), "the next stack");
	cr_expect(eq(str, name_at(&map, 3, 0x200f), (char *)"second"));

	write_code(&map, 0x1000, "another");
	cr_expect(eq(str, name_at(&map, 999, 0x1000), (char *)"first"),
		  "the old code is still known");
	cr_expect(eq(str, name_at(&map, LATER_MS, 0x1000), (char *)"another"));
	end(&map);
}

/* Create a jitdump of this process with one code, mapped as its writer maps it. */
static void *appear(unsigned int number, remote_addr addr, const char *name)
{
	static struct jitdump_bytes bytes;
	char path[64];
	void *mapped;
	int fd;

	bytes.nr = 0;
	jitdump_put_header(&bytes, 40, 1);
	jitdump_put_load(&bytes, (struct jitdump_load){name, addr, 12, 1, 1, 0});
	(void)snprintf(path, sizeof(path), "/tmp/jit-%d%u.dump", (int)getpid(), number);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert(ge(int, fd, 0));
	jitdump_bytes_write(&bytes, fd, bytes.nr);
	mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert(ne(ptr, mapped, MAP_FAILED));
	(void)close(fd);
	return mapped;
}

static void disappear(unsigned int number, void *mapped)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/tmp/jit-%d%u.dump", (int)getpid(), number);
	(void)munmap(mapped, 4096);
	(void)unlink(path);
}

/* New sources are searched for from time to time, not for each stack. */
Test(jit_frames, new_sources_are_found_later)
{
	struct own_map map;
	void *mapped[2];

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	begin(&map, "perf-", ".map");
	cr_expect(eq(str, name_at(&map, 0, 0x1000), (char *)""), "the first search");
	mapped[0] = appear(0, 0x1000, "first");
	cr_expect(eq(str, name_at(&map, 199, 0x1000), (char *)""), "the wait has doubled");
	cr_expect(eq(str, name_at(&map, LATER_MS, 0x1000), (char *)"first"));
	mapped[1] = appear(1, 0x2000, "second");
	cr_expect(eq(str, name_at(&map, LATER_MS + 99, 0x2000), (char *)""),
		  "the next search is not due");
	cr_expect(eq(str, name_at(&map, 2 * LATER_MS, 0x2000), (char *)"second"));
	for (unsigned int i = 0; i < 2; i++)
		disappear(i, mapped[i]);
	end(&map);
}

/* Stacks of several threads are not in the order of their times. */
Test(jit_frames, older_stack_starts_no_search)
{
	struct own_map map;
	void *mapped;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	begin(&map, "perf-", ".map");
	cr_expect(eq(str, name_at(&map, 1000, 0x1000), (char *)""));
	mapped = appear(0, 0x1000, "first");
	cr_expect(eq(str, name_at(&map, 10, 0x1000), (char *)""));
	cr_expect(eq(str, name_at(&map, LATER_MS, 0x1000), (char *)"first"));
	disappear(0, mapped);
	end(&map);
}

static void expect_rule(struct own_map *map, uint64_t ms, remote_addr addr, int32_t cfa_offset)
{
	const struct cfi_section *section = NULL;
	const struct unwind_rule *rule;

	jit_frames_set_time(map->frames, map->start_ns + ms * 1000000);
	rule = jit_frames_rule(map->frames, addr, &section);
	if (!cfa_offset) {
		cr_expect(not(rule != NULL), "%#llx", (unsigned long long)addr);
		return;
	}
	cr_assert(rule != NULL, "%#llx", (unsigned long long)addr);
	cr_expect(eq(u8, rule->cfa_register, REGISTER_SP));
	cr_expect(eq(i32, rule->cfa_offset, cfa_offset), "%#llx", (unsigned long long)addr);
	cr_expect(ne(ptr, (void *)section, NULL));
}

/* Codes in the writer's buffer are known before they are in the file. */
Test(jit_frames, reads_unwritten_bytes_of_a_jitdump)
{
	static struct jitdump_bytes bytes;
	struct own_map map;
	void *mapped;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	begin(&map, "jit-", ".dump");
	mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(map.file), 0);
	cr_assert(ne(ptr, mapped, MAP_FAILED));
	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_load(&bytes, (struct jitdump_load){"first", 0x1000, 12, 1, map.start_ns, 0});
	cr_assert(eq(sz, fwrite(bytes.bytes, 1, bytes.nr, map.file), bytes.nr));
	cr_expect(eq(str, name_at(&map, 1, 0x1000), (char *)"first"));
	bytes.nr = 0;
	jitdump_put_unwinding(&bytes, 0x2000, false, map.start_ns);
	jitdump_put_load(&bytes, (struct jitdump_load){"second", 0x2000, 12, 2, map.start_ns, 0});
	cr_assert(eq(sz, fwrite(bytes.bytes, 1, bytes.nr, map.file), bytes.nr));
	cr_expect(eq(str, name_at(&map, 2, 0x2000), (char *)"second"));
	expect_rule(&map, 2, 0x2001, 16);
	/* Truncating a file does not remove its codes. */
	(void)fflush(map.file);
	cr_assert(zero(int, ftruncate(fileno(map.file), 0)));
	cr_expect(eq(str, name_at(&map, LATER_MS, 0x1000), (char *)"first"));
	(void)munmap(mapped, 4096);
	end(&map);
}

/* With timestamps in ticks the last code at a place is the current one. */
Test(jit_frames, last_code_wins_if_times_are_processor_ticks)
{
	static struct jitdump_bytes bytes;
	struct own_map map;
	void *mapped;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	begin(&map, "jit-", ".dump");
	jitdump_put_header(&bytes, 40, 1);
	jitdump_put_load(&bytes, (struct jitdump_load){"old", 0x1000, 12, 1, 1, 0});
	jitdump_put_load(&bytes, (struct jitdump_load){"new", 0x1000, 12, 2, UINT64_MAX / 2, 0});
	jitdump_put_load(&bytes, (struct jitdump_load){"other", 0x2000, 12, 3, UINT64_MAX / 2, 0});
	jitdump_bytes_write(&bytes, fileno(map.file), bytes.nr);
	mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(map.file), 0);
	cr_assert(ne(ptr, mapped, MAP_FAILED));
	cr_expect(eq(str, name_at(&map, 0, 0x1000), (char *)"new"));
	cr_expect(eq(str, name_at(&map, 0, 0x2000), (char *)"other"));
	cr_expect(eq(str, name_at(&map, 0, 0x3000), (char *)""));
	(void)munmap(mapped, 4096);
	end(&map);
}

/* Two codes with unwind rules and one without, which later replaces the first. */
Test(jit_frames, unwind_rules_come_from_a_jitdump)
{
	static struct jitdump_bytes bytes;
	struct own_map map;
	void *mapped;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	begin(&map, "jit-", ".dump");
	jitdump_put_header(&bytes, 40, 0);
	jitdump_put_unwinding(&bytes, 0x1000, false, map.start_ns);
	jitdump_put_load(&bytes, (struct jitdump_load){"one", 0x1000, 12, 1, map.start_ns, 0});
	jitdump_put_unwinding(&bytes, 0x2000, false, map.start_ns);
	jitdump_put_load(&bytes, (struct jitdump_load){"two", 0x2000, 12, 2, map.start_ns, 0});
	jitdump_bytes_write(&bytes, fileno(map.file), bytes.nr);
	mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(map.file), 0);
	cr_assert(ne(ptr, mapped, MAP_FAILED));
	for (int i = 0; i < 2; i++) { /* read, then known */
		expect_rule(&map, 1, 0x1000, 8);
		expect_rule(&map, 1, 0x1001, 16);
		expect_rule(&map, 1, 0x100b, 16);
		expect_rule(&map, 1, 0x100c, 0);
		expect_rule(&map, 1, 0x2001, 16);
	}
	jitdump_put_load(
		&bytes, (struct jitdump_load){"three", 0x1000, 12, 3, map.start_ns + 500000000, 0});
	jitdump_bytes_write(&bytes, fileno(map.file), bytes.nr);
	expect_rule(&map, LATER_MS, 0x2000, 8);
	expect_rule(&map, LATER_MS, 0x1000, 0);
	cr_expect(eq(str, name_at(&map, LATER_MS, 0x1000), (char *)"three"));
	expect_rule(&map, 400, 0x1000, 8);
	(void)munmap(mapped, 4096);
	end(&map);
}
