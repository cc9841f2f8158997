/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/text/xml.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

Test(xml, escapes_all_markup)
{
	static const struct {
		const char *string, *escaped;
	} cases[] = {
		{"", ""},
		{"plain (app.py:3)", "plain (app.py:3)"},
		{"<module>", "&lt;module&gt;"},
		{"</script><b a='x' b=\"y\">&amp;",
		 "&lt;/script&gt;&lt;b a=&#39;x&#39; b=&quot;y&quot;&gt;&amp;amp;"},
		{"new\nline\033[1m\x7f", "new\\x0aline\\x1b[1m\\x7f"},
		{"\xff\xc0\x80<", "\\xff\\xc0\\x80&lt;"},
		{"\xef\xbf\xbe|\xef\xbf\xbf", "\xef\xbf\xbd|\xef\xbf\xbd"}, /* U+FFFE, U+FFFF */
		{"\xc2\x85\xe2\x80\xae", "\\u0085\\u202e"},
		{"\xf0\x9f\x90\x8d \xc3\xa9", "\xf0\x9f\x90\x8d \xc3\xa9"},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct text text = {0};

		xml_puts(&text, cases[i].string);
		cr_expect(eq(str, (char *)text_string(&text), (char *)cases[i].escaped));
		text_done(&text);
	}
}
