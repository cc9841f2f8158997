# SPDX-License-Identifier: MIT
"""`pysample attach --native --affinity`: where it runs, and that nobody else is moved."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import support

SECONDS = 20  # nobody waits for its end

CHILD = """
import json, os, subprocess, sys, time
def cpus():
    return sorted(os.sched_getaffinity(0))
found = [cpus()]
end = time.monotonic() + 1.5
while time.monotonic() < end:
    sum(range(100))
found.append(cpus())
found.append(json.loads(subprocess.run(
    [sys.executable, "-c", "import json, os; print(sorted(os.sched_getaffinity(0)))"],
    capture_output=True, check=True).stdout))
json.dump(found, open(sys.argv[1], "w"))
"""


def usual():
    return os.sched_getaffinity(0)


def needs_two_processors():
    if len(usual()) < 2:
        raise unittest.SkipTest("not tested here: there is one processor")


def attach(target):
    return support.start_pysample("attach", "-n", "--affinity", "-d", SECONDS, "-f", "collapsed",
                                  target.pid)


def finish(process):
    """What it says of the C frames of threads that run, if it cannot tell these."""
    process.send_signal(signal.SIGINT)
    result = support.finish(process)
    if "no C frames" in result.stderr:
        raise unittest.SkipTest("not tested here: " + result.stderr.strip().splitlines()[-1])
    return result


def masks_of(process, seconds):
    """All that it could run on in that time: as long as it takes to follow a thread and more."""
    found = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found.add(frozenset(os.sched_getaffinity(process.pid)))
        time.sleep(0.01)
    return found


class Affinity(unittest.TestCase):
    def setUp(self):
        needs_two_processors()
        self.interpreter = support.newest_interpreter()

    def test_follows_one_thread(self):
        with support.python_target(self.interpreter, "shortcalls") as target:
            process = attach(target)
            try:
                support.wait_until(
                    lambda: process.poll() is not None or
                    len(os.sched_getaffinity(process.pid)) == 1, "it follows the thread")
                # Nothing runs any more: there is no dump, and nobody to be followed.
                os.kill(target.pid, signal.SIGSTOP)
                support.wait_until(lambda: os.sched_getaffinity(process.pid) == usual(),
                                   "it runs where it did before")
                self.assertEqual(os.sched_getaffinity(target.pid), usual())
            finally:
                os.kill(target.pid, signal.SIGCONT)
                result = finish(process)
        self.assertIn("shortcalls.py", result.stdout)

    def test_not_asked_for(self):
        with support.python_target(self.interpreter, "shortcalls") as target:
            process = support.start_pysample("attach", "-n", "-d", SECONDS, "-f", "collapsed",
                                             target.pid)
            self.assertEqual(masks_of(process, 1), {frozenset(usual())})
            finish(process)

    def test_keeps_away_from_who_would_not_let_it_run(self):
        for wrapper in (["chrt", "-f", "1"], ["nice", "-n", "-20"]):
            with self.subTest(wrapper=wrapper):
                if subprocess.run([*wrapper, "true"], capture_output=True,
                                  check=False).returncode:
                    self.skipTest("not tested here: %s is not allowed" % wrapper)
                with support.python_target(self.interpreter, "shortcalls",
                                           wrapper=wrapper) as target:
                    process = attach(target)
                    self.assertEqual(masks_of(process, 1), {frozenset(usual())})
                    result = finish(process)
                self.assertIn("shortcalls.py", result.stdout)

    def test_is_named_where_it_may_help(self):
        with support.python_target(self.interpreter, "shortcalls") as target, \
                support.fresh_folder() as (folder, _):
            counters = os.path.join(folder, "counters")
            for options in [], ["--affinity"]:
                result = support.pysample("attach", "-n", *options, "-d", "500ms", "-o",
                                          os.devnull, "--stats-json", counters, target.pid)
                self.assertEqual(result.status, 0, result)
                native = json.loads(support.read(counters))["native"]
                may = not options and native["python_holed"] > native["stacks"] // 4
                self.assertEqual("--affinity may" in result.stderr, may, result)

    def test_command_runs_anywhere(self):
        """Neither the command nor what it starts is kept where pysample runs."""
        with support.fresh_folder() as (folder, _):
            script, masks = os.path.join(folder, "child.py"), os.path.join(folder, "masks")
            with open(script, "w", encoding="ascii") as file:
                file.write(CHILD)
            result = support.pysample("run", "-n", "--affinity", "-f", "collapsed", "-o",
                                      os.path.join(folder, "out"), "--", sys.executable, script,
                                      masks)
            self.assertEqual(result.status, 0, result.stderr)
            self.assertEqual(json.loads(support.read(masks)), [sorted(usual())] * 3)


if __name__ == "__main__":
    unittest.main()
