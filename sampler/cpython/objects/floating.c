/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/floating.h"

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many digits tell every double. */
enum { MAX_DIGITS = 17 };

/* Exponents from which on, and below which, repr() writes one. */
enum { FIRST_EXPONENT = 16, LAST_EXPONENT = -5 };

/* Print value with so many digits behind the point, the last of them rounded in that way. */
static void print(bool has_exponent, int precision, double value, int rounding,
		  char ret_text[FLOAT_TEXT_BYTES])
{
	(void)fesetround(rounding);
	(void)snprintf(ret_text, FLOAT_TEXT_BYTES, has_exponent ? "%.*e" : "%.*f", precision,
		       value);
	(void)fesetround(FE_TONEAREST);
}

/*
 * The fewest digits behind the first one that tell value, and how they are rounded; *ret_exponent
 * is that of the first one. Below a power of two doubles lie twice as close as above it, so that
 * the nearest decimal of so many digits may be another double's, and the next one above not: both
 * are tried.
 */
static int find_shortest(double value, int *ret_rounding, int *ret_exponent)
{
	static const int roundings[] = {FE_TONEAREST, FE_UPWARD};
	char text[FLOAT_TEXT_BYTES];
	int precision = 0;

	for (int i = 0;; i++) {
		*ret_rounding = roundings[i % 2];
		precision = i / 2;
		print(true, precision, value, *ret_rounding, text);
		if (strtod(text, NULL) == value || precision == MAX_DIGITS - 1)
			break;
	}
	*ret_exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	return precision;
}

void float_format(double value, const char *ending, char ret_text[FLOAT_TEXT_BYTES])
{
	int precision, rounding, exponent;

	if (isnan(value)) {
		(void)stpcpy(ret_text, "nan");
		return;
	}
	if (signbit(value))
		*ret_text++ = '-';
	value = fabs(value);
	if (isinf(value)) {
		(void)stpcpy(ret_text, "inf");
		return;
	}
	precision = find_shortest(value, &rounding, &exponent);
	if (exponent <= LAST_EXPONENT || exponent >= FIRST_EXPONENT) {
		print(true, precision, value, rounding, ret_text);
	} else if (precision > exponent) {
		print(false, precision - exponent, value, rounding, ret_text);
	} else {
		print(false, 0, value, rounding, ret_text);
		(void)stpcpy(ret_text + strlen(ret_text), ending);
	}
}
