/* SPDX-License-Identifier: MIT */
/* Floats as in repr(). The live tests compare thousands with Python's own. */
#include "sampler/cpython/objects/value_text.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

Test(floating, formats_as_repr)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0.0, "0.0"},
		{-0.0, "-0.0"},
		{1.0, "1.0"},
		{0.1, "0.1"},
		{-2.5, "-2.5"},
		{100.0, "100.0"},
		{123456.789, "123456.789"},
		{1e15, "1000000000000000.0"},
		{1e16, "1e+16"},
		{9999999999999998.0, "9999999999999998.0"},
		{123456789012345680.0, "1.2345678901234568e+17"},
		{0.0001, "0.0001"},
		{0.00012345, "0.00012345"},
		{0.00001, "1e-05"},
		{5e-324, "5e-324"},
		{1.7976931348623157e308, "1.7976931348623157e+308"},
		{1.0 / 3, "0.3333333333333333"},
		/* The nearest decimal of 16 digits belongs to another double. */
		{0x1p-44, "5.684341886080802e-14"},
		{0x1p1023, "8.98846567431158e+307"},
		{INFINITY, "inf"},
		{-INFINITY, "-inf"},
		{NAN, "nan"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[FLOAT_TEXT_BYTES];

		float_format(cases[i].value, ".0", text);
		cr_expect(eq(str, text, (char *)cases[i].text));
	}
}

Test(floating, short_form_has_no_point)
{
	char text[FLOAT_TEXT_BYTES];

	float_format(3.0, "", text);
	cr_expect(eq(str, text, (char *)"3"));
	float_format(3.5, "", text);
	cr_expect(eq(str, text, (char *)"3.5"));
	float_format(-1e100, "", text);
	cr_expect(eq(str, text, (char *)"-1e+100"));
}
