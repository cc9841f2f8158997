/* SPDX-License-Identifier: MIT */
/*
 * The entries of one section of call frame information, which says, for each instruction of a
 * function, how to recover the caller's registers. The section is untrusted input. This file
 * parses entries; cfi_program.h executes their programs.
 *
 * Sources: DWARF 5 §6.4.1; the Linux Standard Base 5.0, "Exception Frames", for .eh_frame.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/byte_cursor.h"

enum cfi_kind {
	CFI_EH_FRAME,
	CFI_DEBUG_FRAME,
};

/*
 * Limit on the bytes of a section that are read: libLLVM, a library of 110 MB, has 5 MiB. It also
 * keeps offsets within 31 bits.
 */
#define CFI_MAX_BYTES (512u << 20)

struct cfi_section {
	const uint8_t *bytes; /* borrowed from the section's creator */
	size_t nr_bytes;      /* at most CFI_MAX_BYTES */
	uint64_t vaddr;	      /* of bytes[0]; the base of pc-relative pointers */
	uint64_t data_vaddr;  /* the base of data-relative pointers: the vaddr of .eh_frame_hdr */
	enum cfi_kind kind;
};

/* A common information entry (CIE): what several functions share. */
struct cfi_common {
	uint64_t offset; /* in the section */
	uint64_t code_alignment;
	int64_t data_alignment;
	uint32_t return_register; /* DWARF number; unchecked */
	uint8_t pointer_encoding; /* DW_EH_PE_*, for addresses */
	bool has_augmentation;	  /* each FDE has augmentation data, preceded by its length */
	bool is_signal_frame;	  /* the function is what a signal handler returns to */
	struct byte_cursor program;
};

/* A frame description entry (FDE): one function. */
struct cfi_function {
	uint64_t offset;      /* in the section */
	uint64_t start_vaddr; /* [start_vaddr, start_vaddr + nr_bytes); the sum does not overflow */
	uint64_t nr_bytes;
	struct cfi_common common;
	struct byte_cursor program;
};

/*
 * Read the first well-formed function entry at or after offset. Malformed entries are skipped.
 * *ret_next_offset is the offset to pass to the next call. *last is the CIE of the previous
 * function, or has code_alignment 0; it saves decoding a CIE that consecutive functions share.
 *
 * Returns 0, or -ENOENT if there are no more functions.
 */
int cfi_next_function(const struct cfi_section *section, uint64_t offset,
		      const struct cfi_common *last, struct cfi_function *ret_function,
		      uint64_t *ret_next_offset);

/*
 * Read the pointer at the cursor, which points into the section, in the given encoding
 * (DW_EH_PE_*). Sets is_bad for unsupported encodings: indirect, text-relative, function-relative
 * and aligned pointers.
 */
uint64_t cfi_pointer(const struct cfi_section *section, struct byte_cursor *cursor,
		     uint8_t encoding);
