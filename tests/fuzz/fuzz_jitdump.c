/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a jitdump that grows by something else than the tail that was announced. What is
 * read in two steps must keep the promises of the map, and each code's body must be readable or
 * refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/jit/jitdump_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static void check_code(const struct jitdump *dump, const struct jit_map *map,
		       const struct jit_code *code)
{
	const struct jit_code *found = jit_map_find(map, code->start_addr, code->from_ns);
	struct jit_body body;

	require(code->nr_bytes > 0 && code->start_addr + code->nr_bytes > code->start_addr);
	if (code->from_ns < code->to_ns && code->from_ns < JIT_MAP_NOW_NS)
		require(found == code);
	if (jitdump_read_body(dump, code, &body))
		return;
	for (uint32_t i = 0; i < body.nr_lines; i++)
		require(body.lines[i].addr - code->start_addr <= code->nr_bytes &&
			strlen(body.lines[i].path) <
				body.nr_lines * (size_t)JITDUMP_MAX_LINE_BYTES);
	jit_body_done(&body);
}

static void check_map(const struct jitdump *dump, const struct jit_map *map)
{
	uint32_t nr_codes, nr_indexes;
	uint32_t *indexes;
	const struct jit_code *codes = jit_map_codes(map, &nr_codes);

	require(!jit_map_sort(map, &indexes, &nr_indexes) && nr_indexes <= nr_codes);
	for (uint32_t i = 0; i < nr_indexes; i++)
		check_code(dump, map, &codes[indexes[i]]);
	free(indexes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int fd = memfd_create("jitdump", MFD_CLOEXEC);
	struct jit_map *map = jit_map_create();
	const size_t first = size * 2 / 3;
	struct jitdump *dump;

	require(fd >= 0 && map && !jitdump_open(fd, 0, &dump));
	require(write(fd, data, first) == (ssize_t)first);
	jitdump_set_tail(dump, first, data + first / 2, size - first);
	(void)jitdump_read(dump, map, false);
	require(write(fd, data + first, size - first) == (ssize_t)(size - first));
	if (!jitdump_read(dump, map, true))
		check_map(dump, map);
	jitdump_close(dump);
	jit_map_destroy(map);
	return 0;
}
