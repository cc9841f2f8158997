# SPDX-License-Identifier: MIT
"""Callgrind's format, read by callgrind_annotate."""
import collections
import re
import unittest

import labels
import oracle
import subjects
import tools

NO_FILE = "???"
OF_MODULES = oracle.NATIVE, oracle.KERNEL
ROW = re.compile(r" *([\d,.]+) (?:\([ \d.]+%\))? +([\d,.]+) (?:\([ \d.]+%\))?  (.*)")


def file_of(function):
    return NO_FILE if function.kind in OF_MODULES or not function.path else function.path


def object_of(function):
    if function.kind == oracle.JIT:
        return "[jit]"
    if function.kind in OF_MODULES:
        return labels.escaped(function.path) or NO_FILE
    return "[python]"


def names(functions):
    """{function: "FILE:NAME [OBJECT]"}, with names kept apart as the document specifies."""
    shared = collections.Counter((file_of(one), one.qualname) for one in functions)
    has_objects = len({object_of(one) for one in functions}) > 1
    found = {}
    for one in functions:
        name = (labels.escaped(one.qualname) or "?").lstrip()  # as callgrind_annotate does
        if shared[file_of(one), one.qualname] > 1:
            name += ":%d" % one.first_line if one.first_line else (
                " (%s)" % labels.escaped(one.path) if one.path else "")
        found[one] = "%s:%s" % (labels.escaped(file_of(one)), name)
        found[one] += " [%s]" % object_of(one) if has_objects else ""
    return found


class Callgrind(unittest.TestCase):
    def annotated(self, path, inclusive):
        """(totals, {row: (samples, ns)}), without rows that have neither."""
        annotate = tools.program("callgrind_annotate", "valgrind")
        lines = tools.run(annotate, "--auto=no", "--threshold=100", "--inclusive=" + inclusive,
                          path).split("\n")
        rows = {}
        for line in lines:
            found = ROW.fullmatch(line)
            if found:
                samples, ns = (0 if text == "." else int(text.replace(",", ""))
                               for text in found.groups()[:2])
                name = found[3].lstrip()
                self.assertNotIn(name, rows)
                rows[name] = (samples, ns)
        totals = rows.pop("PROGRAM TOTALS")
        return totals, {name: pair for name, pair in rows.items() if any(pair)}

    @subjects.each
    def check(self, subject, options=(), **how):
        path = subjects.report(subject.path, form="callgrind", options=options)
        view = subject.view(**how)
        totals = view.totals(oracle.by_function)
        called = names([one for one in totals if one != oracle.IDLE.function])
        has_objects = any(name.endswith(" [[jit]]") for name in called.values())
        idle = "%s:%s" % (NO_FILE, labels.IDLE) + " [[python]]" * has_objects
        called[oracle.IDLE.function] = idle
        for inclusive, of in ("no", "self"), ("yes", "total"):
            expected = collections.defaultdict(lambda: oracle.NOTHING)
            for one, total in totals.items():  # a function may have IDLE's name
                expected[called[one]] = oracle.plus(expected[called[one]], getattr(total, of))
            expected = {name: tuple(pair) for name, pair in expected.items() if any(pair)}
            if inclusive == "yes":
                expected[idle.replace(labels.IDLE, "[all]")] = tuple(view.whole())
            whole, rows = self.annotated(path, inclusive)
            self.assertEqual(whole, tuple(view.whole()))
            subjects.assert_same(self, rows, expected)
            for pair in rows.values():
                self.assertLessEqual(pair, whole)  # more than 100 % is impossible

    def test_functions(self):
        self.check()

    def test_cpu(self):
        self.check(["--mode", "cpu"], mode="cpu")
