# SPDX-License-Identifier: MIT
"""Names of frames and threads in texts for people, following output/profile/label.h."""
import re

import oracle

CONTROLS = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
STRAY_BYTE = re.compile("[\udc80-\udcff]")
LEAF_WITH_COUNT = re.compile(r" [0-9]+(\.[0-9]*)?$")


def escaped(text):
    text = CONTROLS.sub(
        lambda found: ("\\x%02x" if found[0] < "\x80" else "\\u%04x") % ord(found[0]), text)
    return STRAY_BYTE.sub(lambda found: "\\x%02x" % (ord(found[0]) - 0xdc00), text)


def place(path, line, mark=""):
    return path and escaped(path) + (":%s%d" % (mark, line) if line else "")


def function_label(function, line, mark=""):
    where = place(function.path, line, mark)
    return (escaped(function.qualname) or "?") + (" (%s)" % where if where else "")


def by_function(frame):
    return function_label(frame.function, frame.function.first_line)


def line_mark(frame, late):
    """The mark before a line that may be a few statements late."""
    return "~" if frame in late else ""


def by_line(frame, late=frozenset()):
    return function_label(frame.function, frame.line, line_mark(frame, late))


def thread_label(thread):
    inside = [str(thread.tid)] if thread.tid else []
    inside += ["interpreter %d" % thread.interpreter] if thread.interpreter else []
    return " ".join(["thread"] + [escaped(thread.name)] * bool(thread.name)
                    + ["(%s)" % ", ".join(inside)] * bool(inside))


def collapsed(label):
    """The label where ';' separates frames and a number at the end would be a count."""
    label = label.replace(";", ":")
    return label + " ()" if LEAF_WITH_COUNT.search(label) else label


IDLE = by_function(oracle.IDLE)


def as_json(text):
    """In a field of its own, as json_string() writes it."""
    return STRAY_BYTE.sub("\ufffd", text)


def thread_name(thread):
    """The name of a thread where only names identify threads."""
    name = escaped(thread.name) or "thread %d" % thread.tid
    return name + (" (interpreter %d)" % thread.interpreter if thread.interpreter else "")


def decoded_by_javascript(text):
    """JavaScript's TextDecoder removes a byte order mark at the beginning of any text."""
    return text.removeprefix("\ufeff")
