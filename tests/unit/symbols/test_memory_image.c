/* SPDX-License-Identifier: MIT */
#include "symbols/elf/memory_image.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "procmem/live.h"
#include "procmem/process.h"
#include "symbols/elf/symtab.h"
#include "tests/support/fake_memory.h"
#include "tests/support/image_file.h"
#include "tests/support/own_process.h"

Test(memory_image, agrees_with_the_file)
{
	struct library library = find_library();
	struct image *file = open_path(library.path);
	uint8_t expected[BUILD_ID_MAX_BYTES];
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	struct process process = PROCESS_CLOSED;
	struct live_memory live;
	struct memory_image image;
	remote_addr addr = 0;

	process = own_process_open();
	live_memory_init(&live, &process);
	cr_assert(zero(int, memory_image_open(&live.memory, library.load_bias, &image)));
	cr_expect(eq(u64, image.load_bias, library.load_bias));
	cr_expect(zero(int, memory_image_symbol(&image, "getppid", &addr)));
	cr_expect(eq(u64, addr, library.symbol_addr));
	cr_expect(eq(int, memory_image_symbol(&image, "getppi", &addr), -ENOENT));
	cr_expect(eq(int, memory_image_symbol(&image, "", &addr), -ENOENT));
	size_t size = image_build_id(file, expected);

	cr_expect(eq(sz, memory_image_build_id(&image, build_id), size));
	cr_expect(zero(int, memcmp(build_id, expected, size)));
	memory_image_close(&image);
	memory_image_close(NULL);
	image_close(file);
	process_close(&process);
}

/* A small library as loaded in memory. Its symbols: null, "x", and "data" at 0x40. */
struct elf {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	Elf64_Dyn dynamic[5];
	struct {
		uint32_t header[4];
		uint64_t bloom[1];
		uint32_t buckets[1];
		uint32_t chain[2];
	} gnu_hash;
	struct {
		uint32_t header[2];
		uint32_t buckets[1];
		uint32_t chain[3];
	} sysv_hash;
	Elf64_Sym symbols[3];
	char names[8];
	struct {
		Elf64_Nhdr header;
		char name[4];
		uint8_t id[4];
	} note;
};

#define AT(member) offsetof(struct elf, member)

enum { ELF_ADDR = 0x7f0000000000 };

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

static struct elf make_elf(void)
{
	struct elf elf = {
		.segments =
			{
				{.p_type = PT_LOAD, .p_filesz = 0x3000, .p_memsz = 0x3000},
				{.p_type = PT_DYNAMIC,
				 .p_vaddr = AT(dynamic),
				 .p_filesz = sizeof(elf.dynamic),
				 .p_memsz = sizeof(elf.dynamic)},
				{.p_type = PT_NOTE,
				 .p_vaddr = AT(note),
				 .p_filesz = sizeof(elf.note),
				 .p_align = 4},
			},
		.dynamic = {{DT_SYMTAB, {AT(symbols)}},
			    {DT_STRTAB, {AT(names)}},
			    {DT_GNU_HASH, {AT(gnu_hash)}},
			    {DT_HASH, {AT(sysv_hash)}}},
		.gnu_hash = {.header = {1, 1, 1, 0},
			     .buckets = {1},
			     .chain = {hash_of("x") & ~1u, hash_of("data") | 1}},
		.sysv_hash = {.header = {1, 3}, .buckets = {1}, .chain = {0, 2, 0}},
		.symbols = {{0},
			    {.st_name = 1, .st_info = STT_OBJECT, .st_shndx = 5, .st_value = 8},
			    {.st_name = 3, .st_info = STT_OBJECT, .st_shndx = 5, .st_value = 64}},
		.names = "\0x\0data",
		.note = {.header = {4, 4, NT_GNU_BUILD_ID}, .name = "GNU", .id = {1, 2, 3, 4}},
	};
	size_t size;
	cleanup_free char *exe = read_file("/proc/self/exe", &size);

	memcpy(&elf.header, exe, sizeof(elf.header));
	elf.header.e_phoff = AT(segments);
	elf.header.e_phnum = 3;
	return elf;
}

static int find_data(const struct elf *elf, remote_addr *ret_addr, size_t *ret_build_id_bytes)
{
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	struct memory_image image;
	struct fake_memory fake;
	int err;

	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, ELF_ADDR, elf, sizeof(*elf));
	err = memory_image_open(&fake.memory, ELF_ADDR, &image);
	if (!err) {
		err = memory_image_symbol(&image, "data", ret_addr);
		*ret_build_id_bytes = memory_image_build_id(&image, build_id);
		memory_image_close(&image);
	}
	cr_expect(lt(u64, fake.nr_calls, 3ull * SYMTAB_MAX_CHAIN + 100));
	fake_memory_done(&fake);
	return err;
}

static void unchanged(struct elf *elf)
{
	(void)elf;
}

static void relocated(struct elf *elf)
{
	for (size_t i = 0; i < 4; i++)
		elf->dynamic[i].d_un.d_ptr += ELF_ADDR;
}

static void no_gnu_hash(struct elf *elf)
{
	elf->dynamic[2].d_tag = DT_DEBUG;
}

static void no_hash(struct elf *elf)
{
	no_gnu_hash(elf);
	elf->dynamic[3].d_tag = DT_DEBUG;
}

static void sysv_loop(struct elf *elf)
{
	no_gnu_hash(elf);
	elf->sysv_hash.chain[1] = 1;
}

static void endless_chain(struct elf *elf)
{
	elf->dynamic[3].d_tag = DT_DEBUG;
	elf->gnu_hash.chain[1] &= ~1u;
	elf->names[4] = 'b';
}

static void no_buckets(struct elf *elf)
{
	elf->gnu_hash.header[0] = 0;
	elf->sysv_hash.header[0] = 0;
}

static void huge_counts(struct elf *elf)
{
	memset(elf->gnu_hash.header, 0xff, sizeof(elf->gnu_hash.header));
	memset(elf->sysv_hash.header, 0xff, sizeof(elf->sysv_hash.header));
}

static void tables_elsewhere(struct elf *elf)
{
	for (size_t i = 0; i < 4; i++)
		elf->dynamic[i].d_un.d_ptr = 0x4000;
}

static void tables_not_mapped(struct elf *elf)
{
	for (size_t i = 0; i < 4; i++)
		elf->dynamic[i].d_un.d_ptr = 0x2ff8;
}

static void value_outside(struct elf *elf)
{
	elf->symbols[2].st_value = 0x3000;
}

static void undefined(struct elf *elf)
{
	elf->symbols[2].st_shndx = SHN_UNDEF;
}

static void no_segments(struct elf *elf)
{
	elf->header.e_phnum = 0;
}

static void too_many_segments(struct elf *elf)
{
	elf->header.e_phnum = IMAGE_MAX_SEGMENTS + 1;
}

static void segments_beyond(struct elf *elf)
{
	elf->header.e_phoff = UINT64_MAX - 8;
}

static void segments_not_mapped(struct elf *elf)
{
	elf->header.e_phoff = sizeof(*elf) - 100;
}

static void nothing_loaded(struct elf *elf)
{
	elf->segments[0].p_type = PT_NULL;
}

static void segment_wraps(struct elf *elf)
{
	elf->segments[0].p_memsz = UINT64_MAX;
}

static void odd_bias(struct elf *elf)
{
	elf->segments[0].p_vaddr = 8;
}

static void no_magic(struct elf *elf)
{
	elf->header.e_ident[0] = 0;
}

static void note_too_long(struct elf *elf)
{
	elf->note.header.n_descsz = BUILD_ID_MAX_BYTES; /* unmapped after it */
}

static void note_name_too_long(struct elf *elf)
{
	elf->note.header.n_namesz = UINT32_MAX;
}

Test(memory_image, damaged_images_are_read_in_bounds)
{
	static const struct {
		const char *name;
		void (*change)(struct elf *elf);
		int err;
		size_t build_id_bytes;
	} cases[] = {
		{"valid", unchanged, 0, 4},
		{"addresses in the dynamic segment", relocated, 0, 4},
		{"DT_HASH alone", no_gnu_hash, 0, 4},
		{"no hash", no_hash, -ENOENT, 4},
		{"a chain of DT_HASH that is a ring", sysv_loop, -ENOENT, 4},
		{"a chain of DT_GNU_HASH without an end", endless_chain, -ENOENT, 4},
		{"no buckets", no_buckets, -ENOENT, 4},
		{"huge counts", huge_counts, -ENOENT, 4},
		{"tables outside of it", tables_elsewhere, -ENOENT, 4},
		{"tables that cannot be read", tables_not_mapped, -ENOENT, 4},
		{"a value outside of it", value_outside, -ENOENT, 4},
		{"a symbol of another file", undefined, -ENOENT, 4},
		{"no segments", no_segments, -EBADMSG, 0},
		{"too many segments", too_many_segments, -E2BIG, 0},
		{"segments at the end of all addresses", segments_beyond, -EBADMSG, 0},
		{"segments that cannot be read", segments_not_mapped, -EFAULT, 0},
		{"nothing is loaded", nothing_loaded, -EBADMSG, 0},
		{"a segment that wraps around", segment_wraps, -EBADMSG, 0},
		{"a bias of no whole page", odd_bias, -EBADMSG, 0},
		{"no ELF file", no_magic, -EBADMSG, 0},
		{"a note that is too long", note_too_long, 0, 0},
		{"a note's name that is too long", note_name_too_long, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elf elf = make_elf();
		size_t build_id_bytes = 0;
		remote_addr addr = 0;

		cases[i].change(&elf);
		cr_expect(eq(int, find_data(&elf, &addr, &build_id_bytes), cases[i].err), "%s",
			  cases[i].name);
		cr_expect(eq(u64, addr, cases[i].err ? 0 : ELF_ADDR + 64), "%s", cases[i].name);
		cr_expect(eq(sz, build_id_bytes, cases[i].build_id_bytes), "%s", cases[i].name);
	}
}

/* A target that ends after *left reads. */
static void fail_later(struct fake_memory *fake, size_t range_index)
{
	unsigned int *left = fake->context;

	(void)range_index;
	fake->error = --*left ? 0 : -ESRCH;
}

/* However far the search has come, an error of the memory does not mean that there is no symbol. */
Test(memory_image, reports_the_end_of_the_target)
{
	static void (*const changes[])(struct elf * elf) = {unchanged, no_gnu_hash};
	static const unsigned int nr_reads[] = {7, 8};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct elf elf = make_elf();

		changes[i](&elf);
		for (unsigned int left = 1; left <= nr_reads[i]; left++) {
			unsigned int nr_left = left;
			remote_addr addr = 0;
			struct memory_image image;
			struct fake_memory fake;

			fake_memory_init(&fake);
			fake_memory_map_bytes(&fake, ELF_ADDR, &elf, sizeof(elf));
			cr_assert(zero(int, memory_image_open(&fake.memory, ELF_ADDR, &image)));
			fake.before_range = fail_later;
			fake.context = &nr_left;
			cr_expect(eq(int, memory_image_symbol(&image, "data", &addr),
				     left < nr_reads[i] ? -ESRCH : 0),
				  "%zu: %u", i, left);
			cr_expect(eq(u64, addr, left < nr_reads[i] ? 0 : ELF_ADDR + 64));
			memory_image_close(&image);
			fake_memory_done(&fake);
		}
	}
}
