/* SPDX-License-Identifier: MIT */
/*
 * Compile-time proof that the numbers of offsets.def, debug_offsets.def and traits.def in
 * sampler/cpython/layout/ are CPython's own. Each row's number for one version is compared with
 * the row's expression, evaluated with the headers in the include path.
 *
 * A comparison that fails becomes a call of wrong_number(), a compile error that names the row's
 * line (like the kernel's BUILD_BUG_ON). This needs -O2, because the position of a bit field is
 * no constant expression. prove.py defines MINOR, the version to prove, and SINCE_7, SINCE_8, …:
 * 1 up to that version, 0 for newer ones.
 */
#include <stddef.h>
#include <stdint.h>

#include "sampler/cpython/layout/offsets.h"
#include "tests/offsets/prove_python.h"

#include "tests/offsets/prove_constants.h"

_Static_assert(PY_MAJOR_VERSION == 3 && PY_MINOR_VERSION == MINOR, "the headers of that version");

void wrong_number(void) __attribute__((error("this number differs from CPython's headers")));
void prove_tables(void);

#define PROVE(number, truth)                               \
	do {                                               \
		if ((int64_t)(number) != (int64_t)(truth)) \
			wrong_number();                    \
	} while (0)

/* A field that is a variable of its own in 3.6 is 0, without AT. */
#define PROVE_WIDTH(width, truth) PROVE((truth) ? (width) : 0, truth)

/* One of a row's numbers. */
#define CELL(cells, column) (((const int64_t[]){CELLS cells})[column])

/* The building blocks of the last columns. __ stands for a version without the field. */
#define SINCE(minor, x, y) CHOOSE(SINCE_##minor, x, y)
#define FROM(minor, x)	   SINCE(minor, x, __)
#define BEFORE(minor, x)   SINCE(minor, __, x)
#define CHOOSE(n, x, y)	   CHOOSE_N(n, x, y)
#define CHOOSE_N(n, x, y)  CHOOSE_##n(x, y)
#define CHOOSE_1(x, y)	   x
#define CHOOSE_0(x, y)	   y
#define AT(type, field)	   offsetof(type, field)
#define PLACE(field)	   offsetof(struct _Py_DebugOffsets, field)
#define FRAME		   SINCE(11, _PyInterpreterFrame, PyFrameObject)
#define KIND_SHIFT	   __builtin_ctz(kind.word)
#define BY_RUNNING	   INT64_MIN /* a number that this file does not prove */

static const union unicode_state kind = {.fields = {.kind = 1}};
static const union unicode_state compact = {.fields = {.compact = 1}};
static const union unicode_state ascii = {.fields = {.ascii = 1}};

void prove_tables(void)
{
	/* The value of each row of offsets.def, in a variable called STRUCT_FIELD. */
#define ROW(of, field, width, cells, truth) const int64_t of##_##field = truth;
#include "sampler/cpython/layout/offsets.def"

	/* Fields are read whole: redefining AT makes the same expressions give the size. */
#undef AT
#define AT(type, field)                            \
	sizeof(struct {                            \
		char none[0];                      \
		__typeof__(((type *)0)->field) it; \
	})
#define ROW(of, field, width, cells, truth)    \
	if (width != __ && of##_##field != __) \
		PROVE_WIDTH(width, truth);
#include "sampler/cpython/layout/offsets.def"
#undef AT
#define AT(type, field) offsetof(type, field)

#define TRAIT(member, cells, truth) \
	if ((truth) != BY_RUNNING)  \
		PROVE(CELL(cells, MINOR - OLDEST_MINOR), truth);
#define STATE TRAIT
#include "sampler/cpython/layout/traits.def"

	/* The bits after the kind of a str. */
	PROVE(compact.word, 8u << KIND_SHIFT);
	PROVE(ascii.word, 16u << KIND_SHIFT);

#if MINOR < 13
#define ROW(of, field, width, cells, truth) PROVE(CELL(cells, MINOR - OLDEST_MINOR), of##_##field);
#include "sampler/cpython/layout/offsets.def"
#else
	struct py_offsets known = {0};

#define TABLE_BYTES(cells, truth) PROVE(CELL(cells, MINOR - FIRST_MINOR_WITH_DEBUG_OFFSETS), truth);
#define TLBC(member, cells, truth) \
	PROVE(CELL(cells, MINOR - FIRST_MINOR_WITH_DEBUG_OFFSETS), truth);
#define PRESENT(of, field, cells, truth)                                   \
	PROVE(CELL(cells, MINOR - FIRST_MINOR_WITH_DEBUG_OFFSETS), truth); \
	known.of.field = CELL(cells, MINOR - FIRST_MINOR_WITH_DEBUG_OFFSETS) != __;
#define START		 0
#define ANY_LAYOUT	 true
#define OWN_LAYOUT	 true
#define RELEASE_LAYOUT	 IS_RELEASE
#define FIELD(of, field) of##_##field
#define MISSING(of, field, from, applies_to, cells)                        \
	if (MISSING_CELL(cells) != __) {                                   \
		known.of.field = true;                                     \
		if (applies_to)                                            \
			PROVE(MISSING_CELL(cells), of##_##field - (from)); \
	}
#define MISSING_CELL(cells) \
	CELL(cells, 2 * (MINOR - FIRST_MINOR_WITH_DEBUG_OFFSETS) + FREE_THREADED)
#include "sampler/cpython/layout/debug_offsets.def"

	/* Each field that the version has is either present or missing. */
#define ROW(of, field, width, cells, truth) PROVE(known.of.field, of##_##field != __);
#include "sampler/cpython/layout/offsets.def"

#if MINOR >= 14
	/* CPython's own table has the values of the rows. */
#undef PLACE
#define PLACE(field) table.field
	static const struct _Py_DebugOffsets table = _Py_DebugOffsets_INIT("xdebugpy");
#define PRESENT(of, field, cells, truth)                               \
	if (CELL(cells, MINOR - FIRST_MINOR_WITH_DEBUG_OFFSETS) != __) \
		PROVE(truth, of##_##field);
#include "sampler/cpython/layout/debug_offsets.def"
#endif
#endif
}
