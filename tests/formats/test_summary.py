# SPDX-License-Identifier: MIT
"""The table for people, read back."""
import collections
import re
import unittest

import labels
import oracle
import subjects
import support

HEAD = re.compile(r" self%  total%  +self s  +total s  function +where\n")
ROW = re.compile(r" *([\d.]+)  +([\d.]+)  +([\d.]+)  +([\d.]+)  (.*)")


def one_space(text):
    """Ignore the widths of columns."""
    return re.sub(" +", " ", text).strip()


def row_of(frame, total, whole, late):
    """(self %, total %, self s, total s, name and place)"""
    text = "%s %s" % (labels.escaped(frame.function.qualname) or "?",
                      labels.place(frame.function.path, frame.line,
                                   labels.line_mark(frame, late)))
    times = [weight.ns for weight in total]
    return (*("%.1f" % (100 * time / whole) for time in times),
            *("%.3f" % (time / 1e9) for time in times), one_space(text))


class Summary(unittest.TestCase):
    def rows(self, text):
        header, table = HEAD.split(text)
        self.assertRegex(header, r"\S")
        rows = collections.Counter()
        for line in table.split("\n")[:-1]:
            *numbers, name = ROW.fullmatch(line).groups()
            rows[(*numbers, one_space(name))] += 1
        return rows

    @subjects.each
    def check(self, subject, key, *options, **how):
        path = subjects.report(subject.path, form="summary", options=["--rows", "0", *options])
        view, expected = subject.view(**how), collections.Counter()
        late = view.late() if key is oracle.by_line else ()
        for frame, total in view.totals(key).items():
            if total.total.ns:
                expected[row_of(frame, total, view.whole().ns, late)] += 1
        rows = self.rows(support.read(path))
        subjects.assert_same(self, {row: count for row, count in rows.items()
                                    if float(row[3]) or row in expected}, expected)

    def test_functions(self):
        self.check(lambda frame: oracle.Frame(frame.function, frame.function.first_line))

    def test_lines(self):
        self.check(oracle.by_line, "--lines")

    def test_modes(self):
        for mode in oracle.MODES:
            with self.subTest(mode):
                self.check(lambda frame: oracle.Frame(frame.function, frame.function.first_line),
                           "--mode", mode, mode=mode)

    @subjects.each
    def test_explain(self, subject):
        """The time of a function, and each of its lines."""
        view = subject.view()
        whole, totals = view.whole().ns, view.totals(oracle.by_function)
        function = max((one for one in totals if one.kind == oracle.PYTHON
                        and one.qualname.isprintable()), key=lambda one: totals[one].total.ns)
        text = support.read(subjects.report(subject.path, form="summary", options=[
            "--rows", "0", "--explain", function.qualname]))
        own, total = totals[function]
        self.assertIn("\n%s\nself %.1f%%, %.3f s · total %.1f%%, %.3f s · %d sample" % (
            labels.function_label(function, function.first_line), 100 * own.ns / whole, own.ns / 1e9,
            100 * total.ns / whole, total.ns / 1e9, total.samples), text)
        expected = {str(frame.line or "?"): tuple("%.1f" % (100 * weight.ns / whole)
                                                  for weight in weights)
                    for frame, weights in view.totals(oracle.by_line).items()
                    if frame.function == function}
        lines = re.findall(r"(?m)^ *([\d.]+) +([\d.]+) +(\d+|\?)  ",
                           text.split("\nlines\n")[1].split("\n\n")[0])
        subjects.assert_same(self, {line: (own, total) for own, total, line in lines}, expected)
