# SPDX-License-Identifier: MIT
"""Filters, merging and comparing, checked with collapsed stacks."""
import functools
import re
import unittest

import labels
import oracle
import subjects
import support
from test_collapsed import expected


def has(flag):
    return lambda recording, sample: bool(sample.flags & flag)


STATES = {"gil": has(oracle.HOLDS_GIL), "cpu": has(oracle.ON_CPU), "gc": has(oracle.GC),
          "exception": has(oracle.EXCEPTION), "jit": has(oracle.IN_JIT),
          "approximate": has(oracle.APPROXIMATE), "waits": has(oracle.WAITS_FOR_GIL),
          "idle": has(oracle.WAITING), "busy": lambda *what: not STATES["idle"](*what)}


def matches(pattern):
    found = re.compile(pattern)

    @functools.lru_cache(maxsize=None)
    def is_match(function):
        return bool(found.search(labels.function_label(function, function.first_line)))

    return lambda recording, sample: any(
        is_match(frame.function) for frame in recording.stacks[sample.stack])


class Filters(unittest.TestCase):
    @subjects.each
    def check(self, subject, passes, *options):
        view = subject.view(passes=passes)
        if not view.samples:
            result = support.pysample("report", subject.path, "-f", "collapsed", *options)
            self.assertEqual(result.status, 5, result.stderr)
            return
        text = support.read(subjects.report(subject.path, form="collapsed", options=options))
        subjects.assert_same(self, support.parse_collapsed(text), expected(view))

    def test_time(self):
        for start, end in (0.25, 0.75), (0, 0.5), (1.001, 0), (0.3005, 0.301):
            with self.subTest((start, end)):
                options = [word for name, time in (("--from", start), ("--to", end)) if time
                           for word in (name, "%gs" % time)]
                self.check(oracle.in_time(round(start * 1e9), round(end * 1e9)), *options)

    def test_states(self):
        for name, passes in STATES.items():
            with self.subTest(name):
                self.check(passes, "--state", name)
                self.check(lambda *what, passes=passes: not passes(*what), "--state", "!" + name)

    def test_two_states(self):
        self.check(lambda *what: STATES["cpu"](*what) and not STATES["gil"](*what),
                   "--state", "cpu", "--state", "!gil")

    def test_threads(self):
        names = "a;b", "</script><b>", "renamed; 5", '"quoted" \'name\' \\ %s'
        for name in names:
            with self.subTest(name):
                self.check(oracle.of_thread(name), "--thread", name)
        self.check(oracle.of_thread(*names[:2]), "--thread", names[0], "--thread", names[1])

    def test_thread_ids(self):
        for thread in subjects.live().recording.threads[:3]:
            self.check(oracle.of_thread(str(thread.tid)), "--thread", thread.tid)

    def test_process(self):
        def passes(recording, sample):
            return recording.process_of(sample).pid == 4243

        self.check(passes, "--process", "4243")

    def test_patterns(self):
        for pattern in r"<b>", r"\.py:10\)$", "^\\?", "worker", "🐍", r"^.{60,}$":
            with self.subTest(pattern):
                self.check(matches(pattern), "--include", pattern)
                self.check(lambda *what, found=matches(pattern): not found(*what),
                           "--exclude", pattern)


class Several(unittest.TestCase):
    def test_merged(self):
        one, other = subjects.made_up(), subjects.live()
        for mode in oracle.MODES:
            with self.subTest(mode):
                text = support.read(subjects.report(one.path, other.path, form="collapsed",
                                                    options=["--mode", mode]))
                subjects.assert_same(self, support.parse_collapsed(text), expected(
                    oracle.View(one.recording, other.recording, mode=mode)))


class OneRun(unittest.TestCase):
    @support.thorough_with_all
    def test_outputs(self):
        """What attach wrote beside the recording is what report makes of it."""
        for subject in subjects.lives():
            for suffix in ".collapsed", ".jsonl":
                with self.subTest(suffix):
                    form = suffix[1:]
                    self.assertEqual(
                        sorted(support.read(subject.path + suffix).split("\n")),
                        sorted(support.read(subjects.report(subject.path, form=form)).split("\n")))
