/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/stack_depth.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "symbols/elf/image.h"
#include "symbols/unwind/cfi_program.h"
#include "symbols/unwind/eh_frame.h"

#if defined(__x86_64__)

/*
 * Functions compiled by gcc 12 with -O2 -fno-omit-frame-pointer, and their disassembly by
 * objdump.
 */
/* clang-format off */
static const uint8_t pushes[] = {
	0x55,                                                       /*   0: push %rbp */
	0xb9, 0x04, 0x00, 0x00, 0x00,                               /*   1: mov $0x4,%ecx */
	0xba, 0x03, 0x00, 0x00, 0x00,                               /*   6: mov $0x3,%edx */
	0xbe, 0x02, 0x00, 0x00, 0x00,                               /*   b: mov $0x2,%esi */
	0x41, 0xb9, 0x06, 0x00, 0x00, 0x00,                         /*  10: mov $0x6,%r9d */
	0x41, 0xb8, 0x05, 0x00, 0x00, 0x00,                         /*  16: mov $0x5,%r8d */
	0x48, 0x89, 0xe5,                                           /*  1c: mov %rsp,%rbp */
	0x53,                                                       /*  1f: push %rbx */
	0x48, 0x83, 0xec, 0x10,                                     /*  20: sub $0x10,%rsp */
	0x6a, 0x09,                                                 /*  24: push $0x9 */
	0x6a, 0x08,                                                 /*  26: push $0x8 */
	0x6a, 0x07,                                                 /*  28: push $0x7 */
	0xe8, 0x00, 0x00, 0x00, 0x00,                               /*  2a: call pushes+0x2f */
	0x48, 0x83, 0xc4, 0x20,                                     /*  2f: add $0x20,%rsp */
	0x31, 0xff,                                                 /*  33: xor %edi,%edi */
	0x89, 0xc3,                                                 /*  35: mov %eax,%ebx */
	0xe8, 0x00, 0x00, 0x00, 0x00,                               /*  37: call pushes+0x3c */
	0x01, 0xd8,                                                 /*  3c: add %ebx,%eax */
	0x48, 0x8b, 0x5d, 0xf8,                                     /*  3e: mov -0x8(%rbp),%rbx */
	0xc9,                                                       /*  42: leave */
	0xc3,                                                       /*  43: ret */
};

static const uint8_t room[] = {
	0x55,                                                       /*   0: push %rbp */
	0x48, 0x89, 0xe5,                                           /*   1: mov %rsp,%rbp */
	0x48, 0x83, 0xec, 0x30,                                     /*   4: sub $0x30,%rsp */
	0x40, 0x88, 0x7d, 0xd3,                                     /*   8: mov %dil,-0x2d(%rbp) */
	0x48, 0x8d, 0x7d, 0xd0,                                     /*   c: lea -0x30(%rbp),%rdi */
	0xe8, 0x00, 0x00, 0x00, 0x00,                               /*  10: call room+0x15 */
	0x89, 0xc2,                                                 /*  15: mov %eax,%edx */
	0x0f, 0xbe, 0x45, 0xd3,                                     /*  17: movsbl -0x2d(%rbp),%eax */
	0xc9,                                                       /*  1b: leave */
	0x01, 0xd0,                                                 /*  1c: add %edx,%eax */
	0xc3,                                                       /*  1e: ret */
};

static const uint8_t any_room[] = {
	0x55,                                                       /*   0: push %rbp */
	0x48, 0x63, 0xff,                                           /*   1: movslq %edi,%rdi */
	0x48, 0x83, 0xc7, 0x17,                                     /*   4: add $0x17,%rdi */
	0x48, 0x83, 0xe7, 0xf0,                                     /*   8: and $0xfffffffffffffff0,%rdi */
	0x48, 0x89, 0xe5,                                           /*   c: mov %rsp,%rbp */
	0x53,                                                       /*   f: push %rbx */
	0x48, 0x83, 0xec, 0x08,                                     /*  10: sub $0x8,%rsp */
	0x48, 0x29, 0xfc,                                           /*  14: sub %rdi,%rsp */
	0x48, 0x8d, 0x5c, 0x24, 0x0f,                               /*  17: lea 0xf(%rsp),%rbx */
	0x48, 0x83, 0xe3, 0xf0,                                     /*  1c: and $0xfffffffffffffff0,%rbx */
	0x48, 0x89, 0xdf,                                           /*  20: mov %rbx,%rdi */
	0xe8, 0x00, 0x00, 0x00, 0x00,                               /*  23: call any_room+0x28 */
	0x89, 0xc2,                                                 /*  28: mov %eax,%edx */
	0x0f, 0xbe, 0x43, 0x02,                                     /*  2a: movsbl 0x2(%rbx),%eax */
	0x48, 0x8b, 0x5d, 0xf8,                                     /*  2e: mov -0x8(%rbp),%rbx */
	0xc9,                                                       /*  32: leave */
	0x01, 0xd0,                                                 /*  33: add %edx,%eax */
	0xc3,                                                       /*  35: ret */
};

static const uint8_t either[] = {
	0x85, 0xff,                                                 /*   0: test %edi,%edi */
	0x75, 0x0c,                                                 /*   2: jne either+0x10 */
	0x89, 0xf8,                                                 /*   4: mov %edi,%eax */
	0xc3,                                                       /*   6: ret */
	0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,       /*   7: nopw 0x0(%rax,%rax,1) */
	0x55,                                                       /*  10: push %rbp */
	0x48, 0x89, 0xe5,                                           /*  11: mov %rsp,%rbp */
	0x48, 0x81, 0xec, 0xd0, 0x00, 0x00, 0x00,                   /*  14: sub $0xd0,%rsp */
	0x48, 0x8d, 0xbd, 0x30, 0xff, 0xff, 0xff,                   /*  1b: lea -0xd0(%rbp),%rdi */
	0xc6, 0x85, 0x31, 0xff, 0xff, 0xff, 0x01,                   /*  22: movb $0x1,-0xcf(%rbp) */
	0xe8, 0x00, 0x00, 0x00, 0x00,                               /*  29: call either+0x2e */
	0xc9,                                                       /*  2e: leave */
	0x83, 0xc0, 0x01,                                           /*  2f: add $0x1,%eax */
	0xc3,                                                       /*  32: ret */
};

static const uint8_t loops[] = {
	0x55,                                                       /*   0: push %rbp */
	0x48, 0x89, 0xe5,                                           /*   1: mov %rsp,%rbp */
	0x41, 0x55,                                                 /*   4: push %r13 */
	0x41, 0x54,                                                 /*   6: push %r12 */
	0x53,                                                       /*   8: push %rbx */
	0x48, 0x83, 0xec, 0x08,                                     /*   9: sub $0x8,%rsp */
	0x85, 0xff,                                                 /*   d: test %edi,%edi */
	0x7e, 0x5f,                                                 /*   f: jle loops+0x70 */
	0x41, 0x89, 0xfd,                                           /*  11: mov %edi,%r13d */
	0x31, 0xdb,                                                 /*  14: xor %ebx,%ebx */
	0x45, 0x31, 0xe4,                                           /*  16: xor %r12d,%r12d */
	0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00,                   /*  19: nopl 0x0(%rax) */
	0x48, 0x83, 0xec, 0x08,                                     /*  20: sub $0x8,%rsp */
	0x41, 0xb9, 0x06, 0x00, 0x00, 0x00,                         /*  24: mov $0x6,%r9d */
	0x41, 0xb8, 0x05, 0x00, 0x00, 0x00,                         /*  2a: mov $0x5,%r8d */
	0xb9, 0x04, 0x00, 0x00, 0x00,                               /*  30: mov $0x4,%ecx */
	0x53,                                                       /*  35: push %rbx */
	0xba, 0x03, 0x00, 0x00, 0x00,                               /*  36: mov $0x3,%edx */
	0xbe, 0x02, 0x00, 0x00, 0x00,                               /*  3b: mov $0x2,%esi */
	0xbf, 0x01, 0x00, 0x00, 0x00,                               /*  40: mov $0x1,%edi */
	0x6a, 0x08,                                                 /*  45: push $0x8 */
	0x83, 0xc3, 0x01,                                           /*  47: add $0x1,%ebx */
	0x6a, 0x07,                                                 /*  4a: push $0x7 */
	0xe8, 0x00, 0x00, 0x00, 0x00,                               /*  4c: call loops+0x51 */
	0x48, 0x83, 0xc4, 0x20,                                     /*  51: add $0x20,%rsp */
	0x41, 0x01, 0xc4,                                           /*  55: add %eax,%r12d */
	0x41, 0x39, 0xdd,                                           /*  58: cmp %ebx,%r13d */
	0x75, 0xc3,                                                 /*  5b: jne loops+0x20 */
	0x48, 0x8d, 0x65, 0xe8,                                     /*  5d: lea -0x18(%rbp),%rsp */
	0x44, 0x89, 0xe0,                                           /*  61: mov %r12d,%eax */
	0x5b,                                                       /*  64: pop %rbx */
	0x41, 0x5c,                                                 /*  65: pop %r12 */
	0x41, 0x5d,                                                 /*  67: pop %r13 */
	0x5d,                                                       /*  69: pop %rbp */
	0xc3,                                                       /*  6a: ret */
	0x0f, 0x1f, 0x44, 0x00, 0x00,                               /*  6b: nopl 0x0(%rax,%rax,1) */
	0x48, 0x8d, 0x65, 0xe8,                                     /*  70: lea -0x18(%rbp),%rsp */
	0x45, 0x31, 0xe4,                                           /*  74: xor %r12d,%r12d */
	0x5b,                                                       /*  77: pop %rbx */
	0x44, 0x89, 0xe0,                                           /*  78: mov %r12d,%eax */
	0x41, 0x5c,                                                 /*  7b: pop %r12 */
	0x41, 0x5d,                                                 /*  7d: pop %r13 */
	0x5d,                                                       /*  7f: pop %rbp */
	0xc3,                                                       /*  80: ret */
};

/* A loop that pushes in each round. */
static const uint8_t grows[] = {
	0x55,                                                       /* 0: push %rbp */
	0x48, 0x89, 0xe5,                                           /* 1: mov %rsp,%rbp */
	0x50,                                                       /* 4: push %rax */
	0x75, 0xfd,                                                 /* 5: jne 4 */
	0xe8, 0x00, 0x00, 0x00, 0x00,                               /* 7: call */
	0xc9,                                                       /* c: leave */
	0xc3,                                                       /* d: ret */
};

/* Jumps out of the function and into an instruction, and ends within an instruction. */
static const uint8_t strays[] = {
	0x75, 0x7f,                                                 /* 0: jne 81 */
	0x75, 0xfd,                                                 /* 2: jne 1 */
	0x50,                                                       /* 4: push %rax */
	0x0f, 0x05,                                                 /* 5: syscall */
	0x5c,                                                       /* 7: pop %rsp */
	0xe8, 0x00,                                                 /* 8: call */
};
/* clang-format on */

#define CODE(name) name, sizeof(name), #name

static const struct {
	const uint8_t *bytes;
	size_t nr_bytes;
	const char *name;
	size_t offset;
	bool is_call;
	int err;
	uint32_t depth_bytes;
} cases[] = {
	{CODE(pushes), 0, false, 0, 8},		{CODE(pushes), 1, false, 0, 16},
	{CODE(pushes), 0x2f, true, 0, 64}, /* three arguments pushed */
	{CODE(pushes), 0x2f, false, 0, 64},	{CODE(pushes), 0x3c, true, 0, 32},
	{CODE(pushes), 0x3b, true, -ENOENT, 0}, /* inside an instruction */
	{CODE(pushes), 0x43, false, 0, 8},	/* after "leave" */
	{CODE(room), 0x15, true, 0, 64},	{CODE(any_room), 0x28, true, -ENOENT, 0},
	{CODE(either), 6, false, 0, 8},		{CODE(either), 0x2e, true, 0, 224},
	{CODE(loops), 0x51, true, 0, 80},	{CODE(loops), 0x55, false, 0, 48},
	{CODE(loops), 0x61, false, 0, 40}, /* after "lea -0x18(%rbp),%rsp" */
	{CODE(grows), 0xc, true, -EBADMSG, 0},	{CODE(grows), 4, false, -EBADMSG, 0},
	{CODE(grows), 0, false, 0, 8},		{CODE(strays), 7, false, 0, 16},
	{CODE(strays), 8, false, -ENOENT, 0},	{CODE(strays), 10, true, -ENOENT, 0},
	{CODE(strays), 10, false, -ENOENT, 0}, /* after the last byte */
	{CODE(strays), 11, true, -ENOENT, 0},
};

Test(stack_depth, finds_depths_of_functions)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct stack_depth_code code = {.bytes = cases[i].bytes,
						      .nr_bytes = cases[i].nr_bytes,
						      .frame_pointer_bytes = 16};
		uint32_t depth_bytes = 0;
		int err = stack_depth_find(&code, cases[i].offset, cases[i].is_call, &depth_bytes);

		cr_expect(eq(int, err, cases[i].err), "%s+%#zx", cases[i].name, cases[i].offset);
		cr_expect(eq(u32, depth_bytes, cases[i].depth_bytes), "%s+%#zx", cases[i].name,
			  cases[i].offset);
	}
}

Test(stack_depth, frame_pointer_may_be_unknown)
{
	const struct stack_depth_code code = {.bytes = pushes, .nr_bytes = sizeof(pushes)};
	uint32_t depth_bytes;

	cr_expect(zero(int, stack_depth_find(&code, 0x3c, true, &depth_bytes)));
	cr_expect(eq(u32, depth_bytes, 32));
	cr_expect(eq(int, stack_depth_find(&code, 0x43, false, &depth_bytes), -ENOENT));
}

Test(stack_depth, long_functions_are_refused)
{
	cleanup_free uint8_t *bytes = calloc(1, STACK_DEPTH_MAX_BYTES + 1);
	const struct stack_depth_code code = {.bytes = bytes,
					      .nr_bytes = STACK_DEPTH_MAX_BYTES + 1};
	uint32_t depth_bytes;

	cr_expect(eq(int, stack_depth_find(&code, 0, false, &depth_bytes), -ENOENT));
}

/* Compared with call frame information, where that is based on the stack pointer. */

struct comparison {
	struct cfi_row_sink sink;
	struct stack_depth_code code;
	uint64_t start_vaddr;
	bool begins; /* the function starts in the state of a called function */
	uint32_t nr_equal, nr_other, nr_unknown;
};

static int compare_row(struct cfi_row_sink *sink, const struct cfi_row *row)
{
	struct comparison *comparison = (struct comparison *)sink;
	uint32_t depth_bytes;

	if (row->start_vaddr == comparison->start_vaddr)
		comparison->begins = !row->cfa_is_expression && row->cfa_register == REGISTER_SP &&
				     row->cfa_offset == STACK_DEPTH_AT_ENTRY;
	if (!comparison->begins || row->cfa_is_expression || row->cfa_register != REGISTER_SP)
		return 0;
	if (stack_depth_find(&comparison->code, row->start_vaddr - comparison->start_vaddr, false,
			     &depth_bytes))
		comparison->nr_unknown++;
	else if ((int32_t)depth_bytes == row->cfa_offset)
		comparison->nr_equal++;
	else
		comparison->nr_other++;
	return 0;
}

static void compare_function(const struct image *image, const struct cfi_section *section,
			     const struct cfi_function *function, struct comparison *comparison)
{
	cleanup_free uint8_t *bytes = malloc(function->nr_bytes + 1);

	if (image_read_vaddr(image, function->start_vaddr, bytes, function->nr_bytes))
		return;
	comparison->code = (struct stack_depth_code){
		.bytes = bytes, .nr_bytes = function->nr_bytes, .frame_pointer_bytes = 16};
	comparison->start_vaddr = function->start_vaddr;
	(void)cfi_program_run(section, function, &comparison->sink);
}

/* All functions of this program: hundreds, with everything that the compiler does. */
Test(stack_depth, agrees_with_call_frame_information)
{
	struct cfi_function function = {.common = {.code_alignment = 0}};
	struct comparison comparison = {.sink.row = compare_row};
	struct cfi_section section;
	struct image *image;
	uint64_t offset = 0;

	cr_assert(zero(int, image_open_fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &image)));
	cr_assert(zero(int, cfi_copy_of_file(image, CFI_EH_FRAME, CFI_MAX_BYTES, &section)));
	while (!cfi_next_function(&section, offset, &function.common, &function, &offset))
		compare_function(image, &section, &function, &comparison);
	image_close(image);
	free((void *)section.bytes);
	cr_expect(lt(u32, 100, comparison.nr_equal));
	cr_expect(zero(u32, comparison.nr_other));
	/* Code reached only through a switch is unknown. */
	cr_expect(lt(u32, comparison.nr_unknown, comparison.nr_equal / 2));
}

#endif
