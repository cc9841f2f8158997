/* SPDX-License-Identifier: MIT */
/* Reads this process's own list as if it were another's. */
#include "symbols/jit/gdb_jit.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "output/dump/jit_object.h"
#include "procmem/live.h"
#include "procmem/machine.h"
#include "procmem/process.h"
#include "symbols/elf/live_images.h"
#include "symbols/elf/module_symbols.h"
#include "tests/support/expected_code.h"
#include "tests/support/machine_offers.h"
#include "tests/support/own_process.h"

/* The structs of GDB's documentation. */
struct jit_code_entry {
	struct jit_code_entry *next, *prev;
	const uint8_t *image;
	uint64_t image_bytes;
};

static struct {
	uint32_t version, action;
	struct jit_code_entry *relevant, *first;
} __jit_debug_descriptor __attribute__((used)) = {.version = 1};

enum { IMAGE_MAX_BYTES = 4096, CODE_BYTES = 12 };

static const uint8_t nops[CODE_BYTES] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
					 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3};

/* An ELF file with one function and its unwind information, with absolute pointers. */
static size_t make_image(uint8_t image[IMAGE_MAX_BYTES], const char *name, remote_addr addr)
{
	uint8_t unwind[56] = {
		0x14,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		1,
		'z',
		'R',
		0,
		1,
		0x78,
		16,
		1,
		0, /* the CIE… */
		0x0c,
		7,
		8,
		0x90,
		1,
		0,
		0,
		0x18,
		0,
		0,
		0,
		0x1c, /* …and the FDE */
		[40] = CODE_BYTES,
	};
	const struct jit_object object = {
		.elf_machine = MACHINE_ELF,
		.name = name,
		.addr = addr,
		.code = nops,
		.code_bytes = CODE_BYTES,
		.unwind = unwind,
		.unwind_bytes = sizeof(unwind),
		.unwind_addr = addr + 16,
	};
	const int fd = memfd_create("image", MFD_CLOEXEC);
	ssize_t nr;

	memcpy(unwind + 32, &addr, sizeof(addr));
	cr_assert(zero(int, jit_object_write(&object, fd)));
	nr = pread(fd, image, IMAGE_MAX_BYTES, 0);
	cr_assert(lt(int, 0, (int)nr));
	(void)close(fd);
	return (size_t)nr;
}

/*
 * Make it relocatable, as LLVM's files are: the symbol is an offset into .text, which was loaded
 * at addr.
 */
static void make_relocatable(uint8_t *image, remote_addr addr)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)image;
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(image + header->e_shoff);

	header->e_type = ET_REL;
	sections[1].sh_addr = addr;
	for (unsigned int i = 0; i < header->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			((Elf64_Sym *)(void *)(image + sections[i].sh_offset))[1].st_value = 0;
}

/* A registered function. */
struct made {
	struct jit_code_entry entry;
	uint8_t image[IMAGE_MAX_BYTES] __attribute__((aligned(8)));
};

static void add_entry(struct made *made)
{
	made->entry.prev = NULL;
	made->entry.next = __jit_debug_descriptor.first;
	if (made->entry.next)
		made->entry.next->prev = &made->entry;
	__jit_debug_descriptor.first = &made->entry;
}

static void add_function(struct made *made, const char *name, remote_addr addr)
{
	made->entry.image = made->image;
	made->entry.image_bytes = make_image(made->image, name, addr);
	add_entry(made);
}

static void remove_entry(struct made *made)
{
	if (made->entry.next)
		made->entry.next->prev = made->entry.prev;
	if (made->entry.prev)
		made->entry.prev->next = made->entry.next;
	else
		__jit_debug_descriptor.first = made->entry.next;
}

struct reader {
	struct process process;
	struct live_memory live;
	struct gdb_jit *gdb_jit;
	struct jit_map *map;
};

static void open_reader(struct reader *reader)
{
	static const char *const names[] = {GDB_JIT_SYMBOL};
	struct module_symbols *symbols;
	struct live_images images;
	const remote_addr *places;
	struct maps maps;
	uint32_t nr_places;

	if (!machine_describes_us())
		cr_skip("the kernel's files describe an emulator");
	reader->process = own_process_open();
	live_memory_init(&reader->live, &reader->process);
	live_images_init(&images, &reader->process);
	reader->gdb_jit = gdb_jit_create(&reader->live.memory);
	reader->map = jit_map_create();
	cr_assert(zero(int, maps_read(&reader->process, &maps)));
	symbols = module_symbols_create(&reader->live.memory, names, 1);
	/* The second time the modules are known. */
	for (int i = 0; i < 2; i++) {
		cr_assert(zero(int, module_symbols_find(symbols, &maps, &images.source)));
		places = module_symbols_places(symbols, 0, &nr_places);
		cr_assert(eq(u32, nr_places, 1));
		cr_assert(zero(int, gdb_jit_add_list(reader->gdb_jit, places[0])));
	}
	cr_assert(eq(u64, places[0], (uintptr_t)&__jit_debug_descriptor));
	module_symbols_destroy(symbols);
	maps_done(&maps);
}

static void close_reader(struct reader *reader)
{
	gdb_jit_destroy(reader->gdb_jit);
	jit_map_destroy(reader->map);
	process_close(&reader->process);
}

static void read_list(struct reader *reader, uint64_t now_ns)
{
	cr_assert(zero(int, gdb_jit_read(reader->gdb_jit, reader->map, 1, now_ns)));
}

Test(gdb_jit, functions_are_added_and_removed)
{
	static struct made made[3];
	struct reader reader;

	open_reader(&reader);
	add_function(&made[0], "first", 0x1000);
	read_list(&reader, 10);
	add_function(&made[1], "second", 0x2000);
	add_function(&made[2], "third", 0x3000);
	read_list(&reader, 20);
	expect_code(reader.map, 0x1000, 1, "first"); /* it may be older than the first read */
	expect_code(reader.map, 0x100b, 20, "first");
	expect_code(reader.map, 0x100c, 20, "-");
	expect_code(reader.map, 0x2000, 9, "-");
	expect_code(reader.map, 0x2000, 10, "second");
	expect_code(reader.map, 0x3000, 20, "third");
	remove_entry(&made[1]);
	read_list(&reader, 30);
	expect_code(reader.map, 0x2000, 29, "second");
	expect_code(reader.map, 0x2000, 30, "-");
	expect_code(reader.map, 0x3000, 30, "third");
	close_reader(&reader);
}

Test(gdb_jit, known_entries_are_not_read_again)
{
	static struct made made[16];
	struct reader reader;
	uint64_t nr_reads;
	uint32_t nr_codes;

	open_reader(&reader);
	for (size_t i = 0; i < 16; i++)
		add_function(&made[i], "one of them", 0x1000 * (i + 1));
	read_list(&reader, 10);
	nr_reads = reader.live.nr_reads;
	read_list(&reader, 20);
	cr_expect(le(u64, reader.live.nr_reads - nr_reads, 17));
	(void)jit_map_codes(reader.map, &nr_codes);
	cr_expect(eq(u32, nr_codes, 16));
	close_reader(&reader);
}

/* A new entry in the memory of a freed one. */
Test(gdb_jit, reused_entry_is_a_new_function)
{
	static struct made made;
	struct reader reader;

	open_reader(&reader);
	add_function(&made, "old", 0x1000);
	read_list(&reader, 10);
	remove_entry(&made);
	add_function(&made, "new", 0x5000);
	read_list(&reader, 20);
	expect_code(reader.map, 0x1000, 19, "old");
	expect_code(reader.map, 0x1000, 20, "-");
	expect_code(reader.map, 0x5000, 20, "new");
	close_reader(&reader);
}

Test(gdb_jit, torn_list_ends_no_function)
{
	static struct made made[3];
	struct reader reader;

	open_reader(&reader);
	for (size_t i = 0; i < 3; i++)
		add_function(&made[i], "there", 0x1000 * (i + 1));
	read_list(&reader, 10);
	/* The middle entry is being removed: no other entry leads to it. */
	made[2].entry.next = &made[0].entry;
	read_list(&reader, 20);
	expect_code(reader.map, 0x2000, 20, "there");
	/* A circle; an unmapped address; another version. */
	made[2].entry.next = &made[2].entry;
	read_list(&reader, 30);
	made[2].entry.next = (struct jit_code_entry *)8;
	read_list(&reader, 40);
	__jit_debug_descriptor.version = 2;
	__jit_debug_descriptor.first = NULL;
	read_list(&reader, 50);
	for (remote_addr addr = 0x1000; addr < 0x4000; addr += 0x1000)
		expect_code(reader.map, addr, 50, "there");
	/* The removal is complete. */
	__jit_debug_descriptor.version = 1;
	__jit_debug_descriptor.first = &made[2].entry;
	made[2].entry.next = &made[0].entry;
	made[0].entry.prev = &made[2].entry;
	read_list(&reader, 60);
	expect_code(reader.map, 0x1000, 60, "there");
	expect_code(reader.map, 0x2000, 60, "-");
	expect_code(reader.map, 0x3000, 60, "there");
	close_reader(&reader);
}

Test(gdb_jit, invalid_files_are_skipped)
{
	static struct made made[5];
	struct reader reader;

	open_reader(&reader);
	for (size_t i = 0; i < 5; i++)
		add_function(&made[i], "none", 0x1000 * (i + 1));
	made[0].image[1] = 'X';
	made[1].entry.image = (const uint8_t *)8;
	made[2].entry.image_bytes = GDB_JIT_MAX_IMAGE_BYTES + 1;
	made[3].entry.image_bytes = 0;
	read_list(&reader, 10);
	expect_code(reader.map, 0x5000, 10, "none");
	for (remote_addr addr = 0x1000; addr < 0x5000; addr += 0x1000)
		expect_code(reader.map, addr, 10, "-");
	/* A file that could not be read may be complete later. */
	made[0].image[1] = 'E';
	read_list(&reader, 20);
	expect_code(reader.map, 0x1000, 20, "none");
	close_reader(&reader);
}

Test(gdb_jit, relocatable_files_are_read)
{
	static struct made made;
	struct reader reader;

	open_reader(&reader);
	add_function(&made, "hotloop", 0x1000);
	make_relocatable(made.image, 0x7000);
	read_list(&reader, 10);
	expect_code(reader.map, 0x1000, 10, "-");
	expect_code(reader.map, 0x7000, 10, "hotloop");
	close_reader(&reader);
}

Test(gdb_jit, body_has_unwind_information)
{
	static struct made made;
	struct reader reader;
	struct jit_body body;
	const struct jit_code *code;

	open_reader(&reader);
	add_function(&made, "hotloop", 0x1000);
	read_list(&reader, 10);
	code = jit_map_find(reader.map, 0x1000, 10);
	cr_assert(zero(int, gdb_jit_read_body(&reader.live.memory, code, &body)));
	cr_expect(ne(ptr, body.unwind, NULL));
	cr_expect(eq(u64, body.unwind_vaddr, 0x1010));
	jit_body_done(&body);
	made.entry.image++;
	cr_expect(eq(int, gdb_jit_read_body(&reader.live.memory, code, &body), -ENOENT));
	close_reader(&reader);
}
