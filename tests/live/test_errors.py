# SPDX-License-Identifier: MIT
"""Every failure ends with the right status and one sentence that gives the reason."""
import os
import subprocess
import unittest

import support
from support import pysample

COMMANDS = ("attach", "dump", "doctor")


class ErrorTestCase(unittest.TestCase):
    def assert_fails(self, result, status, pattern="."):
        self.assertEqual(result.status, status, result)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\Apysample: [^\n]*\n\Z")
        self.assertRegex(result.stderr, pattern)


class Usage(ErrorTestCase):
    def test_help(self):
        for args in (["--help"], ["report", "--help"],
                     *([command, "--help"] for command in COMMANDS)):
            with self.subTest(args=args):
                result = pysample(*args)
                self.assertEqual((result.status, result.stderr), (0, ""))
                self.assertRegex(result.stdout, r"(?i)usage: pysample")

    def test_version(self):
        result = pysample("--version")
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"\Apysample \d+\.\d+\.\d+\b[^\n]*\n\Z")

    def test_wrong_usage(self):
        pid = os.getpid()
        cases = [
            [], ["nonsense"], ["--nonsense"],
            ["attach"], ["attach", "x"], ["attach", ""], ["attach", "0"], ["attach", "-1"],
            ["attach", pid, pid], ["attach", pid, "--nonsense"], ["attach", "99999999999999999999"],
            ["attach", pid, "-f", "nonsense"], ["attach", pid, "-o"],
            ["dump"], ["dump", "x"], ["dump", pid, "--nonsense"],
            ["doctor"], ["doctor", "x"], ["doctor", pid, "--nonsense"],
        ]
        cases += [["attach", pid, "-d", value] for value in
                  ("", "x", "-1", "0", "1e-10", "nan", "inf", "1x", "1e400", " ", "0x")]
        cases += [["attach", pid, "-r", value] for value in
                  ("", "x", "-1", "0", "nan", "inf", "1x", "1e400", "maximal")]
        cases += [[command, pid, "--wait", value] for command in COMMANDS for value in
                  ("", "x", "-1", "nan", "inf", "1x")]
        for args in cases:
            with self.subTest(args=args):
                result = pysample(*args)
                self.assert_fails(result, 2)


def without(*descriptors):
    """A wrapper that starts a program with these descriptors closed."""
    return ["sh", "-c", 'exec "$0" "$@" %s' % " ".join("%d>&-" % number
                                                        for number in descriptors)]


class StandardStreams(ErrorTestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(
            support.python_target(support.newest_interpreter(), "busy"))

    def run_without(self, *descriptors):
        """A short run that writes to a file while these descriptors are closed."""
        with support.fresh_folder() as (folder, _):
            path = os.path.join(folder, "profile")

            def has_samples():
                result = pysample("attach", self.target.pid, "-d", "0.1", *support.COLLAPSED, "-o",
                                  path, wrapper=without(*descriptors))
                self.assertIn(result.status, (0, 5), result)
                return result.status == 0 and support.parse_collapsed(support.read(path))

            support.wait_until(has_samples, "there are samples")

    def test_no_note_gets_into_the_profile(self):
        for descriptors in (0,), (1,), (2,), (0, 1, 2):
            with self.subTest(closed=descriptors):
                self.run_without(*descriptors)

    def test_stdout_is_closed(self):
        for args in (["attach", "-d", "60", self.target.pid], ["dump", self.target.pid],
                     ["doctor", self.target.pid], ["--version"]):
            with self.subTest(args=args):
                self.assert_fails(pysample(*args, wrapper=without(1)), 1, "standard output")

    def test_stdout_is_full(self):
        for args in (["--help"], ["--version"], *([command, "--help"] for command in COMMANDS),
                     *([command, self.target.pid] for command in ("dump", "doctor")),
                     ["attach", "-q", "-d", "0.1", self.target.pid]):
            with self.subTest(args=args), open("/dev/full", "wb") as full:
                result = support.run_with_samples(
                    lambda args=args, full=full: pysample(*args, stdout=full))
                self.assert_fails(result, 1, "standard output: No space left")


# Ends this many seconds after reporting that it runs, at once and without cleaning up.
SHORT_LIVED = """\
import os, sys, time
os.write(1, b"!")
time.sleep(float(sys.argv[1]))
os._exit(0)
"""


class Options(ErrorTestCase):
    def test_each_mistake_is_named(self):
        cases = {
            "unknown option -x;": ["-x"],
            "unknown option -y;": ["--lines", "-ty"],
            "unknown or ambiguous option --nonsense;": ["--nonsense"],
            "unknown or ambiguous option --f;": ["--f"],
            "option -o requires a value;": ["-o"],
            "option --output requires a value;": ["-t", "--output"],
            "option --lines=3 takes no value;": ["--lines=3"],
            "option --quiet=x takes no value;": ["--quiet=x"],
            r"unknown option -\\x1b;": ["-\x1b"],
        }
        for pattern, options in cases.items():
            with self.subTest(options=options):
                self.assert_fails(pysample("attach", os.getpid(), *options), 2,
                                  r"\Apysample: %s (see )?'pysample attach --help'" % pattern)


class NoTarget(ErrorTestCase):
    def test_process_ends_during_sampling(self):
        """Whenever the process ends, the message says so, and never that it is not Python. A run
        that was over before may have no stack."""
        command = support.newest_interpreter().command()
        for i in range(100):
            with subprocess.Popen([*command, "-S", "-c", SHORT_LIVED, str(i % 50 * 5e-5)],
                                  stdout=subprocess.PIPE) as target:
                self.assertEqual(target.stdout.read(1), b"!")
                result = pysample(*(["attach", "-d", "0.01"] if i < 50 else ["dump"]), target.pid)
            with self.subTest(result=result):
                self.assertIn(result.status, (0, 1, 5))
                if result.status:
                    self.assertRegex(result.stderr, r"%d (ended before|has just ended)|there is no "
                                     "process %d|%s" % (target.pid, target.pid,
                                                        support.NO_PROVEN_STACK))

    def test_no_such_process(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        for command in ("attach", "dump"):
            with self.subTest(command):
                self.assert_fails(pysample(command, gone.pid), 1, str(gone.pid))

    def test_thread_id(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            tids = {int(tid) for tid in os.listdir("/proc/%d/task" % target.pid)}
            tid = max(tids - {target.pid})
            for command in ("attach", "dump"):
                with self.subTest(command):
                    self.assert_fails(pysample(command, tid), 1, str(tid))

    def test_zombie(self):
        zombie = subprocess.Popen(["true"])
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        try:
            for command in ("attach", "dump"):
                with self.subTest(command):
                    self.assert_fails(pysample(command, zombie.pid), 5, str(zombie.pid))
        finally:
            zombie.wait()

    def test_not_python(self):
        with support.plain_target("sleep", "60") as target:
            for command in ("attach", "dump"):
                with self.subTest(command):
                    self.assert_fails(pysample(command, target.pid), 3, "(?i)python")

    def test_versions_that_are_not_supported(self):
        for interpreter in support.refused_interpreters():
            with self.subTest(version=interpreter.version):
                command = [*interpreter.command(), "-c", "import time; time.sleep(60)"]
                with support.plain_target(*command) as target:
                    for subcommand in ("attach", "dump"):
                        self.assert_fails(pysample(subcommand, target.pid), 3,
                                          r"(?i)python|interpreter")


@unittest.skipIf(os.geteuid() != 0, "needs root: another user's process")
class NotAllowed(ErrorTestCase):
    def test_another_users_process(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            for command in ("attach", "dump"):
                with self.subTest(command):
                    self.assert_fails(support.pysample_as_nobody(command, target.pid), 4,
                                      "CAP_SYS_PTRACE|sudo|root")


if __name__ == "__main__":
    unittest.main()
