# SPDX-License-Identifier: MIT
"""--open: which page is shown, by which program, as which user, and that nobody waits for it. The
programs are ours: they write down what they were given and stay until they are let go.
"""
import contextlib
import glob
import json
import os
import pwd
import shutil
import sys
import unittest

import support
from support import pysample

# usage: VIEWER FILE; writes down its circumstances, then waits until a writer opens and closes a
# named pipe.
VIEWER = """\
#!%s
import json, os, sys

folder = os.path.dirname(os.path.abspath(__file__))
seen = {
    "name": os.path.basename(sys.argv[0]), "arguments": sys.argv[1:], "cwd": os.getcwd(),
    "ids": [*os.getresuid(), *os.getresgid()], "groups": os.getgroups(),
    "page": open(sys.argv[1]).read(15), "environment": dict(os.environ),
    "files": {fd: os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd")
              if os.path.lexists("/proc/self/fd/" + fd)},
    "privileges": open("/proc/self/status").read().split("NoNewPrivs:")[1].split()[0],
}
with open(folder + "/seen.part", "w") as file:
    json.dump(seen, file)
os.rename(folder + "/seen.part", folder + "/seen")
open(folder + "/gate").read()
""" % (shutil.which("python3", path="/usr/bin:/bin") or sys.executable)  # also for nobody

# Ends the other processes with its parent's arguments: the one that waits for the page. Returns when
# their files are closed.
KILLER = """\
import glob, time

parent = "/proc/%d/cmdline" % os.getppid()
wanted = open(parent).read()
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        if path != parent and open(path).read() == wanted:
            os.kill(int(path.split("/")[2]), 9)
            while open(path.replace("cmdline", "stat")).read().rsplit(")")[-1].split()[0] not in "ZX":
                time.sleep(0.01)
    except OSError:
        pass
"""

NOBODY = pwd.getpwnam("nobody")


def python():
    """An interpreter that sees the same files as we do."""
    return max((found for found in support.supported_interpreters() if not found.root),
               key=support.version_key).path


class Open(unittest.TestCase):
    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())
        os.chmod(self.folder, 0o777)
        for name in "xdg-open", "my-browser":
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(VIEWER)
            os.chmod(path, 0o755)
        os.mkfifo(self.in_folder("gate"))
        os.chmod(self.in_folder("gate"), 0o666)

    def in_folder(self, name):
        return os.path.join(self.folder, name)

    def run_pysample(self, *words, **environment):
        """Run it to its end, and to that of its stdout and stderr, in our folder."""
        kept = {name: value for name, value in os.environ.items()
                if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "SUDO_UID")}
        path = self.folder + ":" + os.environ["PATH"]
        return pysample(*words, cwd=self.folder, env={**kept, "PATH": path, **environment})

    def viewer(self):
        """What the program has seen, which is still there. It ends now."""
        support.wait_until(lambda: os.path.exists(self.in_folder("seen")), "the page is opened")
        with open(self.in_folder("seen"), encoding="utf-8") as file:
            seen = json.load(file)
        os.unlink(self.in_folder("seen"))
        with open(self.in_folder("gate"), "w", encoding="ascii"):
            pass
        self.assertEqual(seen["page"], "<!doctype html>")
        self.assertEqual({name for fd, name in seen["files"].items() if int(fd) < 3},
                         {"/dev/null"})
        self.assertEqual([name for name in seen["files"].values() if "pipe:" in name
                          or "socket:" in name], [])
        self.assertEqual((seen["cwd"], seen["privileges"]), ("/", "0"))
        return seen

    def assert_opened(self, result, name, viewer="xdg-open"):
        page = self.in_folder(name)
        self.assertIn("pysample: opened %s\n" % page, result.stderr)
        seen = self.viewer()
        self.assertEqual((seen["name"], seen["arguments"]), (viewer, [page]))
        return seen

    def script(self, end):
        path = self.in_folder("work.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import os, sys\nfor n in range(3 * 10 ** 6):\n    n * n\n%s\n" % end)
        return path

    def record(self, *options, end="sys.exit(7)", **environment):
        """Run a program for so long that there are samples, and return the result."""
        results = []

        def has_page():
            results.append(self.run_pysample(
                "run", "-r", 1000, *options, "--", python(),
                self.script(end), **environment))
            return any(name.endswith(".html") for name in os.listdir(self.folder))

        support.wait_until(has_page, "there are samples")
        return results[-1]

    def page(self):
        (name,) = [name for name in os.listdir(self.folder) if name.endswith(".html")]
        return name

    def test_attach(self):
        with support.python_target(support.newest_interpreter(), "busy") as target:
            result = self.run_pysample("attach", "--open", "--idle", "-d", 0.3, target.pid,
                                       DISPLAY=":9")
            self.assertEqual((result.status, result.stdout), (0, ""))
            self.assert_opened(result, "pysample-%d.html" % target.pid)

    def test_run(self):
        """The exit status is the command's. Without a page among the outputs there is another."""
        result = self.record("--open", WAYLAND_DISPLAY="wayland-0")
        self.assertEqual(result.status, 7)
        self.assertRegex(self.page(), r"^pysample-python\S*-\d+\.html$")
        self.assert_opened(result, self.page())
        os.unlink(self.in_folder(self.page()))
        result = self.record("--open", "-o", "out.pysample", DISPLAY=":9")
        self.assert_opened(result, self.page())
        self.assertIn("out.pysample", os.listdir(self.folder))

    def test_report(self):
        self.record("-o", "out.pysample", "-o", "x.html")
        result = self.run_pysample("report", "--open", "out.pysample", DISPLAY=":9")
        self.assertEqual((result.status, result.stdout), (0, ""))
        self.assert_opened(result, "out.pysample.html")
        result = self.run_pysample("report", "out.pysample", "--open", "-o", "the page.html",
                                   "-o", "-", "-f", "summary", BROWSER="my-browser")
        self.assert_opened(result, "the page.html", "my-browser")
        self.assertIn("self%", result.stdout)

    def test_no_desktop(self):
        result = self.record("-o", "x.html", "--open")
        self.assertIn("no desktop to open the page on: it is %s\n" % self.in_folder("x.html"),
                      result.stderr)
        self.assertNotIn("seen", os.listdir(self.folder))

    def test_no_program(self):
        result = self.record("-o", "x.html", "--open", BROWSER="no-such-browser")
        self.assertIn("cannot open the page %s with no-such-browser: No such file"
                      % self.in_folder("x.html"), result.stderr)
        self.assertEqual(result.status, 7)

    def test_killed(self):
        """Nobody waits for the page any more."""
        result = self.record("-o", "x.html", "--open", end=KILLER, DISPLAY=":9")
        self.assertIn("cannot open the page %s with xdg-open: No such process"
                      % self.in_folder("x.html"), result.stderr)
        self.assertNotIn("seen", os.listdir(self.folder))

    def test_no_page(self):
        """Without samples there is no page, and the waiting process ends."""
        result = self.run_pysample("run", "--open", "true", self.folder, DISPLAY=":9")
        self.assertNotIn("opened", result.stderr)
        support.wait_until(lambda: not self.command_lines(), "nobody waits for a page")
        self.assertNotIn("seen", os.listdir(self.folder))

    def command_lines(self):
        """Those of all processes that have our folder in them."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found.append(support.read(path))
        return [line for line in found if self.folder in line]

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_sudo(self):
        """The program runs as the user who called sudo, and has none of our rights."""
        with support.python_target(support.newest_interpreter(), "busy") as target:
            result = self.run_pysample("attach", "--open", "--idle", "-d", 0.3, target.pid,
                                       DISPLAY=":9", SUDO_UID=str(NOBODY.pw_uid))
        seen = self.assert_opened(result, "pysample-%d.html" % target.pid)
        self.assertEqual(seen["ids"], [NOBODY.pw_uid] * 3 + [NOBODY.pw_gid] * 3)
        self.assertEqual(set(seen["groups"]), set(os.getgrouplist("nobody", NOBODY.pw_gid)))
        self.assertEqual([seen["environment"][name] for name in (
            "HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR")], [
                NOBODY.pw_dir, "nobody", "nobody", "/run/user/%d" % NOBODY.pw_uid])

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_wrong_caller(self):
        """It never runs as root where it should have been somebody else."""
        for wrong in "4294967294", "x", "-1", "":
            with self.subTest(wrong):
                result = self.record("-o", "x.html", "--open", DISPLAY=":9", SUDO_UID=wrong)
                self.assertIn("cannot open the page", result.stderr)
                self.assertNotIn("seen", os.listdir(self.folder))

    def test_periods(self):
        result = self.run_pysample("attach", "--open", "--loop", "60s", "-o", "%t.html", 1)
        self.assertEqual(result.status, 2)
        self.assertIn("--open opens one page, and --loop writes many", result.stderr)
