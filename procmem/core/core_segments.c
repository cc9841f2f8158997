/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_segments.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "procmem/core/core_maps.h"
#include "procmem/machine.h"

/* The ELF header. */

static int refuse_machine(const Elf64_Ehdr *header, struct message *reterr)
{
	message_set(reterr,
		    "the file is a core of another kind of machine (ELF machine %u); this pysample "
		    "reads cores of " MACHINE_NAME,
		    header->e_machine);
	return -ENOTSUP;
}

/* Check a header that begins with the ELF magic. Returns 0, -EBADMSG or -ENOTSUP. */
static int check_elf(const Elf64_Ehdr *header, struct message *reterr)
{
	if (header->e_ident[EI_CLASS] == ELFCLASS32) {
		message_set(reterr, "the file is 32-bit ELF; pysample reads only cores of 64-bit "
				    "processes");
		return -ENOTSUP;
	}
	if (header->e_ident[EI_CLASS] != ELFCLASS64) {
		message_set(reterr,
			    "the file is not a core file, or it is damaged: its ELF class is %u",
			    header->e_ident[EI_CLASS]);
		return -EBADMSG;
	}
	if (header->e_ident[EI_DATA] != ELFDATA2LSB) {
		message_set(reterr, "the file is big-endian ELF; pysample reads only cores of "
				    "little-endian processes");
		return -ENOTSUP;
	}
	if (header->e_type != ET_CORE) {
		message_set(
			reterr, "the file is not a core file but %s",
			header->e_type == ET_EXEC || header->e_type == ET_DYN
				? "a program or a library: give the core first, then its program"
				: "another kind of ELF file");
		return -EBADMSG;
	}
	if (header->e_machine != MACHINE_ELF)
		return refuse_machine(header, reterr);
	if (header->e_phnum == 0 || header->e_phentsize != sizeof(Elf64_Phdr)) {
		message_set(reterr, "the file is a core without program headers, or it is damaged");
		return -EBADMSG;
	}
	return 0;
}

static int read_header(struct file_blocks *file, Elf64_Ehdr *ret_header, struct message *reterr)
{
	size_t size = file_blocks_read(file, 0, ret_header, sizeof(*ret_header));

	if (size == 0) {
		message_set(reterr, "the file is empty");
		return -EBADMSG;
	}
	if (size < SELFMAG || memcmp(ret_header->e_ident, ELFMAG, SELFMAG) != 0) {
		message_set(
			reterr,
			"the file is not a core file: it does not begin with the ELF magic number");
		return -EBADMSG;
	}
	if (size < sizeof(*ret_header)) {
		message_set(reterr, "the file is truncated: it has only %zu bytes", size);
		return -EBADMSG;
	}
	return check_elf(ret_header, reterr);
}

/* Program headers. */

static bool read_segment(struct file_blocks *file, const Elf64_Ehdr *header, uint64_t index,
			 Elf64_Phdr *ret_segment)
{
	uint64_t offset;

	return !__builtin_add_overflow(header->e_phoff, index * sizeof(*ret_segment), &offset) &&
	       file_blocks_read(file, offset, ret_segment, sizeof(*ret_segment)) ==
		       sizeof(*ret_segment);
}

/*
 * Returns the number of program headers. If it does not fit into the ELF header, it is in the first
 * section header, which the kernel writes at the end of the file. If that is cut off, the number
 * follows from the first segment: it contains the notes, which directly follow the program headers.
 */
static uint64_t count_segments(struct file_blocks *file, const Elf64_Ehdr *header)
{
	Elf64_Shdr section;
	Elf64_Phdr first;

	if (header->e_phnum != PN_XNUM)
		return header->e_phnum;
	if (header->e_shoff &&
	    file_blocks_read(file, header->e_shoff, &section, sizeof(section)) == sizeof(section))
		return section.sh_info;
	if (read_segment(file, header, 0, &first) && first.p_type == PT_NOTE &&
	    first.p_offset > header->e_phoff)
		return (first.p_offset - header->e_phoff) / sizeof(first);
	return PN_XNUM;
}

/* Add the memory of a PT_LOAD. Returns false if its numbers are impossible. */
static bool add_load(struct core_segments *segments, const Elf64_Phdr *segment)
{
	struct mapping load = {
		.start = segment->p_vaddr,
		.readable = segment->p_flags & PF_R,
		.writable = segment->p_flags & PF_W,
		.executable = segment->p_flags & PF_X,
		.path = "",
	};
	struct mapping saved = {
		.start = segment->p_vaddr,
		.file_offset = segment->p_offset,
		.path = "",
	};
	uint64_t size_bytes =
		segment->p_filesz < segment->p_memsz ? segment->p_filesz : segment->p_memsz;

	if (__builtin_add_overflow(load.start, segment->p_memsz, &load.end))
		return false;
	saved.end = saved.start + size_bytes;
	if (load.start < load.end)
		segments->loads.mappings[segments->loads.nr_mappings++] = load;
	if (saved.start < saved.end)
		segments->saved.mappings[segments->saved.nr_mappings++] = saved;
	return true;
}

static bool add_notes(struct core_segments *segments, const Elf64_Phdr *segment)
{
	if (segments->nr_notes == CORE_MAX_NOTE_SEGMENTS)
		return false;
	segments->notes[segments->nr_notes++] = (struct core_piece){
		.file_offset = segment->p_offset,
		.size_bytes = segment->p_filesz,
	};
	return true;
}

/* Add a segment. Returns false if its numbers are impossible or it is one note segment too many. */
static bool add_segment(struct core_segments *segments, const Elf64_Phdr *segment)
{
	uint64_t end_offset;

	if (segment->p_type != PT_LOAD && segment->p_type != PT_NOTE)
		return true;
	if (__builtin_add_overflow(segment->p_offset, segment->p_filesz, &end_offset) ||
	    end_offset > INT64_MAX)
		return false;
	if (!(segment->p_type == PT_LOAD ? add_load : add_notes)(segments, segment))
		return false;
	if (end_offset > segments->end_offset)
		segments->end_offset = end_offset;
	return true;
}

static int read_segments(struct file_blocks *file, const Elf64_Ehdr *header, uint64_t nr_segments,
			 struct core_segments *segments)
{
	Elf64_Phdr segment;

	if (core_maps_reserve(&segments->loads, nr_segments) ||
	    core_maps_reserve(&segments->saved, nr_segments))
		return -ENOMEM;
	for (uint64_t i = 0; i < nr_segments; i++) {
		if (!read_segment(file, header, i, &segment)) {
			segments->nr_unusable += nr_segments - i;
			break;
		}
		segments->nr_unusable += !add_segment(segments, &segment);
	}
	core_maps_sort(&segments->loads);
	core_maps_sort(&segments->saved);
	return 0;
}

int core_segments_read(struct file_blocks *file, uint64_t file_bytes,
		       struct core_segments *ret_segments, struct message *reterr)
{
	struct core_segments segments = {.nr_notes = 0};
	Elf64_Ehdr header;
	int err;

	err = read_header(file, &header, reterr);
	if (err)
		return err;
	uint64_t nr_segments = count_segments(file, &header);
	/* Allocate no more than the file can fill. */
	uint64_t max_segments = file_bytes / sizeof(Elf64_Phdr);
	uint64_t nr_read = nr_segments < max_segments ? nr_segments : max_segments;

	if (nr_read > CORE_MAX_SEGMENTS)
		nr_read = CORE_MAX_SEGMENTS;
	segments.nr_unusable = nr_segments - nr_read;
	err = read_segments(file, &header, nr_read, &segments);
	if (err) {
		core_segments_done(&segments);
		return err;
	}
	*ret_segments = segments;
	return 0;
}

void core_segments_done(struct core_segments *segments)
{
	maps_done(&segments->loads);
	maps_done(&segments->saved);
	*segments = (struct core_segments){.nr_notes = 0};
}
