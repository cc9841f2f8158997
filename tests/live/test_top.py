# SPDX-License-Identifier: MIT
"""pysample top, in a real terminal (tmux) and as a batch."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import support
from support import dump, schemas

# What a thread has besides the members of one in a dump.
LIVE_KEYS = {"pid", "state", "recent"}

PROMPT = r"^ready\$ *$"


class Tmux:
    """A shell in a terminal of its own, in a folder."""

    def __init__(self, case, folder, columns=80, rows=24, **environment):
        sockets = tempfile.mkdtemp(dir=folder)  # one that just ended may still have its own
        self.server = ["tmux", "-S", os.path.join(sockets, "tmux"), "-f", "/dev/null"]
        # The pane's TERM is that of tmux unless it is set in the command.
        exports = "".join("export %s='%s'; " % item for item in environment.items())
        subprocess.run(
            [*self.server, "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", folder,
             "%s PS1='ready$ ' exec sh -i" % exports], check=True,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": folder})
        case.addCleanup(subprocess.run, [*self.server, "kill-server"], check=False,
                        stderr=subprocess.DEVNULL)
        self.wait_for(PROMPT)

    def run(self, *words):
        return subprocess.run([*self.server, *words], check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    def press(self, *keys):
        self.run("send-keys", *keys)

    def type(self, line):
        self.run("send-keys", "-l", line)
        self.press("Enter")

    def screen(self, *options):
        return self.run("capture-pane", "-p", *options)

    def wait_for(self, pattern, *options):
        """Wait until the screen matches. Returns it."""
        found = []

        def matches():
            found[:] = [self.screen(*options)]
            return re.search(pattern, found[0], re.M)

        try:
            support.wait_until(matches, "the screen has %r" % pattern)
        except AssertionError as error:
            raise AssertionError("%s:\n%s" % (error, found[0])) from None
        return found[0]

    def modes(self, name):
        """The modes of the terminal, as the shell finds them."""
        self.type("clear; stty -g > %s; echo done-%s" % (name, name))
        self.wait_for("^done-" + name)

    def child(self):
        """The process id of the program that the shell runs."""
        shell = self.run("display-message", "-p", "#{pane_pid}").strip()
        children = "/proc/%s/task/%s/children" % (shell, shell)
        support.wait_until(lambda: support.read(children).split(), "the shell runs it")
        return int(support.read(children).split()[0])


def interpreter_of_this_root():
    """The newest one whose source files have the same paths here."""
    return max((interpreter for interpreter in support.supported_interpreters()
                if not interpreter.root), key=support.version_key)


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Top(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())
        self.target = self.enterContext(support.python_target(interpreter_of_this_root(), "busy"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *options, columns=80, rows=24, prefix="", **environment):
        """Start it, and wait until it shows samples."""
        tmux = Tmux(self, self.folder, columns, rows, **environment)
        tmux.modes("before")
        tmux.type("%s %s top %s %d" % (prefix, support.PYSAMPLE, " ".join(options),
                                       self.target.pid))
        tmux.wait_for(r"^ *\d+\.\d .* spin +…?.*busy\.py:\d+")
        return tmux

    def check_restored(self, tmux):
        """The shell goes on, and its terminal is as it was."""
        tmux.modes("after")
        self.assertEqual(support.read(self.path("after")), support.read(self.path("before")))

    def quit(self, tmux, status=0):
        tmux.press("q")
        tmux.wait_for(PROMPT)
        tmux.type("echo status-$?-end")
        tmux.wait_for("^status-%d-end" % status)
        self.check_restored(tmux)

    def test_shows_all_in_80_columns(self):
        tmux = self.start()
        screen = tmux.wait_for(r"last 5 s")
        self.assertRegex(screen, r"busy\.py · pid %d · Python \d\.\d+" % self.target.pid)
        self.assertRegex(screen, r"CPU\[.*%\] GIL\[.*%\] GC\[.*%\]")
        self.assertRegex(screen, r"Threads 3: 1 busy, 2 idle")
        self.assertRegex(screen, r"Rate \d+ of 100 Hz, \w+, \d+\.\d\d% lost")
        self.assertRegex(screen, r"2 idle hidden")
        self.assertRegex(screen, r"\?Help qQuit")
        self.assertNotIn("sleep ", screen)
        self.quit(tmux)

    def test_shows_tree_and_source_side_by_side_in_200_columns(self):
        tmux = self.start(columns=200, rows=50)
        tmux.press("Enter")
        screen = tmux.wait_for(r"called by .*source")
        tmux.wait_for(r"<module> .*\d+  def spin")
        self.assertRegex(screen, r"100\.0 +100\.0  spin .*busy\.py")
        self.assertRegex(screen, r"n = \(n \+ 1\) % 1000003")
        for line in screen.splitlines():
            self.assertLessEqual(len(line), 200)
        self.quit(tmux)

    def test_keys(self):
        tmux = self.start(rows=40)
        tmux.press("Enter")
        tmux.wait_for(r"Tab: call tree source")
        tmux.wait_for(r"called by")
        tmux.press("Tab")
        tmux.wait_for(r"total% +line  source")
        tmux.wait_for(r"def spin")
        tmux.press("Escape")
        tmux.wait_for(r"^ +0\.0 +100\.0 .*<module>")
        tmux.press("l")
        tmux.wait_for(r"line of function")
        tmux.press("l")
        tmux.wait_for(r"own s  function")
        tmux.press("t")
        tmux.wait_for(r"%d +has GIL .*MainThread" % self.target.pid)
        tmux.wait_for(r"idle +0\.0 .*sleep")
        tmux.press("t")
        tmux.wait_for(r"own s  function")
        tmux.press("/")
        tmux.press("m", "o", "d", "x", "BSpace")
        tmux.wait_for(r"^Filter: mod_")
        tmux.press("Enter")
        screen = tmux.wait_for(r"^Filter: mod  \\ clears it")
        self.assertNotRegex(screen, r"  spin ")
        tmux.press("\\")
        tmux.wait_for(r"  spin ")
        tmux.press("i")
        tmux.wait_for(r"all threads, also idle ones")
        tmux.wait_for(r" sleep ")
        tmux.press("i")
        tmux.wait_for(r"idle hidden")
        tmux.press("n")
        tmux.wait_for(r"C frames must be chosen at the start: pysample top -n")
        tmux.press("?")
        tmux.wait_for(r"pause sampling, and go on")
        tmux.press("x")
        tmux.wait_for(r"own s  function")
        self.quit(tmux)

    def test_sorts_by_the_chosen_column(self):
        tmux = self.start(rows=40)
        self.assertRegex(tmux.screen(), r"(?s)  spin .*  <module> ")
        tmux.press("s")
        tmux.wait_for(r"(?s)own s  function")
        tmux.press("s", "s", "s")
        tmux.wait_for(r"(?s)  <module> .*  spin ")
        tmux.press("<", "<", "<", "<")
        tmux.wait_for(r"(?s)  spin .*  <module> ")
        self.quit(tmux)

    def test_selection_follows_its_row(self):
        tmux = self.start(rows=40)
        tmux.wait_for(r"<module>")
        tmux.press("Down", "Enter")
        tmux.wait_for(r"^ <module> · last seconds")
        tmux.press("Up")
        tmux.wait_for(r"^ spin · last seconds")
        tmux.press("Down", "Down", "Down")
        tmux.wait_for(r"^ <module> · last seconds")
        self.quit(tmux)

    def test_pauses(self):
        tmux = self.start()
        tmux.press("p")
        tmux.wait_for(r"PAUSED \d")
        support.wait_until(lambda: tmux.screen().splitlines()[5:] ==
                           (tmux.wait_for("PAUSED"), tmux.screen())[1].splitlines()[5:],
                           "the figures stand still")
        tmux.press("Space")
        support.wait_until(lambda: "PAUSED" not in tmux.screen(), "sampling continues")
        self.quit(tmux)

    def test_reset_begins_from_zero(self):
        tmux = self.start()
        tmux.wait_for(r"last 5 s")
        tmux.press("p")
        tmux.wait_for(r"PAUSED \d")
        tmux.press("r")
        tmux.wait_for(r"last 0 s(?s:.*)waiting for the first samples")
        tmux.press("p")
        tmux.wait_for(r"  spin ")
        self.quit(tmux)

    def test_saves_what_report_reads(self):
        tmux = self.start()
        tmux.press("/", "p", "Enter", "S", "S")
        tmux.wait_for(r"^saved busy\.py-%d-.*\.pysample: .*, the last \d+ s" % self.target.pid)
        self.quit(tmux)
        paths = glob.glob(self.path("busy.py-%d-*.pysample" % self.target.pid))
        self.assertEqual(len(paths), 2, "no file is replaced")
        for path in paths:
            result = support.pysample("report", "-f", "collapsed", path)
            self.assertEqual(result.status, 0)
            self.assertNotIn("not finished", result.stderr)
            self.assertIn("spin", result.stdout)

    def test_resizes(self):
        tmux = self.start()
        tmux.press("Enter")
        tmux.wait_for(r"Tab: call tree")
        for columns, rows in ((200, 50), (20, 6), (1, 1), (250, 10), (100, 30)):
            tmux.run("resize-window", "-x", str(columns), "-y", str(rows))
        tmux.wait_for(r"called by")
        self.assertEqual(len(tmux.screen().splitlines()), 30)
        self.quit(tmux)

    def test_target_dies(self):
        tmux = self.start()
        self.target.process.kill()
        tmux.wait_for(r"ENDED \d")
        tmux.wait_for(r"the process has ended: q quits, S saves")
        tmux.press("Enter")
        tmux.wait_for(r"called by")
        tmux.press("S")
        tmux.wait_for(r"^saved busy")
        self.quit(tmux)

    def test_colours(self):
        tmux = self.start()
        self.assertRegex(tmux.screen("-e"), "\x1b\\[[0-9;]*38;5;")
        self.quit(tmux)

    def test_no_color(self):
        tmux = self.start(NO_COLOR="1")
        screen = tmux.screen("-e")
        self.assertRegex(screen, "\x1b\\[[0-9;]*7m")
        self.assertNotRegex(screen, "\x1b\\[([0-9;]*;)?[34][0-8][;m]")
        self.quit(tmux)

    def test_without_terminfo(self):
        """It carries the descriptions of common terminals."""
        for term in ("xterm-256color", "screen-256color", "xterm-kitty", "linux", "vt100"):
            with self.subTest(term):
                # The library looks into its own folders, too, unless it cannot read them.
                hide = "unshare -m sh -c 'for f in /etc /lib /usr/share /usr/lib; do" \
                    " test ! -d $f/terminfo || mount -t tmpfs none $f/terminfo; done;" \
                    " exec \"$@\"' sh env TERM=%s" % term
                tmux = self.start(prefix=hide, HOME="/")
                self.quit(tmux)
                tmux.run("kill-server")

    def refused(self, prefix, pattern):
        tmux = Tmux(self, self.folder)
        tmux.modes("before")
        tmux.type("%s %s top %d; echo status-$?-end" % (prefix, support.PYSAMPLE, self.target.pid))
        screen = tmux.wait_for(r"^status-1-end")
        self.assertRegex(screen.replace("\n", ""), pattern)
        self.check_restored(tmux)
        tmux.run("kill-server")

    def test_refuses_what_is_no_terminal(self):
        self.refused("TERM=dumb", r"'dumb' cannot move its cursor: use --batch")
        self.refused("TERM=unheard-of", r"'unheard-of' is not in the terminfo database")
        self.refused("env -u TERM", r"TERM is not set")
        self.refused("cat /dev/null |", r"must be a terminal: use --batch")

    def end_by(self, number):
        tmux = self.start()
        os.kill(tmux.child(), number)
        tmux.wait_for(PROMPT)
        self.check_restored(tmux)
        tmux.run("kill-server")

    def test_restores_the_terminal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT,
                       signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(number):
                self.end_by(number)

    def test_stops_and_continues(self):
        tmux = self.start()
        tmux.press("C-z")
        tmux.wait_for(r"Stopped")
        self.check_restored(tmux)
        tmux.type("fg")
        tmux.wait_for(r"last \d+ s")
        support.wait_until(lambda: "PAUSED" not in tmux.screen(), "sampling continues")
        tmux.press("S")
        support.wait_until(lambda: glob.glob(self.path("*.pysample")), "it is saved")
        info = support.pysample("report", "--info", "--json", *glob.glob(self.path("*.pysample")))
        self.assertGreater(json.loads(info.stdout)["paused_ns"], 0)
        os.kill(tmux.child(), signal.SIGSTOP)
        tmux.wait_for(r"Stopped")
        # The terminal still has the modes of the stopped program: Enter ends no line.
        tmux.run("send-keys", "-l", "clear; fg")
        tmux.press("C-j")
        support.wait_until(lambda: "Stopped" not in tmux.screen(), "it has drawn itself again")
        tmux.wait_for(r"last \d+ s")
        self.quit(tmux)

    def test_closed_terminal_ends_it(self):
        tmux = self.start(prefix="trap '' HUP;")
        pid = tmux.child()
        tmux.run("kill-server")
        support.wait_until(lambda: not os.path.exists("/proc/%d" % pid), "it ends")


class Batch(unittest.TestCase):
    def setUp(self):
        self.target = self.enterContext(support.python_target(support.newest_interpreter(), "busy"))

    def test_rows(self):
        for options, expected in (((), 2), (("--rows", "0"), 2), (("--rows", "1"), 1)):
            result = support.pysample("top", "-b", "-q", "-d", "2", "--interval", "1h", *options,
                                      self.target.pid)
            self.assertEqual(result.status, 0)
            self.assertEqual(len(re.findall(r"busy\.py:\d+$", result.stdout, re.M)), expected,
                             result.stdout)

    def test_prints_screens(self):
        result = support.pysample("top", "-b", "-c", "2", "--interval", "500ms", self.target.pid)
        self.assertEqual(result.status, 0)
        screens = result.stdout.split("\n\n busy")
        self.assertEqual(len(re.findall(r"^CPU\[", result.stdout, re.M)), 2, result.stdout)
        self.assertRegex(screens[-1], r" spin .*busy\.py:\d+")
        self.assertNotIn("\x1b", result.stdout)
        self.assertNotIn("Help", result.stdout)

    def test_json_has_the_objects_of_dump(self):
        result = support.pysample("top", "-b", "--json", "-d", "2", "--interval", "1h", "-q",
                                  "--lines", self.target.pid)
        self.assertEqual((result.status, result.stderr), (0, ""))
        dumped = dump(self.target.pid)
        live = json.loads(result.stdout)
        self.assertEqual(live["version"], 1)
        for key in ("pid", "python", "command"):
            self.assertEqual(live[key], dumped[key])
        self.assertEqual(live["stats"]["pid"], self.target.pid)
        self.assertEqual(len(live["threads"]), len(dumped["threads"]))
        threads = {thread["tid"]: {key: thread[key] for key in thread if key not in LIVE_KEYS}
                   for thread in live["threads"]}
        schemas.validate({**dumped, "threads": list(threads.values())}, "dump.schema.json")
        for thread in live["threads"]:
            self.assertEqual(thread["pid"], self.target.pid)
            total = sum(thread["recent"][state]
                        for state in ("gil", "waits-for-gil", "runs", "waits"))
            self.assertTrue(0 < total <= 100.1, thread["recent"])
        # The threads that sleep are where the dump found them, frame by frame.
        known = ("name", "kind", "path", "first_line", "line")
        for thread in dumped["threads"]:
            if not thread["main"]:
                self.assertEqual(*([[frame[key] for key in known] for frame in one["frames"]]
                                   for one in (threads[thread["tid"]], thread)))
        hottest = live["functions"][0]
        self.assertEqual((hottest["name"], hottest["kind"]), ("spin", "python"))
        self.assertEqual(tuple(hottest), (*known, "recent", "all"))
        self.assertGreater(hottest["all"]["own"]["percent"], 0)

    def test_ends_with_the_process(self):
        process = support.start_pysample("top", "-b", "--interval", "1h", self.target.pid)
        self.assertIn(b"sampling process", process.stderr.readline())
        support.wait_for_ticks(process.pid)
        self.target.process.kill()
        result = support.finish(process)
        self.assertEqual(result.status, 0)
        self.assertIn("ENDED", result.stdout)
        self.assertRegex(result.stdout, r" spin ")

    def test_sums_are_those_of_attach(self):
        """After a run, own times add up to those that its recording has."""
        with support.fresh_folder() as (folder, _):
            process = support.start_pysample("top", "-b", "--json", "-q", "--rows", "0",
                                             "--interval", "300ms", self.target.pid, cwd=folder)
            support.wait_for_ticks(process.pid, 60)
            process.send_signal(signal.SIGUSR1)
            support.wait_until(lambda: glob.glob(folder + "/*.pysample"), "it is saved")
            process.send_signal(signal.SIGTERM)
            result = support.finish(process)
            self.assertEqual(result.status, 0)
            path, = glob.glob(folder + "/*.pysample")
            report = support.pysample("report", "-f", "json", "--mode", "busy", path)
        last = json.loads(result.stdout.splitlines()[-1])
        names = {function["name"] for function in last["functions"]}
        self.assertEqual({function["name"] for function in json.loads(report.stdout)["functions"]},
                         names)
        own = sum(function["all"]["own"]["weight"] for function in last["functions"])
        self.assertAlmostEqual(own / 1e9, last["stats"]["shown_s"], places=2)

    def test_usage(self):
        for options, message in ((("--json",), "--json requires --batch"),
                                 (("-c", "3"), "--count requires --batch"),
                                 (("-b", "--interval", "0"), "is not an interval")):
            result = support.pysample("top", *options, self.target.pid)
            self.assertEqual(result.status, 2)
            self.assertIn(message, result.stderr)
