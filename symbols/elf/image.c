/* SPDX-License-Identifier: MIT */
#include "symbols/elf/image.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/machine.h"

/* Limit on the bytes of notes read of a segment or section; most have under 100. */
#define NOTES_MAX_BYTES 4096

struct image {
	int fd;
	Elf *elf;
	const Elf64_Phdr *segments; /* owned by elf */
	size_t nr_segments;
};

/* Reading. */

int image_read(const struct image *image, uint64_t file_offset, void *buffer, size_t size)
{
	size_t done = 0;

	if (file_offset > INT64_MAX || size > INT64_MAX - file_offset)
		return -EBADMSG;
	while (done < size) {
		ssize_t n = pread(image->fd, (char *)buffer + done, size - done,
				  (off_t)(file_offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) /* end of file */
			return -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

int image_file_offset(const struct image *image, uint64_t vaddr, uint64_t size,
		      uint64_t *ret_file_offset)
{
	for (size_t i = 0; i < image->nr_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t offset = vaddr - segment->p_vaddr;

		if (segment->p_type == PT_LOAD && vaddr >= segment->p_vaddr &&
		    offset <= segment->p_filesz && size <= segment->p_filesz - offset &&
		    !__builtin_add_overflow(segment->p_offset, offset, ret_file_offset))
			return 0;
	}
	return -EFAULT;
}

int image_read_vaddr(const struct image *image, uint64_t vaddr, void *buffer, size_t size)
{
	uint64_t file_offset;
	int err;

	err = image_file_offset(image, vaddr, size, &file_offset);
	return err ? err : image_read(image, file_offset, buffer, size);
}

/* Opening an ELF file. */

bool image_header_is_ours(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_machine == MACHINE_ELF &&
	       (header->e_phnum == 0 || header->e_phentsize == sizeof(Elf64_Phdr));
}

/*
 * If the number of sections does not fit the ELF header it is in the first section's header
 * (gABI, "Sections"). elf_begin() allocates memory for that many, as long as their headers fit
 * the file. It reads the number again, so a file that changes meanwhile can make us allocate
 * about four times its length.
 */
static bool has_too_many_sections(const struct image *image, const Elf64_Ehdr *header)
{
	Elf64_Shdr first;

	return header->e_shnum == 0 && header->e_shoff != 0 &&
	       !image_read(image, header->e_shoff, &first, sizeof(first)) &&
	       first.sh_size > IMAGE_MAX_SECTIONS;
}

/* Check what libelf would not, or would only after it has allocated memory. */
static int check_file(const struct image *image, Elf64_Ehdr *ret_header)
{
	struct stat st;
	int err;

	if (fstat(image->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	err = image_read(image, 0, ret_header, sizeof(*ret_header));
	if (err)
		return err;
	if (!image_header_is_ours(ret_header))
		return -EBADMSG;
	if (ret_header->e_phnum > IMAGE_MAX_SEGMENTS || has_too_many_sections(image, ret_header))
		return -E2BIG;
	return 0;
}

static int load_headers(struct image *image)
{
	Elf64_Ehdr header;
	int err;

	err = check_file(image, &header);
	if (err)
		return err;
	(void)elf_version(EV_CURRENT);
	image->elf = elf_begin(image->fd, ELF_C_READ, NULL); /* reads, maps nothing */
	if (!image->elf || elf_getphdrnum(image->elf, &image->nr_segments))
		return -EBADMSG;
	image->segments = elf64_getphdr(image->elf);
	return image->nr_segments > 0 && !image->segments ? -EBADMSG : 0;
}

int image_open_fd(int fd, struct image **ret_image)
{
	cleanup_close int guard = fd;
	struct image *image = calloc(1, sizeof(*image));
	int err;

	if (!image)
		return -ENOMEM;
	image->fd = take_fd(guard);
	err = load_headers(image);
	if (err) {
		image_close(image);
		return err;
	}
	*ret_image = image;
	return 0;
}

void image_close(struct image *image)
{
	if (!image)
		return;
	(void)elf_end(image->elf);
	cleanup_close_fn(&image->fd);
	free(image);
}

/* Load bias. */

/* Whether RELRO makes all of a segment read-only once it is relocated. */
static bool is_relro(const struct image *image, const Elf64_Phdr *segment)
{
	for (size_t i = 0; i < image->nr_segments; i++) {
		const Elf64_Phdr *relro = &image->segments[i];
		uint64_t offset = segment->p_vaddr - relro->p_vaddr;

		if (relro->p_type == PT_GNU_RELRO && segment->p_vaddr >= relro->p_vaddr &&
		    offset <= relro->p_memsz && segment->p_filesz <= relro->p_memsz - offset)
			return true;
	}
	return false;
}

/* Whether the pages that hold a segment's file part contain the file offset. */
static bool covers(const Elf64_Phdr *segment, uint64_t file_offset, uint64_t page_mask)
{
	uint64_t end;

	if (segment->p_type != PT_LOAD || segment->p_filesz == 0 ||
	    (segment->p_vaddr & page_mask) != (segment->p_offset & page_mask) ||
	    __builtin_add_overflow(segment->p_offset, segment->p_filesz, &end) ||
	    __builtin_add_overflow(end, page_mask, &end))
		return false;
	return file_offset >= (segment->p_offset & ~page_mask) && file_offset < (end & ~page_mask);
}

/* Rate how well a segment that covers the mapping's offset fits it, from 0 to 7. */
static unsigned int fit(const struct image *image, const Elf64_Phdr *segment,
			const struct mapping *mapping, uint64_t page_mask)
{
	bool executable = segment->p_flags & PF_X;
	bool writable = (segment->p_flags & PF_W) && !is_relro(image, segment);
	unsigned int points = 0;

	if (executable == mapping->executable)
		points += 4;
	if (writable == mapping->writable)
		points += 2;
	if ((segment->p_offset & ~page_mask) == mapping->file_offset)
		points += 1;
	return points;
}

int image_load_bias(const struct image *image, const struct mapping *mapping,
		    uint64_t *ret_load_bias)
{
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	const Elf64_Phdr *best = NULL;
	unsigned int best_points = 0;

	for (size_t i = 0; i < image->nr_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (!covers(segment, mapping->file_offset, page_mask))
			continue;
		unsigned int points = fit(image, segment, mapping, page_mask);

		if (!best || points > best_points) {
			best = segment;
			best_points = points;
		}
	}
	if (!best)
		return -ENOENT;
	/* Modulo 2^64: the segment's page may start below the segment's offset. */
	*ret_load_bias = mapping->start - (best->p_vaddr - best->p_offset + mapping->file_offset);
	return 0;
}

/* Headers. */

Elf *image_elf(const struct image *image)
{
	return image->elf;
}

const Elf64_Phdr *image_segments(const struct image *image, size_t *ret_nr_segments)
{
	*ret_nr_segments = image->nr_segments;
	return image->segments;
}

const Elf_Data *image_section_data(const struct image *image, size_t index, uint32_t type,
				   uint64_t max_bytes)
{
	Elf_Scn *section = elf_getscn(image->elf, index);
	const Elf64_Shdr *header = elf64_getshdr(section);

	if (!header || header->sh_type != type || (header->sh_flags & SHF_COMPRESSED) ||
	    header->sh_size == 0 || header->sh_size > max_bytes)
		return NULL;
	return elf_rawdata(section, NULL);
}

const Elf_Data *image_strings(const struct image *image, size_t index, uint64_t max_bytes)
{
	const Elf_Data *strings = image_section_data(image, index, SHT_STRTAB, max_bytes);

	return strings && ((const char *)strings->d_buf)[strings->d_size - 1] == '\0' ? strings
										      : NULL;
}

/* NULL if there is none of that name, or the file has no section headers. */
static Elf_Scn *find_section(const struct image *image, const char *name)
{
	const Elf_Data *names = NULL;
	Elf_Scn *section = NULL;
	size_t index;

	if (!elf_getshdrstrndx(image->elf, &index))
		names = image_strings(image, index, IMAGE_MAX_SECTION_NAME_BYTES);
	while (names && (section = elf_nextscn(image->elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);

		if (header && header->sh_type != SHT_NULL && header->sh_name < names->d_size &&
		    strcmp((const char *)names->d_buf + header->sh_name, name) == 0)
			return section;
	}
	return NULL;
}

int image_section(const struct image *image, const char *name, uint64_t *ret_vaddr,
		  uint64_t *ret_size_bytes)
{
	const Elf64_Shdr *header = elf64_getshdr(find_section(image, name));

	if (!header)
		return -ENOENT;
	*ret_vaddr = header->sh_addr;
	*ret_size_bytes = header->sh_size;
	return 0;
}

const Elf_Data *image_section_bytes(const struct image *image, const char *name, uint64_t max_bytes)
{
	Elf_Scn *section = find_section(image, name);
	const Elf64_Shdr *header = elf64_getshdr(section);

	return header && header->sh_type != SHT_NOBITS
		       ? image_section_data(image, elf_ndxscn(section), header->sh_type, max_bytes)
		       : NULL;
}

/* Build ID. */

static size_t find_build_id(Elf_Data *notes, uint8_t ret_build_id[BUILD_ID_MAX_BYTES])
{
	GElf_Nhdr note;
	size_t name;
	size_t desc;

	for (size_t next = 0; (next = gelf_getnote(notes, next, &note, &name, &desc)) > 0;) {
		const char *bytes = notes->d_buf;

		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(bytes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 &&
		    note.n_descsz <= BUILD_ID_MAX_BYTES) {
			memcpy(ret_build_id, bytes + desc, note.n_descsz);
			return note.n_descsz;
		}
	}
	return 0;
}

/* Search size bytes of notes in the file, aligned to align. */
static size_t read_build_id(const struct image *image, uint64_t offset, uint64_t size,
			    uint64_t align, uint8_t ret_build_id[BUILD_ID_MAX_BYTES])
{
	Elf_Data *notes = elf_getdata_rawchunk(image->elf, (int64_t)offset,
					       size < NOTES_MAX_BYTES ? size : NOTES_MAX_BYTES,
					       align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);

	return notes ? find_build_id(notes, ret_build_id) : 0;
}

size_t image_build_id(const struct image *image, uint8_t ret_build_id[BUILD_ID_MAX_BYTES])
{
	Elf_Scn *section = NULL;
	size_t length = 0;

	for (size_t i = 0; !length && i < image->nr_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_NOTE)
			length = read_build_id(image, segment->p_offset, segment->p_filesz,
					       segment->p_align, ret_build_id);
	}
	while (!length && (section = elf_nextscn(image->elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);

		if (header && header->sh_type == SHT_NOTE)
			length = read_build_id(image, header->sh_offset, header->sh_size,
					       header->sh_addralign, ret_build_id);
	}
	return length;
}

int image_fd(const struct image *image)
{
	return image->fd;
}
