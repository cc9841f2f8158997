# SPDX-License-Identifier: MIT
"""Recordings compared with others: each format that can show it, checked against sums of our
own."""
import collections
import json
import random
import re
import unittest
import xml.etree.ElementTree

import labels
import oracle
import recording_writer
import subjects
import support
import synthetic
import tools
from support import schemas
from test_summary import one_space
from test_svg import MAX_ROWS, MIN_WIDTH, SIDE_PAD, SVG, WIDTH, number

ROW = re.compile(r" *([\d.]+) +([\d.]+) +([+-][\d.]+) +([\d.]+) +([\d.]+) +([+-][\d.]+)"
                 r" +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) {2}(new {2}|gone {2}| {6}|)(.*)")
PERL_TITLE = re.compile(r"(?s)(.*) \(([\d,]+) samples, [\d.]+%; ([+-]?[\d.]+)%\)")
TITLE = re.compile(r"(?s)(.*) \(([\d,]+) microseconds, ([\d.]+)%; ([+-][\d.]+)%(, new)?\)")


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


def compared(subject, base):
    """What collapsed stacks of a comparison have: {tuple of labels: (us of the base in as long a
    time, us)}."""
    views = [one.view() for one in (base, subject)]
    scales = [views[1].whole().ns / view.whole().ns for view in views]
    found = collections.defaultdict(lambda: [0, 0])
    for side, (view, scale) in enumerate(zip(views, scales)):
        for names, weight in view.stacks(lambda frame: oracle.Frame(frame.function, 0)).items():
            label = tuple(labels.collapsed(labels.by_function(one)) for one in names)
            found[label or (labels.IDLE,)][side] += max(1, int(weight.ns * scale / 1000 + 0.5))
    return {names: tuple(pair) for names, pair in found.items()}


class Collapsed(unittest.TestCase):
    def assert_near(self, got, expected):
        """Equal, but for the last digit of sums in floating point."""
        subjects.assert_same(self, {stack: tuple(map(bool, pair)) for stack, pair in got.items()},
                             {stack: tuple(map(bool, pair)) for stack, pair in expected.items()})
        for stack, pair in expected.items():
            for one, other in zip(got[stack], pair):
                self.assertAlmostEqual(one, other, delta=1, msg=stack)

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
        self.assert_near(got, compared(subject, base))

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
        stacks = compared(subject, base)
        weights = {stack: oracle.Weight(now, 0) for stack, (_, now) in stacks.items()}
        whole, boxes = sum(now for _, now in stacks.values()), collections.Counter()
        for stack, weight in oracle.prefixes(weights).items():
            before, now = stacks.get(stack, (0, 0))
            change = 100 * (now - before) / whole
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
            (found[1], number(found[2]), found[3], found[4], bool(found[5]))
            for found in (TITLE.fullmatch(title.text) for title in root.iter(SVG + "title")))
        wholes = [one.view().whole().ns for one in (subject, base)]
        sides = [oracle.prefixes({(None, *(names or (oracle.IDLE,))): weight for names, weight
                                  in one.view().stacks(self.key).items()})
                 for one in (subject, base)]
        expected = collections.Counter()
        for names, weight in sides[0].items():
            shares = [side.get(names, oracle.NOTHING).ns / whole
                      for side, whole in zip(sides, wholes)]
            if (shares[0] * (WIDTH - 2 * SIDE_PAD) >= MIN_WIDTH
                    and len(names) <= MAX_ROWS):
                name = labels.by_line(names[-1]) if len(names) > 1 else "all"
                # In this order, so that halves are rounded as pysample does.
                change = "%+.2f" % (100 * (shares[0] - shares[1]))
                expected[name, (weight.ns + 500) // 1000, "%.2f" % (100 * shares[0]),
                         change.replace("-0.00", "+0.00"), names not in sides[1]] += 1
        subjects.assert_same(self, got, expected)

    @staticmethod
    def key(frame):
        return oracle.Frame(frame.function, frame.function.first_line)


SHARES = {"steady": 5, "fading": 3, "ending": 2}  # of ten ticks


class Rates(unittest.TestCase):
    """Recordings of one program at other rates and of other durations, with exact shares."""

    def record(self, hz, seconds, functions):
        """Record ten ticks of functions again and again. The first sample has no weight."""
        writer = recording_writer.Writer(random.Random(hz), synthetic.EPOCH_US)
        writer.info(pysample="1.2.3", host="host", start_unix_ns=synthetic.EPOCH_US * 1000, pid=1,
                    command_line="python3 app.py", engine="bpf", mode="wall", states="true",
                    requested_hz=hz, start_ns=synthetic.BEGIN_NS)
        writer.process(oracle.Process(1, "python3 app.py"))
        writer.thread(0, oracle.Thread(0, 1, 0, True, "MainThread"))
        main = oracle.Frame(oracle.Function(oracle.PYTHON, "main", "/app.py", 1), 2)
        stacks = [(main, oracle.Frame(oracle.Function(oracle.PYTHON, name, "/app.py", 10), 11))
                  for name, nr in functions.items() for _ in range(nr)]
        interval = 10 ** 9 // hz
        writer.samples([(synthetic.BEGIN_NS + tick * interval,
                         [(0, stacks[tick % 10], interval // 1000 if tick else 0, 0, 0)])
                        for tick in range(hz * seconds + 1)], interval)
        path = subjects.path_of("%d-%d-%s.pysample" % (hz, seconds, "-".join(functions)))
        with open(path, "wb") as file:
            file.write(writer.finish())
        return path

    def setUp(self):
        self.base = self.record(100, 2, SHARES)
        self.same = self.record(1000, 1, SHARES)
        self.other = self.record(1000, 1, {"steady": 5, "fading": 1, "starting": 4})

    def read(self, path, form, *options):
        return support.read(subjects.report(path, form=form,
                                            options=["--diff", self.base, *options]))

    def test_collapsed(self):
        def stacks(path):
            return {line.rsplit(" ", 2)[0].split(";")[1].split(" ")[0]:
                    tuple(map(int, line.rsplit(" ", 2)[1:]))
                    for line in self.read(path, "collapsed").splitlines()}

        self.assertEqual(stacks(self.same), {
            name: (100_000 * nr, 100_000 * nr) for name, nr in SHARES.items()})
        self.assertEqual(stacks(self.other), {
            "steady": (500_000, 500_000), "fading": (300_000, 100_000), "ending": (200_000, 0),
            "starting": (0, 400_000)})

    def test_summary(self):
        def rows(path):
            return {found[12].split()[0]: (found[1], found[2], found[3], found[11].strip())
                    for found in map(ROW.fullmatch, self.read(path, "summary").split("\n")) if found}

        self.assertEqual(rows(self.same), {
            "main": ("0.0", "0.0", "+0.0", ""), "steady": ("50.0", "50.0", "+0.0", ""),
            "fading": ("30.0", "30.0", "+0.0", ""), "ending": ("20.0", "20.0", "+0.0", "")})
        self.assertEqual(rows(self.other), {
            "main": ("0.0", "0.0", "+0.0", ""), "steady": ("50.0", "50.0", "+0.0", ""),
            "fading": ("10.0", "30.0", "-20.0", ""), "ending": ("0.0", "20.0", "-20.0", "gone"),
            "starting": ("40.0", "0.0", "+40.0", "new")})

    def test_svg(self):
        def boxes(path):
            return {found[1].split(" ")[0]: (found[2], found[4], bool(found[5]))
                    for found in map(TITLE.fullmatch, re.findall(
                        "<title>(.*)</title>", self.read(path, "svg")))}

        self.assertEqual(boxes(self.same), {
            "all": ("1,000,000", "+0.00", False), "main": ("1,000,000", "+0.00", False),
            **{name: ("%d00,000" % nr, "+0.00", False) for name, nr in SHARES.items()}})
        self.assertEqual(boxes(self.other), {
            "all": ("1,000,000", "+0.00", False), "main": ("1,000,000", "+0.00", False),
            "steady": ("500,000", "+0.00", False), "fading": ("100,000", "-20.00", False),
            "starting": ("400,000", "+40.00", True)})
        self.assertIn("20.00% of the base is in stacks that no longer occur",
                      self.read(self.other, "svg"))

    def test_json(self):
        def functions(path):
            profile = json.loads(self.read(path, "json"))
            schemas.validate(profile, "profile.schema.json")
            return {one["name"]: (one["own"]["percent"], one["base"]["own"]["percent"],
                                  one["only_in"]) for one in profile["functions"]}

        self.assertEqual(functions(self.same), {
            "main": (0, 0, None), **{name: (10 * nr, 10 * nr, None)
                                     for name, nr in SHARES.items()}})
        self.assertEqual(functions(self.other), {
            "main": (0, 0, None), "steady": (50, 50, None), "fading": (10, 30, None),
            "ending": (0, 20, "base"), "starting": (40, 0, "profile")})

    def test_page(self):
        """Its table compares the shares that each side has of its own sum."""
        for path, name in (self.same, "ending"), (self.other, "starting"):
            page = subjects.report(path, form="flamegraph", options=["--diff", self.base],
                                   suffix=".html")
            rows = tools.in_browser("page_diff.mjs", page)
            found = {row["name"]: row for row in rows}
            with self.subTest(name):
                if path == self.same:
                    self.assertEqual({row["change"] for row in rows}, {"0"})
                    self.assertEqual({row["mark"] for row in rows}, {""})
                else:
                    self.assertEqual((found["starting"]["change"], found["starting"]["mark"]),
                                     ("+40.0\u202f%", "new"))
                    self.assertEqual((found["ending"]["change"], found["ending"]["mark"]),
                                     ("−20.0\u202f%", "gone"))
                    self.assertEqual(found["steady"]["change"], "0")

    def test_fail_above(self):
        for path, status in (self.same, 0), (self.other, 10):
            result = support.pysample("report", path, "--diff", self.base, "--fail-above", "0.01",
                                      "-o", "/dev/null", "-f", "summary")
            self.assertEqual(result.status, status, result.stderr)
