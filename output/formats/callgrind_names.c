/* SPDX-License-Identifier: MIT */
#include "output/formats/callgrind_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

#define ROOT_WORDS  "[all]"
#define NO_FILE	    "???"
#define PYTHON_NAME "[python]"
#define JIT_NAME    "[jit]"
#define KERNEL_NAME "[kernel]"

void callgrind_names_done(struct callgrind_names *names)
{
	free(names->names);
	free(names->objects_told);
	free(names->files_told);
	*names = (struct callgrind_names){0};
}

static const struct profile_function *function_of(const struct callgrind_names *names,
						  uint32_t party)
{
	return party < names->root ? call_graph_function(names->graph, party) : NULL;
}

static bool is_of_module(const struct profile_function *function)
{
	return function->kind == FUNCTION_NATIVE || function->kind == FUNCTION_KERNEL;
}

/* Return the object that a party's code is in. */
static const char *object_of(const struct callgrind_names *names, uint32_t party)
{
	const struct profile_function *function = function_of(names, party);

	if (function && function->kind == FUNCTION_JIT)
		return JIT_NAME;
	if (!function || !is_of_module(function))
		return PYTHON_NAME;
	if (function->path[0])
		return function->path;
	return function->kind == FUNCTION_KERNEL ? KERNEL_NAME : NO_FILE;
}

/* Return a party's source file. A module is none. */
static const char *file_of(const struct callgrind_names *names, uint32_t party)
{
	const struct profile_function *function = function_of(names, party);

	return function && function->path[0] && !is_of_module(function) ? function->path : NO_FILE;
}

static const char *name_of(const struct callgrind_names *names, uint32_t party)
{
	const struct profile_function *function = function_of(names, party);

	return function ? function->qualname : "";
}

/* By file, then name. */
static int compare_files(const void *left, const void *right, void *context)
{
	const struct callgrind_names *names = context;
	uint32_t a = *(const uint32_t *)left;
	uint32_t b = *(const uint32_t *)right;
	int order = strcmp(file_of(names, a), file_of(names, b));

	return order ? order : strcmp(name_of(names, a), name_of(names, b));
}

static int compare_objects(const void *left, const void *right, void *context)
{
	const struct callgrind_names *names = context;

	return strcmp(object_of(names, *(const uint32_t *)left),
		      object_of(names, *(const uint32_t *)right));
}

/* Number the files from 1, and mark functions of a file that share a name. */
static void files_number(struct callgrind_names *names, const uint32_t *order, uint32_t nr)
{
	uint32_t number = 1;

	for (uint32_t i = 0; i < nr; i++) {
		struct callgrind_name *name = &names->names[order[i]];
		bool same_file = i > 0 && strcmp(file_of(names, order[i - 1]),
						 file_of(names, order[i])) == 0;

		if (i > 0 && !same_file)
			number++;
		name->file = number;
		if (!same_file || !function_of(names, order[i]) ||
		    compare_files(&order[i - 1], &order[i], names) != 0)
			continue;
		name->is_ambiguous = true;
		names->names[order[i - 1]].is_ambiguous = true;
	}
}

static void objects_number(struct callgrind_names *names, const uint32_t *order, uint32_t nr)
{
	uint32_t number = 1;

	for (uint32_t i = 0; i < nr; i++) {
		if (i > 0 && compare_objects(&order[i - 1], &order[i], names) != 0)
			number++;
		names->names[order[i]].object = number;
	}
	names->has_objects = number > 1;
}

int callgrind_names_init(struct callgrind_names *names, const struct call_graph *graph)
{
	uint32_t nr = graph->nr_parties + 2;
	cleanup_free uint32_t *order = calloc(nr, sizeof(*order));

	*names = (struct callgrind_names){
		.graph = graph,
		.root = graph->nr_parties,
		.idle = graph->nr_parties + 1,
		.names = calloc(nr, sizeof(*names->names)),
		.objects_told = calloc((size_t)nr + 1, sizeof(bool)),
		.files_told = calloc((size_t)nr + 1, sizeof(bool)),
	};
	if (!order || !names->names || !names->objects_told || !names->files_told)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	qsort_r(order, nr, sizeof(*order), compare_files, names);
	files_number(names, order, nr);
	qsort_r(order, nr, sizeof(*order), compare_objects, names);
	objects_number(names, order, nr);
	return 0;
}

/* Append "fl=(2) path", or "fl=(2)" if the path was written before. */
static void put_string(struct text *text, const char *key, uint32_t number, const char *string,
		       bool *is_told)
{
	text_printf(text, "%s=(%" PRIu32 ")", key, number);
	if (!*is_told) {
		text_puts(text, " ");
		label_append_escaped(text, string, strlen(string), LABEL_DISPLAY);
	}
	*is_told = true;
	text_puts(text, "\n");
}

/* Append the name, with the line or path if it is ambiguous. */
static void put_function_name(struct text *text, const struct profile_function *function,
			      bool is_ambiguous)
{
	label_append_function(text, function->qualname, "", 0, LABEL_DISPLAY);
	if (!is_ambiguous)
		return;
	if (function->first_line > 0) {
		text_printf(text, ":%" PRId32, function->first_line);
	} else if (function->path[0]) {
		text_puts(text, " (");
		label_append_location(text, function->path, "", 0, LABEL_DISPLAY);
		text_puts(text, ")");
	}
}

static void put_name(const struct callgrind_names *names, struct text *text, uint32_t party)
{
	const struct profile_function *function = function_of(names, party);

	if (party == names->root)
		text_puts(text, ROOT_WORDS);
	else if (party == names->idle)
		text_puts(text, LABEL_NO_PYTHON_FRAMES);
	else if (function)
		put_function_name(text, function, names->names[party].is_ambiguous);
	else
		call_graph_label(names->graph, party, text, LABEL_DISPLAY);
}

/* Append the lines that name a party, with these keys. */
static void put_party(struct callgrind_names *names, struct text *text, uint32_t party,
		      const char *const keys[3])
{
	struct callgrind_name *name = &names->names[party];

	if (names->has_objects)
		put_string(text, keys[0], name->object, object_of(names, party),
			   &names->objects_told[name->object]);
	put_string(text, keys[1], name->file, file_of(names, party),
		   &names->files_told[name->file]);
	text_printf(text, "%s=(%" PRIu32 ")", keys[2], party + 1);
	if (!name->is_told) {
		text_puts(text, " ");
		put_name(names, text, party);
	}
	name->is_told = true;
	text_puts(text, "\n");
}

void callgrind_names_begin(struct callgrind_names *names, struct text *text, uint32_t party)
{
	static const char *const keys[] = {"ob", "fl", "fn"};

	text_puts(text, "\n");
	put_party(names, text, party, keys);
}

void callgrind_names_call(struct callgrind_names *names, struct text *text, uint32_t party)
{
	static const char *const keys[] = {"cob", "cfi", "cfn"};

	put_party(names, text, party, keys);
}

int32_t callgrind_names_line(const struct callgrind_names *names, uint32_t party)
{
	const struct profile_function *function = function_of(names, party);

	return function && function->first_line > 0 ? function->first_line : 0;
}
