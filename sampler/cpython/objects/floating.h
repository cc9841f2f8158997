/* SPDX-License-Identifier: MIT */
/* What Python prints of a float. */
#pragma once

/* "-1.7976931348623157e+308" and shorter. */
enum { FLOAT_TEXT_BYTES = 40 };

/*
 * The shortest decimal that reads back as value, as repr() of a float writes it: "1e-05", "nan",
 * "-inf"; a whole number ends in ending: ".0", or "" as complex numbers have it. The decimal point
 * is the locale's, so LC_NUMERIC has to stay "C".
 *
 * Source: float_repr() of CPython Objects/floatobject.c, format_float_short() of
 * Python/pystrtod.c.
 */
void float_format(double value, const char *ending, char ret_text[FLOAT_TEXT_BYTES]);
