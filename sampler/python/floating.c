/* SPDX-License-Identifier: MIT */
#include "sampler/python/floating.h"

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

/* Digits and where the point is behind the first of them: d.ddd × 10^exponent. */
struct decimal {
	char digits[MAX_DIGITS + 1];
	int exponent;
};

/*
 * value, which is finite and not below 0, in nr_digits digits, rounded in that way: whether it
 * reads back as it was.
 */
static bool try_digits(double value, int nr_digits, int rounding, struct decimal *ret_decimal)
{
	char text[FLOAT_TEXT_BYTES];

	(void)fesetround(rounding);
	(void)snprintf(text, sizeof(text), "%.*e", nr_digits - 1, value);
	(void)fesetround(FE_TONEAREST);
	ret_decimal->digits[0] = text[0];
	memcpy(ret_decimal->digits + 1, text + 2, (size_t)nr_digits - 1);
	ret_decimal->digits[nr_digits] = '\0';
	ret_decimal->exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	return strtod(text, NULL) == value;
}

/*
 * Below a power of two doubles lie twice as close as above it, so that the nearest decimal of
 * so many digits may be another double's, and the next one above not: both are tried.
 */
static void find_shortest(double value, struct decimal *ret_decimal)
{
	size_t length;

	for (int n = 1; n <= MAX_DIGITS; n++)
		if (try_digits(value, n, FE_TONEAREST, ret_decimal) ||
		    try_digits(value, n, FE_UPWARD, ret_decimal))
			break;
	length = strlen(ret_decimal->digits);
	while (length > 1 && ret_decimal->digits[length - 1] == '0')
		ret_decimal->digits[--length] = '\0';
}

/* Write digits with the point behind the one at exponent, and ending behind it. */
static void write_plain(const struct decimal *decimal, const char *sign, const char *ending,
			char ret_text[FLOAT_TEXT_BYTES])
{
	const int nr_digits = (int)strlen(decimal->digits);
	const int exponent = decimal->exponent;
	const char *digits = decimal->digits;

	if (exponent < 0)
		(void)snprintf(ret_text, FLOAT_TEXT_BYTES, "%s0.%.*s%s", sign, -exponent - 1,
			       "0000", digits);
	else if (nr_digits > exponent + 1)
		(void)snprintf(ret_text, FLOAT_TEXT_BYTES, "%s%.*s.%s", sign, exponent + 1, digits,
			       digits + exponent + 1);
	else
		(void)snprintf(ret_text, FLOAT_TEXT_BYTES, "%s%s%.*s%s", sign, digits,
			       exponent + 1 - nr_digits, "000000000000000", ending);
}

static void write_scientific(const struct decimal *decimal, const char *sign,
			     char ret_text[FLOAT_TEXT_BYTES])
{
	const char *digits = decimal->digits;

	(void)snprintf(ret_text, FLOAT_TEXT_BYTES, "%s%c%s%se%+03d", sign, digits[0],
		       digits[1] ? "." : "", digits + 1, decimal->exponent);
}

/* A whole number ends in ending. */
static void format(double value, const char *ending, char ret_text[FLOAT_TEXT_BYTES])
{
	const char *sign = signbit(value) && !isnan(value) ? "-" : "";
	struct decimal decimal;

	if (!isfinite(value)) {
		(void)snprintf(ret_text, FLOAT_TEXT_BYTES, "%s%s", sign,
			       isnan(value) ? "nan" : "inf");
		return;
	}
	find_shortest(fabs(value), &decimal);
	if (decimal.exponent > LAST_EXPONENT && decimal.exponent < FIRST_EXPONENT)
		write_plain(&decimal, sign, ending, ret_text);
	else
		write_scientific(&decimal, sign, ret_text);
}

void float_format(double value, char ret_text[FLOAT_TEXT_BYTES])
{
	format(value, ".0", ret_text);
}

void float_format_short(double value, char ret_text[FLOAT_TEXT_BYTES])
{
	format(value, "", ret_text);
}
