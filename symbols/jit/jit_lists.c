/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jit_lists.h"

#include <errno.h>
#include <stdlib.h>

#include "symbols/elf/module_symbols.h"
#include "symbols/elf/stdio_file.h"
#include "symbols/jit/gdb_jit.h"
#include "symbols/jit/libunwind_jit.h"

/* The symbols searched for: of lists of code, then of others. */
enum { GDB_LIST, LIBUNWIND_LIST, LIBUNWIND_FUNCTION, NR_LISTS, STDIO_LIST = NR_LISTS, NR_SYMBOLS };
static const char *const symbol_names[NR_SYMBOLS] = {
	[GDB_LIST] = GDB_JIT_SYMBOL,
	[LIBUNWIND_LIST] = LIBUNWIND_JIT_LIST_SYMBOL,
	[LIBUNWIND_FUNCTION] = LIBUNWIND_JIT_FUNCTION_SYMBOL,
	[STDIO_LIST] = STDIO_FILE_LIST_SYMBOL,
};

struct jit_lists {
	struct module_symbols *symbols;
	struct gdb_jit *gdb_jit;
	struct libunwind_jit *libunwind_jit;
	uint32_t nr_added[NR_LISTS]; /* for each symbol, the places already added */
};

struct jit_lists *jit_lists_create(struct remote_memory *memory)
{
	struct jit_lists *lists = calloc(1, sizeof(*lists));

	if (!lists)
		return NULL;
	lists->symbols = module_symbols_create(memory, symbol_names, NR_SYMBOLS);
	lists->gdb_jit = gdb_jit_create(memory);
	lists->libunwind_jit = libunwind_jit_create(memory);
	if (lists->symbols && lists->gdb_jit && lists->libunwind_jit)
		return lists;
	jit_lists_destroy(lists);
	return NULL;
}

void jit_lists_destroy(struct jit_lists *lists)
{
	if (!lists)
		return;
	module_symbols_destroy(lists->symbols);
	gdb_jit_destroy(lists->gdb_jit);
	libunwind_jit_destroy(lists->libunwind_jit);
	free(lists);
}

/* Add the list that a symbol leads to. Errors are ignored: no room, or not a list. */
static void add_list(struct jit_lists *lists, uint32_t symbol, remote_addr addr)
{
	if (symbol == GDB_LIST)
		(void)gdb_jit_add_list(lists->gdb_jit, addr);
	else if (symbol == LIBUNWIND_LIST)
		(void)libunwind_jit_add_list(lists->libunwind_jit, addr);
	else
		(void)libunwind_jit_add_function(lists->libunwind_jit, addr);
}

int jit_lists_find(struct jit_lists *lists, const struct maps *maps, struct image_source *source)
{
	const remote_addr *places;
	uint32_t nr_places;
	int err = module_symbols_find(lists->symbols, maps, source);

	for (uint32_t symbol = 0; !err && symbol < NR_LISTS; symbol++) {
		places = module_symbols_places(lists->symbols, symbol, &nr_places);
		for (; lists->nr_added[symbol] < nr_places; lists->nr_added[symbol]++)
			add_list(lists, symbol, places[lists->nr_added[symbol]]);
	}
	return err;
}

const remote_addr *jit_lists_stdio(const struct jit_lists *lists, uint32_t *ret_nr_lists)
{
	return module_symbols_places(lists->symbols, STDIO_LIST, ret_nr_lists);
}

int jit_lists_read(struct jit_lists *lists, struct jit_map *map, uint64_t first_ns, uint64_t now_ns)
{
	int err = gdb_jit_read(lists->gdb_jit, map, first_ns, now_ns);

	return err ? err : libunwind_jit_read(lists->libunwind_jit, map, first_ns, now_ns);
}
