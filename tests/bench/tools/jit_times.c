/* SPDX-License-Identifier: MIT */
/*
 * Measures what it costs to keep up with the code that a running process makes. jit_times PID
 * ROUNDS reads the process's lists for debuggers ROUNDS times and prints a line for each round,
 * "NANOSECONDS ENTRIES". After the first round the lists have nothing new unless the process has
 * made more code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "procmem/live.h"
#include "procmem/maps.h"
#include "procmem/process.h"
#include "symbols/elf/live_images.h"
#include "symbols/elf/module_symbols.h"
#include "symbols/jit/gdb_jit.h"

static void die(const char *what)
{
	(void)fprintf(stderr, "jit_times: %s\n", what);
	exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void measure(struct gdb_jit *gdb_jit, struct jit_map *map, unsigned long nr_rounds)
{
	uint32_t nr_codes;

	for (unsigned long i = 0; i < nr_rounds; i++) {
		const uint64_t start_ns = now_ns();

		if (gdb_jit_read(gdb_jit, map, start_ns, start_ns))
			die("the list cannot be read");
		(void)jit_map_codes(map, &nr_codes);
		printf("%llu %u\n", (unsigned long long)(now_ns() - start_ns), nr_codes);
	}
}

int main(int argc, char **argv)
{
	struct message error = {.text = ""};
	struct process process = PROCESS_CLOSED;
	struct live_memory live;
	struct live_images images;
	struct maps maps = {.mappings = NULL};
	static const char *const names[] = {GDB_JIT_SYMBOL};
	struct module_symbols *symbols;
	struct gdb_jit *gdb_jit;
	struct jit_map *map = jit_map_create();
	const remote_addr *places;
	uint32_t nr_places;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: jit_times PID ROUNDS\n");
		return 2;
	}
	if (process_open((pid_t)strtol(argv[1], NULL, 10), &process, &error))
		die(error.text);
	live_memory_init(&live, &process);
	live_images_init(&images, &process);
	gdb_jit = gdb_jit_create(&live.memory);
	symbols = module_symbols_create(&live.memory, names, 1);
	if (!map || !gdb_jit || !symbols || maps_read(&process, &maps) ||
	    module_symbols_find(symbols, &maps, &images.source))
		die("the modules of the process cannot be read");
	places = module_symbols_places(symbols, 0, &nr_places);
	for (uint32_t i = 0; i < nr_places; i++)
		(void)gdb_jit_add_list(gdb_jit, places[i]);
	if (!nr_places)
		die("the process has no list for debuggers");
	measure(gdb_jit, map, strtoul(argv[2], NULL, 10));
	gdb_jit_destroy(gdb_jit);
	module_symbols_destroy(symbols);
	jit_map_destroy(map);
	maps_done(&maps);
	process_close(&process);
	return 0;
}
