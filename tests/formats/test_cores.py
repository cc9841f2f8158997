# SPDX-License-Identifier: MIT
"""Profiles of core files: each thread of each core is one sample, in every format that needs no
time.
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import support
import tools
from support import core_files, schemas
from test_svg import SVG

PARKED = 50  # threads beside the main one in the situation "threads"


def native_label(frame):
    """support.label() for a frame of JSON, which may be a C function's."""
    if frame["kind"] != "native":
        return support.label(frame, "first_line")
    return "%s (%s)" % (frame["name"], frame["path"]) if frame["path"] else frame["name"]


def whole(thread):
    """A target's report on a thread, with each [frame, how often] expanded."""
    entries = [[entry, 1] if isinstance(entry, dict) else entry for entry in thread["frames"]]
    return {**thread, "frames": [frame for frame, nr in entries for _ in range(nr)]}


class Cores(unittest.TestCase):
    """Three cores, two of them of the same death."""

    @classmethod
    def setUpClass(cls):
        cls.enterClassContext(core_files.kernel_cores())
        interpreter = support.newest_interpreter()
        many = cls.enterClassContext(core_files.crashed(interpreter, "threads"))
        single = cls.enterClassContext(core_files.crashed(interpreter, "single", "segv"))
        cls.paths = [many.path, single.path, os.path.join(many.folder, "again.core")]
        shutil.copyfile(many.path, cls.paths[2])
        cls.threads, cls.crashed = [], []
        for report in many.report, single.report, many.report:
            threads = [whole(thread) for thread in report["threads"]]
            cls.threads += threads
            cls.crashed += [thread for thread in threads if thread["tid"] == report["tid"]]
        cls.python = many.report["python"]

    def core(self, *arguments, status=0):
        result = support.pysample("core", *arguments)
        self.assertEqual(result.status, status, result.stderr)
        return result

    def stacks(self, threads, line="first_line"):
        return collections.Counter(support.expected_stack(thread, line) for thread in threads)

    def test_collapsed(self):
        for options, threads, line in (((), self.threads, "first_line"),
                                       (("--lines",), self.threads, "line"),
                                       (("--crashed",), self.crashed, "first_line")):
            with self.subTest(options):
                text = self.core(*options, "-f", "collapsed", *self.paths).stdout
                self.assertEqual(support.parse_collapsed(text), self.stacks(threads, line))

    def test_c_frames(self):
        """They are where the JSON of each core has them."""
        for options in (), ("--crashed",):
            with self.subTest(options):
                text = self.core("--native", "--plumbing", *options, "-f", "collapsed",
                                 *self.paths).stdout
                threads = [thread for path in self.paths
                           for thread in core_files.core_json("--native", path)["threads"]
                           if thread["crashed"] or not options]
                wanted = collections.Counter(tuple(map(native_label, thread["frames"]))
                                             for thread in threads)
                self.assertEqual(support.parse_collapsed(text), wanted)
                self.assertIn("native", {frame["kind"] for frame in threads[0]["frames"]})

    def test_runs_are_described(self):
        text = self.core("-f", "collapsed", "--header", *self.paths).stdout
        runs = [json.loads(line.removeprefix("# run ")) for line in text.splitlines()
                if line.startswith("# run ")]
        self.assertEqual([run["core"] for run in runs], self.paths)
        self.assertEqual({run["python"] for run in runs}, {self.python})
        self.assertEqual([run["death"].split()[2] for run in runs],
                         ["SIGABRT", "SIGSEGV", "SIGABRT"])
        self.assertEqual([int(run["samples"]) for run in runs], [PARKED + 1, 1, PARKED + 1])
        self.assertEqual({run["mode"] for run in runs}, {"count"})

    def test_where_they_died(self):
        text = self.core(*self.paths).stdout
        head, *groups = text.split("\n\n")
        self.assertEqual(head, "3 cores, 2 distinct stacks")
        self.assertEqual([group.split("\n")[:2] for group in groups],
                         [["2 cores: %s, %s" % (self.paths[0], self.paths[2]),
                           "Killed by SIGABRT"],
                          ["1 core: " + self.paths[1], "Killed by SIGSEGV"]])
        for group, thread in zip(groups, self.crashed):
            self.assertEqual([line for line in group.split("\n") if line.startswith("  ")],
                             ['  File "%s", line %d, in %s' % (frame["path"], frame["line"],
                                                               frame["name"])
                              for frame in thread["frames"]])

    def test_json_of_each(self):
        decoder, text, found = json.JSONDecoder(), self.core("--json", *self.paths).stdout, []
        while text.strip():
            one, end = decoder.raw_decode(text.lstrip())
            found.append(one["core"])
            text = text.lstrip()[end:]
        self.assertEqual(found, self.paths)

    def test_other_files_are_left_out(self):
        result = self.core("-f", "collapsed", "/etc/passwd", self.paths[1])
        self.assertIn("/etc/passwd", result.stderr)
        self.assertEqual(support.parse_collapsed(result.stdout), self.stacks(self.crashed[1:2]))
        self.core("-f", "collapsed", "/etc/passwd", "/etc/hostname", status=1)

    def test_formats_of_time_are_refused(self):
        for name in "recording", "speedscope", "gecko":
            with self.subTest(name):
                self.assertIn(name, self.core("-f", name, self.paths[1], status=2).stderr)

    def test_several_outputs(self):
        folder = os.path.dirname(self.paths[0])
        files = [os.path.join(folder, name) for name in ("a.collapsed", "b.jsonl", "c.summary")]
        self.core(*(part for path in files for part in ("-o", path)), *self.paths)
        self.assertEqual(support.parse_collapsed(support.read(files[0])),
                         self.stacks(self.threads))
        lines = [json.loads(line) for line in support.read(files[1]).splitlines()]
        self.assertEqual(sum(line.get("type") == "sample" for line in lines), len(self.threads))
        self.assertIn("shown: %d threads" % len(self.threads), support.read(files[2]))

    def test_json(self):
        """The weight of a thread is one thread, and the outermost functions have all of it."""
        profile = json.loads(self.core("-f", "json", *self.paths).stdout)
        schemas.validate(profile, "profile.schema.json")
        self.assertEqual((profile["mode"], profile["unit"], profile["profile"]["weight"]),
                         ("count", "threads", len(self.threads)))
        expected = collections.Counter()
        for stack, nr in self.stacks(self.threads).items():
            expected[stack[0].split(" ")[0]] += nr
        found = collections.Counter()
        for node in profile["tree"]:
            if node["parent"] is None:
                found[profile["functions"][node["function"]]["name"]] += node["total"]["weight"]
        self.assertEqual(found, expected)

    def test_callgrind(self):
        annotate = tools.program("callgrind_annotate", "valgrind")
        path = os.path.join(os.path.dirname(self.paths[0]), "out.callgrind")
        self.core("-o", path, *self.paths)
        lines = tools.run(annotate, "--auto=no", path).splitlines()
        (total,) = [line for line in lines if "PROGRAM TOTALS" in line]
        self.assertEqual(int(total.split()[0]), len(self.threads))
        self.assertIn("\nevents: threads\n", support.read(path))

    def test_pprof(self):
        node, npm = tools.npm("pprof-format")
        path = os.path.join(os.path.dirname(self.paths[0]), "out.pb.gz")
        self.core("-o", path, *self.paths)
        decoded = json.loads(tools.run(node, os.path.join(tools.HERE, "pprof_decode.mjs"), npm,
                                       path))
        self.assertEqual({len(sample["values"]) for sample in decoded["samples"]}, {1})
        self.assertEqual(sum(sample["values"][0] for sample in decoded["samples"]),
                         len(self.threads))

    def test_svg(self):
        path = os.path.join(os.path.dirname(self.paths[0]), "out.svg")
        self.core("-o", path, *self.paths)
        titles = [title.text for title in
                  xml.etree.ElementTree.parse(path).getroot().iter(SVG + "title")]
        self.assertTrue(any("(%d threads, 100.00%%)" % len(self.threads) in title
                            for title in titles), titles[:5])

    def test_page(self):
        path = os.path.join(os.path.dirname(self.paths[0]), "out.html")
        self.core("-o", path, *self.paths)
        answer = tools.in_browser("page_totals.mjs", path, [
            ["set", {}], ["set", {"view": "table", "lines": True}]])
        self.assertEqual(answer["complaints"], [])
        for shown in answer["totals"]:
            self.assertEqual(shown["samples"], len(self.threads))
            self.assertEqual(shown["total"], len(self.threads))
        outermost = collections.Counter(
            support.label(thread["frames"][0], "first_line") for thread in self.threads)
        totals = dict(answer["totals"][0]["totals"])
        self.assertEqual({name: totals[name] for name in outermost}, outermost)


class DiedInC(unittest.TestCase):
    """A thread that Python does not know calls abort() while the main thread sleeps."""

    PROGRAM = ("import ctypes, time; libc = ctypes.CDLL(None); made = ctypes.c_ulong(); "
               "libc.pthread_create(ctypes.byref(made), None, libc.abort, None); time.sleep(60)")

    def setUp(self):
        self.enterContext(core_files.kernel_cores())
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="pysample-test-"))
        died = subprocess.run([sys.executable, "-c", self.PROGRAM], cwd=self.folder,
                              timeout=support.PATIENCE_S)
        self.assertEqual(died.returncode, -signal.SIGABRT)
        (name,) = os.listdir(self.folder)
        self.path = os.path.join(self.folder, name)

    def test_no_other_thread_is_shown(self):
        result = support.pysample("core", self.path, self.path)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertIn("2 cores, 1 distinct stack", result.stdout)
        self.assertNotIn("File", result.stdout)
        self.assertEqual(support.pysample("core", "--crashed", "-f", "collapsed",
                                          self.path).status, 5)

    def test_with_c_stacks_it_is_marked(self):
        (crashed,) = [thread for thread in
                      core_files.core_json("--native=all", self.path)["threads"]
                      if thread["crashed"]]
        self.assertIn("abort", [frame["name"] for frame in crashed["frames"]])
        result = support.pysample("core", "--crashed", "--native=all", "--plumbing", "-f",
                                  "collapsed", self.path)
        self.assertEqual(result.status, 0, result.stderr)
        (stack,) = support.parse_collapsed(result.stdout)
        self.assertEqual(stack, tuple(map(native_label, crashed["frames"])))
