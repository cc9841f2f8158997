# SPDX-License-Identifier: MIT
"""Long runs: --loop and --keep, the patterns of file names, and pauses."""
import collections
import glob
import json
import os
import re
import signal
import socket
import subprocess
import time
import unittest

import support
from support import parse_collapsed
from test_signals import SignalsTestCase, catches

TIME = r"\d{8}T\d{6}"


def report(path, *options):
    result = support.pysample("report", path, *options)
    if result.status:
        raise AssertionError(result)
    return result.stdout


def info(path):
    """The run of a recording, as text."""
    return dict(line.split(": ", 1) for line in report(path, "--info").splitlines()
                if re.match(r"\w[\w.]*: ", line))


class LoopTestCase(SignalsTestCase):
    """Works on one busy program, whose waiting threads are shown, too."""

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(
            support.python_target(support.newest_interpreter(), "busy"))

    def loop(self, *options, **kwargs):
        return self.start(self.target.pid, "--idle", "--loop", "1h", "--stats-json",
                          self.path("stats"), *options, **kwargs)

    def rotate(self, process):
        """Request new files. Returns the number of samples of the period that has ended."""
        while True:
            line = self.request(process)
            found = re.search(r"SIGUSR1: period \d+: (\d+) samples? in .*, written in", line)
            if found:
                return int(found.group(1))
            self.assertIn("has no samples yet", line)
            time.sleep(0.01)

    def end(self, process, status=0):
        result = support.end_by_signal(process)
        self.assertEqual(result.status, status, result)
        return result

    def files(self, pattern="*"):
        return sorted(os.path.basename(path) for path in glob.glob(self.path(pattern)))

    def nr_collapsed(self, *found):
        return sum(sum(parse_collapsed(support.read(self.path(name))).values()) for name in found)


class Names(LoopTestCase):
    def test_a_file_for_each_period(self):
        process = self.loop("-o", self.path("a-%t.pysample"), "-o", self.path("%h-%p-%n.html"),
                            "-o", self.path("100%%-%n.collapsed"))
        for _ in range(2):
            self.rotate(process)
        self.end(process)  # the last period may have no samples
        recordings = self.files("a-*")
        self.assertIn(len(recordings), (2, 3))
        for name in recordings:
            self.assertRegex(name, r"^a-%s(-\d+)?\.pysample$" % TIME)
            self.assertTrue(parse_collapsed(report(self.path(name), "-f", "collapsed")))
        numbers = range(1, len(recordings) + 1)
        pages = ["%s-%d-%d.html" % (socket.gethostname(), self.target.pid, i) for i in numbers]
        self.assertEqual(self.files("*.html"), pages)
        for name in pages:
            self.assertIn("busy.py", support.read(self.path(name)))
        self.assertEqual(self.files("100*"), ["100%%-%d.collapsed" % i for i in numbers])

    def test_local_time(self):
        """%t is the local time, which the name of the file shares with date(1)."""
        for zone in "UTC0", "XYZ-05:30":
            environment = {**os.environ, "TZ": zone}

            def now(environment=environment):
                return subprocess.run(["date", "+%Y%m%dT%H%M%S"], env=environment, check=True,
                                      stdout=subprocess.PIPE, text=True).stdout.strip()

            first = now()
            process = self.loop("-o", self.path(zone[:3] + "-%t.pysample"), env=environment)
            self.rotate(process)
            self.end(process)
            name = self.files(zone[:3] + "-*")[0]
            self.assertTrue(first <= name[4:19] <= now(), name)

    def test_existing_files_stay(self):
        taken = ["n-1.collapsed", "n-1-2.collapsed", "n-2.collapsed"]
        for name in taken:
            with open(self.path(name), "w") as file:
                file.write(name)
        os.symlink("elsewhere", self.path("n-3.collapsed"))
        process = self.loop("-o", self.path("n-%n.collapsed"), "--keep", "1")
        for _ in range(2):
            self.rotate(process)
        self.end(process)
        for name in taken:
            self.assertEqual(support.read(self.path(name)), name)
        found = set(self.files("n-*")) - {"n-3-2.collapsed"}  # if the last period has samples
        self.assertLessEqual(set(taken) | {"n-3.collapsed"}, found)
        self.assertEqual(support.read(self.path("n-2.collapsed")), "n-2.collapsed")
        self.assertFalse(os.path.exists(self.path("elsewhere")))

    def test_without_loop(self):
        with open(self.path("x-1.collapsed"), "w"):
            pass
        process = self.start(self.target.pid, "--idle", "-o", self.path("x-%n.collapsed"))
        self.until_written(process)
        self.until_written(process)
        self.assertEqual(self.files("x-*"), ["x-1-2.collapsed", "x-1.collapsed"])
        self.end(process)
        self.assertEqual(self.files("x-*"), ["x-1-2.collapsed", "x-1.collapsed"])
        self.assertTrue(self.nr_collapsed("x-1-2.collapsed"))

    def until_written(self, process):
        support.wait_until(lambda: "wrote 1 file" in self.request(process), "there are samples")

    def test_refused(self):
        for options, message in (
                (["--loop", "1s"], "--loop writes one file after the other, not to stdout"),
                (["--loop", "1s", "-o", "-", "-f", "collapsed"], "not to stdout"),
                (["--loop", "1s", "-o", self.path("x.html")], "add %t (time) or %n (number)"),
                (["--loop", "1s", "-o", self.path("x-%p.html")], "add %t (time) or %n (number)"),
                (["--loop", "1s", "-o", self.path("%t/x.html")], "in the name of a folder"),
                (["--loop", "999ms", "-o", self.path("x-%t.html")], "at least one second"),
                (["--loop", "1s", "--keep", "0", "-o", self.path("x-%t.html")], "from 1 to"),
                (["--keep", "1", "-o", self.path("x-%t.html")], "--keep requires --loop"),
                (["-o", self.path("x-%q.html")], "has %q: use %t (time)"),
                (["-o", self.path("x%.html")], "has %.: use %t (time)")):
            with self.subTest(options=options):
                result = support.pysample("attach", self.target.pid, *options)
                self.assertEqual(result.status, 2, result)
                self.assertIn(message, result.stderr)
        self.assertEqual(self.files(), [])


class Sums(LoopTestCase):
    """No sample is lost between two periods, and none is counted twice."""

    def test_every_format(self):
        for options in (), ("-o", self.path("r-%n.pysample")):
            with self.subTest(options=options):
                process = self.loop("-o", self.path("c-%n.collapsed"),
                                    "-o", self.path("s-%n.speedscope.json"),
                                    "-o", self.path("j-%n.jsonl"), *options)
                told = [self.rotate(process) for _ in range(4)]
                if options:
                    # A period without samples would have no file for its other counters.
                    support.wait_until(lambda: "r-5.pysample" in self.files(),
                                       "the last period has samples")
                self.end(process)
                self.check(told, has_recordings=bool(options))
                for name in self.files():
                    os.remove(self.path(name))

    def check(self, told, has_recordings):
        collapsed = self.files("c-*")
        total = self.stats()["samples"]
        for number, nr in enumerate(told, 1):
            self.assertEqual(self.nr_collapsed("c-%d.collapsed" % number), nr)
        self.assertEqual(self.nr_collapsed(*collapsed), total)
        self.assertEqual(len(self.files("s-*")), len(collapsed))
        self.assertEqual(self.nr_lines(), total)
        if not has_recordings:
            return
        sums = collections.Counter()
        for path in map(self.path, self.files("r-*")):
            run = info(path)
            for key in "samples", "ticks", "late_ticks", "reads", "clock_reads", "other_syscalls":
                sums[key] += int(run.get(key, 0))
            self.assertEqual(sum(parse_collapsed(report(path, "-f", "collapsed")).values()),
                             int(run["samples"]))
        for key, number in sums.items():
            self.assertEqual(number, self.stats()[key], key)

    def nr_lines(self):
        """Samples in the files with a line for each."""
        return sum(json.loads(line)["type"] == "sample" for name in self.files("j-*")
                   for line in support.read(self.path(name)).splitlines())

    def test_one_profile(self):
        """Formats that only need sums are written from a profile, without a recording."""
        process = self.loop("-o", self.path("c-%n.collapsed"))
        for _ in range(3):
            self.rotate(process)
        self.end(process)
        self.assertEqual(self.nr_collapsed(*self.files("c-*")), self.stats()["samples"])

    def test_by_time(self):
        process = self.start(self.target.pid, "--idle", "--loop", "1s", "-o",
                             self.path("c-%n.collapsed"), "--stats-json", self.path("stats"))
        support.wait_until(lambda: len(self.files("c-*")) >= 2, "two periods are over")
        self.end(process)
        self.assertEqual(self.nr_collapsed(*self.files("c-*")), self.stats()["samples"])

    def test_time_that_was_hidden(self):
        """The note is about all periods, and counts each thread once."""
        process = self.start(self.target.pid, "--loop", "1h", "-o", self.path("c-%n.collapsed"),
                             "--stats-json", self.path("stats"))
        for _ in range(3):
            self.rotate(process)
        result = self.end(process)
        found = re.search(r"(\d+) threads? waited for ([\d.]+) s of ([\d.]+) s", result.stderr)
        stats = self.stats()
        self.assertAlmostEqual(float(found.group(2)), stats["idle_s"], 2)
        self.assertAlmostEqual(float(found.group(3)), stats["sampled_wall_s"], 2)
        self.assertLessEqual(int(found.group(1)), len(os.listdir("/proc/%d/task" % self.target.pid)))

    def test_stop_signals(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = self.loop("-o", self.path("c-%n.collapsed"))
            self.rotate(process)
            result = support.end_by_signal(process, number)
            self.assertEqual(result.status, 0, result)
            self.assertEqual(self.nr_collapsed(*self.files("c-*")), self.stats()["samples"])
            for name in self.files("c-*"):
                os.remove(self.path(name))

    def test_run(self):
        """run names its recordings itself."""
        result = support.finish(support.start_pysample(
            "run", "--loop", "1s", "--stats-json", self.path("stats"), "--",
            *support.newest_interpreter().command(), "-c",
            "import time; end = time.time() + 2.5\nwhile time.time() < end: pass",
            cwd=self.folder))
        self.assertEqual(result.status, 0, result)
        recordings = self.files("pysample-*.pysample")
        self.assertTrue(recordings)
        for name in recordings:
            self.assertRegex(name, r"^pysample-[\w.+-]+-\d+-%s(-\d+)?\.pysample$" % TIME)
        self.assertEqual(sum(int(info(self.path(name))["samples"]) for name in recordings),
                         self.stats()["samples"])


class Keep(LoopTestCase):
    def test_the_newest(self):
        process = self.loop("-o", self.path("c-%n.collapsed"), "-o", self.path("h-%n.html"),
                            "--keep", "2")
        for _ in range(4):
            self.rotate(process)
        self.assertEqual(self.files("[ch]-*"),
                         ["c-3.collapsed", "c-4.collapsed", "h-3.html", "h-4.html"])
        self.assertRegex(self.end(process).stderr, "[45] periods written; [46] older files removed")
        self.assertEqual(len(self.files("[ch]-*")), 4)

    def test_a_file_of_others_stays(self):
        process = self.loop("-o", self.path("c-%n.collapsed"), "--keep", "1")
        self.rotate(process)
        os.rename(self.path("c-1.collapsed"), self.path("moved"))
        with open(self.path("c-1.collapsed"), "w") as file:
            file.write("mine")
        self.rotate(process)
        self.assertEqual(self.files("[cm]*"), ["c-1.collapsed", "c-2.collapsed", "moved"])
        self.end(process)
        self.assertEqual(support.read(self.path("c-1.collapsed")), "mine")


class Failures(LoopTestCase):
    def told_until(self, process, text):
        """Request new files until a line has the text. Returns what it prints meanwhile."""
        told = ""
        while text not in told:
            process.send_signal(signal.SIGUSR1)
            line = ""
            while "SIGUSR1: " not in line:
                line = process.stderr.readline().decode()
                self.assertTrue(line, told)
                told += line
        return told

    def test_a_folder_comes_and_goes(self):
        """Told once; sampling goes on, and the next period is tried."""
        folder = self.path("folder")
        os.mkdir(folder)
        process = self.loop("-o", folder + "/c-%n.collapsed")
        self.rotate(process)
        os.rename(folder, self.path("away"))
        told = self.told_until(process, "not wholly written")
        self.assertEqual(told.count("sampling continues, and the next period is tried"), 1, told)
        for _ in range(2):
            told = self.told_until(process, "not wholly written")
            self.assertNotIn("the next period is tried", told)
        os.rename(self.path("away"), folder)
        self.told_until(process, "not wholly written")
        self.rotate(process)
        result = self.end(process, 1)
        self.assertNotIn("cannot write", result.stderr)
        self.assertLess(0, self.nr_collapsed(*("folder/" + name for name in os.listdir(folder))))

    def test_a_full_file(self):
        """A recording that cannot grow is kept as far as it goes; the next one is whole."""
        process = self.loop("-o", self.path("r-%n.pysample"), "-r", "1k")
        self.rotate(process)
        subprocess.run(["prlimit", "--fsize=600:", "--pid", str(process.pid)], check=True)
        support.wait_until(lambda: "not wholly written" in self.request(process),
                           "a period is too long for its file")
        subprocess.run(["prlimit", "--fsize=unlimited:", "--pid", str(process.pid)], check=True)
        support.wait_until(lambda: ", written in" in self.request(process), "a period is whole")
        self.end(process, 1)
        self.assertTrue(parse_collapsed(
            report(self.path(self.files("r-*")[-1]), "-f", "collapsed")))


class Pauses(SignalsTestCase):
    """SIGUSR2: no sample, and no weight, is of the time of a pause."""

    def pause(self, process, text=b"is paused"):
        process.send_signal(signal.SIGUSR2)
        return self.line_with(process, b"SIGUSR2: sampling " + text)

    def resume(self, process):
        return self.pause(process, b"is resumed")

    def until_sampled(self, process, name):
        path = self.path("out.collapsed")
        support.wait_until(lambda: self.request(process) and os.path.exists(path)
                           and name in support.read(path), name + "() is seen")

    def check(self, *options):
        with support.python_target(support.newest_interpreter(), "phases") as target:
            process = self.start(target.pid, "-o", self.path("out.collapsed"), "-o",
                                 self.path("out.pysample"), "--stats-json", self.path("stats"),
                                 *options)
            self.until_sampled(process, "before")
            self.pause(process)
            target.process.send_signal(signal.SIGUSR1)
            self.assertRegex(target.process.stdout.readline().decode(), "before [1-9]")
            self.assertIn("meanwhile", target.process.stdout.readline().decode())
            time.sleep(0.5)
            self.assertIn("SIGUSR1", self.request(process))
            target.process.send_signal(signal.SIGUSR1)
            self.assertRegex(target.process.stdout.readline().decode(), "meanwhile [1-9]")
            self.assertIn("after", target.process.stdout.readline().decode())
            self.resume(process)
            self.until_sampled(process, "after")
            result = support.end_by_signal(process)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.stderr, r"paused for \d+\.\d s")
        self.check_result()

    def check_result(self):
        seen = set(re.findall(r"\w+(?= \([^;]*phases\.py:)",
                              support.read(self.path("out.collapsed"))))
        self.assertLessEqual({"before", "after"}, seen)
        self.assertNotIn("meanwhile", seen)
        stats = self.stats()
        self.assertGreaterEqual(stats["paused_ns"], 500000000)
        # One thread, whose first sample, and the first after the pause, may weigh a period more.
        self.assertLess(stats["sampled_wall_s"], stats["wall_s"] - stats["paused_ns"] / 2e9)
        self.assertEqual(info(self.path("out.pysample"))["paused_ns"], str(stats["paused_ns"]))
        self.assertRegex(report(self.path("out.pysample"), "-f", "summary"), r"paused for \d")

    def test_preempt(self):
        self.check(*support.PREEMPT)

    def test_bpf(self):
        self.check()

    def test_native(self):
        self.check("-n")

    def test_native_preempt(self):
        self.check("-n", *support.PREEMPT)

    def test_ends_while_paused(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            for number in signal.SIGINT, None:
                process = self.start(target.pid, "-o", self.path("out.collapsed"))
                self.until_sampled(process, "spin")
                self.pause(process)
                if number:
                    process.send_signal(number)
                else:
                    target.process.kill()
                result = support.finish(process)
                self.assertEqual(result.status, 0, result)
                self.assertIn("paused for", result.stderr)

    def test_the_duration_goes_on(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            def is_paused_until_its_end():
                process = self.start(target.pid, "-d", "2", "-o", self.path("out.pysample"),
                                     "--stats-json", self.path("stats"))
                support.wait_until(lambda: process.poll() is not None or
                                   catches(process, signal.SIGUSR2), "it can be paused")
                process.send_signal(signal.SIGUSR2)
                result = support.finish(process)  # fails if it does not end
                self.assertNotIn("is resumed", result.stderr)
                return "SIGUSR2: sampling is paused" in result.stderr

            support.wait_until(is_paused_until_its_end, "a run is paused before its duration ends")
        # It ends at its duration, to a tick, of which the pause is a part.
        stats = self.stats()
        self.assertGreater(stats["paused_ns"], 0)
        self.assertLessEqual(stats["paused_ns"], stats["wall_s"] * 1e9)

    def test_a_loop_is_paused(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            process = self.start(target.pid, "--idle", "--loop", "1s", "-o",
                                 self.path("c-%n.collapsed"), "--stats-json", self.path("stats"))
            support.wait_until(lambda: glob.glob(self.path("c-*")), "a period is over")
            self.pause(process)
            self.assertIn("SIGUSR1", self.request(process))
            self.assertIn("has no samples yet", self.request(process))
            nr = len(glob.glob(self.path("c-*")))
            time.sleep(2.5)
            self.assertEqual(len(glob.glob(self.path("c-*"))), nr)
            self.resume(process)
            support.wait_until(lambda: len(glob.glob(self.path("c-*"))) > nr, "there is another")
            self.assertEqual(support.end_by_signal(process).status, 0)
        found = sum(sum(parse_collapsed(support.read(path)).values())
                    for path in glob.glob(self.path("c-*")))
        self.assertEqual(found, self.stats()["samples"])

    def test_ignored_at_the_start(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            ignoring = ["sh", "-c", "trap '' USR2; exec \"$@\"", "-"]
            process = self.start(target.pid, "-o", self.path("out.collapsed"), wrapper=ignoring)
            self.assertFalse(catches(process, signal.SIGUSR2))
            self.until_sampled(process, "spin")
            process.send_signal(signal.SIGUSR2)
            result = support.end_by_signal(process)
            self.assertEqual(result.status, 0, result)
            self.assertNotIn("paused", result.stderr)


del SignalsTestCase

if __name__ == "__main__":
    unittest.main()
