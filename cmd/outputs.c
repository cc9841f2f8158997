/* SPDX-License-Identifier: MIT */
#include "cmd/outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/print.h"
#include "output/text/text.h"

/* Parsing. */

/* Append an output. Returns false after printing an error. */
static bool add(struct outputs *outputs, const char *path, const struct format *format)
{
	if (outputs->nr == MAX_OUTPUTS) {
		print_error("at most %d files can be written at once: make the others with "
			    "'pysample report' from a recording",
			    MAX_OUTPUTS);
		return false;
	}
	outputs->list[outputs->nr++] = (struct output){
		.path = path && strcmp(path, "-") != 0 ? path : NULL,
		.format = format,
	};
	return true;
}

bool outputs_add_path(struct outputs *outputs, const char *path)
{
	const struct format *format = outputs->next;

	outputs->next = NULL;
	return add(outputs, path, format);
}

static bool is_any(const struct format *format)
{
	return format->name;
}

static bool compares(const struct format *format)
{
	return format->compares;
}

static bool counts(const struct format *format)
{
	return !format->needs_time;
}

/* Append the names of the formats for which is_named(): "collapsed, summary or …". */
static void append_names(struct text *text, bool is_named(const struct format *))
{
	size_t nr, nr_left = 0;
	const struct format *formats = format_list(&nr);
	const char *separator = "";

	for (size_t i = 0; i < nr; i++)
		nr_left += is_named(&formats[i]);
	for (size_t i = 0; i < nr; i++) {
		if (!is_named(&formats[i]))
			continue;
		text_printf(text, "%s%s", separator, formats[i].name);
		separator = --nr_left > 1 ? ", " : " or ";
	}
}

/* Print that a name selects no format, and the names of all formats. */
static void print_formats(const char *what, const char *name, const char *remedy)
{
	struct text names = {0};

	append_names(&names, is_any);
	print_error("%s '%s'%s %s", what, name, remedy, text_string(&names));
	text_done(&names);
}

bool outputs_add_format(struct outputs *outputs, const char *name)
{
	struct output *last = outputs->nr ? &outputs->list[outputs->nr - 1] : NULL;
	const struct format *format = format_find(name);
	const struct format *waiting = outputs->next;

	if (!format) {
		print_formats("unknown format", name, ": use");
		return false;
	}
	if (last && !last->format) {
		last->format = format;
		return true;
	}
	outputs->next = format;
	return waiting ? add(outputs, NULL, waiting) : true;
}

/* Returns the format of a file whose -o has no -f, or NULL after printing an error. */
static const struct format *format_of_name(const char *path)
{
	const struct format *format = format_of_path(path);
	const char *slash = strrchr(path, '/');
	struct stat status;

	if (format)
		return format;
	if (!strchr(slash ? slash + 1 : path, '.') ||
	    (stat(path, &status) == 0 && !S_ISREG(status.st_mode)))
		return format_find("collapsed");
	print_formats("the name", path, " does not imply a format: add -f and one of");
	return NULL;
}

static const struct format *format_of_stdout(void)
{
	return format_find(isatty(STDOUT_FILENO) ? "summary" : "collapsed");
}

/*
 * Whether at most one output goes to stdout and at most one is a recording. Returns false after
 * printing an error.
 */
static bool check_unique(const struct outputs *outputs)
{
	unsigned nr_stdout = 0, nr_recordings = 0;

	for (unsigned i = 0; i < outputs->nr; i++) {
		nr_stdout += !outputs->list[i].path;
		nr_recordings += !outputs->list[i].format->write;
	}
	if (nr_stdout > 1)
		print_error("only one output can go to stdout: name files for the others with -o");
	else if (nr_recordings > 1)
		print_error("only one recording can be written: copy it afterwards");
	return nr_stdout <= 1 && nr_recordings <= 1;
}

static bool is_page(const struct output *output)
{
	return output->path && output->format == format_find("flamegraph");
}

/* Add a page if one is wanted and none was named. Returns false after printing an error. */
static bool add_page(struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++)
		if (is_page(&outputs->list[i]))
			return true;
	return !outputs->opens || add(outputs, outputs->page_path, format_find("flamegraph"));
}

bool outputs_choose(struct outputs *outputs)
{
	const struct format *left = outputs->next;
	const bool is_default = outputs->nr == 0 && !outputs->opens;

	outputs->next = NULL;
	if ((left || is_default) && !add(outputs, NULL, left))
		return false;
	for (unsigned i = 0; i < outputs->nr; i++) {
		struct output *output = &outputs->list[i];

		if (!output->format)
			output->format =
				output->path ? format_of_name(output->path) : format_of_stdout();
		if (!output->format)
			return false;
	}
	return add_page(outputs) && check_unique(outputs);
}

/*
 * Whether fits() holds for all formats. Otherwise prints why_not and the formats that fit, and
 * returns false.
 */
static bool check_formats(const struct outputs *outputs, bool (*fits)(const struct format *format),
			  const char *why_not)
{
	struct text names = {0};
	unsigned i = 0;

	while (i < outputs->nr && fits(outputs->list[i].format))
		i++;
	if (i == outputs->nr)
		return true;
	append_names(&names, fits);
	print_error("%s %s %s", outputs->list[i].format->name, why_not, text_string(&names));
	text_done(&names);
	return false;
}

/* Patterns. */

bool outputs_use_patterns(struct outputs *outputs, bool is_periodic)
{
	for (unsigned i = 0; i < outputs->nr; i++) {
		struct output *output = &outputs->list[i];
		bool has_period;

		if (!output->path) {
			if (!is_periodic)
				continue;
			print_error("--loop writes one file after the other, not to stdout: name "
				    "them with -o 'app-%%t.pysample'");
			return false;
		}
		if (!output_pattern_check(output->path, &has_period))
			return false;
		if (is_periodic && !has_period) {
			print_error("with --loop each period has its own file: add %%t (time) or "
				    "%%n (number) to the name '%s', such as 'app-%%t.pysample'",
				    output->path);
			return false;
		}
		output->pattern = output->path;
	}
	return true;
}

int outputs_expand(struct outputs *outputs, const struct output_pattern_values *values)
{
	for (unsigned i = 0; i < outputs->nr; i++) {
		struct output *output = &outputs->list[i];
		char *expanded;
		size_t counter_at;
		int err;

		if (!output->pattern)
			continue;
		err = output_pattern_expand(output->pattern, values, &expanded, &counter_at);
		if (err)
			return err;
		free(output->expanded);
		output->expanded = expanded;
		output->path = expanded;
		output->counter_at = counter_at;
	}
	return 0;
}

bool outputs_can_compare(const struct outputs *outputs)
{
	return check_formats(outputs, compares, "cannot show a comparison: with --diff use");
}

bool outputs_can_count(const struct outputs *outputs)
{
	return check_formats(outputs, counts,
			     "shows samples over time, and a core has no time: use");
}

void outputs_print_formats(FILE *out)
{
	size_t nr;
	const struct format *formats = format_list(&nr);

	for (size_t i = 0; i < nr; i++) {
		(void)fprintf(out, "  %-12s %s (", formats[i].name, formats[i].summary);
		for (size_t k = 0; k < FORMAT_MAX_SUFFIXES && formats[i].suffixes[k]; k++)
			(void)fprintf(out, "%s%s", k ? ", " : "", formats[i].suffixes[k]);
		(void)fputs(")\n", out);
	}
}

/* Looking at them. */

struct output *outputs_recording(struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++)
		if (!outputs->list[i].format->write)
			return &outputs->list[i];
	return NULL;
}

bool outputs_need_samples(const struct outputs *outputs)
{
	if (outputs->of_tree)
		return true;
	for (unsigned i = 0; i < outputs->nr; i++) {
		const struct format *format = outputs->list[i].format;

		if (!format->write || format->by_line || format->keep_samples)
			return true;
	}
	return false;
}

bool outputs_hide_idle(const struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++) {
		const struct format *format = outputs->list[i].format;

		if (format->write && (!format->keep_samples || format->compares))
			return true;
	}
	return false;
}

const char *outputs_page(const struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++) {
		const struct output *output = &outputs->list[i];
		const char *written = output->file.written.name;
		const char *path = written ? written : output->path;
		struct stat status;

		if (is_page(output) && output->is_complete && stat(path, &status) == 0 &&
		    S_ISREG(status.st_mode))
			return path;
	}
	return NULL;
}

bool outputs_have(const struct outputs *outputs, const struct output_file *other)
{
	for (unsigned i = 0; i < outputs->nr; i++)
		if (output_file_same(&outputs->list[i].file, other))
			return true;
	return false;
}

static const char *name_of(const struct output *output)
{
	return output->path ? output->path : "standard output";
}

const char *outputs_find(const struct outputs *outputs, int fd)
{
	for (unsigned i = 0; i < outputs->nr; i++)
		if (output_file_has_fd(&outputs->list[i].file, fd))
			return name_of(&outputs->list[i]);
	return NULL;
}

/* Opening. */

/* Whether the output suits its format: a recording cannot go to a terminal. */
static bool check_not_terminal(const struct output *output, struct message *reterr)
{
	const struct output_file *file = &output->file;

	if (output->format->write || !file->stream || !isatty(fileno(file->stream)))
		return true;
	message_set(reterr, "a recording cannot be written to a terminal: name a file for it, such "
			    "as -o out.pysample");
	return false;
}

/* Whether an output is a different file from those before it. */
static bool check_distinct(const struct outputs *outputs, unsigned index, struct message *reterr)
{
	const struct output *output = &outputs->list[index];

	for (unsigned i = 0; i < index; i++)
		if (output_file_same(&outputs->list[i].file, &output->file)) {
			message_set(reterr, "%s and %s are the same file: give each its own name",
				    name_of(&outputs->list[i]), name_of(output));
			return false;
		}
	return true;
}

static int open_output(struct output *output, struct message *reterr)
{
	if (output->counter_at)
		return output_file_open_unique(output->path, output->counter_at, &output->file,
					       reterr);
	return output_file_open(output->path, &output->file, reterr);
}

enum exit_status outputs_open(struct outputs *outputs, struct message *reterr)
{
	for (unsigned i = 0; i < outputs->nr; i++) {
		struct output *output = &outputs->list[i];

		if (open_output(output, reterr) != 0)
			return EXIT_ERROR;
		if (!check_not_terminal(output, reterr) || !check_distinct(outputs, i, reterr))
			return EXIT_USAGE;
	}
	return EXIT_OK;
}

enum exit_status outputs_open_or_print(struct outputs *outputs)
{
	struct message message = {0};
	enum exit_status status = outputs_open(outputs, &message);

	if (status != EXIT_OK)
		print_error("%s", message.text);
	return status;
}

int outputs_open_again(const struct outputs *outputs, struct outputs *ret_outputs)
{
	*ret_outputs = (struct outputs){0};
	for (unsigned i = 0; i < outputs->nr; i++) {
		const struct output *output = &outputs->list[i];
		struct output again = {.path = output->path, .format = output->format};
		int err = output->format->write ? output_file_open_again(&output->file, &again.file)
						: -ENOTSUP;

		if (err == -ENOMEM)
			return err;
		if (!err)
			ret_outputs->list[ret_outputs->nr++] = again;
	}
	return 0;
}

void outputs_replace_written(struct outputs *outputs, struct outputs *others)
{
	for (unsigned i = 0; i < others->nr; i++) {
		struct written_file written = output_file_take_written(&others->list[i].file);

		for (unsigned k = 0; written.name && k < outputs->nr; k++)
			if (outputs->list[k].path == others->list[i].path)
				output_file_replace(&outputs->list[k].file, &written);
		free(written.name);
	}
}

void outputs_discard(struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++) {
		struct output *output = &outputs->list[i];

		output_file_discard(&output->file);
		output->is_written = false;
		free(output->expanded);
		output->expanded = NULL;
		if (output->pattern)
			output->path = output->pattern;
	}
}

/* Writing. */

/* Whether an output is made from a profile and due now. */
static bool is_due(const struct outputs *outputs, const struct output *output)
{
	return output->format->write && !output->is_written &&
	       !(outputs->defers_stdout && output->file.stream == stdout);
}

bool outputs_are_ours(const struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++)
		if (!output_file_is_ours(&outputs->list[i].file))
			return false;
	return true;
}

const struct output *outputs_next(const struct outputs *outputs)
{
	for (unsigned i = 0; i < outputs->nr; i++)
		if (is_due(outputs, &outputs->list[i]))
			return &outputs->list[i];
	return NULL;
}

struct profile_options output_profile_options(const struct output *output,
					      const struct profile_options *requested)
{
	struct profile_options options = *requested;

	options.by_line |= output->format->by_line;
	options.keep_samples |= output->format->keep_samples;
	/* Formats with single samples tell which of them wait. A base has only sums. */
	if (options.mode == PROFILE_BUSY && output->format->keep_samples && !options.has_base) {
		options.mode = PROFILE_WALL;
		options.counts_idle = true;
	}
	return options;
}

/* Adapt text to the stream: its width and colour. */
static void set_stream_layout(struct artefact_options *options, FILE *stream)
{
	const bool terminal = isatty(fileno(stream));
	const char *no_colour = getenv("NO_COLOR");

	options->columns = print_columns(fileno(stream));
	options->colour = terminal && (!no_colour || !*no_colour);
}

/* Write an output. Returns EXIT_ERROR after printing an error, unless is_silent. */
static enum exit_status output_write(struct output *output, const struct artefact *artefact,
				     bool is_silent)
{
	struct artefact fitted = *artefact;
	struct message message = {0};
	int err = output_file_begin(&output->file, &message);

	output->is_written = true;
	if (!err) {
		set_stream_layout(&fitted.options, output->file.stream);
		err = output->format->write(&fitted, output->file.stream);
		err = output_file_finish(&output->file, err, &message);
	}
	output->is_complete = !err;
	if (err && !is_silent)
		print_error("%s", message.text);
	return err ? EXIT_ERROR : EXIT_OK;
}

/* Whether an output is made from a profile with the options made. */
static bool is_made_from(const struct output *output, const struct profile_options *made,
			 const struct profile_options *requested)
{
	const struct profile_options own = output_profile_options(output, requested);

	return own.mode == made->mode && own.by_line == made->by_line &&
	       own.keep_samples == made->keep_samples;
}

enum exit_status outputs_write(struct outputs *outputs, const struct artefact *artefact,
			       const struct profile_options *requested)
{
	const struct profile_options *made = profile_options(artefact->profile);
	enum exit_status status = EXIT_OK;

	for (unsigned i = 0; i < outputs->nr; i++) {
		struct output *output = &outputs->list[i];

		if (is_due(outputs, output) && is_made_from(output, made, requested) &&
		    output_write(output, artefact, outputs->is_silent) != EXIT_OK)
			status = EXIT_ERROR;
	}
	return status;
}

void outputs_skip(struct outputs *outputs, const struct profile_options *made,
		  const struct profile_options *requested)
{
	for (unsigned i = 0; i < outputs->nr; i++) {
		struct output *output = &outputs->list[i];

		if (is_due(outputs, output) && is_made_from(output, made, requested)) {
			output->is_written = true;
			output->is_complete = false;
		}
	}
}
