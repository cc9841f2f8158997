/* SPDX-License-Identifier: MIT */
#include "cmd/top/saved_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void saved_name_format(const char *process_name, pid_t pid, time_t when,
		       char (*ret_name)[SAVED_NAME_MAX_BYTES])
{
	const char *const space = strrchr(process_name, ' ');
	const char *word = space ? space + 1 : process_name;
	const char *const slash = strrchr(word, '/');
	char name[48], date[32] = "";
	struct tm local;
	size_t nr = 0;

	if (slash)
		word = slash + 1;
	for (; *word && nr < sizeof(name) - 1; word++)
		if (isalnum((unsigned char)*word) || *word == '_' ||
		    (nr && (*word == '.' || *word == '-')))
			name[nr++] = *word;
		else if (nr)
			name[nr++] = '_';
	name[nr] = '\0';
	if (localtime_r(&when, &local))
		(void)strftime(date, sizeof(date), "%Y%m%dT%H%M%S", &local);
	(void)snprintf(*ret_name, sizeof(*ret_name), "%s-%d-%s.pysample", nr ? name : "python", pid,
		       date);
}
