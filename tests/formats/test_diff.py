# SPDX-License-Identifier: MIT
"""Recordings compared with others: each format that can show it, checked against sums of our
own."""
import collections
import re
import unittest
import xml.etree.ElementTree

import labels
import oracle
import subjects
import support
import tools
from test_collapsed import expected as expected_stacks
from test_summary import one_space
from test_svg import MAX_ROWS, MIN_WIDTH, SIDE_PAD, SVG, WIDTH, number

ROW = re.compile(r" *([\d.]+) +([\d.]+) +([+-][\d.]+) +([\d.]+) +([\d.]+) +([+-][\d.]+)"
                 r" +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) {2}(new {2}|gone {2}| {6}|)(.*)")
PERL_TITLE = re.compile(r"(?s)(.*) \(([\d,]+) samples, [\d.]+%; ([+-]?[\d.]+)%\)")
TITLE = re.compile(r"(?s)(.*) \(([\d,]+) samples, ([\d.]+)%; ([+-][\d.]+)%\)")


def pairs():
    """(recording, its base): with a base that shares next to nothing, and with itself."""
    made, live = subjects.made_up(), subjects.live()
    return [(live, made), (made, live), (live, live)]


def each(check):
    def check_each(case):
        for subject, base in pairs():
            with case.subTest("%s with %s" % (subject, base)):
                check(case, subject, base)
    return check_each


def report(subject, base, form, *options):
    return subjects.report(subject.path, form=form, options=["--diff", base.path, *options])


class Collapsed(unittest.TestCase):
    @each
    def test_both_counts(self, subject, base):
        got = {}
        runs, text = support.split_collapsed(support.read(report(subject, base, "collapsed",
                                                                   "--header")))
        self.assertEqual(len(runs), 2)
        for line in text.split("\n")[:-1]:
            stack, before, now = line.rsplit(" ", 2)
            self.assertNotIn(stack, got)
            got[tuple(stack.split(";"))] = int(before), int(now)
        now, before = (expected_stacks(one.view()) for one in (subject, base))
        subjects.assert_same(self, got, {stack: (before[stack], now[stack])
                                         for stack in before | now})

    @each
    def test_boxes_of_flamegraph_pl(self, subject, base):
        """flamegraph.pl's title of a box: its name, its count, and how much its own count has
        changed."""
        perl = tools.program("perl", "perl")
        script = tools.file(tools.FLAMEGRAPH_PL, "libdevel-nytprof-perl")
        # It shortens the text of a box by bytes, in the middle of a character, too.
        svg = xml.etree.ElementTree.fromstring(tools.run(
            perl, script, "--minwidth", "0", "--width", "1000000",
            report(subject, base, "collapsed"), errors="replace"))
        got = collections.Counter()
        for title in svg.iter(SVG + "title"):
            found = PERL_TITLE.fullmatch(title.text)
            # The outermost box has no change, and a stack that is gone has no width.
            if found and number(found[2]):
                got[found[1], number(found[2]), found[3]] += 1
        now, before = (expected_stacks(one.view()) for one in (subject, base))
        weights = {stack: oracle.Weight(now[stack], 0) for stack in now | before}
        whole, boxes = sum(now.values()), collections.Counter()
        for stack, weight in oracle.prefixes(weights).items():
            change = 100 * (now[stack] - before[stack]) / whole
            name = re.sub("<", "(", stack[-1]).replace(">", ")")
            if weight.samples:
                boxes[name, weight.samples, ("+%.2f" if change > 0 else "%.2f") % change] += 1
        subjects.assert_same(self, got, boxes)


class Summary(unittest.TestCase):
    @each
    def test_rows(self, subject, base):
        def key(frame):
            return oracle.Frame(frame.function, frame.function.first_line)

        text = support.read(report(subject, base, "summary", "--rows", "0"))
        got = collections.Counter()
        for line in text.split("\n"):
            found = ROW.fullmatch(line)
            if found:
                *numbers, mark, name = found.groups()
                got[(*numbers, mark.strip(), one_space(name))] += 1
        sides = [(one.view().totals(key), one.view().whole().ns) for one in (subject, base)]
        expected = collections.Counter()
        for frame in {frame for totals, _ in sides for frame, total in totals.items()
                      if total.total.ns}:
            expected[self.row(frame, sides)] += 1
        subjects.assert_same(self, got, expected)

    @staticmethod
    def row(frame, sides):
        cells, times = [], []
        for of in ("self", "total"):
            ns = [getattr(totals[frame], of).ns if frame in totals else 0 for totals, _ in sides]
            shares = [100 * time / whole for time, (_, whole) in zip(ns, sides)]
            change = "%+.1f" % (shares[0] - shares[1])
            cells += ["%.1f" % share for share in shares] + [change.replace("-0.0", "+0.0")]
            times += ["%.3f" % (time / 1e9) for time in ns]
        mark = ("gone" if frame not in sides[0][0] else "new" if frame not in sides[1][0] else "")
        return (*cells, *times, mark, one_space("%s %s" % (
            labels.escaped(frame.function.qualname) or "?",
            labels.place(frame.function.path, frame.line))))


class Svg(unittest.TestCase):
    @each
    def test_boxes(self, subject, base):
        root = xml.etree.ElementTree.parse(report(subject, base, "svg")).getroot()
        got = collections.Counter(
            (found[1], number(found[2]), found[3], found[4])
            for found in (TITLE.fullmatch(title.text) for title in root.iter(SVG + "title")))
        wholes = [one.view().whole().samples for one in (subject, base)]
        sides = [oracle.prefixes({(None, *(names or (oracle.IDLE,))): weight for names, weight
                                  in one.view().stacks(self.key).items()})
                 for one in (subject, base)]
        expected = collections.Counter()
        for names, weight in sides[0].items():
            shares = [side.get(names, oracle.NOTHING).samples / whole
                      for side, whole in zip(sides, wholes)]
            if (shares[0] * (WIDTH - 2 * SIDE_PAD) >= MIN_WIDTH
                    and len(names) <= MAX_ROWS):
                name = labels.by_line(names[-1]) if len(names) > 1 else "all"
                # In this order, so that halves are rounded as pysample does.
                expected[name, weight.samples, "%.2f" % (100 * shares[0]),
                         "%+.2f" % (100 * (shares[0] - shares[1]))] += 1
        subjects.assert_same(self, got, expected)

    @staticmethod
    def key(frame):
        return oracle.Frame(frame.function, frame.function.first_line)
