/* SPDX-License-Identifier: MIT */
#include "output/dump/jit_object.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/machine.h"
#include "symbols/elf/image.h"
#include "symbols/elf/symtab.h"

static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x6b, 0xc7, 0x03, 0x5d, 0xc3};
static const uint8_t unwind[24] = {20};
static const struct jit_object_line lines[] = {
	{0x7f0000001000, 10, 0, "/a.py"},
	{0x7f0000001004, 2000000, 3, "/a.py"},
	{0x7f0000001008, 1, 0, "/b.py"},
};

static struct jit_object make_object(void)
{
	return (struct jit_object){
		.elf_machine = MACHINE_ELF,
		.name = "py::f:/a.py",
		.addr = 0x7f0000001000,
		.code = code,
		.code_bytes = sizeof(code),
		.lines = lines,
		.nr_lines = sizeof(lines) / sizeof(lines[0]),
		.unwind = unwind,
		.unwind_bytes = sizeof(unwind),
		.unwind_addr = 0x7f0000001010,
	};
}

static int write_object(const struct jit_object *object)
{
	const int fd = memfd_create("object", MFD_CLOEXEC);

	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, jit_object_write(object, fd)));
	return fd;
}

Test(jit_object, has_the_given_addresses)
{
	const struct jit_object object = make_object();
	struct image *image = NULL;
	uint64_t vaddr, size_bytes;
	uint8_t bytes[sizeof(code)];

	cr_assert(zero(int, image_open_fd(write_object(&object), &image)));
	cr_expect(zero(int, symtab_find(image, object.name, &vaddr, &size_bytes)));
	cr_expect(eq(u64, vaddr, object.addr));
	cr_expect(eq(u64, size_bytes, sizeof(code)));
	cr_expect(zero(int, image_read_vaddr(image, vaddr, bytes, sizeof(bytes))));
	cr_expect(zero(int, memcmp(bytes, code, sizeof(code))));
	cr_expect(zero(int, image_section(image, ".eh_frame", &vaddr, &size_bytes)));
	cr_expect(eq(u64, vaddr, object.unwind_addr));
	cr_expect(eq(u64, size_bytes, sizeof(unwind)));
	cr_expect(zero(int, image_section(image, ".debug_line", &vaddr, &size_bytes)));
	cr_expect(ne(u64, size_bytes, 0));
	image_close(image);
}

Test(jit_object, lines_and_unwind_information_are_optional)
{
	struct jit_object object = make_object();
	struct image *image = NULL;
	uint64_t vaddr, size_bytes;

	object.nr_lines = 0;
	object.unwind = NULL;
	object.unwind_bytes = 0;
	cr_assert(zero(int, image_open_fd(write_object(&object), &image)));
	cr_expect(zero(int, image_section(image, ".text", &vaddr, &size_bytes)));
	cr_expect(eq(u64, vaddr, object.addr));
	cr_expect(zero(int, image_section(image, ".debug_line", &vaddr, &size_bytes)));
	cr_expect(zero(u64, size_bytes));
	image_close(image);
}

/* The first word of a section in a big-endian file. */
static uint32_t first_word(const uint8_t *file, const char *name)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)file;
	const Elf64_Shdr *sections =
		(const Elf64_Shdr *)(const void *)(file + be64toh(header->e_shoff));
	const Elf64_Shdr *names = &sections[be16toh(header->e_shstrndx)];

	for (unsigned int i = 0; i < be16toh(header->e_shnum); i++) {
		uint32_t word;

		if (strcmp((const char *)file + be64toh(names->sh_offset) +
				   be32toh(sections[i].sh_name),
			   name) != 0)
			continue;
		memcpy(&word, file + be64toh(sections[i].sh_offset), sizeof(word));
		return be32toh(word) + 4 - (uint32_t)be64toh(sections[i].sh_size);
	}
	return 1;
}

/*
 * Each section of debug information begins with its length, which does not count its own four
 * bytes.
 */
Test(jit_object, uses_the_byte_order_of_the_machine)
{
	static const char *const names[] = {".debug_info", ".debug_aranges", ".debug_line"};
	struct jit_object object = make_object();
	static uint8_t file[8192] __attribute__((aligned(8)));
	int fd;

	object.is_big_endian = true;
	object.elf_machine = EM_S390;
	fd = write_object(&object);
	cr_assert(lt(int, 0, (int)pread(fd, file, sizeof(file), 0)));
	cr_expect(eq(u8, file[EI_DATA], ELFDATA2MSB));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect(zero(u32, first_word(file, names[i])), "%s", names[i]);
	(void)close(fd);
}

Test(jit_object, reports_a_write_error)
{
	const struct jit_object object = make_object();

	cr_expect(lt(int, jit_object_write(&object, -1), 0));
}
