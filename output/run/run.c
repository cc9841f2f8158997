/* SPDX-License-Identifier: MIT */
#include "output/run/run.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/run/loss.h"
#include "output/run/stats.h"
#include "procmem/array.h"

enum field_type { FIELD_STRING, FIELD_U64, FIELD_DOUBLE, FIELD_BOOL, FIELD_PID, FIELD_MODE };

/* An item of a run and its place in struct run. */
struct field {
	const char *name;
	enum field_type type;
	size_t offset;
};

static const struct field fields[] = {
	{"pysample", FIELD_STRING, offsetof(struct run, info.pysample.version)},
	{"arguments", FIELD_STRING, offsetof(struct run, info.pysample.arguments)},
	{"host", FIELD_STRING, offsetof(struct run, info.pysample.host)},
	{"start_unix_ns", FIELD_U64, offsetof(struct run, info.start_unix_ns)},
	{"command_line", FIELD_STRING, offsetof(struct run, info.target.command_line)},
	{"pid", FIELD_PID, offsetof(struct run, info.target.pid)},
	{"core", FIELD_STRING, offsetof(struct run, info.target.core)},
	{"death", FIELD_STRING, offsetof(struct run, info.target.death)},
	{"python", FIELD_STRING, offsetof(struct run, info.python.version)},
	{"python_free_threaded", FIELD_BOOL, offsetof(struct run, info.python.free_threaded)},
	{"python_newer_than_tested", FIELD_BOOL,
	 offsetof(struct run, info.python.newer_than_tested)},
	{"runtime_found_by", FIELD_STRING, offsetof(struct run, info.python.runtime_found_by)},
	{"mode", FIELD_MODE, offsetof(struct run, info.mode)},
	{"shown_mode", FIELD_MODE, offsetof(struct run, info.shown_mode)},
	{"engine", FIELD_STRING, offsetof(struct run, info.engine)},
	{"requested_hz", FIELD_DOUBLE, offsetof(struct run, info.requested_hz)},
	{"native", FIELD_BOOL, offsetof(struct run, info.native.is_on)},
	{"sampled_samples", FIELD_U64, offsetof(struct run, info.account.nr_samples)},
	{"sampled_wall_ns", FIELD_U64, offsetof(struct run, info.account.wall_ns)},
	{"sampled_cpu_ns", FIELD_U64, offsetof(struct run, info.account.cpu_ns)},
	{"cpu_measured_samples", FIELD_U64, offsetof(struct run, info.account.nr_cpu_measured)},
	{"shown_samples", FIELD_U64, offsetof(struct run, info.account.nr_shown)},
	{"jit_samples", FIELD_U64, offsetof(struct run, info.account.nr_in_jit)},
	{"states", FIELD_BOOL, offsetof(struct run, info.has_states)},
	{"idle_samples", FIELD_U64, offsetof(struct run, info.account.nr_idle)},
	{"idle_ns", FIELD_U64, offsetof(struct run, info.account.idle_ns)},
	{"idle_threads", FIELD_U64, offsetof(struct run, info.account.nr_idle_threads)},
	{"shown_ns", FIELD_U64, offsetof(struct run, info.shown_ns)},
	{"ticks", FIELD_U64, offsetof(struct run, stats.ticks)},
	{"samples", FIELD_U64, offsetof(struct run, stats.samples)},
	{"approximate", FIELD_U64, offsetof(struct run, stats.approximate)},
	{"cached", FIELD_U64, offsetof(struct run, stats.cached)},
	{"writes", FIELD_U64, offsetof(struct run, stats.writes)},
	{"late_ticks", FIELD_U64, offsetof(struct run, stats.late_ticks)},
	{"failed_ticks", FIELD_U64, offsetof(struct run, stats.failed_ticks)},
	{"p50_lateness_ns", FIELD_U64, offsetof(struct run, stats.p50_lateness_ns)},
	{"p99_lateness_ns", FIELD_U64, offsetof(struct run, stats.p99_lateness_ns)},
	{"max_lateness_ns", FIELD_U64, offsetof(struct run, stats.lateness.max)},
	{"reads", FIELD_U64, offsetof(struct run, stats.reads)},
	{"clock_reads", FIELD_U64, offsetof(struct run, stats.clock_reads)},
	{"clockless_threads", FIELD_U64, offsetof(struct run, stats.clockless)},
	{"rough_clock_threads", FIELD_U64, offsetof(struct run, stats.rough_clocks)},
	{"other_syscalls", FIELD_U64, offsetof(struct run, stats.other_syscalls)},
	{"start_ns", FIELD_U64, offsetof(struct run, stats.start_ns)},
	{"first_sample_ns", FIELD_U64, offsetof(struct run, stats.first_sample_ns)},
	{"end_ns", FIELD_U64, offsetof(struct run, stats.end_ns)},
	{"paused_ns", FIELD_U64, offsetof(struct run, stats.paused_ns)},
	{"active_ns", FIELD_U64, offsetof(struct run, stats.active_ns)},
	{"cpu_user_ns", FIELD_U64, offsetof(struct run, info.resources.cpu_user_ns)},
	{"cpu_sys_ns", FIELD_U64, offsetof(struct run, info.resources.cpu_sys_ns)},
	{"max_rss_kib", FIELD_U64, offsetof(struct run, info.resources.max_rss_kib)},
};

/* Items that only runs with C frames have. */
static const struct field native_fields[] = {
	{"native.by_evidence", FIELD_BOOL, offsetof(struct run, info.native.is_inferred)},
	{"native.user_cpu_only", FIELD_BOOL, offsetof(struct run, info.native.user_cpu_only)},
	{"native.stacks", FIELD_U64, offsetof(struct run, info.native.nr_stacks)},
	{"native.c_gaps", FIELD_U64, offsetof(struct run, info.native.nr_c_gaps)},
	{"native.python_gaps", FIELD_U64, offsetof(struct run, info.native.nr_python_gaps)},
	{"native.copies", FIELD_U64, offsetof(struct run, info.native.nr_copies)},
	{"native.lost_copies", FIELD_U64, offsetof(struct run, info.native.nr_lost_copies)},
	{"native.without_copy", FIELD_U64, offsetof(struct run, info.native.nr_without_copy)},
	{"native.foreign_copies", FIELD_U64, offsetof(struct run, info.native.nr_foreign_copies)},
	{"native.refused_threads", FIELD_U64, offsetof(struct run, info.native.nr_refused)},
};

enum {
	NR_FIELDS = sizeof(fields) / sizeof(*fields),
	NR_NATIVE_FIELDS = sizeof(native_fields) / sizeof(*native_fields),
};

/* Prefix of the losses' names: lost.moved, … */
#define LOST "lost."

/* Room for a number as text, or for the name of a loss. */
enum { TEXT_MAX_BYTES = 64 };

/* Format a number with the fewest digits that read back as the same number. */
static const char *double_text(double value, char text[TEXT_MAX_BYTES])
{
	for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
		(void)snprintf(text, TEXT_MAX_BYTES, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return text;
}

static const char *number_text(uint64_t value, char text[TEXT_MAX_BYTES])
{
	(void)snprintf(text, TEXT_MAX_BYTES, "%" PRIu64, value);
	return text;
}

/* Returns a field's value as text, possibly in buffer; NULL if it is unknown. */
static const char *field_text(const struct field *field, const struct run *run,
			      char buffer[TEXT_MAX_BYTES])
{
	const void *at = (const char *)run + field->offset;

	switch (field->type) {
	case FIELD_STRING:
		return *(const char *const *)at;
	case FIELD_U64:
		return number_text(*(const uint64_t *)at, buffer);
	case FIELD_DOUBLE:
		return double_text(*(const double *)at, buffer);
	case FIELD_BOOL:
		return *(const bool *)at ? "true" : "false";
	case FIELD_PID:
		return *(const pid_t *)at > 0 ? number_text((uint64_t) * (const pid_t *)at, buffer)
					      : NULL;
	case FIELD_MODE:
		return profile_mode_name(*(const enum profile_mode *)at);
	}
	return NULL;
}

/* Call pair() for the known ones of nr fields. */
static void visit_fields(const struct run *run, const struct field *list, int nr,
			 void (*pair)(void *context, const char *name, const char *value),
			 void *context)
{
	char text[TEXT_MAX_BYTES];

	for (int i = 0; i < nr; i++) {
		const char *value = field_text(&list[i], run, text);

		if (value)
			pair(context, list[i].name, value);
	}
}

void run_for_each_pair(const struct run *run,
		       void (*pair)(void *context, const char *name, const char *value),
		       void *context)
{
	char name[TEXT_MAX_BYTES], text[TEXT_MAX_BYTES];

	visit_fields(run, fields, NR_FIELDS, pair, context);
	if (run->info.native.is_on)
		visit_fields(run, native_fields, NR_NATIVE_FIELDS, pair, context);
	for (int i = 0; i < NR_SAMPLE_LOSSES; i++) {
		(void)snprintf(name, sizeof(name), LOST "%s", loss_name((enum sample_loss)i));
		pair(context, name, number_text(run->stats.lost[i], text));
	}
	pair(context, "achieved_hz", double_text(stats_achieved_hz(&run->stats), text));
	pair(context, "wall_s", double_text(stats_wall_s(&run->stats), text));
}

/* Store a copy of value in a field and free the copy it replaces. */
static int set_string(struct stored_run *stored, const char **field, const char *value)
{
	uint32_t index = 0;
	char **strings;
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	while (index < stored->nr_strings && stored->strings[index] != *field)
		index++;
	strings = array_reserve(stored->strings, index + 1, &stored->max_strings, sizeof(*strings));
	if (!strings) {
		free(copy);
		return -ENOMEM;
	}
	stored->strings = strings;
	if (index < stored->nr_strings)
		free(strings[index]);
	else
		stored->nr_strings++;
	strings[index] = copy;
	*field = copy;
	return 0;
}

/* Parse a number that consists of decimal digits only. */
static bool parse_number(const char *value, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!*value)
		return false;
	for (; *value; value++) {
		if (*value < '0' || *value > '9' || __builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*value - '0'), &number))
			return false;
	}
	*ret_number = number;
	return true;
}

static void set_double(double *field, const char *value)
{
	char *end;
	double number;

	if (*value < '0' || *value > '9')
		return;
	number = strtod(value, &end);
	if (!*end && isfinite(number))
		*field = number;
}

static void set_bool(bool *field, const char *value)
{
	if (strcmp(value, "true") == 0)
		*field = true;
	else if (strcmp(value, "false") == 0)
		*field = false;
}

static int field_set(struct stored_run *stored, const struct field *field, const char *value)
{
	void *at = (char *)&stored->run + field->offset;
	uint64_t number;

	switch (field->type) {
	case FIELD_STRING:
		return set_string(stored, at, value);
	case FIELD_U64:
		if (parse_number(value, &number))
			*(uint64_t *)at = number;
		return 0;
	case FIELD_DOUBLE:
		set_double(at, value);
		return 0;
	case FIELD_BOOL:
		set_bool(at, value);
		return 0;
	case FIELD_PID:
		if (parse_number(value, &number) && number <= INT_MAX)
			*(pid_t *)at = (pid_t)number;
		return 0;
	case FIELD_MODE:
		(void)profile_mode_parse(value, at);
		return 0;
	}
	return 0;
}

/* Returns the loss with this name; NR_SAMPLE_LOSSES if there is none. */
static int find_loss(const char *name)
{
	int loss = 0;

	if (strncmp(name, LOST, strlen(LOST)) != 0)
		return NR_SAMPLE_LOSSES;
	while (loss < NR_SAMPLE_LOSSES &&
	       strcmp(name + strlen(LOST), loss_name((enum sample_loss)loss)) != 0)
		loss++;
	return loss;
}

/* Returns the name that a field of older recordings has now. */
static const char *current_name(const char *name)
{
	static const struct {
		const char *old, *current;
	} renamed[] = {
		{"asked_hz", "requested_hz"},
		{"native.broken", "native.c_gaps"},
		{"native.python_holed", "native.python_gaps"},
		{"native.dumps", "native.copies"},
		{"native.lost_dumps", "native.lost_copies"},
		{"native.undumped", "native.without_copy"},
		{"native.foreign_dumps", "native.foreign_copies"},
	};

	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
		if (strcmp(name, renamed[i].old) == 0)
			return renamed[i].current;
	return name;
}

/* Returns the field with this name; NULL if there is none. */
static const struct field *find_field(const char *name)
{
	name = current_name(name);
	for (int i = 0; i < NR_FIELDS; i++)
		if (strcmp(name, fields[i].name) == 0)
			return &fields[i];
	for (int i = 0; i < NR_NATIVE_FIELDS; i++)
		if (strcmp(name, native_fields[i].name) == 0)
			return &native_fields[i];
	return NULL;
}

int stored_run_set(struct stored_run *stored, const char *name, const char *value)
{
	const int loss = find_loss(name);
	const struct field *field = find_field(name);

	if (loss < NR_SAMPLE_LOSSES)
		(void)parse_number(value, &stored->run.stats.lost[loss]);
	return field ? field_set(stored, field, value) : 0;
}

void stored_run_done(struct stored_run *stored)
{
	for (uint32_t i = 0; i < stored->nr_strings; i++)
		free(stored->strings[i]);
	free(stored->strings);
	*stored = (struct stored_run){0};
}
