/* SPDX-License-Identifier: MIT */
#include "cmd/report/report_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/option_values.h"
#include "cmd/print.h"

#define SUMMARY_MAX_ROWS 30

/* Values. */

/* Select only samples in a state, or with a '!' only those not in it. */
static bool apply_state(void *options, const char *value)
{
	static const struct {
		const char *name;
		uint32_t flag;
		bool is_clear; /* the state is that flag is not set */
	} states[] = {
		{"gil", SAMPLE_HOLDS_GIL, false},
		{"waits", SAMPLE_WAITS_FOR_GIL, false},
		{"cpu", SAMPLE_ON_CPU, false},
		{"gc", SAMPLE_GC, false},
		{"exception", SAMPLE_EXCEPTION, false},
		{"jit", SAMPLE_IN_JIT, false},
		{"approximate", SAMPLE_APPROXIMATE, false},
		{"busy", SAMPLE_IDLE, true},
		{"idle", SAMPLE_IDLE, false},
	};
	struct report_options *report = options;
	struct replay_filter *filter = &report->filter;
	const bool wanted = value[0] != '!';
	const char *name = value + !wanted;

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		if (strcmp(name, states[i].name) != 0)
			continue;
		if (wanted != states[i].is_clear)
			filter->flags_set |= states[i].flag;
		else
			filter->flags_clear |= states[i].flag;
		return true;
	}
	print_error("unknown state '%s': use gil, waits, cpu, gc, exception, jit, approximate, "
		    "busy or idle, with a leading ! to negate it",
		    value);
	return false;
}

/* Add an alternative to a pattern. Returns false after printing an error. */
static bool add_pattern(struct text *pattern, const char *value)
{
	char reason[256];
	regex_t compiled;
	int err = regcomp(&compiled, value, REG_EXTENDED | REG_NOSUB);

	if (err) {
		(void)regerror(err, &compiled, reason, sizeof(reason));
		print_error("'%s' is not an extended regular expression: %s", value, reason);
		return false;
	}
	regfree(&compiled);
	text_printf(pattern, "%s(%s)", pattern->length ? "|" : "", value);
	return true;
}

static bool parse_moment_option(const char *value, int64_t *ret_moment_ns)
{
	if (parse_moment(value, ret_moment_ns))
		return true;
	print_error("'%s' is not a time: use 1.5s, 500ms, 5m, or -2s for two seconds before the "
		    "end",
		    value);
	return false;
}

static bool apply_from(void *options, const char *value)
{
	return parse_moment_option(value, &((struct report_options *)options)->filter.from_ns);
}

static bool apply_to(void *options, const char *value)
{
	struct report_options *report = options;

	report->has_to = true;
	return parse_moment_option(value, &report->filter.to_ns);
}

static bool apply_process(void *options, const char *value)
{
	return name_choice_add(&((struct report_options *)options)->processes, "--process", value);
}

static bool apply_include(void *options, const char *value)
{
	return add_pattern(&((struct report_options *)options)->included, value);
}

static bool apply_exclude(void *options, const char *value)
{
	return add_pattern(&((struct report_options *)options)->excluded, value);
}

static bool apply_rows(void *options, const char *value)
{
	struct report_options *report = options;

	if (parse_count(value, UINT32_MAX - 1, &report->layout.max_rows))
		return true;
	print_error("'%s' is not a number of rows", value);
	return false;
}

static bool apply_diff(void *options, const char *value)
{
	struct report_options *report = options;

	report->bases[report->nr_bases++] = value;
	return true;
}

static bool apply_fail_above(void *options, const char *value)
{
	struct report_options *report = options;

	report->has_fail_above = true;
	if (parse_percent(value, &report->fail_above_percent))
		return true;
	print_error("'%s' is not a percentage: use 5, 2.5 or 5%%", value);
	return false;
}

static const struct option_spec info_rows[] = {
	{"info", NULL,
	 "print only the metadata of the recording, one name and value\n"
	 "per line",
	 .action = OPTION_SETS, .at = offsetof(struct report_options, info)},
	{"json", NULL, "with --info: one JSON object for each FILE", .action = OPTION_SETS,
	 .at = offsetof(struct report_options, json)},
};

static const struct option_spec filter_rows[] = {
	{"from", "TIME",
	 "from TIME on, since the start: 1.5s, 90s, 5m; -2s is two\n"
	 "seconds before the last sample",
	 .apply = apply_from},
	{"to", "TIME", "until TIME, counted in the same way", .apply = apply_to},
	{"state", "NAME",
	 "only samples of threads that held the GIL (gil), waited for it\n"
	 "(waits; 3.15), used the CPU (cpu), collected garbage (gc),\n"
	 "handled an exception (exception), ran code of CPython's JIT\n"
	 "(jit), were read while running (approximate), waited (idle), or\n"
	 "did not (busy). !NAME negates the state. If given several\n"
	 "times, all must hold",
	 .apply = apply_state, .words = "gil waits cpu gc exception jit approximate busy idle"},
	{"include", "RE",
	 "only stacks with a frame 'name (path:line)' matching this\n"
	 "extended regular expression",
	 .apply = apply_include},
	{"exclude", "RE", "only stacks without such a frame", .apply = apply_exclude},
	{"process", "NAME|PID",
	 "only processes of this name or id; NAME is executable and\n"
	 "script or module, and a pattern such as 'gunicorn *' matches\n"
	 "names. May be given several times",
	 .apply = apply_process},
};

static const struct option_spec table_rows[] = {
	{"rows", "N", "number of rows in a summary; 0: all (default: 30)", .apply = apply_rows},
	{"tree", NULL, "summarise as a tree, with callers above callees", .action = OPTION_SETS,
	 .at = offsetof(struct report_options, layout.tree)},
	{"explain", "FUNCTION",
	 "summarise one function: its own and total time, callers,\n"
	 "callees, and hot lines with their source; implies --lines",
	 .action = OPTION_STORES, .at = offsetof(struct report_options, layout.explain)},
};

static const struct option_spec diff_rows[] = {
	{"diff", "BASE", "show changes since recording BASE; several are merged",
	 .apply = apply_diff},
	{"fail-above", "PCT",
	 "with --diff, exit with 10 if the share of a function, its own\n"
	 "or with its callees, grew by more than PCT percentage\n"
	 "points",
	 .apply = apply_fail_above},
};

const struct option_group report_options_groups[REPORT_OPTIONS_NR_GROUPS] = {
	{"Output:", output_options, 2, offsetof(struct report_options, outputs)},
	{NULL, open_option, 1, offsetof(struct report_options, outputs)},
	{NULL, info_rows, 2, .at = 0},
	{"Filters:", filter_rows, sizeof(filter_rows) / sizeof(*filter_rows), .at = 0},
	{NULL, thread_option, 1, offsetof(struct report_options, threads)},
	{NULL, recorded_mode_options, 2, offsetof(struct report_options, mode)},
	{"Layout:", row_options, 3, offsetof(struct report_options, profile)},
	{NULL, processes_option, 1, offsetof(struct report_options, profile)},
	{NULL, plumbing_option, 1, offsetof(struct report_options, profile)},
	{NULL, layout_options, 2, offsetof(struct report_options, layout)},
	{NULL, table_rows, sizeof(table_rows) / sizeof(*table_rows), .at = 0},
	{"Comparison:", diff_rows, 2, .at = 0},
	{"Messages:", quiet_option, 1, offsetof(struct report_options, quiet)},
};

/* Checking. */

/*
 * Compile a pattern, if there is one, and make the filter refer to it. Returns false after
 * printing an error.
 */
static bool compile(const struct text *pattern, regex_t *compiled, const regex_t **ret_compiled)
{
	if (!pattern->length && !pattern->error)
		return true;
	if (pattern->error ||
	    regcomp(compiled, text_string(pattern), REG_EXTENDED | REG_NOSUB) != 0) {
		print_error("out of memory for the regular expressions");
		return false;
	}
	*ret_compiled = compiled;
	return true;
}

/* Check that the options go together. Returns false after printing an error. */
static bool check(const struct report_options *options)
{
	const struct replay_filter *filter = &options->filter;
	const bool same_end = (filter->from_ns < 0) == (filter->to_ns < 0);
	const char *error = NULL;

	if (!options->nr_paths)
		error = "no recording given: pysample report FILE, written by 'pysample attach "
			"-o FILE'";
	else if (options->json && !options->info)
		error = "--json requires --info: use -f jsonl for samples";
	else if (options->info &&
		 (options->outputs.nr || options->outputs.next || options->outputs.opens))
		error = "--info prints to stdout: leave out -o, -f and --open";
	else if (options->has_fail_above && !options->nr_bases)
		error = "--fail-above requires --diff BASE";
	else if (options->layout.explain && options->nr_bases)
		error = "--explain is of one profile: leave out --diff, or --explain";
	else if (options->has_to &&
		 (!filter->to_ns || (same_end && filter->to_ns <= filter->from_ns)))
		error = "--to must be later than --from";
	if (error)
		print_error("%s", error);
	return !error;
}

/*
 * Show threads that wait if only these pass the filter. Returns false after printing an error if
 * the mode hides them.
 */
static bool show_required_idle(struct report_options *options)
{
	if (!(options->filter.flags_set & SAMPLE_IDLE))
		return true;
	if (options->mode.is_made && options->mode.mode == PROFILE_BUSY) {
		print_error("--mode busy hides threads that wait, which --state idle requires: "
			    "leave out --mode busy");
		return false;
	}
	options->mode.shows_idle |= !options->mode.is_made;
	return true;
}

/* Name the page that --open may need, in the current folder. Returns false without memory. */
static bool name_page(struct report_options *options)
{
	const char *first = options->paths[0];
	const char *slash = strrchr(first, '/');
	const char *name = strcmp(first, "-") == 0 ? "pysample" : slash ? slash + 1 : first;

	if (asprintf(&options->page_path, "%s.html", name) < 0)
		options->page_path = NULL;
	options->outputs.page_path = options->page_path;
	return options->page_path;
}

/* Whether the outputs can have what --explain is about. Prints an error if not. */
static bool can_explain(const struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++)
		if (outputs->list[i].format == format_find("summary"))
			return true;
	print_error("only a summary explains a function: add -f summary, or leave out --explain");
	return false;
}

/* Check the options as a whole and complete them. Returns EXIT_USAGE after printing an error. */
static enum exit_status complete(struct report_options *options)
{
	const struct artefact_options *layout = &options->layout;
	struct replay_filter *filter = &options->filter;

	/* Only a summary has these. */
	if (!options->outputs.nr && !options->outputs.next && !options->info &&
	    (layout->tree || layout->explain))
		options->outputs.next = format_find("summary");
	options->profile.by_line |= layout->explain != NULL;
	if (!check(options) || !show_required_idle(options))
		return EXIT_USAGE;
	if (options->outputs.opens && !name_page(options)) {
		print_error("out of memory");
		return EXIT_ERROR;
	}
	if (!outputs_choose(&options->outputs) ||
	    (layout->explain && !options->info && !can_explain(&options->outputs)) ||
	    !mode_choose(&options->mode, PROFILE_WALL, &options->profile.mode))
		return EXIT_USAGE;
	if (outputs_recording(&options->outputs)) {
		print_error("report cannot write a recording: name a file of another format, "
			    "or copy the recording");
		return EXIT_USAGE;
	}
	if ((options->nr_bases && !outputs_can_compare(&options->outputs)) ||
	    !compile(&options->included, &options->include, &filter->include) ||
	    !compile(&options->excluded, &options->exclude, &filter->exclude))
		return EXIT_USAGE;
	filter->threads = (struct name_filter){options->threads.patterns, options->threads.nr};
	filter->processes =
		(struct name_filter){options->processes.patterns, options->processes.nr};
	options->profile.has_base = options->nr_bases;
	if (!options->layout.max_rows)
		options->layout.max_rows = UINT32_MAX;
	return EXIT_OK;
}

enum exit_status report_options_parse(int argc, char **argv, struct report_options *options,
				      bool *ret_done)
{
	const size_t max = (size_t)argc + 1; /* entries in each list */
	enum exit_status status;
	int first;

	*ret_done = false;
	*options = (struct report_options){
		.paths = calloc(max, sizeof(*options->paths)),
		.bases = calloc(max, sizeof(*options->bases)),
		.profile = {.by_process = true},
		.layout = {.max_rows = SUMMARY_MAX_ROWS},
	};
	if (!options->paths || !options->bases) {
		print_error("out of memory");
		return EXIT_ERROR;
	}
	status = options_parse(&report_command, argc, argv, options, &first, ret_done);
	if (status != EXIT_OK || *ret_done)
		return status;
	for (int i = first; i < argc; i++)
		options->paths[options->nr_paths++] = argv[i];
	return complete(options);
}

void report_options_done(struct report_options *options)
{
	if (options->filter.include)
		regfree(&options->include);
	if (options->filter.exclude)
		regfree(&options->exclude);
	text_done(&options->included);
	text_done(&options->excluded);
	free(options->page_path);
	free(options->paths);
	free(options->bases);
}
