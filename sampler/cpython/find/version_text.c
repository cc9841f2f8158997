/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/version_text.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* The subexpressions of the pattern. */
enum { WHOLE, MAJOR, MINOR, MICRO, LEVEL, MARK, SERIAL, PYPY, NR_PARTS };

/*
 * Each number of PY_VERSION_HEX is one byte, so it has up to three digits; "+" marks a build
 * between two releases. The build in parentheses has a comma and a colon: "(main, Nov  1 2025,
 * 10:00:00)".
 */
static const char pattern[] = "^([0-9]{1,3})\\.([0-9]{1,3})\\.([0-9]{1,3})((a|b|rc)([0-9]{1,2}))?"
			      "[+]? [ -')-~]*[(][ -(*-~]*,[ -(*-~]*:[ -(*-~]*[)][ \n]*\\[(PyPy)?";

bool version_text_parse(const char *text, size_t size, struct version_text *ret_version)
{
	char terminated[VERSION_TEXT_MAX_BYTES + 1] = "";
	regmatch_t parts[NR_PARTS];
	uint32_t version_hex = 0, level = 0xf, serial = 0;
	bool matches;
	regex_t regex;

	memcpy(terminated, text, size < VERSION_TEXT_MAX_BYTES ? size : VERSION_TEXT_MAX_BYTES);
	if (regcomp(&regex, pattern, REG_EXTENDED) != 0)
		return false;
	matches = regexec(&regex, terminated, NR_PARTS, parts, 0) == 0;
	regfree(&regex);
	if (!matches)
		return false;
	for (int part = MAJOR; part <= MICRO; part++) {
		const unsigned long number = strtoul(terminated + parts[part].rm_so, NULL, 10);

		if (number > UINT8_MAX)
			return false;
		version_hex = version_hex << 8 | (uint32_t)number;
	}
	if (parts[LEVEL].rm_so >= 0) {
		const char mark = terminated[parts[MARK].rm_so];

		level = mark == 'r' ? 0xc : 0xa + (uint32_t)(mark - 'a');
		serial = (uint32_t)strtoul(terminated + parts[SERIAL].rm_so, NULL, 10);
	}
	if (serial > 0xf)
		return false;
	*ret_version = (struct version_text){
		.version_hex = version_hex << 8 | level << 4 | serial,
		.is_pypy = parts[PYPY].rm_so >= 0,
	};
	return true;
}
