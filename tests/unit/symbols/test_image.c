/* SPDX-License-Identifier: MIT */
#include "symbols/elf/image.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "symbols/elf/symtab.h"
#include "tests/support/image_file.h"
#include "tests/support/own_process.h"

Test(image, finds_sections_of_this_program)
{
	struct image *image = open_path("/proc/self/exe");
	uint64_t load_bias = ((struct link_map *)dlopen(NULL, RTLD_LAZY))->l_addr;
	uint64_t function_addr = (uintptr_t)find_library; /* a function of this program */
	uint64_t vaddr = 0;
	uint64_t size = 0;

	cr_assert(zero(int, image_section(image, ".text", &vaddr, &size)));
	cr_expect(ge(u64, function_addr, vaddr + load_bias));
	cr_expect(lt(u64, function_addr, vaddr + load_bias + size));
	cr_expect(eq(int, image_section(image, ".tex", &vaddr, &size), -ENOENT));
	cr_expect(eq(int, image_section(image, "", &vaddr, &size), -ENOENT));
	image_close(image);
	image_close(NULL);
}

/* Every mapping of every loaded file gives the load bias that the loader used. */
static int check_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct maps *maps = arg;
	cleanup_free char *path =
		realpath(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", NULL);
	struct image *image;

	(void)size;
	if (!path)
		return 0; /* the vDSO */
	image = open_path(path);
	for (size_t i = 0, first = 1; i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		uint64_t load_bias = 1;

		if (strcmp(mapping->path, path) != 0)
			continue;
		cr_expect(zero(int, image_load_bias(image, mapping, &load_bias)), "%s", path);
		if (first || mapping->executable || mapping->writable)
			cr_expect(eq(u64, load_bias, info->dlpi_addr), "%s at offset %llx", path,
				  (unsigned long long)mapping->file_offset);
		first = 0;
	}
	image_close(image);
	return 0;
}

Test(image, load_bias_equals_the_loaders)
{
	struct process process = PROCESS_CLOSED;
	struct maps maps;

	process = own_process_open();
	cr_assert(zero(int, maps_read(&process, &maps)));
	dl_iterate_phdr(check_bias, &maps);
	maps_done(&maps);
	process_close(&process);
}

/* Layouts of linkers that put several segments on one page of the file. */
Test(image, load_bias_is_right_where_segments_share_a_page)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[5];
		char rest[0x800];
	} file = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 5},
		.segments =
			{
				{PT_LOAD, PF_R, 0, 0, 0, 0x200, 0x200, 0x10000},
				{PT_LOAD, PF_R | PF_X, 0x200, 0x10200, 0, 0x200, 0x200, 0x10000},
				{PT_LOAD, PF_R | PF_W, 0x400, 0x20400, 0, 0x100, 0x100, 0x10000},
				{PT_LOAD, PF_R | PF_W, 0x500, 0x30500, 0, 0x100, 0x900, 0x10000},
				{PT_GNU_RELRO, PF_R, 0x400, 0x20400, 0, 0x100, 0xc00, 1},
			},
	};
	static const struct {
		char perms[4];
		uint64_t file_offset;
		uint64_t start;
		int err;
	} cases[] = {
		{"r--", 0, 0x7f0000000000, 0},
		{"r-x", 0, 0x7f0000010000, 0},
		{"rw-", 0, 0x7f0000030000, 0},
		{"r--", 0x100000, 0x7f0000000000, -ENOENT},
	};
	Elf64_Ehdr own;
	size_t size;
	cleanup_free char *exe = read_file("/proc/self/exe", &size);

	memcpy(&own, exe, sizeof(own));
	file.header.e_machine = own.e_machine;
	struct image *image = open_bytes((char *)&file, sizeof(file));

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mapping mapping = {.start = cases[i].start,
					  .end = cases[i].start + 0x10000,
					  .file_offset = cases[i].file_offset,
					  .readable = true,
					  .writable = cases[i].perms[1] == 'w',
					  .executable = cases[i].perms[2] == 'x',
					  .path = "/x"};
		uint64_t load_bias = 0x7f0000000000;

		cr_expect(eq(int, image_load_bias(image, &mapping, &load_bias), cases[i].err), "%s",
			  cases[i].perms);
		cr_expect(eq(u64, load_bias, 0x7f0000000000), "%s", cases[i].perms);
	}
	image_close(image);
}

Test(image, build_id_equals_readelfs)
{
	struct library library = find_library();
	struct image *image = open_path(library.path);
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	char command[PATH_MAX + 64];
	char expected[256] = "";
	char got[2 * BUILD_ID_MAX_BYTES + 1] = "";

	(void)snprintf(command, sizeof(command), "LC_ALL=C readelf -n '%s' 2>&1", library.path);
	FILE *readelf = popen(command, "re");

	for (char line[256]; fgets(line, sizeof(line), readelf);)
		(void)sscanf(line, " Build ID: %255s", expected);
	if (pclose(readelf))
		cr_skip("not tested here: build IDs (no readelf)");
	size_t length = image_build_id(image, build_id);

	for (size_t i = 0; i < length; i++)
		(void)snprintf(got + 2 * i, 3, "%02x", build_id[i]);
	cr_expect(eq(str, got, expected));
	image_close(image);
}

/* A file with one note segment: a note of another type, then a build ID. */
static size_t build_id_behind(uint32_t desc_bytes, uint32_t gap_bytes, uint64_t alignment,
			      uint32_t id_bytes, uint8_t ret_build_id[BUILD_ID_MAX_BYTES])
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		char notes[256];
	} file = {.segment = {.p_type = PT_NOTE,
			      .p_offset = offsetof(typeof(file), notes),
			      .p_filesz = sizeof(file.notes),
			      .p_align = alignment}};
	Elf64_Nhdr first = {.n_namesz = 4, .n_descsz = desc_bytes, .n_type = 5};
	Elf64_Nhdr second = {.n_namesz = 4, .n_descsz = id_bytes, .n_type = NT_GNU_BUILD_ID};
	size_t size;
	cleanup_free char *exe = read_file("/proc/self/exe", &size);
	char *note = file.notes;

	memcpy(&file.header, exe, sizeof(file.header));
	file.header.e_phoff = offsetof(typeof(file), segment);
	file.header.e_phnum = 1;
	file.header.e_shoff = 0;
	memcpy(note, &first, sizeof(first));
	memcpy(note + sizeof(first), "GNU", 4);
	note += sizeof(first) + 4 + desc_bytes + gap_bytes;
	memcpy(note, &second, sizeof(second));
	memcpy(note + sizeof(second), "GNU", 4);
	memset(note + sizeof(second) + 4, 0xab, 20);
	struct image *image = open_bytes((char *)&file, sizeof(file));
	size_t length = image_build_id(image, ret_build_id);

	image_close(image);
	return length;
}

Test(image, finds_the_build_id_after_other_notes)
{
	static const struct {
		uint32_t desc_bytes; /* of the first note */
		uint32_t gap_bytes;  /* padding after it */
		uint64_t alignment;
		uint32_t id_bytes;
		size_t expected;
	} cases[] = {
		{16, 0, 4, 20, 20}, {4, 0, 4, 20, 20},	{5, 3, 4, 20, 20},
		{4, 4, 8, 20, 20},  {4, 0, 1, 20, 20},	{16, 0, 8, 20, 20},
		{4, 4, 4, 20, 0},   {4, 0, 4, 65, 0},	{4, 0, 4, 64, 64},
		{4, 0, 4, 0, 0},    {4, 0, 4, 4000, 0}, {4, 0, 4, UINT32_MAX, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t build_id[BUILD_ID_MAX_BYTES] = {0};
		size_t length = build_id_behind(cases[i].desc_bytes, cases[i].gap_bytes,
						cases[i].alignment, cases[i].id_bytes, build_id);

		cr_expect(eq(sz, length, cases[i].expected), "%zu", i);
		cr_expect(eq(u8, build_id[0], cases[i].expected ? 0xab : 0), "%zu", i);
	}
}

/* Call everything that takes an image and ignore the results. */
static void use_everything(const struct image *image)
{
	const struct mapping mapping = {.start = 0x1000, .end = 0x2000, .path = ""};
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	uint64_t a;
	uint64_t b;

	(void)image_load_bias(image, &mapping, &a);
	(void)image_section(image, ".text", &a, &b);
	(void)image_build_id(image, build_id);
	(void)symtab_find(image, "getppid", &a, &b);
	(void)symtab_find(image, "no such symbol", &a, &b);
}

Test(image, truncated_files_are_read_in_bounds)
{
	struct library library = find_library();
	size_t size;
	cleanup_free char *bytes = read_file(library.path, &size);
	int fd = memory_file(bytes, size);

	/* Every length within the headers, then some larger ones. */
	for (size_t cut = size; cut-- > 0; cut -= cut > 2048 ? cut / 256 : 0) {
		struct image *image = NULL;

		cr_assert(zero(int, ftruncate(fd, (off_t)cut)));
		int err = image_open_fd(dup(fd), &image);

		if (!err)
			use_everything(image);
		else
			cr_expect(eq(int, err, -EBADMSG), "%zu", cut);
		image_close(image);
	}
	(void)close(fd);
}

Test(image, file_may_shrink_while_it_is_open)
{
	struct library library = find_library();
	size_t size;
	cleanup_free char *bytes = read_file(library.path, &size);
	int fd = memory_file(bytes, size);
	struct image *image = NULL;
	char byte;

	cr_assert(zero(int, image_open_fd(dup(fd), &image)));
	cr_assert(zero(int, image_read(image, size - 1, &byte, 1)));
	cr_assert(zero(int, ftruncate(fd, 1000)));
	cr_expect(eq(int, image_read(image, size - 1, &byte, 1), -EBADMSG));
	use_everything(image);
	image_close(image);
	(void)close(fd);
}

Test(image, refuses_images_of_other_machines)
{
	static const struct {
		char name[16];
		size_t offset; /* in the ELF header */
		uint8_t value;
		int err;
	} cases[] = {
		{"magic", 0, 'x', -EBADMSG},
		{"32 bits", EI_CLASS, ELFCLASS32, -EBADMSG},
		{"big-endian", EI_DATA, ELFDATA2MSB, -EBADMSG},
		{"machine", offsetof(Elf64_Ehdr, e_machine), EM_MIPS, -EBADMSG},
		{"header size", offsetof(Elf64_Ehdr, e_phentsize), 32, -EBADMSG},
		{"header count", offsetof(Elf64_Ehdr, e_phnum) + 1, 0x80, -E2BIG},
		{"header place", offsetof(Elf64_Ehdr, e_phoff) + 7, 0xff, -EBADMSG},
	};
	struct image *image = NULL;
	size_t size;
	cleanup_free char *bytes = read_file("/proc/self/exe", &size);
	int pipe_fds[2];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char kept = bytes[cases[i].offset];

		bytes[cases[i].offset] = (char)cases[i].value;
		cr_expect(eq(int, image_open_fd(memory_file(bytes, size), &image), cases[i].err),
			  "%s", cases[i].name);
		bytes[cases[i].offset] = kept;
	}
	cr_expect(eq(int, image_open_fd(open("/dev/zero", O_RDONLY), &image), -EBADMSG));
	cr_expect(eq(int, image_open_fd(open("/", O_RDONLY), &image), -EBADMSG));
	cr_assert(zero(int, pipe(pipe_fds)));
	cr_expect(eq(int, image_open_fd(pipe_fds[0], &image), -EBADMSG));
	cr_expect(eq(int, fcntl(pipe_fds[0], F_GETFD), -1), "the descriptor is closed on failure");
	(void)close(pipe_fds[1]);
}

/* A file with three section headers. The names are at 4096. */
struct sections_file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3]; /* null, names, .found */
};

static struct sections_file sections_file(void)
{
	struct sections_file file = {
		.sections = {[1] = {.sh_type = SHT_STRTAB, .sh_offset = 4096, .sh_size = 8},
			     [2] = {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_addr = 0x1234}}};
	size_t size;
	cleanup_free char *exe = read_file("/proc/self/exe", &size);

	memcpy(&file.header, exe, sizeof(file.header));
	file.header.e_phnum = 0;
	file.header.e_shoff = offsetof(struct sections_file, sections);
	file.header.e_shnum = 3;
	file.header.e_shstrndx = 1;
	return file;
}

static int open_sections_file(const struct sections_file *file, struct image **ret_image)
{
	int fd = memory_file((const char *)file, sizeof(*file));

	cr_assert(zero(int, ftruncate(fd, 4096 + 2 * IMAGE_MAX_SECTION_NAME_BYTES)));
	cr_assert(eq(sz, (size_t)pwrite(fd, "\0.found", 8, 4096), 8));
	return image_open_fd(fd, ret_image);
}

Test(image, damaged_section_names_are_refused)
{
	static const struct {
		char what[16];
		uint32_t type;
		uint64_t flags;
		uint64_t size;
		int err;
	} cases[] = {
		{"short", SHT_STRTAB, 0, 8, 0},
		{"longest", SHT_STRTAB, 0, IMAGE_MAX_SECTION_NAME_BYTES, 0},
		{"too long", SHT_STRTAB, 0, IMAGE_MAX_SECTION_NAME_BYTES + 1, -ENOENT},
		{"no NUL", SHT_STRTAB, 0, 7, -ENOENT},
		{"empty", SHT_STRTAB, 0, 0, -ENOENT},
		{"beyond the file", SHT_STRTAB, 0, UINT64_MAX, -ENOENT},
		{"compressed", SHT_STRTAB, SHF_COMPRESSED, 8, -ENOENT},
		{"not in the file", SHT_NOBITS, 0, 8, -ENOENT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sections_file file = sections_file();
		struct image *image = NULL;
		uint64_t vaddr = 0;
		uint64_t size;

		file.sections[1].sh_type = cases[i].type;
		file.sections[1].sh_flags = cases[i].flags;
		file.sections[1].sh_size = cases[i].size;
		cr_assert(zero(int, open_sections_file(&file, &image)));
		cr_expect(eq(int, image_section(image, ".found", &vaddr, &size), cases[i].err),
			  "%s", cases[i].what);
		cr_expect(eq(u64, vaddr, cases[i].err ? 0 : 0x1234), "%s", cases[i].what);
		image_close(image);
	}
}

/* If their number does not fit the ELF header it is in the first section's header. */
Test(image, reads_the_section_count_from_the_first_section)
{
	struct sections_file file = sections_file();
	struct image *image = NULL;
	uint64_t vaddr = 0;
	uint64_t size;

	file.header.e_shnum = 0;
	file.sections[0].sh_size = 3;
	cr_assert(zero(int, open_sections_file(&file, &image)));
	cr_expect(zero(int, image_section(image, ".found", &vaddr, &size)));
	image_close(image);
	file.sections[0].sh_size = IMAGE_MAX_SECTIONS + 1;
	cr_expect(eq(int, open_sections_file(&file, &image), -E2BIG));
}

/* eu-strip leaves the program's segments in the debug file. */
Test(image, reads_the_build_id_from_sections)
{
	struct library library = find_library();
	size_t size;
	cleanup_free char *bytes = read_file(library.path, &size);
	const Elf64_Ehdr *header = (const void *)bytes;
	Elf64_Phdr *segments = (void *)(bytes + header->e_phoff);
	uint8_t expected[BUILD_ID_MAX_BYTES];
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	struct image *image = open_bytes(bytes, size);
	size_t expected_bytes = image_build_id(image, expected);

	image_close(image);
	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_NOTE)
			segments[i].p_offset = size - 4;
	image = open_bytes(bytes, size);
	cr_expect(lt(sz, 0, expected_bytes));
	cr_expect(eq(sz, image_build_id(image, build_id), expected_bytes));
	cr_expect(zero(int, memcmp(build_id, expected, expected_bytes)));
	image_close(image);
}
