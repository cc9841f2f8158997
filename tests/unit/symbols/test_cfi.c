/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/cfi.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/cfi_bytes.h"

static const struct cfi_common none = {.code_alignment = 0};

static int first_function(const struct cfi_bytes *bytes, struct cfi_function *ret_function)
{
	const struct cfi_section section = cfi_bytes_section(bytes);
	uint64_t next;

	return cfi_next_function(&section, 0, &none, ret_function, &next);
}

Test(cfi, reads_consecutive_functions)
{
	for (enum cfi_kind kind = CFI_EH_FRAME; kind <= CFI_DEBUG_FRAME; kind++) {
		struct cfi_bytes bytes = {.kind = kind};
		const size_t common = cfi_bytes_common(&bytes, "", NULL, 0, "\1\2\3", 3);
		struct cfi_function function = {.common = none};
		uint64_t next = 0;

		cfi_bytes_function(&bytes, common, 0x1000, 0x20, "\4\5", 2);
		cfi_bytes_function(&bytes, common, 0x3000, 0x10, "", 0);
		const struct cfi_section section = cfi_bytes_section(&bytes);

		cr_assert(zero(int, cfi_next_function(&section, next, &function.common, &function,
						      &next)));
		cr_expect(eq(u64, function.start_vaddr, 0x1000));
		cr_expect(eq(u64, function.nr_bytes, 0x20));
		cr_expect(eq(u64, function.common.code_alignment, 1));
		cr_expect(eq(i64, function.common.data_alignment, -8));
		cr_expect(eq(u32, function.common.return_register, CFI_RETURN));
		cr_expect(eq(i64, function.common.program.end - function.common.program.at, 3));
		cr_expect(eq(i64, function.program.end - function.program.at, 2));
		cr_expect(eq(u64, byte_cursor_fixed(&function.program, 2), 0x504));
		cr_assert(zero(int, cfi_next_function(&section, next, &function.common, &function,
						      &next)));
		cr_expect(eq(u64, function.start_vaddr, 0x3000));
		cr_expect(eq(u64, byte_cursor_fixed(&function.common.program, 3), 0x30201));
		cr_expect(eq(int,
			     cfi_next_function(&section, next, &function.common, &function, &next),
			     -ENOENT));
	}
}

Test(cfi, reads_encoded_addresses)
{
	/*
	 * The function starts at 0x1234 and has 0x10 bytes. here is the vaddr of the pointer
	 * itself.
	 */
	const uint64_t here = 0x9000 + 17 + 8;
	const struct {
		uint8_t encoding;
		uint64_t number;
		uint8_t nr_bytes;
		uint64_t start_vaddr;
	} cases[] = {
		{DW_EH_PE_absptr, 0x1234, 8, 0x1234},
		{DW_EH_PE_udata2, 0x1234, 2, 0x1234},
		{DW_EH_PE_udata4, 0x1234, 4, 0x1234},
		{DW_EH_PE_udata8, 0x1234, 8, 0x1234},
		{DW_EH_PE_pcrel | DW_EH_PE_sdata4, 0x1234 - here, 4, 0x1234},
		{DW_EH_PE_pcrel | DW_EH_PE_sdata8, 0x1234 - here, 8, 0x1234},
		{DW_EH_PE_pcrel | DW_EH_PE_sdata2, 0x1000, 2, here + 0x1000},
		{DW_EH_PE_datarel | DW_EH_PE_sdata4, 0x1234 - CFI_BYTES_DATA_VADDR, 4, 0x1234},
		{DW_EH_PE_uleb128, 0x2480 + 0x34, 2, 0x1234},
		{DW_EH_PE_sleb128, 0x2480 + 0x34, 2, 0x1234},
		/* Unsupported or undefined. */
		{DW_EH_PE_textrel | DW_EH_PE_udata4, 0x1234, 4, 0},
		{DW_EH_PE_funcrel | DW_EH_PE_udata4, 0x1234, 4, 0},
		{DW_EH_PE_aligned, 0x1234, 8, 0},
		{DW_EH_PE_indirect | DW_EH_PE_udata4, 0x1234, 4, 0},
		{DW_EH_PE_omit, 0x1234, 8, 0},
		{0x05, 0x1234, 8, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
		const size_t common = cfi_bytes_common(&bytes, "zR", &cases[i].encoding, 1, "", 0);
		struct cfi_function function = {.start_vaddr = 0};

		cr_assert(eq(sz, bytes.nr, 17)); /* here relies on it */
		const size_t start = cfi_bytes_begin(&bytes, cfi_bytes_id(&bytes, common));

		cfi_bytes_put(&bytes, cases[i].number, cases[i].nr_bytes);
		cfi_bytes_put(&bytes,
			      cases[i].nr_bytes == 2 && (cases[i].encoding & 7) == 1 ? 0x90 : 0x10,
			      cases[i].nr_bytes);
		cfi_bytes_put(&bytes, 0, 1);
		cfi_bytes_end(&bytes, start);
		cr_expect(eq(int, first_function(&bytes, &function),
			     cases[i].start_vaddr ? 0 : -ENOENT),
			  "%#x", cases[i].encoding);
		cr_expect(eq(u64, function.start_vaddr, cases[i].start_vaddr), "%#x",
			  cases[i].encoding);
		cr_expect(eq(u64, function.nr_bytes, cases[i].start_vaddr ? 0x10 : 0), "%#x",
			  cases[i].encoding);
	}
}

Test(cfi, reads_augmentations)
{
	static const struct {
		char augmentation[8];
		uint8_t data[12];
		uint8_t nr_data;
		uint8_t encoding;
		bool is_signal_frame;
		bool is_bad;
	} cases[] = {
		{"zR", {0x1b}, 1, 0x1b, false, false},
		{"zRS", {0x1b}, 1, 0x1b, true, false},
		{"zPLR", {0x9b, 1, 2, 3, 4, 0x1b, 0x03}, 7, 0x03, false, false},
		{"zRB", {0x03}, 1, 0x03, false, false},
		{"zQR", {0x03}, 1, DW_EH_PE_absptr, false, false}, /* stops at an unknown letter */
		{"z", {0x03}, 1, DW_EH_PE_absptr, false, false},
		{"zR", {0}, 0, 0, false, true}, /* shorter than the letters need */
		{"zP", {0x03, 1, 2}, 3, 0, false, true},
		{"eh", {0}, 0, 0, false, true}, /* GCC 2 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
		const size_t common = cfi_bytes_common(&bytes, cases[i].augmentation, cases[i].data,
						       cases[i].nr_data, "\0\0", 2);
		const size_t start = cfi_bytes_begin(&bytes, cfi_bytes_id(&bytes, common));
		struct cfi_function function = {.nr_bytes = 0};

		for (unsigned int byte = 0; byte < 16; byte++)
			cfi_bytes_put(&bytes, 1, 1); /* numbers of any encoding */
		cfi_bytes_put(&bytes, 0, 1);
		cfi_bytes_end(&bytes, start);
		cr_expect(eq(int, first_function(&bytes, &function), cases[i].is_bad ? -ENOENT : 0),
			  "%s", cases[i].augmentation);
		if (cases[i].is_bad)
			continue;
		cr_expect(eq(u8, function.common.pointer_encoding, cases[i].encoding), "%s",
			  cases[i].augmentation);
		cr_expect(eq(int, function.common.is_signal_frame, cases[i].is_signal_frame));
		cr_expect(eq(i64, function.common.program.end - function.common.program.at, 2));
	}
}

/* 64-bit lengths, as of sections above 4 GiB, and 64-bit ids in .debug_frame. */
Test(cfi, reads_64_bit_lengths)
{
	for (enum cfi_kind kind = CFI_EH_FRAME; kind <= CFI_DEBUG_FRAME; kind++) {
		const unsigned int nr_id_bytes = kind == CFI_DEBUG_FRAME ? 8 : 4;
		struct cfi_bytes bytes = {.kind = kind};
		struct cfi_function function;

		cfi_bytes_put(&bytes, UINT32_MAX, 4);
		cfi_bytes_put(&bytes, nr_id_bytes + 5, 8);
		cfi_bytes_put(&bytes, kind == CFI_DEBUG_FRAME ? UINT64_MAX : 0, nr_id_bytes);
		cfi_bytes_append(&bytes, "\3\0\1\x78\x10", 5);
		cfi_bytes_put(&bytes, UINT32_MAX, 4);
		cfi_bytes_put(&bytes, nr_id_bytes + 16, 8);
		cfi_bytes_put(&bytes, kind == CFI_DEBUG_FRAME ? 0 : bytes.nr, nr_id_bytes);
		cfi_bytes_put(&bytes, 0x5000, 8);
		cfi_bytes_put(&bytes, 0x100, 8);
		cr_assert(zero(int, first_function(&bytes, &function)), "%d", kind);
		cr_expect(eq(u64, function.start_vaddr, 0x5000));
	}
}

Test(cfi, checks_the_sizes_of_version_four)
{
	static const struct {
		char body[16];
		bool is_bad;
	} cases[] = {
		{"\4\0\x8\0\1\x78\x10", false},
		{"\4\0\x4\0\1\x78\x10", true}, /* addresses of four bytes */
		{"\4\0\x8\4\1\x78\x10", true}, /* segment selectors */
		{"\5\0\x8\0\1\x78\x10", true},
		{"\0\0\x8\0\1\x78\x10", true},
		{"\4\0\x8\0\0\x78\x10", true}, /* instructions of no bytes */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cfi_bytes bytes = {.kind = CFI_DEBUG_FRAME};
		const size_t start = cfi_bytes_begin(&bytes, UINT32_MAX);
		struct cfi_function function;

		cfi_bytes_append(&bytes, cases[i].body, 7);
		cfi_bytes_end(&bytes, start);
		cfi_bytes_function(&bytes, start, 0x1000, 0x10, "", 0);
		cr_expect(eq(int, first_function(&bytes, &function), cases[i].is_bad ? -ENOENT : 0),
			  "%zu", i);
	}
}

/* A damaged function does not hide the next one. */
Test(cfi, damaged_functions_are_skipped)
{
	struct cfi_bytes bytes = {.kind = CFI_DEBUG_FRAME};
	const size_t common = cfi_bytes_common(&bytes, "", NULL, 0, "", 0);
	const size_t start = bytes.nr;
	struct cfi_function function;

	cfi_bytes_function(&bytes, start, 0x1000, 0x10, "", 0);	     /* its CIE is an FDE */
	cfi_bytes_function(&bytes, 0xfffffff0, 0x1000, 0x10, "", 0); /* its CIE is outside */
	cfi_bytes_function(&bytes, common, 0x1000, 0, "", 0);	     /* no bytes */
	cfi_bytes_function(&bytes, common, UINT64_MAX - 8, 0x10, "", 0);
	cfi_bytes_end(&bytes, cfi_bytes_begin(&bytes, common)); /* cut off */
	cfi_bytes_function(&bytes, common, 0x2000, 0x10, "", 0);
	cr_assert(zero(int, first_function(&bytes, &function)));
	cr_expect(eq(u64, function.start_vaddr, 0x2000));
}

Test(cfi, nothing_is_read_beyond_the_end)
{
	struct cfi_bytes bytes = {.kind = CFI_EH_FRAME};
	const size_t common = cfi_bytes_common(&bytes, "zR", "\x1b", 1, "\0\0\0", 3);
	struct cfi_function function;
	uint64_t next;

	cfi_bytes_function(&bytes, common, 0x1000, 0x10, "", 0);
	for (size_t nr = 0; nr < bytes.nr; nr++) {
		uint8_t *copy = malloc(nr ? nr : 1); /* exact, for the sanitizer */
		const struct cfi_section section = {.bytes = copy, .nr_bytes = nr};

		memcpy(copy, bytes.bytes, nr);
		cr_expect(
			eq(int, cfi_next_function(&section, 0, &none, &function, &next), -ENOENT));
		free(copy);
	}
	const struct cfi_section section = cfi_bytes_section(&bytes);

	cr_expect(
		eq(int, cfi_next_function(&section, UINT64_MAX, &none, &function, &next), -ENOENT));
}
