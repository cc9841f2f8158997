/* SPDX-License-Identifier: MIT */
#include "symbols/elf/function_symbols.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "symbols/elf/symtab.h"

/* The module's file and its debug file. */
#define MAX_IMAGES 2

/*
 * Bytes of two names for one place that are compared. Comparing whole names would make the time
 * to sort a file of long names quadratic. Names that agree this far are interchangeable.
 */
#define COMPARED_BYTES 128

struct function {
	uint64_t start_vaddr;
	uint64_t nr_bytes; /* 0: a label */
	const char *name;
	uint8_t rank; /* of symbols at one place the one with the highest rank is reported */
};

struct function_symbols {
	struct image *images[MAX_IMAGES]; /* owned; names are borrowed from them */
	size_t nr_images;
	struct function *functions; /* sorted by address, then rank, if is_sorted */
	uint32_t nr_functions;
	uint32_t max_functions;
	bool is_sorted;
	bool is_complete; /* local symbols are among them */
};

struct function_symbols *function_symbols_create(void)
{
	return calloc(1, sizeof(struct function_symbols));
}

void function_symbols_destroy(struct function_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->nr_images; i++)
		image_close(symbols->images[i]);
	free(symbols->functions);
	free(symbols);
}

/* Adding. */

/*
 * Whether a symbol marks where code ("$x") or data ("$d") begins in a section, maybe with a suffix
 * after a dot (ELF for the Arm 64-bit Architecture, "Mapping symbols").
 */
static bool is_mapping_symbol(const char *name)
{
	return name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
	       (name[2] == '\0' || name[2] == '.');
}

/* Whether a symbol is a function or a label; those of assembler have no type. */
static bool is_function(const struct symtab *table, const Elf64_Sym *symbol)
{
	const unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
	       symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
	       symbol->st_name < table->names_bytes && table->names[symbol->st_name] != '\0' &&
	       !is_mapping_symbol(table->names + symbol->st_name);
}

static uint8_t rank_of(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return symbol->st_size ? 4 : 1;
	case STB_WEAK:
		return symbol->st_size ? 3 : 1;
	default:
		return symbol->st_size ? 2 : 0;
	}
}

static int add_table(struct function_symbols *symbols, const struct symtab *table)
{
	for (size_t i = 0; i < table->nr_symbols; i++) {
		const Elf64_Sym *symbol = &table->symbols[i];
		struct function *functions;

		if (!is_function(table, symbol))
			continue;
		if (symbols->nr_functions == SYMTAB_MAX_SYMBOLS)
			return -E2BIG;
		functions = array_reserve(symbols->functions, symbols->nr_functions + 1,
					  &symbols->max_functions, sizeof(*functions));
		if (!functions)
			return -ENOMEM;
		symbols->functions = functions;
		functions[symbols->nr_functions++] =
			(struct function){.start_vaddr = symbol->st_value,
					  .nr_bytes = symbol->st_size,
					  .name = table->names + symbol->st_name,
					  .rank = rank_of(symbol)};
	}
	return 0;
}

int function_symbols_add(struct function_symbols *symbols, struct image *image)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	int err = 0;

	if (symbols->nr_images == MAX_IMAGES) {
		image_close(image);
		return -E2BIG;
	}
	symbols->images[symbols->nr_images++] = image;
	symbols->is_sorted = false;
	for (size_t i = 0; !err && i < sizeof(types) / sizeof(types[0]); i++) {
		struct symtab table;

		if (symtab_read(image, types[i], &table))
			continue;
		symbols->is_complete |= types[i] == SHT_SYMTAB;
		err = add_table(symbols, &table);
	}
	return err;
}

/* Look-up. */

static int compare_functions(const void *a, const void *b)
{
	const struct function *one = a;
	const struct function *two = b;

	if (one->start_vaddr != two->start_vaddr)
		return one->start_vaddr < two->start_vaddr ? -1 : 1;
	if (one->rank != two->rank)
		return one->rank < two->rank ? -1 : 1;
	return strncmp(two->name, one->name, COMPARED_BYTES);
}

/* The index of the first function that begins above vaddr. */
static uint32_t find_above(const struct function_symbols *symbols, uint64_t vaddr)
{
	uint32_t first = 0;
	uint32_t end = symbols->nr_functions;

	while (first < end) {
		const uint32_t middle = first + (end - first) / 2;

		if (symbols->functions[middle].start_vaddr <= vaddr)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static bool covers(const struct function_symbols *symbols, const struct function *function,
		   uint64_t vaddr)
{
	const uint64_t label_bytes = symbols->is_complete
					     ? FUNCTION_SYMBOLS_MAX_LABEL_BYTES
					     : FUNCTION_SYMBOLS_MAX_STRIPPED_LABEL_BYTES;

	return vaddr - function->start_vaddr <
	       (function->nr_bytes ? function->nr_bytes : label_bytes);
}

const char *function_symbols_find(struct function_symbols *symbols, uint64_t vaddr)
{
	const char *label = NULL;
	uint32_t i;

	if (!symbols->is_sorted && symbols->nr_functions)
		qsort(symbols->functions, symbols->nr_functions, sizeof(*symbols->functions),
		      compare_functions);
	symbols->is_sorted = true;
	i = find_above(symbols, vaddr);
	for (uint32_t steps = 0; i > 0 && steps < FUNCTION_SYMBOLS_MAX_STEPS; steps++) {
		const struct function *function = &symbols->functions[--i];

		if (!covers(symbols, function, vaddr))
			continue;
		if (function->nr_bytes)
			return function->name;
		/* A label inside a function is not the function's name. */
		if (!label)
			label = function->name;
	}
	return label;
}
