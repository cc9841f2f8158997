# SPDX-License-Identifier: MIT
"""The interactive flame graph in a headless browser, checked by its totals."""
import collections
import gzip
import json
import pathlib
import re
import unittest

import labels
import oracle
import subjects
import support
import tools
from test_filters import matches

DATA = re.compile(r'<script type="text/plain" id="pysample-data">([^<]*)</script>')
BUSY = {"state": "busy"}


def base91(text):
    """Decode to bytes: 13 bits are two digits from # on, with ~ for <; up to six bits are one
    digit."""
    digits = [ord(character) - ord("#") for character in text.replace("~", "<")]
    out, bits, nr_bits = bytearray(), 0, 0
    for low, high in zip(digits[::2], digits[1::2] + [0]):
        bits |= (low + 91 * high) << nr_bits
        nr_bits += 13
        while nr_bits > 7:
            out.append(bits & 0xff)
            bits >>= 8
            nr_bits -= 8
    return bytes(out[:(len(digits) // 2 * 13 + len(digits) % 2 * 6) // 8])


def meta_of(path):
    """The header of the page's data."""
    data = gzip.decompress(base91(DATA.search(support.read(path))[1]))
    return json.loads(data[4:4 + int.from_bytes(data[:4], "little")])


def first_line(frame):
    return frame._replace(line=frame.function.first_line)


def in_json(frame):
    function = frame.function
    return labels.function_label(function._replace(
        qualname=labels.as_json(function.qualname), path=labels.as_json(function.path)), frame.line)


def sums(view, of, by=first_line):
    """{label: us} of functions, or of their lines."""
    found = collections.Counter()
    for frame, total in view.totals(by).items():
        found[in_json(frame)] += getattr(total, of).ns // 1000
    return +found


def of_weight(pairs):
    return {label: us for label, us in pairs if us}


STATES = {
    "all": lambda recording, sample: True,
    "busy": lambda recording, sample: not sample.flags & oracle.WAITING,
    "idle": lambda recording, sample: bool(sample.flags & oracle.WAITING),
    "cpu": lambda recording, sample: bool(sample.flags & oracle.ON_CPU),
    "gil": lambda recording, sample: bool(sample.flags & oracle.HOLDS_GIL),
    "waits": lambda recording, sample: bool(sample.flags & oracle.WAITS_FOR_GIL),
    "gc": lambda recording, sample: bool(sample.flags & oracle.GC),
    "exception": lambda recording, sample: bool(sample.flags & oracle.EXCEPTION),
    "jit": lambda recording, sample: bool(sample.flags & oracle.IN_JIT),
    "approximate": lambda recording, sample: bool(sample.flags & oracle.APPROXIMATE),
    "exact": lambda recording, sample: not sample.flags & oracle.APPROXIMATE,
}


def both(*filters):
    return lambda *what: all(passes(*what) for passes in filters)


def below(names):
    """Stacks that begin with these names."""
    def passes(recording, sample):
        frames = recording.stacks[sample.stack][:len(names)]
        return [labels.by_function(frame) for frame in frames] == names
    return passes


class Page(unittest.TestCase):
    def write(self, subject, *options):
        return subjects.report(subject.path, form="flamegraph", options=options, suffix=".html")

    def run_steps(self, path, steps):
        """The answers, one for each step. The page must raise no complaint and request nothing
        else."""
        answer = tools.in_browser("page_totals.mjs", path, steps)
        self.assertEqual(answer["complaints"], [])
        self.assertEqual(answer["requests"], [pathlib.Path(path).as_uri()])
        self.assertNotIn("owned", answer["title"])
        self.assertEqual(answer["markup"], 0)
        return answer["totals"]

    def same(self, got, view):
        whole = view.whole()
        self.assertEqual((got["samples"], got["total"]), (whole.samples, whole.ns // 1000))
        for name, of in ("self", "self"), ("totals", "total"):
            subjects.assert_same(self, of_weight(got[name]), sums(view, of))

    @subjects.each
    def test_states(self, subject):
        got = self.run_steps(self.write(subject), [["set", {"state": state}] for state in STATES])
        for totals, (state, passes) in zip(got, STATES.items(), strict=True):
            view = subject.view(passes=passes)
            with self.subTest(state):
                if view.samples:
                    self.same(totals, view)
                else:
                    self.assertEqual(totals["samples"], 0)

    @subjects.each
    def test_lines(self, subject):
        """Totals here are of lines of source files, whichever functions they belong to."""
        (got,) = self.run_steps(self.write(subject), [["set", {"state": "all", "lines": True}]])
        view, functions = subject.view(), collections.defaultdict(set)
        for frame in view.totals(oracle.by_line):
            functions[labels.place(frame.function.path, frame.line)].add(frame.function)
        self.assertEqual(got["total"], view.whole().ns // 1000)
        subjects.assert_same(self, of_weight(got["self"]), sums(view, "self", oracle.by_line))
        alone = {in_json(frame) for frame in view.totals(oracle.by_line) if frame.line
                 and frame.function.path
                 and len(functions[labels.place(frame.function.path, frame.line)]) == 1}
        subjects.assert_same(self, *({label: us for label, us in found.items() if label in alone}
                                     for found in (of_weight(got["totals"]),
                                                   sums(view, "total", oracle.by_line))))

    @subjects.each
    def test_cpu(self, subject):
        (got,) = self.run_steps(self.write(subject, "--mode", "cpu"), [["set", {"state": "all"}]])
        self.same(got, subject.view(mode="cpu"))

    @subjects.each
    def test_busy(self, subject):
        """The page has all samples, begins with those of busy threads, and tells what is hidden."""
        got, shown, idle = self.run_steps(self.write(subject, "--mode", "busy"), [
            ["set", {}], ["set", {"state": "all"}], ["set", {"state": "idle"}]])
        self.same(got, subject.view(mode="busy"))
        self.same(shown, subject.view())
        whole = subject.view(passes=STATES["idle"]).whole()
        if whole.samples:
            self.same(idle, subject.view(passes=STATES["idle"]))
        self.assertEqual(got["hidden"], {"t": whole.ns // 1000, "n": whole.samples})

    @subjects.each
    def test_weighed_by_cpu(self, subject):
        """The samples that the mode shows, weighed by their CPU time."""
        view = subject.view()
        view.ns = lambda sample: sample.cpu
        (got,) = self.run_steps(self.write(subject), [["set", {"state": "all", "weight": "cpu"}]])
        self.same(got, view)

    @subjects.each
    def test_brush(self, subject):
        path = self.write(subject)
        start = round(meta_of(path)["start_ms"] * 1000)
        times = sorted({sample.time // 1000 - start for sample in subject.recording.samples})
        ranges = [(times[len(times) // 4], times[len(times) // 2]), (times[5], times[6]),
                  (times[-2], times[-1] + 1)]
        got = self.run_steps(path, [["set", {"state": "all", "from": one, "to": end}]
                                    for one, end in ranges])
        for totals, (one, end) in zip(got, ranges, strict=True):
            self.same(totals, subject.view(
                passes=lambda _, sample, one=one, end=end:
                one <= sample.time // 1000 - start < end))

    @subjects.each
    def test_threads(self, subject):
        path = self.write(subject)
        threads = meta_of(path)["threads"]
        got = self.run_steps(path, [["set", {"state": "all", "threads": [index]}]
                                    for index in range(len(threads))])
        for totals, thread in zip(got, threads, strict=True):
            self.same(totals, subject.view(
                passes=lambda recording, sample, thread=thread:
                (recording.thread_of(sample).tid, recording.thread_of(sample).name)
                == (thread["tid"], thread["name"])))

    @subjects.each
    def test_base(self, subject):
        """Threads that wait are hidden on both sides, although the base has only sums. Where they
        are there, the page says that only one side can hide them."""
        for mode in "busy", "wall":
            path = self.write(subject, "--diff", subject.path, "--mode", mode)
            base, busy = subject.view(mode=mode).whole(), subject.view(mode="busy").whole()
            steps = [["set", BUSY], ["set", {"state": "all"}], ["set", {"state": "gil"}]]
            *states, gil = self.run_steps(path, steps)
            for got, shown in zip(states, (busy, base), strict=True):
                with self.subTest(mode):
                    self.assertEqual((got["samples"], got["total"], got["base"]),
                                     (shown.samples, shown.ns // 1000, base.ns // 1000))
            self.assertEqual([got["oneSided"] for got in (*states, gil)],
                             [mode == "wall", False, True])

    @subjects.each
    def test_search(self, subject):
        """Matches are a union: a stack counts once, however many of its frames match."""
        patterns = "<b>", "worker", r"\.py:10\)$", "~none~"
        got = self.run_steps(self.write(subject), [["set", {"state": "all", "query": pattern}]
                                                   for pattern in patterns])
        for totals, pattern in zip(got, patterns, strict=True):
            whole = subject.view(passes=matches(pattern)).whole()
            self.assertEqual(totals["matched"], {"us": whole.ns // 1000,
                                                 "samples": whole.samples})

    @subjects.each
    def test_zoom(self, subject):
        view = subject.view(passes=STATES["busy"])
        boxes = oracle.prefixes(view.stacks(lambda frame: frame.function))
        named = collections.Counter(tuple(
            labels.function_label(one, one.first_line) for one in functions)
            for functions in boxes)
        chosen = [list(names) for names in list(named) if len(names) in (1, 4, 9)
                  and all(named[names[:length]] == 1 for length in range(1, len(names) + 1))]
        chosen = chosen[:3] + chosen[-3:]
        got = self.run_steps(self.write(subject), [["set", BUSY]] + [["zoom", names]
                                                                     for names in chosen])
        for totals, names in zip(got[1:], chosen, strict=True):
            self.same(totals, subject.view(passes=both(STATES["busy"], below(names))))
