# SPDX-License-Identifier: MIT
"""How a run ends at a low rate, and what it writes on request while it goes on."""
import json
import os
import shlex
import signal
import stat
import subprocess
import time
import unittest

import support
from support import names, parse_collapsed
from test_run import Terminal


def catches(process, number):
    for line in support.read("/proc/%d/status" % process.pid).splitlines():
        if line.startswith("SigCgt:"):
            return int(line.split()[1], 16) >> (number - 1) & 1
    return False


class SignalsTestCase(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    def path(self, name):
        return os.path.join(self.folder, name)

    def stats(self):
        return json.loads(support.read(self.path("stats")))

    def start(self, pid, *options, **kwargs):
        """Start a run and wait until it samples."""
        process = support.start_pysample("attach", pid, *options, **kwargs)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        self.line_with(process, b"sampling process")
        return process

    def line_with(self, process, text):
        """The next line that it prints with this text."""
        line = b""
        while text not in line:
            line = process.stderr.readline()
            self.assertTrue(line)
        return line.decode()

    def request(self, process):
        """Request the samples so far and wait until they are written. Returns the line that says
        so."""
        process.send_signal(signal.SIGUSR1)
        return self.line_with(process, b"SIGUSR1: ")


class LowRate(SignalsTestCase):
    """Ticks are more than a minute apart."""

    def setUp(self):
        super().setUp()
        self.target = self.enterContext(
            support.python_target(support.newest_interpreter(), "sleeps_in_c"))

    def attach(self, *options):
        return self.start(self.target.pid, "-r", "0.01", "--idle", "-o", self.path("profile"),
                          "--stats-json", self.path("stats"), *options)

    def attach_and_sample(self, *options):
        """A run whose first tick, which comes at once, gave a sample."""
        while True:
            process = self.attach(*options)
            support.wait_until(lambda: self.request(process) and self.stats()["ticks"],
                               "the first tick is over")
            if self.stats()["samples"]:
                return process
            process.kill()
            process.wait()

    def assert_ended(self, process, pattern):
        result = support.finish(process)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.stderr, pattern)
        # The run did not wait for another tick, which would have failed.
        self.assertEqual((self.stats()["ticks"], self.stats()["failed_ticks"]), (1, 0))

    def test_the_process_ends(self):
        process = self.attach_and_sample()
        self.target.process.kill()
        self.assert_ended(process, "the process has ended; ")

    def test_a_signal(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with self.subTest(number):
                process = self.attach_and_sample()
                process.send_signal(number)
                self.assert_ended(process, "stopped; ")

    def test_the_duration(self):
        def is_sampled():
            result = support.finish(self.attach("-d", "1"))
            if result.status == 5:
                return False
            self.assertEqual(result.status, 0, result)
            self.assertRegex(result.stderr, r"1 sample of 1 tick in \d+\.\d s")
            return True

        support.wait_until(is_sampled, "its first tick gives a sample")

    def test_write_samples_so_far(self):
        process = self.attach_and_sample()
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assert_ended(process, "stopped; ")

    def test_another_program(self):
        with support.python_target(support.newest_interpreter(), "execs_itself") as target:
            self.target = target
            process = self.attach_and_sample("--full-command")
            target.process.send_signal(signal.SIGUSR1)
            result = support.finish(process)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.stderr, "followed into [^\n]*again; the process has ended; ")


class Meanwhile(SignalsTestCase):
    """SIGUSR1: the samples so far are written, and sampling goes on."""

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(
            support.python_target(support.newest_interpreter(), "busy"))

    def collapsed(self, *options, **kwargs):
        return self.start(self.target.pid, *support.COLLAPSED, "-o", self.path("profile"),
                          "--stats-json", self.path("stats"), *options, **kwargs)

    def end(self, process, status=0):
        result = support.end_by_signal(process)
        self.assertEqual(result.status, status, result)
        return result

    def stacks(self):
        return parse_collapsed(support.read(self.path("profile")))

    def assert_whole(self):
        """The profile has as many samples as its counters."""
        self.assertEqual(sum(self.stacks().values()), self.stats()["samples"])
        self.assertIn("spin", {name for stack in self.stacks() for name in names(stack)})

    def assert_nothing_else(self, *expected):
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(expected))

    def test_each_time_there_is_more(self):
        process = self.collapsed()
        before = 0
        for _ in range(3):
            self.until_sampled(process, before)
            self.assertRegex(self.request(process), r"wrote 2 files in [0-9.]+ ms; sampling continues\n")
            self.assert_whole()
            self.assert_nothing_else("profile", "stats")
            stats = self.stats()
            self.assertGreater(stats["samples"], before)
            self.assertGreater(stats["reads"], 0)
            self.assertGreater(stats["other_syscalls"], 0)
            before = stats["samples"]
        self.end(process)
        self.assert_whole()
        self.assertGreaterEqual(self.stats()["samples"], before)

    def test_formats_made_from_a_recording(self):
        files = ["out.html", "out.speedscope.json", "out.summary", "out.collapsed"]
        outputs = [option for name in files for option in ("-o", self.path(name))]
        recording = ["-o", self.path("out.pysample")]
        for options, names_ in (outputs, files), (outputs + recording, files + ["out.pysample"]):
            process = self.start(self.target.pid, *options)
            early = self.wait_for_more(process, {"collapsed": 0, "speedscope": 0}, names_)
            late = self.wait_for_more(process, early, names_)
            self.end(process)
            for name, nr in self.samples_of_each().items():
                self.assertGreaterEqual(nr, late[name], name)

    def wait_for_more(self, process, before, files):
        """The samples of each format, once each has more than before. The other formats have
        spin()."""

        def is_there():
            self.assertIn("wrote %d files" % len(files), self.request(process))
            self.assert_nothing_else(*files)
            return (all(nr > before[name] for name, nr in self.samples_of_each().items())
                    and "spin" in support.read(self.path("out.summary"))
                    and "spin" in support.read(self.path("out.html")))

        support.wait_until(is_there, "every format has more samples")
        return self.samples_of_each()

    def samples_of_each(self):
        stacks = parse_collapsed(support.read(self.path("out.collapsed")))
        return {"collapsed": sum(stacks.values()),
                "speedscope": sum(sum(profile["weights"]) for profile in json.loads(
                    support.read(self.path("out.speedscope.json")))["profiles"])}

    def test_a_recording_is_flushed(self):
        path = self.path("out.pysample")
        process = self.start(self.target.pid, "-o", path, "--stats-json", self.path("stats"))
        for _ in range(3):
            self.request(process)
            process.send_signal(signal.SIGSTOP)
            support.wait_until(lambda: support.state(process.pid) == "T", "it is stopped")
            result = support.pysample("report", path, *support.COLLAPSED)
            self.assertEqual(result.status, 0, result)
            self.assertGreaterEqual(sum(parse_collapsed(result.stdout).values()),
                                    self.stats()["samples"])
            process.send_signal(signal.SIGCONT)
        self.end(process)

    def test_what_is_written_in_place_comes_at_the_end(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        for options in ([*support.COLLAPSED], ["-o", "-"], ["-o", fifo], ["-o", "/dev/stdout"],
                        ["-o", "-", "-o", fifo, "-f", "summary"]):
            with self.subTest(options=options):
                support.wait_until(lambda options=options: self.comes_at_the_end(reader, options),
                                   "there are samples")
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))

    def comes_at_the_end(self, reader, options):
        process = self.start(self.target.pid, *options)
        self.assertIn("there is no file to write yet", self.request(process))
        time.sleep(0.2)
        result = support.end_by_signal(process)
        text = result.stdout or os.read(reader, 65536).decode()
        if result.status == 5:
            return False
        self.assertEqual(result.status, 0, result)
        self.assertEqual(len(set(text.splitlines())), len(text.splitlines()))
        return parse_collapsed(text)

    def test_the_other_files_are_written(self):
        process = self.collapsed("-o", "-", "-f", "summary")
        self.until_sampled(process)
        self.assertIn("wrote 2 files", self.request(process))
        self.assert_whole()
        result = self.end(process)
        self.assertEqual(result.stdout.count("spin"), 1, result.stdout)

    def test_many_at_once(self):
        """The file is whole at every moment."""
        process = self.collapsed()
        self.until_sampled(process)
        for _ in range(100):
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.001)
            self.assertTrue(self.stacks())
        self.assertIn("wrote 2 files", self.end(process).stderr)
        self.assert_whole()
        self.assert_nothing_else("profile", "stats")

    def until_sampled(self, process, before=0):
        """Wait until more samples than before are written, with the busy function in them."""
        support.wait_until(lambda: self.request(process) and self.stats()["samples"] > before
                           and "spin" in {name for stack in self.stacks() for name in names(stack)},
                           "there are samples")

    def test_another_signal_while_it_is_written(self):
        for i in range(20):
            process = self.collapsed("-o", self.path("html"), "-f", "flamegraph")
            self.until_sampled(process)
            process.send_signal(signal.SIGUSR1)
            time.sleep(i * 0.0003)
            self.end(process)
            self.assert_whole()
            self.assert_nothing_else("profile", "stats", "html")

    def test_the_process_ends_while_it_is_written(self):
        for i in range(10):
            with support.python_target(support.newest_interpreter(), "busy") as target:
                process = self.start(target.pid, *support.COLLAPSED, "-o", self.path("profile"),
                                     "--stats-json", self.path("stats"), "-o", self.path("html"),
                                     "-f", "flamegraph")
                self.until_sampled(process)
                process.send_signal(signal.SIGUSR1)
                time.sleep(i * 0.0003)
                target.process.kill()
                result = support.finish(process)
            self.assertEqual(result.status, 0, result)
            self.assertIn("the process has ended", result.stderr)
            self.assert_whole()
            self.assert_nothing_else("profile", "stats", "html")

    def test_no_room(self):
        """The old file stays, the run goes on, and later there is room."""
        with open(self.path("profile"), "w", encoding="ascii") as file:
            file.write("old\n")
        process = self.start(self.target.pid, "-o", self.path("profile"), *support.COLLAPSED,
                             wrapper=["prlimit", "--fsize=16:unlimited", "--"])
        process.send_signal(signal.SIGUSR1)
        self.assertIn(b"cannot write %s: File too large" % self.path("profile").encode(),
                      process.stderr.readline())
        self.assertIn(b"not every file could be written", process.stderr.readline())
        self.assertEqual(support.read(self.path("profile")), "old\n")
        self.assert_nothing_else("profile")
        subprocess.run(["prlimit", "--pid", str(process.pid), "--fsize=unlimited"], check=True)
        self.assertIn("wrote 1 file ", self.request(process))
        support.wait_until(lambda: self.request(process) and self.stacks(), "there are samples")
        self.end(process)

    def test_one_that_is_ignored_stays_so(self):
        process = self.collapsed(
            preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN))
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
        self.assert_nothing_else()
        result = support.end_by_signal(process)
        self.assertIn(result.status, (0, 5))  # there may be no sample yet
        self.assertNotIn("SIGUSR1", result.stderr)

    def test_quiet(self):
        process = support.start_pysample("attach", self.target.pid, "-q", "-o",
                                         self.path("profile"), *support.COLLAPSED)
        support.wait_until(lambda: catches(process, signal.SIGUSR1), "it catches signals")

        def is_written():
            process.send_signal(signal.SIGUSR1)
            return os.path.exists(self.path("profile")) and self.stacks()

        support.wait_until(is_written, "there are samples")
        self.assertEqual(self.end(process).stderr, "")

    def test_in_the_background_of_a_terminal(self):
        """Even on a terminal that stops background processes when they write."""
        terminal = Terminal("/bin/bash", "--norc", "-i")
        self.addCleanup(terminal.close)
        terminal.type(b"stty tostop\n")
        command = [support.PYSAMPLE, "attach", "-r", "100", *support.COLLAPSED, "-o",
                   self.path("profile"), str(self.target.pid)]
        terminal.type(shlex.join(command).encode() + b"\n")
        terminal.read_until(b"sampling process")
        process = support.child_of(terminal.pid)
        terminal.type(b"\x1a")
        support.wait_until(lambda: support.state(process) == "T", "it is stopped")
        terminal.type(b"bg\n")
        support.wait_until(lambda: support.state(process) != "T", "it goes on")
        os.kill(process, signal.SIGUSR1)
        support.wait_until(lambda: os.path.exists(self.path("profile")), "it is written")
        terminal.read(0.3)
        self.assertNotEqual(support.state(process), "T")
        os.kill(process, signal.SIGKILL)
        terminal.type(b"exit\nexit\n")
        terminal.finish()


if __name__ == "__main__":
    unittest.main()
