/* SPDX-License-Identifier: MIT */
#include "cmd/option_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIN_RATE_HZ    0.01
#define MAX_RATE_HZ    1e4  /* the target needs its CPU, too */
#define MIN_DURATION_S 1e-9 /* less would round to 0, which means no end */
#define MAX_DURATION_S (366.0 * 24 * 3600)

struct unit {
	const char *suffix;
	double factor;
};

/* Parse a decimal number followed by one of the suffixes; case is ignored. */
static bool parse_number(const char *text, const struct unit *units, size_t nr_units,
			 double *ret_value)
{
	char *end;
	double value;

	/* strtod() also accepts hexadecimal, "inf" and leading blanks. */
	if (strspn(text, "0123456789.") == 0)
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false;
	errno = 0;
	value = strtod(text, &end);
	if (errno || !isfinite(value))
		return false;
	for (size_t i = 0; i < nr_units; i++)
		if (strcasecmp(end, units[i].suffix) == 0) {
			*ret_value = value * units[i].factor;
			return true;
		}
	return false;
}

bool parse_count(const char *text, uint32_t max, uint32_t *ret_count)
{
	char *end;
	unsigned long count;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	count = strtoul(text, &end, 10);
	if (errno || *end || count > max)
		return false;
	*ret_count = (uint32_t)count;
	return true;
}

bool parse_pid(const char *text, pid_t *ret_pid)
{
	uint32_t pid;

	if (!parse_count(text, INT32_MAX, &pid) || pid == 0)
		return false;
	*ret_pid = (pid_t)pid;
	return true;
}

bool parse_rate(const char *text, double *ret_rate_hz)
{
	static const struct unit units[] = {{"", 1}, {"hz", 1}, {"k", 1e3}, {"khz", 1e3}};
	double rate_hz;

	if (strcasecmp(text, "max") == 0) {
		*ret_rate_hz = MAX_RATE_HZ;
		return true;
	}
	if (!parse_number(text, units, sizeof(units) / sizeof(*units), &rate_hz) ||
	    rate_hz < MIN_RATE_HZ || rate_hz > MAX_RATE_HZ)
		return false;
	*ret_rate_hz = rate_hz;
	return true;
}

/* Parse a time such as "1.5s" into seconds. Returns false if it is longer than a year. */
static bool parse_seconds(const char *text, double *ret_s)
{
	static const struct unit units[] = {
		{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};

	return parse_number(text, units, sizeof(units) / sizeof(*units), ret_s) &&
	       *ret_s <= MAX_DURATION_S;
}

bool parse_duration(const char *text, uint64_t *ret_duration_ns)
{
	double duration_s;

	if (!parse_seconds(text, &duration_s) || duration_s < MIN_DURATION_S)
		return false;
	*ret_duration_ns = (uint64_t)(duration_s * 1e9);
	return true;
}

bool parse_wait(const char *text, uint64_t *ret_wait_ns)
{
	double wait_s;

	if (!parse_seconds(text, &wait_s) || (wait_s != 0 && wait_s < MIN_DURATION_S))
		return false;
	*ret_wait_ns = (uint64_t)(wait_s * 1e9);
	return true;
}

bool parse_moment(const char *text, int64_t *ret_moment_ns)
{
	const bool from_end = text[0] == '-';
	uint64_t moment_ns;

	if (!parse_wait(text + from_end, &moment_ns) || (from_end && !moment_ns))
		return false;
	*ret_moment_ns = from_end ? -(int64_t)moment_ns : (int64_t)moment_ns;
	return true;
}

bool parse_percent(const char *text, double *ret_percent)
{
	static const struct unit units[] = {{"", 1}, {"%", 1}};
	double percent;

	if (!parse_number(text, units, sizeof(units) / sizeof(*units), &percent) || percent > 100)
		return false;
	*ret_percent = percent;
	return true;
}
