# SPDX-License-Identifier: MIT
"""pysample run: what it starts, what the command inherits, what is left behind and what is
reported.
"""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import termios
import time
import unittest

import support
from support import PYSAMPLE, names, parse_collapsed, per_interpreter, pysample

# Works for this many seconds, then ends as the second argument says.
WORK = """\
import os, sys, time

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(100))

work(float(sys.argv[1]))
exec(sys.argv[2] if len(sys.argv) > 2 else "")
"""

# Counts its signals in a file until its stdin ends.
COUNT = """\
import os, signal, sys

def count(number, frame):
    with open(sys.argv[1], "a") as file:
        file.write("%d\\n" % number)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
               signal.SIGUSR2):
    if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, count)
with open(sys.argv[1], "w"):
    pass
print("ready", flush=True)
while os.read(0, 1):
    pass
sys.exit(9)
"""


def python():
    """An interpreter that sees the same files as we do."""
    return max((found for found in support.supported_interpreters() if not found.root),
               key=support.version_key).path


class RunTestCase(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())
        self.profile = os.path.join(self.folder, "profile")

    def script(self, text, name="script.py"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def options(self, *options):
        return ["run", *support.COLLAPSED, "-o", self.profile, *map(str, options), "--"]

    def stacks(self):
        return parse_collapsed(support.read(self.profile))

    def seen(self):
        return {name for stack in self.stacks() for name in names(stack)}

    def until_seen(self, attempt, *functions):
        """The result of the first run whose profile has these functions: stacks that cannot be
        proven are lost."""
        results = []

        def all_are_seen():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.profile)
            results.append(attempt())
            return os.path.exists(self.profile) and set(functions) <= self.seen()

        support.wait_until(all_are_seen, "%s are seen" % (functions,))
        return results[-1]

    def assert_one_sentence(self, result, pattern):
        self.assertRegex(result.stderr, r"\Apysample: [^\n]*\n\Z")
        self.assertRegex(result.stderr, pattern)

    def assert_no_profile(self):
        self.assertFalse(os.path.exists(self.profile))


@per_interpreter
class Short(RunTestCase):
    """Each version, wherever it is installed."""

    def test_short_command_is_sampled(self):
        with support.fresh_folder(self.interpreter.root) as (outside, inside):
            with open(os.path.join(outside, "work.py"), "w", encoding="utf-8") as file:
                file.write(WORK)
            result = self.until_seen(lambda: pysample(
                *self.options(), *self.interpreter.command(), inside + "/work.py", "0.05",
                "sys.exit(7)"), "work")
        self.assertEqual(result.status, 7, result)


class Status(RunTestCase):
    def test_it_is_the_commands(self):
        script = self.script(WORK)
        for status, end in ((0, ""), (3, "sys.exit(3)"), (255, "os._exit(255)"),
                            (137, "os.kill(os.getpid(), 9)"), (139, "os.kill(os.getpid(), 11)"),
                            (143, "os.kill(os.getpid(), 15)")):
            with self.subTest(end):
                result = self.until_seen(lambda end=end: pysample(
                    *self.options(), python(), script, "0.1", end), "work")
                self.assertEqual(result.status, status, result)

    def test_no_python(self):
        result = pysample(*self.options(), "sh", "-c", "echo out; exit 3")
        self.assertEqual((result.status, result.stdout), (3, "out\n"), result)
        self.assert_one_sentence(result, "no profile: 'sh' ended, and no CPython")
        self.assert_no_profile()

    def test_a_python_that_cannot_be_sampled(self):
        for refused in support.refused_interpreters()[:1]:
            result = pysample(*self.options(), refused.path, "-c",
                              "import sys, time; time.sleep(1); sys.exit(6)")
            self.assertEqual(result.status, 6, result)
            self.assert_one_sentence(result, re.escape(refused.minor))
            self.assert_no_profile()

    def test_what_cannot_be_started(self):
        not_executable = self.script("")
        no_interpreter = self.script("#!/nonexistent/interpreter\n", "no_interpreter")
        os.chmod(no_interpreter, 0o755)
        for status, command, pattern in (
                (127, "no-such-program", "program 'no-such-program' was not found in PATH"),
                (127, "/nonexistent/program", "does not exist"), (127, "", "program '' was not found in PATH"),
                (127, no_interpreter, "interpreter in its first line"),
                (126, not_executable, "Permission denied"), (126, self.folder, "Permission"),
                (126, "/etc/passwd/x", "Not a directory")):
            with self.subTest(command=command):
                result = pysample(*self.options(), command)
                self.assertEqual((result.status, result.stdout), (status, ""), result)
                self.assert_one_sentence(result, pattern)
                self.assert_no_profile()

    def test_a_script_without_a_first_line(self):
        script = self.script("exit 5\n", "script")
        os.chmod(script, 0o755)
        self.assertEqual(pysample(*self.options(), script).status, 5)

    def test_our_own_failures(self):
        never = ["touch", os.path.join(self.folder, "started")]
        for args in (["run"], ["run", "--"], ["run", "--nonsense", "--", *never],
                     ["run", "-r", "x", *never], ["run", "-f", "nonsense", *never],
                     ["run", "-o", "/nonexistent/profile", *support.COLLAPSED, *never],
                     ["run", "-o", self.profile, *support.COLLAPSED, "--stats-json", self.profile,
                      *never], ["run", "-o", "-", "-f", "recording", *never],
                     ["run", "--mode", "cpu", "--no-cpu", *never]):
            with self.subTest(args=args):
                result = pysample(*args)
                self.assertEqual((result.status, result.stdout), (125, ""), result)
                self.assert_one_sentence(result, ".")
        self.assertFalse(os.path.exists(never[1]))

    def test_a_signal_before_it_is_started(self):
        """The signal comes while nothing reads the output."""
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        started = os.path.join(self.folder, "started")
        process = support.start_pysample("run", *support.COLLAPSED, "-o", fifo, "touch", started)
        support.wait_until(lambda: support.state(process.pid) == "S", "it waits for a reader")
        time.sleep(0.2)
        self.assertEqual(support.end_by_signal(process).status, 125)
        self.assertFalse(os.path.exists(started))

    def assert_failed(self, pattern, *args, seconds=0.2, **kwargs):
        """The status is ours, unless the command failed itself."""
        script = self.script(WORK)
        for end, status in (("", 125), ("sys.exit(3)", 3)):
            result = pysample("run", *args, script, seconds, end, **kwargs)
            self.assertEqual(result.status, status, result)
            self.assertRegex(result.stderr, pattern)

    def test_a_profile_that_cannot_be_written(self):
        for options in ([*support.COLLAPSED, "-o", "/dev/full"],
                        ["-f", "speedscope", "-o", "/dev/full"],
                        [*support.COLLAPSED, "-o", "/dev/null", "--stats-json", "/dev/full"]):
            self.assert_failed("No space left", *options, "--", python())

    def test_a_standard_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            self.assert_failed("No space left", "-o", "-", "--", python(), stdout=full)

    def test_a_recording_that_has_no_room(self):
        self.assert_failed("sampling ended early: .*File too large", "-o",
                           self.profile + ".pysample", "-r", "max", "--", python(), seconds=2,
                           wrapper=["prlimit", "--fsize=1536", "--"])

    def test_unsupported_mode(self):
        oldest = [found for found in support.supported_interpreters()
                  if found.minor == "3.6" and not found.root]
        if not oldest:
            self.skipTest("not tested here: 3.6 (no such interpreter here)")
        self.assert_failed(": use --mode", *self.options("--mode", "gil")[1:],
                           oldest[0].path)
        self.assert_no_profile()

    def test_sigchld_may_be_ignored(self):
        """The kernel then keeps no child to wait for."""
        result = pysample(*self.options(), python(), self.script(WORK), "0.1", "sys.exit(3)",
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(result.status, 3, result)


class Words(RunTestCase):
    def test_options_end_at_the_command(self):
        for args in (["--", "echo", "-d", "--", "-q"], ["echo", "-d", "--", "-q"]):
            result = pysample("run", "-q", *support.COLLAPSED, "-o", self.profile, *args)
            self.assertEqual((result.status, result.stdout), (0, "-d -- -q\n"), result)

    def test_help(self):
        result = pysample("run", "--help")
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertRegex(result.stdout, "usage: pysample run")
        self.assertIn("126", result.stdout)
        self.assertIn("  run ", pysample("--help").stdout)


class Streams(RunTestCase):
    def test_they_are_the_commands(self):
        script = self.script("import sys, time; time.sleep(0.1)\n"
                             "sys.stdout.write(sys.stdin.read().upper())\n"
                             "sys.stderr.write('error\\n')\n")
        result = subprocess.run([PYSAMPLE, *self.options(), python(), script], input=b"in\n",
                                capture_output=True, timeout=support.PATIENCE_S)
        self.assertEqual((result.returncode, result.stdout), (0, b"IN\n"), result)
        self.assertIn(b"error\n", result.stderr)

    def test_a_profile_on_stdout_comes_last(self):
        script = self.script("import sys, time\n"
                             "for i in range(5):\n"
                             "    print('line', i, flush=True); time.sleep(0.1)\n")
        for options in ([*support.COLLAPSED], ["-o", "-"], ["-o", "-", "-d", "0.2"]):
            result = pysample("run", "--idle", *options, "--", python(), script)
            self.assertEqual(result.status, 0, result)
            own, profile = result.stdout[:35], result.stdout[35:]
            self.assertEqual(own, "".join("line %d\n" % i for i in range(5)))
            self.assertTrue(parse_collapsed(profile))

    def test_no_version_before_there_is_an_interpreter(self):
        result = pysample("run", "-s", "-v", "-o", self.profile + ".pysample", "--", python(),
                          self.script(WORK), "0.3")
        self.assertRegex(result.stderr, r"\Apysample: sampling process \d+ and the processes it starts\n")
        self.assertNotIn("(null)", result.stderr)

    def test_files_do_not_wait_for_what_goes_to_stdout(self):
        """For each way of making a file: added up, from a recording, from a temporary file."""
        script = self.script(WORK + "print('last', sys.stdin.read(), flush=True)")
        stats = os.path.join(self.folder, "stats")
        for options in (["--stats-json", stats], ["-o", self.profile + ".pysample"],
                        ["-o", self.profile + ".html"], ["-f", "speedscope", "-o", stats]):
            with self.subTest(options=options), subprocess.Popen(
                    [PYSAMPLE, "run", "-d", "0.3", "-o", "-", *support.COLLAPSED, "-o",
                     self.profile, *support.COLLAPSED, *options, "--", python(), script, "0.5"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE) as process:
                support.wait_until(lambda: os.path.exists(options[-1]) and
                                   os.path.exists(self.profile), "the files are written")
                self.assertTrue(self.stacks())
                self.assertIsNone(process.poll())
                stdout, stderr = process.communicate(b"word", timeout=support.PATIENCE_S)
            self.assertEqual(process.returncode, 0, stderr)
            self.assertIn(b"waiting for process ", stderr)
            line, _, profile = stdout.decode().partition("\n")
            self.assertEqual(line, "last word")
            self.assertEqual(parse_collapsed(profile), self.stacks())
            os.unlink(self.profile)
            os.unlink(options[-1])

    def test_counters_on_stdout_come_last(self):
        result = pysample("run", "-o", self.profile, *support.COLLAPSED, "--stats-json", "-", "--",
                          python(), "-c", "import time; print('line'); time.sleep(0.3)")
        self.assertEqual(result.status, 0, result)
        line, _, counters = result.stdout.partition("\n")
        self.assertEqual(line, "line")
        self.assertEqual(json.loads(counters)["samples"], sum(self.stacks().values()))

    def test_command_inherits_no_descriptor_of_pysample(self):
        script = self.script("import os\nprint(sorted(map(int, os.listdir('/proc/self/fd'))))\n")
        for closed, expected in (((), "[0, 1, 2, 3]\n"), ((0,), "[0, 1, 2]\n"),
                                 ((2,), "[0, 1, 2]\n"), ((0, 2), "[0, 1]\n")):
            bare, run = ([*command, python(), "-S", "-E", script]
                         for command in ([], [PYSAMPLE, *self.options()]))
            wrapper = ["sh", "-c", 'exec "$0" "$@" ' + " ".join("%d>&-" % one for one in closed)]
            outputs = [subprocess.run([*wrapper, *command], stdin=subprocess.DEVNULL,
                                      capture_output=True, timeout=support.PATIENCE_S).stdout
                       for command in (bare, run)]
            with self.subTest(closed=closed):
                self.assertEqual(outputs[0], outputs[1])
                if not closed:
                    self.assertEqual(outputs[1].decode(), expected)

    def test_command_inherits_signals_and_limits(self):
        command = ["sh", "-c", "grep ^Sig[BIC] /proc/self/status; ulimit -n; ulimit -c; umask; "
                   "cat /proc/self/timerslack_ns"]

        def prepare():
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])

        bare, run = (subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True,
                                    preexec_fn=prepare, restore_signals=False,
                                    timeout=support.PATIENCE_S).stdout
                     for args in (command, [PYSAMPLE, *self.options("--cpu"), *command]))
        self.assertEqual(bare, run)


class Sampling(RunTestCase):
    def test_the_duration_ends_the_sampling_only(self):
        script = self.script(WORK + "sys.stdin.read(); sys.exit(4)")
        with subprocess.Popen([PYSAMPLE, *self.options("-d", "0.3"), python(), script, "0.5"],
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            support.wait_until(lambda: os.path.exists(self.profile), "the profile is written")
            self.assertTrue(self.stacks())
            self.assertIsNone(process.poll())
            _, stderr = process.communicate(timeout=support.PATIENCE_S)
        self.assertEqual(process.returncode, 4)
        self.assertIn(b"waiting for process ", stderr)

    def test_a_shell_that_becomes_a_python(self):
        script = self.script(WORK)
        stats = os.path.join(self.folder, "stats")
        result = self.until_seen(lambda: pysample(
            *self.options("--stats-json", stats), "sh", "-c",
            "sleep 0.8; exec %s %s 0.3 'sys.exit(3)'" % (python(), script)), "work")
        self.assertEqual(result.status, 3, result)
        self.assertIn(os.path.basename(script), json.loads(support.read(stats))["command_line"])

    def test_a_python_that_becomes_another(self):
        second = self.script(WORK.replace("work", "second"), "second.py")
        first = self.script(WORK)
        become = "os.execv('/bin/sh', ['sh', '-c', 'sleep 0.8; exec %s %s 0.3'])" % (
            python(), second)
        result = self.until_seen(lambda: pysample(*self.options(), python(), first, "0.3", become),
                                 "work", "second")
        self.assertEqual(result.status, 0, result)
        self.assertIn("followed into", result.stderr)

    def test_as_an_ordinary_user(self):
        """A parent may read its child, even where Yama permits nothing else."""
        folder = os.path.join(self.folder, "nobody")
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        self.profile = os.path.join(folder, "profile")
        script = self.script(WORK)
        if os.geteuid() != 0:
            self.skipTest("not tested here: another user (not root)")
        result = self.until_seen(lambda: support.pysample_as_nobody(
            *self.options(), "/usr/bin/python3", script, "0.3", "sys.exit(os.geteuid() % 256)"),
            "work")
        self.assertEqual(result.status, 65534 % 256, result)

    def test_a_program_that_may_not_be_read(self):
        """It runs to its end nevertheless."""
        if os.geteuid() != 0:
            self.skipTest("not tested here: a program that may not be read (not root)")
        program = os.path.join(self.folder, "sh")
        shutil.copy("/bin/sh", program)
        os.chmod(program, 0o711)
        result = support.pysample_as_nobody("run", *support.COLLAPSED, "-o", "/dev/null", "--",
                                            program, "-c", "sleep 0.3; exit 3")
        self.assertEqual(result.status, 3, result)
        self.assert_one_sentence(result, "undumpable")

    def test_without_o_there_is_a_recording(self):
        result = pysample("run", "--", python(), self.script(WORK), "0.3", cwd=self.folder)
        self.assertEqual(result.status, 0, result)
        (name,) = [name for name in os.listdir(self.folder) if name.endswith(".pysample")]
        self.assertRegex(name, r"\Apysample-python[0-9.]*-[0-9]+\.pysample\Z")
        self.assertIn("; next: pysample report %s" % name, result.stderr)


class Signals(RunTestCase):
    def setUp(self):
        super().setUp()
        self.counts = os.path.join(self.folder, "counts")

    @contextlib.contextmanager
    def counting(self, *options, **kwargs):
        """pysample with a command that counts its signals."""
        process = subprocess.Popen(
            [PYSAMPLE, *self.options("-v", *options), python(), self.script(COUNT), self.counts],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        try:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            line = b""
            while b"sampling process" not in line:
                line = process.stderr.readline()
                self.assertTrue(line)
            process.child = int(re.search(rb"sampling process (\d+)", line).group(1))
            support.wait_for_ticks(process.pid)
            yield process
        finally:
            process.kill()
            process.communicate(timeout=support.PATIENCE_S)

    def end(self, process):
        """The run ends with its command, which ends when its input does."""
        process.stdin.close()
        process.stdin = None  # for communicate()
        self.assertEqual(process.wait(timeout=support.PATIENCE_S), 9)

    def counted(self):
        return list(map(int, support.read(self.counts).split()))

    def wait_for_counts(self, *expected):
        support.wait_until(lambda: self.counted() == list(expected), "it counted %s" % (expected,))

    def test_stop_signals_are_forwarded(self):
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            with self.subTest(number), self.counting() as process:
                process.send_signal(number)
                self.wait_for_counts(number)
                support.wait_until(lambda: os.path.exists(self.profile), "the profile is written")
                self.assertIsNone(process.poll())
                self.end(process)
                self.assertEqual(self.counted(), [number])
                self.assertTrue(self.stacks())
                os.unlink(self.profile)

    def test_other_signals_are_forwarded(self):
        numbers = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT]
        with self.counting() as process:
            for i, number in enumerate(numbers):
                process.send_signal(number)
                self.wait_for_counts(*numbers[:i + 1])
            self.assertFalse(os.path.exists(self.profile))
            self.end(process)

    def test_second_signal_ends_pysample_and_not_the_command(self):
        with self.counting() as process:
            process.send_signal(signal.SIGTERM)
            self.wait_for_counts(signal.SIGTERM)
            support.wait_until(lambda: os.path.exists(self.profile), "the profile is written")
            process.send_signal(signal.SIGHUP)
            self.assertEqual(process.wait(timeout=support.PATIENCE_S), 129)
            self.wait_for_counts(signal.SIGTERM, signal.SIGHUP)
            self.assertNotIn(support.state(process.child), "ZX")

    def test_a_command_that_dies_of_it(self):
        script = self.script("print('ready', flush=True)\nimport time; time.sleep(60)")
        with subprocess.Popen([PYSAMPLE, *self.options(), python(), script],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            self.assertIn(b"sampling process", process.stderr.readline())
            support.wait_for_ticks(process.pid)
            process.terminate()
            process.communicate(timeout=support.PATIENCE_S)
            self.assertEqual(process.returncode, 143)
        self.assertTrue(self.stacks())

    def test_one_that_is_ignored_stays_so(self):
        with self.counting(
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGUSR1)
            self.wait_for_counts(signal.SIGUSR1)
            self.assertFalse(os.path.exists(self.profile))

    def test_while_no_python_is_there(self):
        process = support.start_pysample(*self.options(), "sh", "-c",
                                         "trap 'exit 8' TERM; echo; while :; do sleep 0.05; done")
        self.assertEqual(process.stdout.readline(), b"\n")
        time.sleep(0.3)
        result = support.end_by_signal(process)
        self.assertEqual(result.status, 8, result)
        self.assert_no_profile()

    def test_whole_group_stops_and_continues(self):
        """What ^Z and fg(1) do."""
        with self.counting(preexec_fn=os.setpgrp) as process:
            os.killpg(process.pid, signal.SIGTSTP)
            support.wait_until(lambda: support.state(process.pid) == "T" and
                               support.state(process.child) == "T", "both stand still")
            os.killpg(process.pid, signal.SIGCONT)
            support.wait_until(lambda: support.state(process.child) != "T", "it goes on")
            self.end(process)
        self.assertTrue(self.stacks())


class Terminal:
    """A program on a terminal of its own, which is its stdin, stdout and stderr."""

    def __init__(self, *args, stdout=None, term="xterm"):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = term
            if stdout:
                os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT, 0o644), 1)
            os.execv(args[0], args)
        self.shown = b""

    def read(self, seconds):
        """Read what it shows in that time, or until it ends. Returns False if it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([self.master], [], [], 0.01)
            if not ready:
                continue
            try:
                self.shown += os.read(self.master, 65536)
            except OSError:  # EIO: no process has it open any more
                return False
        return True

    def read_until(self, pattern):
        deadline = time.monotonic() + support.PATIENCE_S
        while not re.search(pattern, self.shown):
            if not self.read(0.1) or time.monotonic() > deadline:
                raise AssertionError("%r was not shown: %r" % (pattern, self.shown))

    def type(self, keys):
        os.write(self.master, keys)

    def finish(self):
        deadline = time.monotonic() + support.PATIENCE_S
        while self.read(0.1):
            if time.monotonic() > deadline:
                raise AssertionError("it did not end: %r" % self.shown)
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


class TerminalTestCase(RunTestCase):
    def terminal(self, *args, **kwargs):
        terminal = Terminal(*map(str, args), **kwargs)
        self.addCleanup(terminal.close)
        return terminal


class OnATerminal(TerminalTestCase):
    def test_control_c_reaches_the_command_once(self):
        counts = os.path.join(self.folder, "counts")
        terminal = self.terminal(PYSAMPLE, *self.options(), python(), self.script(COUNT), counts)
        terminal.read_until(b"ready")
        terminal.read_until(b"sampling process")
        support.wait_for_ticks(terminal.pid)
        terminal.type(b"\x03")
        terminal.read_until(b"which is still running")
        self.assertEqual(support.read(counts), "%d\n" % signal.SIGINT)
        self.assertTrue(self.stacks())
        # From now on ^C is the command's, which may be an interpreter's prompt.
        for number in 2, 3:
            terminal.type(b"\x03")
            support.wait_until(lambda number=number: support.read(counts)
                               == number * ("%d\n" % signal.SIGINT), "it is counted")
        terminal.type(b"\x1c")
        terminal.read(0.3)
        terminal.type(b"\x04")
        self.assertEqual(terminal.finish(), 9)

    def test_the_line_of_progress_is_not_between_what_the_command_shows(self):
        script = self.script(WORK)
        terminal = self.terminal(PYSAMPLE, *self.options(), python(), script, "1.2")
        self.assertEqual(terminal.finish(), 0)
        self.assertNotIn(b" Hz, ", terminal.shown.split(b"samples of")[0])
        terminal = self.terminal(PYSAMPLE, *self.options(), python(), script, "1.2",
                                 stdout=os.path.join(self.folder, "out"))
        self.assertEqual(terminal.finish(), 0)
        self.assertRegex(terminal.shown, rb"\rpysample: [0-9.]+ s, \d+ samples?, ")


class Progress(TerminalTestCase):
    sleeps = True

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(
            support.python_target(support.newest_interpreter(), "sleeps_in_c"))

    def attach(self, *options):
        return ["attach", *support.COLLAPSED, "-o", self.profile, *map(str, options),
                str(self.target.pid)]

    def test_a_line_that_is_written_anew(self):
        terminal = self.terminal(PYSAMPLE, *self.attach())
        line = rb"\rpysample: ([0-9.]+) s, (\d+) samples, \d+ of 100 Hz, [0-9.]+ % lost"
        terminal.read_until(line + rb"(.|\s)*" + line)
        lines = re.findall(line, terminal.shown)
        self.assertLessEqual(int(lines[0][1]), int(lines[-1][1]))
        terminal.type(b"\x03")
        self.assertEqual(terminal.finish(), 0)
        # The line is erased before the end is reported.
        self.assertRegex(terminal.shown, rb"\r {20,}\rpysample: stopped; \d+ samples of")

    def test_quiet(self):
        terminal = self.terminal(PYSAMPLE, *self.attach("-d", "1.2", "-q"))
        self.assertEqual(terminal.finish(), 0)
        self.assertEqual(terminal.shown, b"")

    def test_no_progress_in_the_background(self):
        """The terminal is the shell's then."""
        terminal = self.terminal("/bin/bash", "-ic", '"$0" "$@" & wait', PYSAMPLE,
                                 *self.attach("-d", "1.2"))
        terminal.finish()
        self.assertIn(b"samples of", terminal.shown)
        self.assertNotIn(b" Hz, ", terminal.shown.split(b"samples of")[0])

    def test_lines_in_a_pipe(self):
        process = support.start_pysample(*self.attach("-r", "100"))
        lines = [process.stderr.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        result = support.finish(process)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(lines[1], rb"^pysample: \d+\.\d s, \d+ samples, [0-9.]+ of 100 Hz, "
                         rb"[0-9.]+ % lost\n")
        self.assertRegex(result.stderr, r"pysample: stopped; \d+ samples of")
        self.assertNotRegex(lines[1].decode() + result.stderr, "[\r\x1b]")

    def test_stopped_terminal(self):
        """^S: sampling goes on, and so does the line of progress later."""
        recording = os.path.join(self.folder, "recording.pysample")
        terminal = self.terminal(PYSAMPLE, "attach", "-o", recording, self.target.pid)
        terminal.read_until(rb"\d+ samples, ")
        slave = os.open("/proc/%d/fd/0" % terminal.pid, os.O_RDWR | os.O_NOCTTY)
        termios.tcflow(slave, termios.TCOOFF)
        support.wait_until(lambda: os.path.exists(recording), "the recording has its name")
        for _ in range(2):
            size = os.stat(recording).st_size
            support.wait_until(lambda size=size: os.stat(recording).st_size > size,
                               "there are more samples")
        termios.tcflow(slave, termios.TCOON)
        os.close(slave)
        terminal.shown = b""
        terminal.read_until(rb"\d+ samples, ")
        os.kill(terminal.pid, signal.SIGTERM)
        self.assertEqual(terminal.finish(), 0)


if __name__ == "__main__":
    unittest.main()
