# SPDX-License-Identifier: MIT
"""`pysample ls`, and the choice of a process by --name or on a terminal."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import support
from support import PYSAMPLE, per_interpreter, pysample, python_target
from test_run import Terminal

# Forks as often as its argument says; everyone reports and sleeps.
FORKS = """\
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        break
print(os.getpid(), flush=True)
time.sleep(3600)
"""

# There may be processes of others.
HIDDEN = r"(pysample: [^\n]* may not be read[^\n]*\n)?"


def listed(*options):
    """{pid: its entry}, of pysample ls --json."""
    result = pysample("ls", "--json", *options)
    assert result.status == 0 and re.fullmatch(HIDDEN, result.stderr), result
    return {entry["pid"]: entry for entry in json.loads(result.stdout)["processes"]}


class Listing:
    """For each interpreter: what the list says is what the process and the kernel say."""

    def test_a_process(self):
        with python_target(self.interpreter, "busy", "secret-word") as target:
            entry = listed()[target.pid]
            self.assertEqual(entry.pop("python"), target.report["python"])
            self.assertEqual(entry.pop("threads"), len(os.listdir("/proc/%d/task" % target.pid)))
            self.assertRegex(entry.pop("command"), r"\Apython[\d.]*d? busy\.py\Z")
            self.assertEqual(entry.pop("uid"), os.stat("/proc/%d" % target.pid).st_uid)
            del entry["cpu_percent"], entry["container"]
            self.assertEqual(entry, {"pid": target.pid, "free_threaded": False, "problem": None,
                                     "other_pid_namespace": False})
            self.assertIn("busy.py secret-word", listed("--full-command")[target.pid]["command"])


@per_interpreter
class Listed(Listing, unittest.TestCase):
    pass


class FreeThreaded(unittest.TestCase):

    def test_version(self):
        for interpreter in support.free_threaded_interpreters()[-1:]:
            with python_target(interpreter, "busy") as target:
                self.assertIs(listed()[target.pid]["free_threaded"], True)
                self.assertRegex(pysample("ls").stdout, r"(?m)^ *%d +%st " % (
                    target.pid, re.escape(target.report["python"])))


class ListTestCase(unittest.TestCase):

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    @contextlib.contextmanager
    def script(self, name, text, *args, python=None, wrapper=()):
        """Run a script until the block ends. Yields the process, once it has shown a line."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        python = python or max((found for found in support.supported_interpreters()
                                if not found.root), key=support.version_key).path
        process = subprocess.Popen([*support.TIED_TO_US, *wrapper, python, path, *map(str, args)],
                                   stdout=subprocess.PIPE, start_new_session=True)
        with process:
            try:
                process.shown = process.stdout.readline()
                yield process
            finally:
                os.killpg(process.pid, signal.SIGKILL)


class List(ListTestCase):

    def test_cpu(self):
        with python_target(support.newest_interpreter(), "busy") as busy, \
                python_target(support.newest_interpreter(), "busy") as stopped:
            os.kill(stopped.pid, signal.SIGSTOP)
            support.wait_until(lambda: stopped.state() == "T", "it is stopped")
            self.assertEqual(listed()[stopped.pid]["cpu_percent"], 0)
            support.wait_until(lambda: listed()[busy.pid]["cpu_percent"] > 0, "it is seen to run")

    def test_others_are_not_listed(self):
        with subprocess.Popen([*support.TIED_TO_US, "sleep", "3600"]) as other:
            entries = listed("--all")
            other.kill()
        self.assertNotIn(other.pid, entries)
        self.assertIn(os.getpid(), entries)  # these tests

    def test_no_file_is_called_python(self):
        """An interpreter in a program of another name is found by --all and by --name."""
        snake = os.path.join(self.folder, "snake")
        shutil.copy("/usr/bin/python3", snake)
        with subprocess.Popen([*support.TIED_TO_US, snake, "-ISc",
                               "print(flush=True)\nwhile True: pass"],
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            try:
                if "python" in support.read("/proc/%d/maps" % process.pid):
                    self.skipTest("not tested here: /usr/bin/python3 needs a libpython")
                self.assertNotIn(process.pid, listed())
                self.assertEqual(listed("--all")[process.pid]["command"], "snake")
                dump = pysample("dump", "--json", "--name", self.folder)
                self.assertEqual(json.loads(dump.stdout)["pid"], process.pid, dump)
            finally:
                process.kill()

    def test_names_are_cut_on_a_terminal_only(self):
        name = "x" * 110 + ".py"
        with self.script(name, FORKS, 0) as process:
            terminal = Terminal("/bin/sh", "-c", 'stty cols 80; exec "$0" ls', PYSAMPLE)
            self.addCleanup(terminal.close)
            self.assertEqual(terminal.finish(), 0)
            lines = terminal.shown.decode("utf-8").replace("\r", "").splitlines()
            self.assertEqual([line for line in lines
                              if len(line) > 80 and not line.startswith("pysample: ")], [])
            row, = [line for line in lines if re.match(r" *%d " % process.pid, line)]
            self.assertEqual((len(row), row[-1]), (80, "…"))
            self.assertRegex(pysample("ls").stdout, r"(?m)^ *%d .*%s$" % (process.pid, name))

    def test_names_cannot_steer_a_terminal(self):
        with self.script("a\x1b[2J\nb.py", FORKS, 0) as process:
            self.assertRegex(pysample("ls").stdout,
                             r"(?m)^ *%d .* a\\x1b\[2J\\x0ab\.py$" % process.pid)
            result = pysample("dump", "--json", "--name", "b.py")
            self.assertEqual(result.status, 0, result)

    @unittest.skipUnless(os.geteuid() == 0, "not tested here: another user's processes (no root)")
    def test_another_users_process(self):
        with python_target(support.newest_interpreter(), "busy") as target:
            result = support.pysample_as_nobody("ls", "--json")
            self.assertEqual(result.status, 0, result)
            entry, = [entry for entry in json.loads(result.stdout)["processes"]
                      if entry["pid"] == target.pid]
            self.assertEqual((entry["python"], entry["free_threaded"], entry["problem"]),
                             (None, None, "permission"))
            result = support.pysample_as_nobody("ls")
            self.assertEqual(result.status, 0, result)
            self.assertRegex(result.stdout, r"(?m)^ *%d +\? " % target.pid)
            self.assertRegex(result.stderr, r"\Apysample: .* marked \? may not be read: .*\n"
                                            r"(pysample: .* could not be looked at; root .*\n)?\Z")

    @unittest.skipUnless(os.geteuid() == 0, "not tested here: PID namespaces (no root)")
    def test_another_pid_namespace(self):
        with self.script("inside.py", FORKS, 0, wrapper=["unshare", "--pid", "--fork"]) as process:
            self.assertEqual(process.shown, b"1\n")
            pid = int(support.read("/proc/%d/task/%d/children" % (process.pid, process.pid)))
            entry = listed()[pid]
            self.assertIs(entry["other_pid_namespace"], True)
            if not entry["container"]:
                self.assertRegex(pysample("ls").stdout, r"(?m)^ *%d .*\(pid ns\)" % pid)


class ByName(ListTestCase):

    def chosen(self, pattern):
        result = pysample("dump", "--json", "--name", pattern)
        self.assertEqual(result.status, 0, result)
        return json.loads(result.stdout)["pid"], result.stderr

    def test_one(self):
        own = os.path.basename(self.folder)
        with self.script("one-%s.py" % own, FORKS, 0, "a word of %s" % own) as process:
            for pattern in ("one-%s" % own, "*one-%s.py" % own, "python* one-?%s.py" % own[1:],
                            "a word of %s" % own, "*a word of %s" % own):
                with self.subTest(pattern):
                    self.assertEqual(self.chosen(pattern), (process.pid, ""))
            result = pysample("attach", "--name", "one-" + own, "-d", "0.2", "-f", "collapsed")
            self.assertIn("sampling process %d," % process.pid, result.stderr)
            for pattern in "one-%s.p?" % own, "ONE-" + own, "a word of %sX" % own:
                with self.subTest(pattern):
                    self.assert_fails(pattern, 1, "no Python process matches")

    def assert_fails(self, pattern, status, expected, *options):
        result = pysample("dump", "--name", pattern, *options)
        self.assertEqual((result.status, result.stdout), (status, ""), result)
        self.assertRegex(result.stderr, r"\Apysample: [^\n]*%s[^\n]*\n\Z" % expected)
        return result.stderr

    def test_several(self):
        own = os.path.basename(self.folder)
        with self.script("%s.py" % own, FORKS, 0) as one, \
                self.script("%s.py" % own, FORKS, 0) as two:
            error = self.assert_fails(own, 1, "2 Python processes match")
            for process in one, two:
                self.assertRegex(error, r"\b%d \(python[\d.]* %s\.py\)" % (process.pid, own))

    def test_a_process_and_those_it_forked(self):
        own = os.path.basename(self.folder)
        with self.script("%s.py" % own, FORKS, 3) as process:
            for _ in range(3):
                process.stdout.readline()
            pid, note = self.chosen(own)
            self.assertEqual(pid, process.pid)
            self.assertRegex(note, r"\Apysample: 4 processes match '%s': %d \(" % (own, pid))

    def test_usage(self):
        self.assert_fails("x", 2, "not both", os.getpid())
        self.assert_fails("", 2, "--name requires a part of a name")
        result = pysample("dump")
        self.assertEqual(result.status, 2, result)
        self.assertIn("pysample ls", result.stderr)
        self.assertEqual(pysample("ls", "x").status, 2)
        self.assertEqual(pysample("run", "--name", "x", "true").status, 125)


class OnATerminal(ListTestCase):

    def dump(self, *command):
        terminal = Terminal(*(command or (PYSAMPLE, "dump")))
        self.addCleanup(terminal.close)
        terminal.read_until(rb"Number or process id \([^)]*\): \Z")
        return terminal

    def test_by_number_and_by_id(self):
        with python_target(support.newest_interpreter(), "busy") as target:
            for is_number in False, True:
                terminal = self.dump()
                row = re.search(rb"(?m)^ *(\d+) +%d " % target.pid, terminal.shown)
                terminal.type(b"%d\n" % (int(row[1]) if is_number else target.pid))
                self.assertEqual(terminal.finish(), 0, terminal.shown)
                self.assertRegex(terminal.shown, rb"\nProcess %d: " % target.pid)

    def test_none(self):
        with self.script("one.py", FORKS, 0), self.script("two.py", FORKS, 0):
            for keys in b"\n", b"q\n", b"\x04", b"x\n\n", b"0\nq\n":
                with self.subTest(keys):
                    terminal = self.dump()
                    terminal.type(keys)
                    self.assertEqual(terminal.finish(), 2, terminal.shown)
                    self.assertRegex(terminal.shown, rb"pysample: no process was chosen\r\n\Z")
                    self.assertEqual(terminal.shown.count(b"Number or"), 1 + (len(keys) > 2))

    def written(self, name):
        """The newest interpreter of this root, and a script for it."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(FORKS)
        found = max((found for found in support.supported_interpreters() if not found.root),
                    key=support.version_key)
        return found.path, path

    def dump_in_namespace(self, command, python, path):
        """Run a shell command in a new PID namespace, where its $2 is pysample."""
        return self.dump("/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
                         "sh", "-c", command, python, path, PYSAMPLE)

    @unittest.skipUnless(os.geteuid() == 0, "not tested here: PID namespaces (no root)")
    def test_a_number_that_is_also_an_id(self):
        """In a new PID namespace the processes 2 and 3 are in the rows 1 and 2."""
        python, path = self.written("two.py")
        for keys, pid in (b"2\n1\n", 2), (b"2\n3\n", 3):
            terminal = self.dump_in_namespace(
                '"$0" "$1" 0 >"$1.a" & "$0" "$1" 0 >"$1.b" & while ! [ -s "$1.a" ] || '
                '! [ -s "$1.b" ]; do sleep 0.01; done; "$2" dump', python, path)
            terminal.type(keys)
            self.assertEqual(terminal.finish(), 0, terminal.shown)
            self.assertIn(b"2 is the number of process 3 and the id of another one", terminal.shown)
            self.assertRegex(terminal.shown, rb"Process %d: " % pid)
            os.remove(path + ".a")
            os.remove(path + ".b")

    @unittest.skipUnless(os.geteuid() == 0, "not tested here: PID namespaces (no root)")
    def test_the_only_one(self):
        """Nothing else is in a new PID namespace."""
        python, path = self.written("only.py")
        for keys, status in (b"\n", 0), (b"q\n", 2):
            terminal = self.dump_in_namespace(
                '"$0" "$1" 0 >"$1.out" & while ! [ -s "$1.out" ]; do sleep 0.01; done; "$2" dump',
                python, path)
            terminal.type(keys)
            self.assertEqual(terminal.finish(), status, terminal.shown)
            os.remove(path + ".out")
