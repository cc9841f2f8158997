/* SPDX-License-Identifier: MIT */
#include "output/caveats.h"

#include <stdbool.h>

static uint32_t count_user_only(const struct run *runs, uint32_t nr_runs)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < nr_runs; i++)
		nr += runs[i].info.native.user_cpu_only;
	return nr;
}

static bool append_user_only(struct text *text, const struct artefact *artefact)
{
	const uint32_t nr_runs = artefact->nr_runs + artefact->nr_base_runs;
	const uint32_t nr = count_user_only(artefact->runs, artefact->nr_runs) +
			    count_user_only(artefact->base_runs, artefact->nr_base_runs);

	if (!nr)
		return false;
	text_puts(text, "user CPU only");
	if (nr < nr_runs)
		text_puts(text, " in some runs");
	return true;
}

static void append_in_jit(struct text *text, const struct profile_account *account)
{
	const double percent = 100.0 * (double)account->nr_in_jit / (double)account->nr_shown;

	if (percent < 0.1)
		text_puts(text, "<0.1%");
	else
		text_printf(text, "%.1f%%", percent);
	text_puts(text, " of samples ran in JIT code: their lines may be some statements late");
}

void caveats_append(struct text *text, const struct artefact *artefact)
{
	const struct profile_account *account =
		&profile_sums(artefact->profile, PROFILE_SELF)->account;
	const bool is_said = append_user_only(text, artefact);

	if (!account->nr_in_jit)
		return;
	text_puts(text, is_said ? " · " : "");
	append_in_jit(text, account);
}
