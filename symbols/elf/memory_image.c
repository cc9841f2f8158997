/* SPDX-License-Identifier: MIT */
#include "symbols/elf/memory_image.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "symbols/elf/symtab.h"

/* Limit on the bytes of notes read of a segment; most have under 100. */
#define NOTES_MAX_BYTES 4096

/* Room for a symbol name searched for, with its NUL. */
#define NAME_MAX_BYTES 64

/* Reading. */

/* Whether [addr, addr + size) is in the image. */
static bool is_inside(const struct memory_image *image, remote_addr addr, uint64_t size)
{
	return addr >= image->start && addr < image->end && size <= image->end - addr;
}

/*
 * Read size bytes of the image, all of them. Returns 0; -ENOENT if they are not in the image or not
 * mapped; or another error of remote_memory_read().
 */
static int read_inside(const struct memory_image *image, remote_addr addr, void *buffer,
		       size_t size)
{
	int err = is_inside(image, addr, size)
			  ? remote_memory_read(image->memory, addr, buffer, size)
			  : -ENOENT;

	return err == -EFAULT ? -ENOENT : err;
}

/*
 * Read up to size bytes of the image at addr. *ret_nr_bytes is how many were read. Errors of
 * remote_memory_read_ranges().
 */
static int read_up_to(const struct memory_image *image, remote_addr addr, void *buffer, size_t size,
		      size_t *ret_nr_bytes)
{
	struct remote_range range = {.addr = addr, .buffer = buffer, .size = size};
	int err = 0;

	if (!is_inside(image, addr, 0))
		range.size = 0;
	else if (size > image->end - addr)
		range.size = image->end - addr;
	if (range.size)
		err = remote_memory_read_ranges(image->memory, &range, 1);
	if (!err)
		*ret_nr_bytes = range.done_bytes;
	return err;
}

/* Opening. */

static int read_segments(struct memory_image *image, remote_addr header_addr)
{
	Elf64_Ehdr header;
	remote_addr addr;
	int err = remote_memory_read(image->memory, header_addr, &header, sizeof(header));

	if (err)
		return err;
	if (!image_header_is_ours(&header) || header.e_phnum == 0 ||
	    __builtin_add_overflow(header_addr, header.e_phoff, &addr))
		return -EBADMSG;
	if (header.e_phnum > IMAGE_MAX_SEGMENTS)
		return -E2BIG;
	image->segments = calloc(header.e_phnum, sizeof(*image->segments));
	if (!image->segments)
		return -ENOMEM;
	image->nr_segments = header.e_phnum;
	return remote_memory_read(image->memory, addr, image->segments,
				  image->nr_segments * sizeof(*image->segments));
}

/* Compute the load bias: the loaded segment that holds the start of the file is at header_addr. */
static int find_load_bias(struct memory_image *image, remote_addr header_addr)
{
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

	for (size_t i = 0; i < image->nr_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type != PT_LOAD || segment->p_offset > page_mask)
			continue;
		image->load_bias = header_addr - (segment->p_vaddr - segment->p_offset);
		return (image->load_bias & page_mask) ? -EBADMSG : 0;
	}
	return -EBADMSG;
}

static int find_span(struct memory_image *image)
{
	image->start = UINT64_MAX;
	for (size_t i = 0; i < image->nr_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		remote_addr start = segment->p_vaddr + image->load_bias; /* modulo 2^64 */
		remote_addr end;

		if (segment->p_type != PT_LOAD || segment->p_memsz == 0)
			continue;
		if (__builtin_add_overflow(start, segment->p_memsz, &end))
			return -EBADMSG;
		image->start = start < image->start ? start : image->start;
		image->end = end > image->end ? end : image->end;
	}
	return image->start < image->end ? 0 : -EBADMSG;
}

int memory_image_open(struct remote_memory *memory, remote_addr header_addr,
		      struct memory_image *ret_image)
{
	struct memory_image image = {.memory = memory};
	int err = read_segments(&image, header_addr);

	if (!err)
		err = find_load_bias(&image, header_addr);
	if (!err)
		err = find_span(&image);
	if (err)
		memory_image_close(&image);
	else
		*ret_image = image;
	return err;
}

void memory_image_close(struct memory_image *image)
{
	if (!image)
		return;
	free(image->segments);
	*image = (struct memory_image){.memory = NULL};
}

/* The dynamic segment. */

/* The addresses of the tables of the dynamic symbols; 0 if missing. */
struct tables {
	remote_addr symbols_addr;
	remote_addr names_addr;
	remote_addr sysv_hash_addr;
	remote_addr gnu_hash_addr;
};

/*
 * The address in an entry of the dynamic segment, or 0. glibc replaces the vaddrs of the file by
 * addresses (elf_get_dynamic_info() in elf/get-dynamic-info.h); other loaders do not.
 */
static remote_addr table_addr(const struct memory_image *image, uint64_t value)
{
	if (is_inside(image, value, 1))
		return value;
	value += image->load_bias;
	return is_inside(image, value, 1) ? value : 0;
}

static void set_table(const struct memory_image *image, const Elf64_Dyn *entry,
		      struct tables *tables)
{
	remote_addr addr = table_addr(image, entry->d_un.d_ptr);

	if (entry->d_tag == DT_SYMTAB)
		tables->symbols_addr = addr;
	else if (entry->d_tag == DT_STRTAB)
		tables->names_addr = addr;
	else if (entry->d_tag == DT_HASH)
		tables->sysv_hash_addr = addr;
	else if (entry->d_tag == DT_GNU_HASH)
		tables->gnu_hash_addr = addr;
}

/* Returns 0; -ENOENT if the image has no tables of dynamic symbols; -ENOMEM; errors of the read. */
static int read_tables(const struct memory_image *image, struct tables *ret_tables)
{
	const size_t max_bytes = SYMTAB_MAX_DYNAMIC * sizeof(Elf64_Dyn);
	cleanup_free Elf64_Dyn *entries = malloc(max_bytes);
	struct tables tables = {0};
	size_t nr_bytes = 0;
	int err = 0;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; !err && nr_bytes < sizeof(Elf64_Dyn) && i < image->nr_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_DYNAMIC)
			err = read_up_to(image, segment->p_vaddr + image->load_bias, entries,
					 segment->p_memsz < max_bytes ? segment->p_memsz
								      : max_bytes,
					 &nr_bytes);
	}
	if (err)
		return err;
	for (size_t i = 0; i < nr_bytes / sizeof(Elf64_Dyn) && entries[i].d_tag != DT_NULL; i++)
		set_table(image, &entries[i], &tables);
	if (!tables.symbols_addr || !tables.names_addr)
		return -ENOENT;
	*ret_tables = tables;
	return 0;
}

/* Symbols. */

/* A search for one symbol. */
struct query {
	const struct memory_image *image;
	struct tables tables;
	const char *name;
	remote_addr addr; /* set once found */
};

/*
 * Set query->addr if the symbol with that index is the one searched for. Returns 0; -ENOENT if it
 * is another one; or an error of the read.
 */
static int match_symbol(struct query *query, uint64_t index)
{
	const struct memory_image *image = query->image;
	size_t name_bytes = strlen(query->name) + 1;
	char name[NAME_MAX_BYTES];
	Elf64_Sym symbol;
	int err;

	/* Neither sum can wrap: indexes and name offsets have 32 bits; the tables are inside. */
	err = read_inside(image, query->tables.symbols_addr + index * sizeof(symbol), &symbol,
			  sizeof(symbol));
	if (!err && (!symtab_is_place(&symbol) || name_bytes > sizeof(name)))
		err = -ENOENT;
	if (!err)
		err = read_inside(image, query->tables.names_addr + symbol.st_name, name,
				  name_bytes);
	if (err)
		return err;
	query->addr = symbol.st_value + image->load_bias;
	return memcmp(name, query->name, name_bytes) == 0 && is_inside(image, query->addr, 1)
		       ? 0
		       : -ENOENT;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* symbols/elf/symtab.c shows the layout of DT_GNU_HASH. Returns as match_symbol(). */
static int find_by_gnu_hash(struct query *query)
{
	const struct memory_image *image = query->image;
	uint32_t hash = gnu_hash(query->name);
	uint32_t header[4];
	uint32_t first;
	int err = read_inside(image, query->tables.gnu_hash_addr, header, sizeof(header));

	if (err || !header[0])
		return err ? err : -ENOENT;
	remote_addr buckets_addr =
		query->tables.gnu_hash_addr + sizeof(header) + header[2] * sizeof(uint64_t);
	remote_addr chains_addr = buckets_addr + header[0] * sizeof(uint32_t);

	err = read_inside(image, buckets_addr + hash % header[0] * sizeof(uint32_t), &first,
			  sizeof(first));
	if (err || first < header[1])
		return err ? err : -ENOENT;
	for (uint64_t i = 0; i < SYMTAB_MAX_CHAIN; i++) {
		uint64_t index = first + i;
		uint32_t link;

		err = read_inside(image, chains_addr + (index - header[1]) * sizeof(link), &link,
				  sizeof(link));
		if (err)
			return err;
		err = (link | 1) == (hash | 1) ? match_symbol(query, index) : -ENOENT;
		if (err != -ENOENT || (link & 1))
			return err;
	}
	return -ENOENT;
}

static uint32_t sysv_hash(const char *name)
{
	uint32_t hash = 0;

	for (; *name; name++) {
		hash = (hash << 4) + (unsigned char)*name;
		hash ^= hash >> 24 & 0xf0;
	}
	return hash & 0x0fffffff;
}

/*
 * u32 nr_buckets, nr_symbols, buckets[nr_buckets], chain[nr_symbols]: a bucket holds the index of
 * its first symbol, a symbol's chain word that of the next one; 0 ends the chain. Returns as
 * match_symbol().
 */
static int find_by_sysv_hash(struct query *query)
{
	const struct memory_image *image = query->image;
	remote_addr addr = query->tables.sysv_hash_addr;
	uint32_t header[2];
	uint32_t index;
	int err = read_inside(image, addr, header, sizeof(header));

	if (err || !header[0])
		return err ? err : -ENOENT;
	remote_addr buckets_addr = addr + sizeof(header);
	remote_addr chain_addr = buckets_addr + header[0] * sizeof(uint32_t);

	addr = buckets_addr + sysv_hash(query->name) % header[0] * sizeof(uint32_t);
	for (unsigned int i = 0; i < SYMTAB_MAX_CHAIN; i++) {
		err = read_inside(image, addr, &index, sizeof(index));
		if (err || !index)
			return err ? err : -ENOENT;
		err = match_symbol(query, index);
		if (err != -ENOENT)
			return err;
		addr = chain_addr + index * sizeof(uint32_t);
	}
	return -ENOENT;
}

int memory_image_symbol(const struct memory_image *image, const char *name, remote_addr *ret_addr)
{
	struct query query = {.image = image, .name = name};
	int err = read_tables(image, &query.tables);

	if (err)
		return err;
	err = query.tables.gnu_hash_addr ? find_by_gnu_hash(&query) : -ENOENT;
	if (err == -ENOENT && query.tables.sysv_hash_addr)
		err = find_by_sysv_hash(&query);
	if (!err)
		*ret_addr = query.addr;
	return err;
}

/* Build ID. */

/* Find the build ID in size bytes of notes, aligned to align. */
static size_t find_build_id(const uint8_t *notes, size_t size, size_t align,
			    uint8_t ret_build_id[BUILD_ID_MAX_BYTES])
{
	Elf64_Nhdr note;

	for (size_t next = 0; next < size && size - next >= sizeof(note);) {
		memcpy(&note, notes + next, sizeof(note));
		size_t name = next + sizeof(note);
		size_t desc = (name + note.n_namesz + align - 1) & ~(align - 1);

		if (desc > size || note.n_descsz > size - desc)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 &&
		    note.n_descsz <= BUILD_ID_MAX_BYTES) {
			memcpy(ret_build_id, notes + desc, note.n_descsz);
			return note.n_descsz;
		}
		next = (desc + note.n_descsz + align - 1) & ~(align - 1);
	}
	return 0;
}

size_t memory_image_build_id(const struct memory_image *image,
			     uint8_t ret_build_id[BUILD_ID_MAX_BYTES])
{
	uint8_t notes[NOTES_MAX_BYTES];
	size_t length = 0;

	for (size_t i = 0; !length && i < image->nr_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		size_t size = segment->p_filesz < sizeof(notes) ? segment->p_filesz : sizeof(notes);

		if (segment->p_type != PT_NOTE)
			continue;
		if (read_up_to(image, segment->p_vaddr + image->load_bias, notes, size, &size))
			return 0;
		length = find_build_id(notes, size, segment->p_align == 8 ? 8 : 4, ret_build_id);
	}
	return length;
}
