/* SPDX-License-Identifier: MIT */
/* pysample report: makes other formats from recordings. */
#include <inttypes.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/page_opener.h"
#include "cmd/print.h"
#include "cmd/rendering.h"
#include "cmd/report/comparison.h"
#include "cmd/report/inputs.h"
#include "cmd/report/report_info.h"
#include "cmd/report/report_options.h"
#include "cmd/signals.h"
#include "output/caveats.h"
#include "output/text/text.h"

/* Print why a side has nothing to show, and the remedy. */
static void explain_none_shown(const struct rendering *rendering, const struct inputs *inputs,
			       const struct inputs *bases)
{
	static const char *const verbs[NR_PROFILE_MODES] = {
		[PROFILE_WALL] = "is shown",
		[PROFILE_BUSY] = "is shown",
		[PROFILE_CPU] = "used CPU time",
		[PROFILE_GIL] = "held the GIL",
		[PROFILE_EXCEPTION] = "handled an exception",
		[PROFILE_COUNT] = "is shown",
	};
	const bool is_base = !profile_account_is_empty(&rendering->accounts[PROFILE_SHOWN]);
	const struct profile_account *account =
		&rendering->accounts[is_base ? PROFILE_BASE : PROFILE_SHOWN];
	const struct inputs *side = is_base ? bases : inputs;
	const char *others = side->nr > 1 ? " and the others" : "";
	const char *name = input_name(&side->list[0]);

	if (!account->nr_samples)
		print_error("no samples of %s%s are left: there are none, or none match --from, "
			    "--to, --thread, --process, --state, --include and --exclude",
			    name, others);
	else if (rendering->profile.mode == PROFILE_CPU && !account->nr_cpu_measured)
		print_error("no CPU times were measured in %s%s: --mode wall shows the samples, "
			    "attach --cpu measures CPU times",
			    name, others);
	else
		print_error("no sample of %s%s (%" PRIu64 " in all) %s: --mode wall shows all",
			    name, others, account->nr_samples, verbs[rendering->profile.mode]);
}

/* Print a note if what was written is approximate. */
static void note_approximate(const struct rendering *rendering)
{
	const struct profile_account *shown = &rendering->accounts[PROFILE_SHOWN];
	const struct profile_account *base = &rendering->accounts[PROFILE_BASE];
	struct text text = {0};

	caveats_append_approximate(&text, shown->nr_approximate + base->nr_approximate,
				   shown->nr_shown + base->nr_shown);
	if (text.length)
		print_note("%s", text_string(&text));
	text_done(&text);
}

/* Print how many threads waited, and how long, if an output hides that. */
static void note_idle(const struct rendering *rendering, const struct outputs *outputs)
{
	struct text text = {0};

	if (rendering->profile.mode == PROFILE_BUSY && outputs_hide_idle(outputs))
		caveats_append_idle(&text, &rendering->accounts[PROFILE_SHOWN]);
	if (text.length)
		print_note("%s", text_string(&text));
	text_done(&text);
}

/* Returns the name of the first recording that does not tell which threads waited, or NULL. */
static const char *find_stateless(const struct inputs *inputs, const struct inputs *bases)
{
	for (uint32_t i = 0; i < inputs->nr; i++)
		if (!recording_run(inputs->recordings[i])->info.has_states)
			return input_name(&inputs->list[i]);
	for (uint32_t i = 0; i < bases->nr; i++)
		if (!recording_run(bases->recordings[i])->info.has_states)
			return input_name(&bases->list[i]);
	return NULL;
}

/*
 * Returns the mode to show: the one given, else the first recording's. PROFILE_BUSY needs
 * recordings that all tell which threads waited; a note says so if it cannot be shown.
 */
static enum profile_mode choose_mode(const struct report_options *options,
				     const struct inputs *inputs, const struct inputs *bases)
{
	const bool is_given = options->mode.is_made || options->mode.shows_idle;
	const enum profile_mode mode =
		is_given ? options->profile.mode : recording_run(inputs->recordings[0])->info.mode;
	const char *stateless = find_stateless(inputs, bases);
	const bool is_asked = mode == PROFILE_BUSY || (mode == PROFILE_WALL && !is_given);

	if (!stateless || !is_asked)
		return mode;
	if (!options->quiet && outputs_hide_idle(&options->outputs))
		print_note("%s does not tell which threads waited: all samples are shown",
			   stateless);
	return PROFILE_WALL;
}

/* Print what grew. Returns status, or EXIT_GREW, or EXIT_ERROR after printing an error. */
static enum exit_status compare(const struct rendering *rendering, double max_points,
				enum exit_status status)
{
	bool grew;
	int err = comparison_print(rendering, max_points, &grew);

	if (err) {
		print_error("cannot compare the recordings: %s", strerror(-err));
		return EXIT_ERROR;
	}
	return grew && status == EXIT_OK ? EXIT_GREW : status;
}

/*
 * Whether no output would overwrite a recording that is read. Returns false after printing an
 * error.
 */
static bool check_no_overwrite(const struct outputs *outputs, const struct inputs *inputs)
{
	for (uint32_t i = 0; i < inputs->nr; i++) {
		const char *name = outputs_find(outputs, inputs->list[i].fd);

		if (name) {
			print_error("%s is one of the recordings to read: name another output file",
				    name);
			return false;
		}
	}
	return true;
}

static enum exit_status write_outputs(struct report_options *options, const struct inputs *inputs,
				      const struct inputs *bases)
{
	struct rendering rendering = {
		.recordings = inputs->recordings,
		.nr_recordings = inputs->nr,
		.bases = bases->recordings,
		.nr_bases = bases->nr,
		.filter = options->filter,
		.profile = options->profile,
		.layout = options->layout,
	};
	enum exit_status status = outputs_open_or_print(&options->outputs);

	if (status != EXIT_OK)
		return status;
	if (!check_no_overwrite(&options->outputs, inputs) ||
	    !check_no_overwrite(&options->outputs, bases))
		return EXIT_USAGE;
	rendering.profile.mode = choose_mode(options, inputs, bases);
	status = rendering_write(&rendering, &options->outputs);
	if (!options->quiet) {
		note_approximate(&rendering);
		note_idle(&rendering, &options->outputs);
	}
	if (status == EXIT_NO_SAMPLE)
		explain_none_shown(&rendering, inputs, bases);
	else if (options->has_fail_above)
		status = compare(&rendering, options->fail_above_percent, status);
	return status;
}

static enum exit_status print_info(const struct inputs *inputs, bool json)
{
	for (uint32_t i = 0; i < inputs->nr; i++) {
		int err;

		if (i && !json)
			(void)fputs("\n", stdout);
		err = report_info_print(inputs->recordings[i], inputs->list[i].path, json);
		if (err) {
			print_error("cannot read %s: %s", input_name(&inputs->list[i]),
				    strerror(-err));
			return EXIT_ERROR;
		}
	}
	return print_finish(EXIT_OK);
}

static enum exit_status report(struct report_options *options)
{
	const bool quiet = options->quiet || options->info;
	struct page_opener opener = PAGE_OPENER_NONE;
	struct inputs inputs, bases = {0};
	enum exit_status status = EXIT_ERROR;

	page_opener_start(&opener, &options->outputs);
	signals_make_writes_fail();
	if (inputs_open(&inputs, options->paths, options->nr_paths, quiet) &&
	    inputs_open(&bases, options->bases, options->nr_bases, quiet))
		status = options->info ? print_info(&inputs, options->json)
				       : write_outputs(options, &inputs, &bases);
	page_opener_show(&opener, &options->outputs, options->quiet);
	page_opener_stop(&opener);
	inputs_close(&inputs);
	inputs_close(&bases);
	outputs_discard(&options->outputs);
	return status;
}

static enum exit_status run(int argc, char **argv)
{
	struct report_options options;
	bool done;
	enum exit_status status = report_options_parse(argc, argv, &options, &done);

	if (status == EXIT_OK && !done)
		status = report(&options);
	report_options_done(&options);
	return status;
}

const struct command report_command = {
	.name = "report",
	.summary = "convert a recording to any format, merge several, compare two",
	.usage = "[OPTION]… FILE…",
	.about =
		"Converts a recording (pysample attach -o out.pysample) to any format. Several\n"
		"recordings are merged; - is stdin. A torn recording is read up to where it is torn.\n",
	.groups = report_options_groups,
	.nr_groups = REPORT_OPTIONS_NR_GROUPS,
	.lists_formats = true,
	.operands = OPERAND_FILE,
	.epilogue =
		"Exit status: 0 written, 1 error, 2 usage, 5 no samples left, 10 --fail-above was\n"
		"exceeded.\n"
		"\n"
		"Examples:\n"
		"  pysample report out.pysample                   a table of the hottest functions\n"
		"  pysample report out.pysample --from 10s --to 20s --state gil --thread worker\n"
		"  pysample report out.pysample | flamegraph.pl > out.svg\n"
		"  pysample report monday.pysample tuesday.pysample -o both.collapsed\n"
		"  pysample report new.pysample --diff old.pysample --fail-above 5 -q -o diff.summary\n"
		"  pysample report --info out.pysample\n",
	.run = run,
};
