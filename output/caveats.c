/* SPDX-License-Identifier: MIT */
#include "output/caveats.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "output/run/loss.h"
#include "procmem/clock.h"

/* What the caveats need to know of all runs together. */
struct sums {
	uint32_t nr_runs;
	uint32_t nr_ticked;
	uint32_t nr_inferred;
	uint32_t nr_user_only;
	uint32_t nr_hiding_bursts;
	uint64_t nr_stacks; /* with C frames */
	uint64_t nr_c_gaps, nr_python_gaps;
};

static void add_runs(struct sums *sums, const struct run *runs, uint32_t nr_runs)
{
	sums->nr_runs += nr_runs;
	for (uint32_t i = 0; i < nr_runs; i++) {
		const struct run_native *native = &runs[i].info.native;

		sums->nr_ticked += runs[i].info.engine && strcmp(runs[i].info.engine, "tick") == 0;
		sums->nr_inferred += native->is_inferred;
		sums->nr_user_only += native->user_cpu_only;
		sums->nr_hiding_bursts += loss_hides_bursts(&runs[i].stats);
		sums->nr_stacks += native->nr_stacks;
		sums->nr_c_gaps += native->nr_c_gaps;
		sums->nr_python_gaps += native->nr_python_gaps;
	}
}

/* Separate from an earlier sentence. */
static void append_separator(struct text *text, size_t begin)
{
	if (text->length > begin)
		text_puts(text, " · ");
}

static void append_percent(struct text *text, uint64_t nr, uint64_t nr_all)
{
	const double percent = 100.0 * (double)nr / (double)nr_all;

	if (percent < 0.1)
		text_puts(text, "<0.1%");
	else
		text_printf(text, "%.1f%%", percent);
}

/*
 * Append a sentence that applies to nr of the runs; nothing if nr is 0. " in some runs" is
 * inserted between before and after if it does not apply to all.
 */
static void append_of_runs(struct text *text, size_t begin, const struct sums *sums, uint32_t nr,
			   const char *before, const char *after)
{
	if (!nr)
		return;
	append_separator(text, begin);
	text_puts(text, before);
	if (nr < sums->nr_runs)
		text_puts(text, " in some runs");
	text_puts(text, after);
}

static void append_unknown(struct text *text, const struct sums *sums)
{
	const uint64_t first = sums->nr_python_gaps ? sums->nr_python_gaps : sums->nr_c_gaps;

	append_percent(text, first, sums->nr_stacks);
	text_printf(text, " of stacks have [unknown] for %s frames that could not be proven",
		    sums->nr_python_gaps ? "Python" : "C");
	if (!sums->nr_python_gaps || !sums->nr_c_gaps)
		return;
	text_puts(text, ", ");
	append_percent(text, sums->nr_c_gaps, sums->nr_stacks);
	text_puts(text, " for C frames");
}

void caveats_append_approximate(struct text *text, uint64_t nr, uint64_t nr_all)
{
	if (!nr)
		return;
	text_puts(text, "approximate");
	if (nr < nr_all) {
		text_puts(text, " in part: ");
		append_percent(text, nr, nr_all);
		text_puts(text, " of stacks were read while their threads ran");
	} else {
		text_puts(text, ": stacks were read while their threads ran");
	}
}

void caveats_append_idle(struct text *text, const struct profile_account *account)
{
	if (!account->nr_idle)
		return;
	text_printf(text, "%" PRIu64 " thread%s waited for ", account->nr_idle_threads,
		    text_plural(account->nr_idle_threads));
	text_printf(text,
		    "%.3f s of %.3f s, which is hidden: ", (double)account->idle_ns / NS_PER_S,
		    (double)account->wall_ns / NS_PER_S);
	text_puts(text, account->nr_samples > account->nr_idle
				? "percentages are of the rest; --idle shows all"
				: "none of them was busy; --idle shows all");
}

static void append_in_jit(struct text *text, const struct profile_account *account)
{
	append_percent(text, account->nr_in_jit, account->nr_shown);
	text_puts(text, " of samples ran in JIT code: their lines may be a few statements late");
}

void caveats_append(struct text *text, const struct artefact *artefact)
{
	const struct profile_account *account =
		&profile_sums(artefact->profile, PROFILE_SHOWN)->account;
	const struct profile_account *base =
		&profile_sums(artefact->profile, PROFILE_BASE)->account;
	const size_t begin = text->length;
	struct sums sums = {0};

	if (profile_mode(artefact->profile) == PROFILE_BUSY)
		caveats_append_idle(text, account);
	add_runs(&sums, artefact->runs, artefact->nr_runs);
	add_runs(&sums, artefact->base_runs, artefact->nr_base_runs);
	if (account->nr_approximate + base->nr_approximate)
		append_separator(text, begin);
	caveats_append_approximate(text, account->nr_approximate + base->nr_approximate,
				   account->nr_shown + base->nr_shown);
	append_of_runs(text, begin, &sums, sums.nr_ticked, "sampled at the kernel's tick",
		       ": code in step with the tick is misrepresented");
	append_of_runs(text, begin, &sums, sums.nr_inferred,
		       "C and Python frames are probably of the same instant",
		       ", but this is not proven");
	append_of_runs(text, begin, &sums, sums.nr_user_only, "user CPU only",
		       ": time in the kernel counts for other stacks");
	append_of_runs(text, begin, &sums, sums.nr_hiding_bursts, LOSS_BURSTS_TEXT, "");
	if (sums.nr_stacks && (sums.nr_python_gaps || sums.nr_c_gaps)) {
		append_separator(text, begin);
		append_unknown(text, &sums);
	}
	if (account->nr_in_jit) {
		append_separator(text, begin);
		append_in_jit(text, account);
	}
}
