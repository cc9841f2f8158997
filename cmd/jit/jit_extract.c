/* SPDX-License-Identifier: MIT */
#include "cmd/jit/jit_extract.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/output_file.h"
#include "cmd/print.h"
#include "output/dump/jit_object.h"
#include "procmem/cleanup.h"

/* Returns the code that is at addr now, or else the last one that was; NULL if there is none. */
static const struct jit_code *find_code(const struct jit_map *map, remote_addr addr)
{
	const struct jit_code *found = jit_map_find(map, addr, JIT_MAP_NOW_NS);
	uint32_t nr_codes;
	const struct jit_code *codes = jit_map_codes(map, &nr_codes);

	for (uint32_t i = 0; !found && i < nr_codes; i++) {
		const struct jit_code *code = &codes[nr_codes - 1 - i];

		if (addr - code->start_addr < code->nr_bytes)
			found = code;
	}
	return found;
}

static int compare_lines(const void *a, const void *b)
{
	const struct jit_object_line *one = a;
	const struct jit_object_line *two = b;

	return one->addr < two->addr ? -1 : one->addr > two->addr;
}

/* Sort the lines by address. *ret_lines is allocated; the caller frees it. Returns 0 or -ENOMEM. */
static int sort_lines(const struct jit_body *body, struct jit_object_line **ret_lines)
{
	struct jit_object_line *lines = calloc(body->nr_lines ? body->nr_lines : 1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < body->nr_lines; i++)
		lines[i] = (struct jit_object_line){.addr = body->lines[i].addr,
						    .line = body->lines[i].line,
						    .discriminator = body->lines[i].discriminator,
						    .path = body->lines[i].path};
	qsort(lines, body->nr_lines, sizeof(*lines), compare_lines);
	*ret_lines = lines;
	return 0;
}

static int write_object(const struct jit_code *code, const struct jit_body *body, FILE *stream)
{
	cleanup_free struct jit_object_line *lines = NULL;
	int err = sort_lines(body, &lines);
	const struct jit_object object = {
		.elf_machine = (uint16_t)body->elf_machine,
		.is_big_endian = body->is_big_endian,
		.name = code->name,
		.addr = code->start_addr,
		.code = body->code,
		.code_bytes = code->nr_bytes,
		.lines = lines,
		.nr_lines = body->nr_lines,
		.unwind = body->unwind,
		.unwind_bytes = body->unwind_bytes,
		.unwind_addr = body->unwind_vaddr,
	};

	return err ? err : jit_object_write(&object, fileno(stream));
}

static enum exit_status write_file(const struct jit_code *code, const struct jit_body *body,
				   const char *path, struct message *reterr)
{
	struct output_file output;
	int err = output_file_open(path, &output, reterr);

	if (!err)
		err = output_file_begin(&output, reterr);
	if (!err)
		err = output_file_finish(&output, write_object(code, body, output.stream), reterr);
	return err ? EXIT_ERROR : EXIT_OK;
}

static const char *why_no_body(const struct jit_target *target, const struct jit_code *code,
			       int err)
{
	if (err != -ENOENT)
		return strerror(-err);
	if (code->source == JIT_SOURCE_PERF_MAP && !jit_target_is_process(target))
		return "a perf map contains only names: give the process id to read the code "
		       "from memory";
	return "its source does not contain it, or has changed";
}

enum exit_status jit_extract(const struct jit_target *target, const struct jit_options *options,
			     struct message *reterr)
{
	const struct jit_code *code =
		find_code(jit_sources_map(target->sources), options->dump_addr);
	struct jit_body body;
	enum exit_status status;
	int err;

	if (!code) {
		message_set(reterr, "no known function at 0x%" PRIx64 ": pysample jit lists all",
			    options->dump_addr);
		return EXIT_NO_SAMPLE;
	}
	err = jit_sources_read_body(target->sources, code, &body);
	if (err) {
		message_set(reterr, "the code of %s cannot be read: %s", code->name,
			    why_no_body(target, code, err));
		return err == -ENOENT ? EXIT_NO_SAMPLE : EXIT_ERROR;
	}
	status = write_file(code, &body, options->output_path, reterr);
	jit_body_done(&body);
	return status;
}
