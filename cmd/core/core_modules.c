/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "procmem/cleanup.h"

/* Describe a module. text receives its build ID in hexadecimal. */
static struct post_mortem_module describe(const struct core_module *module,
					  char text[2 * BUILD_ID_MAX_BYTES + 1])
{
	const struct core_file *file = module->file;

	text[0] = '\0';
	for (size_t i = 0; i < file->build_id_bytes; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", file->build_id[i]);
	return (struct post_mortem_module){
		.start = module->start,
		.end = module->end,
		.path = file->path,
		.build_id = text[0] ? text : NULL,
		.file = file->image ? file->found_path : NULL,
		.state = core_file_state_text(file->state),
	};
}

int core_modules_list(struct core_files *files, struct core_modules *ret_modules)
{
	cleanup_free struct core_module *found = NULL;
	struct core_modules list = {0};
	size_t nr_found;
	int err = core_files_modules(files, &found, &nr_found);

	if (err)
		return err;
	list.modules = calloc(nr_found + 1, sizeof(*list.modules));
	list.build_ids = calloc(nr_found + 1, sizeof(*list.build_ids));
	if (!list.modules || !list.build_ids) {
		core_modules_done(&list);
		return -ENOMEM;
	}
	for (; list.nr_modules < nr_found; list.nr_modules++)
		list.modules[list.nr_modules] =
			describe(&found[list.nr_modules], list.build_ids[list.nr_modules]);
	*ret_modules = list;
	return 0;
}

void core_modules_done(struct core_modules *modules)
{
	free(modules->modules);
	free(modules->build_ids);
	*modules = (struct core_modules){.nr_modules = 0};
}
