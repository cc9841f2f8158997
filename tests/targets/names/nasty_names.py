# SPDX-License-Identifier: MIT
"""Names that mean something to one format or another."""

NAMES = [
    # collapsed stacks
    ";", "semi;colon;", "worker 3 5", "half 0.5", "point 5.", "12", " ends in spaces  ",
    "new\nline 7", "tab\tand\rreturn", "#comment", "[no python frames]", "[other stacks]",
    "(paren)", "name (a.py:3)",
    # HTML, XML, JSON, JavaScript
    "</script><script>document.title='owned'</script>", "</title></text>", "<b>bold</b>",
    "<!--", "-->", "]]>", "&amp;&lt;&#x3c;", "<img src=x onerror=alert(1)>", 'double "quotes"',
    "single 'quotes'", "`tick` ${x}", "{curly}", "null", "__proto__", "constructor", "toString",
    "\u2028line\u2029paragraph",
    # terminals
    "\033[2J\033[31mred", "\x9b2J", "\x07\x08\x7f", "\u202eexe.txt", "\u2066isolate",
    # C, shells, paths
    "%s%n%d%%", "back\\slash\\n\\u0041", "C:\\temp", "../../etc/passwd", "-o /tmp/x", "=1+1",
    # callgrind
    "fn=(1) cheat", "calls=9 9", "totals: 1", "(1)", "(1) one", "* star", "+3", "0x10 5",
    # text
    "\U0001f40d\U0001f469\u200d\U0001f469\u200d\U0001f467", "e\u0301\u0327 combining",
    "caf\u00e9", "cafe\u0301", "\uff26\uff35\uff2c\uff2c\u5e45", "\ufeffbom", "zero\u200bwidth",
    "no\u00a0break", "lone \ud800 surrogate",
    # names that mean something else
    "", "?", "<GC>", "<module>", "<lambda>", "all", "root", "thread main (1)",
    "long " + 3000 * "x",
]

PATHS = [
    "/srv/a;b c.py", "", "/srv/</script>.py", "/srv/\"quoted\" 'path'.py", "/srv/new\nline.py",
    "relative.py", "/srv/\033[31mred\U0001f525.py", "<string>", "/srv/x.py 5",
    "/srv/a&b<c>.py", "C:\\back\\slash.py", "/srv/" + 40 * "deep/" + "x.py",
    "/usr/lib/python3/dist-packages/site.py", "/srv/%2e%2e/%s.py",
]

THREADS = [
    "worker 3 5", "a;b", "</script><b>", "\033[2Jred\n", "\u202ertl \U0001f40d",
    "\"quoted\" 'name' \\ %s", "",
]
