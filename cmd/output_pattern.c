/* SPDX-License-Identifier: MIT */
#include "cmd/output_pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/print.h"
#include "output/text/text.h"
#include "procmem/clock.h"

bool output_pattern_check(const char *pattern, bool *ret_is_periodic)
{
	const char *slash = strrchr(pattern, '/');
	bool is_periodic = false;

	for (const char *c = strchr(pattern, '%'); c; c = strchr(c + 2, '%')) {
		if (!c[1] || !strchr("tnph%", c[1])) {
			print_error("'%s' has %%%.1s: use %%t (time), %%n (number of the period), "
				    "%%p (process id), %%h (host), or %%%% for a percent sign",
				    pattern, c + 1);
			return false;
		}
		if (c[1] != 't' && c[1] != 'n')
			continue;
		if (slash && c < slash) {
			print_error("'%s' has %%%c in the name of a folder: use it in the name of "
				    "the file",
				    pattern, c[1]);
			return false;
		}
		is_periodic = true;
	}
	*ret_is_periodic = is_periodic;
	return true;
}

static void append_time(struct text *text, uint64_t unix_ns)
{
	const time_t seconds = (time_t)(unix_ns / NS_PER_S);
	char buffer[sizeof("20260131T235959") + 16]; /* years may get longer */
	struct tm local;

	if (localtime_r(&seconds, &local) &&
	    strftime(buffer, sizeof(buffer), "%Y%m%dT%H%M%S", &local))
		text_puts(text, buffer);
	else
		text_printf(text, "%" PRIu64, unix_ns / NS_PER_S);
}

static void append_host(struct text *text)
{
	char host[HOST_NAME_MAX + 1] = "";

	(void)gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++)
		if (*c == '/')
			*c = '_';
	text_puts(text, host);
}

static void append_value(struct text *text, char letter, const struct output_pattern_values *values)
{
	switch (letter) {
	case 't':
		append_time(text, values->start_unix_ns);
		break;
	case 'n':
		text_printf(text, "%" PRIu64, values->number);
		break;
	case 'p':
		text_printf(text, "%d", values->pid);
		break;
	case 'h':
		append_host(text);
		break;
	default:
		text_puts(text, "%");
		break;
	}
}

int output_pattern_expand(const char *pattern, const struct output_pattern_values *values,
			  char **ret_path, size_t *ret_counter_at)
{
	struct text text = {0};
	size_t counter_at = 0;

	while (*pattern) {
		const size_t nr_plain = strcspn(pattern, "%");

		text_printf(&text, "%.*s", (int)nr_plain, pattern);
		pattern += nr_plain;
		if (!*pattern)
			break;
		append_value(&text, pattern[1], values);
		if (!counter_at && (pattern[1] == 't' || pattern[1] == 'n'))
			counter_at = text.length;
		pattern += 2;
	}
	if (text.error) {
		text_done(&text);
		return -ENOMEM;
	}
	*ret_path = text.bytes;
	*ret_counter_at = counter_at;
	return 0;
}
