/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/core_report.h"

#include <errno.h>

#include "output/dump.h"
#include "procmem/core.h"
#include "sampler/python/runtime.h"
#include "sampler/sampler.h"

static int open_none(struct image_source *source, const struct mapping *mapping,
		     struct image **ret_image)
{
	(void)source;
	(void)mapping;
	(void)ret_image;
	return -ENOENT;
}

static int write_dump(const struct dump *dump, FILE *out)
{
	const struct run_info info = {.command_line = "", .python = ""};
	int err = dump_write_text(dump, &info, out);

	return err ? err : dump_write_json(dump, &info, out);
}

static int report_threads(struct remote_memory *memory, const struct runtime *runtime, FILE *out)
{
	const struct sampler_looks looks = {.details = true};
	struct sampler *sampler = NULL;
	struct dump *dump = dump_create();
	int err = -ENOMEM;

	if (dump)
		err = sampler_create(NULL, memory, &runtime->build, runtime->addr, &sampler);
	if (!err) {
		sampler_set_looks(sampler, &looks);
		err = sampler_dump(sampler, dump_sink(dump));
	}
	if (!err)
		err = write_dump(dump, out);
	dump_destroy(dump);
	sampler_destroy(sampler);
	return err;
}

int core_report(int fd, FILE *out)
{
	static const struct image_source_ops ops = {.open = open_none};
	struct image_source images = {.ops = &ops};
	struct message message = {0};
	struct runtime runtime;
	struct core *core = NULL;
	int err = core_open(fd, &core, &message);

	if (err)
		return err;
	const struct program program = {
		.name = "the core",
		.exe_path = "",
		.maps = &core->maps,
		.memory = core_memory(core),
		.images = &images,
	};
	err = runtime_find(&program, NULL, &runtime, &message);
	if (!err)
		err = report_threads(program.memory, &runtime, out);
	core_close(core);
	return err;
}
