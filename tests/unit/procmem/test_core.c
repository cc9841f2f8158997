/* SPDX-License-Identifier: MIT */
#include "procmem/core/core.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "tests/support/made_core.h"

/* Bytes that identify their position: byte i is first + i. */
static const uint8_t *bytes_from(uint8_t first)
{
	static uint8_t bytes[4][256];
	static size_t next;
	uint8_t *chosen = bytes[next++ % 4];

	for (size_t i = 0; i < 256; i++)
		chosen[i] = (uint8_t)(first + i);
	return chosen;
}

static struct core *open_core(int fd)
{
	struct message message = {0};
	struct core *core = NULL;

	cr_assert(zero(int, core_open(fd, &core, &message)), "%s", message.text);
	return core;
}

/* Read size bytes at addr. Returns how many were read, and the first and last one. */
static size_t read_at(struct core *core, remote_addr addr, size_t size, uint8_t *ret_first,
		      uint8_t *ret_last)
{
	uint8_t buffer[1024];
	struct remote_range range = {.addr = addr, .buffer = buffer, .size = size};

	memset(buffer, 0xee, sizeof(buffer));
	cr_assert(zero(int, remote_memory_read_ranges(core_memory(core), &range, 1)));
	*ret_first = buffer[0];
	*ret_last = range.done_bytes ? buffer[range.done_bytes - 1] : 0xee;
	return range.done_bytes;
}

/*
 * A core whose segments are unsorted and interleaved in the file. Two of them touch, one is saved
 * in part, and one not at all.
 */
static struct made_core make_file(void)
{
	struct made_core file = MADE_CORE_EMPTY;

	made_core_add_load(&file, 0x3000, 0x100, PF_R, bytes_from(1), 0x100);
	made_core_add_load(&file, 0x1000, 0x100, PF_R | PF_W, bytes_from(50), 0x100);
	made_core_add_load(&file, 0x1100, 0x200, PF_R, bytes_from(100), 0x80);
	made_core_add_load(&file, 0x1300, 0x100, PF_R | PF_X, NULL, 0);
	made_core_add_load(&file, UINT64_MAX - 0xff, 0xff, PF_R, bytes_from(3), 0xff);
	return file;
}

Test(core, reads_saved_memory)
{
	static const struct {
		remote_addr addr;
		size_t size;
		size_t done;
		uint8_t first;
		uint8_t last;
	} cases[] = {
		{0x1000, 8, 8, 50, 57},		 {0x10fc, 8, 8, 46, 103}, /* across the seam */
		{0x1000, 0x180, 0x180, 50, 227}, {0x1000, 0x400, 0x180, 50, 227}, /* no zeros */
		{0x1178, 16, 8, 220, 227},	 {0x1180, 8, 0, 0xee, 0xee},
		{0x1300, 8, 0, 0xee, 0xee},	 {0x2ffc, 8, 0, 0xee, 0xee},
		{0x3000, 0x100, 0x100, 1, 0},	 {0x30f8, 16, 8, 249, 0},
		{0, 8, 0, 0xee, 0xee},		 {0x5000, 8, 0, 0xee, 0xee},
		{UINT64_MAX - 8, 64, 8, 250, 1}, /* no wrap-around to address 0 */
	};
	struct made_core file = make_file();
	struct core *core = open_core(made_core_write(&file));

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t first;
		uint8_t last;

		cr_expect(eq(sz, read_at(core, cases[i].addr, cases[i].size, &first, &last),
			     cases[i].done),
			  "case %zu", i);
		cr_expect(eq(u8, first, cases[i].first), "case %zu", i);
		cr_expect(eq(u8, last, cases[i].last), "case %zu", i);
	}
	cr_expect(eq(u64, core->missing_bytes, 0));
	core_close(core);
}

/* A range that fails does not keep later ones from being read. */
Test(core, failed_range_does_not_stop_later_ones)
{
	struct made_core file = make_file();
	struct core *core = open_core(made_core_write(&file));
	uint8_t buffer[3][8];
	struct remote_range ranges[] = {
		{.addr = 0x1000, .buffer = buffer[0], .size = 8},
		{.addr = 0x5000, .buffer = buffer[1], .size = 8, .done_bytes = 5},
		{.addr = 0x3000, .buffer = buffer[2], .size = 8},
	};

	cr_assert(zero(int, remote_memory_read_ranges(core_memory(core), ranges, 3)));
	cr_expect(eq(sz, ranges[0].done_bytes, 8));
	cr_expect(eq(sz, ranges[1].done_bytes, 0));
	cr_expect(eq(sz, ranges[2].done_bytes, 8));
	cr_expect(eq(u8, buffer[2][0], 1));
	cr_expect(not(remote_memory_is_writable(core_memory(core))));
	cr_expect(zero(int, remote_memory_check(core_memory(core))));
	core_close(core);
}

Test(core, segments_are_mappings)
{
	struct made_core file = make_file();
	struct core *core = open_core(made_core_write(&file));
	const struct mapping *mapping = maps_find(&core->maps, 0x1150);

	cr_assert(eq(sz, core->maps.nr_mappings, 5));
	cr_assert(ne(ptr, (void *)mapping, NULL));
	cr_expect(eq(u64, mapping->start, 0x1100));
	cr_expect(eq(u64, mapping->end, 0x1300));
	cr_expect(mapping->readable);
	cr_expect(not(mapping->writable));
	cr_expect(core->maps.mappings[0].writable);
	cr_expect(core->maps.mappings[2].executable);
	core_close(core);
}

/* A file whose byte i is i modulo 256, for the mapping at start (0: for all mappings). */
struct mapped_file {
	struct core_backing backing;
	remote_addr start;
	int fd;
};

static int mapped_file_fd(struct core_backing *backing, const struct mapping *mapping)
{
	const struct mapped_file *file = (const struct mapped_file *)backing;

	return file->start && file->start != mapping->start ? -1 : file->fd;
}

static struct mapped_file make_mapped_file(remote_addr start)
{
	struct mapped_file file = {.backing = {mapped_file_fd},
				   .start = start,
				   .fd = memfd_create("mapped", MFD_CLOEXEC)};

	for (int i = 0; i < 4; i++)
		cr_assert(eq(sz, (size_t)write(file.fd, bytes_from(0), 256), 256));
	return file;
}

/* The mapped file supplies only memory that the core does not have. */
Test(core, file_backs_memory_that_was_not_saved)
{
	static const struct {
		remote_addr addr;
		size_t done;
		uint8_t first;
	} cases[] = {
		{0x1100, 8, 100},			 /* saved */
		{0x117c, 8, 224},			 /* from core and file */
		{0x1180, 8, 0x80 + 16},			 /* file, from offset 16 */
		{0x12f8, 8, 8},		{0x12fc, 4, 12}, /* no file for the rest */
		{0x1300, 0, 0xee},			 /* another mapping */
		{0x1000, 8, 50},			 /* saved */
		{0x11fc, 8, 12},			 /* file, then core */
		{0x1200, 8, 77},
	};
	struct made_core file = make_file();
	uint8_t last_bytes[8];

	/* Inside the mapping at 0x1100. */
	made_core_add_load(&file, 0x1200, 8, PF_R, bytes_from(77), 8);
	struct core *core = open_core(made_core_write(&file));
	struct mapped_file mapped = make_mapped_file(0x1100);

	core->maps.mappings[1].file_offset = 16;
	core_memory_set_backing(&core->memory, &mapped.backing);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t first;
		uint8_t last;

		cr_expect(eq(sz, read_at(core, cases[i].addr, 8, &first, &last), cases[i].done),
			  "case %zu", i);
		cr_expect(eq(u8, first, cases[i].first), "case %zu", i);
	}
	cr_assert(zero(int, remote_memory_read(core_memory(core), 0x11fc, last_bytes, 8)));
	cr_expect(eq(u8, last_bytes[3], 15));
	cr_expect(eq(u8, last_bytes[4], 77));
	core_close(core);
	cleanup_close_fn(&mapped.fd);
}

Test(core, file_does_not_replace_memory_cut_off)
{
	struct made_core file = make_file();
	struct core *core = open_core(made_core_write_cut(&file, MADE_CORE_DATA_OFFSET + 0x40));
	struct mapped_file mapped = make_mapped_file(0);
	uint8_t first;
	uint8_t last;

	core_memory_set_backing(&core->memory, &mapped.backing);
	cr_expect(eq(u64, core->missing_bytes, 0x100 - 0x40 + 0x100 + 0x80 + 0xff));
	/* Saved memory may have changed in the process, so the file cannot replace it. */
	cr_expect(eq(sz, read_at(core, 0x3000, 0x100, &first, &last), 0x40));
	cr_expect(eq(sz, read_at(core, 0x1000, 8, &first, &last), 0));
	cr_expect(eq(sz, read_at(core, 0x1180, 8, &first, &last), 8));
	core_close(core);
	cleanup_close_fn(&mapped.fd);
}

/* Add an NT_FILE of two mappings: one in the headers, and one that a debugger left out of them. */
static void add_files(struct made_core *file)
{
	static const struct {
		uint64_t counts[2];
		uint64_t entries[2][3];
		char paths[16];
	} note = {{2, 0x1000}, {{0x1000, 0x1300, 0}, {0x9000, 0xa000, 2}}, "/bin/x\0/bin/x"};

	made_core_add_note(file, "CORE", NT_FILE, &note, sizeof(note));
}

Test(core, mappings_have_files_and_names)
{
	uint64_t auxv[] = {AT_PHDR, 0x1040, AT_SYSINFO_EHDR, 0x3000, AT_RANDOM, UINT64_MAX - 0x80};
	struct made_core file = make_file();

	made_core_add_note(&file, "CORE", NT_AUXV, auxv, sizeof(auxv));
	add_files(&file);
	struct core *core = open_core(made_core_write(&file));
	const struct mapping *found = maps_find(&core->maps, 0x9000);

	cr_assert(ne(ptr, (void *)found, NULL));
	cr_expect(zero(int, strcmp(found->path, "/bin/x")));
	cr_expect(eq(u64, found->file_offset, 0x2000));
	cr_expect(found->executable);
	cr_assert(ne(ptr, (void *)core_executable(core), NULL));
	cr_expect(eq(u64, core_executable(core)->start, 0x1000));
	cr_expect(eq(u64, core_executable(core)->inode, found->inode));
	cr_expect(zero(int, strcmp(maps_find(&core->maps, 0x3000)->path, "[vdso]")));
	cr_expect(zero(int, strcmp(maps_find(&core->maps, UINT64_MAX - 0x90)->path, "[stack]")));
	core_close(core);
}

Test(core, executable_needs_a_mapped_file)
{
	uint64_t auxv[] = {AT_PHDR, 0x3040};
	struct made_core file = make_file();
	struct core *core = open_core(made_core_write(&file));

	cr_expect(eq(ptr, (void *)core_executable(core), NULL));
	core_close(core);
	made_core_add_note(&file, "CORE", NT_AUXV, auxv, sizeof(auxv));
	core = open_core(made_core_write(&file));
	cr_expect(eq(ptr, (void *)core_executable(core), NULL), "the mapping has no file");
	core_close(core);
}

/* More segments than e_phnum can count: the number is in the first section header. */
Test(core, reads_the_segment_count_from_the_first_section)
{
	Elf64_Shdr section = {.sh_info = 6};
	struct made_core file = make_file();
	size_t size_bytes = file.size_bytes;

	cr_assert(eq(int, file.header.e_phnum, 6));
	file.header.e_phnum = PN_XNUM;
	file.header.e_shoff = size_bytes;
	memcpy(file.bytes + size_bytes, &section, sizeof(section));
	file.size_bytes += sizeof(section);
	struct core *core = open_core(made_core_write(&file));

	cr_expect(eq(sz, core->maps.nr_mappings, 5));
	cr_expect(eq(sz, core->segments.nr_unusable, 0));
	core_close(core);

	/* The end is cut off, and the notes follow directly after the headers. */
	file.segments[0].p_offset = sizeof(Elf64_Ehdr) + 6 * sizeof(Elf64_Phdr);
	core = open_core(made_core_write_cut(&file, size_bytes));
	cr_expect(eq(sz, core->maps.nr_mappings, 5));
	cr_expect(eq(sz, core->segments.nr_unusable, 0));
	core_close(core);
}

static void absurd_number(struct made_core *file)
{
	Elf64_Shdr section = {.sh_info = UINT32_MAX};

	file->header.e_phnum = PN_XNUM;
	file->header.e_shoff = file->size_bytes;
	memcpy(file->bytes + file->size_bytes, &section, sizeof(section));
	file->size_bytes += sizeof(section);
}

static void headers_beyond(struct made_core *file)
{
	file->header.e_phoff = UINT64_MAX - 8;
}

static void segment_wraps(struct made_core *file)
{
	file->segments[1].p_memsz = UINT64_MAX;
}

static void offset_wraps(struct made_core *file)
{
	file->segments[1].p_offset = UINT64_MAX - 8;
}

static void offset_is_negative(struct made_core *file)
{
	file->segments[1].p_offset = (uint64_t)INT64_MAX;
}

static void more_in_file_than_in_memory(struct made_core *file)
{
	file->segments[1].p_filesz = 0x400;
	file->segments[1].p_memsz = 0x40;
}

static void many_notes(struct made_core *file)
{
	for (int i = 0; i < MADE_CORE_MAX_SEGMENTS; i++)
		file->segments[i].p_type = PT_NOTE;
	file->header.e_phnum = 65534;
}

Test(core, damaged_cores_are_read_in_bounds)
{
	static const struct {
		const char *name;
		void (*change)(struct made_core *file);
		size_t nr_mappings;
		size_t done_bytes; /* of the 0x100 bytes at 0x3000 */
		bool has_unusable;
	} cases[] = {
		{"an absurd number of segments", absurd_number, 5, 0x100, true},
		{"no header", headers_beyond, 0, 0, true},
		{"a segment that wraps", segment_wraps, 4, 0, true},
		{"an offset that wraps", offset_wraps, 4, 0, true},
		{"an offset beyond any file", offset_is_negative, 4, 0, true},
		{"more in the file than in memory", more_in_file_than_in_memory, 5, 0x40, false},
		{"notes and notes", many_notes, 0, 0, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made_core file = make_file();
		uint8_t first;
		uint8_t last;

		cases[i].change(&file);
		struct core *core = open_core(made_core_write(&file));

		cr_expect(eq(sz, core->maps.nr_mappings, cases[i].nr_mappings), "%s",
			  cases[i].name);
		cr_expect(eq(sz, read_at(core, 0x3000, 0x100, &first, &last), cases[i].done_bytes),
			  "%s", cases[i].name);
		cr_expect(eq(int, core->segments.nr_unusable > 0, cases[i].has_unusable), "%s",
			  cases[i].name);
		core_close(core);
	}
}

static void no_magic(struct made_core *file)
{
	file->header.e_ident[0] = 'x';
}

static void class_32(struct made_core *file)
{
	file->header.e_ident[EI_CLASS] = ELFCLASS32;
}

static void no_class(struct made_core *file)
{
	file->header.e_ident[EI_CLASS] = 7;
}

static void big_endian(struct made_core *file)
{
	file->header.e_ident[EI_DATA] = ELFDATA2MSB;
}

static void executable(struct made_core *file)
{
	file->header.e_type = ET_EXEC;
}

static void relocatable(struct made_core *file)
{
	file->header.e_type = ET_REL;
}

static void other_machine(struct made_core *file)
{
	file->header.e_machine = MACHINE_ELF == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
}

static void no_headers(struct made_core *file)
{
	file->header.e_phnum = 0;
}

static void other_headers(struct made_core *file)
{
	file->header.e_phentsize = 32;
}

static void unchanged(struct made_core *file)
{
	(void)file;
}

Test(core, refuses_other_files)
{
	static const struct {
		void (*change)(struct made_core *file);
		size_t size_bytes;
		int err;
		const char *sentence; /* part of the message */
	} cases[] = {
		{no_magic, 8192, -EBADMSG, "does not begin with the ELF magic number"},
		{class_32, 8192, -ENOTSUP, "32-bit"},
		{no_class, 8192, -EBADMSG, "class is 7"},
		{big_endian, 8192, -ENOTSUP, "big-endian"},
		{executable, 8192, -EBADMSG, "a program or a library"},
		{relocatable, 8192, -EBADMSG, "another kind of ELF file"},
		{other_machine, 8192, -ENOTSUP, "another kind of machine"},
		{no_headers, 8192, -EBADMSG, "without program headers"},
		{other_headers, 8192, -EBADMSG, "without program headers"},
		{unchanged, 0, -EBADMSG, "empty"},
		{unchanged, 3, -EBADMSG, "does not begin with the ELF magic number"},
		{unchanged, 63, -EBADMSG, "truncated: it has only 63 bytes"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made_core file = make_file();
		struct message message = {0};
		struct core *core = NULL;

		cases[i].change(&file);
		cr_expect(eq(int,
			     core_open(made_core_write_cut(&file, cases[i].size_bytes), &core,
				       &message),
			     cases[i].err),
			  "%s", cases[i].sentence);
		cr_expect(eq(ptr, core, NULL), "%s", cases[i].sentence);
		cr_expect(ne(ptr, strstr(message.text, cases[i].sentence), NULL), "%s: %s",
			  cases[i].sentence, message.text);
	}
}

Test(core, refuses_folders_and_devices)
{
	static const struct {
		const char *path;
		const char *sentence;
	} cases[] = {
		{"/", "a folder"},
		{"/dev/zero", "a device"},
		{"/no/such/file", "cannot be read"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct message message = {0};
		struct core *core = NULL;

		cr_expect(ne(int,
			     core_open(open(cases[i].path, O_RDONLY | O_CLOEXEC), &core, &message),
			     0));
		cr_expect(ne(ptr, strstr(message.text, cases[i].sentence), NULL), "%s",
			  message.text);
	}
	core_close(NULL);
}
