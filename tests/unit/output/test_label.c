/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "output/profile/label.h"
#include "tests/support/stack_profile.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static void expect_text(struct text *text, const char *expected, const char *name)
{
	cr_expect(eq(int, text->error, 0));
	cr_expect(eq(str, (char *)text_string(text), (char *)expected), "%s", name);
	cr_expect(eq(sz, text->length, strlen(expected)), "%s", name);
	text_clear(text);
}

Test(label, escapes_unsafe_characters)
{
	static const struct {
		const char *name, *bytes, *display, *collapsed;
	} cases[] = {
		{"plain", "Class.method", "Class.method", "Class.method"},
		{"empty", "", "", ""},
		{"module", "<module>", "<module>", "<module>"},
		{"separator", ";a;b;", ";a;b;", ":a:b:"},
		{"newline", "a\nb\r", "a\\x0ab\\x0d", "a\\x0ab\\x0d"},
		{"terminal escape", "\033[31mred", "\\x1b[31mred", "\\x1b[31mred"},
		{"DEL", "\x7f", "\\x7f", "\\x7f"},
		{"C1",
		 "\xc2\x9b"
		 "31m",
		 "\\u009b31m", "\\u009b31m"},
		{"bidi",
		 "a\xe2\x80\xae"
		 "b",
		 "a\\u202eb", "a\\u202eb"},
		{"emoji", "\xf0\x9f\x90\x8d", "\xf0\x9f\x90\x8d", "\xf0\x9f\x90\x8d"},
		{"no-break space", "\xc2\xa0", "\xc2\xa0", "\xc2\xa0"},
		{"stray byte",
		 "a\xff"
		 "b",
		 "a\\xffb", "a\\xffb"},
		{"cut off", "a\xe2\x80", "a\\xe2\\x80", "a\\xe2\\x80"},
		{"surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80"},
		{"overlong ;", "\xc0\xbb", "\\xc0\\xbb", "\\xc0\\xbb"},
		{"backslash", "a\\b", "a\\b", "a\\b"},
	};
	__attribute__((cleanup(text_done))) struct text text = {0};

	for (size_t i = 0; i < NR(cases); i++) {
		size_t length = strlen(cases[i].bytes);

		label_append_escaped(&text, cases[i].bytes, length, LABEL_DISPLAY);
		expect_text(&text, cases[i].display, cases[i].name);
		label_append_escaped(&text, cases[i].bytes, length, LABEL_COLLAPSED);
		expect_text(&text, cases[i].collapsed, cases[i].name);
	}
	label_append_escaped(&text, "a\0b", 3, LABEL_DISPLAY);
	expect_text(&text, "a\\x00b", "NUL");
}

Test(label, names_functions_with_path_and_line)
{
	static const struct {
		const char *qualname, *path;
		int32_t line;
		const char *expected;
	} cases[] = {
		{"f", "a.py", 3, "f (a.py:3)"},
		{"f", "a.py", 0, "f (a.py)"},
		{"f", "a.py", -1, "f (a.py:-1)"},
		{"f", "", 3, "f"},
		{"", "a.py", 3, "? (a.py:3)"},
		{"", "", 0, "?"},
		{"a;b", "c;d", 1, "a:b (c:d:1)"},
		{"<lambda>", "<frozen importlib._bootstrap>", 241,
		 "<lambda> (<frozen importlib._bootstrap>:241)"},
	};
	__attribute__((cleanup(text_done))) struct text text = {0};

	for (size_t i = 0; i < NR(cases); i++) {
		label_append_function(&text, cases[i].qualname, cases[i].path, cases[i].line,
				      LABEL_COLLAPSED);
		expect_text(&text, cases[i].expected, cases[i].expected);
	}
}

/*
 * Add a sample in JIT code whose innermost frame is native. The line that may be late is that of
 * the innermost Python frame.
 */
static uint32_t add_in_jit(struct profile *profile, enum profile_side side, char *stack)
{
	static const struct function native = {
		.qualname = "add", .path = "libc.so.6", .kind = FUNCTION_NATIVE};
	struct profile_sample sample = {.thread = PROFILE_NONE, .flags = SAMPLE_IN_JIT};
	uint32_t nr, function;

	sample.node = stack_node(profile, stack);
	cr_assert(eq(int, profile_get_function(profile, &native, &function), 0));
	cr_assert(eq(int, profile_get_node(profile, sample.node, function, 7, &sample.node), 0));
	cr_assert(eq(int, profile_add(profile, side, &sample), 0));
	return profile_nodes(profile, &nr)[sample.node].frame;
}

Test(label, marks_stale_lines)
{
	static const struct {
		bool by_line;
		enum profile_side side;
		enum label_style style;
		const char *expected[3];
	} cases[] = {
		{true,
		 PROFILE_SHOWN,
		 LABEL_DISPLAY,
		 {"a (app.py:11)", "b (app.py:~22)", "add (libc.so.6:7)"}},
		{true,
		 PROFILE_SHOWN,
		 LABEL_COLLAPSED,
		 {"a (app.py:11)", "b (app.py:22)", "add (libc.so.6:7)"}},
		{true,
		 PROFILE_BASE,
		 LABEL_DISPLAY,
		 {"a (app.py:11)", "b (app.py:22)", "add (libc.so.6:7)"}},
		{false,
		 PROFILE_SHOWN,
		 LABEL_DISPLAY,
		 {"a (app.py:10)", "b (app.py:20)", "add (libc.so.6)"}},
	};
	__attribute__((cleanup(text_done))) struct text text = {0};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct profile_options options = {.by_line = cases[i].by_line};
		struct profile *profile = profile_create(&options);
		char stack[] = "a@11;b@22";
		uint32_t leaf;

		cr_assert(profile != NULL);
		leaf = add_in_jit(profile, cases[i].side, stack);
		for (uint32_t k = 0; k < NR(cases[i].expected); k++) {
			label_append_frame(&text, profile, leaf - 2 + k, cases[i].style);
			expect_text(&text, cases[i].expected[k], cases[i].expected[k]);
		}
		profile_destroy(profile);
	}
}

Test(label, names_threads_with_their_id)
{
	static const struct {
		struct profile_thread thread;
		const char *expected;
	} cases[] = {
		{{.tid = 42, .name = "python3"}, "thread python3 (42)"},
		{{.tid = 42}, "thread (42)"},
		{{.name = "x"}, "thread x"},
		{{.tid = 1, .name = "a;\n\xff"}, "thread a:\\x0a\\xff (1)"},
		{{.tid = 1, .name = "0123456789abcde"}, "thread 0123456789abcde (1)"},
		{{.tid = 1, .name = "x", .interpreter_id = 3}, "thread x (1, interpreter 3)"},
		{{.name = "x", .interpreter_id = 3}, "thread x (interpreter 3)"},
	};
	char expected[THREAD_NAME_MAX_BYTES + 32] = "thread ";
	struct profile_thread full = {.tid = 1};
	__attribute__((cleanup(text_done))) struct text text = {0};

	for (size_t i = 0; i < NR(cases); i++) {
		label_append_thread(&text, &cases[i].thread, LABEL_COLLAPSED);
		expect_text(&text, cases[i].expected, cases[i].expected);
	}
	memset(full.name, 'x', sizeof(full.name));
	label_append_thread(&text, &full, LABEL_COLLAPSED);
	memset(expected + strlen(expected), 'x', sizeof(full.name));
	(void)strcat(expected, " (1)");
	expect_text(&text, expected, "not terminated");
}

Test(label, leaf_label_does_not_end_in_a_number)
{
	static const struct {
		const char *label, *expected;
	} cases[] = {
		{"x 5", "x 5 ()"},
		{"x 5.25", "x 5.25 ()"},
		{"x 5.", "x 5. ()"},
		{" 5", " 5 ()"},
		{"5", "5"},
		{"x5", "x5"},
		{"x 5a", "x 5a"},
		{"x .5", "x .5"},
		{"x 1.2.3", "x 1.2.3"},
		{"f (a.py:5)", "f (a.py:5)"},
		{"", ""},
		{"x -5", "x -5"},
		{"x ", "x "},
		{".", "."},
	};
	__attribute__((cleanup(text_done))) struct text text = {0};

	for (size_t i = 0; i < NR(cases); i++) {
		text_puts(&text, cases[i].label);
		label_end_leaf(&text);
		expect_text(&text, cases[i].expected, cases[i].label);
	}
}

Test(label, text_grows_and_keeps_its_first_error)
{
	__attribute__((cleanup(text_done))) struct text text = {0};

	cr_expect(eq(str, (char *)text_string(&text), (char *)""));
	for (int i = 0; i < 1000; i++) {
		text_printf(&text, "%03d", i);
		text_pad(&text, 1);
	}
	cr_assert(eq(int, text.error, 0));
	cr_expect(eq(sz, text.length, 4000));
	cr_expect(eq(int, memcmp(text.bytes + 3996, "999 ", 5), 0));
	text_append(&text, "", SIZE_MAX);
	cr_expect(eq(int, text.error, -ENOMEM));
	text_puts(&text, "ignored");
	cr_expect(eq(sz, text.length, 4000));
	cr_expect(eq(int, text_write(&text, stderr), -ENOMEM));
}
