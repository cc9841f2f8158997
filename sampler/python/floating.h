/* SPDX-License-Identifier: MIT */
/* What Python prints of a float. */
#pragma once

/* "-1.7976931348623157e+308" and shorter. */
enum { FLOAT_TEXT_BYTES = 40 };

/*
 * The shortest decimal that reads back as value, as repr() of a float writes it: "1.0",
 * "1e-05", "nan", "-inf". The decimal point is the locale's, so LC_NUMERIC has to stay "C".
 *
 * Source: float_repr() of CPython Objects/floatobject.c, format_float_short() of
 * Python/pystrtod.c.
 */
void float_format(double value, char ret_text[FLOAT_TEXT_BYTES]);

/* The same as complex numbers have it: "1" for 1.0. */
void float_format_short(double value, char ret_text[FLOAT_TEXT_BYTES]);
