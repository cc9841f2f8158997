/* SPDX-License-Identifier: MIT */
/*
 * Call frame information written by hand, for tests of its readers. Begin a section, then append
 * entries; the struct owns the bytes.
 *
 *	struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
 *	size_t common = cfi_bytes_common(&bytes, "zR", data, sizeof(data), program,
 *					 sizeof(program));
 *
 *	cfi_bytes_function(&bytes, common, start, nr_bytes, program, sizeof(program));
 *	section = cfi_bytes_section(&bytes);
 */
#pragma once

#include <dwarf.h>
#include <stdint.h>
#include <string.h>

#include "symbols/unwind/cfi.h"
#include "symbols/unwind/registers.h"

/* Address of the section, and the base of data-relative pointers. */
#define CFI_BYTES_VADDR	     0x9000
#define CFI_BYTES_DATA_VADDR 0x8000

/*
 * The registers by which programs can be written for both machines: the return address, and one
 * that a function preserves for its caller.
 */
#if defined(__x86_64__)
enum { CFI_RETURN = REGISTER_PC, CFI_KEPT = REGISTER_RBX };
#elif defined(__aarch64__)
enum { CFI_RETURN = REGISTER_LR, CFI_KEPT = REGISTER_X19 };
#endif
enum { CFI_SP = REGISTER_SP, CFI_FRAME_POINTER = REGISTER_FRAME_POINTER };

struct cfi_bytes {
	uint8_t bytes[4096];
	size_t nr;
	enum cfi_kind kind;
};

static inline void cfi_bytes_put(struct cfi_bytes *bytes, uint64_t number, unsigned int nr_bytes)
{
	for (unsigned int i = 0; i < nr_bytes; i++)
		bytes->bytes[bytes->nr++] = (uint8_t)(number >> 8 * i);
}

static inline void cfi_bytes_append(struct cfi_bytes *bytes, const void *data, size_t nr_bytes)
{
	memcpy(bytes->bytes + bytes->nr, data, nr_bytes);
	bytes->nr += nr_bytes;
}

/* Begin an entry with its id. Ending it fills in its length. */
static inline size_t cfi_bytes_begin(struct cfi_bytes *bytes, uint64_t id)
{
	const size_t start = bytes->nr;

	cfi_bytes_put(bytes, 0, 4);
	cfi_bytes_put(bytes, id, 4);
	return start;
}

static inline void cfi_bytes_end(struct cfi_bytes *bytes, size_t start)
{
	const uint32_t length = (uint32_t)(bytes->nr - start - 4);

	memcpy(bytes->bytes + start, &length, sizeof(length));
}

/*
 * Append a common entry (CIE): version 1, code alignment 1, data alignment -8, return register
 * CFI_RETURN. data is the augmentation data, used if the augmentation begins with "z". Returns
 * the entry's offset.
 */
static inline size_t cfi_bytes_common(struct cfi_bytes *bytes, const char *augmentation,
				      const void *data, size_t nr_data, const void *program,
				      size_t nr_program)
{
	const size_t start =
		cfi_bytes_begin(bytes, bytes->kind == CFI_DEBUG_FRAME ? UINT32_MAX : 0);

	cfi_bytes_put(bytes, 1, 1);
	cfi_bytes_append(bytes, augmentation, strlen(augmentation) + 1);
	cfi_bytes_put(bytes, 0x7801 | CFI_RETURN << 16, 3);
	if (augmentation[0] == 'z') {
		cfi_bytes_put(bytes, nr_data, 1);
		cfi_bytes_append(bytes, data, nr_data);
	}
	cfi_bytes_append(bytes, program, nr_program);
	cfi_bytes_end(bytes, start);
	return start;
}

/* The id of a function entry (FDE) whose common entry is at this offset. */
static inline uint64_t cfi_bytes_id(const struct cfi_bytes *bytes, size_t common)
{
	return bytes->kind == CFI_DEBUG_FRAME ? common : bytes->nr + 4 - common;
}

/* Append a function with absolute addresses and no augmentation data. */
static inline void cfi_bytes_function(struct cfi_bytes *bytes, size_t common, uint64_t start_vaddr,
				      uint64_t nr_bytes, const void *program, size_t nr_program)
{
	const size_t start = cfi_bytes_begin(bytes, cfi_bytes_id(bytes, common));

	cfi_bytes_put(bytes, start_vaddr, 8);
	cfi_bytes_put(bytes, nr_bytes, 8);
	cfi_bytes_append(bytes, program, nr_program);
	cfi_bytes_end(bytes, start);
}

/* The section. Its bytes are borrowed from *bytes. */
static inline struct cfi_section cfi_bytes_section(const struct cfi_bytes *bytes)
{
	return (struct cfi_section){.bytes = bytes->bytes,
				    .nr_bytes = bytes->nr,
				    .vaddr = CFI_BYTES_VADDR,
				    .data_vaddr = CFI_BYTES_DATA_VADDR,
				    .kind = bytes->kind};
}
