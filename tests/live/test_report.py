# SPDX-License-Identifier: MIT
"""Recordings, several outputs of one run, and `pysample report`."""
import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import unittest

import support
from support import parse_collapsed, pysample
from test_states import states_target

THREADS = ("spin", "sleep", "handle")


def total(text):
    return sum(parse_collapsed(text).values())


def limited_files(nr_bytes):
    """A wrapper that limits the size of the files that a program writes."""
    return ["prlimit", "--fsize=%d" % nr_bytes, "--"]


class ReportTestCase(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.folder, _ = cls.enterClassContext(support.fresh_folder())
        cls.target = cls.enterClassContext(
            states_target(support.newest_interpreter(), *THREADS))

    def path_of(self, name):
        return os.path.join(self.folder, name)

    def attach(self, *args, status=0, **more):
        result = support.run_with_samples(
            lambda: pysample("attach", self.target.pid, *args, **more))
        self.assertEqual(result.status, status, result)
        return result

    def report(self, *args, status=0, **more):
        result = pysample("report", *args, **more)
        self.assertEqual(result.status, status, result)
        if status in (1, 2, 5):
            self.assertRegex(result.stderr, r"\Apysample: [^\n]+\n\Z")
        return result


class OneRecording(ReportTestCase):
    """Reports made from one recording of all threads."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recording = os.path.join(cls.folder, "run.pysample")
        cls.collapsed = os.path.join(cls.folder, "run.collapsed")
        cls.summary = os.path.join(cls.folder, "run.summary")
        stats = os.path.join(cls.folder, "run.json")
        command = ["attach", cls.target.pid, "-d", "2", "--idle", "-o", cls.recording, "-o", cls.collapsed,
                   "-o", cls.summary, "--stats-json", stats]

        def has_all():
            """Whether each option of filters() leaves some samples."""
            cls.attached = pysample(*command)
            cls.listed = sorted(os.listdir(cls.folder))
            return cls.attached.status == 0 and all(
                all(map(cls.counted, pair)) for pair in cls.filters())

        support.wait_until(has_all, "there are samples of everything")
        cls.stats = json.loads(support.read(stats))

    @classmethod
    def filters(cls):
        """Pairs of options: each sample matches one of the two."""
        tids = cls.target.report["threads"]
        return (
            (["--to", "0.5s"], ["--from", "0.5s"]),
            (["--to", "-0.7s"], ["--from", "-0.7s"]),
            (["--state", "gil"], ["--state", "!gil"]),
            (["--state", "cpu"], ["--state", "!cpu"]),
            (["--state", "exception"], ["--state", "!exception"]),
            (["--state", "busy"], ["--state", "idle"]),
            (["--state", "!busy"], ["--state", "!idle"]),
            (["--include", r"^spin \("], ["--exclude", r"^spin \("]),
            (["--include", "spin", "--include", "sleep"], ["--exclude", "spin|sleep"]),
            (["--thread", "MainThread", "--thread", str(tids["spin"])],
             ["--thread", str(tids["sleep"]), "--thread", str(tids["handle"])]))

    def collapse(self, *args):
        return self.report(self.recording, *support.COLLAPSED, *args).stdout

    def name_of(self, thread):
        """Python's name for a thread of the target."""
        tid = self.target.report["threads"][thread]
        return re.search(r"(?m)^thread (.+) \(%d\);" % tid, self.collapse("-t")).group(1)

    @classmethod
    def counted(cls, args):
        """The number of samples in a report of the recording."""
        result = pysample("report", cls.recording, *support.COLLAPSED, *args)
        if result.status not in (0, 5):
            raise AssertionError(result)
        return total(result.stdout)

    def test_all_outputs_are_written(self):
        self.assertEqual(self.attached.status, 0, self.attached)
        self.assertEqual(self.listed, ["run.collapsed", "run.json", "run.pysample", "run.summary"])
        self.assertEqual(total(support.read(self.collapsed)), self.stats["samples"])
        self.assertIn("%d samples" % self.stats["samples"], support.read(self.summary))

    def test_report_writes_what_attach_wrote(self):
        self.assertEqual(self.report(self.recording).stdout, support.read(self.collapsed))
        self.assertEqual(self.report(self.recording, "-f", "summary").stdout,
                         support.read(self.summary))
        again, other = self.path_of("again.collapsed"), self.path_of("other")
        self.report(self.recording, "-o", again, "-f", "summary", "-o", other)
        self.assertEqual(support.read(again), support.read(self.summary))
        self.assertEqual(support.read(other), support.read(self.collapsed))

    def test_every_sample_is_on_one_side_of_a_filter(self):
        for one, other in self.filters():
            with self.subTest(one=one):
                self.assertEqual(self.counted(one) + self.counted(other), self.stats["samples"])

    def test_filters_match_the_target(self):
        tids = self.target.report["threads"]
        threads = {name: self.counted(["--thread", str(tid)]) for name, tid in tids.items()}
        for name in ("spin", "handle"):
            with self.subTest(name):
                included = self.counted(["--include", r"^%s \(" % name])
                self.assertTrue(0 < included <= threads[name], included)
                self.assertEqual(self.counted(["--thread", self.name_of(name)]), threads[name])
        handles = self.collapse("--state", "exception", "-t")
        self.assertEqual({stack[0] for stack in parse_collapsed(handles)},
                         {"thread %s (%d)" % (self.name_of("handle"), tids["handle"])})
        self.assertEqual(self.counted(["--thread", str(tids["sleep"]), "--state", "cpu"]), 0)
        self.assertGreater(self.counted(["--thread", str(tids["spin"]), "--state", "busy"]), 0)
        self.assertEqual(self.counted(["--process", str(self.target.pid)]), self.stats["samples"])
        self.assertEqual(self.counted(["--process", "1"]), 0)
        self.assertLessEqual(self.counted(["--to", "0.3s"]), self.counted(["--to", "0.7s"]))

    def test_modes_and_rows(self):
        self.assertEqual(self.counted(["--mode", "gil"]), self.counted(["--state", "gil"]))
        self.assertEqual(self.counted(["--mode", "exception"]),
                         self.counted(["--state", "exception"]))
        cpu_us = total(self.collapse("--mode", "cpu"))
        self.assertAlmostEqual(cpu_us / 1e6, self.stats["sampled_cpu_s"], delta=0.01)
        lines = parse_collapsed(self.collapse("--lines"))
        self.assertNotEqual(lines, parse_collapsed(self.collapse("--functions")))
        self.assertEqual(sum(lines.values()), self.stats["samples"])
        roots = {stack[0] for stack in parse_collapsed(self.collapse("-t"))}
        self.assertEqual(len(roots), 1 + len(THREADS))

    def test_stdin(self):
        command = [support.PYSAMPLE, "report", "-", *support.COLLAPSED]
        with open(self.recording, "rb") as file:
            seekable = subprocess.run(command, stdin=file, capture_output=True)
        with open(self.recording, "rb") as file:
            piped = subprocess.run(command, input=file.read(), capture_output=True)
        for result in (seekable, piped):
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            self.assertEqual(result.stdout.decode(), support.read(self.collapsed))

    def test_the_same_twice(self):
        twice = parse_collapsed(self.report(self.recording, self.recording, "-t").stdout)
        once = parse_collapsed(self.collapse("-t"))
        self.assertEqual(twice, {stack: 2 * count for stack, count in once.items()})

    def test_no_change(self):
        result = self.report(self.recording, "--diff", self.recording, "--fail-above", "0", "-f",
                             "summary")
        self.assertEqual(result.stderr, "")

    def test_formats_that_do_not_compare(self):
        """They are refused, and the message names those that do."""
        for form in "pprof", "jsonl", "callgrind", "gecko", "speedscope":
            result = self.report(self.recording, "--diff", self.recording, "-o",
                                 self.path_of("d.html"), "-f", form, status=2)
            self.assertEqual(result.stderr, "pysample: %s cannot show a comparison: with --diff "
                             "use collapsed, json, flamegraph, svg or summary\n" % form)

    def test_what_grew_is_named(self):
        """Nothing grew between two recordings of spin(); in another program, its functions did."""
        spin, rest = self.path_of("spin.pysample"), self.recording
        self.attach("-q", "-d", "0.3", "-o", spin)
        result = self.report(spin, "--diff", rest, "--fail-above", "0", "--include", r"^spin \(",
                             "-q", "-f", "summary")
        self.assertEqual(result.stderr, "")
        with support.python_target(support.newest_interpreter(), "busy") as other:
            path = self.path_of("busy.pysample")
            result = support.run_with_samples(
                lambda: pysample("attach", "-q", "-d", "0.3", "-o", path, other.pid))
            self.assertEqual(result.status, 0, result)
        result = self.report(path, "--diff", rest, "--fail-above", "5%", "-o", self.path_of("d"),
                             status=10)
        self.assertRegex(result.stderr, r"(?m)^pysample: grew: spin \(\S*busy\.py:\d+\): own "
                         r"share from 0\.0 % to \d+\.\d %, with callees from 0\.0 % to ")
        self.assertNotIn("states.py", result.stderr)
        self.assertTrue(os.path.exists(self.path_of("d")))
        self.report(path, "--diff", rest, "--fail-above", "100", "-q", "-f", "summary")

    def test_info(self):
        pairs = dict(line.split(": ", 1)
                     for line in self.report("--info", self.recording).stdout.splitlines())
        self.assertEqual(pairs["file"], self.recording)
        self.assertEqual((pairs["torn"], pairs["has_end"]), ("no", "yes"))
        self.assertEqual(int(pairs["format_version"]), 1)
        self.assertEqual(int(pairs["file_bytes"]), os.path.getsize(self.recording))
        self.assertEqual(int(pairs["recorded_samples"]), self.stats["samples"])
        self.assertGreaterEqual(int(pairs["frames"]), 2)  # in two seconds
        self.assertEqual(pairs["seek_table_frames"], pairs["frames"])
        self.assertEqual(int(pairs["samples"]), self.stats["samples"])
        self.assertEqual(int(pairs["pid"]), self.target.pid)
        self.assertRegex(pairs["arguments"], r"\Apysample attach %d -d 2 " % self.target.pid)
        info = json.loads(self.report("--info", "--json", self.recording).stdout)
        self.assertEqual((info["file"], info["torn"]), (self.recording, False))
        different = {key for key in self.stats if self.stats[key] != info[key]}
        self.assertLessEqual(different, {"cpu_user_s", "cpu_sys_s", "max_rss_kib"})
        two = self.report("--info", "--json", self.recording, self.recording).stdout
        self.assertEqual(len(re.findall(r"(?m)^\{$", two)), 2)

    def test_torn(self):
        path = self.path_of("torn.pysample")
        with open(self.recording, "rb") as file:
            whole = file.read()
        with open(path, "wb") as file:
            file.write(whole[:len(whole) * 3 // 4])
        result = self.report(path)
        self.assertRegex(result.stderr, "torn.pysample was not finished: ")
        self.assertGreater(total(result.stdout), 0)
        self.assertLess(total(result.stdout), self.stats["samples"])
        self.assertEqual(self.report(path, "-q").stderr, "")
        info = json.loads(self.report("--info", "--json", path).stdout)
        self.assertEqual((info["torn"], info["has_end"]), (True, False))
        self.assertEqual(info["seek_table_frames"], 0)
        self.assertEqual(info["recorded_samples"], total(result.stdout))

    def test_what_is_refused(self):
        text, empty = self.collapsed, self.path_of("empty")
        with open(empty, "wb"):
            pass
        for status, args in (
                (2, []), (2, [self.recording, "--json"]), (2, [self.recording, "--info", "-o", "x"]),
                (2, [self.recording, "--fail-above", "5"]),
                (2, [self.recording, "--explain", "x", "-f", "collapsed"]),
                (2, [self.recording, "--explain", "x", "--diff", self.recording]),
                (2, [self.recording, "--diff", text, "--fail-above", "-1"]),
                (2, [self.recording, "-o", self.path_of("x.pysample")]),
                (2, [self.recording, "--from", "2s", "--to", "1s"]),
                (2, [self.recording, "--to", "0"]), (2, [self.recording, "--from", "x"]),
                (2, [self.recording, "--state", "nonsense"]), (5, [self.recording, "--process", "x"]),
                (2, [self.recording, "--include", "("]), (2, [self.recording, "--mode", "x"]),
                (2, [self.recording, "--rows", "x"]), (2, [self.recording, "-f", "nonsense"]),
                (2, [self.recording, "-o", self.path_of("y"), "-o", self.path_of("y")]),
                (1, [self.path_of("nothing.pysample")]), (1, [text]), (1, [empty]),
                (1, [self.folder]), (1, ["/dev/null"]),
                (1, [self.recording, "-o", "/nonexistent/x"]),
                (5, [self.recording, "--include", "nobody is called that"]),
                (5, [self.recording, "--from", "1h"]), (5, [self.recording, "--thread", "nobody"])):
            with self.subTest(args=args):
                self.assertEqual(self.report(*args, status=status).stdout, "")

    def test_names_of_files_cannot_steer_a_terminal(self):
        result = self.report("\x1b]0;x\x07", status=1)
        self.assertIn(r"\x1b]0;x\x07", result.stderr)

    def test_closed_pipe(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            result = self.report(self.recording, "-f", "summary", stdout=pipe, status=1)
        self.assertRegex(result.stderr, "standard output: Broken pipe")

    def test_input_recording_is_not_overwritten(self):
        base, link = self.path_of("base.pysample"), self.path_of("link.html")
        shutil.copy(self.recording, base)
        os.symlink(self.recording, link)
        before = [os.stat(path).st_size for path in (self.recording, base)]
        for options in ([self.recording, "-f", "summary", "-o", self.recording],
                        [self.recording, "-o", link],
                        [self.recording, base, "-f", "flamegraph", "-o", base],
                        [self.recording, "--diff", base, "-f", "summary", "-o", base]):
            with self.subTest(options=options):
                result = self.report(*options, status=2)
                self.assertIn("is one of the recordings to read", result.stderr)
        with open(base, "rb") as file:
            result = subprocess.run([support.PYSAMPLE, "report", "-", "-f", "summary", "-o", base],
                                    stdin=file, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual([os.stat(path).st_size for path in (self.recording, base)], before)

    def test_from_a_pipe(self):
        """Whatever the pipe is called."""
        result = subprocess.run(
            ["bash", "-c", '"$0" report -f collapsed <(cat "$1")', support.PYSAMPLE,
             self.recording], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout,
                         self.report(self.recording, *support.COLLAPSED).stdout)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            result = self.report(self.recording, stdout=full, status=1)
        self.assertRegex(result.stderr, "standard output: No space left")


class Recordings(ReportTestCase):
    """How a recording is written."""

    def test_an_old_one_stays_if_there_is_no_sample(self):
        path = self.path_of("old.pysample")
        with open(path, "w", encoding="ascii") as file:
            file.write("old")
        with support.plain_target("sleep", "1000") as other:
            self.assertEqual(pysample("attach", other.pid, "-o", path).status, 3)
        self.assertEqual(support.read(path), "old")
        process = support.start_pysample("attach", self.target.pid, "-r", "0.01", "-o", path)
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        self.assertIn(support.finish(process).status, (0, 5))
        self.assertEqual(os.listdir(self.folder).count("old.pysample"), 1)
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith(".")])

    def test_it_can_be_read_while_it_grows(self):
        path = self.path_of("growing.pysample")
        process = support.start_pysample("attach", self.target.pid, "-o", path)
        try:
            support.wait_until(lambda: os.path.exists(path), "the recording has its name")
            support.wait_until(lambda: pysample("report", path).status == 0, "there are samples")
            result = self.report(path)
            self.assertRegex(result.stderr, "is not finished")
            self.assertGreater(total(result.stdout), 0)
        finally:
            process.send_signal(signal.SIGINT)
            self.assertEqual(support.finish(process).status, 0)
        self.assertEqual(self.report(path, "--idle").stderr, "")

    def test_into_a_pipe(self):
        result = subprocess.run(
            ["sh", "-c", '"$0" attach -q -d 0.5 -f recording "$1" | "$0" report --idle -',
             support.PYSAMPLE, str(self.target.pid)], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertGreater(total(result.stdout), 0)

    def test_a_pipe_cannot_be_read_back(self):
        result = self.attach("-d", "0.1", "-o", "-", "-f", "recording", "-o",
                             self.path_of("x.summary"), status=2)
        self.assertRegex(result.stderr, "standard output cannot be read back")

    def test_not_onto_a_terminal(self):
        parent, child = pty.openpty()
        with contextlib.closing(os.fdopen(parent, "rb")), os.fdopen(child, "wb") as terminal:
            result = self.attach("-d", "0.1", "-f", "recording", stdout=terminal, status=2)
        self.assertRegex(result.stderr, "cannot be written to a terminal")

    def test_no_place_for_it(self):
        path, summary = self.path_of("full.pysample"), self.path_of("full.summary")
        result = self.attach("-q", "-r", "1khz", "-o", path, "-o", summary, status=1,
                             wrapper=limited_files(12000))
        self.assertRegex(result.stderr, r"(?m)^pysample: sampling ended early: cannot write "
                         r"\S*full.pysample: File too large$")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertGreater(total(self.report(path, "-q").stdout), 0)
        self.assertIn("self%", support.read(summary))
        with open("/dev/full", "wb") as full:
            result = self.attach("-q", "-f", "recording", stdout=full, status=1)
        self.assertRegex(result.stderr, "standard output: No space left on device")

    def test_no_signal_leaves_a_file(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number), support.fresh_folder() as (folder, _):
                process = support.start_pysample("attach", "-v", self.target.pid, "-o",
                                                 os.path.join(folder, "x.pysample"))
                process.stderr.readline()
                process.send_signal(number)
                support.finish(process)
                self.assertLessEqual(set(os.listdir(folder)), {"x.pysample"})

    def test_mode_is_the_default_of_a_report(self):
        path = self.path_of("gil.pysample")
        self.attach("-q", "-d", "0.5", "--mode", "gil", "-o", path)
        shown = total(self.report(path).stdout)
        self.assertEqual(shown, total(self.report(path, "--mode", "gil").stdout))
        self.assertLess(shown, total(self.report(path, "--mode", "wall").stdout))

    def test_cpu_times_are_measured_or_not(self):
        for options, is_measured in ((["-r", "1khz"], True), (["--no-cpu"], False),
                                     (["-r", "3khz"], False), (["-r", "10khz", "--cpu"], True)):
            with self.subTest(options=options):
                path = self.path_of("cpu.pysample")
                self.attach("-q", "-d", "0.3", *options, "-o", path)
                result = pysample("report", path, "--mode", "cpu")
                self.assertEqual(result.status, 0 if is_measured else 5, result)
                if not is_measured:
                    self.assertRegex(result.stderr, "no CPU times were measured")
        self.assertEqual(pysample("attach", self.target.pid, "--mode", "cpu", "--no-cpu").status, 2)


if __name__ == "__main__":
    unittest.main()
