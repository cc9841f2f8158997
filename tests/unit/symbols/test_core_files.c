/* SPDX-License-Identifier: MIT */
#include "symbols/elf/core_files.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/support/image_file.h"
#include "tests/support/made_core.h"

enum { LIBRARY_ADDR = 0x7f0000000000, PAGE = 4096 };

/* A test folder with the C library in it, and other files. */
struct place {
	char folder[64];
	char path[128]; /* FOLDER/usr/lib/libx.so */
	char *bytes;
	size_t size;
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	size_t build_id_bytes;
};

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	cleanup_close int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	cr_assert(eq(sz, (size_t)write(fd, bytes, size), size), "%s", path);
}

static struct place make_place(void)
{
	struct library library = find_library();
	struct image *image = open_path(library.path);
	struct place place = {.folder = "/tmp/test_core_files-XXXXXX"};
	char name[96];

	place.build_id_bytes = image_build_id(image, place.build_id);
	cr_assert(lt(sz, 0, place.build_id_bytes), "the C library has no build ID");
	image_close(image);
	place.bytes = read_file(library.path, &place.size);
	cr_assert(ne(ptr, mkdtemp(place.folder), NULL));
	(void)snprintf(name, sizeof(name), "%s/usr", place.folder);
	cr_assert(zero(int, mkdir(name, 0700)));
	cr_assert(zero(int, mkdir(strcat(name, "/lib"), 0700)));
	(void)snprintf(place.path, sizeof(place.path), "%s/libx.so", name);
	return place;
}

static void remove_place(struct place *place)
{
	static const char *const names[] = {"usr/lib/libx.so", "libx.so", "usr/lib", "usr", ""};
	char path[256];

	for (size_t i = 0; i < 5; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", place->folder, names[i]);
		(void)remove(path);
	}
	free(place->bytes);
}

/* The executable segment of the library, or its writable one. */
static const Elf64_Phdr *find_segment(const struct place *place, uint32_t flag)
{
	const Elf64_Ehdr *header = (const void *)place->bytes;
	const Elf64_Phdr *segments = (const void *)(place->bytes + header->e_phoff);

	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & flag))
			return &segments[i];
	cr_fatal("no such segment");
}

/* The offset in the file of a page of code, its last: the first may have the file's header, too. */
static uint64_t code_offset(const struct place *place)
{
	const Elf64_Phdr *text = find_segment(place, PF_X);

	return (text->p_offset + text->p_filesz - 1) & -(uint64_t)PAGE;
}

static remote_addr code_addr(const struct place *place)
{
	const Elf64_Phdr *text = find_segment(place, PF_X);

	return LIBRARY_ADDR + code_offset(place) + (text->p_vaddr - text->p_offset);
}

/*
 * A core of a process with the library mapped as path: page_bytes of its first page, code, and
 * relocated data that was then made read-only. Code and data were not saved.
 */
static struct core *make_core(const struct place *place, const char *path, const void *page,
			      size_t page_bytes)
{
	const Elf64_Phdr *data = find_segment(place, PF_W);
	uint64_t text_addr = code_addr(place);
	uint64_t data_addr = LIBRARY_ADDR + (data->p_vaddr & -(uint64_t)PAGE);
	struct {
		uint64_t counts[2];
		uint64_t entries[3][3];
		char paths[3 * 128];
	} note = {{3, PAGE},
		  {{LIBRARY_ADDR, LIBRARY_ADDR + PAGE, 0},
		   {text_addr, text_addr + PAGE, code_offset(place) / PAGE},
		   {data_addr, data_addr + PAGE, data->p_offset / PAGE}},
		  ""};
	uint64_t auxv[] = {AT_PHDR, LIBRARY_ADDR + 64};
	struct made_core file = MADE_CORE_EMPTY;
	size_t length = strlen(path) + 1;
	struct message message = {0};
	struct core *core = NULL;

	for (size_t i = 0; i < 3; i++)
		memcpy(note.paths + i * length, path, length);
	made_core_add_note(&file, "CORE", NT_AUXV, auxv, sizeof(auxv));
	made_core_add_note(&file, "CORE", NT_FILE, &note,
			   offsetof(typeof(note), paths) + 3 * length);
	made_core_add_load(&file, LIBRARY_ADDR, PAGE, PF_R, page, page_bytes);
	made_core_add_load(&file, text_addr, PAGE, PF_R | PF_X, NULL, 0);
	made_core_add_load(&file, data_addr, PAGE, PF_R, NULL, 0);
	cr_assert(zero(int, core_open(made_core_write(&file), &core, &message)), "%s",
		  message.text);
	return core;
}

/* Which parts of the library can be read from the core: 'h'eader, 't'ext, 'd'ata. */
static void read_pieces(const struct place *place, struct core *core, char ret_pieces[4])
{
	const Elf64_Phdr *data = find_segment(place, PF_W);
	const remote_addr addrs[] = {LIBRARY_ADDR, code_addr(place),
				     LIBRARY_ADDR + (data->p_vaddr & -(uint64_t)PAGE)};
	char page[PAGE];

	memset(ret_pieces, '\0', 4);
	for (size_t i = 0; i < 3; i++)
		if (remote_memory_read(core_memory(core), addrs[i], page, PAGE) == 0)
			ret_pieces[strlen(ret_pieces)] = "htd"[i];
	if (strchr(ret_pieces, 't')) {
		cr_assert(zero(int, remote_memory_read(core_memory(core), addrs[1], page, PAGE)));
		cr_expect(zero(int, memcmp(page, place->bytes + code_offset(place), PAGE)));
	}
}

/* Expect the state of the file, and which of its parts can be read. */
static void expect_file(const char *name, const struct place *place, struct core *core,
			const struct core_file_places *places, enum core_file_state state,
			const char *pieces)
{
	struct core_files *files = NULL;
	struct image *image = NULL;
	char got[4];

	cr_assert(zero(int, core_files_open(core, places, &files, NULL)));
	const struct mapping *mapping = &core->maps.mappings[0];
	const struct core_file *file = core_files_find(files, mapping);
	bool is_used = state >= CORE_FILE_PROVEN;

	cr_expect(zero(int, strcmp(core_file_state_text(file->state), core_file_state_text(state))),
		  "%s: %s", name, core_file_state_text(file->state));
	cr_expect(eq(int, file->image != NULL, is_used), "%s", name);
	cr_expect(
		eq(int, image_source_open(&files->source, mapping, &image), is_used ? 0 : -ENOENT),
		"%s", name);
	image_close(image);
	read_pieces(place, core, got);
	cr_expect(zero(int, strcmp(got, pieces)), "%s: %s", name, got);
	core_files_close(files);
	read_pieces(place, core, got);
	cr_expect(eq(ptr, strchr(got, 't'), NULL), "%s: after the files were closed", name);
	core_close(core);
}

Test(core_files, finds_the_file_that_matches_the_core)
{
	struct place place = make_place();
	struct core_file_places nowhere = {.sysroot = NULL};
	struct core_file_places sysroot = {.sysroot = place.folder};
	char folders[256];
	struct core_file_places list = {.folders = folders};
	struct core_file_places given = {.executable = place.path};

	(void)snprintf(folders, sizeof(folders), "/no/such::/etc/passwd:%s/usr/lib", place.folder);
	write_file(place.folder, "usr/lib/libx.so", place.bytes, place.size);
	expect_file("its path", &place, make_core(&place, place.path, place.bytes, PAGE), &nowhere,
		    CORE_FILE_PROVEN, "ht");
	expect_file("another path", &place, make_core(&place, "/no/libx.so", place.bytes, PAGE),
		    &nowhere, CORE_FILE_NOT_FOUND, "h");
	expect_file("below the sysroot", &place,
		    make_core(&place, "/usr/lib/libx.so", place.bytes, PAGE), &sysroot,
		    CORE_FILE_PROVEN, "ht");
	expect_file("a path of the host", &place,
		    make_core(&place, "/var/lib/layers/1/usr/lib/libx.so", place.bytes, PAGE),
		    &sysroot, CORE_FILE_PROVEN, "ht");
	expect_file("not below the sysroot", &place,
		    make_core(&place, "/lib/libx.so", place.bytes, PAGE), &sysroot,
		    CORE_FILE_NOT_FOUND, "h");
	expect_file("in a folder", &place, make_core(&place, "/opt/libx.so", place.bytes, PAGE),
		    &list, CORE_FILE_PROVEN, "ht");
	expect_file("given", &place, make_core(&place, "/opt/python", place.bytes, PAGE), &given,
		    CORE_FILE_PROVEN, "ht");
	remove_place(&place);
}

Test(core_files, refuses_a_file_of_another_build)
{
	struct place place = make_place();
	struct core_file_places nowhere = {.sysroot = NULL};
	struct core_file_places list = {.folders = place.folder};
	struct core_files *files = NULL;
	size_t size;
	cleanup_free char *other = read_file("/proc/self/exe", &size);
	struct core *core;

	write_file(place.folder, "usr/lib/libx.so", other, size);
	expect_file("another build", &place, make_core(&place, place.path, place.bytes, PAGE),
		    &nowhere, CORE_FILE_DIFFERS, "h");
	core = make_core(&place, place.path, place.bytes, PAGE);
	cr_assert(zero(int, core_files_open(core, &nowhere, &files, NULL)));
	const struct core_file *file = core_files_find(files, &core->maps.mappings[0]);

	cr_expect(zero(int, strcmp(file->found_path, place.path)));
	cr_expect(eq(sz, file->build_id_bytes, place.build_id_bytes));
	cr_expect(zero(int, memcmp(file->build_id, place.build_id, place.build_id_bytes)));
	core_files_close(files);
	core_close(core);

	/* After the wrong file the search continues. */
	write_file(place.folder, "libx.so", place.bytes, place.size);
	expect_file("the right one elsewhere", &place,
		    make_core(&place, place.path, place.bytes, PAGE), &list, CORE_FILE_PROVEN,
		    "ht");
	remove_place(&place);
}

/* Allow nr_more descriptors beyond those in use; can_be_raised leaves the hard limit as it is. */
static void limit_descriptors(rlim_t nr_more, bool can_be_raised)
{
	cleanup_close int next_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit limit;

	cr_assert(ge(int, next_fd, 0));
	cr_assert(zero(int, getrlimit(RLIMIT_NOFILE, &limit)));
	limit.rlim_cur = (rlim_t)next_fd + nr_more;
	if (!can_be_raised)
		limit.rlim_max = limit.rlim_cur;
	cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &limit)));
}

/* Running out of descriptors is not reported as a missing file. */
Test(core_files, exhausted_descriptors_are_no_missing_file)
{
	static const struct {
		const char *name;
		rlim_t nr_more;
		bool can_be_raised;
		enum core_file_state state;
	} cases[] = {
		{"a soft limit", 2, true, CORE_FILE_PROVEN},
		{"some are kept", 10, false, CORE_FILE_TOO_MANY},
		{"none left", 2, false, CORE_FILE_TOO_MANY},
	};
	struct place place = make_place();
	struct core_file_places nowhere = {.sysroot = NULL};

	write_file(place.folder, "usr/lib/libx.so", place.bytes, place.size);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		limit_descriptors(cases[i].nr_more, cases[i].can_be_raised);
		expect_file(cases[i].name, &place, make_core(&place, place.path, place.bytes, PAGE),
			    &nowhere, cases[i].state,
			    cases[i].state == CORE_FILE_PROVEN ? "ht" : "h");
	}
	remove_place(&place);
}

/* Neither is a file that may not be read. */
Test(core_files, unreadable_file_is_reported_as_forbidden)
{
	struct place place = make_place();
	struct core_file_places nowhere = {.sysroot = NULL};

	write_file(place.folder, "usr/lib/libx.so", place.bytes, place.size);
	cr_assert(zero(int, chmod(place.path, 0)));
	/* Root may read anything. */
	cr_assert(zero(int, geteuid() == 0 ? seteuid(65534) : 0));
	expect_file("forbidden", &place, make_core(&place, place.path, place.bytes, PAGE), &nowhere,
		    CORE_FILE_FORBIDDEN, "h");
	cr_assert(zero(int, seteuid(getuid())));
	remove_place(&place);
}

/* Nothing in the core identifies the file. */
Test(core_files, core_without_first_page_proves_no_file)
{
	struct place place = make_place();
	struct core_file_places nowhere = {.sysroot = NULL};
	struct core_file_places root = {.sysroot = "/proc/self/root"};
	struct core_file_places given = {.executable = place.path};

	write_file(place.folder, "usr/lib/libx.so", place.bytes, place.size);
	expect_file("not given by the user", &place, make_core(&place, place.path, NULL, 0),
		    &nowhere, CORE_FILE_UNPROVEN, "");
	expect_file("the sysroot", &place, make_core(&place, place.path, NULL, 0), &root,
		    CORE_FILE_TRUSTED, "ht");
	expect_file("given", &place, make_core(&place, "/no", NULL, 0), &given, CORE_FILE_TRUSTED,
		    "ht");
	remove_place(&place);
}

/* Change the type of the build ID's note. */
static void drop_build_id(struct place *place)
{
	char *id = memmem(place->bytes, PAGE, place->build_id, place->build_id_bytes);

	cr_assert(ne(ptr, id, NULL));
	id[-8] = 77; /* the type, before "GNU" */
}

Test(core_files, first_page_identifies_a_file_without_build_id)
{
	struct place place = make_place();
	struct core_file_places nowhere = {.sysroot = NULL};
	struct core_file_places given = {.executable = place.path};
	char page[PAGE];

	drop_build_id(&place);
	write_file(place.folder, "usr/lib/libx.so", place.bytes, place.size);
	memcpy(page, place.bytes, PAGE);
	expect_file("the same page", &place, make_core(&place, place.path, page, PAGE), &nowhere,
		    CORE_FILE_PROVEN, "ht");
	expect_file("a part of it", &place, make_core(&place, place.path, page, 512), &nowhere,
		    CORE_FILE_UNPROVEN, "");
	expect_file("a part of it, and given", &place, make_core(&place, "/no", page, 512), &given,
		    CORE_FILE_TRUSTED, "ht");
	page[511] ^= 1;
	expect_file("a part that differs", &place, make_core(&place, "/no", page, 512), &given,
		    CORE_FILE_DIFFERS, "");
	page[511] ^= 1;
	page[PAGE - 1] ^= 1;
	expect_file("another page", &place, make_core(&place, place.path, page, PAGE), &nowhere,
		    CORE_FILE_DIFFERS, "h");
	memset(page, 'x', PAGE);
	expect_file("no ELF", &place, make_core(&place, place.path, page, PAGE), &nowhere,
		    CORE_FILE_NO_ELF, "h");
	remove_place(&place);
}

/*
 * An ELF header whose program headers are in another file. That file is not searched for because
 * of it.
 */
Test(core_files, header_that_points_into_another_file_starts_no_search)
{
	struct core_file_places nowhere = {.sysroot = NULL};
	struct {
		uint64_t counts[2];
		uint64_t entries[2][3];
		char paths[6];
	} note = {{2, PAGE},
		  {{LIBRARY_ADDR, LIBRARY_ADDR + PAGE, 0},
		   {LIBRARY_ADDR + PAGE, LIBRARY_ADDR + 2 * PAGE, 0}},
		  "/a\0/b"};
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = MACHINE_ELF,
		.e_version = EV_CURRENT,
		.e_phoff = PAGE + 512, /* in the second file, not saved */
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	struct made_core file = MADE_CORE_EMPTY;
	struct core_files *files = NULL;
	struct core *core = NULL;

	made_core_add_note(&file, "CORE", NT_FILE, &note, sizeof(note));
	made_core_add_load(&file, LIBRARY_ADDR, PAGE, PF_R, &header, sizeof(header));
	made_core_add_load(&file, LIBRARY_ADDR + PAGE, PAGE, PF_R, &header, sizeof(header));
	cr_assert(zero(int, core_open(made_core_write(&file), &core, NULL)));
	cr_assert(zero(int, core_files_open(core, &nowhere, &files, NULL)));
	const struct core_file *first = core_files_find(files, &core->maps.mappings[0]);

	cr_assert(eq(sz, files->nr_files, 2));
	cr_expect(eq(int, (int)first->state, CORE_FILE_NOT_FOUND));
	cr_expect(eq(int, (int)files->files[1].state, CORE_FILE_NOT_LOOKED_FOR));
	core_files_close(files);
	core_close(core);
}

Test(core_files, lists_modules)
{
	struct place place = make_place();
	struct core *core = make_core(&place, place.path, place.bytes, PAGE);
	struct core_file_places nowhere = {.sysroot = NULL};
	struct core_files *files = NULL;
	cleanup_free struct core_module *modules = NULL;
	struct image *image = NULL;
	size_t nr_modules = 0;

	cr_assert(zero(int, core_files_open(core, &nowhere, &files, NULL)));
	cr_assert(zero(int, core_files_modules(files, &modules, &nr_modules)));
	cr_assert(eq(sz, nr_modules, 1));
	cr_expect(eq(u64, modules[0].start, LIBRARY_ADDR));
	cr_expect(eq(u64, modules[0].end, core->maps.mappings[2].end));
	cr_expect(eq(int, (int)modules[0].file->state, CORE_FILE_NOT_FOUND));
	cr_expect(zero(int, strcmp(modules[0].file->path, place.path)));
	cr_expect(eq(sz, modules[0].file->build_id_bytes, place.build_id_bytes));
	/* If this machine has a debug file with the core's build ID, it is found. */
	if (core_files_open_debug(files, &core->maps.mappings[0], &image) == 0) {
		uint8_t build_id[BUILD_ID_MAX_BYTES];

		cr_expect(eq(sz, image_build_id(image, build_id), place.build_id_bytes));
		image_close(image);
	}
	core_files_close(files);
	core_files_close(NULL);
	core_close(core);
	remove_place(&place);
}

Test(core_files, reports_a_missing_sysroot)
{
	struct place place = make_place();
	struct core *core = make_core(&place, place.path, place.bytes, PAGE);
	struct core_file_places places = {.sysroot = "/no/such/folder"};
	struct message message = {0};
	struct core_files *files = NULL;

	cr_expect(lt(int, core_files_open(core, &places, &files, &message), 0));
	cr_expect(ne(ptr, strstr(message.text, places.sysroot), NULL), "%s", message.text);
	core_close(core);
	remove_place(&place);
}
