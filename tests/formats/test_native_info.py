# SPDX-License-Identifier: MIT
"""What every format says of a live process's samples with C frames: that they are of user CPU
only, where they are, what [unknown] stands for, and which of them ran in code of CPython's JIT.
"""
import contextlib
import json
import os
import unittest

import oracle
import subjects
import support
from test_gecko import document as gecko_document
from test_matrix import NobodysInterpreter
from test_run_info import NOTES, READERS

USER_ONLY = "user CPU only"
ALLOWED_TO_ALL = 1  # kernel.perf_event_paranoid up to which anybody may sample the kernel
COUNTERS = ("stacks", "c_gaps", "python_gaps", "copies", "lost_copies", "without_copy",
            "foreign_copies", "refused_threads")


def newest_in_root():
    """An interpreter that another user can run: one in a separate root."""
    found = [one for one in support.tested_interpreters()
             if one.root and support.version_key(one) >= [3, 12]]
    if not found:
        raise unittest.SkipTest("not tested here: scripts/testbed was not run")
    return max(found, key=support.version_key)


@contextlib.contextmanager
def recorded(interpreter, pysample):
    """Yield the path of a recording with C frames, the counters of its run, and what it printed."""
    with support.fresh_folder() as (folder, _), \
            support.python_target(interpreter, "shortcalls") as target:
        os.chmod(folder, 0o777)
        path, counters = (os.path.join(folder, name) for name in ("a.pysample", "counters"))
        result = pysample("attach", "-n", "-d", 1, "-o", path, "--stats-json", counters,
                          target.pid)
        if "no C frames" in result.stderr:
            raise unittest.SkipTest("not tested here: " + result.stderr)
        if result.status:
            raise AssertionError(result)
        yield path, json.loads(support.read(counters)), result.stderr


class UserCpuOnly(unittest.TestCase):
    def notes(self, path):
        return {form: read(subjects.report(path, form=form, suffix=suffix))
                for form, (suffix, read) in NOTES.items()}

    def check(self, info, counters, expected):
        self.assertEqual(info["native"], "true")
        self.assertEqual(info["native.user_cpu_only"], str(expected).lower())
        self.assertEqual(counters["native"]["user_cpu_only"], expected)
        self.assertEqual({name: int(info["native." + name]) for name in COUNTERS},
                         {name: counters["native"][name] for name in COUNTERS})

    def check_counters(self, counters):
        native = counters["native"]
        self.assertGreater(native["stacks"], 0)
        self.assertLessEqual(native["stacks"], counters["samples"])
        self.assertLessEqual(native["c_gaps"], native["stacks"])
        self.assertLessEqual(native["foreign_copies"], native["copies"])

    def test_of_another_user(self):
        if int(support.read("/proc/sys/kernel/perf_event_paranoid")) <= ALLOWED_TO_ALL:
            self.skipTest("not tested here: perf_event_paranoid permits kernel samples to all")
        interpreter = NobodysInterpreter(**vars(newest_in_root()))
        with recorded(interpreter, support.pysample_as_nobody) as (path, counters, printed):
            self.assertIn(USER_ONLY, printed)
            self.check_counters(counters)
            for form, text in self.notes(path).items():
                with self.subTest(form):
                    self.assertIn(USER_ONLY, text)
            for form, reader in READERS.items():
                with self.subTest(form):
                    (info,), _ = reader([path])
                    self.check(info, counters, True)

    def test_with_all_rights(self):
        with recorded(newest_in_root(), support.pysample) as (path, counters, printed):
            if counters["native"]["user_cpu_only"]:
                self.skipTest("not tested here: kernel samples are not permitted")
            self.assertNotIn(USER_ONLY, printed)
            self.check_counters(counters)
            native = counters["native"]
            has_gaps = native["python_gaps"] + native["c_gaps"] > 0
            for form, text in self.notes(path).items():
                with self.subTest(form):
                    self.assertNotIn(USER_ONLY, text)
                    self.assertEqual(" of stacks have [unknown] for " in text, has_gaps)
            (info,), _ = READERS["recording"]([path])
            self.check(info, counters, False)


class InJit(unittest.TestCase):
    """A loop that the JIT has compiled. subjects.each checks it in every format."""

    def setUp(self):
        if not subjects.in_jit():
            self.skipTest("not tested here: no CPython with a JIT, or no C frames")
        (self.subject,) = subjects.in_jit()

    def test_samples(self):
        flagged = [one for one in self.subject.recording.samples if one.flags & oracle.IN_JIT]
        self.assertTrue(flagged)
        for one in flagged:
            frames = self.subject.recording.stacks[one.stack]
            self.assertIn(oracle.JIT, {frame.function.kind for frame in frames})

    def test_lines_that_may_be_late(self):
        """Where rows are lines those of the loop are marked. In collapsed stacks none is."""
        for form, is_marked in ("summary", True), ("svg", True), ("collapsed", False):
            with self.subTest(form):
                text = support.read(subjects.report(self.subject.path, form=form,
                                                    options=["--lines", "--rows", "0"]))
                self.assertEqual("jitloop.py:~" in text, is_marked)
                self.assertIn("jitloop.py:", text)

    def test_share_in_jit_is_reported(self):
        samples = self.subject.recording.samples
        part = sum(bool(one.flags & oracle.IN_JIT) for one in samples) / len(samples)
        for form, (suffix, read) in NOTES.items():
            with self.subTest(form):
                text = read(subjects.report(self.subject.path, form=form, suffix=suffix))
                self.assertIn("%.1f%% of samples ran in JIT code" % (100 * part), text)

    def test_category(self):
        """The Firefox Profiler's format has a category of that name for frames of the JIT's
        code."""
        document = gecko_document(subjects.report(self.subject.path, form="gecko"))
        names = [one["name"] for one in document["meta"]["categories"]]
        frames, functions, texts = (document["shared"][name] for name in
                                    ("frameTable", "funcTable", "stringArray"))
        found = {names[category] for category, function in zip(frames["category"], frames["func"])
                 if texts[functions["name"][function]] == "py::jit:executor"}
        self.assertEqual(found, {"jit"})

    def test_object(self):
        """KCachegrind groups functions by object."""
        text = support.read(subjects.report(self.subject.path, form="callgrind"))
        self.assertRegex(text, r"\nob=\(\d+\) \[jit\]\nfl=[^\n]*\nfn=\(\d+\) py::jit:executor\n|"
                         r"\ncob=\(\d+\) \[jit\]\ncfi=[^\n]*\ncfn=\(\d+\) py::jit:executor\n")


if __name__ == "__main__":
    unittest.main()
