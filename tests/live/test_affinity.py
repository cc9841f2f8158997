# SPDX-License-Identifier: MIT
"""Sampled programs may run on all CPUs: pysample moves to the target, not the target to
pysample."""
import json
import os
import sys
import time
import unittest

import support

CHILD = """
import json, os, subprocess, sys, time
def cpus():
    return sorted(os.sched_getaffinity(0))
found = [cpus()]
end = time.monotonic() + 0.5
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


class Affinity(unittest.TestCase):
    sleeps = True

    def test_target_runs_anywhere(self):
        """Check every thread, during and after sampling."""
        with support.python_target(support.newest_interpreter(), "busy") as target:
            tids = list(map(int, os.listdir("/proc/%d/task" % target.pid)))
            process = support.start_pysample("attach", "-n", "-d", "0.5", "-o", os.devnull,
                                             target.pid)
            while process.poll() is None:
                self.assertEqual([os.sched_getaffinity(tid) for tid in tids],
                                 [usual()] * len(tids))
                time.sleep(0.01)
            support.finish(process)
            self.assertEqual([os.sched_getaffinity(tid) for tid in tids], [usual()] * len(tids))

    def test_command_runs_anywhere(self):
        """Neither the command nor its children are confined to pysample's CPU."""
        for options in [], ["-n"]:
            with self.subTest(options=options), support.fresh_folder() as (folder, _):
                script, masks = os.path.join(folder, "child.py"), os.path.join(folder, "masks")
                with open(script, "w", encoding="ascii") as file:
                    file.write(CHILD)
                result = support.pysample("run", *options, *support.COLLAPSED, "-o",
                                          os.path.join(folder, "out"), "--", sys.executable,
                                          script, masks)
                self.assertEqual(result.status, 0, result.stderr)
                self.assertEqual(json.loads(support.read(masks)), [sorted(usual())] * 3)


if __name__ == "__main__":
    unittest.main()
