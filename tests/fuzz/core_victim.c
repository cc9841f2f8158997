/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/core_victim.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "procmem/cleanup.h"
#include "procmem/memory.h"
#include "tests/support/random.h"

/* ---- reading ------------------------------------------------------------------------- */

static int read_all(const char *path, uint8_t **ret_bytes, uint64_t *ret_size_bytes)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_free uint8_t *bytes = NULL;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (status.st_size > VICTIM_MAX_BYTES)
		return -E2BIG;
	bytes = malloc((size_t)status.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	if (read(fd, bytes, (size_t)status.st_size) != status.st_size)
		return -EBADMSG;
	*ret_bytes = take_ptr(bytes);
	*ret_size_bytes = (uint64_t)status.st_size;
	return 0;
}

/* Replace a zstd frame by its contents. */
static int unpack(uint8_t **bytes, uint64_t *size_bytes)
{
	const unsigned long long size = ZSTD_getFrameContentSize(*bytes, *size_bytes);
	cleanup_free uint8_t *unpacked = NULL;

	if (size == ZSTD_CONTENTSIZE_ERROR)
		return 0;
	if (size == ZSTD_CONTENTSIZE_UNKNOWN)
		return -EBADMSG;
	if (size > VICTIM_MAX_BYTES)
		return -E2BIG;
	unpacked = malloc(size + 1);
	if (!unpacked)
		return -ENOMEM;
	if (ZSTD_decompress(unpacked, size, *bytes, *size_bytes) != size)
		return -EBADMSG;
	free(*bytes);
	*bytes = take_ptr(unpacked);
	*size_bytes = size;
	return 0;
}

static int map_file(struct victim *victim)
{
	void *mapped;

	victim->fd = memfd_create("core", MFD_CLOEXEC);
	if (victim->fd < 0 || ftruncate(victim->fd, (off_t)victim->size_bytes) < 0)
		return -errno;
	mapped = mmap(NULL, victim->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, victim->fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	victim->bytes = mapped;
	memcpy(victim->bytes, victim->whole, victim->size_bytes);
	return 0;
}

/* ---- contents ------------------------------------------------------------------------ */

static int words_add(struct victim_words *words, uint64_t offset)
{
	if (words->nr == words->max) {
		const size_t max = words->max ? words->max * 2 : 1024;
		uint64_t *offsets = reallocarray(words->offsets, max, sizeof(*offsets));

		if (!offsets)
			return -ENOMEM;
		words->offsets = offsets;
		words->max = max;
	}
	words->offsets[words->nr++] = offset;
	return 0;
}

static bool is_inside(const struct victim *victim, uint64_t offset, uint64_t size_bytes)
{
	return offset <= victim->size_bytes && size_bytes <= victim->size_bytes - offset;
}

static int add_heads(struct victim *victim, uint64_t offset, uint64_t size_bytes)
{
	int err = 0;

	for (uint64_t i = 0; !err && i + sizeof(uint32_t) <= size_bytes; i += sizeof(uint32_t))
		err = words_add(&victim->heads, offset + i);
	return err;
}

static int add_segment(struct victim *victim, const Elf64_Phdr *header)
{
	struct victim_segment *segments;

	segments = reallocarray(victim->segments, victim->nr_segments + 1, sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	victim->segments = segments;
	segments[victim->nr_segments++] = (struct victim_segment){
		.start_addr = header->p_vaddr,
		.file_offset = header->p_offset,
		.size_bytes = header->p_filesz,
	};
	return 0;
}

/* Add what a program header describes. */
static int add_piece(struct victim *victim, const Elf64_Phdr *header)
{
	if (!is_inside(victim, header->p_offset, header->p_filesz))
		return -EBADMSG;
	if (header->p_type == PT_NOTE)
		return add_heads(victim, header->p_offset, header->p_filesz);
	return header->p_filesz ? add_segment(victim, header) : 0;
}

static int add_headers(struct victim *victim)
{
	Elf64_Ehdr file;
	uint64_t size_bytes;
	int err;

	if (victim->size_bytes < sizeof(file))
		return -EBADMSG;
	memcpy(&file, victim->whole, sizeof(file));
	if (memcmp(file.e_ident, ELFMAG, SELFMAG) || file.e_type != ET_CORE)
		return -EBADMSG;
	size_bytes = file.e_phnum * sizeof(Elf64_Phdr);
	if (!is_inside(victim, file.e_phoff, size_bytes))
		return -EBADMSG;
	err = add_heads(victim, 0, sizeof(file));
	if (!err)
		err = add_heads(victim, file.e_phoff, size_bytes);
	for (uint64_t i = 0; !err && i < size_bytes; i += sizeof(Elf64_Phdr)) {
		Elf64_Phdr header;

		memcpy(&header, victim->whole + file.e_phoff + i, sizeof(header));
		err = add_piece(victim, &header);
	}
	return err;
}

/* The segment with this address, or NULL. */
static const struct victim_segment *segment_at(const struct victim *victim, uint64_t addr)
{
	for (size_t i = 0; i < victim->nr_segments; i++)
		if (addr - victim->segments[i].start_addr < victim->segments[i].size_bytes)
			return &victim->segments[i];
	return NULL;
}

static int add_words(struct victim *victim, const struct victim_segment *segment)
{
	int err = 0;

	for (uint64_t i = 0; !err && i + sizeof(uint64_t) <= segment->size_bytes; i += 8) {
		const uint64_t value = field_u64(victim->whole, segment->file_offset + i);

		if (value)
			err = words_add(segment_at(victim, value) ? &victim->pointers
								  : &victim->others,
					segment->file_offset + i);
	}
	return err;
}

int victim_open(const char *path, struct victim *ret_victim)
{
	struct victim *victim = ret_victim;
	int err;

	*victim = (struct victim){.fd = -1};
	err = read_all(path, &victim->whole, &victim->size_bytes);
	if (!err)
		err = unpack(&victim->whole, &victim->size_bytes);
	if (!err)
		err = add_headers(victim);
	if (!err)
		err = map_file(victim);
	for (size_t i = 0; !err && i < victim->nr_segments; i++)
		err = add_words(victim, &victim->segments[i]);
	victim->cut_bytes = victim->size_bytes;
	if (!err && (!victim->heads.nr || !victim->pointers.nr || !victim->others.nr))
		err = -EBADMSG;
	return err;
}

void victim_close(struct victim *victim)
{
	if (victim->bytes)
		(void)munmap(victim->bytes, victim->size_bytes);
	if (victim->fd >= 0)
		(void)close(victim->fd);
	free(victim->whole);
	free(victim->segments);
	free(victim->heads.offsets);
	free(victim->pointers.offsets);
	free(victim->others.offsets);
}

/* ---- damage -------------------------------------------------------------------------- */

static void change(struct victim *victim, uint64_t offset, const void *bytes, uint64_t size_bytes)
{
	if (!is_inside(victim, offset, size_bytes) || victim->nr_changes == VICTIM_MAX_CHANGES)
		return;
	memcpy(victim->bytes + offset, bytes, size_bytes);
	victim->changes[victim->nr_changes++] = (struct victim_change){offset, size_bytes};
}

static uint64_t any_of(const struct victim_words *words, uint64_t *random)
{
	return words->offsets[random_next(random) % words->nr];
}

/*
 * A word of any kind. Each kind is equally likely, so that the few words of headers and notes are
 * damaged as often as the others.
 */
static uint64_t any_word(const struct victim *victim, uint64_t *random)
{
	const struct victim_words *const kinds[] = {&victim->heads, &victim->pointers,
						    &victim->others};

	return any_of(kinds[random_next(random) % 3], random);
}

static void flip_bit(struct victim *victim, uint64_t *random)
{
	const uint64_t number = random_next(random);
	const uint64_t offset = any_word(victim, random) + number % 8;
	uint8_t byte;

	if (offset >= victim->size_bytes)
		return;
	byte = victim->bytes[offset] ^ (uint8_t)(1u << number / 8 % 8);
	change(victim, offset, &byte, 1);
}

/* Write a boundary value, one at which programs go wrong, as a number of 1 to 8 bytes. */
static void set_boundary(struct victim *victim, uint64_t *random)
{
	static const uint64_t boundaries[] = {
		0,
		1,
		2,
		UINT8_MAX,
		INT16_MAX,
		UINT16_MAX,
		INT32_MAX,
		UINT32_MAX,
		1ull << 32,
		1ull << 47,
		INT64_MAX,
		(uint64_t)INT64_MIN,
		UINT64_MAX - 7,
		UINT64_MAX,
	};
	const uint64_t number = random_next(random);
	const uint64_t value = boundaries[number % (sizeof(boundaries) / sizeof(*boundaries))];

	change(victim, any_word(victim, random), &value, 1ull << number / 256 % 4);
}

/* Change a number by at most 32. */
static void add_little(struct victim *victim, uint64_t *random)
{
	const uint64_t offset = any_word(victim, random);
	uint64_t value;

	if (!is_inside(victim, offset, sizeof(value)))
		return;
	value = field_u64(victim->bytes, offset) + random_next(random) % 65 - 32;
	change(victim, offset, &value, sizeof(value));
}

/* Let a pointer point where another one does, or near there. */
static void redirect(struct victim *victim, uint64_t *random)
{
	static const uint64_t nearby[] = {0, 0, 0, 8, 16, (uint64_t)-8, 1};
	uint64_t value = field_u64(victim->whole, any_of(&victim->pointers, random));

	value += nearby[random_next(random) % 7];
	change(victim, any_of(&victim->pointers, random), &value, sizeof(value));
}

/* Let a pointer point to itself or to a place before it: a circle. */
static void make_circle(struct victim *victim, uint64_t *random)
{
	const uint64_t offset = any_of(&victim->pointers, random);

	for (size_t i = 0; i < victim->nr_segments; i++) {
		const struct victim_segment *segment = &victim->segments[i];
		uint64_t value = segment->start_addr + offset - segment->file_offset;

		if (offset - segment->file_offset >= segment->size_bytes)
			continue;
		value -= random_next(random) % 16 * 8;
		change(victim, offset, &value, sizeof(value));
	}
}

/* Let a pointer point to the last bytes of a segment, or just after it. */
static void point_to_end(struct victim *victim, uint64_t *random)
{
	const uint64_t number = random_next(random);
	const struct victim_segment *segment = &victim->segments[number % victim->nr_segments];
	uint64_t value = segment->start_addr + segment->size_bytes - number / 65536 % 64;

	change(victim, any_of(&victim->pointers, random), &value, sizeof(value));
}

/* Overwrite an object with another one. */
static void copy_piece(struct victim *victim, uint64_t *random)
{
	const uint64_t from = any_of(&victim->pointers, random) & ~15ull;
	const uint64_t size_bytes = 16ull << random_next(random) % 4;

	if (is_inside(victim, from, size_bytes))
		change(victim, any_of(&victim->pointers, random) & ~15ull, victim->whole + from,
		       size_bytes);
}

static void make_noise(struct victim *victim, uint64_t *random)
{
	uint64_t noise[8];

	for (size_t i = 0; i < 8; i++)
		noise[i] = random_next(random);
	change(victim, any_word(victim, random), noise, 8 + random_next(random) % 57);
}

static void zero_piece(struct victim *victim, uint64_t *random)
{
	static const uint8_t zeros[4096];

	change(victim, any_word(victim, random), zeros, 8ull << random_next(random) % 10);
}

static void cut_off(struct victim *victim, uint64_t *random)
{
	const uint64_t size_bytes = random_next(random) % victim->size_bytes;

	if (ftruncate(victim->fd, (off_t)size_bytes) == 0)
		victim->cut_bytes = size_bytes;
}

void victim_damage(struct victim *victim, uint64_t *random)
{
	static void (*const damages[])(struct victim *, uint64_t *) = {
		flip_bit,    set_boundary, add_little, redirect,   redirect,
		make_circle, point_to_end, copy_piece, make_noise, zero_piece,
	};
	const size_t nr = 1ull << random_next(random) % 7;
	const bool is_cut = random_next(random) % 64 == 0;

	for (size_t i = 0; i < nr; i++)
		damages[random_next(random) % (sizeof(damages) / sizeof(*damages))](victim, random);
	/* Cut the file last: what is cut off cannot be changed. */
	if (is_cut)
		cut_off(victim, random);
}

void victim_undo(struct victim *victim)
{
	if (victim->cut_bytes != victim->size_bytes &&
	    ftruncate(victim->fd, (off_t)victim->size_bytes) == 0) {
		memcpy(victim->bytes + victim->cut_bytes, victim->whole + victim->cut_bytes,
		       victim->size_bytes - victim->cut_bytes);
		victim->cut_bytes = victim->size_bytes;
	}
	for (size_t i = 0; i < victim->nr_changes; i++)
		memcpy(victim->bytes + victim->changes[i].file_offset,
		       victim->whole + victim->changes[i].file_offset,
		       victim->changes[i].size_bytes);
	victim->nr_changes = 0;
}

void victim_restore(struct victim *victim)
{
	if (ftruncate(victim->fd, (off_t)victim->size_bytes) == 0)
		memcpy(victim->bytes, victim->whole, victim->size_bytes);
	victim->cut_bytes = victim->size_bytes;
	victim->nr_changes = 0;
}
