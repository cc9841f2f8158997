/* SPDX-License-Identifier: MIT */
/*
 * cfi_cli FILE SECTION: query the unwind table of a section (.eh_frame, .debug_frame) of an ELF
 * file, for tests/live/support/cfi_oracle.py. Reads one hexadecimal vaddr per line from stdin and
 * prints the rule there in readelf's form, "rsp+16 rbx=c-16 ra=c-8", or "none".
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "symbols/unwind/eh_frame.h"
#include "symbols/unwind/unwind_table.h"

/* clang-format off */
static const char *const names[NR_REGISTERS] = {
#if defined(__x86_64__)
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
	"r12", "r13", "r14", "r15", "ra",
#elif defined(__aarch64__)
	"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
	"x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24",
	"x25", "x26", "x27", "x28", "x29", "ra", "sp", "pc",
#endif
};
/* clang-format on */

static void print_save(const struct unwind_save *save)
{
	printf(" %s=", names[save->number]);
	switch ((enum cfi_rule_kind)save->kind) {
	case CFI_AT_CFA:
		printf("c%+" PRId32, save->value);
		break;
	case CFI_IS_CFA:
		printf("v%+" PRId32, save->value);
		break;
	case CFI_IN_REGISTER:
		printf("%s", names[save->value]);
		break;
	case CFI_AT_EXPRESSION:
		printf("exp");
		break;
	case CFI_IS_EXPRESSION:
		printf("vexp");
		break;
	case CFI_UNDEFINED:
		printf("u");
		break;
	case CFI_SAME:
		printf("s");
		break;
	}
}

static void print_rule(const struct unwind_rule *rule)
{
	if (!rule) {
		printf("none\n");
		return;
	}
	if (rule->cfa_is_expression)
		printf("exp");
	else
		printf("%s%+" PRId32, names[rule->cfa_register], rule->cfa_offset);
	for (unsigned int i = 0; i < rule->nr_saves; i++)
		print_save(&rule->saves[i]);
	printf("\n");
}

static struct unwind_table *open_table(const char *path, const char *section_name)
{
	struct unwind_table *table = NULL;
	struct cfi_section section;
	struct image *image;
	int err;

	if (image_open_fd(open(path, O_RDONLY | O_CLOEXEC), &image))
		return NULL;
	err = cfi_copy_of_file(
		image, strcmp(section_name, ".eh_frame") == 0 ? CFI_EH_FRAME : CFI_DEBUG_FRAME,
		CFI_MAX_BYTES, &section);
	if (!err)
		(void)unwind_table_create(&section, 0, &table);
	image_close(image);
	return table;
}

int main(int argc, char **argv)
{
	struct unwind_table *table = argc == 3 ? open_table(argv[1], argv[2]) : NULL;
	char line[64];

	if (!table) {
		(void)fprintf(stderr, "usage: cfi_cli FILE .eh_frame|.debug_frame <VADDRS\n");
		return EXIT_FAILURE;
	}
	while (fgets(line, sizeof(line), stdin))
		print_rule(unwind_table_find(table, strtoull(line, NULL, 16)));
	unwind_table_destroy(table);
	return EXIT_SUCCESS;
}
