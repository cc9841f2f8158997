/* SPDX-License-Identifier: MIT */
#include "cmd/dump/tasks.h"

#include <errno.h>

int tasks_dump(struct sampler *sampler, const struct maps *maps, struct sample_sink *sink,
	       struct dump *dump)
{
	bool complete;
	int err = sampler_dump_tasks(sampler, maps, sink, &complete);

	if (!err)
		dump_set_tasks(dump, complete ? TASKS_COMPLETE : TASKS_PARTIAL);
	return err == -ENOTSUP ? 0 : err;
}
