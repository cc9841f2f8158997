/* SPDX-License-Identifier: MIT */
#include "symbols/jit/gdb_jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/machine.h"
#include "symbols/jit/jit_image.h"
#include "symbols/jit/remote_list.h"

/* struct jit_descriptor and struct jit_code_entry, of 64-bit programs. */
enum { DESCRIPTOR_BYTES = 24, DESCRIPTOR_VERSION = 1, FIRST_ENTRY_OFFSET = 16 };
enum { ENTRY_BYTES = 32, NEXT_OFFSET = 0, PREV_OFFSET = 8 };
enum { IMAGE_ADDR_OFFSET = 16, IMAGE_BYTES_OFFSET = 24 };

/* The part of a section header that holds its address, offset and size. */
enum { FINGERPRINT_OFFSET = 16, FINGERPRINT_BYTES = 24 };

/* An entry whose ELF file was read. */
struct known_entry {
	remote_addr addr;
	uint64_t image_addr;
	uint64_t image_bytes;
	/*
	 * The place of the code, from the file's section header. Another file at the same address
	 * differs here.
	 */
	remote_addr fingerprint_addr; /* 0: the file has no functions */
	uint8_t fingerprint[FINGERPRINT_BYTES];
	uint32_t first_code, nr_codes; /* in the map */
	uint64_t walk;		       /* number of the last walk that found it */
};

struct list {
	remote_addr descriptor_addr;
	struct known_entry *entries; /* by address; owned */
	uint32_t nr_entries, max_entries;
};

struct gdb_jit {
	struct remote_memory *memory; /* borrowed */
	struct list lists[GDB_JIT_MAX_LISTS];
	uint32_t nr_lists;
	uint64_t nr_walks;
	uint64_t last_read_ns;
};

/* The state of one gdb_jit_read(). */
struct reading {
	struct remote_list walk;
	struct list *list; /* being walked */
	struct gdb_jit *gdb_jit;
	struct jit_map *map;
	uint64_t from_ns, now_ns;
	uint64_t bytes_left;
};

struct gdb_jit *gdb_jit_create(struct remote_memory *memory)
{
	struct gdb_jit *gdb_jit = calloc(1, sizeof(*gdb_jit));

	if (gdb_jit)
		gdb_jit->memory = memory;
	return gdb_jit;
}

void gdb_jit_destroy(struct gdb_jit *gdb_jit)
{
	if (!gdb_jit)
		return;
	for (uint32_t i = 0; i < gdb_jit->nr_lists; i++)
		free(gdb_jit->lists[i].entries);
	free(gdb_jit);
}

int gdb_jit_add_list(struct gdb_jit *gdb_jit, remote_addr descriptor_addr)
{
	for (uint32_t i = 0; i < gdb_jit->nr_lists; i++)
		if (gdb_jit->lists[i].descriptor_addr == descriptor_addr)
			return 0;
	if (gdb_jit->nr_lists == GDB_JIT_MAX_LISTS)
		return -E2BIG;
	gdb_jit->lists[gdb_jit->nr_lists++] = (struct list){.descriptor_addr = descriptor_addr};
	return 0;
}

/* Known entries. */

/* The index of the entry at addr among the known ones, or where to insert it. */
static uint32_t search_entry(const struct list *list, remote_addr addr)
{
	uint32_t first = 0;
	uint32_t end = list->nr_entries;

	while (first < end) {
		const uint32_t middle = first + (end - first) / 2;

		if (list->entries[middle].addr < addr)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static struct known_entry *find_entry(const struct list *list, remote_addr addr)
{
	const uint32_t i = search_entry(list, addr);

	return i < list->nr_entries && list->entries[i].addr == addr ? &list->entries[i] : NULL;
}

static int insert_entry(struct list *list, const struct known_entry *entry)
{
	const uint32_t i = search_entry(list, entry->addr);
	struct known_entry *entries = array_reserve(list->entries, list->nr_entries + 1,
						    &list->max_entries, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	list->entries = entries;
	memmove(&entries[i + 1], &entries[i], (list->nr_entries - i) * sizeof(*entries));
	entries[i] = *entry;
	list->nr_entries++;
	return 0;
}

static void end_codes(const struct reading *reading, const struct known_entry *entry)
{
	uint32_t nr_codes;
	const struct jit_code *codes = jit_map_codes(reading->map, &nr_codes);

	for (uint32_t i = 0; i < entry->nr_codes; i++)
		jit_map_end(reading->map, &codes[entry->first_code + i], reading->now_ns);
}

/* End the codes of the entries that the last walk did not find. */
static void drop_gone(const struct reading *reading, struct list *list)
{
	uint32_t nr_kept = 0;

	for (uint32_t i = 0; i < list->nr_entries; i++) {
		if (list->entries[i].walk == reading->gdb_jit->nr_walks)
			list->entries[nr_kept++] = list->entries[i];
		else
			end_codes(reading, &list->entries[i]);
	}
	list->nr_entries = nr_kept;
}

/* Reading an entry. */

static int add_functions(const struct reading *reading, const struct jit_image *image,
			 struct known_entry *entry)
{
	const bool has_unwind = jit_image_find_section(image, ".eh_frame") != 0;
	struct jit_image_function function;
	int err = 0;

	for (uint32_t position = 0;
	     err != -ENOMEM && jit_image_next_function(image, &position, &function);) {
		const struct jit_code code = {
			.start_addr = function.start_addr,
			.nr_bytes = function.nr_bytes,
			.from_ns = reading->from_ns,
			.to_ns = JIT_MAP_OPEN_NS,
			.name = function.name,
			.source = JIT_SOURCE_GDB,
			.code_place = entry->addr,
			.unwind_place = has_unwind ? entry->image_addr : 0,
		};
		uint32_t index;

		err = jit_map_add(reading->map, &code, strlen(function.name), &index);
		if (err)
			continue;
		if (!entry->nr_codes++) {
			const uint64_t offset = image->sections_offset +
						function.section * sizeof(Elf64_Shdr) +
						FINGERPRINT_OFFSET;

			entry->first_code = index;
			entry->fingerprint_addr = entry->image_addr + offset;
			memcpy(entry->fingerprint, image->bytes + offset, FINGERPRINT_BYTES);
		}
	}
	return err == -ENOMEM ? err : 0;
}

/* Copy the ELF file of an entry. *ret_bytes is allocated; release it with free(). */
static int copy_image(struct remote_memory *memory, remote_addr addr, uint64_t nr_bytes,
		      uint8_t **ret_bytes)
{
	cleanup_free uint8_t *bytes = NULL;
	int err;

	if (!nr_bytes || nr_bytes > GDB_JIT_MAX_IMAGE_BYTES)
		return -EBADMSG;
	bytes = malloc(nr_bytes);
	if (!bytes)
		return -ENOMEM;
	err = remote_memory_read(memory, addr, bytes, nr_bytes);
	if (!err)
		*ret_bytes = take_ptr(bytes);
	return err;
}

/* Read the ELF file of an unknown entry. If it cannot be read now, the next reading tries again. */
static int add_entry(struct reading *reading, struct list *list, struct known_entry *entry)
{
	cleanup_free uint8_t *bytes = NULL;
	struct jit_image image;
	int err;

	if (entry->image_bytes > reading->bytes_left || list->nr_entries == REMOTE_LIST_MAX_ENTRIES)
		return 0;
	err = copy_image(reading->gdb_jit->memory, entry->image_addr, entry->image_bytes, &bytes);
	if (!err)
		err = jit_image_init(&image, bytes, entry->image_bytes);
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
	reading->bytes_left -= entry->image_bytes;
	err = add_functions(reading, &image, entry);
	return err ? err : insert_entry(list, entry);
}

/* Whether a known entry is unchanged. fingerprint is what is at its fingerprint_addr now. */
static bool is_same(const struct known_entry *known, const struct known_entry *entry,
		    const uint8_t *fingerprint)
{
	return known->image_addr == entry->image_addr && known->image_bytes == entry->image_bytes &&
	       (!known->fingerprint_addr ||
		memcmp(known->fingerprint, fingerprint, FINGERPRINT_BYTES) == 0);
}

static int read_entry(struct remote_list *walk, remote_addr addr, remote_addr prev_addr,
		      remote_addr *ret_next_addr)
{
	struct reading *reading = (struct reading *)walk;
	struct list *list = reading->list;
	struct known_entry *known = find_entry(list, addr);
	uint8_t bytes[ENTRY_BYTES];
	uint8_t fingerprint[FINGERPRINT_BYTES] = {0};
	struct remote_range ranges[] = {
		{.addr = addr, .buffer = bytes, .size = sizeof(bytes)},
		{.addr = known ? known->fingerprint_addr : 0,
		 .buffer = fingerprint,
		 .size = sizeof(fingerprint)},
	};
	const size_t nr_ranges = known && known->fingerprint_addr ? 2 : 1;
	int err = remote_memory_read_ranges(reading->gdb_jit->memory, ranges, nr_ranges);

	if (err)
		return err;
	if (ranges[0].done_bytes < sizeof(bytes) || field_u64(bytes, PREV_OFFSET) != prev_addr)
		return -EAGAIN;
	struct known_entry entry = {
		.addr = addr,
		.image_addr = field_u64(bytes, IMAGE_ADDR_OFFSET),
		.image_bytes = field_u64(bytes, IMAGE_BYTES_OFFSET),
		.walk = reading->gdb_jit->nr_walks,
	};

	*ret_next_addr = field_u64(bytes, NEXT_OFFSET);
	if (known && is_same(known, &entry, fingerprint)) {
		known->walk = reading->gdb_jit->nr_walks;
		return 0;
	}
	if (known) {
		end_codes(reading, known);
		list->nr_entries--;
		memmove(known, known + 1,
			(size_t)(list->entries + list->nr_entries - known) * sizeof(*known));
	}
	return add_entry(reading, list, &entry);
}

static int read_head(struct remote_list *walk, remote_addr *ret_first_addr)
{
	const struct reading *reading = (const struct reading *)walk;
	uint8_t descriptor[DESCRIPTOR_BYTES];
	int err = remote_memory_read(reading->gdb_jit->memory, reading->list->descriptor_addr,
				     descriptor, sizeof(descriptor));

	if (err || field_u32(descriptor, 0) != DESCRIPTOR_VERSION)
		return remote_error_is_fatal(err) ? err : -EAGAIN;
	*ret_first_addr = field_u64(descriptor, FIRST_ENTRY_OFFSET);
	reading->gdb_jit->nr_walks++;
	return 0;
}

static int read_list(struct reading *reading, struct list *list)
{
	int err;

	reading->list = list;
	err = remote_list_walk(&reading->walk);
	if (!err)
		drop_gone(reading, list);
	return err == -EAGAIN ? 0 : err;
}

int gdb_jit_read(struct gdb_jit *gdb_jit, struct jit_map *map, uint64_t first_ns, uint64_t now_ns)
{
	static const struct remote_list_ops ops = {
		.read_head = read_head,
		.read_entry = read_entry,
	};
	struct reading reading = {
		.walk.ops = &ops,
		.gdb_jit = gdb_jit,
		.map = map,
		.from_ns = gdb_jit->last_read_ns ? gdb_jit->last_read_ns : first_ns,
		.now_ns = now_ns,
		.bytes_left = GDB_JIT_MAX_READ_BYTES,
	};
	int err = 0;

	for (uint32_t i = 0; !err && i < gdb_jit->nr_lists; i++)
		err = read_list(&reading, &gdb_jit->lists[i]);
	gdb_jit->last_read_ns = now_ns;
	return err;
}

/* Unwind information. */

/* Read the unwind information from the file or, if only the loaded section is relocated, memory. */
static int read_unwind(struct remote_memory *memory, const struct jit_image *image,
		       const struct jit_code *code, struct jit_body *body)
{
	cleanup_free uint8_t *unwind = NULL;
	const uint8_t *bytes;
	Elf64_Shdr header;
	int err = 0;

	if (!jit_image_section(image, jit_image_find_section(image, ".eh_frame"), &header) ||
	    !header.sh_size || header.sh_size > GDB_JIT_MAX_IMAGE_BYTES)
		return 0;
	unwind = malloc(header.sh_size);
	if (!unwind)
		return -ENOMEM;
	bytes = jit_image_bytes(image, &header);
	if (image->is_relocatable)
		err = remote_memory_read(memory, header.sh_addr, unwind, header.sh_size);
	else if (bytes)
		memcpy(unwind, bytes, header.sh_size);
	else
		return 0;
	const struct cfi_section section = {.bytes = unwind,
					    .nr_bytes = header.sh_size,
					    .vaddr = header.sh_addr,
					    .kind = CFI_EH_FRAME};

	if (err || !jit_unwind_is_of(&section, code))
		return remote_error_is_fatal(err) ? err : 0;
	body->unwind = take_ptr(unwind);
	body->unwind_bytes = header.sh_size;
	body->unwind_vaddr = header.sh_addr;
	return 0;
}

int gdb_jit_read_body(struct remote_memory *memory, const struct jit_code *code,
		      struct jit_body *ret_body)
{
	struct jit_body body = {.elf_machine = MACHINE_ELF};
	cleanup_free uint8_t *bytes = NULL;
	uint8_t entry[ENTRY_BYTES];
	struct jit_image image;
	uint64_t nr_bytes;
	int err = remote_memory_read(memory, code->code_place, entry, sizeof(entry));

	if (!err && field_u64(entry, IMAGE_ADDR_OFFSET) != code->unwind_place)
		err = -ENOENT;
	nr_bytes = err ? 0 : field_u64(entry, IMAGE_BYTES_OFFSET);
	if (!err)
		err = copy_image(memory, code->unwind_place, nr_bytes, &bytes);
	if (!err)
		err = jit_image_init(&image, bytes, nr_bytes);
	if (!err)
		err = read_unwind(memory, &image, code, &body);
	if (err)
		return remote_error_is_fatal(err) ? err : -ENOENT;
	*ret_body = body;
	return 0;
}
