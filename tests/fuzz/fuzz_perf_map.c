/* SPDX-License-Identifier: MIT */
/* Any text as a perf map. Reading it in two steps must give the same as reading it in one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/jit/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

/* Read the text up to first, then all of it. */
static struct jit_map *read_text(const uint8_t *data, size_t size, size_t first)
{
	const int fd = memfd_create("perf.map", MFD_CLOEXEC);
	struct jit_map *map = jit_map_create();
	struct perf_map *perf_map;

	require(fd >= 0 && map && !perf_map_open(fd, 0, 0, &perf_map));
	require(write(fd, data, first) == (ssize_t)first);
	require(!perf_map_read(perf_map, map, false));
	require(write(fd, data + first, size - first) == (ssize_t)(size - first));
	require(!perf_map_read(perf_map, map, true));
	perf_map_close(perf_map);
	return map;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_map *one = read_text(data, size, 0);
	struct jit_map *two = read_text(data, size, size / 2);
	uint32_t nr_one, nr_two;
	const struct jit_code *ones = jit_map_codes(one, &nr_one);
	const struct jit_code *twos = jit_map_codes(two, &nr_two);

	require(nr_one == nr_two);
	for (uint32_t i = 0; i < nr_one; i++)
		require(ones[i].start_addr == twos[i].start_addr &&
			ones[i].nr_bytes == twos[i].nr_bytes && ones[i].to_ns == twos[i].to_ns &&
			strcmp(ones[i].name, twos[i].name) == 0);
	jit_map_destroy(one);
	jit_map_destroy(two);
	return 0;
}
