/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/caveats.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct run user_only = {.info.native = {.is_on = true, .user_cpu_only = true}};
static const struct run whole = {.info.native = {.is_on = true}};

/* Samples without frames, the first ones in the JIT. */
static struct profile *new_profile(uint32_t nr_in_jit, uint32_t nr)
{
	struct profile *profile = profile_create(&(struct profile_options){0});

	cr_assert(profile != NULL);
	for (uint32_t i = 0; i < nr; i++) {
		const struct profile_sample sample = {
			.node = PROFILE_NONE,
			.thread = PROFILE_NONE,
			.flags = i < nr_in_jit ? SAMPLE_IN_JIT : 0,
		};

		cr_assert(eq(int, profile_add(profile, PROFILE_SELF, &sample, true), 0));
	}
	return profile;
}

#define LATE " of samples ran in JIT code: their lines may be some statements late"

Test(caveats, lines)
{
	const struct run mixed[] = {whole, user_only};
	const struct {
		const struct run *runs;
		uint32_t nr_runs;
		const struct run *base_runs;
		uint32_t nr_base_runs;
		uint32_t nr_in_jit, nr_samples;
		const char *expected;
	} cases[] = {
		{&whole, 1, NULL, 0, 0, 10, ""},
		{&whole, 1, NULL, 0, 0, 0, ""},
		{&user_only, 1, NULL, 0, 0, 0, "user CPU only"},
		{mixed, 2, NULL, 0, 0, 10, "user CPU only in some runs"},
		{mixed, 1, mixed + 1, 1, 0, 10, "user CPU only in some runs"},
		{&user_only, 1, &user_only, 1, 0, 10, "user CPU only"},
		{&whole, 1, NULL, 0, 5, 16, "31.2%" LATE},
		{&whole, 1, NULL, 0, 10, 10, "100.0%" LATE},
		{&whole, 1, NULL, 0, 1, 1001, "<0.1%" LATE},
		{&user_only, 1, NULL, 0, 1, 4, "user CPU only · 25.0%" LATE},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = new_profile(cases[i].nr_in_jit, cases[i].nr_samples);
		const struct artefact artefact = {
			.profile = profile,
			.runs = cases[i].runs,
			.nr_runs = cases[i].nr_runs,
			.base_runs = cases[i].base_runs,
			.nr_base_runs = cases[i].nr_base_runs,
		};
		struct text text = {0};

		caveats_append(&text, &artefact);
		cr_expect(eq(str, (char *)text_string(&text), (char *)cases[i].expected),
			  "case %zu", i);
		text_done(&text);
		profile_destroy(profile);
	}
}
