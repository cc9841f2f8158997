/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Have one detail own its variables. */
static int copy_variables(struct frame_detail *detail)
{
	const struct variable *from = detail->variables;
	const uint32_t nr = detail->nr_variables;

	detail->nr_variables = 0;
	detail->variables = calloc(nr + 1ull, sizeof(*detail->variables));
	if (!detail->variables)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		struct variable *variable = &detail->variables[detail->nr_variables++];

		*variable = (struct variable){
			.name = strdup(from[i].name),
			.value = strdup(from[i].value),
			.kind = from[i].kind,
		};
		if (!variable->name || !variable->value)
			return -ENOMEM;
	}
	return 0;
}

int dump_copy_variables(struct frame_detail *details, uint32_t nr)
{
	int err = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (!err) {
			err = copy_variables(&details[i]);
			continue;
		}
		/* These are still the other's. */
		details[i].variables = NULL;
		details[i].nr_variables = 0;
	}
	return err;
}

void dump_free_variables(struct frame_detail *details, uint32_t nr)
{
	for (uint32_t i = 0; details && i < nr; i++) {
		for (uint32_t k = 0; k < details[i].nr_variables; k++) {
			free(details[i].variables[k].name);
			free(details[i].variables[k].value);
		}
		free(details[i].variables);
	}
}

void dump_append_variables(struct text *text, const struct frame_detail *detail)
{
	if (detail->lacks_variables)
		text_puts(text, "    (its variables could not be read)\n");
	for (uint32_t i = 0; i < detail->nr_variables; i++)
		text_printf(text, "    %s = %s\n", detail->variables[i].name,
			    detail->variables[i].value);
}

static const char *kind_name(enum variable_kind kind)
{
	switch (kind) {
	case VARIABLE_ARGUMENT:
		return "argument";
	case VARIABLE_FREE:
		return "free";
	case VARIABLE_LOCAL:
		break;
	}
	return "local";
}

void dump_write_variables(struct json *json, const struct frame_detail *detail)
{
	json_key(json, "locals");
	if (detail->lacks_variables) {
		json_null(json);
		return;
	}
	json_array_begin(json);
	for (uint32_t i = 0; i < detail->nr_variables; i++) {
		const struct variable *variable = &detail->variables[i];

		json_object_begin(json);
		json_member_string(json, "name", variable->name);
		json_member_string(json, "kind", kind_name(variable->kind));
		json_member_string(json, "value", variable->value);
		json_object_end(json);
	}
	json_array_end(json);
}
