/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "output/formats/collapsed.h"
#include "output/recording/recorder.h"
#include "output/recording/replay.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/processes.h"

#define NR(array)  (sizeof(array) / sizeof((array)[0]))
#define NS_PER_MS  1000000u
#define EPOCH_NS   UINT64_C(1000000000000)
#define ALL	   ((struct replay_filter){0})
#define ON_CPU	   (SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU)
#define MAX_FRAMES 8

static const struct function functions[] = {
	{0, 10, "main", "app.py", FUNCTION_PYTHON},	{1, 20, "fib", "app.py", FUNCTION_PYTHON},
	{2, 30, "leaf", "lib.py", FUNCTION_PYTHON},	{3, 40, "loop", "pool.py", FUNCTION_PYTHON},
	{4, 0, SAMPLE_GC_NAME, "", FUNCTION_COLLECTOR},
};

/* One sample. Its stack is written as digits, the indices of the functions. */
struct one {
	unsigned ms; /* after the first sample */
	unsigned thread;
	const char *stack;
	uint32_t flags;
};

/* Two threads in two seconds. */
static const struct one plain[] = {
	{0, 0, "0", SAMPLE_HOLDS_GIL | ON_CPU},
	{0, 1, "3", SAMPLE_CPU_MEASURED | SAMPLE_IDLE},
	{500, 0, "01", SAMPLE_HOLDS_GIL | ON_CPU},
	{500, 1, "", SAMPLE_CPU_MEASURED | SAMPLE_IDLE},
	{1000, 0, "0112", ON_CPU | SAMPLE_EXCEPTION | SAMPLE_IN_JIT},
	{1000, 1, "32", SAMPLE_HOLDS_GIL | ON_CPU},
	{1500, 0, "014", SAMPLE_HOLDS_GIL | ON_CPU | SAMPLE_GC},
	{2000, 0, "0112", 0},
};

static const struct sample_thread threads[] = {
	{.id = 0, .slot = 0, .tid = 100, .name = "python3", .is_main = true},
	{.id = 1, .slot = 1, .tid = 101, .name = "worker"},
};

static int memory_file(void)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	cr_assert(fd >= 0);
	return fd;
}

static void push(struct recorder *recorder, const struct one *one)
{
	struct sample_sink *sink = recorder_sink(recorder);
	struct frame frames[MAX_FRAMES];
	uint32_t nr = 0;

	for (; one->stack[nr]; nr++)
		frames[nr] = (struct frame){&functions[one->stack[nr] - '0'], (int32_t)nr + 1};
	cr_assert(eq(
		int,
		sink->ops->sample(
			sink,
			&(struct sample){.time_ns = EPOCH_NS + (uint64_t)one->ms * NS_PER_MS,
					 .wall_ns = NS_PER_MS,
					 .cpu_ns = one->flags & SAMPLE_ON_CPU ? NS_PER_MS / 2 : 0,
					 .thread = &threads[one->thread],
					 .frames = frames,
					 .nr_frames = nr,
					 .flags = one->flags}),
		0));
	if (sink->ops->tick)
		cr_assert(eq(int, sink->ops->tick(sink, one->ms * UINT64_C(1000000)), 0));
}

/* Record these samples as process pid, whose main thread is renamed at the end. */
static struct recording *record(const struct one *ones, size_t nr, pid_t pid)
{
	const struct run run = {
		.info = {.target.pid = pid, .engine = "preempt", .mode = PROFILE_WALL}};
	struct sample_thread renamed = threads[0];
	struct recorder *recorder;
	struct recording *recording;
	struct message message = {0};
	int fd = memory_file(); /* open until the test ends */

	cr_assert(eq(int, recorder_create(fd, &run, &recorder), 0));
	cr_assert(eq(int, record_process(recorder, pid, "app"), 0));
	for (size_t i = 0; i < nr; i++)
		push(recorder, &ones[i]);
	(void)snprintf(renamed.name, sizeof(renamed.name), "MainThread");
	recorder_sink(recorder)->ops->renamed(recorder_sink(recorder), &renamed);
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);
	cr_assert(eq(int, recording_open(fd, &recording, &message), 0), "%s", message.text);
	return recording;
}

static struct profile *new_profile(struct profile_options options)
{
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	return profile;
}

/* Replay the recording into one side, and close it. */
static void play(struct recording *recording, const struct replay_filter *filter,
		 struct profile *profile, enum profile_side side)
{
	cr_assert(eq(int, replay(recording, filter, profile, side), 0));
	recording_close(recording);
}

static char *collapsed(const struct profile *profile)
{
	const struct artefact artefact = {.profile = profile};
	size_t size;

	return artefact_text(collapsed_write, &artefact, &size);
}

/* Record plain, replay it, and return the collapsed stacks. */
static char *played(const struct replay_filter *filter, struct profile_options options)
{
	struct profile *profile = new_profile(options);
	char *text;

	play(record(plain, NR(plain), 7), filter, profile, PROFILE_SHOWN);
	text = collapsed(profile);
	profile_destroy(profile);
	return text;
}

#define MAIN "main (app.py:10)"
#define FIB  MAIN ";fib (app.py:20)"
#define LEAF FIB ";fib (app.py:20);leaf (lib.py:30)"
#define LOOP "loop (pool.py:40)"

Test(replay, applies_each_profile_option)
{
	static const struct {
		struct profile_options options;
		const char *expected;
	} cases[] = {
		{{0},
		 MAIN " 1\n" LOOP " 1\n" FIB " 1\n" LEAF " 2\n" LOOP ";leaf (lib.py:30) 1\n" FIB
		      ";<GC> 1\n[no python frames] 1\n"},
		{{.by_line = true},
		 "main (app.py:1) 1\nloop (pool.py:1) 1\nmain (app.py:1);fib (app.py:2) 1\n"
		 "main (app.py:1);fib (app.py:2);fib (app.py:3);leaf (lib.py:4) 2\n"
		 "loop (pool.py:1);leaf (lib.py:2) 1\nmain (app.py:1);fib (app.py:2);<GC> 1\n"
		 "[no python frames] 1\n"},
		{{.by_thread = true},
		 "thread MainThread (100);" MAIN " 1\n"
		 "thread worker (101);[no python frames] 1\nthread worker (101);" LOOP " 1\n"
		 "thread MainThread (100);" FIB " 1\nthread MainThread (100);" LEAF " 2\n"
		 "thread worker (101);" LOOP ";leaf (lib.py:30) 1\n"
		 "thread MainThread (100);" FIB ";<GC> 1\n"},
		{{.mode = PROFILE_CPU},
		 MAIN " 500\n" FIB " 500\n" LEAF " 500\n" LOOP ";leaf (lib.py:30) 500\n" FIB
		      ";<GC> 500\n"},
		{{.mode = PROFILE_EXCEPTION}, LEAF " 1\n"},
		{{.max_nodes = 5}, MAIN " 1\n" LOOP " 1\n[other stacks] 5\n[no python frames] 1\n"},
		{{.max_nodes = 6, .by_thread = true},
		 "thread MainThread (100);" MAIN " 1\nthread worker (101);[no python frames] 1\n"
		 "[other stacks] 6\n"},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		cleanup_free char *text = played(&ALL, cases[i].options);

		cr_expect(eq(str, text, (char *)cases[i].expected), "case %zu", i);
	}
}

Test(replay, applies_filters)
{
	static const char *const worker[] = {"worker"}, *const tid[] = {"100"};
	static const char *const final_name[] = {"MainThread"}, *const first_name[] = {"python3"};
	static const char *const both[] = {"worker", "100"};
	static const char *const other_pid[] = {"8"}, *const pids[] = {"8", "7"};
	static const char *const glob[] = {"a*"}, *const part[] = {"ap"};
	static const struct {
		struct replay_filter filter;
		const char *include, *exclude;
		const char *expected;
	} cases[] = {
		{.filter = {.from_ns = 1500 * (int64_t)NS_PER_MS},
		 .expected = FIB ";<GC> 1\n" LEAF " 1\n"},
		{.filter = {.to_ns = 500 * (int64_t)NS_PER_MS},
		 .expected = MAIN " 1\n" LOOP " 1\n"},
		{.filter = {.from_ns = 500 * (int64_t)NS_PER_MS, .to_ns = 501 * (int64_t)NS_PER_MS},
		 .expected = FIB " 1\n[no python frames] 1\n"},
		{.filter = {.from_ns = -500 * (int64_t)NS_PER_MS},
		 .expected = FIB ";<GC> 1\n" LEAF " 1\n"},
		{.filter = {.to_ns = -1500 * (int64_t)NS_PER_MS},
		 .expected = MAIN " 1\n" LOOP " 1\n"},
		{.filter = {.from_ns = -10000 * (int64_t)NS_PER_MS,
			    .to_ns = -1500 * (int64_t)NS_PER_MS},
		 .expected = MAIN " 1\n" LOOP " 1\n"},
		{.filter = {.processes = {glob, 1}, .flags_set = SAMPLE_EXCEPTION},
		 .expected = LEAF " 1\n"},
		{.filter = {.processes = {part, 1}}, .expected = ""},
		{.filter = {.threads = {worker, 1}},
		 .expected = LOOP " 1\n" LOOP ";leaf (lib.py:30) 1\n[no python frames] 1\n"},
		{.filter = {.threads = {tid, 1}, .flags_set = SAMPLE_GC},
		 .expected = FIB ";<GC> 1\n"},
		{.filter = {.threads = {final_name, 1}, .flags_set = SAMPLE_GC},
		 .expected = FIB ";<GC> 1\n"},
		{.filter = {.threads = {first_name, 1}}, .expected = ""},
		{.filter = {.threads = {both, 2}, .flags_set = SAMPLE_HOLDS_GIL},
		 .expected = MAIN " 1\n" FIB " 1\n" LOOP ";leaf (lib.py:30) 1\n" FIB ";<GC> 1\n"},
		{.filter = {.processes = {other_pid, 1}}, .expected = ""},
		{.filter = {.processes = {pids, 2}, .flags_set = SAMPLE_EXCEPTION},
		 .expected = LEAF " 1\n"},
		{.filter = {.flags_clear = SAMPLE_HOLDS_GIL},
		 .expected = LOOP " 1\n" LEAF " 2\n[no python frames] 1\n"},
		{.filter = {.flags_set = SAMPLE_ON_CPU, .flags_clear = SAMPLE_HOLDS_GIL},
		 .expected = LEAF " 1\n"},
		{.filter = {.flags_set = SAMPLE_IN_JIT}, .expected = LEAF " 1\n"},
		{.filter = {.flags_clear = SAMPLE_IDLE, .from_ns = 1000 * (int64_t)NS_PER_MS},
		 .expected = LEAF " 2\n" LOOP ";leaf (lib.py:30) 1\n" FIB ";<GC> 1\n"},
		{.filter = {.flags_set = SAMPLE_IDLE},
		 .expected = LOOP " 1\n[no python frames] 1\n"},
		{.filter = {.flags_set = SAMPLE_IDLE, .flags_clear = SAMPLE_IDLE}, .expected = ""},
		{.include = "^leaf \\(lib.py:30\\)$",
		 .expected = LEAF " 2\n" LOOP ";leaf (lib.py:30) 1\n"},
		{.include = "^(loop|fib) ",
		 .exclude = "^leaf",
		 .expected = LOOP " 1\n" FIB " 1\n" FIB ";<GC> 1\n"},
		{.exclude = "app\\.py",
		 .expected = LOOP " 1\n" LOOP ";leaf (lib.py:30) 1\n"
				  "[no python frames] 1\n"},
		{.include = "nobody", .expected = ""},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct replay_filter filter = cases[i].filter;
		regex_t include, exclude;
		cleanup_free char *text = NULL;

		if (cases[i].include) {
			cr_assert(eq(int, regcomp(&include, cases[i].include, REG_EXTENDED), 0));
			filter.include = &include;
		}
		if (cases[i].exclude) {
			cr_assert(eq(int, regcomp(&exclude, cases[i].exclude, REG_EXTENDED), 0));
			filter.exclude = &exclude;
		}
		text = played(&filter, (struct profile_options){0});
		cr_expect(eq(str, text, (char *)cases[i].expected), "case %zu", i);
		if (filter.include)
			regfree(&include);
		if (filter.exclude)
			regfree(&exclude);
	}
}

/* A recording, and the profile made of it, count what the mode hides. */
Test(replay, waiting_threads_are_hidden_and_counted)
{
	struct profile *profile = new_profile((struct profile_options){.mode = PROFILE_BUSY});
	const struct profile_account *account = &profile_sums(profile, PROFILE_SHOWN)->account;
	cleanup_free char *text = NULL;

	play(record(plain, NR(plain), 7), &ALL, profile, PROFILE_SHOWN);
	text = collapsed(profile);
	cr_expect(eq(str, text,
		     (char *)MAIN " 1\n" FIB " 1\n" LEAF " 2\n" LOOP ";leaf (lib.py:30) 1\n" FIB
				  ";<GC> 1\n"));
	cr_expect(eq(u64, account->nr_samples, NR(plain)));
	cr_expect(eq(u64, account->nr_shown, NR(plain) - 2));
	cr_expect(eq(u64, account->nr_idle, 2));
	cr_expect(eq(u64, account->idle_ns, 2 * NS_PER_MS));
	cr_expect(eq(u64, account->nr_idle_threads, 1));
	profile_destroy(profile);
}

/* A stack that does not fit adds neither rows nor functions. */
Test(replay, full_profile_adds_no_function)
{
	static const struct one full[] = {
		{0, 0, "0", 0}, {1, 0, "1", 0}, {2, 0, "2", 0},
		{3, 0, "3", 0}, {4, 0, "4", 0}, {5, 0, "1", 0},
	};
	struct profile *profile = new_profile((struct profile_options){.max_nodes = 5});
	cleanup_free char *text = NULL;
	uint32_t nr;

	play(record(full, NR(full), 7), &ALL, profile, PROFILE_SHOWN);
	text = collapsed(profile);
	cr_expect(eq(str, text, (char *)MAIN " 1\nfib (app.py:20) 2\n[other stacks] 3\n"));
	(void)profile_functions(profile, &nr);
	cr_expect(eq(u32, nr, 3));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->nr_other_samples, 3));
	profile_destroy(profile);
}

/* With a row per line, patterns match the label with that line. */
Test(replay, patterns_match_lines)
{
	struct replay_filter filter = {0};
	regex_t include;
	cleanup_free char *text = NULL;

	cr_assert(eq(int, regcomp(&include, "^fib \\(app.py:3\\)$", REG_EXTENDED), 0));
	filter.include = &include;
	text = played(&filter, (struct profile_options){.by_line = true});
	cr_expect(eq(str, text,
		     (char *)"main (app.py:1);fib (app.py:2);fib (app.py:3);leaf (lib.py:4) 2\n"));
	regfree(&include);
}

/* Samples that the filter rejects leave no trace; the others are in the accounts. */
Test(replay, rejected_samples_leave_no_trace)
{
	static const char *const worker[] = {"worker"};
	const struct replay_filter filter = {.threads = {worker, 1}};
	struct profile *profile = new_profile((struct profile_options){.keep_threads = true});
	const struct profile_sums *sums = profile_sums(profile, PROFILE_SHOWN);
	uint32_t nr;

	play(record(plain, NR(plain), 7), &filter, profile, PROFILE_SHOWN);
	cr_expect(eq(u64, sums->account.nr_samples, 3));
	cr_expect(eq(u64, sums->account.nr_shown, 3));
	cr_expect(eq(u64, sums->account.wall_ns, 3 * NS_PER_MS));
	cr_expect(eq(u64, sums->account.cpu_ns, NS_PER_MS / 2));
	cr_expect(eq(u64, sums->nr_frameless, 1));
	(void)profile_functions(profile, &nr);
	cr_expect(eq(u32, nr, 2));
	(void)profile_threads(profile, &nr);
	cr_expect(eq(u32, nr, 1));
	cr_expect(eq(u64, profile_nr_threads(profile), 1));
	profile_destroy(profile);
}

Test(replay, keeps_the_order_of_the_file)
{
	struct profile *profile = new_profile((struct profile_options){.keep_samples = true});
	const struct profile_sample *samples;
	const struct profile_thread *rows;
	const struct profile_process *processes;
	uint32_t nr, nr_threads, nr_processes;

	play(record(plain, NR(plain), 7), &ALL, profile, PROFILE_SHOWN);
	samples = profile_samples(profile, &nr);
	rows = profile_threads(profile, &nr_threads);
	processes = profile_processes(profile, &nr_processes);
	cr_assert(eq(u32, nr, NR(plain)));
	cr_assert(eq(u32, nr_threads, 2));
	cr_assert(eq(u32, nr_processes, 1));
	cr_expect(eq(int, processes[0].pid, 7));
	cr_expect(eq(str, processes[0].command_line, (char *)"app"));
	for (uint32_t i = 0; i < nr; i++) {
		cr_expect(eq(u64, samples[i].time_ns - samples[0].time_ns,
			     (uint64_t)plain[i].ms * NS_PER_MS));
		cr_expect(eq(int, rows[samples[i].thread].tid, threads[plain[i].thread].tid));
		cr_expect(eq(u32, samples[i].flags, plain[i].flags));
		cr_expect(eq(u64, samples[i].weight_ns, NS_PER_MS));
		cr_expect(eq(int, samples[i].node == PROFILE_NONE, plain[i].stack[0] == '\0'));
	}
	cr_expect(eq(str, (char *)rows[samples[0].thread].name, (char *)"MainThread"));
	profile_destroy(profile);
}

Test(replay, merges_recordings_of_one_process)
{
	static const struct {
		pid_t second;
		uint32_t nr_processes, nr_threads;
	} cases[] = {{7, 1, 2}, {8, 2, 4}};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile =
			new_profile((struct profile_options){.keep_threads = true});
		uint32_t nr;
		cleanup_free char *text = NULL;

		play(record(plain, NR(plain), 7), &ALL, profile, PROFILE_SHOWN);
		play(record(plain, 3, cases[i].second), &ALL, profile, PROFILE_SHOWN);
		(void)profile_processes(profile, &nr);
		cr_expect(eq(u32, nr, cases[i].nr_processes));
		(void)profile_threads(profile, &nr);
		cr_expect(eq(u32, nr, cases[i].nr_threads));
		cr_expect(eq(u64, profile_nr_threads(profile), cases[i].nr_threads));
		text = collapsed(profile);
		cr_expect(eq(str, text,
			     (char *)MAIN " 2\n" LOOP " 2\n" FIB " 2\n" LEAF " 2\n" LOOP
					  ";leaf (lib.py:30) 1\n" FIB
					  ";<GC> 1\n[no python frames] 1\n"));
		profile_destroy(profile);
	}
}

/* The weight of the node of a stack, given as its functions' names. */
static struct profile_weight weight_of(const struct profile *profile, enum profile_side side,
				       const char *stack)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(profile, &nr);
	const struct profile_frame *frames = profile_frames(profile, &nr);
	const struct profile_function *rows = profile_functions(profile, &nr);

	(void)profile_nodes(profile, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		char text[256] = "";

		for (uint32_t at = i; at != PROFILE_NONE; at = nodes[at].parent) {
			char longer[256];

			(void)snprintf(longer, sizeof(longer), "%.100s %.100s",
				       rows[frames[nodes[at].frame].function].qualname, text);
			(void)snprintf(text, sizeof(text), "%s", longer);
		}
		if (strcmp(text, stack) == 0)
			return profile_weight(profile, side, i);
	}
	return (struct profile_weight){99, 99};
}

Test(replay, compares_two_recordings)
{
	static const struct one base[] = {{0, 0, "0", 0}, {1, 0, "04", 0}, {2, 0, "01", 0}};
	struct profile *profile = new_profile((struct profile_options){0});

	play(record(plain, NR(plain), 7), &ALL, profile, PROFILE_SHOWN);
	play(record(base, NR(base), 8), &ALL, profile, PROFILE_BASE);
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->account.nr_shown, NR(plain)));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_BASE)->account.nr_shown, NR(base)));
	cr_expect(eq(u64, weight_of(profile, PROFILE_SHOWN, "main ").samples, 1));
	cr_expect(eq(u64, weight_of(profile, PROFILE_BASE, "main ").samples, 1));
	cr_expect(eq(u64, weight_of(profile, PROFILE_SHOWN, "main <GC> ").samples, 0));
	cr_expect(eq(u64, weight_of(profile, PROFILE_BASE, "main <GC> ").samples, 1));
	cr_expect(eq(u64, weight_of(profile, PROFILE_BASE, "main fib ").ns, NS_PER_MS));
	cr_expect(eq(u64, weight_of(profile, PROFILE_BASE, "main fib fib leaf ").samples, 0));
	profile_destroy(profile);
}

/* The base's threads, of another process, are matched by name. */
Test(replay, compares_two_recordings_by_thread)
{
	struct profile *profile = new_profile((struct profile_options){.by_thread = true});
	uint32_t nr_before, nr;

	play(record(plain, NR(plain), 7), &ALL, profile, PROFILE_SHOWN);
	(void)profile_nodes(profile, &nr_before);
	play(record(plain, NR(plain), 8), &ALL, profile, PROFILE_BASE);
	(void)profile_nodes(profile, &nr);
	cr_expect(eq(u32, nr, nr_before));
	(void)profile_base(profile, &nr);
	cr_expect(eq(u32, nr, nr_before));
	profile_destroy(profile);
}

Test(replay, recursion_counts_once)
{
	struct profile *profile = new_profile((struct profile_options){0});
	const struct profile_function *rows;
	const struct profile_frame *frames;
	struct profile_total *totals;
	uint32_t nr;

	play(record(plain, NR(plain), 7), &ALL, profile, PROFILE_SHOWN);
	cr_assert(eq(int, profile_totals(profile, PROFILE_SHOWN, &totals), 0));
	rows = profile_functions(profile, &nr);
	frames = profile_frames(profile, &nr);
	for (uint32_t i = 0; i < nr; i++)
		if (strcmp(rows[frames[i].function].qualname, "fib") == 0) {
			cr_expect(eq(u64, totals[i].self_ns, NS_PER_MS));
			cr_expect(eq(u64, totals[i].total_ns, 4 * NS_PER_MS));
		}
	free(totals);
	profile_destroy(profile);
}

/* After an exec, another sampler gives a thread another id. */
Test(replay, main_thread_continues_after_an_exec)
{
	const struct frame frames[] = {{&functions[0], 1}, {&functions[2], 2}};
	const struct run run = {0};
	struct sample_thread again = threads[0];
	struct profile *profile = new_profile((struct profile_options){.by_thread = true});
	struct recorder *recorder;
	struct recording *recording;
	struct sample_sink *sink;
	int fd = memory_file();
	uint32_t nr;
	cleanup_free char *text = NULL;

	again.id = 9;
	cr_assert(eq(int, recorder_create(fd, &run, &recorder), 0));
	cr_assert(eq(int, record_process(recorder, 7, "app"), 0));
	push(recorder, &plain[0]);
	sink = recorder_sink(recorder);
	cr_assert(eq(int,
		     sink->ops->sample(sink, &(struct sample){.time_ns = EPOCH_NS + NS_PER_MS,
							      .wall_ns = NS_PER_MS,
							      .thread = &again,
							      .frames = frames,
							      .nr_frames = 2}),
		     0));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);
	cr_assert(eq(int, recording_open(fd, &recording, NULL), 0));
	play(recording, &ALL, profile, PROFILE_SHOWN);
	(void)profile_threads(profile, &nr);
	cr_expect(eq(u32, nr, 1));
	text = collapsed(profile);
	cr_expect(eq(str, text,
		     (char *)"thread python3 (100);" MAIN " 1\n"
			     "thread python3 (100);" MAIN ";leaf (lib.py:30) 1\n"));
	profile_destroy(profile);
}

/* Make a stack that shares *ret_kept outer frames with the previous one. */
static uint32_t next_stack(struct frame *frames, uint32_t nr, unsigned *seed, uint32_t *ret_kept)
{
	const uint32_t kept = nr ? (uint32_t)rand_r(seed) % (nr + 1) : 0;

	*ret_kept = kept;
	for (nr = kept; nr < MAX_FRAMES && rand_r(seed) % 3; nr++)
		frames[nr] = (struct frame){&functions[rand_r(seed) % NR(functions)],
					    1 + rand_r(seed) % 3};
	return nr;
}

enum { NR_SAMPLES = 3000 };

/* Pass the same random samples to both sinks. */
static void push_random_samples(struct sample_sink *const sinks[2])
{
	struct frame frames[NR(threads)][MAX_FRAMES];
	uint32_t nr[NR(threads)] = {0};
	unsigned seed = 1;

	for (unsigned k = 0; k < NR_SAMPLES; k++) {
		const unsigned t = k % NR(threads);
		struct sample sample = {
			.time_ns = EPOCH_NS + (uint64_t)(k / NR(threads)) * NS_PER_MS,
			.wall_ns = NS_PER_MS,
			.cpu_ns = 1000u * ((unsigned)rand_r(&seed) % 3),
			.thread = &threads[t],
			.frames = frames[t],
			.flags = SAMPLE_CPU_MEASURED | (rand_r(&seed) % 2 ? SAMPLE_HOLDS_GIL : 0),
		};

		if (sample.cpu_ns)
			sample.flags |= SAMPLE_ON_CPU;
		nr[t] = next_stack(frames[t], nr[t], &seed, &sample.nr_unchanged);
		sample.nr_frames = nr[t];
		for (size_t s = 0; s < 2; s++)
			cr_assert(eq(int, sinks[s]->ops->sample(sinks[s], &sample), 0));
	}
}

/* Samples give the same profile directly and through a recording. */
Test(replay, agrees_with_direct_profiling)
{
	static const struct profile_options cases[] = {
		{0},
		{.by_line = true},
		{.by_thread = true},
		{.mode = PROFILE_CPU},
		{.mode = PROFILE_GIL, .by_thread = true},
		{.by_line = true, .max_nodes = 100},
		{.by_thread = true, .max_nodes = 100},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct run run = {.info = {.engine = "preempt", .mode = cases[i].mode}};
		struct profile *direct = new_profile(cases[i]), *replayed = new_profile(cases[i]);
		struct recorder *recorder;
		struct recording *recording;
		int fd = memory_file();
		cleanup_free char *expected = NULL, *text = NULL;

		cr_assert(eq(int, recorder_create(fd, &run, &recorder), 0));
		cr_assert(eq(int, record_process(recorder, 7, "app"), 0));
		push_random_samples((struct sample_sink *const[]){profile_sink(direct),
								  recorder_sink(recorder)});
		cr_expect(eq(u64, recorder_sums(recorder)->time_ns,
			     profile_sums(direct, PROFILE_SHOWN)->time_ns));
		cr_assert(eq(int, recorder_finish(recorder, &run), 0));
		recorder_destroy(recorder);
		cr_assert(eq(int, recording_open(fd, &recording, NULL), 0));
		play(recording, &ALL, replayed, PROFILE_SHOWN);
		cr_expect(
			eq(int,
			   memcmp(profile_sums(replayed, PROFILE_SHOWN),
				  profile_sums(direct, PROFILE_SHOWN), sizeof(struct profile_sums)),
			   0),
			"case %zu", i);
		expected = collapsed(direct);
		text = collapsed(replayed);
		cr_expect(eq(str, text, expected), "case %zu", i);
		profile_destroy(direct);
		profile_destroy(replayed);
	}
}

Test(replay, empty_recording_is_valid)
{
	struct profile *profile = new_profile((struct profile_options){.keep_samples = true});

	play(record(NULL, 0, 7), &(struct replay_filter){.from_ns = -1}, profile, PROFILE_SHOWN);
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->account.nr_samples, 0));
	profile_destroy(profile);
}
