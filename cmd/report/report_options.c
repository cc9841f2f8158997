/* SPDX-License-Identifier: MIT */
#include "cmd/report/report_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options.h"
#include "cmd/print.h"

#define SUMMARY_MAX_ROWS 30

static const char help[] =
	"usage: pysample report [OPTION]… FILE…\n"
	"\n"
	"Makes any format of a recording (pysample attach -o out.pysample). Several recordings\n"
	"are merged; - is stdin. One that was torn is read up to the tear.\n"
	"\n"
	"  -o, --output FILE      where to write; - is stdout (default: stdout); several are\n"
	"                         allowed\n"
	"  -f, --format NAME      of the -o that it stands next to, or of stdout. Default: from\n"
	"                         the suffix of FILE, else summary on a terminal and collapsed\n"
	"                         in a file or pipe\n"
	"      --info             only what the recording says of its run: one name and value a\n"
	"                         line\n"
	"      --json             with --info: one JSON object for each FILE\n"
	"\n"
	"What of it:\n"
	"      --from TIME, --to TIME\n"
	"                         from when and until when, since the start: 1.5s, 90s, 5m; -2s\n"
	"                         is two seconds before the last sample\n"
	"      --thread NAME|TID  only this thread; several are allowed\n"
	"      --pid PID          only this process\n"
	"      --state NAME       only samples that have the GIL (gil), used the CPU (cpu),\n"
	"                         collected garbage (gc), handled an exception (exception),\n"
	"                         ran in code of CPython's JIT (jit), were read while they ran\n"
	"                         (approximate), ran Python and were not seen to be off the CPU\n"
	"                         (busy), or the rest (idle); !NAME: only those that did not.\n"
	"                         Several must all be true\n"
	"      --include RE       only stacks with a frame 'name (path:line)' that matches this\n"
	"                         extended regular expression\n"
	"      --exclude RE       only stacks without such a frame\n"
	"      --mode NAME        wall, cpu, gil or exception, as in pysample attach --help\n"
	"                         (default: that of the recording)\n"
	"\n"
	"How it looks:\n"
	"  -t, --threads          a root frame per thread\n"
	"      --functions        a row per function, with the line it begins at (default)\n"
	"      --lines            a row per line that was executing\n"
	"      --plumbing         also frames of the C functions that are the same in every\n"
	"                         program, from _start to Py_RunMain and around each call\n"
	"      --no-source        no source lines in the formats that show them\n"
	"      --rows N           of a summary; 0: all (default: 30)\n"
	"      --tree             summary: callers above what they call\n"
	"      --callers FUNCTION summary: who calls it\n"
	"      --callees FUNCTION summary: what it calls\n"
	"\n"
	"Comparing:\n"
	"      --diff BASE        what has changed since that recording; several are merged\n"
	"      --fail-above PCT   with --diff: exit with 10 if the share of a function, its own\n"
	"                         or with what it calls, grew by more than so many percentage\n"
	"                         points\n"
	"\n"
	"  -q, --quiet            nothing on stderr but errors\n"
	"  -h, --help             this text\n";

static const char examples[] =
	"\n"
	"Exit status: 0 written, 1 error, 2 usage, 5 no sample passed, 10 --fail-above was\n"
	"exceeded.\n"
	"\n"
	"Examples:\n"
	"  pysample report out.pysample                   a table of the hottest functions\n"
	"  pysample report out.pysample --from 10s --to 20s --state gil --thread worker\n"
	"  pysample report out.pysample | flamegraph.pl > out.svg\n"
	"  pysample report monday.pysample tuesday.pysample -o both.collapsed\n"
	"  pysample report new.pysample --diff old.pysample --fail-above 5 -q -o diff.summary\n"
	"  pysample report --info out.pysample\n";

enum {
	OPTION_LINES = 256,
	OPTION_FUNCTIONS,
	OPTION_INFO,
	OPTION_JSON,
	OPTION_FROM,
	OPTION_TO,
	OPTION_THREAD,
	OPTION_PID,
	OPTION_STATE,
	OPTION_INCLUDE,
	OPTION_EXCLUDE,
	OPTION_MODE,
	OPTION_PLUMBING,
	OPTION_NO_SOURCE,
	OPTION_ROWS,
	OPTION_TREE,
	OPTION_CALLERS,
	OPTION_CALLEES,
	OPTION_DIFF,
	OPTION_FAIL_ABOVE,
};

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"info", no_argument, NULL, OPTION_INFO},
	{"json", no_argument, NULL, OPTION_JSON},
	{"from", required_argument, NULL, OPTION_FROM},
	{"to", required_argument, NULL, OPTION_TO},
	{"thread", required_argument, NULL, OPTION_THREAD},
	{"pid", required_argument, NULL, OPTION_PID},
	{"state", required_argument, NULL, OPTION_STATE},
	{"include", required_argument, NULL, OPTION_INCLUDE},
	{"exclude", required_argument, NULL, OPTION_EXCLUDE},
	{"mode", required_argument, NULL, OPTION_MODE},
	{"threads", no_argument, NULL, 't'},
	{"lines", no_argument, NULL, OPTION_LINES},
	{"functions", no_argument, NULL, OPTION_FUNCTIONS},
	{"plumbing", no_argument, NULL, OPTION_PLUMBING},
	{"no-source", no_argument, NULL, OPTION_NO_SOURCE},
	{"rows", required_argument, NULL, OPTION_ROWS},
	{"tree", no_argument, NULL, OPTION_TREE},
	{"callers", required_argument, NULL, OPTION_CALLERS},
	{"callees", required_argument, NULL, OPTION_CALLEES},
	{"diff", required_argument, NULL, OPTION_DIFF},
	{"fail-above", required_argument, NULL, OPTION_FAIL_ABOVE},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char short_options[] = ":o:f:tqh";

/* Values. */

/* Have only samples pass that are in a state, or not in it. */
static bool apply_state(struct replay_filter *filter, const char *value)
{
	static const struct {
		const char *name;
		uint32_t flag; /* 0: idle or busy */
	} states[] = {
		{"gil", SAMPLE_HOLDS_GIL},
		{"cpu", SAMPLE_ON_CPU},
		{"gc", SAMPLE_GC},
		{"exception", SAMPLE_EXCEPTION},
		{"jit", SAMPLE_IN_JIT},
		{"approximate", SAMPLE_APPROXIMATE},
		{"busy", 0},
		{"idle", 0},
	};
	const bool wanted = value[0] != '!';
	const char *name = value + !wanted;

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		if (strcmp(name, states[i].name) != 0)
			continue;
		if (states[i].flag)
			*(wanted ? &filter->flags_set : &filter->flags_clear) |= states[i].flag;
		else if ((name[0] == 'b') == wanted)
			filter->busy = true;
		else
			filter->idle = true;
		return true;
	}
	print_error(
		"there is no state '%s': write gil, cpu, gc, exception, jit, approximate, busy or "
		"idle, with a ! in front for those that are not",
		value);
	return false;
}

/* Add an alternative to a pattern; false after an error was printed. */
static bool apply_pattern(struct text *pattern, const char *value)
{
	char reason[256];
	regex_t compiled;
	int err = regcomp(&compiled, value, REG_EXTENDED | REG_NOSUB);

	if (err) {
		(void)regerror(err, &compiled, reason, sizeof(reason));
		print_error("'%s' is no extended regular expression: %s", value, reason);
		return false;
	}
	regfree(&compiled);
	text_printf(pattern, "%s(%s)", pattern->length ? "|" : "", value);
	return true;
}

static bool apply_moment(const char *value, int64_t *ret_moment_ns)
{
	if (parse_moment(value, ret_moment_ns))
		return true;
	print_error("'%s' is not a time: write 1.5s, 500ms, 5m, or -2s for two seconds before the "
		    "end",
		    value);
	return false;
}

/* Apply an option that takes no value; false if there is no such one. */
static bool apply_flag(struct report_options *options, int option)
{
	switch (option) {
	case 't':
		options->profile.by_thread = true;
		return true;
	case 'q':
		options->quiet = true;
		return true;
	case OPTION_LINES:
	case OPTION_FUNCTIONS:
		options->profile.by_line = option == OPTION_LINES;
		return true;
	case OPTION_PLUMBING:
		options->profile.keep_plumbing = true;
		return true;
	case OPTION_INFO:
		options->info = true;
		return true;
	case OPTION_JSON:
		options->json = true;
		return true;
	case OPTION_NO_SOURCE:
		options->layout.no_source = true;
		return true;
	case OPTION_TREE:
		options->layout.tree = true;
		return true;
	default:
		return false;
	}
}

/* Apply an option of the filter; false after an error was printed, or if there is no such one. */
static bool apply_filter(struct report_options *options, int option, const char *value)
{
	struct replay_filter *filter = &options->filter;

	switch (option) {
	case OPTION_FROM:
		return apply_moment(value, &filter->from_ns);
	case OPTION_TO:
		return apply_moment(value, &filter->to_ns);
	case OPTION_THREAD:
		options->threads[filter->nr_threads++] = value;
		return true;
	case OPTION_PID:
		if (parse_pid(value, &filter->pid))
			return true;
		print_error("'%s' is not a process id", value);
		return false;
	case OPTION_STATE:
		return apply_state(filter, value);
	case OPTION_INCLUDE:
		return apply_pattern(&options->included, value);
	case OPTION_EXCLUDE:
		return apply_pattern(&options->excluded, value);
	default:
		return apply_flag(options, option);
	}
}

/* Apply one option; false after an error was printed, or if there is no such option. */
static bool apply_option(struct report_options *options, int option, const char *value)
{
	switch (option) {
	case 'f':
		return outputs_take_format(&options->outputs, value);
	case 'o':
		return outputs_take_path(&options->outputs, value);
	case OPTION_MODE:
		options->has_mode = true;
		return parse_mode(value, &options->profile.mode);
	case OPTION_ROWS:
		if (parse_count(value, UINT32_MAX - 1, &options->layout.max_rows))
			return true;
		print_error("'%s' is not a number of rows", value);
		return false;
	case OPTION_CALLERS:
		options->layout.callers = value;
		return true;
	case OPTION_CALLEES:
		options->layout.callees = value;
		return true;
	case OPTION_DIFF:
		options->bases[options->nr_bases++] = value;
		return true;
	case OPTION_FAIL_ABOVE:
		options->has_fail_above = true;
		if (parse_percent(value, &options->fail_above_percent))
			return true;
		print_error("'%s' is not a percentage: write 5, 2.5 or 5%%", value);
		return false;
	default:
		return apply_filter(options, option, value);
	}
}

/* Checking. */

/* Have the filter refer to a pattern, if there is one; false after an error was printed. */
static bool compile(const struct text *pattern, regex_t *compiled, const regex_t **ret_compiled)
{
	if (!pattern->length && !pattern->error)
		return true;
	if (pattern->error ||
	    regcomp(compiled, text_string(pattern), REG_EXTENDED | REG_NOSUB) != 0) {
		print_error("the regular expressions need more memory than there is");
		return false;
	}
	*ret_compiled = compiled;
	return true;
}

/* Whether the options that stand alone do; false after an error was printed. */
static bool check(const struct report_options *options, bool has_to)
{
	const struct replay_filter *filter = &options->filter;
	const bool same_end = (filter->from_ns < 0) == (filter->to_ns < 0);
	const char *error = NULL;

	if (!options->nr_paths)
		error = "which recording? pysample report FILE, made by 'pysample attach -o FILE'";
	else if (options->json && !options->info)
		error = "--json is for --info: -f jsonl is for samples";
	else if (options->info && (options->outputs.nr || options->outputs.next))
		error = "--info goes to stdout: leave out -o and -f";
	else if (options->has_fail_above && !options->nr_bases)
		error = "--fail-above compares: say with what, --diff BASE";
	else if (has_to && (!filter->to_ns || (same_end && filter->to_ns <= filter->from_ns)))
		error = "nothing lies between --from and --to: the second one has to be later";
	if (error)
		print_error("%s", error);
	return !error;
}

/* Whether the outputs can be made by a report; false after an error was printed. */
static bool check_outputs(struct report_options *options)
{
	if (outputs_recording(&options->outputs)) {
		print_error("a report makes no recordings: name a file of another format, "
			    "or copy the recording");
		return false;
	}
	return !options->nr_bases || outputs_can_compare(&options->outputs);
}

/* Finish what the options began; EXIT_USAGE after an error was printed. */
static enum exit_status complete(struct report_options *options, bool has_to)
{
	struct replay_filter *filter = &options->filter;

	if (!check(options, has_to) || !outputs_choose(&options->outputs) ||
	    !check_outputs(options) ||
	    !compile(&options->included, &options->include, &filter->include) ||
	    !compile(&options->excluded, &options->exclude, &filter->exclude))
		return EXIT_USAGE;
	filter->threads = options->threads;
	if (!options->layout.max_rows)
		options->layout.max_rows = UINT32_MAX;
	return EXIT_OK;
}

static enum exit_status print_help(void)
{
	(void)fputs(help, stdout);
	(void)fputs("\nFormats, and the suffixes that choose them:\n", stdout);
	outputs_print_formats(stdout);
	(void)fputs(examples, stdout);
	return print_finish(EXIT_OK);
}

/* Have room for as many of each as there are arguments. */
static bool reserve(struct report_options *options, int argc)
{
	const size_t max = (size_t)argc + 1;

	*options = (struct report_options){
		.paths = calloc(max, sizeof(*options->paths)),
		.bases = calloc(max, sizeof(*options->bases)),
		.threads = calloc(max, sizeof(*options->threads)),
		.layout = {.max_rows = SUMMARY_MAX_ROWS},
	};
	if (options->paths && options->bases && options->threads)
		return true;
	print_error("out of memory");
	return false;
}

enum exit_status report_options_parse(int argc, char **argv, struct report_options *options,
				      bool *ret_done)
{
	bool has_to = false;
	int option;

	*ret_done = false;
	if (!reserve(options, argc))
		return EXIT_ERROR;
	while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		if (option == 'h') {
			*ret_done = true;
			return print_help();
		}
		if (option == '?' || option == ':')
			print_option_error(option, short_options, argv);
		if (!apply_option(options, option, optarg))
			return EXIT_USAGE;
		has_to |= option == OPTION_TO;
	}
	for (int i = optind; i < argc; i++)
		options->paths[options->nr_paths++] = argv[i];
	return complete(options, has_to);
}

void report_options_done(struct report_options *options)
{
	if (options->filter.include)
		regfree(&options->include);
	if (options->filter.exclude)
		regfree(&options->exclude);
	text_done(&options->included);
	text_done(&options->excluded);
	free(options->paths);
	free(options->bases);
	free(options->threads);
}
