/* SPDX-License-Identifier: MIT */
#include "cmd/top/saved_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void saved_name_format(const char *process_name, char (*ret_pattern)[SAVED_NAME_MAX_BYTES])
{
	const char *const space = strrchr(process_name, ' ');
	const char *word = space ? space + 1 : process_name;
	const char *const slash = strrchr(word, '/');
	char name[32];
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
	(void)snprintf(*ret_pattern, sizeof(*ret_pattern), "%s-%%p-%%t.pysample",
		       nr ? name : "python");
}
