# SPDX-License-Identifier: MIT
"""Collapsed stacks, read by our own parser and by flamegraph.pl."""
import collections
import re
import unittest
import xml.etree.ElementTree

import labels
import oracle
import subjects
import support
import tools


def expected(view, key=labels.by_function, **how):
    """{tuple of labels: count}"""
    counts = collections.Counter()  # a function may have the label of stacks without frames
    for names, weight in view.stacks(lambda frame: labels.collapsed(key(frame)), **how).items():
        count = (weight.ns + 500) // 1000 if view.mode == "cpu" else weight.samples
        if count:
            counts[names or (labels.IDLE,)] += count
    return counts


def root(recording, sample):
    return labels.collapsed(labels.thread_label(recording.thread_of(sample)))


class Collapsed(unittest.TestCase):
    @subjects.each
    def check(self, subject, options=(), key=labels.by_function, **how):
        text = support.read(subjects.report(subject.path, form="collapsed", options=options))
        subjects.assert_same(self, support.parse_collapsed(text),
                             expected(subject.view(**how), key))

    def test_functions(self):
        self.check()

    def test_lines(self):
        self.check(["--lines"], labels.by_line)

    def test_modes(self):
        for mode in oracle.MODES:
            with self.subTest(mode):
                self.check(["--mode", mode], mode=mode)

    @subjects.each
    def test_threads(self, subject):
        text = support.read(subjects.report(subject.path, form="collapsed", options=["-t"]))
        counts = collections.Counter()
        for names, count in expected(subject.view(), group=root).items():
            counts[names if len(names) > 1 else names + (labels.IDLE,)] += count
        subjects.assert_same(self, support.parse_collapsed(text), counts)


class FlamegraphPl(unittest.TestCase):
    """The original flamegraph.pl, which has a title for every box."""

    def titles(self, path):
        perl = tools.program("perl", "perl")
        script = tools.file(tools.FLAMEGRAPH_PL, "libdevel-nytprof-perl")
        # It shortens the text of a box by bytes, in the middle of a character, too; titles are whole.
        svg = xml.etree.ElementTree.fromstring(tools.run(
            perl, script, "--minwidth", "0", "--width", "1000000", path, errors="replace"))
        boxes = collections.Counter()
        for title in svg.iter("{http://www.w3.org/2000/svg}title"):
            name, count = re.fullmatch(r"(.*) \(([\d,]+) samples, [\d.]+%\)", title.text).groups()
            boxes[name, int(count.replace(",", ""))] += 1
        return boxes

    @subjects.each
    def test_boxes(self, subject):
        stacks = collections.Counter()
        for names, count in expected(subject.view()).items():
            # flamegraph.pl writes names like this.
            stacks[tuple(re.sub("<", "(", name).replace(">", ")") for name in names)] += count
        boxes = collections.Counter({("all", sum(stacks.values())): 1})
        weights = {names: oracle.Weight(count, 0) for names, count in stacks.items()}
        for names, weight in oracle.prefixes(weights).items():
            boxes[names[-1], weight.samples] += 1
        path = subjects.report(subject.path, form="collapsed")
        subjects.assert_same(self, self.titles(path), boxes)
