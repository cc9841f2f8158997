/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/version_text.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

Test(version_text, parses_texts_of_interpreters)
{
	static const struct {
		const char *text;
		uint32_t version_hex;
		bool is_pypy;
	} cases[] = {
		{"2.7.18 (default, May  9 2026, 10:00:00) \n[GCC 12.2.0]", 0x020712f0, false},
		{"3.6.15 (default, May  9 2026, 10:00:00) \n[GCC 12.2.0]", 0x03060ff0, false},
		{"3.9.18 (main, May  9 2026, 10:00:00) \n[GCC 12.2.0]", 0x030912f0, false},
		{"3.11.2 (main, Apr 28 2025, 14:11:48) [GCC 12.2.0]", 0x030b02f0, false},
		{"3.12.0a7+ (heads/main:1234567, Apr 28 2025, 14:11:48) [Clang 16.0.6 ]",
		 0x030c00a7, false},
		{"3.12.0b1 (tags/v3.12.0b1, Apr 28 2025, 14:11:48) [GCC 12.2.0]", 0x030c00b1,
		 false},
		{"3.13.0rc2 (main, Apr 28 2025, 14:11:48) [GCC 12.2.0]", 0x030d00c2, false},
		{"3.9.18 | packaged by conda-forge | (main, Aug 30 2023, 03:49:32) \n[GCC 12.3.0]",
		 0x030912f0, false},
		{"3.8.18 (default, xx/xx/xx, xx:xx:xx) \n[C]", 0x030812f0, false},
		{"3.10.14 (75b3de9d9035, Apr 21 2024, 10:54:48)\n[PyPy 7.3.16 with GCC 10.2.1]",
		 0x030a0ef0, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct version_text version = {0};

		cr_expect(version_text_may_begin((const uint8_t *)cases[i].text));
		cr_expect(version_text_parse(cases[i].text, strlen(cases[i].text), &version), "%s",
			  cases[i].text);
		cr_expect(eq(u32, version.version_hex, cases[i].version_hex), "%s", cases[i].text);
		cr_expect(eq(int, version.is_pypy, cases[i].is_pypy), "%s", cases[i].text);
	}
}

Test(version_text, other_texts_are_refused)
{
	static const char *const texts[] = {
		"",
		"3",
		"3.",
		"3.9.18",
		"3.9.18 ",
		"3.40.1 2022-12-28 14:03:47",
		"3.9 (main, May  9 2026, 10:00:00) [GCC]",
		"3.9.18(main, May  9 2026, 10:00:00) [GCC]",
		"3.9.256 (main, May  9 2026, 10:00:00) [GCC]",
		"3.99999999999999999999.1 (main, May  9 2026, 10:00:00) [GCC]",
		"3.9.0rc16 (main, May  9 2026, 10:00:00) [GCC]",
		"3.9.0rc (main, May  9 2026, 10:00:00) [GCC]",
		"3.9.18 (main, May  9 2026) [GCC]",
		"3.9.18 (main 10:00:00) [GCC]",
		"3.9.18 (main, May  9 2026, 10:00:00) GCC",
		"3.9.18 (main, May  9 2026, 10:00:00)",
		"3.9.18 (main, \x01 9 2026, 10:00:00) [GCC]",
		"3.9.18 %s (%.80s) %.80s",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct version_text version;

		cr_expect(not(version_text_parse(texts[i], strlen(texts[i]), &version)), "%s",
			  texts[i]);
	}
}

/* A truncated text is refused, and nothing after its end is read, as a sanitizer would see. */
Test(version_text, truncated_texts_are_refused)
{
	static const char whole[] = "3.11.2 (main, Apr 28 2025, 14:11:48) [";

	for (size_t size = 0; size < sizeof(whole); size++) {
		char *text = malloc(size ? size : 1);
		struct version_text version;

		memcpy(text, whole, size);
		cr_expect(eq(int, version_text_parse(text, size, &version),
			     size >= sizeof(whole) - 1),
			  "%zu", size);
		free(text);
	}
}
