/* SPDX-License-Identifier: MIT */
#include "cmd/top/top_options.h"

#include <stddef.h>

#include "cmd/option_values.h"
#include "cmd/print.h"
#include "procmem/clock.h"

/* A screen that is read changes each second; a batch has one for each window of recent samples. */
#define SCREEN_INTERVAL_NS NS_PER_S
#define BATCH_INTERVAL_NS  ((uint64_t)5 * NS_PER_S)

/* max_rows without --rows. */
enum { USUAL_ROWS = 30 };

static bool apply_interval(void *options, const char *value)
{
	enum { LEAST_NS = 100000000 };
	uint64_t *interval_ns = &((struct top_options *)options)->interval_ns;

	if (parse_duration(value, interval_ns) && *interval_ns >= LEAST_NS)
		return true;
	print_error("'%s' is not an interval of at least 100ms: use 1, 2.5, 500ms or 1m", value);
	return false;
}

static bool apply_count(void *options, const char *value)
{
	if (parse_count(value, UINT32_MAX - 1, &((struct top_options *)options)->nr_screens))
		return true;
	print_error("'%s' is not a number of screens", value);
	return false;
}

static bool apply_rows(void *options, const char *value)
{
	if (parse_count(value, UINT32_MAX - 1, &((struct top_options *)options)->max_rows))
		return true;
	print_error("'%s' is not a number of rows", value);
	return false;
}

static const struct option_spec screen_options[] = {
	{"interval", "TIME", "time between two screens (default: 1s, with --batch 5s)",
	 .apply = apply_interval},
};

static const struct option_spec batch_options[] = {
	{"batch", NULL, "print screens as text and use no terminal, for scripts", .letter = 'b',
	 .action = OPTION_SETS, .at = offsetof(struct top_options, is_batch)},
	{"json", NULL,
	 "with --batch, print each screen as one JSON object on a line,\n"
	 "with the threads and their stacks",
	 .action = OPTION_SETS, .at = offsetof(struct top_options, is_json)},
	{"count", "N",
	 "with --batch, end after N screens (default: when the process\n"
	 "ends; -n, as in top(1), is --native here)",
	 .letter = 'c', .apply = apply_count},
	{"rows", "N", "with --batch, number of functions; 0: all (default: 30)",
	 .apply = apply_rows},
};

const struct option_group top_options_groups[TOP_OPTIONS_NR_GROUPS] = {
	{"Process:", process_name_option, 1, offsetof(struct top_options, sampling.process_name)},
	{"Sampling:", sampling_rate_options, SAMPLING_NR_RATE_OPTIONS, .at = 0},
	{NULL, wait_option, 1, offsetof(struct top_options, sampling.wait)},
	{NULL, sampling_writing_options, 1, .at = 0},
	{NULL, thread_option, 1, offsetof(struct top_options, sampling.threads)},
	{"Stacks:", sampling_stack_options, SAMPLING_NR_STACK_OPTIONS, .at = 0},
	{NULL, plumbing_option, 1, offsetof(struct top_options, sampling.profile)},
	{NULL, sampling_collector_options, SAMPLING_NR_COLLECTOR_OPTIONS, .at = 0},
	{"Screen:", mode_options, 2, offsetof(struct top_options, sampling.mode)},
	{NULL, row_options, 2, offsetof(struct top_options, sampling.profile)},
	{NULL, screen_options, 1, .at = 0},
	{"Batch:", batch_options, sizeof(batch_options) / sizeof(*batch_options), .at = 0},
	{NULL, quiet_option, 1, offsetof(struct top_options, sampling.quiet)},
};

struct top_options top_options_default(void)
{
	return (struct top_options){
		.sampling = sampling_options_default(),
		.max_rows = USUAL_ROWS,
	};
}

bool top_options_choose(struct top_options *options)
{
	if (!options->is_batch && (options->is_json || options->nr_screens)) {
		print_error("%s requires --batch", options->is_json ? "--json" : "--count");
		return false;
	}
	if (!options->interval_ns)
		options->interval_ns = options->is_batch ? BATCH_INTERVAL_NS : SCREEN_INTERVAL_NS;
	options->sampling.quiet = options->sampling.quiet || !options->is_batch;
	return sampling_options_choose_view(&options->sampling);
}
