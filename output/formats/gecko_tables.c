/* SPDX-License-Identifier: MIT */
/* gecko_shared(): functions, frames, stacks, and the tables they refer to. */
#include "output/formats/gecko_markers.h"
#include "output/formats/gecko_writer.h"

/* Resource type of a library. */
enum { RESOURCE_LIBRARY = 1 };

static void table_write(struct gecko_writer *writer, const char *name,
			const struct gecko_column *columns, uint32_t nr_rows)
{
	json_key(&writer->json, name);
	json_object_begin(&writer->json);
	gecko_columns(writer, columns, nr_rows);
	json_object_end(&writer->json);
}

static void value_null(struct gecko_writer *writer, uint32_t row)
{
	(void)row;
	json_null(&writer->json);
}

static void value_zero(struct gecko_writer *writer, uint32_t row)
{
	(void)row;
	json_u64(&writer->json, 0);
}

static void value_none(struct gecko_writer *writer, uint32_t row)
{
	(void)row;
	json_i64(&writer->json, -1);
}

/*
 * The tables of functions, frames and stacks have the rows of the profile, and one more for
 * samples without frames. A thread's root has rows as well, with the function of that last one,
 * but no sample or prefix refers to them.
 */
static bool is_named(const struct gecko_writer *writer, uint32_t function)
{
	return function < writer->nr_functions;
}

/* Return whether a function's path is a source file, not the module of its machine code. */
static bool is_python(const struct gecko_writer *writer, uint32_t function)
{
	return is_named(writer, function) && writer->functions[function].kind == FUNCTION_PYTHON;
}

static bool is_native(const struct gecko_writer *writer, uint32_t function)
{
	enum function_kind kind;

	if (!is_named(writer, function))
		return false;
	kind = writer->functions[function].kind;
	return kind == FUNCTION_NATIVE || kind == FUNCTION_JIT || kind == FUNCTION_KERNEL;
}

static void func_name(struct gecko_writer *writer, uint32_t row)
{
	const char *name = LABEL_NO_PYTHON_FRAMES;

	if (is_named(writer, row))
		name = writer->functions[row].qualname[0] ? writer->functions[row].qualname : "?";
	gecko_string_number(writer, &writer->strings, name);
}

/* The page treats JavaScript as interpreted code; with this its views of one kind or both work. */
static void func_is_js(struct gecko_writer *writer, uint32_t row)
{
	json_bool(&writer->json, is_python(writer, row));
}

static void func_source(struct gecko_writer *writer, uint32_t row)
{
	if (is_python(writer, row) && writer->functions[row].path[0])
		gecko_string_number(writer, &writer->sources, writer->functions[row].path);
	else
		json_null(&writer->json);
}

static void func_resource(struct gecko_writer *writer, uint32_t row)
{
	if (is_native(writer, row) && writer->functions[row].path[0])
		gecko_string_number(writer, &writer->libraries, writer->functions[row].path);
	else
		json_i64(&writer->json, -1);
}

static void line_write(struct gecko_writer *writer, int32_t line)
{
	if (line)
		json_i64(&writer->json, line);
	else
		json_null(&writer->json);
}

static void func_line(struct gecko_writer *writer, uint32_t row)
{
	line_write(writer, is_named(writer, row) ? writer->functions[row].first_line : 0);
}

/* Return the function of a frame; without one, that of samples without frames. */
static uint32_t frame_function(const struct gecko_writer *writer, uint32_t frame)
{
	if (frame == writer->nr_frames || writer->frames[frame].function == PROFILE_NONE)
		return writer->nr_functions;
	return writer->frames[frame].function;
}

static void frame_category(struct gecko_writer *writer, uint32_t row)
{
	uint32_t function = frame_function(writer, row);

	if (is_named(writer, function))
		json_u64(&writer->json, (uint64_t)origin_of(&writer->functions[function]));
	else
		json_u64(&writer->json, GECKO_IDLE);
}

static void frame_func(struct gecko_writer *writer, uint32_t row)
{
	json_u64(&writer->json, frame_function(writer, row));
}

static void frame_line(struct gecko_writer *writer, uint32_t row)
{
	line_write(writer, row < writer->nr_frames ? writer->frames[row].line : 0);
}

static void stack_frame(struct gecko_writer *writer, uint32_t row)
{
	json_u64(&writer->json,
		 row < writer->nr_nodes ? writer->nodes[row].frame : writer->nr_frames);
}

static void stack_prefix(struct gecko_writer *writer, uint32_t row)
{
	uint32_t parent = row < writer->nr_nodes ? writer->nodes[row].parent : PROFILE_NONE;

	parent = thread_samples_node(writer->profile, parent);
	if (parent == PROFILE_NONE)
		json_null(&writer->json);
	else
		json_u64(&writer->json, parent);
}

static void source_name(struct gecko_writer *writer, uint32_t row)
{
	gecko_string_number(writer, &writer->strings, writer->sources.strings[row]);
}

static void library_name(struct gecko_writer *writer, uint32_t row)
{
	gecko_string_number(writer, &writer->strings, writer->libraries.strings[row]);
}

static void library_type(struct gecko_writer *writer, uint32_t row)
{
	(void)row;
	json_u64(&writer->json, RESOURCE_LIBRARY);
}

static void string_value(struct gecko_writer *writer, uint32_t row)
{
	json_string(&writer->json, writer->strings.strings[row]);
}

static const struct gecko_column func_columns[] = {
	{"name", func_name},	       {"isJS", func_is_js},
	{"relevantForJS", func_is_js}, {"resource", func_resource},
	{"source", func_source},       {"lineNumber", func_line},
	{"columnNumber", value_null},  {0},
};
static const struct gecko_column frame_columns[] = {
	{"address", value_none},       {"inlineDepth", value_zero},
	{"category", frame_category},  {"subcategory", value_zero},
	{"func", frame_func},	       {"nativeSymbol", value_null},
	{"innerWindowID", value_zero}, {"line", frame_line},
	{"column", value_null},	       {0},
};
static const struct gecko_column stack_columns[] = {
	{"frame", stack_frame},
	{"prefix", stack_prefix},
	{0},
};
static const struct gecko_column source_columns[] = {
	{"uuid", value_null},
	{"filename", source_name},
	{0},
};
static const struct gecko_column library_columns[] = {
	{"lib", value_null},
	{"name", library_name},
	{"host", value_null},
	{"type", library_type},
	{0},
};
static const struct gecko_column symbol_columns[] = {
	{"libIndex", value_null},
	{"address", value_null},
	{"name", value_null},
	{"functionSize", value_null},
	{0},
};

/* Strings come last, because the other tables add to them. */
void gecko_shared(struct gecko_writer *writer)
{
	static const struct gecko_column strings = {"stringArray", string_value};

	json_key(&writer->json, "shared");
	json_object_begin(&writer->json);
	table_write(writer, "funcTable", func_columns, writer->nr_functions + 1);
	table_write(writer, "frameTable", frame_columns, writer->nr_frames + 1);
	table_write(writer, "stackTable", stack_columns, writer->nr_nodes + 1);
	table_write(writer, "sources", source_columns, writer->sources.nr);
	table_write(writer, "resourceTable", library_columns, writer->libraries.nr);
	table_write(writer, "nativeSymbols", symbol_columns, 0);
	for (int i = 0; i < NR_GECKO_MARKERS && !writer->error; i++) {
		uint32_t number;

		writer->error = string_table_get(
			&writer->strings, gecko_marker_name((enum gecko_marker_kind)i), &number);
	}
	gecko_column(writer, &strings, writer->strings.nr);
	json_object_end(&writer->json);
}
