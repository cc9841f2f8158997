/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/caveats.h"
#include "output/run/loss.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct run ticked = {.info.engine = "tick"};
static const struct run by_evidence = {.info.native = {.is_on = true, .is_inferred = true}};
static const struct run user_only = {.info.native = {.is_on = true, .user_cpu_only = true}};
static const struct run whole = {.info.native = {.is_on = true, .nr_stacks = 1000}};
static const struct run python_gaps = {
	.info.native = {.is_on = true, .nr_stacks = 1000, .nr_python_gaps = 84}};
static const struct run c_gaps = {.info.native = {.is_on = true, .nr_stacks = 200, .nr_c_gaps = 1}};
static const struct run late = {.stats = {.samples = 97, .lost = {[LOSS_LATE] = 3}}};
static const struct run hardly_late = {.stats = {.samples = 98, .lost = {[LOSS_LATE] = 2}}};
static const struct run otherwise_lost = {.stats = {.samples = 97, .lost = {[LOSS_MOVED] = 3}}};
/* No sampler writes this, but a file may contain it. */
static const struct run empty = {.info.native = {.is_on = true, .nr_python_gaps = 1}};

/* Add nr samples without frames, the first nr_flagged of them with flag. */
static void add_samples(struct profile *profile, enum profile_side side, uint32_t flag,
			uint32_t nr_flagged, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct profile_sample sample = {
			.node = PROFILE_NONE,
			.thread = PROFILE_NONE,
			.flags = i < nr_flagged ? flag : 0,
		};

		cr_assert(eq(int, profile_add(profile, side, &sample), 0));
	}
}

static struct profile *new_profile(void)
{
	struct profile *profile = profile_create(&(struct profile_options){0});

	cr_assert(profile != NULL);
	return profile;
}

#define IN_KERNEL ": time in the kernel counts for other stacks"
#define IN_STEP	  ": code in step with the tick is misrepresented"
#define BY_EVIDENCE(where) \
	"C and Python frames are probably of the same instant" where "but this is not proven"
#define LATE	      " of samples ran in JIT code: their lines may be a few statements late"
#define UNKNOWN(kind) " of stacks have [unknown] for " kind " frames that could not be proven"

Test(caveats, list_what_limits_the_profile)
{
	const struct run mixed[] = {whole, user_only}, with_gaps[] = {python_gaps, c_gaps};
	const struct run with_evidence[] = {by_evidence, whole};
	const struct run some_late[] = {hardly_late, late};
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
		{&ticked, 1, NULL, 0, 0, 0, "sampled at the kernel's tick" IN_STEP},
		{&ticked, 1, &whole, 1, 0, 10, "sampled at the kernel's tick in some runs" IN_STEP},
		{&by_evidence, 1, NULL, 0, 0, 0, BY_EVIDENCE(", ")},
		{with_evidence, 2, NULL, 0, 0, 10, BY_EVIDENCE(" in some runs, ")},
		{&user_only, 1, NULL, 0, 0, 0, "user CPU only" IN_KERNEL},
		{mixed, 2, NULL, 0, 0, 10, "user CPU only in some runs" IN_KERNEL},
		{mixed, 1, mixed + 1, 1, 0, 10, "user CPU only in some runs" IN_KERNEL},
		{&user_only, 1, &user_only, 1, 0, 10, "user CPU only" IN_KERNEL},
		{&python_gaps, 1, NULL, 0, 0, 10, "8.4%" UNKNOWN("Python")},
		{&c_gaps, 1, NULL, 0, 0, 10, "0.5%" UNKNOWN("C")},
		{with_gaps, 2, NULL, 0, 0, 10, "7.0%" UNKNOWN("Python") ", <0.1% for C frames"},
		{&python_gaps, 1, &c_gaps, 1, 1, 4,
		 "7.0%" UNKNOWN("Python") ", <0.1% for C frames · 25.0%" LATE},
		{&empty, 1, NULL, 0, 0, 10, ""},
		{&late, 1, NULL, 0, 0, 10, LOSS_BURSTS_TEXT},
		{some_late, 2, NULL, 0, 0, 10, LOSS_BURSTS_TEXT " in some runs"},
		{&hardly_late, 1, NULL, 0, 0, 10, ""},
		{&otherwise_lost, 1, NULL, 0, 0, 10, ""},
		{&whole, 1, NULL, 0, 5, 16, "31.2%" LATE},
		{&whole, 1, NULL, 0, 10, 10, "100.0%" LATE},
		{&whole, 1, NULL, 0, 1, 1001, "<0.1%" LATE},
		{&user_only, 1, NULL, 0, 1, 4, "user CPU only" IN_KERNEL " · 25.0%" LATE},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = new_profile();
		const struct artefact artefact = {
			.profile = profile,
			.runs = cases[i].runs,
			.nr_runs = cases[i].nr_runs,
			.base_runs = cases[i].base_runs,
			.nr_base_runs = cases[i].nr_base_runs,
		};
		struct text text = {0};

		add_samples(profile, PROFILE_SHOWN, SAMPLE_IN_JIT, cases[i].nr_in_jit,
			    cases[i].nr_samples);
		caveats_append(&text, &artefact);
		cr_expect(eq(str, (char *)text_string(&text), (char *)cases[i].expected),
			  "case %zu", i);
		text_done(&text);
		profile_destroy(profile);
	}
}

#define READ " of stacks were read while their threads ran"

/* One recording, two merged ones, and a comparison. */
Test(caveats, mention_approximate_stacks)
{
	const struct {
		uint32_t nr_approximate, nr_samples, nr_base_approximate, nr_base_samples;
		const char *expected;
	} cases[] = {
		{0, 10, 0, 0, ""},
		{0, 0, 0, 0, ""},
		{10, 10, 0, 0, "approximate: stacks were read while their threads ran"},
		{7, 10, 0, 0, "approximate in part: 70.0%" READ},
		{1, 1001, 0, 0, "approximate in part: <0.1%" READ},
		{0, 10, 10, 10, "approximate in part: 50.0%" READ},
		{10, 10, 10, 10, "approximate: stacks were read while their threads ran"},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = new_profile();
		const struct artefact artefact = {.profile = profile};
		struct text text = {0};

		add_samples(profile, PROFILE_SHOWN, SAMPLE_APPROXIMATE, cases[i].nr_approximate,
			    cases[i].nr_samples);
		add_samples(profile, PROFILE_BASE, SAMPLE_APPROXIMATE, cases[i].nr_base_approximate,
			    cases[i].nr_base_samples);
		caveats_append(&text, &artefact);
		cr_expect(eq(str, (char *)text_string(&text), (char *)cases[i].expected),
			  "case %zu", i);
		text_done(&text);
		profile_destroy(profile);
	}
}

/* How many threads waited, and how long, if that is hidden. */
Test(caveats, mention_hidden_threads)
{
	static const struct {
		struct profile_account account;
		const char *expected;
	} cases[] = {
		{{.nr_samples = 9, .nr_shown = 9, .wall_ns = 9000000000}, ""},
		{{.nr_samples = 9,
		  .nr_shown = 3,
		  .wall_ns = 9000000000,
		  .nr_idle = 6,
		  .idle_ns = 6500000000,
		  .nr_idle_threads = 2},
		 "2 threads waited for 6.500 s of 9.000 s, which is hidden: percentages are of the "
		 "rest; --idle shows all"},
		{{.nr_samples = 1,
		  .wall_ns = 1000000,
		  .nr_idle = 1,
		  .idle_ns = 1000000,
		  .nr_idle_threads = 1},
		 "1 thread waited for 0.001 s of 0.001 s, which is hidden: none of them was busy; "
		 "--idle shows all"},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct text text = {0};

		caveats_append_idle(&text, &cases[i].account);
		cr_expect(eq(str, (char *)text_string(&text), (char *)cases[i].expected),
			  "case %zu", i);
		text_done(&text);
	}
}
