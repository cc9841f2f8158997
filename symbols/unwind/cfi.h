/* SPDX-License-Identifier: MIT */
/*
 * The entries of one section of call frame information: what tells, for each instruction of a
 * function, where its caller's registers are. Nothing in it is trusted, and nothing of it
 * is executed here (cfi_program.h).
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
 * More bytes of a section are not looked at: libLLVM, a library of 110 MB, has 5 MiB of them.
 * Offsets fit into 31 bits.
 */
#define CFI_MAX_BYTES (512u << 20)

struct cfi_section {
	const uint8_t *bytes; /* borrowed from who made the section */
	size_t nr_bytes;      /* at most CFI_MAX_BYTES */
	uint64_t vaddr;	      /* of bytes: what pc-relative pointers count from */
	uint64_t data_vaddr;  /* what data-relative ones count from, the vaddr of .eh_frame_hdr */
	enum cfi_kind kind;
};

/* What functions have in common: a common information entry (CIE). */
struct cfi_common {
	uint64_t offset; /* in the section */
	uint64_t code_alignment;
	int64_t data_alignment;
	uint32_t return_register; /* by its DWARF number; it may be any */
	uint8_t pointer_encoding; /* of addresses, as DW_EH_PE_* */
	bool has_augmentation;	  /* functions begin with the length of what else they tell */
	bool is_signal_frame;	  /* of what a signal handler returns to */
	struct byte_cursor program;
};

/* One function: a frame description entry (FDE). */
struct cfi_function {
	uint64_t offset;      /* in the section */
	uint64_t start_vaddr; /* [start_vaddr, start_vaddr + nr_bytes), which does not overflow */
	uint64_t nr_bytes;
	struct cfi_common common;
	struct byte_cursor program;
};

/*
 * Read the function at or behind offset, with *ret_next_offset what is to be asked for next.
 * Entries that have not their form are left out. *last is what the caller got before, or has
 * code_alignment 0: functions often have in common what the last one had. 0; -ENOENT (there
 * are no more).
 */
int cfi_next_function(const struct cfi_section *section, uint64_t offset,
		      const struct cfi_common *last, struct cfi_function *ret_function,
		      uint64_t *ret_next_offset);

/*
 * Read the pointer at the cursor, a byte of the section, as encoding (DW_EH_PE_*) says. What
 * is not supported sets is_bad: pointers to pointers, those relative to the text or to the
 * function, aligned ones.
 */
uint64_t cfi_pointer(const struct cfi_section *section, struct byte_cursor *cursor,
		     uint8_t encoding);
