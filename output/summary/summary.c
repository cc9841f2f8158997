/* SPDX-License-Identifier: MIT */
#include "output/summary/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "output/caveats.h"
#include "output/profile/label.h"
#include "output/run/loss.h"
#include "output/run/stats.h"
#include "output/summary/summary_sections.h"
#include "procmem/clock.h"

/* With more runs, each has a single line. */
#define MAX_WHOLE_RUNS 3

/* The head: the runs and caveats. */

/* Append a rate in whole Hz, with decimals below 10. */
static void append_rate(struct text *line, double rate_hz)
{
	text_printf(line, "%.*f", rate_hz > 0 && rate_hz < 10 ? 2 : 0, rate_hz);
}

/* Append " · 0.12% WHAT". */
static void append_share(struct text *line, double percent, const char *what)
{
	text_puts(line, " · ");
	if (percent > 0 && percent < 0.01)
		text_puts(line, "<0.01");
	else
		text_printf(line, "%.*f", percent > 0 ? 2 : 0, percent);
	text_printf(line, "%% %s", what);
}

static void append_count(struct text *line, uint64_t nr, const char *noun)
{
	text_printf(line, "%" PRIu64 " %s%s", nr, noun, text_plural(nr));
}

static void append_command_line(struct text *line, const struct run_target *target)
{
	label_append_escaped(line, target->command_line, strlen(target->command_line),
			     LABEL_DISPLAY);
}

/* Append the known parts of "pid 42 · Python 3.12.1 · ". */
static void append_target(struct text *line, const struct run_info *info)
{
	if (info->target.pid)
		text_printf(line, "pid %jd · ", (intmax_t)info->target.pid);
	if (info->python.version) {
		text_puts(line, "Python ");
		label_append_escaped(line, info->python.version, strlen(info->python.version),
				     LABEL_DISPLAY);
		text_puts(line, " · ");
	}
}

/* Append the file and the cause of death: "core.7 · SIGSEGV". */
static void append_core(struct text *line, const struct run_target *target)
{
	label_append_escaped(line, target->core, strlen(target->core), LABEL_DISPLAY);
	if (target->death) {
		text_puts(line, " · ");
		label_append_escaped(line, target->death, strlen(target->death), LABEL_DISPLAY);
	}
}

/*
 * Print the target. Threads are counted over all runs, so with several the last line of the head
 * has their number.
 */
static void print_target(struct summary_page *page, const struct run *run, bool is_only)
{
	const struct profile *profile = page->artefact->profile;
	struct text *line = &page->cell;

	append_target(line, &run->info);
	if (is_only) {
		append_count(line, profile_nr_threads(profile), "thread");
		text_puts(line, " · ");
	}
	text_printf(line, "%.1f s · %s", stats_wall_s(&run->stats),
		    profile_mode_time(profile_mode(profile)));
	if (profile_mode(profile) != PROFILE_CPU && run->info.account.nr_cpu_measured)
		text_printf(line, " · %.3f s of CPU time",
			    (double)run->info.account.cpu_ns / NS_PER_S);
	if (run->info.pysample.version)
		text_printf(line, " · pysample %s", run->info.pysample.version);
	summary_page_line(page, "");
}

/* Append the losses by reason, if there are any: " (moved 3, lock 1)". */
static void append_losses(struct text *line, const struct sampler_stats *stats)
{
	const char *separator = " (";

	for (int i = 0; i < NR_SAMPLE_LOSSES; i++) {
		if (!stats->lost[i])
			continue;
		text_printf(line, "%s%s %" PRIu64, separator, loss_name((enum sample_loss)i),
			    stats->lost[i]);
		separator = ", ";
	}
	if (loss_total(stats))
		text_puts(line, ")");
}

static void print_sampling(struct summary_page *page, const struct run *run)
{
	const struct sampler_stats *stats = &run->stats;
	struct text *line = &page->cell;

	append_rate(line, stats_achieved_hz(stats));
	if (run->info.requested_hz > 0) {
		text_puts(line, " of ");
		append_rate(line, run->info.requested_hz);
	}
	text_puts(line, " Hz · ");
	if (stats->paused_ns)
		text_printf(line, "paused for %.1f s · ", (double)stats->paused_ns / NS_PER_S);
	append_count(line, stats->samples, "sample");
	append_share(line, loss_percent(stats), "lost");
	append_losses(line, stats);
	text_puts(line, " · ");
	append_count(line, stats->late_ticks, "late tick");
	summary_page_line(page, "");
}

/* Print the core and what the process died of. */
static void print_core(struct summary_page *page, const struct run *run)
{
	struct text *line = &page->cell;

	append_target(line, &run->info);
	append_count(line, run->stats.samples, "thread");
	text_puts(line, " · ");
	append_core(line, &run->info.target);
	if (run->info.pysample.version)
		text_printf(line, " · pysample %s", run->info.pysample.version);
	summary_page_line(page, "");
}

static void print_run(struct summary_page *page, const struct run *run, bool is_only)
{
	text_clear(&page->cell);
	if (run->info.target.command_line) {
		append_command_line(&page->cell, &run->info.target);
		summary_page_line(page, SUMMARY_BOLD);
	}
	if (run->info.target.core) {
		print_core(page, run);
	} else {
		print_target(page, run, is_only);
		print_sampling(page, run);
	}
	text_puts(&page->out, "\n");
}

/* Print a run in one line. The command line comes last, where it may be cut. */
static void print_run_line(struct summary_page *page, const struct run *run)
{
	struct text *line = &page->cell;

	text_clear(line);
	append_target(line, &run->info);
	if (run->info.target.core) {
		append_count(line, run->stats.samples, "thread");
		text_puts(line, " · ");
		append_core(line, &run->info.target);
	} else {
		text_printf(line, "%.1f s · ", stats_wall_s(&run->stats));
		append_count(line, run->stats.samples, "sample");
		append_share(line, loss_percent(&run->stats), "lost");
	}
	if (run->info.target.command_line) {
		text_puts(line, " · ");
		append_command_line(line, &run->info.target);
	}
	summary_page_line(page, "");
}

static void print_run_lines(struct summary_page *page, const struct run *runs, uint32_t nr_runs)
{
	uint32_t nr_shown = nr_runs;

	if (nr_shown > page->artefact->options.max_rows)
		nr_shown = page->artefact->options.max_rows;
	for (uint32_t i = 0; i < nr_shown; i++)
		print_run_line(page, &runs[i]);
	if (nr_shown < nr_runs) {
		text_printf(&page->cell, "… and %" PRIu32 " more", nr_runs - nr_shown);
		summary_page_line(page, SUMMARY_DIM);
	}
	text_puts(&page->out, "\n");
}

static void print_runs(struct summary_page *page, const struct run *runs, uint32_t nr_runs)
{
	const struct artefact *artefact = page->artefact;
	bool is_only = artefact->nr_runs == 1 && !artefact->has_base;

	if (nr_runs > MAX_WHOLE_RUNS) {
		print_run_lines(page, runs, nr_runs);
		return;
	}
	for (uint32_t i = 0; i < nr_runs; i++)
		print_run(page, &runs[i], is_only);
}

static uint64_t samples_taken(const struct run *runs, uint32_t nr_runs)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < nr_runs; i++)
		nr += runs[i].stats.samples;
	return nr;
}

/* Append "12 of 2000 samples · 2.000 s" for one side. */
static void append_shown(struct summary_page *page, enum profile_side side)
{
	const struct artefact *artefact = page->artefact;
	const struct profile_sums *sums = profile_sums(artefact->profile, side);
	uint64_t nr_taken = side == PROFILE_SHOWN
				    ? samples_taken(artefact->runs, artefact->nr_runs)
				    : samples_taken(artefact->base_runs, artefact->nr_base_runs);

	if (sums->account.nr_shown < nr_taken)
		text_printf(&page->cell, "%" PRIu64 " of ", sums->account.nr_shown);
	if (profile_mode_is_time(profile_mode(artefact->profile))) {
		append_count(&page->cell, nr_taken, "sample");
		text_puts(&page->cell, " · ");
	}
	summary_page_amount(page, sums->time_ns);
}

/* Whether the page shows something other than all of one run. */
static bool is_part(const struct artefact *artefact)
{
	const struct profile_sums *sums = profile_sums(artefact->profile, PROFILE_SHOWN);

	return artefact->nr_runs > 1 || artefact->has_base ||
	       sums->account.nr_samples < samples_taken(artefact->runs, artefact->nr_runs);
}

static void print_shown(struct summary_page *page)
{
	const struct artefact *artefact = page->artefact;
	const enum profile_mode mode = profile_mode(artefact->profile);

	text_puts(&page->cell, "shown: ");
	append_shown(page, PROFILE_SHOWN);
	if (artefact->has_base) {
		text_puts(&page->cell, ", compared with ");
		append_shown(page, PROFILE_BASE);
	}
	if (profile_mode_is_time(mode))
		text_printf(&page->cell, " of %s", profile_mode_time(mode));
	if (!artefact->has_base &&
	    profile_mode_is_time(mode)) { /* else they are those of both sides */
		text_puts(&page->cell, " · ");
		append_count(&page->cell, profile_nr_threads(artefact->profile), "thread");
	}
	summary_page_line(page, "");
	text_puts(&page->out, "\n");
}

static void print_caveats(struct summary_page *page)
{
	text_clear(&page->cell);
	caveats_append(&page->cell, page->artefact);
	if (!page->cell.length)
		return;
	summary_page_line(page, "");
	text_puts(&page->out, "\n");
}

/*
 * Print what was sampled and how: a few lines for each run, or one if there are many. Then print
 * which part of it is shown, unless that is all of one run, and the caveats.
 */
static void print_header(struct summary_page *page)
{
	const struct artefact *artefact = page->artefact;

	print_runs(page, artefact->runs, artefact->nr_runs);
	if (artefact->has_base) {
		text_clear(&page->cell);
		text_puts(&page->cell, "compared with");
		summary_page_line(page, SUMMARY_DIM);
		print_runs(page, artefact->base_runs, artefact->nr_base_runs);
	}
	if (is_part(artefact))
		print_shown(page);
	print_caveats(page);
}

/* The parts below it. */

/* Explain why there is no table: no samples, or none that the mode shows. */
static void print_empty(struct summary_page *page)
{
	const struct artefact *artefact = page->artefact;
	const struct profile_account *account =
		&profile_sums(artefact->profile, PROFILE_SHOWN)->account;
	const uint64_t nr_taken = samples_taken(artefact->runs, artefact->nr_runs);

	if (account->nr_idle && account->nr_samples < nr_taken)
		text_puts(&page->out,
			  "all samples selected are of threads that waited: use --idle\n");
	else if (account->nr_idle)
		text_puts(&page->out, "all threads waited all the time: use --idle\n");
	else
		text_puts(&page->out, nr_taken ? "no samples of this mode\n" : "no samples\n");
}

static bool is_empty(const struct artefact *artefact)
{
	return !profile_sums(artefact->profile, PROFILE_SHOWN)->account.nr_shown &&
	       !(artefact->has_base &&
		 profile_sums(artefact->profile, PROFILE_BASE)->account.nr_shown);
}

/* Print the parts that were requested, a function above the tree; without any the table. */
static int print_body(struct summary_page *page)
{
	const struct artefact_options *options = &page->artefact->options;
	int err = 0;

	if (options->explain)
		err = summary_explain_print(page, options->explain);
	if (!err && options->explain && options->tree)
		text_puts(&page->out, "\n");
	if (!err && options->tree)
		err = summary_tree_print(page);
	if (err || options->explain || options->tree)
		return err;
	if (page->artefact->has_base)
		return summary_diff_print(page);
	err = summary_processes_print(page);
	return err ? err : summary_table_print(page);
}

int summary_write(const struct artefact *artefact, FILE *out)
{
	struct summary_page page = {.artefact = artefact};
	int err = 0;

	print_header(&page);
	if (is_empty(artefact))
		print_empty(&page);
	else
		err = print_body(&page);
	if (!err)
		err = page.cell.error ? page.cell.error : text_write(&page.out, out);
	if (!err && fflush(out))
		err = -errno;
	summary_page_done(&page);
	return err;
}
