/* SPDX-License-Identifier: MIT */
#include "output/run/run_json.h"

static void append_pair(void *context, const char *name, const char *value)
{
	json_member_string(context, name, value);
}

void run_append_json(struct json *json, const struct run *run)
{
	json_object_begin(json);
	run_for_each_pair(run, append_pair, json);
	json_object_end(json);
}
